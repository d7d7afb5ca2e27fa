//! Errors of a program that was built without a part.
//!
//! Each test is there only without its part: `make parts` runs them with the smallest program.
#![expect(clippy::unwrap_used, reason = "a failed setup should panic")]

use std::path::Path;
use std::process::{Command, Output};

fn run(line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_thrum"));
    command.args(line.split(' ')).env_remove("RUST_LOG");
    command.output().unwrap()
}

/// Refused as wrong usage, with the feature to build it with.
#[allow(dead_code, reason = "a complete program refuses nothing")]
fn check_refused(line: &str, feature: &str) {
    let output = run(line);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{line}: {said}");
    assert!(
        said.contains(&format!("--features {feature}`")),
        "{line}: {said}"
    );
    assert_eq!(said.matches("error: ").count(), 1, "{line}: {said}");
    let version = run("--version");
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    let (_, left_out) = version.split_once("built without: ").unwrap();
    assert!(
        left_out.split([',', ' ', '\n']).any(|name| name == feature),
        "{version}"
    );
}

/// Neither a check nor a start takes this configuration.
#[allow(dead_code, reason = "a complete program refuses nothing")]
fn check_config_refused(config: &str, feature: &str) {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("without-{feature}.toml"));
    std::fs::write(
        &file,
        format!("listeners.mqtt.bind = \"127.0.0.1:0\"\n{config}\n"),
    )
    .unwrap();
    for command in ["config check", "serve"] {
        check_refused(&format!("{command} -c {}", file.display()), feature);
    }
}

#[test]
fn the_version_names_only_missing_parts() {
    let said = run("--version");
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let complete = [
        cfg!(feature = "bench"),
        cfg!(feature = "http-auth"),
        cfg!(feature = "ldap"),
        cfg!(feature = "management"),
        cfg!(feature = "png"),
        cfg!(feature = "quic"),
        cfg!(feature = "redis"),
        cfg!(feature = "sql"),
        cfg!(feature = "tui"),
    ];
    let is_complete = complete.iter().all(|part| *part);
    assert_eq!(is_complete, !said.contains("built without: "), "{said}");
    let short = run("-V");
    let short = String::from_utf8_lossy(&short.stdout).into_owned();
    assert!(said.starts_with(short.trim_end()), "{short}{said}");
}

#[cfg(not(feature = "bench"))]
#[test]
fn the_benchmark_is_refused() {
    check_refused("bench run p2p-1K", "bench");
    check_refused("bench", "bench");
}

#[cfg(not(feature = "management"))]
#[test]
fn questions_to_a_running_broker_are_refused() {
    check_refused("clients ls --data-dir nowhere", "management");
    check_refused("status -o json", "management");
}

#[cfg(not(feature = "management"))]
#[test]
fn an_export_is_refused() {
    check_config_refused("telemetry.endpoint = \"http://127.0.0.1:1\"", "management");
}

#[cfg(all(feature = "bench", not(feature = "png")))]
#[test]
fn a_picture_is_refused_before_the_run() {
    check_refused("bench run p2p-1K --png --target mqtt://127.0.0.1:1", "png");
}

#[cfg(not(feature = "quic"))]
#[test]
fn quic_is_refused_at_either_end() {
    check_refused("pub -L quic://127.0.0.1/a -m x --insecure", "quic");
    let listener = "listeners.quic = { transport = \"quic\", bind = \"127.0.0.1:0\" }";
    check_config_refused(listener, "quic");
}

#[cfg(not(feature = "http-auth"))]
#[test]
fn services_that_know_users_are_refused() {
    check_config_refused("auth.http.a.url = \"http://127.0.0.1:1\"", "http-auth");
    check_config_refused("auth.jwt.a.jwks = \"http://127.0.0.1:1\"", "http-auth");
}

#[cfg(not(feature = "ldap"))]
#[test]
fn directories_are_refused() {
    check_config_refused("auth.ldap.a.url = \"ldap://127.0.0.1:1\"", "ldap");
}

#[cfg(not(feature = "redis"))]
#[test]
fn redis_is_refused() {
    check_config_refused("auth.redis.a.url = \"redis://127.0.0.1:1\"", "redis");
}

#[cfg(not(feature = "sql"))]
#[test]
fn databases_are_refused() {
    check_config_refused("auth.sql.a.url = \"sqlite:///nowhere\"", "sql");
}
