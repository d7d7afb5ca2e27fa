"""paho as a client that shows credentials: user and password, TLS, WebSocket, Unix socket."""

from __future__ import annotations

import queue
import ssl
from pathlib import Path

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties as PahoProperties

from clients.model import DEADLINE_SECONDS, Message, Will
from clients.paho_client import message_of

SUCCESS = 0x00
BAD_USER_NAME_OR_PASSWORD = 0x86
CLIENT_IDENTIFIER_NOT_VALID = 0x85
NOT_AUTHORIZED = 0x87


class Closed(Exception):
    """The connection ended before the server answered."""


class Guarded:
    """One client of MQTT 5.0."""

    def __init__(self, port: int, client_id: str, username: str | None = None,
                 password: str | None = None, *, host: str = "127.0.0.1", will: Will | None = None,
                 tls: ssl.SSLContext | None = None, transport: str = "tcp",
                 path: str = "/mqtt", headers: dict | None = None,
                 session_seconds: int = 0) -> None:
        self.inbox: queue.Queue = queue.Queue()
        self.ended: queue.Queue = queue.Queue()
        self._connack: queue.Queue = queue.Queue()
        self._acks: queue.Queue = queue.Queue()
        self._published: queue.Queue = queue.Queue()
        self._address = (host, port)
        self._session_seconds = session_seconds
        self.client = client = paho.Client(
            CallbackAPIVersion.VERSION2, client_id=client_id, protocol=paho.MQTTv5,
            transport=transport, reconnect_on_failure=False,
        )
        client.connect_timeout = DEADLINE_SECONDS
        if username is not None:
            client.username_pw_set(username, password)
        if tls is not None:
            client.tls_set_context(tls)
        if transport == "websockets":
            client.ws_set_options(path, headers)
        if will is not None:
            client.will_set(will.topic, will.payload, will.qos, will.retain)
        client.on_connect = lambda _c, _u, _f, reason, _p: self._connack.put(reason.value)
        client.on_subscribe = lambda _c, _u, _m, reasons, _p: self._acks.put(
            [reason.value for reason in reasons]
        )
        client.on_publish = lambda _c, _u, _m, reason, _p: self._published.put(reason.value)
        client.on_message = lambda _c, _u, message: self.inbox.put(message_of(message))
        client.on_disconnect = self._on_disconnect

    def _on_disconnect(self, _client, _userdata, flags, reason, _properties):
        self._connack.put(None)
        self.ended.put(reason.value if flags.is_disconnect_packet_from_server else None)

    def connect(self) -> int:
        """Connects; returns the reason code, or raises Closed."""
        properties = PahoProperties(PacketTypes.CONNECT)
        properties.SessionExpiryInterval = self._session_seconds
        is_new = self._session_seconds == 0
        try:
            self.client.connect(*self._address, 60, clean_start=is_new, properties=properties)
        except (OSError, paho.WebsocketConnectionError) as error:
            raise Closed(str(error)) from error
        self.client.loop_start()
        reason = self._connack.get(timeout=DEADLINE_SECONDS)
        if reason is None:
            raise Closed("without CONNACK")
        return reason

    def join(self) -> Guarded:
        """Connects, which must succeed."""
        reason = self.connect()
        assert reason == SUCCESS, f"refused: {reason:#x}"
        return self

    def subscribe(self, topic_filter: str, qos: int = 1) -> int:
        self.client.subscribe(topic_filter, qos)
        (reason,) = self._acks.get(timeout=DEADLINE_SECONDS)
        return reason

    def publish(self, topic: str, payload: str = "x", retain: bool = False,
                alias: int | None = None) -> int:
        """Publishes with QoS 1; returns the reason code of the acknowledgement."""
        properties = PahoProperties(PacketTypes.PUBLISH)
        if alias is not None:
            properties.TopicAlias = alias
        self.client.publish(topic, payload, 1, retain, properties)
        return self._published.get(timeout=DEADLINE_SECONDS)

    def next_message(self) -> Message:
        return self.inbox.get(timeout=DEADLINE_SECONDS)

    def topics_until(self, last: str) -> list[str]:
        """Topics of what arrives until `last` does, without it."""
        topics = []
        while (topic := self.next_message().topic) != last:
            topics.append(topic)
        return topics

    def wait_for_end(self) -> int | None:
        """Waits until the server ends the connection; the reason of its DISCONNECT, if it sent one."""
        return self.ended.get(timeout=DEADLINE_SECONDS)

    def break_off(self) -> None:
        """Closes the connection without DISCONNECT, so that the will is published."""
        self.client.socket().shutdown(2)
        self.wait_for_end()

    def close(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()


def trusting(ca: Path, certificate=None, *, minimum=None, maximum=None) -> ssl.SSLContext:
    """TLS of a client that believes this authority and shows this certificate."""
    context = ssl.create_default_context(cafile=str(ca))
    if certificate is not None:
        context.load_cert_chain(certificate.cert, certificate.key)
    if minimum is not None:
        context.minimum_version = minimum
    if maximum is not None:
        context.maximum_version = maximum
    return context
