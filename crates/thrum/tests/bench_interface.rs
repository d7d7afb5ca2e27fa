//! Benchmarks that a broker starts for its management interface, with the real program.
#![expect(clippy::unwrap_used, reason = "a failed setup should panic")]
#![expect(
    clippy::disallowed_methods,
    reason = "the tests wait for other processes"
)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Longest wait for something.
const PATIENCE: Duration = Duration::from_mins(1);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(100);

/// A broker with a data directory, in a folder of its own.
struct Broker {
    folder: PathBuf,
    child: Child,
}

impl Broker {
    fn start(name: &str, file: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("benchmarks-{name}"));
        std::fs::remove_dir_all(&folder).ok();
        std::fs::create_dir_all(folder.join("data")).unwrap();
        std::fs::write(folder.join("thrum.toml"), file).unwrap();
        let child = Self::spawn(&folder);
        Self { folder, child }
    }

    fn spawn(folder: &Path) -> Child {
        let mut log = std::fs::File::options();
        let log = log
            .append(true)
            .create(true)
            .open(folder.join("log"))
            .unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_thrum"))
            .current_dir(folder)
            .env_remove("RUST_LOG")
            .env("THRUM_LISTENERS__HTTP__BIND", "[]")
            .args(["serve", "-c", "thrum.toml", "--data-dir", "data"])
            .args(["--workers", "1", "--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let is_ready = |line: std::io::Result<String>| line.unwrap().contains("mqtt://");
        assert!(lines.any(is_ready), "it becomes ready");
        // Nobody reads further, and it writes no more.
        child
    }

    fn kill_and_restart(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.child = Self::spawn(&self.folder);
    }

    /// A request over the control socket: the status and the body of its answer.
    fn ask(&self, method: &str, path: &str, body: &Value) -> (u16, String) {
        let mut stream = UnixStream::connect(self.folder.join("data/control.sock")).unwrap();
        let body = body.to_string();
        let len = body.len();
        write!(
            stream,
            "{method} /api/v1/benchmarks{path} HTTP/1.1\r\nHost: thrum\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {len}\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, body.to_owned())
    }

    fn json(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let (status, body) = self.ask(method, path, body);
        (status, serde_json::from_str(&body).unwrap_or(Value::Null))
    }

    fn get(&self, path: &str) -> Value {
        let (status, body) = self.json("GET", path, &Value::Null);
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    /// Starts a run; returns its identifier.
    fn begin(&self, order: &Value) -> String {
        let (status, body) = self.json("POST", "/runs", order);
        assert_eq!(status, 201, "{body}");
        body["id"].as_str().unwrap().to_owned()
    }

    /// Waits until a run is as wanted.
    fn wait(&self, id: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let began = Instant::now();
        loop {
            let run = self.get(&format!("/runs/{id}"));
            if is_so(&run) {
                return run;
            }
            assert!(began.elapsed() < PATIENCE, "{run}");
            std::thread::sleep(LOOK);
        }
    }

    fn ended(&self, id: &str) -> Value {
        self.wait(id, |run| run["ended_at"].is_string())
    }

    /// Processes that the broker has started.
    fn children(&self) -> Vec<u32> {
        let of = |pid: u32| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            let rest = stat.rsplit_once(") ")?.1;
            rest.split(' ').nth(1)?.parse::<u32>().ok()
        };
        let pids = std::fs::read_dir("/proc").unwrap().flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter(|pid| of(*pid) == Some(self.child.id()))
            .collect()
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
        if !std::thread::panicking() {
            std::fs::remove_dir_all(&self.folder).ok();
        }
    }
}

/// A short run of some devices; the user does not matter to a broker for clients of this machine.
fn devices(duration_secs: u32) -> Value {
    json!({
        "scenario": "devices",
        "clients": 30,
        "duration_secs": duration_secs,
        "name": "a name",
        "note": "a note",
        "username": "someone",
        "password": "hidden-password",
    })
}

/// Files below a folder that contain a text.
fn files_with(folder: &Path, text: &[u8]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_with(&path, text));
        } else if let Ok(bytes) = std::fs::read(&path)
            && bytes.windows(text.len()).any(|part| part == text)
        {
            found.push(path);
        }
    }
    found
}

/// A run of some devices has a verdict, figures, samples and files.
fn check_end(broker: &Broker, id: &str) {
    let run = broker.ended(id);
    assert_eq!(run["state"], "done", "{run}");
    let figures = &run["figures"];
    assert!(figures["sent_per_sec"].as_f64().unwrap() > 10.0, "{run}");
    assert_eq!(
        (&figures["duplicates"], &run["note"]),
        (&json!(0), &json!("a note"))
    );
    assert!(run["verdict"]["valid"].is_boolean(), "{run}");
    let command = run["command"].as_str().unwrap();
    assert!(
        command.starts_with("thrum bench run devices --duration=3s --clients=30 "),
        "{command}"
    );

    let samples = broker.get(&format!("/runs/{id}/samples?after=0"));
    let items = samples["items"].as_array().unwrap();
    assert!(items.len() >= 8, "{samples}");
    assert!(
        items
            .iter()
            .any(|of| of["stage"] == "hold" && of["p50_ms"].is_number()),
        "{samples}"
    );
    let last = samples["next"].as_u64().unwrap();
    let rest = broker.get(&format!("/runs/{id}/samples?after={last}"));
    assert_eq!(
        (&rest["items"], &rest["state"]),
        (&json!([]), &json!("done"))
    );
    for name in run["files"].as_array().unwrap() {
        let name = name.as_str().unwrap();
        let (status, text) = broker.ask("GET", &format!("/runs/{id}/files/{name}"), &Value::Null);
        assert!(status == 200 && text.len() > 100, "{name}: {status}");
    }
    assert_eq!(run["files"].as_array().unwrap().len(), 8, "{run}");
}

#[test]
fn what_can_be_run_is_listed_and_checked() {
    let broker = Broker::start("whole", "");
    let limits = broker.get("/limits");
    assert_eq!(limits["available"], true, "{limits}");
    assert!(limits["cores"].as_u64() <= limits["cores_of"].as_u64());
    let scenarios = broker.get("/scenarios")["items"].clone();
    let devices_of_all = scenarios.as_array().unwrap().iter();
    let listed = devices_of_all
        .clone()
        .find(|of| of["name"] == "devices")
        .unwrap();
    assert_eq!(
        (&listed["group"], &listed["title"]),
        (&json!("try"), &json!("Simulate 100 devices"))
    );
    assert_eq!(
        devices_of_all.filter(|of| of["group"] == "basic").count(),
        4
    );
    let (status, check) = broker.json("POST", "/check", &devices(3));
    assert_eq!((status, &check["ok"]), (200, &json!(true)), "{check}");
    assert!(check["plan"]["clients"].as_u64().unwrap() >= 20, "{check}");
}

#[test]
fn a_run_is_started_watched_kept_and_compared() {
    let broker = Broker::start("runs", "");
    let first = broker.begin(&devices(3));
    let (status, other) = broker.json("POST", "/runs", &devices(3));
    assert_eq!(status, 409, "{other}");
    assert!(
        other["detail"].as_str().unwrap().contains(&first),
        "{other}"
    );
    broker.wait(&first, |run| {
        run["stage"] == "hold" || run["ended_at"].is_string()
    });
    let children = broker.children();
    for pid in &children {
        let words = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        assert!(!words.contains("hidden-password"), "{words}");
    }
    check_end(&broker, &first);
    assert_eq!(
        files_with(&broker.folder, b"hidden-password"),
        Vec::<PathBuf>::new()
    );

    let second = broker.begin(&devices(3));
    assert_eq!(broker.ended(&second)["state"], "done");
    let compared = broker.get(&format!("/compare?runs={first},{second}"));
    let rows = compared["rows"].as_array().unwrap();
    let lost = rows.iter().find(|row| row["what"] == "lost").unwrap();
    assert_eq!(
        (lost["values"].as_array().unwrap().len(), &lost["better"]),
        (2, &json!("lower"))
    );
    assert_eq!(compared["runs"][1]["id"], json!(second));
    let baseline = json!({ "baseline": true });
    let (status, _) = broker.ask("POST", &format!("/runs/{first}/baseline"), &baseline);
    assert_eq!(status, 204);
    assert_eq!(broker.get(&format!("/runs/{first}"))["baseline"], true);
    let (status, _) = broker.ask("DELETE", &format!("/runs/{second}"), &Value::Null);
    assert_eq!(
        (
            status,
            broker.get("/runs")["items"].as_array().unwrap().len()
        ),
        (204, 1)
    );
}

#[test]
fn a_run_under_way_takes_changes_which_its_samples_and_its_report_have() {
    let broker = Broker::start("changed", "");
    let id = broker.begin(&devices(600));
    let change = |body: Value| broker.ask("POST", &format!("/runs/{id}/change"), &body).0;
    let marks = || {
        let samples = broker.get(&format!("/runs/{id}/samples?after=0"));
        let samples = samples["items"].as_array().unwrap().clone();
        let marks = samples.iter().flat_map(|sample| {
            let marks = sample["marks"].as_array().unwrap();
            marks.iter().map(|mark| mark["text"].as_str().unwrap())
        });
        marks.collect::<Vec<_>>().join("; ")
    };
    broker.wait(&id, |run| run["stage"] == "hold");
    assert_eq!(change(json!({ "extend_secs": 4_000 })), 409, "an hour");
    for body in [
        json!({ "rate": 1.5 }),
        json!({ "paused": true }),
        json!({ "extend_secs": 60 }),
        json!({ "note": "the fan is off" }),
    ] {
        assert_eq!(change(body.clone()), 202, "{body}");
    }
    let expected =
        "a note; rate 150 % of the planned one; paused; hold extended by 1m00s; the fan is off";
    broker.wait(&id, |_| marks() == expected);
    let run = broker.get(&format!("/runs/{id}"));
    assert_eq!(run["duration_secs"], 660.0, "{run}");
    // It is paused: after what was on its way nothing is sent.
    broker.wait(&id, |run| {
        let samples = broker.get(&format!("/runs/{id}/samples?after=0"));
        let last = samples["items"].as_array().unwrap().last().unwrap().clone();
        last["sent_per_sec"] == 0.0 && last["clients"] == run["clients"]
    });
    assert_eq!(change(json!({ "paused": false })), 202);
    broker.wait(&id, |_| marks().ends_with("; resumed"));
    assert_eq!(
        broker
            .ask("POST", &format!("/runs/{id}/stop"), &Value::Null)
            .0,
        202
    );
    let run = broker.ended(&id);
    assert_eq!(run["verdict"]["changed"], true, "{run}");
    let (status, report) = broker.ask(
        "GET",
        &format!("/runs/{id}/files/result.json"),
        &Value::Null,
    );
    assert_eq!(status, 200);
    assert!(report.contains("rate 150 % of the planned one"), "{report}");
    assert_eq!(change(json!({ "rate": 1.1 })), 409, "it is over");
}

#[test]
fn a_run_is_extended_before_its_hold_has_begun_and_not_while_it_is_stopped() {
    let broker = Broker::start("extended", "");
    let toml = format!(
        "name = \"slow\"\nconnect_rate = 5\nstages = [\"hold 3s\", \"drain 1s\"]\n{}",
        "[groups.idle]\nclients = 15\n"
    );
    let id = broker.begin(&json!({ "toml": toml }));
    broker.wait(&id, |run| run["stage"] == "ramp");
    let change = |body: Value| broker.ask("POST", &format!("/runs/{id}/change"), &body).0;
    assert_eq!(change(json!({ "extend_secs": 600 })), 202);
    let run = broker.wait(&id, |run| run["stage"] == "hold");
    assert_eq!(run["duration_secs"], 603.0, "{run}");
    // It would be over without the extension.
    let held = |run: &Value| {
        let stages = run["stages"].as_array().unwrap().clone();
        let hold = stages.iter().find(|stage| stage["name"] == "hold").cloned();
        hold.map_or(0.0, |hold| {
            hold["to_secs"].as_f64().unwrap() - hold["from_secs"].as_f64().unwrap()
        })
    };
    broker.wait(&id, |run| held(run) > 4.5);
    broker.ask("POST", &format!("/runs/{id}/stop"), &Value::Null);
    assert_eq!(
        change(json!({ "extend_secs": 60 })),
        409,
        "it is being stopped"
    );
    broker.ended(&id);
}

#[test]
fn a_run_that_is_stopped_ends_with_its_report_and_one_that_is_cut_off_leaves_nothing_running() {
    let mut broker = Broker::start("stopped", "");
    let id = broker.begin(&devices(600));
    broker.wait(&id, |run| run["stage"] == "hold");
    let (status, _) = broker.ask("DELETE", &format!("/runs/{id}"), &Value::Null);
    assert_eq!(status, 409, "it is under way");
    assert_eq!(
        broker
            .ask("POST", &format!("/runs/{id}/stop"), &Value::Null)
            .0,
        202
    );
    let run = broker.ended(&id);
    assert_eq!(run["state"], "stopped", "{run}");
    assert!(
        run["figures"].is_object() && run["error"].is_null(),
        "{run}"
    );
    let files = run["files"].as_array().unwrap();
    assert!(files.contains(&json!("report.html")), "{run}");
    assert_eq!(
        broker
            .ask("POST", &format!("/runs/{id}/stop"), &Value::Null)
            .0,
        409
    );

    let id = broker.begin(&devices(600));
    broker.wait(&id, |run| run["state"] == "running");
    let children = broker.children();
    assert_eq!(children.len(), 1);
    broker.kill_and_restart();
    let began = Instant::now();
    let lives = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    };
    while children.iter().any(lives) {
        assert!(
            began.elapsed() < PATIENCE,
            "the benchmark outlives the broker"
        );
        std::thread::sleep(LOOK);
    }
    let run = broker.get(&format!("/runs/{id}"));
    assert_eq!(run["state"], "failed", "{run}");
    assert!(
        run["error"].as_str().unwrap().contains("the broker ended"),
        "{run}"
    );
    let samples = broker.get(&format!("/runs/{id}/samples"));
    assert!(
        !samples["items"].as_array().unwrap().is_empty(),
        "{samples}"
    );
}

#[test]
fn a_run_ends_with_a_broker_that_stops_and_says_so() {
    let mut broker = Broker::start("stops", "");
    let id = broker.begin(&devices(600));
    broker.wait(&id, |run| run["state"] == "running");
    let pid = i32::try_from(broker.child.id()).unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    broker.child.wait().unwrap();
    let file = broker.folder.join(format!("data/benchmarks/{id}/run.json"));
    let run: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    assert_eq!(run["state"], "failed", "{run}");
    let error = run["error"].as_str().unwrap();
    assert!(error.contains("the broker ended"), "{run}");
}

#[test]
fn checks_that_wait_for_each_other_do_not_hold_up_a_stop() {
    let broker = Broker::start("busy", "");
    let id = broker.begin(&devices(600));
    let order = json!({ "scenario": "sharedsub-50K-500", "clients": 49_000 });
    std::thread::scope(|scope| {
        let check = || broker.json("POST", "/check", &order);
        let checks: Vec<_> = (0..16).map(|_| scope.spawn(check)).collect();
        let began = Instant::now();
        let (status, _) = broker.ask("POST", &format!("/runs/{id}/stop"), &Value::Null);
        assert_eq!(status, 202);
        assert!(began.elapsed() < Duration::from_secs(5));
        for check in checks {
            let (status, answer) = check.join().unwrap();
            let is_told = status == 200 || answer["retry_after_secs"].is_u64();
            assert!(is_told, "{status}: {answer}");
        }
    });
    assert_eq!(broker.ended(&id)["state"], "stopped");
    let large = json!({ "scenario": "conn-tcp-10K-100", "clients": 2_000_000 });
    let (status, check) = broker.json("POST", "/check", &large);
    assert_eq!((status, &check["plan"]), (200, &Value::Null), "{check}");
    let finding = check["findings"][0]["what"].as_str().unwrap();
    assert!(finding.contains("2000000 clients are more than"), "{check}");
}

/// Orders that a run may not have, and words of the reason.
fn refused_orders(group: &str) -> Vec<(Value, &'static str)> {
    vec![
        (
            json!({ "scenario": "devices" }),
            "more than the 50 of a run",
        ),
        (
            json!({ "scenario": "p2p-5" }),
            "more than the 20 s of a run",
        ),
        (
            json!({ "scenario": "p2p-5", "duration_secs": 1, "target": "mqtt://10.0.0.1" }),
            "no other broker",
        ),
        (
            json!({ "scenario": "p2p-5", "duration_secs": 1, "target": "gopher://x" }),
            "cannot connect to",
        ),
        (json!({ "scenario": "nonsense" }), "no scenario named"),
        (json!({ "scenario": "docs-fanin" }), "a sweep of 5 runs"),
        (
            json!({ "toml": "[groups.a]\nclient = 1\n" }),
            "did you mean",
        ),
        (
            json!({ "toml": format!("{group}username = \"u\"\npassword = \"p\"\n") }),
            "has a password",
        ),
        (
            json!({ "toml": format!("{group}[[faults]]\nat = \"1s\"\nhook = \"touch x\"\n") }),
            "runs a command",
        ),
        (
            json!({ "toml": format!("{group}publish = {{ topic = \"t\", payload = \"file:/etc/hostname\" }}\n") }),
            "sends a file",
        ),
    ]
}

#[test]
fn what_a_run_may_not_do_is_refused_with_a_remedy() {
    let file = "[management.benchmarks]\nclients = 50\nduration = \"20s\"\nother_targets = false\n";
    let broker = Broker::start("refused", file);
    let group = "[groups.a]\nclients = 1\n";
    for (order, word) in refused_orders(group) {
        let (status, check) = broker.json("POST", "/check", &order);
        assert_eq!(
            (status, &check["ok"]),
            (200, &json!(false)),
            "{order}: {check}"
        );
        let findings = check["findings"].as_array().unwrap().iter();
        let mut errors = findings.filter(|finding| finding["level"] == "error");
        let is_it = |finding: &Value| finding["what"].as_str().unwrap().contains(word);
        assert!(errors.clone().any(is_it), "{order}: {check}");
        assert!(errors.all(|finding| !finding["remedy"].as_str().unwrap().is_empty()));
        let (status, refused) = broker.json("POST", "/runs", &order);
        assert_eq!(status, 422, "{order}: {refused}");
        assert!(
            refused["detail"].as_str().unwrap().contains(word),
            "{refused}"
        );
    }
    assert_eq!(broker.get("/runs")["items"], json!([]));
    let own = "[groups.a]\nclients = 2\npublish = { topic = \"t/{i}\" }\n";
    let stages = "stages = [\"warmup 0s\", \"hold 1s\", \"drain 1s\"]\n";
    let id = broker.begin(&json!({ "toml": format!("{stages}{own}"), "name": "mine" }));
    let run = broker.ended(&id);
    assert_eq!(
        (&run["state"], &run["name"]),
        (&json!("done"), &json!("mine")),
        "{run}"
    );
    assert_eq!(
        run["figures"]["latency"],
        Value::Null,
        "QoS 0 has no acknowledgement: {run}"
    );
}

#[test]
fn a_run_that_takes_too_much_memory_or_reaches_nobody_fails_with_the_reason() {
    let broker = Broker::start("failed", "");
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let order = json!({
        "scenario": "p2p-5",
        "duration_secs": 1,
        "target": format!("mqtt://me:hidden-password@127.0.0.1:{port}"),
    });
    let id = broker.begin(&order);
    let run = broker.ended(&id);
    assert_eq!(
        (&run["state"], &run["figures"]),
        (&json!("failed"), &Value::Null),
        "{run}"
    );
    assert!(
        run["remedy"]
            .as_str()
            .unwrap()
            .contains("listens at the target"),
        "{run}"
    );
    assert!(!run.to_string().contains("hidden-password"), "{run}");

    drop(broker);
    let small = "[management.benchmarks]\nmemory = \"32MiB\"\n";
    let broker = Broker::start("memory", small);
    let many = json!({ "scenario": "p2p-1K", "duration_secs": 30 });
    let (status, answer) = broker.json("POST", "/runs", &many);
    // The check is under the same limit.
    let text = match status {
        201 => broker.ended(answer["id"].as_str().unwrap())["error"].to_string(),
        _ => answer["detail"].to_string(),
    };
    assert!(text.contains("memory"), "{status} {text}");
}
