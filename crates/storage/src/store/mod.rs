//! The durable state of a node: changes are taken, each commit is one append and one sync, and the
//! state is recovered at the start.

#[cfg(test)]
mod tests;

use crate::disk::Disk;
use crate::log::{Damage, Log, LogOptions, LogReport, OpenError, Size, WriteError};
use crate::record::{Batch, Change, Malformed, UNIT_END, WORD_LEN, decode};
use crate::state::{Index, Recovered, Replay};

/// Smallest segment, in bytes.
const SEGMENT_BYTES_MIN: u64 = 4096;
/// Minimum number of segments within the size limit.
const SEGMENTS_MIN: u64 = 8;
/// Segments are not made smaller than this because of little disk space, in bytes.
const SEGMENT_BYTES_ON_SMALL_DISK: u64 = 1024 * 1024;
/// Bytes of the oldest segment that a commit reads in addition, and as a multiple of the bytes that
/// it writes. At most three quarters of the log are current, so reading four bytes frees one; a
/// factor of six stays ahead.
const RECLAIM_BYTES: u64 = 64 * 1024;
const RECLAIM_FACTOR: u64 = 6;

/// Bytes of the next segment that a commit writes in advance when the current one is half full, as
/// a multiple of its own.
const SPARE_FACTOR: u64 = 3;

/// On a disk without room for the next segment, a segment with too much current data is examined
/// again after the current data shrank by this part of a segment.
const CRAMPED_PART: u64 = 8;

/// Point at which a commit counts as durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Durability {
    /// When the disk has it: it survives a power failure.
    #[default]
    Fsync,
    /// When the operating system has it: it survives the end of the process, not that of the
    /// machine.
    Os,
}

/// Configuration of a store.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Point at which a commit counts as durable. Default [`Durability::Fsync`].
    pub durability: Durability,
    /// Size of a segment file in bytes; at most an eighth of `disk_bytes_max`, and of the free
    /// space of the disk (but at least 1 MiB). Default 64 MiB: large enough that files are rarely
    /// created and removed, small enough to be read into memory at the start.
    pub segment_bytes: u64,
    /// Limit of the bytes of all files; up to three quarters of it can be state. At least 32 KiB.
    /// Default 16 GiB.
    pub disk_bytes_max: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::Fsync,
            segment_bytes: 64 * 1024 * 1024,
            disk_bytes_max: 16 * 1024 * 1024 * 1024,
        }
    }
}

/// Whether the node may acknowledge messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Health {
    /// Commits succeed and there is room.
    #[default]
    Healthy = 0,
    /// Little room is left, on the disk or below `disk_bytes_max`: accept no change that adds
    /// state. Changes that remove state still find room.
    Full = 1,
    /// The last commit failed: nothing can be acknowledged until one succeeds.
    Failing = 2,
}

/// A commit that became durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Committed {
    /// Number of changes of the node and of moved records.
    pub records: u64,
    /// Number of bytes written.
    pub bytes: u64,
}

/// Space and activity of the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes of the log that are current; an estimate for deliveries.
    pub live_bytes: u64,
    /// Bytes of the files, without the quarantine.
    pub used_bytes: u64,
    /// Limit of these bytes.
    pub disk_bytes_max: u64,
    /// Number of files of the log.
    pub segments: usize,
    /// Bytes that are waiting for a commit.
    pub pending_bytes: usize,
    /// Number of sessions with state.
    pub sessions: usize,
    /// Number of referenced messages.
    pub messages: usize,
    /// Segments reclaimed since the start.
    pub reclaimed_segments: u64,
    /// Records moved since the start.
    pub moved_records: u64,
    /// Damaged places found since the start while their segment was reclaimed.
    pub damaged_places: u64,
    /// Reads, renames and removals that failed while reclaiming; they are retried.
    pub reclaim_failures: u64,
}

/// The store of one data directory. One thread uses it; [`Committer`](crate::Committer) is that
/// thread.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent conditions")]
pub struct Store<D: Disk> {
    log: Log<D>,
    index: Index,
    options: Options,
    /// Records that are not durable yet, oldest first.
    pending: Vec<u8>,
    pending_records: u64,
    /// Whether the last commit failed.
    failing: bool,
    /// Whether the directory was not at its path at the last check.
    is_misplaced: bool,
    /// On a full disk the oldest segment cannot be moved until at most this number of bytes is
    /// current.
    reclaim_below: Option<u64>,
    /// Whether the spare segment cannot be written.
    cramped: bool,
    full: bool,
    moved_records: u64,
    damaged_places: u64,
    reclaim_failures: u64,
}

impl<D: Disk> Store<D> {
    /// Opens the data directory and reads the state. The time grows with the log: about a second
    /// per gibibyte or per million queued messages, whichever is more.
    ///
    /// # Errors
    ///
    /// [`OpenError::Newer`] if a later version wrote it, [`OpenError::Io`] if the disk returns an
    /// error.
    pub fn open(disk: D, options: Options) -> Result<(Self, Recovered, LogReport), OpenError> {
        let disk_bytes_max = options.disk_bytes_max.max(SEGMENTS_MIN * SEGMENT_BYTES_MIN);
        let largest = (disk_bytes_max / SEGMENTS_MIN).min(largest_by_disk(&disk));
        let options = Options {
            segment_bytes: options.segment_bytes.clamp(SEGMENT_BYTES_MIN, largest),
            disk_bytes_max,
            ..options
        };
        let log_options = LogOptions {
            segment_bytes: options.segment_bytes,
            disk_bytes_max,
            sync: options.durability == Durability::Fsync,
        };
        let mut replay = Replay::default();
        let (log, mut report) = Log::open(disk, log_options, &mut |payload| {
            let change = decode(payload);
            if let Ok(change) = &change {
                replay.apply(change, payload);
            }
            change.is_ok()
        })?;
        let (index, recovered) = replay.finish();
        report.compare_oldest(recovered.reclaimed);
        let mut store = Self {
            index,
            options,
            pending: Vec::new(),
            pending_records: 0,
            failing: false,
            is_misplaced: false,
            reclaim_below: None,
            cramped: log.has_no_room(),
            log,
            full: false,
            moved_records: 0,
            damaged_places: 0,
            reclaim_failures: 0,
        };
        store.judge_room();
        Ok((store, recovered, report))
    }

    /// Takes changes for the next commit. The end of the batch ends its last unit.
    ///
    /// # Errors
    ///
    /// [`Malformed`] never occurs for changes that [`Batch::push`] wrote.
    pub fn apply(&mut self, batch: &Batch) -> Result<(), Malformed> {
        // Offset of the word of the open unit's last record.
        let mut last = None;
        for (payload, is_end) in batch.units() {
            let change = decode(payload)?;
            if self.index.apply(&change, payload) {
                last = Some(self.pending.len());
                push_record(payload, false, &mut self.pending);
                self.pending_records += 1;
            }
            if is_end && let Some(at) = last.take() {
                end_unit(at, &mut self.pending);
            }
        }
        if let Some(at) = last {
            end_unit(at, &mut self.pending);
        }
        Ok(())
    }

    /// Makes all changes taken so far durable, with one append and one sync, and reclaims a part of
    /// the oldest segment. Does nothing if there is nothing to do.
    ///
    /// # Errors
    ///
    /// [`WriteError`]: no change counts as durable then, and all of them remain for the next
    /// commit, in a new segment if the disk failed; call it again after a while. Further changes
    /// can still be taken.
    pub fn commit(&mut self) -> Result<Committed, WriteError> {
        if self.is_misplaced {
            self.look()?;
        }
        if !self.failing {
            self.reclaim();
        }
        let records = self.pending_records;
        let (done, result) = self.log.write(&self.pending);
        self.pending.drain(..done);
        self.failing = result.is_err();
        if let Err(error) = result {
            self.judge_room();
            return Err(error);
        }
        self.pending_records = 0;
        if self.log.retire().is_err() {
            self.reclaim_failures += 1;
        }
        if self.log.is_half_full() {
            self.prepare(SPARE_FACTOR * done as u64);
        }
        self.judge_room();
        Ok(Committed {
            records,
            bytes: done as u64,
        })
    }

    /// Does maintenance that makes later commits cheaper, for idle times; returns whether more
    /// could follow.
    ///
    /// # Errors
    ///
    /// As [`Store::commit`].
    pub fn tidy(&mut self) -> Result<bool, WriteError> {
        if self.failing || self.wants_reclaim() {
            let failures = self.reclaim_failures;
            self.commit()?;
            return Ok(failures == self.reclaim_failures);
        }
        self.log.note_end();
        Ok(!self.prepare(0))
    }

    /// Checks that the directory is still at its path; an open file does not show that. Call it at
    /// intervals.
    ///
    /// # Errors
    ///
    /// [`WriteError::Misplaced`]: nothing is durable until it is back.
    pub fn look(&mut self) -> Result<(), WriteError> {
        let place = self.log.check_place();
        self.is_misplaced = place.is_err();
        self.failing |= self.is_misplaced;
        place
    }

    /// Whether changes are waiting for a commit.
    pub fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Whether the node may acknowledge messages.
    pub fn health(&self) -> Health {
        if self.failing {
            Health::Failing
        } else if self.full || self.cramped {
            Health::Full
        } else {
            Health::Healthy
        }
    }

    /// Space and activity of the store.
    pub fn usage(&self) -> Usage {
        let Size {
            used_bytes,
            segments,
            reclaimed,
        } = self.log.size();
        let (sessions, messages) = self.index.counts();
        Usage {
            live_bytes: self.index.live_bytes(),
            used_bytes,
            disk_bytes_max: self.options.disk_bytes_max,
            segments,
            pending_bytes: self.pending.len(),
            sessions,
            messages,
            reclaimed_segments: reclaimed,
            moved_records: self.moved_records,
            damaged_places: self.damaged_places,
            reclaim_failures: self.reclaim_failures,
        }
    }

    /// Commits the pending changes and closes the log, so that the next start can distinguish this
    /// end from a torn one.
    ///
    /// # Errors
    ///
    /// As [`Store::commit`]; no acknowledged change is lost.
    pub fn close(mut self) -> Result<(), WriteError> {
        self.commit()?;
        self.log.close()
    }

    fn wants_reclaim(&self) -> bool {
        let live_bytes = self.index.live_bytes();
        self.log.wants_reclaim(live_bytes, self.cramped)
    }

    /// Moves the current records of the next part of the oldest segment into the pending records.
    fn reclaim(&mut self) {
        if !self.wants_reclaim() {
            return;
        }
        let live_bytes = self.index.live_bytes();
        let is_useless = |least| live_bytes > least;
        if self.cramped && self.reclaim_below.is_some_and(is_useless) {
            return;
        }
        let mut budget = RECLAIM_BYTES + RECLAIM_FACTOR * self.pending.len() as u64;
        let room = self.log.room();
        if self.cramped {
            budget = budget.min(room / 2);
        }
        let (before, records_before) = (self.pending.len(), self.pending_records);
        let (index, pending) = (&mut self.index, &mut self.pending);
        let mut keep = |payload: &[u8]| {
            let is_current = decode(payload).is_ok_and(|change| index.is_current(&change, payload));
            if is_current {
                push_record(payload, true, pending);
            }
            is_current
        };
        let damaged_places = &mut self.damaged_places;
        let mut damaged = |_: Damage| *damaged_places += 1;
        let budget = budget.min(self.options.segment_bytes);
        match self.log.reclaim_step(budget, &mut keep, &mut damaged) {
            Ok(step) => {
                self.pending_records += step.kept;
                let kept_bytes = (self.pending.len() - before) as u64;
                if self.cramped && kept_bytes > room / 2 {
                    // The last room on a full disk is for changes that remove state: the segment
                    // stays until less of it is current.
                    self.pending.truncate(before);
                    self.pending_records = records_before;
                    self.log.put_victim_off();
                    let part = self.options.segment_bytes / CRAMPED_PART;
                    self.reclaim_below = Some(live_bytes.saturating_sub(part));
                    return;
                }
                self.reclaim_below = None;
                self.note_reclaimed();
                self.moved_records += step.kept;
            }
            Err(_) => self.reclaim_failures += 1,
        }
    }

    /// Records the segment that is removed next, so that it can be distinguished from a lost one.
    fn note_reclaimed(&mut self) {
        let Some(segment) = self.log.read_victim() else {
            return;
        };
        let mut batch = Batch::default();
        batch.push(&Change::Reclaimed { segment });
        batch.end_unit();
        let applied = self.apply(&batch);
        debug_assert!(applied.is_ok(), "a record of this program can be read");
    }

    /// Writes at least `bytes` more of the spare segment; returns `true` if there is nothing left
    /// to do, or nothing that can be done now.
    fn prepare(&mut self, bytes: u64) -> bool {
        let prepared = self.log.prepare_spare(bytes);
        // If a part of the file fits, the rest may not: the store stays cramped until there is
        // room.
        let is_in_doubt =
            prepared.is_err() || (self.cramped && !prepared.as_ref().is_ok_and(|done| *done));
        self.cramped = is_in_doubt
            && self
                .log
                .disk_free_bytes()
                .is_ok_and(|free| free < 2 * self.options.segment_bytes);
        prepared.unwrap_or(true)
    }

    /// Determines whether there is room for more state.
    fn judge_room(&mut self) {
        let segment = self.options.segment_bytes;
        let limit = (self.options.disk_bytes_max - 3 * segment) / 4 * 3;
        let live = self.index.live_bytes();
        // The state full lasts until the current data is well below the limit, otherwise it would
        // change twice a second.
        self.full = live > if self.full { limit / 20 * 19 } else { limit };
        if self.cramped {
            self.prepare(0);
        }
    }
}

/// Largest segment for a disk with little space, because space is reclaimed in whole segments.
fn largest_by_disk(disk: &impl Disk) -> u64 {
    let free = disk.free_bytes().unwrap_or(u64::MAX);
    (free / SEGMENTS_MIN).max(SEGMENT_BYTES_ON_SMALL_DISK)
}

fn push_record(payload: &[u8], is_end: bool, into: &mut Vec<u8>) {
    let len = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    let word = len | if is_end { UNIT_END } else { 0 };
    into.extend_from_slice(&word.to_le_bytes());
    into.extend_from_slice(payload);
}

fn end_unit(at: usize, records: &mut [u8]) {
    if let Some(word) = records.get_mut(at..at + WORD_LEN) {
        let ended = u32::from_le_bytes([word[0], word[1], word[2], word[3]]) | UNIT_END;
        word.copy_from_slice(&ended.to_le_bytes());
    }
}
