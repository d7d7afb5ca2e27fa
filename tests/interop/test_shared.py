"""Shared subscriptions: the members of a group share the messages."""

import collections

import pytest
from conftest import ALL

MESSAGES = 60


@pytest.mark.parametrize("kind", ALL)
def test_each_message_reaches_one_member(join, name, kind):
    members = [join(kind) for _ in range(3)]
    for member in members:
        # No member sees the end marker of another, so everyone has its own.
        member.subscribe(f"$share/{name}/{name}/work", f"{name}/end", qos=1)
    outsider = join("paho-3.1.1")
    outsider.subscribe(f"{name}/work", qos=1)
    publisher = join("paho-5.0")
    expected = [str(number).encode() for number in range(MESSAGES)]
    for payload in expected:
        publisher.publish_later(f"{name}/work", payload, qos=1)
    publisher.publish(f"{name}/end", b"end", qos=1)

    shares = []
    for member in members:
        share = []
        while (message := member.next_message()).payload != b"end":
            share.append(message.payload)
        shares.append(share)
    received = collections.Counter(payload for share in shares for payload in share)
    assert received == collections.Counter(expected)
    assert all(shares), f"a member got nothing: {[len(share) for share in shares]}"
    assert [message.payload for message in outsider.next_messages(MESSAGES)] == expected


def test_clients_of_different_makers_and_versions_share(join, name):
    members = [join(kind) for kind in ALL]
    for member in members:
        member.subscribe(f"$share/g/{name}/+", f"{name}-end", qos=2)
    publisher = join("paho-3.1.1")
    for number in range(MESSAGES):
        publisher.publish(f"{name}/{number % 7}", str(number).encode(), qos=2)
    publisher.publish(f"{name}-end", b"end", qos=2)
    received = collections.Counter()
    for member in members:
        while (message := member.next_message()).payload != b"end":
            received[message.payload] += 1
    assert received == {str(number).encode(): 1 for number in range(MESSAGES)}


@pytest.mark.parametrize("kind", ("paho-3.1.1", "paho-5.0", "gmqtt-5.0"))
def test_two_groups_each_get_every_message(join, name, kind):
    first, second = join(kind), join(kind)
    first.subscribe(f"$share/one/{name}", qos=1)
    second.subscribe(f"$share/two/{name}", qos=1)
    join("paho-5.0").publish(name, b"x", qos=1)
    assert first.next_message().payload == b"x"
    assert second.next_message().payload == b"x"


@pytest.mark.mosquitto_deviates("2.0.11 replays retained messages to shared subscriptions")
@pytest.mark.parametrize("kind", ("paho-3.1.1", "paho-5.0", "gmqtt-5.0"))
def test_shared_subscription_gets_no_retained_messages(join, name, kind):
    publisher = join("paho-5.0")
    publisher.publish(name, b"old", qos=1, retain=True)
    member = join(kind)
    member.subscribe(f"$share/g/{name}", qos=1)
    publisher.publish(name, b"new", qos=1)
    assert member.next_message().payload == b"new"
    publisher.publish(name, b"", qos=1, retain=True)


@pytest.mark.parametrize("kind", ("paho-5.0", "gmqtt-5.0"))
def test_remaining_members_take_over_when_one_leaves(join, name, kind):
    staying, leaving = join(kind), join(kind)
    for member in (staying, leaving):
        member.subscribe(f"$share/g/{name}", qos=1)
    leaving.unsubscribe(f"$share/g/{name}")
    publisher = join("paho-5.0")
    for number in range(10):
        publisher.publish(name, str(number).encode(), qos=1)
    assert [int(message.payload) for message in staying.next_messages(10)] == list(range(10))
    assert leaving.inbox.empty()
