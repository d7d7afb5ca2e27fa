//! What the program around a broker does for its operator: it has the configuration, from which the
//! broker was started, and the log.
//!
//! The crate that starts the broker implements it; the interface knows no setting of it. Without
//! it, as in a test of the interface alone, the routes about these things answer 503.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::sync::Arc;

use serde_json::Value;
use thiserror::Error;
use thrum_broker::Queries;

use crate::alarms::Alarms;
use thrum_access::Secret;

use crate::api::{
    Applied, Backup, BenchmarkCheck, BenchmarkComparison, BenchmarkLimits, BenchmarkPermits,
    BenchmarkRun, BenchmarkRunInFull, BenchmarkSamples, BenchmarkScenario, Configuration,
    ConfigurationVersion, Plan, Reloaded,
};
use crate::logs::Logs;
use crate::thing::Thing;

/// Keys and their new values; null takes a key back.
pub type ConfigurationChanges = BTreeMap<String, Value>;

/// Changes to put in force.
#[derive(Clone, Debug)]
pub struct ChangeOrder {
    /// The keys.
    pub changes: ConfigurationChanges,
    /// That of the plan: if anything has changed since, nothing is done.
    pub fingerprint: String,
    /// Who asks.
    pub by: String,
}

/// A listener to open or close.
#[derive(Clone, Debug)]
pub struct ListenerOrder {
    /// Its name in the configuration.
    pub name: String,
    /// Whether it is to accept connections.
    pub opens: bool,
    /// Whether its clients are disconnected as well.
    pub disconnects: bool,
}

/// A version to go back to.
#[derive(Clone, Debug)]
pub struct RollbackOrder {
    /// Its number.
    pub version: u64,
    /// That of the plan: if anything has changed since, nothing is done.
    pub fingerprint: String,
    /// Who asks.
    pub by: String,
}

/// Is told the end of a backup: why it failed, if it did.
pub type BackupEnded = Box<dyn FnOnce(Result<(), String>) + Send>;

/// A complete backup.
#[derive(Debug)]
pub struct OpenBackup {
    /// Its file, to be read from its beginning. It stays readable when it is removed.
    pub file: File,
    /// Bytes of it.
    pub bytes: u64,
}

/// A file of a run.
#[derive(Debug)]
pub struct OpenRunFile {
    /// To be read from its beginning. It stays readable when the run is removed.
    pub file: File,
    /// Bytes of it.
    pub bytes: u64,
}

/// A benchmark to check or to start; its form has been checked.
#[derive(Clone, Debug)]
pub struct BenchmarkOrder {
    /// A name for `thrum bench run`; none if there is `toml`.
    pub scenario: Option<String>,
    /// A scenario of the caller.
    pub toml: Option<String>,
    /// URL of the broker, which may have a password; this one if none.
    pub target: Option<String>,
    /// Length of the measured part.
    pub duration_secs: Option<f64>,
    /// Clients in all.
    pub clients: Option<u32>,
    /// Messages per second of each publisher.
    pub rate: Option<f64>,
    /// A name for people.
    pub name: Option<String>,
    /// User name of the clients.
    pub username: Option<String>,
    /// Their password.
    pub password: Option<Secret>,
    /// A note.
    pub note: Option<String>,
    /// Who asks.
    pub by: String,
}

/// Why a request about benchmarks is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BenchmarkRefusal {
    /// The program was built without them.
    LeftOut,
    /// The configuration turns them off.
    Off,
    /// A run is under way.
    Running,
    /// Every run that is kept is a baseline, and none makes room.
    AllBaselines,
    /// The run is not under way.
    Ended,
    /// The order has errors.
    Invalid,
    /// The run does not take this change.
    NotChanged,
    /// The process did not do it.
    NotAnswered,
    /// The runs have no results, or other ones.
    NotComparable,
}

/// A change of a run under way; its result keeps each of them.
#[derive(Clone, Debug, PartialEq)]
pub enum BenchmarkChange {
    /// Multiplies the rate of all publishers.
    Rate(f64),
    /// Sends nothing until it is resumed.
    Pause,
    /// Goes on with the rate from before the pause.
    Resume,
    /// Extends the measured part by so many seconds.
    Extend(f64),
    /// Keeps a note.
    Note(String),
}

/// What benchmarks do now, and how they ended since the start of the broker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BenchmarkActivity {
    /// A run is under way.
    pub is_running: bool,
    /// Resident memory of its process; 0 without one.
    pub memory_bytes: u64,
    /// Runs that ended as `done`.
    pub done: u64,
    /// Runs that ended as `stopped`.
    pub stopped: u64,
    /// Runs that ended as `failed`.
    pub failed: u64,
}

/// Benchmarks that run as processes beside the broker. Every call may wait for some seconds.
///
/// # Errors
/// Every call may fail, for the reasons in [`ProgramError`].
#[expect(
    clippy::missing_errors_doc,
    reason = "the trait documents the errors of all of them"
)]
pub trait Benchmarks: fmt::Debug + Send + Sync {
    /// What they do now, at once; none in a program without them.
    fn activity(&self) -> Option<BenchmarkActivity>;
    /// What a run may take.
    fn limits(&self) -> BenchmarkLimits;
    /// The scenarios of the catalogue.
    fn scenarios(&self) -> Result<Vec<BenchmarkScenario>, ProgramError>;
    /// What a run would do.
    fn check(&self, order: &BenchmarkOrder) -> Result<BenchmarkCheck, ProgramError>;
    /// Starts a run; returns its identifier.
    fn start(&self, order: BenchmarkOrder) -> Result<String, ProgramError>;
    /// The runs that are kept, the newest first.
    fn runs(&self) -> Result<Vec<BenchmarkRun>, ProgramError>;
    /// A run.
    fn run(&self, id: &str) -> Result<BenchmarkRunInFull, ProgramError>;
    /// The samples of a run with a number above `after`, at most so many.
    fn samples(&self, id: &str, after: u64, most: usize) -> Result<BenchmarkSamples, ProgramError>;
    /// Changes a run under way.
    fn change(&self, id: &str, change: BenchmarkChange) -> Result<(), ProgramError>;
    /// Ends a run early.
    fn stop(&self, id: &str) -> Result<(), ProgramError>;
    /// Removes a run that has ended.
    fn remove(&self, id: &str) -> Result<(), ProgramError>;
    /// Whether others are compared with a run.
    fn set_baseline(&self, id: &str, is_baseline: bool) -> Result<(), ProgramError>;
    /// Opens a file of a run.
    fn open_file(&self, id: &str, name: &str) -> Result<OpenRunFile, ProgramError>;
    /// Compares runs with the first one.
    fn compare(&self, ids: &[String]) -> Result<BenchmarkComparison, ProgramError>;
}

/// Why a request about the program is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProgramError {
    /// Too many requests wait.
    #[error("too many requests about the configuration wait for each other")]
    Busy,
    /// It is not done in time, and goes on.
    #[error("it is not done yet, and goes on")]
    TimedOut,
    /// The broker is stopping.
    #[error("the broker is stopping")]
    Stopped,
    /// A key or a value is wrong, or the broker cannot take it over.
    #[error("{0}")]
    Refused(String),
    /// The file of the keys that are set here cannot be read as one.
    #[error("{0}")]
    Damaged(String),
    /// Keys that the file, a variable or a flag sets.
    #[error("{}", pinned_words(.0))]
    Pinned(Vec<PinnedKey>),
    /// Something has changed since the plan.
    #[error("the configuration has changed since it was planned")]
    Changed,
    /// It would take over edits of files that its caller may not have seen.
    #[error(
        "files were edited since the broker read them, and this would change these keys too: {}; nothing was changed",
        .0.join(", ")
    )]
    Edited(Vec<String>),
    /// There is nowhere to keep a change.
    #[error("the broker has no data directory, and so no file for keys that are set here")]
    NoDataDirectory,
    /// Nothing has that name.
    #[error("there is no {what} {name:?}")]
    Missing {
        /// What.
        what: Thing,
        /// Its name.
        name: String,
    },
    /// It would cut off whoever asks.
    #[error("{0}")]
    Conflict(String),
    /// No backup can be made now.
    #[error("{why}")]
    BackupConflict {
        /// Why.
        why: String,
        /// What helps.
        remedy: &'static str,
    },
    /// A benchmark cannot be started, shown or compared.
    #[error("{why}")]
    Benchmark {
        /// The kind of the refusal.
        refusal: BenchmarkRefusal,
        /// Why.
        why: String,
    },
    /// The disk has no room for it.
    #[error("{0}")]
    NoRoom(String),
    /// A file cannot be read or written.
    #[error("{0}")]
    Io(String),
}

/// A key that is set elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedKey {
    /// Its name.
    pub key: String,
    /// Where: `thrum.toml:3`, `env THRUM_NODE__NAME`, `flag --listen`.
    pub at: String,
}

fn pinned_words(keys: &[PinnedKey]) -> String {
    let keys = keys.iter().map(|pinned| {
        let PinnedKey { key, at } = pinned;
        format!("{key} is set by {at}, which wins over what is set here")
    });
    keys.collect::<Vec<_>>().join("; ")
}

/// The program around a broker. Every call may wait for some seconds.
///
/// # Errors
/// Every call may fail, for the reasons in [`ProgramError`].
#[expect(
    clippy::missing_errors_doc,
    reason = "the trait documents the errors of all of them"
)]
pub trait Program: fmt::Debug + Send + Sync {
    /// Every key with its value and its origin.
    fn configuration(&self) -> Result<Configuration, ProgramError>;
    /// The schema of a configuration, as JSON Schema.
    fn schema(&self) -> Value;
    /// What a change would do, without doing it.
    fn plan(&self, changes: ConfigurationChanges) -> Result<Plan, ProgramError>;
    /// Makes a change, all of it or nothing.
    fn apply(&self, order: ChangeOrder) -> Result<Applied, ProgramError>;
    /// The versions that can be returned to, the newest first.
    fn versions(&self) -> Result<Vec<ConfigurationVersion>, ProgramError>;
    /// What a return to a version would do, without doing it.
    fn plan_rollback(&self, version: u64) -> Result<Plan, ProgramError>;
    /// Returns to a version, as a new version.
    fn roll_back(&self, order: RollbackOrder) -> Result<Applied, ProgramError>;
    /// Reads files and variables again.
    fn reload(&self) -> Result<Reloaded, ProgramError>;
    /// Opens or closes a listener until the broker is started again.
    fn set_listener(&self, order: ListenerOrder) -> Result<(), ProgramError>;
    /// Reads the files of TLS again; returns what cannot be used, a line each.
    fn renew_certificates(&self) -> Result<Vec<String>, ProgramError>;
    /// Adds directives to the level of the log, in place of those before.
    fn set_log_directives(&self, directives: Vec<String>) -> Result<(), ProgramError>;
    /// The level of the log in the configuration.
    fn log_level(&self) -> String;
    /// Begins a backup, and returns at once.
    fn begin_backup(&self, ended: BackupEnded) -> Result<Backup, ProgramError>;
    /// The complete backups, the newest first.
    fn backups(&self) -> Result<Vec<Backup>, ProgramError>;
    /// The backup that is made, or the last one if it failed.
    fn unfinished_backup(&self) -> Option<Backup>;
    /// Opens a complete backup.
    fn open_backup(&self, name: &str) -> Result<OpenBackup, ProgramError>;
    /// Removes a backup; one that is made is ended.
    fn remove_backup(&self, name: &str) -> Result<(), ProgramError>;
    /// Benchmarks of this machine.
    fn benchmarks(&self) -> &dyn Benchmarks;
}

/// What the interface answers for: a broker, and the program around it.
#[derive(Clone, Debug)]
pub struct Managed {
    pub(crate) queries: Queries,
    pub(crate) program: Option<Arc<dyn Program>>,
    pub(crate) logs: Arc<Logs>,
    pub(crate) alarms: Arc<Alarms>,
    /// Of all entrances together: a run, a check and a comparison take their cores from the broker.
    pub(crate) benchmark_permits: BenchmarkPermits,
}

impl From<Queries> for Managed {
    fn from(queries: Queries) -> Self {
        Self {
            queries,
            program: None,
            logs: Arc::default(),
            alarms: Arc::default(),
            benchmark_permits: BenchmarkPermits::default(),
        }
    }
}

impl Managed {
    /// With the program around the broker, and its log.
    #[must_use]
    pub fn with_program(self, program: Arc<dyn Program>, logs: Arc<Logs>) -> Self {
        Self {
            program: Some(program),
            logs,
            ..self
        }
    }

    /// The alarms, which somebody has to look at from time to time.
    pub fn alarms(&self) -> Arc<Alarms> {
        Arc::clone(&self.alarms)
    }
}
