"""Sessions: what is kept while a client is away, and who owns a client identifier."""

import socket
import time

import pytest
from clients import Connect, Properties
from conftest import ALL, LASTING

AWAY = 60


def kept(kind: str) -> dict:
    """Options of a connection whose session outlives it."""
    return {"clean_start": False} | ({"session_expiry": AWAY} if kind.endswith("5.0") else {})


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("leave", ("disconnect", "kill"))
def test_queued_messages_arrive_in_order_after_resume(join, name, kind, leave):
    client_id = f"{name}-session"
    first = join(kind, client_id=client_id, **kept(kind))
    first.subscribe(f"{name}/+", qos=2)
    getattr(first, leave)()

    publisher = join("paho-5.0")
    sent = []
    for number in range(20):
        qos = 1 + number % 2
        publisher.publish(f"{name}/{qos}", str(number).encode(), qos=qos)
        sent.append((str(number).encode(), qos))

    second = join(kind, client_id=client_id, **kept(kind))
    if kind.startswith("mosquitto"):
        # mosquitto_sub connects by subscribing; the same filter again changes nothing.
        second.subscribe(f"{name}/+", qos=2)
    received = [(message.payload, message.qos) for message in second.next_messages(20)]
    # The order is promised within a topic and quality of service.
    for qos in (1, 2):
        assert [each for each in received if each[1] == qos] == [
            each for each in sent if each[1] == qos
        ]


@pytest.mark.parametrize("kind", LASTING)
def test_session_present_is_told(join, name, kind):
    client_id = f"{name}-session"
    client = join(kind, client_id=client_id, connect=False)
    assert not client.connect(Connect(client_id, **kept(kind)))
    client.subscribe(name, qos=1)
    client.disconnect()
    again = join(kind, client_id=client_id, connect=False)
    # The byte is reserved in 3.1.
    assert again.connect(Connect(client_id, **kept(kind))) == (kind != "paho-3.1")
    again.disconnect()
    clean = join(kind, client_id=client_id, connect=False)
    assert not clean.connect(Connect(client_id, clean_start=True))
    join("paho-3.1.1").publish(name, b"lost", qos=1)
    clean.subscribe(f"{name}/end", qos=1)
    clean.publish(f"{name}/end", b"end", qos=1)
    assert clean.next_message().payload == b"end"


@pytest.mark.parametrize("kind", ("paho-5.0", "gmqtt-5.0"))
def test_session_ends_with_its_expiry(join, name, kind):
    client_id = f"{name}-session"
    options = {"clean_start": False, "session_expiry": 1}
    client = join(kind, client_id=client_id, **options)
    client.subscribe(name, qos=1)
    client.disconnect()
    # The server may remove the session a little later than it has to.
    deadline = time.monotonic() + 8
    present = True
    while present and time.monotonic() < deadline:
        time.sleep(2)
        again = join(kind, client_id=client_id, connect=False)
        present = again.connect(Connect(client_id, **options))
        again.disconnect()
    assert not present


@pytest.mark.parametrize("kind", ("paho-5.0", "gmqtt-5.0"))
def test_message_that_expires_in_the_queue_is_not_delivered(join, name, kind):
    client_id = f"{name}-session"
    client = join(kind, client_id=client_id, **kept(kind))
    client.subscribe(f"{name}/#", qos=1)
    client.disconnect()
    publisher = join("paho-5.0")
    publisher.publish(f"{name}/short", b"short", qos=1, properties=Properties(message_expiry=1))
    publisher.publish(f"{name}/long", b"long", qos=1, properties=Properties(message_expiry=100))
    time.sleep(2.1)
    again = join(kind, client_id=client_id, **kept(kind))
    message = again.next_message()
    assert message.payload == b"long"
    assert 95 <= message.properties.message_expiry <= 98


@pytest.mark.mosquitto_deviates("closes without telling a 5.0 client why")
@pytest.mark.parametrize("kind", LASTING)
def test_second_connection_takes_the_client_identifier_over(join, name, kind):
    client_id = f"{name}-twice"
    first = join(kind, client_id=client_id)
    first.subscribe(name, qos=1)
    second = join(kind, client_id=client_id)
    gone = first.disconnects.get(timeout=10)
    if kind == "paho-5.0":
        assert gone == (True, 0x8E), "session taken over"
    second.subscribe(name, qos=1)
    second.publish(name, b"x", qos=1)
    assert second.next_message().payload == b"x"


@pytest.mark.mosquitto_deviates("checks every few seconds")
@pytest.mark.parametrize("kind", ("paho-3.1", "paho-3.1.1", "paho-5.0"))
def test_silent_client_is_closed_after_one_and_a_half_keep_alives(join, name, kind):
    client = join(kind, connect=False)
    start = time.monotonic()
    # The handshake is sent, then the client is not driven: it sends no PINGREQ.
    client.start(Connect(f"{name}-silent", keep_alive=2))
    transport: socket.socket = client.client.socket()
    transport.setblocking(True)
    transport.settimeout(10)
    received = b""
    while chunk := transport.recv(4096):
        received += chunk
    silence = time.monotonic() - start
    # Twice the keep alive, and half a second for a busy machine.
    assert 2.9 <= silence <= 4.5, silence
    if kind == "paho-5.0":
        # Behind the CONNACK a DISCONNECT: its reason, then perhaps a reason string.
        connack_bytes = 2 + received[1]
        goodbye = received[connack_bytes:]
        assert (goodbye[0], goodbye[2]) == (0xE0, 0x8D), "keep alive timeout"


@pytest.mark.parametrize("kind", LASTING)
def test_pings_keep_a_quiet_client_connected(join, name, kind):
    client = join(kind, keep_alive=1)
    client.subscribe(name, qos=1)
    time.sleep(3)
    assert client.disconnects.empty()
    join("paho-5.0").publish(name, b"still here", qos=1)
    assert client.next_message().payload == b"still here"
