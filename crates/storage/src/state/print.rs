//! Fingerprints of records that may be written again.

/// Bytes that frame a record.
const FRAME_BYTES: u64 = 8;

/// What is left in memory of a record that may be written again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Print {
    hash: u64,
    /// With its frame; 0 if there is no record.
    pub(super) len: u64,
}

impl Print {
    /// Of these bytes, whose hash is given.
    pub(super) fn new(hash: u64, payload: &[u8]) -> Self {
        let len = record_len(payload);
        Self { hash, len }
    }
}

/// Bytes a record takes in the log.
pub(super) fn record_len(payload: &[u8]) -> u64 {
    payload.len() as u64 + FRAME_BYTES
}

/// Puts a fingerprint in the place of another; false if it is the same.
pub(super) fn swap(kept: &mut Print, print: Print, live_bytes: &mut u64) -> bool {
    if *kept == print {
        return false;
    }
    *live_bytes = live_bytes.saturating_sub(kept.len) + print.len;
    *kept = print;
    true
}
