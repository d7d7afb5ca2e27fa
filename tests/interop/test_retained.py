"""Retained messages: kept, replayed, replaced, cleared."""

import pytest
from clients import Properties
from conftest import ALL, LASTING_V5, V5


@pytest.mark.parametrize("kind", ALL)
def test_retained_message_is_replayed_replaced_and_cleared(join, name, kind):
    publisher = join(kind)
    topic = f"{name}/state"
    publisher.publish(topic, b"one", qos=1, retain=True)
    publisher.publish(topic, b"two", qos=1, retain=True)

    first = join(kind)
    first.subscribe(f"{name}/#", qos=1)
    replayed = first.next_message()
    assert (replayed.payload, replayed.retain, replayed.qos) == (b"two", True, 1)

    publisher.publish(topic, b"live", qos=1, retain=True)
    live = first.next_message()
    assert (live.payload, live.retain) == (b"live", False)

    publisher.publish(topic, b"", qos=1, retain=True)
    cleared = first.next_message()
    assert (cleared.payload, cleared.retain) == (b"", False)

    second = join(kind)
    second.subscribe(f"{name}/#", qos=1)
    publisher.publish(f"{name}/end", b"end", qos=1)
    assert second.next_message().payload == b"end"


@pytest.mark.parametrize("kind", ALL)
def test_retained_message_is_replayed_with_the_lower_quality(join, name, kind):
    join("paho-3.1.1").publish(f"{name}/high", b"x", qos=2, retain=True)
    join("paho-3.1.1").publish(f"{name}/low", b"x", qos=0, retain=True)
    subscriber = join(kind)
    subscriber.subscribe(f"{name}/+", qos=1)
    received = {message.topic: message.qos for message in subscriber.next_messages(2)}
    assert received == {f"{name}/high": 1, f"{name}/low": 0}


@pytest.mark.parametrize("kind", V5)
def test_retain_as_published_keeps_the_flag(join, name, kind):
    subscriber = join(kind)
    subscriber.subscribe(name, qos=1, retain_as_published=1)
    publisher = join(kind)
    publisher.publish(name, b"kept", qos=1, retain=True)
    assert subscriber.next_message().retain
    publisher.publish(name, b"plain", qos=1)
    assert not subscriber.next_message().retain
    publisher.publish(name, b"", qos=1, retain=True)


@pytest.mark.parametrize("kind", LASTING_V5)
def test_retain_handling_decides_about_the_replay(join, name, kind):
    publisher = join("paho-5.0")
    publisher.publish(f"{name}/state", b"state", qos=1, retain=True)
    subscriber = join(kind)

    def replayed(retain_handling: int) -> bool:
        subscriber.subscribe(f"{name}/#", qos=1, retain_handling=retain_handling)
        publisher.publish(f"{name}/end", b"end", qos=1)
        seen = [subscriber.next_message().payload]
        if seen[-1] != b"end":
            seen.append(subscriber.next_message().payload)
        assert seen[-1] == b"end"
        return len(seen) == 2

    assert not replayed(2), "never"
    assert not replayed(1), "if new, but it exists"
    assert replayed(0), "at every subscribe"
    subscriber.unsubscribe(f"{name}/#")
    assert replayed(1), "if new, and it is"


@pytest.mark.parametrize("kind", V5)
def test_retained_message_keeps_its_properties(join, name, kind):
    properties = Properties(user=(("a", "1"), ("a", "2")), content_type="text/plain")
    join(kind).publish(name, b"x", qos=1, retain=True, properties=properties)
    subscriber = join(kind)
    subscriber.subscribe(name, qos=1)
    message = subscriber.next_message()
    assert message.retain
    assert message.properties.user == properties.user
    assert message.properties.content_type == "text/plain"
