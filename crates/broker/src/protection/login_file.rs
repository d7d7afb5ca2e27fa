//! Who is known where, kept over restarts: a mass reconnect after one is not the moment to take
//! everybody for a stranger.
//!
//! The file holds no name, no address and no secret but a key: each entry is a hash under it.

use std::ffi::OsStr;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread::JoinHandle;
use std::time::Duration;

use thrum_files::Folder;

use super::logins::{KNOWN_MAX, LoginGuard, Remembered};

/// The file, in the data directory.
const NAME: &str = "known-logins";
/// How it begins; another form gets another number.
const MAGIC: &[u8] = b"thrum known logins 1\n";
/// How often what is new is written: what is lost when a broker is killed.
const WRITE: Duration = Duration::from_mins(1);
/// Longest file that is read: as many entries as are kept, 8 bytes each.
const BYTES_MAX: u64 = (2 * KNOWN_MAX as u64 + 16) * 8;

/// Writes what is remembered from time to time, and at the end.
#[derive(Debug)]
pub struct LoginKeeper {
    /// Its end ends the thread.
    stop: SyncSender<()>,
    thread: JoinHandle<()>,
}

impl LoginKeeper {
    /// Reads what the last broker on the data directory has left, and starts to write. What cannot
    /// be read is left out: nobody is kept out for that.
    ///
    /// # Errors
    /// The system gives no thread, or there is no such directory.
    pub fn start(data_dir: &Path, logins: Arc<LoginGuard>) -> io::Result<Self> {
        let folder = Folder::open(data_dir)?;
        match read(&folder) {
            Ok(Some(remembered)) => logins.restore(&remembered),
            Ok(None) => {}
            Err(error) => {
                let path = folder.path().join(NAME);
                let path = path.display();
                tracing::warn!(%path, %error, "who was known where is forgotten: users that log in are taken for strangers once");
            }
        }
        // From here on everything is new, whenever the thread begins.
        let read = logins.changes();
        let (stop, stopped) = mpsc::sync_channel(1);
        let thread = std::thread::Builder::new().name("logins".to_owned());
        let thread = thread.spawn(move || write_until_stopped(&folder, &logins, &stopped, read))?;
        Ok(Self { stop, thread })
    }

    /// Writes what is new, and ends the thread.
    pub fn stop(self) {
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
        is_over = stopped.recv_timeout(WRITE) != Err(RecvTimeoutError::Timeout);
        let changes = logins.changes();
        if changes != written && save(folder, logins) {
            written = changes;
        }
    }
}

fn save(folder: &Folder, logins: &LoginGuard) -> bool {
    let remembered = logins.remembered();
    let written = folder.replace(OsStr::new(NAME), |to| {
        to.write_all(MAGIC)?;
        let counts = [
            remembered.users.len() as u64,
            remembered.clients.len() as u64,
        ];
        let numbers = remembered.key.iter().chain(&counts);
        let numbers = numbers.chain(&remembered.users).chain(&remembered.clients);
        for number in numbers {
            to.write_all(&number.to_le_bytes())?;
        }
        Ok(())
    });
    if let Err(error) = &written {
        tracing::warn!(%error, "who is known where cannot be written: after a restart everybody is a stranger once");
    }
    written.is_ok()
}

/// None if there is no file.
fn read(folder: &Folder) -> io::Result<Option<Remembered>> {
    let file = match folder.change(OsStr::new(NAME)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut bytes = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut bytes)?;
    parse(&bytes)
        .map(Some)
        .ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "it is damaged"))
}

fn parse(bytes: &[u8]) -> Option<Remembered> {
    let (numbers, rest) = bytes.strip_prefix(MAGIC)?.as_chunks::<8>();
    let numbers: Vec<u64> = numbers
        .iter()
        .map(|bytes| u64::from_le_bytes(*bytes))
        .collect();
    let ([first, second, users, clients], hashes) = numbers.split_first_chunk::<4>()?;
    let users = usize::try_from(*users).ok()?;
    let (of_users, of_clients) = hashes.split_at_checked(users)?;
    let is_whole = rest.is_empty() && of_clients.len() as u64 == *clients;
    is_whole.then(|| Remembered {
        key: [*first, *second],
        users: of_users.to_vec(),
        clients: of_clients.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use thrum_access::Network;
    use thrum_protocol::Time;

    use super::super::logins::Attempt;
    use super::*;
    use crate::config::LoginsConfig;

    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Self {
            let path =
                std::env::temp_dir().join(format!("thrum-logins-{name}-{}", std::process::id()));
            fs::remove_dir_all(&path).ok();
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn start(&self) -> (LoginKeeper, Arc<LoginGuard>) {
            let logins = Arc::<LoginGuard>::default();
            let keeper = LoginKeeper::start(&self.0, Arc::clone(&logins)).unwrap();
            (keeper, logins)
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).ok();
        }
    }

    fn attempt(username: &str) -> Attempt<'_> {
        Attempt {
            address: Network::of_client("192.0.2.7".parse().unwrap()),
            username,
            client_id: "meter-7",
        }
    }

    #[test]
    fn who_is_known_is_known_after_a_restart_and_is_named_nowhere() {
        let place = Place::new("restart");
        let settings = LoginsConfig::default();
        let (keeper, logins) = place.start();
        logins.succeeded(&attempt("josephine"), &settings);
        keeper.stop();
        let file = place.0.join(NAME);
        let bytes = fs::read(&file).unwrap();
        for name in ["josephine", "meter-7", "192.0.2.7"] {
            let found = bytes
                .windows(name.len())
                .any(|part| part == name.as_bytes());
            assert!(!found, "{name} is in the file");
        }
        let (keeper, logins) = place.start();
        assert!(logins.is_known(&attempt("josephine")));
        assert!(!logins.is_known(&attempt("jim")));
        // Others who guess from there keep it out no more than before.
        for _ in 0..100 {
            logins.failed(&attempt("jim"), &settings, Time::from_millis(1000));
        }
        let now = Time::from_millis(2000);
        assert!(
            logins
                .may_try(&attempt("josephine"), &settings, now)
                .is_ok()
        );
        assert!(logins.may_try(&attempt("jim"), &settings, now).is_err());
        keeper.stop();
        assert_eq!(fs::read(&file).unwrap(), bytes, "nothing was new");
    }

    #[test]
    fn a_damaged_file_is_left_out() {
        let place = Place::new("damaged");
        let (keeper, logins) = place.start();
        logins.succeeded(&attempt("jo"), &LoginsConfig::default());
        keeper.stop();
        let file = place.0.join(NAME);
        let bytes = fs::read(&file).unwrap();
        for damaged in [&bytes[..bytes.len() - 1], &bytes[..30], b"", b"nonsense"] {
            fs::write(&file, damaged).unwrap();
            let (keeper, logins) = place.start();
            assert!(!logins.is_known(&attempt("jo")));
            keeper.stop();
        }
        assert!(parse(&bytes).is_some());
    }
}
