//! A wall clock that a test sets while the broker runs.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::disk::compile;

/// The wall clock of processes that are started with its environment.
#[derive(Debug)]
pub struct ShiftedClock {
    library: PathBuf,
    shift: PathBuf,
    file: File,
}

impl ShiftedClock {
    /// A clock that is right so far; `folder` keeps its files.
    ///
    /// # Panics
    /// The C compiler is missing, or the folder cannot be written.
    pub fn new(folder: &Path) -> Self {
        let (library, shift) = (folder.join("shifted_clock.so"), folder.join("shift"));
        compile("shifted_clock.c", &library);
        fs::write(&shift, 0_i64.to_ne_bytes()).expect("the folder can be written");
        let file = File::options().write(true).open(&shift);
        Self {
            library,
            shift,
            file: file.expect("the folder can be written"),
        }
    }

    /// Environment of a process.
    pub fn environment(&self) -> Vec<(String, String)> {
        let path = |path: &Path| path.to_string_lossy().into_owned();
        vec![
            ("LD_PRELOAD".to_owned(), path(&self.library)),
            ("SHIFTED_CLOCK".to_owned(), path(&self.shift)),
        ]
    }

    /// Sets it this many seconds ahead of the real time.
    ///
    /// # Panics
    /// The file cannot be written.
    pub fn set_ahead(&self, seconds: i64) {
        let written = self.file.write_all_at(&seconds.to_ne_bytes(), 0);
        written.expect("the file can be written");
    }
}
