//! What the timeline of a client tells of denials, drops and subscriptions.

use std::time::Duration;

use thrum_codec::QoS;
use thrum_engine::node::metrics::Counter;
use thrum_engine::timeline::{ClientEvent, RefusalCause, SessionEnd, TimelineEntry, timeline_of};
use thrum_protocol::server::DropReason;

use crate::node::Node;
use crate::rights::shared;

const Q1: QoS = QoS::AtLeastOnce;

fn events(node: &mut Node, client_id: &str) -> Vec<TimelineEntry> {
    timeline_of(&node.shell.engine(0).core, client_id).entries
}

/// The entries about dropped messages, each with its number of them.
fn drops(node: &mut Node, client_id: &str) -> Vec<(DropReason, u64)> {
    let entries = events(node, client_id).into_iter();
    entries
        .filter_map(|entry| match entry.event {
            ClientEvent::Dropped(reason) => Some((reason, entry.count)),
            _ => None,
        })
        .collect()
}

/// A client that is away and has room for one message.
fn full_node() -> (Node, usize) {
    let mut node = Node::planned(1, |plan| plan.limits().queue.messages_max = 1);
    let receiver = node.subscriber(0, "receiver", "t");
    let publisher = node.join(0, "publisher");
    node.cut(receiver);
    node.publish(publisher, "t", "kept", Q1);
    (node, publisher)
}

#[test]
fn drops_are_told_with_their_number_and_time_also_after_the_end_of_the_session() {
    let (mut node, publisher) = full_node();
    assert_eq!(drops(&mut node, "receiver"), []);
    for _ in 0..3 {
        node.publish(publisher, "t", "dropped", Q1);
        node.advance_time(Duration::from_secs(50));
    }
    let told = events(&mut node, "receiver");
    let last = told.last().unwrap();
    assert_eq!(last.event, ClientEvent::Dropped(DropReason::QueueFull));
    assert_eq!(
        (last.count, last.last.since(last.at)),
        (3, Duration::from_secs(100))
    );
    node.advance_time(Duration::from_secs(20));
    node.publish(publisher, "t", "dropped", Q1);
    let both = [(DropReason::QueueFull, 3), (DropReason::QueueFull, 1)];
    assert_eq!(
        drops(&mut node, "receiver"),
        both,
        "over a minute has passed"
    );
    let (_, slot) = node.shell.find("receiver").unwrap();
    node.advance_time(Duration::from_secs(1));
    let engine = node.shell.engine(0);
    engine.remove_session(slot, SessionEnd::ByOperator);
    assert_eq!(drops(&mut node, "receiver"), both);
    let last = events(&mut node, "receiver").pop().unwrap().event;
    assert_eq!(last, ClientEvent::SessionEnded(SessionEnd::ByOperator));
}

#[test]
fn a_denial_is_told_with_its_rule_and_repetitions_are_counted() {
    let mut node = Node::planned(1, |plan| {
        plan.settings.access = shared(
            "deny all pub secret/#\nallow all pub #\nallow all pub $SYS/#",
            |_| (),
        );
        plan.limits().payload_bytes_max = 10;
    });
    let client = node.join(0, "client");
    for topic in ["secret/1", "secret/2", "secret/1", "public", "secret/1"] {
        node.publish(client, topic, "x", Q1);
    }
    node.publish(client, "public", "more than ten bytes", Q1);
    node.publish(client, "$SYS/x", "x", Q1);
    let told = events(&mut node, "client").into_iter();
    let told: Vec<(String, u64)> = told
        .map(|entry| (format!("{:?}", entry.event), entry.count))
        .collect();
    let refused = |topic: &str, why| ClientEvent::PublishRefused {
        topic: topic.into(),
        why,
    };
    let rule = || RefusalCause::Rule("deny all pub secret/# (test line 1)".into());
    let expected = [
        (refused("secret/1", rule()), 3),
        (refused("secret/2", rule()), 1),
        (
            refused("public", RefusalCause::Limit("limits.max_payload")),
            1,
        ),
        (
            refused(
                "$SYS/x",
                RefusalCause::Other("the topic is reserved for the broker"),
            ),
            1,
        ),
    ];
    let expected = expected.map(|(event, count)| (format!("{event:?}"), count));
    assert_eq!(told, expected);
}

#[test]
fn subscriptions_and_their_refusals_are_told_with_the_limit() {
    let mut node = Node::planned(1, |plan| plan.limits().subscriptions_max = 1);
    let client = node.join(0, "client");
    node.subscribe(client, "a/#", Q1);
    node.subscribe(client, "b/#", Q1);
    node.unsubscribe(client, &["a/#"]);
    let told: Vec<ClientEvent> = events(&mut node, "client")
        .into_iter()
        .map(|entry| entry.event)
        .collect();
    assert_eq!(told.len(), 3, "{told:?}");
    let whole = |event: &ClientEvent, expected: &str| match event {
        ClientEvent::Subscribed {
            filter,
            qos: Q1,
            in_part: false,
        }
        | ClientEvent::Unsubscribed { filter } => **filter == *expected,
        _ => false,
    };
    assert!(whole(&told[0], "a/#") && whole(&told[2], "a/#"), "{told:?}");
    let ClientEvent::SubscriptionRefused { filter, why, .. } = &told[1] else {
        panic!("{told:?}");
    };
    assert_eq!(&**filter, "b/#");
    assert_eq!(*why, RefusalCause::Limit("limits.client.subscriptions"));
}

#[test]
fn a_message_that_is_delivered_changes_no_timeline() {
    let mut node = Node::planned(1, |plan| plan.settings.timeline_bytes = 1 << 16);
    let receiver = node.subscriber(0, "receiver", "t");
    node.set_acknowledges(receiver, true);
    let publisher = node.join(0, "publisher");
    let before = [
        events(&mut node, "receiver"),
        events(&mut node, "publisher"),
    ];
    for _ in 0..100 {
        node.publish(publisher, "t", "x", Q1);
        node.publish(publisher, "nobody", "x", Q1);
    }
    let after = [
        events(&mut node, "receiver"),
        events(&mut node, "publisher"),
    ];
    assert_eq!(before, after);
}

#[test]
fn a_smaller_limit_acts_at_once_and_in_portions() {
    let mut node = Node::planned(1, |plan| plan.settings.timeline_bytes = 1 << 20);
    for number in 0..1500 {
        node.subscriber(0, &format!("client-{number}"), "t");
    }
    let known = |node: &mut Node| {
        let names = (0..1500).map(|number| format!("client-{number}"));
        names.filter(|name| !events(node, name).is_empty()).count()
    };
    assert_eq!(known(&mut node), 1500);
    let core = &mut node.shell.engine(0).core;
    let mut settings = core.settings.own_copy();
    settings.timeline_bytes = 0;
    core.settings = std::sync::Arc::new(settings);
    thrum_engine::timeline::trim_timelines(core);
    let left = known(&mut node);
    assert!((1..1500).contains(&left), "{left}: one portion");
    for _ in 0..8 {
        node.advance_time(Duration::from_secs(1));
    }
    assert_eq!(known(&mut node), 0);
}

#[test]
fn events_that_are_forgotten_are_counted() {
    let mut node = Node::planned(1, |plan| plan.settings.timeline_bytes = 1 << 11);
    for number in 0..20 {
        node.subscriber(0, &format!("client-{number}"), "t");
    }
    let known = (0..20).filter(|number| !events(&mut node, &format!("client-{number}")).is_empty());
    let known = known.count() as u64;
    assert!((1..20).contains(&known), "{known}");
    assert_eq!(node.count(Counter::TimelineEventsForgotten), 20 - known);
}
