//! Bodies that are too short or too long for the packet, with a matching remaining length.

use thrum_codec::testing::with_packet;
use thrum_codec::{DecodeError, Packet, Version, encode, frame};

use proptest::collection::vec;
use proptest::prelude::*;

use super::{framed, read};

/// Whether a truncated body can be valid: a payload or list has no length field.
fn may_end_early(packet: &Packet<'_>) -> bool {
    match packet {
        Packet::Publish(_)
        | Packet::PubAck(_)
        | Packet::PubRec(_)
        | Packet::PubRel(_)
        | Packet::PubComp(_)
        | Packet::Subscribe(_)
        | Packet::SubAck(_)
        | Packet::Unsubscribe(_)
        | Packet::UnsubAck(_)
        | Packet::Disconnect(_)
        | Packet::Auth(_) => true,
        // Strings at the end of a 3.1 CONNECT may be missing.
        Packet::Connect(connect) => connect.version == Version::V31,
        Packet::ConnAck(_) | Packet::PingReq | Packet::PingResp => false,
    }
}

proptest! {
    #[test]
    fn a_truncated_body_is_refused_as_malformed(
        choices in vec(any::<u8>(), 0..120),
        five in any::<bool>(),
    ) {
        let version = if five { Version::V5 } else { Version::V311 };
        with_packet(&choices, version, |packet| {
            let mut bytes = Vec::new();
            encode(packet, version, &mut bytes).expect("valid");
            let frame = frame::split(&bytes, u32::MAX).expect("valid").expect("whole");
            for end in 0..frame.body.len().min(400) {
                match read(version, &framed(frame.first, &frame.body[..end])) {
                    Ok(()) => prop_assert!(may_end_early(packet), "{packet:?} cut at {end}"),
                    // A missing list or method is an error of its own.
                    Err(DecodeError::Protocol(_)) => prop_assert!(may_end_early(packet)),
                    Err(error) => prop_assert!(matches!(error, DecodeError::Malformed(_)), "{error}"),
                }
            }
            Ok(())
        })?;
    }

    #[test]
    fn a_trailing_byte_is_refused(
        choices in vec(any::<u8>(), 0..120),
        five in any::<bool>(),
        byte in any::<u8>(),
    ) {
        let version = if five { Version::V5 } else { Version::V311 };
        with_packet(&choices, version, |packet| {
            let mut bytes = Vec::new();
            encode(packet, version, &mut bytes).expect("valid");
            let frame = frame::split(&bytes, u32::MAX).expect("valid").expect("whole");
            let longer = framed(frame.first, &[frame.body, &[byte]].concat());
            let outcome = read(version, &longer);
            let takes_more = match packet {
                // The byte extends the payload, adds a return code, or completes the short form.
                Packet::Publish(_) | Packet::SubAck(_) => true,
                Packet::UnsubAck(_) | Packet::PubAck(_) | Packet::PubRec(_) | Packet::PubRel(_)
                | Packet::PubComp(_) | Packet::Disconnect(_) => five,
                Packet::Connect(_) | Packet::ConnAck(_) | Packet::Subscribe(_) | Packet::Auth(_)
                | Packet::Unsubscribe(_) | Packet::PingReq | Packet::PingResp => false,
            };
            prop_assert!(takes_more || outcome.is_err(), "{packet:?} and {byte:02X}");
            Ok(())
        })?;
    }
}
