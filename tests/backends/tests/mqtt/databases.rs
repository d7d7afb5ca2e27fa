//! Databases.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use thrum_backends::brief_clients::Accounts;
use thrum_backends::client::secret_file;
use thrum_backends::node::Node;
use thrum_backends::outage::{TIMEOUT, run_outage};
use thrum_backends::restart::{Freezable, Restartable};
use thrum_backends::server::{MariaDb, PASSWORD, Postgres, Redis};
use thrum_backends::sql;
use thrum_conformance::folder::Folder;

#[test]
fn postgresql_is_killed_suspended_and_restored() {
    let (mut server, folder) = (Postgres::start(), Folder::new("mqtt-postgres"));
    server.execute(&sql::tables());
    let node = start(&server.url(), &secret_file(&folder, "password", PASSWORD));
    kill_and_suspend(&node, &accounts(), &mut server);
}

#[test]
fn mariadb_is_killed_suspended_and_restored() {
    let (mut server, folder) = (MariaDb::start(), Folder::new("mqtt-mariadb"));
    server.execute(&sql::tables());
    let node = start(&server.url(), &secret_file(&folder, "password", PASSWORD));
    kill_and_suspend(&node, &accounts(), &mut server);
}

#[test]
fn sqlite_is_locked_and_unlocked() {
    let folder = Folder::new("mqtt-sqlite");
    let file = sql::sqlite_file(&folder);
    let node = start(&format!("sqlite://{file}"), Path::new(""));
    run_outage(&node, &accounts(), "db", |outage| {
        let mut lock = None;
        outage.begin(|| lock = Some(Lock::take(&file)));
        outage.end(|| drop(lock.take()));
    });
}

#[test]
fn redis_is_killed_suspended_and_restored() {
    let (mut server, folder) = (Redis::start(), Folder::new("mqtt-redis"));
    for (name, is_superuser) in [("ann", "0"), ("root", "1")] {
        let key = format!("mqtt_user:{name}");
        let hash = ["HSET", &key, "password_hash", sql::BCRYPT];
        server.execute(&[&hash[..], &["is_superuser", is_superuser]].concat());
    }
    let rules = ["up/%u/#", "publish", "down/${client_id}/+", "subscribe"];
    server.execute(&[&["HSET", "mqtt_acl:ann"][..], &rules].concat());
    let node = Node::start(&json!({ "auth": { "redis": { "db": {
        "url": server.url(),
        "password_file": secret_file(&folder, "password", PASSWORD),
        "rules": "HGETALL mqtt_acl:${username}",
        "timeout": TIMEOUT,
    }}}}));
    kill_and_suspend(&node, &Accounts::with_passwords(), &mut server);
}

fn kill_and_suspend(node: &Node, accounts: &Accounts, server: &mut (impl Restartable + Freezable)) {
    run_outage(node, accounts, "db", |outage| {
        outage.begin(|| server.kill());
        outage.end(|| server.restart());
        outage.begin(|| server.freeze());
        outage.end(|| server.thaw());
    });
}

/// Users that may publish below their own topic except for one branch.
fn accounts() -> Accounts {
    let mut accounts = Accounts::with_passwords();
    accounts.forbidden.push("up/ann/secret/x");
    accounts
}

fn start(url: &str, password_file: &Path) -> Node {
    let mut settings: Value = sql::settings(url, password_file);
    settings["sql"]["db"]["timeout"] = json!(TIMEOUT);
    Node::start(&json!({ "auth": settings }))
}

/// A process that holds the write lock of an SQLite file.
struct Lock(Child);

impl Lock {
    fn take(file: &str) -> Self {
        let script = "import sqlite3, sys; file = sqlite3.connect(sys.argv[1], 60); \
                      file.execute('BEGIN EXCLUSIVE'); print('locked', flush=True); sys.stdin.read()";
        let mut process = Command::new("python3")
            .args(["-c", script, file])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 starts");
        let output = process.stdout.take().expect("a pipe");
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).expect("a line");
        assert_eq!(line, "locked\n");
        Self(process)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // It ends with its input.
        drop(self.0.stdin.take());
        self.0.wait().map(drop).unwrap_or_default();
    }
}
