//! The run folder: everything of a run in one place, never overwritten.

mod listing;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

pub use listing::listing;
use serde::Deserialize;

use crate::compat::{Compat, WithCompat};
use crate::result::{RunResult, SCHEMA, Validity, Verdict};
use crate::summary::summary;
use crate::threshold::ThresholdResult;
use crate::{environment_json, hgrm, junit, markdown, series_csv, stages_csv};

/// Runs of one scenario that may start within one second.
const SAME_NAME_MAX: u32 = 100;

/// Longest name of a scenario in the name of a folder.
const NAME_CHARS_MAX: usize = 100;

/// Largest result that is read: days of seconds.
const RESULT_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// Entries of a folder that are looked at for runs.
const ENTRIES_MAX: usize = 100_000;

/// The file of the figures.
const RESULT: &str = "result.json";

/// A folder for one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFolder {
    path: PathBuf,
}

/// Files of a run that are not made out of its result.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Files<'a> {
    /// `report.html`.
    pub html: Option<&'a str>,
    /// `latency.hlog`; see [`crate::hlog`].
    pub hlog: Option<&'a str>,
    /// The figures of another tool, a further field of `result.json`.
    pub compat: Option<&'a Compat>,
}

/// Why a run is not kept.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}", path.display())]
pub struct WriteError {
    path: PathBuf,
    source: io::Error,
}

/// Why a run cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file system refuses.
    #[error("cannot read {}: {source}; give a run folder or its {RESULT}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// More than any run has.
    #[error("{} has {bytes} bytes, more than the {RESULT_BYTES_MAX} of any run", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },
    /// Something else.
    #[error("{} is not the result of a run: {why}", path.display())]
    NotAResult {
        /// The file.
        path: PathBuf,
        /// Its error.
        why: String,
    },
    /// Of an earlier version.
    #[error(
        "{} is of an older version ({schema}, this one reads {SCHEMA}): run the scenario again, or read it with \
         the version that wrote it",
        path.display()
    )]
    Older {
        /// The file.
        path: PathBuf,
        /// Its schema.
        schema: String,
    },
    /// Of a later version.
    #[error("{} is of a newer version ({schema}, this one reads {SCHEMA}): update thrum", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema.
        schema: String,
    },
}

/// The entry of a run in a list.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct RunHead {
    /// UTC, `2026-11-21T09:12:03Z`.
    pub started: String,
    /// Exit code of the command.
    pub exit_code: u8,
    /// Whether the figures are the broker's.
    pub validity: Validity,
    /// Whether the broker kept the promises of the protocol.
    pub verdict: Verdict,
    /// Whether it met the limits.
    pub thresholds: Vec<ThresholdResult>,
    /// Name of the scenario.
    pub scenario: ScenarioHead,
    /// Every figure of the run by its name.
    pub metrics: BTreeMap<String, f64>,
}

/// The entry of a scenario in a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ScenarioHead {
    /// Its name.
    pub name: String,
}

/// A run folder that was found.
#[derive(Debug)]
pub struct RunEntry {
    /// The folder.
    pub path: PathBuf,
    /// Its run, or why it cannot be read.
    pub run: Result<RunHead, ReadError>,
}

impl RunFolder {
    /// Makes the folder `<UTC time>-<scenario>` under `parent`, which is made too; `started` is
    /// `2026-11-21T09:12:03Z`.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn create(parent: &Path, started: &str, scenario: &str) -> Result<Self, WriteError> {
        let failed = |path: &Path, source| WriteError {
            path: path.to_owned(),
            source,
        };
        fs::create_dir_all(parent).map_err(|error| failed(parent, error))?;
        let stem = format!("{}-{}", started.replace(':', ""), file_name(scenario));
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

    /// Its folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes all files of a run; the result comes last, so that a folder with one is complete.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn write(&self, run: &RunResult, files: &Files<'_>) -> Result<(), WriteError> {
        self.put("run.toml", &run.scenario.toml)?;
        self.put("series.csv", &series_csv(run))?;
        if let Some(stages) = stages_csv(run) {
            self.put("stages.csv", &stages)?;
        }
        // A run in which nothing arrived has no distribution.
        if let Ok(distribution) = hgrm(run) {
            self.put("latency.hgrm", &distribution)?;
        }
        if let Some(hlog) = files.hlog {
            self.put("latency.hlog", hlog)?;
        }
        if let Some(html) = files.html {
            self.put("report.html", html)?;
        }
        self.put("report.md", &markdown(run))?;
        self.put("junit.xml", &junit(std::slice::from_ref(run)))?;
        self.put("env.json", &environment_json(run))?;
        self.put("summary.txt", &summary(run))?;
        let with = WithCompat {
            run,
            compat: files.compat,
        };
        let mut json = serde_json::to_string_pretty(&with).map_err(|error| WriteError {
            path: self.path.join(RESULT),
            source: error.into(),
        })?;
        json.push('\n');
        self.put(RESULT, &json)
    }

    /// Writes a further file of a run; a file of this name is replaced as a whole or not at all.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn put(&self, name: &str, text: &str) -> Result<(), WriteError> {
        let path = self.path.join(name);
        let written = write_whole(&self.path.join(format!(".{name}.part")), &path, text);
        written.map_err(|source| WriteError { path, source })
    }
}

/// Reads the result of a run: its folder, or the file.
///
/// # Errors
/// There is none, or it is not of this version.
pub fn read(path: &Path) -> Result<RunResult, ReadError> {
    let (path, text) = result_text(path)?;
    parse(&path, &text)
}

/// Reads the text of a `result.json`.
///
/// # Errors
/// It is none, or not of this version.
pub(crate) fn parse_result(text: &str) -> Result<RunResult, ReadError> {
    parse(Path::new(RESULT), text)
}

/// The log of latencies second by second of a run folder, if it has one.
///
/// # Errors
/// There is one, and it cannot be read.
pub fn read_hlog(folder: &Path) -> Result<Option<String>, ReadError> {
    let path = folder.join("latency.hlog");
    if !path.exists() {
        return Ok(None);
    }
    read_file(&path).map(Some)
}

/// The run folders under a folder, the latest last; a folder without a result is none. A folder
/// that does not exist has no runs. At most 100 000 entries are looked at.
///
/// # Errors
/// The folder cannot be read.
pub fn list(parent: &Path) -> Result<Vec<RunEntry>, ReadError> {
    let failed = |source| ReadError::File {
        path: parent.to_owned(),
        source,
    };
    let entries = match fs::read_dir(parent) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut runs = Vec::new();
    for entry in entries.take(ENTRIES_MAX) {
        let path = entry.map_err(failed)?.path();
        if path.join(RESULT).is_file() {
            let run = read_head(&path);
            runs.push(RunEntry { path, run });
        }
    }
    // Names begin with the time.
    runs.sort_by(|left, right| left.path.cmp(&right.path));
    Ok(runs)
}

fn read_head(folder: &Path) -> Result<RunHead, ReadError> {
    let (path, text) = result_text(folder)?;
    parse(&path, &text)
}

fn result_text(path: &Path) -> Result<(PathBuf, String), ReadError> {
    let path = if path.is_dir() {
        path.join(RESULT)
    } else {
        path.to_owned()
    };
    let text = read_file(&path)?;
    Ok((path, text))
}

fn read_file(path: &Path) -> Result<String, ReadError> {
    let failed = |source| ReadError::File {
        path: path.to_owned(),
        source,
    };
    let bytes = fs::metadata(path).map_err(failed)?.len();
    if bytes > RESULT_BYTES_MAX {
        return Err(ReadError::TooLong {
            path: path.to_owned(),
            bytes,
        });
    }
    fs::read_to_string(path).map_err(failed)
}

/// Only the schema, as fields of other versions may have other types.
#[derive(Deserialize)]
struct SchemaOnly {
    #[serde(default)]
    schema: String,
}

fn parse<'a, T: Deserialize<'a>>(path: &Path, text: &'a str) -> Result<T, ReadError> {
    let not_a_result = |why: String| ReadError::NotAResult {
        path: path.to_owned(),
        why,
    };
    let SchemaOnly { schema } =
        serde_json::from_str(text).map_err(|error| not_a_result(error.to_string()))?;
    check_schema(path, schema)?;
    serde_json::from_str(text).map_err(|error| not_a_result(error.to_string()))
}

fn check_schema(path: &Path, schema: String) -> Result<(), ReadError> {
    if schema == SCHEMA {
        return Ok(());
    }
    let number = |schema: &str| -> Option<(String, u32)> {
        let (name, number) = schema.rsplit_once('/')?;
        Some((name.to_owned(), number.parse().ok()?))
    };
    let path = path.to_owned();
    match number(&schema).zip(number(SCHEMA)) {
        Some(((name, theirs), (ours_name, ours))) if name == ours_name => Err(if theirs < ours {
            ReadError::Older { path, schema }
        } else {
            ReadError::Newer { path, schema }
        }),
        _ if schema.is_empty() => Err(ReadError::NotAResult {
            path,
            why: "it names no schema".to_owned(),
        }),
        _ => Err(ReadError::NotAResult {
            path,
            why: format!("its schema is '{schema}'"),
        }),
    }
}

/// A name that every file system takes: of a step of a sweep `NAME-STEP`.
fn file_name(scenario: &str) -> String {
    let is_plain =
        |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    let letters = scenario.chars().take(NAME_CHARS_MAX);
    letters
        .map(|letter| if is_plain(letter) { letter } else { '-' })
        .collect()
}

/// Writes a temporary file first, so that no reader sees half a file.
fn write_whole(beside: &Path, path: &Path, text: &str) -> io::Result<()> {
    let mut file = File::create(beside)?;
    file.write_all(text.as_bytes())?;
    file.sync_data()?;
    drop(file);
    fs::rename(beside, path)
}

#[cfg(test)]
mod tests;
