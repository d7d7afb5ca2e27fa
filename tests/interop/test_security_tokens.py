"""Signed tokens (JWT) as passwords: admission, rights and expiry."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time

import pytest

from clients.guarded import BAD_USER_NAME_OR_PASSWORD, NOT_AUTHORIZED, SUCCESS

GRANTED_QOS_1 = 1
SECRET = b"a secret of the tests, 32 bytes and more"
HOUR = 3600


def signed(claims: dict, secret: bytes = SECRET, algorithm: str = "HS256") -> str:
    """Makes a token by hand."""

    def part(content: bytes) -> str:
        return base64.urlsafe_b64encode(content).rstrip(b"=").decode()

    head = {"alg": algorithm, "typ": "JWT"}
    text = ".".join(part(json.dumps(each).encode()) for each in (head, claims))
    digests = {"HS256": hashlib.sha256, "HS512": hashlib.sha512}
    digest = digests.get(algorithm)
    signature = hmac.new(secret, text.encode(), digest).digest() if digest else b""
    return f"{text}.{part(signature)}"


def in_seconds(seconds: float) -> int:
    return int(time.time() + seconds)


@pytest.fixture
def tokens(secured, tmp_path):
    """Starts a broker that takes tokens; `more` are further keys."""
    secret = tmp_path / "secret"
    secret.write_bytes(SECRET + b"\n")

    def make(more: str = "") -> int:
        config = '[listeners]\nmqtt = { bind = "127.0.0.1:0" }\n[auth]\nanonymous = false\n'
        table = f'[auth.jwt.tokens]\nsecret_file = "{secret}"\nleeway = "0s"\n'
        return secured(config + table + more).port()

    return make


def test_only_a_good_token_comes_in(tokens, guest):
    port = tokens('issuer = "us"\naudience = ["mqtt"]\nverify = { device = "%c" }\n')
    good = {"sub": "alice", "exp": in_seconds(HOUR), "iss": "us", "aud": "mqtt", "device": "c1"}
    assert guest(port, "c1", "whoever", signed(good)).connect() == SUCCESS
    head, body, signature = signed(good).split(".")
    _, other_body, _ = signed(good | {"sub": "root"}).split(".")
    bad = {
        "expired": signed(good | {"exp": in_seconds(-5)}),
        "not yet": signed(good | {"nbf": in_seconds(HOUR)}),
        "no end": signed({name: value for name, value in good.items() if name != "exp"}),
        "no name": signed({name: value for name, value in good.items() if name != "sub"}),
        "other issuer": signed(good | {"iss": "them"}),
        "other audience": signed(good | {"aud": "web"}),
        "other device": signed(good | {"device": "c2"}),
        "other secret": signed(good, secret=b"x" * 40),
        "other algorithm": signed(good, algorithm="HS512"),
        "no algorithm": signed(good, algorithm="none"),
        "other body": f"{head}.{other_body}.{signature}",
        "no signature": f"{head}.{body}.",
        "no token": "password",
        "empty": "",
    }
    answers = {name: guest(port, "c1", "whoever", token).connect() for name, token in bad.items()}
    assert answers == dict.fromkeys(bad, BAD_USER_NAME_OR_PASSWORD)


def test_token_says_what_its_client_may_do(tokens, guest):
    port = tokens()
    acl = {"pub": ["out/${clientid}/#"], "sub": ["in/${username}"], "all": ["both"]}
    token = signed({"sub": "alice", "exp": in_seconds(HOUR), "acl": acl})
    client = guest(port, "c1", "whoever", token).join()
    assert client.subscribe("in/alice") == client.subscribe("both") == GRANTED_QOS_1
    for topic_filter in ("in/whoever", "out/c1/x", "else"):
        assert client.subscribe(topic_filter) == NOT_AUTHORIZED, topic_filter
    assert client.publish("both") == SUCCESS
    assert client.publish("out/c1/x") != NOT_AUTHORIZED
    for topic in ("out/c2/x", "in/alice", "else"):
        assert client.publish(topic) == NOT_AUTHORIZED, topic


def test_token_without_rules_may_do_nothing(tokens, guest):
    token = signed({"sub": "alice", "exp": in_seconds(HOUR)})
    client = guest(tokens(), "c1", "alice", token).join()
    assert client.publish("a") == NOT_AUTHORIZED
    assert client.subscribe("a") == NOT_AUTHORIZED


def test_connection_ends_when_its_token_does(tokens, guest):
    port = tokens('[acl]\ndefault = "allow"\n')
    end = in_seconds(2.5)
    token = signed({"sub": "alice", "exp": end})
    short = guest(port, "short", "alice", token).join()
    long = guest(port, "long", "alice", signed({"sub": "alice", "exp": in_seconds(HOUR)})).join()
    assert short.wait_for_end() == NOT_AUTHORIZED
    # The clock of the broker is this one.
    assert time.time() >= end
    assert guest(port, "again", "alice", token).connect() == BAD_USER_NAME_OR_PASSWORD
    assert long.publish("a") != NOT_AUTHORIZED


def test_token_in_the_user_name(tokens, guest):
    port = tokens('from = "username"\n')
    token = signed({"sub": "alice", "exp": in_seconds(HOUR), "acl": {"pub": ["a"]}})
    client = guest(port, "c1", token, None).join()
    assert client.publish("a") != NOT_AUTHORIZED
    assert client.publish("b") == NOT_AUTHORIZED
