//! The thread that keeps known logins across restarts: no worker waits for a disk.

use std::ffi::OsStr;
use std::io::{self, ErrorKind, Read as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread::JoinHandle;
use std::time::Duration;

use thrum_files::Folder;
use thrum_protection::{KnownLogins, LoginGuard};

/// The file, in the data directory.
const NAME: &str = "known-logins";
/// Interval of writes: a killed broker loses the logins of this time.
const WRITE_INTERVAL: Duration = Duration::from_mins(1);

/// Writes the known logins at an interval, and at the end.
#[derive(Debug)]
pub(crate) struct LoginKeeper {
    /// Dropping it ends the thread.
    stop: SyncSender<()>,
    thread: JoinHandle<()>,
}

impl LoginKeeper {
    /// Reads the known logins of the last broker on the data directory, and starts to write. An
    /// unreadable file is skipped, as it must not lock users out.
    ///
    /// # Errors
    /// The system provides no thread, or there is no such directory.
    pub(crate) fn start(data_dir: &Path, logins: Arc<LoginGuard>) -> io::Result<Self> {
        let folder = Folder::open(data_dir)?;
        match read(&folder) {
            Ok(Some(known)) => logins.restore(&known),
            Ok(None) => {}
            Err(error) => {
                let path = folder.path().join(NAME);
                let path = path.display();
                tracing::warn!(
                    %path,
                    %error,
                    "cannot read the known logins: every user counts as new once"
                );
            }
        }
        // Logins from here on are written, even if the thread begins later.
        let read = logins.changes();
        let (stop, stopped) = mpsc::sync_channel(1);
        let thread = std::thread::Builder::new().name("logins".to_owned());
        let thread = thread.spawn(move || write_until_stopped(&folder, &logins, &stopped, read))?;
        Ok(Self { stop, thread })
    }

    /// Writes new logins, and ends the thread.
    pub(crate) fn stop(self) {
        drop(self.stop);
        if self.thread.join().is_err() {
            tracing::error!("the thread of the logins ended by a panic");
        }
    }
}

fn write_until_stopped(
    folder: &Folder,
    logins: &LoginGuard,
    stopped: &Receiver<()>,
    mut written: u64,
) {
    let mut is_over = false;
    while !is_over {
        is_over = stopped.recv_timeout(WRITE_INTERVAL) != Err(RecvTimeoutError::Timeout);
        let changes = logins.changes();
        if changes != written && save(folder, logins) {
            written = changes;
        }
    }
}

fn save(folder: &Folder, logins: &LoginGuard) -> bool {
    let known = logins.known();
    let written = folder.replace(OsStr::new(NAME), |to| known.write_to(to));
    if let Err(error) = &written {
        tracing::warn!(
            %error,
            "cannot write the known logins: after a restart every user counts as new once"
        );
    }
    written.is_ok()
}

/// None if there is no file.
fn read(folder: &Folder) -> io::Result<Option<KnownLogins>> {
    let file = match folder.change(OsStr::new(NAME)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut bytes = Vec::new();
    file.take(KnownLogins::BYTES_MAX).read_to_end(&mut bytes)?;
    KnownLogins::parse(&bytes)
        .map(Some)
        .ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "it is damaged"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use thrum_protection::{ClientRef, Protection, ProtectionSettings};
    use thrum_protocol::Time;

    use super::*;
    use crate::config::Config;

    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Self {
            let path =
                std::env::temp_dir().join(format!("thrum-logins-{name}-{}", std::process::id()));
            fs::remove_dir_all(&path).ok();
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn start(&self) -> (LoginKeeper, Protection) {
            let protection = Protection::default();
            let logins = Arc::clone(protection.logins());
            (LoginKeeper::start(&self.0, logins).unwrap(), protection)
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).ok();
        }
    }

    fn client(username: &str) -> ClientRef<'_> {
        ClientRef {
            client_id: "meter-7",
            username: Some(username),
            address: Some("192.0.2.7".parse().unwrap()),
        }
    }

    fn settings() -> ProtectionSettings {
        let config = Config::default();
        config.protection.settings(&config.limits)
    }

    #[test]
    fn who_is_known_is_known_after_a_restart_and_is_named_nowhere() {
        let place = Place::new("restart");
        let settings = settings();
        let (keeper, protection) = place.start();
        protection.login_succeeded(&client("josephine"), &settings);
        keeper.stop();
        let file = place.0.join(NAME);
        let bytes = fs::read(&file).unwrap();
        for name in ["josephine", "meter-7", "192.0.2.7"] {
            let found = bytes
                .windows(name.len())
                .any(|part| part == name.as_bytes());
            assert!(!found, "{name} is in the file");
        }
        let (keeper, protection) = place.start();
        assert!(protection.is_known(&client("josephine")));
        assert!(!protection.is_known(&client("jim")));
        // Others that guess from there lock it out no more than before.
        for _ in 0..100 {
            protection.login_failed(&client("jim"), &settings, Time::from_millis(1000));
        }
        let now = Time::from_millis(2000);
        let may_log_in = |username| protection.may_log_in(&client(username), &settings, now);
        assert!(may_log_in("josephine").is_ok() && may_log_in("jim").is_err());
        keeper.stop();
        assert_eq!(fs::read(&file).unwrap(), bytes, "nothing was new");
    }

    #[test]
    fn a_damaged_file_is_left_out() {
        let place = Place::new("damaged");
        let (keeper, protection) = place.start();
        protection.login_succeeded(&client("jo"), &settings());
        keeper.stop();
        let file = place.0.join(NAME);
        let bytes = fs::read(&file).unwrap();
        for damaged in [&bytes[..bytes.len() - 1], &bytes[..30], b"", b"nonsense"] {
            fs::write(&file, damaged).unwrap();
            let (keeper, protection) = place.start();
            assert!(!protection.is_known(&client("jo")));
            keeper.stop();
        }
        assert!(KnownLogins::parse(&bytes).is_some());
    }
}
