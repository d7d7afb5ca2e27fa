//! The file of the keys that the management interface sets: below every other source of settings,
//! above the defaults.

use std::ffi::OsStr;
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thrum_files::Folder;
use thrum_settings::problem::{Problem, Source};

use super::layer::Setting;

/// Its name in the data directory.
pub(crate) const FILE: &str = "managed.toml";
/// Folder beside it with the versions that were replaced.
pub(crate) const VERSIONS: &str = "managed.versions";

/// Most bytes of it: every key of a large configuration has some 20 KiB.
pub(crate) const BYTES_MAX: u64 = 256 * 1024;
/// The key that names the directory of the file.
const DATA_DIR: &str = "node.data_dir";

/// Reads the file of a data directory; none if there is none.
///
/// # Errors
/// The directory or the file cannot be read, or the file is no text.
pub(crate) fn read(data_dir: &Path) -> io::Result<Option<Arc<Source>>> {
    let Some(bytes) = bytes(data_dir)? else {
        return Ok(None);
    };
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let what = format!("byte {at} is no UTF-8: correct it, or remove the file to begin anew");
        io::Error::new(ErrorKind::InvalidData, what)
    })?;
    Ok(Some(source(data_dir, text)))
}

/// The same as it is on the disk, also if it is no text.
///
/// # Errors
/// The directory or the file cannot be read.
pub(crate) fn bytes(data_dir: &Path) -> io::Result<Option<Vec<u8>>> {
    let folder = match Folder::open(data_dir) {
        // Whoever needs the directory says what is wrong with it.
        Err(error) if is_no_directory(&error) => return Ok(None),
        opened => opened?,
    };
    let file = match folder.read(OsStr::new(FILE)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let mut bytes = Vec::new();
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > BYTES_MAX {
        let what = format!("it is larger than {BYTES_MAX} bytes, so that it was not written here");
        return Err(io::Error::new(ErrorKind::InvalidData, what));
    }
    Ok(Some(bytes))
}

fn is_no_directory(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// The file of a data directory with that text.
pub(super) fn source(data_dir: &Path, text: String) -> Arc<Source> {
    Arc::new(Source::new(path(data_dir), text))
}

/// Its path.
pub(crate) fn path(data_dir: &Path) -> PathBuf {
    data_dir.join(FILE)
}

/// What a file may not set: the directory that it is in.
pub(super) fn misplaced(settings: &[Setting]) -> Option<Problem> {
    let found = settings
        .iter()
        .find(|setting| setting.path.join(".") == DATA_DIR)?;
    Some(Problem {
        place: found.place.clone(),
        origin: found.origin.to_string(),
        message: format!(
            "{DATA_DIR} is the directory of this file: set it in the configuration file, by \
             THRUM_NODE__DATA_DIR or --data-dir"
        ),
    })
}
