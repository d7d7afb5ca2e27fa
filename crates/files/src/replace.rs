//! Files that are replaced as a whole.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write as _};

use crate::Folder;
use crate::folder::Rights;

impl Folder {
    /// Replaces a file atomically, or creates it; it is on the disk when this returns. Until then
    /// the new contents are in a file with `.new` appended to its name. The new file has the owner,
    /// the group and the mode of the old one; a file that did not exist belongs to the owner of the
    /// directory. Only one process may call this at a time: the caller holds a lock.
    ///
    /// # Errors
    /// The name is that of a link or of a file of another user; the error of `write`; the disk
    /// fails. The old file is still there then.
    pub fn replace(
        &self,
        name: &OsStr,
        write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> io::Result<()> {
        let rights = match self.change(name) {
            Ok(old) => Some(Rights::of(&old)?),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let temporary = with_extension(name, "new");
        // A process that ended during a write has left this file; no other process writes now.
        match self.remove(&temporary) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let file = self.create_new(&temporary)?;
        let written = self.write_file(file, rights, write);
        let replaced = written.and_then(|()| self.rename(&temporary, name));
        if replaced.is_err() {
            // The first error is the one to report.
            drop(self.remove(&temporary));
        }
        replaced?;
        self.sync()
    }

    fn write_file(
        &self,
        file: File,
        rights: Option<Rights>,
        write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> io::Result<()> {
        if rights.is_none() {
            self.set_owner(&file)?;
        }
        let mut to = BufWriter::new(file);
        write(&mut to)?;
        to.flush()?;
        if let Some(rights) = rights {
            rights.apply_to(to.get_ref())?;
        }
        to.get_ref().sync_all()
    }
}

/// Appends an extension to a name.
fn with_extension(name: &OsStr, extension: &str) -> OsString {
    let mut name = name.to_owned();
    name.push(".");
    name.push(extension);
    name
}
