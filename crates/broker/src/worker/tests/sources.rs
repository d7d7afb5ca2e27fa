//! Retained messages whose publishers have fewer rights than before.

use crate::door::ask_again;
use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use thrum_access::{
    Admission, Answer, Denial, Gatekeeper, Identity, Login, Question, Reply, Rules,
};
use thrum_codec::packet::{Connect, Packet, Publish, Will};
use thrum_codec::properties::{ConnectProperties, PublishProperties, WillProperties};
use thrum_codec::{QoS, ReasonCode};
use thrum_engine::access::{Access, Shared};
use thrum_engine::workers::WorkerId;
use thrum_routing::Allowance;

use super::{VERSION, Worker, bytes, settle, two_workers_with};
use crate::config::Config;
use crate::mailbox::Mail;
use crate::settings::Settings;

/// The recorded rights of a user.
#[derive(Clone, Debug)]
enum User {
    Has(&'static str),
    /// The user keeps its present rules.
    Unchanged,
    Gone,
    Unavailable,
}

/// Users and their own rules.
#[derive(Debug, Default)]
struct Users {
    all: Mutex<BTreeMap<String, User>>,
    authorizes: bool,
}

impl Users {
    fn set(&self, name: &str, user: User) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(name.to_owned(), user);
    }

    fn answer(&self, identity: &Identity) -> Answer {
        let name = identity.username.as_deref().unwrap_or_default();
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let deny = |reason| {
            Answer::Deny(Denial {
                reason,
                what: "",
                detail: "a test".into(),
            })
        };
        match all.get(name) {
            Some(User::Has(rules)) => Answer::Admit(Box::new(Admission {
                identity: identity.clone(),
                rules: Some(Arc::new(Rules::parse(rules, "own").unwrap())),
                ..Admission::default()
            })),
            Some(User::Unchanged) => Answer::Unchanged,
            Some(User::Unavailable) => deny(ReasonCode::ServerUnavailable),
            Some(User::Gone) | None => deny(ReasonCode::NotAuthorized),
        }
    }
}

impl Gatekeeper for Users {
    fn login(&self, login: Login, reply: Reply<Answer>) {
        reply(self.answer(&login.identity));
    }

    fn refresh(&self, identity: Arc<Identity>, reply: Reply<Answer>) {
        reply(self.answer(&identity));
    }

    fn has_authorizers(&self) -> bool {
        self.authorizes
    }

    fn authorize(&self, _: Question, reply: Reply<Option<bool>>) {
        reply(Some(true));
    }
}

/// Two workers, and the access in force on them.
struct Node {
    workers: [Worker; 2],
    config: Config,
    access: Access,
    generation: u64,
}

impl Node {
    fn new(change: impl FnOnce(&mut Config, &mut Access)) -> Self {
        let mut config = Config::default();
        let mut access = Access::default();
        access.policy.checks_retained_source = true;
        change(&mut config, &mut access);
        let workers = two_workers_with(|parts| {
            parts.config = config.clone();
            parts.access = access.clone();
        });
        Self {
            workers,
            config,
            access,
            generation: 1,
        }
    }

    fn with_users(users: &Arc<Users>) -> Self {
        Self::new(|_, access| {
            access.gatekeeper = Some(Arc::clone(users) as Arc<dyn Gatekeeper>);
        })
    }

    /// A client of one of the workers.
    fn client(&mut self, worker: usize, client_id: &str, username: Option<&str>) -> UnixStream {
        self.client_with(worker, client_id, (username, None))
    }

    fn client_with(
        &mut self,
        worker: usize,
        client_id: &str,
        (username, will): (Option<&str>, Option<Will<'_>>),
    ) -> UnixStream {
        let mut client = self.workers[worker].accepted();
        let connect = bytes(&Packet::Connect(Connect {
            version: VERSION,
            is_bridge: false,
            clean_start: true,
            keep_alive: 60,
            client_id,
            will,
            username,
            password: None,
            properties: ConnectProperties::default(),
        }));
        client.write_all(&connect).unwrap();
        settle(&mut self.workers);
        client
    }

    fn retain(&mut self, client: &mut UnixStream, topic: &str) {
        let publish = bytes(&Packet::Publish(Publish {
            dup: false,
            qos: QoS::AtMostOnce,
            retain: true,
            topic,
            packet_id: None,
            properties: PublishProperties::default(),
            payload: b"x",
        }));
        client.write_all(&publish).unwrap();
        settle(&mut self.workers);
    }

    /// Puts other rules for all clients in force.
    fn set_rules(&mut self, rules: &str) {
        self.access.policy.rules = Arc::new(Rules::parse(rules, "test").unwrap());
        self.reload();
    }

    /// Puts another access in force, and continues until the retained messages follow it.
    fn reload(&mut self) {
        self.generation += 1;
        let shared = Shared {
            access: self.access.clone(),
            generation: self.generation,
        };
        let settings = Arc::new(Settings::new(&self.config, &Arc::new(shared)));
        for number in 0..2 {
            let mailbox = self.workers[0].node.mailbox(WorkerId::new(number));
            mailbox.push(Mail::Reload(Arc::clone(&settings)));
        }
        settle(&mut self.workers);
        self.run_housekeeping();
    }

    /// A second later.
    fn run_housekeeping(&mut self) {
        let traffic = &mut self.workers[0].traffic;
        traffic.reviews.watch(&traffic.engine);
        while self.workers[0].traffic.reviews.are_due() {
            settle(&mut self.workers);
        }
        settle(&mut self.workers);
    }

    /// Topics of the messages that a new subscriber to everything would get.
    fn shown(&self) -> Vec<String> {
        let mut allowance = Allowance {
            messages: 1_000,
            visits: 10_000,
        };
        let mut messages = Vec::new();
        let store = &self.workers[0].node.state.retained;
        assert!(
            store
                .page("#", None, &mut allowance, &mut messages)
                .is_none()
        );
        let topics = messages.iter().map(|message| message.topic().to_owned());
        let mut topics: Vec<_> = topics.collect();
        topics.sort();
        topics
    }
}

#[test]
fn changed_rules_withhold_retained_messages_of_clients_on_every_worker() {
    let mut node = Node::new(|_, _| ());
    for worker in 0..2 {
        let mut client = node.client(worker, &format!("c{worker}"), None);
        node.retain(&mut client, &format!("a/{worker}"));
        node.retain(&mut client, &format!("b/{worker}"));
    }
    node.set_rules("deny all pub a/#\nallow all pub #");
    assert_eq!(node.shown(), ["b/0", "b/1"]);
    assert_eq!(node.workers[0].node.state.retained.withheld(), 2);
    node.set_rules("deny client:c1 pub #");
    assert_eq!(node.shown(), ["a/0", "b/0"]);
    node.set_rules("");
    assert_eq!(node.shown(), ["a/0", "a/1", "b/0", "b/1"]);
}

#[test]
fn without_the_key_all_messages_stay_and_withheld_ones_are_delivered_again() {
    let mut node = Node::new(|_, access| access.policy.checks_retained_source = false);
    let mut client = node.client(1, "c", None);
    node.retain(&mut client, "before");
    node.set_rules("deny all pub #");
    assert_eq!(node.shown(), ["before"]);
    node.access.policy.checks_retained_source = true;
    node.set_rules("");
    node.retain(&mut client, "since");
    node.set_rules("deny all pub #");
    assert_eq!(node.shown(), ["before"], "it has no source");
    node.access.policy.checks_retained_source = false;
    node.set_rules("deny all pub #");
    assert_eq!(node.shown(), ["before", "since"]);
}

#[test]
fn retained_messages_of_a_user_are_withheld_with_the_user_and_its_rules() {
    let users = Arc::new(Users::default());
    for name in ["ann", "bob", "eve"] {
        users.set(name, User::Has("allow all pub #"));
    }
    let mut node = Node::with_users(&users);
    for (worker, name) in [(0, "ann"), (1, "bob"), (1, "eve")] {
        let mut client = node.client(worker, name, Some(name));
        node.retain(&mut client, &format!("a/{name}"));
        node.retain(&mut client, &format!("b/{name}"));
    }
    users.set("ann", User::Gone);
    users.set("bob", User::Has("allow all pub a/#\ndeny all pub #"));
    node.reload();
    assert_eq!(node.shown(), ["a/bob", "a/eve", "b/eve"]);
    users.set("ann", User::Has("allow all pub #"));
    node.reload();
    assert_eq!(node.shown(), ["a/ann", "a/bob", "a/eve", "b/ann", "b/eve"]);
}

#[test]
fn nothing_changes_for_a_publisher_until_the_gatekeeper_decides() {
    let users = Arc::new(Users::default());
    users.set("ann", User::Has("allow all pub #"));
    let mut node = Node::with_users(&users);
    let mut client = node.client(1, "c", Some("ann"));
    node.retain(&mut client, "a");
    drop(client);
    users.set("ann", User::Unavailable);
    node.set_rules("deny all pub #");
    assert_eq!(node.shown(), ["a"]);
    users.set("ann", User::Has(""));
    node.run_housekeeping();
    assert_eq!(node.shown(), ["a"], "it is asked again after a while");
    let now = node.workers[0].traffic.engine.core.turn.now;
    node.workers[0].traffic.engine.core.turn.now = now.plus(Duration::from_secs(31));
    let traffic = &mut node.workers[0].traffic;
    traffic.reviews.watch(&traffic.engine);
    while node.workers[0].traffic.reviews.are_due() {
        let traffic = &mut node.workers[0].traffic;
        traffic.reviews.advance(&traffic.edge, &mut traffic.engine);
        node.workers[0].handle_mail();
    }
    assert_eq!(node.shown(), Vec::<String>::new());
}

/// Admits users, and withholds every later answer about them.
struct Silent(Users, Mutex<Vec<Reply<Answer>>>);

impl fmt::Debug for Silent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Silent")
    }
}

impl Gatekeeper for Silent {
    fn login(&self, login: Login, reply: Reply<Answer>) {
        self.0.login(login, reply);
    }

    fn refresh(&self, _: Arc<Identity>, reply: Reply<Answer>) {
        self.1.lock().unwrap().push(reply);
    }

    fn authorize(&self, _: Question, _: Reply<Option<bool>>) {}
}

#[test]
fn a_gatekeeper_that_never_answers_delays_no_other_client() {
    let users = Users::default();
    users.set("ann", User::Has("allow all pub #"));
    let silent = Arc::new(Silent(users, Mutex::default()));
    let mut node = Node::new(|_, access| {
        access.gatekeeper = Some(Arc::clone(&silent) as Arc<dyn Gatekeeper>);
    });
    let mut client = node.client(0, "c", Some("ann"));
    node.retain(&mut client, "a");
    let mut nobody = node.client(0, "anonymous", None);
    node.retain(&mut nobody, "b");
    node.set_rules("deny all pub #");
    assert_eq!(node.shown(), ["a", "b"]);
    assert!(!node.workers[0].traffic.reviews.are_due(), "it waits");
    node.workers[0].traffic.engine.core.turn.now = node.workers[0]
        .traffic
        .engine
        .core
        .turn
        .now
        .plus(Duration::from_secs(76));
    let traffic = &mut node.workers[0].traffic;
    traffic.reviews.watch(&traffic.engine);
    while node.workers[0].traffic.reviews.are_due() {
        let traffic = &mut node.workers[0].traffic;
        traffic.reviews.advance(&traffic.edge, &mut traffic.engine);
    }
    assert_eq!(node.shown(), ["a"]);
    // A late answer.
    for reply in silent.1.lock().unwrap().drain(..) {
        reply(Answer::Unchanged);
    }
    settle(&mut node.workers);
    assert_eq!(node.shown(), ["a"]);
}

#[test]
fn rules_of_a_token_are_not_kept_and_messages_that_they_may_have_allowed_stay() {
    let users = Arc::new(Users::default());
    users.set("ann", User::Has("allow all pub #"));
    let mut node = Node::with_users(&users);
    node.access.policy.allows_by_default = false;
    let mut client = node.client(0, "c", Some("ann"));
    node.retain(&mut client, "a");
    node.retain(&mut client, "b");
    users.set("ann", User::Unchanged);
    node.set_rules("deny all pub b");
    assert_eq!(node.shown(), ["a"]);
    node.set_rules("");
    assert_eq!(node.shown(), ["a", "b"]);
}

#[test]
fn messages_that_only_a_service_can_authorize_stay() {
    let users = Arc::new(Users {
        authorizes: true,
        ..Users::default()
    });
    users.set("ann", User::Has("allow all pub #"));
    let mut node = Node::with_users(&users);
    node.access.policy.allows_by_default = false;
    let mut client = node.client(0, "c", Some("ann"));
    node.retain(&mut client, "a");
    node.retain(&mut client, "b");
    users.set("ann", User::Has("deny all pub b"));
    node.reload();
    assert_eq!(node.shown(), ["a"]);
}

#[test]
fn events_contain_topics_without_the_mount_point_of_the_publisher() {
    let mut node = Node::new(|config, _| {
        let listener = config.listeners.get_mut("mqtt").unwrap();
        listener.mount_point = "tenant/".to_owned();
    });
    let mut client = node.client(1, "c", None);
    node.retain(&mut client, "a");
    node.retain(&mut client, "b");
    node.set_rules("deny all pub tenant/#\ndeny all pub a");
    assert_eq!(node.shown(), ["tenant/b"]);
}

#[test]
fn a_will_comes_from_the_client_that_left_it() {
    let mut node = Node::new(|_, _| ());
    let will = Will {
        topic: "gone",
        payload: b"x",
        qos: QoS::AtMostOnce,
        retain: true,
        properties: WillProperties::default(),
    };
    let client = node.client_with(1, "c", (None, Some(will)));
    drop(client);
    settle(&mut node.workers);
    assert_eq!(node.shown(), ["gone"]);
    node.set_rules("deny client:c pub gone");
    assert_eq!(node.shown(), Vec::<String>::new());
}

#[test]
fn changed_rules_of_a_connected_client_apply() {
    let users = Arc::new(Users::default());
    users.set("ann", User::Has("allow all pub #"));
    let mut node = Node::with_users(&users);
    let mut client = node.client(1, "c", Some("ann"));
    node.retain(&mut client, "a");
    users.set("ann", User::Has("deny all pub a"));
    let slot = node.workers[1]
        .traffic
        .engine
        .core
        .sessions
        .find("c")
        .unwrap();
    let traffic = &node.workers[1].traffic;
    ask_again(&traffic.edge, &traffic.engine, slot);
    settle(&mut node.workers);
    node.run_housekeeping();
    assert_eq!(node.shown(), Vec::<String>::new());
}
