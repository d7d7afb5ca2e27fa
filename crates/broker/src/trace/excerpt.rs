//! The bytes of a packet that a trace may contain.

use std::ops::Range;

use thrum_codec::Packet;
use thrum_codec::frame::Frame;

/// Longest excerpt of a packet: what people read.
pub(super) const PACKET_BYTES_MAX: usize = 16 * 1024;
/// In the place of secrets.
const MASK: u8 = b'*';

/// A packet in a frame, decoded.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeenPacket<'a> {
    pub(super) frame: Frame<'a>,
    pub(super) packet: &'a Packet<'a>,
}

impl SeenPacket<'_> {
    /// The bytes for a trace: without secrets, and without payloads unless they are wanted.
    pub(super) fn excerpt(self, payloads: bool) -> Box<[u8]> {
        let Self { frame, packet } = self;
        let body = frame.body;
        let mut secrets: Vec<Range<usize>> = Vec::new();
        let mut hide = |secret: Option<&[u8]>| secrets.extend(secret.and_then(|s| place(body, s)));
        let mut end = body.len();
        match packet {
            Packet::Connect(connect) => {
                hide(connect.password);
                hide(connect.properties.authentication_data);
                hide(connect.will.map(|will| will.payload).filter(|_| !payloads));
            }
            Packet::ConnAck(connack) => hide(connack.properties.authentication_data),
            Packet::Auth(auth) => hide(auth.properties.authentication_data),
            Packet::Publish(publish) if !payloads => end -= publish.payload.len(),
            _ => {}
        }
        let mut bytes = header(frame);
        let begin = bytes.len();
        end = end.min(PACKET_BYTES_MAX);
        bytes.extend_from_slice(&body[..end]);
        for secret in secrets {
            let secret = secret.start.min(end)..secret.end.min(end);
            bytes[begin..][secret].fill(MASK);
        }
        bytes.into()
    }

    /// Its length as its excerpt begins.
    pub(super) fn len(self) -> usize {
        header(self.frame).len() + self.frame.body.len()
    }
}

/// The fixed header.
pub(super) fn header(frame: Frame<'_>) -> Vec<u8> {
    let mut header = vec![frame.first];
    let mut left = frame.body.len();
    loop {
        // Seven bits of the length.
        let low = u8::try_from(left & 0x7F).unwrap_or_default();
        left >>= 7;
        header.push(if left > 0 { low | 0x80 } else { low });
        if left == 0 {
            return header;
        }
    }
}

/// Where a part of the body is in it.
fn place(body: &[u8], part: &[u8]) -> Option<Range<usize>> {
    let start = part.as_ptr().addr().checked_sub(body.as_ptr().addr())?;
    (start + part.len() <= body.len()).then(|| start..start + part.len())
}

#[cfg(test)]
mod tests {
    use thrum_codec::packet::{Connect, Publish, Will};
    use thrum_codec::properties::{ConnectProperties, PublishProperties, WillProperties};
    use thrum_codec::{PacketId, QoS, Version, decode, encode, frame};

    use super::*;

    fn encoded(packet: &Packet<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(packet, Version::V5, &mut bytes).unwrap();
        bytes
    }

    fn excerpt(bytes: &[u8], payloads: bool) -> Box<[u8]> {
        let frame = frame::split(bytes, u32::MAX).unwrap().unwrap();
        let packet = decode(frame, Version::V5).unwrap();
        let seen = SeenPacket {
            frame,
            packet: &packet,
        };
        assert_eq!(seen.len(), bytes.len());
        seen.excerpt(payloads)
    }

    #[test]
    fn secrets_are_masked_and_everything_else_is_as_sent() {
        let connect = Packet::Connect(Connect {
            version: Version::V5,
            is_bridge: false,
            clean_start: true,
            keep_alive: 60,
            client_id: "client",
            will: Some(Will {
                topic: "t",
                payload: b"last words",
                qos: QoS::AtMostOnce,
                retain: false,
                properties: WillProperties::default(),
            }),
            username: Some("user"),
            password: Some(b"secret"),
            properties: ConnectProperties {
                authentication_method: Some("M"),
                authentication_data: Some(b"proof"),
                ..ConnectProperties::default()
            },
        });
        let bytes = encoded(&connect);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let masked = |payload: &str| {
            let sent = text(&bytes);
            sent.replace("secret", "******")
                .replace("proof", "*****")
                .replace("last words", payload)
        };
        assert_eq!(text(&excerpt(&bytes, true)), masked("last words"));
        assert_eq!(text(&excerpt(&bytes, false)), masked("**********"));
    }

    #[test]
    fn a_publish_is_cut_before_its_payload_unless_that_is_wanted() {
        let payload = [b'x'; 300];
        let publish = Packet::Publish(Publish {
            dup: false,
            qos: QoS::AtLeastOnce,
            retain: false,
            topic: "a/b",
            packet_id: PacketId::new(7),
            properties: PublishProperties::default(),
            payload: &payload,
        });
        let bytes = encoded(&publish);
        assert_eq!(*excerpt(&bytes, true), *bytes);
        assert_eq!(*excerpt(&bytes, false), bytes[..bytes.len() - 300]);
        let long = vec![b'x'; 100_000];
        let Packet::Publish(publish) = publish else {
            unreachable!("it is a PUBLISH");
        };
        let bytes = encoded(&Packet::Publish(Publish {
            payload: &long,
            ..publish
        }));
        assert_eq!(*excerpt(&bytes, true), bytes[..4 + PACKET_BYTES_MAX]);
    }
}
