//! What the log once held and does not hold any more: segments that are missing or shorter than
//! others say.
//!
//! The end of a sealed segment stands in the header of the next one. That of the newest stands in a
//! file beside the segments, written behind commits that are safe: never ahead of them, and behind
//! them by a few at most.

use super::open::LogReport;
use crate::disk::{Disk, File, ReadDisk, read_full, write_all};
use crc32c::crc32c;

/// Parts that are listed one by one; beyond they are only counted.
const LISTED_MAX: usize = 100;
/// Name of the file with the end of the newest segment.
pub(super) const END: &str = "end";
const END_MAGIC: [u8; 8] = *b"thrumend";
pub(super) const END_LEN: usize = 36;

/// A part of the log that is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone {
    /// Number of the segment.
    pub segment: u64,
    /// How one knows.
    pub what: Loss,
    /// Bytes that are gone at least.
    pub bytes: u64,
    /// Records that are gone at least; 0 where nothing says how many there were.
    pub records: u64,
}

/// How a part of the log is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// There is no such file.
    Missing,
    /// The file ends before its content did, or zeros stand where its content was.
    Shortened,
}

/// Up to where the newest segment was safe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct End {
    pub(super) segment: u64,
    pub(super) len: u64,
    pub(super) records: u64,
}

/// A segment as it was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FoundSegment {
    pub(super) number: u64,
    /// Where its content ends.
    pub(super) len: u64,
    pub(super) records: u64,
}

impl LogReport {
    /// Counts a part that is gone.
    pub(crate) fn note_gone(&mut self, gone: Gone) {
        self.gone_count += 1;
        self.gone_bytes += gone.bytes;
        if self.gone.len() < LISTED_MAX {
            self.gone.push(gone);
        }
    }

    /// A segment is missing that another one names.
    pub(super) fn note_missing(&mut self, segment: u64, bytes: u64) {
        self.note_gone(Gone {
            segment,
            what: Loss::Missing,
            bytes,
            records: 0,
        });
    }

    /// Compares the newest segment with what was noted of its end.
    pub(crate) fn compare_end(&mut self, end: Option<End>, newest: FoundSegment) {
        let Some(end) = end else { return };
        let (what, before) = match end.segment {
            segment if segment > newest.number => (Loss::Missing, FoundSegment::default()),
            segment if segment == newest.number && newest.len < end.len => {
                (Loss::Shortened, newest)
            }
            _ => return,
        };
        self.note_gone(Gone {
            segment: end.segment,
            what,
            bytes: end.len - before.len,
            records: end.records.saturating_sub(before.records),
        });
    }

    /// The oldest segment that is there names one before it; up to `reclaimed` they were given
    /// back, if that is known. Where something else is damaged or gone, that record may be as well.
    pub(crate) fn compare_oldest(&mut self, reclaimed: Option<u64>) {
        if let (Some((segment, bytes)), Some(reclaimed)) = (self.before_oldest, reclaimed)
            && segment > reclaimed
            && !self.is_damaged()
        {
            self.note_missing(segment, bytes);
        }
    }
}

impl End {
    pub(super) fn encode(self) -> [u8; END_LEN] {
        let mut bytes = [0; END_LEN];
        bytes[..8].copy_from_slice(&END_MAGIC);
        bytes[12..20].copy_from_slice(&self.segment.to_le_bytes());
        bytes[20..28].copy_from_slice(&self.len.to_le_bytes());
        bytes[28..].copy_from_slice(&self.records.to_le_bytes());
        let check = crc32c(&bytes);
        bytes[8..12].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    /// None if the bytes are no note, or half of one.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut bytes = *bytes.first_chunk::<END_LEN>()?;
        let check = *bytes.get(8..12)?.first_chunk()?;
        bytes[8..12].fill(0);
        if bytes[..8] != END_MAGIC || crc32c(&bytes) != u32::from_le_bytes(check) {
            return None;
        }
        let number = |at: usize| {
            let field = bytes.get(at..)?.first_chunk().copied()?;
            Some(u64::from_le_bytes(field))
        };
        Some(Self {
            segment: number(12)?,
            len: number(20)?,
            records: number(28)?,
        })
    }

    /// What was noted last; none in a folder of a version that did not, in a backup, or if it
    /// cannot be read.
    pub(crate) fn read(disk: &impl ReadDisk) -> Option<Self> {
        let mut bytes = [0; END_LEN];
        let read = read_full(&disk.open(END).ok()?, &mut bytes, 0).ok()?;
        Self::decode(bytes.get(..read)?)
    }
}

/// The file with the end of the newest segment.
#[derive(Debug)]
pub(super) struct EndFile<F> {
    file: Option<F>,
    noted: Option<End>,
}

impl<F: File> EndFile<F> {
    pub(super) fn new() -> Self {
        Self {
            file: None,
            noted: None,
        }
    }

    /// Notes what is safe. It is not synced: after a loss of power it says less, and nothing wrong.
    pub(super) fn note<D: Disk<File = F>>(&mut self, disk: &D, end: End) {
        if self.noted == Some(end) {
            return;
        }
        if self.file.is_none() {
            self.file = disk.open(END).or_else(|_| disk.create(END)).ok();
        }
        let file = self.file.as_ref();
        // Without the note less is known about losses, and nothing is lost.
        let written = file.is_some_and(|file| write_all(file, &end.encode(), 0).is_ok());
        self.noted = written.then_some(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_has_these_bytes_and_no_other_ones() {
        let end = End {
            segment: 0x0102,
            len: 3,
            records: 4,
        };
        let bytes = end.encode();
        assert_eq!(bytes[..8], *b"thrumend");
        assert_eq!(bytes[12..20], [2, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[20..28], [3, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[28..], [4, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(End::decode(&bytes), Some(end));
        for at in 0..bytes.len() {
            let mut damaged = bytes;
            damaged[at] ^= 4;
            assert_eq!(End::decode(&damaged), None);
            assert_eq!(End::decode(&bytes[..at]), None);
        }
    }
}
