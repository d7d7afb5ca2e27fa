"""Enhanced authentication with SCRAM-SHA-256: MQTT by MQTT.js, SCRAM by kafkajs, and hand-made packets out of place."""

from __future__ import annotations

import json
import socket
import subprocess
from pathlib import Path

import pytest

from secured import DEADLINE_SECONDS, PASSWORD, Secured

PROGRAM = Path(__file__).parent / "mqttjs" / "scram.mjs"
MQTT = '[listeners.mqtt]\nbind = "127.0.0.1:0"\n'
METHOD = "SCRAM-SHA-256"
SUCCESS, CONTINUE, AGAIN = 0x00, 0x18, 0x19
PROTOCOL_ERROR, NOT_AUTHORIZED = 0x82, 0x87
BAD_USER_NAME_OR_PASSWORD, BAD_METHOD = 0x86, 0x8C
CONNACK, DISCONNECT, AUTH = 0x20, 0xE0, 0xF0


@pytest.fixture(scope="session")
def scram_store(tmp_path_factory):
    """`ann` may prove that she knows her password; `bob` is there and has to send his."""
    broker = Secured(tmp_path_factory.mktemp("scram-store"), "")
    broker.users("add", "ann", "--scram", "--allow", "pubsub scram/%u", password=PASSWORD)
    broker.users("add", "bob", "--allow", "pubsub scram/%u", password=PASSWORD)
    return broker.data / "users.jsonl"


@pytest.fixture
def port(secured, scram_store):
    return secured(MQTT, users=scram_store).port()


def log_in(port: int, user: str, password: str, *again: str) -> list[dict]:
    """What happened to a client, in its order."""
    url = f"mqtt://127.0.0.1:{port}"
    done = subprocess.run(
        ["node", PROGRAM, url, user, password, *again],
        capture_output=True, text=True, timeout=2 * DEADLINE_SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def names(events: list[dict]) -> list[str]:
    return [event["event"] for event in events]


def test_who_knows_the_password_is_in_and_knows_that_the_server_does(port):
    challenge, connected, message = log_in(port, "ann", PASSWORD)
    assert challenge["event"] == "challenge"
    assert connected == {"event": "connected", "server": "verified"}
    assert message == {"event": "message", "topic": "scram/ann", "payload": "first"}


def test_failed_logins_do_not_reveal_users(port):
    shapes = set()
    for user in ("ann", "bob", "nobody"):
        salts = set()
        for _ in range(2):
            challenge, error = log_in(port, user, "wrong")
            assert error == {"event": "error", "code": BAD_USER_NAME_OR_PASSWORD}, user
            fields = dict(part.split("=", 1) for part in challenge["data"].split(","))
            salts.add(fields["s"])
            shapes.add((len(fields["r"]), len(fields["s"]), fields["i"], tuple(fields)))
        # A changing salt would reveal that it was made up.
        assert len(salts) == 1, user
    assert len(shapes) == 1, shapes
    assert names(log_in(port, "nobody", PASSWORD)) == ["challenge", "error"]


def test_client_proves_itself_again_on_its_connection(port):
    events = log_in(port, "ann", PASSWORD, PASSWORD, PASSWORD)
    assert names(events).count("challenge") == 3
    again = [event["server"] for event in events if event["event"] == "reauthenticated"]
    assert again == ["verified", "verified"]
    assert [e["payload"] for e in events if e["event"] == "message"].count("again") >= 1


def test_client_that_fails_to_prove_itself_again_is_disconnected(port):
    *before, end = log_in(port, "ann", PASSWORD, "wrong")
    assert "reauthenticated" not in names(before)
    assert end == {"event": "disconnect", "code": NOT_AUTHORIZED}


def sized(data: bytes) -> bytes:
    return len(data).to_bytes(2, "big") + data


def packet(first: int, body: bytes) -> bytes:
    assert len(body) < 128
    return bytes([first, len(body)]) + body


def methods(method: str | None, data: bytes = b"") -> bytes:
    """Properties: Authentication Method and Authentication Data."""
    block = b"" if method is None else b"\x15" + sized(method.encode()) + b"\x16" + sized(data)
    return bytes([len(block)]) + block


def connect(method: str | None, data: bytes = b"") -> bytes:
    body = sized(b"MQTT") + b"\x05\x02\x00\x00" + methods(method, data) + sized(b"c1")
    return packet(0x10, body)


def auth(reason: int, method: str | None, data: bytes = b"") -> bytes:
    return packet(AUTH, bytes([reason]) + methods(method, data))


FIRST = b"n,,n=ann,r=fyko+d2lbbFgONRv9qkxdawL"


class Raw:
    """A connection for packets out of place."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_SECONDS)
        self._file = self._socket.makefile("rb")

    def say(self, *packets: bytes) -> Raw:
        self._socket.sendall(b"".join(packets))
        return self

    def hear(self) -> tuple[int, int] | None:
        """First byte and reason code of the next packet; None at the end of the connection."""
        try:
            head = self._file.read(2)
            body = self._file.read(head[1]) if head else b""
        except ConnectionError:
            return None
        if not head:
            return None
        return head[0], body[1 if head[0] == CONNACK else 0] if body else SUCCESS

    def ends(self) -> bool:
        return self.hear() is None


@pytest.fixture
def raw(port):
    made = []

    def make() -> Raw:
        made.append(Raw(port))
        return made[-1]

    yield make
    for connection in made:
        connection._socket.close()


@pytest.mark.parametrize("method", ["SCRAM-SHA-1", "SCRAM-SHA-256-PLUS", "PLAIN", "scram-sha-256", ""])
def test_other_methods_are_not_offered(raw, method):
    client = raw().say(connect(method, FIRST))
    assert client.hear() == (CONNACK, BAD_METHOD)
    assert client.ends()


def test_method_is_not_offered_where_no_user_store_is_asked(secured, scram_store, tmp_path):
    passwords = tmp_path / "passwd"
    passwords.write_text("")
    config = f'{MQTT}auth = ["old"]\n[auth.password_file.old]\npath = "{passwords}"\n'
    client = Raw(secured(config, users=scram_store).port())
    assert client.say(connect(METHOD, FIRST)).hear() == (CONNACK, BAD_METHOD)
    assert client.ends()


def test_malformed_messages_are_refused_like_a_wrong_password(raw):
    for first in (b"", b"n,,", b"p=tls-unique,,n=ann,r=x", b"n,,n=ann", b"\xff\x00"):
        client = raw().say(connect(METHOD, first))
        assert client.hear() == (CONNACK, BAD_USER_NAME_OR_PASSWORD), first
        assert client.ends()
    for last in (b"", b"c=biws", b"c=biws,r=other,p=AAAA", b"\xff"):
        client = raw().say(connect(METHOD, FIRST))
        assert client.hear() == (AUTH, CONTINUE)
        assert client.say(auth(CONTINUE, METHOD, last)).hear() == (CONNACK, BAD_USER_NAME_OR_PASSWORD)
        assert client.ends()


def test_packets_out_of_place_during_a_login_end_it(raw):
    ping, publish = b"\xc0\x00", b"\x30\x05\x00\x01a\x00x"
    for other in (ping, publish, connect(METHOD, FIRST), auth(AGAIN, METHOD, FIRST),
                  auth(SUCCESS, METHOD), auth(CONTINUE, "OTHER"), auth(CONTINUE, None)):
        client = raw().say(connect(METHOD, FIRST))
        assert client.hear() == (AUTH, CONTINUE)
        answer = client.say(other).hear()
        # Before CONNACK there is no DISCONNECT, and no success.
        assert answer is None or (answer[0] == CONNACK and answer[1] >= 0x80), (other, answer)
        assert answer is None or client.ends()


def test_auth_out_of_place_ends_the_connection(secured, scram_store):
    port = secured(f"{MQTT}[auth]\nanonymous = true\n", users=scram_store).port()
    assert Raw(port).say(auth(CONTINUE, METHOD, FIRST)).ends()
    for reason in (SUCCESS, CONTINUE, AGAIN):
        client = Raw(port).say(connect(None))
        assert client.hear() == (CONNACK, SUCCESS)
        assert client.say(auth(reason, METHOD, FIRST)).hear() == (DISCONNECT, PROTOCOL_ERROR)
        assert client.ends()
