//! The contents of a disk after a loss of power: the synced state, and anything between it and the
//! last writes.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use super::notes::{self, Change, NameChange, in_memory};
use crate::random::Random;

/// Units of changes: the sector and the page.
const BLOCK_BYTES: [usize; 2] = [512, 4096];
const PAGE_BYTES: u64 = 4096;
/// In how many of 10 cases a block survives; one number is drawn per file.
const SURVIVORS_OF_TEN: [u64; 4] = [1, 5, 9, 10];

/// The part that the disk wrote on its own, without a sync.
#[derive(Debug)]
pub enum Memory<'a> {
    /// Nothing.
    OnlySynced,
    /// Any blocks, in any order, and the first of the changed names.
    Some(&'a mut Random),
}

/// The undone changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Blocks of 512 bytes or more that hold what they held before.
    pub blocks: usize,
    /// Changes of names.
    pub names: usize,
}

/// Takes back what was not synced.
pub(super) fn lose_power(side: &Path, mut memory: Memory<'_>) -> io::Result<Lost> {
    let mut lost = Lost::default();
    for file in notes::files(side)? {
        let changes = notes::changes(side, file)?;
        if changes.iter().any(|change| !change.safe) {
            let handle = File::options()
                .read(true)
                .write(true)
                .open(notes::file_path(side, file))?;
            lost.blocks += Extent::new(&handle, &changes)?.take_back(&handle, &mut memory)?;
        }
    }
    let names = notes::unsafe_names(side)?;
    let kept = match memory {
        Memory::OnlySynced => 0,
        Memory::Some(random) => {
            let choices = u64::try_from(names.len()).unwrap_or(0) + 1;
            in_memory(random.below(choices))
        }
    };
    for change in names.iter().skip(kept).rev() {
        take_name_back(side, change)?;
        lost.names += 1;
    }
    Ok(lost)
}

/// The part of a file that changed: its present and its synced contents.
struct Extent {
    start: u64,
    now: Vec<u8>,
    size_now: u64,
    synced: Vec<u8>,
    size_synced: u64,
}

impl Extent {
    fn new(file: &File, changes: &[Change]) -> io::Result<Self> {
        let size_now = file.metadata()?.len();
        let first = changes
            .iter()
            .map(|change| change.offset)
            .min()
            .unwrap_or(0);
        let start = first - first % PAGE_BYTES;
        let end = changes.iter().map(Change::end).max().unwrap_or(start);
        let mut now = vec![0; in_memory(end - start)];
        let readable = in_memory(size_now.clamp(start, end) - start);
        file.read_exact_at(now.get_mut(..readable).unwrap_or_default(), start)?;
        let mut extent = Self {
            start,
            synced: now.clone(),
            now,
            size_now,
            size_synced: size_now,
        };
        extent.go_back(changes);
        Ok(extent)
    }

    /// From the last change to the first; the contents of a later synced change stay.
    fn go_back(&mut self, changes: &[Change]) {
        let mut fixed = vec![false; self.synced.len()];
        let mut is_size_fixed = false;
        for change in changes.iter().rev() {
            let at = in_memory(change.offset - self.start);
            if change.safe {
                let end = at + in_memory(change.length);
                fixed.get_mut(at..end).unwrap_or_default().fill(true);
                is_size_fixed |= change.is_of_size();
                continue;
            }
            let targets = self.synced.iter_mut().zip(&fixed).skip(at).zip(&change.old);
            for ((byte, _), old) in targets.filter(|((_, fixed), _)| !**fixed) {
                *byte = *old;
            }
            if !is_size_fixed {
                self.size_synced = change.size_before;
            }
        }
    }

    /// Writes the disk's contents; returns the number of blocks that were undone.
    fn take_back(&self, file: &File, memory: &mut Memory<'_>) -> io::Result<usize> {
        let (block_bytes, survivors, keeps_size) = match memory {
            Memory::OnlySynced => (BLOCK_BYTES[0], 0, false),
            Memory::Some(random) => (
                random.pick(&BLOCK_BYTES),
                random.pick(&SURVIVORS_OF_TEN),
                random.permille(500),
            ),
        };
        // The file system knows a new size only once it has made room; a size that shrank is one
        // entry.
        let size = if keeps_size {
            self.size_now
        } else {
            self.size_synced
        };
        file.set_len(size)?;
        let mut lost = 0;
        let mut offset = self.start;
        let blocks = self
            .now
            .chunks(block_bytes)
            .zip(self.synced.chunks(block_bytes));
        for (now, synced) in blocks {
            let survives = match memory {
                Memory::OnlySynced => false,
                Memory::Some(random) => now != synced && random.below(10) < survivors,
            };
            let shown = if survives { now } else { synced };
            lost += usize::from(now != shown);
            let room = in_memory(size.saturating_sub(offset)).min(shown.len());
            if now != shown {
                file.write_all_at(shown.get(..room).unwrap_or_default(), offset)?;
            }
            offset += u64::try_from(now.len()).unwrap_or(0);
        }
        Ok(lost)
    }
}

fn take_name_back(side: &Path, change: &NameChange) -> io::Result<()> {
    match change {
        NameChange::New(path) => remove(path),
        NameChange::Removed { file, path } => give_back(side, *file, path),
        NameChange::Renamed {
            file,
            replaced,
            from,
            to,
        } => {
            // A change that was noted but not made has nothing under the new name.
            if is_same(&notes::file_path(side, *file), to) {
                fs::rename(to, from)?;
            }
            replaced.map_or(Ok(()), |file| give_back(side, file, to))
        }
    }
}

fn remove(path: &Path) -> io::Result<()> {
    let result = if path.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    };
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

fn give_back(side: &Path, file: u64, path: &Path) -> io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    fs::hard_link(notes::file_path(side, file), path)
}

fn is_same(one: &Path, other: &Path) -> bool {
    let inodes: BTreeSet<_> = [one, other]
        .iter()
        .map(|path| {
            fs::metadata(path)
                .ok()
                .map(|metadata| (metadata.dev(), metadata.ino()))
        })
        .collect();
    inodes.len() == 1 && !inodes.contains(&None)
}
