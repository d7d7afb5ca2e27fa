//! Builds the library that follows a broker's disk operations, and controls it.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::compile::compile;
use super::loss::{Lost, Memory, lose_power};

/// The library's actions, from its next operation on; by default it only records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Control {
    /// The operation, counted from 1 in each process, at which the process is killed, and when.
    pub kill: Option<(u64, KillWhen)>,
    /// Syncs fail with this error number; 0 is no fault.
    pub sync_errno: u64,
    /// Writes fail with this error number and after this many bytes of this process; 0 is no fault.
    pub write_errno: (u64, u64),
    /// Microseconds that a sync takes.
    pub sync_micros: u64,
}

/// The moment within an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KillWhen {
    /// Nothing of it is done.
    Before,
    /// Half of what is written.
    Middle,
    /// It is done, but the process does not know.
    After,
}

/// The library's counts of the process that runs, or ran last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Writes, truncations, syncs and changes of names.
    pub operations: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Syncs, including those that failed.
    pub syncs: u64,
    /// Operations that failed.
    pub failures: u64,
}

/// A data directory, followed by the library.
#[derive(Debug)]
pub struct LossyDisk {
    library: PathBuf,
    data: PathBuf,
    side: PathBuf,
}

impl LossyDisk {
    /// Follows a data directory; `side` is created and must be on the same file system.
    ///
    /// # Panics
    /// The C compiler is missing, or the folder cannot be created.
    pub fn new(data: &Path, side: &Path) -> Self {
        fs::create_dir_all(side).expect("the side folder can be created");
        let library = side.with_extension("so");
        compile("lossy_disk.c", &library);
        let disk = Self {
            library,
            data: data.to_owned(),
            side: side.to_owned(),
        };
        disk.control(Control::default());
        disk
    }

    /// Environment of a process that the library follows.
    pub fn environment(&self) -> Vec<(String, String)> {
        let path = |path: &Path| path.to_string_lossy().into_owned();
        [
            ("LD_PRELOAD", path(&self.library)),
            ("LOSSY_DISK_DATA", path(&self.data)),
            ("LOSSY_DISK_SIDE", path(&self.side)),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    /// Tells the library what to do.
    ///
    /// # Panics
    /// The side folder cannot be written.
    pub fn control(&self, control: Control) {
        let (kill_at, when) = control.kill.unwrap_or((0, KillWhen::Before));
        let fields = [
            kill_at,
            when as u64,
            control.sync_errno,
            control.write_errno.0,
            control.write_errno.1,
            control.sync_micros,
        ];
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(self.side.join("control"))
            .expect("the side folder can be written");
        file.write_all_at(fields.map(u64::to_ne_bytes).as_flattened(), 0)
            .expect("the side folder can be written");
    }

    /// The library's counts.
    ///
    /// # Panics
    /// The side folder cannot be read.
    pub fn seen(&self) -> Seen {
        let mut bytes = [[0; 8]; 4];
        match File::open(self.side.join("seen")) {
            Ok(file) => {
                let read = file.read_at(bytes.as_flattened_mut(), 0);
                assert!(read.is_ok(), "the side folder can be read: {read:?}");
            }
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::NotFound, "{error}"),
        }
        let [operations, write_bytes, syncs, failures] = bytes.map(u64::from_ne_bytes);
        Seen {
            operations,
            write_bytes,
            syncs,
            failures,
        }
    }

    /// Undoes unsynced changes, after the process has ended; the next one starts without records.
    ///
    /// # Panics
    /// The notes and the files do not fit together.
    pub fn lose_power(&self, memory: Memory<'_>) -> Lost {
        let lost = lose_power(&self.side, memory)
            .unwrap_or_else(|error| panic!("the loss of power cannot be played: {error}"));
        fs::remove_dir_all(&self.side).expect("the side folder can be removed");
        fs::create_dir_all(&self.side).expect("the side folder can be created");
        self.control(Control::default());
        lost
    }
}
