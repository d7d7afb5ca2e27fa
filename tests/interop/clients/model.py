"""The interface of the tests to every client library."""

from __future__ import annotations

import queue
from abc import ABC, abstractmethod
from dataclasses import dataclass, field

# Longest wait for something that must happen; nothing waits that long when all is well.
DEADLINE_SECONDS = 10.0


@dataclass(frozen=True)
class Properties:
    """Properties of an application message (5.0)."""

    user: tuple[tuple[str, str], ...] = ()
    content_type: str | None = None
    response_topic: str | None = None
    correlation_data: bytes | None = None
    payload_format: int | None = None
    message_expiry: int | None = None
    subscription_identifiers: tuple[int, ...] = ()
    topic_alias: int | None = None


@dataclass(frozen=True)
class Message:
    topic: str
    payload: bytes
    qos: int
    retain: bool
    properties: Properties = Properties()


@dataclass(frozen=True)
class Will:
    topic: str
    payload: bytes
    qos: int = 1
    retain: bool = False
    delay_seconds: int | None = None


@dataclass(frozen=True)
class Connect:
    client_id: str
    clean_start: bool = True
    keep_alive: int = 60
    session_expiry: int | None = None
    will: Will | None = None
    receive_maximum: int | None = None
    maximum_packet_size: int | None = None
    topic_alias_maximum: int | None = None
    request_problem_information: int | None = None
    manual_ack: bool = False


@dataclass
class MqttClient(ABC):
    """A client with a mailbox of received messages."""

    host: str
    port: int
    version: str
    inbox: queue.Queue = field(default_factory=queue.Queue)

    def next_message(self, seconds: float = DEADLINE_SECONDS) -> Message:
        try:
            return self.inbox.get(timeout=seconds)
        except queue.Empty:
            raise AssertionError(f"{self}: no message within {seconds} s") from None

    def next_messages(self, count: int) -> list[Message]:
        return [self.next_message() for _ in range(count)]

    def __str__(self) -> str:
        return f"{type(self).__name__} {self.version}"

    @abstractmethod
    def connect(self, options: Connect) -> bool:
        """Connects and tells whether the server had a session."""

    @abstractmethod
    def subscribe(self, *filters: str, qos: int = 0, **options: int) -> list[int]:
        """Subscribes; returns the reason codes. Options are no_local, retain_as_published,
        retain_handling and identifier, all 5.0."""

    @abstractmethod
    def unsubscribe(self, topic_filter: str) -> list[int]:
        """Unsubscribes; returns the reason codes, none before 5.0."""

    @abstractmethod
    def publish(
        self,
        topic: str,
        payload: bytes = b"",
        qos: int = 0,
        retain: bool = False,
        properties: Properties | None = None,
    ) -> None:
        """Publishes and waits for the end of the acknowledgement, if there is one."""

    @abstractmethod
    def disconnect(self) -> None:
        """Leaves with a DISCONNECT."""

    @abstractmethod
    def kill(self) -> None:
        """Drops the connection without a word."""
