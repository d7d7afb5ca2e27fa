//! Files that a configuration names.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use nix::fcntl::OFlag;

/// Opens a file that a configuration names, to read it. A pipe or a device, whose read may never
/// end, is refused.
///
/// # Errors
/// The file cannot be opened, or it is no regular file.
pub fn open_named(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    // The opening of a pipe waits for its writer otherwise.
    let file = options
        .read(true)
        .custom_flags(OFlag::O_NONBLOCK.bits())
        .open(path)?;
    if !file.metadata()?.is_file() {
        let what = "it is no regular file, and to read it may never end";
        return Err(io::Error::new(ErrorKind::InvalidInput, what));
    }
    Ok(file)
}

/// Reads a file that a configuration names.
///
/// # Errors
/// As [`open_named`]; the file cannot be read, or has more bytes.
pub fn read_named(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = open_named(path)?;
    file.take(bytes_max.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        let what = format!("it has more than {bytes_max} bytes");
        return Err(io::Error::new(ErrorKind::InvalidData, what));
    }
    Ok(bytes)
}

/// Reads a text that a configuration names.
///
/// # Errors
/// As [`read_named`]; it is no UTF-8.
pub fn read_named_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    String::from_utf8(read_named(path, bytes_max)?).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        io::Error::new(ErrorKind::InvalidData, format!("byte {at} is no UTF-8"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::stat::Mode;

    #[test]
    fn only_regular_files_up_to_a_length_are_read() {
        let folder = std::env::temp_dir().join(format!("thrum-named-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let [file, link, pipe] = ["file", "link", "pipe"].map(|name| folder.join(name));
        std::fs::write(&file, "abc").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        nix::unistd::mkfifo(&pipe, Mode::S_IRWXU).unwrap();
        assert_eq!(read_named(&link, 3).unwrap(), b"abc");
        let kinds = [(&file, 2), (&pipe, 3), (&folder, 3)]
            .map(|(path, most)| read_named(path, most).unwrap_err().kind());
        let refused = ErrorKind::InvalidInput;
        assert_eq!(kinds, [ErrorKind::InvalidData, refused, refused]);
        assert_eq!(read_named_text(&file, 3).unwrap(), "abc");
        std::fs::write(&file, b"ab\xff").unwrap();
        let refused = read_named_text(&file, 3).unwrap_err();
        assert_eq!(refused.to_string(), "byte 2 is no UTF-8");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
