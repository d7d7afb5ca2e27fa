//! Links, files of other users, and modes.

use std::ffi::OsStr;
use std::fs;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};

use nix::sys::stat::Mode;
use nix::unistd::{geteuid, mkfifo};

use super::Folder;

/// A directory of one test with a file outside of it, removed at the end of the test.
struct TestDirectory(PathBuf);

impl TestDirectory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("thrum-files-{name}-{}", std::process::id()));
        fs::remove_dir_all(&path).ok();
        fs::create_dir_all(path.join("inside")).unwrap();
        fs::write(path.join("victim"), "untouched").unwrap();
        Self(path)
    }

    fn inside(&self) -> PathBuf {
        self.0.join("inside")
    }

    fn victim(&self) -> PathBuf {
        self.0.join("victim")
    }

    fn folder(&self) -> Folder {
        Folder::open(&self.inside()).unwrap()
    }
}

impl Drop for TestDirectory {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

const NAME: &str = "users.jsonl";
/// A user other than root, which need not exist.
const OWNER: u32 = 12_345;

fn replace(folder: &Folder, text: &str) -> std::io::Result<()> {
    folder.replace(NAME.as_ref(), |to| to.write_all(text.as_bytes()))
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o777
}

#[test]
fn links_are_not_followed() {
    let test_dir = TestDirectory::new("link");
    let folder = test_dir.folder();
    let name = OsStr::new(NAME);
    symlink(test_dir.victim(), test_dir.inside().join(NAME)).unwrap();
    let refused = [
        folder.read(name).map(drop),
        folder.change(name).map(drop),
        folder.change_or_create(name).map(drop),
        folder.create(name).map(drop),
        replace(&folder, "overwritten"),
    ];
    for outcome in refused {
        let error = outcome.unwrap_err().to_string();
        assert!(
            error.contains("inside/users.jsonl is a symbolic link"),
            "{error}"
        );
    }
    assert_eq!(fs::read_to_string(test_dir.victim()).unwrap(), "untouched");
    assert_eq!(folder.file_names().unwrap(), Vec::<String>::new());
}

#[test]
fn a_link_is_followed_by_the_user_who_created_it_in_an_own_directory() {
    let test_dir = TestDirectory::new("own");
    let link = test_dir.inside().join(NAME);
    symlink("../other", &link).unwrap();
    symlink(test_dir.victim(), test_dir.0.join("other")).unwrap();
    assert_eq!(
        fs::canonicalize(Folder::resolve_own_links(&link)).unwrap(),
        fs::canonicalize(test_dir.victim()).unwrap()
    );
    assert_eq!(
        Folder::resolve_own_links(&test_dir.victim()),
        test_dir.victim()
    );
    if geteuid().is_root() {
        chown(test_dir.inside(), Some(OWNER), Some(OWNER)).unwrap();
        assert_eq!(Folder::resolve_own_links(&link), link);
    }
}

#[test]
fn a_link_where_the_new_file_is_written_is_removed_and_not_followed() {
    let test_dir = TestDirectory::new("beside");
    let folder = test_dir.folder();
    symlink(test_dir.victim(), test_dir.inside().join("users.jsonl.new")).unwrap();
    replace(&folder, "new").unwrap();
    assert_eq!(fs::read_to_string(test_dir.victim()).unwrap(), "untouched");
    assert_eq!(
        fs::read_to_string(test_dir.inside().join(NAME)).unwrap(),
        "new"
    );
    assert_eq!(folder.file_names().unwrap(), [NAME]);
}

#[test]
fn a_directory_that_is_a_link_is_not_opened() {
    let test_dir = TestDirectory::new("directory");
    let outside = test_dir.0.join("outside");
    fs::create_dir(&outside).unwrap();
    symlink(&outside, test_dir.inside().join("state")).unwrap();
    let folder = test_dir.folder();
    for outcome in [
        folder.open_directory("state"),
        folder.open_or_create_directory("state"),
    ] {
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains("inside/state is a symbolic link"), "{error}");
    }
    // A configured path may be a link.
    let named = Folder::open(&test_dir.inside().join("state")).unwrap();
    named.create_new(OsStr::new("made")).unwrap();
    assert!(outside.join("made").exists());
}

#[test]
fn new_files_are_private_and_replaced_ones_keep_their_mode() {
    let test_dir = TestDirectory::new("mode");
    let folder = test_dir.folder();
    replace(&folder, "one").unwrap();
    let path = test_dir.inside().join(NAME);
    assert_eq!(mode(&path), 0o600);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    replace(&folder, "two").unwrap();
    assert_eq!(mode(&path), 0o640);
    folder.create(OsStr::new("log")).unwrap();
    assert_eq!(mode(&test_dir.inside().join("log")), 0o600);
    folder.open_or_create_directory("state").unwrap();
    assert_eq!(mode(&test_dir.inside().join("state")), 0o700);
}

#[test]
fn entries_that_are_not_files_are_not_opened() {
    let test_dir = TestDirectory::new("pipe");
    let folder = test_dir.folder();
    let pipe = test_dir.inside().join(NAME);
    mkfifo(&pipe, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
    // It would wait for a writer.
    let error = folder.read(OsStr::new(NAME)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}

#[test]
fn a_failed_replacement_leaves_the_old_file() {
    let test_dir = TestDirectory::new("half");
    let folder = test_dir.folder();
    replace(&folder, "old").unwrap();
    let error = folder
        .replace(NAME.as_ref(), |to| {
            to.write_all(b"half")?;
            Err(std::io::Error::other("the end"))
        })
        .unwrap_err();
    assert_eq!(error.to_string(), "the end");
    assert_eq!(
        fs::read_to_string(test_dir.inside().join(NAME)).unwrap(),
        "old"
    );
    assert_eq!(folder.file_names().unwrap(), [NAME]);
}

/// Only root can create files of other users; other users are refused by the system itself.
#[test]
fn root_changes_no_file_of_another_user() {
    if !geteuid().is_root() {
        return;
    }
    let test_dir = TestDirectory::new("owner");
    chown(test_dir.inside(), Some(OWNER), Some(OWNER)).unwrap();
    let folder = test_dir.folder();
    replace(&folder, "new").unwrap();
    let path = test_dir.inside().join(NAME);
    let found = fs::metadata(&path).unwrap();
    assert_eq!((found.uid(), found.gid()), (OWNER, OWNER));
    // A hard link to a file of root.
    fs::remove_file(&path).unwrap();
    fs::hard_link(test_dir.victim(), &path).unwrap();
    for outcome in [
        folder.change_or_create(OsStr::new(NAME)).map(drop),
        folder.create(OsStr::new(NAME)).map(drop),
        replace(&folder, "new"),
    ] {
        let error = outcome.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        assert!(error.to_string().contains("belongs to user 0"), "{error}");
    }
    let victim = fs::metadata(test_dir.victim()).unwrap();
    assert_eq!((victim.uid(), victim.len()), (0, 9));
}

/// A broker that runs as another user reads a file that root keeps for it.
#[test]
fn a_file_that_root_replaces_in_its_directory_keeps_its_owner() {
    if !geteuid().is_root() {
        return;
    }
    let test_dir = TestDirectory::new("kept");
    let path = test_dir.inside().join(NAME);
    let rights = || {
        let found = fs::metadata(&path).unwrap();
        (found.uid(), found.gid(), found.mode() & 0o777)
    };
    for (owner, mode) in [(0, 0o640), (OWNER, 0o600)] {
        fs::write(&path, "old").unwrap();
        chown(&path, Some(owner), Some(OWNER)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let folder = test_dir.folder();
        assert!(!folder.creates_for_root_only(OsStr::new(NAME)));
        replace(&folder, "new").unwrap();
        assert_eq!(rights(), (owner, OWNER, mode));
    }
    assert!(test_dir.folder().creates_for_root_only(OsStr::new("other")));
    // Another user may have created it.
    fs::set_permissions(test_dir.inside(), fs::Permissions::from_mode(0o775)).unwrap();
    let error = replace(&test_dir.folder(), "newer")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("close the directory with chmod go-w"),
        "{error}"
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
}

#[test]
fn a_stale_socket_is_replaced_and_one_in_use_is_not() {
    let test_dir = TestDirectory::new("stale");
    let path = test_dir.inside().join("s");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(fs::symlink_metadata(&path).is_ok(), "it stays");
    let first = test_dir.folder().listen("s".as_ref()).unwrap();
    let second = test_dir.folder().listen("s".as_ref()).unwrap_err();
    assert_eq!(second.kind(), ErrorKind::AddrInUse);
    // Another one of the same name is not removed with the first.
    fs::remove_file(&path).unwrap();
    let third = test_dir.folder().listen("s".as_ref()).unwrap();
    drop(first);
    assert!(fs::symlink_metadata(&path).is_ok());
    drop(third);
    assert!(fs::symlink_metadata(&path).is_err());
}

#[test]
fn only_a_socket_is_replaced_by_a_socket() {
    let test_dir = TestDirectory::new("no-socket");
    fs::write(test_dir.inside().join("file"), "kept").unwrap();
    symlink(test_dir.victim(), test_dir.inside().join("link")).unwrap();
    for name in ["file", "link"] {
        let error = test_dir.folder().listen(name.as_ref()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{name}: {error}");
    }
    let kept = fs::read_to_string(test_dir.inside().join("file")).unwrap();
    assert_eq!(kept, "kept");
    assert_eq!(fs::read_to_string(test_dir.victim()).unwrap(), "untouched");
}

#[test]
fn a_socket_belongs_to_the_owner_of_its_directory() {
    if !geteuid().is_root() {
        return;
    }
    let test_dir = TestDirectory::new("owned-socket");
    chown(test_dir.inside(), Some(OWNER), Some(OWNER)).unwrap();
    let socket = test_dir.folder().listen("s".as_ref()).unwrap();
    let found = fs::metadata(socket.path()).unwrap();
    assert_eq!((found.uid(), found.gid()), (OWNER, OWNER));
}
