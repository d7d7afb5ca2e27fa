//! Warnings of a running broker about damaged or world-readable files.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Child;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::folder::Folder;

/// A broker and its log; killed at the end.
struct Server {
    child: Child,
    log: Receiver<String>,
}

impl Server {
    fn start(folder: &Folder) -> Self {
        let line = "serve --workers 1 --listen 127.0.0.1:0 --data-dir data";
        let mut child = folder.start(line);
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let (tell, log) = channel();
        std::thread::spawn(move || {
            // Until the receiver is gone.
            lines
                .map_while(Result::ok)
                .take_while(|line| tell.send(line.clone()).is_ok())
                .for_each(drop);
        });
        Self { child, log }
    }

    /// Waits for a line of the log.
    fn says(&self, expected: &str) {
        let mut said = String::new();
        while let Ok(line) = self.log.recv_timeout(Duration::from_secs(20)) {
            if line.contains(expected) {
                return;
            }
            said.push_str(&line);
            said.push('\n');
        }
        panic!("it does not say {expected:?}, but\n{said}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A data directory with a user and a ban.
fn filled(name: &str) -> Folder {
    let folder = Folder::empty(name);
    fs::create_dir(folder.path("data")).unwrap();
    fs::write(folder.path("password"), "secret\n").unwrap();
    folder.printed("users add jo --data-dir data --password-file password");
    folder.printed("bans add --user jim --data-dir data");
    folder
}

#[test]
fn locked_out_users_and_missing_bans_are_logged() {
    let folder = filled("warnings");
    let server = Server::start(&folder);
    server.says("state restored");
    fs::write(folder.path("data/users.jsonl"), "").unwrap();
    server.says("is empty: no user of it can log in");
    fs::remove_file(folder.path("data/bans.jsonl")).unwrap();
    server.says("the list of bans is gone");
}

#[test]
fn a_world_readable_user_store_is_logged() {
    let folder = filled("warnings-mode");
    let store = folder.path("data/users.jsonl");
    fs::set_permissions(store, Permissions::from_mode(0o666)).unwrap();
    Server::start(&folder).says("every user of this machine may read or change the user store");
}
