//! Packets explained without being sent: the explanation agrees with what then happens, and asking
//! changes nothing.

use thrum_codec::{QoS, ReasonCode};
use thrum_engine::access::DecidedBy;
use thrum_engine::explain::{
    Foreseen, PublishAsked, PublishExplained, ReceiverSearch, Receivers, Step, StepCheck,
    StepOutcome, SubscribeAsked, SubscribeExplained, explain_groups, explain_publish,
    explain_subscribe,
};
use thrum_engine::node::metrics::Counter;
use thrum_engine::timeline::timeline_of;
use thrum_protocol::limits::QueuePolicy;
use thrum_protocol::server::DropReason;
use thrum_protocol::{Message, Publication};

use crate::node::{Answer, Node};
use crate::rights::shared;

const Q0: QoS = QoS::AtMostOnce;
const Q1: QoS = QoS::AtLeastOnce;
const CLIENTS: [&str; 4] = ["publisher", "one", "two", "three"];

fn message(topic: &str, qos: QoS) -> Message {
    Message::new(&Publication::new(topic, b"x", qos))
}

fn asked(topic: &str) -> PublishAsked<'_> {
    PublishAsked {
        topic,
        qos: Q1,
        retain: false,
        payload_bytes: 1,
    }
}

fn publish(node: &mut Node, topic: &str) -> PublishExplained {
    let (worker, slot) = node.shell.find("publisher").expect("it is there");
    explain_publish(node.shell.engine(worker), slot, &asked(topic))
}

fn receivers(node: &mut Node, topic: &str, qos: QoS) -> Receivers {
    let (worker, slot) = node.shell.find("publisher").expect("it is there");
    let engine = node.shell.engine(worker);
    let publisher = engine.core.sessions[slot].session.id();
    let mut search = ReceiverSearch::new(publisher);
    // One subscription at a time.
    while !search.advance(engine, &message(topic, qos), 1) {}
    search.finish(engine, &message(topic, qos))
}

fn foreseen(node: &mut Node, qos: QoS) -> Foreseen {
    let found = receivers(node, "t", qos);
    assert_eq!((found.sessions.len(), found.more), (1, 0));
    found.sessions[0].foreseen
}

/// The session that would get the next message of the group.
fn next_member(node: &mut Node) -> String {
    let (worker, slot) = node.shell.find("publisher").expect("it is there");
    let engine = node.shell.engine(worker);
    let groups = explain_groups(engine, slot, &message("s", Q1));
    assert_eq!(groups.len(), 1);
    assert_eq!((groups[0].members, groups[0].online), (3, 3));
    let next = groups[0].next.expect("it is not left to chance");
    let client = &engine.core.sessions[next.slot].session;
    client.client_id().to_owned()
}

/// Everything that a question might change, as text.
fn state(node: &mut Node) -> Vec<String> {
    let engine = node.shell.engine(0);
    let core = &engine.core;
    let of_client = |client_id: &str| {
        let slot = core.sessions.find(client_id);
        let client = slot.map(|slot| &core.sessions[slot]);
        let state = client.map(|client| (&client.session, &client.access));
        format!("{state:?} {:?}", timeline_of(core, client_id))
    };
    let clients = CLIENTS.iter().map(|client_id| of_client(client_id));
    let others = [format!("{:?}", core.row()), format!("{:?}", engine.router)];
    clients.chain(others).collect()
}

#[test]
fn the_queue_of_a_receiver_does_what_was_foreseen() {
    for (policy, full) in [
        (
            QueuePolicy::RejectNew,
            Foreseen::Dropped(DropReason::QueueFull),
        ),
        (QueuePolicy::DropOldest, Foreseen::QueuedForOlder),
        (QueuePolicy::Hold, Foreseen::Held),
    ] {
        let mut node = Node::planned(1, |plan| {
            plan.limits().inflight_max = 1;
            plan.limits().queue.messages_max = 1;
            plan.limits().queue.policy = policy;
            plan.settings.queue_hold = std::time::Duration::from_secs(5);
        });
        let receiver = node.subscriber(0, "one", "t");
        let publisher = node.join(0, "publisher");
        assert_eq!(foreseen(&mut node, Q0), Foreseen::Sent);
        assert_eq!(foreseen(&mut node, Q1), Foreseen::Sent);
        node.publish(publisher, "t", "1", Q1);
        assert_eq!(node.count(Counter::PublishSent), 1);
        assert_eq!(foreseen(&mut node, Q1), Foreseen::Queued);
        node.publish(publisher, "t", "2", Q1);
        assert_eq!(node.count(Counter::Queued), 1);
        assert_eq!(foreseen(&mut node, Q1), full, "{policy:?}");
        node.publish(publisher, "t", "3", Q1);
        let dropped = [Counter::DroppedQueueFull, Counter::DroppedQueueOldest]
            .map(|counter| node.count(counter));
        let expected = match policy {
            QueuePolicy::RejectNew => [1, 0],
            QueuePolicy::DropOldest => [0, 1],
            QueuePolicy::Hold => [0, 0],
        };
        assert_eq!(dropped, expected, "{policy:?}");
        assert_eq!(node.is_held(publisher), policy == QueuePolicy::Hold);
        node.cut(receiver);
        let away = Foreseen::Dropped(DropReason::Offline);
        assert_eq!(foreseen(&mut node, Q0), away);
    }
}

#[test]
fn the_member_that_is_named_gets_the_next_message() {
    let mut node = Node::new(1);
    let members = ["one", "two", "three"].map(|name| {
        let member = node.join(0, name);
        node.subscribe(member, "$share/g/s", Q1);
        member
    });
    let publisher = node.join(0, "publisher");
    for _ in 0..7 {
        let next = next_member(&mut node);
        assert_eq!(next_member(&mut node), next, "asking takes no turn");
        node.publish(publisher, "s", "x", Q1);
        let got = members.map(|member| node.payloads(member).len());
        let names = ["one", "two", "three"];
        let expected = names.map(|name| usize::from(name == next));
        assert_eq!(got, expected);
    }
}

#[test]
fn the_step_that_refuses_a_publish_names_its_rule_or_limit() {
    let mut node = Node::planned(1, |plan| {
        let rules = "deny all pub secret/#\nallow all pubsub open/#";
        plan.settings.access = shared(rules, |_| ());
        plan.limits().payload_bytes_max = 10;
        plan.limits().topic_levels_max = 3;
    });
    let publisher = node.join(0, "publisher");
    let last = |explained: &PublishExplained| explained.steps.last().unwrap().clone();
    let denied = publish(&mut node, "secret/1");
    let rule = DecidedBy::Rule("deny all pub secret/# (test line 1)".into());
    let refusal = Step {
        check: StepCheck::Access(rule),
        outcome: StepOutcome::Refuses(ReasonCode::NotAuthorized),
    };
    assert_eq!((last(&denied), denied.topic), (refusal, None));
    node.publish(publisher, "secret/1", "x", Q1);
    assert!(
        node.answers(publisher)
            .contains(&Answer::Puback(ReasonCode::NotAuthorized))
    );
    let open = publish(&mut node, "open/1");
    assert_eq!(open.topic.as_deref(), Some("open/1"), "{open:?}");
    let rule = DecidedBy::Rule("allow all pubsub open/# (test line 2)".into());
    assert!(open.steps.contains(&Step {
        check: StepCheck::Access(rule),
        outcome: StepOutcome::Passes,
    }));
    let (_, slot) = node.shell.find("publisher").unwrap();
    let long = PublishAsked {
        payload_bytes: 11,
        ..asked("open/1")
    };
    let long = explain_publish(node.shell.engine(0), slot, &long);
    let limit = StepCheck::Limit {
        key: "limits.max_payload",
        has: 11,
        most: 10,
    };
    assert_eq!(last(&long).check, limit);
    let deep = publish(&mut node, "open/1/2/3");
    let limit = StepCheck::Limit {
        key: "limits.topic_levels",
        has: 4,
        most: 3,
    };
    assert_eq!(last(&deep).check, limit);
    assert!(last(&publish(&mut node, "a/#")).is_refusal());
}

fn subscribe(node: &mut Node, filter: &str) -> SubscribeExplained {
    let (worker, slot) = node.shell.find("one").expect("it is there");
    let asked = SubscribeAsked { filter, qos: Q1 };
    explain_subscribe(node.shell.engine(worker), slot, &asked)
}

#[test]
fn a_filter_is_granted_as_explained() {
    let mut node = Node::planned(1, |plan| {
        let rules = "deny all sub a/secret\nallow all sub a/#\ndeny all sub b/#";
        plan.settings.access = shared(rules, |policy| policy.filters_partial = true);
        plan.limits().subscriptions_max = 1;
    });
    let one = node.join(0, "one");
    let whole = subscribe(&mut node, "a/x");
    assert_eq!(
        (whole.granted, whole.in_part, whole.replaces),
        (Some(Q1), false, false)
    );
    let part = subscribe(&mut node, "a/#");
    assert_eq!((part.granted, part.in_part), (Some(Q1), true));
    let denied = subscribe(&mut node, "b/x");
    assert_eq!(denied.granted, None);
    assert!(matches!(
        denied.steps.last().unwrap().check,
        StepCheck::Access(_)
    ));
    assert!(subscribe(&mut node, "a/#/b").steps[0].is_refusal());
    node.subscribe(one, "a/x", Q1);
    let again = subscribe(&mut node, "a/x");
    assert_eq!((again.granted, again.replaces), (Some(Q1), true));
    let more = subscribe(&mut node, "a/y");
    let limit = StepCheck::Limits(Some("limits.client.subscriptions"));
    assert_eq!(more.steps.last().unwrap().check, limit);
    assert_eq!(
        node.count(Counter::LimitSubscriptions),
        0,
        "asking counts nothing"
    );
    node.subscribe(one, "a/y", Q1);
    assert_eq!(node.count(Counter::LimitSubscriptions), 1);
}

#[test]
fn receivers_are_named_with_their_filters_and_with_why_they_are_passed_over() {
    let mut node = Node::planned(1, |plan| {
        let rules = "deny client:two sub t\nallow all pubsub #";
        plan.settings.access = shared(rules, |policy| policy.filters_partial = true);
    });
    let one = node.join(0, "one");
    node.subscribe(one, "t", Q0);
    node.subscribe(one, "#", Q1);
    let two = node.join(0, "two");
    node.subscribe(two, "#", Q1);
    node.join(0, "publisher");
    let found = receivers(&mut node, "t", Q1);
    assert_eq!((found.subscriptions, found.more), (3, 0));
    let found = found.sessions;
    assert_eq!(found.len(), 2, "{found:?}");
    let mut filters: Vec<&str> = found[0].filters.iter().map(|filter| &**filter).collect();
    filters.sort_unstable();
    assert_eq!((&*found[0].client_id, filters), ("one", vec!["#", "t"]));
    assert_eq!((found[0].qos, found[0].passed_over), (Q1, None));
    assert_eq!(&*found[1].client_id, "two");
    let why = found[1].passed_over.expect("the rules forbid it");
    assert!(why.contains("rules"), "{why}");
}

#[test]
fn a_receiver_with_several_filters_is_counted_once_whether_listed_or_not() {
    let mut node = Node::new(1);
    node.join(0, "publisher");
    for number in 0..150 {
        let peer = node.subscriber(0, &format!("receiver-{number}"), "t");
        for filter in ["#", "+"] {
            node.subscribe(peer, filter, Q1);
        }
    }
    let found = receivers(&mut node, "t", Q1);
    assert_eq!(
        (found.sessions.len(), found.more, found.subscriptions),
        (100, 50, 450)
    );
    assert!(found.sessions.iter().all(|one| one.filters.len() == 3));
}

#[test]
fn no_question_changes_anything() {
    let mut node = Node::planned(1, |plan| {
        plan.settings.access = shared("allow all pubsub #", |_| ());
        plan.limits().inflight_max = 1;
        plan.limits().queue.messages_max = 1;
        plan.limits().subscriptions_max = 2;
    });
    for name in ["one", "two", "three"] {
        let member = node.subscriber(0, name, "t");
        node.subscribe(member, "$share/g/s", Q1);
    }
    let publisher = node.join(0, "publisher");
    for payload in ["1", "2", "3"] {
        node.publish(publisher, "t", payload, Q1);
    }
    let before = state(&mut node);
    for topic in ["t", "s", "$SYS/x", "secret", "", "a/+"] {
        publish(&mut node, topic);
        if !topic.is_empty() && !topic.contains('+') {
            receivers(&mut node, topic, Q1);
        }
    }
    next_member(&mut node);
    for filter in ["t", "$share/g/s", "new", "#/", "$share"] {
        subscribe(&mut node, filter);
    }
    assert_eq!(state(&mut node), before);
    // The comparison sees what a message changes.
    node.publish(publisher, "s", "x", Q1);
    assert_ne!(state(&mut node), before);
}
