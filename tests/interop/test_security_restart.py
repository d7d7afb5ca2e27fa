"""Users, rules and sessions across a restart of the broker: what waits for a user is for that user alone."""

from __future__ import annotations

import pytest

from clients.guarded import CLIENT_IDENTIFIER_NOT_VALID, SUCCESS
from secured import until

MQTT = '[listeners]\nmqtt = { bind = "127.0.0.1:0" }\n'
GRANTED_QOS_1 = 1
HOUR = 3600


@pytest.fixture
def rules(tmp_path):
    path = tmp_path / "acl.rules"
    path.write_text("allow user:alice pubsub #\nallow user:bob pubsub #\n")
    return path


@pytest.fixture
def broker(secured, store, rules):
    """alice and bob may do everything, until the rules say otherwise."""
    return secured(MQTT + f'[acl]\nfile = "{rules}"\n', users=store)


@pytest.fixture
def root(broker, guest):
    """Makes a client that may do everything: one for each start of the broker."""
    return lambda: guest(broker.port(), "r1", "root").join()


def alice(broker, guest):
    return guest(broker.port(), "a1", "alice", session_seconds=HOUR)


def leave_behind(broker, guest, root, *topics):
    """A session of alice with a subscription to everything, and messages that wait for her."""
    client = alice(broker, guest).join()
    assert client.subscribe("#") == GRANTED_QOS_1
    client.close()
    publisher = root()
    for topic in topics:
        assert publisher.publish(topic) == SUCCESS
    publisher.close()


def restart(broker):
    broker.stop_only()
    broker.start()


def test_a_session_from_the_disk_goes_on_for_its_user(broker, guest, root):
    leave_behind(broker, guest, root, "kept/1", "kept/2")
    restart(broker)
    client = alice(broker, guest).join()
    root().publish("last")
    assert client.topics_until("last") == ["kept/1", "kept/2"]


def test_a_session_from_the_disk_is_not_given_to_another_user(broker, guest, root):
    leave_behind(broker, guest, root, "kept/1")
    # The second start knows it from what the first one wrote down again.
    restart(broker)
    restart(broker)
    bob = guest(broker.port(), "a1", "bob", session_seconds=HOUR)
    assert bob.connect() == CLIENT_IDENTIFIER_NOT_VALID
    client = alice(broker, guest).join()
    root().publish("last")
    assert client.topics_until("last") == ["kept/1"]


def test_what_waits_in_a_session_from_the_disk_follows_the_rules_of_its_return(
    broker, guest, root, rules
):
    leave_behind(broker, guest, root, "secret/1", "open/1")
    broker.stop_only()
    rules.write_text("deny user:alice sub secret/#\nallow user:alice pubsub #\n")
    broker.start()
    # The rights of alice are not known yet.
    publisher = root()
    publisher.publish("secret/2")
    publisher.publish("open/2")
    client = alice(broker, guest).join()
    publisher.publish("secret/3")
    publisher.publish("last")
    assert client.topics_until("last") == ["open/1", "open/2"]
    assert until(lambda: "may not have them any more" in broker.log())


def test_other_rules_leave_the_subscriptions_of_a_session_from_the_disk_for_its_user(
    broker, guest, root, rules
):
    leave_behind(broker, guest, root, "kept/1")
    restart(broker)
    before = len(broker.log())
    rules.write_text(rules.read_text() + "allow user:bob pub other\n")
    broker.wait_for_log("rules", after=before)
    publisher = root()
    publisher.publish("kept/2")
    client = alice(broker, guest).join()
    publisher.publish("last")
    assert client.topics_until("last") == ["kept/1", "kept/2"]


def test_a_session_that_comes_back_is_sent_nothing_of_a_subscription_it_lost(
    broker, guest, root, rules
):
    leave_behind(broker, guest, root, "kept/1", "open/1")
    broker.stop_only()
    rules.write_text("allow user:alice sub open/#\n")
    broker.start()
    client = alice(broker, guest).join()
    # The subscription to everything has become one to what is allowed of it.
    publisher = root()
    publisher.publish("kept/2")
    publisher.publish("open/last")
    assert client.topics_until("open/last") == ["open/1"]
