//! The audit log on the disk: files of JSON lines, the oldest of which make room.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::sync::Arc;

use thrum_files::Folder;

use super::entry::{End, Entry, Line};

/// Name of the folder in the data directory.
const FOLDER: &str = "audit";
/// Bytes of a file: it is read whole for a page.
pub(super) const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// The files, and where the next line goes.
#[derive(Debug)]
pub(super) struct Files {
    folder: Arc<Folder>,
    /// The number of the first entry in each file, which is in its name, in order.
    firsts: Vec<u64>,
    /// The last of them.
    file: Option<File>,
    len: u64,
    /// The last line has no end: a write failed, or the broker ended within it.
    is_torn: bool,
    next: u64,
    /// Files at most; the oldest makes room.
    most: usize,
}

/// Where to read.
#[derive(Clone, Debug)]
pub(super) struct Reader {
    folder: Arc<Folder>,
    pub(super) firsts: Vec<u64>,
}

/// What a file contains.
#[derive(Debug, Default)]
pub(super) struct Contents {
    /// In order.
    pub(super) entries: Vec<Entry>,
    /// By the number of the ended entry, which may be in the file before.
    pub(super) ends: BTreeMap<u64, End>,
    /// Lines that cannot be read: torn by a crash, or changed by somebody.
    pub(super) damaged: u64,
}

impl Files {
    /// Opens the log in a data directory.
    pub(super) fn open(data_dir: &Path, most: usize) -> io::Result<Self> {
        let folder = Folder::open(data_dir)?.open_or_create_directory(FOLDER)?;
        let folder = Arc::new(folder);
        let names = folder.file_names()?;
        let mut firsts: Vec<u64> = names.iter().filter_map(|name| first_of(name)).collect();
        firsts.sort_unstable();
        let mut files = Self {
            folder,
            firsts,
            file: None,
            len: 0,
            is_torn: false,
            next: 1,
            most,
        };
        if let Some(last) = files.firsts.last().copied() {
            files.continue_after(last)?;
        }
        Ok(files)
    }

    /// Writes an entry; it is on the disk when this returns its number.
    pub(super) fn push(&mut self, mut entry: Entry) -> io::Result<u64> {
        entry.number = self.next;
        let line = serde_json::to_vec(&entry)?;
        if self.file.is_none() || self.len + line.len() as u64 >= FILE_BYTES_MAX {
            self.begin_file()?;
        }
        self.append(line)?;
        self.next += 1;
        Ok(entry.number)
    }

    /// Writes how an entry ended, into the same file or the next.
    pub(super) fn end(&mut self, end: &End) -> io::Result<()> {
        let line = serde_json::to_vec(end)?;
        self.append(line)
    }

    /// To read without keeping others from writing.
    pub(super) fn reader(&self) -> Reader {
        Reader {
            folder: Arc::clone(&self.folder),
            firsts: self.firsts.clone(),
        }
    }

    /// Goes on with the last file.
    fn continue_after(&mut self, first: u64) -> io::Result<()> {
        let mut file = self.folder.change(OsStr::new(&name_of(first)))?;
        let contents = read(&mut file)?;
        self.len = file.seek(SeekFrom::End(0))?;
        if self.len > 0 {
            let mut last = [0];
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
            self.is_torn = last != *b"\n";
        }
        let newest = contents.entries.last().map(|entry| entry.number);
        // A torn line may have had the next number.
        self.next = newest.map_or(first, |newest| newest + 1) + u64::from(self.is_torn);
        self.file = Some(file);
        Ok(())
    }

    fn begin_file(&mut self) -> io::Result<()> {
        let name = name_of(self.next);
        // An attempt that failed may have left it.
        let file = self.folder.create(OsStr::new(&name))?;
        self.folder.sync()?;
        self.file = Some(file);
        (self.len, self.is_torn) = (0, false);
        self.firsts.push(self.next);
        self.make_room();
        Ok(())
    }

    /// Keeps fewer files, or more, from now on.
    pub(super) fn set_most(&mut self, most: usize) {
        self.most = most;
        self.make_room();
    }

    fn make_room(&mut self) {
        while self.firsts.len() > self.most {
            let oldest = self.firsts.remove(0);
            // It may be gone.
            self.folder.remove(OsStr::new(&name_of(oldest))).ok();
        }
    }

    fn append(&mut self, mut line: Vec<u8>) -> io::Result<()> {
        let Some(file) = &mut self.file else {
            return Err(ErrorKind::NotFound.into());
        };
        if self.is_torn {
            line.insert(0, b'\n');
        }
        line.push(b'\n');
        let written = file
            .seek(SeekFrom::Start(self.len))
            .and_then(|_| file.write_all(&line))
            .and_then(|()| file.sync_data());
        if written.is_err() {
            // A part of the line may be there; without it the next line begins where this one did.
            self.is_torn = file.set_len(self.len).is_err();
            if self.is_torn {
                // Never less: what is there is never written over.
                let end = file.seek(SeekFrom::End(0)).unwrap_or(self.len);
                self.len = end.max(self.len);
            }
            return written;
        }
        self.is_torn = false;
        self.len += line.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
impl Files {
    /// Writes into another file from now on.
    pub(super) fn exchange_file(&mut self, file: File) -> Option<File> {
        self.file.replace(file)
    }
}

impl Reader {
    /// The contents of a file; empty if it has made room meanwhile.
    pub(super) fn read(&self, first: u64) -> io::Result<Contents> {
        match self.folder.read(OsStr::new(&name_of(first))) {
            Ok(mut file) => read(&mut file),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Contents::default()),
            Err(error) => Err(error),
        }
    }
}

fn read(file: &mut File) -> io::Result<Contents> {
    let mut bytes = Vec::new();
    // The ends of its last entries are behind the limit.
    file.take(FILE_BYTES_MAX * 2).read_to_end(&mut bytes)?;
    let mut contents = Contents::default();
    let lines = bytes.split(|byte| *byte == b'\n');
    for line in lines.filter(|line| !line.is_empty()) {
        match serde_json::from_slice(line) {
            Ok(Line::Entry(entry)) => contents.entries.push(*entry),
            Ok(Line::End(end)) => drop(contents.ends.insert(end.of, end)),
            Err(_) => contents.damaged += 1,
        }
    }
    Ok(contents)
}

fn name_of(first: u64) -> String {
    format!("{first:020}.jsonl")
}

fn first_of(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".jsonl")?;
    (digits.len() == 20).then(|| digits.parse().ok()).flatten()
}
