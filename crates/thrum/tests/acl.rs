//! `thrum acl test` as people run it.
#![expect(clippy::unwrap_used, reason = "a failed setup should panic")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

const CONFIG: &str = r#"
[auth]
users = "users.jsonl"
[acl]
rules = ["allow role:ops sub #", "deny all pubsub $SYS/#", "allow all pub devices/%c/+", "allow all sub news/#"]
"#;

const USERS: &str = r#"{"user":"eve","roles":["ops"],"rules":["allow pub eve/#"]}
{"user":"root","superuser":true}
"#;

fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("acl-{name}"));
    fs::create_dir_all(&path).unwrap();
    fs::write(path.join("thrum.toml"), CONFIG).unwrap();
    fs::write(path.join("users.jsonl"), USERS).unwrap();
    path
}

/// Exit code and what was printed.
fn run(folder: &Path, line: &str) -> (i32, String) {
    run_without_config(folder, &format!("{line} -c thrum.toml"))
}

fn run_without_config(folder: &Path, line: &str) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_thrum"))
        .args(["acl", "test"])
        .args(line.split(' '))
        .current_dir(folder)
        .env_remove("RUST_LOG")
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.code().unwrap(),
        String::from_utf8(text).unwrap(),
    )
}

#[track_caller]
fn check(folder: &Path, line: &str, code: i32, words: &str) {
    let (found, text) = run(folder, line);
    assert_eq!(found, code, "{line}: {text}");
    assert!(text.contains(words), "{line}: {text}");
}

#[test]
fn the_rule_that_decides_is_named() {
    let folder = folder("rules");
    check(
        &folder,
        "d1 pub devices/d1/x",
        0,
        "allow all pub devices/%c/+   (acl.rules[2])",
    );
    check(&folder, "d1 pub devices/d2/x", 1, "denied by default");
    check(
        &folder,
        "d1 pub $SYS/x",
        1,
        "deny all pubsub $SYS/#   (acl.rules[1])",
    );
    check(
        &folder,
        "d1 sub # -u eve",
        0,
        "allow role:ops sub #   (acl.rules[0])",
    );
    check(&folder, "d1 pub eve/a -u eve", 0, "(user eve)");
    check(&folder, "d1 sub #", 0, "allowed in part");
    check(&folder, "d1 pub a -u root", 0, "superusers");
    fs::create_dir_all(folder.join("data")).unwrap();
    fs::write(folder.join("data/users.jsonl"), USERS).unwrap();
    let (code, text) = run_without_config(&folder, "d1 pub eve/a -u eve --data-dir data");
    assert!(code == 0 && text.contains("(user eve)"), "{text}");
    let (_, text) = run(&folder, "d1 pub devices/d1/x --json");
    let object: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&object["verdict"], &object["allowed"]),
        (&json!("allowed"), &json!(true))
    );
}

#[test]
fn invalid_questions_are_refused_with_the_reason() {
    let folder = folder("wrong");
    check(&folder, "d1 pub a/#", 2, "\"a/#\" is not a topic name");
    check(&folder, "d1 sub a/#/b", 2, "is not a topic filter");
    fs::write(folder.join("users.jsonl"), "no json\n").unwrap();
    check(&folder, "d1 pub a", 2, "users.jsonl");
}
