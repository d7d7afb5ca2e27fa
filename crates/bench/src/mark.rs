//! The first sixteen bytes of every payload: who sent it, which one it is, and when it left.
//!
//! The intended send time is not carried: it follows from publisher and sequence (open loop).

/// Bytes of a mark.
pub const MARK_BYTES: usize = 16;

/// What a message says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Number of the publisher in the run, from 0.
    pub publisher: u32,
    /// Number of the message of this publisher, from 0.
    pub sequence: u32,
    /// When it was handed to the socket, in nanoseconds of the machine's monotonic clock.
    pub sent_ns: u64,
}

impl Mark {
    /// Writes the mark over the first bytes of a payload, if it is long enough.
    pub fn write(self, payload: &mut [u8]) {
        if let Some(head) = payload.first_chunk_mut::<MARK_BYTES>() {
            head[..4].copy_from_slice(&self.publisher.to_be_bytes());
            head[4..8].copy_from_slice(&self.sequence.to_be_bytes());
            head[8..].copy_from_slice(&self.sent_ns.to_be_bytes());
        }
    }

    /// Reads the mark of a payload; none if it is too short to have one.
    pub fn read(payload: &[u8]) -> Option<Self> {
        let (publisher, rest) = payload.split_first_chunk::<4>()?;
        let (sequence, rest) = rest.split_first_chunk::<4>()?;
        let sent_ns = rest.first_chunk::<8>()?;
        Some(Self {
            publisher: u32::from_be_bytes(*publisher),
            sequence: u32::from_be_bytes(*sequence),
            sent_ns: u64::from_be_bytes(*sent_ns),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_as_written() {
        let mark = Mark {
            publisher: 7,
            sequence: u32::MAX,
            sent_ns: 1 << 60,
        };
        let mut payload = [0xEE; 20];
        mark.write(&mut payload);
        assert_eq!(Mark::read(&payload), Some(mark));
        assert_eq!(payload[16..], [0xEE; 4]);
    }

    #[test]
    fn a_short_payload_has_no_mark() {
        assert_eq!(Mark::read(&[0; 15]), None);
    }
}
