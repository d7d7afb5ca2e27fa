"""Eclipse paho-mqtt, the reference client of Python: 3.1, 3.1.1 and 5.0."""

from __future__ import annotations

import queue
import socket
import struct
from dataclasses import dataclass, field

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties as PahoProperties
from paho.mqtt.subscribeoptions import SubscribeOptions

from clients.model import DEADLINE_SECONDS, Connect, Message, MqttClient, Properties, Will

PROTOCOLS = {"3.1": paho.MQTTv31, "3.1.1": paho.MQTTv311, "5.0": paho.MQTTv5}


@dataclass
class PahoClient(MqttClient):
    client: paho.Client | None = None
    connack: queue.Queue = field(default_factory=queue.Queue)
    acks: queue.Queue = field(default_factory=queue.Queue)
    disconnects: queue.Queue = field(default_factory=queue.Queue)
    # Reason code of each acknowledged publish, in order.
    published: queue.Queue = field(default_factory=queue.Queue)
    connack_properties: dict = field(default_factory=dict)
    unacknowledged: list = field(default_factory=list)

    def connect(self, options: Connect) -> bool:
        self.start(options)
        self.client.loop_start()
        flags, reason, properties = self.connack.get(timeout=DEADLINE_SECONDS)
        assert not reason.is_failure, f"refused: {reason}"
        self.connack_properties = vars(properties) if properties else {}
        return bool(flags.session_present)

    def start(self, options: Connect) -> None:
        """Sends CONNECT, and neither reads nor writes the socket afterwards."""
        arguments = {"protocol": PROTOCOLS[self.version]}
        if self.version != "5.0":
            arguments["clean_session"] = options.clean_start
        self.client = paho.Client(
            CallbackAPIVersion.VERSION2,
            client_id=options.client_id,
            manual_ack=options.manual_ack,
            reconnect_on_failure=False,
            **arguments,
        )
        self._set_callbacks(options)
        if options.will:
            self.client.will_set(
                options.will.topic,
                options.will.payload,
                options.will.qos,
                options.will.retain,
                properties=self._will_properties(options.will),
            )
        later = {}
        if self.version == "5.0":
            later = {
                "clean_start": options.clean_start,
                "properties": connect_properties(options),
            }
        self.client.connect(self.host, self.port, options.keep_alive, **later)

    def _will_properties(self, will: Will) -> PahoProperties | None:
        if self.version != "5.0":
            return None
        properties = PahoProperties(PacketTypes.WILLMESSAGE)
        if will.delay_seconds is not None:
            properties.WillDelayInterval = will.delay_seconds
        return properties

    def _set_callbacks(self, options: Connect) -> None:
        client = self.client
        client.on_connect = lambda _c, _u, flags, reason, properties: self.connack.put(
            (flags, reason, properties)
        )
        client.on_subscribe = lambda _c, _u, mid, reasons, _p: self.acks.put(
            (mid, [reason.value for reason in reasons])
        )
        client.on_unsubscribe = lambda _c, _u, mid, reasons, _p: self.acks.put(
            (mid, [reason.value for reason in reasons])
        )
        client.on_publish = lambda _c, _u, _mid, reason, _p: self.published.put(reason.value)
        client.on_disconnect = lambda _c, _u, flags, reason, _p: self.disconnects.put(
            (flags.is_disconnect_packet_from_server, reason.value)
        )

        def on_message(_client, _userdata, received):
            self.inbox.put(message_of(received))
            if options.manual_ack:
                self.unacknowledged.append((received.mid, received.qos))

        client.on_message = on_message

    def _acknowledged(self, mid: int) -> list[int]:
        acknowledged, reasons = self.acks.get(timeout=DEADLINE_SECONDS)
        assert acknowledged == mid
        return reasons

    def subscribe(self, *filters: str, qos: int = 0, **options: int) -> list[int]:
        if self.version != "5.0":
            assert not options
            _, mid = self.client.subscribe([(each, qos) for each in filters])
            return self._acknowledged(mid)
        properties = PahoProperties(PacketTypes.SUBSCRIBE)
        if identifier := options.get("identifier"):
            properties.SubscriptionIdentifier = identifier
        chosen = SubscribeOptions(
            qos,
            bool(options.get("no_local", 0)),
            bool(options.get("retain_as_published", 0)),
            options.get("retain_handling", 0),
        )
        _, mid = self.client.subscribe(
            [(each, chosen) for each in filters], properties=properties
        )
        return self._acknowledged(mid)

    def unsubscribe(self, topic_filter: str) -> list[int]:
        _, mid = self.client.unsubscribe(topic_filter)
        return self._acknowledged(mid)

    def publish(self, topic, payload=b"", qos=0, retain=False, properties=None) -> None:
        self.publish_later(topic, payload, qos, retain, properties).wait_for_publish(
            DEADLINE_SECONDS
        )

    def publish_later(self, topic, payload=b"", qos=0, retain=False, properties=None):
        """Publishes without waiting for the acknowledgement."""
        extra = {}
        if properties is not None:
            extra["properties"] = publish_properties(properties)
        return self.client.publish(topic, payload, qos, retain, **extra)

    def acknowledge(self) -> None:
        """Acknowledges the oldest message of a client with manual_ack."""
        self.client.ack(*self.unacknowledged.pop(0))

    def disconnect(self) -> None:
        self.client.disconnect()
        self.disconnects.get(timeout=DEADLINE_SECONDS)
        self.client.loop_stop()

    def kill(self) -> None:
        # A reset, so that the server notices it at once.
        transport = self.client.socket()
        transport.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.shutdown(socket.SHUT_RDWR)
        self.disconnects.get(timeout=DEADLINE_SECONDS)
        self.client.loop_stop()

    def close(self) -> None:
        """Cleans up after a test, whatever state it left."""
        if self.client is None:
            return
        self.client.disconnect()
        self.client.loop_stop()


def connect_properties(options: Connect) -> PahoProperties:
    properties = PahoProperties(PacketTypes.CONNECT)
    wanted = {
        "SessionExpiryInterval": options.session_expiry,
        "ReceiveMaximum": options.receive_maximum,
        "MaximumPacketSize": options.maximum_packet_size,
        "TopicAliasMaximum": options.topic_alias_maximum,
        "RequestProblemInformation": options.request_problem_information,
    }
    for name, value in wanted.items():
        if value is not None:
            setattr(properties, name, value)
    return properties


def publish_properties(chosen: Properties) -> PahoProperties:
    properties = PahoProperties(PacketTypes.PUBLISH)
    for pair in chosen.user:
        properties.UserProperty = pair
    wanted = {
        "ContentType": chosen.content_type,
        "ResponseTopic": chosen.response_topic,
        "CorrelationData": chosen.correlation_data,
        "PayloadFormatIndicator": chosen.payload_format,
        "MessageExpiryInterval": chosen.message_expiry,
        "TopicAlias": chosen.topic_alias,
    }
    for name, value in wanted.items():
        if value is not None:
            setattr(properties, name, value)
    return properties


def message_of(received: paho.MQTTMessage) -> Message:
    found = vars(received.properties) if received.properties else {}
    properties = Properties(
        user=tuple(found.get("UserProperty", ())),
        content_type=found.get("ContentType"),
        response_topic=found.get("ResponseTopic"),
        correlation_data=found.get("CorrelationData"),
        payload_format=found.get("PayloadFormatIndicator"),
        message_expiry=found.get("MessageExpiryInterval"),
        subscription_identifiers=tuple(found.get("SubscriptionIdentifier", ())),
        topic_alias=found.get("TopicAlias"),
    )
    return Message(
        received.topic, bytes(received.payload), received.qos, bool(received.retain), properties
    )
