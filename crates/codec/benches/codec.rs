//! Time to encode and decode the packets that a busy broker reads and writes most, and CONNECT.

use std::hint::black_box;

use criterion::{Bencher, Criterion, Throughput, criterion_group, criterion_main};
use thrum_codec::packet::{Ack, Connect, Publish};
use thrum_codec::properties::{AckProperties, ConnectProperties, PublishProperties};
use thrum_codec::{Packet, PacketId, QoS, ReasonCode, Version, decode, encode, frame};

const TOPIC: &str = "plant/7/line/3/sensor/temperature";
const VERSIONS: [Version; 2] = [Version::V311, Version::V5];
const PAYLOADS: [(&str, &[u8]); 2] = [("16 B", &[7; 16]), ("1 KiB", &[7; 1024])];

fn publish(version: Version, qos: QoS, payload: &[u8]) -> Packet<'_> {
    // Most 5.0 publishers that send properties send one.
    let message_expiry = (version == Version::V5).then_some(60);
    Packet::Publish(Publish {
        dup: false,
        qos,
        retain: false,
        topic: TOPIC,
        packet_id: (qos != QoS::AtMostOnce).then(packet_id),
        properties: PublishProperties {
            message_expiry,
            ..PublishProperties::default()
        },
        payload,
    })
}

fn puback() -> Packet<'static> {
    Packet::PubAck(Ack {
        packet_id: packet_id(),
        reason: ReasonCode::Success,
        properties: AckProperties::default(),
    })
}

fn connect(version: Version) -> Packet<'static> {
    let session_expiry = (version == Version::V5).then_some(3_600);
    Packet::Connect(Connect {
        version,
        is_bridge: false,
        clean_start: true,
        keep_alive: 60,
        client_id: "plant-7-line-3-sensor-42",
        will: None,
        username: Some("sensor"),
        password: Some(b"secret"),
        properties: ConnectProperties {
            session_expiry,
            ..ConnectProperties::default()
        },
    })
}

fn packet_id() -> PacketId {
    PacketId::new(7).expect("not 0")
}

/// PUBLISH with `QoS` 0 and 1, small and large, and PUBACK.
fn hot_packets(version: Version) -> Vec<(String, Packet<'static>)> {
    let mut packets = Vec::new();
    for qos in [QoS::AtMostOnce, QoS::AtLeastOnce] {
        for (size, payload) in PAYLOADS {
            let name = format!("publish QoS {} {size} {version:?}", qos.as_u8());
            packets.push((name, publish(version, qos, payload)));
        }
    }
    packets.push((format!("puback {version:?}"), puback()));
    packets
}

fn bytes_of(packet: &Packet<'_>, version: Version) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(packet, version, &mut bytes).expect("a valid packet");
    bytes
}

fn decode_one(bencher: &mut Bencher<'_>, bytes: &[u8], version: Version) {
    bencher.iter(|| {
        let frame = frame::split(black_box(bytes), 1 << 20)
            .expect("valid")
            .expect("whole");
        black_box(&decode(frame, version)).is_ok()
    });
}

fn encode_one(bencher: &mut Bencher<'_>, packet: &Packet<'_>, version: Version) {
    let mut out = Vec::with_capacity(4096);
    bencher.iter(|| {
        out.clear();
        encode(black_box(packet), version, &mut out)
    });
}

fn bench_decode(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decode");
    group.throughput(Throughput::Elements(1));
    for version in VERSIONS {
        let mut packets = hot_packets(version);
        packets.push((format!("connect {version:?}"), connect(version)));
        for (name, packet) in packets {
            let bytes = bytes_of(&packet, version);
            group.bench_function(name, |bencher| decode_one(bencher, &bytes, version));
        }
    }
    group.finish();
}

fn bench_encode(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("encode");
    group.throughput(Throughput::Elements(1));
    for version in VERSIONS {
        for (name, packet) in hot_packets(version) {
            group.bench_function(name, |bencher| encode_one(bencher, &packet, version));
        }
    }
    group.finish();
}

criterion_group!(benches, bench_decode, bench_encode);
criterion_main!(benches);
