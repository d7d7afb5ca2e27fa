//! A disk in memory that simulates faults: one seed determines one run.
//!
//! Writes that were not synced may be lost at a crash, completely or partly: sector by sector in
//! any order, and torn within a sector. Calls fail, are short or find no space as [`Faults`]
//! specifies. A failed sync loses a part of the data that it was to save, while reads continue to
//! return it (like the page cache of Linux).

mod platter;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Disk, File, OpenDirError, ReadDisk};
use platter::{Content, NameChange, State, apply_names, put};

const SECTOR: usize = 512;

/// The simulated faults. Probabilities are in thousandths of the calls of that kind.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// The power fails at this change, counted from now; `None` for no failure.
    pub crash_at: Option<u64>,
    /// Reads and writes that process fewer bytes than requested.
    pub short: u32,
    /// Reads that fail.
    pub read_errors: u32,
    /// Writes that fail, possibly after a part was written.
    pub write_errors: u32,
    /// Syncs of files that fail, and lose a part of the unsynced data.
    pub sync_errors: u32,
    /// Space of the disk in bytes; 0 for unlimited.
    pub space_bytes: u64,
    /// Longest time of a call, in microseconds of virtual time.
    pub delay_micros_max: u32,
}

/// The disk itself, which outlives the processes that open it.
#[derive(Clone, Debug)]
pub struct SimStorage(Arc<Mutex<State>>);

/// The disk as opened by one process, locked against others until it is dropped.
#[derive(Debug)]
pub struct SimDisk {
    storage: SimStorage,
    /// The handle becomes invalid at the next crash.
    epoch: u64,
}

/// The disk as opened for reading only, even if another process uses it.
#[derive(Debug)]
pub struct SimReader {
    storage: SimStorage,
    epoch: u64,
}

/// A file as opened by one process.
#[derive(Debug)]
pub struct SimFile {
    storage: SimStorage,
    epoch: u64,
    id: u64,
}

impl SimStorage {
    /// Creates an empty disk.
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(State::new(seed))))
    }

    /// Opens the disk for a process.
    ///
    /// # Errors
    ///
    /// [`OpenDirError::InUse`] while another process uses it.
    pub fn open(&self) -> Result<SimDisk, OpenDirError> {
        let mut state = self.state();
        if state.is_open {
            return Err(OpenDirError::InUse(PathBuf::from("simulated")));
        }
        state.is_open = true;
        let epoch = state.epoch;
        drop(state);
        Ok(SimDisk {
            storage: self.clone(),
            epoch,
        })
    }

    /// Opens the disk for reading, even if another process uses it.
    pub fn reader(&self) -> SimReader {
        SimReader {
            storage: self.clone(),
            epoch: self.state().epoch,
        }
    }

    /// Sets the faults from now on.
    pub fn set_faults(&self, faults: Faults) {
        let mut state = self.state();
        let crash_at = faults.crash_at.map(|calls| state.changes + calls);
        state.faults = Faults { crash_at, ..faults };
    }

    /// Simulates a power failure: each unsynced change is lost or kept. Resets the faults.
    pub fn crash(&self) {
        let mut state = self.state();
        state.lose_power();
        state.restart();
    }

    /// Simulates the end of the process without that of the machine: all written data remains.
    /// Resets the faults.
    pub fn kill(&self) {
        self.state().restart();
    }

    /// Flips bits of one byte, both in the durable and in the visible content; returns `false` if
    /// the file is shorter.
    pub fn rot(&self, name: &str, offset: usize, bits: u8) -> bool {
        let mut state = self.state();
        let Some(id) = state.names.get(name).copied() else {
            return false;
        };
        let Some(content) = state.files.get_mut(&id) else {
            return false;
        };
        for copy in [&mut content.safe, &mut content.seen] {
            if let Some(byte) = copy.get_mut(offset) {
                *byte ^= bits;
            }
        }
        offset < content.seen.len()
    }

    /// Moves the directory away from its path, or back.
    pub fn set_moved(&self, is_moved: bool) {
        self.state().is_moved = is_moved;
    }

    /// Removes a file durably.
    pub fn lose(&self, name: &str) {
        let mut state = self.state();
        state.names.remove(name);
        state.safe_names.remove(name);
    }

    /// Names and contents as a process sees them.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let state = self.state();
        let seen = |id| {
            state
                .files
                .get(id)
                .map_or_else(Vec::new, |c| c.seen.clone())
        };
        state
            .names
            .iter()
            .map(|(name, id)| (name.clone(), seen(id)))
            .collect()
    }

    /// Creates a file durably.
    pub fn put(&self, name: &str, bytes: &[u8]) {
        let mut state = self.state();
        let id = state.new_file();
        let content = state.files.entry(id).or_default();
        content.safe = bytes.to_vec();
        content.seen = bytes.to_vec();
        state.names.insert(name.to_owned(), id);
        state.safe_names.insert(name.to_owned(), id);
    }

    /// Whether calls work: the power has not failed since the last [`SimStorage::crash`].
    pub fn has_power(&self) -> bool {
        !self.state().crashed
    }

    /// Number of calls so far that changed the disk.
    pub fn changes(&self) -> u64 {
        self.state().changes
    }

    /// Virtual time that calls took, in microseconds.
    pub fn micros(&self) -> u64 {
        self.state().micros
    }

    /// The next random number of the run, below `limit`.
    pub fn random(&self, limit: u64) -> u64 {
        self.state().below(limit)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The lock guards the whole disk for one call.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a call of a process.
    fn enter(&self, epoch: u64) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.state();
        if state.crashed || state.epoch != epoch {
            return Err(io::Error::other("the machine has no power"));
        }
        let delay_max = u64::from(state.faults.delay_micros_max);
        let delay = state.below(delay_max + 1);
        state.micros += delay;
        Ok(state)
    }

    fn list(&self, epoch: u64) -> io::Result<Vec<String>> {
        let state = self.enter(epoch)?;
        let top = state.names.keys().filter(|name| !name.contains('/'));
        Ok(top.cloned().collect())
    }

    fn open_file(&self, epoch: u64, name: &str) -> io::Result<SimFile> {
        let id = self.enter(epoch)?.names.get(name).copied();
        id.map(|id| self.file(epoch, id))
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn file(&self, epoch: u64, id: u64) -> SimFile {
        SimFile {
            storage: self.clone(),
            epoch,
            id,
        }
    }

    /// Starts a call that changes the disk.
    fn enter_change(&self, epoch: u64) -> io::Result<(MutexGuard<'_, State>, bool)> {
        let mut state = self.enter(epoch)?;
        state.changes += 1;
        let is_last = state.faults.crash_at.is_some_and(|at| at <= state.changes);
        state.crashed = is_last;
        Ok((state, is_last))
    }
}

impl Drop for SimDisk {
    fn drop(&mut self) {
        let mut state = self.storage.state();
        if state.epoch == self.epoch {
            state.is_open = false;
        }
    }
}

fn no_power(is_last: bool) -> io::Result<()> {
    if is_last {
        return Err(io::Error::other("the power failed"));
    }
    Ok(())
}

impl Disk for SimDisk {
    type File = SimFile;

    fn list(&self) -> io::Result<Vec<String>> {
        self.storage.list(self.epoch)
    }

    fn create(&self, name: &str) -> io::Result<SimFile> {
        let (mut state, is_last) = self.storage.enter_change(self.epoch)?;
        let id = state.new_file();
        state.files.insert(id, Content::default());
        state.names.insert(name.to_owned(), id);
        state
            .name_changes
            .push(NameChange::Set(name.to_owned(), id));
        drop(state);
        no_power(is_last)?;
        Ok(self.storage.file(self.epoch, id))
    }

    fn open(&self, name: &str) -> io::Result<SimFile> {
        self.storage.open_file(self.epoch, name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let (mut state, is_last) = self.storage.enter_change(self.epoch)?;
        let id = state.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        state.names.insert(to.to_owned(), id);
        state.name_changes.push(NameChange::Remove(from.to_owned()));
        state.name_changes.push(NameChange::Set(to.to_owned(), id));
        no_power(is_last)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let (mut state, is_last) = self.storage.enter_change(self.epoch)?;
        state.names.remove(name).ok_or(io::ErrorKind::NotFound)?;
        state.name_changes.push(NameChange::Remove(name.to_owned()));
        no_power(is_last)
    }

    fn sync_dir(&self) -> io::Result<()> {
        let (mut state, is_last) = self.storage.enter_change(self.epoch)?;
        no_power(is_last)?;
        let changes = std::mem::take(&mut state.name_changes);
        apply_names(&mut state.safe_names, changes.into_iter());
        Ok(())
    }

    fn check_place(&self) -> io::Result<()> {
        if self.storage.enter(self.epoch)?.is_moved {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(())
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let state = self.storage.enter(self.epoch)?;
        match state.faults.space_bytes {
            0 => Ok(u64::MAX),
            space => Ok(space.saturating_sub(state.used())),
        }
    }
}

impl ReadDisk for SimReader {
    type File = SimFile;

    fn list(&self) -> io::Result<Vec<String>> {
        self.storage.list(self.epoch)
    }

    fn open(&self, name: &str) -> io::Result<SimFile> {
        self.storage.open_file(self.epoch, name)
    }
}

impl File for SimFile {
    fn size(&self) -> io::Result<u64> {
        let state = self.storage.enter(self.epoch)?;
        Ok(state.files.get(&self.id).map_or(0, |c| c.seen.len() as u64))
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut state = self.storage.enter(self.epoch)?;
        let errors = state.faults.read_errors;
        if state.happens(errors) {
            return Err(io::Error::other("read error"));
        }
        let short = state.faults.short;
        let wanted = match into.len() {
            len if len > 1 && state.happens(short) => 1 + state.below_len(len - 1),
            len => len,
        };
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let content = state.files.get(&self.id);
        let rest = content.and_then(|content| content.seen.get(start..));
        let rest = rest.unwrap_or_default();
        let len = rest.len().min(wanted);
        into[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let (mut state, is_last) = self.storage.enter_change(self.epoch)?;
        let Faults {
            short,
            write_errors,
            space_bytes,
            ..
        } = state.faults;
        let fails = state.happens(write_errors);
        let mut len = bytes.len();
        if fails {
            len = state.below_len(len + 1);
        } else if len > 1 && state.happens(short) {
            len = 1 + state.below_len(len - 1);
        }
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let size = state.files.get(&self.id).map_or(0, |c| c.seen.len());
        let growth = (start + len).saturating_sub(size) as u64;
        if space_bytes > 0 && growth > 0 && state.used() + growth > space_bytes {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let written = bytes.get(..len).unwrap_or_default();
        if let Some(content) = state.files.get_mut(&self.id) {
            put(&mut content.seen, start, written);
            content.dirty.push((start, written.to_vec()));
        }
        drop(state);
        no_power(is_last)?;
        if fails {
            return Err(io::Error::other("write error"));
        }
        Ok(len)
    }

    fn sync(&self) -> io::Result<()> {
        let (mut state, is_last) = self.storage.enter_change(self.epoch)?;
        no_power(is_last)?;
        let errors = state.faults.sync_errors;
        let fails = state.happens(errors);
        let Some(mut content) = state.files.remove(&self.id) else {
            return Ok(());
        };
        let mood = if fails { 2 } else { 1 };
        state.save_some(&mut content, mood);
        state.files.insert(self.id, content);
        if fails {
            return Err(io::Error::other("sync error"));
        }
        Ok(())
    }
}
