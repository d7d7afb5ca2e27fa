//! `--data-dir`: looking into the data directory of a broker, and changing it while no broker has it.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use thrum_storage::disk::{OpenDirError, RealDisk, RealReader};
use thrum_storage::{LogReport, OpenError, Options, Recovered, SnapshotError, Store, read_state};

use super::Failure;
use super::shown::counted;

/// Folder of the log in the data directory.
const STATE: &str = "state";

/// Where the data is.
#[derive(Debug, Args)]
pub(super) struct DataDir {
    /// Data directory of the broker, as `node.data_dir` names it.
    #[arg(long = "data-dir", value_name = "DIR")]
    path: PathBuf,
}

/// A state that can be changed.
pub(super) struct Opened {
    pub(super) store: Store<RealDisk>,
    pub(super) state: Recovered,
}

impl DataDir {
    /// The directory itself.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Folder of the log.
    pub(super) fn state(&self) -> PathBuf {
        self.path.join(STATE)
    }

    /// The log, to be read only; a broker may have it.
    pub(super) fn reader(&self) -> anyhow::Result<RealReader> {
        match RealReader::open(&self.state()) {
            Ok(reader) => Ok(reader),
            Err(OpenDirError::Missing(_)) => Err(self.missing()),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads the state; a broker may go on meanwhile.
    pub(super) fn read(&self) -> anyhow::Result<Recovered> {
        let (state, report) = read_state(&self.reader()?).map_err(|error| self.unread(error))?;
        warn_of_damage(&self.name(), &report)?;
        Ok(state)
    }

    /// Takes the directory to change what is in it; refused while a broker has it.
    pub(super) fn open(&self) -> anyhow::Result<Opened> {
        // Nothing is made where there was nothing.
        self.reader()?;
        let disk = RealDisk::open(&self.state()).map_err(refusal)?;
        let options = Options {
            // The broker minds the limit; here it would only keep somebody from making room.
            disk_bytes_max: u64::MAX / 2,
            ..Options::default()
        };
        let opened = Store::open(disk, options);
        let (store, state, report) = opened.map_err(|error| self.unread(error.into()))?;
        warn_of_damage(&self.name(), &report)?;
        Ok(Opened { store, state })
    }

    /// Why the log could not be read.
    pub(super) fn unread(&self, error: SnapshotError) -> anyhow::Error {
        match error {
            SnapshotError::Open(OpenError::Newer { .. }) => {
                Failure::usage(format!("{}: {error}", self.name()))
            }
            error => anyhow::Error::new(error).context(self.name()),
        }
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn missing(&self) -> anyhow::Error {
        let path = self.path.display();
        Failure::usage(if self.path.is_dir() {
            format!(
                "no broker has kept anything in {path}: there is no {STATE} in it; \
                 name the directory that node.data_dir names"
            )
        } else {
            format!("there is no directory {path}; name the directory that node.data_dir names")
        })
    }
}

/// A directory that another process has can be had when that is gone; the rest is no matter of usage.
pub(super) fn refusal(error: OpenDirError) -> anyhow::Error {
    match error {
        OpenDirError::InUse(_) => Failure::usage(error),
        OpenDirError::Missing(_) | OpenDirError::Io { .. } => error.into(),
    }
}

/// Damage does not hide the rest, but nobody should overlook it.
pub(super) fn warn_of_damage(name: &str, report: &LogReport) -> std::io::Result<()> {
    if report.damaged_count == 0 {
        return Ok(());
    }
    writeln!(
        std::io::stderr(),
        "warning: {name}: {} ({} bytes) left out; the rest is as it was",
        counted(
            usize::try_from(report.damaged_count).unwrap_or(usize::MAX),
            "damaged place",
            "damaged places"
        ),
        report.damaged_bytes
    )
}
