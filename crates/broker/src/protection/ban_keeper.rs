//! The thread that synchronizes the bans of a node with their files: no worker waits for a disk.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use thrum_files::Stamp;
use thrum_protection::{BanBook, BanList, TemporaryBan};
use thrum_protocol::Time;

use super::ban_file::{BanFile, BanFileError};
use crate::clock::wall;
use crate::config::Config;

/// Interval of checks of the files.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Watches the file of bans, and shows the temporary bans in a file of their own.
#[derive(Debug)]
pub(crate) struct BanKeeper {
    /// Dropping it ends the thread.
    stop: SyncSender<()>,
    thread: JoinHandle<()>,
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
        let mut files = WatchedBans {
            file,
            stamp,
            temporary: temporary.map(ShownBans::new),
            book,
        };
        let (stop, stopped) = mpsc::sync_channel(1);
        let thread = std::thread::Builder::new().name("bans".to_owned());
        let thread = thread.spawn(move || {
            while stopped.recv_timeout(CHECK_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                files.check_files(clock(), SystemTime::UNIX_EPOCH + wall());
            }
        });
        let thread = thread.map_err(|source| BanFileError::Read { path, source })?;
        Ok(Self { stop, thread })
    }

    /// The same for the configured file; returns `None` if the configuration names neither a file
    /// nor a data directory. The temporary bans are written if there is a data directory.
    ///
    /// # Errors
    /// As [`BanKeeper::start`].
    pub(crate) fn start_configured(
        config: &Config,
        book: Arc<BanBook>,
        clock: impl Fn() -> Time + Send + 'static,
    ) -> Result<Option<Self>, BanFileError> {
        let Some(file) = configured(config) else {
            return Ok(None);
        };
        let temporary = data_dir(config).map(|path| BanFile::temporary_in(path));
        Self::start(file, temporary, book, clock).map(Some)
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
        drop(self.stop);
        if self.thread.join().is_err() {
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
    file: BanFile,
    stamp: Option<Stamp>,
    temporary: Option<ShownBans>,
    book: Arc<BanBook>,
}

impl WatchedBans {
    /// Checks the files; `wall` is the time by which files are stamped.
    fn check_files(&mut self, now: Time, wall: SystemTime) {
        let stamp = self.file.stamp();
        if stamp != self.stamp && !may_be_half_written(stamp, self.stamp, wall) {
            let loaded = self.file.load();
            // Otherwise the file was written during the read, and the next check reads it again.
            if self.file.stamp() == stamp {
                self.stamp = stamp;
                self.take(loaded, now);
            }
        }
        self.book.sweep(now);
        if let Some(shown) = &mut self.temporary {
            shown.check_files(&self.book, now, wall);
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
        if self.stamp.is_none() && bans > 0 {
            let path = self.file.path().display();
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
                file: BanFile::in_data_dir(&self.0),
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

    /// A time at which the last write is long past.
    fn later() -> SystemTime {
        SystemTime::UNIX_EPOCH + wall() + Duration::from_secs(1)
    }

    #[test]
    fn a_file_that_may_be_half_written_bans_and_lifts_nobody() {
        let folder = Folder::new("half");
        let mut files = folder.files();
        fs::write(files.file.path(), "{\"client_id\":\"a\"}\n").unwrap();
        files.check_files(NOW, later());
        let temporary = SubjectRef::ClientId("b");
        assert!(
            files
                .book
                .ban_temporarily(temporary, NOW.plus_secs(60), NOW)
        );
        files.check_files(NOW, later());
        let shown = BanFile::temporary_in(&folder.0);
        for path in [files.file.path(), shown.path()] {
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
        fs::write(files.file.path(), "{\"client_id\":\"a\"}\n").unwrap();
        files.check_files(NOW, later());
        assert!(files.book.is_client_id_banned("a", NOW));
        // A typing error admits no banned client.
        fs::write(files.file.path(), "{\"client_id\":\"a\"\n").unwrap();
        files.check_files(NOW, later());
        assert!(files.book.is_client_id_banned("a", NOW));
        fs::remove_file(files.file.path()).unwrap();
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
        assert!(started(&config).unwrap().is_none());
        config.node.data_dir.clone_from(&folder.0);
        started(&config).unwrap().unwrap().stop();
        config.protection.bans = folder.0.join("other.jsonl");
        started(&config).unwrap().unwrap().stop();
        assert!(!book.is_username_banned("jo", NOW));
        fs::write(file.path(), "username = jo").unwrap();
        assert!(start().unwrap_err().to_string().contains("bans.jsonl:1: "));
    }
}
