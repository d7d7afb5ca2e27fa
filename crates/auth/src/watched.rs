//! A file that is read again when it changes; an invalid one leaves the previous contents.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use thrum_files::Stamp;

use crate::clock;

/// A file that was written so long ago is complete.
const LONG_AGO: Duration = Duration::from_hours(1);

/// The parser of a file.
type Parse<T> = Box<dyn Fn(&Path) -> Result<T, String> + Send + Sync>;

/// The last valid contents of a file.
pub(crate) struct Watched<T> {
    path: PathBuf,
    parse: Parse<T>,
    /// Guards the exchange of one pointer.
    current: RwLock<Arc<T>>,
    /// The state of the file when it was read last. Held while it is read, so that no two threads
    /// read it at once.
    stamp: Mutex<Option<Stamp>>,
    /// The file existed once.
    was_there: AtomicBool,
}

impl<T> Watched<T> {
    /// Reads the file for the first time.
    ///
    /// # Errors
    /// The error of the parser.
    pub(crate) fn load(
        path: &Path,
        parse: impl Fn(&Path) -> Result<T, String> + Send + Sync + 'static,
    ) -> Result<Self, String> {
        // Checked before it is read: a change in between is seen at the next check.
        let stamp = Stamp::of(path);
        let first = parse(path)?;
        let stamp = stamp.unwrap_or_default();
        Ok(Self {
            was_there: AtomicBool::new(stamp.is_some()),
            path: path.to_owned(),
            parse: Box::new(parse),
            current: RwLock::new(Arc::new(first)),
            stamp: Mutex::new(stamp),
        })
    }

    /// The last valid contents.
    pub(crate) fn current(&self) -> Arc<T> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&current)
    }

    /// The file exists, or existed once.
    pub(crate) fn was_there(&self) -> bool {
        self.was_there.load(Ordering::Relaxed)
    }

    /// Checks the file and reads it if it has changed: true if there is something new. A file that
    /// may be half written is left for the next check. Blocks.
    ///
    /// # Errors
    /// The file is missing or invalid; the previous contents stay, and the same file is not read
    /// again.
    pub(crate) fn refresh(&self) -> Result<bool, String> {
        self.refresh_at(clock::wall())
    }

    /// The same for a file that this process has just replaced as a whole, so that it is complete:
    /// its inode may be one that an earlier state of it had.
    ///
    /// # Errors
    /// As [`Watched::refresh`].
    pub(crate) fn refresh_replaced(&self) -> Result<bool, String> {
        self.refresh_at(clock::wall() + LONG_AGO)
    }

    fn refresh_at(&self, time: SystemTime) -> Result<bool, String> {
        let mut last = self.stamp.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = self.path.display();
        let now = Stamp::of(&self.path).map_err(|error| format!("cannot read {shown}: {error}"));
        let now = match now {
            Ok(now) if now == *last => return Ok(false),
            Ok(Some(now)) if now.may_be_half_written(last.as_ref(), time) => return Ok(false),
            Ok(now) => now,
            Err(error) => {
                *last = None;
                return Err(error);
            }
        };
        if now.is_none() {
            *last = now;
            return Err(format!("{shown} is gone"));
        }
        self.was_there.store(true, Ordering::Relaxed);
        let read = (self.parse)(&self.path);
        if Stamp::of(&self.path).ok() != Some(now) {
            // It was written meanwhile.
            return Ok(false);
        }
        *last = now;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(read?);
        Ok(true)
    }
}

impl<T> fmt::Debug for Watched<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Watched({})", self.path.display())
    }
}

/// Writes a file with an earlier time.
#[cfg(test)]
pub(crate) fn write_before(path: &Path, text: impl AsRef<[u8]>) {
    std::fs::write(path, text).unwrap();
    let file = std::fs::File::options().append(true).open(path).unwrap();
    let before = clock::wall() - Duration::from_secs(10);
    file.set_modified(before).unwrap();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn number(path: &Path) -> Result<u32, String> {
        let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
        text.parse().map_err(|_| format!("bad number {text}"))
    }

    /// The result when the file was not written for a while.
    fn look(watched: &Watched<u32>) -> Result<bool, String> {
        watched.refresh_at(clock::wall() + Duration::from_secs(1))
    }

    /// A file in a folder of the test's own, removed at its end.
    struct File(PathBuf);

    impl File {
        fn new(test: &str) -> Self {
            let name = format!("thrum-watched-{test}-{}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            fs::create_dir_all(&folder).unwrap();
            let file = Self(folder.join("number"));
            file.write("1");
            file
        }

        fn write(&self, text: &str) {
            fs::write(&self.0, text).unwrap();
        }
    }

    impl Drop for File {
        fn drop(&mut self) {
            fs::remove_dir_all(self.0.parent().unwrap()).ok();
        }
    }

    #[test]
    fn a_file_that_is_written_while_it_is_read_is_left_for_the_next_look() {
        let file = File::new("meanwhile");
        let path = file.0.clone();
        let watched = Watched::load(&file.0, move |read| {
            let first = number(read)?;
            if first == 22 {
                fs::write(&path, "333").unwrap();
            }
            Ok(first)
        });
        let watched = watched.unwrap();
        file.write("22");
        assert_eq!((look(&watched), *watched.current()), (Ok(false), 1));
        assert_eq!((look(&watched), *watched.current()), (Ok(true), 333));
    }

    #[test]
    fn a_file_that_may_be_half_written_is_left_for_the_next_look() {
        let file = File::new("half");
        let watched = Watched::load(&file.0, number).unwrap();
        file.write("");
        assert_eq!((watched.refresh(), *watched.current()), (Ok(false), 1));
        file.write("22");
        assert_eq!((watched.refresh(), *watched.current()), (Ok(false), 1));
        assert_eq!((look(&watched), *watched.current()), (Ok(true), 22));
        file.write("55");
        assert_eq!(
            (watched.refresh_replaced(), *watched.current()),
            (Ok(true), 55)
        );
        // Replaced as a whole.
        let new = file.0.with_extension("new");
        fs::write(&new, "333").unwrap();
        fs::rename(&new, &file.0).unwrap();
        assert_eq!((watched.refresh(), *watched.current()), (Ok(true), 333));
    }

    #[test]
    fn a_changed_file_is_read_once_and_a_bad_one_changes_nothing() {
        let file = File::new("changed");
        let watched = Watched::load(&file.0, number).unwrap();
        assert_eq!((look(&watched), *watched.current()), (Ok(false), 1));
        file.write("22");
        assert_eq!((look(&watched), *watched.current()), (Ok(true), 22));
        assert_eq!(look(&watched), Ok(false));
        file.write("bad");
        assert_eq!(look(&watched), Err("bad number bad".to_owned()));
        assert_eq!((look(&watched), *watched.current()), (Ok(false), 22));
        fs::remove_file(&file.0).unwrap();
        assert!(look(&watched).unwrap_err().ends_with("is gone"));
        assert_eq!((look(&watched), *watched.current()), (Ok(false), 22));
        file.write("4444");
        assert_eq!((look(&watched), *watched.current()), (Ok(true), 4444));
    }
}
