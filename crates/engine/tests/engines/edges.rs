//! Borders and conditions: where one more or one less, or one fact more, decides differently.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use crossbeam_utils::CachePadded;
use thrum_codec::packet::{
    Packet, Publish, Subscribe, SubscriptionOptions, SubscriptionRequest, SubscriptionRequests,
};
use thrum_codec::properties::SubscribeProperties;
use thrum_codec::{PacketId, QoS, ReasonCode, TopicFilter};
use thrum_engine::interest::Route;
use thrum_engine::node::Capacity;
use thrum_engine::node::metrics::Counter;
use thrum_engine::queue_room::is_nearly_full;
use thrum_engine::retained::{Listed, RetainedLimits, RetainedStore};
use thrum_engine::sinks::{QueueLimits, SinkQueue};
use thrum_engine::subscriber::Check;
use thrum_protection::MemoryLevel;
use thrum_protocol::limits::QueuePolicy;
use thrum_protocol::{Message, Publication};
use thrum_routing::Allowance;
use thrum_routing::shared::Strategy;

use crate::memory::use_memory;
use crate::node::{Answer, Node, connect, publish};
use crate::queues::short_and_waited_for;

const Q0: QoS = QoS::AtMostOnce;
const Q1: QoS = QoS::AtLeastOnce;
const Q2: QoS = QoS::ExactlyOnce;
const TAKEN: Answer = Answer::Puback(ReasonCode::Success);
const REFUSED: Answer = Answer::Puback(ReasonCode::QuotaExceeded);

/// A SUBSCRIBE with several filters, without the turns that follow it.
fn post_subscribe(node: &mut Node, peer: usize, filters: &[&str], qos: QoS) {
    let options = SubscriptionOptions {
        qos,
        ..SubscriptionOptions::default()
    };
    let requests = filters.iter().map(|filter| SubscriptionRequest {
        filter: TopicFilter::parse(filter).expect("it is valid"),
        options,
    });
    let requests: Vec<SubscriptionRequest<'_>> = requests.collect();
    let subscribe = Subscribe {
        packet_id: PacketId::new(2_000).expect("it is not 0"),
        properties: SubscribeProperties::default(),
        requests: SubscriptionRequests::Listed(&requests),
    };
    node.send(peer, &Packet::Subscribe(subscribe));
}

#[test]
fn only_new_messages_for_others_with_qos_1_and_2_wait_for_a_full_queue() {
    let mut node = Node::planned(1, short_and_waited_for(QueuePolicy::Hold));
    let receiver = node.subscriber(0, "receiver", "#");
    node.subscribe(receiver, "$SYS/#", Q1);
    let publisher = node.join(0, "publisher");
    let mut repeated = publish("t", "1", Q2);
    repeated.packet_id = PacketId::new(500);
    for dup in [false, true] {
        node.post(publisher, publish("t", "x", Q0));
        let first = Publish { dup, ..repeated };
        node.send(publisher, &Packet::Publish(first));
        node.shell.turn(0);
    }
    node.answers(publisher);
    for payload in ["2", "3"] {
        node.publish(publisher, "t", payload, Q1);
    }
    assert!(!node.is_held(publisher));
    node.publish(publisher, "t", "0", Q0);
    assert!(!node.is_held(publisher), "QoS 0");
    node.publish(publisher, "$SYS/x", "x", Q1);
    assert!(!node.is_held(publisher), "a topic of the server");
    let denied = Answer::Puback(ReasonCode::NotAuthorized);
    assert_eq!(node.answers(publisher).last(), Some(&denied));
    node.publish(publisher, "t", "4", Q1);
    assert!(node.is_held(publisher));
}

#[test]
fn a_repeated_message_does_not_wait_and_is_answered_each_time() {
    let mut node = Node::planned(1, short_and_waited_for(QueuePolicy::Hold));
    node.subscriber(0, "receiver", "t");
    let publisher = node.join(0, "publisher");
    let other = node.join(0, "other");
    let link = node.link(publisher);
    let mut message = publish("t", "1", Q2);
    message.packet_id = PacketId::new(500);
    let send = |node: &mut Node, dup: bool| {
        let before = node.count(Counter::AnswersSent);
        node.send(publisher, &Packet::Publish(Publish { dup, ..message }));
        node.shell.turn(0);
        node.count(Counter::AnswersSent) - before
    };
    assert_eq!(send(&mut node, false), 1);
    for payload in ["2", "3"] {
        node.post(other, publish("t", payload, Q1));
    }
    node.shell.turn(0);
    assert_eq!(send(&mut node, true), 1, "the same PUBREC again");
    assert!(!node.shell.is_held(link));
    node.post(other, publish("t", "4", Q1));
    node.shell.turn(0);
    assert!(node.is_held(other));
}

#[test]
fn room_that_a_worker_does_not_need_goes_to_the_next_one() {
    let mut node = Node::planned(3, short_and_waited_for(QueuePolicy::Hold));
    let receiver = node.subscriber(0, "receiver", "t");
    let gone = node.join(1, "gone");
    let waits = node.join(2, "waits");
    for payload in ["1", "2", "3", "gone"] {
        node.publish(gone, "t", payload, Q1);
    }
    node.publish(waits, "t", "4", Q1);
    assert!(node.is_held(gone) && node.is_held(waits));
    node.cut(gone);
    let first = node.messages(receiver).remove(0);
    node.acknowledge(receiver, &first);
    assert!(!node.is_held(waits), "no time has passed");
    assert_eq!(node.drain(receiver), ["2", "3", "4"]);
}

#[test]
fn a_queue_of_one_worker_that_refuses_has_no_room_to_show() {
    for (workers, policy, expected) in [
        (1, QueuePolicy::RejectNew, false),
        (1, QueuePolicy::Hold, true),
        (2, QueuePolicy::RejectNew, true),
    ] {
        let mut node = Node::planned(workers, |plan| {
            plan.limits().inflight_max = 1;
            plan.limits().queue.messages_max = 600;
            plan.limits().queue.policy = policy;
        });
        let receiver = node.subscriber(0, "receiver", "t");
        let publisher = node.join(0, "publisher");
        let slot = node.shell.find("receiver").unwrap().1;
        let has_room = |node: &mut Node| {
            let client = &node.shell.engine(0).core.sessions[slot];
            client.own_room().is_some()
        };
        assert!(!has_room(&mut node), "the queue is empty");
        for _ in 0..10 {
            node.publish(publisher, "t", "x", Q1);
        }
        assert!(!has_room(&mut node), "it is far from full");
        for _ in 10..400 {
            node.publish(publisher, "t", "x", Q1);
        }
        assert_eq!(has_room(&mut node), expected, "{workers} {policy:?}");
        let nearly_full = node.shell.engine(0).router.topics.counts()[1];
        assert_eq!(nearly_full, usize::from(expected));
        assert_eq!(node.drain(receiver).len(), 400);
        assert!(!has_room(&mut node));
        assert_eq!(node.shell.engine(0).router.topics.counts()[1], 0);
    }
}

#[test]
fn a_queue_is_nearly_full_above_its_part_and_not_at_it() {
    let mut node = Node::planned(1, |plan| {
        plan.limits().inflight_max = 1;
        plan.limits().packet_bytes_max = 100;
        plan.limits().queue.messages_max = 1_000;
    });
    node.subscriber(0, "receiver", "t");
    let publisher = node.join(0, "publisher");
    for _ in 0..=260 {
        node.publish(publisher, "t", "x", Q1);
    }
    let slot = node.shell.find("receiver").unwrap().1;
    let session = &mut node.shell.engine(0).core.sessions[slot].session;
    let (messages, bytes) = session.outbound().qos1_and_2_backlog();
    assert_eq!(messages, 260);
    let mut are_nearly_full = |messages_max: usize, bytes_max: usize| {
        let mut limits = session.limits().clone();
        limits.queue.messages_max = u32::try_from(messages_max).unwrap();
        limits.queue.bytes_max = u32::try_from(bytes_max).unwrap();
        session.set_limits(&Arc::new(limits));
        [false, true].map(|was| is_nearly_full(session, was))
    };
    let many = 1 << 30;
    assert_eq!(are_nearly_full(4 * messages, many), [false, false]);
    assert_eq!(are_nearly_full(4 * messages - 4, many), [false, true]);
    assert_eq!(are_nearly_full(2 * messages, many), [false, true]);
    assert_eq!(are_nearly_full(2 * messages - 2, many), [true, true]);
    assert_eq!(are_nearly_full(many, 4 * bytes), [false, false]);
    assert_eq!(are_nearly_full(many, 4 * bytes - 4), [false, true]);
    assert_eq!(are_nearly_full(many, 2 * bytes), [false, true]);
    assert_eq!(are_nearly_full(many, 2 * bytes - 2), [true, true]);
}

#[test]
fn a_receiver_with_room_behind_a_full_one_of_its_worker_gets_the_message() {
    let mut node = Node::planned(2, |plan| {
        plan.limits().inflight_max = 1;
        plan.limits().queue.messages_max = 300;
    });
    let full = node.subscriber(0, "full", "t");
    let publisher = node.join(1, "publisher");
    for _ in 0..301 {
        node.publish(publisher, "t", "x", Q1);
    }
    node.answers(publisher);
    node.publish(publisher, "t", "no", Q1);
    assert_eq!(node.answers(publisher), [REFUSED]);
    let other = node.subscriber(0, "other", "t");
    node.publish(publisher, "t", "yes", Q1);
    assert_eq!(node.answers(publisher), [TAKEN]);
    assert_eq!(node.drain(other), ["yes"]);
    // A receiver of the publisher's own worker takes it too, and the full one does not.
    node.unsubscribe(other, &["t"]);
    let here = node.subscriber(1, "here", "t");
    node.publish(publisher, "t", "here", Q1);
    assert_eq!(node.answers(publisher), [TAKEN]);
    assert_eq!(node.drain(here), ["here"]);
    let came = node.drain(full);
    assert_eq!(came.len(), 301);
    assert!(came.iter().all(|payload| payload == "x"));
}

#[test]
fn a_promise_to_one_session_is_none_to_another_one() {
    let mut node = Node::planned(2, short_and_waited_for(QueuePolicy::RejectNew));
    let full = node.subscriber(0, "full", "t");
    let publisher = node.join(1, "publisher");
    for payload in ["1", "2", "3"] {
        node.publish(publisher, "t", payload, Q1);
    }
    let other = node.subscriber(0, "other", "t");
    node.publish(publisher, "t", "4", Q1);
    assert_eq!(node.drain(other), ["4"]);
    assert_eq!(node.drain(full), ["1", "2", "3"]);
    assert_eq!(node.count(Counter::DroppedQueueFull), 1);
}

#[test]
fn a_message_that_was_acknowledged_is_taken_though_memory_becomes_short_on_its_way() {
    for filter in ["t", "$share/g/t"] {
        let mut node = Node::planned(2, |plan| {
            plan.settings.memory_bytes = 1 << 30;
            plan.limits().inflight_max = 1;
        });
        let receiver = node.subscriber(0, "receiver", filter);
        let publisher = node.join(1, "publisher");
        node.publish(publisher, "t", "1", Q1);
        node.answers(publisher);
        node.post(publisher, publish("t", "2", Q1));
        node.shell.turn(1);
        assert_eq!(node.read(publisher), [TAKEN]);
        node.shell.set_resident(2 << 30);
        node.shell.engine(1).core.read_memory();
        node.settle();
        assert_eq!(node.count(Counter::DroppedMemoryShort), 0);
        assert_eq!(node.drain(receiver), ["1", "2"], "{filter}");
    }
}

#[test]
fn a_publisher_that_cannot_be_told_hears_that_its_messages_are_refused() {
    let mut node = Node::planned(2, |plan| plan.settings.memory_bytes = 1 << 30);
    let away = node.subscriber(0, "away", "t");
    node.cut(away);
    let old = node.join_old(1, "old");
    for (hundredths, expected) in [(50, false), (101, true), (91, true), (50, false)] {
        use_memory(&mut node, hundredths);
        let mut has_queued = false;
        for _ in 0..3 {
            node.shell.engine(1).core.memory.has_queued = false;
            node.publish(old, "t", "x", Q1);
            has_queued = node.shell.engine(1).core.memory.has_queued;
        }
        assert_eq!(has_queued, expected, "{hundredths}");
    }
    assert!(node.count(Counter::DroppedMemoryShort) > 0);
}

#[test]
fn the_small_window_of_full_memory_is_for_kept_messages_of_kept_sessions() {
    let mut node = Node::planned(1, |plan| {
        plan.settings.memory_bytes = 1 << 30;
        plan.limits().inflight_max = 100;
    });
    let mut brief = connect("brief");
    brief.properties.session_expiry = None;
    let brief = node.join_as(0, &brief);
    node.subscribe(brief, "brief", Q1);
    node.set_acknowledges(brief, false);
    let kept = node.subscriber(0, "kept", "kept");
    let publisher = node.join(0, "publisher");
    use_memory(&mut node, 101);
    for topic in ["brief", "kept"] {
        for _ in 0..20 {
            node.publish(publisher, topic, "1", Q1);
        }
        node.publish(publisher, topic, "0", Q0);
    }
    assert_eq!(node.messages(brief).len(), 21);
    assert_eq!(node.messages(kept).len(), 17, "16 and that with QoS 0");
}

#[test]
fn retained_messages_wait_while_memory_is_too_short_for_them() {
    let mut node = Node::planned(1, |plan| {
        plan.settings.memory_bytes = 1 << 30;
        plan.limits().inflight_max = 100;
    });
    let publisher = node.join(0, "publisher");
    for number in 0..20 {
        node.retain(publisher, &format!("t/{number:02}"), "x");
    }
    use_memory(&mut node, 101);
    let receiver = node.join(0, "receiver");
    node.set_acknowledges(receiver, false);
    node.subscribe(receiver, "t/#", Q1);
    let first = node.messages(receiver);
    assert_eq!(first.len(), 16);
    assert_eq!(node.count(Counter::DroppedMemoryShort), 0);
    for message in &first {
        node.acknowledge(receiver, message);
    }
    assert_eq!(node.drain(receiver).len(), 4);
}

#[test]
fn the_retained_messages_of_all_filters_of_a_packet_come_at_once() {
    let mut node = Node::new(1);
    let publisher = node.join(0, "publisher");
    for topic in ["a/1", "b/1", "c"] {
        node.retain(publisher, topic, topic);
    }
    let receiver = node.join(0, "receiver");
    post_subscribe(&mut node, receiver, &["a/#", "b/+", "c"], Q1);
    node.shell.turn(0);
    node.read(receiver);
    let mut came = node.payloads(receiver);
    came.sort_unstable();
    assert_eq!(came, ["a/1", "b/1", "c"]);
}

#[test]
fn a_replay_of_many_topics_goes_on_turn_by_turn() {
    let mut node = Node::planned(1, |plan| {
        plan.settings.retained.message_count = 10_000;
        plan.settings.retained.bytes = 1 << 30;
        plan.settings.output_bytes = 1 << 30;
    });
    let publisher = node.join(0, "publisher");
    for number in 0..9_000 {
        let topic = format!("t/{number}");
        let retained = Publish {
            retain: true,
            ..publish(&topic, "x", Q0)
        };
        node.post(publisher, retained);
    }
    node.settle();
    let receiver = node.join(0, "receiver");
    post_subscribe(&mut node, receiver, &["t/+"], Q0);
    node.shell.turn(0);
    node.read(receiver);
    let first = node.messages(receiver).len();
    assert!((3_000..5_000).contains(&first), "{first}");
    assert!(node.shell.engine(0).replays.is_waiting());
    node.shell.turn(0);
    node.read(receiver);
    let second = node.messages(receiver).len();
    assert!((3_000..5_000).contains(&second), "{second}");
    assert!(node.shell.engine(0).replays.is_waiting());
    node.shell.turn(0);
    node.read(receiver);
    assert_eq!(first + second + node.messages(receiver).len(), 9_000);
    assert!(!node.shell.engine(0).replays.is_waiting());
}

#[test]
fn a_retained_message_that_waits_for_its_receiver_survives_its_replacement_and_a_crash() {
    let mut node = Node::durable(2, |_| ());
    let publisher = node.join(1, "publisher");
    node.retain(publisher, "t", "old");
    let receiver = node.join(0, "receiver");
    node.answers(receiver);
    post_subscribe(&mut node, receiver, &["t"], Q1);
    node.shell.read_inputs(0);
    // The changes of the replacing worker are durable first.
    let new = Publish {
        retain: true,
        ..publish("t", "new", Q1)
    };
    node.post(publisher, new);
    node.shell.turn(1);
    assert!(node.shell.commit());
    node.shell.write_outputs(0);
    assert!(node.shell.commit());
    let mut node = node.crash();
    let receiver = node.join(0, "receiver");
    let came = node.payloads(receiver);
    assert!(came.contains(&"old".to_owned()), "{came:?}");
}

#[test]
fn topics_of_a_node_with_several_workers_are_divided_among_shards() {
    let limits = RetainedLimits {
        message_count: 100,
        bytes: 1 << 20,
        payload_bytes: 100,
    };
    for (workers, expected) in [(1, 1), (4, 8)] {
        let store = RetainedStore::new(limits, workers);
        let shard = |number: usize| {
            let place = store.behind(&format!("topic/{number}"));
            store.write_place(Some(&place))[2]
        };
        let mut shards: Vec<u8> = (0..200).map(shard).collect();
        shards.sort_unstable();
        shards.dedup();
        assert_eq!(shards.len(), expected, "{workers} workers");
    }
}

#[test]
fn a_retained_message_keeps_the_time_of_its_publication() {
    let mut node = Node::durable(1, |_| ());
    let publisher = node.join(0, "publisher");
    node.advance_time(Duration::from_hours(1));
    node.retain(publisher, "t", "x");
    let expected = node.shell.now;
    node.advance_time(Duration::from_hours(1));
    let at = |node: &Node| {
        let mut listed: Vec<Listed> = Vec::new();
        let mut allowance = Allowance {
            messages: 9,
            visits: 99,
        };
        let store = &node.shell.node.retained;
        store.list("t", None, &mut allowance, &mut listed);
        assert_eq!((listed.len(), allowance.visits), (1, 98));
        listed[0].at
    };
    assert_eq!(at(&node), expected);
    assert_eq!(at(&node.crash()), expected);
}

#[test]
fn a_message_that_exceeds_a_queue_is_taken_by_a_member_that_had_room() {
    let mut node = Node::planned(1, short_and_waited_for(QueuePolicy::RejectNew));
    let member = node.subscriber(0, "member", "t");
    node.subscribe(member, "$share/g/t", Q1);
    node.answers(member);
    let publisher = node.join(0, "publisher");
    node.answers(publisher);
    // Each message comes twice, the second one to the last place of the queue and beyond it.
    for payload in ["1", "2"] {
        node.publish(publisher, "t", payload, Q1);
    }
    assert_eq!(node.answers(publisher), [TAKEN; 2]);
    assert_eq!(node.drain(member), ["1", "1", "2", "2"]);
}

#[test]
fn new_sessions_of_a_client_keep_to_one_member_by_that_strategy() {
    let mut node = Node::planned(1, |plan| plan.strategy = Strategy::HashClientId);
    assert_eq!(node.shell.node.interest.strategy(), Strategy::HashClientId);
    let members: Vec<usize> = (0..5)
        .map(|number| {
            let member = node.join(0, &format!("m{number}"));
            node.subscribe(member, "$share/g/t", Q1);
            member
        })
        .collect();
    for _ in 0..10 {
        let mut brief = connect("publisher");
        brief.properties.session_expiry = None;
        let publisher = node.join_as(0, &brief);
        node.publish(publisher, "t", "x", Q1);
        node.cut(publisher);
    }
    let mut counts: Vec<usize> = members
        .iter()
        .map(|one| node.messages(*one).len())
        .collect();
    counts.sort_unstable();
    assert_eq!(counts, [0, 0, 0, 0, 10]);
}

#[test]
fn a_filter_is_durable_while_a_durable_session_subscribes_to_it() {
    let mut node = Node::durable(2, |_| ());
    let durable = |node: &Node| {
        let mut route = Route::default();
        let interest = &node.shell.node.interest;
        interest.route("t", &mut Vec::new(), &mut route);
        (route.workers.len(), route.durable.len())
    };
    let one = node.join(0, "one");
    let two = node.join(0, "two");
    let mut brief = connect("brief");
    brief.properties.session_expiry = None;
    let brief = node.join_as(0, &brief);
    node.subscribe(brief, "t", Q1);
    assert_eq!(durable(&node), (1, 0));
    node.subscribe(one, "t", Q1);
    node.subscribe(two, "t", Q1);
    assert_eq!(durable(&node), (1, 1));
    node.unsubscribe(one, &["t"]);
    assert_eq!(durable(&node), (1, 1));
    node.unsubscribe(two, &["t"]);
    assert_eq!(durable(&node), (1, 0));
    node.subscribe(two, "t", Q1);
    // The session ends with its next connection.
    node.cut(two);
    let mut last = connect("two");
    last.properties.session_expiry = Some(0);
    node.join_as(0, &last);
    assert_eq!(durable(&node), (1, 0));
}

#[test]
fn a_check_of_a_subscription_is_what_it_was_set_to() {
    let mut node = Node::new(1);
    let peer = node.join(0, "peer");
    node.subscribe(peer, "t", Q1);
    let slot = node.shell.find("peer").unwrap().1;
    let filter = TopicFilter::parse("t").unwrap();
    let topics = &mut node.shell.engine(0).router.topics;
    for check in [Check::OrDenied, Check::OrAllowed, Check::Never] {
        topics.set_check(slot, filter, check);
        assert_eq!(topics.check_of(slot, filter), check);
    }
    assert_eq!(Check::each(true), Check::OrAllowed);
    assert_eq!(Check::each(false), Check::OrDenied);
}

#[test]
fn a_message_is_copied_unless_it_is_stored_or_never_will_be() {
    for is_durable in [false, true] {
        let mut node = if is_durable {
            Node::durable(1, |_| ())
        } else {
            Node::new(1)
        };
        let core = &node.shell.engine(0).core;
        let is_copied = |qos: QoS, stored_id: u64| {
            let message = Arc::new(Message::new(&Publication::new("t", b"x", qos)));
            message.set_stored_id(stored_id);
            !Arc::ptr_eq(&message, &core.own_copy(&message))
        };
        assert_eq!(is_copied(Q1, 0), is_durable);
        assert_eq!(is_copied(Q2, 0), is_durable);
        assert!(!is_copied(Q1, 7) && !is_copied(Q0, 0) && !is_copied(Q0, 7));
    }
}

#[test]
fn a_worker_is_stuck_while_the_disk_takes_no_more() {
    let mut node = Node::durable(1, |plan| {
        plan.segments_max = 1 << 20;
        plan.limits().queue.bytes_max = 1 << 30;
    });
    let away = node.subscriber(0, "away", "t");
    node.cut(away);
    let publisher = node.join(0, "publisher");
    let is_stuck = |node: &mut Node| node.shell.engine(0).core.durable.is_stuck();
    let big = "x".repeat(1 << 20);
    assert!(!is_stuck(&mut node));
    let mut turns = 0;
    while !is_stuck(&mut node) {
        node.post(publisher, publish("t", &big, Q1));
        node.shell.turn(0);
        turns += 1;
        assert!(turns < 100);
    }
    assert!((60..70).contains(&turns), "{turns}");
    assert!(node.shell.engine(0).core.is_unsettled());
    assert!(node.shell.commit());
    node.shell.turn(0);
    assert!(!is_stuck(&mut node));
}

#[test]
fn full_mailboxes_are_known_of_the_connection_that_found_them() {
    let mut node = Node::planned(2, |plan| {
        plan.mailbox = Capacity {
            messages: 1,
            bytes: 1 << 20,
        };
    });
    node.subscriber(0, "receiver", "t");
    let there = thrum_engine::workers::WorkerId::new(0);
    let outboxes = &mut node.shell.engine(1).core.outboxes;
    outboxes.begin_connection();
    outboxes.send_beside(there, 0);
    outboxes.begin_connection();
    assert!(outboxes.take_full().is_empty(), "it was another connection");
    outboxes.send_beside(there, 0);
    let full = outboxes.take_full();
    assert!(full.workers.contains(there) && full.sinks.is_empty());
    assert!(outboxes.take_full().is_empty());
}

#[test]
fn a_sink_that_pauses_goes_on_when_it_is_woken_or_closed() {
    let refusing: Arc<CachePadded<AtomicUsize>> = Arc::default();
    let queue = Arc::new(SinkQueue::new(QueueLimits::default(), refusing));
    let wakes: [fn(&SinkQueue); 2] = [SinkQueue::wake, SinkQueue::close];
    for wake in wakes {
        let (sender, receiver) = mpsc::channel();
        let paused = Arc::clone(&queue);
        let thread = std::thread::spawn(move || {
            paused.pause(Duration::from_mins(10));
            sender.send(()).expect("the test waits for it");
        });
        let early = receiver.recv_timeout(Duration::from_millis(30));
        assert_eq!(early, Err(mpsc::RecvTimeoutError::Timeout));
        wake(&queue);
        receiver
            .recv_timeout(Duration::from_secs(20))
            .expect("it goes on");
        thread.join().expect("it has gone on");
    }
    assert!(queue.is_closing());
}

#[test]
fn queues_that_are_not_short_are_not_announced_with_a_subscription() {
    for messages_max in [255, 1_000] {
        let mut node = Node::planned(2, |plan| plan.limits().queue.messages_max = messages_max);
        let is_announced = messages_max < 256;
        node.subscriber(0, "receiver", "t");
        let slot = node.shell.find("receiver").unwrap().1;
        let client = &node.shell.engine(0).core.sessions[slot];
        assert_eq!(client.own_room().is_some(), is_announced);
        let mut route = Route::default();
        let interest = &node.shell.node.interest;
        interest.route("t", &mut Vec::new(), &mut route);
        assert_eq!(route.nearly_full.len(), usize::from(is_announced));
        assert_eq!(node.shell.node.holding.load(Ordering::Relaxed), 0);
    }
}

#[test]
fn memory_that_is_not_limited_is_never_short() {
    let mut node = Node::new(1);
    node.shell.set_resident(u64::MAX / 2);
    node.advance_time(Duration::from_secs(1));
    node.shell.engine(0).core.read_memory();
    assert_eq!(node.shell.node.memory.level(), MemoryLevel::Ample);
}
