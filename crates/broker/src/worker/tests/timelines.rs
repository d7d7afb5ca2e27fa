//! The timeline of a client, of all workers that have had to do with it.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use thrum_codec::ReasonCode;
use thrum_engine::peer::Peer;
use thrum_engine::timeline::{ClientEvent, EndCause, SessionEnd};

use super::{connect, connect_v5, settle, two_workers, two_workers_with};
use crate::control::Timeline;
use crate::control::test_queries::{kick, queries, timeline, whole_timeline};
use crate::worker::Worker;

fn timeline_of(workers: &mut [Worker; 2], client_id: &str) -> Timeline {
    let queries = queries(&workers[0].node);
    let mut pending = timeline(&queries, client_id);
    settle(workers);
    whole_timeline(&queries, pending.take().expect("both workers answer"))
}

fn ends(timeline: &Timeline) -> Vec<(EndCause, bool)> {
    let events = timeline.events.iter();
    events
        .filter_map(|event| match event.event {
            ClientEvent::Disconnected {
                cause,
                session_ended,
                ..
            } => Some((cause, session_ended)),
            _ => None,
        })
        .collect()
}

fn connections(timeline: &Timeline) -> Vec<bool> {
    let events = timeline.events.iter();
    events
        .filter_map(|event| match &event.event {
            ClientEvent::Connected(connection) => Some(connection.session_present),
            _ => None,
        })
        .collect()
}

#[test]
fn a_missed_keep_alive_is_told_with_how_long_nothing_was_received() {
    let mut millis = Arc::new(AtomicU64::new(0));
    let mut workers = two_workers_with(|parts| millis.clone_from(&parts.millis));
    let mut client = workers[1].accepted();
    client.write_all(&connect("client", None)).unwrap();
    settle(&mut workers);
    millis.fetch_add(91_000, Ordering::Relaxed);
    settle(&mut workers);
    let found = timeline_of(&mut workers, "client");
    assert!(!found.has_session);
    let cause = EndCause::KeepAlive {
        keep_alive_secs: 60,
        silent_millis: 91_000,
    };
    assert_eq!(ends(&found), [(cause, true)], "{found:?}");
    assert_eq!(found.events[1].at - found.events[0].at, 91_000);
}

#[test]
fn a_takeover_names_the_other_connection_and_its_session_goes_on() {
    let mut workers = two_workers();
    let mut first = workers[0].accepted();
    first.write_all(&connect_v5("client", 300)).unwrap();
    settle(&mut workers);
    // The other worker hands the connection over.
    let mut second = workers[1].accepted();
    second.write_all(&connect_v5("client", 300)).unwrap();
    settle(&mut workers);
    let found = timeline_of(&mut workers, "client");
    let cause = EndCause::TakenOver { by: Peer::Local };
    assert_eq!(ends(&found), [(cause, false)], "{found:?}");
    assert_eq!(connections(&found), [false, true]);
    drop(second);
    settle(&mut workers);
    let mut third = workers[1].accepted();
    third.write_all(&connect_v5("client", 0)).unwrap();
    settle(&mut workers);
    let found = timeline_of(&mut workers, "client");
    assert_eq!(ends(&found)[1], (EndCause::Lost, false), "{found:?}");
    let is_replaced =
        |event: &ClientEvent| *event == ClientEvent::SessionEnded(SessionEnd::CleanStart);
    assert!(found.events.iter().any(|event| is_replaced(&event.event)));
    assert_eq!(connections(&found), [false, true, false]);
}

#[test]
fn refusals_of_one_worker_and_connections_of_another_are_one_timeline() {
    let mut millis = Arc::new(AtomicU64::new(0));
    let mut workers = two_workers_with(|parts| {
        parts.config.limits.connections = 1;
        millis.clone_from(&parts.millis);
    });
    let mut first = workers[0].accepted();
    first.write_all(&connect("first", None)).unwrap();
    settle(&mut workers);
    for _ in 0..3 {
        millis.fetch_add(1000, Ordering::Relaxed);
        let mut refused = workers[1].accepted();
        refused.write_all(&connect("client", None)).unwrap();
        settle(&mut workers);
    }
    let found = timeline_of(&mut workers, "client");
    assert!(!found.has_session);
    assert_eq!(found.events.len(), 1, "{found:?}");
    let event = &found.events[0];
    assert_eq!((event.count, event.last - event.at), (3, 2000));
    let ClientEvent::Refused { peer, reason, .. } = event.event else {
        panic!("{event:?}");
    };
    assert_eq!((peer, reason), (Peer::Local, ReasonCode::QuotaExceeded));
    drop(first);
    settle(&mut workers);
    millis.fetch_add(1000, Ordering::Relaxed);
    let mut client = workers[0].accepted();
    client.write_all(&connect("client", None)).unwrap();
    settle(&mut workers);
    let found = timeline_of(&mut workers, "client");
    assert!(found.has_session);
    assert_eq!(found.events.len(), 2, "{found:?}");
    assert_eq!(connections(&found), [false]);
}

#[test]
fn a_kick_and_the_end_of_the_session_are_told_as_those_of_the_administrator() {
    let mut workers = two_workers();
    let mut client = workers[0].accepted();
    client.write_all(&connect_v5("client", 300)).unwrap();
    settle(&mut workers);
    let mut kicked = kick(&queries(&workers[0].node), "client", true);
    settle(&mut workers);
    assert!(kicked.take().is_some());
    let found = timeline_of(&mut workers, "client");
    let [_, end, session] = &found.events[..] else {
        panic!("{found:?}");
    };
    let ClientEvent::Disconnected { cause, .. } = end.event else {
        panic!("{end:?}");
    };
    let EndCause::ByBroker { reason, .. } = cause else {
        panic!("{cause:?}");
    };
    assert_eq!(reason, ReasonCode::AdministrativeAction);
    assert_eq!(
        session.event,
        ClientEvent::SessionEnded(SessionEnd::ByOperator)
    );
}
