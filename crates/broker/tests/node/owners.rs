//! Client identifiers and the users that they belong to.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use thrum_broker::Config;
use thrum_broker::config::{ClientIdPattern, Takeover};
use thrum_codec::packet::{Connect, Packet};
use thrum_codec::properties::ConnectProperties;
use thrum_codec::{QoS, ReasonCode, Version};

use crate::gatekeeper::{TestGatekeeper, access};
use crate::peer::{Peer, connect_packet, start_with};
use crate::rights::Folder;

/// A broker with users that share one password.
fn start(workers: u16, change: impl FnOnce(&mut Config)) -> (thrum_broker::Broker, SocketAddr) {
    let keeper = Arc::new(TestGatekeeper::default());
    let policy = thrum_broker::Policy::default();
    start_with(access(&keeper, policy), workers, change)
}

/// CONNECT of a user, or of a client without user name, with a session that outlives the
/// connection.
fn connect<'a>(version: Version, client_id: &'a str, user: Option<&'a str>) -> Connect<'a> {
    let expiry = (version == Version::V5).then_some(300);
    Connect {
        clean_start: false,
        username: user,
        password: user.map(|_| &b"right"[..]),
        properties: ConnectProperties {
            session_expiry: expiry,
            ..ConnectProperties::default()
        },
        ..connect_packet(version, client_id)
    }
}

fn try_as(address: SocketAddr, version: Version, user: Option<&str>) -> (Peer, (ReasonCode, bool)) {
    let mut peer = Peer::open(address, version);
    let answer = peer.handshake(&connect(version, "device-7", user));
    (peer, answer)
}

const NEW: (ReasonCode, bool) = (ReasonCode::Success, false);
const PRESENT: (ReasonCode, bool) = (ReasonCode::Success, true);
const REFUSED: (ReasonCode, bool) = (ReasonCode::ClientIdentifierNotValid, false);
const ALICE: Option<&str> = Some("alice");
const BOB: Option<&str> = Some("bob");

#[test]
fn another_user_with_the_same_client_identifier_is_refused() {
    for (workers, version) in [(1, Version::V5), (4, Version::V311), (4, Version::V5)] {
        let (broker, address) = start(workers, |_| {});
        let (mut owner, answer) = try_as(address, version, ALICE);
        assert_eq!(answer, NEW);
        owner.subscribe("t", QoS::AtLeastOnce);
        // Whichever worker accepts them.
        for stranger in [BOB, None, BOB, None, BOB, None] {
            assert_eq!(try_as(address, version, stranger).1, REFUSED);
        }
        assert_eq!(broker.clients_connected(), 1);
        owner.leave();
        let mut publisher = Peer::connect(address, "publisher");
        publisher.publish_acknowledged("t", b"for alice");
        for stranger in [BOB, None] {
            assert_eq!(try_as(address, version, stranger).1, REFUSED);
        }
        let (mut owner, answer) = try_as(address, version, ALICE);
        assert_eq!(answer, PRESENT);
        assert_eq!(owner.message().payload, b"for alice");
        broker.stop();
    }
}

#[test]
fn a_session_on_the_disk_knows_its_user() {
    for workers in [1, 4] {
        let folder = Folder::new(&format!("owner-{workers}"));
        let on_disk = |config: &mut Config| config.node.data_dir.clone_from(&folder.0);
        let (broker, address) = start(workers, on_disk);
        assert_eq!(try_as(address, Version::V5, ALICE).1, NEW);
        broker.stop();
        let (broker, address) = start(workers, on_disk);
        for stranger in [BOB, None, BOB, None] {
            assert_eq!(try_as(address, Version::V5, stranger).1, REFUSED);
        }
        assert_eq!(try_as(address, Version::V5, ALICE).1, PRESENT);
        broker.stop();
    }
}

#[test]
fn every_user_takes_an_identifier_over_where_that_is_set_and_gets_nothing_that_waited() {
    let (broker, address) = start(2, |config| config.auth.takeover = Takeover::AnyUser);
    let (mut owner, _) = try_as(address, Version::V5, ALICE);
    owner.subscribe("t", QoS::AtLeastOnce);
    let mut publisher = Peer::connect(address, "publisher");
    publisher.publish_acknowledged("t", b"for alice");
    assert_eq!(owner.message().payload, b"for alice");
    let (mut taker, answer) = try_as(address, Version::V5, BOB);
    assert_eq!(answer, NEW);
    assert_eq!(owner.disconnect_reason(), ReasonCode::SessionTakenOver);
    taker.assert_silent();
    broker.stop();
}

#[test]
fn a_user_that_takes_an_identifier_over_keeps_to_its_number_of_sessions() {
    let (broker, address) = start(2, |config| {
        config.auth.takeover = Takeover::AnyUser;
        config.limits.user.sessions = 1;
    });
    let (owner, answer) = try_as(address, Version::V5, ALICE);
    assert_eq!(answer, NEW);
    owner.leave();
    let mut other = Peer::open(address, Version::V5);
    assert_eq!(other.handshake(&connect(Version::V5, "bob", BOB)), NEW);
    let refused = (ReasonCode::QuotaExceeded, false);
    assert_eq!(try_as(address, Version::V5, BOB).1, refused);
    assert_eq!(try_as(address, Version::V5, ALICE).1, PRESENT);
    broker.stop();
}

#[test]
fn a_session_of_a_client_without_user_name_has_no_owner() {
    let (broker, address) = start(2, |_| {});
    let (mut nobody, _) = try_as(address, Version::V5, None);
    nobody.subscribe("t", QoS::AtLeastOnce);
    nobody.leave();
    let mut publisher = Peer::connect(address, "publisher");
    publisher.publish_acknowledged("t", b"for nobody");
    assert_eq!(try_as(address, Version::V5, None).1, PRESENT);
    let (mut taker, answer) = try_as(address, Version::V5, ALICE);
    assert_eq!(answer, NEW);
    taker.assert_silent();
    broker.stop();
}

#[test]
fn messages_queued_before_there_were_users_are_not_delivered_to_a_user() {
    for (workers, is_durable) in [(1, false), (2, true)] {
        let folder = Folder::new(&format!("before-users-{workers}"));
        let (broker, address) = crate::peer::start(workers, |config| {
            if is_durable {
                config.node.data_dir.clone_from(&folder.0);
            }
        });
        let (mut nobody, _) = try_as(address, Version::V5, None);
        nobody.subscribe("t", QoS::AtLeastOnce);
        nobody.leave();
        let mut publisher = Peer::connect(address, "publisher");
        publisher.publish_acknowledged("t", b"for nobody");
        drop(publisher);
        let keeper = Arc::new(TestGatekeeper::default());
        let access = access(&keeper, thrum_broker::Policy::default());
        let settling = broker.access_handle().set(access);
        assert_eq!(settling.wait(Duration::from_secs(5)), Ok(()));
        let (mut taker, answer) = try_as(address, Version::V5, ALICE);
        assert_eq!(answer, NEW);
        taker.assert_silent();
        broker.stop();
    }
}

#[test]
fn an_open_node_keeps_the_session_of_a_client_without_user_over_a_restart() {
    let folder = Folder::new("open-restart");
    let on_disk = |config: &mut Config| config.node.data_dir.clone_from(&folder.0);
    let (broker, address) = crate::peer::start(2, on_disk);
    assert_eq!(try_as(address, Version::V5, None).1, NEW);
    broker.stop();
    let (broker, address) = crate::peer::start(2, on_disk);
    assert_eq!(try_as(address, Version::V5, None).1, PRESENT);
    broker.stop();
    // Users were set up meanwhile.
    let (broker, address) = start(2, on_disk);
    assert_eq!(try_as(address, Version::V5, ALICE).1, NEW);
    broker.stop();
}

#[test]
fn a_client_that_is_refused_a_session_receives_the_reason() {
    let (broker, address) = start(2, |_| {});
    let (_owner, _) = try_as(address, Version::V5, ALICE);
    let mut stranger = Peer::open(address, Version::V5);
    stranger.send(&Packet::Connect(connect(Version::V5, "device-7", BOB)));
    stranger.receive(|packet| match packet {
        Packet::ConnAck(ack) => {
            assert_eq!(ack.reason, ReasonCode::ClientIdentifierNotValid);
            let why = ack.properties.reason_string.unwrap_or_default();
            assert!(why.contains("another user"), "{why:?}");
        }
        other => panic!("expected CONNACK, got {other:?}"),
    });
    broker.stop();
}

#[test]
fn a_user_may_have_the_client_identifiers_of_the_pattern_only() {
    let (broker, address) = start(2, |config| {
        config.auth.client_id = ClientIdPattern::parse("%u-*").expect("a pattern");
    });
    for (client_id, user, expected) in [
        ("alice-1", ALICE, ReasonCode::Success),
        ("alice-2", BOB, ReasonCode::ClientIdentifierNotValid),
        ("bob", BOB, ReasonCode::ClientIdentifierNotValid),
        ("anything", None, ReasonCode::Success),
        // The broker gives one.
        ("", BOB, ReasonCode::Success),
    ] {
        let mut peer = Peer::open(address, Version::V5);
        let answer = peer.handshake(&connect(Version::V5, client_id, user));
        assert_eq!(answer.0, expected, "{client_id} {user:?}");
    }
    broker.stop();
}
