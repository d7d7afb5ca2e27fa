//! The mode of a socket under any umask, which belongs to the whole process and needs a test binary
//! of its own.

use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;

use nix::sys::stat::{Mode, umask};
use thrum_files::Folder;

#[test]
fn only_the_owner_may_connect_whatever_the_umask() {
    let path = std::env::temp_dir().join(format!("thrum-umask-{}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    for (name, mask) in [("strict", 0o777), ("common", 0o022), ("open", 0)] {
        umask(Mode::from_bits_truncate(mask));
        let socket = Folder::open(&path).unwrap().listen(name.as_ref());
        umask(Mode::from_bits_truncate(0o022));
        let socket = socket.unwrap();
        let found = std::fs::metadata(socket.path()).unwrap();
        assert_eq!(found.mode() & 0o777, 0o600, "{name}");
        let mut client = Folder::open(&path).unwrap().connect(name.as_ref()).unwrap();
        client.write_all(b"x").unwrap();
        socket.listener().unwrap().accept().unwrap();
    }
    let left = std::fs::read_dir(&path).unwrap().count();
    assert_eq!(left, 0, "each is removed at its end");
    std::fs::remove_dir(&path).unwrap();
}
