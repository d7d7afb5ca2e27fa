//! Unix sockets: one for all workers, each with its own descriptor of it.

use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

/// Listens at a path. Replaces a socket that a killed broker left there.
pub(super) fn bind(path: &Path, workers: usize) -> io::Result<Vec<OwnedFd>> {
    if is_left_behind(path) {
        std::fs::remove_file(path)?;
    }
    let socket = UnixListener::bind(path)?;
    socket.set_nonblocking(true)?;
    (1..workers)
        .map(|_| socket.try_clone())
        .chain([socket.try_clone()])
        .map(|copy| Ok(OwnedFd::from(copy?)))
        .collect()
}

/// Whether the path is a socket without a listener.
fn is_left_behind(path: &Path) -> bool {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    is_socket
        && UnixStream::connect(path)
            .is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_without_owner_is_replaced_and_one_in_use_is_not() {
        let folder = std::env::temp_dir().join(format!("thrum-unix-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("socket");
        let first = bind(&path, 3).unwrap();
        assert_eq!(first.len(), 3);
        assert_eq!(bind(&path, 1).unwrap_err().kind(), ErrorKind::AddrInUse);
        drop(first);
        assert_eq!(bind(&path, 1).unwrap().len(), 1);
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "no socket").unwrap();
        assert_eq!(bind(&path, 1).unwrap_err().kind(), ErrorKind::AddrInUse);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
