"""What people bring from Mosquitto: its password file, its rules and its configuration."""

from __future__ import annotations

import base64
import hashlib
import subprocess

import pytest

from clients.guarded import BAD_USER_NAME_OR_PASSWORD, NOT_AUTHORIZED, SUCCESS
from launch import free_port, thrum_binary
from secured import DEADLINE_SECONDS, PASSWORD, until

GRANTED_QOS_1 = 1
# The files are looked at every second.
WITHDRAWN_SECONDS = 3.0
ACL = """\
# Everyone, also without user name
topic read public/#
topic deny public/hidden

user alice
topic readwrite news/#
topic write reports
topic deny news/secret

user bob
topic news/+/bob

pattern readwrite own/%u/#
pattern write clients/%c
"""


def mosquitto_hash(kind: str, password: str) -> str:
    """What `mosquitto_passwd` writes: `$7$` is PBKDF2, `$6$` the older salted SHA-512."""
    salt = b"salt of test"
    text = base64.b64encode(salt).decode()
    if kind == "$7$":
        digest = hashlib.pbkdf2_hmac("sha512", password.encode(), salt, 101)
        head = f"$7$101${text}"
    else:
        digest = hashlib.sha512(password.encode() + salt).digest()
        head = f"$6${text}"
    return f"{head}${base64.b64encode(digest).decode()}"


class Brought:
    """The files of a Mosquitto that was."""

    def __init__(self, folder) -> None:
        self.port = free_port()
        self.passwords, self.acl = folder / "passwd", folder / "acl"
        users = {"alice": "$7$", "bob": "$6$"}
        lines = [f"{name}:{mosquitto_hash(kind, PASSWORD)}\n" for name, kind in users.items()]
        self.passwords.write_text("".join(lines))
        self.acl.write_text(ACL)
        self.config = folder / "mosquitto.conf"
        self.config.write_text(
            f"listener {self.port} 127.0.0.1\nallow_anonymous true\n"
            f"password_file {self.passwords}\nacl_file {self.acl}\n"
        )


@pytest.fixture
def brought(tmp_path):
    return Brought(tmp_path)


def own_config(brought: Brought) -> tuple[str, str]:
    """The files named by hand in a configuration of thrum."""
    return "thrum.toml", f"""
[listeners]
mqtt = {{ bind = "127.0.0.1:{brought.port}" }}
[auth.password_file.old]
path = "{brought.passwords}"
[acl]
mosquitto_file = "{brought.acl}"
"""


def imported(brought: Brought) -> tuple[str, str]:
    """What `thrum config import mosquitto` makes."""
    command = [thrum_binary(), "config", "import", "mosquitto", str(brought.config)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_SECONDS)
    assert done.returncode == 0, done.stderr
    return "thrum.toml", done.stdout


def as_it_is(brought: Brought) -> tuple[str, str]:
    """Mosquitto's own file, given to `thrum serve -c`."""
    return "mosquitto.conf", brought.config.read_text()


@pytest.mark.parametrize("way", [own_config, imported, as_it_is])
def test_users_and_rules_of_mosquitto_hold(secured, guest, brought, way):
    file_name, config = way(brought)
    broker = secured(config, file_name=file_name)
    port = broker.port()

    def publishes(client, *topics: str) -> list[bool]:
        return [client.publish(topic) != NOT_AUTHORIZED for topic in topics]

    alice = guest(port, "a1", "alice").join()
    bob = guest(port, "b1", "bob").join()
    anonymous = guest(port, "n1").join()
    assert guest(port, "c1", "alice", "wrong").connect() == BAD_USER_NAME_OR_PASSWORD
    assert guest(port, "c2", "carol").connect() == BAD_USER_NAME_OR_PASSWORD

    assert publishes(alice, "news/a", "reports", "own/alice/x", "clients/a1") == [True] * 4
    denied = ("news/secret", "reports/x", "own/bob/x", "clients/b1", "public/x", "else")
    assert publishes(alice, *denied) == [False] * 6
    assert publishes(bob, "news/1/bob", "own/bob", "own/bob/x", "clients/b1") == [True] * 4
    assert publishes(bob, "news/bob", "news/1/alice", "reports") == [False] * 3
    assert publishes(anonymous, "public/x", "news/a") == [False] * 2

    assert anonymous.subscribe("public/a") == GRANTED_QOS_1
    assert anonymous.subscribe("public/hidden") == NOT_AUTHORIZED
    assert anonymous.subscribe("news/a") == NOT_AUTHORIZED
    # Mosquitto grants `#` and checks each message; so does thrum.
    assert alice.subscribe("#") == GRANTED_QOS_1
    for topic in ("own/bob/x", "news/1/bob", "clients/b1"):
        assert bob.publish(topic) != NOT_AUTHORIZED
    alice.publish("news/last")
    assert alice.topics_until("news/last") == ["news/1/bob"]


def test_changed_password_file_is_taken_over(secured, guest, brought):
    file_name, config = own_config(brought)
    broker = secured(config, file_name=file_name)
    bob = guest(broker.port(), "b1", "bob").join()
    brought.passwords.write_text(f"carol:{mosquitto_hash('$7$', 'new')}\n"
                                 f"bob:{mosquitto_hash('$6$', PASSWORD)}\n")
    port = broker.port()
    assert until(lambda: guest(port, "c1", "carol", "new").connect() == SUCCESS)
    assert guest(port, "c2", "alice").connect() == BAD_USER_NAME_OR_PASSWORD
    assert bob.publish("news/1/bob") != NOT_AUTHORIZED


def test_user_taken_out_of_the_password_file_is_disconnected(secured, guest, brought):
    file_name, config = own_config(brought)
    broker = secured(config, file_name=file_name)
    alice = guest(broker.port(), "a1", "alice").join()
    brought.passwords.write_text(f"bob:{mosquitto_hash('$6$', PASSWORD)}\n")
    broker.wait_for_log("users or rules have changed")
    assert until(lambda: not alice.ended.empty(), WITHDRAWN_SECONDS)
    assert alice.wait_for_end() == NOT_AUTHORIZED


def test_imported_users_log_in(secured, guest, brought):
    broker = secured('[listeners]\nmqtt = { bind = "127.0.0.1:0" }\n[acl]\ndefault = "allow"\n')
    port = broker.port()
    broker.users("import", "--format", "mosquitto", str(brought.passwords))
    # Without users every client is admitted.
    assert until(lambda: guest(port, "c1", "alice", "wrong").connect() != SUCCESS)
    for name in ("alice", "bob"):
        assert guest(port, name, name).connect() == SUCCESS
