//! Unverified clients, when anonymous clients are no longer admitted.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use thrum_access::Rules;
use thrum_broker::config::Anonymous;
use thrum_broker::{Access, Config, Policy};
use thrum_codec::packet::Connect;
use thrum_codec::properties::ConnectProperties;
use thrum_codec::{QoS, ReasonCode, Version};

use crate::gatekeeper::{TestGatekeeper, access, login, policy};
use crate::peer::{Peer, connect_packet, start, start_with};
use crate::protection::{behind_a_proxy, the_listener};

/// A broker that admits every client, and its configuration.
fn open(change: impl FnOnce(&mut Config)) -> (thrum_broker::Broker, SocketAddr, Config) {
    let mut kept = Config::default();
    let (broker, address) = start(2, |config| {
        change(config);
        kept = config.clone();
    });
    (broker, address, kept)
}

fn connect_for(address: SocketAddr, source: &str, client_id: &str) -> Peer {
    let mut peer = Peer::open_for(address, source);
    let answer = peer.handshake(&connect_packet(Version::V5, client_id));
    assert_eq!(answer.0, ReasonCode::Success);
    peer
}

fn assert_here(peer: &mut Peer) {
    assert_eq!(
        peer.publish_acknowledged("t", b""),
        ReasonCode::NoMatchingSubscribers
    );
}

#[test]
fn a_reload_disconnects_clients_that_may_no_longer_be_anonymous() {
    let (mut broker, address, mut config) = open(behind_a_proxy);
    let mut here = connect_for(address, "127.0.0.1", "here");
    let mut there = connect_for(address, "192.0.2.7", "there");
    config.auth.anonymous = Anonymous::Loopback;
    broker.reload(&config).expect("nothing to bind");
    assert_eq!(there.disconnect_reason(), ReasonCode::NotAuthorized);
    there.assert_closed();
    assert_here(&mut here);
    config.auth.anonymous = Anonymous::Deny;
    broker.reload(&config).expect("nothing to bind");
    assert_eq!(here.disconnect_reason(), ReasonCode::NotAuthorized);
    broker.stop();
}

#[test]
fn a_client_that_a_proxy_does_not_name_is_not_local() {
    let (broker, address, _) = open(|config| {
        behind_a_proxy(config);
        config.auth.anonymous = Anonymous::Loopback;
    });
    let local = b"\r\n\r\n\0\r\nQUIT\n\x20\x00\x00\x00";
    let unspecified = b"\r\n\r\n\0\r\nQUIT\n\x21\x00\x00\x00";
    for header in [&b"PROXY UNKNOWN\r\n"[..], local, unspecified] {
        let mut peer = Peer::open(address, Version::V5);
        peer.send_bytes(header);
        let answer = peer.handshake(&connect_packet(Version::V5, "unnamed"));
        assert_eq!(answer.0, ReasonCode::NotAuthorized, "{header:?}");
    }
    connect_for(address, "127.0.0.1", "here");
    broker.stop();
}

#[test]
fn a_rule_for_addresses_of_this_machine_excludes_clients_that_a_proxy_does_not_name() {
    let rules = Rules::parse("allow ip:127.0.0.0/8 pubsub #", "test").expect("the test's rule");
    let access = Access {
        policy: Policy {
            rules: Arc::new(rules),
            allows_by_default: false,
            ..policy()
        },
        ..Access::default()
    };
    let (broker, address) = start_with(access, 2, behind_a_proxy);
    let mut unnamed = Peer::open(address, Version::V5);
    unnamed.send_bytes(b"PROXY UNKNOWN\r\n");
    let answer = unnamed.handshake(&connect_packet(Version::V5, "unnamed"));
    assert_eq!(answer.0, ReasonCode::Success);
    assert_eq!(
        unnamed.subscribe("t", QoS::AtMostOnce),
        ReasonCode::NotAuthorized
    );
    let mut here = connect_for(address, "127.0.0.1", "here");
    assert_eq!(here.subscribe("t", QoS::AtMostOnce), ReasonCode::Success);
    broker.stop();
}

#[test]
fn a_listener_that_no_longer_admits_anonymous_clients_disconnects_them() {
    let (mut broker, address, mut config) =
        open(|config| the_listener(config).anonymous = Some(Anonymous::Allow));
    let mut peer = Peer::connect(address, "a");
    config.auth.anonymous = Anonymous::Deny;
    let (_, settling) = broker.reload(&config).expect("nothing to bind");
    assert_eq!(settling.wait(Duration::from_secs(5)), Ok(()));
    // The listener has another setting.
    assert_here(&mut peer);
    the_listener(&mut config).anonymous = None;
    broker.reload(&config).expect("nothing to bind");
    assert_eq!(peer.disconnect_reason(), ReasonCode::NotAuthorized);
    broker.stop();
}

#[test]
fn the_session_of_a_disconnected_client_stays() {
    let (mut broker, address, mut config) = open(|_| {});
    let connect = || Connect {
        clean_start: false,
        properties: ConnectProperties {
            session_expiry: Some(60),
            ..ConnectProperties::default()
        },
        ..connect_packet(Version::V5, "a")
    };
    let mut peer = Peer::open(address, Version::V5);
    assert_eq!(peer.handshake(&connect()), (ReasonCode::Success, false));
    peer.subscribe("t", QoS::AtLeastOnce);
    config.auth.anonymous = Anonymous::Deny;
    broker.reload(&config).expect("nothing to bind");
    assert_eq!(peer.disconnect_reason(), ReasonCode::NotAuthorized);
    config.auth.anonymous = Anonymous::Allow;
    let (_, settling) = broker.reload(&config).expect("nothing to bind");
    assert_eq!(settling.wait(Duration::from_secs(5)), Ok(()));
    let mut peer = Peer::open(address, Version::V5);
    assert_eq!(peer.handshake(&connect()), (ReasonCode::Success, true));
    broker.stop();
}

#[test]
fn clients_admitted_before_there_were_users_have_to_log_in_again() {
    let (broker, address, _) = open(|_| {});
    let mut unverified: Vec<Peer> = ["a", "b", "c", "d"]
        .iter()
        .map(|client_id| {
            let mut peer = Peer::open(address, Version::V5);
            let answer = peer.handshake(&login(client_id, b"right"));
            assert_eq!(answer, (ReasonCode::Success, false));
            peer
        })
        .collect();
    let mut nameless = Peer::connect(address, "nameless");
    let keeper = Arc::new(TestGatekeeper::with_rules("allow all pubsub #"));
    let settling = broker.access_handle().set(access(&keeper, policy()));
    for peer in &mut unverified {
        assert_eq!(peer.disconnect_reason(), ReasonCode::NotAuthorized);
        peer.assert_closed();
    }
    // A worker that has no gatekeeper yet hands the client to one that has.
    assert_eq!(settling.wait(Duration::from_secs(5)), Ok(()));
    let mut verified = Peer::open(address, Version::V5);
    let answer = verified.handshake(&login("a", b"right"));
    assert_eq!(answer, (ReasonCode::Success, false));
    assert_here(&mut verified);
    // A client without credentials is still admitted, and stays.
    assert_eq!(
        nameless.publish_acknowledged("t", b""),
        ReasonCode::NotAuthorized
    );
    broker.stop();
}
