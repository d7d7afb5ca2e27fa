//! Unix sockets: one for all workers, each with its own descriptor of it.

use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf, absolute};

use crate::config::Bind;

/// Refuses sockets in the data directory: one could take the name of a file that the broker has not
/// written yet.
pub(super) fn check(addresses: &[Bind], data_dir: &Path) -> Result<(), String> {
    if data_dir.as_os_str().is_empty() {
        return Ok(());
    }
    let data_dir = real(data_dir);
    let inside = addresses.iter().find(|address| match address {
        Bind::Unix(path) => real(path).starts_with(&data_dir),
        Bind::Address(_) => false,
    });
    inside.map_or(Ok(()), |address| {
        Err(format!(
            "{address} is in the data directory (node.data_dir), where only files of the broker may be; choose a \
             path elsewhere, such as unix:/run/thrum/mqtt.sock"
        ))
    })
}

/// A path without links; of what is not there yet, that of the directory that is to hold it.
fn real(path: &Path) -> PathBuf {
    let path = absolute(path).unwrap_or_else(|_| path.to_owned());
    let of_parent = || {
        let parent = real(path.parent()?);
        Some(match path.file_name() {
            Some(name) => parent.join(name),
            // The path ends with `..`.
            None => parent
                .parent()
                .map_or_else(|| parent.clone(), Path::to_owned),
        })
    };
    let found = path.canonicalize().ok();
    found.or_else(of_parent).unwrap_or(path)
}

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
    fn a_socket_in_the_data_directory_is_refused() {
        let folder = std::env::temp_dir().join(format!("thrum-inside-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("data")).unwrap();
        std::os::unix::fs::symlink(folder.join("data"), folder.join("link")).unwrap();
        let data_dir = folder.join("data");
        let is_taken =
            |name: &str, data_dir: &Path| check(&[Bind::Unix(folder.join(name))], data_dir).is_ok();
        for (name, expected) in [
            ("data/users.jsonl", false),
            ("data/new/x.sock", false),
            ("link/users.jsonl", false),
            ("other/../data/users.jsonl", false),
            ("data.sock", true),
            ("other/x.sock", true),
        ] {
            assert_eq!(is_taken(name, &data_dir), expected, "{name}");
        }
        assert!(!is_taken("data/a", &folder.join("link")));
        assert!(!is_taken("unmade/a", &folder.join("unmade")));
        assert!(is_taken("data/users.jsonl", Path::new("")));
        std::fs::remove_dir_all(&folder).unwrap();
    }

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
