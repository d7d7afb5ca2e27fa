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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_print_changes_the_live_bytes_by_the_difference() {
        let mut live_bytes = 100;
        let mut kept = Print::default();
        let first = Print::new(1, b"12");
        assert_eq!(first.len, 10, "two bytes and their frame");
        assert!(swap(&mut kept, first, &mut live_bytes));
        assert_eq!(live_bytes, 110);
        assert!(!swap(&mut kept, first, &mut live_bytes));
        assert!(swap(&mut kept, Print::new(2, b"12345"), &mut live_bytes));
        assert_eq!(live_bytes, 113);
        assert!(swap(&mut kept, Print::default(), &mut live_bytes));
        assert_eq!((live_bytes, kept), (100, Print::default()));
    }
}
