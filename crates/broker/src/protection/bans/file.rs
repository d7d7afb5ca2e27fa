//! The file of bans: a line of JSON for each, rewritten as a whole.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::list::{Ban, BanList, Subject};
use crate::file_stamp::FileStamp;

/// Longest file that is read: some hundred thousand bans take 20 MiB.
const BYTES_MAX: u64 = 256 << 20;

/// Why a file of bans cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BanFileError {
    /// It cannot be read.
    #[error("cannot read the bans in {}: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A line is not a ban.
    #[error("{}:{line}: {what}; mend the line or remove it", .path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// What is wrong.
        what: String,
    },
    /// It cannot be written.
    #[error("cannot write the bans to {}: {source}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// A ban as a line; times are seconds of the Unix epoch.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_id: Option<Box<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    username: Option<Box<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    reason: Box<str>,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    by: Box<str>,
    #[serde(default)]
    since: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<u64>,
}

impl Line {
    fn new(ban: &Ban) -> Self {
        let mut line = Self {
            reason: ban.reason.clone(),
            by: ban.by.clone(),
            since: ban.since,
            until: ban.until,
            ..Self::default()
        };
        match &ban.subject {
            Subject::ClientId(id) => line.client_id = Some(id.clone()),
            Subject::Username(name) => line.username = Some(name.clone()),
            Subject::Network(network) => line.address = Some(network.to_string()),
        }
        line
    }

    fn ban(self) -> Result<Ban, String> {
        let subject = match (self.client_id, self.username, self.address) {
            (Some(id), None, None) => Subject::ClientId(id),
            (None, Some(name), None) => Subject::Username(name),
            (None, None, Some(address)) => {
                let network = address.parse();
                Subject::Network(network.map_err(|error| format!("address {address:?}: {error}"))?)
            }
            _ => return Err("expected one of client_id, username and address".to_owned()),
        };
        Ok(Ban {
            subject,
            reason: self.reason,
            by: self.by,
            since: self.since,
            until: self.until,
        })
    }
}

/// Where the bans are kept.
#[derive(Clone, Debug)]
pub struct BanFile {
    path: PathBuf,
}

impl BanFile {
    /// The file of bans in a data directory.
    pub fn in_data_dir(data_dir: &Path) -> Self {
        Self::at(data_dir.join("bans.jsonl"))
    }

    /// The file in a data directory that shows the bans which the node made for a time.
    pub fn temporary_in(data_dir: &Path) -> Self {
        Self::at(data_dir.join("bans-temporary.jsonl"))
    }

    /// A file of another name.
    pub fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// Its name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads it; no file is no ban. Empty lines are left out, and of two bans of one subject the last one counts.
    ///
    /// # Errors
    /// A file that cannot be read, or the first line that is not a ban.
    pub fn load(&self) -> Result<BanList, BanFileError> {
        let text = match self.read() {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(source) => {
                let path = self.path.clone();
                return Err(BanFileError::Read { path, source });
            }
        };
        let mut list = BanList::default();
        for (number, line) in text.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            let read = serde_json::from_str::<Line>(line).map_err(|error| error.to_string());
            let ban = read
                .and_then(Line::ban)
                .map_err(|what| BanFileError::Line {
                    path: self.path.clone(),
                    line: number + 1,
                    what,
                })?;
            list.insert(ban);
        }
        Ok(list)
    }

    fn read(&self) -> io::Result<String> {
        let len = fs::metadata(&self.path)?.len();
        if len > BYTES_MAX {
            let what = format!("it has {len} bytes, the limit is {BYTES_MAX}");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, what));
        }
        fs::read_to_string(&self.path)
    }

    /// Reads the bans, changes them and writes the file anew if `change` says that it changed something. Two that do so
    /// at a time wait for each other; a reader sees the old file or the new one.
    ///
    /// # Errors
    /// As [`BanFile::load`]; a file or a folder that cannot be written.
    pub fn edit<T>(
        &self,
        change: impl FnOnce(&mut BanList) -> (bool, T),
    ) -> Result<T, BanFileError> {
        let failed = |source| BanFileError::Write {
            path: self.path.clone(),
            source,
        };
        // The file itself is replaced, so the folder stands for it.
        let folder = File::open(self.folder()).map_err(failed)?;
        folder.lock().map_err(failed)?;
        let mut list = self.load()?;
        let (is_changed, outcome) = change(&mut list);
        if is_changed {
            self.replace(&list).map_err(failed)?;
            folder.sync_all().map_err(failed)?;
        }
        Ok(outcome)
    }

    fn replace(&self, list: &BanList) -> io::Result<()> {
        let mut text = Vec::new();
        for ban in list.sorted() {
            serde_json::to_writer(&mut text, &Line::new(ban))?;
            text.push(b'\n');
        }
        let mut name = self.path.clone().into_os_string();
        name.push(".new");
        let beside = PathBuf::from(name);
        let mut file = File::create(&beside)?;
        if let Ok(old) = fs::metadata(&self.path) {
            file.set_permissions(old.permissions())?;
        }
        file.write_all(&text)?;
        file.sync_all()?;
        fs::rename(&beside, &self.path)
    }

    fn folder(&self) -> &Path {
        let folder = self.path.parent();
        folder
            .filter(|folder| !folder.as_os_str().is_empty())
            .unwrap_or_else(|| Path::new("."))
    }

    /// What the file is now; none if there is none.
    pub(super) fn stamp(&self) -> Option<FileStamp> {
        FileStamp::of(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of the test's own, removed at its end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path =
                std::env::temp_dir().join(format!("thrum-bans-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn file(&self) -> BanFile {
            BanFile::in_data_dir(&self.0)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).ok();
        }
    }

    fn ban(subject: Subject) -> Ban {
        Ban {
            subject,
            reason: "spreads \"noise\"\n".into(),
            by: "jo".into(),
            since: 1_790_000_000,
            until: Some(1_790_003_600),
        }
    }

    fn added(list: &mut BanList, subject: Subject) -> (bool, ()) {
        list.insert(ban(subject));
        (true, ())
    }

    #[test]
    fn what_is_written_reads_back() {
        let folder = Folder::new("round");
        let file = folder.file();
        assert!(file.load().unwrap().is_empty());
        assert_eq!(file.stamp(), None);
        let subjects = [
            Subject::ClientId("meter-7".into()),
            Subject::Username("j\u{f6}".into()),
            Subject::Network("192.0.2.0/24".parse().unwrap()),
            Subject::Network("2001:db8::1".parse().unwrap()),
        ];
        for subject in &subjects {
            file.edit(|list| added(list, subject.clone())).unwrap();
        }
        let list = file.load().unwrap();
        let expected: Vec<Ban> = subjects.into_iter().map(ban).collect();
        assert_eq!(list.sorted(), expected.iter().collect::<Vec<_>>());
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
    }

    #[test]
    fn an_edit_that_changes_nothing_writes_nothing() {
        let folder = Folder::new("nothing");
        let file = folder.file();
        assert_eq!(file.edit(|list| (false, list.len())).unwrap(), 0);
        assert_eq!(file.stamp(), None);
    }

    #[test]
    fn a_change_shows_in_the_stamp() {
        let folder = Folder::new("stamp");
        let file = folder.file();
        file.edit(|list| added(list, Subject::ClientId("a".into())))
            .unwrap();
        let before = file.stamp();
        assert_eq!(file.stamp(), before);
        file.edit(|list| added(list, Subject::ClientId("b".into())))
            .unwrap();
        assert_ne!(file.stamp(), before);
    }

    #[test]
    fn a_wrong_line_is_named() {
        let folder = Folder::new("wrong");
        let file = folder.file();
        for (text, expected) in [
            (
                "\n{}",
                ":2: expected one of client_id, username and address; mend the line or remove it",
            ),
            (
                "{\"client_id\":\"a\",\"username\":\"b\"}",
                ":1: expected one of client_id, username and address; mend the line or remove it",
            ),
            (
                "{\"address\":\"here\"}",
                ":1: address \"here\": expected an address such as 192.0.2.7 or 2001:db8::1, or a network such as \
                 192.0.2.0/24; mend the line or remove it",
            ),
            ("{\"clientid\":\"a\"}", ":1: unknown field `clientid`"),
            ("no", ":1: expected"),
        ] {
            fs::write(file.path(), text).unwrap();
            let error = file.load().unwrap_err().to_string();
            let expected = format!("{}{expected}", file.path().display());
            assert!(error.starts_with(&expected), "{error}");
            // What cannot be read is not written over.
            assert!(
                file.edit(|list| added(list, Subject::ClientId("a".into())))
                    .is_err()
            );
            assert_eq!(fs::read_to_string(file.path()).unwrap(), text);
        }
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error_of_writing() {
        let file = BanFile::in_data_dir(Path::new("not-there"));
        let error = file.edit(|list| (false, list.len())).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("cannot write the bans to not-there/bans.jsonl: "),
            "{error}"
        );
    }
}
