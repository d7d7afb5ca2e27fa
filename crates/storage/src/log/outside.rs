//! Reads a log from outside, even while its broker writes to it and reclaims segments.
//!
//! The result is a state that the log had at one moment, not before the start of the reading,
//! because:
//! - A record with a valid checksum is final: a segment is written only forwards, and the checksums
//!   of a reused file depend on another segment number.
//! - The broker removes only the oldest segment, after its current records were written to the
//!   newest end, and nothing is overwritten under the old name. If a segment's name still exists
//!   after the segment was read, then the segment and all later ones were read unchanged.
//! - The newest segment is read last and to its end, and it was also the newest when the directory
//!   had been listed: the current records of segments that were removed by then are before that
//!   end.
//! - Each segment refers to the one before it, so none is missing between them.
//!
//! If one of these conditions is not met, the reading starts over.

use std::io;

use super::format::{SEGMENT_HEADER_LEN, SegmentHeader};
use super::gone::FoundSegment;
use super::open::{
    Candidate, Damage, LogReport, OpenError, candidate, chain, check_version, number_of, numbers_of,
};
use super::ring::segment_name;
use super::scan::{Extent, Found, scan};
use super::tolerant::read_tolerant;
use crate::disk::{File, ReadDisk};

/// Number of attempts before the reading is given up: a broker that reclaims the segment being read
/// may do so repeatedly.
const ATTEMPTS: u32 = 100;
/// Number of these attempts in which a missing segment or header is attributed to a segment that
/// was created while the directory was listed.
const UNLINKED_ATTEMPTS: u32 = 10;

/// Receives the segments of a log, oldest first.
pub trait SnapshotTarget {
    /// Discards the segments received so far: the broker removed the next segment before it was
    /// read.
    ///
    /// # Errors
    ///
    /// An error of the target.
    fn start_over(&mut self) -> io::Result<()>;

    /// Receives the next segment, from its beginning to the end of its content.
    ///
    /// # Errors
    ///
    /// An error of the target.
    fn segment(&mut self, name: &str, bytes: &[u8]) -> io::Result<()>;
}

/// Reason why no snapshot was taken.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The log cannot be read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The target returned an error.
    #[error("the snapshot cannot be written")]
    Target(#[source] io::Error),
    /// The broker reclaims segments faster than they can be read.
    #[error(
        "the log is rewritten faster than it can be read; try again when the broker has less to do, or a faster disk to copy to"
    )]
    Outrun,
}

impl From<io::Error> for SnapshotError {
    fn from(error: io::Error) -> Self {
        Self::Open(OpenError::Io(error))
    }
}

/// Copies a log in a state that it had at one moment after the call, even while a broker writes to
/// it: everything that was durable before the call is included, and each unit is complete or
/// missing. Memory: one segment.
///
/// # Errors
///
/// [`SnapshotError`]; the content of the target is invalid then.
pub fn snapshot(
    disk: &impl ReadDisk,
    target: &mut impl SnapshotTarget,
) -> Result<(), SnapshotError> {
    let mut buffer = Vec::new();
    for attempt in 0..ATTEMPTS {
        if attempt > 0 {
            target.start_over().map_err(SnapshotError::Target)?;
        }
        let Some(candidates) = candidates(disk)? else {
            continue;
        };
        let segments = chain(candidates).segments;
        if !are_linked(&segments) && attempt < UNLINKED_ATTEMPTS {
            continue;
        }
        if copy(disk, segments, target, &mut buffer)? {
            return Ok(());
        }
    }
    Err(SnapshotError::Outrun)
}

/// Reads a segment that ends with its bytes. Each record is passed to `visit`, which returns
/// whether it can be decoded.
pub(crate) fn read_segment(
    name: &str,
    bytes: &[u8],
    report: &mut LogReport,
    before: &mut FoundSegment,
    visit: &mut dyn FnMut(&[u8]) -> bool,
) -> Result<(), OpenError> {
    let number = number_of(name).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    let header = SegmentHeader::decode(bytes);
    check_version(header)?;
    if let Some(header) = header.filter(|header| header.previous != 0) {
        let named = (header.previous, header.previous_len);
        if before.number == 0 {
            report.before_oldest = Some(named);
        } else if before.number != header.previous {
            report.note_missing(named.0, named.1);
        }
    }
    let mut damage = |offset: usize, len: usize| {
        report.note(Damage {
            segment: number,
            offset: offset as u64,
            len: len as u64,
        });
    };
    if header.is_none_or(|header| header.number != number) {
        damage(0, SEGMENT_HEADER_LEN);
    }
    let mut records = 0;
    let extent = Extent::Sealed(bytes.len() as u64);
    scan(
        bytes,
        number,
        SEGMENT_HEADER_LEN,
        extent,
        &mut |found| match found {
            Found::Record { offset, payload } => {
                records += 1;
                if !visit(payload) {
                    damage(offset, payload.len());
                }
            }
            Found::Damaged { offset, len } => damage(offset, len),
        },
    );
    *before = FoundSegment {
        number,
        len: bytes.len() as u64,
        records,
    };
    report.segments += 1;
    report.records += records;
    report.bytes += bytes.len() as u64;
    Ok(())
}

/// All segments, oldest first; `None` if the directory changed meanwhile.
fn candidates<D: ReadDisk>(disk: &D) -> Result<Option<Vec<Candidate<D::File>>>, OpenError> {
    let numbers = numbers_of(&disk.list()?);
    // The current records of a segment that was removed during the listing may be in one that was
    // created meanwhile.
    if numbers_of(&disk.list()?).last() != numbers.last() {
        return Ok(None);
    }
    let mut candidates = Vec::with_capacity(numbers.len());
    for number in numbers {
        match candidate(disk, number) {
            Ok(candidate) => candidates.push(candidate),
            Err(OpenError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(Some(candidates))
}

/// Whether each segment refers to the one before it.
fn are_linked<F>(segments: &[(Candidate<F>, Extent)]) -> bool {
    let mut before = None;
    segments.iter().all(|(candidate, _)| {
        let is_linked = candidate
            .header
            .is_some_and(|header| before.is_none_or(|before| header.previous == before));
        before = Some(candidate.number);
        is_linked
    })
}

/// Passes the segments to the target; returns `false` if one was removed before it was read.
fn copy<D: ReadDisk>(
    disk: &D,
    segments: Vec<(Candidate<D::File>, Extent)>,
    target: &mut impl SnapshotTarget,
    buffer: &mut Vec<u8>,
) -> Result<bool, SnapshotError> {
    for (candidate, extent) in segments {
        read(&candidate, extent, buffer)?;
        let name = segment_name(candidate.number);
        match disk.open(&name) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        target
            .segment(&name, buffer)
            .map_err(SnapshotError::Target)?;
    }
    Ok(true)
}

/// Reads a segment up to the end of its content. Unreadable bytes are zero.
fn read<F: File>(candidate: &Candidate<F>, extent: Extent, buffer: &mut Vec<u8>) -> io::Result<()> {
    let (file, number) = (&candidate.file, candidate.number);
    if let Extent::Sealed(len) = extent {
        read_tolerant(file, len, buffer);
        buffer.resize(usize::try_from(len).unwrap_or(usize::MAX), 0);
        return Ok(());
    }
    let unreadable = read_tolerant(file, file.size()?, buffer);
    // As at the start: if sectors are missing, an end that looks torn may have been acknowledged.
    let extent = if unreadable > 0 {
        Extent::SealedSomewhere
    } else {
        extent
    };
    let mut is_whole = true;
    let start = SEGMENT_HEADER_LEN;
    let scanned = scan(buffer, number, start, extent, &mut |found| {
        is_whole &= matches!(found, Found::Record { .. });
    });
    if !is_whole && extent == Extent::Open {
        // A group may have been written while its parts were read. The bytes that a later group
        // records as durable are read again, and are final now.
        let mut again = Vec::new();
        read_tolerant(file, scanned.safe_until as u64, &mut again);
        if let Some(before) = buffer.get_mut(..again.len()) {
            before.copy_from_slice(&again);
        }
    }
    buffer.truncate(scanned.end);
    Ok(())
}
