"""WebSocket, Unix sockets, the PROXY protocol and mount points; and what garbage does to each: nothing."""

from __future__ import annotations

import contextlib
import random
import socket
import struct
import subprocess
from pathlib import Path

import pytest

from clients.guarded import NOT_AUTHORIZED, SUCCESS, Closed, trusting
from secured import DEADLINE_SECONDS, PASSWORD

GRANTED_QOS_1 = 1
SEED = 20_260_101


@pytest.fixture(scope="session")
def card(authority):
    return authority.issue("transports", "server", "DNS:localhost,IP:127.0.0.1")


def websocket(card=None, more: str = "") -> str:
    tls = f'tls = {{ cert = "{card.cert}", key = "{card.key}" }}\n' if card else ""
    return f'[listeners.ws]\nbind = "127.0.0.1:0"\ntransport = "websocket"\n{tls}{more}'


@pytest.mark.parametrize("is_secure", [False, True], ids=["ws", "wss"])
def test_websocket_carries_messages_of_every_size(secured, guest, authority, card, is_secure):
    broker = secured(websocket(card if is_secure else None))
    tls = trusting(authority.cert) if is_secure else None
    client = guest(broker.port("ws"), "w1", tls=tls, transport="websockets").join()
    assert client.subscribe("#") == GRANTED_QOS_1
    for size in (0, 1, 117, 125, 126, 65_500, 65_536, 200_000):
        assert client.publish("a", "x" * size) == SUCCESS
        assert len(client.next_message().payload) == size


def test_websocket_meets_other_transports(secured, guest):
    broker = secured(websocket() + '[listeners.mqtt]\nbind = "127.0.0.1:0"\n')
    over_ws = guest(broker.port("ws"), "w1", transport="websockets").join()
    over_tcp = guest(broker.port("mqtt"), "t1").join()
    assert over_ws.subscribe("to/ws") == over_tcp.subscribe("to/tcp") == GRANTED_QOS_1
    over_ws.publish("to/tcp")
    over_tcp.publish("to/ws")
    assert over_ws.next_message().topic == "to/ws"
    assert over_tcp.next_message().topic == "to/tcp"


def test_websocket_checks_path_and_origin(secured, guest):
    more = 'path = "/here"\norigins = ["https://good.example"]\n'
    port = secured(websocket(more=more)).port("ws")

    def connect(name: str, path: str, origin: str | None) -> int:
        # paho sends an origin of its own unless told otherwise.
        def headers(standard: dict) -> dict:
            standard.pop("Origin", None)
            return standard | ({"Origin": origin} if origin else {})

        options = {"transport": "websockets", "path": path, "headers": headers}
        return guest(port, name, **options).connect()

    assert connect("c1", "/here", None) == SUCCESS
    assert connect("c2", "/here", "https://good.example") == SUCCESS
    for name, path, origin in (
        ("c3", "/mqtt", None),
        ("c4", "/here", "https://evil.example"),
        ("c5", "/here", "https://good.example.evil.example"),
        ("c6", "/here", "null"),
    ):
        with pytest.raises(Closed):
            connect(name, path, origin)


@pytest.mark.parametrize("scheme", ["wss", "mqtts"])
def test_mqttjs_exchanges_a_message_over_tls(secured, authority, card, store, scheme):
    table = "[listeners.mqtts]\nbind = \"127.0.0.1:0\"\n"
    tls = f'tls = {{ cert = "{card.cert}", key = "{card.key}" }}\n'
    broker = secured(websocket(card) if scheme == "wss" else table + tls, users=store)
    name, path = ("ws", "/mqtt") if scheme == "wss" else ("mqtts", "")
    url = f"{scheme}://localhost:{broker.port(name)}{path}"
    program = Path(__file__).parent / "mqttjs" / "secure.mjs"

    def run(password: str) -> str:
        command = ["node", program, url, authority.cert, "root", password]
        done = subprocess.run(command, capture_output=True, text=True, timeout=2 * DEADLINE_SECONDS)
        return done.stdout + done.stderr

    assert run(PASSWORD) == f"mqttjs/a over {scheme}:\n"
    assert "Bad User Name or Password" in run("wrong")


def test_unix_socket_carries_messages(secured, guest, tmp_path):
    path = tmp_path / "s"
    broker = secured(f'[listeners.local]\nbind = "unix:{path}"\n')
    client = guest(1, "u1", host=str(path), transport="unix").join()
    assert client.subscribe("#") == GRANTED_QOS_1
    assert client.publish("a") == SUCCESS
    assert client.next_message().topic == "a"
    # A socket file of the last run is not an obstacle, and none is left behind.
    client.close()
    broker.stop_only()
    assert not path.exists()
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(path))
    stale.close()
    broker.start()
    assert guest(1, "u2", host=str(path), transport="unix").connect() == SUCCESS


CONNECT = b"\x10\x0f\x00\x04MQTT\x05\x02\x00\x3c\x00\x00\x02p1"
PROXY_RULES = """
[auth]
anonymous = true
[acl]
rules = ["allow ip:192.0.2.0/24 pubsub #", "allow ip:2001:db8::/32 pubsub #"]
"""


def proxied(believed: str) -> str:
    keys = f"proxy_protocol = true\nproxy_from = [{believed}]\n"
    return f'[listeners.mqtt]\nbind = "127.0.0.1:0"\n{keys}{PROXY_RULES}'


def version_2(source: str, family: int = socket.AF_INET, command: int = 1, more: bytes = b"") -> bytes:
    """A header of version 2 from this address, with `more` after the addresses."""
    ends = socket.inet_pton(family, source) * 2 + struct.pack("!HH", 4000, 1883) + more
    kind = 0x11 if family == socket.AF_INET else 0x21
    head = struct.pack("!BBH", 0x20 | command, kind, len(ends))
    return b"\r\n\r\n\x00\r\nQUIT\n" + head + ends


def publish_behind(port: int, header: bytes) -> int | None:
    """Sends header, CONNECT and a PUBLISH in one go; the reason of the PUBACK, None if refused before."""
    publish = b"\x32\x07\x00\x01a\x00\x01\x00x"
    connect = bytes([0x10, len(CONNECT) - 2]) + CONNECT[2:]
    with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_SECONDS) as client:
        try:
            client.sendall(header + connect + publish)
            with client.makefile("rb") as answers:
                while head := answers.read(2):
                    body = answers.read(head[1])
                    if head[0] == 0x20 and body[1] != SUCCESS:
                        return None
                    if head[0] == 0x40:
                        return body[2] if len(body) > 2 else SUCCESS
        except ConnectionError:
            pass
    return None


NO_SUBSCRIBERS = 0x10


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (b"PROXY TCP4 192.0.2.7 127.0.0.1 4000 1883\r\n", NO_SUBSCRIBERS),
        (b"PROXY TCP4 198.51.100.7 127.0.0.1 4000 1883\r\n", NOT_AUTHORIZED),
        (b"PROXY TCP6 2001:db8::7 ::1 4000 1883\r\n", NO_SUBSCRIBERS),
        (b"PROXY UNKNOWN\r\n", NOT_AUTHORIZED),
        (version_2("192.0.2.7"), NO_SUBSCRIBERS),
        (version_2("198.51.100.7"), NOT_AUTHORIZED),
        (version_2("2001:db8::7", socket.AF_INET6), NO_SUBSCRIBERS),
        (version_2("192.0.2.7", more=b"\x04\x00\x20" + bytes(32)), NO_SUBSCRIBERS),
        # LOCAL: the proxy itself, whatever addresses follow.
        (version_2("192.0.2.7", command=0), NOT_AUTHORIZED),
        (b"", None),
        (b"PROXY TCP4 192.0.2.7 127.0.0.1 4000\r\n", None),
        (b"PROXY TCP4 192.0.2.777 127.0.0.1 4000 1883\r\n", None),
        (b"PROXY " + b"x" * 200 + b"\r\n", None),
        (version_2("192.0.2.7", command=7), None),
        (version_2("192.0.2.7")[:-4].replace(b"\x00\x0c", b"\x00\x08"), None),
    ],
)
def test_rules_see_the_address_that_the_proxy_names(secured, header, reason):
    broker = secured(proxied('"127.0.0.1"'))
    assert publish_behind(broker.port(), header) == reason, broker.log()


def test_proxy_that_is_not_believed_is_refused(secured):
    broker = secured(proxied('"10.0.0.0/8", "::1"'))
    for header in (b"PROXY TCP4 192.0.2.7 127.0.0.1 4000 1883\r\n", version_2("192.0.2.7"), b""):
        assert publish_behind(broker.port(), header) is None
    assert "proxy_from" in broker.log()


def test_header_without_proxy_protocol_is_refused(secured):
    broker = secured('[listeners.mqtt]\nbind = "127.0.0.1:0"\n' + PROXY_RULES)
    assert publish_behind(broker.port(), b"PROXY TCP4 192.0.2.7 127.0.0.1 1 2\r\n") is None


MOUNTED = """
[listeners]
mqtt = { bind = "127.0.0.1:0" }
tenant = { bind = "127.0.0.1:0", mount_point = "tenant/%u/" }
[auth]
anonymous = false
[acl]
rules = ["allow all pubsub #"]
"""


def test_mount_point_keeps_tenants_apart(secured, guest, store):
    broker = secured(MOUNTED, users=store)
    alice = guest(broker.port("tenant"), "a1", "alice").join()
    other = guest(broker.port("tenant"), "o1", "root").join()
    whole = guest(broker.port(), "w1", "root").join()
    for client in (alice, other, whole):
        assert client.subscribe("#") == GRANTED_QOS_1
    assert alice.publish("x") == SUCCESS
    assert alice.publish("tenant/root/x") == SUCCESS
    assert whole.publish("x") == SUCCESS
    assert whole.publish("tenant/root/end") == SUCCESS
    assert whole.publish("tenant/alice/end") == SUCCESS
    assert alice.topics_until("end") == ["x", "tenant/root/x"]
    assert other.topics_until("end") == []
    wanted = ["tenant/alice/x", "tenant/alice/tenant/root/x", "x", "tenant/root/end"]
    assert whole.topics_until("tenant/alice/end") == wanted


def test_mount_point_holds_for_retained_and_shared(secured, guest, store):
    broker = secured(MOUNTED, users=store)
    whole = guest(broker.port(), "w1", "root").join()
    for topic in ("kept", "tenant/alice/kept", "tenant/root/kept"):
        whole.publish(topic, topic, retain=True)
    alice = guest(broker.port("tenant"), "a1", "alice").join()
    assert alice.subscribe("kept") == GRANTED_QOS_1
    message = alice.next_message()
    assert (message.topic, message.payload) == ("kept", b"tenant/alice/kept")
    assert alice.subscribe("$share/g/jobs") == GRANTED_QOS_1
    whole.publish("jobs")
    whole.publish("tenant/alice/jobs", "mine")
    message = alice.next_message()
    assert (message.topic, message.payload) == ("jobs", b"mine")


def test_garbage_is_harmless(secured, guest, authority, card):
    certificate = f'{{ cert = "{card.cert}", key = "{card.key}" }}'
    broker = secured(f"""
[listeners]
mqtt = {{ bind = "127.0.0.1:0" }}
mqtts = {{ bind = "127.0.0.1:0", tls = {certificate} }}
ws = {{ bind = "127.0.0.1:0", transport = "websocket" }}
wss = {{ bind = "127.0.0.1:0", transport = "websocket", tls_from = "mqtts" }}
[listeners.proxied]
bind = "127.0.0.1:0"
proxy_protocol = true
proxy_from = ["127.0.0.1"]
""")
    stays = guest(broker.port(), "stays").join()
    assert stays.subscribe("#") == GRANTED_QOS_1
    upgrade = (
        b"GET /mqtt HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
        b"Sec-WebSocket-Protocol: mqtt\r\n\r\n"
    )
    noise = random.Random(SEED)
    starts = [
        b"", b"\x16\x03\x01\xff\xff", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/1.1\r\n", upgrade, upgrade + b"\x82\xff" + b"\xff" * 8, upgrade + b"\x02\x05",
        b"PROXY ", b"PROXY TCP4 192.0.2.7 127.0.0.1 4000 1883\r\n",
        b"\r\n\r\n\x00\r\nQUIT\n\x21\x11\xff\xff", CONNECT, b"\x10\xff\xff\xff\xff",
    ]
    for port in broker.ports().values():
        for start in starts:
            with contextlib.suppress(OSError):
                client = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_SECONDS)
                with client:
                    client.sendall(start + noise.randbytes(noise.choice((0, 3, 700, 20_000))))
    assert stays.publish("still") == SUCCESS
    assert stays.next_message().topic == "still"
    tls = trusting(authority.cert)
    for name, options in (
        ("mqtts", {"tls": tls}),
        ("ws", {"transport": "websockets"}),
        ("wss", {"tls": tls, "transport": "websockets"}),
    ):
        assert guest(broker.port(name), f"after-{name}", **options).connect() == SUCCESS
