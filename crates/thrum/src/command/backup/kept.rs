//! Backups that a running broker makes for its management interface and keeps in its data
//! directory: `DIR/backups/20261126T221500Z.tar`.
//!
//! A backup is written by a thread of its own, which reads the log as any other program would: no
//! worker knows of it. Until it is complete its name ends with `.part`.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use thrum_files::Folder;
use thrum_management::api::Backup;
use thrum_management::{BackupEnded, OpenBackup, ProgramError, Thing};
use thrum_storage::WallMillis;

use super::archive::Watch;
use super::check::verify;
use super::create::write;
use super::files::NAMES;
use crate::command::data_dir::DataDir;
use crate::command::shown::{now, parse_time, time};

/// Folder in the data directory.
const FOLDER: &str = "backups";
/// Backups that are kept: one of each day of a week and some made by hand. Older ones are never
/// removed without being asked for: nobody else may have a copy.
const KEPT_MAX: usize = 10;
/// Bytes of the disk that stay free for the log: what it takes before its oldest file is freed,
/// and a file more.
const FREE_BYTES_MIN: u64 = 512 * 1024 * 1024;
/// A backup takes what workers and commits leave of a core.
const NICENESS: i32 = 19;
/// Names and their ends.
const DONE: &str = ".tar";
const PART: &str = ".part";
/// The length of `20261126T221500Z`.
const NAME_LEN: usize = 16;

/// The backups of a broker.
#[derive(Clone, Debug)]
pub(crate) struct KeptBackups {
    /// Empty if the broker has none.
    data_dir: PathBuf,
    /// The last work. Held by requests and the thread of a backup, for moments.
    work: Arc<Mutex<Option<Arc<Work>>>>,
}

/// A backup while it is made, and if it failed.
#[derive(Debug)]
struct Work {
    name: String,
    /// Bytes of the log and of the files when it began.
    expected: u64,
    written: AtomicU64,
    /// Nobody wants it any longer. Held while it gets its name, so that a removal finds it, or
    /// prevents it.
    is_cancelled: Mutex<bool>,
    /// Its end: nothing while it runs, an empty text if it is done.
    failure: Mutex<Option<String>>,
}

impl KeptBackups {
    /// Those in a data directory, which is empty if there is none. The remains of a backup that was
    /// cut off are removed.
    pub(crate) fn new(data_dir: &Path) -> Self {
        let kept = Self {
            data_dir: data_dir.to_owned(),
            work: Arc::default(),
        };
        if let Ok(Some(folder)) = kept.existing() {
            remove_parts(&folder);
        }
        kept
    }

    /// Begins a backup, and returns at once; `ended` is called at its end.
    ///
    /// # Errors
    /// There is no data directory, one is made already, there are too many, or there is no room.
    pub(crate) fn begin(&self, ended: BackupEnded) -> Result<Backup, ProgramError> {
        let mut current = lock(&self.work);
        if let Some(work) = current.as_ref().filter(|work| work.is_running()) {
            return Err(ProgramError::BackupConflict {
                why: format!(
                    "the backup {} is being made, and there is one at a time",
                    work.name
                ),
                remedy: "ask again when it is done; DELETE /api/v1/backups/NAME ends it",
            });
        }
        let folder = self.folder()?;
        let names = names(&folder)?;
        if names.len() >= KEPT_MAX {
            return Err(ProgramError::BackupConflict {
                why: format!("{KEPT_MAX} backups are kept, and there may be no more"),
                remedy: "remove one with DELETE /api/v1/backups/NAME or thrum backup rm NAME",
            });
        }
        check_room(&folder).map_err(|error| no_room(&error))?;
        remove_parts(&folder);
        let before = current.as_ref().map(|work| &work.name);
        let name = new_name(names.last().max(before).map(String::as_str), now());
        let part = format!("{name}{PART}");
        let file = folder.create_new(OsStr::new(&part)).map_err(failed)?;
        folder.set_owner(&file).map_err(failed)?;
        let work = Arc::new(Work {
            name,
            expected: expected_bytes(&self.data_dir),
            written: AtomicU64::new(0),
            is_cancelled: Mutex::default(),
            failure: Mutex::default(),
        });
        let making = Making {
            data_dir: DataDir::at(self.data_dir.clone()),
            folder,
            work: Arc::clone(&work),
        };
        let thread = std::thread::Builder::new().name("backup".to_owned());
        thread
            .spawn(move || making.run(&file, ended))
            .map_err(failed)?;
        let backup = work.shown();
        *current = Some(work);
        Ok(backup)
    }

    /// The complete ones, the newest first.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub(crate) fn list(&self) -> Result<Vec<Backup>, ProgramError> {
        let Some(folder) = self.existing()? else {
            return Ok(Vec::new());
        };
        let names = names(&folder)?.into_iter().rev();
        let kept = names.map(|name| {
            let file = match folder.read(OsStr::new(&format!("{name}{DONE}"))) {
                // Removed meanwhile.
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                opened => opened.map_err(failed)?,
            };
            let bytes = file.metadata().map_err(failed)?.len();
            Ok(Some(Backup {
                began_at: began_at(&name),
                name,
                state: "done".to_owned(),
                bytes,
                expected_bytes: None,
                failure: None,
            }))
        });
        kept.filter_map(Result::transpose).collect()
    }

    /// The one that is made, or the last one that failed.
    pub(crate) fn unfinished(&self) -> Option<Backup> {
        let work = lock(&self.work).clone()?;
        Some(work.shown()).filter(|backup| backup.state != "done")
    }

    /// Opens a complete one.
    ///
    /// # Errors
    /// There is none of that name; it cannot be read.
    pub(crate) fn open(&self, name: &str) -> Result<OpenBackup, ProgramError> {
        let folder = self.existing()?.ok_or_else(|| missing(name))?;
        check_kept(&folder, name)?;
        let file = match folder.read(OsStr::new(&format!("{name}{DONE}"))) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(missing(name)),
            opened => opened.map_err(failed)?,
        };
        let bytes = file.metadata().map_err(failed)?.len();
        Ok(OpenBackup { file, bytes })
    }

    /// Removes a complete one, ends the one that is made, or forgets one that failed.
    ///
    /// # Errors
    /// There is none of that name; it cannot be removed.
    pub(crate) fn remove(&self, name: &str) -> Result<(), ProgramError> {
        let mut current = lock(&self.work);
        let work = current.take_if(|work| work.name == name && work.shown().state == "failed");
        let is_running = current.as_ref().is_some_and(|work| {
            let is_it = work.name == name && work.is_running();
            if is_it {
                *lock(&work.is_cancelled) = true;
            }
            is_it
        });
        let was_unfinished = work.is_some() || is_running;
        let Some(folder) = self.existing()? else {
            return was_unfinished.then_some(()).ok_or_else(|| missing(name));
        };
        match check_kept(&folder, name) {
            Err(ProgramError::Missing { .. }) if was_unfinished => return Ok(()),
            checked => checked?,
        }
        match folder.remove(OsStr::new(&format!("{name}{DONE}"))) {
            Err(error) if error.kind() == ErrorKind::NotFound => Err(missing(name)),
            removed => removed.and_then(|()| folder.sync()).map_err(failed),
        }
    }

    fn folder(&self) -> Result<Folder, ProgramError> {
        if self.data_dir.as_os_str().is_empty() {
            return Err(ProgramError::BackupConflict {
                why: "the broker has no data directory, so that there is nothing to back up"
                    .to_owned(),
                remedy: "set node.data_dir",
            });
        }
        let opened = Folder::open(&self.data_dir);
        opened
            .and_then(|folder| folder.open_or_create_directory(FOLDER))
            .map_err(failed)
    }

    /// The folder, if it is there.
    fn existing(&self) -> Result<Option<Folder>, ProgramError> {
        if self.data_dir.as_os_str().is_empty() {
            return Ok(None);
        }
        let opened = Folder::open(&self.data_dir);
        match opened.and_then(|folder| folder.open_directory(FOLDER)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            opened => opened.map(Some).map_err(failed),
        }
    }
}

/// A backup that is made.
struct Making {
    data_dir: DataDir,
    folder: Folder,
    work: Arc<Work>,
}

impl Making {
    fn run(&self, file: &File, ended: BackupEnded) {
        yield_the_core();
        let made = self.make(file);
        let name = &self.work.name;
        let end = match made {
            Ok(()) => {
                tracing::info!(name, "a backup is done");
                Ok(())
            }
            Err(error) => {
                let part = format!("{name}{PART}");
                self.folder.remove(OsStr::new(&part)).ok();
                let why = if *lock(&self.work.is_cancelled) {
                    "it was removed before it was done".to_owned()
                } else {
                    format!("{error:#}")
                };
                tracing::warn!(name, error = why, "a backup has failed");
                Err(why)
            }
        };
        let text = end.clone().err().unwrap_or_default();
        *lock(&self.work.failure) = Some(text);
        ended(end);
    }

    fn make(&self, file: &File) -> anyhow::Result<()> {
        let work = Arc::clone(&self.work);
        let folder = Folder::open(self.folder.path())?;
        let watch: Watch = Arc::new(move |written| {
            work.written.store(written, Ordering::Relaxed);
            work.check_wanted().map_err(io::Error::other)?;
            check_room(&folder)
        });
        write(&self.data_dir, file.try_clone()?, watch)?;
        // A long one is not read to its end when nobody wants it.
        verify(file, &|| self.work.check_wanted())?;
        let is_cancelled = lock(&self.work.is_cancelled);
        anyhow::ensure!(!*is_cancelled, "it was removed");
        let name = &self.work.name;
        let (part, done) = (format!("{name}{PART}"), format!("{name}{DONE}"));
        self.folder.rename(OsStr::new(&part), OsStr::new(&done))?;
        drop(is_cancelled);
        Ok(self.folder.sync()?)
    }
}

impl Work {
    fn check_wanted(&self) -> anyhow::Result<()> {
        anyhow::ensure!(!*lock(&self.is_cancelled), "it was removed");
        Ok(())
    }

    fn is_running(&self) -> bool {
        lock(&self.failure).is_none()
    }

    fn shown(&self) -> Backup {
        let failure = lock(&self.failure).clone();
        let state = match failure.as_deref() {
            None if *lock(&self.is_cancelled) => "ending",
            None => "running",
            Some("") => "done",
            Some(_) => "failed",
        };
        Backup {
            name: self.name.clone(),
            state: state.to_owned(),
            began_at: began_at(&self.name),
            bytes: self.written.load(Ordering::Relaxed),
            expected_bytes: Some(self.expected),
            failure: failure.filter(|text| !text.is_empty()),
        }
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Only while the thread lives; a system that does not allow it changes nothing.
fn yield_the_core() {
    rustix::process::setpriority_process(None, NICENESS).ok();
}

fn check_room(folder: &Folder) -> io::Result<()> {
    let free = folder.free_bytes()?;
    if free >= FREE_BYTES_MIN {
        return Ok(());
    }
    let mib = |bytes: u64| bytes / (1024 * 1024);
    Err(io::Error::new(
        ErrorKind::StorageFull,
        format!(
            "{} MiB of the disk are free, and {} MiB have to stay free for the log",
            mib(free),
            mib(FREE_BYTES_MIN)
        ),
    ))
}

fn no_room(error: &io::Error) -> ProgramError {
    if error.kind() == ErrorKind::StorageFull {
        return ProgramError::NoRoom(error.to_string());
    }
    ProgramError::Io(error.to_string())
}

#[expect(clippy::needless_pass_by_value, reason = "it is used as a function")]
fn failed(error: io::Error) -> ProgramError {
    ProgramError::Io(format!("the folder of the backups: {error}"))
}

fn missing(name: &str) -> ProgramError {
    ProgramError::Missing {
        what: Thing::CompleteBackup,
        name: name.to_owned(),
    }
}

/// What a killed broker left.
fn remove_parts(folder: &Folder) {
    let names = folder.file_names().unwrap_or_default();
    let is_own = |name: &&String| name.strip_suffix(PART).is_some_and(is_name);
    for name in names.iter().filter(is_own) {
        if let Err(error) = folder.remove(OsStr::new(name)) {
            tracing::warn!(name, %error, "the rest of a backup cannot be removed");
        }
    }
}

/// Refuses a name that is none of a complete one: what somebody else has put into the folder is
/// neither read nor removed.
fn check_kept(folder: &Folder, name: &str) -> Result<(), ProgramError> {
    let names = names(folder)?;
    let is_kept = names.iter().any(|kept| kept == name);
    is_kept.then_some(()).ok_or_else(|| missing(name))
}

/// Names of the complete ones, the oldest first.
fn names(folder: &Folder) -> Result<Vec<String>, ProgramError> {
    let names = folder.file_names().map_err(failed)?;
    let names = names.iter().filter_map(|name| name.strip_suffix(DONE));
    let mut names: Vec<String> = names
        .filter(|name| is_name(name))
        .map(str::to_owned)
        .collect();
    names.sort();
    Ok(names)
}

/// The name of a backup that begins now; behind the last one, also if the clock was set back.
fn new_name(last: Option<&str>, now: WallMillis) -> String {
    let last = last.and_then(|last| parse_time(&began_at(last)));
    let behind = last.map_or(0, |last| last.saturating_add(1000));
    let seconds = time(now.max(behind));
    let seconds = seconds.split('.').next().unwrap_or_default().chars();
    let mut name: String = seconds.filter(|one| !matches!(one, '-' | ':')).collect();
    name.push('Z');
    name
}

fn is_name(name: &str) -> bool {
    name.len() == NAME_LEN
        && name.bytes().enumerate().all(|(place, byte)| match place {
            8 => byte == b'T',
            15 => byte == b'Z',
            _ => byte.is_ascii_digit(),
        })
        && parse_time(&began_at(name)).is_some()
}

/// The time that a name is made of.
fn began_at(name: &str) -> String {
    let part = |from: usize, to: usize| name.get(from..to).unwrap_or_default();
    format!(
        "{}-{}-{}T{}:{}:{}Z",
        part(0, 4),
        part(4, 6),
        part(6, 8),
        part(9, 11),
        part(11, 13),
        part(13, 15)
    )
}

/// What is to be written at most: the newest file of the log is longer than its contents.
fn expected_bytes(data_dir: &Path) -> u64 {
    let len = |path: PathBuf| path.metadata().map_or(0, |found| found.len());
    let state = DataDir::at(data_dir.to_owned()).state();
    let entries = std::fs::read_dir(state).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let segments = paths.filter(|path| path.extension().is_some_and(|end| end == "log"));
    let files = NAMES.iter().map(|name| data_dir.join(name));
    segments.chain(files).map(len).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(kept: &KeptBackups) -> Result<Backup, ProgramError> {
        kept.begin(Box::new(|_| ()))
    }

    #[test]
    fn a_broker_without_a_data_directory_makes_none_and_has_none() {
        let kept = KeptBackups::new(Path::new(""));
        let refused = begun(&kept).unwrap_err();
        assert!(
            refused.to_string().contains("no data directory"),
            "{refused}"
        );
        assert_eq!(kept.list().unwrap(), []);
        assert!(kept.open("20261126T221500Z").is_err());
    }

    #[test]
    fn a_backup_that_fails_leaves_no_file_and_is_remembered_until_it_is_removed() {
        let folder = std::env::temp_dir().join(format!("thrum-kept-{}", std::process::id()));
        std::fs::create_dir_all(folder.join(FOLDER)).unwrap();
        std::fs::write(folder.join(FOLDER).join("20200101T000000Z.part"), "half").unwrap();
        let kept = KeptBackups::new(&folder);
        let left = || std::fs::read_dir(folder.join(FOLDER)).unwrap().count();
        assert_eq!(left(), 0, "what a killed broker left is removed");
        // There is no log in it.
        let (ended, end) = std::sync::mpsc::sync_channel(1);
        let begun = kept.begin(Box::new(move |end| ended.send(end).unwrap()));
        let name = begun.unwrap().name;
        let why = end.recv().unwrap().unwrap_err();
        assert!(why.contains("there is no state in it"), "{why}");
        let failed = kept.unfinished().unwrap();
        assert_eq!((&*failed.state, failed.failure), ("failed", Some(why)));
        assert_eq!((left(), kept.list().unwrap()), (0, vec![]));
        kept.remove(&name).unwrap();
        assert_eq!(kept.unfinished(), None);
        assert!(kept.remove(&name).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    fn running() -> Arc<Work> {
        Arc::new(Work {
            name: "20261126T221500Z".to_owned(),
            expected: 0,
            written: AtomicU64::new(0),
            is_cancelled: Mutex::default(),
            failure: Mutex::default(),
        })
    }

    #[test]
    fn a_backup_that_failed_is_removed_also_when_the_folder_is_gone() {
        let folder = std::env::temp_dir().join(format!("thrum-gone-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let kept = KeptBackups::new(&folder);
        let work = running();
        *lock(&work.failure) = Some("no room".to_owned());
        *lock(&kept.work) = Some(Arc::clone(&work));
        std::fs::remove_dir_all(&folder).unwrap();
        kept.remove(&work.name).unwrap();
        assert_eq!(kept.unfinished(), None);
        let again = kept.remove(&work.name).unwrap_err();
        assert!(matches!(again, ProgramError::Missing { .. }), "{again}");
    }

    #[test]
    fn a_backup_that_is_removed_while_it_is_made_is_shown_as_ending() {
        let folder = std::env::temp_dir().join(format!("thrum-ending-{}", std::process::id()));
        std::fs::create_dir_all(folder.join(FOLDER)).unwrap();
        let kept = KeptBackups::new(&folder);
        let work = running();
        *lock(&kept.work) = Some(Arc::clone(&work));
        assert_eq!(kept.unfinished().unwrap().state, "running");
        kept.remove(&work.name).unwrap();
        assert_eq!(kept.unfinished().unwrap().state, "ending");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_somebody_else_has_put_into_the_folder_is_neither_listed_nor_removed() {
        let folder = std::env::temp_dir().join(format!("thrum-foreign-{}", std::process::id()));
        let backups = folder.join(FOLDER);
        std::fs::remove_dir_all(&folder).ok();
        std::fs::create_dir_all(backups.join("20261126T221500Z.tar")).unwrap();
        std::fs::write(folder.join("elsewhere"), "x").unwrap();
        let link = backups.join("20261126T221501Z.tar");
        std::os::unix::fs::symlink(folder.join("elsewhere"), link).unwrap();
        for foreign in ["notes.part", "mine.tar", "20261126T221502Z.tar.gz"] {
            std::fs::write(backups.join(foreign), "x").unwrap();
        }
        let kept = KeptBackups::new(&folder);
        assert_eq!(kept.list().unwrap(), []);
        for name in ["20261126T221500Z", "20261126T221501Z", "mine"] {
            assert_eq!(kept.open(name).err(), Some(missing(name)));
            assert_eq!(kept.remove(name), Err(missing(name)));
        }
        begun(&kept).unwrap();
        while kept.unfinished().unwrap().state == "running" {
            std::thread::yield_now();
        }
        assert_eq!(std::fs::read_dir(&backups).unwrap().count(), 5);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn there_is_one_at_a_time() {
        let kept = KeptBackups::new(Path::new("data"));
        *lock(&kept.work) = Some(running());
        let refused = begun(&kept).unwrap_err().to_string();
        assert!(
            refused.contains("20261126T221500Z is being made"),
            "{refused}"
        );
    }

    #[test]
    fn there_are_no_more_than_the_limit() {
        let folder = std::env::temp_dir().join(format!("thrum-many-{}", std::process::id()));
        std::fs::create_dir_all(folder.join(FOLDER)).unwrap();
        for day in 10..10 + KEPT_MAX {
            let name = format!("202611{day}T000000Z.tar");
            std::fs::write(folder.join(FOLDER).join(name), "x").unwrap();
        }
        let kept = KeptBackups::new(&folder);
        let refused = begun(&kept).unwrap_err().to_string();
        assert!(refused.contains("10 backups are kept"), "{refused}");
        let list = kept.list().unwrap();
        let first = list.first().unwrap();
        assert_eq!((list.len(), &*first.name), (KEPT_MAX, "20261119T000000Z"));
        assert_eq!(first.began_at, "2026-11-19T00:00:00Z");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_name_is_a_time_and_two_backups_of_a_second_have_two() {
        let first = new_name(None, now());
        let second = new_name(Some(&first), now());
        assert!(is_name(&first) && is_name(&second) && first < second);
        assert_eq!(began_at("20261126T221500Z"), "2026-11-26T22:15:00Z");
        for wrong in [
            "",
            "../users.jsonl00",
            "20261126T221500Z.tar",
            "20261126x221500Z",
            "20261326T221500Z",
        ] {
            assert!(!is_name(wrong), "{wrong}");
        }
    }

    #[test]
    fn a_name_is_behind_the_last_one_also_when_the_clock_goes_back() {
        let at = |text| parse_time(text).unwrap();
        let last = Some("20261126T221559Z");
        for (now, name) in [
            ("2026-11-26T22:17:00.5Z", "20261126T221700Z"),
            ("2026-11-26T22:15:59.9Z", "20261126T221600Z"),
            ("2026-11-26T22:15:00Z", "20261126T221600Z"),
            ("1970-01-01T00:00:00Z", "20261126T221600Z"),
        ] {
            assert_eq!(new_name(last, at(now)), name, "{now}");
        }
    }

    #[test]
    fn the_next_backup_is_the_last_of_the_list_though_the_clock_is_behind() {
        let folder = std::env::temp_dir().join(format!("thrum-behind-{}", std::process::id()));
        std::fs::create_dir_all(folder.join(FOLDER)).unwrap();
        std::fs::write(folder.join(FOLDER).join("29991231T235959Z.tar"), "x").unwrap();
        let kept = KeptBackups::new(&folder);
        assert_eq!(begun(&kept).unwrap().name, "30000101T000000Z");
        while kept.unfinished().unwrap().state == "running" {
            std::thread::yield_now();
        }
        // One that has failed was shown under its name.
        assert_eq!(begun(&kept).unwrap().name, "30000101T000001Z");
        while kept.unfinished().unwrap().state == "running" {
            std::thread::yield_now();
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_backup_that_is_removed_while_it_is_read_is_read_to_its_end() {
        let folder = std::env::temp_dir().join(format!("thrum-read-{}", std::process::id()));
        std::fs::create_dir_all(folder.join(FOLDER)).unwrap();
        let name = "20261126T221500Z";
        let path = folder.join(FOLDER).join(format!("{name}.tar"));
        std::fs::write(&path, "all of it").unwrap();
        let kept = KeptBackups::new(&folder);
        let opened = kept.open(name).unwrap();
        kept.remove(name).unwrap();
        assert!(!path.exists());
        assert_eq!(io::read_to_string(opened.file).unwrap(), "all of it");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
