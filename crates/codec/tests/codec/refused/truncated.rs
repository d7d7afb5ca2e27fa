//! Bodies that end early or go on too long, behind a remaining length that agrees.

use thrum_codec::testing::with_packet;
use thrum_codec::{DecodeError, Packet, Version, encode, frame};

use proptest::collection::vec;
use proptest::prelude::*;

use super::{framed, read};

/// Cut short there, the body is a shorter packet: a payload or list has no length of its own.
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
        // Strings at the end of a CONNECT of 3.1 may be missing.
        Packet::Connect(connect) => connect.version == Version::V31,
        Packet::ConnAck(_) | Packet::PingReq | Packet::PingResp => false,
    }
}

proptest! {
    #[test]
    fn a_cut_body_is_refused_as_malformed(
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
                    // A list or a method that is missing altogether is an error of its own.
                    Err(DecodeError::Protocol(_)) => prop_assert!(may_end_early(packet)),
                    Err(error) => prop_assert!(matches!(error, DecodeError::Malformed(_)), "{error}"),
                }
            }
            Ok(())
        })?;
    }

    #[test]
    fn a_byte_too_many_is_refused(
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
                // The payload; a return code more; what the short form has left out.
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
