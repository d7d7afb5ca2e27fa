//! Finds the segments that count, reads them oldest first, and makes safe what was read.

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

/// Damaged places that are listed and saved one by one; beyond they are only counted.
const LISTED_MAX: usize = 100;

/// A damaged place of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Number of the segment.
    pub segment: u64,
    /// Where it begins, in bytes from the beginning of the segment.
    pub offset: u64,
    /// How many bytes.
    pub len: u64,
}

/// What the start found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogReport {
    /// Segments read.
    pub segments: usize,
    /// Records read.
    pub records: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Bytes of the last commit that were cut because it was never finished, and so never
    /// acknowledged.
    pub torn_bytes: u64,
    /// The first hundred damaged places; each is saved as `quarantine/<segment>-<offset>` and
    /// served no more.
    pub damaged: Vec<Damage>,
    /// All damaged places.
    pub damaged_count: u64,
    /// Their bytes.
    pub damaged_bytes: u64,
    /// Bytes that the disk did not give out; they count as damaged as well if something was there.
    pub unreadable_bytes: u64,
    /// The first hundred parts of the log that are gone.
    pub gone: Vec<Gone>,
    /// All parts that are gone.
    pub gone_count: u64,
    /// Their bytes, at least.
    pub gone_bytes: u64,
    /// The segment that the oldest one names as the one before it, and its length.
    pub(super) before_oldest: Option<(u64, u64)>,
}

impl LogReport {
    /// Something that was acknowledged may not be there any more.
    pub fn is_damaged(&self) -> bool {
        self.damaged_count > 0 || self.gone_count > 0
    }

    /// Counts a damaged place; true if it is one of those that are listed.
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

/// The log cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A later version wrote it.
    #[error(
        "the data directory has format {found} and this version knows formats up to {VERSION}; \
         run the version that wrote it, or name another data directory"
    )]
    Newer {
        /// Its format.
        found: u32,
    },
    /// The disk refuses.
    #[error("the data directory cannot be read; check the disk and its permissions")]
    Io(#[from] io::Error),
}

/// A segment's file before it is read.
pub(super) struct Candidate<F> {
    pub(super) number: u64,
    pub(super) file: F,
    pub(super) header: Option<SegmentHeader>,
}

/// What is known of the segment before the one just accepted.
#[derive(Clone, Copy)]
enum Before {
    /// There is none accepted yet.
    Newest,
    /// This one, up to there.
    Known(u64, u64),
    /// The header that would say it is damaged.
    Unknown,
}

impl<D: Disk> Log<D> {
    /// Reads the log; `visit` gets every record that counts, oldest first, and says whether it
    /// means something.
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
            log.go_on_in(file, tail)?;
        }
        Ok((log, report))
    }
}

/// A number that was used is not used again, even if its segment is gone.
fn beyond(end: Option<End>) -> u64 {
    end.map_or(0, |end| end.segment + 1)
}

/// What stands behind the content of the newest segment, and how much is before.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tail {
    pub(super) records: u64,
    /// Bytes of the torn commit that were cut.
    pub(super) torn_bytes: u64,
    /// The content ends where the file says, so it can go on there.
    pub(super) is_clear: bool,
}

/// Numbers of the segments among these files, ascending.
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

/// A later version wrote this segment, or one that is known.
pub(super) fn check_version(header: Option<SegmentHeader>) -> Result<(), OpenError> {
    match header {
        Some(header) if header.version > VERSION => Err(OpenError::Newer {
            found: header.version,
        }),
        _ => Ok(()),
    }
}

/// The segments that count, and what is known of others.
pub(super) struct Chain<F> {
    /// Oldest first, each with how much of it counts.
    pub(super) segments: Vec<(Candidate<F>, Extent)>,
    /// Files without content.
    pub(super) superfluous: Vec<u64>,
    /// Segments that the header of the next one names and that are not there, though older ones
    /// are: number and length.
    pub(super) missing: Vec<(u64, u64)>,
}

impl<F> Chain<F> {
    /// The segment that the oldest one names.
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
        // Only the oldest is ever given back: where an older one is, none is missing lawfully.
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

/// Whether nothing in the file counts: it was renamed to be reused and never written, or its first
/// commit is torn. A file whose header was damaged later holds a first group, or one that says that
/// what was before it was safe.
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

/// Makes the end of the log safe, which may so far be in the page cache only.
///
/// It is written anew, not just synced: if a sync failed before the last process ended, its pages
/// count as clean, and another sync would find nothing to do.
fn make_safe<F: File>(file: &F, bytes: &[u8], scanned: &Scanned) -> io::Result<()> {
    let start = match scanned.safe_until {
        // The header came with the first group.
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
        // Where sectors are missing, an end that looks torn may be one that was acknowledged.
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

    /// Where the segment's content ends; of a file that is shorter than it was, the rest is gone.
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
        // The copy is for the curious; the place is reported with or without it.
        let saved = self
            .disk
            .create(&name)
            .and_then(|file| write_all(&file, damaged, 0));
        saved.unwrap_or_default();
    }
}
