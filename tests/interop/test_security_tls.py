"""TLS and client certificates: admitted and refused clients, and the log about them."""

from __future__ import annotations

import socket
import ssl
import subprocess

import pytest

from certificates import RSA, Authority, Certificate
from clients.guarded import NOT_AUTHORIZED, SUCCESS, Closed, trusting
from secured import DEADLINE_SECONDS, PASSWORD, until

V12 = ssl.TLSVersion.TLSv1_2
V13 = ssl.TLSVersion.TLSv1_3
MUTUAL_RULES = '[acl]\nrules = ["allow all pubsub own/%u/#"]\n'


class Cards:
    """Certificates of one authority and one of a stranger."""

    def __init__(self, folder, authority: Authority) -> None:
        stranger = Authority(folder / "stranger", "Stranger")
        self.ca = authority.cert
        self.stranger_ca = stranger.cert
        self.server = authority.issue("server", "server", "DNS:localhost,IP:127.0.0.1")
        self.rsa_server = authority.issue("rsa", "server", "DNS:localhost", kind=RSA)
        self.elsewhere = authority.issue("elsewhere", "elsewhere", "DNS:elsewhere.example")
        self.device = authority.issue("device", "device-1", "DNS:device-1.example")
        self.revoked = authority.issue("revoked", "device-2")
        self.expired = authority.issue("expired", "device-3", is_expired=True)
        self.foreign = stranger.issue("foreign", "device-1")
        authority.revoke(self.revoked)
        self.crl = authority.revoked(folder / "revoked.crl")


@pytest.fixture(scope="session")
def cards(tmp_path_factory, authority):
    return Cards(tmp_path_factory.mktemp("cards"), authority)


def tls(certificate: Certificate, *more: str) -> str:
    """A listener `mqtts` with this certificate and these keys."""
    keys = [f'cert = "{certificate.cert}"', f'key = "{certificate.key}"', *more]
    return f'[listeners.mqtts]\nbind = "127.0.0.1:0"\ntls = {{ {", ".join(keys)} }}\n'


@pytest.fixture
def plain_tls(secured, cards, store):
    return secured(tls(cards.server), users=store)


@pytest.fixture
def mutual_tls(secured, cards):
    """A broker that takes user names from client certificates."""
    more = (f'ca = "{cards.ca}"', f'crl = ["{cards.crl}"]', 'username = "cn"')
    return secured(tls(cards.server, *more) + MUTUAL_RULES)


def mosquitto(tool: str, port: int, *arguments: object) -> subprocess.Popen:
    command = [f"mosquitto_{tool}", "-V", "5", "-h", "localhost", "-p", str(port), "-q", "1"]
    return subprocess.Popen(
        [*command, *map(str, arguments)], text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )


def finished(process: subprocess.Popen) -> tuple[int, str]:
    said, _ = process.communicate(timeout=DEADLINE_SECONDS)
    return process.returncode, said


@pytest.mark.parametrize("version", ["tlsv1.2", "tlsv1.3"])
def test_mosquitto_tools_exchange_a_message_over_tls(plain_tls, cards, version):
    known = ("--cafile", cards.ca, "--tls-version", version, "-u", "root", "-P", PASSWORD)
    port = plain_tls.port("mqtts")
    # Retained, so that the order of publish and subscribe does not matter.
    sent = mosquitto("pub", port, *known, "-t", "a/b", "-m", version, "-r")
    assert finished(sent) == (0, "")
    heard = mosquitto("sub", port, *known, "-t", "a/#", "-C", 1, "-W", 8)
    assert finished(heard) == (0, version + "\n")


@pytest.mark.parametrize("version", [V12, V13])
def test_certificate_is_the_user(mutual_tls, cards, guest, version):
    context = trusting(cards.ca, cards.device, minimum=version, maximum=version)
    # The user name of CONNECT is ignored.
    for username in (None, "root"):
        client = guest(mutual_tls.port("mqtts"), f"c-{username}", username, tls=context).join()
        assert client.client.socket().version() == version.name.replace("_", ".")
        assert client.subscribe("own/device-1/#") == 1
        assert client.publish("own/device-1/a") == SUCCESS
        assert client.next_message().topic == "own/device-1/a"
        assert client.publish("own/root/a") == NOT_AUTHORIZED


@pytest.mark.parametrize("version", [V12, V13])
@pytest.mark.parametrize(
    ("shown", "why"),
    [
        ("expired", "expired"),
        ("revoked", "revoked"),
        ("foreign", "authority"),
        (None, "no certificate"),
    ],
)
def test_bad_client_certificate_is_refused_and_the_log_says_why(
    mutual_tls, cards, guest, version, shown, why
):
    card = getattr(cards, shown) if shown else None
    context = trusting(cards.ca, card, minimum=version, maximum=version)
    with pytest.raises(Closed):
        guest(mutual_tls.port("mqtts"), "c1", tls=context).connect()
    line = until(lambda: next((x for x in mutual_tls.log().splitlines() if "peer=" in x), None))
    assert line and why in line.lower(), mutual_tls.log()
    good = trusting(cards.ca, cards.device)
    assert guest(mutual_tls.port("mqtts"), "c2", tls=good).connect() == SUCCESS


def test_mosquitto_tools_show_certificates(mutual_tls, cards):
    port = mutual_tls.port("mqtts")
    for card, code in ((cards.device, 0), (cards.revoked, 1)):
        shown = ("--cafile", cards.ca, "--cert", card.cert, "--key", card.key)
        pub = mosquitto("pub", port, *shown, "-t", "own/device-1/a", "-m", "x")
        got, said = finished(pub)
        assert bool(got) == bool(code), said


def test_optional_certificate_lets_others_log_in(secured, cards, guest, store):
    more = (f'ca = "{cards.ca}"', 'client_cert = "optional"', 'username = "cn"')
    port = secured(tls(cards.server, *more), users=store).port("mqtts")
    assert guest(port, "c1", "alice", tls=trusting(cards.ca)).connect() == SUCCESS
    card = trusting(cards.ca, cards.device)
    assert guest(port, "c2", tls=card).connect() == SUCCESS
    with pytest.raises(Closed):
        guest(port, "c3", "alice", tls=trusting(cards.ca, cards.foreign)).connect()


def test_clients_notice_a_wrong_authority_and_a_wrong_name(secured, cards, guest):
    config = tls(cards.server) + tls(cards.elsewhere).replace("listeners.mqtts", "listeners.other")
    broker = secured(config)
    with pytest.raises(Closed, match="unknown CA|self.signed|unable to get local issuer"):
        guest(broker.port("mqtts"), "c1", tls=trusting(cards.stranger_ca)).connect()
    with pytest.raises(Closed, match="mismatch|not valid for"):
        guest(broker.port("other"), "c2", tls=trusting(cards.ca)).connect()
    assert guest(broker.port("mqtts"), "c3", tls=trusting(cards.ca)).connect() == SUCCESS


def test_name_that_the_client_asks_for_chooses_the_certificate(secured, cards):
    other = f'cert = "{cards.elsewhere.cert}", key = "{cards.elsewhere.key}"'
    broker = secured(tls(cards.server, f"sni = {{ other = {{ {other} }} }}"))
    for name, subject in (("elsewhere.example", "elsewhere"), ("localhost", "server")):
        assert subject_of(broker.port("mqtts"), cards, name) == subject


def subject_of(port: int, cards: Cards, name: str) -> str:
    raw = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_SECONDS)
    with raw, trusting(cards.ca).wrap_socket(raw, server_hostname=name) as secure:
        return dict(pair for (pair,) in secure.getpeercert()["subject"])["commonName"]


def s_client(port: int, *arguments: str) -> str:
    """What openssl says about a handshake with these options, at its lowest security level."""
    done = subprocess.run(
        ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", *arguments],
        input="", capture_output=True, text=True, timeout=DEADLINE_SECONDS,
    )
    return done.stdout + done.stderr


def is_agreed(said: str) -> bool:
    return "Cipher is (NONE)" not in said and "Cipher    : 0000" not in said and "New, " in said


@pytest.mark.parametrize("version", ["-tls1", "-tls1_1"])
def test_old_versions_are_refused(plain_tls, version):
    said = s_client(plain_tls.port("mqtts"), version, "-cipher", "ALL:@SECLEVEL=0")
    assert "SSL alert number" in said, said
    assert not is_agreed(said), said


def hello(suites: tuple[int, ...]) -> bytes:
    """A ClientHello of TLS 1.2 by hand, as no library of today offers these suites any more."""

    def sized(body: bytes, size: int = 2) -> bytes:
        return len(body).to_bytes(size, "big") + body

    def pairs(*numbers: int) -> bytes:
        return b"".join(number.to_bytes(2, "big") for number in numbers)

    groups = pairs(10) + sized(sized(pairs(23, 24, 29)))
    points = pairs(11) + sized(b"\x01\x00")
    signatures = pairs(13) + sized(sized(pairs(0x0403, 0x0804, 0x0401, 0x0201)))
    extended_master_secret = pairs(23, 0)
    extensions = groups + points + signatures + extended_master_secret
    body = pairs(0x0303) + bytes(32) + b"\x00" + sized(pairs(*suites)) + b"\x01\x00"
    handshake = b"\x01" + sized(body + sized(extensions), 3)
    return b"\x16\x03\x01" + sized(handshake)


STRONG = (0xC02B, 0xC02F)
WEAK = {
    "RC4": (0x0004, 0x0005, 0xC007, 0xC011),
    "3DES": (0x000A, 0x0016, 0xC008, 0xC012),
    "CBC": (0xC009, 0xC00A, 0xC013, 0xC014, 0xC023, 0xC024, 0xC027, 0xC028),
    "static RSA": (0x002F, 0x0035, 0x003C, 0x003D, 0x009C, 0x009D, 0xC09C),
    "anonymous": (0x0034, 0x006C, 0x00A6, 0xC018),
    "NULL": (0x0001, 0x0002, 0x003B, 0xC006, 0xC010),
    "export": (0x0003, 0x0008, 0x0014),
}
ALERT, HANDSHAKE = 21, 22


@pytest.mark.parametrize("server", ["server", "rsa_server"])
def test_weak_ciphers_are_refused(secured, cards, server):
    port = secured(tls(getattr(cards, server))).port("mqtts")
    for name, suites in {"strong": STRONG, **WEAK}.items():
        with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_SECONDS) as client:
            client.sendall(hello(suites))
            answer = client.recv(4096)
        assert answer and answer[0] == (HANDSHAKE if name == "strong" else ALERT), (name, answer)


@pytest.mark.parametrize("version", ["-tls1_2", "-tls1_3"])
def test_strong_ciphers_are_agreed(plain_tls, version):
    assert is_agreed(s_client(plain_tls.port("mqtts"), version))


def test_lowest_version_can_be_raised(secured, cards):
    port = secured(tls(cards.server, 'min_version = "1.3"')).port("mqtts")
    assert not is_agreed(s_client(port, "-tls1_2"))
    assert is_agreed(s_client(port, "-tls1_3"))
