//! Invalid bytes, each refused with its reason.

mod connect;
mod header;
mod properties;
mod publish;
mod reasons;
mod subscribe;
mod text;
mod truncated;

use thrum_codec::Version::{V5, V31, V311};
use thrum_codec::{DecodeError, Packet, Version, decode, frame};

pub(crate) const EVERY: &[Version] = &[V31, V311, V5];
pub(crate) const STRICT: &[Version] = &[V311, V5];
pub(crate) const THREE: &[Version] = &[V31, V311];
pub(crate) const FIVE: &[Version] = &[V5];

/// The first byte, the bytes after the fixed header, and the expected error.
pub(crate) type Row<'a> = (u8, &'a [u8], DecodeError);

pub(crate) const fn malformed(cause: &'static str) -> DecodeError {
    DecodeError::Malformed(cause)
}

pub(crate) const fn protocol(cause: &'static str) -> DecodeError {
    DecodeError::Protocol(cause)
}

pub(crate) const TRUNCATED: DecodeError = malformed("field longer than the packet");
pub(crate) const TRAILING: DecodeError = malformed("bytes after the last field");

#[track_caller]
pub(crate) fn refuse(versions: &[Version], rows: &[Row<'_>]) {
    for &version in versions {
        for &(first, body, error) in rows {
            assert_eq!(
                read(version, &framed(first, body)),
                Err(error),
                "{version:?} {first:02X} {}",
                body.escape_ascii(),
            );
        }
    }
}

#[track_caller]
pub(crate) fn accept(versions: &[Version], first: u8, body: &[u8]) {
    for &version in versions {
        let outcome = read(version, &framed(first, body));
        assert_eq!(
            outcome,
            Ok(()),
            "{version:?} {first:02X} {}",
            body.escape_ascii()
        );
    }
}

/// The outcome without the packet.
pub(crate) fn read(version: Version, bytes: &[u8]) -> Result<(), DecodeError> {
    let frame = frame::split(bytes, u32::MAX)?.expect("a whole frame");
    decode(frame, version).map(|_: Packet<'_>| ())
}

/// The body after a fixed header with the matching remaining length.
pub(crate) fn framed(first: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    bytes.extend(variable(body.len()));
    bytes.extend_from_slice(body);
    bytes
}

pub(crate) fn variable(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = u8::try_from(value % 128).expect("below 128");
        value /= 128;
        if value == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}
