//! From a configuration of mosquitto to one of this program, text to text.

mod every_option;
mod golden;
mod places;
mod values;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::*;

/// Files in memory. Names of files that begin with `/there` exist as well.
struct Memory(BTreeMap<PathBuf, String>);

impl Memory {
    fn of(files: &[(&str, &str)]) -> Self {
        let files = files.iter();
        Self(
            files
                .map(|(path, text)| (PathBuf::from(path), (*text).to_owned()))
                .collect(),
        )
    }
}

impl Files for Memory {
    fn read(&self, path: &Path) -> io::Result<String> {
        let text = self.0.get(path);
        text.cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let inside = self.0.keys().filter(|path| path.parent() == Some(folder));
        let paths: Vec<PathBuf> = inside.rev().cloned().collect();
        if paths.is_empty() {
            return Err(io::Error::from(io::ErrorKind::NotFound));
        }
        Ok(paths)
    }

    fn is_missing(&self, path: &Path) -> bool {
        !self.0.contains_key(path) && !path.starts_with("/there")
    }
}

fn import_with(text: &str, files: &[(&str, &str)]) -> Result<Imported, Problems> {
    let main = Source::new(PathBuf::from("m.conf"), text.to_owned());
    import(&main, &Memory::of(files))
}

fn imported(text: &str) -> Imported {
    match import_with(text, &[]) {
        Ok(imported) => imported,
        Err(problems) => panic!("{text}\n{problems}"),
    }
}

/// Keys with their tables and values, except those that are set for every configuration.
fn keys(toml: &str) -> Vec<String> {
    let always = [
        "acl.default = \"allow\"",
        "auth.anonymous = false",
        "limits.max_packet = \"2MB\"",
        "limits.retained_payload = \"2MB\"",
        "limits.session_expiry = \"never\"",
    ];
    let mut table = String::new();
    let mut found = Vec::new();
    for line in toml.lines() {
        if let Some(name) = line.strip_prefix('[') {
            table = name.trim_end_matches(']').to_owned();
        } else if let Some((setting, _)) = line.split_once("  #") {
            found.push(format!("{table}.{}", setting.trim_end()));
        }
    }
    found.retain(|key| !always.contains(&key.as_str()));
    found
}

/// The keys of a configuration beyond those of every one.
#[track_caller]
fn check(text: &str, expected: &[&str]) {
    assert_eq!(keys(&imported(text).toml), expected, "{text}");
}

/// The report about an option.
#[track_caller]
fn check_note(text: &str, option: &str, outcome: report::Outcome, note: &str) {
    let report = imported(text).report;
    let row = report.rows.iter().find(|row| row.option == option);
    let row = row.unwrap_or_else(|| panic!("{option} is not in the report:\n{report}"));
    assert_eq!((row.outcome, row.note.as_str()), (outcome, note), "{text}");
}

/// The errors of a configuration, without the excerpts.
#[track_caller]
fn check_wrong(text: &str, expected: &[&str]) {
    let problems = import_with(text, &[]).expect_err(text);
    let messages: Vec<_> = problems
        .0
        .iter()
        .map(|problem| problem.message.as_str())
        .collect();
    assert_eq!(messages, expected, "{text}");
}
