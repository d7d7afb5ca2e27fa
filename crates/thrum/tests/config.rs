//! `thrum config`, `completion`, `man` and `version` as people run them.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// An empty folder of this test's own.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).unwrap();
    }
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Runs it in a folder, with variables.
fn run(folder: &Path, args: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_thrum"));
    command
        .current_dir(folder)
        .env_remove("RUST_LOG")
        .args(args);
    command.envs(variables.iter().copied()).output().unwrap()
}

fn check(output: &Output, code: i32, printed: &str, said: &str) {
    assert_eq!(String::from_utf8_lossy(&output.stdout), printed);
    assert_eq!(String::from_utf8_lossy(&output.stderr), said);
    assert_eq!(output.status.code(), Some(code));
}

#[test]
fn init_writes_a_file_once_that_check_finds_valid() {
    let folder = folder("init");
    let written = "wrote thrum.toml; next: thrum serve -c thrum.toml\n";
    check(&run(&folder, &["config", "init"], &[]), 0, "", written);
    let valid = "valid (thrum.toml read); everything is at its default\n";
    check(
        &run(&folder, &["config", "check", "-c", "thrum.toml"], &[]),
        0,
        "",
        valid,
    );
    let refused =
        "error: cannot write thrum.toml: it exists; choose another name, or move it away\n";
    check(
        &run(&folder, &["config", "init", "thrum.toml"], &[]),
        2,
        "",
        refused,
    );
}

#[test]
fn init_into_a_missing_directory_says_how_to_make_it() {
    let folder = folder("init_missing");
    let refused = "error: cannot write a/b/thrum.toml: there is no directory a/b; make it with: mkdir -p a/b\n";
    check(
        &run(&folder, &["config", "init", "a/b/thrum.toml"], &[]),
        2,
        "",
        refused,
    );
}

#[test]
fn check_prints_what_differs_from_the_defaults_and_who_set_it() {
    let folder = folder("check");
    std::fs::create_dir(folder.join("conf.d")).unwrap();
    std::fs::write(
        folder.join("a.toml"),
        "limits.max_qos = 1\nlimits.topic_levels = 9\n",
    )
    .unwrap();
    std::fs::write(folder.join("conf.d/b.toml"), "\nlimits.max_qos = 0\n").unwrap();
    std::fs::write(folder.join("conf.d/c.txt"), "not a configuration\n").unwrap();
    let output = run(
        &folder,
        &["config", "check", "-c", "a.toml"],
        &[("THRUM_NODE__NAME", "n1")],
    );
    check(
        &output,
        0,
        "node.name = \"n1\" (default \"thrum\")  # env THRUM_NODE__NAME\n\
         limits.topic_levels = 9 (default 128)  # a.toml:2\n\
         limits.max_qos = 0 (default 2)  # conf.d/b.toml:2\n",
        "valid (a.toml, conf.d/b.toml read); what differs from the defaults:\n",
    );
}

#[test]
fn check_of_a_wrong_file_prints_all_errors_and_fails() {
    let folder = folder("check_wrong");
    std::fs::write(folder.join("a.toml"), "lisners = 1\nsys.interval = true\n").unwrap();
    check(
        &run(&folder, &["config", "check", "-c", "a.toml"], &[]),
        2,
        "",
        "error: a.toml:1:1: unknown key \"lisners\", did you mean \"listeners\"?\n  \
         1 | lisners = 1\n    | ^^^^^^^\n\
         error: a.toml:2:16: sys.interval: expected a duration such as \"10s\", \"1h30m\", \"7d\" or a number of \
         seconds, found true\n  \
         2 | sys.interval = true\n    |                ^^^^\n",
    );
}

#[test]
fn show_prints_every_value_and_its_origin() {
    let folder = folder("show");
    std::fs::write(folder.join("a.toml"), "[sys]\ninterval = \"1m\"\n").unwrap();
    let output = run(
        &folder,
        &["config", "show", "--origin", "-c", "a.toml"],
        &[],
    );
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(printed.starts_with("[node]\nname = \"thrum\""), "{printed}");
    assert!(
        printed.contains("\n[sys]\ninterval = \"1m\"                              # a.toml:2\n"),
        "{printed}"
    );
    assert!(printed.contains("# default\n"), "{printed}");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn completion_man_and_version_print_to_standard_output() {
    let folder = folder("print");
    for (args, part) in [
        (["completion", "bash"].as_slice(), "complete -F _thrum"),
        (&["completion", "fish"], "complete -c thrum"),
        (&["man"], ".TH thrum 1"),
        (&["version"], "thrum 0."),
        (&["--version"], "thrum 0."),
    ] {
        let output = run(&folder, args, &[]);
        assert!(
            String::from_utf8_lossy(&output.stdout).contains(part),
            "{args:?}"
        );
        assert_eq!(output.status.code(), Some(0), "{args:?}");
    }
}
