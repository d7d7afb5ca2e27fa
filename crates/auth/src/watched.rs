//! A file that is read again when it changes; a bad one leaves what was read before.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// What a file is read with.
type Parse<T> = Box<dyn Fn(&Path) -> Result<T, String> + Send + Sync>;

/// What was read of a file last.
pub(crate) struct Watched<T> {
    path: PathBuf,
    parse: Parse<T>,
    /// Guards the exchange of one pointer.
    current: RwLock<Arc<T>>,
    /// What the file looked like when it was read last. Held while it is read, so that no two do it at once.
    stamp: Mutex<Option<Stamp>>,
    /// There was a file once.
    was_there: AtomicBool,
}

/// What changes when a file is written or replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

impl<T> Watched<T> {
    /// Reads the file for the first time.
    ///
    /// # Errors
    /// What the parser says.
    pub(crate) fn load(
        path: &Path,
        parse: impl Fn(&Path) -> Result<T, String> + Send + Sync + 'static,
    ) -> Result<Self, String> {
        // Looked at before it is read: a change in between is seen at the next look.
        let stamp = stamp(path);
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

    /// What was read last.
    pub(crate) fn current(&self) -> Arc<T> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&current)
    }

    /// There is a file, or there was one.
    pub(crate) fn was_there(&self) -> bool {
        self.was_there.load(Ordering::Relaxed)
    }

    /// Looks at the file and reads it if it has changed: true if there is something new. Blocks.
    ///
    /// # Errors
    /// The file is gone or bad; what was read before stays, and the same file is not read again.
    pub(crate) fn refresh(&self) -> Result<bool, String> {
        let mut last = self.stamp.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = self.path.display();
        let now = stamp(&self.path).map_err(|error| format!("cannot read {shown}: {error}"));
        let now = match now {
            Ok(now) if now == *last => return Ok(false),
            Ok(now) => now,
            Err(error) => {
                *last = None;
                return Err(error);
            }
        };
        *last = now;
        if now.is_none() {
            return Err(format!("{shown} is gone"));
        }
        self.was_there.store(true, Ordering::Relaxed);
        let new = Arc::new((self.parse)(&self.path)?);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(true)
    }
}

impl<T> fmt::Debug for Watched<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Watched({})", self.path.display())
    }
}

/// None if there is no such file.
fn stamp(path: &Path) -> io::Result<Option<Stamp>> {
    match fs::metadata(path) {
        Ok(found) => Ok(Some(Stamp {
            device: found.dev(),
            inode: found.ino(),
            bytes: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
        })),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(path: &Path) -> Result<u32, String> {
        let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
        text.parse().map_err(|_| format!("bad number {text}"))
    }

    #[test]
    fn a_changed_file_is_read_once_and_a_bad_one_changes_nothing() {
        let folder = std::env::temp_dir().join(format!("thrum-watched-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("number");
        fs::write(&path, "1").unwrap();
        let watched = Watched::load(&path, number).unwrap();
        assert_eq!((watched.refresh(), *watched.current()), (Ok(false), 1));
        fs::write(&path, "22").unwrap();
        assert_eq!((watched.refresh(), *watched.current()), (Ok(true), 22));
        assert_eq!(watched.refresh(), Ok(false));
        fs::write(&path, "bad").unwrap();
        assert_eq!(watched.refresh(), Err("bad number bad".to_owned()));
        assert_eq!((watched.refresh(), *watched.current()), (Ok(false), 22));
        fs::remove_file(&path).unwrap();
        assert!(watched.refresh().unwrap_err().ends_with("is gone"));
        assert_eq!((watched.refresh(), *watched.current()), (Ok(false), 22));
        fs::write(&path, "4444").unwrap();
        assert_eq!((watched.refresh(), *watched.current()), (Ok(true), 4444));
        fs::remove_dir_all(&folder).unwrap();
    }
}
