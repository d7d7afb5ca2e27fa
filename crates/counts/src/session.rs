//! Cost of one packet or message for a session: inbound, outbound with its acknowledgement,
//! fan-out.

use std::hint::black_box;
use std::sync::Arc;

use thrum_codec::packet::Connect;
use thrum_codec::properties::ConnectProperties;
use thrum_codec::{Packet, QoS, ReasonCode, Version};
use thrum_protocol::message::FrameCache;
use thrum_protocol::server::{Action, ConnAckParts, DeliveryOptions, Handshake, Session};
use thrum_protocol::{Limits, Outgoing, Output, Publication, Time};

use crate::codec::{PAYLOAD, TOPIC, packet_id, puback, publish};
use crate::repeat;

const NOW: Time = Time::from_millis(1_000);
const RECEIVERS: u32 = 100;

/// Receives a PUBLISH with `QoS` 1 and writes a PUBACK.
pub(crate) fn publish_in(times: u32) {
    let mut session = session(1);
    let mut out = Output::new();
    repeat(times, || {
        out.clear();
        let packet = black_box(Packet::Publish(publish()));
        let action = session.handle_packet(packet, NOW, &mut out);
        if let Ok(Action::Publish { publish, .. }) = action {
            let outcome = ReasonCode::Success;
            session.publish_done(publish.qos, publish.packet_id, outcome, &mut out);
        }
        out.len()
    });
}

pub(crate) fn deliver_qos0(times: u32) {
    let mut session = session(1);
    let mut frames = FrameCache::default();
    let mut out = Output::new();
    repeat(times, || {
        out.clear();
        let mut outgoing = Outgoing::new(black_box(publication()), &mut frames);
        session.deliver(&mut outgoing, options(QoS::AtMostOnce), NOW, &mut out)
    });
}

/// Writes a message and receives its PUBACK.
pub(crate) fn deliver_qos1(times: u32) {
    let mut session = session(1);
    let mut frames = FrameCache::default();
    let mut out = Output::new();
    let mut ids = (1..=u16::MAX).cycle().map(packet_id);
    repeat(times, || {
        out.clear();
        let mut outgoing = Outgoing::new(black_box(publication()), &mut frames);
        session.deliver(&mut outgoing, options(QoS::AtLeastOnce), NOW, &mut out);
        let packet = puback(ids.next()?);
        session.handle_packet(packet, NOW, &mut out).ok().map(drop)
    });
}

/// One message to many sessions: encoded for the first two, copied for the others.
pub(crate) fn fan_out(times: u32) {
    let mut sessions: Vec<_> = (1..=u64::from(RECEIVERS)).map(session).collect();
    let mut frames = FrameCache::default();
    let mut out = Output::new();
    repeat(times, || {
        let mut outgoing = Outgoing::new(black_box(publication()), &mut frames);
        for session in &mut sessions {
            out.clear();
            session.deliver(&mut outgoing, options(QoS::AtMostOnce), NOW, &mut out);
        }
        out.len()
    });
}

fn session(id: u64) -> Session {
    let limits = Arc::new(Limits::default());
    let connect = Connect {
        version: Version::V311,
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

fn publication() -> Publication<'static> {
    Publication::new(TOPIC, PAYLOAD, QoS::ExactlyOnce)
}

fn options(qos: QoS) -> DeliveryOptions<'static> {
    DeliveryOptions {
        qos,
        retain: false,
        identifiers: &[],
        group: None,
        is_acknowledged: false,
    }
}
