//! The file of bans, which is always rewritten as a whole.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use thrum_files::{Folder, Stamp, open_named};
use thrum_protection::{BanLineError, BanList};

/// Longest file that is read, and written: several hundred thousand bans take 20 MiB.
const BYTES_MAX: u64 = 256 << 20;

/// Reasons why a file of bans cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BanFileError {
    /// The file cannot be read.
    #[error("cannot read the bans in {}: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A line is not a ban.
    #[error("{}:{line}: {what}; mend the line or remove it", .path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// The error.
        what: String,
    },
    /// The file cannot be written.
    #[error("cannot write the bans to {}: {source}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// The file of the bans.
#[derive(Clone, Debug)]
pub struct BanFile {
    path: PathBuf,
    /// Bytes that it may have: [`BYTES_MAX`], but for tests.
    bytes_max: u64,
}

impl BanFile {
    /// The file of bans in a data directory.
    pub fn in_data_dir(data_dir: &Path) -> Self {
        Self::at(data_dir.join("bans.jsonl"))
    }

    /// The file in a data directory that shows the node's temporary bans.
    pub fn temporary_in(data_dir: &Path) -> Self {
        Self::at(data_dir.join("bans-temporary.jsonl"))
    }

    /// A file of another name.
    pub fn at(path: PathBuf) -> Self {
        Self {
            path,
            bytes_max: BYTES_MAX,
        }
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the file; a missing file contains no ban. Empty lines are skipped, and of two bans of
    /// one subject the last one applies.
    ///
    /// # Errors
    /// A file that cannot be read, or the first line that is not a ban.
    pub fn load(&self) -> Result<BanList, BanFileError> {
        self.read_from(|| self.read(&open_named(&self.path)?))
    }

    fn read_from(
        &self,
        text: impl FnOnce() -> io::Result<String>,
    ) -> Result<BanList, BanFileError> {
        let text = match text() {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(source) => {
                let path = self.path.clone();
                return Err(BanFileError::Read { path, source });
            }
        };
        BanList::parse(&text).map_err(|BanLineError { line, what }| BanFileError::Line {
            path: self.path.clone(),
            line,
            what,
        })
    }

    /// Reads the bans, changes them and rewrites the file if `change` reports a change. Two
    /// simultaneous edits wait for each other; a reader sees the old file or the new one.
    ///
    /// # Errors
    /// As [`BanFile::load`]; a file or a directory that cannot be written; bans that could not be
    /// read again, which leave the file as it was.
    pub fn edit<T>(
        &self,
        change: impl FnOnce(&mut BanList) -> (bool, T),
    ) -> Result<T, BanFileError> {
        let failed = |source| BanFileError::Write {
            path: self.path.clone(),
            source,
        };
        // The file itself is replaced, so its directory is locked instead.
        let folder = Folder::containing(&self.path).map_err(failed)?;
        folder.lock().map_err(failed)?;
        let mut list = self.read_from(|| {
            let file = folder.change(self.name())?;
            self.read(&file)
        })?;
        let (is_changed, outcome) = change(&mut list);
        if is_changed {
            let replaced = folder.replace(self.name(), |to| {
                list.write_to(&mut *to)?;
                to.flush()?;
                self.check_len(to.get_ref())
            });
            replaced.map_err(failed)?;
        }
        Ok(outcome)
    }

    fn read(&self, file: &File) -> io::Result<String> {
        self.check_len(file)?;
        io::read_to_string(file)
    }

    /// With a file that is too long no broker starts.
    fn check_len(&self, file: &File) -> io::Result<()> {
        let (len, most) = (file.metadata()?.len(), self.bytes_max);
        if len > most {
            let what = format!("it has {len} bytes, the limit is {most}; remove some bans");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, what));
        }
        Ok(())
    }

    fn name(&self) -> &OsStr {
        self.path.file_name().unwrap_or_default()
    }

    /// The present stamp of the file; `None` if there is no file.
    pub(super) fn stamp(&self) -> Option<Stamp> {
        Stamp::of(&self.path).ok().flatten()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use thrum_access::Network;
    use thrum_protection::{Ban, Subject};

    use super::*;

    /// A folder of the test's own, removed at its end.
    struct Place(PathBuf);

    impl Place {
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

    impl Drop for Place {
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
            disconnects: true,
        }
    }

    fn added(list: &mut BanList, subject: Subject) -> (bool, ()) {
        list.insert(ban(subject));
        (true, ())
    }

    #[test]
    fn what_is_written_reads_back() {
        let folder = Place::new("round");
        let file = folder.file();
        assert!(file.load().unwrap().is_empty());
        assert_eq!(file.stamp(), None);
        let subjects = [
            Subject::ClientId("meter-7".into()),
            Subject::Username("j\u{f6}".into()),
            Subject::Network("192.0.2.0/24".parse().unwrap()),
            Subject::Network("2001:db8::1".parse().unwrap()),
            Subject::ClientOfUser {
                client_id: "meter-7".into(),
                username: "jo".into(),
            },
            Subject::ClientFrom {
                client_id: "meter-7".into(),
                network: Network::of_client("2001:db8::1".parse().unwrap()),
            },
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
    fn a_link_in_the_folder_is_not_written_through() {
        let folder = Place::new("link");
        let file = folder.file();
        let victim = folder.0.join("victim");
        fs::write(&victim, "").unwrap();
        let add = || file.edit(|list| added(list, Subject::ClientId("a".into())));
        std::os::unix::fs::symlink(&victim, folder.0.join("bans.jsonl.new")).unwrap();
        add().unwrap();
        fs::remove_file(file.path()).unwrap();
        std::os::unix::fs::symlink(&victim, file.path()).unwrap();
        let error = add().unwrap_err().to_string();
        assert!(error.contains("is a symbolic link"), "{error}");
        assert_eq!(fs::read_to_string(&victim).unwrap(), "");
    }

    #[test]
    fn bans_that_could_not_be_read_again_are_not_written() {
        let folder = Place::new("long");
        let file = BanFile {
            bytes_max: 300,
            ..folder.file()
        };
        let add = |name: &str| file.edit(|list| added(list, Subject::ClientId(name.into())));
        add("a").unwrap();
        let error = add(&"b".repeat(300)).unwrap_err().to_string();
        assert!(
            error.contains("the limit is 300; remove some bans"),
            "{error}"
        );
        assert_eq!(file.load().unwrap().len(), 1, "the old file is still there");
        add("c").unwrap();
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
    }

    #[test]
    fn an_edit_that_changes_nothing_writes_nothing() {
        let folder = Place::new("nothing");
        let file = folder.file();
        assert_eq!(file.edit(|list| (false, list.len())).unwrap(), 0);
        assert_eq!(file.stamp(), None);
    }

    #[test]
    fn a_change_shows_in_the_stamp() {
        let folder = Place::new("stamp");
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
        let folder = Place::new("wrong");
        let file = folder.file();
        for (text, expected) in [
            (
                "\n{}",
                ":2: expected client_id, username or address, or client_id with one of the \
                 others; mend the line or remove it",
            ),
            (
                "{\"address\":\"192.0.2.1\",\"username\":\"b\"}",
                ":1: expected client_id, username or address, or client_id with one of the \
                 others; mend the line or remove it",
            ),
            (
                "{\"client_id\":\"a\",\"address\":\"192.0.2.0/24\"}",
                ":1: a client_id with an address takes one address, and no network; mend the \
                 line or remove it",
            ),
            (
                "{\"address\":\"here\"}",
                ":1: address \"here\": expected an address such as 192.0.2.7 or 2001:db8::1, or \
                 a network such as 192.0.2.0/24; mend the line or remove it",
            ),
            ("{\"clientid\":\"a\"}", ":1: unknown field `clientid`"),
            ("no", ":1: expected"),
        ] {
            fs::write(file.path(), text).unwrap();
            let error = file.load().unwrap_err().to_string();
            let expected = format!("{}{expected}", file.path().display());
            assert!(error.starts_with(&expected), "{error}");
            // An unreadable file is not overwritten.
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
