//! The bans of a node and their files: a thread synchronizes them, so that no worker waits for a
//! disk, and the operator changes them through the same lock.

use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use thrum_files::Stamp;
use thrum_protection::{Ban, BanBook, BanList, Subject, TemporaryBan};
use thrum_protocol::Time;

use super::ban_file::{BanFile, BanFileError};
use crate::clock::wall;
use crate::config::Config;

/// Interval of checks of the files.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// A file that was written so long ago is complete.
const LONG_AGO: Duration = Duration::from_hours(1);

/// Watches the file of bans, and shows the temporary bans in a file of their own.
#[derive(Debug)]
pub(crate) struct BanKeeper {
    bans: KeptBans,
    /// None without files.
    watching: Option<Watching>,
}

/// The thread that watches the files.
#[derive(Debug)]
struct Watching {
    /// Dropping it ends the thread.
    stop: SyncSender<()>,
    thread: JoinHandle<()>,
}

/// The bans of a node, to be read and changed by any thread that may wait for the disk.
#[derive(Clone, Debug)]
pub(crate) struct KeptBans(Arc<Mutex<WatchedBans>>);

impl KeptBans {
    /// Bans in memory alone.
    pub(crate) fn in_memory(book: Arc<BanBook>) -> Self {
        Self(Arc::new(Mutex::new(WatchedBans {
            file: None,
            stamp: None,
            temporary: None,
            book,
        })))
    }

    /// Changes the list; it is on the disk and in force when this returns. The command
    /// `thrum bans` changes the same file: both wait for each other.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub(crate) fn edit<T>(
        &self,
        now: Time,
        change: impl FnOnce(&mut BanList) -> (bool, T),
    ) -> Result<T, BanFileError> {
        let mut bans = self.held();
        let Some(file) = &bans.file else {
            let mut list = BanList::clone(&bans.book.list());
            let (is_changed, outcome) = change(&mut list);
            if is_changed {
                bans.book.replace(list, now);
            }
            return Ok(outcome);
        };
        let outcome = file.edit(change)?;
        // Read again rather than kept from the edit: a command may have changed it since. It was
        // replaced, and is complete, although its inode may be one that an earlier state had.
        bans.check_list(now, SystemTime::UNIX_EPOCH + wall() + LONG_AGO);
        Ok(outcome)
    }

    /// The bans in force: those of the list, then the temporary ones of the node.
    pub(crate) fn all(&self, now: Time) -> [Vec<Ban>; 2] {
        let book = Arc::clone(&self.held().book);
        let seconds = book.wall_seconds(now);
        let list = book.list();
        let listed = list.sorted().into_iter();
        let listed = listed.filter(|ban| ban.is_in_force(seconds)).cloned();
        let temporary = book.temporary(now);
        let temporary = temporary.iter().map(|ban| book.listed(ban));
        [listed.collect(), temporary.collect()]
    }

    /// Ends a temporary ban of the node; false if there is none.
    pub(crate) fn lift_temporary(&self, subject: &Subject) -> bool {
        self.held().book.lift(subject)
    }

    /// The wall clock at a time of the node, in seconds of the Unix epoch.
    pub(crate) fn wall_seconds(&self, now: Time) -> u64 {
        self.held().book.wall_seconds(now)
    }

    /// What the lock guards: the stamps of the files, and that the list in force is the one of the
    /// file. Held while a file is read or written; no worker takes it.
    fn held(&self) -> MutexGuard<'_, WatchedBans> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BanKeeper {
    /// Reads the bans and starts to watch their file. Temporary bans are written to a second file,
    /// for people to read; a ban that is removed from it (`thrum bans rm`) ends. A start does not
    /// read the second file.
    ///
    /// # Errors
    /// A file of bans that cannot be read: a typing error must not admit banned clients.
    pub(crate) fn start(
        file: BanFile,
        temporary: Option<BanFile>,
        book: Arc<BanBook>,
        clock: impl Fn() -> Time + Send + 'static,
    ) -> Result<Self, BanFileError> {
        let stamp = file.stamp();
        book.replace(file.load()?, clock());
        let path = file.path().to_owned();
        let bans = KeptBans(Arc::new(Mutex::new(WatchedBans {
            file: Some(file),
            stamp,
            temporary: temporary.map(ShownBans::new),
            book,
        })));
        let watched = bans.clone();
        let (stop, stopped) = mpsc::sync_channel(1);
        let thread = std::thread::Builder::new().name("bans".to_owned());
        let thread = thread.spawn(move || {
            while stopped.recv_timeout(CHECK_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                let wall = SystemTime::UNIX_EPOCH + wall();
                watched.held().check_files(clock(), wall);
            }
        });
        let thread = thread.map_err(|source| BanFileError::Read { path, source })?;
        let watching = Some(Watching { stop, thread });
        Ok(Self { bans, watching })
    }

    /// The same for the configured file; the bans are in memory alone if the configuration names
    /// neither a file nor a data directory. The temporary bans are written if there is a data
    /// directory.
    ///
    /// # Errors
    /// As [`BanKeeper::start`].
    pub(crate) fn start_configured(
        config: &Config,
        book: Arc<BanBook>,
        clock: impl Fn() -> Time + Send + 'static,
    ) -> Result<Self, BanFileError> {
        let Some(file) = configured(config) else {
            return Ok(Self {
                bans: KeptBans::in_memory(book),
                watching: None,
            });
        };
        let temporary = data_dir(config).map(|path| BanFile::temporary_in(path));
        Self::start(file, temporary, book, clock)
    }

    /// The bans, for the operator.
    pub(crate) fn bans(&self) -> KeptBans {
        self.bans.clone()
    }

    /// Reads the configured file without keeping the bans.
    ///
    /// # Errors
    /// As [`BanKeeper::start`].
    pub(crate) fn check(config: &Config) -> Result<(), BanFileError> {
        configured(config).map_or(Ok(()), |file| file.load().map(drop))
    }

    /// Ends the thread; it may take as long as reading the file does.
    pub(crate) fn stop(self) {
        let Some(Watching { stop, thread }) = self.watching else {
            return;
        };
        drop(stop);
        if thread.join().is_err() {
            tracing::error!("the thread of the bans ended by a panic");
        }
    }
}

/// The file of bans: the configured one, or that of the data directory.
fn configured(config: &Config) -> Option<BanFile> {
    let named = Some(&config.protection.bans).filter(|path| !path.as_os_str().is_empty());
    let named = named.map(|path| BanFile::at(path.clone()));
    named.or_else(|| data_dir(config).map(|path| BanFile::in_data_dir(path)))
}

fn data_dir(config: &Config) -> Option<&PathBuf> {
    Some(&config.node.data_dir).filter(|path| !path.as_os_str().is_empty())
}

/// The files and their state at the last check.
#[derive(Debug)]
struct WatchedBans {
    /// None if the bans are in memory alone.
    file: Option<BanFile>,
    stamp: Option<Stamp>,
    temporary: Option<ShownBans>,
    book: Arc<BanBook>,
}

impl WatchedBans {
    /// Checks the files; `wall` is the time by which files are stamped.
    fn check_files(&mut self, now: Time, wall: SystemTime) {
        self.check_list(now, wall);
        self.book.sweep(now);
        if let Some(shown) = &mut self.temporary {
            shown.check_files(&self.book, now, wall);
        }
    }

    /// Reads the list again if its file has changed.
    fn check_list(&mut self, now: Time, wall: SystemTime) {
        let Some(file) = &self.file else {
            return;
        };
        let stamp = file.stamp();
        if stamp == self.stamp || may_be_half_written(stamp, self.stamp, wall) {
            return;
        }
        let loaded = file.load();
        // Otherwise the file was written during the read, and the next check reads it again.
        if file.stamp() == stamp {
            self.stamp = stamp;
            self.take(loaded, now);
        }
    }

    fn take(&self, loaded: Result<BanList, BanFileError>, now: Time) {
        match loaded {
            Ok(list) => {
                self.warn_of_loss();
                tracing::info!(count = list.len(), "the list of bans was read again");
                self.book.replace(list, now);
            }
            Err(error) => {
                tracing::error!(
                    %error,
                    "the list of bans was not read again, the last one stays in force"
                );
            }
        }
    }

    /// Warns that the file has disappeared, with which its bans end.
    fn warn_of_loss(&self) {
        let bans = self.book.list().len();
        let gone = self
            .file
            .as_ref()
            .filter(|_| self.stamp.is_none() && bans > 0);
        if let Some(file) = gone {
            let path = file.path().display();
            tracing::warn!(
                %path,
                bans,
                "the list of bans is gone: the clients in it may connect again"
            );
        }
    }
}

/// The file that shows the temporary bans.
#[derive(Debug)]
struct ShownBans {
    file: BanFile,
    stamp: Option<Stamp>,
    bans: Vec<TemporaryBan>,
}

impl ShownBans {
    fn new(file: BanFile) -> Self {
        Self {
            file,
            stamp: None,
            bans: Vec::new(),
        }
    }

    fn check_files(&mut self, book: &BanBook, now: Time, wall: SystemTime) {
        let stamp = self.file.stamp();
        if stamp == self.stamp && self.bans == book.temporary(now) {
            return;
        }
        if stamp != self.stamp && may_be_half_written(stamp, self.stamp, wall) {
            return;
        }
        let before = std::mem::take(&mut self.bans);
        let outcome = self.file.edit(|list| {
            let taken_out = before
                .iter()
                .filter(|ban| list.remove(&ban.subject).is_none());
            // Expired bans are lifted already.
            for ban in taken_out.filter(|ban| book.lift(&ban.subject)) {
                tracing::info!(subject = %ban.subject, "a temporary ban was lifted");
            }
            let bans = book.temporary(now);
            *list = bans.iter().map(|ban| book.listed(ban)).collect();
            (true, bans)
        });
        match outcome {
            Ok(bans) => self.bans = bans,
            Err(error) => {
                tracing::warn!(%error, "the temporary bans are not shown");
                self.bans = book.temporary(now);
            }
        }
        self.stamp = self.file.stamp();
    }
}

fn may_be_half_written(stamp: Option<Stamp>, before: Option<Stamp>, wall: SystemTime) -> bool {
    stamp.is_some_and(|stamp| stamp.may_be_half_written(before.as_ref(), wall))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use thrum_protection::{Subject, SubjectRef};

    use super::*;

    const NOW: Time = Time::from_millis(1_790_000_000_000);

    /// Files in a folder of the test's own, removed at its end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path =
                std::env::temp_dir().join(format!("thrum-keeper-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn files(&self) -> WatchedBans {
            WatchedBans {
                file: Some(BanFile::in_data_dir(&self.0)),
                stamp: None,
                temporary: Some(ShownBans::new(BanFile::temporary_in(&self.0))),
                book: Arc::default(),
            }
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).ok();
        }
    }

    impl WatchedBans {
        fn path(&self) -> PathBuf {
            self.file.as_ref().unwrap().path().to_owned()
        }
    }

    /// A time at which the last write is long past.
    fn later() -> SystemTime {
        SystemTime::UNIX_EPOCH + wall() + Duration::from_secs(1)
    }

    #[test]
    fn a_file_that_may_be_half_written_bans_and_lifts_nobody() {
        let folder = Folder::new("half");
        let mut files = folder.files();
        fs::write(files.path(), "{\"client_id\":\"a\"}\n").unwrap();
        files.check_files(NOW, later());
        let temporary = SubjectRef::ClientId("b");
        assert!(
            files
                .book
                .ban_temporarily(temporary, NOW.plus_secs(60), NOW)
        );
        files.check_files(NOW, later());
        let shown = BanFile::temporary_in(&folder.0);
        for path in [files.path(), shown.path().to_owned()] {
            fs::write(path, "").unwrap();
        }
        let written = SystemTime::UNIX_EPOCH + wall();
        files.check_files(NOW, written);
        for name in ["a", "b"] {
            assert!(files.book.is_client_id_banned(name, NOW), "{name}");
        }
        files.check_files(NOW, later());
        for name in ["a", "b"] {
            assert!(!files.book.is_client_id_banned(name, NOW), "{name}");
        }
    }

    fn client(name: &str) -> Subject {
        Subject::ClientId(name.into())
    }

    #[test]
    fn a_change_of_the_file_is_in_force_at_the_next_look() {
        let folder = Folder::new("change");
        let mut files = folder.files();
        files.check_files(NOW, later());
        fs::write(files.path(), "{\"client_id\":\"a\"}\n").unwrap();
        files.check_files(NOW, later());
        assert!(files.book.is_client_id_banned("a", NOW));
        // A typing error admits no banned client.
        fs::write(files.path(), "{\"client_id\":\"a\"\n").unwrap();
        files.check_files(NOW, later());
        assert!(files.book.is_client_id_banned("a", NOW));
        fs::remove_file(files.path()).unwrap();
        files.check_files(NOW, later());
        assert!(!files.book.is_client_id_banned("a", NOW));
    }

    #[test]
    fn temporary_bans_are_shown_and_lifted_by_hand() {
        let folder = Folder::new("temporary");
        let mut files = folder.files();
        let shown = BanFile::temporary_in(&folder.0);
        files.check_files(NOW, later());
        assert_eq!(shown.stamp(), None, "nothing to show, nothing written");
        for name in ["a", "b"] {
            assert!(
                files
                    .book
                    .ban_temporarily(SubjectRef::ClientId(name), NOW.plus_secs(60), NOW)
            );
        }
        files.check_files(NOW, later());
        let list = shown.load().unwrap();
        let subjects: Vec<_> = list
            .sorted()
            .iter()
            .map(|ban| ban.subject.clone())
            .collect();
        assert_eq!(subjects, [client("a"), client("b")]);
        shown
            .edit(|list| (list.remove(&client("a")).is_some(), ()))
            .unwrap();
        files.check_files(NOW, later());
        assert!(!files.book.is_client_id_banned("a", NOW));
        assert!(files.book.is_client_id_banned("b", NOW));
        files.check_files(NOW.plus_secs(60), later());
        assert!(shown.load().unwrap().is_empty());
    }

    #[test]
    fn a_start_reads_the_bans_or_fails_and_forgets_the_temporary_ones() {
        let folder = Folder::new("start");
        let WatchedBans { file, book, .. } = folder.files();
        let file = file.unwrap();
        let shown = BanFile::temporary_in(&folder.0);
        fs::write(file.path(), "{\"username\":\"jo\"}").unwrap();
        fs::write(shown.path(), "{\"client_id\":\"a\"}").unwrap();
        let start =
            || BanKeeper::start(file.clone(), Some(shown.clone()), Arc::clone(&book), || NOW);
        let keeper = start().unwrap();
        assert!(book.is_username_banned("jo", NOW));
        assert!(!book.is_client_id_banned("a", NOW));
        keeper.stop();
        let mut config = Config::default();
        let started =
            |config: &Config| BanKeeper::start_configured(config, Arc::clone(&book), || NOW);
        assert!(started(&config).unwrap().watching.is_none());
        config.node.data_dir.clone_from(&folder.0);
        started(&config).unwrap().stop();
        config.protection.bans = folder.0.join("other.jsonl");
        started(&config).unwrap().stop();
        assert!(!book.is_username_banned("jo", NOW));
        fs::write(file.path(), "username = jo").unwrap();
        assert!(start().unwrap_err().to_string().contains("bans.jsonl:1: "));
    }

    fn ban(name: &str) -> Ban {
        Ban {
            subject: client(name),
            reason: "".into(),
            by: "".into(),
            since: 0,
            until: None,
            disconnects: true,
        }
    }

    #[test]
    fn a_change_by_the_operator_is_in_force_at_once_and_keeps_those_of_the_command() {
        let folder = Folder::new("operator");
        let bans = KeptBans(Arc::new(Mutex::new(folder.files())));
        let add = |name: &str| bans.edit(NOW, |list| (true, list.insert(ban(name))));
        assert_eq!(add("a").unwrap(), None);
        let command = BanFile::in_data_dir(&folder.0);
        command
            .edit(|list| (true, list.insert(ban("by command"))))
            .unwrap();
        assert_eq!(add("b").unwrap(), None);
        assert_eq!(add("b").unwrap(), Some(ban("b")));
        let book = Arc::clone(&bans.held().book);
        for name in ["a", "b", "by command"] {
            assert!(book.is_client_id_banned(name, NOW), "{name}");
        }
        assert_eq!(command.load().unwrap().len(), 3);
        assert!(book.ban_temporarily(SubjectRef::ClientId("t"), NOW.plus_secs(60), NOW));
        let [listed, temporary] = bans.all(NOW);
        assert_eq!((listed.len(), temporary.len()), (3, 1));
        assert!(bans.lift_temporary(&client("t")) && !bans.lift_temporary(&client("t")));
        fs::write(command.path(), "no ban").unwrap();
        assert!(add("c").is_err());
        assert!(book.is_client_id_banned("a", NOW), "the last list stays");
    }

    #[test]
    fn without_a_data_directory_the_bans_are_in_memory() {
        let book = Arc::<BanBook>::default();
        let bans = KeptBans::in_memory(Arc::clone(&book));
        bans.edit(NOW, |list| (true, list.insert(ban("a"))))
            .unwrap();
        assert!(book.is_client_id_banned("a", NOW));
        let lifted = bans.edit(NOW, |list| (true, list.remove(&client("a"))));
        assert_eq!(lifted.unwrap(), Some(ban("a")));
        assert!(!book.is_client_id_banned("a", NOW));
    }
}
