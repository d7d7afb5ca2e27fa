"""Wills: after an abnormal end, never after a DISCONNECT, and later when a delay was asked for."""

import time

import pytest
from clients import Will
from conftest import ALL, V5


@pytest.fixture
def watcher(join, name):
    client = join("paho-5.0")
    client.subscribe(f"{name}/#", qos=2)
    return client


def leave_with_will(join, name, kind, **will):
    client = join(kind, will=Will(f"{name}/will", b"gone", **will), session_expiry=None)
    # mosquitto_sub connects only now.
    client.subscribe(f"{name}-other", qos=1)
    return client


@pytest.mark.parametrize("kind", ALL)
def test_will_is_published_when_the_connection_breaks(join, name, kind, watcher):
    leave_with_will(join, name, kind, qos=2).kill()
    message = watcher.next_message()
    assert (message.topic, message.payload) == (f"{name}/will", b"gone")
    assert (message.qos, message.retain) == (2, False)


# A mosquitto_sub of 5.0 that is stopped requests its will; see the next test.
@pytest.mark.parametrize("kind", [kind for kind in ALL if kind != "mosquitto-5.0"])
def test_will_is_not_published_after_a_normal_disconnect(join, name, kind, watcher):
    leave_with_will(join, name, kind).disconnect()
    join("paho-5.0").publish(f"{name}/end", b"end", qos=1)
    assert watcher.next_message().payload == b"end"
    # A later message shows that the will was not published after the first one either.
    join("paho-5.0").publish(f"{name}/end", b"later", qos=1)
    assert watcher.next_message().payload == b"later"


def test_will_is_published_after_a_disconnect_that_asks_for_it(join, name, watcher):
    leave_with_will(join, name, "mosquitto-5.0").disconnect()
    assert watcher.next_message().payload == b"gone"


@pytest.mark.parametrize("kind", ALL)
def test_retained_will_is_kept(join, name, kind, watcher):
    leave_with_will(join, name, kind, retain=True).kill()
    watcher.next_message()
    latecomer = join(kind)
    latecomer.subscribe(f"{name}/#", qos=1)
    message = latecomer.next_message()
    assert (message.payload, message.retain) == (b"gone", True)
    join("paho-5.0").publish(f"{name}/will", b"", qos=1, retain=True)


def connect_with_delay(join, name, kind, session_expiry):
    client_id = f"{name}-delayed"
    will = Will(f"{name}/will", b"gone", delay_seconds=2)
    client = join(kind, client_id=client_id, session_expiry=session_expiry, will=will)
    client.subscribe(f"{name}-other", qos=1)
    return client


@pytest.mark.parametrize("kind", V5)
def test_will_waits_for_its_delay(join, name, kind, watcher):
    client = connect_with_delay(join, name, kind, session_expiry=60)
    start = time.monotonic()
    client.kill()
    assert watcher.next_message().payload == b"gone"
    assert 1.8 <= time.monotonic() - start <= 4


@pytest.mark.mosquitto_deviates("2.0.11 waits for the whole delay")
@pytest.mark.parametrize("kind", V5)
def test_will_does_not_wait_longer_than_the_session_lives(join, name, kind, watcher):
    client = join(
        kind, session_expiry=0, will=Will(f"{name}/will", b"gone", delay_seconds=60)
    )
    client.subscribe(f"{name}-other", qos=1)
    start = time.monotonic()
    client.kill()
    assert watcher.next_message().payload == b"gone"
    assert time.monotonic() - start <= 3


@pytest.mark.parametrize("kind", V5)
def test_delayed_will_is_dropped_when_the_client_comes_back(join, name, kind, watcher):
    connect_with_delay(join, name, kind, session_expiry=60).kill()
    back = join("paho-5.0", client_id=f"{name}-delayed", clean_start=False, session_expiry=0)
    # Past the delay and the slack of a timer, only the end marker has arrived.
    time.sleep(2.5)
    join("paho-5.0").publish(f"{name}/end", b"end", qos=1)
    assert watcher.next_message().payload == b"end"
    back.disconnect()
