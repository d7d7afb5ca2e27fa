//! One raw-byte script for each statement that needs exact bytes on both sides.

mod delivery;
mod flow;
mod handshake;
mod properties;
mod retained;
mod sessions;
mod subscriptions;
mod wills;

use std::net::SocketAddr;

use thrum_conformance::packets::{Connect, Publish};
use thrum_conformance::{Broker, Version, Wire};

/// The broker that all scripts share.
fn broker() -> SocketAddr {
    Broker::shared().address()
}

/// A clean client.
fn client(version: Version) -> Wire {
    Wire::fresh(broker(), version)
}

/// Sends a message from a client of its own and waits until the broker has acknowledged it.
fn send(message: &Publish) {
    let mut publisher = client(message.version);
    publisher.deliver(message);
    if message.flags & 6 == 0 {
        publisher.expect_nothing_before_pingresp();
    }
}

/// A message of the version with packet identifier 1.
fn message(version: Version, topic: &str, qos: u8, payload: &str) -> Publish {
    Publish::new(version, topic, qos, payload.as_bytes())
}

/// Connects with the session of the client identifier; returns whether it existed.
fn resume(version: Version, client_id: &str) -> (Wire, bool) {
    let connect = Connect::new(version).client_id(client_id).persistent();
    let (wire, connack) = Wire::connect(broker(), &connect);
    (wire, connack.session_present)
}
