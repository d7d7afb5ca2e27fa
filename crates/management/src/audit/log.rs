//! The log: what is written before, after and instead of a change, and pages of it.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::json;
use thiserror::Error;

use super::entry::{Change, End, Ended, Entry};
use super::files::{FILE_BYTES_MAX, Files, Reader};
use super::flood::Flood;
use super::ring::Ring;
use super::watches::{Look, Watch, Watches};
use crate::clock::Clock;
use crate::in_thread::Unfinished;
use crate::login::Caller;

/// Files without other settings.
pub(super) const FILES_MAX: usize = 64;
/// Files that are read for one page: with a filter that matches little a page may be short.
const FILES_OF_PAGE: usize = 8;

/// The log cannot be written or read.
#[derive(Debug, Error)]
#[error("the audit log: {0}")]
pub(crate) struct AuditError(#[from] io::Error);

impl AuditError {
    /// The thread that wrote or read ended early.
    pub(crate) fn unfinished(unfinished: Unfinished) -> Self {
        Self(io::Error::other(unfinished.to_string()))
    }
}

/// The audit log of a broker.
#[derive(Debug)]
pub(crate) struct Audit {
    /// Guards the place of the next line, also while that is written: waits for the disk.
    kept: Mutex<Kept>,
    flood: Mutex<Flood>,
    watches: Mutex<Watches>,
    /// Of what is looked at: nobody can look for another thing with the same digest.
    digests: RandomState,
    /// Why the last write failed; none if it did not.
    failure: Mutex<Option<String>>,
    clock: Clock,
    failures: AtomicU64,
    left_out: AtomicU64,
    looks_refused: AtomicU64,
}

#[derive(Debug)]
enum Kept {
    Files(Box<Files>),
    Memory(Ring),
}

/// A change that is written down and may begin.
#[derive(Debug)]
#[must_use = "its end belongs into the log"]
pub(crate) struct Pending {
    number: u64,
}

/// Which entries are wanted.
#[derive(Clone, Debug, Default)]
pub(crate) struct AuditQuery {
    /// Only those of this caller.
    pub(crate) who: Option<String>,
    /// Only this action; `client.*` is every action on clients.
    pub(crate) action: Option<String>,
    /// Only those of this time and later, in milliseconds of the Unix epoch.
    pub(crate) since: Option<u64>,
    /// Only those before the entry of this number.
    pub(crate) before: Option<u64>,
    /// How many.
    pub(crate) limit: usize,
}

/// A page of the log, the newest entry first.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Its entries; possibly few or none although there are more.
    pub(crate) entries: Vec<Entry>,
    /// Where the next page begins: its `before`.
    pub(crate) next: Option<u64>,
    /// Lines that cannot be read, in the files of this page.
    pub(crate) damaged: u64,
}

impl Audit {
    /// Opens the log in a data directory; without one it is in memory.
    ///
    /// # Errors
    /// The files cannot be opened.
    pub(crate) fn open(data_dir: Option<&Path>, clock: Clock) -> io::Result<Self> {
        let kept = match data_dir {
            Some(data_dir) => Kept::Files(Box::new(Files::open(data_dir, FILES_MAX)?)),
            None => Kept::Memory(Ring::default()),
        };
        Ok(Self {
            kept: Mutex::new(kept),
            flood: Mutex::default(),
            watches: Mutex::default(),
            digests: RandomState::new(),
            failure: Mutex::default(),
            clock,
            failures: AtomicU64::new(0),
            left_out: AtomicU64::new(0),
            looks_refused: AtomicU64::new(0),
        })
    }

    /// Keeps so many bytes from now on, in whole files.
    pub(crate) fn set_bytes_max(&self, bytes: u64) {
        if let Kept::Files(files) = &mut *self.held() {
            let files_max = usize::try_from(bytes / FILE_BYTES_MAX).unwrap_or(usize::MAX);
            files.set_most(files_max.max(2));
        }
    }

    /// Writes down that a change begins. Waits for the disk.
    ///
    /// # Errors
    /// The disk is full or fails: the change must not be made.
    pub(crate) fn begin(&self, caller: &Caller, change: Change) -> Result<Pending, AuditError> {
        let entry = Entry::new(caller, change, self.clock.now().wall_millis);
        let number = self.push(entry)?;
        Ok(Pending { number })
    }

    /// Writes down how it ended; a failure is in the log of the broker. Waits for the disk.
    pub(crate) fn finish(&self, pending: &Pending, ended: Ended) {
        let end = End::new(pending.number, ended);
        let written = match &mut *self.held() {
            Kept::Files(files) => files.end(&end),
            Kept::Memory(ring) => {
                ring.end(end);
                Ok(())
            }
        };
        if let Err(error) = written {
            self.failures.fetch_add(1, Ordering::Relaxed);
            tracing::error!(%error, number = pending.number, "the end of a change is not in the audit log");
        }
    }

    /// Writes down what has happened already, such as a login. Waits for the disk.
    ///
    /// # Errors
    /// The disk is full or fails.
    pub(crate) fn record(
        &self,
        caller: &Caller,
        change: Change,
        ended: Ended,
    ) -> Result<(), AuditError> {
        let entry = Entry::new(caller, change, self.clock.now().wall_millis);
        self.push(entry.ended(ended))?;
        Ok(())
    }

    /// Whether a refusal is written down, or left out because there are too many: with the number
    /// of those that were left out before it.
    pub(crate) fn admits_refusal(&self) -> Option<u64> {
        let now = self.clock.now().uptime;
        let mut flood = self.flood.lock().unwrap_or_else(PoisonError::into_inner);
        let admitted = flood.admit(now);
        if admitted.is_none() {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
        admitted
    }

    /// Writes down that a caller looks at payloads, unless it has lines about all that it looks at.
    /// Waits for the disk.
    ///
    /// # Errors
    /// The disk is full or fails: the payloads must not be shown.
    pub(crate) fn watch(&self, caller: &Caller, look: &Look) -> Result<Watch, AuditError> {
        let who = &*caller.name;
        let subjects = look.subjects.iter().map(|one| self.digests.hash_one(one));
        let subjects: Vec<u64> = subjects.collect();
        let now = self.clock.now().uptime;
        let watch = self.watches().watch(who, &subjects, now);
        if watch == Watch::TooMany {
            self.looks_refused.fetch_add(1, Ordering::Relaxed);
        }
        if watch == Watch::New {
            let change = Change::new("messages.watched", &look.target());
            let change = change.after(json!({ "by": look.by, "subjects": look.subjects }));
            self.record(caller, change, Ended::done())?;
            self.watches().note_written(who, &subjects, now);
        }
        Ok(watch)
    }

    fn watches(&self) -> MutexGuard<'_, Watches> {
        self.watches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lines that could not be written.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Refusals that were left out.
    pub(crate) fn refusals_left_out(&self) -> u64 {
        self.left_out.load(Ordering::Relaxed)
    }

    /// Looks at payloads that were refused because there were too many.
    pub(crate) fn looks_refused(&self) -> u64 {
        self.looks_refused.load(Ordering::Relaxed)
    }

    /// A page. Waits for the disk, and keeps nobody from writing.
    ///
    /// # Errors
    /// The files cannot be read.
    pub(crate) fn page(&self, query: &AuditQuery) -> Result<Found, AuditError> {
        let reader = match &*self.held() {
            Kept::Files(files) => files.reader(),
            Kept::Memory(ring) => return Ok(query.page_of(ring)),
        };
        Ok(query.page_of_files(&reader)?)
    }

    /// Why it cannot be written; none if the last write succeeded.
    pub(crate) fn failure(&self) -> Option<String> {
        let failure = self.failure.lock();
        failure.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn push(&self, entry: Entry) -> Result<u64, AuditError> {
        let pushed = match &mut *self.held() {
            Kept::Files(files) => files.push(entry),
            Kept::Memory(ring) => Ok(ring.push(entry)),
        };
        if pushed.is_err() {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
        let failure = pushed.as_ref().err().map(ToString::to_string);
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
        Ok(pushed?)
    }

    fn held(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
impl Audit {
    /// Makes every write fail as on a full disk; returns what makes them succeed again.
    pub(crate) fn break_disk(&self) -> Option<std::fs::File> {
        let full = std::fs::File::options().write(true).open("/dev/full");
        self.exchange_file(full.expect("the device is there"))
    }

    /// The disk has room again.
    pub(crate) fn mend_disk(&self, file: Option<std::fs::File>) {
        self.exchange_file(file.expect("a file was written before"));
    }

    fn exchange_file(&self, file: std::fs::File) -> Option<std::fs::File> {
        match &mut *self.held() {
            Kept::Files(files) => files.exchange_file(file),
            Kept::Memory(_) => None,
        }
    }
}

impl AuditQuery {
    fn page_of(&self, ring: &Ring) -> Found {
        let mut found = Found::default();
        for entry in ring.newest().filter(|entry| self.matches(entry)) {
            if self.is_full(&mut found) {
                break;
            }
            found.entries.push(entry.clone());
        }
        found
    }

    fn page_of_files(&self, reader: &Reader) -> io::Result<Found> {
        let before = self.before.unwrap_or(u64::MAX);
        let older = reader.firsts.partition_point(|first| *first < before);
        let mut found = Found::default();
        // The ends of the newest of them may be in the file behind them.
        let mut ends = match reader.firsts.get(older) {
            Some(newer) => reader.read(*newer)?.ends,
            None => BTreeMap::new(),
        };
        let files = reader.firsts[..older].iter().rev();
        for (place, first) in files.enumerate() {
            let contents = reader.read(*first)?;
            ends.extend(contents.ends);
            found.damaged += contents.damaged;
            if self.is_complete(contents.entries, &mut ends, &mut found) {
                break;
            }
            if place + 1 == FILES_OF_PAGE && *first != reader.firsts[0] {
                found.next = Some(*first);
                break;
            }
        }
        Ok(found)
    }

    /// Adds the entries of a file to a page; true if it is full then, and there are more.
    fn is_complete(
        &self,
        entries: Vec<Entry>,
        ends: &mut BTreeMap<u64, End>,
        found: &mut Found,
    ) -> bool {
        let newest = entries.into_iter().rev();
        for mut entry in newest.filter(|entry| self.matches(entry)) {
            if self.is_full(found) {
                return true;
            }
            if let Some(end) = ends.remove(&entry.number) {
                entry.end(end);
            }
            found.entries.push(entry);
        }
        false
    }

    /// Whether there is no room for one more entry; then the next page begins behind the last one.
    fn is_full(&self, found: &mut Found) -> bool {
        let is_full = found.entries.len() >= self.limit;
        if is_full {
            found.next = found.entries.last().map(|entry| entry.number);
        }
        is_full
    }

    fn matches(&self, entry: &Entry) -> bool {
        let is_action = |wanted: &str| match wanted.strip_suffix('*') {
            Some(beginning) => entry.action.starts_with(beginning),
            None => entry.action == wanted,
        };
        self.before.is_none_or(|before| entry.number < before)
            && self.since.is_none_or(|since| entry.at >= since)
            && self.who.as_ref().is_none_or(|who| entry.who == *who)
            && self.action.as_deref().is_none_or(is_action)
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
