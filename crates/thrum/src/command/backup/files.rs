//! Files beside the log that a broker cannot do without: administrators, users, bans, the keys that
//! were set over the management interface with their versions, counted filters, and the audit log.
//! Each is replaced or continued as a whole, so a copy of it is one state.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;

use anyhow::Context as _;
use thrum_files::Folder;

use crate::config::managed;

/// Files in the data directory.
pub(super) const NAMES: [&str; 5] = [
    "administrators.jsonl",
    "users.jsonl",
    "bans.jsonl",
    managed::FILE,
    "topic-metrics.txt",
];
/// Folder of the audit log.
pub(super) const AUDIT: &str = "audit";
/// Folders with files that are named by a number.
pub(super) const FOLDERS: [(&str, &str); 2] = [(managed::VERSIONS, ".toml"), (AUDIT, ".jsonl")];
/// Digits of a number in the name of a file.
const DIGITS_MAX: usize = 20;

/// A file of a backup with its name, which has its folder in front.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Copied {
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
}

/// Opens those that are there, one after the other.
pub(super) fn visit_all(
    data_dir: &Path,
    mut visit: impl FnMut(&str, &File) -> io::Result<()>,
) -> anyhow::Result<()> {
    for name in NAMES {
        let path = Folder::resolve_own_links(&data_dir.join(name));
        let file = path.file_name().unwrap_or_default();
        let opened = Folder::containing(&path).and_then(|folder| folder.read(file));
        copy(name, opened, &mut visit)?;
    }
    for (name, _) in FOLDERS {
        let Some(folder) = open(data_dir, name)? else {
            continue;
        };
        for file in numbered(&folder)? {
            let opened = folder.read(OsStr::new(&file));
            copy(&format!("{name}/{file}"), opened, &mut visit)?;
        }
    }
    Ok(())
}

fn copy(
    name: &str,
    opened: io::Result<File>,
    visit: &mut impl FnMut(&str, &File) -> io::Result<()>,
) -> anyhow::Result<()> {
    let opened = match opened {
        // There is none, or the oldest file of a folder has made room.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        opened => opened.with_context(|| format!("cannot read {name}"))?,
    };
    visit(name, &opened).with_context(|| format!("cannot copy {name}"))
}

/// One of the folders, if it is there.
fn open(data_dir: &Path, name: &str) -> anyhow::Result<Option<Folder>> {
    match Folder::open(data_dir).and_then(|folder| folder.open_directory(name)) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        opened => {
            Ok(Some(opened.with_context(|| {
                format!("cannot read the folder {name}")
            })?))
        }
    }
}

/// The files of one of the folders, in the order of their names.
pub(super) fn numbered(folder: &Folder) -> anyhow::Result<Vec<String>> {
    let path = folder.path();
    let names = folder.file_names();
    let mut names = names.with_context(|| format!("cannot read {}", path.display()))?;
    let of = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    names.retain(|name| is_numbered(of, name));
    names.sort();
    Ok(names)
}

/// Whether a backup may have a file of that name: nothing else is ever written.
pub(super) fn is_known(name: &str) -> bool {
    let parts = name.split_once('/');
    NAMES.contains(&name) || parts.is_some_and(|(folder, file)| is_numbered(folder, file))
}

fn is_numbered(folder: &str, file: &str) -> bool {
    let mut folders = FOLDERS.iter();
    let Some((_, end)) = folders.find(|(name, _)| *name == folder) else {
        return false;
    };
    file.strip_suffix(end).is_some_and(|digits| {
        (1..=DIGITS_MAX).contains(&digits.len())
            && digits.bytes().all(|digit| digit.is_ascii_digit())
    })
}

/// Whether one of the folders of a data directory has a file that a broker has written.
pub(super) fn has_numbered(data_dir: &Path, folder: &str) -> anyhow::Result<bool> {
    let Some(folder) = open(data_dir, folder)? else {
        return Ok(false);
    };
    Ok(!numbered(&folder)?.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_that_a_broker_writes_are_known() {
        for name in [
            "users.jsonl",
            "managed.toml",
            "managed.versions/7.toml",
            "audit/00000000000000000001.jsonl",
        ] {
            assert!(is_known(name), "{name}");
        }
        for name in [
            "state/lock",
            "../users.jsonl",
            "audit/../users.jsonl",
            "audit/1.toml",
            "audit/.jsonl",
            "managed.versions/7.toml/8.toml",
            "other/1.toml",
            "",
        ] {
            assert!(!is_known(name), "{name}");
        }
    }
}
