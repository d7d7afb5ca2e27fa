//! Reclaims the space of the oldest segment, step by step with each commit: its current records
//! move to the newest end.

use std::io;

use super::format::{GROUP_HEADER_LEN, Group, SEGMENT_HEADER_LEN, record_at, seed};
use super::gone::END_LEN;
use super::open::Damage;
use super::reserve::Reserve;
use super::ring::{Log, segment_name};
use super::scan::{Extent, Found, scan};
use super::tolerant::read_tolerant;
use crate::disk::{Disk, File, read_full};

/// Number of segments that must follow one before it is reclaimed. A message whose first reference
/// is written by a later commit has this long to get it.
const YOUNGER_MIN: usize = 2;

/// After this many failed reads the segment is reclaimed without its unreadable parts, otherwise
/// the log would never be reclaimed again.
const READ_FAILURES_MAX: u32 = 8;

/// Number of segments that the log may always have, even if it contains little current data.
const SEGMENTS_FREE: u64 = 4;

/// The segment that is being reclaimed.
#[derive(Debug)]
pub(super) struct Victim<F> {
    number: u64,
    file: F,
    len: u64,
    /// Offset of the next group.
    at: u64,
    /// Number of failed reads.
    failures: u32,
}

/// Result of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reclaimed {
    /// Number of bytes read.
    pub(crate) bytes: u64,
    /// Number of records that move.
    pub(crate) kept: u64,
}

impl<D: Disk> Log<D> {
    /// Whether the log contains too much garbage: it may be twice as large as its current data or,
    /// on a disk without room for the next segment, two segments larger.
    pub(crate) fn wants_reclaim(&self, live_bytes: u64, is_cramped: bool) -> bool {
        if self.victim.is_some() {
            return true;
        }
        let segment = self.options.segment_bytes;
        let used = self.content_bytes();
        let ceiling = self.options.disk_bytes_max.saturating_sub(3 * segment);
        let relaxed = (2 * live_bytes + 2 * segment).max(SEGMENTS_FREE * segment);
        self.sealed.len() > YOUNGER_MIN
            && (is_cramped || used > relaxed.min(ceiling))
            && used.saturating_sub(live_bytes) > 2 * segment
    }

    /// Reads the next part of the oldest segment, at least a group and about `budget` bytes. Each
    /// record is passed to `keep`, which copies the current ones and returns whether it did.
    pub(crate) fn reclaim_step(
        &mut self,
        budget: u64,
        keep: &mut dyn FnMut(&[u8]) -> bool,
        damaged: &mut dyn FnMut(Damage),
    ) -> io::Result<Reclaimed> {
        let mut reclaimed = Reclaimed::default();
        if self.victim.is_none() {
            let Some(oldest) = self.sealed.front() else {
                return Ok(reclaimed);
            };
            self.victim = Some(Victim {
                number: oldest.number,
                file: self.disk.open(&segment_name(oldest.number))?,
                len: oldest.len,
                at: SEGMENT_HEADER_LEN as u64,
                failures: 0,
            });
        }
        let Some(victim) = &mut self.victim else {
            return Ok(reclaimed);
        };
        let mut count = |payload: &[u8]| reclaimed.kept += u64::from(keep(payload));
        let start = victim.at;
        while victim.at < victim.len && victim.at - start < budget {
            if let Err(error) = victim.step(&mut count, damaged) {
                victim.failures += 1;
                return Err(error);
            }
        }
        reclaimed.bytes = victim.at - start;
        Ok(reclaimed)
    }

    /// Restarts the reading of the oldest segment later; the records copied so far are redundant.
    pub(crate) fn put_victim_off(&mut self) {
        self.victim = None;
    }

    /// Number of the oldest segment if it was completely read and is to be removed.
    pub(crate) fn read_victim(&self) -> Option<u64> {
        let victim = self.victim.as_ref()?;
        (victim.at >= victim.len).then_some(victim.number)
    }

    /// Removes the oldest segment if it was completely read. Call it only when all copied records
    /// are durable, and every change that made a record obsolete.
    pub(crate) fn retire(&mut self) -> io::Result<bool> {
        // The next segment must not be removed while this one could reappear, because its removals
        // apply to records of this one.
        self.sync_names()?;
        if self
            .victim
            .as_ref()
            .is_none_or(|victim| victim.at < victim.len)
        {
            return Ok(false);
        }
        // Without a sync per commit the copies may exist only in the page cache.
        self.sync_active()?;
        let Some(victim) = self.victim.take() else {
            return Ok(false);
        };
        let Some(oldest) = self.sealed.front() else {
            return Ok(false);
        };
        let size = self.options.segment_bytes;
        let fits = oldest.size == size && victim.file.size()? == size;
        let name = segment_name(victim.number);
        if let Err(error) = self.spare.put(&self.disk, &name, fits) {
            self.victim = Some(victim);
            return Err(error);
        }
        self.sealed.pop_front();
        self.reclaimed += 1;
        self.names_unsafe = true;
        self.sync_names()?;
        Ok(true)
    }

    fn sync_names(&mut self) -> io::Result<()> {
        if self.names_unsafe {
            self.disk.sync_dir()?;
            self.names_unsafe = false;
        }
        Ok(())
    }

    /// Writes at least `bytes` more of the spare file; returns `true` when nothing is left to do.
    pub(crate) fn prepare_spare(&mut self, bytes: u64) -> io::Result<bool> {
        let planned = self.content_bytes() + self.options.segment_bytes + END_LEN as u64;
        if planned > self.options.disk_bytes_max {
            return Ok(true);
        }
        if planned + self.reserve.bytes() > self.options.disk_bytes_max {
            self.reserve.discard(&self.disk)?;
        }
        if !self.spare.prepare(&self.disk, &self.options, bytes)? {
            return Ok(false);
        }
        if planned + self.options.segment_bytes + Reserve::wanted(&self.options)
            <= self.options.disk_bytes_max
        {
            self.reserve.prepare(&self.disk, &self.options)?;
        }
        Ok(true)
    }
}

impl<F: File> Victim<F> {
    /// Reads the next group, or the rest of the segment if that is damaged.
    fn step(
        &mut self,
        found: &mut dyn FnMut(&[u8]),
        damaged: &mut dyn FnMut(Damage),
    ) -> io::Result<()> {
        if self.failures > READ_FAILURES_MAX {
            self.salvage(found, damaged);
            return Ok(());
        }
        let mut header = [0; GROUP_HEADER_LEN];
        read_full(&self.file, &mut header, self.at)?;
        let offset = usize::try_from(self.at).unwrap_or(usize::MAX);
        let group = Group::decode(&header, self.number, offset);
        let Some(group) = group.filter(|group| group.next() as u64 <= self.len) else {
            self.salvage(found, damaged);
            return Ok(());
        };
        let mut bytes = vec![0; group.len];
        read_full(&self.file, &mut bytes, group.start() as u64)?;
        if !is_whole(&bytes, self.number) {
            self.salvage(found, damaged);
            return Ok(());
        }
        let mut at = 0;
        while let Some(record) = bytes
            .get(at..)
            .and_then(|rest| record_at(rest, seed(self.number)))
        {
            found(record.payload);
            at += record.framed_len();
        }
        self.at = group.next() as u64;
        Ok(())
    }

    fn salvage(&mut self, found: &mut dyn FnMut(&[u8]), damaged: &mut dyn FnMut(Damage)) {
        // All readable parts of the damaged region are used.
        let mut bytes = Vec::new();
        read_tolerant(&self.file, self.len, &mut bytes);
        let start = usize::try_from(self.at).unwrap_or(usize::MAX);
        let number = self.number;
        let extent = Extent::Sealed(self.len);
        scan(&bytes, number, start, extent, &mut |part| match part {
            Found::Record { payload, .. } => found(payload),
            Found::Damaged { offset, len } => damaged(Damage {
                segment: number,
                offset: offset as u64,
                len: len as u64,
            }),
        });
        self.at = self.len;
    }
}

fn is_whole(group: &[u8], number: u64) -> bool {
    let mut at = 0;
    while at < group.len() {
        match group
            .get(at..)
            .and_then(|rest| record_at(rest, seed(number)))
        {
            Some(record) => at += record.framed_len(),
            None => return false,
        }
    }
    true
}
