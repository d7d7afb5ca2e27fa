//! Finds the valid segments, reads them oldest first, and makes their content durable.

use std::collections::VecDeque;
use std::io;

use super::LogOptions;
use super::format::{SEGMENT_HEADER_LEN, SegmentHeader, VERSION};
use super::gone::{End, FoundSegment, Gone, Loss};
use super::reserve::Reserve;
use super::ring::{Log, Sealed, Spares, segment_name};
use super::scan::{Extent, Found, Scanned, scan};
use super::spare::{READY, Spare, UNFINISHED};
use super::tolerant::read_tolerant;
use crate::disk::{Disk, File, QUARANTINE, ReadDisk, write_all};

/// Number of damaged places that are listed and saved individually; further ones are only counted.
const LISTED_MAX: usize = 100;

/// A damaged place of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Number of the segment.
    pub segment: u64,
    /// Its offset in the segment in bytes.
    pub offset: u64,
    /// Its length in bytes.
    pub len: u64,
}

/// Result of reading the log at the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogReport {
    /// Number of segments read.
    pub segments: usize,
    /// Number of records read.
    pub records: u64,
    /// Number of bytes read.
    pub bytes: u64,
    /// Bytes of the last commit that were cut because it was never finished, and so never
    /// acknowledged.
    pub torn_bytes: u64,
    /// The first hundred damaged places; each is saved as `quarantine/<segment>-<offset>` and no
    /// longer used.
    pub damaged: Vec<Damage>,
    /// Number of all damaged places.
    pub damaged_count: u64,
    /// Number of bytes in them.
    pub damaged_bytes: u64,
    /// Number of bytes that the disk could not read; they also count as damaged if they had
    /// content.
    pub unreadable_bytes: u64,
    /// The first hundred lost parts of the log.
    pub gone: Vec<Gone>,
    /// Number of all lost parts.
    pub gone_count: u64,
    /// Minimum number of bytes in them.
    pub gone_bytes: u64,
    /// The segment before the oldest existing one, according to its header, and its length.
    pub(super) before_oldest: Option<(u64, u64)>,
}

impl LogReport {
    /// Whether acknowledged data may be missing.
    pub fn is_damaged(&self) -> bool {
        self.damaged_count > 0 || self.gone_count > 0
    }

    /// Counts a damaged place; returns whether it is listed.
    pub(super) fn note(&mut self, damage: Damage) -> bool {
        self.damaged_count += 1;
        self.damaged_bytes += damage.len;
        let is_listed = self.damaged.len() < LISTED_MAX;
        if is_listed {
            self.damaged.push(damage);
        }
        is_listed
    }
}

/// Reason why the log cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A later version wrote it.
    #[error(
        "the data directory has format {found} and this version supports formats up to {VERSION}; \
         run the version that wrote it, or name another data directory"
    )]
    Newer {
        /// Version of its format.
        found: u32,
    },
    /// The disk returned an error.
    #[error("the data directory cannot be read; check the disk and its permissions")]
    Io(#[from] io::Error),
}

/// The file of a segment before it is read.
pub(super) struct Candidate<F> {
    pub(super) number: u64,
    pub(super) file: F,
    pub(super) header: Option<SegmentHeader>,
}

/// Knowledge about the segment before the one just accepted.
#[derive(Clone, Copy)]
enum Before {
    /// No segment has been accepted yet.
    Newest,
    /// Its number and length.
    Known(u64, u64),
    /// The header with its number and length is damaged.
    Unknown,
}

impl<D: Disk> Log<D> {
    /// Reads the log; `visit` gets every valid record, oldest first, and returns whether the record
    /// can be decoded.
    pub(crate) fn open(
        disk: D,
        options: LogOptions,
        visit: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<(Self, LogReport), OpenError> {
        let names = disk.list()?;
        let numbers = numbers_of(&names);
        let next_number = numbers.last().map_or(1, |last| last + 1);
        let end = End::read(&disk);
        let mut candidates = Vec::new();
        for number in numbers {
            candidates.push(candidate(&disk, number)?);
        }
        let mut report = LogReport::default();
        let mut sealed = VecDeque::new();
        let mut newest = None;
        let mut buffer = Vec::new();
        let chain = chain(candidates);
        for &(number, len) in &chain.missing {
            report.note_missing(number, len);
        }
        report.before_oldest = chain.before_oldest();
        for (candidate, extent) in chain.segments {
            let read = Reading {
                disk: &disk,
                report: &mut report,
                visit: &mut *visit,
            };
            let (segment, tail) = read.segment(&candidate, extent, &mut buffer)?;
            sealed.push_back(segment);
            newest = Some((candidate.file, tail));
        }
        let found = sealed.back().map(|last| FoundSegment {
            number: last.number,
            len: last.len,
            records: newest.as_ref().map_or(0, |(_, tail)| tail.records),
        });
        report.compare_end(end, found.unwrap_or_default());
        for number in chain.superfluous {
            disk.remove(&segment_name(number))?;
        }
        let spares = Spares {
            spare: find_spare(&disk, &names, &options)?,
            reserve: Reserve::find(&disk, &names)?,
        };
        disk.sync_dir()?;
        let next_number = next_number.max(beyond(end));
        let mut log = Self::new(disk, options, sealed, next_number, spares);
        if let Some((file, tail)) = newest {
            log.continue_in(file, tail)?;
        }
        Ok((log, report))
    }
}

/// A used number is not reused, even if its segment is lost.
fn beyond(end: Option<End>) -> u64 {
    end.map_or(0, |end| end.segment + 1)
}

/// The end of the newest segment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tail {
    pub(super) records: u64,
    /// Number of bytes of the torn commit that were cut.
    pub(super) torn_bytes: u64,
    /// Whether the content ends where the file says, so that writing can continue there.
    pub(super) is_clear: bool,
}

/// Numbers of the segments among these files, in ascending order.
pub(super) fn numbers_of(names: &[String]) -> Vec<u64> {
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| number_of(name)).collect();
    numbers.sort_unstable();
    numbers
}

/// Number of the segment in the file of that name.
pub(super) fn number_of(name: &str) -> Option<u64> {
    let number = name.strip_suffix(".log")?.parse().ok()?;
    (segment_name(number) == name).then_some(number)
}

pub(super) fn candidate<D: ReadDisk>(
    disk: &D,
    number: u64,
) -> Result<Candidate<D::File>, OpenError> {
    let file = disk.open(&segment_name(number))?;
    let mut bytes = Vec::new();
    read_tolerant(&file, SEGMENT_HEADER_LEN as u64, &mut bytes);
    let header = SegmentHeader::decode(&bytes);
    check_version(header)?;
    Ok(Candidate {
        number,
        file,
        header,
    })
}

/// Checks that this version can read the segment.
pub(super) fn check_version(header: Option<SegmentHeader>) -> Result<(), OpenError> {
    match header {
        Some(header) if header.version > VERSION => Err(OpenError::Newer {
            found: header.version,
        }),
        _ => Ok(()),
    }
}

/// The valid segments, and information about others.
pub(super) struct Chain<F> {
    /// The segments, oldest first, each with its valid extent.
    pub(super) segments: Vec<(Candidate<F>, Extent)>,
    /// Files without content.
    pub(super) superfluous: Vec<u64>,
    /// Number and length of segments that the header of the next one refers to and that do not
    /// exist, although older ones do.
    pub(super) missing: Vec<(u64, u64)>,
}

impl<F> Chain<F> {
    /// The segment that the oldest one refers to.
    pub(super) fn before_oldest(&self) -> Option<(u64, u64)> {
        let header = self.segments.first()?.0.header?;
        (header.previous != 0).then_some((header.previous, header.previous_len))
    }
}

/// Follows the headers from the newest segment to the oldest.
pub(super) fn chain<F: File>(candidates: Vec<Candidate<F>>) -> Chain<F> {
    let mut chain = Chain {
        segments: Vec::new(),
        superfluous: Vec::new(),
        missing: Vec::new(),
    };
    let mut before = Before::Newest;
    for candidate in candidates.into_iter().rev() {
        let number = candidate.number;
        let is_named = matches!(before, Before::Known(known, _) if number == known);
        let is_abandoned = matches!(before, Before::Known(known, _) if number > known);
        if is_abandoned || (!is_named && is_empty(&candidate)) {
            chain.superfluous.push(number);
            continue;
        }
        // Only the oldest segment is ever removed: if an older one exists, the missing one was
        // lost.
        if let Before::Known(known, len) = before
            && number < known
        {
            chain.missing.push((known, len));
        }
        let extent = match before {
            Before::Newest => Extent::Open,
            Before::Known(known, len) if known == number => Extent::Sealed(len),
            Before::Known(..) | Before::Unknown => Extent::SealedSomewhere,
        };
        before = match candidate.header {
            Some(header) => Before::Known(header.previous, header.previous_len),
            None => Before::Unknown,
        };
        chain.segments.push((candidate, extent));
    }
    chain.segments.reverse();
    chain
}

/// Whether the file has no valid content: it was renamed for reuse and never written, or its first
/// commit is torn. A file whose header was damaged later has a first group, or one that records
/// that everything before it was durable.
fn is_empty<F: File>(candidate: &Candidate<F>) -> bool {
    if let Some(header) = candidate.header {
        return header.number != candidate.number;
    }
    let mut bytes = Vec::new();
    let size = candidate.file.size().unwrap_or(0);
    read_tolerant(&candidate.file, size, &mut bytes);
    let (start, extent) = (SEGMENT_HEADER_LEN, Extent::Open);
    scan(&bytes, candidate.number, start, extent, &mut |_| ()).end == SEGMENT_HEADER_LEN
}

fn find_spare<D: Disk>(
    disk: &D,
    names: &[String],
    options: &LogOptions,
) -> io::Result<Spare<D::File>> {
    if names.iter().any(|name| name == UNFINISHED) {
        disk.remove(UNFINISHED)?;
    }
    if !names.iter().any(|name| name == READY) {
        return Ok(Spare::None);
    }
    if disk.open(READY)?.size()? == options.segment_bytes {
        return Ok(Spare::Ready);
    }
    disk.remove(READY)?;
    Ok(Spare::None)
}

/// Makes the end of the log durable, which may exist only in the page cache.
///
/// It is written again instead of only synced: if a sync failed before the last process ended, its
/// pages count as clean, and another sync would do nothing.
fn make_safe<F: File>(file: &F, bytes: &[u8], scanned: &Scanned) -> io::Result<()> {
    let start = match scanned.safe_until {
        // The header was written with the first group.
        SEGMENT_HEADER_LEN => 0,
        safe_until => safe_until,
    };
    let end = bytes.get(start..scanned.end).unwrap_or_default();
    write_all(file, end, start as u64)?;
    file.sync()
}

struct Reading<'a, D> {
    disk: &'a D,
    report: &'a mut LogReport,
    visit: &'a mut dyn FnMut(&[u8]) -> bool,
}

impl<D: Disk> Reading<'_, D> {
    fn segment(
        mut self,
        candidate: &Candidate<D::File>,
        extent: Extent,
        buffer: &mut Vec<u8>,
    ) -> io::Result<(Sealed, Tail)> {
        let size = candidate.file.size()?;
        let wanted = match extent {
            Extent::Sealed(len) => len.min(size),
            Extent::SealedSomewhere | Extent::Open => size,
        };
        let unreadable = read_tolerant(&candidate.file, wanted, buffer);
        self.report.unreadable_bytes += unreadable;
        // If sectors are missing, an end that looks torn may have been acknowledged.
        let extent = match extent {
            Extent::Open if unreadable > 0 => Extent::SealedSomewhere,
            extent => extent,
        };
        let number = candidate.number;
        let mut damage = Vec::new();
        let mut records = 0;
        let visit = &mut self.visit;
        let scanned = scan(
            buffer,
            number,
            SEGMENT_HEADER_LEN,
            extent,
            &mut |found| match found {
                Found::Record { offset, payload } => {
                    records += 1;
                    if !visit(payload) {
                        damage.push((offset, payload.len()));
                    }
                }
                Found::Damaged { offset, len } => damage.push((offset, len)),
            },
        );
        for (offset, len) in damage {
            self.damaged(number, offset, len, buffer);
        }
        if candidate.header.is_none() && !buffer.is_empty() {
            self.damaged(number, 0, SEGMENT_HEADER_LEN, buffer);
        }
        let len = self.end(number, extent, &scanned, buffer);
        if extent == Extent::Open {
            make_safe(&candidate.file, buffer, &scanned)?;
        }
        self.report.segments += 1;
        self.report.records += records;
        self.report.bytes += len;
        self.report.torn_bytes += scanned.torn_bytes as u64;
        let tail = Tail {
            records,
            torn_bytes: scanned.torn_bytes as u64,
            is_clear: extent == Extent::Open,
        };
        Ok((Sealed { number, len, size }, tail))
    }

    /// Determines the end of the segment's content; if the file is shorter than recorded, the rest
    /// is lost.
    fn end(&mut self, number: u64, extent: Extent, scanned: &Scanned, buffer: &[u8]) -> u64 {
        match extent {
            Extent::Sealed(len) => {
                let found = buffer.len() as u64;
                if found < len {
                    self.report.note_gone(Gone {
                        segment: number,
                        what: Loss::Shortened,
                        bytes: len - found,
                        records: 0,
                    });
                }
                len
            }
            Extent::SealedSomewhere | Extent::Open => scanned.end as u64,
        }
    }

    fn damaged(&mut self, segment: u64, offset: usize, len: usize, bytes: &[u8]) {
        let is_listed = self.report.note(Damage {
            segment,
            offset: offset as u64,
            len: len as u64,
        });
        if !is_listed {
            return;
        }
        let damaged = bytes.get(offset..).unwrap_or_default();
        let damaged = damaged.get(..len).unwrap_or(damaged);
        let name = format!("{QUARANTINE}/{segment:020}-{offset:010}");
        // The copy is only for inspection; the place is reported even without it.
        let saved = self
            .disk
            .create(&name)
            .and_then(|file| write_all(&file, damaged, 0));
        saved.unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::super::format::append_group;
    use super::*;
    use crate::disk::sim::SimStorage;

    #[test]
    fn only_files_with_the_whole_name_of_a_segment_are_segments() {
        assert_eq!(number_of("00000000000000000012.log"), Some(12));
        for name in [
            "12.log",
            "00000000000000000012",
            "0000000000000000001x.log",
            "spare",
            ".log",
        ] {
            assert_eq!(number_of(name), None, "{name}");
        }
        let names = [9, 2, 11].map(segment_name);
        assert_eq!(numbers_of(&names), [2, 9, 11]);
    }

    #[test]
    fn the_next_segment_has_a_number_above_the_noted_end() {
        assert_eq!(beyond(None), 0);
        let end = End {
            segment: 7,
            ..End::default()
        };
        assert_eq!(beyond(Some(end)), 8);
    }

    /// A segment file: its number, and the number and length of the previous segment as its header
    /// names them; none without a header.
    type Listed = (u64, Option<(u64, u64)>);

    /// The segments that count, those without content, and those that are missing.
    type Chained = (Vec<(u64, Extent)>, Vec<u64>, Vec<(u64, u64)>);

    /// A file without header has a group with a record, or nothing if its number is above 100.
    fn chained(listed: &[Listed]) -> Chained {
        let storage = SimStorage::new(1);
        let disk = storage.open().unwrap();
        for &(number, before) in listed {
            let mut bytes = vec![0; SEGMENT_HEADER_LEN];
            if let Some((previous, previous_len)) = before {
                let header = SegmentHeader {
                    version: VERSION,
                    number,
                    previous,
                    previous_len,
                };
                bytes.copy_from_slice(&header.encode());
            }
            if number <= 100 {
                let offset = SEGMENT_HEADER_LEN as u64;
                append_group(std::iter::once(&b"a"[..]), number, offset, true, &mut bytes);
            }
            storage.put(&segment_name(number), &bytes);
        }
        let candidates = listed
            .iter()
            .map(|&(number, _)| candidate(&disk, number).unwrap());
        let chain = chain(candidates.collect());
        let segments = chain.segments.iter();
        let segments = segments.map(|(candidate, extent)| (candidate.number, *extent));
        (
            segments.collect(),
            chain.superfluous.clone(),
            chain.missing.clone(),
        )
    }

    #[test]
    fn each_segment_names_the_end_of_the_segment_before_it() {
        use Extent::{Open, Sealed, SealedSomewhere};
        let of = |listed: &[Listed]| chained(listed);
        assert_eq!(of(&[]), (vec![], vec![], vec![]));
        let whole = of(&[(1, Some((0, 0))), (2, Some((1, 70))), (3, Some((2, 80)))]);
        let segments = vec![(1, Sealed(70)), (2, Sealed(80)), (3, Open)];
        assert_eq!(whole, (segments, vec![], vec![]));
        // A segment without header names no end, and no segment is known to be missing before it.
        let damaged = of(&[(1, Some((0, 0))), (3, None), (4, Some((3, 90)))]);
        let segments = vec![(1, SealedSomewhere), (3, Sealed(90)), (4, Open)];
        assert_eq!(damaged, (segments, vec![], vec![]));
        // A segment that no other names was abandoned before its content was safe.
        let abandoned = of(&[(1, Some((0, 0))), (2, Some((1, 5))), (3, Some((1, 70)))]);
        let segments = vec![(1, Sealed(70)), (3, Open)];
        assert_eq!(abandoned, (segments, vec![2], vec![]));
        // A segment that is named and absent is missing if an older one exists.
        let missing = of(&[(1, Some((0, 0))), (3, Some((2, 80)))]);
        let segments = vec![(1, SealedSomewhere), (3, Open)];
        assert_eq!(missing, (segments, vec![], vec![(2, 80)]));
        assert_eq!(of(&[(3, Some((2, 80)))]), (vec![(3, Open)], vec![], vec![]));
    }

    #[test]
    fn a_newest_file_without_content_is_no_segment() {
        let listed = [(1, Some((0, 0))), (101, None)];
        let expected = (vec![(1, Extent::Open)], vec![101], vec![]);
        assert_eq!(chained(&listed), expected);
        // A file that a later one names is a segment with any content.
        let listed = [(101, None), (102, Some((101, 60)))];
        let segments = vec![(101, Extent::Sealed(60)), (102, Extent::Open)];
        assert_eq!(chained(&listed), (segments, vec![], vec![]));
    }

    #[test]
    fn the_oldest_segment_may_name_one_before_it() {
        let storage = SimStorage::new(1);
        let disk = storage.open().unwrap();
        let before = |previous| {
            let header = SegmentHeader {
                version: VERSION,
                number: 5,
                previous,
                previous_len: 70,
            };
            storage.put(&segment_name(5), &header.encode());
            chain(vec![candidate(&disk, 5).unwrap()]).before_oldest()
        };
        assert_eq!(before(4), Some((4, 70)));
        assert_eq!(before(0), None);
    }

    #[test]
    fn a_later_version_is_refused() {
        let header = |version| {
            Some(SegmentHeader {
                version,
                number: 1,
                previous: 0,
                previous_len: 0,
            })
        };
        assert!(check_version(None).is_ok());
        assert!(check_version(header(VERSION)).is_ok());
        let refused = check_version(header(VERSION + 1));
        assert!(matches!(refused, Err(OpenError::Newer { found }) if found == VERSION + 1));
    }
}
