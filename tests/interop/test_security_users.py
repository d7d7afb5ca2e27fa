"""Users and rules: logins, and what clients may publish and receive."""

from __future__ import annotations

import pytest

from clients.guarded import (
    BAD_USER_NAME_OR_PASSWORD,
    CLIENT_IDENTIFIER_NOT_VALID,
    NOT_AUTHORIZED,
    SUCCESS,
)
from clients.model import Will
from secured import PASSWORD, until

MQTT = '[listeners]\nmqtt = { bind = "127.0.0.1:0" }\n'
GRANTED_QOS_1 = 1
LAST = "devices/a1/last"


@pytest.fixture
def guarded(secured, store):
    """A broker with the users alice (`devices/%c/#` is hers) and root (who may do everything)."""
    return secured(MQTT, users=store)


@pytest.fixture
def alice(guarded, guest):
    return guest(guarded.port(), "a1", "alice").join()


@pytest.fixture
def root(guarded, guest):
    client = guest(guarded.port(), "r1", "root").join()
    assert client.subscribe("#") == GRANTED_QOS_1
    return client


def test_right_password_comes_in_and_wrong_ones_all_look_alike(guarded, guest):
    port = guarded.port()
    assert guest(port, "c1", "alice", PASSWORD).connect() == SUCCESS
    refused = {
        guest(port, "c2", "alice", "wrong").connect(),
        guest(port, "c3", "alice", "").connect(),
        guest(port, "c4", "alice", None).connect(),
        guest(port, "c5", "Alice", PASSWORD).connect(),
        guest(port, "c6", "nobody", PASSWORD).connect(),
    }
    assert refused == {BAD_USER_NAME_OR_PASSWORD}
    log = guarded.log()
    assert PASSWORD not in log
    assert "wrong password" in log


def test_users_come_and_go_while_the_broker_runs(secured, guest):
    broker = secured(MQTT)
    port = broker.port()
    assert guest(port, "c1").join().publish("anything") != NOT_AUTHORIZED
    broker.users("add", "carol", "--allow", "pubsub carol/#", password="one")
    # Without users every client is admitted.
    assert until(lambda: guest(port, "c0", "carol", "wrong").connect() != SUCCESS)
    carol = guest(port, "c2", "carol", "one").join()
    assert carol.subscribe("carol/#") == GRANTED_QOS_1
    assert carol.publish("carol/a") == SUCCESS
    assert carol.publish("else") == NOT_AUTHORIZED
    assert guest(port, "c3").join().publish("anything") == NOT_AUTHORIZED

    broker.users("rm", "carol")
    assert carol.wait_for_end() == NOT_AUTHORIZED
    assert guest(port, "c4", "carol", "one").connect() == BAD_USER_NAME_OR_PASSWORD


def test_new_password_ends_the_old_one(guarded, guest):
    port = guarded.port()
    guarded.users("passwd", "alice", password="another")
    assert until(lambda: guest(port, "c1", "alice", "another").connect() == SUCCESS)
    assert guest(port, "c2", "alice", PASSWORD).connect() == BAD_USER_NAME_OR_PASSWORD


@pytest.mark.parametrize("place", ["auth", "listener"])
def test_anonymous_clients_are_refused_when_told_so(secured, guest, store, place):
    config = MQTT + "[auth]\nanonymous = false\n"
    if place == "listener":
        config = '[listeners]\nmqtt = { bind = "127.0.0.1:0", anonymous = false }\n'
    broker = secured(config, users=store)
    assert guest(broker.port(), "c1").connect() == NOT_AUTHORIZED
    assert guest(broker.port(), "c2", "alice").connect() == SUCCESS


def test_denied_publish_is_reported_and_not_delivered(alice, root):
    assert alice.publish("devices/b1/x") == NOT_AUTHORIZED
    assert alice.publish("devices/b1/x", retain=True) == NOT_AUTHORIZED
    assert alice.publish("devices/a1") == SUCCESS
    assert alice.publish(LAST) == SUCCESS
    assert root.topics_until(LAST) == ["devices/a1"]


def test_topic_alias_does_not_get_around_the_rules(alice, root):
    assert alice.publish("devices/b1/x", alias=1) == NOT_AUTHORIZED
    assert alice.publish("", alias=1) == NOT_AUTHORIZED
    assert alice.publish("devices/a1/x", alias=1) == SUCCESS
    assert alice.publish("", alias=1) == SUCCESS
    assert alice.publish("devices/b1/x", alias=1) == NOT_AUTHORIZED
    assert alice.publish("", alias=1) == NOT_AUTHORIZED
    assert alice.publish(LAST) == SUCCESS
    assert root.topics_until(LAST) == ["devices/a1/x", "devices/a1/x"]


def test_will_follows_the_rules(guarded, guest, root):
    denied = guest(guarded.port(), "a2", "alice", will=Will("devices/a1/will", b"x"))
    # To refuse the client for its will would be right as well.
    if denied.connect() == SUCCESS:
        denied.break_off()
    allowed = guest(guarded.port(), "a3", "alice", will=Will("devices/a3/will", b"x")).join()
    allowed.break_off()
    assert root.topics_until("devices/a3/will") == []


def test_wide_subscription_delivers_only_what_is_allowed(alice, root):
    assert alice.subscribe("#") == GRANTED_QOS_1
    # A member that may not have a message would lose it for its group.
    assert alice.subscribe("$share/group/#") == NOT_AUTHORIZED
    for topic in ("devices/b1/x", "devices/a1/x", "devices", "$SYS/x", "other"):
        root.publish(topic)
    root.publish(LAST)
    assert set(alice.topics_until(LAST)) == {"devices/a1/x"}


def test_subscription_outside_of_the_rules_is_refused(alice):
    for topic_filter in ("devices/b1/x", "devices/b1/#", "$share/g/devices/b1/#", "$SYS/#", "+"):
        assert alice.subscribe(topic_filter) == NOT_AUTHORIZED, topic_filter


def test_retained_messages_follow_the_rules(guarded, guest, root):
    root.publish("devices/b1/kept", retain=True)
    root.publish(LAST, retain=True)
    alice = guest(guarded.port(), "a1", "alice").join()
    assert alice.subscribe("#") == GRANTED_QOS_1
    assert alice.next_message().topic == LAST
    assert alice.publish("devices/a1/end") == SUCCESS
    assert alice.topics_until("devices/a1/end") == []


@pytest.fixture
def left_behind(guarded, guest, root):
    """A session of alice, with a subscription and a message that waits for her."""
    alice = guest(guarded.port(), "a1", "alice", session_seconds=60).join()
    assert alice.subscribe("devices/a1/#") == GRANTED_QOS_1
    alice.close()
    assert root.publish("devices/a1/kept") == SUCCESS


@pytest.mark.usefixtures("left_behind")
def test_a_session_stays_with_its_user(guarded, guest, root):
    for _ in range(2):
        # [MQTT-3.14.0-1]
        bob = guest(guarded.port(), "a1", "bob", session_seconds=60)
        assert bob.connect() == CLIENT_IDENTIFIER_NOT_VALID
        bob.close()
    alice = guest(guarded.port(), "a1", "alice", session_seconds=60).join()
    root.publish("devices/a1/last")
    assert alice.topics_until("devices/a1/last") == ["devices/a1/kept"]


def test_client_id_with_a_wildcard_widens_no_rule(guarded, guest, root):
    for client_id in ("+", "#", "a1/x", "b1/#"):
        client = guest(guarded.port(), client_id, "alice")
        if client.connect() != SUCCESS:
            continue
        assert client.subscribe(f"devices/{client_id}") == NOT_AUTHORIZED, client_id
        assert client.publish("devices/b1/x") == NOT_AUTHORIZED, client_id


def test_changed_rules_take_a_subscription_away(secured, guest, store, tmp_path):
    rules = tmp_path / "acl.rules"
    rules.write_text("allow user:alice sub news/#\nallow user:alice sub weather/#\n")
    broker = secured(MQTT + f'[acl]\nfile = "{rules}"\n', users=store)
    alice = guest(broker.port(), "a1", "alice").join()
    root = guest(broker.port(), "r1", "root").join()
    assert alice.subscribe("news/#") == GRANTED_QOS_1
    assert alice.subscribe("weather/#") == GRANTED_QOS_1
    root.publish("news/1")
    assert alice.next_message().topic == "news/1"

    # The connection ends with the subscription, so that the client notices it.
    rules.write_text("allow user:alice sub weather/#\n")
    assert alice.wait_for_end() == NOT_AUTHORIZED
    alice = guest(broker.port(), "a1", "alice").join()
    assert alice.subscribe("news/#") == NOT_AUTHORIZED
    assert alice.subscribe("weather/#") == GRANTED_QOS_1
    root.publish("news/2")
    root.publish("weather/1")
    assert alice.next_message().topic == "weather/1"

    # A file that cannot be read as rules changes nothing.
    before = len(broker.log())
    rules.write_text("allow everyone to do everything\n")
    broker.wait_for_log(str(rules), after=before)
    root.publish("news/3")
    root.publish("weather/2")
    assert alice.next_message().topic == "weather/2"


def test_who_logged_in_before_there_were_users_logs_in_again(secured, guest):
    broker = secured(MQTT)
    port = broker.port()
    carol = guest(port, "c1", "carol", "one").join()
    nameless = guest(port, "c2").join()
    broker.users("add", "carol", "--allow", "pubsub carol/#", password="one")
    # Her password was never verified and is not kept.
    assert carol.wait_for_end() == NOT_AUTHORIZED
    again = guest(port, "c1", "carol", "one").join()
    assert again.subscribe("carol/#") == GRANTED_QOS_1
    # A client without credentials may stay connected from this machine, without any rights.
    assert nameless.publish("anything") == NOT_AUTHORIZED


def test_who_is_no_longer_a_user_leaves_no_will(guarded, guest, root):
    port = guarded.port()
    alice = guest(port, "a1", "alice", will=Will(LAST, b"gone")).join()
    guarded.users("rm", "alice")
    assert alice.wait_for_end() == NOT_AUTHORIZED
    guarded.wait_for_log("a will is not published", LAST)
    root.publish("devices/a1/other")
    assert root.next_message().topic == "devices/a1/other"


def test_will_that_the_rules_forbid_by_now_is_not_published(secured, guest, store, tmp_path):
    rules = tmp_path / "rules"
    rules.write_text("# none\n")
    broker = secured(f'{MQTT}[acl]\nfile = "{rules}"\n', users=store)
    port = broker.port()
    root = guest(port, "r1", "root").join()
    assert root.subscribe("#") == GRANTED_QOS_1
    alice = guest(port, "a1", "alice", will=Will(LAST, b"gone")).join()
    rules.write_text(f"deny user:alice pub {LAST}\n")
    broker.wait_for_log("users or rules have changed")
    alice.break_off()
    broker.wait_for_log("a will is not published", LAST)
    root.publish("devices/a1/other")
    assert root.next_message().topic == "devices/a1/other"


def test_clients_without_credentials_go_when_they_may_not_come_in_any_more(secured, guest, store):
    broker = secured(MQTT, users=store)
    nameless = guest(broker.port(), "c1").join()
    root = guest(broker.port(), "r1", "root").join()
    broker.write(f"{MQTT}[auth]\nanonymous = false\n")
    broker.hang_up()
    assert nameless.wait_for_end() == NOT_AUTHORIZED
    assert root.publish("anything") != NOT_AUTHORIZED
