"""Every client reaches every other client with every quality of service."""

import pytest
from conftest import ALL

LARGE = bytes(range(256)) * 800  # 204,800 bytes


@pytest.mark.parametrize("publisher_kind", ALL)
@pytest.mark.parametrize("subscriber_kind", ALL)
def test_nine_combinations_of_quality_of_service(join, name, publisher_kind, subscriber_kind):
    publisher = join(publisher_kind)
    for subscribed in (0, 1, 2):
        subscriber = join(subscriber_kind)
        topic = f"{name}/{subscribed}"
        assert subscriber.subscribe(topic, qos=subscribed) == [subscribed]
        for published in (0, 1, 2):
            publisher.publish(topic, f"q{published}".encode(), qos=published)
            message = subscriber.next_message()
            assert message.topic == topic
            assert message.payload == f"q{published}".encode()
            assert message.qos == min(published, subscribed)
            assert not message.retain
        assert subscriber.inbox.empty()


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("qos", (0, 1, 2))
def test_empty_and_large_payloads_arrive_unchanged(join, name, kind, qos):
    subscriber = join(kind)
    subscriber.subscribe(f"{name}/#", qos=qos)
    publisher = join(kind)
    publisher.publish(f"{name}/empty", b"", qos=qos)
    assert subscriber.next_message().payload == b""
    publisher.publish(f"{name}/large", LARGE, qos=qos)
    assert subscriber.next_message().payload == LARGE


@pytest.mark.parametrize("kind", ALL)
def test_topic_in_other_scripts_arrives_unchanged(join, name, kind):
    topic = f"{name}/Grüße/温度/🌡"
    subscriber = join(kind)
    subscriber.subscribe(f"{name}/Grüße/+/🌡", qos=1)
    join(kind).publish(topic, "heiß".encode(), qos=1)
    assert subscriber.next_message().topic == topic


@pytest.mark.parametrize("kind", ALL)
def test_messages_of_one_publisher_stay_in_order(join, name, kind):
    subscriber = join("paho-5.0")
    subscriber.subscribe(f"{name}/order", qos=2)
    publisher = join(kind)
    payloads = [str(number).encode() for number in range(20)]
    for payload in payloads:
        publisher.publish(f"{name}/order", payload, qos=2)
    assert [message.payload for message in subscriber.next_messages(20)] == payloads


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize(
    ("topic_filter", "matching", "other"),
    [
        ("+/a", ["x/a"], ["x/b/a", "x/b"]),
        ("a/#", ["a", "a/b", "a/b/c", "a/"], ["b", "ab"]),
        ("a/+/c", ["a/b/c", "a//c"], ["a/b/d", "a/b/c/d", "a/c"]),
        ("+", ["a"], ["a/b", "/a"]),
        ("/+", ["/a", "/"], ["a", "a/b"]),
        ("+/+", ["/a", "a/b", "a/"], ["a", "a/b/c"]),
    ],
)
def test_wildcards(join, name, kind, topic_filter, matching, other):
    subscriber = join(kind)
    subscriber.subscribe(f"{name}/{topic_filter}", f"{name}-end", qos=1)
    publisher = join("paho-3.1.1")
    for topic in matching + other:
        publisher.publish(f"{name}/{topic}", b"x", qos=1)
    publisher.publish(f"{name}-end", b"end", qos=1)
    received = [message.topic for message in subscriber.next_messages(len(matching) + 1)]
    assert received == [f"{name}/{topic}" for topic in matching] + [f"{name}-end"]


@pytest.mark.parametrize("kind", ALL)
def test_wildcards_do_not_see_topics_of_the_server(join, name, kind):
    all_topics = join(kind)
    # Messages of other tests pass by here; only $SYS would be wrong.
    all_topics.subscribe("#", qos=0)
    one_level = join(kind)
    one_level.subscribe("+/broker/version", qos=0)
    version = join(kind)
    version.subscribe("$SYS/broker/version", qos=0)
    message = version.next_message()
    assert message.topic == "$SYS/broker/version"
    assert message.payload
    publisher = join("paho-5.0")
    publisher.publish(f"{name}/broker/version", b"mine", qos=1)
    publisher.publish("x/broker/version", name.encode(), qos=1)
    while (seen := all_topics.next_message()).payload != name.encode():
        assert not seen.topic.startswith("$")
    while (seen := one_level.next_message()).payload != name.encode():
        assert seen.topic.endswith("/broker/version") and not seen.topic.startswith("$")


@pytest.mark.parametrize("kind", ALL)
def test_overlapping_subscriptions_deliver_with_the_highest_quality(join, name, kind):
    subscriber = join(kind)
    subscriber.subscribe(f"{name}/+", f"{name}/a", f"{name}-end", qos=2)
    publisher = join("paho-3.1.1")
    publisher.publish(f"{name}/a", b"x", qos=2)
    publisher.publish(f"{name}-end", b"end", qos=2)
    received = []
    while (message := subscriber.next_message()).payload != b"end":
        received.append((message.payload, message.qos))
    # One copy or one for each subscription, both are allowed; never with less quality.
    assert received in ([(b"x", 2)], [(b"x", 2)] * 2)


@pytest.mark.parametrize("kind", ("paho-3.1.1", "paho-5.0", "gmqtt-3.1.1", "gmqtt-5.0"))
def test_overlapping_subscriptions_of_different_quality_reach_the_maximum(join, name, kind):
    subscriber = join(kind)
    subscriber.subscribe(f"{name}/#", qos=0)
    subscriber.subscribe(f"{name}/a", qos=2)
    subscriber.subscribe(f"{name}/+", qos=1)
    subscriber.subscribe(f"{name}-end", qos=2)
    publisher = join("paho-3.1.1")
    publisher.publish(f"{name}/a", b"x", qos=2)
    publisher.publish(f"{name}-end", b"end", qos=2)
    qualities = []
    while (message := subscriber.next_message()).payload != b"end":
        qualities.append(message.qos)
    assert max(qualities) == 2


@pytest.mark.parametrize("kind", ("paho-3.1", "paho-3.1.1", "paho-5.0", "gmqtt-3.1.1", "gmqtt-5.0"))
def test_nothing_arrives_after_unsubscribe(join, name, kind):
    subscriber = join(kind)
    subscriber.subscribe(f"{name}/a", qos=1)
    subscriber.subscribe(f"{name}/b", qos=1)
    subscriber.unsubscribe(f"{name}/a")
    publisher = join("paho-3.1.1")
    publisher.publish(f"{name}/a", b"x", qos=1)
    publisher.publish(f"{name}/b", b"end", qos=1)
    assert subscriber.next_message().payload == b"end"


@pytest.mark.parametrize("kind", ("paho-3.1.1", "paho-5.0"))
def test_large_client_identifiers_are_accepted(join, name, kind):
    client = join(kind, client_id=name + "ü" * 100)
    client.subscribe(name, qos=1)
    client.publish(name, b"x", qos=1)
    assert client.next_message().payload == b"x"
