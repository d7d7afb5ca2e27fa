//! Bytes of a peer that are not yet a whole record.

/// Type, version and length.
const HEADER_BYTES: usize = 5;

/// Bytes that wait for the rest of a record or of a handshake message; an idle connection holds
/// none.
///
/// The library needs to see the same bytes again until it has discarded them, so whole records are
/// kept too while they are a part of an unfinished handshake message.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    bytes: Vec<u8>,
    /// Start of the incomplete record.
    record_start: usize,
}

impl Incoming {
    pub(super) const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) const fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Moves bytes from the front of the input, up to the end of the incomplete record.
    ///
    /// The others stay where they are, to be decrypted there without a copy.
    pub(super) fn take_from<'i>(&mut self, input: &'i mut [u8]) -> &'i mut [u8] {
        let mut rest = input;
        // Once for the header, once for the announced length.
        for _ in 0..2 {
            let record = self.bytes.get(self.record_start..).unwrap_or_default();
            let lack = record_len(record).unwrap_or(HEADER_BYTES) - record.len();
            let (now, later) = rest.split_at_mut(lack.min(rest.len()));
            self.bytes.extend_from_slice(now);
            rest = later;
        }
        let record = self.bytes.get(self.record_start..).unwrap_or_default();
        if record_len(record) == Some(record.len()) {
            self.record_start = self.bytes.len();
        }
        rest
    }

    /// Forgets the first bytes.
    pub(super) fn discard(&mut self, bytes: usize) {
        if bytes >= self.bytes.len() {
            self.clear();
            return;
        }
        self.bytes.drain(..bytes);
        self.record_start = self.record_start.saturating_sub(bytes);
    }

    /// Keeps the undiscarded part of input whose last record begins at `record_start`.
    pub(super) fn hold(&mut self, rest: &[u8], record_start: usize) {
        self.bytes.extend_from_slice(rest);
        self.record_start = record_start;
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// Start of the first incomplete record.
pub(super) fn whole_records(bytes: &[u8]) -> usize {
    let mut end = 0;
    while let Some(rest) = bytes.get(end..)
        && let Some(len) = record_len(rest)
        && len <= rest.len()
    {
        end += len;
    }
    end
}

/// Length of the record at the start of these bytes with its header; none before that is complete.
fn record_len(bytes: &[u8]) -> Option<usize> {
    let (_, length) = bytes.first_chunk::<HEADER_BYTES>()?.split_last_chunk()?;
    Some(HEADER_BYTES + usize::from(u16::from_be_bytes(*length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(payload: &[u8]) -> Vec<u8> {
        let len = u8::try_from(payload.len()).unwrap();
        [&[23, 3, 3, 0, len], payload].concat()
    }

    #[test]
    fn only_the_rest_of_a_record_is_taken() {
        let mut wire = [record(b"one"), record(b""), record(b"three")].concat();
        let whole = whole_records(&wire[..15]);
        assert_eq!(whole, 13);
        let (mut incoming, start) = (Incoming::default(), whole);
        incoming.hold(&wire[start..15], 0);
        let rest = incoming.take_from(&mut wire[15..]);
        assert_eq!(rest, b"");
        assert_eq!(incoming.bytes_mut(), record(b"three"));
        incoming.discard(10);
        assert!(incoming.is_empty());
    }

    #[test]
    fn bytes_after_the_record_stay() {
        let mut wire = [record(b"one"), record(b"two")].concat();
        for cut in 1..8 {
            let mut incoming = Incoming::default();
            incoming.hold(&wire[..cut], 0);
            let rest = incoming.take_from(&mut wire[cut..]);
            assert_eq!(rest, record(b"two"), "cut at {cut}");
            assert_eq!(incoming.bytes_mut(), record(b"one"));
            // The next one is taken as a whole, though nothing was discarded.
            let mut second = record(b"two!");
            let rest = incoming.take_from(&mut second);
            assert_eq!(rest, b"");
            assert_eq!(incoming.len(), 8 + 9);
        }
    }

    #[test]
    fn bytes_that_come_alone_are_joined() {
        let mut incoming = Incoming::default();
        for mut byte in record(b"alone") {
            assert_eq!(incoming.take_from(std::slice::from_mut(&mut byte)), b"");
        }
        assert_eq!(incoming.bytes_mut(), record(b"alone"));
    }
}
