//! `thrum backup restore`: unpacks beside what is there, syncs, and only then takes its place.
//!
//! ```text
//!   DIR/state.restore/…    the log
//!   DIR/restore/files/…    the other files
//!   DIR/restore/whole      all of it is there and safe: from here on a restore only goes forward
//! ```
//!
//! A restore that ends before `whole` has changed nothing. One that ends later is finished by the
//! next restore, or by the next start of a broker, which remove what is left in either case: the
//! messages of the old log must not stay.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;
use thrum_files::Folder;
use thrum_storage::disk::{Disk as _, File as _, RealDisk, RealReader, write_all};
use thrum_storage::{Contents, snapshot};

use super::check::{Part, check};
use super::files::{self, Copied, FOLDERS, NAMES};
use super::summary::{Counts, Summary};
use crate::command::Failure;
use crate::command::data_dir::{DataDir, STATE, refusal};

/// Folder in the data directory that becomes the log.
const BESIDE: &str = "state.restore";
/// Folder in the data directory with what else is to take its place.
const STAGE: &str = "restore";
/// Folder in it with the files beside the log.
const FILES: &str = "files";
/// File in it that says that it is complete.
const WHOLE: &str = "whole";
/// File in a log that has taken its place. The exchange of two directories is one step, and is not
/// to be done twice.
const IN_PLACE: &str = "restored";
/// The lock file of a log.
const LOCK: &str = "lock";

/// Arguments of `thrum backup restore`.
#[derive(Debug, Args)]
pub(super) struct RestoreArgs {
    /// The backup.
    file: PathBuf,
    #[command(flatten)]
    data_dir: DataDir,
    /// Take the place of what is there, which is lost, but for the audit log.
    #[arg(long)]
    force: bool,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

/// Restores all of it, or nothing.
pub(super) fn run(args: &RestoreArgs) -> anyhow::Result<()> {
    let (data_dir, state) = (args.data_dir.path(), args.data_dir.state());
    // An invalid file must not leave a directory behind.
    File::open(&args.file)
        .map_err(|error| Failure::usage(format!("cannot read {}: {error}", args.file.display())))?;
    refuse_if_in_use(data_dir)?;
    finish(data_dir)?;
    if !args.force && !is_empty(data_dir, &state)? {
        return Err(Failure::usage(format!(
            "{} is not empty; name another directory, or add --force, which removes its contents",
            data_dir.display()
        )));
    }
    // Held to the end, so that no broker starts in between.
    let before = open_if_there(&state)?;
    if let Some(before) = &before {
        remove_if_there(before.remove(IN_PLACE))?;
    }
    let log = RealDisk::open(&data_dir.join(BESIDE)).map_err(refusal)?;
    let folder = Folder::open(data_dir)?;
    let stage = folder.open_or_create_directory(STAGE)?;
    let staged = check_exchange(&stage, before.is_some()).and_then(|()| unpack(args, &stage, &log));
    let summary = match staged {
        Ok(summary) => summary,
        Err(error) => {
            remove_stage(data_dir).ok();
            return Err(error);
        }
    };
    take_place(&folder, &stage, before.is_some())?;
    drop(before);
    remove_stage(data_dir)?;
    summary.print(&format!("is now in {}", data_dir.display()), args.json)?;
    Ok(())
}

/// Finishes a restore that was ended when all was there, and removes what is left of one.
///
/// # Errors
/// A broker or a restore uses the directory; the disk fails.
pub(crate) fn finish(data_dir: &Path) -> anyhow::Result<()> {
    let is_left = [STAGE, BESIDE]
        .iter()
        .any(|name| data_dir.join(name).exists());
    if data_dir.as_os_str().is_empty() || !is_left {
        return Ok(());
    }
    let before = open_if_there(&data_dir.join(STATE))?;
    let _log = open_if_there(&data_dir.join(BESIDE))?;
    // Whoever had it until now may have done it.
    let is_whole = data_dir.join(STAGE).join(WHOLE).exists();
    if is_whole {
        let folder = Folder::open(data_dir)?;
        take_place(&folder, &folder.open_directory(STAGE)?, before.is_some())?;
    } else if let Some(log) = &before {
        remove_if_there(log.remove(IN_PLACE))?;
    }
    remove_stage(data_dir)?;
    let shown = data_dir.display();
    let note = if is_whole {
        format!("a restore of {shown} was cut off when all was unpacked; it is finished now")
    } else {
        format!("a restore of {shown} was cut off; what it left is removed")
    };
    writeln!(io::stderr(), "note: {note}")?;
    Ok(())
}

/// A broker that keeps no log has no lock, but answers.
#[cfg(feature = "management")]
fn refuse_if_in_use(data_dir: &Path) -> anyhow::Result<()> {
    use crate::command::running::Broker;
    if Broker::Local(data_dir.to_owned()).is_reachable() {
        return Err(Failure::usage(format!(
            "a broker runs on {}; stop it, or name another directory",
            data_dir.display()
        )));
    }
    Ok(())
}

#[cfg(not(feature = "management"))]
#[expect(
    clippy::unnecessary_wraps,
    reason = "the same as in a complete program"
)]
fn refuse_if_in_use(_data_dir: &Path) -> anyhow::Result<()> {
    Ok(())
}

/// Whether the directory has nothing that a backup would replace.
fn is_empty(data_dir: &Path, state: &Path) -> anyhow::Result<bool> {
    if NAMES.iter().any(|name| data_dir.join(name).exists()) {
        return Ok(false);
    }
    // An audit log stays in any case.
    for (folder, _) in FOLDERS.iter().filter(|(name, _)| *name != files::AUDIT) {
        if files::has_numbered(data_dir, folder)? {
            return Ok(false);
        }
    }
    let entries = match fs::read_dir(state) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(true),
        entries => entries.with_context(|| format!("cannot read {}", state.display()))?,
    };
    for entry in entries {
        if entry?.path().extension().is_some_and(|end| end == "log") {
            return Ok(false);
        }
    }
    Ok(true)
}

fn open_if_there(state: &Path) -> anyhow::Result<Option<RealDisk>> {
    let is_there = state.is_dir();
    let opened = is_there.then(|| RealDisk::open(state).map_err(refusal));
    opened.transpose()
}

fn remove_if_there(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Unpacks the backup while it is checked, and notes at the end that all of it is there.
fn unpack(args: &RestoreArgs, stage: &Folder, log: &RealDisk) -> anyhow::Result<Summary> {
    clear(stage, log)?;
    let files = stage.open_or_create_directory(FILES)?;
    // What happened to a directory is not forgotten.
    let keeps_audit = files::has_numbered(args.data_dir.path(), files::AUDIT)?;
    let mut left_out = false;
    let cannot = || format!("cannot write beside {}", args.data_dir.state().display());
    let summary = check(&args.file, &mut |part| match part {
        Part::Segment { name, bytes } => write(log, name, bytes).with_context(cannot),
        Part::File(file) if keeps_audit && file.name.starts_with(files::AUDIT) => {
            left_out = true;
            Ok(())
        }
        Part::File(file) => put(&files, file).with_context(cannot),
    })?;
    let mut contents = Contents::counted();
    snapshot(&RealReader::open(log.path())?, &mut contents)?;
    if Counts::of(&contents.finish().0) != summary.counts {
        bail!(
            "the data written to {} differs from the backup; check the disk",
            log.path().display()
        );
    }
    if !summary.has_files {
        fs::remove_dir_all(files.path())?;
    }
    log.create(IN_PLACE)?.sync()?;
    log.sync_dir()?;
    stage.sync()?;
    stage.create_new(OsStr::new(WHOLE))?.sync_all()?;
    stage.sync()?;
    if left_out {
        writeln!(
            io::stderr(),
            "the audit log of {} stays, that of the backup is not restored",
            args.data_dir.path().display()
        )?;
    }
    Ok(summary)
}

/// Removes what a restore left that was killed.
fn clear(stage: &Folder, log: &RealDisk) -> anyhow::Result<()> {
    for name in log.list()?.iter().filter(|name| *name != LOCK) {
        log.remove(name)?;
    }
    match fs::remove_dir_all(stage.path().join(FILES)) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn write(disk: &RealDisk, name: &str, bytes: &[u8]) -> io::Result<()> {
    let file = disk.create(name)?;
    write_all(&file, bytes, 0)?;
    file.sync()
}

/// Puts a file of a backup below a folder.
fn put(folder: &Folder, file: &Copied) -> io::Result<()> {
    let write = |to: &mut io::BufWriter<File>| to.write_all(&file.bytes);
    match file.name.split_once('/') {
        Some((below, name)) => {
            let below = folder.open_or_create_directory(below)?;
            below.replace(OsStr::new(name), write)
        }
        None => folder.replace(OsStr::new(&file.name), write),
    }
}

/// Puts what is staged in the place of what is there. May be repeated from its beginning until the
/// stage is no longer whole.
fn take_place(folder: &Folder, stage: &Folder, is_there: bool) -> anyhow::Result<()> {
    let placed = place_all(folder, stage, is_there);
    placed.with_context(|| {
        format!(
            "the restore into {} is not finished; repeat it when this is cured, or start the broker",
            folder.path().display()
        )
    })
}

fn place_all(folder: &Folder, stage: &Folder, is_there: bool) -> anyhow::Result<()> {
    match stage.open_directory(FILES) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        files => place_files(folder, &files?)?,
    }
    let (beside, state) = (OsStr::new(BESIDE), OsStr::new(STATE));
    // In one step, so that there is always a log.
    if !is_there {
        folder.rename(beside, state)?;
    } else if !folder.path().join(STATE).join(IN_PLACE).exists() {
        folder.exchange(beside, state)?;
    }
    folder.sync()?;
    stage.remove(OsStr::new(WHOLE))?;
    stage.sync()?;
    let log = folder.open_directory(STATE)?;
    remove_if_there(log.remove(OsStr::new(IN_PLACE)))?;
    Ok(())
}

/// Finds out whether the file system can swap two directories, before anything is changed.
fn check_exchange(stage: &Folder, is_there: bool) -> anyhow::Result<()> {
    if !is_there {
        return Ok(());
    }
    let names = ["one", "other"];
    for name in names {
        stage.open_or_create_directory(name)?;
    }
    let [one, other] = names.map(OsStr::new);
    let exchanged = stage.exchange(one, other);
    for name in names {
        fs::remove_dir(stage.path().join(name))?;
    }
    match exchanged {
        Err(error) if error.kind() == ErrorKind::InvalidInput => Err(Failure::usage(format!(
            "the file system of {} cannot swap two directories; restore into a new data directory",
            stage.path().display()
        ))),
        exchanged => Ok(exchanged?),
    }
}

/// Replaces the files of the data directory, and removes those that the backup does not have: the
/// broker is to be the one of the backup.
fn place_files(folder: &Folder, staged: &Folder) -> anyhow::Result<()> {
    for name in NAMES {
        place_file(folder, staged, name)?;
    }
    for (name, _) in FOLDERS {
        let from = match staged.open_directory(name) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            opened => Some(opened?),
        };
        let to = match (&from, folder.open_directory(name)) {
            (None, Err(error)) if error.kind() == ErrorKind::NotFound => continue,
            (Some(_), Err(error)) if error.kind() == ErrorKind::NotFound => {
                folder.open_or_create_directory(name)?
            }
            (_, opened) => opened?,
        };
        let mut names = from.as_ref().map_or(Ok(Vec::new()), files::numbered)?;
        if name != files::AUDIT {
            names.extend(files::numbered(&to)?);
        }
        for name in names {
            match &from {
                Some(from) => place_file(&to, from, &name)?,
                None => to.remove(OsStr::new(&name))?,
            }
        }
    }
    Ok(())
}

fn place_file(folder: &Folder, staged: &Folder, name: &str) -> anyhow::Result<()> {
    let placed = match staged.read(OsStr::new(name)) {
        Ok(mut from) => folder.replace(OsStr::new(name), |to| io::copy(&mut from, to).map(drop)),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            remove_if_there(folder.remove(OsStr::new(name)))
        }
        Err(error) => Err(error),
    };
    placed.with_context(|| format!("cannot restore {name}"))
}

fn remove_stage(data_dir: &Path) -> anyhow::Result<()> {
    for name in [STAGE, BESIDE] {
        let path = data_dir.join(name);
        remove_if_there(fs::remove_dir_all(&path))
            .with_context(|| format!("restored, but {} stays", path.display()))?;
    }
    Ok(())
}
