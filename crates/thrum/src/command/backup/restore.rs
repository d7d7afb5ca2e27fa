//! `thrum backup restore`: unpacks beside the state, syncs, and only then replaces the state.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;
use thrum_files::Folder;
use thrum_storage::disk::{Disk as _, File as _, RealDisk, RealReader, write_all};
use thrum_storage::{Contents, snapshot};

use super::check::{Part, check};
use super::create::sync_folder_of;
use super::files;
use super::summary::Counts;
use crate::command::Failure;
use crate::command::data_dir::{DataDir, refusal};

/// Folder in the data directory that becomes the state when all of it is safe.
const BESIDE: &str = "state.restore";
/// Folder of the log in the data directory.
const STATE: &str = "state";
/// The lock file of the directory.
const LOCK: &str = "lock";

/// Arguments of `thrum backup restore`.
#[derive(Debug, Args)]
pub(super) struct RestoreArgs {
    /// The backup.
    file: PathBuf,
    #[command(flatten)]
    data_dir: DataDir,
    /// Take the place of the state that is there; it is lost.
    #[arg(long)]
    force: bool,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

/// Restores. Killed at any moment it leaves the previous state, or the restored one.
pub(super) fn run(args: &RestoreArgs) -> anyhow::Result<()> {
    let (folder, state) = (args.data_dir.path(), args.data_dir.state());
    if !args.force && has_state(&state)? {
        return Err(Failure::usage(format!(
            "{} is not empty; name another directory, or add --force, which removes its contents",
            folder.display()
        )));
    }
    // An invalid file must not leave a directory behind.
    File::open(&args.file)
        .map_err(|error| Failure::usage(format!("cannot read {}: {error}", args.file.display())))?;
    let is_there = state.is_dir();
    // Held to the end, so that no broker starts in between.
    let before = is_there.then(|| RealDisk::open(&state).map_err(refusal));
    let before = before.transpose()?;
    let beside = folder.join(BESIDE);
    let restored = RealDisk::open(&beside).map_err(refusal)?;
    clear(&restored)?;
    let mut files = Vec::new();
    let summary = check(&args.file, &mut |part| match part {
        Part::Segment { name, bytes } => write(&restored, name, bytes)
            .with_context(|| format!("cannot write {}", beside.display())),
        Part::File(file) => {
            files.push(file.clone());
            Ok(())
        }
    });
    let summary = match summary {
        Ok(summary) => summary,
        Err(error) => {
            fs::remove_dir_all(&beside).ok();
            return Err(error);
        }
    };
    restored.sync_dir()?;
    let mut contents = Contents::counted();
    snapshot(&RealReader::open(&beside)?, &mut contents)?;
    if Counts::of(&contents.finish().0) != summary.counts {
        bail!(
            "the data written to {} differs from the backup; check the disk",
            beside.display()
        );
    }
    take_place(folder, &beside, is_there)?;
    sync_folder_of(&state)?;
    files::restore(folder, &files)?;
    drop(before);
    if is_there {
        fs::remove_dir_all(&beside).with_context(|| {
            format!("restored, but the old state stays in {}", beside.display())
        })?;
    }
    summary.print(&format!("is now in {}", folder.display()), args.json)?;
    Ok(())
}

/// Whether the directory contains segments.
fn has_state(state: &Path) -> anyhow::Result<bool> {
    let entries = match fs::read_dir(state) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        entries => entries.with_context(|| format!("cannot read {}", state.display()))?,
    };
    for entry in entries {
        if entry?.path().extension().is_some_and(|end| end == "log") {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Removes what a restore left that was killed.
fn clear(disk: &RealDisk) -> anyhow::Result<()> {
    for name in disk.list()?.iter().filter(|name| *name != LOCK) {
        disk.remove(name)?;
    }
    Ok(())
}

fn write(disk: &RealDisk, name: &str, bytes: &[u8]) -> io::Result<()> {
    let file = disk.create(name)?;
    write_all(&file, bytes, 0)?;
    file.sync()
}

/// In one step, so that there is always a state.
fn take_place(folder: &Path, beside: &Path, is_there: bool) -> anyhow::Result<()> {
    let state = folder.join(STATE);
    let renamed = Folder::open(folder).and_then(|folder| {
        if is_there {
            folder.exchange(BESIDE.as_ref(), STATE.as_ref())
        } else {
            folder.rename(BESIDE.as_ref(), STATE.as_ref())
        }
    });
    let Err(error) = renamed else {
        return Ok(());
    };
    fs::remove_dir_all(beside).ok();
    if is_there && error.kind() == io::ErrorKind::InvalidInput {
        return Err(Failure::usage(format!(
            "the file system of {} cannot swap two directories; restore into a new data directory",
            state.display()
        )));
    }
    Err(error).with_context(|| format!("cannot rename {} to {}", beside.display(), state.display()))
}
