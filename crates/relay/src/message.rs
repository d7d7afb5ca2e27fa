//! A PUBLISH as bytes: the fields that the relay needs, and its outgoing forms.

use thrum_codec::frame::Frame;
use thrum_codec::packet::Publish;
use thrum_codec::{PacketId, QoS, Version, decode_publish, encode_publish};

use super::route::{Target, trailing_number};

/// First byte of a PUBLISH without flags.
const PUBLISH: u8 = 0x30;

/// A message as received.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message<'a> {
    frame: Frame<'a>,
    bytes: &'a [u8],
    version: Version,
    /// Position of the packet identifier, also if there is none.
    id_at: usize,
    pub(super) qos: QoS,
    /// The number at the end of its topic.
    pub(super) number: Option<u32>,
}

/// Bytes that need only a quality of service and a packet identifier to be a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form<'a> {
    bytes: &'a [u8],
    id_at: Option<usize>,
    qos: QoS,
}

/// The other forms of a message; each is made when the first receiver needs it.
#[derive(Debug, Default)]
pub(super) struct Forms {
    made: [Made; 4],
}

#[derive(Debug, Default)]
struct Made {
    /// Empty until it is made.
    bytes: Vec<u8>,
    id_at: Option<usize>,
}

impl<'a> Message<'a> {
    /// Looks at a frame, given with all of its bytes; none if it ends too early.
    #[inline]
    pub(super) fn parse(frame: Frame<'a>, bytes: &'a [u8], version: Version) -> Option<Self> {
        let (topic_len, rest) = frame.body.split_first_chunk()?;
        let topic = rest.get(..usize::from(u16::from_be_bytes(*topic_len)))?;
        let id_at = bytes.len() - frame.body.len() + 2 + topic.len();
        let qos = QoS::from_u8(frame.first >> 1 & 3)?;
        let id_len = if qos == QoS::AtMostOnce { 0 } else { 2 };
        (bytes.len() >= id_at + id_len).then(|| Self {
            frame,
            bytes,
            version,
            id_at,
            qos,
            number: trailing_number(topic),
        })
    }

    /// Its packet identifier, which it has above `QoS` 0.
    #[inline]
    pub(super) fn packet_id(&self) -> [u8; 2] {
        [self.bytes[self.id_at], self.bytes[self.id_at + 1]]
    }
}

impl Form<'_> {
    /// Appends a copy with this packet identifier.
    #[inline]
    pub(super) fn append(self, packet_id: u16, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(self.bytes);
        // Neither sent before nor retained.
        out[start] = PUBLISH | self.qos.as_u8() << 1;
        if let Some(at) = self.id_at {
            out[start + at..start + at + 2].copy_from_slice(&packet_id.to_be_bytes());
        }
    }
}

impl Forms {
    /// Forgets those of the message before.
    #[inline]
    pub(super) fn clear(&mut self) {
        for made in &mut self.made {
            made.bytes.clear();
        }
    }

    /// The form of a message for a receiver: the received bytes, if they fit. None if the message
    /// is malformed.
    #[inline]
    pub(super) fn of<'f>(&'f mut self, message: &Message<'f>, target: Target) -> Option<Form<'f>> {
        let qos = message.qos.min(target.qos);
        let has_id = qos > QoS::AtMostOnce;
        let is_same_version = is_v5(target.version) == is_v5(message.version);
        if is_same_version && has_id == (message.qos > QoS::AtMostOnce) {
            return Some(Form {
                bytes: message.bytes,
                id_at: has_id.then_some(message.id_at),
                qos,
            });
        }
        let made = &mut self.made[usize::from(is_v5(target.version)) * 2 + usize::from(has_id)];
        if made.bytes.is_empty() {
            made.make(message, has_id, target.version)?;
        }
        Some(Form {
            bytes: &made.bytes,
            id_at: made.id_at,
            qos,
        })
    }
}

impl Made {
    fn make(&mut self, message: &Message<'_>, has_id: bool, version: Version) -> Option<()> {
        let publish = Publish {
            dup: false,
            retain: false,
            qos: if has_id {
                QoS::AtLeastOnce
            } else {
                QoS::AtMostOnce
            },
            packet_id: PacketId::new(1),
            ..decode_publish(message.frame, message.version).ok()?
        };
        let frame = encode_publish(&publish, version, &mut self.bytes).ok()?;
        self.id_at = frame.packet_id_at;
        Some(())
    }
}

#[inline]
const fn is_v5(version: Version) -> bool {
    matches!(version, Version::V5)
}

#[cfg(test)]
mod tests {
    use thrum_codec::frame;
    use thrum_codec::properties::PublishProperties;

    use super::*;

    const ALL: [QoS; 3] = [QoS::AtMostOnce, QoS::AtLeastOnce, QoS::ExactlyOnce];

    fn publish<'a>(qos: QoS, packet_id: u16) -> Publish<'a> {
        Publish {
            dup: false,
            qos,
            retain: false,
            topic: "test/17",
            packet_id: (qos > QoS::AtMostOnce).then(|| PacketId::new(packet_id).unwrap()),
            properties: PublishProperties::default(),
            payload: b"payload",
        }
    }

    fn encoded(publish: &Publish<'_>, version: Version) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode_publish(publish, version, &mut bytes).unwrap();
        bytes
    }

    fn message(bytes: &[u8], version: Version) -> Message<'_> {
        let frame = frame::split(bytes, u32::MAX).unwrap().unwrap();
        Message::parse(frame, bytes, version).unwrap()
    }

    /// Two copies of a message for a subscription of each quality of service, behind other output.
    #[track_caller]
    fn check_copies(qos_in: QoS, version_in: Version, version_out: Version) {
        let sent = Publish {
            dup: qos_in > QoS::AtMostOnce,
            retain: true,
            ..publish(qos_in, 500)
        };
        let bytes = encoded(&sent, version_in);
        let message = message(&bytes, version_in);
        for qos in ALL {
            let target = Target {
                client: 0,
                qos,
                version: version_out,
            };
            let mut out = b"before".to_vec();
            let mut forms = Forms::default();
            for packet_id in [9, 10] {
                let form = forms.of(&message, target).unwrap();
                form.append(packet_id, &mut out);
            }
            let qos = qos.min(qos_in);
            let mut expected = b"before".to_vec();
            expected.extend(encoded(&publish(qos, 9), version_out));
            expected.extend(encoded(&publish(qos, 10), version_out));
            assert_eq!(out, expected, "{version_in:?} {version_out:?} {qos_in:?}");
        }
    }

    #[test]
    fn a_copy_is_the_packet_with_the_lower_quality_in_the_version_of_the_receiver() {
        for qos in ALL {
            check_copies(qos, Version::V311, Version::V311);
            check_copies(qos, Version::V311, Version::V5);
            check_copies(qos, Version::V5, Version::V311);
            check_copies(qos, Version::V5, Version::V5);
        }
    }

    #[test]
    fn properties_stay_within_5_0() {
        let sent = Publish {
            properties: PublishProperties {
                message_expiry: Some(60),
                ..PublishProperties::default()
            },
            ..publish(QoS::AtLeastOnce, 1)
        };
        let bytes = encoded(&sent, Version::V5);
        let mut forms = Forms::default();
        let mut copy = |version, qos| {
            let target = Target {
                client: 0,
                qos,
                version,
            };
            let mut out = Vec::new();
            let form = forms.of(&message(&bytes, Version::V5), target).unwrap();
            form.append(7, &mut out);
            out
        };
        let without = Publish {
            properties: PublishProperties::default(),
            ..sent
        };
        let lower = |publish| Publish {
            qos: QoS::AtMostOnce,
            ..publish
        };
        let with_id = |publish| Publish {
            packet_id: PacketId::new(7),
            ..publish
        };
        let one = QoS::AtLeastOnce;
        assert_eq!(copy(Version::V5, one), encoded(&with_id(sent), Version::V5));
        let expected = encoded(&with_id(without), Version::V311);
        assert_eq!(copy(Version::V311, one), expected);
        let zero = QoS::AtMostOnce;
        assert_eq!(copy(Version::V5, zero), encoded(&lower(sent), Version::V5));
        let expected = encoded(&lower(without), Version::V311);
        assert_eq!(copy(Version::V311, zero), expected);
    }

    #[test]
    fn number_and_packet_identifier_are_read_from_the_bytes() {
        let bytes = encoded(&publish(QoS::ExactlyOnce, 0x0102), Version::V311);
        let message = message(&bytes, Version::V311);
        assert_eq!(message.number, Some(17));
        assert_eq!(message.packet_id(), [1, 2]);
        assert_eq!(message.qos, QoS::ExactlyOnce);
    }

    #[test]
    fn a_packet_that_ends_too_early_is_no_message() {
        for bytes in [
            &[0x30, 0][..],
            &[0x30, 1, 0],
            &[0x30, 3, 0, 2, b'a'],
            &[0x32, 4, 0, 1, b'a', 0],
            &[0x36, 5, 0, 1, b'a', 0, 1],
        ] {
            let frame = frame::split(bytes, u32::MAX).unwrap().unwrap();
            assert!(Message::parse(frame, bytes, Version::V311).is_none());
        }
    }
}
