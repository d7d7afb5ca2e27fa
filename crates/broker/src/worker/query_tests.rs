//! Tasks to workers whose turns the test calls: their cost, and their end.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::time::Duration;

use thrum_codec::packet::{Connect, Packet};
use thrum_codec::properties::ConnectProperties;
use thrum_codec::{ReasonCode, Version, decode, frame};
use thrum_protocol::Limits;
use thrum_protocol::server::Handshake;

use super::Worker;
use super::tests::{bytes, connect, connect_v5, publish, settle, subscriber, two_workers};
use crate::clock::thread_time;
use crate::control::test_queries::{
    PAGE_BYTES_MAX, PendingPage, QUERIES_MAX, QUERY_UNITS, ROW_UNITS, connections,
    count_topics_in_vain, facets, kick, queries, receivers, refuse, session, unsorted, waiting,
};
use crate::control::{
    Cancellation, ConnectionCounts, Figure, Kicked, NewBan, Presence, QueryError, SessionQuery,
    SortKey, WaitingSubject,
};
use thrum_engine::node::metrics::Counter;
use thrum_engine::timeline::SessionEnd;
use thrum_protection::Subject;

/// Sessions of a listing that takes many turns.
const MANY: usize = 100_000;
/// The work of a turn for a client that pings, in addition to all portions.
const REST_UNITS: u64 = 64;

/// A session without a connection.
fn begin_session(worker: &mut Worker, client_id: &str) {
    let connect = Connect {
        version: Version::V5,
        is_bridge: false,
        clean_start: true,
        keep_alive: 0,
        client_id,
        will: None,
        username: None,
        password: None,
        properties: ConnectProperties::default(),
    };
    let limits = Limits {
        client_id_bytes_max: u16::MAX,
        ..Limits::default()
    };
    let handshake = Handshake::new(&connect, "", &limits).unwrap();
    worker.traffic.engine.begin_session(&handshake);
}

fn page(limit: usize) -> SessionQuery {
    SessionQuery {
        limit,
        ..SessionQuery::default()
    }
}

/// The whole answer, if it is there now, or after a turn of the worker whose part follows.
fn answer_after<A>(second: &mut Worker, mut take: impl FnMut() -> Option<A>) -> Option<A> {
    take().or_else(|| {
        second.run_turn();
        take()
    })
}

#[test]
fn a_listing_keeps_half_of_the_workers_busy_at_once() {
    let mut workers = two_workers();
    for number in 0..MANY {
        for worker in &mut workers {
            let id = worker.traffic.engine.core.id.index();
            begin_session(worker, &format!("s{id}-{number:06}"));
        }
    }
    let queries = queries(&workers[0].node);
    let mut pending = PendingPage::send(&queries, &page(10)).unwrap();
    let mut turns = 0;
    let found = loop {
        for worker in &mut workers {
            worker.run_turn();
        }
        turns += 1;
        if let Some(found) = pending.page() {
            break found;
        }
        let busy = workers
            .iter()
            .filter(|worker| !worker.query_tasks.is_empty());
        assert!(busy.count() <= 1, "turn {turns}");
    };
    assert_eq!(found.matching, Some(2 * MANY as u64));
    assert!(turns >= 2 * MANY as u64 / QUERY_UNITS, "{turns} turns");
}

#[test]
fn the_time_of_a_query_is_what_the_workers_worked_for_it() {
    let mut workers = two_workers();
    begin_session(&mut workers[0], "one");
    let (queries, worked) = queries(&workers[0].node).with_worker_time();
    let began = thread_time();
    let mut pending = PendingPage::send(&queries, &page(10)).unwrap();
    assert_eq!(worked.take(), Duration::ZERO, "it waits");
    while pending.page().is_none() {
        settle(&mut workers);
    }
    let most = thread_time().saturating_sub(began);
    let found = worked.take();
    assert!(
        found > Duration::ZERO && found < most,
        "{found:?} of {most:?}"
    );
    assert_eq!(worked.take(), Duration::ZERO, "it is taken once");
}

#[test]
fn a_listing_of_many_sessions_delays_no_client() {
    let mut workers = two_workers();
    for number in 0..MANY {
        begin_session(&mut workers[0], &format!("s{number:06}"));
    }
    let mut client = workers[0].accepted();
    client.write_all(&connect("client", None)).unwrap();
    settle(&mut workers);
    client.read_exact(&mut [0; 4]).unwrap();
    let queries = queries(&workers[0].node);
    let mut pending = PendingPage::send(&queries, &page(1000)).unwrap();
    let mut turns = 0;
    let found = loop {
        client.write_all(&bytes(&Packet::PingReq)).unwrap();
        let before = workers[0].traffic.engine.core.turn.work;
        workers[0].run_turn();
        turns += 1;
        let units = workers[0].traffic.engine.core.turn.work - before;
        let most = QUERY_UNITS + ROW_UNITS + REST_UNITS;
        assert!(units <= most, "turn {turns} did {units} units");
        let mut answer = [0; 2];
        client.read_exact(&mut answer).unwrap();
        assert_eq!(answer, [0xD0, 0], "it is answered in each turn");
        if let Some(found) = answer_after(&mut workers[1], || pending.page()) {
            break found;
        }
        let wait = workers[0].wait();
        assert_eq!(wait, Some(Duration::ZERO), "the next turn begins at once");
    };
    assert!(turns >= MANY as u64 / QUERY_UNITS, "{turns} turns");
    assert_eq!(found.matching, Some(MANY as u64 + 1));
    assert_eq!(found.page.rows.len(), 1000);
    assert_eq!(&*found.page.rows[0].client_id, "client");
    assert_eq!(&*found.page.rows[999].client_id, "s000998");
}

#[test]
fn facets_of_many_sessions_take_a_portion_of_each_turn() {
    let mut workers = two_workers();
    for number in 0..MANY {
        begin_session(&mut workers[0], &format!("s{number:06}"));
    }
    let queries = queries(&workers[0].node);
    let mut pending = facets(&queries, "client=s*7 state=disconnected");
    let mut turns = 0;
    let found = loop {
        let before = workers[0].traffic.engine.core.turn.work;
        workers[0].run_turn();
        turns += 1;
        let units = workers[0].traffic.engine.core.turn.work - before;
        assert!(
            units <= QUERY_UNITS + REST_UNITS,
            "turn {turns} did {units} units"
        );
        if let Some(found) = answer_after(&mut workers[1], || pending.take()) {
            break found;
        }
    };
    assert!(turns >= MANY as u64 / QUERY_UNITS, "{turns} turns");
    assert_eq!(found.matching, MANY as u64 / 10);
    assert_eq!(found.without_user, MANY as u64 / 10);
}

/// Runs turns until the first worker has answered, none of which does more than a portion.
fn in_portions<A>(workers: &mut [Worker; 2], most: u64, mut take: impl FnMut() -> Option<A>) -> A {
    let mut turns = 0;
    loop {
        let before = workers[0].traffic.engine.core.turn.work;
        workers[0].run_turn();
        turns += 1;
        let units = workers[0].traffic.engine.core.turn.work - before;
        assert!(units <= most, "turn {turns} did {units} units");
        if let Some(found) = answer_after(&mut workers[1], &mut take) {
            assert!(turns >= MANY as u64 / QUERY_UNITS, "{turns} turns");
            return found;
        }
    }
}

#[test]
fn a_look_at_what_waits_takes_a_portion_of_each_turn() {
    let mut workers = two_workers();
    for number in 0..MANY {
        begin_session(&mut workers[0], &format!("s{number:06}"));
    }
    let queries = queries(&workers[0].node);
    let mut pending = waiting(&queries, WaitingSubject::Node);
    let most = QUERY_UNITS + REST_UNITS;
    let found = in_portions(&mut workers, most, || pending.take());
    let sessions: u64 = found.iter().map(|found| found.sessions).sum();
    assert_eq!(sessions, MANY as u64);
}

#[test]
fn the_receivers_of_a_message_are_searched_in_portions_and_counted_once() {
    let mut workers = two_workers();
    let subscribe = |filter: u8| [0x82, 6, 0, 1, 0, 1, filter, 0];
    for number in 0..MANY {
        let name = format!("s{number:06}");
        begin_session(&mut workers[0], &name);
        let engine = &mut workers[0].traffic.engine;
        let slot = engine.core.sessions.find(&name).unwrap();
        for bytes in [subscribe(b't'), subscribe(b'#')] {
            let frame = frame::split(&bytes, 100).unwrap().unwrap();
            let Ok(Packet::Subscribe(packet)) = decode(frame, Version::V311) else {
                panic!("it is a SUBSCRIBE");
            };
            engine.subscribing().subscribe_from(slot, &packet);
        }
    }
    settle(&mut workers);
    let queries = queries(&workers[0].node);
    let mut pending = receivers(&queries, "t");
    // The last turn has those that are listed, too.
    let most = QUERY_UNITS + 128 + 64 + 8 * 100 + REST_UNITS;
    let found = in_portions(&mut workers, most, || pending.take());
    let found: Vec<_> = found.iter().map(|one| &one.receivers).collect();
    let listed: usize = found.iter().map(|one| one.sessions.len()).sum();
    let more: usize = found.iter().map(|one| one.more).sum();
    let subscriptions: usize = found.iter().map(|one| one.subscriptions).sum();
    assert_eq!((listed, more, subscriptions), (100, MANY - 100, 2 * MANY));
}

/// A turn of each worker, and then another session in the place of one that ends.
fn replace_some(workers: &mut [Worker; 2], round: usize) {
    let gone = format!("goes{}", round % 200);
    for worker in workers {
        worker.run_turn();
        if let Some(slot) = worker.traffic.engine.core.sessions.find(&gone) {
            worker
                .traffic
                .engine
                .remove_session(slot, SessionEnd::ByOperator);
            begin_session(worker, &format!("later{round}"));
        }
    }
}

#[test]
fn lasting_sessions_are_listed_once_while_others_begin_and_end() {
    let mut workers = two_workers();
    for number in 0..200 {
        let name = if number % 2 == 0 { "lasts" } else { "goes" };
        begin_session(&mut workers[number % 3 % 2], &format!("{name}{number}"));
    }
    for worker in &mut workers {
        worker.traffic.engine.core.turn.limits_mut().portion_units = 20;
    }
    let queries = queries(&workers[0].node);
    let mut query = page(7);
    let mut listed = Vec::new();
    let mut round = 0;
    loop {
        let mut pending = PendingPage::send(&queries, &query).unwrap();
        let found = loop {
            if let Some(found) = pending.page() {
                break found;
            }
            replace_some(&mut workers, round);
            round += 1;
        };
        listed.extend(found.page.rows.into_iter().map(|row| row.client_id));
        query.cursor = found.page.next;
        if query.cursor.is_none() {
            break;
        }
    }
    assert!(listed.is_sorted(), "{listed:?}");
    let once: BTreeSet<_> = listed.iter().collect();
    assert_eq!(once.len(), listed.len());
    let lasting = listed.iter().filter(|name| name.starts_with("lasts"));
    assert_eq!(lasting.count(), 100);
    assert!(listed.iter().any(|name| name.starts_with("later")));
}

#[test]
fn a_whole_unsorted_listing_looks_at_each_session_once() {
    const SESSIONS: u64 = 5000;
    let mut workers = two_workers();
    for number in 0..SESSIONS {
        begin_session(&mut workers[0], &format!("s{number}"));
    }
    let queries = queries(&workers[0].node);
    let mut query = SessionQuery {
        sort: SortKey::Unsorted,
        ..page(50)
    };
    let mut listed = BTreeSet::new();
    let (mut pages, mut units) = (0, 0);
    loop {
        let mut pending = unsorted(&queries, &query).unwrap();
        let found = loop {
            if let Some(found) = pending.page() {
                break found;
            }
            let before = workers[0].traffic.engine.core.turn.work;
            workers[0].run_turn();
            units += workers[0].traffic.engine.core.turn.work - before;
        };
        assert!(found.page.rows.len() <= 50 && found.matching.is_none());
        let rows = found.page.rows.into_iter();
        listed.extend(rows.map(|row| row.client_id));
        pages += 1;
        query.cursor = found.page.next;
        if query.cursor.is_none() {
            break;
        }
    }
    assert_eq!(listed.len() as u64, SESSIONS);
    assert!(pages <= SESSIONS / 50 + 1, "{pages} pages");
    let places = workers[0].traffic.engine.core.sessions.capacity() as u64;
    let most = places + SESSIONS * ROW_UNITS + pages * REST_UNITS;
    assert!(units <= most, "{units} units of {most}");
}

/// A client identifier of the longest allowed size.
fn longest(number: u8) -> String {
    format!("{}{number:02}", "x".repeat(65_533))
}

#[test]
fn pages_of_long_client_identifiers_are_short_and_have_short_cursors() {
    let mut workers = two_workers();
    for number in 0..40 {
        begin_session(&mut workers[usize::from(number % 2)], &longest(number));
        begin_session(&mut workers[0], &format!("s{number}"));
    }
    let queries = queries(&workers[0].node);
    let mut query = page(1000);
    let mut listed = Vec::new();
    loop {
        let mut pending = PendingPage::send(&queries, &query).unwrap();
        let found = loop {
            if let Some(found) = pending.page() {
                break found;
            }
            workers.iter_mut().for_each(Worker::run_turn);
        };
        let bytes = found.page.rows.iter().map(|row| row.client_id.len());
        assert!(bytes.sum::<usize>() <= PAGE_BYTES_MAX + 65_535);
        listed.extend(found.page.rows.into_iter().map(|row| row.client_id));
        query.cursor = found.page.next;
        let Some(cursor) = &query.cursor else {
            break;
        };
        let text = cursor.to_string();
        assert!(text.len() < 4096, "{} bytes", text.len());
        query.cursor = Some(text.parse().unwrap());
    }
    let once: BTreeSet<_> = listed.iter().collect();
    assert_eq!((listed.len(), once.len()), (80, 80));
}

#[test]
fn a_cancelled_query_fails_and_workers_drop_it() {
    let mut workers = two_workers();
    let cancel = Cancellation::default();
    let queries = queries(&workers[0].node).with_cancellation(cancel.clone());
    let asking = queries.clone();
    // No worker takes a turn, so the thread waits.
    let waiting = std::thread::spawn(move || asking.session("a"));
    let metrics = &workers[0].node.state.metrics;
    while metrics.total(Counter::QuestionsAsked) == 0 {
        std::thread::yield_now();
    }
    cancel.cancel();
    assert_eq!(waiting.join().unwrap().unwrap_err(), QueryError::Cancelled);
    settle(&mut workers);
    let metrics = &workers[0].node.state.metrics;
    assert!(metrics.total(Counter::QuestionsGivenUp) > 0);
    // A later query is not even sent.
    let sent = metrics.total(Counter::QuestionsAsked);
    assert_eq!(queries.session("a").unwrap_err(), QueryError::Cancelled);
    assert_eq!(metrics.total(Counter::QuestionsAsked), sent);
}

#[test]
fn workers_drop_a_query_whose_caller_has_stopped_waiting() {
    let mut workers = two_workers();
    for number in 0..10_000 {
        begin_session(&mut workers[0], &format!("s{number}"));
    }
    let queries = queries(&workers[0].node);
    let pending = PendingPage::send(&queries, &page(10)).unwrap();
    workers[0].run_turn();
    assert!(!workers[0].query_tasks.is_empty(), "it takes several turns");
    drop(pending);
    workers.iter_mut().for_each(Worker::run_turn);
    let metrics = &workers[0].node.state.metrics;
    assert!(workers[0].query_tasks.is_empty());
    let given_up = metrics.total(Counter::QuestionsGivenUp);
    assert_eq!(given_up, 1, "the second worker never had its part");
}

#[test]
fn a_listing_that_has_not_begun_everywhere_fails_when_the_broker_stops() {
    let mut workers = two_workers();
    let queries = queries(&workers[0].node);
    let asking = queries.clone();
    // The second worker takes no turn any more, like one that has ended.
    let waiting = std::thread::spawn(move || asking.sessions(&page(1)));
    let metrics = &workers[0].node.state.metrics;
    while metrics.total(Counter::QuestionsAsked) == 0 {
        std::thread::yield_now();
    }
    refuse(&queries);
    workers[0].run_turn();
    assert_eq!(waiting.join().unwrap().unwrap_err(), QueryError::Stopped);
}

#[test]
fn the_number_of_pending_queries_is_limited() {
    let mut workers = two_workers();
    let queries = queries(&workers[0].node);
    let send = || PendingPage::send(&queries, &page(1));
    let pending: Vec<_> = (0..QUERIES_MAX).map(|_| send().unwrap()).collect();
    assert_eq!(send().unwrap_err(), QueryError::Busy);
    drop(pending);
    assert_eq!(send().unwrap_err(), QueryError::Busy, "workers have them");
    workers.iter_mut().for_each(Worker::run_turn);
    send().unwrap();
    let metrics = &workers[0].node.state.metrics;
    assert_eq!(metrics.total(Counter::QuestionsRefused), 2);
    assert_eq!(
        metrics.total(Counter::QuestionsAsked),
        QUERIES_MAX as u64 + 1
    );
}

#[test]
fn a_session_is_shown_with_its_connection_and_without() {
    let mut workers = two_workers();
    let _subscriber = subscriber(&mut workers, 1);
    let mut away = workers[0].accepted();
    away.write_all(&connect_v5("away", 300)).unwrap();
    settle(&mut workers);
    drop(away);
    settle(&mut workers);
    let queries = queries(&workers[0].node);
    let mut show = |client_id| {
        let mut pending = session(&queries, client_id);
        settle(&mut workers);
        let answers = pending.take().unwrap();
        answers.into_iter().flatten().next()
    };
    let here = show("subscriber").unwrap();
    assert_eq!(here.worker, 1);
    let Presence::Connected { peer, listener, .. } = &here.row.presence else {
        panic!("{here:?}");
    };
    assert_eq!((&**peer, &**listener), ("unix socket", "mqtt"));
    let connection = here.connection.unwrap();
    assert_eq!(connection.keep_alive_secs, 60);
    assert_eq!((connection.tcp, connection.limited.len()), (None, 0));
    let filters: Vec<_> = here.subscriptions.iter().map(|one| &*one.filter).collect();
    assert_eq!((here.row.subscriptions, filters), (1, vec!["t"]));
    let offline = show("away").unwrap();
    assert!(offline.connection.is_none() && offline.row.expiry_secs == 300);
    assert!(matches!(offline.row.presence, Presence::Away { .. }));
    assert!(show("nobody").is_none());
}

#[test]
fn connections_are_counted_by_how_far_they_are() {
    let mut workers = two_workers();
    let _silent = workers[0].accepted();
    let _subscriber = subscriber(&mut workers, 1);
    let mut pending = connections(&queries(&workers[0].node));
    settle(&mut workers);
    let counts = pending.take().unwrap();
    let sum = |value: fn(&ConnectionCounts) -> u64| counts.iter().map(value).sum::<u64>();
    assert_eq!(sum(|counts| counts.awaiting_connect), 1);
    assert_eq!(sum(|counts| counts.established), 1);
    assert_eq!(sum(|counts| counts.closing + counts.in_handshake), 0);
}

#[test]
fn a_ban_is_made_though_the_worker_of_its_client_is_late() {
    let mut workers = two_workers();
    let mut client = workers[0].accepted();
    client.write_all(&connect("client", None)).unwrap();
    settle(&mut workers);
    client.read_exact(&mut [0; 4]).unwrap();
    let queries = queries(&workers[0].node).with_timeout(Duration::ZERO);
    let subject = Subject::ClientId("client".into());
    let new = NewBan {
        subject: subject.clone(),
        reason: "".into(),
        by: "test".into(),
        secs: None,
        disconnects: true,
    };
    // No worker has a turn.
    let added = queries.ban(new).unwrap();
    assert_eq!(added.ban.subject, subject);
    assert_eq!(queries.bans().listed, [added.ban]);
    assert_eq!(added.late_workers.len(), 2, "{:?}", added.late_workers);
    settle(&mut workers);
    assert_eq!(client.read_to_end(&mut Vec::new()).unwrap(), 0);
}

#[test]
fn a_disconnected_client_gets_the_reason_and_its_session_ends_on_demand() {
    let mut workers = two_workers();
    let queries = queries(&workers[0].node);
    let kicked = |workers: &mut [Worker; 2], ends_session| {
        let mut pending = kick(&queries, "client", ends_session);
        settle(workers);
        let answers = pending.take().unwrap();
        answers.into_iter().flatten().next()
    };
    let mut client = workers[0].accepted();
    client.write_all(&connect_v5("client", 300)).unwrap();
    settle(&mut workers);
    let expected = |was_connected, session_ended| {
        Some(Kicked {
            was_connected,
            session_ended,
        })
    };
    assert_eq!(kicked(&mut workers, false), expected(true, false));
    let mut received = Vec::new();
    client.read_to_end(&mut received).unwrap();
    let connack = frame::split(&received, u32::MAX).unwrap().unwrap();
    let disconnect = frame::split(&received[connack.len..], u32::MAX)
        .unwrap()
        .unwrap();
    let Packet::Disconnect(disconnect) = decode(disconnect, Version::V5).unwrap() else {
        panic!("{received:?}");
    };
    assert_eq!(disconnect.reason, ReasonCode::AdministrativeAction);
    assert_eq!(
        disconnect.properties.reason_string,
        Some("disconnected by an operator of the broker")
    );
    assert_eq!(kicked(&mut workers, false), expected(false, false));
    assert_eq!(kicked(&mut workers, true), expected(false, true));
    assert_eq!(kicked(&mut workers, true), None);
    assert_eq!(workers[0].node.state.metrics.total(Counter::Sessions), 0);
    assert_eq!(
        workers[0].node.state.metrics.total(Counter::ClientsKicked),
        1
    );
}

#[test]
fn an_order_needs_its_own_cursor() {
    let mut workers = two_workers();
    for number in 0..3 {
        begin_session(&mut workers[0], &format!("s{number}"));
    }
    let queries = queries(&workers[0].node);
    let mut pending = PendingPage::send(&queries, &page(1)).unwrap();
    let found = loop {
        settle(&mut workers);
        if let Some(found) = pending.page() {
            break found;
        }
    };
    let cursor = found.page.next;
    assert!(cursor.is_some());
    for (sort, is_descending) in [
        (SortKey::ClientId, true),
        (SortKey::Figure(Figure::QueuedBytes), false),
    ] {
        let other = SessionQuery {
            sort,
            is_descending,
            cursor: cursor.clone(),
            ..page(1)
        };
        let refused = PendingPage::send(&queries, &other).unwrap_err();
        assert!(matches!(refused, QueryError::Cursor(_)), "{refused:?}");
    }
}

#[test]
fn a_filter_that_only_some_workers_have_taken_is_counted_by_none_in_the_end() {
    let mut workers = two_workers();
    let queries = queries(&workers[0].node);
    let mut clients = [0, 1].map(|number| {
        let mut client = workers[number].accepted();
        client
            .write_all(&connect(&format!("p{number}"), None))
            .unwrap();
        client
    });
    settle(&mut workers);
    let mut metric = None;
    // Twice, as the tasks of the first time may still be under way.
    for _ in 0..2 {
        count_topics_in_vain(&queries, "t", || {
            metric = workers[0]
                .node
                .state
                .topic_metrics
                .current()
                .first()
                .cloned();
            workers[0].run_turn();
            clients[0].write_all(&publish(b"x")).unwrap();
            workers[0].run_turn();
        });
    }
    let metric = metric.unwrap();
    let now = workers[0].node.clock.now();
    assert_eq!(metric.figures(now).received, [1, 0, 0]);
    settle(&mut workers);
    for client in &mut clients {
        client.write_all(&publish(b"x")).unwrap();
    }
    settle(&mut workers);
    assert_eq!(metric.figures(now).received, [1, 0, 0], "nobody counts it");
}
