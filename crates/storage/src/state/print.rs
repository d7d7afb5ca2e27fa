//! Fingerprints of records that may be written repeatedly.

/// Number of bytes that frame a record.
const FRAME_BYTES: u64 = 8;

/// The fingerprint of a record that may be written repeatedly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Print {
    hash: u64,
    /// Length including the frame; 0 if there is no record.
    pub(super) len: u64,
}

impl Print {
    /// Creates the fingerprint of these bytes with the given hash.
    pub(super) fn new(hash: u64, payload: &[u8]) -> Self {
        let len = record_len(payload);
        Self { hash, len }
    }
}

/// Number of bytes that a record occupies in the log.
pub(super) fn record_len(payload: &[u8]) -> u64 {
    payload.len() as u64 + FRAME_BYTES
}

/// Replaces a fingerprint; returns `false` if it is the same.
pub(super) fn swap(kept: &mut Print, print: Print, live_bytes: &mut u64) -> bool {
    if *kept == print {
        return false;
    }
    *live_bytes = live_bytes.saturating_sub(kept.len) + print.len;
    *kept = print;
    true
}
