//! `thrum backup create`.

use std::ffi::OsString;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use thrum_files::Folder;
use thrum_storage::{SnapshotError, snapshot};

use super::archive::Archive;
use super::check::check;
use super::files::read_all;
use super::summary::Summary;
use crate::command::Failure;
use crate::command::data_dir::DataDir;
use crate::command::shown::{now, time};

/// Arguments of `thrum backup create`.
#[derive(Debug, Args)]
pub(super) struct CreateArgs {
    /// The file to write; while it is written it is called FILE.part.
    file: PathBuf,
    #[command(flatten)]
    data_dir: DataDir,
    /// Write over a file that exists.
    #[arg(long)]
    force: bool,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

/// Writes a backup, reads it back and prints what is in it.
pub(super) fn run(args: &CreateArgs) -> anyhow::Result<()> {
    let shown = args.file.display();
    if !args.force && args.file.exists() {
        return Err(Failure::usage(format!(
            "cannot write {shown}: it exists; choose another name, or add --force"
        )));
    }
    let part = Part::new(&args.file)?;
    let summary = write(args, &part);
    if summary.is_err() {
        part.folder.remove(&part.name).ok();
    }
    let summary = summary?;
    let name = args.file.file_name().unwrap_or_default();
    let renamed = part.folder.rename(&part.name, name);
    renamed.with_context(|| format!("cannot write {shown}"))?;
    sync_folder_of(&args.file)?;
    Summary {
        name: shown.to_string(),
        ..summary
    }
    .print("was written", args.json)?;
    Ok(())
}

/// The file while it is written.
struct Part {
    folder: Folder,
    name: OsString,
    path: PathBuf,
}

impl Part {
    fn new(file: &Path) -> anyhow::Result<Self> {
        let mut name = file.file_name().unwrap_or_default().to_owned();
        name.push(".part");
        let path = file.with_file_name(&name);
        let folder = Folder::containing(file).map_err(|error| match error.kind() {
            ErrorKind::NotFound => Failure::usage(format!(
                "cannot write {}: there is no such directory; make it with mkdir -p",
                path.display()
            )),
            _ => anyhow::Error::new(error).context(format!("cannot write {}", path.display())),
        })?;
        Ok(Self { folder, name, path })
    }

    /// A new file that only its owner can read, because it contains payloads in clear text. An
    /// existing file may be a link placed by another user.
    fn create(&self) -> std::io::Result<File> {
        match self.folder.remove(&self.name) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        self.folder.create_new(&self.name)
    }
}

fn write(args: &CreateArgs, part: &Part) -> anyhow::Result<Summary> {
    let reader = args.data_dir.reader()?;
    let file = part.create();
    let part = &part.path;
    let file = file.with_context(|| format!("cannot write {}", part.display()))?;
    let taken_at = now();
    let mut archive = Archive::new(file, taken_at / 1000)?;
    match snapshot(&reader, &mut archive) {
        Ok(()) => {}
        Err(SnapshotError::Target(error)) => {
            return Err(error).with_context(|| format!("cannot write {}", part.display()));
        }
        Err(error) => return Err(args.data_dir.unread(error)),
    }
    read_all(args.data_dir.path(), |file| archive.file(&file))?;
    archive
        .finish(time(taken_at))
        .with_context(|| format!("cannot write {}", part.display()))?;
    // A backup that was never read is a hope.
    check(part, &mut |_| Ok(()))
}

/// Makes the name of a file safe.
pub(super) fn sync_folder_of(path: &Path) -> anyhow::Result<()> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.with_context(|| format!("cannot make {} safe on the disk", path.display()))
}
