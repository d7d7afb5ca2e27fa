"""What sslscan finds at the listeners with TLS."""

from __future__ import annotations

import subprocess
import xml.etree.ElementTree as ET

import pytest

from certificates import RSA

SCAN_SECONDS_MAX = 60
# Ephemeral keys and authenticated encryption, and nothing else.
CIPHERS = {
    "TLSv1.3": {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"},
    "TLSv1.2": {
        f"ECDHE-{key}-{rest}"
        for key in ("ECDSA", "RSA")
        for rest in ("AES256-GCM-SHA384", "CHACHA20-POLY1305", "AES128-GCM-SHA256")
    },
}


@pytest.fixture
def broker(secured, authority):
    """Listeners with TLS of every kind."""
    names = "DNS:localhost,IP:127.0.0.1"
    card = authority.issue("scanned", "localhost", names)
    rsa = authority.issue("scanned-rsa", "localhost", names, kind=RSA)
    bind = 'bind = "127.0.0.1:0"\n'

    def listener(name: str, own, more: str = "", keys: str = "") -> str:
        tls = f'tls = {{ cert = "{own.cert}", key = "{own.key}"{keys} }}\n'
        return f"[listeners.{name}]\n{bind}{more}{tls}"

    return secured(
        listener("mqtts", card)
        + listener("rsa", rsa)
        + listener("wss", card, 'transport = "websocket"\n')
        + listener("mutual", card, keys=f', ca = "{authority.cert}"')
    )


def scan(port: int) -> ET.Element:
    command = ["sslscan", "--no-colour", "--xml=-", f"localhost:{port}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SCAN_SECONDS_MAX)
    found = ET.fromstring(done.stdout).find("ssltest")
    assert found is not None, done.stdout + done.stderr
    return found


@pytest.mark.parametrize("listener", ["mqtts", "rsa", "wss", "mutual"])
def test_scan_finds_nothing_old_and_nothing_weak(broker, listener):
    found = scan(broker.port(listener))
    enabled = {
        (each.get("type"), each.get("version"))
        for each in found.iter("protocol")
        if each.get("enabled") == "1"
    }
    assert enabled == {("tls", "1.2"), ("tls", "1.3")}
    ciphers = [(each.get("sslversion"), each.get("cipher")) for each in found.iter("cipher")]
    # Without a certificate of its own the scanner cannot complete a handshake of 1.2 with the last
    # one.
    assert {version for version, _ in ciphers} >= {"TLSv1.3"}
    assert all(cipher in CIPHERS[version] for version, cipher in ciphers), ciphers
    assert all(each.get("supported") == "0" for each in found.iter("renegotiation"))
    assert all(each.get("supported") == "0" for each in found.iter("compression"))
    assert all(each.get("vulnerable") == "0" for each in found.iter("heartbleed"))
    assert {each.get("name") for each in found.iter("group")} <= {
        "secp256r1 (NIST P-256)", "secp384r1 (NIST P-384)", "x25519",
    }
