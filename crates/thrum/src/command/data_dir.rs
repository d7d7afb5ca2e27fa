//! `--data-dir`: looking into the data directory of a broker, and changing it while no broker has
//! it.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use thrum_storage::disk::{OpenDirError, RealDisk, RealReader};
use thrum_storage::{
    LogReport, Loss, OpenError, Options, Orphans, Recovered, SnapshotError, Store, read_state,
};

use super::Failure;
use super::backup::finish_restore;
use super::shown::{counted, now};

/// Folder of the log in the data directory.
pub(super) const STATE: &str = "state";

/// Location of the data.
#[derive(Clone, Debug, Args)]
pub(super) struct DataDir {
    /// Data directory of the broker, as `node.data_dir` names it.
    #[arg(long = "data-dir", value_name = "DIR")]
    path: PathBuf,
}

/// A state that can be changed.
pub(super) struct Opened {
    pub(super) store: Store<RealDisk>,
    /// With times as the wall clock shows them.
    pub(super) state: Recovered,
    /// Milliseconds by which the wall clock is ahead of the times of the log.
    pub(super) wall_ahead: i64,
}

impl DataDir {
    /// The one at this path.
    #[cfg(feature = "management")]
    pub(super) const fn at(path: PathBuf) -> Self {
        Self { path }
    }

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

    /// Reads the state; a broker may keep running meanwhile.
    pub(super) fn read(&self) -> anyhow::Result<Recovered> {
        let (state, report) = read_state(&self.reader()?).map_err(|error| self.unread(error))?;
        warn_of_damage(&self.name(), &report)?;
        warn_of_orphans(&self.name(), &state)?;
        Ok(state.in_wall_time(now()))
    }

    /// Takes the directory to change what is in it; refused while a broker has it.
    pub(super) fn open(&self) -> anyhow::Result<Opened> {
        finish_restore(&self.path)?;
        // Nothing is made where there was nothing.
        self.reader()?;
        let disk = RealDisk::open(&self.state()).map_err(refusal)?;
        let options = Options {
            // The broker observes the limit; here it would only prevent freeing space.
            disk_bytes_max: u64::MAX / 2,
            ..Options::default()
        };
        let opened = Store::open(disk, options);
        let (store, state, report) = opened.map_err(|error| self.unread(error.into()))?;
        warn_of_damage(&self.name(), &report)?;
        warn_of_orphans(&self.name(), &state)?;
        let now = now();
        Ok(Opened {
            store,
            wall_ahead: state.wall_ahead(now),
            state: state.in_wall_time(now),
        })
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

/// A directory that another process uses is free when that ends; other errors are not usage errors.
pub(super) fn refusal(error: OpenDirError) -> anyhow::Error {
    match error {
        OpenDirError::InUse(_) => Failure::usage(error),
        OpenDirError::Missing(_) | OpenDirError::Io { .. } => error.into(),
    }
}

/// Records that depend on damaged or lost ones.
pub(super) fn warn_of_orphans(name: &str, state: &Recovered) -> std::io::Result<()> {
    let orphans = state.orphans;
    if orphans == Orphans::default() {
        return Ok(());
    }
    writeln!(
        std::io::stderr(),
        "warning: {name}: {} sessions, {} deliveries and {} retained messages left out, because records they refer to are missing",
        orphans.sessions,
        orphans.deliveries,
        orphans.retained
    )
}

/// Damage does not hide the rest, but it must be noticed.
pub(super) fn warn_of_damage(name: &str, report: &LogReport) -> std::io::Result<()> {
    for gone in &report.gone {
        let what = match gone.what {
            Loss::Missing => "is missing",
            Loss::Shortened => "ends before it should",
        };
        let records = match gone.records {
            0 => String::new(),
            records => format!(" with {records} records"),
        };
        writeln!(
            std::io::stderr(),
            "warning: {name}: segment {} {what}: at least {} bytes{records} are lost; the rest is unaffected",
            gone.segment,
            gone.bytes
        )?;
    }
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
