"""MQTT over QUIC with a client whose QUIC is aioquic: handshakes, certificates, streams, and every way to end."""

from __future__ import annotations

import time

import pytest
from aioquic.quic.events import StopSendingReceived, StreamDataReceived, StreamReset

from certificates import Authority
from clients.guarded import SUCCESS, Closed
from clients.model import Will
from clients.quic import (
    ALERT,
    BAD_CERTIFICATE,
    CERTIFICATE_EXPIRED,
    CERTIFICATE_REQUIRED,
    CONNECTION_REFUSED,
    EXTRA_STREAM,
    NO_APPLICATION_PROTOCOL,
    SECOND_STREAM,
    STREAM,
    UNKNOWN_CA,
    Quic,
)
from secured import until

GRANTED_QOS_1 = 1
NO_SUBSCRIBERS = 0x10
ADMINISTRATIVE_ACTION = 0x98
CONNECT = b"\x10\x0f\x00\x04MQTT\x05\x02\x00\x3c\x00\x00\x02q1"
CONNACK = 0x20
PLAIN = '[listeners.mqtt]\nbind = "127.0.0.1:0"\n'
MIB = 1024 * 1024


@pytest.fixture(scope="session")
def card(authority):
    return authority.issue("quic", "server", "DNS:localhost,IP:127.0.0.1")


def works(client) -> bool:
    """The broker still answers; there may be no subscriber."""
    return client.publish("still") in (SUCCESS, NO_SUBSCRIBERS)


def listener(card, *more: str, bind: str = "127.0.0.1:0", keys: str = "") -> str:
    tls = ", ".join((f'cert = "{card.cert}"', f'key = "{card.key}"', *more))
    return f'[listeners.quic]\nbind = "{bind}"\ntransport = "quic"\ntls = {{ {tls} }}\n{keys}'


@pytest.fixture
def dial(authority):
    """Makes connections; what is left of them ends with the test."""
    connections = []

    def make(port: int, certificate=None, *, ca=authority.cert, **options) -> Quic:
        connection = Quic(port, ca, certificate, **options)
        connections.append(connection)
        return connection

    yield make
    for connection in connections:
        connection.close()


@pytest.fixture
def over(dial, guest):
    """Makes a client of paho over a connection: both."""

    def make(port: int, client_id: str, certificate=None, *, will=None, **options):
        connection = dial(port, certificate, **options)
        connection.connect()
        client = guest(1, client_id, host=connection.path, transport="unix", will=will)
        return connection, client

    return make


@pytest.fixture
def broker(secured, card):
    return secured(listener(card) + PLAIN)


def test_messages_of_every_qos_go_both_ways(broker, over, guest):
    _, client = over(broker.port("quic"), "q1")
    client.join()
    other = guest(broker.port("mqtt"), "t1").join()
    for qos in (0, 1, 2):
        assert client.subscribe(f"to/quic/{qos}", qos) == qos
        assert other.subscribe(f"to/tcp/{qos}", qos) == qos
    for qos in (0, 1, 2):
        client.client.publish(f"to/tcp/{qos}", f"from quic {qos}", qos)
        other.client.publish(f"to/quic/{qos}", f"from tcp {qos}", qos)
        for receiver, payload in ((other, f"from quic {qos}"), (client, f"from tcp {qos}")):
            message = receiver.next_message()
            assert (message.payload.decode(), message.qos) == (payload, qos)


def test_a_large_payload_goes_out_and_comes_back(secured, card, over):
    broker = secured(listener(card) + '[limits]\nmax_packet = "2MiB"\n')
    _, client = over(broker.port("quic"), "q1")
    client.join()
    assert client.subscribe("#") == GRANTED_QOS_1
    payload = "".join(f"{number:8x}" for number in range(MIB // 8))
    assert client.publish("large", payload) == SUCCESS
    assert client.next_message().payload.decode() == payload


def test_another_application_protocol_is_refused(broker, dial):
    with pytest.raises(Closed) as refused:
        dial(broker.port("quic"), alpn="h3").connect()
    assert refused.value.args[0] == NO_APPLICATION_PROTOCOL


@pytest.mark.parametrize(
    ("what", "codes"),
    [
        ("foreign", {UNKNOWN_CA, BAD_CERTIFICATE}),
        ("expired", {CERTIFICATE_EXPIRED, BAD_CERTIFICATE}),
        ("another name", {BAD_CERTIFICATE}),
    ],
)
def test_client_refuses_a_server_that_it_cannot_trust(
    secured, dial, authority, card, tmp_path, what, codes
):
    shown, trusted, name = card, authority.cert, "localhost"
    if what == "foreign":
        trusted = Authority(tmp_path / "stranger", "Stranger").cert
    elif what == "expired":
        shown = authority.issue("quic-old", "old", "DNS:localhost", is_expired=True)
    else:
        name = "elsewhere.example"
    broker = secured(listener(shown))
    with pytest.raises(Closed) as refused:
        dial(broker.port("quic"), ca=trusted, server_name=name).connect()
    assert refused.value.args[0] in codes
    assert broker.is_alive()


MUTUAL_RULES = '[acl]\nrules = ["allow all pubsub own/%u/#"]\n'


@pytest.fixture
def mutual(secured, authority, card):
    more = (f'ca = "{authority.cert}"', 'username = "cn"')
    return secured(listener(card, *more) + MUTUAL_RULES)


def test_client_certificate_is_the_user(mutual, over, authority):
    device = authority.issue("quic-device", "device-1")
    _, client = over(mutual.port("quic"), "d1", device)
    client.join()
    assert client.subscribe("own/device-1/#") == GRANTED_QOS_1
    assert client.publish("own/device-1/a") == SUCCESS
    assert client.next_message().topic == "own/device-1/a"


@pytest.mark.parametrize("shown", ["none", "foreign"])
def test_client_without_a_good_certificate_is_refused(mutual, over, dial, authority, tmp_path, shown):
    stranger = Authority(tmp_path / "stranger", "Stranger")
    certificate = None if shown == "none" else stranger.issue("foreign", "device-1")
    connection = dial(mutual.port("quic"), certificate)
    # TLS 1.3: the client is done before the server has seen its certificate.
    try:
        connection.connect()
        connection.send(STREAM, CONNECT)
    except Closed:
        pass
    code = connection.wait_for_end().error_code
    assert code == CERTIFICATE_REQUIRED if shown == "none" else ALERT < code < ALERT + 256
    device = authority.issue("quic-device-2", "device-2")
    _, client = over(mutual.port("quic"), "d2", device)
    assert client.connect() == SUCCESS


def test_a_second_stream_is_given_back_and_the_first_goes_on(broker, over):
    connection, client = over(broker.port("quic"), "q1")
    client.join()
    assert client.subscribe("#") == GRANTED_QOS_1
    # As many in turn as may be open at a time, and more.
    for number in range(20):
        stream = SECOND_STREAM + 4 * number
        connection.send(stream, CONNECT)
        assert connection.next_event(StreamReset, stream).error_code == EXTRA_STREAM
        connection.send(stream, b"", is_end=True)
        assert client.publish(f"still/{number}") == SUCCESS
        assert client.next_message().topic == f"still/{number}"


def test_a_stream_that_is_to_send_no_more_is_told_so(broker, over):
    connection, client = over(broker.port("quic"), "q1")
    client.join()
    connection.send(SECOND_STREAM, CONNECT)
    stopped = connection.next_event(StopSendingReceived, SECOND_STREAM)
    assert stopped.error_code == EXTRA_STREAM
    assert works(client)


def test_a_ticket_resumes_the_session_of_tls_without_early_data(broker, dial, over):
    first = dial(broker.port("quic"))
    assert not first.connect().session_resumed
    first.send(STREAM, CONNECT)
    assert first.next_event(StreamDataReceived, STREAM).data[0] == CONNACK
    ticket = first.tickets.get(timeout=10)
    # Early data could be replayed: a repeated CONNECT takes over its own session.
    assert not ticket.max_early_data_size
    second = dial(broker.port("quic"), ticket=ticket)
    done = second.connect()
    assert done.session_resumed and not done.early_data_accepted
    second.send(STREAM, CONNECT)
    assert second.next_event(StreamDataReceived, STREAM).data[0] == CONNACK


@pytest.mark.parametrize("is_planned", [False, True], ids=["nat", "migration"])
def test_connection_survives_a_change_of_the_clients_port(broker, over, is_planned):
    connection, client = over(broker.port("quic"), "q1")
    client.join()
    assert client.subscribe("#") == GRANTED_QOS_1
    ports = {connection.local_port()}
    for number in range(3):
        connection.change_port()
        if is_planned:
            connection.do("change_connection_id")
        ports.add(connection.local_port())
        for part in ("first", "second"):
            assert client.publish(f"{part}/{number}") == SUCCESS
            assert client.next_message().topic == f"{part}/{number}"
    assert len(ports) == 4


def test_keys_may_change(broker, over):
    connection, client = over(broker.port("quic"), "q1")
    client.join()
    assert client.subscribe("#") == GRANTED_QOS_1
    for number in range(3):
        connection.do("request_key_update")
        assert client.publish(f"a/{number}") == SUCCESS
        assert client.next_message().topic == f"a/{number}"


@pytest.fixture
def watcher(broker, guest):
    client = guest(broker.port("mqtt"), "watcher").join()
    assert client.subscribe("wills/#") == GRANTED_QOS_1
    return client


def with_will(name: str) -> Will:
    return Will(f"wills/{name}", b"gone", 1, False)


def test_disconnect_leaves_no_will(broker, over, watcher):
    connection, client = over(broker.port("quic"), "q1", will=with_will("quiet"))
    client.join()
    client.close()
    assert connection.wait_for_end().error_code == 0
    watcher.publish("wills/end")
    assert watcher.topics_until("wills/end") == []


@pytest.mark.parametrize("how", ["close", "reset", "finish"])
def test_an_end_without_disconnect_publishes_the_will(broker, over, watcher, how):
    connection, client = over(broker.port("quic"), "q1", will=with_will(how))
    client.join()
    if how == "close":
        connection.do("close")
    elif how == "reset":
        connection.do("reset_stream", STREAM, 9)
    else:
        connection.send(STREAM, b"", is_end=True)
    assert watcher.next_message().topic == f"wills/{how}"


def test_a_client_that_falls_silent_is_given_up_after_its_idle_timeout(broker, over, watcher):
    # Both ends give up after the shorter of their times.
    connection, client = over(
        broker.port("quic"), "q1", will=with_will("silent"), idle_seconds=1.0
    )
    client.join()
    connection.fall_silent()
    assert watcher.next_message().topic == "wills/silent"


def test_packets_other_than_quic_are_harmless(broker, over):
    import socket

    _, client = over(broker.port("quic"), "q1")
    client.join()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        for payload in (b"", b"\x10\x0f", b"\xc0" * 1200, b"\xff" * 1400, bytes(1200), CONNECT * 70):
            stranger.sendto(payload, ("127.0.0.1", broker.port("quic")))
    assert works(client)


def test_a_full_listener_refuses_until_a_reload_gives_it_more_room(secured, card, over, dial):
    def config(most: int) -> str:
        return PLAIN + listener(card, keys=f"max_connections = {most}\n")

    broker = secured(config(1))
    port = broker.port("quic")
    _, first = over(port, "q1")
    first.join()
    with pytest.raises(Closed) as refused:
        dial(port).connect()
    assert refused.value.args[0] == CONNECTION_REFUSED
    broker.wait_for_log("max_connections", "quic")
    broker.write(config(2))
    broker.hang_up()
    _, second = over(port, "q2")
    assert second.connect() == SUCCESS
    assert works(first)


def test_a_removed_listener_tells_its_clients_and_gives_up_its_port(secured, card, over, guest):
    broker = secured(PLAIN + listener(card))
    port = broker.port("quic")
    stays = guest(broker.port("mqtt"), "stays").join()
    _, client = over(port, "q1")
    client.join()
    broker.write(PLAIN)
    broker.hang_up()
    assert client.wait_for_end() == ADMINISTRATIVE_ACTION
    assert works(stays)
    broker.write(PLAIN + listener(card, bind=f"127.0.0.1:{port}"))
    begun = time.monotonic()
    assert until(lambda: "reloaded" in broker.hang_up("reload"))
    assert time.monotonic() - begun < 5
    _, again = over(port, "q2")
    assert again.connect() == SUCCESS


def test_a_broker_that_stops_says_so(secured, card, over):
    broker = secured(listener(card))
    connection, client = over(broker.port("quic"), "q1")
    client.join()
    broker.stop_only()
    assert client.wait_for_end() == 0x8B
    assert connection.wait_for_end().error_code == 0
    broker.start()
