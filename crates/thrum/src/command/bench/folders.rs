//! The runs that were kept: found by folder, by name or as the latest.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use thrum_report::RunResult;

use super::complaint::Complaint;
use thrum_settings::nearest;

/// Default folder of runs.
pub(super) const RUNS: &str = "./runs";

/// Stands for the run that started last.
const LATEST: &str = "latest";

/// Most runs that are read.
pub(super) const RUNS_MAX: usize = 10_000;

/// A run that was kept.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    /// Its folder.
    pub(super) folder: PathBuf,
    /// Its result.
    pub(super) result: RunResult,
}

impl Kept {
    /// Name of its folder.
    pub(super) fn name(&self) -> String {
        let name = self.folder.file_name().unwrap_or(self.folder.as_os_str());
        name.to_string_lossy().into_owned()
    }
}

/// Finds a run by its folder, its `result.json`, its name in `runs`, or as `latest`.
pub(super) fn find(run: &str, runs: &Path) -> anyhow::Result<Kept> {
    let path = Path::new(run);
    if path.is_file() {
        let folder = path.parent().unwrap_or_else(|| Path::new("."));
        return read_file(folder, path);
    }
    if path.join("result.json").is_file() {
        return read(path);
    }
    let names = names(runs)?;
    let found = match run {
        LATEST => names.last(),
        run => names.iter().find(|name| *name == run),
    };
    match found {
        Some(name) => read(&runs.join(name)),
        None => Err(unknown(run, runs, &names).into()),
    }
}

fn unknown(run: &str, runs: &Path, names: &[String]) -> Complaint {
    let runs = runs.display();
    let hint = nearest(run, names.iter().map(String::as_str)).map_or_else(
        || format!("`thrum bench ls --out {runs}` lists the runs"),
        |name| format!("did you mean '{name}'?"),
    );
    Complaint::usage(format!("no run '{run}' here or in {runs}; {hint}"))
}

/// Names of the folders with a result, oldest first: they begin with the time.
pub(super) fn names(runs: &Path) -> anyhow::Result<Vec<String>> {
    let entries = match fs::read_dir(runs) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.with_context(|| format!("cannot read {}", runs.display()))?,
    };
    let with_result = entries
        .flatten()
        .filter(|entry| entry.path().join("result.json").is_file());
    let names = with_result.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.take(RUNS_MAX).collect();
    names.sort();
    Ok(names)
}

/// Reads the result in a folder.
pub(super) fn read(folder: &Path) -> anyhow::Result<Kept> {
    read_file(folder, &folder.join("result.json"))
}

fn read_file(folder: &Path, path: &Path) -> anyhow::Result<Kept> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let result =
        parse(&text).map_err(|why| Complaint::usage(format!("{}: {why}", path.display())))?;
    Ok(Kept {
        folder: folder.to_owned(),
        result,
    })
}

fn parse(text: &str) -> Result<RunResult, String> {
    let result: RunResult =
        serde_json::from_str(text).map_err(|error| format!("no result: {error}"))?;
    if result.schema == thrum_report::SCHEMA {
        Ok(result)
    } else {
        Err(format!(
            "schema '{}' is not '{}'; run the scenario again with this version",
            result.schema,
            thrum_report::SCHEMA
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_of_another_schema_is_refused() {
        let older = r#"{ "schema": "thrum-bench-result/1" }"#;
        assert!(
            parse(older)
                .unwrap_err()
                .contains("is not 'thrum-bench-result/2'")
        );
        assert!(parse("{").unwrap_err().contains("no result"));
        let now = format!(r#"{{ "schema": "{}" }}"#, thrum_report::SCHEMA);
        assert!(parse(&now).is_ok());
    }

    #[test]
    fn an_unknown_run_gets_the_nearest_name() {
        let names = ["2026-11-21T091203Z-p2p".to_owned()];
        let hint = |run: &str| unknown(run, Path::new("runs"), &names).to_string();
        assert!(hint("2026-11-21T091204Z-p2p").contains("did you mean '2026-11-21T091203Z-p2p'?"));
        assert!(hint("x").contains("`thrum bench ls --out runs`"));
    }

    #[test]
    fn a_folder_that_is_not_there_has_no_runs() {
        assert_eq!(names(Path::new("no-such-folder")).unwrap(), [""; 0]);
    }
}
