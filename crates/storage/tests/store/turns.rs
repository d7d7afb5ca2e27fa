//! Two processes on one simulated disk, with a random scheduling of their calls.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use thrum_storage::disk::sim::{SimDisk, SimFile, SimReader, SimStorage};
use thrum_storage::disk::{Disk, File, ReadDisk};

/// One of the two processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Writer,
    Reader,
}

/// The state of the scheduling.
#[derive(Debug)]
struct State {
    next: Side,
    /// Whether there is no reader, so that no scheduling takes place.
    is_alone: bool,
    /// Whether the reader is waiting for its first turn.
    has_come: bool,
}

/// The scheduling of one run.
#[derive(Clone, Debug)]
pub(crate) struct Turns {
    storage: SimStorage,
    /// One of this many calls passes the turn to the other process.
    calls: u64,
    shared: Arc<(Mutex<State>, Condvar)>,
}

impl Turns {
    pub(crate) fn new(storage: &SimStorage) -> Self {
        let state = State {
            next: Side::Writer,
            is_alone: true,
            has_come: false,
        };
        Self {
            storage: storage.clone(),
            calls: 2 << storage.random(4),
            shared: Arc::new((Mutex::new(state), Condvar::new())),
        }
    }

    /// Starts the scheduling as soon as the reader is there.
    pub(crate) fn begin(&self) {
        self.state().is_alone = false;
    }

    /// Waits for the reader: a run must not depend on the start of threads.
    pub(crate) fn expect_reader(&self) {
        let state = self.state();
        drop(
            self.shared
                .1
                .wait_while(state, |state| !state.has_come && !state.is_alone)
                .unwrap(),
        );
    }

    /// Whether the reader has ended.
    pub(crate) fn are_over(&self) -> bool {
        self.state().is_alone
    }

    /// Waits for the turn of a process, which lasts until its next call.
    fn wait(&self, side: Side) {
        let mut state = self.state();
        state.has_come |= side == Side::Reader;
        if state.next == side && !state.is_alone && self.storage.random(self.calls) == 0 {
            state.next = match side {
                Side::Writer => Side::Reader,
                Side::Reader => Side::Writer,
            };
        }
        self.shared.1.notify_all();
        let is_others = |state: &mut State| !state.is_alone && state.next != side;
        drop(self.shared.1.wait_while(state, is_others).unwrap());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.0.lock().unwrap()
    }
}

/// Reports the end of a process when it is dropped.
pub(crate) struct Present(pub(crate) Turns);

impl Drop for Present {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.is_alone = true;
        drop(state);
        self.0.shared.1.notify_all();
    }
}

/// The disk of one process.
#[derive(Debug)]
pub(crate) struct Taking<D> {
    pub(crate) disk: D,
    pub(crate) side: Side,
    pub(crate) turns: Turns,
}

impl<D> Taking<D> {
    fn file(&self, file: SimFile) -> Taking<SimFile> {
        Taking {
            disk: file,
            side: self.side,
            turns: self.turns.clone(),
        }
    }

    fn call(&self) -> &D {
        self.turns.wait(self.side);
        &self.disk
    }
}

impl Disk for Taking<SimDisk> {
    type File = Taking<SimFile>;

    fn list(&self) -> io::Result<Vec<String>> {
        Disk::list(self.call())
    }

    fn create(&self, name: &str) -> io::Result<Self::File> {
        Ok(self.file(self.call().create(name)?))
    }

    fn open(&self, name: &str) -> io::Result<Self::File> {
        Ok(self.file(Disk::open(self.call(), name)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.call().rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.call().remove(name)
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.call().sync_dir()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.call().free_bytes()
    }

    fn check_place(&self) -> io::Result<()> {
        self.call().check_place()
    }
}

impl ReadDisk for Taking<SimReader> {
    type File = Taking<SimFile>;

    /// Like the listing of a real directory: files created or removed meanwhile may be listed or
    /// not.
    fn list(&self) -> io::Result<Vec<String>> {
        let before = self.call().list()?;
        for _ in 0..self.turns.storage.random(20) {
            self.turns.wait(self.side);
        }
        let after = self.call().list()?;
        let mut names: Vec<String> = before.iter().chain(&after).cloned().collect();
        names.sort();
        names.dedup();
        names.retain(|name| {
            let stays = before.contains(name) && after.contains(name);
            stays || self.turns.storage.random(2) == 0
        });
        Ok(names)
    }

    fn open(&self, name: &str) -> io::Result<Self::File> {
        Ok(self.file(self.call().open(name)?))
    }
}

impl File for Taking<SimFile> {
    fn size(&self) -> io::Result<u64> {
        self.call().size()
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.call().read_at(into, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.call().write_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.call().sync()
    }
}
