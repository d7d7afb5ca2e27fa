//! Root works in a data directory whose owner has placed links in it.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};

use crate::folder::Folder;

/// A user other than root, who need not exist.
const OWNER: u32 = 12_345;

/// A data directory, of another user if this is root, with a file outside that must not change.
fn laid(name: &str) -> Folder {
    let folder = Folder::empty(name);
    fs::create_dir(folder.path("data")).unwrap();
    fs::write(folder.path("victim"), "").unwrap();
    fs::write(folder.path("password"), "secret\n").unwrap();
    if is_root(&folder) {
        chown(folder.path("data"), Some(OWNER), Some(OWNER)).unwrap();
    }
    folder
}

fn is_root(folder: &Folder) -> bool {
    fs::metadata(folder.path("password")).unwrap().uid() == 0
}

fn lay(folder: &Folder, name: &str) {
    symlink(folder.path("victim"), folder.path("data").join(name)).unwrap();
}

/// The line fails, or does not touch the victim.
fn check(folder: &Folder, line: &str, is_refused: bool) {
    let before = fs::metadata(folder.path("victim")).unwrap();
    let output = folder.thrum(line);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.success(), !is_refused, "{line}: {said}");
    if is_refused {
        assert!(said.contains("is a symbolic link"), "{line}: {said}");
    }
    let after = fs::metadata(folder.path("victim")).unwrap();
    assert_eq!((after.uid(), after.len()), (before.uid(), 0), "{line}");
}

const ADD: &str = "users add jo --data-dir data --password-file password";

#[test]
fn users_are_not_written_through_a_link() {
    for (link, is_refused) in [
        ("users.jsonl.lock", true),
        ("users.jsonl", true),
        ("users.jsonl.new", false),
    ] {
        let folder = laid("links-users");
        lay(&folder, link);
        check(&folder, ADD, is_refused);
    }
}

#[test]
fn bans_are_not_written_through_a_link() {
    for (link, is_refused) in [("bans.jsonl", true), ("bans.jsonl.new", false)] {
        let folder = laid("links-bans");
        lay(&folder, link);
        check(&folder, "bans add --user jo --data-dir data", is_refused);
    }
}

#[test]
fn files_that_root_changes_beside_the_configuration_stay_readable_for_the_broker() {
    let folder = Folder::empty("links-etc");
    fs::write(folder.path("password"), "secret\n").unwrap();
    if !is_root(&folder) {
        return;
    }
    let said = |line: &str| {
        let output = folder.thrum(line);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{line}: {said}");
        said
    };
    let add = "users add a --users users.jsonl --password-file password";
    assert!(said(add).contains("note: root alone can read the new file users.jsonl"));
    for (owner, mode) in [(0, 0o640), (OWNER, 0o600)] {
        chown(folder.path("users.jsonl"), Some(owner), Some(OWNER)).unwrap();
        let permissions = fs::Permissions::from_mode(mode);
        fs::set_permissions(folder.path("users.jsonl"), permissions).unwrap();
        let line = format!("users add b{mode} --users users.jsonl --password-file password");
        assert!(!said(&line).contains("note"));
        let found = fs::metadata(folder.path("users.jsonl")).unwrap();
        let rights = (found.uid(), found.gid(), found.mode() & 0o777);
        assert_eq!(rights, (owner, OWNER, mode));
    }
    let ban = "bans add --user jo --file bans.jsonl";
    assert!(said(ban).contains("note: root alone can read the new file bans.jsonl"));
    assert!(!said(ban).contains("note"));
}

#[test]
fn a_refusal_says_why_once() {
    let folder = Folder::empty("links-once");
    fs::write(folder.path("password"), "secret\n").unwrap();
    fs::create_dir(folder.path("users.jsonl.lock")).unwrap();
    let output = folder.thrum("users add a --users users.jsonl --password-file password");
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said.matches("os error").count(), 1, "{said}");
}

#[test]
fn a_state_that_is_a_link_is_not_entered() {
    let folder = Folder::filled("links-state");
    folder.printed("backup create b.tar --data-dir data");
    fs::create_dir(folder.path("other")).unwrap();
    symlink(folder.path("data/state"), folder.path("other/state")).unwrap();
    let output = folder.thrum("sessions purge -y --all --data-dir other");
    assert!(!output.status.success());
    for line in [
        "sessions ls --data-dir other",
        "backup restore b.tar --force --data-dir other",
    ] {
        let output = folder.thrum(line);
        assert!(!output.status.success(), "{line}");
    }
    assert!(!folder.json("sessions ls --data-dir data --json").is_empty());
}

#[test]
fn files_that_root_creates_belong_to_the_owner_of_the_directory() {
    let folder = laid("links-owner");
    let source = Folder::filled("links-owner-source");
    source.printed("backup create b.tar --data-dir data");
    fs::copy(source.path("b.tar"), folder.path("b.tar")).unwrap();
    folder.printed("backup restore b.tar --data-dir data");
    folder.printed(ADD);
    folder.printed("bans add --user jo --data-dir data");
    let owner = fs::metadata(folder.path("data")).unwrap().uid();
    for (name, mode) in [
        ("users.jsonl", 0o600),
        ("users.jsonl.lock", 0o600),
        ("bans.jsonl", 0o600),
        ("state", 0o700),
        ("state/lock", 0o600),
    ] {
        let found = fs::metadata(folder.path("data").join(name)).unwrap();
        assert_eq!((found.uid(), found.mode() & 0o777), (owner, mode), "{name}");
    }
    let segment = fs::metadata(folder.segment("data")).unwrap();
    assert_eq!((segment.uid(), segment.mode() & 0o777), (owner, 0o600));
}
