//! Answers to the packets of a client.

use thrum_codec::frame::Frame;
use thrum_codec::packet::{
    ConnAck, Packet, PacketId, ReasonCodes, SubAck, Subscribe, SubscriptionRequest, Unsubscribe,
};
use thrum_codec::properties::{AckProperties, ConnAckProperties};
use thrum_codec::{ReasonCode, Version, decode, encode};

use super::route::Route;

pub(super) const PUBACK: u8 = 0x40;
pub(super) const PUBREC: u8 = 0x50;
pub(super) const PUBREL: u8 = 0x62;
pub(super) const PUBCOMP: u8 = 0x70;
pub(super) const PINGRESP: [u8; 2] = [0xD0, 0];

/// An acknowledgement of a packet, the same in all versions.
#[inline]
pub(super) const fn ack(first: u8, [high, low]: [u8; 2]) -> [u8; 4] {
    [first, 2, high, low]
}

/// The packet identifier at the start of a packet's body.
#[inline]
pub(super) fn packet_id(frame: Frame<'_>) -> Option<[u8; 2]> {
    frame.body.first_chunk().copied()
}

/// Accepts a client and returns its version; none if the packet is not a valid CONNECT.
pub(super) fn accept(frame: Frame<'_>, out: &mut Vec<u8>) -> Option<Version> {
    let Ok(Packet::Connect(connect)) = decode(frame, Version::V5) else {
        return None;
    };
    let answer = Packet::ConnAck(ConnAck {
        session_present: false,
        reason: ReasonCode::Success,
        properties: ConnAckProperties::default(),
    });
    encode(&answer, connect.version, out).ok()?;
    Some(connect.version)
}

/// Answers a SUBSCRIBE: every filter is granted as asked, unless its number is too high for the
/// table.
pub(super) fn grant(subscribe: &Subscribe<'_>, version: Version, out: &mut Vec<u8>) {
    let code = |request: SubscriptionRequest<'_>| match Route::of(request.filter) {
        Some(_) => request.options.qos.granted(),
        None => ReasonCode::QuotaExceeded,
    };
    let codes: Vec<ReasonCode> = subscribe.requests.iter().map(code).collect();
    let answer = Packet::SubAck(codes_of(subscribe.packet_id, &codes));
    put(&answer, version, out);
}

/// Answers an UNSUBSCRIBE.
pub(super) fn release(unsubscribe: &Unsubscribe<'_>, version: Version, out: &mut Vec<u8>) {
    let codes = vec![ReasonCode::Success; unsubscribe.filters.iter().count()];
    let answer = Packet::UnsubAck(codes_of(unsubscribe.packet_id, &codes));
    put(&answer, version, out);
}

fn codes_of(packet_id: PacketId, codes: &[ReasonCode]) -> SubAck<'_> {
    SubAck {
        packet_id,
        properties: AckProperties::default(),
        codes: ReasonCodes::Listed(codes),
    }
}

fn put(packet: &Packet<'_>, version: Version, out: &mut Vec<u8>) {
    // The list of codes is never too long: each filter of the request took more room than its code.
    encode(packet, version, out).ok();
}

#[cfg(test)]
mod tests {
    use thrum_codec::frame;

    use super::*;

    fn frame(bytes: &[u8]) -> Frame<'_> {
        frame::split(bytes, u32::MAX).unwrap().unwrap()
    }

    #[test]
    fn a_client_is_accepted_in_its_version() {
        for (level, version, answer) in [
            (4, Version::V311, &[0x20, 2, 0, 0][..]),
            (5, Version::V5, &[0x20, 3, 0, 0, 0]),
        ] {
            let mut connect = b"\x10\x0d\0\x04MQTT\0\x02\0\x3c\0\x01c".to_vec();
            connect[8] = level;
            if level == 5 {
                connect[1] = 14;
                connect.insert(12, 0);
            }
            let mut out = Vec::new();
            assert_eq!(accept(frame(&connect), &mut out), Some(version));
            assert_eq!(out, answer);
        }
        let mut out = Vec::new();
        assert_eq!(accept(frame(&[0x10, 2, 0, 0]), &mut out), None);
        assert_eq!(accept(frame(&[0xC0, 0]), &mut out), None);
        assert!(out.is_empty());
    }

    #[test]
    fn filters_are_granted_as_asked_but_for_numbers_that_the_table_lacks() {
        let mut subscribe = b"\x82\0\0\x09\0\x03a/1\x02\0\x03b/#\0\0\x09c/1048576\x01".to_vec();
        subscribe[1] = u8::try_from(subscribe.len() - 2).unwrap();
        let Ok(Packet::Subscribe(request)) = decode(frame(&subscribe), Version::V311) else {
            panic!("no SUBSCRIBE");
        };
        let mut out = Vec::new();
        grant(&request, Version::V311, &mut out);
        assert_eq!(out, [0x90, 5, 0, 9, 2, 0, 0x80]);
        out.clear();
        grant(&request, Version::V5, &mut out);
        assert_eq!(out, [0x90, 6, 0, 9, 0, 2, 0, 0x97]);
    }

    #[test]
    fn filters_are_given_up_in_the_form_of_the_version() {
        let unsubscribe = b"\xa2\x0c\0\x09\0\x03a/1\0\x03b/#";
        let Ok(Packet::Unsubscribe(request)) = decode(frame(unsubscribe), Version::V311) else {
            panic!("no UNSUBSCRIBE");
        };
        let mut out = Vec::new();
        release(&request, Version::V311, &mut out);
        assert_eq!(out, [0xB0, 2, 0, 9]);
        out.clear();
        release(&request, Version::V5, &mut out);
        assert_eq!(out, [0xB0, 5, 0, 9, 0, 0, 0]);
    }

    #[test]
    fn an_acknowledgement_repeats_the_packet_identifier() {
        let puback = [0x40, 2, 1, 2];
        assert_eq!(packet_id(frame(&puback)), Some([1, 2]));
        assert_eq!(ack(PUBREL, [1, 2]), [0x62, 2, 1, 2]);
        assert_eq!(packet_id(frame(&[0x40, 1, 0])), None);
    }
}
