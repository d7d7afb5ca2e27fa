//! A Unix socket in a directory, for the owner of the directory alone.

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

/// The owner connects, nobody else.
const SOCKET_MODE: u32 = 0o600;
/// Connections that are not accepted yet.
const BACKLOG: i32 = 64;

/// A socket that a process listens at. It is removed at the end.
#[derive(Debug)]
pub struct ListeningSocket {
    listener: UnixListener,
    folder: Folder,
    name: OsString,
    /// Tells it apart from another one of that name.
    inode: (u64, u64),
}

impl ListeningSocket {
    /// Another handle of it, to accept from.
    ///
    /// # Errors
    /// There are too many open files.
    pub fn listener(&self) -> io::Result<UnixListener> {
        self.listener.try_clone()
    }

    /// Removes the socket from the directory: nobody can connect to it any more.
    pub fn remove(&self) {
        let found = self.folder.handle(&self.name);
        let found = found.and_then(|handle| handle.metadata());
        if found.is_ok_and(|found| inode(&found) == self.inode) {
            // One that stays is replaced by the next listener.
            self.folder.remove(&self.name).unwrap_or_default();
        }
    }

    /// Its name, for messages.
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
    /// can connect to it. A socket of somebody who has ended without removing it is replaced.
    ///
    /// # Errors
    /// Somebody listens there, something else has that name, or the system refuses.
    pub fn listen(self, name: &OsStr) -> io::Result<ListeningSocket> {
        // Of two that find a socket left behind, the second one finds the new one of the first.
        self.lock()?;
        let listener = self.listen_alone(name);
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

    fn listen_alone(&self, name: &OsStr) -> io::Result<UnixListener> {
        self.remove_left_behind(name)?;
        let flags = SocketFlags::CLOEXEC;
        let socket =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        // Linux makes the file with the mode of the socket, less the umask: others never see it
        // with another one.
        let mode = rustix::fs::Mode::from_raw_mode(SOCKET_MODE);
        rustix::fs::fchmod(&socket, mode)?;
        rustix::net::bind(&socket, &SocketAddrUnix::new(self.reach(name))?)?;
        let made = self.handle(name)?;
        if made.metadata()?.mode() & 0o777 != SOCKET_MODE {
            // The umask has taken something from the owner.
            let path = format!("/proc/self/fd/{}", made.as_raw_fd());
            std::fs::set_permissions(path, Permissions::from_mode(SOCKET_MODE))?;
        }
        self.give_handle(&made)?;
        rustix::net::listen(&socket, BACKLOG)?;
        Ok(UnixListener::from(socket))
    }

    /// Connects to a socket in the directory.
    ///
    /// # Errors
    /// Nobody listens there, or the system refuses.
    pub fn connect(&self, name: &OsStr) -> io::Result<UnixStream> {
        UnixStream::connect(self.reach(name))
    }

    /// Removes a socket at which nobody listens.
    fn remove_left_behind(&self, name: &OsStr) -> io::Result<()> {
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
            // Somebody listens, and has too much to do.
            Ok(_) | Err(_) => {
                let what = format!("another process listens at {shown}; stop that one first");
                Err(io::Error::new(ErrorKind::AddrInUse, what))
            }
        }
    }

    /// Whatever has that name itself, to be looked at.
    fn handle(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        Ok(File::from(openat(self.file(), name, flags, Mode::empty())?))
    }

    /// A path that leads into the opened directory, wherever it is, and is short enough for the
    /// address of a socket.
    fn reach(&self, name: &OsStr) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.file().as_raw_fd())).join(name)
    }
}

fn inode(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}
