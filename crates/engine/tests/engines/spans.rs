//! Traced messages: what their spans tell, and what goes out; other messages pass unaltered.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use thrum_codec::QoS;
use thrum_codec::packet::Publish;
use thrum_codec::properties::{PublishProperties, UserProperties};
use thrum_engine::node::metrics::Counter;
use thrum_engine::spans::{
    OPEN_MAX, PublisherFilter, Span, SpanKind, SpanOutcome, SpanRules, TraceContext,
};

use crate::node::{Node, Peer, connect, publish};
use crate::shell::Plan;

const Q0: QoS = QoS::AtMostOnce;
const Q1: QoS = QoS::AtLeastOnce;
const Q2: QoS = QoS::ExactlyOnce;

const TRACE: u128 = 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736;
const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const UNSAMPLED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";

/// All messages are traced that the change lets through; the clock advances with each read.
fn traced(change: impl FnOnce(&mut SpanRules)) -> impl FnOnce(&mut Plan) {
    let mut rules = SpanRules {
        every: 1,
        follows_parent: false,
        filters: Vec::new(),
        publishers: None,
    };
    change(&mut rules);
    move |plan| {
        plan.settings.spans = Some(Arc::new(rules));
        plan.process.micros_of_look.store(100, Ordering::Relaxed);
    }
}

fn spans(node: &Node) -> Vec<Span> {
    node.shell.node.spans.take(usize::MAX)
}

/// Publishes a message with user properties.
fn post(node: &mut Node, publisher: Peer, topic: &str, user: &[(&str, &str)]) {
    let properties = PublishProperties {
        user: UserProperties::Listed(user),
        ..PublishProperties::default()
    };
    let message = Publish {
        properties,
        ..publish(topic, "m", Q0)
    };
    node.post(publisher, message);
    node.settle();
}

/// The user properties of the only message that a client has got.
fn user(node: &mut Node, peer: Peer) -> Vec<(String, String)> {
    let mut messages = node.messages(peer);
    assert_eq!(messages.len(), 1);
    messages.remove(0).user
}

/// The context as the user property has it, with these flags.
fn text(context: TraceContext, flags: u8) -> String {
    let TraceContext { trace_id, span_id } = context;
    format!("00-{trace_id:032x}-{span_id:016x}-{flags:02x}")
}

/// The span of the hop, and those of deliveries.
fn divided(spans: Vec<Span>) -> (Span, Vec<Span>) {
    let (mut hops, deliveries): (Vec<_>, Vec<_>) = spans
        .into_iter()
        .partition(|span| span.kind == SpanKind::Received);
    assert_eq!(hops.len(), 1);
    (hops.remove(0), deliveries)
}

#[test]
fn a_trace_of_the_publisher_is_continued_to_each_receiver_of_any_worker() {
    let mut node = Node::planned(2, traced(|_| ()));
    let [near, far] = [0, 1].map(|worker| {
        let name = ["near", "far"][worker];
        let receiver = node.join(worker, name);
        node.subscribe(receiver, "t", Q0);
        receiver
    });
    let publisher = node.join(0, "publisher");
    let sent = [
        ("a", "1"),
        ("traceparent", PARENT),
        ("tracestate", "x=1"),
        ("b", "2"),
    ];
    post(&mut node, publisher, "t", &sent);
    let (hop, mut deliveries) = divided(spans(&node));
    assert_eq!(hop.context.trace_id, TRACE);
    assert_eq!(hop.parent_id, Some(0x00f0_67aa_0ba9_02b7));
    assert_eq!(hop.state.as_deref(), Some("x=1"));
    assert_eq!(
        (&*hop.client_id, &*hop.topic, hop.payload_bytes),
        ("publisher", "t", 1)
    );
    assert!(
        hop.begin_ns < hop.routed_ns && hop.routed_ns < hop.end_ns,
        "{hop:?}"
    );
    deliveries.sort_by(|one, other| one.client_id.cmp(&other.client_id));
    let names: Vec<_> = deliveries.iter().map(|span| &*span.client_id).collect();
    assert_eq!(names, ["far", "near"]);
    for span in &deliveries {
        assert_eq!(span.context.trace_id, TRACE);
        assert_eq!(span.parent_id, Some(hop.context.span_id));
        assert_ne!(span.context.span_id, hop.context.span_id);
        assert_eq!(span.outcome, SpanOutcome::Written);
        assert_eq!(span.begin_ns, hop.routed_ns);
        assert!(span.begin_ns < span.end_ns, "{span:?}");
    }
    let parent = text(hop.context, 1);
    let expected = [
        ("a", "1"),
        ("tracestate", "x=1"),
        ("b", "2"),
        ("traceparent", &parent),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    for receiver in [near, far] {
        assert_eq!(user(&mut node, receiver), expected);
    }
}

#[test]
fn a_message_without_a_trace_begins_one_and_loses_a_state_that_belongs_to_none() {
    let mut node = Node::planned(1, traced(|_| ()));
    let receiver = node.join(0, "receiver");
    node.subscribe(receiver, "t", Q0);
    let publisher = node.join(0, "publisher");
    for sent in [
        &[][..],
        &[("tracestate", "x=1")],
        &[("traceparent", "nonsense"), ("tracestate", "x=1")],
        &[("traceparent", PARENT), ("traceparent", PARENT)],
    ] {
        post(&mut node, publisher, "t", sent);
        let (hop, deliveries) = divided(spans(&node));
        assert_eq!(
            (hop.parent_id, hop.state, deliveries.len()),
            (None, None, 1)
        );
        assert_ne!(hop.context.trace_id, TRACE);
        let expected = ("traceparent".to_owned(), text(hop.context, 3));
        assert_eq!(user(&mut node, receiver), [expected]);
    }
}

/// Whether a message is traced; one that is not passes as it came.
fn is_traced(node: &mut Node, peers: [Peer; 2], topic: &str, sent: &[(&str, &str)]) -> bool {
    let [receiver, publisher] = peers;
    post(node, publisher, topic, sent);
    let is_traced = !spans(node).is_empty();
    let found = user(node, receiver);
    let is_as_it_came = found
        .iter()
        .map(|(name, value)| (&**name, &**value))
        .eq(sent.iter().copied());
    assert_eq!(is_as_it_came, !is_traced, "{found:?}");
    is_traced
}

fn peers(node: &mut Node) -> [Peer; 2] {
    let receiver = node.join(0, "receiver");
    node.subscribe(receiver, "#", Q0);
    [receiver, node.join(0, "publisher")]
}

#[test]
fn a_publisher_that_does_not_sample_decides_if_it_is_followed() {
    let sampled = [("traceparent", PARENT), ("a", "1")];
    let unsampled = [("a", "1"), ("traceparent", UNSAMPLED)];
    for (every, follows_parent, expected) in [
        (0, true, [true, false, false]),
        (1, true, [true, false, true]),
        (1, false, [true, true, true]),
        (0, false, [false, false, false]),
    ] {
        let mut node = Node::planned(
            1,
            traced(|rules| {
                rules.every = every;
                rules.follows_parent = follows_parent;
            }),
        );
        let peers = peers(&mut node);
        let found =
            [&sampled[..], &unsampled, &[]].map(|sent| is_traced(&mut node, peers, "t", sent));
        assert_eq!(found, expected, "{every} {follows_parent}");
    }
}

#[derive(Debug)]
struct Named(&'static str);

impl PublisherFilter for Named {
    fn takes(&self, client_id: &str) -> bool {
        client_id == self.0
    }
}

#[test]
fn only_messages_of_the_filters_and_publishers_are_traced() {
    for (name, expected) in [("publisher", [true, true, false]), ("other", [false; 3])] {
        let mut node = Node::planned(
            1,
            traced(|rules| {
                rules.filters = vec!["a/+".into(), "b".into()];
                rules.publishers = Some(Box::new(Named(name)));
            }),
        );
        let peers = peers(&mut node);
        let found = ["a/1", "b", "a/1/2"].map(|topic| is_traced(&mut node, peers, topic, &[]));
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn about_one_of_so_many_messages_is_traced() {
    let mut node = Node::planned(1, traced(|rules| rules.every = 10));
    let [_, publisher] = peers(&mut node);
    for _ in 0..1_000 {
        node.publish(publisher, "t", "m", Q0);
    }
    let hops = spans(&node).len() / 2;
    assert!((50..200).contains(&hops), "{hops}");
}

#[test]
fn spans_tell_when_a_message_waits_or_cannot_arrive() {
    let mut node = Node::planned(1, traced(|_| ()));
    let [receiver, publisher] = ["receiver", "publisher"].map(|name| node.join(0, name));
    node.subscribe(receiver, "t", Q0);
    node.set_slow(receiver, true);
    node.publish(publisher, "t", "m", Q0);
    let (_, deliveries) = divided(spans(&node));
    assert!(deliveries.is_empty(), "it is not written yet");
    node.cut(receiver);
    node.subscriber(0, "queueing", "u");
    let away = node.subscriber(0, "away", "u");
    node.cut(away);
    node.publish(publisher, "u", "m", Q1);
    let outcomes = spans(&node)
        .into_iter()
        .map(|span| (span.client_id, span.outcome));
    let mut outcomes: Vec<_> = outcomes.collect();
    outcomes.sort_by(|one, other| one.0.cmp(&other.0));
    let expected = [
        ("away", SpanOutcome::Queued),
        ("publisher", SpanOutcome::Routed),
        ("receiver", SpanOutcome::ConnectionEnded),
    ];
    assert_eq!(
        outcomes,
        expected.map(|(name, outcome)| (name.into(), outcome))
    );
    // The other one is written, and its acknowledgement is awaited for a minute.
    for _ in 0..20 {
        node.advance_time(Duration::from_secs(5));
    }
    let written = spans(&node);
    assert_eq!(written.len(), 1);
    assert_eq!(
        (&*written[0].client_id, written[0].outcome),
        ("queueing", SpanOutcome::Written)
    );
    assert!(written[0].end_ns - written[0].begin_ns < 1_000_000_000);
}

#[test]
fn the_span_of_a_delivery_ends_with_its_acknowledgement() {
    for (qos, at) in [(Q1, 0), (Q1, 1), (Q2, 0), (Q2, 1)] {
        let mut node = Node::planned(2, traced(|_| ()));
        let receiver = node.join(at, "receiver");
        node.subscribe(receiver, "t", qos);
        let publisher = node.join(0, "publisher");
        node.publish(publisher, "t", "m", qos);
        let (_, deliveries) = divided(spans(&node));
        let [delivery] = &deliveries[..] else {
            panic!("{deliveries:?}");
        };
        assert_eq!(delivery.outcome, SpanOutcome::Acknowledged, "{qos:?}");
        let Span {
            begin_ns,
            written_ns,
            end_ns,
            ..
        } = *delivery;
        assert!(begin_ns < written_ns && written_ns < end_ns, "{delivery:?}");
    }
}

#[test]
fn deliveries_that_only_wait_for_acknowledgements_make_room_for_others() {
    let mut node = Node::planned(1, traced(|_| ()));
    let receiver = node.subscriber(0, "receiver", "t");
    let publisher = node.join(0, "publisher");
    let deliveries = |node: &Node| -> Vec<SpanOutcome> {
        let all = spans(node).into_iter();
        let all = all.filter(|span| span.kind == SpanKind::Delivered);
        all.map(|span| span.outcome).collect()
    };
    for _ in 0..OPEN_MAX + 3 {
        node.publish(publisher, "t", "m", Q1);
    }
    assert_eq!(deliveries(&node), [SpanOutcome::Written; 3]);
    node.drain(receiver);
    assert_eq!(deliveries(&node), [SpanOutcome::Acknowledged; OPEN_MAX]);
    // A connection that ends ends what waits, as it was written.
    node.publish(publisher, "t", "m", Q1);
    node.cut(receiver);
    for _ in 0..2 {
        node.advance_time(Duration::from_secs(5));
    }
    assert_eq!(deliveries(&node), [SpanOutcome::Written]);
}

/// A client that accepts packets of 50 bytes: a short message, but none with `traceparent`. One of
/// the second worker takes topic aliases.
fn join_small(node: &mut Node, worker: usize, client_id: &str) -> Peer {
    let mut small = connect(client_id);
    small.properties.maximum_packet_size = Some(50);
    small.properties.topic_alias_maximum = (worker == 1).then_some(4);
    node.join_as(worker, &small)
}

#[test]
fn a_receiver_without_room_for_the_trace_gets_the_message_without_it() {
    let mut node = Node::planned(2, traced(|_| ()));
    let receivers = [(0, "near"), (1, "far")].map(|(worker, name)| {
        let receiver = join_small(&mut node, worker, name);
        node.subscribe(receiver, "t", Q1);
        receiver
    });
    let away = join_small(&mut node, 1, "away");
    node.subscribe(away, "t", Q1);
    node.cut(away);
    let large = node.join(0, "large");
    node.subscribe(large, "t", Q1);
    let publisher = node.join(0, "publisher");
    let message = Publish {
        retain: true,
        ..publish("t", "m", Q1)
    };
    node.post(publisher, message);
    node.settle();
    let back = join_small(&mut node, 1, "away");
    let later = join_small(&mut node, 0, "later");
    node.subscribe(later, "t", Q1);
    for receiver in receivers.into_iter().chain([back, later]) {
        assert_eq!(user(&mut node, receiver), []);
    }
    assert_eq!(user(&mut node, large)[0].0, "traceparent");
    assert_eq!(node.count(Counter::DroppedTooLarge), 0);
    let (_, deliveries) = divided(spans(&node));
    assert_eq!(deliveries.len(), 4);
}

#[test]
fn a_trace_of_the_publisher_is_not_left_out_for_want_of_room() {
    let mut node = Node::planned(1, traced(|_| ()));
    let receiver = join_small(&mut node, 0, "receiver");
    node.subscribe(receiver, "t", Q0);
    let publisher = node.join(0, "publisher");
    post(&mut node, publisher, "t", &[("traceparent", PARENT)]);
    assert!(node.messages(receiver).is_empty());
    assert_eq!(node.count(Counter::DroppedTooLarge), 1);
}

#[test]
fn deliveries_beyond_the_limit_end_in_the_output() {
    let mut node = Node::planned(1, traced(|_| ()));
    let [receiver, publisher] = peers(&mut node);
    node.set_slow(receiver, true);
    for _ in 0..OPEN_MAX + 3 {
        node.publish(publisher, "t", "m", Q0);
    }
    let unfollowed = spans(&node).into_iter();
    let unfollowed = unfollowed.filter(|span| span.outcome == SpanOutcome::Unfollowed);
    assert_eq!(unfollowed.count(), 3);
    node.set_slow(receiver, false);
    let written = spans(&node).into_iter();
    let written = written.filter(|span| span.outcome == SpanOutcome::Written);
    assert_eq!(written.count(), OPEN_MAX);
}

#[test]
fn deliveries_that_are_not_written_end_by_themselves() {
    let mut node = Node::planned(1, traced(|_| ()));
    let [receiver, publisher] = peers(&mut node);
    node.set_slow(receiver, true);
    for _ in 0..OPEN_MAX {
        node.publish(publisher, "t", "m", Q0);
    }
    let outcomes = |node: &Node| -> Vec<SpanOutcome> {
        let deliveries = spans(node).into_iter();
        let deliveries = deliveries.filter(|span| span.kind == SpanKind::Delivered);
        deliveries.map(|span| span.outcome).collect()
    };
    assert_eq!(outcomes(&node), []);
    for _ in 0..20 {
        node.advance_time(Duration::from_secs(5));
    }
    assert_eq!(outcomes(&node), [SpanOutcome::Unfollowed; OPEN_MAX]);
    // There is room for others, and their end is noticed although nothing more is delivered.
    node.publish(publisher, "t", "m", Q0);
    node.cut(receiver);
    for _ in 0..20 {
        node.advance_time(Duration::from_secs(5));
    }
    assert_eq!(outcomes(&node), [SpanOutcome::ConnectionEnded]);
}

#[test]
fn stamped_and_traced_messages_do_not_disturb_each_other() {
    let mut node = Node::planned(2, |plan| {
        traced(|rules| rules.filters = vec!["traced".into()])(plan);
        plan.settings.stamp_every = 1;
    });
    let receiver = node.join(1, "receiver");
    node.subscribe(receiver, "#", Q0);
    let publisher = node.join(0, "publisher");
    for topic in ["traced", "plain"] {
        node.publish(publisher, topic, "m", Q0);
    }
    let figures = node
        .shell
        .node
        .stages
        .merged()
        .expect("messages are stamped");
    let written = figures.series(thrum_engine::stages::MessageStage::Written);
    assert_eq!((figures.stamped, written.count()), (2, 2));
    let (hop, deliveries) = divided(spans(&node));
    assert_eq!((&*hop.topic, deliveries.len()), ("traced", 1));
}

#[test]
fn a_message_that_is_traced_only_is_not_in_the_figures_of_stages() {
    let mut node = Node::planned(2, |plan| {
        traced(|_| ())(plan);
        // Far more than there are messages.
        plan.settings.stamp_every = 1_000_000;
    });
    let receiver = node.join(1, "receiver");
    node.subscribe(receiver, "t", Q0);
    let publisher = node.join(0, "publisher");
    node.publish(publisher, "t", "m", Q0);
    node.publish(publisher, "nobody", "m", Q0);
    let figures = node
        .shell
        .node
        .stages
        .merged()
        .expect("messages are stamped");
    let counts = [figures.stamped, figures.unreceived, figures.unfinished];
    assert_eq!(counts, [0; 3]);
    assert_eq!(spans(&node).len(), 3);
}

#[test]
fn long_topics_are_cut_in_spans_alone() {
    let mut node = Node::planned(1, traced(|_| ()));
    let [receiver, publisher] = peers(&mut node);
    let topic = "é".repeat(2_000);
    node.publish(publisher, &topic, "m", Q0);
    assert_eq!(node.messages(receiver)[0].topic, topic);
    let (hop, deliveries) = divided(spans(&node));
    assert_eq!((hop.topic.len(), deliveries[0].topic.len()), (1024, 1024));
}
