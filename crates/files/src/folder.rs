//! An opened directory: its files are opened relative to its descriptor.

use std::ffi::OsStr;
use std::fs::{File, Metadata, Permissions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};

use nix::NixPath;
use nix::dir::{Dir, Type};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, readlinkat, renameat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstatat, mkdirat};
use nix::sys::statfs::{PROC_SUPER_MAGIC, fstatfs};
use nix::sys::statvfs::fstatvfs;
use nix::unistd::{AccessFlags, Gid, Uid, UnlinkatFlags, faccessat, fchownat, geteuid, unlinkat};
use rustix::fs::{RenameFlags, renameat_with};

/// Mode of a new file: only the owner may read and write.
const FILE_MODE: u32 = 0o600;
/// Mode of a new directory: only the owner has access.
const FOLDER_MODE: u32 = 0o700;
/// The bits of its mode that a file keeps when it is replaced.
const PERMISSIONS: u32 = 0o777;
/// Mode bits with which users other than the owner may create files in a directory.
const WRITABLE_BY_OTHERS: u32 = 0o022;
/// Links are not followed, opening does not block, and other programs do not inherit the
/// descriptor.
const SAFE_OPEN_FLAGS: OFlag = OFlag::O_NOFOLLOW
    .union(OFlag::O_CLOEXEC)
    .union(OFlag::O_NONBLOCK);
/// The superuser.
const ROOT: u32 = 0;
/// Longest chain of links that is followed: more than any real path has.
const LINKS_MAX: usize = 8;
const FOLDER: OFlag = OFlag::O_DIRECTORY.union(OFlag::O_CLOEXEC);

/// A directory with files of the broker.
#[derive(Debug)]
pub struct Folder {
    file: File,
    path: PathBuf,
    owner: u32,
    group: u32,
    /// Only its owner can create files in it.
    is_writable_by_owner_only: bool,
}

/// The owner and the mode of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rights {
    owner: u32,
    group: u32,
    mode: u32,
}

impl Rights {
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        let found = file.metadata()?;
        Ok(Self {
            owner: found.uid(),
            group: found.gid(),
            mode: found.mode() & PERMISSIONS,
        })
    }

    /// Applies them to another file, which this process has created.
    pub(crate) fn apply_to(self, file: &File) -> io::Result<()> {
        let made = file.metadata()?;
        let owner = (made.uid() != self.owner).then_some(self.owner);
        let group = (made.gid() != self.group).then_some(self.group);
        if owner.is_some() || group.is_some() {
            fchown(file, owner, group)?;
        }
        set_mode(file, self.mode)
    }
}

impl Folder {
    /// Opens a directory by a configured path, whose links are followed.
    ///
    /// # Errors
    /// It does not exist, or it cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        Self::of(nix::fcntl::open(path, FOLDER, Mode::empty())?, path)
    }

    /// Opens the directory of a file.
    ///
    /// # Errors
    /// As [`Folder::open`].
    pub fn containing(file: &Path) -> io::Result<Self> {
        Self::open(file.parent().unwrap_or_else(|| Path::new("/")))
    }

    /// Resolves the links of a path as far as the links and their directories belong to the current
    /// user, so that no other user can have created them. The rest of the path is not resolved.
    pub fn resolve_own_links(file: &Path) -> PathBuf {
        let mut path = file.to_owned();
        for _ in 0..LINKS_MAX {
            let Some(target) = own_link(&path) else {
                break;
            };
            path = path.with_file_name("").join(target);
        }
        path
    }

    /// Opens a subdirectory, which must not be a link.
    ///
    /// # Errors
    /// It does not exist, it is a link, or it cannot be opened.
    pub fn open_directory(&self, name: &str) -> io::Result<Self> {
        let path = self.path.join(name);
        let opened = openat(&self.file, name, FOLDER | OFlag::O_NOFOLLOW, Mode::empty());
        // With both flags the system reports a link as "not a directory".
        let opened = opened.map_err(|error| match error {
            Errno::ELOOP => linked_directory_error(&path),
            Errno::ENOTDIR if self.is_link(name) => linked_directory_error(&path),
            other => other.into(),
        })?;
        Self::of(opened, &path)
    }

    /// Opens a subdirectory, and creates it if it does not exist; a new one belongs to the owner of
    /// this directory.
    ///
    /// # Errors
    /// As [`Folder::open_directory`]; it cannot be created.
    pub fn open_or_create_directory(&self, name: &str) -> io::Result<Self> {
        match mkdirat(&self.file, name, Mode::from_bits_truncate(FOLDER_MODE)) {
            Ok(()) => {}
            Err(Errno::EEXIST) => return self.open_directory(name),
            Err(error) => return Err(error.into()),
        }
        let made = self.open_directory(name)?;
        set_mode(&made.file, FOLDER_MODE)?;
        self.set_owner(&made.file)?;
        self.sync()?;
        Self::of(made.file.into(), &made.path)
    }

    fn of(opened: OwnedFd, path: &Path) -> io::Result<Self> {
        let file = File::from(opened);
        let found = file.metadata()?;
        Ok(Self {
            file,
            path: path.to_owned(),
            owner: found.uid(),
            group: found.gid(),
            is_writable_by_owner_only: found.mode() & WRITABLE_BY_OTHERS == 0,
        })
    }

    pub(crate) const fn file(&self) -> &File {
        &self.file
    }

    /// Whether the directory belongs to that user.
    pub(crate) const fn is_owner(&self, user: u32) -> bool {
        self.owner == user
    }

    /// As [`Folder::set_owner`], for a handle opened with `O_PATH`.
    pub(crate) fn set_owner_of_handle(&self, made: &File) -> io::Result<()> {
        if geteuid().is_root() && self.owner != ROOT {
            let (owner, group) = (Uid::from_raw(self.owner), Gid::from_raw(self.group));
            fchownat(made, "", Some(owner), Some(group), AtFlags::AT_EMPTY_PATH)?;
        }
        Ok(())
    }

    /// Returns the path of the directory, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until the lock of the directory is free, and takes it; it is released when this is
    /// dropped.
    ///
    /// # Errors
    /// The file system has no locks.
    pub fn lock(&self) -> io::Result<()> {
        self.file.lock()
    }

    /// Releases the lock.
    ///
    /// # Errors
    /// The file system has no locks.
    pub(crate) fn unlock(&self) -> io::Result<()> {
        self.file.unlock()
    }

    /// Takes the lock of the directory, which is released when this is dropped; false if another
    /// process has it.
    ///
    /// # Errors
    /// The file system has no locks.
    pub fn try_lock(&self) -> io::Result<bool> {
        match self.file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Checks whether the path still refers to the directory.
    ///
    /// # Errors
    /// It was moved, removed or replaced.
    pub fn check_path(&self) -> io::Result<()> {
        let current = std::fs::metadata(&self.path)?;
        let opened = self.file.metadata()?;
        if (current.dev(), current.ino()) == (opened.dev(), opened.ino()) {
            return Ok(());
        }
        let path = self.path.display();
        Err(io::Error::other(format!(
            "{path} is another directory than before"
        )))
    }

    /// Opens a file to read it.
    ///
    /// # Errors
    /// It does not exist, it is a link or not a regular file, or it cannot be read.
    pub fn read(&self, name: &OsStr) -> io::Result<File> {
        let (file, _) = self.open_file(name, OFlag::O_RDONLY)?;
        Ok(file)
    }

    /// Opens a file to read and change it.
    ///
    /// # Errors
    /// As [`Folder::read`]; it does not belong to the owner.
    pub fn change(&self, name: &OsStr) -> io::Result<File> {
        let (file, found) = self.open_file(name, OFlag::O_RDWR)?;
        self.check_owner(name, &found)?;
        Ok(file)
    }

    /// Opens a file to change it, and creates it if it does not exist.
    ///
    /// # Errors
    /// As [`Folder::change`]; it cannot be created.
    pub fn change_or_create(&self, name: &OsStr) -> io::Result<File> {
        match self.change(name) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            opened => return opened,
        }
        match self.create_new(name) {
            Ok(file) => {
                self.set_owner(&file)?;
                Ok(file)
            }
            // Another process created it first.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => self.change(name),
            Err(error) => Err(error),
        }
    }

    /// Creates an empty file, or truncates an existing one.
    ///
    /// # Errors
    /// As [`Folder::change_or_create`].
    pub fn create(&self, name: &OsStr) -> io::Result<File> {
        let file = self.change_or_create(name)?;
        file.set_len(0)?;
        Ok(file)
    }

    /// Creates a file that must not exist. It belongs to the current user.
    ///
    /// # Errors
    /// It exists, also as a link; it cannot be created.
    pub fn create_new(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_EXCL | SAFE_OPEN_FLAGS;
        let mode = Mode::from_bits_truncate(FILE_MODE);
        let file = File::from(openat(&self.file, name, flags, mode)?);
        // The umask may have removed bits.
        set_mode(&file, FILE_MODE)?;
        Ok(file)
    }

    /// Makes the owner of the directory the owner of a file that this process has created, if root
    /// runs it for another user.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn set_owner(&self, made: &File) -> io::Result<()> {
        if geteuid().is_root() && self.owner != ROOT {
            fchown(made, Some(self.owner), Some(self.group))?;
        }
        Ok(())
    }

    /// Renames a file in the directory and replaces the file of that name; a link is replaced and
    /// not followed.
    ///
    /// # Errors
    /// The file does not exist; the file system refuses.
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(renameat(&self.file, from, &self.file, to)?)
    }

    /// Exchanges the names of two files or directories atomically.
    ///
    /// # Errors
    /// One does not exist; the file system refuses, or does not support it.
    pub fn exchange(&self, one: &OsStr, other: &OsStr) -> io::Result<()> {
        let flags = RenameFlags::EXCHANGE;
        // nix supports it only with glibc.
        Ok(renameat_with(&self.file, one, &self.file, other, flags)?)
    }

    /// Removes a file, or a link itself.
    ///
    /// # Errors
    /// It does not exist; the file system refuses.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.file, name, UnlinkatFlags::NoRemoveDir)?)
    }

    /// Returns the names of the files in it, without links, directories and names that are not
    /// UTF-8.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn file_names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        let flags = OFlag::O_RDONLY | FOLDER;
        let mut opened = Dir::openat(&self.file, ".", flags, Mode::empty())?;
        for entry in opened.iter() {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else {
                continue;
            };
            let is_file = match entry.file_type() {
                // Some file systems do not report it.
                None => self.read(name.as_ref()).is_ok(),
                Some(kind) => kind == Type::File,
            };
            if is_file {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    /// Syncs the entries of the directory to the disk.
    ///
    /// # Errors
    /// The disk fails.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    /// Checks whether files can be created in it, as far as that is possible without creating one.
    ///
    /// # Errors
    /// They cannot be created.
    pub fn check_writable(&self) -> io::Result<()> {
        if fstatfs(&self.file)?.filesystem_type() == PROC_SUPER_MAGIC {
            return Err(io::Error::other("its file system accepts no files"));
        }
        let wanted = AccessFlags::W_OK | AccessFlags::X_OK;
        Ok(faccessat(&self.file, ".", wanted, AtFlags::empty())?)
    }

    /// Returns the free bytes of its file system.
    ///
    /// # Errors
    /// The file system does not report them.
    pub fn free_bytes(&self) -> io::Result<u64> {
        let space = fstatvfs(&self.file)?;
        Ok(space
            .blocks_available()
            .saturating_mul(space.fragment_size()))
    }

    fn open_file(&self, name: &OsStr, flags: OFlag) -> io::Result<(File, Metadata)> {
        let opened = openat(&self.file, name, flags | SAFE_OPEN_FLAGS, Mode::empty());
        let opened = opened.map_err(|error| match error {
            Errno::ELOOP => link_error(&self.path.join(name)),
            other => other.into(),
        })?;
        let file = File::from(opened);
        let found = file.metadata()?;
        if !found.is_file() {
            let what = format!("{} is not a file", self.path.join(name).display());
            return Err(io::Error::new(ErrorKind::InvalidInput, what));
        }
        Ok((file, found))
    }

    /// Refuses a file of another user: a hard link to it is as dangerous as a symbolic link. A user
    /// other than root gains no new rights by it, and a directory that only its owner may write to
    /// contains only files that the owner created or moved there.
    fn check_owner(&self, name: &OsStr, found: &Metadata) -> io::Result<()> {
        let owner = found.uid();
        let user = geteuid().as_raw();
        let is_own = self.owner == user && self.is_writable_by_owner_only;
        if owner == self.owner || is_own || (owner == user && user != ROOT) {
            return Ok(());
        }
        let shown = self.path.join(name);
        let shown = shown.display();
        let directory = self.owner;
        let what = if self.owner == user {
            let folder = self.path.display();
            format!(
                "{shown} belongs to user {owner}, and others may put files into its directory: if it belongs there, \
                 close the directory with chmod go-w {folder}"
            )
        } else {
            format!(
                "{shown} belongs to user {owner} and its directory to user {directory}: if it belongs there, \
                 give it to that user with chown --no-dereference {directory} {shown}"
            )
        };
        Err(io::Error::new(ErrorKind::PermissionDenied, what))
    }

    /// Whether only root could read a file that is created under that name now: this process is
    /// root, and the directory belongs to root.
    pub fn creates_for_root_only(&self, name: &OsStr) -> bool {
        let found = self.stat(name);
        geteuid().is_root() && self.owner == ROOT && matches!(found, Err(Errno::ENOENT))
    }

    fn is_link(&self, name: &str) -> bool {
        let is_link =
            |found: FileStat| found.st_mode & SFlag::S_IFMT.bits() == SFlag::S_IFLNK.bits();
        self.stat(name).is_ok_and(is_link)
    }

    /// Returns the attributes of a directory entry; no link is followed.
    fn stat<P: ?Sized + NixPath>(&self, name: &P) -> Result<FileStat, Errno> {
        fstatat(&self.file, name, AtFlags::AT_SYMLINK_NOFOLLOW)
    }
}

/// Returns the target of a link that no other user can have created.
fn own_link(path: &Path) -> Option<PathBuf> {
    let folder = Folder::containing(path).ok()?;
    let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let link = openat(&folder.file, path.file_name()?, flags, Mode::empty()).ok()?;
    let link = File::from(link);
    let found = link.metadata().ok()?;
    let user = geteuid().as_raw();
    let is_own = folder.owner == user && found.uid() == user;
    if !is_own || !found.is_symlink() {
        return None;
    }
    readlinkat(&link, "").ok().map(PathBuf::from)
}

fn set_mode(file: &File, mode: u32) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(mode))
}

fn link_error(path: &Path) -> io::Error {
    let what = format!(
        "{} is a symbolic link, which is not followed here; name its target",
        path.display()
    );
    io::Error::new(ErrorKind::InvalidInput, what)
}

fn linked_directory_error(path: &Path) -> io::Error {
    let what = format!(
        "{} is a symbolic link, which is not followed here; move the directory itself to its place, or mount it there",
        path.display()
    );
    io::Error::new(ErrorKind::InvalidInput, what)
}

/// Whether every user of the machine may read or write a file; false if its mode is unknown.
pub fn is_open_to_others(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.mode() & 0o006 != 0)
}
