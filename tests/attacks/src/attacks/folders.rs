//! Files: links placed by others for root, and files that others may read.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown, symlink};
use std::path::Path;

use thrum_conformance::folder::Folder;
use thrum_conformance::packets::Publish;
use thrum_conformance::{Version, clock};

use crate::outcome::Outcome;
use crate::victim::{Setup, Site, Victim};

/// The user `nobody`.
const NOBODY: u32 = 65_534;
const SECRET: &str = "Bearer 4711-geheim";

/// Names that root's commands open, and the commands.
const TRAPS: [(&str, &[&str], &str); 3] = [
    (
        "users.jsonl.lock",
        &["users", "add", "eve", "--password-stdin", "--data-dir"],
        "secret-1",
    ),
    (
        "users.jsonl",
        &["users", "add", "eve", "--password-stdin", "--data-dir"],
        "secret-1",
    ),
    (
        "bans.jsonl.new",
        &["bans", "add", "--client-id", "x", "--data-dir"],
        "",
    ),
];

/// The owner of the data directory has laid links to a file of root.
pub fn links(site: &Site) -> Outcome {
    if !rustix::process::geteuid().is_root() {
        return Outcome::untried("needs root");
    }
    let folder = Folder::new("links");
    let mut changed = Vec::new();
    for (name, arguments, input) in TRAPS {
        let target = folder.write("of-root", "");
        let data = folder.path().join("data");
        fs::create_dir(&data).expect("a folder for the data");
        symlink(&target, data.join(name)).expect("a link");
        chown(&data, Some(NOBODY), Some(NOBODY)).expect("root may give it away");
        let data_text = folder.file("data");
        site.run(&[arguments, &[data_text.as_str()]].concat(), input);
        let metadata = fs::metadata(&target).expect("the file of root is there");
        if metadata.uid() != 0 || metadata.len() > 0 {
            changed.push(name);
        }
        fs::remove_dir_all(&data).expect("the folder goes");
    }
    let wrong = format!(
        "root's file is given away or written through {}",
        changed.join(", ")
    );
    Outcome {
        wrong: (!changed.is_empty()).then_some(wrong),
        seen: "root's file is unchanged".to_owned(),
        ..Outcome::default()
    }
}

/// A header with a secret is printed; files of a broker with an open umask; a store of users that
/// every user may write.
pub fn secrets(site: &Site) -> Outcome {
    let folder = Folder::new("secrets");
    let text = format!(
        "[auth.http.desk]\nurl = \"http://127.0.0.1:9/\"\nheaders = {{ Authorization = \"{SECRET}\" }}\n"
    );
    let file = folder.write("thrum.toml", &text);
    let file = file.to_string_lossy();
    let shown = ["show", "check"].map(|what| site.run(&["config", what, "-c", &file], ""));
    let mut wrong = Vec::new();
    if shown.iter().any(|text| text.contains(SECRET)) {
        wrong.push("config prints a secret".to_owned());
    }
    let setup = Setup {
        settings: &[
            ("THRUM_NODE__DATA_DIR", "{folder}data"),
            ("THRUM_AUTH__USERS", "{folder}users.jsonl"),
            ("THRUM_ACL__FILE", "{folder}rules"),
        ],
        files: &[("rules", "allow all pubsub #\n")],
        users: &[("alice", "a-1234567")],
        prefix: &[
            "sh",
            "-c",
            "umask 0; chmod 666 \"$0\"/users.jsonl; exec \"$@\"",
            "{folder}",
        ],
        ..Setup::default()
    };
    let victim = Victim::start(site, &setup);
    let (mut wire, _) = victim.resume("kept");
    wire.subscribe("kept", 1);
    let message = Publish::new(Version::V5, "kept", 1, b"x");
    victim.client().deliver(&message.retain());
    let data = victim.folder.path().join("data");
    let open = open_to_others(&data);
    if open > 0 {
        wrong.push(format!(
            "{open} files and folders of the data are open to others"
        ));
    }
    clock::sleep(std::time::Duration::from_millis(200));
    let log = victim.broker.log();
    if !log
        .lines()
        .any(|line| line.contains("WARN") && line.contains("users.jsonl"))
    {
        wrong.push("no warning of an open users.jsonl".to_owned());
    }
    let wrong = (!wrong.is_empty()).then(|| wrong.join("; "));
    victim.end_with(wrong, "nothing printed, nothing open, a warning".to_owned())
}

/// Files and folders that others than the owner may read or write.
fn open_to_others(path: &Path) -> usize {
    let metadata = fs::symlink_metadata(path).expect("a file of the broker");
    let is_open = metadata.mode() & 0o077 != 0;
    let inner = fs::read_dir(path).into_iter().flatten().flatten();
    let inner: usize = inner.map(|entry| open_to_others(&entry.path())).sum();
    usize::from(is_open) + inner
}
