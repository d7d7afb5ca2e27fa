//! Packets and steps as one line of text each.

use core::fmt::Write as _;

use super::*;

/// The packets in `out`, in order.
pub(super) fn packets(out: &[u8], version: Version) -> Vec<Packet<'_>> {
    let mut rest = out;
    let mut packets = Vec::new();
    while !rest.is_empty() {
        let frame = split(rest, u32::MAX).unwrap().expect("a whole packet");
        packets.push(decode(frame, version).unwrap());
        rest = &rest[frame.len..];
    }
    packets
}

pub(super) fn lines(out: &[u8], version: Version) -> Vec<String> {
    packets(out, version).iter().map(line).collect()
}

/// `PUBLISH 1 #7 dup t=payload`, `PUBACK #7 0x10`, `CONNACK 0x00`, …
pub(super) fn line(packet: &Packet<'_>) -> String {
    match packet {
        Packet::ConnAck(connack) => {
            let present = if connack.session_present {
                " present"
            } else {
                ""
            };
            format!("CONNACK {:#04x}{present}", connack.reason.as_u8())
        }
        Packet::Publish(publish) => publish_line(publish),
        Packet::PubAck(ack) => ack_line("PUBACK", ack),
        Packet::PubRec(ack) => ack_line("PUBREC", ack),
        Packet::PubRel(ack) => ack_line("PUBREL", ack),
        Packet::PubComp(ack) => ack_line("PUBCOMP", ack),
        Packet::SubAck(suback) => format!("SUBACK #{}", suback.packet_id.as_u16()),
        Packet::UnsubAck(unsuback) => format!("UNSUBACK #{}", unsuback.packet_id.as_u16()),
        Packet::PingResp => "PINGRESP".to_string(),
        Packet::Disconnect(disconnect) => {
            let what = disconnect.properties.reason_string.unwrap_or_default();
            format!("DISCONNECT {:#04x} {what}", disconnect.reason.as_u8())
        }
        Packet::Auth(auth) => {
            let method = auth.properties.authentication_method.unwrap_or_default();
            let step = auth.properties.authentication_data.unwrap_or_default();
            let step = String::from_utf8_lossy(step);
            format!("AUTH {:#04x} {method} {step}", auth.reason.as_u8())
        }
        other => panic!("a server does not send {other:?}"),
    }
}

pub(super) fn publish_line(publish: &Publish<'_>) -> String {
    let properties = &publish.properties;
    let identifiers = properties.subscription_identifiers.iter();
    let mut words = [format!("PUBLISH {}", publish.qos.as_u8())].to_vec();
    words.extend(
        publish
            .packet_id
            .map(|packet_id| format!("#{}", packet_id.as_u16())),
    );
    words.extend(publish.dup.then(|| "dup".to_string()));
    words.extend(publish.retain.then(|| "retain".to_string()));
    words.extend(
        properties
            .message_expiry
            .map(|seconds| format!("expiry={seconds}")),
    );
    words.extend(properties.topic_alias.map(|alias| format!("alias={alias}")));
    words.extend(identifiers.map(|identifier| format!("sub={identifier}")));
    let payload = String::from_utf8_lossy(publish.payload);
    words.push(format!("{}={payload}", publish.topic));
    words.join(" ")
}

/// `queued 1 q1 a`, `sent 1 #7 PubAck`, `removed 1`, `received #3`, …
pub(super) fn step_line(step: &Step) -> String {
    match step {
        Step::Queued {
            seq,
            message,
            qos,
            retain,
            identifiers,
            group,
        } => {
            let payload = String::from_utf8_lossy(message.payload());
            let mut line = format!("queued {seq} q{} {payload}", qos.as_u8());
            line.push_str(if *retain { " retain" } else { "" });
            for identifier in identifiers {
                write!(line, " sub={identifier}").unwrap();
            }
            if let Some(group) = group {
                write!(line, " group={group}").unwrap();
            }
            line
        }
        Step::Sent {
            seq,
            packet_id,
            awaiting,
        } => format!("sent {seq} #{} {awaiting:?}", packet_id.as_u16()),
        Step::Removed { seq } => format!("removed {seq}"),
        Step::Received { packet_id } => format!("received #{}", packet_id.as_u16()),
        Step::ReceivedRemoved { packet_id } => {
            format!("received removed #{}", packet_id.as_u16())
        }
        Step::WillRemoved => "will removed".to_string(),
    }
}

pub(super) fn ack_line(name: &str, ack: &Ack<'_>) -> String {
    let packet_id = ack.packet_id.as_u16();
    if ack.reason == ReasonCode::Success {
        format!("{name} #{packet_id}")
    } else {
        format!("{name} #{packet_id} {:#04x}", ack.reason.as_u8())
    }
}
