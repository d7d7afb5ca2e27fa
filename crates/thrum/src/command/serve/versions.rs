//! The file of the keys that the management interface sets, and the versions before it.
//!
//! ```text
//!   DATA_DIR/managed.toml              in force
//!   DATA_DIR/managed.versions/7.toml   as it was before the next one, at most 20
//! ```
//!
//! A version is kept when it is replaced, so that at every moment the files are complete.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::Path;

use thrum_files::Folder;

use crate::command::shown::{now, time};
use crate::config::managed::{self, BYTES_MAX, VERSIONS};

/// Versions that are kept: a person looks for a mistake of the last days.
const KEPT_MAX: usize = 20;
/// The beginning of the line that says which version a file is.
const VERSION: &str = "# version ";
/// Lines at the beginning of a file among which that line is.
const HEAD_LINES: usize = 6;
/// Highest number that a file may say of itself: every reader of JSON knows it exactly.
const NUMBER_MAX: u64 = (1 << 53) - 1;
/// Longest name of who made a version.
const BY_LEN_MAX: usize = 100;

/// What a file says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    /// Its number; 0 of a file in force that was not written here.
    pub(super) version: u64,
    pub(super) at: Option<String>,
    pub(super) by: Option<String>,
}

/// A version. It is kept as it was, also if it is damaged: then it may be no text.
#[derive(Clone, Debug)]
pub(super) struct Version {
    pub(super) head: Head,
    pub(super) bytes: Vec<u8>,
}

impl Version {
    fn of(bytes: Vec<u8>) -> Self {
        Self {
            head: Head::of(&String::from_utf8_lossy(&bytes)),
            bytes,
        }
    }

    /// Its text, with a sign for each byte that is no text.
    pub(super) fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }
}

impl Head {
    fn of(text: &str) -> Self {
        let mut lines = text.lines().take(HEAD_LINES);
        let line = lines.find_map(|line| line.strip_prefix(VERSION));
        let mut parts = line.unwrap_or_default().splitn(3, ", ");
        let number = parts.next().and_then(|number| number.parse().ok());
        let Some(version) = number.filter(|number| *number <= NUMBER_MAX) else {
            return Self::default();
        };
        let at = parts.next().map(str::to_owned);
        let by = parts.next().and_then(|by| by.strip_prefix("by "));
        Self {
            version,
            at,
            by: by.map(str::to_owned),
        }
    }

    /// That of a new version, made now.
    pub(super) fn new(version: u64, by: &str) -> Self {
        let letters = by.chars().filter(|letter| !letter.is_control());
        Self {
            version,
            at: Some(time(now())),
            by: Some(letters.take(BY_LEN_MAX).collect()),
        }
    }

    /// Its lines, without `#`.
    pub(super) fn lines(&self) -> Vec<String> {
        let at = self.at.as_deref().unwrap_or_default();
        let by = self.by.as_deref().unwrap_or_default();
        vec![
            "Keys that are set over the management interface: thrum config set, /api/v1/config/apply.".to_owned(),
            "It writes this file as a whole: comments are lost. thrum.toml, conf.d, variables and flags win over it."
                .to_owned(),
            format!("version {}, {at}, by {by}", self.version),
        ]
    }
}

/// The file in force, also if it is damaged; none if there is none. One that was edited has no
/// number: the one in its head is that of the text before.
pub(super) fn current(data_dir: &Path) -> io::Result<Option<Version>> {
    let Some(bytes) = managed::bytes(data_dir)? else {
        return Ok(None);
    };
    let mut version = Version::of(bytes);
    let written = kept(data_dir, version.head.version)?;
    if written.is_some_and(|written| written != version.bytes) {
        version.head.version = 0;
    }
    Ok(Some(version))
}

/// The text that was written under a number.
fn kept(data_dir: &Path, version: u64) -> io::Result<Option<Vec<u8>>> {
    let folder = Folder::open(data_dir)?;
    let read = folder
        .open_directory(VERSIONS)
        .and_then(|folder| read(&folder, version));
    match read {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        read => read.map(Some),
    }
}

/// All versions, the newest first, the one in force among them.
pub(super) fn all(data_dir: &Path) -> io::Result<Vec<Version>> {
    let mut all: Vec<Version> = current(data_dir)?.into_iter().collect();
    let folder = Folder::open(data_dir)?;
    let folder = match folder.open_directory(VERSIONS) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(all),
        opened => opened?,
    };
    for number in numbers(&folder)? {
        if all.iter().all(|version| version.head.version != number) {
            let mut version = Version::of(read(&folder, number)?);
            // A file that was not written here has none.
            version.head.version = number;
            all.push(version);
        }
    }
    all.sort_by_key(|version| std::cmp::Reverse(version.head.version));
    Ok(all)
}

/// The number that the next version gets. A file in force that was not written here gets the one
/// before it when it is replaced.
pub(super) fn next(data_dir: &Path) -> io::Result<u64> {
    let unnumbered = current(data_dir)?.is_some_and(|version| version.head.version == 0);
    Ok(unused(data_dir)?.saturating_add(u64::from(unnumbered)))
}

/// The number after the highest one.
fn unused(data_dir: &Path) -> io::Result<u64> {
    let all = all(data_dir)?;
    let highest = all.first().map_or(0, |version| version.head.version);
    Ok(highest.saturating_add(1))
}

/// Replaces the file in force, which becomes a version that can be returned to.
pub(super) fn put(data_dir: &Path, text: &str) -> io::Result<()> {
    let folder = Folder::open(data_dir)?;
    if let Some(mut before) = current(data_dir)? {
        if before.head.version == 0 {
            before.head.version = unused(data_dir)?;
        }
        keep(&folder, &before)?;
    }
    // Also beside it: whoever damages the file must not lose what was in force.
    let new = Version::of(text.into());
    if new.head.version > 0 {
        keep(&folder, &new)?;
    }
    let written = write(&folder, managed::FILE, text.as_bytes());
    written.inspect_err(|_| forget(&folder, new.head.version))
}

/// Removes a version that was never in force.
fn forget(folder: &Folder, version: u64) {
    if version == 0 {
        return;
    }
    let removed = folder
        .open_directory(VERSIONS)
        .and_then(|kept| kept.remove(OsStr::new(&name(version))));
    if let Err(error) = removed {
        tracing::warn!(version, %error, "a version that was not in force stays in the list");
    }
}

/// The file is as it was before [`put`].
pub(super) fn take_back(data_dir: &Path, before: Option<&Version>) -> io::Result<()> {
    let folder = Folder::open(data_dir)?;
    if let Some(new) = current(data_dir)? {
        forget(&folder, new.head.version);
    }
    match before {
        Some(before) => write(&folder, managed::FILE, &before.bytes),
        None => folder.remove(OsStr::new(managed::FILE)),
    }
}

fn keep(folder: &Folder, version: &Version) -> io::Result<()> {
    let kept = folder.open_or_create_directory(VERSIONS)?;
    write(&kept, &name(version.head.version), &version.bytes)?;
    let mut numbers = numbers(&kept)?;
    numbers.sort_unstable();
    // And the one in force.
    let too_many = numbers.len().saturating_sub(KEPT_MAX + 1);
    for number in &numbers[..too_many] {
        kept.remove(OsStr::new(&name(*number)))?;
    }
    Ok(())
}

fn name(version: u64) -> String {
    format!("{version}.toml")
}

fn numbers(folder: &Folder) -> io::Result<Vec<u64>> {
    let names = folder.file_names()?;
    let numbers = names
        .iter()
        .filter_map(|name| name.strip_suffix(".toml")?.parse().ok());
    Ok(numbers
        .filter(|number| (1..=NUMBER_MAX).contains(number))
        .collect())
}

fn read(folder: &Folder, version: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = folder.read(OsStr::new(&name(version)))?;
    file.take(BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn write(folder: &Folder, name: &str, bytes: &[u8]) -> io::Result<()> {
    folder.replace(OsStr::new(name), |to| to.write_all(bytes))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir();
        let folder = folder.join(format!("thrum-versions-{name}-{}", std::process::id()));
        std::fs::remove_dir_all(&folder).ok();
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn text(head: &Head) -> String {
        let lines = head.lines().join("\n# ");
        format!("# {lines}\n")
    }

    #[test]
    fn a_head_is_read_as_it_is_written() {
        let head = Head::new(7, "key:a, b\n# version 9");
        assert_eq!(Head::of(&text(&head)), head);
        assert_eq!(head.by.as_deref(), Some("key:a, b# version 9"));
        assert_eq!(Head::of("[node]\nname = \"x\"\n"), Head::default());
    }

    #[test]
    fn versions_are_kept_up_to_a_number_and_the_newest_comes_first() {
        let folder = folder("kept");
        assert_eq!(next(&folder).unwrap(), 1);
        for _ in 0..30 {
            let head = Head::new(next(&folder).unwrap(), "a");
            put(&folder, &text(&head)).unwrap();
        }
        let all = all(&folder).unwrap();
        let numbers: Vec<u64> = all.iter().map(|version| version.head.version).collect();
        let expected: Vec<u64> = (10..=30).rev().collect();
        assert_eq!(numbers, expected);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_file_that_was_not_written_here_becomes_a_version_when_it_is_replaced() {
        let folder = folder("unnumbered");
        for head in ["", "# version 18446744073709551615, x, by y\n"] {
            let file = folder.join(managed::FILE);
            std::fs::write(&file, [head.as_bytes(), b"a = \"\xff\"\n"].concat()).unwrap();
            let number = next(&folder).unwrap();
            put(&folder, &text(&Head::new(number, "a"))).unwrap();
            let all = all(&folder).unwrap();
            let found = [&all[0], &all[1]].map(|version| version.head.version);
            assert_eq!(found, [number, number - 1], "{head}");
            assert!(all[1].bytes.ends_with(b"a = \"\xff\"\n"), "{head}");
            assert!(all[1].text().ends_with("a = \"\u{fffd}\"\n"), "{head}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_file_that_was_edited_does_not_replace_the_version_that_was_in_force() {
        let folder = folder("edited");
        let good = "# version 1, t, by x\na = 1\n";
        put(&folder, good).unwrap();
        let damaged = "# version 1, t, by x\na = [\n";
        std::fs::write(folder.join(managed::FILE), damaged).unwrap();
        assert_eq!(current(&folder).unwrap().unwrap().head.version, 0);
        assert_eq!(next(&folder).unwrap(), 3);
        put(&folder, "# version 3, t, by x\na = 3\n").unwrap();
        let all = all(&folder).unwrap();
        let found: Vec<_> = all
            .iter()
            .map(|one| (one.head.version, one.text()))
            .collect();
        let expected = [
            (3, "# version 3, t, by x\na = 3\n"),
            (2, damaged),
            (1, good),
        ];
        assert_eq!(found, expected.map(|(number, text)| (number, text.into())));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_file_that_is_taken_back_is_as_before() {
        let folder = folder("back");
        put(&folder, "a").unwrap();
        take_back(&folder, None).unwrap();
        assert!(current(&folder).unwrap().is_none());
        put(&folder, "# version 1, t, by x\n").unwrap();
        let before = current(&folder).unwrap();
        put(&folder, "# version 2, t, by x\n").unwrap();
        take_back(&folder, before.as_ref()).unwrap();
        assert_eq!(current(&folder).unwrap().unwrap().head.version, 1);
        let damaged = b"# version 3, t, by x\nlimits = \xff\xfe [";
        std::fs::write(folder.join(managed::FILE), damaged).unwrap();
        let before = current(&folder).unwrap();
        put(&folder, "# version 4, t, by x\n").unwrap();
        take_back(&folder, before.as_ref()).unwrap();
        assert_eq!(std::fs::read(folder.join(managed::FILE)).unwrap(), damaged);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
