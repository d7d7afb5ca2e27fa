//! HTTP services.

use std::time::Duration;

use serde_json::{Value, json};
use thrum_backends::brief_clients::{Accounts, packet};
use thrum_backends::http::{HttpService, Request, Response};
use thrum_backends::node::Node;
use thrum_backends::outage::{TIMEOUT, run_outage};
use thrum_backends::restart::{Freezable as _, Restartable as _};
use thrum_backends::server::Tls;
use thrum_conformance::clock;
use thrum_conformance::packets::{Connect, Publish, Version, subscribe};
use thrum_conformance::wire::{Event, Wire};

const NOT_AUTHORIZED: u8 = 0x87;
/// Longest time until a restored service is asked again: pauses have up to 2 s.
const RETURN_MAX: Duration = Duration::from_secs(30);
/// Longest time of a decision without an answer: the time limit, and a margin for a busy machine.
const DECISION_MAX: Duration = Duration::from_secs(6);

/// Knows `ann`, `root` and what may be published below `ask`.
fn judge(request: &Request) -> Response {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
    if request.path == "/decide" {
        let is_allowed = text("topic").starts_with("ask/yes/") && text("action") == "publish";
        let result = if is_allowed { "allow" } else { "deny" };
        return (200, json!({ "result": result }).to_string());
    }
    let rules = [
        ("publish", "up/${username}/#"),
        ("subscribe", "down/${client_id}/+"),
    ]
    .map(|(action, topic)| json!({ "permission": "allow", "action": action, "topic": topic }));
    match (text("username").as_str(), text("password").as_str()) {
        ("ann", "secret") => (200, json!({ "result": "allow", "acl": rules }).to_string()),
        ("root", "secret") => (200, r#"{"result":"allow","is_superuser":true}"#.to_owned()),
        ("ann" | "root", _) => (403, String::new()),
        _ => (404, String::new()),
    }
}

#[test]
fn a_service_is_killed_suspended_and_restored() {
    let tls = Tls::new();
    let mut service = HttpService::start_tls(&tls, judge);
    let files = thrum_conformance::folder::Folder::new("mqtt-https");
    let node = Node::start(&json!({ "auth": { "http": { "web": {
        "url": service.url("/auth"),
        "ca": files.write("ca.pem", &tls.certificate),
        "timeout": TIMEOUT,
    }}}}));
    run_outage(&node, &Accounts::with_passwords(), "web", |outage| {
        outage.begin(|| service.kill());
        outage.end(|| service.restart());
        outage.begin(|| service.freeze());
        outage.end(|| service.thaw());
    });
}

/// A publisher to a new topic each time, and a subscriber of all messages.
struct Asker {
    ann: Wire,
    root: Wire,
    number: u32,
    /// Topics of accepted messages.
    taken: Vec<String>,
}

impl Asker {
    fn start(node: &Node) -> Self {
        let enter = |username| {
            let connect = Connect::new(Version::V5).credentials(username, "secret");
            Wire::connect(node.address(), &connect).0
        };
        let mut root = enter("root");
        root.send(&subscribe(Version::V5, 1, &[("#", 0)]));
        root.expect_ack(0x90, 1, &[0]);
        Self {
            ann: enter("ann"),
            root,
            number: 0,
            taken: Vec::new(),
        }
    }

    /// Publishes to a new topic; returns the reason code.
    fn publish(&mut self, branch: &str) -> u8 {
        self.number += 1;
        let topic = format!("ask/{branch}/{}", self.number);
        let begun = clock::now();
        self.ann
            .send(&Publish::new(Version::V5, &topic, 1, b"x").bytes());
        let codes = packet(&mut self.ann, "PUBACK").ack(Version::V5).codes;
        let took = begun.elapsed();
        assert!(took < DECISION_MAX, "{topic} is decided after {took:?}");
        if codes == [0] {
            self.taken.push(topic);
        }
        codes[0]
    }

    fn publishes_again(&mut self) {
        let deadline = clock::now() + RETURN_MAX;
        while self.publish("yes") != 0 {
            assert!(clock::now() < deadline, "the service is not asked again");
            clock::sleep(Duration::from_millis(50));
        }
    }

    /// Delivered and accepted topics.
    fn delivered(mut self) -> (Vec<String>, Vec<String>) {
        self.root
            .send(&Publish::new(Version::V5, "end", 0, b"").bytes());
        let mut delivered = Vec::new();
        loop {
            let topic = packet(&mut self.root, "a message")
                .publish(Version::V5)
                .topic;
            if topic == "end" {
                return (delivered, self.taken);
            }
            delivered.push(topic);
        }
    }
}

#[test]
fn undecided_publishes_are_denied_and_not_delivered() {
    let mut service = HttpService::start(judge);
    let node = Node::start(&json!({ "auth": { "http": { "web": {
        "url": service.url("/auth"),
        "authorize_url": service.url("/decide"),
        "timeout": TIMEOUT,
    }}}}));
    let mut asker = Asker::start(&node);
    let denied = |asker: &mut Asker| {
        for _ in 0..3 {
            assert_eq!(asker.publish("yes"), NOT_AUTHORIZED);
        }
    };
    assert_eq!(asker.publish("yes"), 0);
    assert_eq!(asker.publish("no"), NOT_AUTHORIZED);
    service.kill();
    denied(&mut asker);
    service.restart();
    asker.publishes_again();
    service.freeze();
    denied(&mut asker);
    service.thaw();
    asker.publishes_again();
    assert_eq!(asker.publish("no"), NOT_AUTHORIZED);
    assert!(matches!(
        asker.ann.next(Duration::from_millis(1)),
        Event::Silence
    ));
    let (delivered, taken) = asker.delivered();
    assert_eq!(delivered, taken);
    node.assert_sound();
}
