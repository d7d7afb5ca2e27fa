//! Sessions and wills that end: before a start, by an administrator, and on a node with one worker.

use std::time::Duration;

use thrum_codec::QoS;
use thrum_engine::node::metrics::Counter;

use crate::node::{Node, connect, connect_with_will};

const Q1: QoS = QoS::AtLeastOnce;

#[test]
fn a_session_that_expired_before_the_start_is_gone_with_it() {
    let mut node = Node::durable(1, |_| ());
    for (client_id, expiry) in [("short", 5), ("long", 500)] {
        let mut connect = connect(client_id);
        connect.properties.session_expiry = Some(expiry);
        let peer = node.join_as(0, &connect);
        node.cut(peer);
    }
    // No turn follows before the crash.
    node.shell.advance_time(Duration::from_secs(6));
    let mut node = node.crash();
    assert!(node.shell.find("short").is_none() && node.shell.find("long").is_some());
    assert_eq!(node.count(Counter::SessionsExpired), 1);
    assert!(node.shell.engine(0).overdue_sessions().is_empty());
    node.shell.advance_time(Duration::from_secs(494));
    assert_eq!(node.crash().count(Counter::Sessions), 0, "at its moment");
}

#[test]
fn the_delay_of_a_will_counts_from_the_end_of_its_connection_within_a_long_turn() {
    let mut node = Node::new(1);
    let receiver = node.join(0, "receiver");
    node.subscribe(receiver, "wills", Q1);
    let mut connect = connect_with_will("gone");
    connect.properties.session_expiry = Some(100);
    let peer = node.join_as(0, &connect);
    node.shell.set_turn_age(500);
    node.cut(peer);
    node.shell.set_turn_age(0);
    node.advance_time(Duration::from_millis(10_400));
    assert_eq!(node.payloads(receiver), Vec::<String>::new());
    node.advance_time(Duration::from_millis(200));
    assert_eq!(node.payloads(receiver), ["gone"]);
}

#[test]
fn the_end_of_a_connection_within_a_long_turn_is_on_the_disk_as_it_was() {
    let mut node = Node::durable(1, |_| ());
    let receiver = node.join(0, "receiver");
    node.subscribe(receiver, "wills", Q1);
    let mut will = connect_with_will("gone");
    will.properties.session_expiry = Some(100);
    let mut short = connect("short");
    short.properties.session_expiry = Some(5);
    let peers = [&will, &short].map(|connect| node.join_as(0, connect));
    node.shell.set_turn_age(500);
    for peer in peers {
        node.cut(peer);
    }
    node.shell.set_turn_age(0);
    // Each ends 500 ms later than its turn began.
    node.shell.advance_time(Duration::from_millis(5_400));
    let mut node = node.crash();
    assert!(node.shell.find("short").is_some());
    node.shell.advance_time(Duration::from_millis(200));
    let mut node = node.crash();
    assert!(node.shell.find("short").is_none());
    let receiver = node.join(0, "receiver");
    node.subscribe(receiver, "wills", Q1);
    node.advance_time(Duration::from_millis(4_800));
    assert_eq!(node.payloads(receiver), Vec::<String>::new());
    node.advance_time(Duration::from_millis(200));
    assert_eq!(node.payloads(receiver), ["gone"]);
}

#[test]
fn a_will_that_is_dropped_is_not_published_after_a_crash() {
    for expiry in [0, 100] {
        let mut node = Node::durable(1, |plan| plan.settings.keeps_all_wills = true);
        let receiver = node.join(0, "receiver");
        node.subscribe(receiver, "wills", Q1);
        let mut connect = connect_with_will("gone");
        connect.properties.session_expiry = Some(expiry);
        node.join_as(0, &connect);
        let slot = node.shell.find("gone").unwrap().1;
        let engine = node.shell.engine(0);
        let client = &engine.core.sessions[slot];
        assert_eq!(client.is_kept_for_will(), expiry == 0);
        engine.core.sessions[slot].drop_unused();
        assert_eq!(engine.core.sessions[slot].is_kept_for_will(), expiry == 0);
        engine.drop_will(slot, "a test");
        assert!(!engine.core.sessions[slot].is_kept_for_will());
        assert!(engine.core.durable.has_changes());
        node.settle();
        assert_eq!(node.count(Counter::WillsDenied), 1);
        let mut node = node.crash();
        assert_eq!(node.shell.find("gone").is_some(), expiry > 0);
        let receiver = node.join(0, "receiver");
        node.advance_time(Duration::from_secs(11));
        assert_eq!(node.payloads(receiver), Vec::<String>::new());
    }
}

#[test]
fn a_node_with_one_worker_releases_no_client_identifiers() {
    for workers in [1, 2] {
        let mut node = Node::new(workers);
        let peer = node.join(0, "peer");
        node.cut(peer);
        let slot = node.shell.find("peer").unwrap().1;
        let engine = node.shell.engine(0);
        engine.end_session(slot);
        assert_eq!(engine.core.sessions.ended.len(), workers - 1);
    }
}
