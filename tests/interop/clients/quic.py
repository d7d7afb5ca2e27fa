"""aioquic as the QUIC under a client: what paho writes to a Unix socket travels on the first stream of a connection.

aioquic is asynchronous; it runs in a thread of its own, and tests see calls that wait and queues of events.
"""

from __future__ import annotations

import asyncio
import queue
import socket
import tempfile
import threading
from collections.abc import Coroutine
from pathlib import Path

from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import (
    ConnectionTerminated,
    HandshakeCompleted,
    QuicEvent,
    StreamDataReceived,
    StreamReset,
)
from aioquic.tls import SessionTicket

from clients.guarded import Closed
from clients.model import DEADLINE_SECONDS

# Error codes of QUIC, RFC 9000 section 20.1; TLS's alerts begin at ALERT.
CONNECTION_REFUSED = 0x2
ALERT = 0x100
BAD_CERTIFICATE = ALERT + 42
CERTIFICATE_EXPIRED = ALERT + 45
UNKNOWN_CA = ALERT + 48
CERTIFICATE_REQUIRED = ALERT + 116
NO_APPLICATION_PROTOCOL = ALERT + 120
# The broker's own: MQTT has ended, there is one stream, the listener closes.
DONE = 0
EXTRA_STREAM = 1
# The first streams that a client opens.
STREAM, SECOND_STREAM = 0, 4


class Quic:
    """One connection. `path` is the Unix socket whose bytes travel on its first stream."""

    def __init__(self, port: int, ca: Path, certificate=None, *, alpn: str = "mqtt",
                 server_name: str = "localhost", idle_seconds: float = 60.0,
                 ticket: SessionTicket | None = None) -> None:
        configuration = QuicConfiguration(
            is_client=True, alpn_protocols=[alpn], server_name=server_name,
            idle_timeout=idle_seconds, session_ticket=ticket,
        )
        configuration.load_verify_locations(cafile=str(ca))
        if certificate is not None:
            configuration.load_cert_chain(certificate.cert, certificate.key)
        self.events: queue.Queue[QuicEvent] = queue.Queue()
        self.tickets: queue.Queue[SessionTicket] = queue.Queue()
        self.ended: queue.Queue[ConnectionTerminated] = queue.Queue()
        self._address = ("127.0.0.1", port)
        self._configuration = configuration
        self._folder = tempfile.TemporaryDirectory(prefix="thrum-quic-")
        self.path = str(Path(self._folder.name) / "s")
        self._protocol: _Protocol | None = None
        self._udp: asyncio.BaseTransport | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def connect(self) -> HandshakeCompleted:
        """Does the handshake; raises Closed with what ended it. The server may still refuse the certificate after it."""
        self._call(self._open())
        while not isinstance(event := self.events.get(timeout=DEADLINE_SECONDS), HandshakeCompleted):
            if isinstance(event, ConnectionTerminated):
                raise Closed(event.error_code, event.reason_phrase)
        self._call(asyncio.start_unix_server(self._carry, self.path))
        return event

    def send(self, stream: int, payload: bytes, is_end: bool = False) -> None:
        """Sends bytes on a stream, which its first bytes open."""
        self._do(lambda quic: quic.send_stream_data(stream, payload, is_end))

    def do(self, name: str, *arguments: object) -> None:
        """Calls a method of aioquic's connection."""
        self._do(lambda quic: getattr(quic, name)(*arguments))

    def next_event(self, kind: type[QuicEvent], stream: int) -> QuicEvent:
        """Waits for that event of a stream; others are left out."""
        while True:
            event = self.events.get(timeout=DEADLINE_SECONDS)
            if isinstance(event, kind) and event.stream_id == stream:
                return event

    def local_port(self) -> int:
        return self._udp.get_extra_info("sockname")[1]

    def change_port(self) -> None:
        """Continues from another UDP port, as behind a NAT that has forgotten the first."""
        old = self._udp
        self._call(self._bind())
        self._loop.call_soon_threadsafe(old.close)

    def fall_silent(self) -> None:
        """Stops sending and receiving without a close."""
        self._loop.call_soon_threadsafe(self._udp.close)

    def wait_for_end(self) -> ConnectionTerminated:
        return self.ended.get(timeout=DEADLINE_SECONDS)

    def close(self) -> None:
        """Ends the connection, if it has not ended."""
        if self._protocol is not None:
            self._do(lambda quic: quic.close())
        self._call(_wait_for_one_turn())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(DEADLINE_SECONDS)
        self._folder.cleanup()

    async def _open(self) -> None:
        connection = QuicConnection(
            configuration=self._configuration, session_ticket_handler=self.tickets.put
        )
        self._protocol = _Protocol(self, connection)
        await self._bind()
        self._protocol.connect(self._address)

    async def _bind(self) -> None:
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.bind(("127.0.0.1", 0))
        # The protocol sends from the socket that it was given last.
        self._udp, _ = await self._loop.create_datagram_endpoint(lambda: self._protocol, sock=udp)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        while payload := await reader.read(65_536):
            self._protocol.send_now(STREAM, payload)
        self._protocol.send_now(STREAM, b"", is_end=True)

    def received(self, event: QuicEvent) -> None:
        """Called in the thread of aioquic."""
        is_end = isinstance(event, ConnectionTerminated)
        if is_end:
            self.ended.put(event)
        elif isinstance(event, StreamDataReceived | StreamReset) and event.stream_id == STREAM:
            if isinstance(event, StreamDataReceived) and self._writer is not None:
                self._writer.write(event.data)
            is_end = isinstance(event, StreamReset) or event.end_stream
        if is_end and self._writer is not None:
            self._writer.close()
        self.events.put(event)

    def _do(self, action) -> None:
        def act() -> None:
            action(self._protocol.quic)
            self._protocol.transmit()

        self._loop.call_soon_threadsafe(act)

    def _call(self, work: Coroutine):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(DEADLINE_SECONDS)


class _Protocol(QuicConnectionProtocol):
    def __init__(self, owner: Quic, quic: QuicConnection) -> None:
        super().__init__(quic)
        self._owner = owner
        self.quic = quic

    def send_now(self, stream: int, payload: bytes, is_end: bool = False) -> None:
        self.quic.send_stream_data(stream, payload, is_end)
        self.transmit()

    def quic_event_received(self, event: QuicEvent) -> None:
        self._owner.received(event)


async def _wait_for_one_turn() -> None:
    """What was asked for before has been done."""
