//! The lines that an engine logs, with their level and their fields.

use std::fmt::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use thrum_access::{Admission, Answer as Said, Denial, Gatekeeper, Identity, Login, Reply};
use thrum_codec::{QoS, ReasonCode};
use thrum_engine::access::Shared;
use thrum_engine::retained::{RetainedSource, ReviewStep, SourceReview};
use thrum_engine::review::{Progress, Review};
use thrum_protocol::limits::QueuePolicy;
use tracing::field::{Field, Visit};
use tracing::span;

use crate::node::{Node, connect, connect_with_will};
use crate::rights::shared;

const Q1: QoS = QoS::AtLeastOnce;

/// The lines of one thread.
#[derive(Clone, Debug, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().expect("no test panics with it"))
    }

    /// What is logged during an action.
    fn of(act: impl FnOnce()) -> Vec<String> {
        let lines = Self::default();
        tracing::subscriber::with_default(lines.clone(), act);
        lines.take()
    }
}

/// The text of one line: its message, and its fields behind it.
#[derive(Debug, Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let written = if field.name() == "message" {
            write!(self.message, "{value:?}")
        } else {
            write!(self.fields, " {}={value:?}", field.name())
        };
        written.expect("a text takes everything");
    }
}

impl tracing::Subscriber for Lines {
    fn enabled(&self, _metadata: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _span: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _span: &span::Id, _values: &span::Record<'_>) {}

    fn record_follows_from(&self, _span: &span::Id, _follows: &span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        let Line { message, fields } = line;
        let text = format!("{} {message}{fields}", event.metadata().level());
        let mut lines = self.0.lock().expect("no test panics with it");
        lines.push(text);
    }

    fn enter(&self, _span: &span::Id) {}

    fn exit(&self, _span: &span::Id) {}
}

#[test]
fn the_first_message_that_a_full_queue_drops_is_logged() {
    for (policy, which) in [
        (QueuePolicy::RejectNew, "further"),
        (QueuePolicy::DropOldest, "the oldest"),
    ] {
        let mut node = Node::planned(1, |plan| {
            plan.limits().inflight_max = 1;
            plan.limits().queue.messages_max = 2;
            plan.limits().queue.policy = policy;
        });
        let receiver = node.subscriber(0, "receiver", "t");
        let publisher = node.join(0, "publisher");
        let publish = |node: &mut Node, count: usize| {
            Lines::of(|| (0..count).for_each(|_| node.publish(publisher, "t", "x", Q1)))
        };
        assert_eq!(publish(&mut node, 3), Vec::<String>::new());
        let lines = publish(&mut node, 3);
        assert_eq!(lines.len(), 1, "{lines:?}");
        let expected = format!(
            "WARN queue full: {which} messages for this client are dropped until it takes some \
             client_id=\"receiver\" messages=2 bytes="
        );
        assert!(lines[0].starts_with(&expected), "{lines:?}");
        assert!(lines[0].ends_with(" inflight=1"), "{lines:?}");
        assert_eq!(publish(&mut node, 3), Vec::<String>::new());
        node.send(receiver, &thrum_codec::packet::Packet::PingReq);
        node.settle();
        assert_eq!(publish(&mut node, 3), Vec::<String>::new());
        // The queue recovers, and the next drop is logged again.
        node.drain(receiver);
        assert_eq!(publish(&mut node, 3), Vec::<String>::new());
        assert_eq!(publish(&mut node, 3).len(), 1);
    }
}

#[test]
fn a_rise_of_the_memory_level_is_a_warning_and_only_the_end_of_the_shortage_is_told() {
    let mut node = Node::planned(1, |plan| plan.settings.memory_bytes = 1_000);
    let levels = |node: &mut Node, bytes: u64| -> Vec<String> {
        let lines = Lines::of(|| {
            node.shell.set_resident(bytes);
            node.advance_time(Duration::from_millis(20));
        });
        lines.iter().map(|line| line[..4].to_owned()).collect()
    };
    assert_eq!(levels(&mut node, 910), ["WARN"]);
    assert_eq!(levels(&mut node, 915), Vec::<String>::new());
    assert_eq!(levels(&mut node, 1_001), ["WARN"]);
    assert_eq!(levels(&mut node, 850), Vec::<String>::new());
    assert_eq!(levels(&mut node, 100), ["INFO"]);
}

#[test]
fn a_message_that_cannot_be_retained_is_logged_with_what_becomes_of_it() {
    let mut node = Node::planned(1, |plan| plan.settings.retained.payload_bytes = 3);
    let peer = node.join(0, "peer");
    let lines = Lines::of(|| node.retain(peer, "t", "long payload"));
    let expected = "WARN a message to be retained is refused: a limit of retained messages is \
                    reached topic=\"t\"";
    assert_eq!(lines, [expected]);
    let mut will = connect_with_will("gone");
    will.properties.session_expiry = None;
    let dying = will.will.as_mut().expect("it has one");
    dying.retain = true;
    dying.properties.will_delay = None;
    let gone = node.join_as(0, &will);
    let lines = Lines::of(|| node.cut(gone));
    let expected = "WARN a message to be retained is delivered, and nothing is retained there any \
                    more: a limit of retained messages is reached topic=\"wills\"";
    assert_eq!(lines, [expected]);
}

#[test]
fn what_the_rules_deny_is_logged_with_the_client_and_the_rule() {
    let rules = "allow all pub open\nallow all sub part/+/x\nallow all pub wills";
    let mut node = Node::planned(1, |plan| plan.settings.access = shared(rules, |_| ()));
    let mut named = connect("peer");
    named.username = Some("user");
    let peer = node.join_as(0, &named);
    let lines = Lines::of(|| node.publish(peer, "closed", "x", Q1));
    let expected = "INFO publish denied client_id=\"peer\" user=\"user\" topic=\"closed\" \
                    rule=\"no rule allows it, and acl.default does not\"";
    assert_eq!(lines, [expected]);
    let lines = Lines::of(|| node.subscribe(peer, "other", Q1));
    let expected = "INFO subscription denied: no rule allows any of it client_id=\"peer\" \
                    user=\"user\" filter=\"other\"";
    assert_eq!(lines, [expected]);
    let lines = Lines::of(|| node.subscribe(peer, "part/#", Q1));
    let expected = "INFO subscribed in part: only the topics that the rules allow are delivered \
                    client_id=\"peer\" user=\"user\" filter=\"part/#\"";
    assert_eq!(lines, [expected]);
    // More than 50 lines in a second would hide the others.
    let lines = Lines::of(|| (0..100).for_each(|_| node.publish(peer, "closed", "x", Q1)));
    assert_eq!(lines.len(), 47);
    assert_eq!(Lines::of(|| node.subscribe(peer, "other", Q1)).len(), 0);
    assert_eq!(Lines::of(|| node.subscribe(peer, "part/+/#", Q1)).len(), 0);
    node.advance_time(Duration::from_secs(1));
    let lines = Lines::of(|| node.publish(peer, "closed", "x", Q1));
    assert_eq!(lines.len(), 1);
}

#[test]
fn a_will_that_is_not_published_and_a_long_payload_are_logged() {
    let rules = "deny client:bad pub wills\nallow all pubsub #";
    let mut node = Node::planned(1, |plan| {
        plan.settings.access = shared(rules, |_| ());
        plan.limits().payload_bytes_max = 5;
    });
    let mut will = connect_with_will("bad");
    will.properties.session_expiry = None;
    let bad = node.join_as(0, &will);
    let lines = Lines::of(|| node.cut(bad));
    let expected = "INFO a will is not published client_id=\"bad\" topic=\"wills\" \
                    why=\"the rules do not allow it\"";
    assert_eq!(lines, [expected]);
    let peer = node.join(0, "peer");
    let lines = Lines::of(|| node.publish(peer, "t", "123456", Q1));
    let expected = "INFO message dropped: its payload is larger than limits.max_payload \
                    client_id=\"peer\" topic=\"t\" bytes=6";
    assert_eq!(lines, [expected]);
    *node.shell.engine(0).core.log_lines_mut() = 50;
    let lines = Lines::of(|| node.publish(peer, "t", "123456", Q1));
    assert_eq!(lines, Vec::<String>::new());
}

#[test]
fn a_limit_of_subscriptions_is_named() {
    let mut node = Node::planned(1, |plan| {
        plan.limits().subscriptions_max = 3;
        plan.settings.subscriptions.shared_max = 1;
        plan.settings.subscriptions.bytes_max = 1_900;
    });
    let peer = node.join(0, "peer");
    let refusal = |node: &mut Node, filter: &str| {
        let lines = Lines::of(|| node.subscribe(peer, filter, Q1));
        lines.concat()
    };
    let expected =
        |name: &str| format!("DEBUG subscription refused: {name} is reached client_id=\"peer\"");
    assert_eq!(refusal(&mut node, "$share/g/t"), "");
    let name = "limits.client.shared_subscriptions";
    assert_eq!(refusal(&mut node, "$share/h/t"), expected(name));
    let long = "x".repeat(2_000);
    let name = "limits.client.subscription_bytes";
    assert_eq!(refusal(&mut node, &long), expected(name));
    for filter in ["a", "b"] {
        assert_eq!(refusal(&mut node, filter), "");
    }
    let name = "limits.client.subscriptions";
    assert_eq!(refusal(&mut node, "c"), expected(name));
    assert_eq!(refusal(&mut node, "b"), "", "it has that one");
}

#[test]
fn a_review_logs_the_end_of_subscriptions_and_dropped_messages_once() {
    let mut node = Node::planned(1, |plan| {
        plan.settings.access = shared("allow all pubsub #", |_| ());
        plan.limits().inflight_max = 1;
    });
    let peer = node.join(0, "peer");
    node.set_acknowledges(peer, false);
    for filter in ["a", "b", "c"] {
        node.subscribe(peer, filter, Q1);
    }
    for topic in ["a", "b", "c", "a"] {
        node.publish(peer, topic, "x", Q1);
    }
    let rules = shared("allow all pubsub a", |_| ());
    let slot = node.shell.find("peer").unwrap().1;
    let engine = node.shell.engine(0);
    let access = engine.core.sessions[slot].access.as_deref_mut().unwrap();
    assert!(access.resolve_current(&rules));
    for disconnects in [true, false] {
        let mut review = Review::new(engine, slot, disconnects);
        let mut last = Progress::Continues;
        let lines = Lines::of(|| {
            while last != Progress::Done {
                last = review.advance(engine, |_| true);
            }
        });
        // Nothing is left for the second review.
        let expected: &[&str] = if disconnects {
            &[
                "INFO subscriptions ended: the rules do not allow them any more \
                 client_id=\"peer\"",
                "INFO messages that waited for this client are dropped: it may not have them any \
                 more client_id=\"peer\" dropped=2",
            ]
        } else {
            &[]
        };
        assert_eq!(lines, expected);
    }
}

#[test]
fn a_review_that_drops_nothing_logs_nothing() {
    let mut node = Node::planned(1, |plan| {
        plan.settings.access = shared("allow all pubsub #", |_| ());
        plan.limits().inflight_max = 1;
    });
    let peer = node.join(0, "peer");
    node.set_acknowledges(peer, false);
    node.subscribe(peer, "a/+", Q1);
    for _ in 0..2 {
        node.publish(peer, "a/open", "x", Q1);
    }
    let rules = shared("deny all sub a/secret\nallow all pubsub #", |_| ());
    let slot = node.shell.find("peer").unwrap().1;
    let engine = node.shell.engine(0);
    let access = engine.core.sessions[slot].access.as_deref_mut().unwrap();
    assert!(access.resolve_current(&rules));
    let mut review = Review::new(engine, slot, true);
    let lines = Lines::of(|| while review.advance(engine, |_| true) != Progress::Done {});
    assert_eq!(lines, Vec::<String>::new());
}

/// Answers nothing by itself.
#[derive(Debug)]
struct Silent;

impl Gatekeeper for Silent {
    fn login(&self, _login: Login, _reply: Reply<Said>) {}
}

fn denied() -> Said {
    Said::Deny(Denial {
        reason: ReasonCode::NotAuthorized,
        what: "not authorized",
        detail: "gone".into(),
    })
}

/// Reviews the sources of all retained messages; the gatekeeper answers as `said` tells.
fn review_sources(node: &Node, shared: &Shared, said: impl Fn(&Identity) -> Option<Said>) {
    let store = &node.shell.node.retained;
    let mut review = SourceReview::new();
    loop {
        let mut asked = None;
        let step = review.step(store, shared, |question, identity| {
            asked = Some((question, identity));
        });
        if let Some((question, identity)) = asked
            && let Some(answer) = said(&identity)
        {
            review.answered(question, answer, shared);
        }
        match step {
            ReviewStep::Worked(_) => {}
            ReviewStep::Waits => review.stop_waiting(),
            ReviewStep::Done => break,
        }
    }
    review.log_counts(store);
}

/// A node with a retained message of each user, by the topics `t/USER`.
fn with_sources(users: &[&str]) -> Node {
    let node = Node::new(1);
    for user in users {
        let identity = Identity {
            client_id: "client".into(),
            username: Some((*user).into()),
            ..Identity::default()
        };
        let source = RetainedSource::new(&identity, None, false);
        let topic = format!("t/{user}");
        let publication = thrum_protocol::Publication::new(&topic, b"x", Q1);
        let message = Arc::new(thrum_protocol::Message::new(&publication));
        let now = thrum_protocol::Time::default();
        assert!(node.shell.node.retained.store(&message, source, now).kept);
    }
    node
}

#[test]
fn a_review_of_retained_messages_logs_each_of_the_first_50_and_all_counts() {
    let mut shared = (*shared("allow all pubsub #", |policy| {
        policy.checks_retained_source = true;
    }))
    .clone();
    let mut node = with_sources(&["gone", "late"]);
    // Nobody is asked without a gatekeeper, and nothing changes.
    let lines = Lines::of(|| review_sources(&node, &shared, |_| None));
    assert_eq!(lines, Vec::<String>::new());
    shared.access.gatekeeper = Some(Arc::new(Silent));
    let denies = |identity: &Identity| {
        let is_gone = identity.username.as_deref() == Some("gone");
        is_gone.then(denied)
    };
    let lines = Lines::of(|| review_sources(&node, &shared, denies));
    let expected = [
        "WARN retained messages of this client stay as they are: nobody can tell what it may do \
         client_id=\"client\" user=\"late\" reason=\"no answer in time\"",
        "INFO a retained message is withheld from new subscribers: its publisher may not publish \
         it any more topic=\"t/gone\" client_id=\"client\" user=\"gone\"",
        "INFO retained messages were compared with what their publishers may do now withheld=1 \
         given_again=0 unanswered=1 in_all=1",
    ];
    assert_eq!(lines, expected);
    let admits = |identity: &Identity| {
        let admission = Admission {
            identity: identity.clone(),
            ..Admission::default()
        };
        Some(Said::Admit(Box::new(admission)))
    };
    let lines = Lines::of(|| review_sources(&node, &shared, admits));
    let expected = [
        "INFO a retained message is given to new subscribers again topic=\"t/gone\" \
         client_id=\"client\" user=\"gone\"",
        "INFO retained messages were compared with what their publishers may do now withheld=0 \
         given_again=1 unanswered=0 in_all=0",
    ];
    assert_eq!(lines, expected);
    // Only the first lines are written.
    let users: Vec<String> = (0..60).map(|number| number.to_string()).collect();
    let users: Vec<&str> = users.iter().map(String::as_str).collect();
    node = with_sources(&users);
    let lines = Lines::of(|| review_sources(&node, &shared, |_| Some(denied())));
    assert_eq!(lines.len(), 51);
    assert!(lines[50].contains(" withheld=60 "), "{}", lines[50]);
    let lines = Lines::of(|| review_sources(&node, &shared, |_| None));
    assert_eq!(lines.len(), 51);
    assert!(lines[50].contains(" unanswered=60 "), "{}", lines[50]);
    let lines = Lines::of(|| review_sources(&node, &shared, admits));
    assert_eq!(lines.len(), 51);
    assert!(lines[50].contains(" given_again=60 "), "{}", lines[50]);
    // Once its time is over, the gatekeeper is not asked about the next pages.
    let users: Vec<String> = (0..600).map(|number| number.to_string()).collect();
    let users: Vec<&str> = users.iter().map(String::as_str).collect();
    node = with_sources(&users);
    let lines = Lines::of(|| review_sources(&node, &shared, |_| None));
    assert_eq!(lines.len(), 51);
    assert!(lines[50].contains(" unanswered=600 "), "{}", lines[50]);
}

#[test]
fn a_disk_that_is_full_and_has_room_again_is_logged_once_each() {
    let mut node = Node::durable(1, |plan| plan.segments_max = 6);
    let watch = |node: &mut Node| {
        let lines = Lines::of(|| node.shell.engine(0).core.durable.watch_storage());
        lines.concat()
    };
    let away = node.subscriber(0, "away", "t");
    node.cut(away);
    let publisher = node.join(0, "publisher");
    assert_eq!(watch(&mut node), "");
    let big = "x".repeat(3_000);
    for _ in 0..40 {
        node.publish(publisher, "t", &big, Q1);
    }
    let full = watch(&mut node);
    assert!(full.starts_with("ERROR storage is full"), "{full}");
    assert_eq!(watch(&mut node), "");
    node.join(0, "away");
    for _ in 0..3 {
        node.publish(publisher, "t", "x", Q1);
    }
    let healthy = "INFO storage works again: acknowledgements go on";
    assert_eq!(watch(&mut node), healthy);
    assert_eq!(watch(&mut node), "");
}
