//! Large payloads, which subscribers share: every byte arrives, whoever else gets them and however
//! slowly they read.

use std::net::SocketAddr;

use thrum_codec::packet::{Ack, Packet, Publish};
use thrum_codec::properties::{AckProperties, PublishProperties, UserProperties};
use thrum_codec::{PacketId, QoS, ReasonCode, Version};

use crate::peer::{Peer, connect_packet, start};

const QOS: [QoS; 3] = [QoS::AtMostOnce, QoS::AtLeastOnce, QoS::ExactlyOnce];
const VERSIONS: [Version; 2] = [Version::V311, Version::V5];
const KIB: usize = 1024;

/// Bytes that differ from message to message and from place to place.
fn payload(number: usize, len: usize) -> Vec<u8> {
    let byte = |at: usize| (at + 31 * number + at / 251).to_le_bytes()[0];
    (0..len).map(byte).collect()
}

fn properties() -> PublishProperties<'static> {
    PublishProperties {
        payload_format_indicator: Some(false),
        content_type: Some("application/octet-stream"),
        response_topic: Some("answers/7"),
        correlation_data: Some(b"\x00\x01\xff"),
        user: UserProperties::Listed(&[("b", "2"), ("a", "1"), ("b", "2")]),
        ..PublishProperties::default()
    }
}

fn connect(address: SocketAddr, version: Version, client_id: &str) -> Peer {
    let mut peer = Peer::open(address, version);
    let answer = peer.handshake(&connect_packet(version, client_id));
    assert_eq!(answer, (ReasonCode::Success, false));
    peer
}

/// Publishes with QoS 2, from the first packet to the last.
fn publish(peer: &mut Peer, topic: &str, retain: bool, payload: &[u8]) {
    let packet_id = PacketId::new(9).expect("not zero");
    peer.send(&Packet::Publish(Publish {
        dup: false,
        qos: QoS::ExactlyOnce,
        retain,
        topic,
        packet_id: Some(packet_id),
        properties: properties(),
        payload,
    }));
    peer.receive(|packet| assert!(matches!(packet, Packet::PubRec(_)), "{packet:?}"));
    peer.send(&Packet::PubRel(Ack {
        packet_id,
        reason: ReasonCode::Success,
        properties: AckProperties::default(),
    }));
    peer.receive(|packet| assert!(matches!(packet, Packet::PubComp(_)), "{packet:?}"));
}

/// The payloads that a subscriber is to receive.
#[derive(Clone, Copy)]
struct Expected<'a> {
    topic: &'a str,
    payload: &'a [u8],
    version: Version,
    qos: QoS,
    retain: bool,
    dup: bool,
}

impl Expected<'_> {
    fn arrives_at(&self, peer: &mut Peer) {
        peer.receive(|packet| self.check(&packet));
    }

    fn check(&self, packet: &Packet<'_>) {
        let Packet::Publish(publish) = packet else {
            panic!("expected PUBLISH, got {packet:?}");
        };
        assert!(publish.payload == self.payload, "the payload is damaged");
        assert_eq!(
            (publish.topic, publish.qos, publish.retain, publish.dup),
            (self.topic, self.qos, self.retain, self.dup)
        );
        let properties = match self.version {
            Version::V31 | Version::V311 => PublishProperties::default(),
            Version::V5 => properties(),
        };
        assert_eq!(publish.properties, properties);
    }
}

fn fifty_subscribers_with_slow_ones_among_them(workers: u16) {
    let (broker, address) = start(workers, |_| {});
    let mut subscribers = Vec::new();
    for number in 0..50 {
        let (version, qos) = (VERSIONS[number % 2], QOS[number % 3]);
        let is_slow = number % 17 == 4;
        let mut peer = if is_slow {
            Peer::open_narrow(address, version)
        } else {
            Peer::open(address, version)
        };
        peer.handshake(&connect_packet(version, &format!("s{number}")));
        peer.subscribe("large/#", qos);
        subscribers.push((peer, version, qos, is_slow));
    }
    // Far more than the sockets on the way to a client that does not read have room for.
    let lens = [64 * KIB, 64 * KIB, 2047, 64 * KIB, 2048, 64 * KIB, 20_000];
    let payloads: Vec<_> = (0..120)
        .map(|number| payload(number, lens[number % lens.len()]))
        .collect();
    let mut publisher = connect(address, Version::V5, "publisher");
    let expected = |number: usize, version, qos| Expected {
        topic: "large/one",
        payload: &payloads[number],
        version,
        qos,
        retain: false,
        dup: false,
    };
    for (number, payload) in payloads.iter().enumerate() {
        publish(&mut publisher, "large/one", false, payload);
        for (peer, version, qos, is_slow) in &mut subscribers {
            if !*is_slow {
                expected(number, *version, *qos).arrives_at(peer);
            }
        }
    }
    // What is promised to those that did not read yet is not lost.
    let mut slow_ones = 0;
    for (peer, version, qos, is_slow) in &mut subscribers {
        if *is_slow && *qos != QoS::AtMostOnce {
            slow_ones += 1;
            for number in 0..payloads.len() {
                expected(number, *version, *qos).arrives_at(peer);
            }
        }
    }
    assert_eq!(slow_ones, 2);
    broker.stop();
}

#[test]
fn fifty_subscribers_with_slow_ones_among_them_get_every_byte_from_one_worker() {
    fifty_subscribers_with_slow_ones_among_them(1);
}

#[test]
fn fifty_subscribers_with_slow_ones_among_them_get_every_byte_from_three_workers() {
    fifty_subscribers_with_slow_ones_among_them(3);
}

// [MQTT-3.3.1-8] [MQTT3-3.3.1-8]
#[test]
fn large_retained_messages_are_replayed_byte_for_byte() {
    let (broker, address) = start(2, |_| {});
    let mut publisher = connect(address, Version::V5, "publisher");
    // Together more than one connection's output takes at a time.
    let payloads: Vec<_> = (0..40).map(|number| payload(number, 30_000)).collect();
    for (number, payload) in payloads.iter().enumerate() {
        publish(&mut publisher, &format!("kept/{number}"), true, payload);
    }
    for (version, qos) in VERSIONS.into_iter().flat_map(|v| QOS.map(|qos| (v, qos))) {
        let mut peer = connect(address, version, "late");
        peer.subscribe("kept/#", qos);
        let mut seen = vec![false; payloads.len()];
        for _ in 0..payloads.len() {
            peer.receive(|packet| {
                let topic = topic_of(&packet);
                let (_, number) = topic.split_once('/').expect("a topic of the test");
                let number: usize = number.parse().expect("a number");
                let expected = Expected {
                    topic,
                    payload: &payloads[number],
                    version,
                    qos,
                    retain: true,
                    dup: false,
                };
                expected.check(&packet);
                seen[number] = true;
            });
        }
        assert!(seen.iter().all(|seen| *seen));
        peer.disconnect();
    }
    broker.stop();
}

/// Reads `payloads` on topic `queued`, the first `sent_before` of them sent again, and completes
/// each exchange.
fn take_queued(peer: &mut Peer, payloads: &[Vec<u8>], sent_before: usize, of: (Version, QoS)) {
    let (version, qos) = of;
    let (mut arrived, mut completed) = (0, 0);
    while completed < payloads.len() {
        let answer = peer.receive(|packet| {
            if let Packet::PubRel(ack) = packet {
                return (ack.packet_id, true);
            }
            let expected = Expected {
                topic: "queued",
                payload: &payloads[arrived],
                version,
                qos,
                retain: false,
                dup: arrived < sent_before,
            };
            expected.check(&packet);
            let Packet::Publish(Publish { packet_id, .. }) = packet else {
                panic!("checked above");
            };
            (packet_id.expect("QoS 1 and 2 have one"), false)
        });
        let (packet_id, is_released) = answer;
        let ack = Ack {
            packet_id,
            reason: ReasonCode::Success,
            properties: AckProperties::default(),
        };
        arrived += usize::from(!is_released);
        completed += usize::from(is_released || qos == QoS::AtLeastOnce);
        peer.send(&match (qos, is_released) {
            (_, true) => Packet::PubComp(ack),
            (QoS::ExactlyOnce, false) => Packet::PubRec(ack),
            (_, false) => Packet::PubAck(ack),
        });
    }
}

// [MQTT-4.4.0-1] [MQTT3-4.4.0-1] [MQTT-4.5.0-1] [MQTT3-4.5.0-1]
#[test]
fn large_messages_of_a_session_are_sent_again_and_from_its_queue() {
    const SENT_BEFORE: usize = 5;
    let payloads: Vec<_> = (0..20).map(|number| payload(number, 64 * KIB)).collect();
    for (version, qos) in VERSIONS
        .into_iter()
        .flat_map(|version| [(version, QOS[1]), (version, QOS[2])])
    {
        let (broker, address) = start(2, |_| {});
        let mut publisher = connect(address, Version::V5, "publisher");
        let resume = || {
            let mut peer = Peer::open(address, version);
            let mut connect = connect_packet(version, "away");
            connect.clean_start = false;
            connect.properties.session_expiry = (version == Version::V5).then_some(300);
            let (reason, present) = peer.handshake(&connect);
            assert_eq!(reason, ReasonCode::Success);
            (peer, present)
        };
        let (mut peer, _) = resume();
        peer.subscribe("queued", qos);
        // Some arrive and remain unacknowledged, the others are queued while the client is
        // disconnected.
        for payload in &payloads[..SENT_BEFORE] {
            publish(&mut publisher, "queued", false, payload);
            let expected = Expected {
                topic: "queued",
                payload,
                version,
                qos,
                retain: false,
                dup: false,
            };
            expected.arrives_at(&mut peer);
        }
        peer.leave();
        for payload in &payloads[SENT_BEFORE..] {
            publish(&mut publisher, "queued", false, payload);
        }
        let (mut peer, present) = resume();
        assert!(present);
        take_queued(&mut peer, &payloads, SENT_BEFORE, (version, qos));
        broker.stop();
    }
}

fn topic_of<'a>(packet: &Packet<'a>) -> &'a str {
    match packet {
        Packet::Publish(publish) => publish.topic,
        other => panic!("expected PUBLISH, got {other:?}"),
    }
}
