"""MQTT 5.0: properties, flow control and reason codes between clients."""

import queue
import time

import pytest
from clients import Connect, Properties
from conftest import LASTING_V5, V5

FULL = Properties(
    user=(("b", "1"), ("a", "2"), ("b", "1"), ("ü", "naïve")),
    content_type="application/json",
    response_topic="answers/here",
    correlation_data=b"correlation-1",
    payload_format=1,
)


@pytest.mark.parametrize("publisher_kind", V5)
@pytest.mark.parametrize("subscriber_kind", V5)
@pytest.mark.parametrize("qos", (0, 1, 2))
def test_properties_arrive_as_they_were_sent(join, name, publisher_kind, subscriber_kind, qos):
    subscriber = join(subscriber_kind)
    subscriber.subscribe(name, qos=qos)
    join(publisher_kind).publish(name, b"{}", qos=qos, properties=FULL)
    assert subscriber.next_message().properties == FULL


@pytest.mark.parametrize("kind", V5)
def test_message_expiry_is_passed_on_and_never_grows(join, name, kind):
    subscriber = join(kind)
    subscriber.subscribe(name, qos=1)
    join(kind).publish(name, b"x", qos=1, properties=Properties(message_expiry=100))
    assert 98 <= subscriber.next_message().properties.message_expiry <= 100


@pytest.mark.parametrize("kind", V5)
def test_properties_do_not_reach_older_clients(join, name, kind):
    subscriber = join("paho-3.1.1")
    subscriber.subscribe(name, qos=1)
    join(kind).publish(name, b"plain", qos=1, properties=FULL)
    assert subscriber.next_message().payload == b"plain"


@pytest.mark.parametrize("kind", V5)
def test_subscription_identifier_comes_with_the_message(join, name, kind):
    subscriber = join(kind)
    subscriber.subscribe(f"{name}/+", qos=1, identifier=268_435_455)
    join("paho-3.1.1").publish(f"{name}/a", b"x", qos=1)
    assert subscriber.next_message().properties.subscription_identifiers == (268_435_455,)


@pytest.mark.parametrize("kind", LASTING_V5)
def test_identifiers_of_all_overlapping_subscriptions_arrive(join, name, kind):
    subscriber = join(kind)
    subscriber.subscribe(f"{name}/#", qos=1, identifier=1)
    subscriber.subscribe(f"{name}/a", qos=2, identifier=200)
    subscriber.subscribe(f"{name}/+", qos=1)
    subscriber.subscribe(f"{name}-end", qos=1)
    publisher = join("paho-5.0")
    publisher.publish(f"{name}/a", b"x", qos=1)
    publisher.publish(f"{name}-end", b"end", qos=1)
    identifiers = []
    while (message := subscriber.next_message()).payload != b"end":
        identifiers += message.properties.subscription_identifiers
    assert sorted(identifiers) == [1, 200]


@pytest.mark.parametrize("kind", LASTING_V5)
def test_identifier_is_replaced_by_a_new_subscribe(join, name, kind):
    subscriber = join(kind)
    subscriber.subscribe(name, qos=1, identifier=1)
    subscriber.subscribe(name, qos=1, identifier=2)
    join("paho-5.0").publish(name, b"x", qos=1)
    assert subscriber.next_message().properties.subscription_identifiers == (2,)


def test_topic_alias_of_a_publisher_is_understood(join, name):
    subscriber = join("gmqtt-5.0")
    subscriber.subscribe(f"{name}/#", qos=1)
    publisher = join("paho-5.0")
    assert publisher.connack_properties.get("TopicAliasMaximum", 0) >= 1
    publisher.publish(f"{name}/a", b"1", qos=1, properties=Properties(topic_alias=1))
    publisher.publish("", b"2", qos=1, properties=Properties(topic_alias=1))
    publisher.publish(f"{name}/b", b"3", qos=1, properties=Properties(topic_alias=1))
    publisher.publish("", b"4", qos=0, properties=Properties(topic_alias=1))
    received = [(message.topic, message.payload) for message in subscriber.next_messages(4)]
    assert received == [
        (f"{name}/a", b"1"),
        (f"{name}/a", b"2"),
        (f"{name}/b", b"3"),
        (f"{name}/b", b"4"),
    ]


def test_subscriber_that_offers_topic_aliases_gets_every_topic(join, name):
    subscriber = join("gmqtt-5.0", topic_alias_maximum=2)
    subscriber.subscribe(f"{name}/#", qos=1)
    publisher = join("paho-5.0")
    topics = [f"{name}/{number % 4}" for number in range(24)]
    for topic in topics:
        publisher.publish(topic, b"x", qos=1)
    received = subscriber.next_messages(len(topics))
    assert [message.topic for message in received] == topics
    assert all((message.properties.topic_alias or 1) in (1, 2) for message in received)


def test_server_assigns_a_client_identifier(join):
    client = join("paho-5.0", connect=False)
    client.connect(Connect(""))
    assert client.connack_properties["AssignedClientIdentifier"]


def test_receive_maximum_of_one_is_respected(join, name):
    subscriber = join("paho-5.0", receive_maximum=1, manual_ack=True)
    subscriber.subscribe(name, qos=2)
    publisher = join("paho-5.0")
    for number in range(4):
        publisher.publish(name, str(number).encode(), qos=1 + number % 2)
    for number in range(4):
        assert subscriber.next_message().payload == str(number).encode()
        # While the message is unacknowledged, the next one must not arrive.
        with pytest.raises(queue.Empty):
            subscriber.inbox.get(timeout=0.2)
        subscriber.acknowledge()


@pytest.mark.parametrize("kind", LASTING_V5)
def test_message_larger_than_the_client_accepts_is_not_sent_to_it(join, name, kind):
    subscriber = join(kind, maximum_packet_size=200)
    subscriber.subscribe(name, qos=1)
    publisher = join("paho-5.0")
    publisher.publish(name, b"small", qos=1)
    publisher.publish(name, b"x" * 300, qos=1)
    publisher.publish(name, b"end", qos=1)
    assert [message.payload for message in subscriber.next_messages(2)] == [b"small", b"end"]
    assert subscriber.disconnects.empty()


@pytest.mark.parametrize("kind", LASTING_V5)
def test_no_local_spares_the_publisher_its_own_messages(join, name, kind):
    client = join(kind)
    client.subscribe(name, qos=1, no_local=1)
    client.publish(name, b"own", qos=1)
    join("paho-5.0").publish(name, b"foreign", qos=1)
    assert client.next_message().payload == b"foreign"


@pytest.mark.parametrize("kind", LASTING_V5)
def test_unsubscribe_tells_whether_there_was_a_subscription(join, name, kind):
    client = join(kind)
    client.subscribe(name, qos=1)
    assert client.unsubscribe(name) == [0x00]
    assert client.unsubscribe(name) == [0x11], "no subscription existed"


@pytest.mark.parametrize("qos", (1, 2))
def test_publisher_learns_of_no_matching_subscribers(join, name, qos):
    publisher = join("paho-5.0")
    publisher.publish(f"{name}/nobody", b"x", qos=qos)
    assert publisher.published.get(timeout=5) in (0x00, 0x10)
    listener = join("paho-5.0")
    listener.subscribe(f"{name}/somebody", qos=qos)
    publisher.publish(f"{name}/somebody", b"x", qos=qos)
    assert publisher.published.get(timeout=5) == 0x00


@pytest.mark.parametrize("wanted", (0, 1))
def test_request_problem_information_is_accepted(join, name, wanted):
    client = join("paho-5.0", request_problem_information=wanted)
    client.subscribe(name, qos=1)
    client.publish(name, b"x", qos=1)
    assert client.next_message().payload == b"x"


def test_connack_values_are_within_the_specification(join):
    properties = join("paho-5.0", keep_alive=30).connack_properties
    assert properties.get("ReceiveMaximum", 65535) >= 1
    assert properties.get("MaximumPacketSize", 1) >= 1
    assert properties.get("RetainAvailable", 1) == 1
    assert properties.get("WildcardSubscriptionAvailable", 1) == 1
    assert properties.get("SubscriptionIdentifierAvailable", 1) == 1
    assert properties.get("SharedSubscriptionAvailable", 1) == 1
    assert "MaximumQoS" not in properties, "2 is said by leaving it out"


def test_request_and_response(join, name):
    """The pattern of 5.0: response topic and correlation data travel there and back."""
    server = join("gmqtt-5.0")
    server.subscribe(f"{name}/request", qos=1)
    client = join("paho-5.0")
    client.subscribe(f"{name}/answer", qos=1)
    client.publish(
        f"{name}/request",
        b"6*7",
        qos=1,
        properties=Properties(response_topic=f"{name}/answer", correlation_data=b"\x00\xff"),
    )
    request = server.next_message()
    server.publish(
        request.properties.response_topic,
        b"42",
        qos=1,
        properties=Properties(correlation_data=request.properties.correlation_data),
    )
    answer = client.next_message()
    assert (answer.payload, answer.properties.correlation_data) == (b"42", b"\x00\xff")


def test_expiry_counts_down_while_a_message_is_retained(join, name):
    join("paho-5.0").publish(
        name, b"x", qos=1, retain=True, properties=Properties(message_expiry=50)
    )
    time.sleep(1.2)
    subscriber = join("paho-5.0")
    subscriber.subscribe(name, qos=1)
    assert subscriber.next_message().properties.message_expiry in (48, 49)
