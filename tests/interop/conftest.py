"""The broker, the clients and the names that every test starts from."""

from __future__ import annotations

import os
import shutil
import uuid

import pytest

import launch
from certificates import Authority
from clients.guarded import Guarded
from secured import PASSWORD, Secured, is_other_broker
from clients import Connect, GmqttClient, MosquittoTools, PahoClient

KINDS = {
    "paho-3.1": (PahoClient, "3.1"),
    "paho-3.1.1": (PahoClient, "3.1.1"),
    "paho-5.0": (PahoClient, "5.0"),
    "mosquitto-3.1.1": (MosquittoTools, "3.1.1"),
    "mosquitto-5.0": (MosquittoTools, "5.0"),
    "gmqtt-3.1.1": (GmqttClient, "3.1.1"),
    "gmqtt-5.0": (GmqttClient, "5.0"),
}
ALL = tuple(KINDS)
V5 = tuple(name for name in KINDS if name.endswith("5.0"))
# Clients that stay connected and can do everything their version offers.
LASTING = tuple(name for name in KINDS if not name.startswith("mosquitto"))
LASTING_V5 = tuple(name for name in LASTING if name in V5)


def pytest_collection_modifyitems(items):
    if os.environ.get("BROKER") != "mosquitto":
        return
    for item in items:
        if deviation := item.get_closest_marker("mosquitto_deviates"):
            item.add_marker(pytest.mark.xfail(reason=deviation.args[0], strict=False))


@pytest.fixture(scope="session")
def address():
    """Where the broker listens; started here only if launch.py did not do it before."""
    if "MQTT_PORT" in os.environ:
        yield os.environ["MQTT_HOST"], int(os.environ["MQTT_PORT"])
        return
    broker = launch.Broker()
    yield broker.host, broker.port
    alive = broker.is_alive()
    log = broker.log_tail()
    broker.stop()
    assert alive, log


@pytest.fixture
def name():
    """A prefix for topics and client ids that no other test has."""
    return f"t{uuid.uuid4().hex[:10]}"


@pytest.fixture
def join(address, name):
    """Connects clients by kind; whatever is left of them ends with the test."""
    clients = []

    def make(kind: str, client_id: str | None = None, connect: bool = True, **options):
        client_class, version = KINDS[kind]
        client = client_class(*address, version)
        clients.append(client)
        if connect:
            client.connect(Connect(client_id or f"{name}-{len(clients)}", **options))
        return client

    yield make
    for client in clients:
        client.close()


@pytest.fixture
def secured(tmp_path):
    """Starts brokers with a configuration of their own; they end with the test."""
    if is_other_broker():
        pytest.skip("about thrum's own configuration")
    brokers = []

    def make(config: str, users=None, file_name: str = "thrum.toml") -> Secured:
        folder = tmp_path / f"broker-{len(brokers)}"
        folder.mkdir()
        broker = Secured(folder, config, file_name)
        if users is not None:
            shutil.copy(users, broker.data / "users.jsonl")
        brokers.append(broker)
        return broker.start()

    yield make
    for broker in brokers:
        broker.stop()


@pytest.fixture
def guest():
    """Makes clients with credentials, the password of all tests if none is given; they end with the test."""
    clients = []

    def make(port: int, client_id: str, username=None, password=PASSWORD, **options) -> Guarded:
        client = Guarded(port, client_id, username, password, **options)
        clients.append(client)
        return client

    yield make
    for client in clients:
        client.close()


@pytest.fixture(scope="session")
def store(tmp_path_factory):
    """A user store: `devices/%c/#` is alice's, `bob/#` is bob's, and root may do everything."""
    folder = tmp_path_factory.mktemp("store")
    broker = Secured(folder, "")
    broker.users("add", "alice", "--allow", "pubsub devices/%c/#", password=PASSWORD)
    broker.users("add", "bob", "--allow", "pubsub bob/#", password=PASSWORD)
    broker.users("add", "root", "--superuser", password=PASSWORD)
    return broker.data / "users.jsonl"


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    """The authority that signs servers and clients of the tests."""
    return Authority(tmp_path_factory.mktemp("authority") / "ca", "Test Authority")
