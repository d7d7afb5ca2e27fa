//! Time that a session needs to receive a message, to send one and receive its acknowledgement, and
//! to send one to a thousand sessions.

use std::hint::black_box;
use std::iter::Cycle;
use std::ops::RangeInclusive;
use std::sync::Arc;

use criterion::{Bencher, Criterion, Throughput, criterion_group, criterion_main};
use thrum_codec::packet::{Ack, Connect, Publish};
use thrum_codec::properties::{AckProperties, ConnectProperties, PublishProperties};
use thrum_codec::{Packet, PacketId, QoS, ReasonCode, Version};
use thrum_protocol::message::FrameCache;
use thrum_protocol::server::{Action, ConnAckParts, DeliveryOptions, Handshake, Session};
use thrum_protocol::{Limits, Outgoing, Output, Publication, Time};

const TOPIC: &str = "plant/7/line/3/sensor/temperature";
const NOW: Time = Time::from_millis(1_000);
const RECEIVERS: u64 = 1_000;
const VERSIONS: [Version; 2] = [Version::V311, Version::V5];
const PAYLOADS: [(&str, &[u8]); 2] = [("16 B", &[7; 16]), ("1 KiB", &[7; 1024])];

/// Version of the receiver and quality of service of the delivery.
type Form = (Version, QoS);

/// A connected session without an expiry.
fn session(version: Version, id: u64) -> Session {
    let limits = Arc::new(Limits::default());
    let connect = Connect {
        version,
        is_bridge: false,
        clean_start: true,
        keep_alive: 60,
        client_id: "client",
        will: None,
        username: None,
        password: None,
        properties: ConnectProperties::default(),
    };
    let handshake = Handshake::new(&connect, "", &limits).expect("within the limits");
    let mut session = Session::new(id, &handshake, &limits);
    let parts = ConnAckParts::default();
    session.connect(handshake, parts, NOW, &mut Output::new());
    session
}

/// A client with the packet identifiers that the session will send it, in order.
struct Receiver {
    session: Session,
    ids: Cycle<RangeInclusive<u16>>,
}

impl Receiver {
    fn new(version: Version, id: u64) -> Self {
        Self {
            session: session(version, id),
            ids: (1..=u16::MAX).cycle(),
        }
    }

    /// Sends one message and, with `QoS` 1, receives its PUBACK.
    fn take(&mut self, outgoing: &mut Outgoing<'_>, qos: QoS, out: &mut Output) {
        out.clear();
        let options = DeliveryOptions {
            qos,
            retain: false,
            identifiers: &[],
            group: None,
            is_acknowledged: false,
        };
        self.session.deliver(outgoing, options, NOW, out);
        if qos == QoS::AtMostOnce {
            return;
        }
        if let Some(packet_id) = self.ids.next().and_then(PacketId::new) {
            let puback = Packet::PubAck(Ack {
                packet_id,
                reason: ReasonCode::Success,
                properties: AckProperties::default(),
            });
            let action = self.session.handle_packet(puback, NOW, out);
            debug_assert!(matches!(action, Ok(Action::None)));
        }
    }
}

fn publication(payload: &[u8]) -> Publication<'_> {
    Publication::new(TOPIC, payload, QoS::ExactlyOnce)
}

fn publish_in(bencher: &mut Bencher<'_>, version: Version) {
    let mut session = session(version, 1);
    let publish = Publish {
        dup: false,
        qos: QoS::AtLeastOnce,
        retain: false,
        topic: TOPIC,
        packet_id: PacketId::new(7),
        properties: PublishProperties::default(),
        payload: &[7; 16],
    };
    let mut out = Output::new();
    bencher.iter(|| {
        out.clear();
        let packet = Packet::Publish(black_box(publish));
        let action = session.handle_packet(packet, NOW, &mut out);
        if let Ok(Action::Publish { publish, .. }) = action {
            let outcome = ReasonCode::Success;
            session.publish_done(publish.qos, publish.packet_id, outcome, &mut out);
        }
        out.len()
    });
}

/// Delivers one message to the given number of sessions.
fn deliver(bencher: &mut Bencher<'_>, receivers: u64, (version, qos): Form, payload: &[u8]) {
    let mut receivers: Vec<_> = (1..=receivers)
        .map(|id| Receiver::new(version, id))
        .collect();
    let mut frames = FrameCache::default();
    let mut out = Output::new();
    bencher.iter(|| {
        let mut outgoing = Outgoing::new(publication(payload), &mut frames);
        for receiver in &mut receivers {
            receiver.take(&mut outgoing, qos, &mut out);
        }
        out.len()
    });
}

fn bench_publish_in(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("publish in");
    group.throughput(Throughput::Elements(1));
    for version in VERSIONS {
        let name = format!("QoS 1 with PUBACK {version:?}");
        group.bench_function(name, |bencher| publish_in(bencher, version));
    }
    group.finish();
}

fn bench_deliver(criterion: &mut Criterion) {
    for (title, receivers) in [("deliver", 1), ("fan-out to 1k sessions", RECEIVERS)] {
        let mut group = criterion.benchmark_group(title);
        group.throughput(Throughput::Elements(receivers));
        let forms = VERSIONS
            .into_iter()
            .flat_map(|version| [(version, QoS::AtMostOnce), (version, QoS::AtLeastOnce)]);
        for (form, (size, payload)) in
            forms.flat_map(|form| PAYLOADS.map(|payload| (form, payload)))
        {
            let name = format!("QoS {} {size} {:?}", form.1.as_u8(), form.0);
            group.bench_function(name, |bencher| deliver(bencher, receivers, form, payload));
        }
        group.finish();
    }
}

criterion_group!(benches, bench_publish_in, bench_deliver);
criterion_main!(benches);
