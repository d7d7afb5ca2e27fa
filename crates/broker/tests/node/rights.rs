//! Rights that change while messages wait, and a proof that arrives when its connection is gone.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use thrum_access::{Admission, Answer, Denial, Gatekeeper, Identity, Login, Reply, Rules};
use thrum_broker::{Broker, Policy};
use thrum_codec::packet::{Auth, Connect, Packet};
use thrum_codec::properties::{AuthProperties, ConnectProperties};
use thrum_codec::{QoS, ReasonCode, Version};

use crate::gatekeeper::{TestGatekeeper, access, policy};
use crate::peer::{Peer, connect_packet, start_with};

const EVERYTHING: &str = "allow all pubsub #\nallow all sub $SYS/#";
const PATIENCE: Duration = Duration::from_secs(5);

/// A folder of the test's own, removed at its end.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("thrum-node-{name}-{}", std::process::id()));
        std::fs::remove_dir_all(&path).ok();
        std::fs::create_dir_all(&path).expect("a folder for the test");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

fn rules(text: &str) -> Policy {
    Policy {
        rules: Arc::new(Rules::parse(text, "test").expect("the test's rules")),
        ..policy()
    }
}

/// A client with a session that outlives its connection.
fn resume(address: SocketAddr, version: Version, client_id: &str) -> (Peer, bool) {
    let mut peer = Peer::open(address, version);
    let expiry = (version == Version::V5).then_some(300);
    let (reason, present) = peer.handshake(&Connect {
        clean_start: false,
        properties: ConnectProperties {
            session_expiry: expiry,
            ..ConnectProperties::default()
        },
        username: Some("user"),
        password: Some(b"right"),
        ..connect_packet(version, client_id)
    });
    assert_eq!(reason, ReasonCode::Success);
    (peer, present)
}

fn publisher(address: SocketAddr) -> Peer {
    resume(address, Version::V5, "publisher").0
}

fn change(broker: &Broker, text: &str) {
    let keeper = Arc::new(TestGatekeeper::default());
    let settling = broker.access_handle().set(access(&keeper, rules(text)));
    assert_eq!(settling.wait(PATIENCE), Ok(()));
}

/// Waits until so many messages were dropped because they may not be received any more.
fn assert_dropped(address: SocketAddr, expected: u32) {
    let (mut watcher, _) = resume(address, Version::V5, "watcher");
    let topic = "$SYS/broker/publish/messages/dropped/not_allowed";
    watcher.subscribe(topic, QoS::AtMostOnce);
    while watcher.message().payload != expected.to_string().as_bytes() {}
}

/// Each way in which a session can be kept: by protocol version, number of workers, in memory or on
/// the disk.
fn for_each_kind(name: &str, check: impl Fn(&Broker, SocketAddr, Version)) {
    for (version, workers, is_durable) in [
        (Version::V5, 1, false),
        (Version::V311, 4, false),
        (Version::V311, 1, true),
        (Version::V5, 4, true),
    ] {
        let folder = Folder::new(&format!("{name}-{workers}-{is_durable}"));
        let keeper = Arc::new(TestGatekeeper::default());
        let access = access(&keeper, rules(EVERYTHING));
        let (broker, address) = start_with(access, workers, |config| {
            config.sys.interval = Duration::from_millis(50);
            config.limits.client.inflight = 1;
            if is_durable {
                config.node.data_dir.clone_from(&folder.0);
            }
        });
        check(&broker, address, version);
        broker.stop();
    }
}

#[test]
fn rights_revoked_while_a_client_is_disconnected_apply_to_queued_messages() {
    for_each_kind("away", |broker, address, version| {
        let (mut peer, _) = resume(address, version, "away");
        peer.subscribe("open/#", QoS::AtLeastOnce);
        peer.subscribe("kept/#", QoS::AtLeastOnce);
        peer.leave();
        let mut publisher = publisher(address);
        for topic in ["open/1", "kept/2", "open/3"] {
            publisher.publish_acknowledged(topic, b"waits");
        }
        change(
            broker,
            &format!("deny client:away sub open/#\n{EVERYTHING}"),
        );
        assert_dropped(address, 2);
        // Allowed again, it is a new right, and not the one from before.
        change(broker, EVERYTHING);
        let (mut peer, present) = resume(address, version, "away");
        assert!(present);
        assert_eq!(peer.message().topic, "kept/2");
        peer.assert_silent();
    });
}

#[test]
fn partly_revoked_rights_apply_to_queued_messages() {
    for_each_kind("part", |broker, address, version| {
        let (mut peer, _) = resume(address, version, "away");
        peer.subscribe("open/#", QoS::AtLeastOnce);
        peer.leave();
        let mut publisher = publisher(address);
        for topic in ["open/secret", "open/2"] {
            publisher.publish_acknowledged(topic, b"waits");
        }
        change(broker, &format!("deny all sub open/secret\n{EVERYTHING}"));
        assert_dropped(address, 1);
        let (mut peer, present) = resume(address, version, "away");
        assert!(present);
        assert_eq!(peer.message().topic, "open/2");
        peer.assert_silent();
    });
}

#[test]
fn a_client_with_a_full_window_is_sent_nothing_more_of_what_it_may_not_have() {
    for_each_kind("window", |broker, address, version| {
        let (mut peer, _) = resume(address, version, "full");
        peer.subscribe("open/#", QoS::AtLeastOnce);
        let mut publisher = publisher(address);
        for number in 0..4 {
            publisher.publish_acknowledged(&format!("open/{number}"), b"waits");
        }
        assert_eq!(peer.message().topic, "open/0");
        change(broker, &format!("deny all sub open/#\n{EVERYTHING}"));
        if version == Version::V5 {
            assert_eq!(peer.disconnect_reason(), ReasonCode::NotAuthorized);
        }
        peer.assert_closed();
        assert_dropped(address, 3);
        let (mut peer, present) = resume(address, version, "full");
        assert!(present);
        // It was sent while it was allowed, and MQTT wants it to be completed. [MQTT-4.4.0-1]
        let again = peer.message();
        assert_eq!((again.topic.as_str(), again.dup), ("open/0", true));
        peer.acknowledge(again.id);
        peer.assert_silent();
    });
}

/// Admits every client, and keeps the proofs of those that are admitted already.
#[derive(Default)]
struct Slow(Mutex<Vec<(Identity, Reply<Answer>)>>);

impl std::fmt::Debug for Slow {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Slow")
    }
}

impl Slow {
    fn admission(identity: Identity, rules: &str) -> Answer {
        let rules = Rules::parse(rules, "test").expect("the test's rules");
        Answer::Admit(Box::new(Admission {
            identity,
            rules: Some(Arc::new(rules)),
            ..Admission::default()
        }))
    }

    /// The proof that waits.
    fn held(&self) -> (Identity, Reply<Answer>) {
        loop {
            if let Some(held) = self.0.lock().expect("one at a time").pop() {
                return held;
            }
            std::thread::yield_now();
        }
    }
}

impl Gatekeeper for Slow {
    fn login(&self, login: Login, reply: Reply<Answer>) {
        if login.password.is_some() {
            reply(Self::admission(login.identity, "allow all pubsub own/#"));
        } else {
            let mut held = self.0.lock().expect("one at a time");
            held.push((login.identity, reply));
        }
    }
}

fn reauthenticates(address: SocketAddr) -> Peer {
    let mut peer = Peer::open(address, Version::V5);
    let connect = Connect {
        clean_start: false,
        username: Some("user"),
        password: Some(b"right"),
        properties: ConnectProperties {
            session_expiry: Some(300),
            authentication_method: Some("test"),
            ..ConnectProperties::default()
        },
        ..connect_packet(Version::V5, "proves")
    };
    assert_eq!(peer.handshake(&connect).0, ReasonCode::Success);
    peer
}

fn proof() -> Packet<'static> {
    Packet::Auth(Auth {
        reason: ReasonCode::ReAuthenticate,
        properties: AuthProperties {
            authentication_method: Some("test"),
            ..AuthProperties::default()
        },
    })
}

#[test]
fn an_answer_to_a_proof_does_not_apply_to_the_next_connection() {
    let denied = |_| {
        Answer::Deny(Denial {
            reason: ReasonCode::NotAuthorized,
            what: "no longer admitted",
            detail: "the proof is wrong".into(),
        })
    };
    let admitted = |identity| Slow::admission(identity, "allow all pubsub #");
    let answers: [&dyn Fn(Identity) -> Answer; 2] = [&denied, &admitted];
    for answer in answers {
        let keeper = Arc::new(Slow::default());
        let access = thrum_broker::Access {
            gatekeeper: Some(Arc::clone(&keeper) as Arc<dyn Gatekeeper>),
            policy: policy(),
        };
        let (broker, address) = start_with(access, 1, |_| {});
        let mut first = reauthenticates(address);
        first.send(&proof());
        let (identity, reply) = keeper.held();
        let mut second = reauthenticates(address);
        reply(answer(identity));
        // The mail of a worker is opened in each of its turns: behind the first answer it has been.
        for _ in 0..2 {
            assert_ne!(
                second.publish_acknowledged("own/x", b""),
                ReasonCode::NotAuthorized
            );
        }
        assert_eq!(
            second.publish_acknowledged("other/x", b""),
            ReasonCode::NotAuthorized
        );
        broker.stop();
    }
}
