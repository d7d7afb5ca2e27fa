//! Every packet in every version, byte by byte.

mod connect;
mod others;
mod publish;
mod subscribe;

use thrum_codec::Version::{V5, V31, V311};
use thrum_codec::properties::UserProperties;
use thrum_codec::{Packet, PacketId, TopicFilter, Version, decode, encode, encoded_len, frame};

pub(super) const EVERY: &[Version] = &[V31, V311, V5];
pub(super) const THREE: &[Version] = &[V31, V311];
pub(super) const FIVE: &[Version] = &[V5];

pub(super) const PAIRS: UserProperties<'static> = UserProperties::Listed(&[("k", "v"), ("k", "")]);

/// Checks that the bytes decode to the packet, and that the packet encodes to the bytes.
#[expect(
    clippy::large_types_passed_by_value,
    reason = "the samples are made in place"
)]
#[track_caller]
pub(super) fn check(versions: &[Version], bytes: &[u8], packet: Packet<'_>) {
    for &version in versions {
        assert_eq!(read(version, bytes), packet, "reading {version:?}");
        let mut written = Vec::new();
        encode(&packet, version, &mut written).expect("a valid packet can be written");
        assert_eq!(written, bytes, "writing {version:?}");
        assert_eq!(
            encoded_len(&packet, version),
            Ok(bytes.len()),
            "counting {version:?}"
        );
    }
}

/// Checks that the bytes decode to the packet, which is encoded in another form.
#[expect(
    clippy::large_types_passed_by_value,
    reason = "the samples are made in place"
)]
#[track_caller]
pub(super) fn check_read(versions: &[Version], bytes: &[u8], packet: Packet<'_>) {
    for &version in versions {
        assert_eq!(read(version, bytes), packet, "reading {version:?}");
    }
}

#[expect(
    clippy::large_types_passed_by_value,
    reason = "the samples are made in place"
)]
#[track_caller]
pub(super) fn check_written(version: Version, packet: Packet<'_>, bytes: &[u8]) {
    let mut written = Vec::new();
    encode(&packet, version, &mut written).expect("a valid packet can be written");
    assert_eq!(written, bytes, "{version:?}");
}

#[track_caller]
pub(super) fn read(version: Version, bytes: &[u8]) -> Packet<'_> {
    let frame = frame::split(bytes, u32::MAX)
        .expect("a valid header")
        .expect("a whole frame");
    assert_eq!(frame.len, bytes.len(), "the length of the sample is wrong");
    decode(frame, version).unwrap_or_else(|error| panic!("{version:?}: {error}"))
}

pub(super) fn id(value: u16) -> PacketId {
    PacketId::new(value).expect("not 0")
}

pub(super) fn filter(text: &str) -> TopicFilter<'_> {
    TopicFilter::parse(text).expect("a valid filter")
}
