"""SIGHUP and renewed files: certificates, authorities and listeners change while connected clients stay."""

from __future__ import annotations

import shutil
import socket

import pytest

from certificates import Authority, openssl
from clients.guarded import SUCCESS, Closed, trusting
from launch import free_port
from secured import DEADLINE_SECONDS, until


class Files:
    """The files that a listener reads, under names that stay while what is in them changes."""

    def __init__(self, folder, authority: Authority) -> None:
        self.authority = authority
        self.cert, self.key = folder / "live.pem", folder / "live.key"
        self.ca, self.crl = folder / "live-ca.pem", folder / "live.crl"
        self.put(authority.issue("first", "first", "DNS:localhost,IP:127.0.0.1"))
        shutil.copy(authority.cert, self.ca)
        authority.revoked(self.crl)

    def put(self, certificate) -> None:
        shutil.copy(certificate.cert, self.cert)
        shutil.copy(certificate.key, self.key)

    def listener(self, *more: str) -> str:
        keys = [f'cert = "{self.cert}"', f'key = "{self.key}"', *more]
        return f'[listeners.mqtts]\nbind = "127.0.0.1:0"\ntls = {{ {", ".join(keys)} }}\n'

    def mutual(self) -> str:
        return self.listener(f'ca = "{self.ca}"', f'crl = ["{self.crl}"]', 'username = "cn"')


@pytest.fixture
def files(tmp_path):
    return Files(tmp_path, Authority(tmp_path / "own-ca", "Own Authority"))


@pytest.fixture
def stays(guest):
    """Connects a client; `stays` then tells that it still hears what it publishes."""

    def make(port: int, context):
        client = guest(port, "stays", tls=context).join()
        assert client.subscribe("stays/#") == 1

        def check() -> bool:
            topic = "stays/still"
            return client.publish(topic) == SUCCESS and client.next_message().topic == topic

        assert check()
        return check

    return make


def comes_in(client) -> bool:
    try:
        return client.connect() == SUCCESS
    except Closed:
        return False


def served_name(port: int, ca) -> str:
    """The common name that the server shows to a new connection."""
    raw = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_SECONDS)
    with raw, trusting(ca).wrap_socket(raw, server_hostname="localhost") as secure:
        return dict(pair for (pair,) in secure.getpeercert()["subject"])["commonName"]


def test_new_certificate_is_shown_to_new_connections_only(secured, files, stays):
    broker = secured(files.listener())
    port, ca = broker.port("mqtts"), files.authority.cert
    still = stays(port, trusting(ca))
    assert served_name(port, ca) == "first"
    files.put(files.authority.issue("second", "second", "DNS:localhost"))
    broker.hang_up()
    assert until(lambda: served_name(port, ca) == "second")
    assert still()


@pytest.mark.parametrize("damage", ["text", "missing", "another key"])
def test_broken_certificate_leaves_the_old_in_force(secured, files, stays, damage):
    broker = secured(files.listener())
    port, ca = broker.port("mqtts"), files.authority.cert
    still = stays(port, trusting(ca))
    if damage == "text":
        files.cert.write_text("no certificate")
    elif damage == "missing":
        files.cert.unlink()
    else:
        openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256",
                "-out", files.key)
    shown = files.key if damage == "another key" else files.cert
    line = broker.hang_up(str(shown))
    assert "WARN" in line or "ERROR" in line
    assert served_name(port, ca) == "first"
    assert still()


def test_renewed_certificate_is_in_use_without_a_signal(secured, files, stays):
    broker = secured(files.listener() + '[tls]\nreload_interval = "200ms"\n')
    port = broker.port("mqtts")
    still_here = stays(port, trusting(files.authority.cert))
    files.put(files.authority.issue("second", "second", "DNS:localhost,IP:127.0.0.1"))
    line = broker.wait_for_log("certificates read again", "valid_until=")
    assert str(files.cert) in line
    assert until(lambda: served_name(port, files.authority.cert) == "second")
    files.cert.write_text("no certificate")
    broker.wait_for_log("cannot be used", str(files.cert))
    assert served_name(port, files.authority.cert) == "second"
    assert still_here()


def test_new_list_of_the_revoked_keeps_the_next_connection_out(secured, files, guest, stays):
    device = files.authority.issue("device", "device", "DNS:device")
    other = files.authority.issue("other", "other", "DNS:other")
    broker = secured(files.mutual() + '[acl]\ndefault = "allow"\n')
    port, ca = broker.port("mqtts"), files.authority.cert
    still = stays(port, trusting(ca, other))
    assert guest(port, "c1", tls=trusting(ca, device)).connect() == SUCCESS
    files.authority.revoke(device)
    files.authority.revoked(files.crl)
    broker.hang_up()
    # The log reports it once it is in force.
    assert not comes_in(guest(port, "c2", tls=trusting(ca, device)))
    assert guest(port, "c3", tls=trusting(ca, other)).connect() == SUCCESS
    assert still()


def test_another_authority_replaces_the_first(secured, files, guest, stays, tmp_path):
    new = Authority(tmp_path / "new-ca", "New Authority")
    old_device = files.authority.issue("device", "device", "DNS:device")
    new_device = new.issue("device", "device", "DNS:device")
    config = files.listener(f'ca = "{files.ca}"', "session_tickets = false")
    broker = secured(config)
    port, server_ca = broker.port("mqtts"), files.authority.cert
    still = stays(port, trusting(server_ca, old_device))
    with pytest.raises(Closed):
        guest(port, "c1", tls=trusting(server_ca, new_device)).connect()
    shutil.copy(new.cert, files.ca)
    broker.hang_up()
    assert until(lambda: comes_in(guest(port, "c2", tls=trusting(server_ca, new_device))))
    with pytest.raises(Closed):
        guest(port, "c3", tls=trusting(server_ca, old_device)).connect()
    assert still()


def test_ticket_does_not_outlive_a_revocation(secured, files):
    device = files.authority.issue("device", "device", "DNS:device")
    broker = secured(files.mutual())
    port = broker.port("mqtts")
    context = trusting(files.authority.cert, device)
    first, _ = exchange(port, context, None)
    assert first is not None
    _, is_reused = exchange(port, context, first)
    assert is_reused
    files.authority.revoke(device)
    files.authority.revoked(files.crl)
    broker.hang_up()
    assert until(lambda: exchange(port, context, first) == (None, False))


def exchange(port: int, context, session):
    """Connects with `session`, if there is one: the session after, None if refused, and whether it was taken."""
    connect = b"\x10\x0f\x00\x04MQTT\x04\x02\x00\x3c\x00\x03t-1"
    raw = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_SECONDS)
    try:
        with raw, context.wrap_socket(
            raw, server_hostname="localhost", session=session
        ) as secure:
            secure.sendall(connect)
            if secure.recv(4) != b"\x20\x02\x00\x00":
                return None, False
            return secure.session, secure.session_reused
    except OSError:
        return None, False


def test_listeners_come_and_go(secured, guest, stays):
    first = '[listeners]\nmqtt = { bind = "127.0.0.1:0" }\n'
    broker = secured(first)
    still = stays(broker.port(), None)
    added = free_port()
    broker.write(first + f'extra = {{ bind = "127.0.0.1:{added}" }}\n')
    broker.hang_up()
    assert until(lambda: comes_in(guest(added, "c1")))

    broker.write(first)
    broker.hang_up()
    assert until(lambda: is_closed(added))
    assert guest(broker.port(), "c2").connect() == SUCCESS
    assert still()


def is_closed(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return True
    return False


@pytest.mark.parametrize(
    "wrong",
    ["listeners = 5\n", '[listeners]\nmqtt = { bind = "nowhere" }\n', '[acl]\nrules = ["maybe"]\n'],
)
def test_wrong_configuration_changes_nothing(secured, guest, stays, wrong):
    broker = secured('[listeners]\nmqtt = { bind = "127.0.0.1:0" }\n')
    still = stays(broker.port(), None)
    broker.write(wrong)
    line = broker.hang_up("reload")
    assert "ERROR" in line or "WARN" in line
    assert guest(broker.port(), "c1").connect() == SUCCESS
    assert still()


def test_port_in_use_leaves_the_old_listeners(secured, guest, stays):
    first = '[listeners]\nmqtt = { bind = "127.0.0.1:0" }\n'
    broker = secured(first)
    still = stays(broker.port(), None)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        broker.write(first + f'extra = {{ bind = "127.0.0.1:{port}" }}\n')
        line = broker.hang_up(str(port))
        assert "ERROR" in line or "WARN" in line
    assert guest(broker.port(), "c1").connect() == SUCCESS
    assert still()
