//! What survives a crash, and what waits for the disk.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use thrum_access::Rules;
use thrum_codec::packet::Packet;
use thrum_codec::{QoS, ReasonCode};
use thrum_engine::access::{Access, Policy, Shared};
use thrum_engine::node::metrics::Counter;
use thrum_engine::sinks::QueueLimits;
use thrum_protocol::server::Handshake;
use thrum_protocol::{Limits, Time};

use crate::node::{Answer, Node, connect, connect_with_will, publish, publish_expiring};
use crate::shell::SinkPlan;

const Q0: QoS = QoS::AtMostOnce;
const Q1: QoS = QoS::AtLeastOnce;
const Q2: QoS = QoS::ExactlyOnce;

#[test]
fn sessions_are_restored_with_their_subscriptions_and_messages() {
    for workers in [1, 2] {
        let mut node = Node::durable(workers, |_| ());
        let receiver = node.subscriber(0, "receiver", "t");
        node.subscribe(receiver, "$share/g/s", Q2);
        node.subscribe(receiver, "gone", Q1);
        node.unsubscribe(receiver, &["gone"]);
        let publisher = node.join(workers - 1, "publisher");
        node.publish(publisher, "t", "under way", Q2);
        node.cut(receiver);
        node.publish(publisher, "t", "queued", Q1);
        node.publish(publisher, "t", "zero", Q0);
        node.publish(publisher, "s", "shared", Q2);
        node.retain(publisher, "r", "retained");
        node.retain(publisher, "x", "removed");
        node.retain(publisher, "x", "");
        let mut node = node.crash();
        assert_eq!(node.count(Counter::Sessions), 2);
        assert_eq!(node.count(Counter::SessionsPersistent), 2);
        assert_eq!(node.count(Counter::Subscriptions), 2);
        assert_eq!(node.count(Counter::SharedSubscriptions), 1);
        let receiver = node.join(0, "receiver");
        let present = Answer::Connected {
            session_present: true,
        };
        assert_eq!(node.answers(receiver), [present]);
        let messages = node.messages(receiver);
        let received: Vec<(&str, QoS, bool)> = messages
            .iter()
            .map(|one| (one.payload.as_str(), one.qos, one.dup))
            .collect();
        let expected = [
            ("under way", Q1, true),
            ("queued", Q1, false),
            ("shared", Q2, false),
        ];
        assert_eq!(received, expected, "{workers} workers");
        node.subscribe(receiver, "#", Q1);
        assert_eq!(node.payloads(receiver), ["retained"]);
        let publisher = node.join(0, "publisher");
        node.publish(publisher, "t", "new", Q1);
        node.publish(publisher, "gone", "new too", Q1);
        assert_eq!(node.payloads(receiver), ["new", "new too"]);
        // No message is repeated.
        let mut node = node.crash();
        let receiver = node.join(0, "receiver");
        assert_eq!(node.payloads(receiver), Vec::<String>::new());
    }
}

#[test]
fn a_session_that_has_ended_is_not_restored_after_a_crash() {
    let mut node = Node::durable(2, |_| ());
    for (client_id, expiry) in [("short", 5), ("clean", 100), ("ends", 100), ("kept", 100)] {
        let mut connect = connect(client_id);
        connect.properties.session_expiry = Some(expiry);
        let peer = node.join_as(0, &connect);
        node.subscribe(peer, "t", Q1);
        node.cut(peer);
    }
    for client_id in ["clean", "ends"] {
        let mut connect = connect(client_id);
        connect.clean_start = client_id == "clean";
        connect.properties.session_expiry = Some(0);
        let peer = node.join_as(1, &connect);
        node.cut(peer);
    }
    node.advance_time(Duration::from_secs(6));
    let mut node = node.crash();
    assert_eq!(node.count(Counter::Sessions), 1);
    assert!(node.shell.find("kept").is_some());
    node.advance_time(Duration::from_secs(93));
    assert_eq!(node.count(Counter::Sessions), 1);
    node.advance_time(Duration::from_secs(2));
    assert_eq!(node.count(Counter::Sessions), 0, "its time went on");
    let node = node.crash();
    assert_eq!(node.count(Counter::Sessions), 0);
}

#[test]
fn a_will_is_published_after_a_crash_once() {
    for keeps_all in [false, true] {
        let mut node = Node::durable(1, |plan| plan.settings.keeps_all_wills = keeps_all);
        let receiver = node.join(0, "receiver");
        node.subscribe(receiver, "wills", Q1);
        for (client_id, expiry) in [("kept", 100), ("short", 0)] {
            let mut connect = connect_with_will(client_id);
            connect.properties.session_expiry = Some(expiry);
            node.join_as(0, &connect);
        }
        let mut node = node.crash();
        let receiver = node.join(0, "receiver");
        node.advance_time(Duration::from_secs(11));
        let mut received = node.payloads(receiver);
        received.sort_unstable();
        let expected: &[&str] = if keeps_all {
            &["kept", "short"]
        } else {
            &["kept"]
        };
        assert_eq!(received, expected);
        assert_eq!(node.count(Counter::Sessions), 2);
        let mut node = node.crash();
        let receiver = node.join(0, "receiver");
        node.advance_time(Duration::from_secs(11));
        assert_eq!(node.payloads(receiver), Vec::<String>::new());
    }
}

#[test]
fn a_replay_interrupted_by_a_crash_continues_behind_the_last_message() {
    let mut node = Node::durable(1, |plan| {
        plan.limits().inflight_max = 2;
        plan.limits().queue.messages_max = 4;
    });
    let publisher = node.join(0, "publisher");
    let mut expected = Vec::new();
    for number in 0..20 {
        let payload = format!("{number:02}");
        node.retain(publisher, &format!("t/{payload}"), &payload);
        expected.push(payload);
    }
    let receiver = node.join(0, "receiver");
    node.set_acknowledges(receiver, false);
    node.subscribe(receiver, "t/#", Q1);
    let mut received = Vec::new();
    let mut waiting = VecDeque::new();
    for _ in 0..7 {
        waiting.extend(node.messages(receiver));
        let message = waiting.pop_front().expect("there are more messages");
        node.acknowledge(receiver, &message);
        received.push(message.payload);
    }
    let mut node = node.crash();
    let receiver = node.join(0, "receiver");
    received.extend(node.payloads(receiver));
    received.sort_unstable();
    assert_eq!(received, expected);
}

#[test]
fn no_message_that_must_be_stored_is_accepted_while_the_disk_is_full() {
    let mut node = Node::durable(1, |plan| plan.segments_max = 6);
    let away = node.subscriber(0, "away", "t");
    node.cut(away);
    let publisher = node.join(0, "publisher");
    let mut live = connect("live");
    live.properties.session_expiry = None;
    let live = node.join_as(0, &live);
    node.subscribe(live, "live", Q1);
    node.subscribe(publisher, "known", Q0);
    node.answers(publisher);
    let big = "x".repeat(3_000);
    let mut answers = Vec::new();
    for _ in 0..40 {
        node.publish(publisher, "t", &big, Q1);
        answers.extend(node.answers(publisher));
    }
    let refused = Answer::Puback(ReasonCode::QuotaExceeded);
    assert_eq!(answers.last(), Some(&refused));
    let before = node.count(Counter::StorageRefused);
    assert!(before > 0);
    node.publish(publisher, "live", "1", Q1);
    node.publish(publisher, "t", "0", Q0);
    node.retain(publisher, "r", "1");
    node.subscribe(publisher, "more", Q0);
    node.subscribe(publisher, "known", Q0);
    node.subscribe(live, "more", Q0);
    let taken = Answer::Puback(ReasonCode::Success);
    let quota = vec![ReasonCode::QuotaExceeded];
    let expected = [
        taken,
        refused,
        Answer::Suback(quota, false),
        Answer::Suback(vec![ReasonCode::Success], false),
    ];
    assert_eq!(node.answers(publisher), expected);
    assert_eq!(node.payloads(live), ["1"]);
    assert_eq!(node.count(Counter::StorageRefused), before + 2);
}

#[test]
fn time_that_passes_while_a_message_waits_counts_after_a_crash() {
    let mut node = Node::durable(2, |_| ());
    let receiver = node.subscriber(0, "receiver", "t");
    node.cut(receiver);
    let publisher = node.join(1, "publisher");
    for (payload, seconds) in [("short", 10), ("long", 100)] {
        node.post(publisher, publish_expiring("t", payload, seconds));
    }
    node.settle();
    node.advance_time(Duration::from_secs(5));
    let mut node = node.crash();
    node.advance_time(Duration::from_secs(6));
    let receiver = node.join(0, "receiver");
    let messages = node.messages(receiver);
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert_eq!(messages[0].message_expiry, Some(89));
}

#[test]
fn messages_of_a_leaving_member_survive_a_crash_on_their_way_to_another_one() {
    for commits in [false, true] {
        let mut node = Node::durable(2, |plan| plan.limits().inflight_max = 1);
        let one = node.subscriber(0, "one", "$share/g/t");
        let publisher = node.join(0, "publisher");
        for payload in ["1", "2", "3"] {
            node.publish(publisher, "t", payload, Q1);
        }
        let two = node.subscriber(1, "two", "$share/g/t");
        node.unsubscribe(one, &["$share/g/t"]);
        if commits {
            node.drain(two);
        }
        let mut node = node.crash();
        node.settle();
        let two = node.join(0, "two");
        let mut received = node.payloads(two);
        received.sort_unstable();
        let expected: &[&str] = if commits { &[] } else { &["2", "3"] };
        assert_eq!(received, expected);
        let one = node.join(0, "one");
        assert_eq!(node.payloads(one), ["1"], "it was on its way");
    }
}

/// A message for each filter is published, and the power is lost so many steps later.
fn crash_at(moment: usize, filter: &str) -> (usize, Vec<String>) {
    let mut node = Node::durable(2, |plan| {
        plan.sinks.push(SinkPlan {
            name: "sink",
            filter: "t",
            limits: QueueLimits {
                is_durable: true,
                ..QueueLimits::default()
            },
        });
    });
    let receiver = node.subscriber(0, "receiver", filter);
    node.cut(receiver);
    let publisher = node.join(1, "publisher");
    node.answers(publisher);
    node.post(publisher, publish("t", "1", Q1));
    node.post(publisher, publish("t", "2", Q2));
    for step in 0..moment {
        match step % 4 {
            0 => node.shell.turn(1),
            2 => node.shell.turn(0),
            _ => drop(node.shell.commit()),
        }
    }
    let answers = node.read(publisher);
    let mut node = node.crash();
    let sink = node.shell.node.sinks.find("sink");
    let in_sink = sink.expect("it is planned").queue.counts().waiting;
    let receiver = node.join(0, "receiver");
    let received = node.payloads(receiver);
    assert_eq!(in_sink, received.len() as u64, "both or none at {moment}");
    let mut node = node.crash();
    let receiver = node.join(0, "receiver");
    assert_eq!(node.payloads(receiver), Vec::<String>::new());
    (answers.len(), received)
}

#[test]
fn acknowledged_messages_survive_a_crash_at_any_moment() {
    for filter in ["t", "$share/g/t"] {
        let mut most = 0;
        for moment in 0..16 {
            let (answers, received) = crash_at(moment, filter);
            most = most.max(answers);
            assert!(
                answers <= received.len(),
                "{answers} {received:?} at {moment}"
            );
            let expected = &["1", "2"][..received.len()];
            assert_eq!(received, expected, "{filter} at {moment}");
        }
        assert_eq!(most, 2, "{filter}");
    }
}

#[test]
fn new_sessions_are_refused_while_the_disk_is_full_and_known_ones_are_not() {
    let mut node = Node::durable(1, |plan| plan.segments_max = 6);
    let limits = Limits::default();
    let kept = Handshake::new(&connect("kept"), "", &limits).unwrap();
    let mut short = connect("short");
    short.properties.session_expiry = None;
    let short = Handshake::new(&short, "", &limits).unwrap();
    let may_keep = |node: &mut Node| {
        let core = &node.shell.engine(0).core;
        let may = |handshake, exists| core.durable.may_keep(handshake, exists, core.row()).is_ok();
        [may(&kept, false), may(&kept, true), may(&short, false)]
    };
    assert_eq!(may_keep(&mut node), [true; 3]);
    let away = node.subscriber(0, "away", "t");
    node.cut(away);
    let publisher = node.join(0, "publisher");
    let big = "x".repeat(3_000);
    for _ in 0..40 {
        node.publish(publisher, "t", &big, Q1);
    }
    let before = node.count(Counter::StorageRefused);
    assert_eq!(may_keep(&mut node), [false, true, true]);
    assert_eq!(node.count(Counter::StorageRefused), before + 1);
    let away = node.join(0, "away");
    assert!(node.messages(away).len() > 5, "its queue is delivered");
    node.settle();
    node.publish(publisher, "t", "again", Q1);
    node.publish(publisher, "t", "again", Q1);
    assert_eq!(may_keep(&mut node), [true; 3]);
}

#[test]
fn a_session_belongs_to_its_user_after_a_crash() {
    let shared = Shared {
        access: Access {
            gatekeeper: None,
            policy: Policy {
                rules: Arc::new(Rules::parse("allow all pubsub #", "test").unwrap()),
                ..Policy::default()
            },
        },
        generation: 1,
    };
    let mut node = Node::durable(1, |plan| plan.settings.access = Arc::new(shared));
    let mut named = connect("named");
    named.username = Some("user");
    node.join_as(0, &named);
    node.join(0, "nameless");
    let mut node = node.crash();
    let mut owners = Vec::new();
    for client_id in ["named", "nameless"] {
        let slot = node.shell.find(client_id).unwrap().1;
        let client = &node.shell.engine(0).core.sessions[slot];
        owners.push(client.owner().user().map(str::to_owned));
        assert_eq!(client.rare.is_some(), client_id == "named");
    }
    assert_eq!(owners, [Some("user".to_owned()), None]);
}

#[test]
fn a_connection_that_ends_loses_what_waits_for_the_disk() {
    let mut node = Node::durable(1, |_| ());
    let link = node.shell.connect(0, &connect("peer"));
    node.shell.turn(0);
    let key = node.shell.connection(link).unwrap().key;
    let output = &mut node.shell.engine(0).core.outputs[key];
    assert!(output.waiting() > 0 && output.sendable().is_none_or(|out| out.is_empty()));
    assert!(output.drop_held(), "the CONNACK is lost");
    assert_eq!(output.waiting(), 0);
    let peer = node.join(0, "other");
    let key = node.shell.connection(node.link(peer)).unwrap().key;
    let outputs = &mut node.shell.engine(0).core.outputs;
    assert!(!outputs[key].drop_held(), "nothing waits");
    node.subscribe(peer, "t", Q1);
    node.answers(peer);
    node.post(peer, publish("t", "1", Q1));
    node.shell.turn(0);
    let output = &mut node.shell.engine(0).core.outputs[key];
    assert!(output.waiting() > 0);
    assert!(!output.drop_held(), "the CONNACK was sent");
    assert_eq!(output.waiting(), 0);
    node.settle();
    assert_eq!(node.answers(peer), []);
}

#[test]
fn a_client_whose_output_waits_for_the_disk_gets_no_more_than_one_that_is_slow() {
    let mut node = Node::durable(1, |plan| plan.settings.output_bytes = 500);
    let receiver = node.join(0, "receiver");
    node.subscribe(receiver, "t", Q2);
    let publisher = node.join(0, "publisher");
    let payload = "x".repeat(200);
    for _ in 0..20 {
        node.post(publisher, publish("t", &payload, Q2));
        node.shell.turn(0);
    }
    assert_eq!(node.count(Counter::LimitOutput), 1);
    let sent = node.count(Counter::PublishSent);
    assert!((2..5).contains(&sent), "{sent}");
    assert_eq!(node.read(receiver).len(), 2, "CONNACK and SUBACK");
    assert_eq!(node.messages(receiver).len(), 0);
    node.settle();
    assert_eq!(node.messages(receiver).len(), 20);
}

#[test]
fn a_message_that_may_be_repeated_does_not_wait_for_the_disk() {
    let mut node = Node::durable(1, |_| ());
    let receiver = node.join(0, "receiver");
    node.subscribe(receiver, "t", Q2);
    let publisher = node.join(0, "publisher");
    for qos in [Q0, Q1, Q2] {
        node.post(publisher, publish("t", "x", qos));
    }
    node.shell.turn(0);
    node.read(receiver);
    assert_eq!(node.messages(receiver).len(), 0, "all are in one turn");
    node.settle();
    assert_eq!(node.messages(receiver).len(), 3);
    for qos in [Q0, Q1] {
        node.post(publisher, publish("t", "x", qos));
    }
    node.shell.turn(0);
    node.read(receiver);
    assert_eq!(node.messages(receiver).len(), 2);
}

#[test]
fn sinks_clear_the_places_of_what_they_have_written_one_by_one() {
    let mut node = Node::durable(1, |plan| {
        plan.sinks.push(SinkPlan {
            name: "sink",
            filter: "t",
            limits: QueueLimits {
                is_durable: true,
                ..QueueLimits::default()
            },
        });
    });
    let publisher = node.join(0, "publisher");
    for payload in ["1", "2", "3"] {
        node.publish(publisher, "t", payload, Q1);
    }
    let mut left = vec!["1", "2", "3"];
    loop {
        node = node.crash();
        let sink = node.shell.node.sinks.find("sink").unwrap();
        if left.is_empty() {
            assert_eq!(sink.queue.counts().waiting, 0);
            return;
        }
        let offers = sink.queue.take(10, 1 << 20, Duration::ZERO).unwrap();
        let payloads = offers.iter().map(|one| one.message.payload());
        let payloads: Vec<&str> = payloads
            .map(|bytes| std::str::from_utf8(bytes).unwrap())
            .collect();
        assert_eq!(payloads, left);
        let first = offers[0].place.into_iter();
        node.shell.places.as_ref().unwrap().clear(first);
        node.settle();
        left.remove(0);
    }
}

#[test]
fn numbers_of_sessions_are_not_given_again_after_a_crash() {
    let mut node = Node::durable(3, |_| ());
    let mut known = Vec::new();
    for round in 0..4 {
        for number in 0..5 {
            let client_id = format!("{round} {number}");
            node.join(number % 3, &client_id);
            let (worker, slot) = node.shell.find(&client_id).unwrap();
            let id = node.shell.engine(worker).core.sessions[slot].session.id();
            assert!(id > 0 && !known.contains(&id), "{id} {known:?}");
            assert_eq!(node.shell.node.placement.worker_of(id).index(), worker);
            known.push(id);
        }
        node = node.crash();
    }
    assert_eq!(node.count(Counter::Sessions), 20);
    let sessions = |worker: usize| node.shell.engine(worker).core.sessions.len();
    let spread: Vec<usize> = (0..3).map(sessions).collect();
    assert!(spread.iter().all(|count| *count >= 4), "{spread:?}");
}

#[test]
fn the_wall_clock_is_recorded_when_it_was_set_and_at_the_end() {
    let mut node = Node::durable(1, |_| ());
    node.join(0, "peer");
    let core = &mut node.shell.engine(0).core;
    let wall = Arc::clone(&core.node.wall);
    let now = core.turn.now;
    core.durable.watch_clock(&wall, now);
    assert!(!core.durable.has_changes(), "it is known");
    wall.set_ahead(50);
    core.durable.watch_clock(&wall, now);
    assert!(!core.durable.has_changes(), "that is little");
    wall.set_ahead(3_600_000);
    core.durable.watch_clock(&wall, now);
    assert!(core.durable.has_changes());
    assert_eq!(wall.millis(now), now.as_millis() + 3_600_000);
    assert_eq!(
        wall.at_seconds(10_000),
        Time::from_millis(10_000_000 - 3_600_000)
    );
    core.settle();
    assert!(!core.durable.has_changes());
    core.durable
        .watch_clock(&wall, now.plus(Duration::from_mins(59)));
    assert!(!core.durable.has_changes());
    core.durable
        .watch_clock(&wall, now.plus(Duration::from_hours(1)));
    assert!(core.durable.has_changes(), "the note is an hour old");
    core.settle();
    core.durable.note_end(&wall, now);
    assert!(core.durable.has_changes());
}

#[test]
fn a_full_disk_refuses_what_any_receiver_would_keep_on_it() {
    for workers in [1, 2] {
        let mut node = Node::durable(workers, |plan| {
            plan.segments_max = 6;
            plan.sinks.push(SinkPlan {
                name: "sink",
                filter: "sink",
                limits: QueueLimits {
                    is_durable: true,
                    ..QueueLimits::default()
                },
            });
        });
        let away = node.subscriber(0, "away", "plain");
        node.subscribe(away, "$share/g/group", Q1);
        node.cut(away);
        let mut short = connect("publisher");
        short.properties.session_expiry = None;
        let publisher = node.join_as(workers - 1, &short);
        node.subscribe(publisher, "live", Q1);
        let big = "x".repeat(3_000);
        for _ in 0..40 {
            node.publish(publisher, "plain", &big, Q1);
        }
        node.answers(publisher);
        let before = node.count(Counter::StorageRefused);
        for topic in ["plain", "group", "sink"] {
            node.publish(publisher, topic, "x", Q1);
            let refused = Answer::Puback(ReasonCode::QuotaExceeded);
            assert_eq!(node.answers(publisher), [refused], "{topic} {workers}");
        }
        assert_eq!(node.count(Counter::StorageRefused), before + 3);
        for topic in ["plain", "group", "sink"] {
            node.publish(publisher, topic, "x", Q0);
        }
        node.publish(publisher, "live", "x", Q1);
        node.retain(publisher, "live", "");
        node.publish(publisher, "nobody", "x", Q1);
        let answers = [
            ReasonCode::Success,
            ReasonCode::Success,
            ReasonCode::NoMatchingSubscribers,
        ];
        assert_eq!(node.answers(publisher), answers.map(Answer::Puback));
        assert_eq!(node.count(Counter::StorageRefused), before + 3);
    }
}

#[test]
fn an_answer_follows_output_that_waits_for_the_disk() {
    let mut node = Node::durable(1, |_| ());
    let peer = node.join(0, "peer");
    node.answers(peer);
    let key = node.shell.connection(node.link(peer)).unwrap().key;
    let waiting = |node: &mut Node| node.shell.engine(0).core.outputs[key].waiting();
    assert_eq!(waiting(&mut node), 0);
    node.post(peer, publish("t", "x", Q2));
    node.shell.turn(0);
    let pubrec = waiting(&mut node);
    assert!(pubrec >= 4, "{pubrec}");
    node.send(peer, &Packet::PingReq);
    node.shell.turn(0);
    assert_eq!(waiting(&mut node), pubrec + 2);
    assert_eq!(node.read(peer), []);
    assert!(node.shell.commit());
    node.shell.turn(0);
    assert_eq!(waiting(&mut node), 0);
    let no_subscribers = Answer::Pubrec(ReasonCode::NoMatchingSubscribers);
    assert_eq!(node.read(peer), [no_subscribers, Answer::Pong]);
    assert!(!node.shell.engine(0).core.outputs.are_depending());
    // What rests on nothing does not wait.
    node.settle();
    node.answers(peer);
    node.send(peer, &Packet::PingReq);
    node.shell.turn(0);
    assert_eq!(node.read(peer), [Answer::Pong]);
}

#[test]
fn the_will_of_a_client_that_has_not_reconnected_is_authorized_by_its_names() {
    let rules = "deny user:evil pub wills\ndeny client:bad pub wills\nallow all pubsub #";
    let policy = Policy {
        rules: Arc::new(Rules::parse(rules, "test").unwrap()),
        ..Policy::default()
    };
    let access = Access {
        gatekeeper: None,
        policy,
    };
    let generation = 1;
    let mut node = Node::durable(1, |plan| {
        plan.settings.access = Arc::new(Shared { access, generation });
    });
    let receiver = node.join(0, "receiver");
    node.subscribe(receiver, "wills", Q1);
    for (client_id, username) in [("one", "evil"), ("bad", "good"), ("two", "good")] {
        let mut connect = connect_with_will(client_id);
        connect.username = Some(username);
        node.join_as(0, &connect);
    }
    let mut node = node.crash();
    let receiver = node.join(0, "receiver");
    node.advance_time(Duration::from_secs(11));
    assert_eq!(node.payloads(receiver), ["two"]);
    assert_eq!(node.count(Counter::WillsDenied), 2);
}
