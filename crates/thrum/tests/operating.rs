//! The configuration of a running broker, its listeners, its log and its alarms, with the commands
//! that people use.
#![expect(clippy::unwrap_used, reason = "a failed setup should panic")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use serde_json::{Value, json};

/// Longest wait for a line.
const PATIENCE: Duration = Duration::from_secs(20);

/// A broker with a file and a data directory, in a folder of its own.
struct Broker {
    folder: PathBuf,
    child: Child,
    port: String,
    log: Receiver<String>,
}

fn thrum(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_thrum"));
    command
        .current_dir(folder)
        .env_remove("RUST_LOG")
        .env("NO_COLOR", "1")
        .env("THRUM_LISTENERS__HTTP__BIND", "[]");
    command
}

fn lines(from: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = sync_channel(10_000);
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

impl Broker {
    /// With these lines in its file.
    fn start(name: &str, file: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("operating-{name}"));
        std::fs::remove_dir_all(&folder).ok();
        std::fs::create_dir_all(folder.join("data")).unwrap();
        std::fs::write(folder.join("thrum.toml"), file).unwrap();
        Self::start_in(folder)
    }

    fn start_in(folder: PathBuf) -> Self {
        let mut child = thrum(&folder)
            .args([
                "serve",
                "-c",
                "thrum.toml",
                "--data-dir",
                "data",
                "--workers",
                "1",
            ])
            .args(["--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output = lines(child.stdout.take().unwrap());
        let log = lines(child.stderr.take().unwrap());
        let port = loop {
            let line = output.recv_timeout(PATIENCE).expect("it becomes ready");
            if let Some((_, rest)) = line.split_once("mqtt://127.0.0.1:") {
                break rest.split_whitespace().next().unwrap().to_owned();
            }
        };
        Self {
            folder,
            child,
            port,
            log,
        }
    }

    /// Ends it, and starts it again on the same data.
    fn restarted(mut self) -> Self {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let folder = std::mem::take(&mut self.folder);
        drop(self);
        Self::start_in(folder)
    }

    fn run(&self, line: &str) -> Output {
        let words = line.split_whitespace();
        thrum(&self.folder).args(words).output().unwrap()
    }

    fn printed(&self, line: &str) -> String {
        let output = self.run(line);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{line}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, line: &str) -> Value {
        serde_json::from_str(&self.printed(&format!("{line} -o json --data-dir data"))).unwrap()
    }

    /// What a line that fails says.
    fn refused(&self, line: &str) -> String {
        let output = self.run(line);
        assert!(!output.status.success(), "{line}");
        String::from_utf8(output.stderr).unwrap()
    }

    fn logged(&self, words: &str) -> String {
        loop {
            let line = self.log.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("not logged: {words}"));
            if line.contains(words) {
                return line;
            }
        }
    }

    /// A request over the control socket: the status and the body of its answer.
    fn http(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let mut stream = UnixStream::connect(self.folder.join("data/control.sock")).unwrap();
        let body = body.to_string();
        let len = body.len();
        write!(
            stream,
            "{method} /api/v1{path} HTTP/1.1\r\nHost: thrum\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {len}\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap())
    }

    fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.join(name)).unwrap()
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
        if !self.folder.as_os_str().is_empty() && !std::thread::panicking() {
            std::fs::remove_dir_all(&self.folder).ok();
        }
    }
}

#[test]
fn a_key_that_is_set_is_in_force_at_once_and_after_a_restart() {
    let broker = Broker::start("set", "[limits]\nclient = { queue = 7 }\n");
    let dry = broker.printed("config set limits.max_packet 2MB --dry-run --data-dir data");
    assert_eq!(dry, "limits.max_packet: \"1MiB\" -> \"2MB\"\n");
    assert!(!broker.folder.join("data/managed.toml").exists());
    let output = broker.run("config set limits.max_packet 2MB --data-dir data");
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "in force, as version 1\n"
    );
    let written = broker.file("data/managed.toml");
    assert!(
        written.contains("\n[limits]\nmax_packet = \"2MB\"\n"),
        "{written}"
    );
    assert!(written.contains("# version 1, "), "{written}");
    broker.logged("configuration reloaded");
    // The file of the user wins, and is named with its line.
    let pinned = broker.refused("config set limits.client.queue 9 --data-dir data");
    assert!(pinned.contains("thrum.toml:2"), "{pinned}");
    assert!(pinned.contains("change it there and reload"), "{pinned}");
    let broker = broker.restarted();
    let shown = "config show --origin -c thrum.toml";
    let all = thrum(&broker.folder)
        .args(shown.split(' '))
        .env("THRUM_NODE__DATA_DIR", "data")
        .output()
        .unwrap();
    let all = String::from_utf8(all.stdout).unwrap();
    let line = all
        .lines()
        .find(|line| line.starts_with("max_packet ="))
        .unwrap();
    assert!(
        line.contains("\"2MB\"") && line.contains("# managed data/managed.toml:"),
        "{line}"
    );
    let unset = broker.json("config set limits.max_packet --unset");
    assert_eq!(unset["differences"][0]["after"], "1MiB");
    assert_eq!(unset["version"], 2);
    assert!(!broker.file("data/managed.toml").contains("max_packet"));
}

#[test]
fn a_change_is_refused_if_anything_has_changed_since_its_plan() {
    let broker = Broker::start("plan", "");
    let changes = json!({ "limits.max_packet": "2MB" });
    let plan = |changes: &Value| {
        let (status, plan) = broker.http("POST", "/config/plan", &json!({ "changes": changes }));
        assert_eq!(status, 200, "{plan}");
        plan["fingerprint"].clone()
    };
    let apply = |changes: &Value, fingerprint: &Value| {
        let body = json!({ "changes": changes, "fingerprint": fingerprint });
        broker.http("POST", "/config/apply", &body)
    };
    let fingerprint = plan(&changes);
    let (status, refused) = apply(&json!({ "limits.max_packet": "3MB" }), &fingerprint);
    assert_eq!(status, 409, "another change was planned: {refused}");
    std::fs::write(
        broker.folder.join("thrum.toml"),
        "limits.client.queue = 5\n",
    )
    .unwrap();
    let (status, refused) = apply(&changes, &fingerprint);
    assert_eq!(
        (status, &refused["title"]),
        (409, &json!("changed meanwhile"))
    );
    assert!(!broker.folder.join("data/managed.toml").exists());
    let (status, applied) = apply(&changes, &plan(&changes));
    assert_eq!((status, &applied["version"]), (200, &json!(1)), "{applied}");
    // The change of the file is in force with it, as after a reload.
    let (_, key) = broker.http("GET", "/config/limits.client.queue", &Value::Null);
    assert_eq!((&key["value"], &key["pinned"]), (&json!(5), &json!(true)));
}

#[test]
fn an_earlier_version_is_returned_to() {
    let broker = Broker::start("versions", "");
    for size in ["2MB", "3MB"] {
        broker.printed(&format!(
            "config set limits.max_packet {size} --data-dir data"
        ));
    }
    let (status, back) = broker.http("POST", "/config/rollback", &json!({ "version": 1 }));
    assert_eq!((status, &back["version"]), (200, &json!(3)), "{back}");
    assert_eq!(back["differences"][0]["after"], "2MB");
    let (_, list) = broker.http("GET", "/config/versions", &Value::Null);
    let versions = list["versions"].as_array().unwrap().iter();
    let numbers: Vec<_> = versions
        .map(|one| one["version"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, [3, 2, 1]);
    let (_, empty) = broker.http("POST", "/config/rollback", &json!({ "version": 0 }));
    assert_eq!(empty["differences"][0]["after"], "1MiB");
    let (status, missing) = broker.http("POST", "/config/rollback", &json!({ "version": 9 }));
    assert_eq!(status, 404, "{missing}");
    let log = broker.printed("audit ls --action config.* --data-dir data");
    assert_eq!(log.matches("config.rollback").count(), 2, "{log}");
}

#[test]
fn a_rollback_takes_no_edits_of_files_with_it_and_is_what_was_planned() {
    let broker = Broker::start("rollback-edited", "");
    broker.printed("config set limits.max_packet 2MB --data-dir data");
    let plan = || {
        let (status, plan) = broker.http("POST", "/config/plan", &json!({ "version": 0 }));
        assert_eq!(status, 200, "{plan}");
        plan
    };
    let before = plan();
    assert_eq!(before["edited"], json!([]), "{before}");
    let edit = |text: &str| std::fs::write(broker.folder.join("thrum.toml"), text).unwrap();
    edit("limits.client.queue = 5\n");
    let back = broker.run("config rollback --data-dir data");
    let said = String::from_utf8_lossy(&back.stderr);
    assert_eq!(back.status.code(), Some(6), "{said}");
    for part in ["limits.client.queue", "thrum config reload"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let (status, refused) = broker.http("POST", "/config/rollback", &json!({ "version": 0 }));
    assert_eq!(
        (status, &refused["title"]),
        (409, &json!("files were edited"))
    );
    let late = json!({ "version": 0, "fingerprint": before["fingerprint"] });
    let (status, refused) = broker.http("POST", "/config/rollback", &late);
    assert_eq!(
        (status, &refused["title"]),
        (409, &json!("changed meanwhile"))
    );
    let (_, key) = broker.http("GET", "/config/limits.max_packet", &Value::Null);
    assert_eq!(key["value"], "2MB", "nothing was changed");
    // Who has seen the edit may take it over.
    let now = plan();
    assert_eq!(now["edited"], json!(["limits.client.queue"]), "{now}");
    let seen = json!({ "version": 0, "fingerprint": now["fingerprint"] });
    let (status, done) = broker.http("POST", "/config/rollback", &seen);
    assert_eq!(status, 200, "{done}");
    // An edit of the file that a rollback replaces is none.
    std::fs::write(
        broker.folder.join("data/managed.toml"),
        "limits.max_packet = \"9MB\"\n",
    )
    .unwrap();
    broker.printed("config rollback 1 --data-dir data");
    let (_, key) = broker.http("GET", "/config/limits.max_packet", &Value::Null);
    assert_eq!(key["value"], "2MB");
}

#[test]
fn a_rollback_names_the_keys_that_a_file_sets_now() {
    let broker = Broker::start("rollback-pinned", "");
    broker.printed("config set limits.max_packet 2MB --data-dir data");
    broker.printed("config set limits.max_packet --unset --data-dir data");
    std::fs::write(
        broker.folder.join("thrum.toml"),
        "limits.max_packet = \"4MB\"\n",
    )
    .unwrap();
    broker.printed("config reload --data-dir data");
    let (_, plan) = broker.http("POST", "/config/plan", &json!({ "version": 1 }));
    assert_eq!(plan["overridden"][0]["key"], "limits.max_packet", "{plan}");
    // No version differs from another in what is in force, and the plan is of one of them.
    let other = json!({ "version": 0, "fingerprint": plan["fingerprint"] });
    let (status, refused) = broker.http("POST", "/config/rollback", &other);
    assert_eq!(
        (status, &refused["title"]),
        (409, &json!("changed meanwhile"))
    );
    let back = broker.run("config rollback 1 --data-dir data");
    let said = String::from_utf8_lossy(&back.stderr);
    assert_eq!(back.status.code(), Some(0), "{said}");
    assert!(
        said.contains("no effect: limits.max_packet is set by thrum.toml:1"),
        "{said}"
    );
}

#[test]
fn a_damaged_file_of_set_keys_is_cured_by_a_rollback() {
    let broker = Broker::start("damaged", "");
    broker.printed("config set limits.max_packet 2MB --data-dir data");
    let good = broker.file("data/managed.toml");
    for damaged in [b"[limits\n".as_slice(), b"limits.max_packet = \"\xff\"\n"] {
        std::fs::write(broker.folder.join("data/managed.toml"), damaged).unwrap();
        let set = broker.run("config set limits.client.queue 9 --data-dir data");
        let said = String::from_utf8_lossy(&set.stderr);
        assert_eq!(set.status.code(), Some(6), "{said}");
        for part in [
            "managed.toml",
            "thrum config rollback",
            "thrum config versions",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(!said.contains("correct the key"), "{said}");
        let back = broker.run("config rollback --data-dir data");
        let said = String::from_utf8_lossy(&back.stderr);
        assert_eq!(back.status.code(), Some(0), "{said}");
        assert!(said.contains("in force, as version "), "{said}");
        let (_, good) = good.split_once("\n\n").unwrap();
        assert!(broker.file("data/managed.toml").ends_with(good));
    }
    let versions = broker.printed("config versions -o json --data-dir data");
    assert_eq!(versions.lines().count(), 5, "{versions}");
    let damaged = broker.refused("config rollback 2 --data-dir data");
    assert!(damaged.contains("version 2 is damaged"), "{damaged}");
    let back = broker.printed("config rollback 0 --data-dir data");
    assert_eq!(back, "limits.max_packet: \"2MB\" -> \"1MiB\"\n");
    let missing = broker.run("config rollback 99 --data-dir data");
    assert_eq!(missing.status.code(), Some(3));
}

#[test]
fn a_key_that_is_set_does_not_take_edits_of_files_with_it() {
    let broker = Broker::start("edited", "");
    broker.printed("config set limits.max_packet 2MB --data-dir data");
    std::fs::write(broker.folder.join("data/managed.toml"), "").unwrap();
    let set = broker.run("config set limits.client.queue 9 --data-dir data");
    let said = String::from_utf8_lossy(&set.stderr);
    assert_eq!(set.status.code(), Some(6), "{said}");
    assert!(said.contains("limits.max_packet"), "{said}");
    assert!(said.contains("thrum config reload"), "{said}");
    let (_, key) = broker.http("GET", "/config/limits.max_packet", &Value::Null);
    assert_eq!(key["value"], "2MB");
    // Whoever takes the edit over may go on.
    broker.printed("config reload --data-dir data");
    let set = broker.printed("config set limits.client.queue 9 --data-dir data");
    assert_eq!(set.lines().count(), 1, "{set}");
}

#[test]
fn what_is_wrong_changes_nothing_and_says_why() {
    let broker = Broker::start("wrong", "");
    let misspelt = broker.refused("config set limits.max_paket 2MB --data-dir data");
    assert!(
        misspelt.contains("did you mean \"max_packet\"?"),
        "{misspelt}"
    );
    assert!(misspelt.contains("^^^^^^^^^"), "{misspelt}");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let busy = broker.refused(&format!(
        "config set listeners.more.bind {address} --data-dir data"
    ));
    assert!(busy.contains(&address.to_string()), "{busy}");
    assert!(!broker.folder.join("data/managed.toml").exists());
    let restart = broker.json("config set shared.strategy sticky");
    assert_eq!(restart["restart"], json!(["shared.strategy"]));
}

#[test]
fn a_reload_that_fails_is_an_alarm_until_one_succeeds() {
    let broker = Broker::start("reload", "");
    std::fs::write(broker.folder.join("thrum.toml"), "[limits]\nqueue = 1\n").unwrap();
    let refused = broker.refused("config reload --data-dir data");
    assert!(
        refused.contains("unknown key \"queue\" in [limits]"),
        "{refused}"
    );
    broker.logged("alarm raised alarm=\"reload_failed\"");
    let alarms = broker.run("alarms ls --data-dir data");
    let text = String::from_utf8_lossy(&alarms.stdout).into_owned();
    assert!(
        text.contains("reload_failed") && text.contains("thrum config check"),
        "{text}"
    );
    // The place, and not the line: it may have a secret, and whoever reads alarms may not see it.
    assert!(
        text.contains("thrum.toml:2:1") && !text.contains("queue"),
        "{text}"
    );
    assert!(
        broker
            .printed("status --data-dir data")
            .contains("reload_failed")
    );
    std::fs::write(broker.folder.join("thrum.toml"), "log.level = \"debug\"\n").unwrap();
    let planned = broker.printed("config diff --data-dir data");
    assert_eq!(planned, "log.level: \"info\" -> \"debug\"\n");
    let reloaded = broker.printed("config reload --data-dir data");
    assert_eq!(reloaded, "reloaded; changed: log.level\n");
    broker.logged("alarm cleared");
    let history = broker.printed("alarms history --data-dir data");
    assert!(history.contains("reload_failed"), "{history}");
}

#[test]
fn a_listener_is_stopped_and_started() {
    let broker = Broker::start("listener", "");
    let port = &broker.port;
    let publish = format!("pub -p {port} -t a -m b");
    broker.printed(&publish);
    let stopped = broker.printed("listeners stop mqtt --disconnect --data-dir data");
    assert!(
        stopped.starts_with("mqtt is stopped until the next start"),
        "{stopped}"
    );
    let list = broker.printed("listeners ls --data-dir data");
    assert!(list.contains("stopped"), "{list}");
    assert!(!broker.run(&publish).status.success());
    let started = broker.printed("listeners start mqtt --data-dir data");
    assert_eq!(started, "mqtt is open\n");
    let open = broker.json("listeners ls");
    assert_eq!(
        (&open["state"], &open["name"]),
        (&json!("open"), &json!("mqtt"))
    );
    let missing = broker.refused("listeners stop quic --data-dir data");
    assert!(missing.contains("no listener \"quic\""), "{missing}");
    assert_eq!(broker.printed("certs ls --data-dir data"), "");
}

#[test]
fn the_log_is_read_and_its_level_is_raised_for_a_time() {
    let broker = Broker::start("logs", "");
    let port = &broker.port;
    broker.printed(&format!("pub -p {port} -i meter-17 -t a -m b"));
    let found = broker.printed("logs tail --text meter-17 --data-dir data");
    assert!(found.contains(" INFO thrum_"), "{found}");
    assert!(found.contains("client_id=meter-17"), "{found}");
    let set = broker.printed("logs level thrum_broker=debug --for 1m --data-dir data");
    assert!(
        set.starts_with("info  (log.level)\ndebug  thrum_broker, for "),
        "{set}"
    );
    let back = broker.printed("logs level thrum_broker= --data-dir data");
    assert_eq!(back, "info  (log.level)\n");
    let wrong = broker.refused("logs level loud --data-dir data");
    assert!(wrong.contains("level is one of error, warn"), "{wrong}");
}

#[test]
fn a_key_is_explained_and_the_schema_is_json() {
    let broker = Broker::start("explain", "[limits]\nmax_packet = \"3MB\"\n");
    let text = broker.printed("config explain limits.max_packet -c thrum.toml");
    for part in [
        "value     \"3MB\"",
        "origin    thrum.toml:2; it wins over thrum config set",
        "default   \"1MiB\"",
        "effect    with a reload",
        "variable  THRUM_LIMITS__MAX_PACKET",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(
        broker
            .printed("config explain storage.durability")
            .contains("at a restart")
    );
    let table = broker.printed("config explain alarms");
    assert!(table.contains("alarms.disk_free"), "{table}");
    let wrong = broker.refused("config explain limits.max_paket");
    assert!(wrong.contains("there is no key"), "{wrong}");
    let schema: Value = serde_json::from_str(&broker.printed("config schema")).unwrap();
    assert!(schema["properties"]["limits"].is_object());
}

/// The niceness of the thread of a process with this name.
fn niceness(process: u32, thread: &str) -> Option<i32> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let stats =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("stat")).ok());
    let mut of_it = stats.filter(|stat| stat.contains(&format!("({thread})")));
    // It is the seventeenth field after the name, which may contain spaces.
    of_it
        .next()?
        .rsplit(") ")
        .next()?
        .split(' ')
        .nth(16)?
        .parse()
        .ok()
}

#[test]
fn threads_that_serve_operators_and_passwords_stand_back_behind_workers() {
    let broker = Broker::start("niceness", "");
    let own = niceness(broker.child.id(), "worker-0").unwrap();
    let back = (own + 6).min(19);
    let expected = [("control", back), ("auth-hash", back), ("worker-0", own)];
    let found = || expected.map(|(thread, _)| (thread, niceness(broker.child.id(), thread)));
    // Each does it itself, and may not have begun when the broker is ready.
    let is_done = (0..20).any(|_| {
        broker.printed("status --data-dir data");
        found() == expected.map(|(thread, niceness)| (thread, Some(niceness)))
    });
    assert!(is_done, "{:?}", found());
}

#[test]
fn a_misspelt_key_of_a_filter_is_refused_also_when_the_list_is_empty() {
    let broker = Broker::start("misspelt", "");
    for list in ["users ls", "roles ls", "bans ls"] {
        let listed = broker.printed(&format!("{list} --data-dir data -o json"));
        assert_eq!(listed, "", "{list}");
    }
    let said = broker.refused("users ls --filter nmae=a --data-dir data");
    assert!(said.contains("did you mean name?"), "{said}");
}
