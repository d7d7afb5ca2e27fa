//! The units of work that a turn is charged, by kind of work.

use std::sync::Arc;
use std::time::Duration;

use thrum_access::{Admission, Gatekeeper, Identity, Login, Reply, Rules};
use thrum_codec::QoS;
use thrum_engine::access::{Access, ClientAccess, Policy, RuleSource, Shared};
use thrum_engine::interest::Route;
use thrum_engine::review::{Progress, Review, review_units};
use thrum_engine::sinks::QueueLimits;

use crate::node::{Node, connect};
use crate::shell::SinkPlan;

const Q0: QoS = QoS::AtMostOnce;
const Q1: QoS = QoS::AtLeastOnce;
/// Units of a filter, and of a route that is looked up.
const FILTER: u64 = 32;
const ROUTE: u64 = 16;

/// Units of work that a worker does for an action.
fn units(node: &mut Node, worker: usize, act: impl FnOnce(&mut Node)) -> u64 {
    let before = node.shell.engine(worker).core.turn.work;
    act(node);
    node.shell.engine(worker).core.turn.work - before
}

/// A node whose sessions have one message in transit and a queue of that length.
fn with_queues(workers: usize, messages_max: u32) -> Node {
    Node::planned(workers, |plan| {
        plan.limits().inflight_max = 1;
        plan.limits().queue.messages_max = messages_max;
    })
}

#[test]
fn leaving_a_group_costs_a_unit_for_32_queued_messages() {
    let mut node = with_queues(1, 1_000);
    let member = node.subscriber(0, "member", "$share/g/t");
    let publisher = node.join(0, "publisher");
    // One more message is in transit.
    for _ in 0..=70 {
        node.publish(publisher, "t", "x", Q1);
    }
    let cost = units(&mut node, 0, |node| {
        node.unsubscribe(member, &["$share/g/t"]);
    });
    assert_eq!(cost, FILTER + 2);
    let none = units(&mut node, 0, |node| {
        node.unsubscribe(member, &["$share/g/t"]);
    });
    assert_eq!(none, FILTER);
}

#[test]
fn a_session_that_ends_costs_its_filters() {
    let mut node = Node::new(1);
    let peer = node.join(0, "peer");
    for filter in ["a", "b/+", "c/#"] {
        node.subscribe(peer, filter, Q1);
    }
    let slot = node.shell.find("peer").unwrap().1;
    let cost = units(&mut node, 0, |node| node.shell.engine(0).end_session(slot));
    assert_eq!(cost, 3 * FILTER);
}

#[test]
fn a_look_up_of_a_route_costs_its_visits_at_both_levels() {
    let mut node = Node::new(2);
    for (worker, filter) in [(0, "t/+"), (1, "t/+"), (1, "t/1")] {
        node.subscriber(worker, &format!("{worker} {filter}"), filter);
    }
    let publisher = node.join(0, "publisher");
    let interest = &node.shell.node.interest;
    let (_, visits) = interest.route("t/1", &mut Vec::new(), &mut Route::default());
    assert!(visits > 0);
    let first = units(&mut node, 0, |node| node.publish(publisher, "t/1", "x", Q0));
    let again = units(&mut node, 0, |node| node.publish(publisher, "t/1", "x", Q0));
    assert_eq!(again, 1, "a delivery");
    // The worker itself has one filter.
    assert_eq!(first - again, 2 * ROUTE + visits as u64 + 1);
}

#[test]
fn messages_for_nearly_full_queues_of_other_workers_cost_a_unit_for_each() {
    let mut node = with_queues(2, 2);
    for number in 0..3 {
        node.subscriber(1, &format!("r{number}"), "t");
    }
    let publisher = node.join(0, "publisher");
    node.publish(publisher, "t", "x", Q1);
    let once = units(&mut node, 0, |node| node.publish(publisher, "t", "x", Q1));
    assert_eq!(once, 3);
    let unsure = units(&mut node, 0, |node| node.publish(publisher, "t", "x", Q0));
    assert_eq!(unsure, 0, "no place is reserved");
}

#[test]
fn an_event_costs_a_unit_beside_its_delivery() {
    let mut node = Node::new(1);
    let watcher = node.join(0, "watcher");
    node.subscribe(watcher, "$events/client/connected", Q0);
    node.join(0, "first");
    node.messages(watcher);
    let cost = units(&mut node, 0, |node| {
        node.join(0, "other");
    });
    let event = node.messages(watcher).remove(0);
    assert_eq!(cost, 2 + event.payload.len() as u64 / 64);
}

#[test]
fn messages_that_memory_is_too_short_for_cost_a_unit_for_each_receiver() {
    let mut node = Node::planned(1, |plan| plan.settings.memory_bytes = 1 << 30);
    for number in 0..3 {
        let away = node.subscriber(0, &format!("r{number}"), "t");
        node.cut(away);
    }
    let publisher = node.join(0, "publisher");
    node.shell.set_resident(2 << 30);
    node.advance_time(Duration::from_millis(20));
    let payload = "x".repeat(1_000);
    node.publish(publisher, "t", &payload, Q1);
    let cost = units(&mut node, 0, |node| {
        node.publish(publisher, "t", &payload, Q1);
    });
    assert_eq!(cost, 3, "their payload is not handled");
}

#[test]
fn a_question_about_memory_costs_a_unit_for_each_subscriber_without_memory() {
    let mut node = Node::planned(2, |plan| plan.settings.memory_bytes = 1 << 30);
    for number in 0..5 {
        let away = node.subscriber(0, &format!("r{number}"), "t");
        node.cut(away);
    }
    let publisher = node.join(1, "publisher");
    node.publish(publisher, "t", "x", Q1);
    node.shell.set_resident(2 << 30);
    node.advance_time(Duration::from_millis(20));
    node.publish(publisher, "t", "x", Q1);
    node.advance_time(Duration::from_millis(20));
    let cost = units(&mut node, 0, |node| node.publish(publisher, "t", "x", Q1));
    assert_eq!(cost, 5, "the message itself is refused");
    let here = node.subscriber(0, "here", "t");
    node.advance_time(Duration::from_millis(20));
    node.publish(publisher, "t", "x", Q1);
    assert_eq!(node.payloads(here), ["x"]);
}

#[test]
fn a_message_for_a_group_costs_a_unit_for_16_members_without_room() {
    let mut node = with_queues(1, 1);
    for number in 0..40 {
        node.subscriber(0, &format!("m{number}"), "$share/g/t");
    }
    let publisher = node.join(0, "publisher");
    for _ in 0..80 {
        node.publish(publisher, "t", "x", Q1);
    }
    let cost = units(&mut node, 0, |node| node.publish(publisher, "t", "x", Q1));
    assert_eq!(cost, 2);
}

#[test]
fn a_message_for_sinks_costs_a_unit_for_each() {
    let mut node = Node::planned(1, |plan| {
        for (name, filter) in [("one", "t"), ("two", "#"), ("other", "u")] {
            let limits = QueueLimits::default();
            plan.sinks.push(SinkPlan {
                name,
                filter,
                limits,
            });
        }
    });
    let publisher = node.join(0, "publisher");
    node.publish(publisher, "t", "x", Q1);
    let cost = units(&mut node, 0, |node| node.publish(publisher, "t", "x", Q1));
    assert_eq!(cost, 2);
}

/// Asks about topics, and never answers.
#[derive(Debug)]
struct Silent;

impl Gatekeeper for Silent {
    fn login(&self, _login: Login, _reply: Reply<thrum_access::Answer>) {}

    fn has_authorizers(&self) -> bool {
        true
    }
}

/// That many rules for all clients, which allow everything below `r/`, and the gatekeeper.
fn shared(rules: usize, gatekeeper: Option<Arc<dyn Gatekeeper>>) -> Arc<Shared> {
    let lines = (0..rules).map(|one| format!("allow all pubsub r/{one}\n"));
    let text: String = lines.collect();
    let policy = Policy {
        rules: Arc::new(Rules::parse(&text, "test").expect("they are valid")),
        order: vec![
            RuleSource::AllClients,
            RuleSource::Gatekeeper,
            RuleSource::Client,
        ],
        allows_by_default: true,
        ..Policy::default()
    };
    Arc::new(Shared {
        access: Access { gatekeeper, policy },
        generation: 1,
    })
}

#[test]
fn a_decision_about_a_filter_costs_a_unit_and_one_for_8_rules() {
    let own = |count: usize| {
        let lines = (0..count).map(|one| format!("deny all sub own/{one}\n"));
        let text: String = lines.collect();
        Arc::new(Rules::parse(&text, "test").expect("they are valid"))
    };
    let filter_units = |rules: usize, own_rules: usize, asks: bool| {
        let gatekeeper = asks.then(|| Arc::new(Silent) as Arc<dyn Gatekeeper>);
        let admission = Admission {
            identity: Identity::default(),
            rules: Some(own(own_rules)),
            ..Admission::default()
        };
        ClientAccess::new(admission, &shared(rules, gatekeeper)).filter_units()
    };
    for asks in [false, true] {
        let of = |rules, own_rules| filter_units(rules, own_rules, asks);
        assert_eq!(of(0, 0), 1, "{asks}");
        let more = of(80, 0) - of(0, 0);
        assert!(more >= 10, "{more}");
        assert_eq!(of(0, 80) - of(0, 0), more, "{asks}: its own");
        assert_eq!(of(80, 80) - of(0, 0), 2 * more, "{asks}: all of them");
    }
}

#[test]
fn a_review_costs_its_filters_and_messages_times_the_rules() {
    let mut node = Node::planned(1, |plan| {
        plan.settings.access = shared(80, None);
        plan.limits().inflight_max = 1;
    });
    let peer = node.join_as(0, &connect("peer"));
    let filters: Vec<String> = (0..20).map(|one| format!("r/{one}/+")).collect();
    for filter in &filters {
        node.subscribe(peer, filter, Q1);
    }
    node.set_acknowledges(peer, false);
    for filter in &filters[..4] {
        node.publish(peer, &filter.replace('+', "x"), "x", Q1);
    }
    let slot = node.shell.find("peer").unwrap().1;
    let engine = node.shell.engine(0);
    let access = |engine: &thrum_engine::Engine| {
        let access = engine.core.sessions[slot].access.as_deref();
        access.expect("there are rules").filter_units()
    };
    let rules = access(engine);
    assert_eq!(
        review_units(&engine.core, slot),
        20 * (FILTER + rules) + 3 * (20 / 8 + rules)
    );
    // The client may have a part of each filter only, so that the messages are looked at too.
    let text = "deny all sub r/+/secret\nallow all pubsub r/#";
    let policy = Policy {
        rules: Arc::new(Rules::parse(text, "test").expect("they are valid")),
        ..Policy::default()
    };
    let other = Shared {
        access: Access {
            gatekeeper: None,
            policy,
        },
        generation: 2,
    };
    let known = engine.core.sessions[slot].access.as_deref_mut();
    known.expect("there are rules").resolve_current(&other);
    let rules = access(engine);
    let mut review = Review::new(engine, slot, false);
    let mut steps = Vec::new();
    loop {
        let before = engine.core.turn.work;
        let progress = review.advance(engine, |_| true);
        steps.push(engine.core.turn.work - before);
        if progress == Progress::Done {
            break;
        }
    }
    // One step begins with the messages, and one ends the review.
    let mut expected = vec![FILTER + rules; 20];
    expected.extend([0, 2 + rules, 2 + rules, 2 + rules, 0]);
    assert_eq!(steps, expected);
}
