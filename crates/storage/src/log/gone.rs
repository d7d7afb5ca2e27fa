//! Detection of lost parts of the log: segments that are missing, or shorter than recorded
//! elsewhere.
//!
//! The end of a sealed segment is recorded in the header of the next one. The end of the newest
//! segment is recorded in a separate file after commits that are durable: never ahead of them, and
//! at most a few commits behind.

use super::open::LogReport;
use crate::disk::{Disk, File, ReadDisk, read_full, write_all};
use crc32c::crc32c;

/// Number of parts that are listed individually; further ones are only counted.
const LISTED_MAX: usize = 100;
/// Name of the file with the end of the newest segment.
pub(super) const END: &str = "end";
const END_MAGIC: [u8; 8] = *b"thrumend";
pub(super) const END_LEN: usize = 36;

/// A lost part of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone {
    /// Number of the segment.
    pub segment: u64,
    /// Kind of loss.
    pub what: Loss,
    /// Minimum number of lost bytes.
    pub bytes: u64,
    /// Minimum number of lost records; 0 if it is unknown.
    pub records: u64,
}

/// Kind of loss of a part of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The file does not exist.
    Missing,
    /// The file is shorter than its content was, or has zeros in place of its content.
    Shortened,
}

/// The durable end of the newest segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct End {
    pub(super) segment: u64,
    pub(super) len: u64,
    pub(super) records: u64,
}

/// A segment in its present state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FoundSegment {
    pub(super) number: u64,
    /// End of its content.
    pub(super) len: u64,
    pub(super) records: u64,
}

impl LogReport {
    /// Counts a lost part.
    pub(crate) fn note_gone(&mut self, gone: Gone) {
        self.gone_count += 1;
        self.gone_bytes += gone.bytes;
        if self.gone.len() < LISTED_MAX {
            self.gone.push(gone);
        }
    }

    /// Counts a missing segment that another one refers to.
    pub(super) fn note_missing(&mut self, segment: u64, bytes: u64) {
        self.note_gone(Gone {
            segment,
            what: Loss::Missing,
            bytes,
            records: 0,
        });
    }

    /// Compares the newest segment with its recorded end.
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

    /// Checks the segment before the oldest existing one: up to `reclaimed` they were removed, if
    /// that is known. If other parts are damaged or lost, that record may be lost as well.
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

    /// `None` if the bytes are not a complete record of the end.
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

    /// Reads the last recorded end; `None` in a directory of a version that did not record it, in a
    /// backup, or if it cannot be read.
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

    /// Records the durable end. It is not synced: after a power failure it may be outdated, but not
    /// wrong.
    pub(super) fn note<D: Disk<File = F>>(&mut self, disk: &D, end: End) {
        if self.noted == Some(end) {
            return;
        }
        if self.file.is_none() {
            self.file = disk.open(END).or_else(|_| disk.create(END)).ok();
        }
        let file = self.file.as_ref();
        // Without the record fewer losses can be detected, but no data is lost.
        let written = file.is_some_and(|file| write_all(file, &end.encode(), 0).is_ok());
        self.noted = written.then_some(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_has_exactly_these_bytes() {
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

    const NOTED: End = End {
        segment: 5,
        len: 1000,
        records: 30,
    };

    fn gone(end: Option<End>, newest: (u64, u64, u64)) -> Vec<Gone> {
        let (number, len, records) = newest;
        let mut report = LogReport::default();
        let found = FoundSegment {
            number,
            len,
            records,
        };
        report.compare_end(end, found);
        assert_eq!(report.gone_count, report.gone.len() as u64);
        assert_eq!(report.is_damaged(), !report.gone.is_empty());
        report.gone
    }

    #[test]
    fn the_newest_segment_is_compared_with_the_noted_end() {
        let of = |what, bytes, records| Gone {
            segment: 5,
            what,
            bytes,
            records,
        };
        assert_eq!(gone(None, (4, 10, 1)), []);
        assert_eq!(gone(Some(NOTED), (5, 1000, 30)), []);
        assert_eq!(gone(Some(NOTED), (5, 1001, 31)), []);
        assert_eq!(gone(Some(NOTED), (6, 10, 1)), []);
        let missing = of(Loss::Missing, 1000, 30);
        assert_eq!(gone(Some(NOTED), (4, 5000, 99)), [missing]);
        assert_eq!(gone(Some(NOTED), (0, 0, 0)), [missing]);
        let shortened = of(Loss::Shortened, 1, 2);
        assert_eq!(gone(Some(NOTED), (5, 999, 28)), [shortened]);
        // A damaged group may contain more records than were counted.
        assert_eq!(gone(Some(NOTED), (5, 999, 31)), [of(Loss::Shortened, 1, 0)]);
    }

    #[test]
    fn the_segment_before_the_oldest_is_missing_unless_it_was_reclaimed() {
        let missed = |before_oldest, reclaimed| {
            let mut report = LogReport {
                before_oldest,
                ..LogReport::default()
            };
            report.compare_oldest(reclaimed);
            report.gone
        };
        let missing = Gone {
            segment: 5,
            what: Loss::Missing,
            bytes: 70,
            records: 0,
        };
        assert_eq!(missed(Some((5, 70)), Some(4)), [missing]);
        assert_eq!(missed(Some((5, 70)), Some(5)), []);
        assert_eq!(missed(Some((5, 70)), None), []);
        assert_eq!(missed(None, Some(4)), []);
        // The record of the reclaimed segments may be the damaged one.
        let mut report = LogReport {
            before_oldest: Some((5, 70)),
            damaged_count: 1,
            ..LogReport::default()
        };
        report.compare_oldest(Some(4));
        assert_eq!(report.gone, []);
    }

    #[test]
    fn the_first_hundred_losses_are_listed_and_all_are_counted() {
        let mut report = LogReport::default();
        assert!(!report.is_damaged());
        for segment in 1..=101 {
            report.note_missing(segment, 10);
        }
        assert_eq!((report.gone.len(), report.gone_count), (100, 101));
        assert_eq!(report.gone_bytes, 1010);
        let mut report = LogReport::default();
        for offset in 1..=101 {
            let is_listed = report.note(crate::log::Damage {
                segment: 1,
                offset,
                len: 10,
            });
            assert_eq!(is_listed, offset <= 100);
        }
        assert_eq!((report.damaged.len(), report.damaged_count), (100, 101));
        assert_eq!(report.damaged_bytes, 1010);
        assert!(report.is_damaged());
    }

    #[test]
    fn an_end_is_written_once_and_again_after_a_failed_write() {
        use crate::disk::sim::{Faults, SimStorage};
        let storage = SimStorage::new(1);
        let disk = storage.open().unwrap();
        let mut file = EndFile::new();
        file.note(&disk, NOTED);
        assert_eq!(End::read(&disk), Some(NOTED));
        let changes = storage.changes();
        file.note(&disk, NOTED);
        assert_eq!(
            storage.changes(),
            changes,
            "the same end was written before"
        );
        storage.set_faults(Faults {
            write_errors: 1000,
            ..Faults::default()
        });
        let next = End { len: 2000, ..NOTED };
        file.note(&disk, next);
        storage.set_faults(Faults::default());
        file.note(&disk, next);
        assert_eq!(End::read(&disk), Some(next));
    }
}
