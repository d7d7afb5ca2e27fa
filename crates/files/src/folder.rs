//! A directory, opened once: what is in it is reached relative to it.

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

/// The owner reads and writes, nobody else does anything.
const FILE_MODE: u32 = 0o600;
/// The same of a directory.
const FOLDER_MODE: u32 = 0o700;
/// What a file that is replaced keeps of its mode.
const PERMISSIONS: u32 = 0o777;
/// Others than the owner may put files into a directory.
const MODE_OF_OTHERS_WRITING: u32 = 0o022;
/// Nothing is followed, waited for, or inherited by other programs.
const CAREFULLY: OFlag = OFlag::O_NOFOLLOW
    .union(OFlag::O_CLOEXEC)
    .union(OFlag::O_NONBLOCK);
/// The user that may do everything.
const ROOT: u32 = 0;
/// Links that lead to one another: more than anybody needs.
const LINKS_MAX: usize = 8;
const FOLDER: OFlag = OFlag::O_DIRECTORY.union(OFlag::O_CLOEXEC);

/// A directory that files are kept in.
#[derive(Debug)]
pub struct Folder {
    file: File,
    path: PathBuf,
    owner: u32,
    group: u32,
    /// Nobody but its owner can have put anything into it.
    is_closed: bool,
}

/// Whose a file is, and who may do what with it.
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

    /// Gives them to another file, which this process has made.
    pub(crate) fn give_to(self, file: &File) -> io::Result<()> {
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
    /// Opens a directory by a name that the administrator has given: links in it are followed.
    ///
    /// # Errors
    /// There is none, or it cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        Self::of(nix::fcntl::open(path, FOLDER, Mode::empty())?, path)
    }

    /// Opens the directory that a file is in.
    ///
    /// # Errors
    /// As [`Folder::open`].
    pub fn around(file: &Path) -> io::Result<Self> {
        Self::open(file.parent().unwrap_or_else(|| Path::new("/")))
    }

    /// What a file's name leads to, as far as the links belong to whoever runs this and so do their
    /// directories: nobody else can have laid them. The rest of the way is not gone.
    pub fn through_own_links(file: &Path) -> PathBuf {
        let mut path = file.to_owned();
        for _ in 0..LINKS_MAX {
            let Some(target) = own_link(&path) else {
                break;
            };
            path = path.with_file_name("").join(target);
        }
        path
    }

    /// Opens a directory in this one; it must not be a link.
    ///
    /// # Errors
    /// There is none, it is a link, or it cannot be opened.
    pub fn inner(&self, name: &str) -> io::Result<Self> {
        let path = self.path.join(name);
        let opened = openat(&self.file, name, FOLDER | OFlag::O_NOFOLLOW, Mode::empty());
        // With both flags a link is said to be no directory.
        let opened = opened.map_err(|error| match error {
            Errno::ELOOP => is_linked_directory(&path),
            Errno::ENOTDIR if self.is_link(name) => is_linked_directory(&path),
            other => other.into(),
        })?;
        Self::of(opened, &path)
    }

    /// Opens a directory in this one, and makes it if there is none; it then belongs to the owner
    /// of this one.
    ///
    /// # Errors
    /// As [`Folder::inner`]; it cannot be made.
    pub fn make(&self, name: &str) -> io::Result<Self> {
        match mkdirat(&self.file, name, Mode::from_bits_truncate(FOLDER_MODE)) {
            Ok(()) => {}
            Err(Errno::EEXIST) => return self.inner(name),
            Err(error) => return Err(error.into()),
        }
        let made = self.inner(name)?;
        set_mode(&made.file, FOLDER_MODE)?;
        self.give(&made.file)?;
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
            is_closed: found.mode() & MODE_OF_OTHERS_WRITING == 0,
        })
    }

    pub(crate) const fn file(&self) -> &File {
        &self.file
    }

    /// It belongs to that user.
    pub(crate) const fn is_owner(&self, user: u32) -> bool {
        self.owner == user
    }

    /// The same as [`Folder::give`] for what is open to be looked at alone.
    pub(crate) fn give_handle(&self, made: &File) -> io::Result<()> {
        if geteuid().is_root() && self.owner != ROOT {
            let (owner, group) = (Uid::from_raw(self.owner), Gid::from_raw(self.group));
            fchownat(made, "", Some(owner), Some(group), AtFlags::AT_EMPTY_PATH)?;
        }
        Ok(())
    }

    /// Its name, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until nobody else has the lock of the directory; it ends with this.
    ///
    /// # Errors
    /// The file system has no locks.
    pub fn lock(&self) -> io::Result<()> {
        self.file.lock()
    }

    /// Gives the lock back.
    ///
    /// # Errors
    /// The file system has no locks.
    pub(crate) fn unlock(&self) -> io::Result<()> {
        self.file.unlock()
    }

    /// Takes the lock of the directory, which ends with this; false if somebody else has it.
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

    /// Looks whether the path still leads to the directory.
    ///
    /// # Errors
    /// It was moved, removed or replaced.
    pub fn check_place(&self) -> io::Result<()> {
        let there = std::fs::metadata(&self.path)?;
        let ours = self.file.metadata()?;
        if (there.dev(), there.ino()) == (ours.dev(), ours.ino()) {
            return Ok(());
        }
        let path = self.path.display();
        Err(io::Error::other(format!(
            "{path} is another one than before"
        )))
    }

    /// Opens a file to read it.
    ///
    /// # Errors
    /// There is none, it is a link or no file, or it cannot be read.
    pub fn read(&self, name: &OsStr) -> io::Result<File> {
        let (file, _) = self.open_file(name, OFlag::O_RDONLY)?;
        Ok(file)
    }

    /// Opens a file to read and change it.
    ///
    /// # Errors
    /// As [`Folder::read`]; it is not the owner's.
    pub fn change(&self, name: &OsStr) -> io::Result<File> {
        let (file, found) = self.open_file(name, OFlag::O_RDWR)?;
        self.check_owner(name, &found)?;
        Ok(file)
    }

    /// Opens a file to change it, and makes it if there is none.
    ///
    /// # Errors
    /// As [`Folder::change`]; it cannot be made.
    pub fn change_or_create(&self, name: &OsStr) -> io::Result<File> {
        match self.change(name) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            opened => return opened,
        }
        match self.create_new(name) {
            Ok(file) => {
                self.give(&file)?;
                Ok(file)
            }
            // Somebody else was quicker.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => self.change(name),
            Err(error) => Err(error),
        }
    }

    /// Makes an empty file of the owner's, also of one that is there.
    ///
    /// # Errors
    /// As [`Folder::change_or_create`].
    pub fn create(&self, name: &OsStr) -> io::Result<File> {
        let file = self.change_or_create(name)?;
        file.set_len(0)?;
        Ok(file)
    }

    /// Makes a file that was not there. It belongs to whoever runs this.
    ///
    /// # Errors
    /// It is there, be it as a link; it cannot be made.
    pub fn create_new(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_EXCL | CAREFULLY;
        let mode = Mode::from_bits_truncate(FILE_MODE);
        let file = File::from(openat(&self.file, name, flags, mode)?);
        // Whatever the umask takes away.
        set_mode(&file, FILE_MODE)?;
        Ok(file)
    }

    /// Gives something that this process has made to the owner of the directory: root works for
    /// somebody else.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn give(&self, made: &File) -> io::Result<()> {
        if geteuid().is_root() && self.owner != ROOT {
            fchown(made, Some(self.owner), Some(self.group))?;
        }
        Ok(())
    }

    /// Gives a file another name in the directory, in place of what has that name; a link is
    /// replaced and not followed.
    ///
    /// # Errors
    /// There is no such file; the file system refuses.
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(renameat(&self.file, from, &self.file, to)?)
    }

    /// Gives two files or directories each the other's name in one step.
    ///
    /// # Errors
    /// One is not there; the file system refuses, or cannot do that.
    pub fn exchange(&self, one: &OsStr, other: &OsStr) -> io::Result<()> {
        let flags = RenameFlags::EXCHANGE;
        // nix has it with glibc alone.
        Ok(renameat_with(&self.file, one, &self.file, other, flags)?)
    }

    /// Removes a file, or a link itself.
    ///
    /// # Errors
    /// There is none; the file system refuses.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.file, name, UnlinkatFlags::NoRemoveDir)?)
    }

    /// Names of the files in it; links and directories are left out, and so is what is no text.
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
                // Some file systems do not tell.
                None => self.read(name.as_ref()).is_ok(),
                Some(kind) => kind == Type::File,
            };
            if is_file {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    /// Makes the names in it safe.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    /// Whether files can be made in it, as far as that can be told without making one.
    ///
    /// # Errors
    /// They cannot.
    pub fn check_writable(&self) -> io::Result<()> {
        if fstatfs(&self.file)?.filesystem_type() == PROC_SUPER_MAGIC {
            return Err(io::Error::other("its file system takes no files"));
        }
        let wanted = AccessFlags::W_OK | AccessFlags::X_OK;
        Ok(faccessat(&self.file, ".", wanted, AtFlags::empty())?)
    }

    /// Bytes that are free on its file system.
    ///
    /// # Errors
    /// The file system does not tell.
    pub fn free_bytes(&self) -> io::Result<u64> {
        let space = fstatvfs(&self.file)?;
        Ok(space
            .blocks_available()
            .saturating_mul(space.fragment_size()))
    }

    fn open_file(&self, name: &OsStr, flags: OFlag) -> io::Result<(File, Metadata)> {
        let opened = openat(&self.file, name, flags | CAREFULLY, Mode::empty());
        let opened = opened.map_err(|error| match error {
            Errno::ELOOP => is_link(&self.path.join(name)),
            other => other.into(),
        })?;
        let file = File::from(opened);
        let found = file.metadata()?;
        if !found.is_file() {
            let what = format!("{} is no file", self.path.join(name).display());
            return Err(io::Error::new(ErrorKind::InvalidInput, what));
        }
        Ok((file, found))
    }

    /// A name for a file of somebody else (a hard link) is as good as a link to it. Who is not root
    /// can do no more to it than before, and what stands in a directory that nobody else may write
    /// to has its owner put there.
    fn check_owner(&self, name: &OsStr, found: &Metadata) -> io::Result<()> {
        let owner = found.uid();
        let user = geteuid().as_raw();
        let is_ours = self.owner == user && self.is_closed;
        if owner == self.owner || is_ours || (owner == user && user != ROOT) {
            return Ok(());
        }
        let shown = self.path.join(name);
        let shown = shown.display();
        let directory = self.owner;
        let what = if self.owner == user {
            let folder = self.path.display();
            format!(
                "{shown} belongs to user {owner}, and others may put files into its directory: if it is in its place, \
                 close the directory with chmod go-w {folder}"
            )
        } else {
            format!(
                "{shown} belongs to user {owner} and its directory to user {directory}: if it is in its place, \
                 give it to that user with chown --no-dereference {directory} {shown}"
            )
        };
        Err(io::Error::new(ErrorKind::PermissionDenied, what))
    }

    /// Whether a file that is made under that name now can be read by root alone: it runs this, and
    /// the directory is its own.
    pub fn makes_for_root_alone(&self, name: &OsStr) -> bool {
        let found = self.look(name);
        geteuid().is_root() && self.owner == ROOT && matches!(found, Err(Errno::ENOENT))
    }

    fn is_link(&self, name: &str) -> bool {
        let is_link =
            |found: FileStat| found.st_mode & SFlag::S_IFMT.bits() == SFlag::S_IFLNK.bits();
        self.look(name).is_ok_and(is_link)
    }

    /// What is known of a name; no link is followed.
    fn look<P: ?Sized + NixPath>(&self, name: &P) -> Result<FileStat, Errno> {
        fstatat(&self.file, name, AtFlags::AT_SYMLINK_NOFOLLOW)
    }
}

/// What a link leads to, if it is one and nobody else can have laid it.
fn own_link(path: &Path) -> Option<PathBuf> {
    let folder = Folder::around(path).ok()?;
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

fn is_link(path: &Path) -> io::Error {
    let what = format!(
        "{} is a symbolic link, which is not followed here; name what it leads to",
        path.display()
    );
    io::Error::new(ErrorKind::InvalidInput, what)
}

fn is_linked_directory(path: &Path) -> io::Error {
    let what = format!(
        "{} is a symbolic link, which is not followed here; move the directory itself to its place, or mount it there",
        path.display()
    );
    io::Error::new(ErrorKind::InvalidInput, what)
}

/// Whether everybody on the machine may read or write a file; false if it cannot be looked at.
pub fn is_open_to_others(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.mode() & 0o006 != 0)
}
