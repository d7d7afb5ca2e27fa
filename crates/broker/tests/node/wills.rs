//! Wills: the clients that may have one, and which are published when they are due.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use thrum_access::Rules;
use thrum_broker::Policy;
use thrum_codec::packet::Connect;
use thrum_codec::{QoS, ReasonCode, Version};

use crate::gatekeeper::{TestGatekeeper, access, login, policy, start};
use crate::peer::{Peer, connect_packet, start as start_open, will};
use crate::protection::assert_counted;

fn rules(text: &str) -> Policy {
    Policy {
        rules: Arc::new(Rules::parse(text, "test").expect("the test's rules")),
        ..policy()
    }
}

/// The answer to a client with a will.
fn leaves(address: SocketAddr, client_id: &str, topic: &str) -> (Peer, ReasonCode) {
    let mut peer = Peer::open(address, Version::V5);
    let connect = Connect {
        will: Some(will(topic, b"gone")),
        ..login(client_id, b"right")
    };
    let (reason, _) = peer.handshake(&connect);
    (peer, reason)
}

/// A subscriber to wills and figures.
fn watcher(address: SocketAddr) -> Peer {
    let mut peer = Peer::open(address, Version::V5);
    let answer = peer.handshake(&login("watcher", b"right"));
    assert_eq!(answer, (ReasonCode::Success, false));
    peer
}

#[test]
fn a_service_is_asked_about_a_will_before_the_client_is_admitted() {
    let keeper = Arc::new(TestGatekeeper::deciding());
    let (broker, address) = start(&keeper, policy());
    let (mut refused, reason) = leaves(address, "a", "secret/will");
    assert_eq!(reason, ReasonCode::NotAuthorized);
    refused.assert_closed();
    let (mut inside, reason) = leaves(address, "b", "open/will");
    assert_eq!(reason, ReasonCode::Success);
    // What stands behind its CONNECT is handled once the answer is there.
    assert_eq!(
        inside.publish_acknowledged("open/x", b""),
        ReasonCode::NoMatchingSubscribers
    );
    let asked = keeper.asked.lock().expect("one at a time").clone();
    let expected = ["secret/will", "open/will", "open/x"];
    assert_eq!(asked, expected.map(|topic| (topic.to_owned(), true)));
    broker.stop();
}

#[test]
fn a_client_of_3_1_1_with_a_will_that_a_service_denies_is_not_authorized() {
    let keeper = Arc::new(TestGatekeeper::deciding());
    let (broker, address) = start(&keeper, policy());
    let mut peer = Peer::open(address, Version::V311);
    let connect = Connect {
        version: Version::V311,
        will: Some(will("secret/will", b"gone")),
        ..login("a", b"right")
    };
    assert_eq!(peer.handshake(&connect).0, ReasonCode::NotAuthorized);
    broker.stop();
}

#[test]
fn a_will_about_which_a_service_gives_no_answer_is_refused() {
    let keeper = Arc::new(TestGatekeeper::silent());
    let (broker, address) = start(&keeper, policy());
    let (_, reason) = leaves(address, "a", "open/will");
    assert_eq!(reason, ReasonCode::NotAuthorized);
    broker.stop();
}

#[test]
fn a_publish_that_a_service_allowed_is_not_checked_twice() {
    let keeper = Arc::new(TestGatekeeper::deciding());
    let (broker, address) = start(&keeper, policy());
    let mut watcher = watcher(address);
    watcher.subscribe("open/#", QoS::AtMostOnce);
    let (leaving, _) = leaves(address, "a", "open/will");
    drop(leaving);
    assert_eq!(watcher.message().payload, b"gone");
    let asked = keeper.asked.lock().expect("one at a time").len();
    assert_eq!(asked, 2, "the subscription and the will, once each");
    broker.stop();
}

#[test]
fn a_will_is_not_published_if_the_rules_forbid_it_by_then() {
    let keeper = Arc::new(TestGatekeeper::default());
    let (broker, address) = start(&keeper, rules("allow all pubsub #\nallow all sub $SYS/#"));
    let mut watcher = watcher(address);
    watcher.subscribe("wills/#", QoS::AtMostOnce);
    let (stays_silent, _) = leaves(address, "a", "wills/a");
    let (speaks, _) = leaves(address, "b", "wills/b");
    let fewer = rules("deny client:a pub wills/#\nallow all pubsub #\nallow all sub $SYS/#");
    let settling = broker.access_handle().set(access(&keeper, fewer));
    assert_eq!(settling.wait(Duration::from_secs(5)), Ok(()));
    drop(stays_silent);
    assert_counted(&mut watcher, "authorization/wills/denied");
    drop(speaks);
    loop {
        let message = watcher.message();
        assert_ne!(message.topic, "wills/a");
        if message.topic == "wills/b" {
            break;
        }
    }
    broker.stop();
}

#[test]
fn the_will_of_a_removed_user_is_not_published() {
    let keeper = Arc::new(TestGatekeeper::with_rules(
        "allow all pubsub #\nallow all sub $SYS/#",
    ));
    let (broker, address) = start(&keeper, policy());
    let mut anonymous = Peer::connect(address, "watcher");
    let open = rules("allow anonymous pubsub #\nallow anonymous sub $SYS/#");
    let settling = broker.access_handle().set(access(&keeper, open.clone()));
    assert_eq!(settling.wait(Duration::from_secs(5)), Ok(()));
    anonymous.subscribe("wills/#", QoS::AtMostOnce);
    let (mut gone, reason) = leaves(address, "a", "wills/a");
    assert_eq!(reason, ReasonCode::Success);
    *keeper.is_gone.lock().expect("one at a time") = true;
    broker.access_handle().set(access(&keeper, open));
    assert_eq!(gone.disconnect_reason(), ReasonCode::NotAuthorized);
    assert_counted(&mut anonymous, "authorization/wills/denied");
    broker.stop();
}

#[test]
fn no_client_leaves_a_will_on_a_topic_of_the_broker() {
    let (broker, address) = start_open(1, |_| {});
    for topic in ["$SYS/broker/version", "$share/g/t"] {
        let mut peer = Peer::open(address, Version::V5);
        let connect = Connect {
            will: Some(will(topic, b"forged")),
            ..connect_packet(Version::V5, "a")
        };
        assert_eq!(peer.handshake(&connect).0, ReasonCode::NotAuthorized);
    }
    broker.stop();
}
