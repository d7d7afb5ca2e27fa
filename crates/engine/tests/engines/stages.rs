//! Stamped messages: each is followed from the read to the acknowledgement, and given up where it
//! cannot arrive.

use std::sync::atomic::Ordering;
use std::time::Duration;

use thrum_codec::QoS;
use thrum_codec::packet::SubscriptionOptions;
use thrum_engine::stages::{
    self, FOLLOWED_MAX, MessageStage, MovedBytes, STAGE_PARTS, StageFigures,
};
use thrum_protocol::limits::QueuePolicy;

use crate::node::{Node, Peer, connect, publish, publish_expiring};
use crate::queues::short;
use crate::shell::Plan;

const Q0: QoS = QoS::AtMostOnce;
const Q1: QoS = QoS::AtLeastOnce;
const Q2: QoS = QoS::ExactlyOnce;

/// Every message is stamped, and the clock advances by 100 µs with each read.
fn stamped(plan: &mut Plan) {
    plan.settings.stamp_every = 1;
    plan.process.micros_of_look.store(100, Ordering::Relaxed);
}

fn figures(node: &Node) -> StageFigures {
    node.shell
        .node
        .stages
        .merged()
        .expect("messages are stamped")
}

fn count(node: &Node, stage: MessageStage) -> u64 {
    figures(node).series(stage).count()
}

fn sum_micros(node: &Node, stage: MessageStage) -> u64 {
    figures(node).series(stage).sum_ns / 1_000
}

/// Deliveries that were written, acknowledged, and answers that were written.
fn counts(node: &Node) -> [u64; 3] {
    [
        MessageStage::Written,
        MessageStage::Acknowledged,
        MessageStage::Answered,
    ]
    .map(|stage| count(node, stage))
}

fn sweep(node: &mut Node, workers: usize) {
    for worker in 0..workers {
        stages::sweep_is_due(&mut node.shell.engine(worker).core);
    }
}

/// A subscriber that reads and answers, and a publisher.
fn pair(node: &mut Node, at: [usize; 2], qos: QoS) -> [Peer; 2] {
    let receiver = node.join(at[0], "receiver");
    node.subscribe(receiver, "t", qos);
    [receiver, node.join(at[1], "publisher")]
}

#[test]
fn the_stages_of_a_delivery_add_up_to_its_time_in_the_broker() {
    for at in [[0, 0], [0, 1]] {
        let mut node = Node::planned(2, stamped);
        let [receiver, publisher] = pair(&mut node, at, Q0);
        for _ in 0..5 {
            node.publish(publisher, "t", "m", Q0);
        }
        assert_eq!(node.payloads(receiver).len(), 5);
        assert_eq!(figures(&node).stamped, 5);
        let parts = [
            MessageStage::Routed,
            MessageStage::Queued,
            MessageStage::Written,
        ];
        for stage in parts {
            assert_eq!(count(&node, stage), 5, "{stage:?}");
            assert!(sum_micros(&node, stage) >= 499, "{stage:?}");
        }
        let sum: u64 = parts.map(|stage| sum_micros(&node, stage)).iter().sum();
        assert_eq!(sum, sum_micros(&node, MessageStage::Broker));
        let all = figures(&node);
        let of = |stage| all.series(stage);
        let parts = STAGE_PARTS.map(|(_, stage)| of(stage));
        assert!(parts.iter().all(|part| part.count() == 5));
        let sum: u64 = parts.iter().map(|part| part.sum_ns).sum();
        // A part without a duration counts as one nanosecond.
        assert!(sum.abs_diff(of(MessageStage::Broker).sum_ns) <= 30, "{sum}");
        // The clients are not checked, and nothing waits for a disk.
        for (stage, most) in [(MessageStage::Authorize, 5), (MessageStage::Sync, 5)] {
            assert_eq!(of(stage).sum_ns, most, "{stage:?}");
        }
        assert_eq!(counts(&node), [5, 0, 0]);
    }
}

#[test]
fn nothing_is_kept_while_no_message_is_stamped() {
    let mut node = Node::new(2);
    let [receiver, publisher] = pair(&mut node, [0, 1], Q1);
    node.publish(publisher, "t", "m", Q1);
    assert_eq!(node.payloads(receiver), ["m"]);
    assert!(node.shell.node.stages.merged().is_none());
}

#[test]
fn stamping_is_turned_on_and_off_while_messages_are_under_way() {
    let mut node = Node::planned(1, stamped);
    let [receiver, publisher] = pair(&mut node, [0, 0], Q1);
    node.set_slow(receiver, true);
    node.publish(publisher, "t", "1", Q1);
    stages::stamp_every(&mut node.shell.engine(0).core, 0);
    assert!(node.shell.node.stages.merged().is_none());
    node.set_slow(receiver, false);
    node.publish(publisher, "t", "2", Q1);
    stages::stamp_every(&mut node.shell.engine(0).core, 1);
    node.publish(publisher, "t", "3", Q1);
    assert_eq!(node.payloads(receiver), ["1", "2", "3"]);
    // The figures go on; the second message was not stamped, and the first no longer followed.
    assert_eq!(figures(&node).stamped, 2);
    assert_eq!(counts(&node), [1, 1, 2]);
    assert_eq!(figures(&node).unfinished, 1, "the first one is counted");
}

#[test]
fn one_of_n_messages_is_stamped_and_no_publisher_has_all_of_them() {
    let mut node = Node::planned(1, |plan| plan.settings.stamp_every = 10);
    let publishers: Vec<Peer> = (0..10)
        .map(|number| node.join(0, &format!("p{number}")))
        .collect();
    let receiver = node.subscriber(0, "receiver", "t/0");
    for _ in 0..200 {
        for (number, publisher) in publishers.iter().enumerate() {
            node.publish(*publisher, &format!("t/{number}"), "m", Q0);
        }
    }
    let all = figures(&node);
    assert!((170..=230).contains(&all.stamped), "{}", all.stamped);
    // Those of one publisher of ten.
    let received = all.series(MessageStage::Written).count();
    assert!((8..=40).contains(&received), "{received}");
    assert_eq!(all.unreceived, all.stamped - received);
    assert_eq!(node.payloads(receiver).len(), 200);
}

#[test]
fn acknowledgements_end_the_exchange_of_each_quality_of_service_once() {
    for (qos, expected) in [(Q0, [3, 0, 0]), (Q1, [3, 3, 3]), (Q2, [3, 3, 3])] {
        for at in [[0, 0], [1, 0]] {
            let mut node = Node::planned(2, stamped);
            let [_, publisher] = pair(&mut node, at, qos);
            for _ in 0..3 {
                node.publish(publisher, "t", "m", qos);
            }
            assert_eq!(counts(&node), expected, "{qos:?}");
        }
    }
}

#[test]
fn a_receiver_that_does_not_acknowledge_takes_its_time() {
    let mut node = Node::planned(1, stamped);
    let receiver = node.subscriber(0, "receiver", "t");
    let publisher = node.join(0, "publisher");
    node.publish(publisher, "t", "m", Q1);
    assert_eq!(counts(&node), [1, 0, 1]);
    let before = sum_micros(&node, MessageStage::Broker);
    node.drain(receiver);
    assert_eq!(counts(&node), [1, 1, 1]);
    assert_eq!(sum_micros(&node, MessageStage::Broker), before);
}

#[test]
fn the_followed_receiver_of_a_fan_out_stands_for_all_of_its_worker() {
    let mut node = Node::planned(2, stamped);
    for number in 0..7 {
        let receiver = node.join(usize::from(number > 4), &format!("r{number}"));
        node.subscribe(receiver, "t", Q0);
        // A session that several filters match receives the message once.
        node.subscribe(receiver, if number == 6 { "#" } else { "other" }, Q0);
    }
    let publisher = node.join(0, "publisher");
    node.publish(publisher, "t", "m", Q0);
    assert_eq!(figures(&node).stamped, 1);
    assert_eq!(counts(&node), [7, 0, 0]);
    // One for each worker.
    assert_eq!(count(&node, MessageStage::FannedOut), 2);
    assert_eq!(figures(&node).unfinished, 0);
}

#[test]
fn every_receiver_is_followed_as_often() {
    let mut node = Node::planned(1, stamped);
    let receivers = [0, 1, 2].map(|number| node.subscriber(0, &format!("r{number}"), "t"));
    let publisher = node.join(0, "publisher");
    let mut followed = [0; 3];
    for _ in 0..300 {
        node.publish(publisher, "t", "m", Q1);
        for (receiver, followed) in receivers.iter().zip(&mut followed) {
            let before = count(&node, MessageStage::Acknowledged);
            node.drain(*receiver);
            *followed += (count(&node, MessageStage::Acknowledged) - before) / 3;
        }
    }
    assert_eq!(followed.iter().sum::<u64>(), 300);
    assert!(
        followed.iter().all(|often| (60..=140).contains(often)),
        "{followed:?}"
    );
}

#[test]
fn a_message_that_nobody_receives_is_counted() {
    let mut node = Node::planned(2, stamped);
    let publisher = node.join(0, "publisher");
    node.publish(publisher, "t", "m", Q1);
    let all = figures(&node);
    assert_eq!((all.stamped, all.unreceived), (1, 1));
    assert_eq!(counts(&node), [0, 0, 1]);
    // The publisher itself is the only subscriber, and does not want its own messages.
    let options = SubscriptionOptions {
        qos: Q1,
        no_local: true,
        ..SubscriptionOptions::default()
    };
    node.subscribe_with(publisher, &["t"], options, None);
    node.publish(publisher, "t", "m", Q1);
    assert_eq!(figures(&node).unreceived, 2);
}

#[test]
fn a_shared_group_has_one_receiver_on_any_worker() {
    let mut node = Node::planned(2, stamped);
    for worker in [0, 1] {
        let member = node.join(worker, &format!("m{worker}"));
        node.subscribe(member, "$share/g/t", Q1);
    }
    let publisher = node.join(0, "publisher");
    for _ in 0..4 {
        node.publish(publisher, "t", "m", Q1);
    }
    assert_eq!(counts(&node), [4, 4, 4]);
}

#[test]
fn a_message_is_followed_through_a_queue_behind_a_full_window() {
    for workers in [1, 2] {
        let mut node = Node::planned(workers, |plan| {
            stamped(plan);
            short(QueuePolicy::RejectNew)(plan);
        });
        let receiver = node.subscriber(0, "receiver", "t");
        let publisher = node.join(workers - 1, "publisher");
        for payload in ["1", "2", "3"] {
            node.publish(publisher, "t", payload, Q1);
        }
        assert_eq!(counts(&node), [1, 0, 3]);
        assert_eq!(node.drain(receiver), ["1", "2", "3"]);
        assert_eq!(counts(&node), [3, 3, 3]);
        assert_eq!(figures(&node).unfinished, 0);
        // Nothing is recorded any longer once nothing waits.
        let (_, slot) = node.shell.find("receiver").expect("it has a session");
        let outbound = node.shell.engine(0).core.sessions[slot].session.outbound();
        assert!(!outbound.records_events());
    }
}

#[test]
fn messages_that_leave_a_queue_together_are_written_one_after_the_other() {
    let mut node = Node::planned(1, |plan| {
        stamped(plan);
        plan.settings.output_bytes = 100;
    });
    let receiver = node.subscriber(0, "receiver", "t");
    let publisher = node.join(0, "publisher");
    node.set_slow(receiver, true);
    // The first fills the output, and the others wait in the queue.
    for payload in [&*"1".repeat(200), "2", "3", "4"] {
        node.publish(publisher, "t", payload, Q1);
    }
    let written = |node: &Node| count(node, MessageStage::Written);
    let (_, slot) = node.shell.find("receiver").expect("it has a session");
    let engine = node.shell.engine(0);
    engine.resume_queue(slot, 10_000);
    let core = &mut engine.core;
    let key = core.sessions[slot].connection.expect("it is connected");
    let from_output = core.outputs[key].waiting() - 1;
    let moved = MovedBytes {
        from_output,
        into_socket: from_output,
        in_layers: 0,
    };
    // All but the last byte of the last message.
    stages::written(core, key, moved);
    assert_eq!(written(&node), 3);
}

#[test]
fn messages_that_leave_a_queue_otherwise_are_given_up() {
    let mut node = Node::planned(1, |plan| {
        stamped(plan);
        short(QueuePolicy::DropOldest)(plan);
    });
    let receiver = node.subscriber(0, "receiver", "t");
    let publisher = node.join(0, "publisher");
    node.publish(publisher, "t", "1", Q1);
    node.post(publisher, publish_expiring("t", "expires", 1));
    node.settle();
    node.publish(publisher, "t", "oldest", Q1);
    // The queue has room for two.
    node.publish(publisher, "t", "last", Q1);
    assert_eq!(figures(&node).unfinished, 1);
    node.advance_time(Duration::from_secs(2));
    assert_eq!(node.drain(receiver), ["1", "oldest", "last"]);
    assert_eq!(counts(&node), [3, 3, 4]);
    assert_eq!(figures(&node).unfinished, 1);
}

#[test]
fn an_expired_message_of_a_queue_is_given_up() {
    let mut node = Node::planned(1, |plan| {
        stamped(plan);
        plan.limits().inflight_max = 1;
    });
    let receiver = node.subscriber(0, "receiver", "t");
    let publisher = node.join(0, "publisher");
    node.publish(publisher, "t", "1", Q1);
    node.post(publisher, publish_expiring("t", "expires", 1));
    node.settle();
    node.advance_time(Duration::from_secs(2));
    assert_eq!(node.drain(receiver), ["1"]);
    assert_eq!(figures(&node).unfinished, 1);
    assert_eq!(counts(&node), [1, 1, 2]);
}

#[test]
fn a_connection_that_ends_gives_up_its_messages_and_not_those_of_its_successor() {
    let mut node = Node::planned(1, stamped);
    let receiver = node.subscriber(0, "receiver", "t");
    let publisher = node.join(0, "publisher");
    node.set_slow(receiver, true);
    // One stands in the output, as the client does not read.
    node.publish(publisher, "t", "unread", Q1);
    assert_eq!(counts(&node), [0, 0, 1]);
    node.cut(receiver);
    // The place of the connection is used again, and the message is sent again.
    let again = node.join(0, "receiver");
    assert_eq!(node.payloads(again), ["unread"]);
    node.publish(publisher, "t", "next", Q1);
    assert_eq!(node.payloads(again), ["next"]);
    sweep(&mut node, 1);
    assert_eq!(figures(&node).unfinished, 1);
    assert_eq!(counts(&node), [1, 1, 2]);
}

#[test]
fn a_session_that_is_taken_over_is_followed_no_longer() {
    for workers in [1, 2] {
        let mut node = Node::planned(workers, |plan| {
            stamped(plan);
            plan.limits().inflight_max = 1;
        });
        node.subscriber(0, "receiver", "t");
        let publisher = node.join(0, "publisher");
        // The first waits for its acknowledgement, the second for room in the window.
        node.publish(publisher, "t", "1", Q1);
        node.publish(publisher, "t", "2", Q1);
        let other = node.join(workers - 1, "receiver");
        assert_eq!(node.payloads(other), ["1", "2"]);
        sweep(&mut node, workers);
        assert_eq!(figures(&node).unfinished, 1);
        assert_eq!(counts(&node), [1, 0, 2]);
    }
}

#[test]
fn messages_of_a_connection_that_has_ended_are_given_up_within_a_second() {
    let mut node = Node::planned(2, stamped);
    let receiver = node.subscriber(1, "receiver", "t");
    let publisher = node.join(0, "publisher");
    node.set_slow(receiver, true);
    node.publish(publisher, "t", "unread", Q1);
    node.cut(receiver);
    assert_eq!(figures(&node).unfinished, 0);
    node.advance_time(Duration::from_millis(1_100));
    assert_eq!(figures(&node).unfinished, 1);
    // No timer is left once nothing is followed.
    for worker in [0, 1] {
        assert!(!node.shell.engine(worker).core.stages.plans_sweep());
    }
}

#[test]
fn a_message_for_a_client_that_is_away_is_not_followed() {
    let mut node = Node::planned(1, stamped);
    let receiver = node.subscriber(0, "receiver", "t");
    node.cut(receiver);
    let publisher = node.join(0, "publisher");
    node.publish(publisher, "t", "m", Q1);
    assert_eq!(figures(&node).unfinished, 1);
    let again = node.join(0, "receiver");
    assert_eq!(node.payloads(again), ["m"]);
    assert_eq!(counts(&node), [0, 0, 1]);
}

#[test]
fn a_session_that_ends_gives_its_shared_messages_to_another_member() {
    let mut node = Node::planned(1, |plan| {
        stamped(plan);
        plan.limits().inflight_max = 1;
    });
    let members = ["a", "b"].map(|name| {
        let mut clean = connect(name);
        clean.properties.session_expiry = None;
        let member = node.join_as(0, &clean);
        node.subscribe(member, "$share/g/t", Q1);
        node.set_acknowledges(member, false);
        member
    });
    let publisher = node.join(0, "publisher");
    for payload in ["1", "2", "3", "4"] {
        node.publish(publisher, "t", payload, Q1);
    }
    // Each has one message and one in its queue.
    assert_eq!(counts(&node), [2, 0, 4]);
    node.cut(members[0]);
    assert_eq!(node.drain(members[1]).len(), 4);
    sweep(&mut node, 1);
    // The queued message of the first is the only one that was not written.
    assert_eq!(figures(&node).unfinished, 1);
    assert_eq!(counts(&node), [3, 2, 4]);
}

#[test]
fn a_member_that_leaves_its_group_gives_up_its_queued_messages() {
    let mut node = Node::planned(1, |plan| {
        stamped(plan);
        plan.limits().inflight_max = 1;
    });
    let members = ["a", "b"].map(|name| {
        let member = node.join(0, name);
        node.subscribe(member, "$share/g/t", Q1);
        node.set_acknowledges(member, false);
        member
    });
    let publisher = node.join(0, "publisher");
    for payload in ["1", "2", "3", "4"] {
        node.publish(publisher, "t", payload, Q1);
    }
    node.unsubscribe(members[0], &["$share/g/t"]);
    node.drain(members[0]);
    node.drain(members[1]);
    assert_eq!(counts(&node), [3, 3, 4]);
    // It is recognized by its age only.
    sweep(&mut node, 1);
    assert_eq!(figures(&node).unfinished, 0);
    node.advance_time(Duration::from_secs(61));
    sweep(&mut node, 1);
    assert_eq!(figures(&node).unfinished, 1);
}

#[test]
fn a_full_table_counts_what_it_does_not_follow_and_has_room_again() {
    let mut node = Node::planned(1, stamped);
    let [receiver, publisher] = pair(&mut node, [0, 0], Q0);
    node.set_slow(receiver, true);
    let more = 20;
    for _ in 0..FOLLOWED_MAX + more {
        node.post(publisher, publish("t", "m", Q0));
    }
    node.settle();
    assert_eq!(figures(&node).table_full, more as u64);
    node.set_slow(receiver, false);
    assert_eq!(counts(&node), [FOLLOWED_MAX as u64, 0, 0]);
    node.publish(publisher, "t", "m", Q0);
    assert_eq!(counts(&node), [FOLLOWED_MAX as u64 + 1, 0, 0]);
    assert_eq!(figures(&node).table_full, more as u64);
}

#[test]
fn a_full_table_makes_room_for_connections_that_have_ended() {
    let mut node = Node::planned(1, stamped);
    let [receiver, publisher] = pair(&mut node, [0, 0], Q0);
    node.set_slow(receiver, true);
    for _ in 0..FOLLOWED_MAX {
        node.post(publisher, publish("t", "m", Q0));
    }
    node.settle();
    node.cut(receiver);
    let other = node.join(0, "other");
    node.subscribe(other, "u", Q0);
    node.publish(publisher, "u", "m", Q0);
    let all = figures(&node);
    assert_eq!((all.table_full, all.unfinished), (0, FOLLOWED_MAX as u64));
    assert_eq!(counts(&node), [1, 0, 0]);
}

#[test]
fn the_time_to_the_answer_of_a_publisher_includes_the_storage() {
    let mut node = Node::durable(1, stamped);
    let [receiver, publisher] = pair(&mut node, [0, 0], Q1);
    node.post(publisher, publish("t", "m", Q1));
    node.shell.turn(0);
    // The delivery does not depend on the disk; the answer to the publisher does.
    assert_eq!(counts(&node), [1, 0, 0]);
    node.settle();
    assert_eq!(node.payloads(receiver), ["m"]);
    assert_eq!(counts(&node), [1, 1, 1]);
    let synced = sum_micros(&node, MessageStage::AnswerSync);
    assert!((100..sum_micros(&node, MessageStage::Answered)).contains(&synced));
    assert_eq!(sum_micros(&node, MessageStage::Sync), 0);
}

#[test]
fn a_delivery_behind_output_that_waits_for_the_disk_waits_with_it() {
    let mut node = Node::durable(1, stamped);
    let both = node.join(0, "both");
    node.subscribe(both, "t", Q1);
    node.post(both, publish("t", "m", Q1));
    node.settle();
    assert_eq!(node.payloads(both), ["m"]);
    assert_eq!(counts(&node), [1, 1, 1]);
    let [sync, write] = [MessageStage::Sync, MessageStage::Write];
    assert!(sum_micros(&node, sync) >= 100);
    // Both are parts of the time until it is written.
    let sum = sum_micros(&node, sync) + sum_micros(&node, write);
    assert_eq!(sum, sum_micros(&node, MessageStage::Written));
}

#[test]
fn a_retained_message_is_followed_to_present_subscribers_only() {
    let mut node = Node::planned(1, stamped);
    let [receiver, publisher] = pair(&mut node, [0, 0], Q1);
    node.retain(publisher, "t", "m");
    assert_eq!(node.payloads(receiver), ["m"]);
    assert_eq!(counts(&node), [1, 1, 1]);
    let late = node.join(0, "late");
    node.subscribe(late, "t", Q1);
    assert_eq!(node.payloads(late), ["m"]);
    assert_eq!(counts(&node), [1, 1, 1]);
}
