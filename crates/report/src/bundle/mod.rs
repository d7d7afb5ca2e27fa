//! `run.mbench`: a run in one file that can be checked, compared and run again elsewhere.
//!
//! ```text
//!   latency.hlog     histograms of every second, where they were kept
//!   manifest.json    schema, tool, machine, command, sha256 of every other file
//!   result.json      every figure
//!   scenario.toml    the scenario as it was run, without secrets
//!   series.csv       one row per second
//! ```
//!
//! `tar -x` unpacks it without thrum. It is not signed: it shows that nothing was changed by
//! accident and that its parts follow from each other, not who made it.

mod archive;
mod checks;
mod limits;
mod manifest;
mod seconds;

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::folder::{self, ReadError};
use crate::result::RunResult;
use crate::series_csv;
use archive::Entry;

/// Name and version of the schema; a bundle of another one is refused.
pub const SCHEMA: &str = "thrum-bench-bundle/1";

/// Name of the bundle in a run folder.
pub const FILE_NAME: &str = "run.mbench";

/// Largest file in a bundle: that of the largest result, days of seconds.
pub const FILE_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// Largest bundle.
pub const BUNDLE_BYTES_MAX: u64 = 2 * FILE_BYTES_MAX;

/// Seconds of the longest run that is read out of a bundle: two days.
pub const SECONDS_MAX: u64 = 2 * 86_400;

const LOG: &str = "latency.hlog";
const MANIFEST: &str = "manifest.json";
const RESULT: &str = "result.json";
const SCENARIO: &str = "scenario.toml";
const SERIES: &str = "series.csv";

/// A bundle that was made.
#[derive(Clone, Debug, PartialEq)]
pub struct Packed {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// What they are.
    pub bundle: Bundle,
}

/// A bundle that was checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Bundle {
    /// Its run.
    pub run: RunResult,
    /// What was checked, a sentence each.
    pub checks: Vec<String>,
}

/// Why there is no bundle, or it is not to be trusted.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// The file system refuses.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The run to pack cannot be read.
    #[error(transparent)]
    Run(#[from] ReadError),
    /// More than any bundle has.
    #[error("a bundle has at most {BUNDLE_BYTES_MAX} bytes, and this file has more")]
    TooLong,
    /// The end is missing.
    #[error("it is not a tar archive, or was cut off")]
    Truncated,
    /// More than any version writes.
    #[error("it has more files than any bundle")]
    TooManyFiles,
    /// A name with a folder, a hidden file, or unusual letters.
    #[error("it has a file named '{name}', which is no name of a bundle's file")]
    Name {
        /// The name.
        name: String,
    },
    /// A link, a folder, a device, an extension of the format.
    #[error("its entry '{name}' is not a plain file")]
    Kind {
        /// The name.
        name: String,
    },
    /// Files are sorted by their names, each once.
    #[error("its file '{name}' is at the wrong place, or there twice")]
    Order {
        /// The name.
        name: String,
    },
    /// Not a number.
    #[error("the size of its file '{name}' is not a number")]
    Size {
        /// The name.
        name: String,
    },
    /// More than any file of a run has.
    #[error("its file '{name}' claims {bytes} bytes, more than the {FILE_BYTES_MAX} of any run")]
    FileTooLong {
        /// The name.
        name: String,
        /// The claim.
        bytes: u64,
    },
    /// More than any run has.
    #[error("'{name}' exceeds the limit {limit}: {most}")]
    Limit {
        /// The file.
        name: &'static str,
        /// Name of the limit.
        limit: &'static str,
        /// Its value.
        most: u64,
    },
    /// Bytes beside the files were changed.
    #[error("byte {at} of the archive is not what thrum writes there: it was changed")]
    Form {
        /// Its place, from 0.
        at: usize,
    },
    /// The manifest is not one.
    #[error("{MANIFEST} is not a manifest: {why}")]
    Manifest {
        /// Its error.
        why: String,
    },
    /// Of another version.
    #[error(
        "its schema is '{schema}', and this version of thrum reads '{SCHEMA}': use the version that wrote it"
    )]
    Schema {
        /// The schema.
        schema: String,
    },
    /// A file that does not belong there.
    #[error("'{name}' is not among the files of its manifest")]
    Unknown {
        /// The name.
        name: String,
    },
    /// A file that ought to be there.
    #[error("'{name}' is missing")]
    Missing {
        /// The name.
        name: String,
    },
    /// A file is not that of the manifest.
    #[error("'{name}' was changed: it has not the size and sha256 that {MANIFEST} gives")]
    Changed {
        /// The name.
        name: String,
    },
    /// The result is not one.
    #[error("{RESULT} is not the result of a run that this version reads: {why}")]
    Result {
        /// Its error.
        why: String,
    },
    /// Two parts contradict each other.
    #[error("its parts contradict each other: {what}")]
    Disagrees {
        /// The contradiction.
        what: String,
    },
}

/// Packs a run folder: the same run gives the same bytes. The bundle is checked before it is
/// returned.
///
/// # Errors
/// The folder cannot be read, or its files contradict each other.
pub fn pack(folder: &Path) -> Result<Packed, BundleError> {
    let path = folder.join(RESULT);
    let result = read_file(&path, FILE_BYTES_MAX)?;
    let run = folder::read(&path)?;
    let series = series_csv(&run);
    let log = folder::read_hlog(folder)?;
    let mut entries = Vec::new();
    if let Some(log) = &log {
        entries.push(entry(LOG, log.as_bytes()));
    }
    entries.push(entry(RESULT, &result));
    entries.push(entry(SCENARIO, run.scenario.toml.as_bytes()));
    entries.push(entry(SERIES, series.as_bytes()));
    let manifest = manifest::text(&result, &entries)?;
    let after_log = usize::from(log.is_some());
    entries.insert(after_log, entry(MANIFEST, manifest.as_bytes()));
    let bytes = archive::pack(&entries).map_err(|source| BundleError::Read {
        path: folder.to_owned(),
        source,
    })?;
    let bundle = verify(&bytes)?;
    Ok(Packed { bytes, bundle })
}

/// Reads and checks a bundle, in memory only.
///
/// # Errors
/// It cannot be read, or does not stand the checks.
pub fn read(path: &Path) -> Result<Bundle, BundleError> {
    verify(&read_file(path, BUNDLE_BYTES_MAX)?)
}

/// Checks a bundle: its form, the digests of its files, and that its parts follow from each other
/// as far as they do. The verdict follows from the scenario, which is not read here.
///
/// # Errors
/// The first check that it does not stand.
pub fn verify(bytes: &[u8]) -> Result<Bundle, BundleError> {
    let entries = archive::unpack(bytes)?;
    let manifest = find(&entries, MANIFEST)?;
    let manifest_max = limits::MANIFEST_BYTES_MAX;
    limits::check_length(MANIFEST, manifest, "MANIFEST_BYTES_MAX", manifest_max)?;
    limits::check_json(MANIFEST, manifest)?;
    manifest::check_files(manifest, &entries)?;
    let result = find(&entries, RESULT)?;
    limits::check_json(RESULT, result)?;
    let scenario = find(&entries, SCENARIO)?;
    let scenario_max = limits::SCENARIO_BYTES_MAX;
    limits::check_length(SCENARIO, scenario, "SCENARIO_BYTES_MAX", scenario_max)?;
    if manifest::text(result, &entries)?.as_bytes() != manifest {
        let what = format!("{MANIFEST} does not say what {RESULT} says of the run");
        return Err(BundleError::Disagrees { what });
    }
    let mut checks = vec![
        format!(
            "archive: {} files in the form that thrum writes",
            entries.len()
        ),
        format!("sha256: that of {MANIFEST} for every other file"),
        format!("{MANIFEST}: the tool, machine, scenario and brokers of {RESULT}"),
    ];
    let mut run = checks::result(result)?;
    let parts = checks::Parts {
        result,
        scenario,
        series: find(&entries, SERIES)?,
        log: find(&entries, LOG).ok(),
    };
    checks.extend(checks::all(&mut run, &parts)?);
    Ok(Bundle { run, checks })
}

const fn entry<'a>(name: &'a str, bytes: &'a [u8]) -> Entry<'a> {
    Entry { name, bytes }
}

fn find<'a>(entries: &[Entry<'a>], name: &str) -> Result<&'a [u8], BundleError> {
    let found = entries.iter().find(|entry| entry.name == name);
    found
        .map(|entry| entry.bytes)
        .ok_or_else(|| BundleError::Missing {
            name: name.to_owned(),
        })
}

/// Never more than `bytes_max`, even of a file that grows.
fn read_file(path: &Path, bytes_max: u64) -> Result<Vec<u8>, BundleError> {
    let failed = |source| BundleError::Read {
        path: path.to_owned(),
        source,
    };
    let is_file = fs::metadata(path).map_err(failed)?.is_file();
    if !is_file {
        // A pipe or a device may never end.
        return Err(failed(io::Error::other("it is not a file")));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed)?;
    let read = file.take(bytes_max + 1).read_to_end(&mut bytes);
    let read = read.map_err(failed)?;
    if u64::try_from(read).is_ok_and(|read| read <= bytes_max) {
        Ok(bytes)
    } else {
        Err(BundleError::TooLong)
    }
}

#[cfg(test)]
mod tests;
