//! `thrum config`, `completion`, `man` and `version` as people run them.
#![expect(clippy::unwrap_used, reason = "a failed setup should panic")]

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
    let init = ["config", "init", "thrum.toml"];
    check(&run(&folder, &init, &[]), 0, "", written);
    let text = std::fs::read_to_string(folder.join("thrum.toml")).unwrap();
    check(&run(&folder, &["config", "init"], &[]), 0, &text, "");
    let valid = "valid (thrum.toml read); everything is at its default\n";
    check(
        &run(&folder, &["config", "check", "-c", "thrum.toml"], &[]),
        0,
        "",
        valid,
    );
    let refused =
        "error: cannot write thrum.toml: it exists; choose another name, or move it away\n";
    check(&run(&folder, &init, &[]), 2, "", refused);
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
fn check_prints_the_differences_from_the_defaults_and_their_origin() {
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
        "valid (a.toml, conf.d/b.toml read); differences from the defaults:\n",
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
fn import_prints_a_configuration_and_reports_each_line() {
    let folder = folder("import");
    std::fs::write(
        folder.join("m.conf"),
        "sys_interval 5\npid_file /run/m.pid\n",
    )
    .unwrap();
    let toml = "# Made from m.conf by: thrum config import mosquitto m.conf\n\n\
                [listeners.mqtt]\nbind = \"localhost:1883\"  # mosquitto without a listener\n\n\
                [auth]\nanonymous = \"loopback\"  # mosquitto without a listener\n\n\
                [acl]\ndefault = \"allow\"  # mosquitto without acl_file\n\n\
                [limits]\nmax_packet = \"2MB\"        # mosquitto 2.1 without max_packet_size\n\
                retained_payload = \"2MB\"  # as max_packet\n\
                session_expiry = \"never\"  # mosquitto without persistent_client_expiration\n\n\
                [sys]\ninterval = \"5s\"  # m.conf:1\n";
    let report = "carried over: 1\n  m.conf:1  sys_interval  sys.interval\n\
                  not carried over: 1\n  m.conf:2  pid_file\n      \
                  the process does not go into the background, so its starter knows its process id\n";
    let import = ["config", "import", "mosquitto", "m.conf"];
    check(&run(&folder, &import, &[]), 0, toml, report);
    let into_file = [&import[..], &["-o", "t.toml"]].concat();
    let written = format!("{report}wrote t.toml; next: thrum config check -c t.toml\n");
    check(&run(&folder, &into_file, &[]), 0, "", &written);
    assert_eq!(
        std::fs::read_to_string(folder.join("t.toml")).unwrap(),
        toml
    );
    let refused = "error: cannot write t.toml: it exists; choose another name, or move it away\n";
    check(&run(&folder, &into_file, &[]), 2, "", refused);
    let json = run(&folder, &[&import[..], &["--json"]].concat(), &[]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["toml"], toml);
    assert_eq!(json["counts"]["dropped"], 1);
    assert_eq!(json["options"][0]["keys"][0], "sys.interval");
    assert_eq!(json["options"][0]["line"], 1);
}

#[test]
fn import_of_a_file_that_mosquitto_refuses_prints_all_errors_and_fails() {
    let folder = folder("import_wrong");
    std::fs::write(folder.join("m.conf"), "listener x\nsys_interval\n").unwrap();
    let output = run(&folder, &["config", "import", "mosquitto", "m.conf"], &[]);
    let refused = "error: m.conf:1:10: listener: expected a port from 1 to 65535, or 0 and the path of a Unix socket, \
                   found \"x\"\n  1 | listener x\n    |          ^\n\
                   error: m.conf:2:1: sys_interval has no value; expected a whole number from 0 to 65535\n  \
                   2 | sys_interval\n    | ^^^^^^^^^^^^\n";
    check(&output, 2, "", refused);
    let missing = "error: cannot read n.conf: No such file or directory (os error 2)\n";
    check(
        &run(&folder, &["config", "import", "mosquitto", "n.conf"], &[]),
        2,
        "",
        missing,
    );
}

#[test]
fn an_error_of_toml_shows_no_secret() {
    let folder = folder("toml_secret");
    for text in [
        "[auth.http.a.headers]\nAuthorization = \"Bearer s3cret\n",
        "auth.http.a.headers = { Authorization = \"Bearer s3cret\" \n",
    ] {
        std::fs::write(folder.join("thrum.toml"), text).unwrap();
        let output = run(&folder, &["config", "check", "-c", "thrum.toml"], &[]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            said.contains("thrum.toml:") && said.contains("= ..."),
            "{said}"
        );
        assert!(!said.contains("s3cret"), "{said}");
    }
}

#[test]
fn an_import_to_a_hyphen_is_printed() {
    let folder = folder("import_hyphen");
    std::fs::write(folder.join("m.conf"), "listener 1883\n").unwrap();
    let args = ["config", "import", "mosquitto", "m.conf", "-o", "-"];
    let output = run(&folder, &args, &[]);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains("[listeners.mqtt]"), "{printed}");
    assert!(!folder.join("-").exists());
}

#[test]
fn dynamic_security_of_mosquitto_becomes_users() {
    let folder = folder("import_dynsec");
    let text = r#"{"defaultACLAccess": {"publishClientReceive": true},
        "clients": [{"username": "a", "clientid": "c", "iterations": 101, "salt": "2Ps+EMGlmp9+4pIm",
                     "password": "zcTRIg9qc7EzFECkAbTcjDxf0koXUbAb1aRVM6LZp6RKPqbNFGzn+vbZSe+8AKHKV++GSL8jeXDiKHhrQ6t0VA==",
                     "roles": [{"rolename": "r"}]}],
        "roles": [{"rolename": "r", "acls": [
            {"acltype": "subscribePattern", "topic": "a b/%u/#", "allow": true},
            {"acltype": "publishClientSend", "topic": "100%", "allow": true}]}]}"#;
    std::fs::write(folder.join("d.json"), text).unwrap();
    // Root is warned of a file that only root could read.
    std::fs::write(folder.join("u.jsonl"), "").unwrap();
    let import = [
        "users",
        "import",
        "d.json",
        "--format",
        "mosquitto-dynsec",
        "--users",
        "u.jsonl",
    ];
    let said = "imported 1 user: 1 new, 0 replaced\n\
                note: user \"a\" may connect with every client identifier, not only with \"c\"\n";
    check(&run(&folder, &import, &[]), 0, "", said);
    let users = std::fs::read_to_string(folder.join("u.jsonl")).unwrap();
    for part in [
        "\"$7$101$2Ps+EMGlmp9+4pIm$zcTRIg9q",
        "allow pub 100%%",
        "allow sub \\\"a b/%u/#\\\"",
    ] {
        assert!(users.contains(part), "{part}: {users}");
    }
    std::fs::write(folder.join("d.json"), "[]").unwrap();
    let output = run(&folder, &import, &[]);
    assert_eq!(output.status.code(), Some(2));
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

#[test]
fn check_says_when_a_message_that_can_be_published_cannot_be_retained() {
    let folder = folder("retained_payload");
    let said = |text: &str| {
        std::fs::write(folder.join("a.toml"), text).unwrap();
        let output = run(&folder, &["config", "check", "-c", "a.toml"], &[]);
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8_lossy(&output.stderr).contains("limits.retained_payload")
    };
    assert!(said("[limits]\nmax_packet = \"2MiB\"\n"));
    for fits in [
        "retained_payload = \"2MiB\"",
        "retain_available = false",
        "retained_messages = 0",
    ] {
        assert!(!said(&format!("[limits]\nmax_packet = \"2MiB\"\n{fits}\n")));
    }
}
