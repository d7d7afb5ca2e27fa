//! The ring of segments: the destination of commits, and the reaction to errors of the disk.

use std::collections::VecDeque;
use std::io;

use super::LogOptions;
use super::format::{
    GROUP_ALIGN, GROUP_BYTES_MAX, GROUP_HEADER_LEN, RECORD_HEADER_LEN, SEGMENT_HEADER_LEN,
    SegmentHeader, VERSION, append_group,
};
use super::gone::{END_LEN, End, EndFile};
use super::open::Tail;
use super::reclaim::Victim;
use super::reserve::Reserve;
use super::spare::Spare;
use crate::disk::{Disk, File, write_all};
use crate::record::{Units, WORD_LEN};

/// Bytes after which a large commit is synced before more of it is written.
const SYNC_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Number of commits after which the end is recorded even without a pause in the writing.
const UNNOTED_MAX: u32 = 64;
/// Free bytes that the newest segment must have for writing to continue in it.
const ROOM_MIN: u64 = 1024;

/// Reason why a commit did not become durable.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The log has reached its size limit.
    #[error("the log has reached disk_bytes_max; raise it, or let sessions and queues be removed")]
    LimitReached,
    /// The disk has no space left.
    #[error(
        "the disk of the data directory is full; free some space, writing resumes automatically"
    )]
    NoSpace(#[source] io::Error),
    /// The disk failed.
    #[error(
        "the disk of the data directory failed; the pending changes are written again until that succeeds"
    )]
    Io(#[source] io::Error),
    /// The directory is not at its path: the next start would not find the written data.
    #[error(
        "the directory of the state was moved, removed or replaced while the broker is running; put it back, or stop the broker"
    )]
    Misplaced(#[source] io::Error),
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            kind if is_full(kind) => Self::NoSpace(error),
            _ => Self::Io(error),
        }
    }
}

/// The disk, the quota or the limit of file sizes leaves no room.
const fn is_full(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(kind, StorageFull | QuotaExceeded | FileTooLarge)
}

/// Size of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    /// Bytes of its files, including the spare one.
    pub(crate) used_bytes: u64,
    /// Number of files with content.
    pub(crate) segments: usize,
    /// Number of reclaimed segments.
    pub(crate) reclaimed: u64,
}

/// A segment that is no longer written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sealed {
    pub(super) number: u64,
    /// End of its content.
    pub(super) len: u64,
    /// Size of its file.
    pub(super) size: u64,
}

/// The segment that is being written.
#[derive(Debug)]
struct Active<F> {
    number: u64,
    file: F,
    /// End of the last valid group.
    len: u64,
    size: u64,
    /// Whether all of it is durable.
    is_synced: bool,
    records: u64,
}

/// Files that will become segments.
#[derive(Debug)]
pub(super) struct Spares<F> {
    pub(super) spare: Spare<F>,
    pub(super) reserve: Reserve,
}

/// The log of one data directory.
#[derive(Debug)]
pub(crate) struct Log<D: Disk> {
    pub(super) disk: D,
    pub(super) options: LogOptions,
    /// Closed segments, oldest first.
    pub(super) sealed: VecDeque<Sealed>,
    active: Option<Active<D::File>>,
    next_number: u64,
    pub(super) spare: Spare<D::File>,
    pub(super) reserve: Reserve,
    end: EndFile<D::File>,
    /// Number of commits since the end was recorded.
    unnoted: u32,
    pub(super) victim: Option<Victim<D::File>>,
    pub(super) reclaimed: u64,
    /// Whether a segment was removed and the directory has not been synced since.
    pub(super) names_unsafe: bool,
    frame: Vec<u8>,
}

/// Name of a segment's file.
pub(super) fn segment_name(number: u64) -> String {
    format!("{number:020}.log")
}

impl<D: Disk> Log<D> {
    pub(super) fn new(
        disk: D,
        options: LogOptions,
        sealed: VecDeque<Sealed>,
        next_number: u64,
        spares: Spares<D::File>,
    ) -> Self {
        Self {
            disk,
            options,
            sealed,
            active: None,
            next_number,
            spare: spares.spare,
            reserve: spares.reserve,
            end: EndFile::new(),
            unnoted: 0,
            victim: None,
            reclaimed: 0,
            names_unsafe: false,
            frame: Vec::new(),
        }
    }

    /// Its size on the disk.
    pub(crate) fn size(&self) -> Size {
        Size {
            used_bytes: self.content_bytes()
                + self.spare.size(&self.options)
                + self.reserve.bytes()
                + END_LEN as u64,
            segments: self.sealed.len() + usize::from(self.active.is_some()),
            reclaimed: self.reclaimed,
        }
    }

    /// Bytes of the files with content.
    pub(super) fn content_bytes(&self) -> u64 {
        let sealed: u64 = self.sealed.iter().map(|segment| segment.size).sum();
        sealed + self.active.as_ref().map_or(0, |active| active.size)
    }

    /// Whether the current segment is more than half full.
    pub(crate) fn is_half_full(&self) -> bool {
        let half = |active: &Active<_>| active.len > active.size / 2;
        self.active.as_ref().is_none_or(half)
    }

    /// Number of bytes that the current segment can still take.
    pub(crate) fn room(&self) -> u64 {
        let room = |active: &Active<_>| active.size.saturating_sub(active.len);
        self.active.as_ref().map_or(0, room)
    }

    /// Number of bytes that can still be written to the disk.
    pub(crate) fn disk_free_bytes(&self) -> io::Result<u64> {
        self.disk.free_bytes()
    }

    /// On a disk without room for the next segment, continues at the end of the newest one, if it
    /// has room, so that changes that remove state can still be written. Call it at the start.
    pub(super) fn continue_in(&mut self, file: D::File, tail: Tail) -> io::Result<()> {
        let segment = self.options.segment_bytes;
        let planned = self.content_bytes() + 2 * segment;
        let is_tight = planned > self.options.disk_bytes_max || self.has_no_room();
        let has_room = |last: &Sealed| last.len + ROOM_MIN <= last.size;
        if !is_tight || !tail.is_clear || !self.sealed.back().is_some_and(has_room) {
            return Ok(());
        }
        let Some(last) = self.sealed.pop_back() else {
            return Ok(());
        };
        // The rest of a torn commit must not be taken for a continuation of the next one.
        let zeros = vec![0; usize::try_from(tail.torn_bytes).unwrap_or(0)];
        write_all(&file, &zeros, last.len)?;
        file.sync()?;
        self.active = Some(Active {
            number: last.number,
            file,
            len: last.len,
            size: last.size,
            is_synced: true,
            records: tail.records,
        });
        Ok(())
    }

    /// Whether the disk has too little space for the next segment and some reserve.
    pub(crate) fn has_no_room(&self) -> bool {
        let wanted = 2 * self.options.segment_bytes;
        matches!(self.spare, Spare::None) && self.disk.free_bytes().is_ok_and(|free| free < wanted)
    }

    /// Checks that the directory is still at its path.
    pub(crate) fn check_place(&self) -> Result<(), WriteError> {
        self.disk.check_place().map_err(WriteError::Misplaced)
    }

    /// Records the durable end in a separate file, for the next start to compare with the segments.
    /// Without a sync per commit only the end at the close is known to be durable.
    pub(crate) fn note_end(&mut self) {
        if self.options.sync {
            self.note_end_now();
        }
    }

    fn note_end_now(&mut self) {
        self.unnoted = 0;
        if let Some(active) = self.active.as_ref().filter(|active| active.len > 0) {
            let end = End {
                segment: active.number,
                len: active.len,
                records: active.records,
            };
            self.end.note(&self.disk, end);
        }
    }

    /// Writes records and makes them durable; returns how many bytes of `records` are durable, and
    /// the error for the rest.
    ///
    /// The caller must write the rest again, all of it and in the same order; it may be recovered
    /// after a crash nevertheless.
    pub(crate) fn write(&mut self, records: &[u8]) -> (usize, Result<(), WriteError>) {
        let mut done = 0;
        while let Some(rest) = records.get(done..).filter(|rest| !rest.is_empty()) {
            match self.write_some(rest) {
                Ok(len) => done += len,
                Err(error) if self.continues_after(&error, rest) => {}
                Err(error) => return (done, Err(error)),
            }
        }
        self.unnoted += 1;
        if self.unnoted >= UNNOTED_MAX {
            self.note_end();
        }
        (done, Ok(()))
    }

    /// Records on the disk that everything is durable, so that the end of a closed log is never
    /// taken for a torn one.
    pub(crate) fn close(&mut self) -> Result<(), WriteError> {
        let Some(active) = &mut self.active else {
            return Ok(());
        };
        active.file.sync()?;
        self.frame.clear();
        let (number, offset) = (active.number, active.len);
        append_group(std::iter::empty(), number, offset, true, &mut self.frame);
        // These few bytes may exceed the end of a full segment; if a full disk refuses them, it
        // still has everything before.
        match write_all(&active.file, &self.frame, active.len) {
            Ok(()) => {
                active.file.sync()?;
                active.len += self.frame.len() as u64;
            }
            Err(error) if is_full(error.kind()) => {}
            Err(error) => return Err(error.into()),
        }
        self.note_end_now();
        Ok(())
    }

    /// Writes the records that fit into one segment; returns their length in bytes.
    fn write_some(&mut self, records: &[u8]) -> Result<usize, WriteError> {
        let first = first_unit(records);
        let room = self
            .active
            .as_ref()
            .map_or(0, |active| active.size - active.len);
        if framed_len(first) > room {
            self.roll(SEGMENT_HEADER_LEN as u64 + framed_len(first))?;
        }
        let sync = self.options.sync;
        let Some(active) = &mut self.active else {
            return Ok(0);
        };
        self.frame.clear();
        if active.len == 0 {
            let header = header_of(active.number, self.sealed.back());
            self.frame.extend_from_slice(&header.encode());
        }
        let mut taken = 0;
        let mut is_safe = active.is_synced;
        loop {
            let at = active.len + self.frame.len() as u64;
            let part = group_part(&records[taken..], active.size - at);
            if part == 0 {
                break;
            }
            let units = Units(&records[taken..taken + part]).map(|(payload, _)| payload);
            append_group(units, active.number, at, is_safe, &mut self.frame);
            is_safe = false;
            taken += part;
            if self.frame.len() >= SYNC_BYTES_MAX {
                break;
            }
        }
        write_all(&active.file, &self.frame, active.len)?;
        active.is_synced = false;
        if sync {
            active.file.sync()?;
            active.is_synced = true;
        }
        active.len += self.frame.len() as u64;
        active.records += Units(&records[..taken]).count() as u64;
        if self.frame.capacity() > 2 * SYNC_BYTES_MAX {
            self.frame = Vec::new();
        }
        Ok(taken)
    }

    /// Syncs the current segment if it has unsynced bytes.
    pub(super) fn sync_active(&mut self) -> io::Result<()> {
        if let Some(active) = self.active.as_mut().filter(|active| !active.is_synced) {
            active.file.sync()?;
            active.is_synced = true;
        }
        Ok(())
    }

    /// Continues in a new segment with room for `bytes_min`.
    fn roll(&mut self, bytes_min: u64) -> Result<(), WriteError> {
        self.seal()?;
        let size = bytes_min.max(self.options.segment_bytes);
        let rest = self
            .options
            .disk_bytes_max
            .checked_sub(self.content_bytes() + size + END_LEN as u64);
        let rest = rest.ok_or(WriteError::LimitReached)?;
        if self.spare.size_beside(size, &self.options) + self.reserve.bytes() > rest {
            self.reserve.discard(&self.disk)?;
        }
        if self.spare.size_beside(size, &self.options) > rest {
            self.spare.discard(&self.disk)?;
        }
        let number = self.next_number;
        self.next_number += 1;
        let name = segment_name(number);
        let file = if size == self.options.segment_bytes {
            self.spare.take(&self.disk, &name)?
        } else {
            None
        };
        let file = match file {
            Some(file) => file,
            None => self.disk.create(&name)?,
        };
        self.begin(number, file, size)
    }

    /// Handles a failed write, which ends its segment. On a full disk an unfinished spare file is
    /// removed, or the log continues in the reserve file. Returns whether to try again.
    fn continues_after(&mut self, error: &WriteError, records: &[u8]) -> bool {
        self.abandon();
        if !matches!(error, WriteError::NoSpace(_)) {
            return false;
        }
        if matches!(self.spare, Spare::Unfinished(..)) && self.spare.discard(&self.disk).is_ok() {
            return true;
        }
        self.roll_to_reserve(records).unwrap_or(false)
    }

    /// Continues in the reserve file; returns `false` if it does not exist or is too small for the
    /// first unit.
    fn roll_to_reserve(&mut self, records: &[u8]) -> Result<bool, WriteError> {
        let number = self.next_number;
        let name = segment_name(number);
        let bytes_min = SEGMENT_HEADER_LEN as u64 + framed_len(first_unit(records));
        let taken = self.reserve.take(&self.disk, &name, bytes_min)?;
        let Some((file, size)) = taken else {
            return Ok(false);
        };
        self.next_number += 1;
        self.begin(number, file, size)?;
        Ok(true)
    }

    fn begin(&mut self, number: u64, file: D::File, size: u64) -> Result<(), WriteError> {
        if let Err(error) = self.disk.sync_dir() {
            self.discard(number);
            return Err(error.into());
        }
        self.active = Some(Active {
            number,
            file,
            len: 0,
            size,
            is_synced: true,
            records: 0,
        });
        Ok(())
    }

    /// Syncs and closes the current segment.
    fn seal(&mut self) -> Result<(), WriteError> {
        self.sync_active()?;
        self.abandon();
        Ok(())
    }

    /// Closes the current segment: its content up to its length is valid, and bytes after it are
    /// not.
    ///
    /// After a failed sync the state of the disk is unknown, and a second sync that succeeds would
    /// prove nothing.
    fn abandon(&mut self) {
        let Some(active) = self.active.take() else {
            return;
        };
        if active.len == 0 {
            self.discard(active.number);
            return;
        }
        if !self.options.sync && !active.is_synced {
            // Earlier bytes should be durable before later ones; without a sync per commit nothing
            // more is guaranteed.
            active.file.sync().unwrap_or_default();
        }
        self.sealed.push_back(Sealed {
            number: active.number,
            len: active.len,
            size: active.size,
        });
    }

    /// Removes a segment without content. If that fails, the next start finds that no other one
    /// refers to it.
    fn discard(&self, number: u64) {
        self.disk.remove(&segment_name(number)).unwrap_or_default();
    }
}

fn header_of(number: u64, previous: Option<&Sealed>) -> SegmentHeader {
    SegmentHeader {
        version: VERSION,
        number,
        previous: previous.map_or(0, |segment| segment.number),
        previous_len: previous.map_or(0, |segment| segment.len),
    }
}

/// The records of the first unit.
fn first_unit(records: &[u8]) -> &[u8] {
    let mut len = 0;
    for (payload, is_end) in Units(records) {
        len += WORD_LEN + payload.len();
        if is_end {
            break;
        }
    }
    records.get(..len).unwrap_or_default()
}

/// Length of the first units that fit into one group and into `room`.
pub(super) fn group_part(records: &[u8], room: u64) -> usize {
    let mut part = 0;
    let mut framed = (GROUP_HEADER_LEN + GROUP_ALIGN) as u64;
    while let Some(rest) = records.get(part..).filter(|rest| !rest.is_empty()) {
        let unit = first_unit(rest);
        let unit_framed = framed_len(unit) - (GROUP_HEADER_LEN + GROUP_ALIGN) as u64;
        let is_too_much = part > 0 && framed + unit_framed > GROUP_BYTES_MAX as u64;
        if is_too_much || framed + unit_framed > room {
            break;
        }
        framed += unit_framed;
        part += unit.len();
    }
    part
}

/// Highest number of bytes that these records occupy as a separate group.
pub(super) fn framed_len(records: &[u8]) -> u64 {
    let count = Units(records).count();
    let framed = records.len() + count * (RECORD_HEADER_LEN - WORD_LEN);
    (framed + GROUP_HEADER_LEN + GROUP_ALIGN) as u64
}
