//! `thrum admin`, `keys` and `audit` beside a real broker.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::folder::Folder;
use crate::server::Server;

const PASSWORD: &str = "correct horse battery";

/// Lines of the audit log, the newest first: who, action, target, outcome.
fn audit(folder: &Folder, options: &str) -> Vec<Value> {
    let rows = folder.json(&format!("audit ls --data-dir data -o json {options}"));
    let short = |row: &Value| json!([row["who"], row["action"], row["target"], row["outcome"]]);
    rows.iter().map(short).collect()
}

#[test]
fn a_setup_link_is_made_while_there_is_no_administrator() {
    let folder = Folder::empty("admin-setup");
    let port = ("THRUM_LISTENERS__HTTP__BIND", "127.0.0.1:0");
    let _server = Server::start_with(&folder, "data", Some(port));
    assert_eq!(
        folder.printed("admin ls --data-dir data"),
        "0 administrators\n"
    );
    let link = folder.printed("admin setup-url --data-dir data");
    // The address is that of the port that the broker got.
    let (port, token) = link
        .strip_prefix("http://127.0.0.1:")
        .and_then(|rest| rest.trim_end().split_once("/setup?t="))
        .unwrap();
    assert!(port.parse::<u16>().unwrap() > 0, "{link}");
    assert_eq!(token.len(), 32, "192 bits: {token}");
    let other =
        folder.printed("admin setup-url --data-dir data --url https://broker.example/thrum/");
    assert!(
        other.starts_with("https://broker.example/thrum/setup?t="),
        "{other}"
    );
    assert!(!other.contains(token));
    let made = json!(["local", "setup-link.add", "", "done"]);
    assert_eq!(audit(&folder, ""), [made.clone(), made]);
}

#[test]
fn a_broker_does_not_start_without_its_administrators() {
    let folder = Folder::empty("admin-damaged");
    std::fs::create_dir(folder.path("data")).unwrap();
    std::fs::write(folder.path("data/administrators.jsonl"), "garbage\n").unwrap();
    let line = "serve --dev --workers 2 --listen 127.0.0.1:0 --data-dir data";
    let mut child = folder.start_with(line, []);
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let started = lines
        .map_while(Result::ok)
        .find(|line| line.contains("ready"));
    child.kill().ok();
    let output = child.wait_with_output().unwrap();
    assert_eq!(started, None);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("error: data/administrators.jsonl:1: "),
        "{said}"
    );
    assert!(
        said.contains("; correct the line, or move the file away"),
        "{said}"
    );
}

#[test]
fn the_first_administrator_has_the_password_of_the_file_and_another_one_later() {
    let folder = Folder::empty("admin-file");
    let file = folder.path("password");
    std::fs::write(&file, format!("{PASSWORD}\n")).unwrap();
    let variable = ("THRUM_ADMIN_PASSWORD_FILE", file.to_str().unwrap());
    let server = Server::start_with(&folder, "data", Some(variable));
    let list = folder.json("admin ls --data-dir data -o json");
    assert_eq!(
        (&list[0]["name"], &list[0]["role"]),
        (&json!("admin"), &json!("administrator"))
    );
    let kept = folder.path("data/administrators.jsonl");
    assert_eq!(kept.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let first = std::fs::read_to_string(&kept).unwrap();
    assert!(
        first.contains("$argon2id$") && !first.contains(PASSWORD),
        "{first}"
    );
    folder.check_fails(
        "admin setup-url --data-dir data --url http://x",
        6,
        "error: an administrator exists already; log in; thrum admin reset-password NAME on the broker's machine sets \
         another password\n",
    );
    let reset = "admin reset-password admin --data-dir data --password-stdin";
    let output = folder.thrum_with(reset, "another long password\n");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let second = std::fs::read_to_string(&kept).unwrap();
    assert_ne!(first, second);
    let output = folder.thrum_with(reset, "short\n");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("a password has at least 12 characters"),
        "{said}"
    );
    drop(server);
    // The password of the file does not come back.
    let _server = Server::start_with(&folder, "data", Some(variable));
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), second);
    assert_eq!(
        audit(&folder, ""),
        [
            json!(["local", "password.reset", "admin", "failed"]),
            json!(["local", "password.reset", "admin", "done"]),
            json!(["local", "setup-link.add", "", "failed"]),
            json!(["local", "administrator.add", "admin", "done"]),
        ]
    );
}

#[test]
fn a_password_file_that_cannot_be_used_prevents_the_start() {
    let folder = Folder::empty("admin-bad-file");
    std::fs::write(folder.path("short"), "short\n").unwrap();
    for (file, expected) in [
        ("none", "THRUM_ADMIN_PASSWORD_FILE: cannot read none"),
        (
            "short",
            "THRUM_ADMIN_PASSWORD_FILE (short): cannot make the first administrator: a password has at least 12",
        ),
    ] {
        let variable = ("THRUM_ADMIN_PASSWORD_FILE", file);
        let line = "serve --dev --workers 1 --listen 127.0.0.1:0 --data-dir data";
        let child = folder.start_with(line, Some(variable));
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && said.contains(expected),
            "{said}"
        );
    }
}

#[test]
fn keys_are_added_listed_and_removed() {
    let folder = Folder::empty("keys");
    let _server = Server::start(&folder, "data");
    let key =
        folder.printed("keys add grafana --scope metrics:read --expires never --data-dir data");
    let mut parts = key.trim_end().splitn(3, '_');
    let (prefix, id, secret) = (
        parts.next().unwrap(),
        parts.next().unwrap(),
        parts.next().unwrap(),
    );
    assert_eq!((prefix, id.len(), secret.len()), ("thrum", 8, 52));
    let other = &folder.json("keys add ci --scope messages:write -o json --data-dir data")[0];
    assert!(other["expires_at"].is_string(), "90 days without --expires");
    let table = folder.printed("keys ls --data-dir data");
    assert!(
        table.contains(id) && table.contains("grafana") && table.contains("never"),
        "{table}"
    );
    assert!(
        !table.contains(secret) && table.ends_with("\n2 keys\n"),
        "{table}"
    );
    folder.printed(&format!("keys rm {id} --data-dir data"));
    assert_eq!(folder.json("keys ls --data-dir data -o json").len(), 1);
    folder.check_fails(
        &format!("keys rm {id} --data-dir data"),
        3,
        &format!("error: there is no API key \"{id}\"; list the keys with thrum keys ls\n"),
    );
    let kept = std::fs::read_to_string(folder.path("data/administrators.jsonl")).unwrap();
    assert!(
        !kept.contains(secret) && kept.contains("\"label\":\"ci\""),
        "{kept}"
    );
}

#[test]
fn the_audit_log_survives_a_crash_and_is_filtered() {
    let folder = Folder::empty("audit");
    let server = Server::start(&folder, "data");
    folder.printed("keys add a --scope admin --data-dir data");
    folder.thrum("clients kick nobody --data-dir data");
    folder.printed("keys add b --scope admin --data-dir data");
    drop(server);
    let _server = Server::start(&folder, "data");
    let (a, b) = (
        json!(["local", "key.add", "a", "done"]),
        json!(["local", "key.add", "b", "done"]),
    );
    let kick = json!(["local", "client.kick", "nobody", "failed"]);
    assert_eq!(audit(&folder, ""), [b.clone(), kick.clone(), a.clone()]);
    assert_eq!(audit(&folder, "--action key.*"), [b.clone(), a]);
    assert_eq!(audit(&folder, "--action client.kick --since 1h"), [kick]);
    assert_eq!(
        audit(&folder, "--since 2100-01-01T00:00:00Z"),
        [] as [Value; 0]
    );
    assert_eq!(audit(&folder, "--limit 1"), [b]);
    let table = folder.printed("audit ls --data-dir data --who local");
    let mut lines = table.lines();
    assert!(lines.next().unwrap().starts_with("TIME "), "{table}");
    assert!(lines.nth(1).unwrap().contains("nobody"), "{table}");
    assert!(
        table.contains("failed: no session has the client identifier \"nobody\""),
        "{table}"
    );
}
