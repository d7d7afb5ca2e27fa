//! Byte format of segments, groups and records.

use crc32c::{crc32c, crc32c_append};

/// Version of the format; a data directory with a higher one is refused. State in an older format
/// that the current code cannot read is replayed by the code of that format and written again in
/// the current one; the old segments are removed once that is durable.
pub(super) const VERSION: u32 = 1;
pub(super) const SEGMENT_HEADER_LEN: usize = 40;
pub(super) const GROUP_HEADER_LEN: usize = 16;
pub(super) const RECORD_HEADER_LEN: usize = 8;
/// Groups start at multiples of this, so that they can be found quickly after damage.
pub(super) const GROUP_ALIGN: usize = 8;
/// A group contains complete units up to this size, or a single larger unit; reclaiming reads one
/// group at a time.
pub(super) const GROUP_BYTES_MAX: usize = 256 * 1024;

const SEGMENT_MAGIC: [u8; 8] = *b"thrumlog";
const GROUP_MAGIC: [u8; 4] = *b"\xC7thr";
/// Everything before the group was durable when the group was written.
const FLAG_SAFE_BEFORE: u32 = 1;

/// First bytes of a segment, the same in every version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    pub(super) version: u32,
    pub(super) number: u64,
    /// Number of the previous segment; 0 for the first.
    pub(super) previous: u64,
    /// Length of the previous segment; bytes after it are ignored.
    pub(super) previous_len: u64,
}

impl SegmentHeader {
    pub(super) fn encode(&self) -> [u8; SEGMENT_HEADER_LEN] {
        let mut bytes = [0; SEGMENT_HEADER_LEN];
        bytes[..8].copy_from_slice(&SEGMENT_MAGIC);
        bytes[8..12].copy_from_slice(&self.version.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.number.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.previous.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.previous_len.to_le_bytes());
        let check = crc32c(&bytes);
        bytes[12..16].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    /// `None` if the bytes are not a header, or a damaged one.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut bytes = *bytes.first_chunk::<SEGMENT_HEADER_LEN>()?;
        let check = u32_at(&bytes, 12)?;
        bytes[12..16].fill(0);
        if bytes[..8] != SEGMENT_MAGIC || crc32c(&bytes) != check {
            return None;
        }
        Some(Self {
            version: u32_at(&bytes, 8)?,
            number: u64_at(&bytes, 16)?,
            previous: u64_at(&bytes, 24)?,
            previous_len: u64_at(&bytes, 32)?,
        })
    }
}

/// A group according to its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// Offset of its header.
    pub(super) offset: usize,
    /// Length of its records in bytes.
    pub(super) len: usize,
    pub(super) safe_before: bool,
}

impl Group {
    /// The group whose header is at that offset of a segment, if the group including its padding
    /// ends before `limit`.
    pub(super) fn at(segment: &[u8], offset: usize, number: u64, limit: usize) -> Option<Self> {
        let header = segment.get(offset..)?;
        Self::decode(header, number, offset).filter(|group| group.next() <= limit)
    }

    /// Decodes the header of a group.
    pub(super) fn decode(header: &[u8], number: u64, offset: usize) -> Option<Self> {
        let header = header.first_chunk::<GROUP_HEADER_LEN>()?;
        if header[..4] != GROUP_MAGIC {
            return None;
        }
        let (len, flags) = (u32_at(header, 4)?, u32_at(header, 8)?);
        (u32_at(header, 12)? == group_check(number, offset, len, flags)).then_some(Self {
            offset,
            len: len as usize,
            safe_before: flags & FLAG_SAFE_BEFORE != 0,
        })
    }

    /// Offset of its records.
    pub(super) fn start(&self) -> usize {
        self.offset + GROUP_HEADER_LEN
    }

    /// End of its records.
    pub(super) fn end(&self) -> usize {
        self.start().saturating_add(self.len)
    }

    /// Offset of the next group.
    pub(super) fn next(&self) -> usize {
        self.end().next_multiple_of(GROUP_ALIGN)
    }
}

/// Appends a group of records; `offset` is its position in the segment.
pub(super) fn append_group<'a>(
    records: impl Iterator<Item = &'a [u8]>,
    number: u64,
    offset: u64,
    safe_before: bool,
    out: &mut Vec<u8>,
) {
    let start = out.len();
    out.extend_from_slice(&[0; GROUP_HEADER_LEN]);
    let seed = seed(number);
    for payload in records {
        let len = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        let len = len.to_le_bytes();
        out.extend_from_slice(&len);
        out.extend_from_slice(&record_check(seed, len, payload).to_le_bytes());
        out.extend_from_slice(payload);
    }
    let len = u32::try_from(out.len() - start - GROUP_HEADER_LEN).unwrap_or(u32::MAX);
    out.resize(start + (out.len() - start).next_multiple_of(GROUP_ALIGN), 0);
    let flags = if safe_before { FLAG_SAFE_BEFORE } else { 0 };
    let offset = usize::try_from(offset).unwrap_or(usize::MAX);
    let check = group_check(number, offset, len, flags);
    let header = [
        GROUP_MAGIC,
        len.to_le_bytes(),
        flags.to_le_bytes(),
        check.to_le_bytes(),
    ];
    if let Some(place) = out.get_mut(start..start + GROUP_HEADER_LEN) {
        place.copy_from_slice(header.as_flattened());
    }
}

/// A record with a valid checksum.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record<'a> {
    pub(super) payload: &'a [u8],
}

impl Record<'_> {
    /// Its length in the group in bytes, including its header.
    pub(super) fn framed_len(&self) -> usize {
        RECORD_HEADER_LEN + self.payload.len()
    }
}

/// The record at the beginning of these bytes, if its checksum is valid.
pub(super) fn record_at(bytes: &[u8], seed: u32) -> Option<Record<'_>> {
    let (len, check) = (*bytes.first_chunk::<4>()?, u32_at(bytes, 4)?);
    let end = RECORD_HEADER_LEN.checked_add(u32::from_le_bytes(len) as usize)?;
    let payload = bytes.get(RECORD_HEADER_LEN..end)?;
    (record_check(seed, len, payload) == check).then_some(Record { payload })
}

/// Initial value of the checksums of a segment's records.
pub(super) fn seed(number: u64) -> u32 {
    crc32c(&number.to_le_bytes())
}

fn record_check(seed: u32, len: [u8; 4], payload: &[u8]) -> u32 {
    crc32c_append(crc32c_append(seed, &len), payload)
}

fn group_check(number: u64, offset: usize, len: u32, flags: u32) -> u32 {
    let mut check = seed(number);
    check = crc32c_append(check, &(offset as u64).to_le_bytes());
    check = crc32c_append(check, &len.to_le_bytes());
    crc32c_append(check, &flags.to_le_bytes())
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes
        .get(at..)?
        .first_chunk()
        .copied()
        .map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes
        .get(at..)?
        .first_chunk()
        .copied()
        .map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_header_has_these_bytes() {
        let header = SegmentHeader {
            version: 1,
            number: 0x0102,
            previous: 3,
            previous_len: 4,
        };
        let bytes = header.encode();
        assert_eq!(bytes[..12], *b"thrumlog\x01\0\0\0");
        assert_eq!(bytes[16..24], [2, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[24..32], [3, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[32..], [4, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(SegmentHeader::decode(&bytes), Some(header));
        for at in 0..bytes.len() {
            let mut damaged = bytes;
            damaged[at] ^= 4;
            assert_eq!(SegmentHeader::decode(&damaged), None);
        }
    }

    #[test]
    fn a_group_has_these_bytes() {
        let mut bytes = Vec::new();
        let records = [&b"abc"[..], b"d"];
        append_group(records.into_iter(), 5, 40, true, &mut bytes);
        assert_eq!(bytes[..12], *b"\xC7thr\x14\0\0\0\x01\0\0\0");
        assert_eq!(bytes[16..20], [3, 0, 0, 0]);
        assert_eq!(bytes[24..27], *b"abc");
        assert_eq!(bytes[27..31], [1, 0, 0, 0]);
        assert_eq!(bytes[35..], *b"d\0\0\0\0");
        assert_eq!(bytes.len() % GROUP_ALIGN, 0);
    }

    #[test]
    fn a_group_is_invalid_in_another_segment_or_position() {
        let mut bytes = vec![0; 40];
        append_group([&b"abc"[..]].into_iter(), 5, 40, true, &mut bytes);
        let end = bytes.len();
        assert!(Group::at(&bytes, 40, 5, end).is_some());
        assert!(Group::at(&bytes, 40, 6, end).is_none());
        assert!(Group::decode(&bytes[40..], 5, 48).is_none());
        assert!(record_at(&bytes[56..], seed(5)).is_some());
        assert!(record_at(&bytes[56..], seed(6)).is_none());
    }
}
