//! Cost of the packets that a busy broker reads and writes most.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use thrum_codec::packet::{Ack, Publish};
use thrum_codec::properties::{AckProperties, PublishProperties};
use thrum_codec::{
    Packet, PacketId, QoS, ReasonCode, Version, decode, encode, encode_publish, frame,
};

const TOPIC: &str = "plant/7/line/3/sensor/temperature";

fn publish(version: Version) -> Publish<'static> {
    let properties = match version {
        Version::V31 | Version::V311 => PublishProperties::default(),
        Version::V5 => PublishProperties {
            message_expiry: Some(60),
            ..PublishProperties::default()
        },
    };
    Publish {
        dup: false,
        qos: QoS::AtLeastOnce,
        retain: false,
        topic: TOPIC,
        packet_id: PacketId::new(7),
        properties,
        payload: &[0; 64],
    }
}

fn puback() -> Packet<'static> {
    let packet_id = PacketId::new(7).expect("not 0");
    let properties = AckProperties::default();
    Packet::PubAck(Ack {
        packet_id,
        reason: ReasonCode::Success,
        properties,
    })
}

fn bytes_of(packet: &Packet<'_>, version: Version) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(packet, version, &mut bytes).expect("a valid packet");
    bytes
}

fn decode_one(bytes: &[u8], version: Version) -> Packet<'_> {
    let frame = frame::split(bytes, 1 << 20).expect("valid").expect("whole");
    decode(frame, version).expect("valid")
}

fn codec(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("codec");
    group.throughput(Throughput::Elements(1));
    for version in [Version::V311, Version::V5] {
        let samples = [
            ("publish", Packet::Publish(publish(version))),
            ("puback", puback()),
        ];
        for (name, packet) in samples {
            let bytes = bytes_of(&packet, version);
            group.bench_function(format!("decode {name} {version:?}"), |bencher| {
                bencher.iter(|| decode_one(black_box(&bytes), version));
            });
        }
        let packet = publish(version);
        let mut out = Vec::with_capacity(4096);
        group.bench_function(format!("encode publish {version:?}"), |bencher| {
            bencher.iter(|| {
                out.clear();
                encode_publish(black_box(&packet), version, &mut out).expect("valid")
            });
        });
    }
    group.finish();
}

criterion_group!(benches, codec);
criterion_main!(benches);
