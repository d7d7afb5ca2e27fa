//! A folder of its own for each server, readable by the user that the server runs as.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder that is removed with its owner.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Creates one whose name begins with this text.
    ///
    /// # Panics
    /// The system's folder for temporary files takes none.
    pub fn new(name: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("thrum-{name}-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).expect("a temporary folder");
        fs::set_permissions(&path, Permissions::from_mode(0o777)).expect("its permissions");
        Self(path)
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file that every user may read.
    ///
    /// # Panics
    /// It cannot be written.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).expect("a temporary file");
        fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("its permissions");
        path
    }

    /// The path of a file in it, as text.
    ///
    /// # Panics
    /// The system's folder for temporary files has a name that is not text.
    pub fn file(&self, name: &str) -> String {
        let path = self.0.join(name);
        path.to_str().expect("a path that is text").to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Files of a server that was killed a moment ago may still appear; the folder is temporary
        // either way.
        fs::remove_dir_all(&self.0).unwrap_or_default();
    }
}
