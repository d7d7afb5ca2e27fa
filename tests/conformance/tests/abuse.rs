//! Input that is too much, too slow or pointless: it affects only its sender, and a probe beside it
//! keeps succeeding.

use std::thread;
use std::time::Duration;

use thrum_conformance::bytes::{frame, join, text, two, variable};
use thrum_conformance::noise::Noise;
use thrum_conformance::packets::{
    Connect, DISCONNECT, PINGREQ, Publish, Version, Will, ack, first, subscribe, unique,
};
use thrum_conformance::wire::DEADLINE;
use thrum_conformance::{Broker, Event, Probe, Wire, clock, corpus};

const MEBIBYTE: u64 = 1024 * 1024;
/// The broker waits ten seconds for a CONNECT by default; its timers are coarse.
const CONNECT_TIMEOUT_MAX: Duration = Duration::from_secs(13);

fn probe() -> (&'static Broker, Probe) {
    let broker = Broker::shared();
    (broker, Probe::new(broker.address()))
}

#[test]
fn late_connect_closes_the_connection() {
    let (broker, mut probe) = probe();
    let whole = Connect::new(Version::V311).bytes();
    let mut half = Wire::open(broker.address(), Version::V311);
    half.send(&whole[..whole.len() / 2]);
    let mut silent = Wire::open(broker.address(), Version::V311);
    let mut dripping = Wire::open(broker.address(), Version::V5);
    let start = clock::now();
    // A CONNECT that announces much and brings a byte now and then must not renew its time.
    dripping.send(&[0x10, 0xFF, 0x7F, 0, 4, b'M', b'Q', b'T', b'T', 5]);
    let dripped = loop {
        dripping.send(&[0]);
        probe.round_trip();
        match dripping.next(Duration::from_millis(300)) {
            Event::Closed => break start.elapsed(),
            Event::Packet(packet) => assert_eq!(packet.kind(), 2, "{packet:?}"),
            Event::Silence => assert!(start.elapsed() < CONNECT_TIMEOUT_MAX, "still open"),
        }
    };
    assert!(dripped <= CONNECT_TIMEOUT_MAX);
    let left = CONNECT_TIMEOUT_MAX
        .saturating_sub(start.elapsed())
        .max(Duration::from_millis(500));
    assert_eq!(half.closed(left), []);
    assert_eq!(silent.closed(left), []);
    broker.assert_alive();
}

#[test]
fn five_megabytes_of_garbage_end_one_connection() {
    let (broker, mut probe) = probe();
    for seed in 1..=4 {
        let mut garbage = Noise::new(seed).bytes(5_000_000);
        // Half of the inputs start as a CONNECT, so that the broker reads a length.
        garbage[0] = if seed % 2 == 0 { 0x10 } else { 0xFF };
        let mut wire = Wire::open(broker.address(), Version::V311);
        wire.try_send(&garbage, DEADLINE);
        wire.closed(DEADLINE);
        probe.round_trip();
        let mut wire = Wire::fresh(broker.address(), Version::V5);
        wire.try_send(&garbage, DEADLINE);
        wire.closed(DEADLINE);
        probe.round_trip();
    }
    broker.assert_alive();
}

#[test]
fn announced_length_allocates_nothing() {
    let broker = Broker::start();
    let mut probe = Probe::new(broker.address());
    let before = broker.resident_bytes();
    let mut open = Vec::new();
    for _ in 0..100 {
        // The largest length that may be written, and one that the broker may accept.
        for length in [&[0xFF, 0xFF, 0xFF, 0x7F][..], &[0xFF, 0xFF, 0x3E]] {
            let mut first_packet = Wire::open(broker.address(), Version::V311);
            first_packet.send(&join(&[&[first::CONNECT], length, b"\0\x04MQTT\x04"]));
            let mut later = Wire::fresh(broker.address(), Version::V311);
            later.send(&join(&[&[first::PUBLISH], length, &text("t")]));
            open.extend([first_packet, later]);
        }
    }
    probe.round_trip();
    let grown = broker.resident_bytes().saturating_sub(before);
    assert!(
        grown < 32 * MEBIBYTE,
        "400 announcements cost {grown} bytes"
    );
    drop(open);
    probe.round_trip();
    broker.assert_alive();
}

#[test]
fn half_packets_are_forgotten_with_their_connection() {
    let (broker, mut probe) = probe();
    let packets = [
        Connect::new(Version::V5)
            .will(Will::new("spoiled/w"))
            .bytes(),
        Publish::new(Version::V5, "spoiled/p", 2, &[b'x'; 300]).bytes(),
        subscribe(Version::V5, 1, &[("spoiled/a", 1), ("spoiled/b", 2)]),
        ack(first::PUBREL, 1),
    ];
    for packet in &packets {
        let connected = packet[0] != first::CONNECT;
        for length in 1..packet.len() {
            let mut wire = if connected {
                Wire::fresh(broker.address(), Version::V5)
            } else {
                Wire::open(broker.address(), Version::V5)
            };
            wire.send(&packet[..length]);
            wire.abandon();
        }
        probe.round_trip();
    }
    broker.assert_alive();
}

#[test]
fn thousand_connections_that_say_nothing_close_at_once() {
    let (broker, mut probe) = probe();
    let open = || Wire::open(broker.address(), Version::V311);
    let silent: Vec<_> = (0..1_000).map(|_| open()).collect();
    probe.round_trip();
    silent.into_iter().for_each(Wire::abandon);
    probe.round_trip();
    let mut after = Wire::fresh(broker.address(), Version::V5);
    after.expect_nothing_before_pingresp();
    broker.assert_alive();
}

#[test]
fn storms_of_connections_leave_nothing_behind() {
    let broker = Broker::start();
    let mut probe = Probe::new(broker.address());
    let address = broker.address();
    let storm = move |rounds: usize| {
        for round in 0..rounds {
            let version = Version::ALL[round % 3];
            let mut wire = Wire::fresh(address, version);
            match round % 4 {
                0 => wire.send(&DISCONNECT),
                1 => wire.send(&[0xFF, 0xFF]),
                2 => wire.send(&subscribe(version, 1, &[("storm/#", 1)])),
                _ => {}
            }
            wire.abandon();
        }
    };
    storm(300);
    probe.round_trip();
    let before = broker.resident_bytes();
    let storms: Vec<_> = (0..4).map(|_| thread::spawn(move || storm(500))).collect();
    while !storms.iter().all(thread::JoinHandle::is_finished) {
        probe.round_trip();
    }
    for storm in storms {
        storm.join().unwrap();
    }
    probe.round_trip();
    let grown = broker.resident_bytes().saturating_sub(before);
    assert!(
        grown < 16 * MEBIBYTE,
        "2,000 connections that are gone cost {grown} bytes"
    );
    broker.assert_alive();
}

#[test]
fn clients_that_fight_for_one_identifier_disturb_no_other() {
    let (broker, mut probe) = probe();
    let id = unique("f");
    let mut fighters = Vec::new();
    for round in 0..300 {
        let connect = Connect::new(Version::STANDARD[round % 2]).client_id(&id);
        fighters.push(Wire::connect(broker.address(), &connect).0);
        if round % 50 == 0 {
            probe.round_trip();
        }
    }
    let mut last = fighters.pop().expect("there were fighters");
    last.expect_nothing_before_pingresp();
    for mut loser in fighters {
        loser.expect_end(0x8E);
    }
    probe.round_trip();
    broker.assert_alive();
}

#[test]
fn topics_of_65535_levels_are_refused_or_carried() {
    let (broker, mut probe) = probe();
    let deep = "/".repeat(65_535);
    let wild = format!("{}+", "+/".repeat(32_767));
    for version in Version::STANDARD {
        for topic in [
            &deep,
            &"a".repeat(65_535),
            &format!("{}#", "a/".repeat(32_766)),
        ] {
            let mut wire = Wire::fresh(broker.address(), version);
            wire.send(&subscribe(version, 1, &[(topic, 0)]));
            wire.send(&PINGREQ);
            loop {
                match wire.next(DEADLINE) {
                    Event::Packet(packet) if packet.kind() == 13 => break,
                    Event::Packet(packet) => assert!(matches!(packet.kind(), 9 | 14), "{packet:?}"),
                    Event::Closed => break,
                    Event::Silence => panic!("no answer to a deep filter"),
                }
            }
            probe.round_trip();
        }
        let mut publisher = Wire::fresh(broker.address(), version);
        publisher.send(&Publish::new(version, &deep, 1, b"x").bytes());
        publisher.send(&subscribe(version, 1, &[(&wild, 0)]));
        publisher.send(&PINGREQ);
        publisher.next(DEADLINE);
        probe.round_trip();
    }
    broker.assert_alive();
}

/// Floods a topic that a client subscribed to but never reads; returns the bytes that were taken.
fn flood(broker: &Broker, probe: &mut Probe, qos: u8) -> u64 {
    let topic = unique("flood/");
    let mut deaf = Wire::fresh(broker.address(), Version::V311);
    deaf.subscribe(&topic, qos);
    let mut publisher = Wire::fresh(broker.address(), Version::V311);
    let mut sent = 0;
    let start = clock::now();
    let mut packet_id = 0_u16;
    while sent < 256 * MEBIBYTE && start.elapsed() < Duration::from_secs(8) {
        let mut batch = Vec::new();
        for _ in 0..64 {
            packet_id = packet_id.checked_add(1).unwrap_or(1);
            let message = Publish::new(Version::V311, &topic, qos, &[b'x'; 4_000]);
            batch.extend(message.packet_id(packet_id).bytes());
        }
        // A broker may stop reading from the flooding client, but not from the probe.
        if !publisher.try_send(&batch, Duration::from_millis(500)) {
            break;
        }
        sent += u64::try_from(batch.len()).expect("lengths fit");
        probe.round_trip();
    }
    probe.round_trip();
    sent
}

#[test]
fn subscriber_that_never_reads_costs_a_bounded_amount() {
    for qos in [0, 1, 2] {
        let broker = Broker::start();
        let mut probe = Probe::new(broker.address());
        let before = broker.resident_bytes();
        let sent = flood(&broker, &mut probe, qos);
        assert!(sent > 0, "QoS {qos}: nothing was taken");
        let grown = broker.resident_bytes().saturating_sub(before);
        assert!(
            grown < 192 * MEBIBYTE,
            "QoS {qos}: {sent} bytes sent cost {grown}"
        );
        for _ in 0..20 {
            probe.round_trip();
        }
        broker.assert_alive();
    }
}

/// Sends the request again and again without reading an answer; returns what the broker has grown
/// by.
fn unread_answers(request: &[u8], batches: u32, prepare: impl FnOnce(&Broker)) -> u64 {
    let broker = Broker::start();
    prepare(&broker);
    let mut probe = Probe::new(broker.address());
    let before = broker.resident_bytes();
    let mut wire = Wire::fresh(broker.address(), Version::V5);
    let batch = request.repeat(32_768 / request.len());
    let start = clock::now();
    for _ in 0..batches {
        // A broker that stops reading ends this much earlier.
        if start.elapsed() > Duration::from_secs(10)
            || !wire.try_send(&batch, Duration::from_millis(500))
        {
            break;
        }
        probe.round_trip();
    }
    let grown = broker.resident_bytes().saturating_sub(before);
    probe.round_trip();
    broker.assert_alive();
    grown
}

#[test]
fn client_that_never_reads_its_answers_costs_a_bounded_amount() {
    let topic = unique("deaf/");
    let retained = Publish::new(Version::V5, &topic, 1, &vec![b'x'; 500_000]).retain();
    let requests = [
        ("PINGREQ", PINGREQ.to_vec()),
        ("PUBREL", ack(first::PUBREL, 9)),
        ("PUBLISH", Publish::new(Version::V5, "deaf", 1, b"").bytes()),
        // Each asks for the retained message once more.
        ("SUBSCRIBE", subscribe(Version::V5, 7, &[(&topic, 1)])),
        ("SUBSCRIBE QoS 0", subscribe(Version::V5, 7, &[(&topic, 0)])),
    ];
    for (name, request) in requests {
        let keep = |broker: &Broker| {
            Wire::fresh(broker.address(), Version::V5).deliver(&retained);
        };
        // The queue of a client may hold 64 MiB by default; answers have no such place.
        let replays = name.starts_with("SUBSCRIBE");
        let (batches, most) = if replays { (100, 192) } else { (2_000, 8) };
        let grown = unread_answers(&request, batches, keep);
        assert!(
            grown < most * MEBIBYTE,
            "unread answers to {name} cost {grown} bytes"
        );
    }
}

#[test]
fn publisher_that_never_sends_pubrel_is_bounded() {
    let broker = Broker::start();
    let mut probe = Probe::new(broker.address());
    let before = broker.resident_bytes();
    let mut wire = Wire::fresh(broker.address(), Version::V311);
    // 65,535 flows that never end: each identifier once, with a payload that should not be kept.
    for packet_id in 1..=u16::MAX {
        let message = Publish::new(Version::V311, "spoiled/open", 2, &[b'x'; 500]);
        if !wire.try_send(
            &message.packet_id(packet_id).bytes(),
            Duration::from_millis(500),
        ) {
            break;
        }
        if packet_id % 500 == 0 {
            while matches!(wire.next(Duration::from_millis(1)), Event::Packet(_)) {}
            probe.round_trip();
        }
    }
    let grown = broker.resident_bytes().saturating_sub(before);
    assert!(grown < 24 * MEBIBYTE, "open flows cost {grown} bytes");
    probe.round_trip();
    broker.assert_alive();
}

#[test]
fn retained_messages_and_wills_of_a_storm_disturb_no_other() {
    let (broker, mut probe) = probe();
    for round in 0..500 {
        let topic = format!("storm/{round}");
        let will = Will {
            retain: true,
            ..Will::new(&topic)
        };
        let connect = Connect::new(Version::STANDARD[round % 2]).will(will);
        Wire::connect(broker.address(), &connect).0.abandon();
        if round % 50 == 0 {
            probe.round_trip();
        }
    }
    probe.round_trip();
    broker.assert_alive();
}

#[test]
fn hundreds_of_spoiled_packets_never_disturb_the_probe_seed_7() {
    let (broker, mut probe) = probe();
    let mut noise = Noise::new(7);
    let cases = corpus::valid();
    for round in 0..1_200 {
        let case = &cases[round % cases.len()];
        let bytes = noise.spoil(&case.bytes);
        let mut wire = if case.connected {
            Wire::fresh(broker.address(), case.version)
        } else {
            Wire::open(broker.address(), case.version)
        };
        wire.send(&join(&[&bytes, &PINGREQ]));
        // The broker must read the input and answer in whole packets.
        while matches!(wire.next(Duration::from_millis(5)), Event::Packet(_)) {}
        broker.assert_alive();
        probe.round_trip();
    }
}

#[test]
fn packets_in_random_order_never_disturb_the_probe_seed_11() {
    let (broker, mut probe) = probe();
    let mut noise = Noise::new(11);
    for _ in 0..150 {
        let version = Version::STANDARD[noise.below(2)];
        let mut wire = Wire::fresh(broker.address(), version);
        let mut session = Vec::new();
        for _ in 0..30 {
            let id = u16::from(noise.byte() % 5);
            let qos = noise.byte() % 3;
            let topic = format!("spoiled/{}", noise.below(3));
            session.extend(match noise.below(9) {
                0 => Publish::new(version, &topic, qos, b"x")
                    .packet_id(id.max(1))
                    .bytes(),
                1 => ack(first::PUBACK, id),
                2 => ack(first::PUBREC, id),
                3 => ack(first::PUBREL, id),
                4 => ack(first::PUBCOMP, id),
                5 => subscribe(version, id.max(1), &[(&topic, qos)]),
                6 => PINGREQ.to_vec(),
                7 => Publish::new(version, &topic, qos, b"")
                    .packet_id(id.max(1))
                    .retain()
                    .bytes(),
                _ => Publish::new(version, &topic, 2, b"x")
                    .packet_id(id.max(1))
                    .dup()
                    .bytes(),
            });
        }
        wire.send(&session);
        while matches!(wire.next(Duration::from_millis(5)), Event::Packet(_)) {}
        broker.assert_alive();
        probe.round_trip();
    }
}

#[test]
fn properties_by_the_thousand_are_read_or_refused_quickly() {
    let (broker, mut probe) = probe();
    let user = thrum_conformance::bytes::user_property("k", "v").repeat(20_000);
    let topic = unique("t/");
    let mut wire = Wire::fresh(broker.address(), Version::V5);
    wire.subscribe(&topic, 0);
    let body = join(&[&text(&topic), &variable(140_000), &user]);
    assert_eq!(user.len(), 140_000);
    wire.send(&frame(first::PUBLISH, &body));
    let publish = wire.publish();
    assert_eq!(publish.properties.user().len(), 20_000);
    probe.round_trip();
    let mut wire = Wire::fresh(broker.address(), Version::V5);
    let body = join(&[&two(7), &variable(140_000), &user, &text(&topic), &[0]]);
    wire.send(&frame(first::SUBSCRIBE, &body));
    wire.expect_ack(0x90, 7, &[0]);
    probe.round_trip();
    broker.assert_alive();
}
