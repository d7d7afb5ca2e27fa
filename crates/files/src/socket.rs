//! A Unix socket in a directory, which only the owner of the directory may use.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;
use nix::unistd::geteuid;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::Folder;

/// Mode of the socket: only the owner may connect.
const SOCKET_MODE: u32 = 0o600;
/// Connections that are not accepted yet.
const BACKLOG: i32 = 64;

/// A listening socket, which is removed when this is dropped.
#[derive(Debug)]
pub struct ListeningSocket {
    listener: UnixListener,
    folder: Folder,
    name: OsString,
    /// Device and inode, which distinguish it from another socket of that name.
    inode: (u64, u64),
}

impl ListeningSocket {
    /// Returns another handle to accept connections from.
    ///
    /// # Errors
    /// There are too many open files.
    pub fn listener(&self) -> io::Result<UnixListener> {
        self.listener.try_clone()
    }

    /// Removes the socket from the directory, so that no process can connect to it.
    pub fn remove(&self) {
        let found = self.folder.handle(&self.name);
        let found = found.and_then(|handle| handle.metadata());
        if found.is_ok_and(|found| inode(&found) == self.inode) {
            // One that stays is replaced by the next listener.
            self.folder.remove(&self.name).unwrap_or_default();
        }
    }

    /// Returns its path, for messages.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join(&self.name)
    }
}

impl Drop for ListeningSocket {
    fn drop(&mut self) {
        self.remove();
    }
}

impl Folder {
    /// Listens at a socket in the directory: whatever the umask, only the owner of the directory
    /// can connect to it. A stale socket, which no process listens at, is replaced.
    ///
    /// # Errors
    /// Another process listens at it, a file of another type has that name, or the system refuses.
    pub fn listen(self, name: &OsStr) -> io::Result<ListeningSocket> {
        // The lock prevents that two processes replace a stale socket: the second one would remove
        // the new socket of the first one.
        self.lock()?;
        let listener = self.bind_and_listen(name);
        self.unlock()?;
        let listener = listener?;
        let inode = inode(&self.handle(name)?.metadata()?);
        Ok(ListeningSocket {
            listener,
            folder: self,
            name: name.to_owned(),
            inode,
        })
    }

    fn bind_and_listen(&self, name: &OsStr) -> io::Result<UnixListener> {
        self.remove_stale_socket(name)?;
        let flags = SocketFlags::CLOEXEC;
        let socket =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        // Linux makes the file with the mode of the socket, less the umask: others never see it
        // with another one.
        let mode = rustix::fs::Mode::from_raw_mode(SOCKET_MODE);
        rustix::fs::fchmod(&socket, mode)?;
        rustix::net::bind(&socket, &SocketAddrUnix::new(self.socket_path(name))?)?;
        let made = self.handle(name)?;
        if made.metadata()?.mode() & 0o777 != SOCKET_MODE {
            // The umask has removed bits of the owner.
            let path = format!("/proc/self/fd/{}", made.as_raw_fd());
            std::fs::set_permissions(path, Permissions::from_mode(SOCKET_MODE))?;
        }
        self.set_owner_of_handle(&made)?;
        rustix::net::listen(&socket, BACKLOG)?;
        Ok(UnixListener::from(socket))
    }

    /// Connects to a socket in the directory.
    ///
    /// # Errors
    /// No process listens at it, or the system refuses.
    pub fn connect(&self, name: &OsStr) -> io::Result<UnixStream> {
        UnixStream::connect(self.socket_path(name))
    }

    /// Removes a socket at which no process listens.
    fn remove_stale_socket(&self, name: &OsStr) -> io::Result<()> {
        let found = match self.handle(name).and_then(|handle| handle.metadata()) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            found => found?,
        };
        let shown = self.path().join(name);
        let shown = shown.display();
        if !found.file_type().is_socket() {
            let what = format!("{shown} is no socket; give it another name");
            return Err(io::Error::new(ErrorKind::AlreadyExists, what));
        }
        if !self.is_owner(found.uid()) && found.uid() != geteuid().as_raw() {
            let what = format!("{shown} belongs to user {}; remove it", found.uid());
            return Err(io::Error::new(ErrorKind::PermissionDenied, what));
        }
        match self.connect(name) {
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => self.remove(name),
            // A process listens, even if its backlog is full.
            Ok(_) | Err(_) => {
                let what = format!("another process listens at {shown}; stop that one first");
                Err(io::Error::new(ErrorKind::AddrInUse, what))
            }
        }
    }

    /// Opens a directory entry of any type for its attributes only; no link is followed.
    fn handle(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        Ok(File::from(openat(self.file(), name, flags, Mode::empty())?))
    }

    /// Returns a path of an entry of the opened directory that remains valid if the directory is
    /// moved, and that is short enough for the address of a socket.
    fn socket_path(&self, name: &OsStr) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.file().as_raw_fd())).join(name)
    }
}

fn inode(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}
