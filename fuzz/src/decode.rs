//! Decodes any bytes as a stream of packets: they are refused, or decoded to packets that can be
//! encoded and decoded again.
//!
//! The first byte of an input selects the version, the others are the stream.

use thrum_codec::{
    DecodeError, Packet, Version, decode, encode, encoded_len,
    frame::{self, Frame},
};

use crate::{Sight, sight};

const VERSIONS: [Version; 3] = [Version::V5, Version::V311, Version::V31];

/// Larger than any packet of the input, smaller than the largest that a header can announce.
const PACKET_BYTES_MAX: u32 = 1 << 20;

/// Decodes packets until one is refused or incomplete.
///
/// # Panics
/// If a packet differs after it was encoded and decoded again.
pub fn target(input: &[u8]) -> Sight {
    let Some((&choice, mut stream)) = input.split_first() else {
        return 0;
    };
    let version = VERSIONS[usize::from(choice) % VERSIONS.len()];
    let mut last = None;
    loop {
        match frame::split(stream, PACKET_BYTES_MAX) {
            Ok(Some(frame)) => {
                check_frame(stream, frame);
                let outcome = check_decode(frame, version);
                last = Some((
                    frame.first >> 4,
                    outcome.err().map(|error| error.to_string()),
                ));
                if outcome.is_err() {
                    return sight(&(version, last));
                }
                stream = &stream[frame.len..];
            }
            Ok(None) => {
                let announced = frame::announced_len(stream);
                assert!(announced.is_none_or(|len| len > stream.len()));
                return sight(&(version, last, announced.is_some()));
            }
            Err(error) => return sight(&(version, last, error.to_string())),
        }
    }
}

/// Checks that the frame is at the start of the stream, and that a part of it is incomplete.
fn check_frame(stream: &[u8], frame: Frame<'_>) {
    assert!(stream[..frame.len].ends_with(frame.body));
    assert_eq!(frame::announced_len(stream), Some(frame.len));
    for end in [0, frame.len / 2, frame.len - 1] {
        assert_eq!(frame::split(&stream[..end], PACKET_BYTES_MAX), Ok(None));
    }
}

fn check_decode(frame: Frame<'_>, version: Version) -> Result<(), DecodeError> {
    let packet = decode(frame, version)?;
    let own = match packet {
        Packet::Connect(connect) => connect.version,
        _ => version,
    };
    let mut written = Vec::new();
    encode(&packet, own, &mut written).expect("a decoded packet can be encoded");
    assert_eq!(encoded_len(&packet, own), Ok(written.len()));
    assert_eq!(read(&written, own), packet, "written in its own version");
    let mut again = Vec::new();
    encode(&read(&written, own), own, &mut again).expect("an encoded packet can be encoded again");
    assert_eq!(again, written);
    for other in VERSIONS {
        check_other_version(&packet, other);
    }
    Ok(())
}

/// Checks the packet in another version, as a bridge may forward it: it cannot be encoded, or it is
/// valid.
fn check_other_version(packet: &Packet<'_>, other: Version) {
    let mut written = Vec::new();
    if encode(packet, other, &mut written).is_ok() {
        let translated = read(&written, other);
        assert_eq!(
            core::mem::discriminant(&translated),
            core::mem::discriminant(packet)
        );
    } else {
        assert!(written.is_empty());
    }
}

fn read(bytes: &[u8], version: Version) -> Packet<'_> {
    let frame = frame::split(bytes, u32::MAX).expect("a header was written");
    let frame = frame.expect("a whole frame was written");
    assert_eq!(frame.len, bytes.len());
    decode(frame, version).expect("a valid packet was written")
}
