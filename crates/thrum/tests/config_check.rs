//! `thrum config check` and `thrum serve` refuse the same configurations, with the same texts.
#![expect(clippy::unwrap_used, reason = "a failed setup should panic")]

#[path = "transports/authority.rs"]
#[expect(dead_code, reason = "other tests revoke")]
mod authority;

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use authority::Authority;

/// An empty folder of this test's own.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("config_check")
        .join(name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).unwrap();
    }
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn run(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_thrum"));
    command.current_dir(folder).env_remove("RUST_LOG");
    command.args(args).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Both refuse the configuration with the same text, which contains these words.
fn check_refused(folder: &Path, config: &str, expected: &[&str]) {
    std::fs::write(folder.join("thrum.toml"), config).unwrap();
    let checked = run(folder, &["config", "check", "-c", "thrum.toml"]);
    let served = run(folder, &["serve", "-c", "thrum.toml"]);
    assert_eq!(said(&checked), said(&served), "{config}");
    assert_eq!(checked.status.code(), Some(2), "{config}");
    assert_eq!(served.status.code(), Some(2), "{config}");
    for words in expected {
        assert!(
            said(&checked).contains(words),
            "{words} in {}",
            said(&checked)
        );
    }
}

/// A configuration with one TLS listener.
fn with_tls(tls: &str) -> String {
    format!("[listeners.tls]\nbind = \"127.0.0.1:0\"\n[listeners.tls.tls]\n{tls}\n")
}

/// A configuration with the default listener on a free port.
fn with(text: &str) -> String {
    format!("listeners.mqtt.bind = \"127.0.0.1:0\"\n{text}\n")
}

#[test]
fn files_of_tls_that_serve_cannot_use_are_refused() {
    let folder = folder("tls");
    let authority = Authority::new(&folder, "ca");
    authority.sign("a", "localhost", (2024, 2999), 1);
    authority.sign("b", "localhost", (2024, 2999), 2);
    for (tls, words) in [
        ("cert = \"gone.pem\"", "gone.pem"),
        ("cert = \"a.pem\"\nkey = \"gone.key\"", "gone.key"),
        ("cert = \"a.key\"\nkey = \"a.pem\"", "a.key"),
        ("cert = \"a.pem\"\nkey = \"b.key\"", "b.key"),
        (
            "cert = \"a.pem\"\nkey = \"a.key\"\nca = \"no.pem\"",
            "no.pem",
        ),
    ] {
        check_refused(&folder, &with_tls(tls), &["listener \"tls\"", words]);
    }
    check_refused(
        &folder,
        "listeners.q = { bind = \"127.0.0.1:0\", transport = \"quic\" }",
        &["QUIC is always encrypted"],
    );
    check_refused(
        &folder,
        "listeners.a = { bind = \"127.0.0.1:0\", tls_from = \"b\" }",
        &["tls_from names no listener"],
    );
}

#[test]
fn a_listener_that_would_have_no_tls_though_some_is_set_up_is_refused() {
    let folder = folder("tls-missing");
    for (listeners, words) in [
        (
            "a = { bind = \"127.0.0.1:0\" }\nb = { bind = \"127.0.0.1:0\", tls_from = \"a\" }",
            "listener \"b\": tls_from names the listener \"a\", which has no certificate",
        ),
        (
            "a = { bind = \"127.0.0.1:0\", tls.ca = \"ca.pem\", tls.client_cert = \"required\" }",
            "listener \"a\": tls.ca means nothing without tls.cert",
        ),
        (
            "a = { bind = \"127.0.0.1:0\", tls.chain = \"chain.pem\" }",
            "listener \"a\": tls.chain means nothing without tls.cert",
        ),
    ] {
        check_refused(&folder, &format!("[listeners]\n{listeners}\n"), &[words]);
    }
}

#[test]
fn rules_that_serve_cannot_use_are_refused_with_their_place() {
    let folder = folder("rules");
    check_refused(
        &folder,
        &with("[acl]\nrules = [\"allow all sub a\", \"alow all pubsub #\"]"),
        &[
            "thrum.toml:3:30: acl.rules[1]: 'alow' is neither 'allow' nor 'deny', did you mean 'allow'?",
            "\n  3 | rules = [\"allow all sub a\", \"alow all pubsub #\"]\n    |                              ^^^^\n",
        ],
    );
    check_refused(&folder, &with("acl.file = \"no.acl\""), &["no.acl"]);
    check_refused(
        &folder,
        &with("acl.mosquitto_file = \"no.acl\""),
        &["no.acl"],
    );
    std::fs::write(folder.join("a.acl"), "allow all pub a\nallow all pubb a\n").unwrap();
    let wrong = ["a.acl line 2", "did you mean 'pub'?"];
    check_refused(&folder, &with("acl.file = \"a.acl\""), &wrong);
}

#[test]
fn a_user_store_that_is_named_and_not_there_is_refused() {
    let folder = folder("users");
    let missing = "auth.users: there is no file /nope/users.jsonl; make it with its first user: \
                   thrum users add NAME --users /nope/users.jsonl";
    check_refused(
        &folder,
        &with("auth.users = \"/nope/users.jsonl\""),
        &[missing],
    );
    check_refused(
        &folder,
        &with("auth.chain = [\"users\"]"),
        &["set auth.users"],
    );
    std::fs::write(folder.join("users.jsonl"), "no user\n").unwrap();
    check_refused(
        &folder,
        &with("auth.users = \"users.jsonl\""),
        &["users.jsonl"],
    );
    // Beside other backends it opens no door.
    std::fs::write(folder.join("passwd"), "").unwrap();
    let both = "auth.users = \"no.jsonl\"\nauth.password_file.p.path = \"passwd\"";
    std::fs::write(folder.join("thrum.toml"), with(both)).unwrap();
    let checked = run(&folder, &["config", "check", "-c", "thrum.toml"]);
    let warning = "warning: auth.users: there is no file no.jsonl; ";
    assert!(said(&checked).starts_with(warning), "{}", said(&checked));
    assert_eq!(checked.status.code(), Some(0));
}

#[test]
fn all_errors_of_all_files_are_reported_at_once() {
    let folder = folder("all");
    std::fs::write(folder.join("bans.jsonl"), "no ban\n").unwrap();
    std::fs::write(folder.join("file"), "").unwrap();
    let config = format!(
        "{}[acl]\nfile = \"no.acl\"\n[auth]\nusers = \"no.jsonl\"\n[protection]\nbans = \"bans.jsonl\"\n\
         [node]\ndata_dir = \"file\"\n",
        with_tls("cert = \"gone.pem\"")
    );
    let wrong = [
        "gone.pem",
        "bans.jsonl",
        "no.acl",
        "the data directory file/state",
    ];
    check_refused(&folder, &config, &wrong);
}

#[test]
fn a_data_directory_that_serve_cannot_take_is_refused() {
    let folder = folder("data_dir");
    let link = |text: &str| {
        std::fs::create_dir_all(folder.join("linked")).unwrap();
        std::os::unix::fs::symlink("elsewhere", folder.join("linked/state")).unwrap();
        with(text)
    };
    check_refused(
        &folder,
        &link("node.data_dir = \"linked\""),
        &[
            "linked/state is a symbolic link",
            "move the directory itself to its place, or mount it there",
        ],
    );
    std::fs::write(
        folder.join("thrum.toml"),
        with("node.data_dir = \"/proc/nope/x\""),
    )
    .unwrap();
    for command in ["config check", "serve"] {
        let words = command.split(' ').chain(["-c", "thrum.toml"]);
        let output = run(&folder, &words.collect::<Vec<_>>());
        assert!(
            said(&output).contains("/proc/nope/x/state"),
            "{}",
            said(&output)
        );
        assert_eq!(output.status.code(), Some(2), "{command}");
    }
}

#[test]
fn a_user_store_that_is_open_or_empty_fails_a_strict_check() {
    let folder = folder("store_warned");
    let store = folder.join("users.jsonl");
    std::fs::write(&store, "").unwrap();
    std::fs::set_permissions(&store, std::fs::Permissions::from_mode(0o666)).unwrap();
    std::fs::write(
        folder.join("thrum.toml"),
        with("auth.users = \"users.jsonl\""),
    )
    .unwrap();
    let strict = run(
        &folder,
        &["config", "check", "--strict", "-c", "thrum.toml"],
    );
    let said = said(&strict);
    assert!(
        said.contains("error: every user of this machine may read"),
        "{said}"
    );
    assert!(
        said.contains("is empty: no user of it can log in"),
        "{said}"
    );
    assert_eq!(strict.status.code(), Some(2));
}

#[test]
fn an_expired_certificate_is_warned_about_and_fails_a_strict_check() {
    let folder = folder("expired");
    let authority = Authority::new(&folder, "ca");
    authority.sign("a", "localhost", (2000, 2001), 1);
    let config = with_tls("cert = \"a.pem\"\nkey = \"a.key\"");
    std::fs::write(folder.join("thrum.toml"), config).unwrap();
    let loose = run(&folder, &["config", "check", "-c", "thrum.toml"]);
    let warning = "listener \"tls\": clients will refuse the certificate 'a.pem': ";
    assert!(
        said(&loose).starts_with(&format!("warning: {warning}")),
        "{}",
        said(&loose)
    );
    assert_eq!(loose.status.code(), Some(0));
    let strict = run(
        &folder,
        &["config", "check", "--strict", "-c", "thrum.toml"],
    );
    assert!(
        said(&strict).starts_with(&format!("error: {warning}")),
        "{}",
        said(&strict)
    );
    assert_eq!(strict.status.code(), Some(2));
}

#[test]
fn a_configuration_that_serve_takes_is_valid_and_leaves_no_trace() {
    let folder = folder("valid");
    let authority = Authority::new(&folder, "ca");
    authority.sign("a", "localhost", (2024, 2999), 1);
    let tls = with_tls("cert = \"a.pem\"\nkey = \"a.key\"");
    std::fs::write(
        folder.join("thrum.toml"),
        format!("node.data_dir = \"data\"\n{tls}"),
    )
    .unwrap();
    let checked = run(
        &folder,
        &["config", "check", "--strict", "-c", "thrum.toml"],
    );
    assert_eq!(checked.status.code(), Some(0), "{}", said(&checked));
    assert!(said(&checked).starts_with("valid (thrum.toml read); differences"));
    assert!(!folder.join("data").exists());
}
