//! The beginning of a packet that has not arrived completely.

use std::ops::Range;

/// Bytes that wait for the rest of their packet. Most connections have none most of the time, so
/// the empty value takes one pointer.
#[derive(Debug, Default)]
pub(crate) struct Partial(Option<Box<LeftBytes>>);

/// Bytes behind a held PUBLISH, including the PUBLISH.
#[derive(Debug, Default)]
pub(crate) struct LeftBytes {
    pub(crate) bytes: Vec<u8>,
    /// Length of the packets at the beginning that have been examined and stay.
    pub(crate) seen: usize,
    /// When the bytes were read, in nanoseconds, if whole packets of them wait and messages are
    /// stamped; 0 otherwise.
    pub(crate) read_ns: u64,
    /// When a service was asked about the first packet, likewise; 0 if it was not.
    pub(crate) asked_ns: u64,
}

impl LeftBytes {
    /// Keeps an examined packet, behind the others that stay.
    pub(crate) fn keep(&mut self, packet: Range<usize>) {
        let len = packet.len();
        if packet.start > self.seen {
            self.bytes.copy_within(packet, self.seen);
        }
        self.seen += len;
    }

    /// Moves the unexamined bytes, from that offset on, behind the packets that stay.
    pub(crate) fn close_gap(&mut self, from: usize) {
        self.bytes.drain(self.seen..from);
    }
}

impl Partial {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Takes the bytes.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        self.take_seen().bytes
    }

    /// Replaces the bytes.
    pub(crate) fn put(&mut self, bytes: Vec<u8>) {
        self.put_seen(LeftBytes {
            bytes,
            ..LeftBytes::default()
        });
    }

    /// Takes the bytes, with the length of the examined ones.
    pub(crate) fn take_seen(&mut self) -> LeftBytes {
        self.0.take().map_or_else(LeftBytes::default, |seen| *seen)
    }

    /// Replaces the bytes and the length of the examined ones.
    pub(crate) fn put_seen(&mut self, seen: LeftBytes) {
        self.0 = (!seen.bytes.is_empty()).then(|| Box::new(seen));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_taken_once() {
        let mut partial = Partial::default();
        partial.put(vec![1, 2]);
        assert!(!partial.is_empty());
        assert_eq!(partial.take(), [1, 2]);
        assert!(partial.is_empty() && partial.take().is_empty());
        partial.put(Vec::new());
        assert!(partial.is_empty());
    }

    #[test]
    fn how_much_has_been_looked_at_is_known_until_the_bytes_are_taken_out_to_be_handled() {
        let mut partial = Partial::default();
        let bytes = vec![1, 2, 3];
        partial.put_seen(LeftBytes {
            bytes,
            seen: 2,
            read_ns: 7,
            asked_ns: 9,
        });
        let seen = partial.take_seen();
        assert_eq!((seen.seen, &*seen.bytes), (2, &[1, 2, 3][..]));
        assert_eq!((seen.read_ns, seen.asked_ns), (7, 9));
        partial.put_seen(seen);
        let bytes = partial.take();
        partial.put(bytes);
        assert_eq!(partial.take_seen().seen, 0);
    }
}
