//! Timers that outlive what they were armed for, and events of the poll that do.

use std::io::Write;
use std::time::Duration;

use thrum_codec::packet::Packet;
use thrum_engine::ids::ConnectionKey;
use thrum_engine::node::metrics::Counter;

use super::{bytes, connect, connect_v5, messages, settle, two_workers};
use crate::edge::Ending;
use crate::worker::Target;

#[test]
fn a_connection_that_ends_has_its_time_whatever_was_armed_for_it_before() {
    let mut workers = two_workers();
    let mut client = workers[0].accepted();
    let key = ConnectionKey::FIRST;
    let id = workers[0].traffic.engine.core.outputs.id(key);
    // No CONNECT.
    client.write_all(&bytes(&Packet::PingReq)).unwrap();
    settle(&mut workers);
    let worker = &mut workers[0];
    assert!(worker.traffic.edge.connections[key].is_draining());
    worker.timer(Target::Connection(id));
    assert!(worker.traffic.edge.connections.contains(key));
    let mut fired = Vec::new();
    worker.traffic.engine.core.turn.now = worker
        .traffic
        .engine
        .core
        .turn
        .now
        .plus(Duration::from_secs(3));
    let now = worker.traffic.engine.core.turn.now;
    worker.traffic.engine.core.timers.advance(now, &mut fired);
    for target in fired {
        worker.timer(target);
    }
    assert!(!worker.traffic.edge.connections.contains(key));
}

#[test]
fn sessions_that_have_gone_leave_no_timers_behind_for_long() {
    let mut workers = two_workers();
    let worker = &mut workers[0];
    let before = worker.traffic.engine.core.timers.len();
    for _ in 0..50 {
        let mut client = worker.accepted();
        // It wants its session for a week.
        client.write_all(&connect_v5("a", 604_800)).unwrap();
        worker.run_turn();
        drop(client);
        worker.run_turn();
        let mut client = worker.accepted();
        client.write_all(&connect("a", None)).unwrap();
        worker.run_turn();
        drop(client);
        worker.run_turn();
    }
    let mut fired = Vec::new();
    let soon = worker
        .traffic
        .engine
        .core
        .turn
        .now
        .plus(Duration::from_secs(601));
    worker.traffic.engine.core.timers.advance(soon, &mut fired);
    assert_eq!(worker.traffic.engine.core.timers.len(), before);
}

#[test]
fn a_session_expires_in_time_however_often_its_timer_is_checked() {
    let mut workers = two_workers();
    let worker = &mut workers[0];
    let mut client = worker.accepted();
    client.write_all(&connect_v5("a", 3600)).unwrap();
    worker.run_turn();
    drop(client);
    worker.run_turn();
    let mut pass = |seconds| {
        worker.traffic.engine.core.turn.now = worker
            .traffic
            .engine
            .core
            .turn
            .now
            .plus(Duration::from_secs(seconds));
        let now = worker.traffic.engine.core.turn.now;
        worker.traffic.engine.core.turn.begin(now);
        worker.handle_timers();
        worker.traffic.engine.core.sessions.find("a").is_some()
    };
    let there: Vec<bool> = (0..7).map(|_| pass(590)).collect();
    assert_eq!(there, [true, true, true, true, true, true, false]);
}

#[test]
fn an_event_of_a_closed_connection_does_not_affect_the_next_one_in_its_place() {
    let mut workers = two_workers();
    let worker = &mut workers[0];
    let mut old = worker.accepted();
    old.write_all(&connect("old", None)).unwrap();
    worker.run_turn();
    drop(old);
    // The poll has seen the end, the worker not yet; and something else ends the connection first.
    let events = worker.ready_sockets();
    assert_eq!(events.iter().count(), 1);
    let slot = worker.traffic.engine.core.sessions.find("old").unwrap();
    let key = worker.traffic.engine.core.sessions[slot]
        .connection
        .unwrap();
    let traffic = &mut worker.traffic;
    traffic
        .edge
        .lost(&mut traffic.engine, key, Ending::ClosedByPeer);
    let mut new_client = worker.accepted();
    assert!(
        worker.traffic.edge.connections.contains(key),
        "the same slot"
    );
    worker.handle_inputs(&events);
    worker.send_outputs();
    new_client.write_all(&connect("new", None)).unwrap();
    worker.run_turn();
    assert!(worker.traffic.engine.core.sessions.find("new").is_some());
    assert!(messages(&mut new_client).is_empty(), "it is open");
    assert_eq!(
        worker.node.state.metrics.total(Counter::ClientsConnected),
        1
    );
}
