"""gmqtt: an asyncio client with its own protocol code, 3.1.1 and 5.0."""

from __future__ import annotations

import asyncio
import queue
import threading
from dataclasses import dataclass, field

import gmqtt
from gmqtt.mqtt.constants import MQTTv50, MQTTv311

from clients.model import DEADLINE_SECONDS, Connect, Message, MqttClient, Properties

PROTOCOLS = {"3.1.1": MQTTv311, "5.0": MQTTv50}


@dataclass
class GmqttClient(MqttClient):
    client: gmqtt.Client | None = None
    acks: queue.Queue = field(default_factory=queue.Queue)
    disconnects: queue.Queue = field(default_factory=queue.Queue)
    session_present: bool = False
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)

    def __post_init__(self) -> None:
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def _wait(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(DEADLINE_SECONDS)

    async def _run(self, function, *arguments, **named):
        return function(*arguments, **named)

    def connect(self, options: Connect) -> bool:
        self._wait(self._connect(options))
        return self.session_present

    async def _connect(self, options: Connect) -> None:
        named = {
            "session_expiry_interval": options.session_expiry,
            "receive_maximum": options.receive_maximum,
            "maximum_packet_size": options.maximum_packet_size,
            "topic_alias_maximum": options.topic_alias_maximum,
        }
        will = None
        if options.will:
            delay = options.will.delay_seconds
            will = gmqtt.Message(
                options.will.topic,
                options.will.payload,
                options.will.qos,
                options.will.retain,
                **({} if delay is None else {"will_delay_interval": delay}),
            )
        self.client = gmqtt.Client(
            options.client_id,
            clean_session=options.clean_start,
            will_message=will,
            **{name: value for name, value in named.items() if value is not None},
        )
        self._set_callbacks()
        await self.client.connect(
            self.host,
            self.port,
            keepalive=options.keep_alive,
            version=PROTOCOLS[self.version],
        )

    def _set_callbacks(self) -> None:
        def on_connect(_client, flags, _reason, _properties):
            self.session_present = bool(flags)

        def on_disconnect(_client, packet, *_exception):
            # No client of a test connects again by itself.
            self.client._is_active = False
            self.disconnects.put(packet)

        def on_message(_client, topic, payload, qos, properties):
            self.inbox.put(
                Message(topic, payload, qos, bool(properties["retain"]), properties_of(properties))
            )
            return 0

        self.client.on_connect = on_connect
        self.client.on_message = on_message
        self.client.on_subscribe = lambda _c, mid, codes, _p: self.acks.put((mid, list(codes)))
        self.client.on_unsubscribe = lambda _c, mid, codes: self.acks.put((mid, list(codes)))
        self.client.on_disconnect = on_disconnect

    def _acknowledged(self, mid: int) -> list[int]:
        acknowledged, reasons = self.acks.get(timeout=DEADLINE_SECONDS)
        assert acknowledged == mid
        return reasons

    def subscribe(self, *filters: str, qos: int = 0, **options: int) -> list[int]:
        # The name gmqtt has for the option.
        handling = options.pop("retain_handling", 0)
        identifier = options.pop("identifier", None)
        subscriptions = [
            gmqtt.Subscription(
                each,
                qos=qos,
                no_local=bool(options.get("no_local", 0)),
                retain_as_published=bool(options.get("retain_as_published", 0)),
                retain_handling_options=handling,
                subscription_identifier=identifier,
            )
            for each in filters
        ]
        return self._acknowledged(self._wait(self._run(self.client.subscribe, subscriptions)))

    def unsubscribe(self, topic_filter: str) -> list[int]:
        return self._acknowledged(self._wait(self._run(self.client.unsubscribe, topic_filter)))

    def publish(self, topic, payload=b"", qos=0, retain=False, properties=None) -> None:
        message = gmqtt.Message(topic, payload, qos, retain, **named_properties(properties))
        self._wait(self._run(self.client.publish, message))
        if qos:
            # The store of unacknowledged messages is gmqtt's own sign of completion.
            self._wait(self.client._persistent_storage.wait_empty())

    def disconnect(self) -> None:
        self._wait(self.client.disconnect())

    def kill(self) -> None:
        # Zero retries still means one; only an inactive client stays away.
        self.client._is_active = False
        transport = self.client._connection._transport
        self.loop.call_soon_threadsafe(transport.abort)
        self.disconnects.get(timeout=DEADLINE_SECONDS)

    def close(self) -> None:
        """Cleans up after a test, whatever state it left."""
        if self.client is not None and self.client.is_connected:
            self._wait(self.client.disconnect())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


def named_properties(properties: Properties | None) -> dict:
    if properties is None:
        return {}
    named = {
        "user_property": list(properties.user) or None,
        "content_type": properties.content_type,
        "response_topic": properties.response_topic,
        "correlation_data": properties.correlation_data,
        "payload_format_id": properties.payload_format,
        "message_expiry_interval": properties.message_expiry,
        "topic_alias": properties.topic_alias,
    }
    return {name: value for name, value in named.items() if value is not None}


def properties_of(found: dict) -> Properties:
    def first(name: str):
        values = found.get(name)
        return values[0] if values else None

    return Properties(
        user=tuple(tuple(pair) for pair in found.get("user_property", ())),
        content_type=first("content_type"),
        response_topic=first("response_topic"),
        correlation_data=first("correlation_data"),
        payload_format=first("payload_format_id"),
        message_expiry=first("message_expiry_interval"),
        subscription_identifiers=tuple(found.get("subscription_identifier", ())),
        topic_alias=first("topic_alias"),
    )
