//! Files beside the log that a broker cannot do without: administrators, users, bans, and the audit
//! log. Each is replaced or continued as a whole, so a copy of it is one state.

use std::ffi::OsStr;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::Path;

use anyhow::{Context as _, bail};
use thrum_files::Folder;

/// Files in the data directory.
const NAMES: [&str; 3] = ["administrators.jsonl", "users.jsonl", "bans.jsonl"];
/// Folder of the audit log.
const AUDIT: &str = "audit";
/// Bytes of a file that are read, as of a user store with a million users.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// A file with its name, which for the audit log has its folder in front.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Copied {
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
}

/// Reads those that are there, one after the other.
pub(super) fn read_all(
    data_dir: &Path,
    mut visit: impl FnMut(Copied) -> io::Result<()>,
) -> anyhow::Result<()> {
    for name in NAMES {
        let path = Folder::resolve_own_links(&data_dir.join(name));
        let folder = Folder::containing(&path);
        let file = path.file_name().unwrap_or_default();
        read(folder, file, name, &mut visit)?;
    }
    let audit = match Folder::open(data_dir).and_then(|folder| folder.open_directory(AUDIT)) {
        Ok(audit) => audit,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error).context("cannot read the audit log"),
    };
    let mut names = audit.file_names().context("cannot read the audit log")?;
    names.retain(|name| is_audit_file(name));
    names.sort();
    for name in names {
        let folder = Folder::open(audit.path());
        read(
            folder,
            OsStr::new(&name),
            &format!("{AUDIT}/{name}"),
            &mut visit,
        )?;
    }
    Ok(())
}

fn read(
    folder: io::Result<Folder>,
    file: &OsStr,
    name: &str,
    visit: &mut impl FnMut(Copied) -> io::Result<()>,
) -> anyhow::Result<()> {
    let opened = folder.and_then(|folder| folder.read(file));
    let opened = match opened {
        Ok(opened) => opened,
        // There is none, or the oldest file of the audit log has made room.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error).with_context(|| format!("cannot read {name}")),
    };
    let mut bytes = Vec::new();
    let len = opened.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes);
    if len.with_context(|| format!("cannot read {name}"))? as u64 > FILE_BYTES_MAX {
        bail!("{name} has more than {FILE_BYTES_MAX} bytes; copy it by other means");
    }
    let name = name.to_owned();
    visit(Copied { name, bytes }).context("cannot write the backup")
}

/// Whether a backup may have a file of that name: nothing else is ever written.
pub(super) fn is_known(name: &str) -> bool {
    let of_audit = name.split_once('/');
    NAMES.contains(&name)
        || of_audit.is_some_and(|(folder, file)| folder == AUDIT && is_audit_file(file))
}

fn is_audit_file(name: &str) -> bool {
    let digits = name.strip_suffix(".jsonl");
    digits.is_some_and(|digits| {
        digits.len() == 20 && digits.bytes().all(|digit| digit.is_ascii_digit())
    })
}

/// Puts them into a data directory, in place of those that are there. An audit log that is there
/// stays: what happened to this directory is not forgotten.
pub(super) fn restore(data_dir: &Path, files: &[Copied]) -> anyhow::Result<()> {
    let folder = || {
        let folder = Folder::open(data_dir);
        folder.with_context(|| format!("cannot open {}", data_dir.display()))
    };
    let (of_audit, others): (Vec<&Copied>, Vec<&Copied>) =
        files.iter().partition(|file| file.name.contains('/'));
    for file in others {
        put(&folder()?, &file.name, file)?;
    }
    if of_audit.is_empty() {
        return Ok(());
    }
    let audit = folder()?.open_or_create_directory(AUDIT);
    let audit = audit.context("cannot make the folder of the audit log")?;
    let names = audit.file_names().context("cannot read the audit log")?;
    if names.iter().any(|name| is_audit_file(name)) {
        writeln!(
            io::stderr(),
            "the audit log of {} stays, that of the backup is not restored",
            data_dir.display()
        )?;
        return Ok(());
    }
    for file in of_audit {
        let name = file.name.rsplit('/').next().unwrap_or_default();
        put(&audit, name, file)?;
    }
    Ok(())
}

fn put(folder: &Folder, name: &str, file: &Copied) -> anyhow::Result<()> {
    let replaced = folder.replace(OsStr::new(name), |to| to.write_all(&file.bytes));
    replaced.with_context(|| format!("the state is restored, but not {}", file.name))
}
