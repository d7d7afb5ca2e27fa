//! The folder of the runs of a broker without a data directory, which goes with the broker.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::command::shown::now;

/// Beginning of its name.
const PREFIX: &str = "thrum-benchmarks-";
/// Mode of the folder.
const PRIVATE: u32 = 0o700;
/// A younger folder may be one that another broker has made and not locked yet.
const AGE_MIN: Duration = Duration::from_mins(1);

/// A folder that is removed when it is dropped.
#[derive(Debug)]
pub(super) struct TemporaryFolder {
    path: PathBuf,
    /// Locked for as long as this process lives: whoever can lock it may remove it.
    _lock: File,
}

impl TemporaryFolder {
    /// Makes one, and removes those of brokers that were killed.
    ///
    /// # Errors
    /// The file system refuses.
    pub(super) fn create() -> io::Result<Self> {
        Self::create_in(&std::env::temp_dir())
    }

    fn create_in(parent: &Path) -> io::Result<Self> {
        let name = format!("{PREFIX}{}-{}", std::process::id(), now());
        let path = parent.join(name);
        // Not one that somebody else has made there.
        fs::DirBuilder::new().mode(PRIVATE).create(&path)?;
        let lock = File::open(&path)?;
        lock.lock()?;
        remove_left_over(parent, &path)?;
        Ok(Self { path, _lock: lock })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            let path = self.path.display();
            tracing::warn!(%error, %path, "the folder of benchmarks is not removed");
        }
    }
}

/// Removes the folders of this user that nobody has locked.
fn remove_left_over(parent: &Path, own: &Path) -> io::Result<()> {
    let uid = own.metadata()?.uid();
    for entry in fs::read_dir(parent)?.flatten() {
        let name = entry.file_name();
        let is_one = name.to_str().is_some_and(|name| name.starts_with(PREFIX));
        // Of a link this is the link.
        let metadata = entry.metadata();
        let is_old = metadata.is_ok_and(|of| {
            let age = of.modified().ok().and_then(|at| at.elapsed().ok());
            of.is_dir() && of.uid() == uid && age.is_some_and(|age| age > AGE_MIN)
        });
        let path = entry.path();
        if !is_one || !is_old || path == own {
            continue;
        }
        let Ok(folder) = File::open(&path) else {
            continue;
        };
        if folder.try_lock().is_ok() {
            fs::remove_dir_all(&path).ok();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn folders_of_brokers_that_were_killed_are_removed_and_no_others() {
        let parent = std::env::temp_dir().join(format!("thrum-left-over-{}", std::process::id()));
        fs::create_dir_all(&parent).unwrap();
        let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let make = |name: &str| {
            let path = parent.join(name);
            fs::create_dir(&path).unwrap();
            let folder = File::open(&path).unwrap();
            folder.set_modified(old).unwrap();
            (path, folder)
        };
        let (killed, _) = make("thrum-benchmarks-1-1");
        let (other, _) = make("benchmarks-1-1");
        let (alive, lock) = make("thrum-benchmarks-2-2");
        lock.lock().unwrap();
        let young = parent.join("thrum-benchmarks-3-3");
        fs::create_dir(&young).unwrap();
        let own = TemporaryFolder::create_in(&parent).unwrap();
        assert!(!killed.exists());
        assert!(other.exists() && alive.exists() && young.exists());
        let path = own.path().to_owned();
        assert!(path.is_dir());
        drop(own);
        assert!(!path.exists());
        fs::remove_dir_all(&parent).unwrap();
    }
}
