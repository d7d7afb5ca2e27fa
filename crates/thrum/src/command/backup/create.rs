//! `thrum backup create`.

use std::ffi::OsString;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;
use thrum_files::Folder;
use thrum_storage::{SnapshotError, snapshot};

use super::archive::{Archive, Watch};
use super::check::check;
use super::files::visit_all;
use super::summary::Summary;
use crate::command::Failure;
use crate::command::data_dir::DataDir;
use crate::command::shown::{now, time};
use crate::command::stored::{Place, Stored};

/// Arguments of `thrum backup create`.
#[derive(Debug, Args)]
pub(super) struct CreateArgs {
    /// The file to write; while it is written it is called FILE.part.
    file: PathBuf,
    #[command(flatten)]
    stored: Stored,
    /// Write over a file that exists.
    #[arg(long)]
    force: bool,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

/// Writes a backup, reads it back and prints what is in it.
pub(super) fn run(args: &CreateArgs) -> anyhow::Result<()> {
    let target = Target::new(&args.file, args.force)?;
    let summary = match args.stored.place()? {
        Place::Directory(data_dir) => {
            target.fill(|file| write(&data_dir, file, Arc::new(|_| Ok(()))))?
        }
        #[cfg(feature = "management")]
        Place::Broker(broker) => super::remote::create(&broker, &target)?,
    };
    summary.print("was written", args.json)?;
    Ok(())
}

/// A file that is to be written as a whole.
pub(super) struct Target {
    /// As it was named.
    file: PathBuf,
    /// Its directory.
    folder: Folder,
    /// Its name while it is written.
    part: OsString,
}

impl Target {
    /// Refuses a file that exists, unless it is to be replaced.
    pub(super) fn new(file: &Path, force: bool) -> anyhow::Result<Self> {
        if !force && file.exists() {
            return Err(Failure::usage(format!(
                "cannot write {}: it exists; choose another name, or add --force",
                file.display()
            )));
        }
        let mut part = file.file_name().unwrap_or_default().to_owned();
        part.push(".part");
        let shown = file.with_file_name(&part);
        let folder = Folder::containing(file).map_err(|error| match error.kind() {
            ErrorKind::NotFound => Failure::usage(format!(
                "cannot write {}: there is no such directory; make it with mkdir -p",
                shown.display()
            )),
            _ => unwritten(error, &shown),
        })?;
        Ok(Self {
            file: file.to_owned(),
            folder,
            part,
        })
    }

    /// Has it written, checks it, and gives it its name.
    pub(super) fn fill(
        &self,
        write: impl FnOnce(File) -> anyhow::Result<()>,
    ) -> anyhow::Result<Summary> {
        let part = self.file.with_file_name(&self.part);
        let written = self
            .create()
            .map_err(|error| unwritten(error, &part))
            .and_then(write)
            // A backup that was never read is a hope.
            .and_then(|()| check(&part, &mut |_| Ok(())));
        if written.is_err() {
            self.folder.remove(&self.part).ok();
        }
        let summary = written?;
        let name = self.file.file_name().unwrap_or_default();
        let renamed = self.folder.rename(&self.part, name);
        let renamed = renamed.and_then(|()| self.folder.sync());
        renamed.map_err(|error| unwritten(error, &self.file))?;
        Ok(Summary {
            name: self.file.display().to_string(),
            ..summary
        })
    }

    /// A new file that only its owner can read, because it contains payloads in clear text. An
    /// existing file may be a link placed by another user.
    fn create(&self) -> std::io::Result<File> {
        match self.folder.remove(&self.part) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        self.folder.create_new(&self.part)
    }
}

fn unwritten(error: std::io::Error, file: &Path) -> anyhow::Error {
    anyhow::Error::new(error).context(format!("cannot write {}", file.display()))
}

const UNWRITTEN: &str = "cannot write the backup";

/// Writes a data directory into an empty file, as it is at one moment.
pub(super) fn write(data_dir: &DataDir, file: File, watch: Watch) -> anyhow::Result<()> {
    let reader = data_dir.reader()?;
    let taken_at = now();
    let mut archive = Archive::new(file, taken_at / 1000, watch)?;
    match snapshot(&reader, &mut archive) {
        Ok(()) => {}
        Err(SnapshotError::Target(error)) => return Err(error).context(UNWRITTEN),
        Err(error) => return Err(data_dir.unread(error)),
    }
    visit_all(data_dir.path(), |name, file| archive.file(name, file))?;
    archive.finish(time(taken_at)).context(UNWRITTEN)
}
