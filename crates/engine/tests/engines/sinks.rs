//! Sinks: what they get, and what becomes of publishers when one is full.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use crossbeam_utils::CachePadded;
use thrum_codec::{QoS, ReasonCode};
use thrum_engine::node::metrics::Counter;
use thrum_engine::sinks::{Offer, QueueLimits, SinkCounts, SinkQueue, WhenFull};
use thrum_protocol::{Message, Publication};

use crate::node::{Answer, Node, publish};
use crate::shell::{Plan, SinkPlan};

const Q0: QoS = QoS::AtMostOnce;
const Q1: QoS = QoS::AtLeastOnce;
const TAKEN: Answer = Answer::Puback(ReasonCode::Success);
const REFUSED: Answer = Answer::Puback(ReasonCode::QuotaExceeded);

fn sink(when_full: WhenFull, is_durable: bool) -> impl FnOnce(&mut Plan) {
    move |plan| {
        plan.sinks.push(SinkPlan {
            name: "sink",
            filter: "t/#",
            limits: QueueLimits {
                messages: 2,
                when_full,
                is_durable,
                ..QueueLimits::default()
            },
        });
    }
}

fn take(node: &Node) -> Vec<Offer> {
    let offers = queue_of(node).take(10, 1 << 20, Duration::ZERO);
    offers.expect("it is open")
}

fn queue_of(node: &Node) -> &SinkQueue {
    let sink = node.shell.node.sinks.find("sink");
    &sink.expect("it is planned").queue
}

fn counts(node: &Node) -> SinkCounts {
    queue_of(node).counts()
}

#[test]
fn a_full_sink_lets_messages_pass_by_or_refuses_their_publishers() {
    for (when_full, answer, is_counted) in [
        (WhenFull::Drop, REFUSED, false),
        (WhenFull::Refuse, REFUSED, true),
    ] {
        for workers in [1, 2] {
            let mut node = Node::planned(workers, sink(when_full, false));
            let publisher = node.join(workers - 1, "publisher");
            node.answers(publisher);
            for payload in ["1", "2", "3"] {
                node.publish(publisher, "t/x", payload, Q1);
            }
            let answers = node.answers(publisher);
            assert_eq!(answers, [TAKEN, TAKEN, answer.clone()], "{when_full:?}");
            assert_eq!(node.count(Counter::SinkRefused), u64::from(is_counted));
            assert_eq!(counts(&node).dropped, u64::from(!is_counted));
            let taken = take(&node);
            let payloads: Vec<&[u8]> = taken.iter().map(|one| one.message.payload()).collect();
            assert_eq!(payloads, [b"1", b"2"]);
            assert!(taken.iter().all(|one| one.place.is_none()));
            assert_eq!(taken[0].received_at, node.shell.now);
            queue_of(&node).written(&taken);
            node.publish(publisher, "t/x", "4", Q1);
            node.publish(publisher, "u", "5", Q1);
            let no_match = Answer::Puback(ReasonCode::NoMatchingSubscribers);
            assert_eq!(node.answers(publisher), [TAKEN, no_match]);
            let counts = counts(&node);
            assert_eq!((counts.offered, counts.written, counts.waiting), (3, 2, 1));
        }
    }
}

#[test]
fn a_full_sink_that_holds_publishers_names_the_connection_that_filled_it() {
    let mut node = Node::planned(1, sink(WhenFull::Hold, false));
    let publisher = node.join(0, "publisher");
    let link = node.link(publisher);
    node.answers(publisher);
    node.publish(publisher, "t", "1", Q1);
    assert!(!node.shell.take_full(link));
    node.publish(publisher, "t", "2", Q1);
    assert!(node.shell.take_full(link));
    node.publish(publisher, "t", "3", Q1);
    assert!(node.shell.take_full(link));
    assert!(!node.shell.node.sinks.are_any_refusing());
    node.publish(publisher, "t", "4", Q1);
    assert!(node.shell.node.sinks.are_any_refusing(), "it is overfull");
    node.publish(publisher, "t", "5", Q1);
    node.publish(publisher, "t", "6", Q0);
    let mut expected = vec![TAKEN; 4];
    expected.push(REFUSED);
    assert_eq!(node.answers(publisher), expected);
    assert_eq!(node.count(Counter::SinkRefused), 1);
    assert_eq!(counts(&node).dropped, 1);
}

#[test]
fn a_sink_that_the_messages_of_a_turn_fill_refuses_the_rest_of_the_turn() {
    let mut node = Node::planned(1, sink(WhenFull::Refuse, false));
    let publisher = node.join(0, "publisher");
    node.answers(publisher);
    for payload in ["1", "2", "3"] {
        node.post(publisher, publish("t", payload, Q1));
    }
    node.settle();
    assert_eq!(node.answers(publisher), [TAKEN, TAKEN, REFUSED]);
}

#[test]
fn a_message_of_the_operator_that_was_not_refused_is_in_the_sink() {
    let mut node = Node::planned(2, sink(WhenFull::Refuse, false));
    let publisher = node.join(1, "publisher");
    let is_refused = |node: &mut Node| node.shell.engine(0).is_refused_by_sinks("t/x");
    assert!(!is_refused(&mut node));
    // Another worker fills the sink before the message is routed.
    for payload in ["1", "2"] {
        node.publish(publisher, "t/x", payload, Q1);
    }
    assert!(is_refused(&mut node));
    let message = |payload: &[u8]| Arc::new(Message::new(&Publication::new("t/x", payload, Q1)));
    let outcome = node.shell.engine(0).publish_order(&message(b"order"));
    assert_eq!(outcome, Some(ReasonCode::Success));
    // A message of the node cannot be refused: a full sink drops it.
    let engine = node.shell.engine(0);
    engine.publish_message(&message(b"node"), None);
    node.settle();
    let taken = take(&node);
    let payloads: Vec<&[u8]> = taken.iter().map(|one| one.message.payload()).collect();
    assert_eq!(payloads, [&b"1"[..], b"2", b"order"]);
    assert_eq!(counts(&node).dropped, 1);
}

#[test]
fn a_client_of_version_3_is_disconnected_where_a_sink_refuses_it() {
    let mut node = Node::planned(1, sink(WhenFull::Refuse, false));
    let old = node.join_old(0, "old");
    for payload in ["1", "2"] {
        node.publish(old, "t", payload, Q1);
    }
    assert_eq!(node.count(Counter::ClientsConnected), 1);
    node.publish(old, "t", "3", Q1);
    assert_eq!(node.count(Counter::ClientsConnected), 0);
    node.answers(old);
}

#[test]
fn messages_that_a_durable_sink_has_not_written_are_restored_after_a_crash() {
    let mut node = Node::durable(2, sink(WhenFull::Drop, true));
    let publisher = node.join(1, "publisher");
    node.publish(publisher, "t", "kept", Q1);
    node.publish(publisher, "t", "lost", Q0);
    let offers = take(&node);
    assert_eq!(offers.len(), 2);
    let places: Vec<bool> = offers.iter().map(|one| one.place.is_some()).collect();
    assert_eq!(places, [true, false]);
    let mut node = node.crash();
    let offers = take(&node);
    assert_eq!(offers.len(), 1);
    assert_eq!(offers[0].message.payload(), b"kept");
    let places = offers.iter().filter_map(|one| one.place);
    node.shell.places.as_ref().unwrap().clear(places);
    node.settle();
    let node = node.crash();
    assert_eq!(counts(&node).waiting, 0);
}

#[test]
fn a_queue_gives_the_oldest_offers_within_the_limits_of_a_write() {
    let refusing: Arc<CachePadded<AtomicUsize>> = Arc::default();
    let limits = QueueLimits {
        messages: 4,
        bytes: 1 << 20,
        when_full: WhenFull::Refuse,
        is_durable: false,
    };
    let queue = SinkQueue::new(limits, Arc::clone(&refusing));
    let mut node = Node::planned(1, sink(WhenFull::Drop, false));
    let publisher = node.join(0, "publisher");
    let mut offers = Vec::new();
    for payload in ["1", "2", "3", "4"] {
        node.publish(publisher, "t", payload, Q0);
        offers.extend(take(&node));
        queue_of(&node).written(&offers[offers.len() - 1..]);
    }
    let size = offers[0].message.bytes_len();
    // Publishers wait for it only while it holds them; a reload decides.
    let is_crowded = |bytes_max: usize| {
        let (holds, before) = (WhenFull::Hold, limits);
        queue.set_limits(QueueLimits {
            bytes: bytes_max,
            when_full: holds,
            ..limits
        });
        let is_crowded = queue.is_crowded();
        queue.set_limits(before);
        assert!(!queue.is_crowded(), "it refuses");
        is_crowded
    };
    let is_refusing = || refusing.load(std::sync::atomic::Ordering::Relaxed) == 1;
    let payloads = |offers: &[Offer]| -> Vec<u8> {
        offers
            .iter()
            .map(|one| one.message.payload()[0] - b'0')
            .collect()
    };
    queue.push_all(&mut offers[..2].to_vec());
    assert!(!is_crowded(limits.bytes) && !is_refusing());
    queue.push_all(&mut offers[2..3].to_vec());
    assert!(is_crowded(limits.bytes) && !is_refusing());
    queue.push_all(&mut offers[3..].to_vec());
    assert!(is_refusing());
    assert!(!queue.is_overfull(3, 0) && queue.is_overfull(4, 0));
    assert_eq!(queue.counts().waiting_bytes, 4 * size as u64);
    let first = queue.take(3, size + 1, Duration::ZERO).unwrap();
    assert_eq!(payloads(&first), [1, 2]);
    queue.put_back(first);
    let first = queue.take(3, 1 << 20, Duration::ZERO).unwrap();
    assert_eq!(payloads(&first), [1, 2, 3]);
    assert!(is_refusing(), "what is being written counts");
    queue.written(&first);
    assert!(!is_refusing() && !is_crowded(limits.bytes));
    assert!(is_crowded(size), "a message waits");
    queue.set_limits(QueueLimits {
        bytes: size,
        ..limits
    });
    assert!(is_refusing());
    queue.set_limits(QueueLimits {
        bytes: 2 * size,
        when_full: WhenFull::Drop,
        ..limits
    });
    assert!(!is_refusing() && !queue.refuses() && !queue.holds());
}

#[test]
fn a_queue_that_is_closed_or_woken_keeps_no_reader_waiting() {
    let mut node = Node::planned(1, sink(WhenFull::Drop, false));
    let publisher = node.join(0, "publisher");
    node.publish(publisher, "t", "1", Q0);
    let long = Duration::from_mins(10);
    let queue = queue_of(&node);
    queue.count_failure();
    queue.count_dropped();
    queue.wake();
    queue.pause(long);
    queue.wake();
    let last = queue.take(9, 1, long).unwrap();
    assert_eq!(last.len(), 1);
    queue.written(&last);
    queue.wake();
    assert_eq!(queue.take(9, 1, long).unwrap().len(), 0);
    assert!(!queue.is_closing());
    queue.close();
    assert!(queue.is_closing());
    assert!(queue.take(9, 1, long).is_none());
    let expected = SinkCounts {
        offered: 1,
        written: 1,
        dropped: 1,
        failures: 1,
        waiting: 0,
        waiting_bytes: 0,
    };
    assert_eq!(queue.counts(), expected);
}

#[test]
fn a_write_and_a_crowded_queue_have_exact_borders_of_bytes() {
    let limits = QueueLimits {
        when_full: WhenFull::Hold,
        ..QueueLimits::default()
    };
    let queue = SinkQueue::new(limits, Arc::default());
    let mut node = Node::planned(1, sink(WhenFull::Drop, false));
    let publisher = node.join(0, "publisher");
    for payload in ["1", "2"] {
        node.publish(publisher, "t", payload, Q0);
    }
    let mut offers = take(&node);
    let size = offers[0].message.bytes_len();
    queue.push_all(&mut offers);
    for (bytes, is_crowded) in [(4 * size, false), (4 * size - 2, true)] {
        queue.set_limits(QueueLimits { bytes, ..limits });
        assert_eq!(queue.is_crowded(), is_crowded);
    }
    for (bytes_max, count) in [(size, 1), (size + 1, 2)] {
        let taken = queue.take(9, bytes_max, Duration::ZERO).unwrap();
        assert_eq!(taken.len(), count);
        queue.put_back(taken);
    }
}
