//! Begin and end of sessions: wills, expiry, counts, and their events.

use std::sync::Arc;
use std::time::Duration;

use thrum_access::Rules;
use thrum_codec::packet::{Connect, Will};
use thrum_codec::properties::WillProperties;
use thrum_codec::{QoS, ReasonCode};
use thrum_engine::access::{Access, Policy, Shared};
use thrum_engine::node::metrics::Counter;
use thrum_engine::node::session_counts::SessionLimits;
use thrum_engine::timeline::SessionEnd;
use thrum_protection::{Ban, BanBook, BanList, Subject};
use thrum_protocol::Time;

use crate::node::{Answer, Node, connect, publish};

const Q1: QoS = QoS::AtLeastOnce;

/// A client with a will that waits for so many seconds.
fn with_will(client_id: &str, delay: Option<u32>, expiry: Option<u32>) -> Connect<'_> {
    let mut connect = connect(client_id);
    connect.properties.session_expiry = expiry;
    connect.will = Some(Will {
        topic: "wills",
        payload: client_id.as_bytes(),
        qos: Q1,
        retain: true,
        properties: WillProperties {
            will_delay: delay,
            ..WillProperties::default()
        },
    });
    connect
}

#[test]
fn a_will_is_published_once_its_client_is_gone_for_its_delay() {
    for workers in [1, 2] {
        let mut node = Node::new(workers);
        let receiver = node.join(0, "receiver");
        node.subscribe(receiver, "wills", Q1);
        let at_once = node.join_as(workers - 1, &with_will("at once", None, None));
        let later = node.join_as(workers - 1, &with_will("later", Some(10), Some(100)));
        let back = node.join_as(workers - 1, &with_will("back", Some(10), Some(100)));
        let short = node.join_as(workers - 1, &with_will("short", Some(100), Some(5)));
        let polite = node.join_as(workers - 1, &with_will("polite", None, None));
        let rude = node.join_as(workers - 1, &with_will("rude", None, None));
        assert_eq!(node.count(Counter::ClientsConnected), 7);
        for peer in [at_once, later, back, short] {
            node.cut(peer);
        }
        node.leave(polite, false);
        assert_eq!(node.payloads(receiver), ["at once"]);
        node.leave(rude, true);
        assert_eq!(node.payloads(receiver), ["rude"]);
        node.advance_time(Duration::from_secs(6));
        assert_eq!(node.payloads(receiver), ["short"]);
        node.join(workers - 1, "back");
        node.advance_time(Duration::from_secs(5));
        assert_eq!(node.payloads(receiver), ["later"]);
        assert_eq!(node.count(Counter::Sessions), 3);
        assert_eq!(node.count(Counter::ClientsConnected), 2);
        assert_eq!(node.count(Counter::SessionsExpired), 1);
        node.advance_time(Duration::from_secs(100));
        assert_eq!(node.count(Counter::SessionsExpired), 2);
        assert_eq!(node.payloads(receiver), Vec::<String>::new());
        let late = node.join(0, "late");
        node.subscribe(late, "wills", Q1);
        assert_eq!(node.payloads(late), ["later"], "the last will is retained");
    }
}

#[test]
fn a_session_that_is_removed_leaves_its_will() {
    let mut node = Node::new(1);
    let receiver = node.join(0, "receiver");
    node.subscribe(receiver, "wills", Q1);
    for (client_id, is_dropped) in [("one", false), ("two", true)] {
        let peer = node.join_as(0, &with_will(client_id, Some(10), Some(100)));
        node.cut(peer);
        let (_, slot) = node.shell.find(client_id).unwrap();
        let engine = node.shell.engine(0);
        if is_dropped {
            engine.drop_will(slot, "a test drops it");
        }
        engine.remove_session(slot, SessionEnd::ByOperator);
        node.settle();
        assert!(node.shell.find(client_id).is_none());
    }
    assert_eq!(node.payloads(receiver), ["one"]);
    assert_eq!(node.count(Counter::WillsDenied), 1);
}

#[test]
fn the_will_of_a_client_that_may_not_publish_it_is_dropped() {
    let rules = "deny user:evil pub wills\nallow all pubsub #";
    let mut node = Node::planned(1, |plan| {
        let policy = Policy {
            rules: Arc::new(Rules::parse(rules, "test").unwrap()),
            ..Policy::default()
        };
        let access = Access {
            gatekeeper: None,
            policy,
        };
        let generation = 1;
        plan.settings.access = Arc::new(Shared { access, generation });
    });
    let receiver = node.join(0, "receiver");
    node.subscribe(receiver, "wills", Q1);
    for username in ["evil", "good"] {
        let mut connect = with_will(username, None, None);
        connect.username = Some(username);
        let peer = node.join_as(0, &connect);
        node.cut(peer);
    }
    assert_eq!(node.payloads(receiver), ["good"]);
    assert_eq!(node.count(Counter::WillsDenied), 1);
}

#[test]
fn the_will_of_a_banned_client_is_dropped() {
    let ban = Ban {
        subject: Subject::ClientId("banned".into()),
        reason: "".into(),
        by: "".into(),
        since: 0,
        until: None,
        disconnects: true,
    };
    let mut node = Node::planned(1, |plan| {
        let bans = BanBook::default();
        bans.replace(BanList::from_iter([ban]), Time::from_millis(0));
        plan.bans = Arc::new(bans);
    });
    let receiver = node.join(0, "receiver");
    node.subscribe(receiver, "wills", Q1);
    for client_id in ["banned", "free"] {
        let peer = node.join_as(0, &with_will(client_id, None, None));
        node.cut(peer);
    }
    assert_eq!(node.payloads(receiver), ["free"]);
    assert_eq!(node.count(Counter::WillsDenied), 1);
}

#[test]
fn sessions_are_counted_for_their_users_as_long_as_they_outlive_connections() {
    let mut node = Node::planned(2, |plan| {
        plan.settings.sessions = SessionLimits {
            node: 100,
            user: 2,
            address: 0,
        };
    });
    let mut kept = connect("kept");
    kept.username = Some("user");
    let peer = node.join_as(0, &kept);
    let mut short = connect("short");
    short.username = Some("user");
    short.properties.session_expiry = None;
    let other = node.join_as(1, &short);
    assert_eq!(node.count(Counter::SessionsPersistent), 1);
    assert_eq!(node.count(Counter::Sessions), 2);
    node.cut(other);
    assert_eq!(node.count(Counter::Sessions), 1);
    node.cut(peer);
    kept.properties.session_expiry = None;
    let peer = node.join_as(1, &kept);
    assert_eq!(node.count(Counter::SessionsPersistent), 0);
    let expected = Answer::Connected {
        session_present: true,
    };
    assert_eq!(node.answers(peer), [expected]);
    kept.properties.session_expiry = Some(100);
    kept.clean_start = true;
    let again = node.join_as(0, &kept);
    let expected = Answer::Connected {
        session_present: false,
    };
    assert_eq!(node.answers(again), [expected]);
    let taken_over = Answer::Disconnected(ReasonCode::SessionTakenOver);
    assert_eq!(node.answers(peer), [taken_over]);
    assert_eq!(node.count(Counter::SessionsPersistent), 1);
    assert_eq!(node.count(Counter::Sessions), 1);
    assert_eq!(node.count(Counter::ConnectsAccepted), 4);
    let answers = node.count(Counter::AnswersSent);
    assert_eq!(answers, 4, "a CONNACK each");
}

#[test]
fn a_client_that_is_silent_for_too_long_is_disconnected() {
    let mut node = Node::new(1);
    let mut connect = connect("silent");
    connect.keep_alive = 10;
    let peer = node.join_as(0, &connect);
    node.answers(peer);
    node.advance_time(Duration::from_secs(14));
    node.send(peer, &thrum_codec::packet::Packet::PingReq);
    node.settle();
    assert_eq!(node.answers(peer), [Answer::Pong]);
    node.advance_time(Duration::from_secs(14));
    assert_eq!(node.answers(peer), []);
    node.advance_time(Duration::from_secs(2));
    let expected = Answer::Disconnected(ReasonCode::KeepAliveTimeout);
    assert_eq!(node.answers(peer), [expected]);
}

#[test]
fn events_report_actions_of_clients_to_their_subscribers() {
    let mut node = Node::planned(2, |plan| plan.limits().inflight_max = 1);
    let watcher = node.join(1, "watcher");
    node.subscribe(watcher, "$events/#", Q1);
    let events = |node: &mut Node, topics: &[&str]| -> Vec<String> {
        let messages = node.messages(watcher);
        let received: Vec<&str> = messages
            .iter()
            .map(|one| one.topic.strip_prefix("$events/").unwrap())
            .collect();
        assert_eq!(received, topics, "{messages:?}");
        messages.into_iter().map(|one| one.payload).collect()
    };
    // Its own subscription is the first event that it receives.
    events(&mut node, &["session/subscribed"]);
    let mut named = connect("peer");
    named.username = Some("user");
    let peer = node.join_as(0, &named);
    let received = events(&mut node, &["client/connected"]);
    let expected = r#"{"clientid":"peer","username":null,"peername":"here","listener":"tcp","proto_ver":5,"session_present":false,"expiry_interval":100000,"timestamp":"#;
    assert!(received[0].starts_with(expected), "{received:?}");
    node.subscribe(peer, "t", Q1);
    let received = events(&mut node, &["session/subscribed"]);
    assert!(received[0].contains(r#""topic":"t","qos":1,"sub_props":{"no_local":false,"#));
    assert!(
        !received[0].contains("subscription_identifier"),
        "{received:?}"
    );
    node.publish(peer, "t", "12", Q1);
    let received = events(&mut node, &["message/delivered", "message/acked"]);
    assert!(received[0].contains(r#""topic":"t","qos":1,"retain":false,"payload_bytes":2"#));
    node.publish(peer, "nobody", "1", Q1);
    let received = events(&mut node, &["message/dropped"]);
    assert!(
        received[0].contains(r#""reason":"no_subscribers""#),
        "{received:?}"
    );
    node.unsubscribe(peer, &["t"]);
    events(&mut node, &["session/unsubscribed"]);
    node.subscribe(peer, "t", Q1);
    node.cut(peer);
    let received = events(&mut node, &["session/subscribed", "client/disconnected"]);
    assert!(received[1].contains(r#""peername":"here","reason":"closed","proto_ver":5,"#));
    node.publish(watcher, "t", "1", QoS::AtMostOnce);
    let received = events(&mut node, &["message/delivery_dropped"]);
    assert!(
        received[0].contains(r#""reason":"offline""#),
        "{received:?}"
    );
    node.publish(watcher, "t", "1", Q1);
    events(&mut node, &[]);
    node.join(0, "peer");
    events(
        &mut node,
        &["message/delivered", "client/connected", "message/acked"],
    );
    node.unsubscribe(watcher, &["$events/#"]);
    node.messages(watcher);
    node.publish(watcher, "t", "1", Q1);
    assert!(!node.shell.engine(0).core.events.are_waiting());
    assert!(!node.shell.engine(1).core.events.are_waiting());
    assert_eq!(node.messages(watcher), []);
}

#[test]
fn events_beyond_their_limit_are_counted_and_omitted() {
    let mut node = Node::planned(1, |plan| plan.settings.output_bytes = 1 << 30);
    let watcher = node.join(0, "watcher");
    node.subscribe(watcher, "$events/message/dropped", QoS::AtMostOnce);
    let mut left_out = 0;
    // 8,192 of them wait, or 4 MiB.
    for (topic_bytes, waiting) in [(1, 8_192..8_193), (600, 4_000..6_000), (1, 8_192..8_193)] {
        let topic = "x".repeat(topic_bytes);
        for _ in 0..8_200 {
            node.post(watcher, publish(&topic, "", QoS::AtMostOnce));
        }
        node.settle();
        let received = node.messages(watcher).len() as u64;
        assert!(waiting.contains(&received), "{received}");
        left_out += 8_200 - received;
        assert_eq!(node.count(Counter::EventsLeftOut), left_out);
    }
}

#[test]
fn events_are_published_a_portion_in_each_turn() {
    let mut node = Node::new(1);
    let watcher = node.join(0, "watcher");
    node.subscribe(watcher, "$events/message/dropped", QoS::AtMostOnce);
    node.shell.engine(0).core.turn.limits_mut().portion_units = 8;
    for _ in 0..20 {
        node.post(watcher, publish("nobody", "", QoS::AtMostOnce));
    }
    node.shell.turn(0);
    assert!(node.shell.engine(0).core.events.are_waiting());
    node.settle();
    assert_eq!(node.messages(watcher).len(), 20);
}

#[test]
fn lines_about_single_clients_are_limited_by_the_second() {
    let mut node = Node::new(1);
    let count = |node: &mut Node| {
        let core = &mut node.shell.engine(0).core;
        (0..200).filter(|_| core.may_log()).count()
    };
    assert_eq!(count(&mut node), 50);
    node.advance_time(Duration::from_millis(999));
    assert_eq!(count(&mut node), 0);
    node.advance_time(Duration::from_millis(1));
    assert_eq!(count(&mut node), 50);
}

#[test]
fn events_of_messages_contain_the_reason_and_the_options_of_the_subscriber() {
    let mut node = Node::planned(1, |plan| {
        plan.limits().inflight_max = 1;
        plan.limits().queue.messages_max = 1;
        plan.limits().payload_bytes_max = 5;
    });
    let watcher = node.join(0, "watcher");
    let options = thrum_codec::packet::SubscriptionOptions {
        retain_as_published: true,
        ..thrum_codec::packet::SubscriptionOptions::default()
    };
    node.subscribe_with(watcher, &["$events/#"], options, Some(3));
    let subscribed = node.payloads(watcher).concat();
    let terms = r#""retain_as_published":true,"retain_handling":0,"subscription_identifier":3}"#;
    assert!(subscribed.contains(terms), "{subscribed}");
    let receiver = node.join(0, "receiver");
    let as_published = thrum_codec::packet::SubscriptionOptions { qos: Q1, ..options };
    node.set_acknowledges(receiver, false);
    node.subscribe_with(receiver, &["t"], as_published, None);
    let publisher = node.join(0, "publisher");
    node.messages(watcher);
    let events = |node: &mut Node| -> Vec<String> {
        let messages = node.messages(watcher).into_iter();
        let short = |payload: String| {
            let from = payload.find("null,").map_or(0, |at| at + 5);
            let to = payload.find(r#","timestamp"#).unwrap_or(payload.len());
            payload[from..to].to_owned()
        };
        messages.map(|one| short(one.payload)).collect()
    };
    node.publish(publisher, "$SYS/x", "1", Q1);
    let denied =
        r#""reason":"not_authorized","topic":"$SYS/x","qos":1,"retain":false,"payload_bytes":1"#;
    assert_eq!(events(&mut node), [denied]);
    node.publish(publisher, "t", "123456", Q1);
    let quota = r#""reason":"quota_exceeded","topic":"t","qos":1,"retain":false,"payload_bytes":6"#;
    assert_eq!(events(&mut node), [quota]);
    node.publish(publisher, "t", "1", QoS::ExactlyOnce);
    let sent = r#""topic":"t","qos":1,"retain":false,"payload_bytes":1"#;
    assert_eq!(events(&mut node), [sent], "as the subscriber gets it");
    node.retain(publisher, "t", "12");
    assert_eq!(events(&mut node), Vec::<String>::new(), "it waits");
    node.publish(publisher, "t", "3", Q1);
    let full = r#""reason":"queue_full","topic":"t","qos":1,"retain":false,"payload_bytes":1"#;
    let refused =
        r#""reason":"quota_exceeded","topic":"t","qos":1,"retain":false,"payload_bytes":1"#;
    assert_eq!(events(&mut node), [full, refused]);
    let first = node.messages(receiver).remove(0);
    node.acknowledge(receiver, &first);
    let retained = r#""topic":"t","qos":1,"retain":true,"payload_bytes":2"#;
    assert_eq!(
        events(&mut node),
        [sent, retained],
        "acknowledged, and sent"
    );
}
