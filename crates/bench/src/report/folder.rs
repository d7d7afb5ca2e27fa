//! The run folder: everything of a run in one place, never overwritten.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::json::RunResult;
use super::{hgrm, summary};
use crate::clock::utc_text;
use crate::outcome::Outcome;

/// Runs of one scenario that may start within one second.
const SAME_NAME_MAX: u32 = 100;

/// A folder for one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFolder {
    path: PathBuf,
}

/// Why a run is not kept.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}", path.display())]
pub struct WriteError {
    path: PathBuf,
    source: io::Error,
}

impl RunFolder {
    /// Makes the folder `<UTC time>-<scenario>` under `parent`, which is made too.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn create(parent: &Path, started_unix: u64, scenario: &str) -> Result<Self, WriteError> {
        let failed = |path: &Path, source| WriteError {
            path: path.to_owned(),
            source,
        };
        fs::create_dir_all(parent).map_err(|error| failed(parent, error))?;
        let stem = format!("{}-{scenario}", utc_text(started_unix).replace(':', ""));
        let mut path = parent.join(&stem);
        for number in 2..=SAME_NAME_MAX {
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Self { path }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    path = parent.join(format!("{stem}-{number}"));
                }
                Err(error) => return Err(failed(&path, error)),
            }
        }
        Err(failed(&path, io::ErrorKind::AlreadyExists.into()))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the result, the summary and the latency distribution.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn write(&self, outcome: &Outcome, result: &RunResult) -> Result<(), WriteError> {
        let mut json = serde_json::to_string_pretty(result).map_err(|error| WriteError {
            path: self.path.join("result.json"),
            source: error.into(),
        })?;
        json.push('\n');
        self.put("result.json", &json)?;
        self.put("summary.txt", &summary(outcome))?;
        let histogram = if outcome.latencies.response.is_empty() {
            &outcome.latencies.connect
        } else {
            &outcome.latencies.response
        };
        self.put("latency.hgrm", &hgrm::distribution(histogram))
    }

    fn put(&self, name: &str, text: &str) -> Result<(), WriteError> {
        let path = self.path.join(name);
        fs::write(&path, text).map_err(|source| WriteError { path, source })
    }
}
