//! The records of the library: the contents of each file before a change, and changed names.

use std::fs;
use std::io::{self, Error, ErrorKind};
use std::path::{Path, PathBuf};

const HEADER_BYTES: usize = 40;

/// A change of a file's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// Its start; of a truncation the new size.
    pub(super) offset: u64,
    /// Bytes written; 0 of a truncation.
    pub(super) length: u64,
    /// Size of the file before.
    pub(super) size_before: u64,
    /// Bytes from `offset` on that it replaced or cut off.
    pub(super) old: Vec<u8>,
    /// Whether a sync made it safe.
    pub(super) safe: bool,
}

impl Change {
    /// Behind the last byte that it touched.
    pub(super) fn end(&self) -> u64 {
        let replaced = u64::try_from(self.old.len()).unwrap_or(0);
        self.offset + self.length.max(replaced)
    }

    /// Whether it made the file longer or shorter.
    pub(super) fn is_of_size(&self) -> bool {
        self.length == 0 || self.offset + self.length > self.size_before
    }
}

/// A change of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NameChange {
    /// A file or folder is new.
    New(PathBuf),
    /// A name was removed; the file is kept under its number.
    Removed { file: u64, path: PathBuf },
    /// A file has another name, and perhaps replaced one.
    Renamed {
        file: u64,
        replaced: Option<u64>,
        from: PathBuf,
        to: PathBuf,
    },
}

/// Path of a file in the library's folder.
pub(super) fn file_path(side: &Path, file: u64) -> PathBuf {
    side.join(format!("file-{file}.data"))
}

/// Numbers of the files with notes, in order.
pub(super) fn files(side: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(side)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let number = name
            .strip_prefix("file-")
            .and_then(|rest| rest.strip_suffix(".undo"));
        numbers.extend(number.and_then(|number| number.parse::<u64>().ok()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// Changes of a file in their order; a note that the kill cut short belongs to a change that was
/// not made.
pub(super) fn changes(side: &Path, file: u64) -> io::Result<Vec<Change>> {
    let bytes = fs::read(side.join(format!("file-{file}.undo")))?;
    let mut rest = bytes.as_slice();
    let mut changes = Vec::new();
    // Changes from here on wait for a sync.
    let mut unsynced = 0;
    while let Some((header, body)) = rest.split_first_chunk::<HEADER_BYTES>() {
        let [kind, offset, length, size_before, old_bytes] = numbers(header);
        let Some((old, after)) = body.split_at_checked(in_memory(old_bytes)) else {
            break;
        };
        rest = after;
        match kind {
            1 | 2 => changes.push(Change {
                offset,
                length,
                size_before,
                old: old.to_vec(),
                safe: false,
            }),
            // Data that a failed sync did not write is marked as written: the next sync does not
            // write it either.
            3 => unsynced = changes.len(),
            4 => {
                changes
                    .iter_mut()
                    .skip(unsynced)
                    .for_each(|change| change.safe = true);
                unsynced = changes.len();
            }
            _ => {
                return Err(Error::new(
                    ErrorKind::InvalidData,
                    format!("note of kind {kind}"),
                ));
            }
        }
    }
    Ok(changes)
}

/// Changes of names that no sync of their folder made safe, in their order.
pub(super) fn unsafe_names(side: &Path) -> io::Result<Vec<NameChange>> {
    let text = match fs::read_to_string(side.join("names")) {
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        text => text?,
    };
    let mut changes = Vec::new();
    // A line that the kill cut short belongs to a change that was not made.
    for line in text
        .split_inclusive('\n')
        .filter_map(|line| line.strip_suffix('\n'))
    {
        let fields: Vec<&str> = line.split('\t').collect();
        if let ["sync", folder] = fields[..] {
            changes.retain(|change| !is_in(change, Path::new(folder)));
        } else {
            let change = name_change(&fields);
            let unknown = || Error::new(ErrorKind::InvalidData, format!("note of a name: {line}"));
            changes.push(change.ok_or_else(unknown)?);
        }
    }
    Ok(changes)
}

fn name_change(fields: &[&str]) -> Option<NameChange> {
    Some(match fields {
        ["create", _, path] | ["mkdir", path] => NameChange::New(path.into()),
        ["unlink", file, path] => NameChange::Removed {
            file: file.parse().ok()?,
            path: path.into(),
        },
        ["rename", file, replaced, from, to] => NameChange::Renamed {
            file: file.parse().ok()?,
            replaced: replaced.parse().ok().filter(|number| *number != 0),
            from: from.into(),
            to: to.into(),
        },
        _ => return None,
    })
}

fn is_in(change: &NameChange, folder: &Path) -> bool {
    let (NameChange::New(path)
    | NameChange::Removed { path, .. }
    | NameChange::Renamed { to: path, .. }) = change;
    path.parent() == Some(folder)
}

fn numbers(header: &[u8; HEADER_BYTES]) -> [u64; 5] {
    let (numbers, _) = header.as_chunks::<8>();
    let mut values = numbers.iter().copied().map(u64::from_ne_bytes);
    std::array::from_fn(|_| values.next().expect("the header has five numbers"))
}

pub(super) fn in_memory(bytes: u64) -> usize {
    usize::try_from(bytes).expect("it fits into memory")
}
