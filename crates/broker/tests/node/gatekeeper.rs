//! Admission and rights, decided by a gatekeeper of the test's own.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use thrum_access::{
    Admission, Answer, Denial, Exchange, Gatekeeper, Identity, Login, Question, Reply, Rules,
};
use thrum_broker::{Access, Broker, Policy};
use thrum_codec::packet::{
    Connect, Packet, Subscribe, SubscriptionOptions, SubscriptionRequest, SubscriptionRequests,
};
use thrum_codec::properties::SubscribeProperties;
use thrum_codec::{PacketId, QoS, ReasonCode, TopicFilter, Version};

use crate::peer::{Peer, connect_packet, start_with, will};

/// Admits clients with the password `right`, with rules by user name; records the requests about
/// topics.
#[derive(Debug, Default)]
pub(crate) struct TestGatekeeper {
    rules: Mutex<Option<Arc<Rules>>>,
    pub(crate) is_gone: Mutex<bool>,
    pub(crate) asked: Mutex<Vec<(String, bool)>>,
    decides: bool,
    /// Questions about topics get no answer.
    is_silent: bool,
    logins: Logins,
    held: Held,
}

/// The results of logins.
#[derive(Debug, Default, PartialEq)]
enum Logins {
    /// They are judged by their password.
    #[default]
    Judged,
    /// The test answers them.
    Held,
    /// They get no answer.
    Lost,
}

/// Logins that wait.
#[derive(Default)]
struct Held(Mutex<Vec<(Identity, Reply<Answer>)>>);

impl std::fmt::Debug for Held {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Held")
    }
}

impl TestGatekeeper {
    pub(crate) fn with_rules(rules: &str) -> Self {
        let rules = Rules::parse(rules, "test").expect("the test's rules");
        Self {
            rules: Mutex::new(Some(Arc::new(rules))),
            ..Self::default()
        }
    }

    /// Decides about topics: those with a secret are denied.
    pub(crate) fn deciding() -> Self {
        Self {
            decides: true,
            ..Self::default()
        }
    }

    /// Is responsible for topics, and never answers.
    pub(crate) fn silent() -> Self {
        Self {
            is_silent: true,
            ..Self::deciding()
        }
    }

    fn admission(&self, identity: Identity) -> Answer {
        Answer::Admit(Box::new(Admission {
            identity,
            rules: self.rules.lock().expect("one at a time").clone(),
            ..Admission::default()
        }))
    }
}

impl Gatekeeper for TestGatekeeper {
    fn login(&self, login: Login, reply: Reply<Answer>) {
        if self.logins == Logins::Held {
            let mut held = self.held.0.lock().expect("one at a time");
            held.push((login.identity, reply));
            return;
        }
        if self.logins == Logins::Lost {
            return;
        }
        let is_right = login
            .password
            .as_ref()
            .is_some_and(|one| one.expose() == b"right");
        reply(if is_right {
            self.admission(login.identity)
        } else {
            Answer::Deny(Denial {
                reason: ReasonCode::BadUserNameOrPassword,
                what: "bad user name or password",
                detail: "wrong password".into(),
            })
        });
    }

    fn step(&self, _: Exchange, _: Vec<u8>, reply: Reply<Answer>) {
        reply(Answer::Unchanged);
    }

    fn refresh(&self, identity: Arc<Identity>, reply: Reply<Answer>) {
        let is_gone = *self.is_gone.lock().expect("one at a time");
        reply(if is_gone {
            Answer::Deny(Denial {
                reason: ReasonCode::NotAuthorized,
                what: "no longer admitted",
                detail: "the user is gone".into(),
            })
        } else {
            self.admission((*identity).clone())
        });
    }

    fn has_authorizers(&self) -> bool {
        self.decides
    }

    fn authorize(&self, question: Question, reply: Reply<Option<bool>>) {
        if self.is_silent {
            return;
        }
        let topic = question.topic.to_string();
        let allowed = !topic.contains("secret");
        self.asked
            .lock()
            .expect("one at a time")
            .push((topic, question.is_publish));
        reply(Some(allowed));
    }
}

pub(crate) fn policy() -> Policy {
    Policy {
        allows_by_default: false,
        ..Policy::default()
    }
}

pub(crate) fn access(keeper: &Arc<TestGatekeeper>, policy: Policy) -> Access {
    Access {
        gatekeeper: Some(Arc::clone(keeper) as Arc<dyn Gatekeeper>),
        policy,
    }
}

pub(crate) fn start(
    keeper: &Arc<TestGatekeeper>,
    policy: Policy,
) -> (Broker, std::net::SocketAddr) {
    start_with(access(keeper, policy), 2, |config| {
        config.sys.interval = Duration::from_millis(100);
    })
}

pub(crate) fn login<'a>(client_id: &'a str, password: &'a [u8]) -> Connect<'a> {
    Connect {
        username: Some("user"),
        password: Some(password),
        ..connect_packet(Version::V5, client_id)
    }
}

pub(crate) fn admitted(address: std::net::SocketAddr, client_id: &str) -> Peer {
    let mut peer = Peer::open(address, Version::V5);
    let answer = peer.handshake(&login(client_id, b"right"));
    assert_eq!(answer, (ReasonCode::Success, false));
    peer
}

#[test]
fn the_gatekeeper_decides_which_clients_are_admitted() {
    let keeper = Arc::new(TestGatekeeper::with_rules("allow all pubsub #"));
    let (broker, address) = start(&keeper, policy());
    // One and a half packets arrive with CONNECT: they wait with it.
    let mut inside = admitted(address, "inside");
    assert_eq!(inside.subscribe("a", QoS::AtMostOnce), ReasonCode::Success);
    let mut outside = Peer::open(address, Version::V5);
    let refusal = outside.handshake(&login("outside", b"wrong"));
    assert_eq!(refusal, (ReasonCode::BadUserNameOrPassword, false));
    outside.assert_closed();
    broker.stop();
}

#[test]
fn a_gatekeeper_that_gives_no_answer_admits_no_client() {
    let keeper = Arc::new(TestGatekeeper {
        logins: Logins::Lost,
        ..TestGatekeeper::default()
    });
    let (broker, address) = start(&keeper, policy());
    let mut peer = Peer::open(address, Version::V5);
    let refusal = peer.handshake(&login("waits", b"right"));
    assert_eq!(refusal, (ReasonCode::ServerUnavailable, false));
    broker.stop();
}

#[test]
fn publishes_subscriptions_and_wills_follow_the_rules() {
    let rules = "allow all pub devices/%c/#\nallow all sub devices/%c/#";
    let keeper = Arc::new(TestGatekeeper::with_rules(rules));
    let (broker, address) = start(&keeper, policy());
    let mut own = admitted(address, "own");
    assert_eq!(
        own.publish_acknowledged("devices/other/x", b"no"),
        ReasonCode::NotAuthorized
    );
    assert_eq!(
        own.subscribe("devices/other/#", QoS::AtLeastOnce),
        ReasonCode::NotAuthorized
    );
    assert_eq!(
        own.subscribe("$share/g/#", QoS::AtLeastOnce),
        ReasonCode::NotAuthorized
    );
    assert_eq!(
        own.subscribe("#", QoS::AtLeastOnce),
        ReasonCode::GrantedQoS1
    );
    let mut other = admitted(address, "other");
    other.publish_acknowledged("devices/other/x", b"not for own");
    own.publish("devices/own/x", b"for own", QoS::AtMostOnce, false);
    assert_eq!(own.message().payload, b"for own");
    let mut leaving = Peer::open(address, Version::V5);
    let connect = Connect {
        will: Some(will("devices/own/will", b"not mine")),
        ..login("leaving", b"right")
    };
    assert_eq!(
        leaving.handshake(&connect),
        (ReasonCode::NotAuthorized, false)
    );
    own.assert_silent();
    broker.stop();
}

#[test]
fn retained_messages_follow_the_rules() {
    let keeper = Arc::new(TestGatekeeper::with_rules(
        "allow all pub #\nallow all sub mine/#",
    ));
    let (broker, address) = start(&keeper, policy());
    let mut peer = admitted(address, "reader");
    peer.publish("mine/kept", b"1", QoS::AtMostOnce, true);
    peer.publish("other/kept", b"2", QoS::AtMostOnce, true);
    peer.publish_acknowledged("other/x", b"");
    peer.subscribe("#", QoS::AtMostOnce);
    assert_eq!(peer.message().topic, "mine/kept");
    peer.assert_silent();
    broker.stop();
}

#[test]
fn a_remote_authorizer_is_asked_once_for_a_topic_and_order_is_kept() {
    let keeper = Arc::new(TestGatekeeper::deciding());
    let (broker, address) = start(&keeper, policy());
    let mut peer = admitted(address, "asks");
    assert_eq!(
        peer.subscribe("open/#", QoS::AtLeastOnce),
        ReasonCode::GrantedQoS1
    );
    assert_eq!(
        peer.subscribe("secret/#", QoS::AtLeastOnce),
        ReasonCode::NotAuthorized
    );
    for number in 0..20_u8 {
        peer.publish("open/x", &[number], QoS::AtMostOnce, false);
    }
    for number in 0..20_u8 {
        assert_eq!(peer.message().payload, [number]);
    }
    assert_eq!(
        peer.publish_acknowledged("secret/x", b""),
        ReasonCode::NotAuthorized
    );
    let asked = keeper.asked.lock().expect("one at a time").clone();
    let expected = [
        ("open/#", false),
        ("secret/#", false),
        ("open/x", true),
        ("secret/x", true),
    ];
    assert_eq!(
        asked,
        expected.map(|(topic, publish)| (topic.to_owned(), publish))
    );
    broker.stop();
}

#[test]
fn a_service_is_asked_about_each_of_many_filters_once() {
    let keeper = Arc::new(TestGatekeeper::deciding());
    let few = Policy {
        decisions_max: 1,
        decision_ttl: Duration::ZERO,
        ..policy()
    };
    let (broker, address) = start(&keeper, few);
    let mut peer = admitted(address, "many");
    let filters: Vec<String> = (0..300).map(|number| format!("open/{number}")).collect();
    let requests: Vec<SubscriptionRequest<'_>> = filters
        .iter()
        .map(|filter| SubscriptionRequest {
            filter: TopicFilter::parse(filter).expect("a filter"),
            options: SubscriptionOptions::default(),
        })
        .collect();
    peer.send(&Packet::Subscribe(Subscribe {
        packet_id: PacketId::new(1).expect("above 0"),
        properties: SubscribeProperties::default(),
        requests: SubscriptionRequests::Listed(&requests),
    }));
    let codes = peer.receive(|packet| match packet {
        Packet::SubAck(answer) => answer.codes.iter().collect::<Vec<ReasonCode>>(),
        other => panic!("expected SUBACK, got {other:?}"),
    });
    let granted = codes.iter().filter(|code| **code == ReasonCode::Success);
    // More filters than a packet may have.
    let refused = codes
        .iter()
        .filter(|code| **code == ReasonCode::QuotaExceeded);
    assert_eq!((granted.count(), refused.count()), (256, 44));
    let asked = keeper.asked.lock().expect("one at a time").len();
    assert_eq!(asked, 256);
    broker.stop();
}

#[test]
fn a_user_that_is_gone_is_disconnected_when_users_change() {
    let keeper = Arc::new(TestGatekeeper::with_rules("allow all pubsub #"));
    let (broker, address) = start(&keeper, policy());
    let mut peer = admitted(address, "leaves");
    *keeper.is_gone.lock().expect("one at a time") = true;
    broker.access_handle().set(access(&keeper, policy()));
    assert_eq!(peer.disconnect_reason(), ReasonCode::NotAuthorized);
    broker.stop();
}

#[test]
fn a_user_that_is_gone_before_its_login_is_answered_is_disconnected() {
    let keeper = Arc::new(TestGatekeeper {
        logins: Logins::Held,
        ..TestGatekeeper::with_rules("allow all pubsub #")
    });
    let (broker, address) = start(&keeper, policy());
    let mut peer = Peer::open(address, Version::V5);
    peer.send(&Packet::Connect(login("late", b"right")));
    let held = loop {
        if let Some(held) = keeper.held.0.lock().expect("one at a time").pop() {
            break held;
        }
        std::thread::yield_now();
    };
    *keeper.is_gone.lock().expect("one at a time") = true;
    let settling = broker.access_handle().set(access(&keeper, policy()));
    assert_eq!(settling.wait(Duration::from_secs(5)), Ok(()));
    let (identity, reply) = held;
    reply(keeper.admission(identity));
    let answer = peer.receive(|packet| match packet {
        Packet::ConnAck(answer) => answer.reason,
        other => panic!("expected CONNACK, got {other:?}"),
    });
    assert_eq!(answer, ReasonCode::Success);
    assert_eq!(peer.disconnect_reason(), ReasonCode::NotAuthorized);
    broker.stop();
}

#[test]
fn other_rules_end_subscriptions_that_they_do_not_allow() {
    let keeper = Arc::new(TestGatekeeper::default());
    let rules = |text: &str| Policy {
        rules: Arc::new(Rules::parse(text, "test").expect("the test's rules")),
        ..policy()
    };
    let (broker, address) = start(&keeper, rules("allow all pubsub #"));
    let mut stays = admitted(address, "stays");
    stays.subscribe("open/#", QoS::AtMostOnce);
    let mut goes = admitted(address, "goes");
    goes.subscribe("closed/#", QoS::AtMostOnce);
    let fewer = rules("allow all pub #\nallow all sub open/#");
    broker.access_handle().set(access(&keeper, fewer));
    assert_eq!(goes.disconnect_reason(), ReasonCode::NotAuthorized);
    stays.publish("open/x", b"still here", QoS::AtMostOnce, false);
    assert_eq!(stays.message().payload, b"still here");
    broker.stop();
}
