//! The limit of one turn's work for one client, and when a paused client is read again.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use thrum_codec::packet::{
    Packet, Subscribe, SubscriptionOptions, SubscriptionRequest, SubscriptionRequests,
    TopicFilters, Unsubscribe, Will,
};
use thrum_codec::properties::{SubscribeProperties, UserProperties, WillProperties};
use thrum_codec::{PacketId, QoS, TopicFilter, Version, encode};
use thrum_engine::ids::ConnectionKey;
use thrum_engine::node::metrics::Counter;
use thrum_engine::turn::{CLOSING_UNITS, OUT_UNIT_BYTES};
use thrum_engine::workers::WorkerId;
use thrum_protection::Measured;

use super::rounds::RoundTask;
use super::tests::{
    bytes, connect, connect_v5, messages, publish, settle, subscribe, subscriber, two_workers,
};
use super::{PAUSE_CHECK, Worker};
use crate::listener::{Change, Listener};
use crate::mailbox::Mail;
use crate::read_gate::PauseReason;
use crate::traffic::READ_BYTES;

/// Messages that the mailboxes of these tests hold.
const MAILBOX_MESSAGES: usize = 100;
/// Messages in one piece of input, more than fit into a mailbox.
const FLOOD: usize = 3 * MAILBOX_MESSAGES;

/// An admitted client.
fn client(workers: &mut [Worker; 2], client_id: &str) -> UnixStream {
    let mut stream = workers[0].accepted();
    stream.write_all(&connect(client_id, None)).unwrap();
    settle(workers);
    let mut connack = [0; 4];
    stream.read_exact(&mut connack).unwrap();
    stream
}

fn key_of(worker: &Worker, client_id: &str) -> ConnectionKey {
    let slot = worker.traffic.engine.core.sessions.find(client_id).unwrap();
    worker.traffic.engine.core.sessions[slot]
        .connection
        .unwrap()
}

fn flood() -> Vec<u8> {
    publish(b"x").repeat(FLOOD)
}

/// More than a socket holds. In large pieces it holds most.
fn more_than_a_socket_holds() -> Vec<u8> {
    publish(b"x").repeat(100 * FLOOD)
}

/// Writes as much as the socket holds; how much that was.
fn fill(stream: &mut UnixStream, bytes: &[u8]) -> usize {
    let mut written = 0;
    loop {
        match stream.write(&bytes[written % bytes.len()..]) {
            Ok(len) => written += len,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return written,
            Err(error) => panic!("{error}"),
        }
    }
}

fn waiting(worker: &Worker, number: usize) -> usize {
    let level = worker.node.state.mailbox_level(WorkerId::new(number));
    level.waiting().0
}

#[test]
fn publishers_do_not_fill_an_unread_mailbox_beyond_its_limit() {
    let mut workers = two_workers();
    let _subscriber = subscriber(&mut workers, 1);
    let mut publishers = ["a", "b", "c"].map(|name| client(&mut workers, name));
    let mut chatty = client(&mut workers, "chatty");
    for _ in 0..1000 {
        for publisher in &mut publishers {
            fill(publisher, &flood());
        }
        chatty.write_all(&bytes(&Packet::PingReq)).unwrap();
        workers[0].run_turn();
    }
    let waiting = waiting(&workers[0], 1);
    assert!(
        (MAILBOX_MESSAGES..MAILBOX_MESSAGES + publishers.len()).contains(&waiting),
        "{waiting} messages wait"
    );
}

#[test]
fn a_publisher_resumes_when_the_mailbox_is_half_empty_and_nothing_is_lost() {
    let mut workers = two_workers();
    let mut subscriber = subscriber(&mut workers, 1);
    let mut publisher = client(&mut workers, "publisher");
    publisher.write_all(&flood()).unwrap();
    workers[0].run_turn();
    let key = key_of(&workers[0], "publisher");
    let is_paused = |worker: &Worker| {
        let reading = worker.traffic.edge.connections[key].reading;
        reading.has(PauseReason::Mailbox)
    };
    assert!(is_paused(&workers[0]));
    assert_eq!(workers[0].wait(), Some(PAUSE_CHECK), "no busy loop");
    workers[0].run_turn();
    assert!(is_paused(&workers[0]), "the mailbox is as full as before");
    let mut received = 0;
    for _ in 0..=FLOOD / MAILBOX_MESSAGES {
        workers[1].run_turn();
        workers[0].run_turn();
        received += messages(&mut subscriber).len();
    }
    assert_eq!(received, FLOOD);
    assert!(!is_paused(&workers[0]));
    let paused = workers[0]
        .node
        .state
        .metrics
        .total(Counter::PublishersPaused);
    assert_eq!(paused, 3);
}

#[test]
fn a_client_that_was_not_read_gets_no_more_than_its_portion_of_a_turn() {
    let mut workers = two_workers();
    let mut talker = client(&mut workers, "talker");
    let key = key_of(&workers[0], "talker");
    let mut other = client(&mut workers, "other");
    workers[0].traffic.edge.pause(key, PauseReason::Decision);
    let waiting = fill(&mut talker, &more_than_a_socket_holds());
    assert!(waiting > 2 * READ_BYTES, "{waiting} bytes fit");
    settle(&mut workers);
    let read = |workers: &[Worker; 2]| workers[0].node.state.metrics.total(Counter::BytesReceived);
    workers[0].traffic.edge.resume(key, PauseReason::Decision);
    for _ in 0..4 {
        let before = read(&workers);
        other.write_all(&bytes(&Packet::PingReq)).unwrap();
        fill(&mut talker, &more_than_a_socket_holds());
        workers[0].run_turn();
        let portion = read(&workers) - before;
        assert!(
            portion <= READ_BYTES as u64 + 2,
            "{portion} bytes in a turn"
        );
        let mut pong = [0; 2];
        other.read_exact(&mut pong).unwrap();
    }
    assert_eq!(workers[0].wait(), Some(Duration::ZERO));
}

#[test]
fn packets_before_the_end_of_a_broken_connection_are_handled_in_portions() {
    let mut workers = two_workers();
    let mut talker = client(&mut workers, "talker");
    let key = key_of(&workers[0], "talker");
    workers[0].traffic.edge.pause(key, PauseReason::Rate);
    let waiting = fill(&mut talker, &more_than_a_socket_holds());
    settle(&mut workers);
    drop(talker);
    let before = workers[0].node.state.metrics.total(Counter::BytesReceived);
    workers[0].run_turn();
    workers[0].traffic.edge.resume(key, PauseReason::Rate);
    let mut turns = 0;
    while workers[0].traffic.edge.connections.contains(key) {
        workers[0].run_turn();
        turns += 1;
        assert!(turns < 100);
    }
    let read = workers[0].node.state.metrics.total(Counter::BytesReceived) - before;
    assert_eq!(usize::try_from(read).unwrap(), waiting);
    assert!(turns >= waiting / READ_BYTES, "{turns} turns");
}

/// A packet of MQTT 5.0, in which a refusal has a reason code.
fn v5(packet: &Packet<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(packet, Version::V5, &mut bytes).unwrap();
    bytes
}

/// A client of that version, and the codes that answer its SUBSCRIBE and UNSUBSCRIBE for so many
/// filters; none if its connection was closed.
fn codes_for(version: Version, filters: usize) -> [Option<Vec<u8>>; 2] {
    let mut workers = two_workers();
    let mut client = workers[0].accepted();
    let names: Vec<String> = (0..filters).map(|number| format!("f/{number}")).collect();
    let parsed: Vec<_> = names
        .iter()
        .map(|name| TopicFilter::parse(name).unwrap())
        .collect();
    let requests: Vec<_> = parsed
        .iter()
        .map(|filter| SubscriptionRequest {
            filter: *filter,
            options: SubscriptionOptions::default(),
        })
        .collect();
    let subscribe = Packet::Subscribe(Subscribe {
        packet_id: PacketId::new(1).unwrap(),
        properties: SubscribeProperties::default(),
        requests: SubscriptionRequests::Listed(&requests),
    });
    let unsubscribe = Packet::Unsubscribe(Unsubscribe {
        packet_id: PacketId::new(2).unwrap(),
        user: UserProperties::default(),
        filters: TopicFilters::Listed(&parsed),
    });
    let encoded = |packet: &Packet<'_>| match version {
        Version::V5 => v5(packet),
        _ => bytes(packet),
    };
    let connect = match version {
        Version::V5 => connect_v5("client", 0),
        _ => connect("client", None),
    };
    client.write_all(&connect).unwrap();
    settle(&mut workers);
    answer(&mut client);
    [&subscribe, &unsubscribe].map(|packet| {
        client.write_all(&encoded(packet)).unwrap();
        settle(&mut workers);
        let answer = answer(&mut client);
        let codes_from = answer.len().checked_sub(filters)?;
        Some(answer[codes_from..].to_vec())
    })
}

/// The arrived packets.
fn answer(client: &mut UnixStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    match client.read_to_end(&mut bytes) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
    }
    bytes
}

// [MQTT-3.8.4-6] [MQTT-3.10.4-6]
#[test]
fn filters_beyond_the_limit_of_a_packet_are_refused_one_by_one() {
    let granted = [0; 256];
    let [subscribed, unsubscribed] = codes_for(Version::V5, 256);
    assert_eq!(subscribed.unwrap(), granted);
    assert_eq!(unsubscribed.unwrap(), granted);
    let [subscribed, unsubscribed] = codes_for(Version::V5, 300);
    assert_eq!(subscribed.unwrap(), [&granted[..], &[0x97; 44]].concat());
    assert_eq!(unsubscribed.unwrap(), [&granted[..], &[0x83; 44]].concat());
}

// [MQTT3-3.8.4-5] [MQTT3-4.8.0-2]
#[test]
fn before_5_0_too_many_filters_fail_and_an_unsubscribe_that_cannot_be_refused_ends_the_connection()
{
    let [subscribed, unsubscribed] = codes_for(Version::V311, 300);
    let granted = [0; 256];
    assert_eq!(subscribed.unwrap(), [&granted[..], &[0x80; 44]].concat());
    assert_eq!(unsubscribed, None);
}

/// Payloads that contain their order.
fn numbered(numbers: std::ops::Range<u32>) -> Vec<u8> {
    numbers
        .flat_map(|number| publish(number.to_string().as_bytes()))
        .collect()
}

fn in_order(numbers: std::ops::Range<u32>) -> Vec<Vec<u8>> {
    numbers
        .map(|number| number.to_string().into_bytes())
        .collect()
}

#[test]
fn packets_of_one_read_are_handled_in_portions_and_in_order() {
    let mut workers = two_workers();
    let mut subscriber = subscriber(&mut workers, 0);
    let mut publisher = client(&mut workers, "publisher");
    workers[0]
        .traffic
        .engine
        .core
        .turn
        .limits_mut()
        .portion_units = 20;
    publisher.write_all(&numbered(0..100)).unwrap();
    let mut received = Vec::new();
    while received.len() < 100 {
        workers[0].run_turn();
        let brought = messages(&mut subscriber);
        assert!(
            (1..=10).contains(&brought.len()),
            "{} in a turn",
            brought.len()
        );
        received.extend(brought);
    }
    assert_eq!(received, in_order(0..100));
    assert!(workers[0].node.state.metrics.total(Counter::PortionsUsedUp) > 0);
}

#[test]
fn all_connections_together_have_a_share_of_a_turn_and_each_its_turn() {
    let mut workers = two_workers();
    let mut subscriber = subscriber(&mut workers, 0);
    let mut publishers = ["a", "b", "c", "d"].map(|name| client(&mut workers, name));
    workers[0]
        .traffic
        .engine
        .core
        .turn
        .limits_mut()
        .portion_units = 20;
    workers[0]
        .traffic
        .engine
        .core
        .turn
        .limits_mut()
        .reading_units = 30;
    for publisher in &mut publishers {
        publisher.write_all(&numbered(0..30)).unwrap();
    }
    let mut received = 0;
    while received < 120 {
        workers[0].run_turn();
        let brought = messages(&mut subscriber).len();
        // One portion is begun before the share is used up.
        assert!((1..=25).contains(&brought), "{brought} in a turn");
        received += brought;
    }
    assert_eq!(received, 120);
    assert!(workers[0].node.state.metrics.total(Counter::ReadersPutOff) > 0);
}

#[test]
fn mail_is_handled_in_portions_and_counts_as_waiting_until_then() {
    let mut workers = two_workers();
    let mut subscriber = subscriber(&mut workers, 1);
    let mut publisher = client(&mut workers, "publisher");
    workers[1]
        .traffic
        .engine
        .core
        .turn
        .limits_mut()
        .portion_units = 10;
    publisher.write_all(&numbered(0..50)).unwrap();
    workers[0].run_turn();
    let mut received = Vec::new();
    while received.len() < 50 {
        workers[1].run_turn();
        let brought = messages(&mut subscriber);
        assert!(
            (1..=5).contains(&brought.len()),
            "{} in a turn",
            brought.len()
        );
        received.extend(brought);
        assert_eq!(waiting(&workers[0], 1), 50 - received.len());
    }
    assert_eq!(received, in_order(0..50));
    assert!(workers[1].node.state.metrics.total(Counter::MailPutOff) > 0);
}

// [MQTT-4.6.0-6] [MQTT3-4.6.0-6]
#[test]
fn a_client_that_reconnects_does_not_overtake_its_deferred_mail() {
    let mut workers = two_workers();
    let mut subscriber = subscriber(&mut workers, 1);
    let mut publisher = client(&mut workers, "publisher");
    publisher.write_all(&numbered(0..50)).unwrap();
    drop(publisher);
    workers[0].run_turn();
    workers[1]
        .traffic
        .engine
        .core
        .turn
        .limits_mut()
        .portion_units = 10;
    workers[1].run_turn();
    let mut publisher = workers[1].accepted();
    publisher.write_all(&connect("publisher", None)).unwrap();
    publisher.write_all(&numbered(50..51)).unwrap();
    for _ in 0..5 {
        settle(&mut workers);
    }
    assert_eq!(messages(&mut subscriber), in_order(0..51));
}

/// Clients with a will, at the first worker.
fn clients_with_wills(workers: &mut [Worker; 2], count: u32) -> Vec<UnixStream> {
    let will = Will {
        topic: "t",
        payload: b"will",
        qos: QoS::AtMostOnce,
        retain: false,
        properties: WillProperties::default(),
    };
    let clients = (0..count).map(|number| {
        let mut client = workers[0].accepted();
        let connect = connect(&format!("c{number}"), Some(will));
        client.write_all(&connect).unwrap();
        client
    });
    let clients = clients.collect();
    settle(workers);
    clients
}

#[test]
fn timers_that_are_due_together_are_handled_in_portions() {
    const CROWD: u32 = 30;
    let mut workers = two_workers();
    let _crowd = clients_with_wills(&mut workers, CROWD);
    let worker = &mut workers[0];
    worker.traffic.engine.core.turn.limits_mut().portion_units = 3 * CLOSING_UNITS;
    let connected = |worker: &Worker| worker.node.state.metrics.total(Counter::ClientsConnected);
    assert_eq!(connected(worker), u64::from(CROWD));
    worker.traffic.engine.core.turn.now = worker
        .traffic
        .engine
        .core
        .turn
        .now
        .plus(Duration::from_secs(1000));
    let mut before = connected(worker);
    while before > 0 {
        assert_eq!(worker.wait(), Some(Duration::ZERO));
        let now = worker.traffic.engine.core.turn.now;
        worker.traffic.engine.core.turn.begin(now);
        worker.handle_timers();
        let left = connected(worker);
        assert!(before - left <= 3, "{before} {left}");
        before = left;
    }
    assert!(worker.node.state.metrics.total(Counter::TimersPutOff) >= 9);
}

#[test]
fn wills_of_a_stop_are_published_in_portions_and_the_stop_continues_after_the_last_one() {
    const CROWD: u32 = 30;
    let mut workers = two_workers();
    let mut subscriber = subscriber(&mut workers, 1);
    let _crowd = clients_with_wills(&mut workers, CROWD);
    workers[0]
        .traffic
        .engine
        .core
        .turn
        .limits_mut()
        .portion_units = 10;
    let (sender, settled) = sync_channel(2);
    let mailbox = workers[0].node.mailbox(WorkerId::new(0));
    mailbox.push(Mail::StopWills);
    mailbox.push(Mail::Settled(sender));
    let mut turns = 0;
    while settled.try_recv().is_err() {
        let before = waiting(&workers[0], 1);
        workers[0].run_turn();
        assert!(waiting(&workers[0], 1) - before <= 10);
        turns += 1;
        assert!(turns < 100);
    }
    assert_eq!(waiting(&workers[0], 1), CROWD as usize);
    assert!(turns > 3);
    workers[1].run_turn();
    assert_eq!(messages(&mut subscriber).len(), CROWD as usize);
}

#[test]
fn clients_of_a_listener_that_was_removed_leave_in_portions() {
    const CROWD: u32 = 30;
    let mut workers = two_workers();
    let _crowd = clients_with_wills(&mut workers, CROWD);
    let mut other = client(&mut workers, "other");
    workers[0]
        .traffic
        .engine
        .core
        .turn
        .limits_mut()
        .portion_units = 3 * CLOSING_UNITS;
    workers[0].begin_round(RoundTask::RemovedGates(vec![0]));
    let connected = |worker: &Worker| worker.node.state.metrics.total(Counter::ClientsConnected);
    let mut before = connected(&workers[0]);
    other.write_all(&bytes(&Packet::PingReq)).unwrap();
    while connected(&workers[0]) > 0 {
        workers[0].run_turn();
        let left = connected(&workers[0]);
        assert!(left < before && before - left <= 3, "{before} {left}");
        before = left;
    }
    let mut pong = [0; 2];
    other.read_exact(&mut pong).unwrap();
}

#[test]
fn connections_are_written_in_portions() {
    let mut workers = two_workers();
    let mut subscribers: Vec<_> = (0..9)
        .map(|number| {
            let mut client = client(&mut workers, &format!("s{number}"));
            client.write_all(&subscribe()).unwrap();
            settle(&mut workers);
            assert!(messages(&mut client).is_empty());
            client
        })
        .collect();
    let mut publisher = client(&mut workers, "publisher");
    workers[0].traffic.engine.core.turn.limits_mut().writes = 4;
    publisher.write_all(&publish(b"x")).unwrap();
    let mut received = 0;
    for expected in [4, 8, 9] {
        workers[0].run_turn();
        received += subscribers
            .iter_mut()
            .map(|client| messages(client).len())
            .sum::<usize>();
        assert_eq!(received, expected);
    }
}

/// Clients of the first worker that are subscribed.
fn subscribers<const COUNT: usize>(workers: &mut [Worker; 2]) -> [UnixStream; COUNT] {
    std::array::from_fn(|number| {
        let mut client = client(workers, &format!("s{number}"));
        client.write_all(&subscribe()).unwrap();
        settle(workers);
        assert!(messages(&mut client).is_empty());
        client
    })
}

#[test]
fn a_turn_writes_a_limited_number_of_bytes_and_small_outputs_do_not_wait() {
    const PAYLOAD_BYTES: usize = 10_000;
    let mut workers = two_workers();
    let mut subscribers = subscribers::<9>(&mut workers);
    let mut publisher = client(&mut workers, "publisher");
    let mut other = client(&mut workers, "other");
    let mut remote = workers[1].accepted();
    remote.write_all(&connect("remote", None)).unwrap();
    settle(&mut workers);
    workers[0].traffic.engine.core.turn.limits_mut().write_bytes = 3 * PAYLOAD_BYTES;
    let large = publish(&[7; PAYLOAD_BYTES]);
    publisher.write_all(&large).unwrap();
    let mut received = Vec::new();
    for turn in 0..4 {
        workers[0].run_turn();
        let brought = subscribers.iter_mut().map(|client| messages(client).len());
        received.push(brought.sum::<usize>());
        if turn > 0 {
            let mut pong = [0; 2];
            other
                .read_exact(&mut pong)
                .expect("in the turn of its PINGREQ");
        }
        other.write_all(&bytes(&Packet::PingReq)).unwrap();
        if turn == 0 {
            // More that waits until that is written: of this worker and of the other one.
            publisher.write_all(&large.repeat(3)).unwrap();
            remote.write_all(&large.repeat(3)).unwrap();
            workers[1].run_turn();
        }
    }
    assert_eq!(received[0], 3);
    assert!(
        received.iter().all(|count| (1..=5).contains(count)),
        "{received:?}"
    );
    // No event has to wake the worker for deferred work.
    while workers[0].wait() == Some(Duration::ZERO) {
        workers[0].run_turn();
        let brought = subscribers.iter_mut().map(|client| messages(client).len());
        received.push(brought.sum());
    }
    assert_eq!(received.iter().sum::<usize>(), 7 * subscribers.len());
    let traffic = &workers[0].traffic;
    assert!(!traffic.edge.has_dirty(&traffic.engine));
}

#[test]
fn received_large_packets_count_by_their_bytes() {
    let mut workers = two_workers();
    let mut publisher = client(&mut workers, "publisher");
    let large = publish(&vec![7; 1_000_000]);
    publisher.write_all(&large[..READ_BYTES]).unwrap();
    let before = workers[0].traffic.engine.core.turn.work;
    workers[0].run_turn();
    let work = workers[0].traffic.engine.core.turn.work - before;
    assert!((250..300).contains(&work), "{work}");
}

#[test]
fn sent_large_packets_count_by_their_bytes() {
    let mut workers = two_workers();
    let _subscriber = subscriber(&mut workers, 0);
    let mut publisher = client(&mut workers, "publisher");
    let [small, large] = [1, 32_000].map(|len| {
        let before = workers[0].traffic.engine.core.turn.work;
        publisher.write_all(&publish(&vec![7; len])).unwrap();
        workers[0].run_turn();
        workers[0].traffic.engine.core.turn.work - before
    });
    let coming_in = 32_000 / 256;
    let going_out = 32_000 / OUT_UNIT_BYTES as u64;
    let work = large - small - coming_in;
    assert!((going_out - 50..going_out + 50).contains(&work), "{work}");
}

#[test]
fn few_connections_are_accepted_while_turns_take_long() {
    let mut workers = two_workers();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let worker = &mut workers[0];
    worker.listen(vec![Change::Open(1, Listener::new(listener.into(), 0))]);
    let node = worker.node.clone();
    let limits = worker.traffic.edge.settings.protection.overload;
    let slow = Measured {
        turn: limits.turn,
        handshakes: 0,
    };
    for _ in 0..limits.turns {
        worker.traffic.edge.overload.observe(
            &slow,
            &limits,
            worker.traffic.engine.core.turn.now,
            |_, _| {},
        );
    }
    node.set_defers_connections(worker.traffic.engine.core.id, true);
    assert!(worker.traffic.edge.overload.defers_connections());
    let _newcomers: Vec<_> = (0..40)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();
    let mut opened = Vec::new();
    for turn in 0..6 {
        let events = worker.ready_sockets();
        worker.handle_inputs(&events);
        // Every second turn is one after the pause.
        if turn % 2 == 1 {
            let now = worker.traffic.engine.core.turn.now;
            worker.accepting.accept_under_overload_now(now);
        }
        opened.push(node.state.metrics.total(Counter::ConnectionsOpened));
    }
    assert_eq!(opened, [16, 16, 32, 32, 40, 40]);
}

#[test]
#[should_panic(expected = "epoll failed")]
fn a_worker_whose_poll_fails_does_not_end_alone() {
    assert!(super::has_polled(Ok(())));
    let interrupted = std::io::Error::from(ErrorKind::Interrupted);
    assert!(!super::has_polled(Err(interrupted)));
    let broken = std::io::Error::from(ErrorKind::InvalidInput);
    super::has_polled(Err(broken));
}
