//! `thrum bench` with others: two runs at once on one broker, agents with and without the secret, a
//! run that is ended early.
#![expect(clippy::unwrap_used, reason = "a test may panic")]
#![expect(
    clippy::disallowed_methods,
    reason = "the test waits for other processes"
)]

mod dev_broker;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread::{self, sleep};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use dev_broker::Broker;

/// Exit code of a run that the generator limited: a small machine.
const INVALID: i32 = 7;

/// Longest time of a process.
const LIFE_MAX: Duration = Duration::from_mins(1);

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir();
        let path = path.join(format!("thrum-together-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn bench(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_thrum"));
        command.arg("bench").args(line.split_whitespace());
        command.current_dir(&self.0).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.env_remove("THRUM_AGENT_SECRET");
        command
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

/// Waits for the end of a process, or ends it.
fn end(process: Child) -> Output {
    let id = Pid::from_child(&process);
    let (sender, ended) = mpsc::sync_channel(1);
    // Its output is read meanwhile: a result is longer than a pipe.
    thread::spawn(move || sender.send(process.wait_with_output()));
    let output = ended.recv_timeout(LIFE_MAX).unwrap_or_else(|_| {
        kill_process(id, Signal::KILL).ok();
        ended.recv().unwrap()
    });
    output.unwrap()
}

fn text(output: &Output) -> String {
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    format!("{out}{err}")
}

/// Two runs of one scenario at once; their results.
fn two_runs(name: &str, line: &str, scenario: Option<&str>) -> [Value; 2] {
    let broker = Broker::start();
    let folders = ["one", "other"].map(|of| Folder::new(&format!("{name}-{of}")));
    let runs = folders.each_ref().map(|folder| {
        if let Some(scenario) = scenario {
            fs::write(folder.0.join("scenario.toml"), scenario).unwrap();
        }
        let line = format!(
            "{line} --target mqtt://127.0.0.1:{} --threads 1 --json --no-tui",
            broker.port
        );
        folder.bench(&line).spawn().unwrap()
    });
    runs.map(end).map(|output| {
        let code = output.status.code();
        assert!(
            code == Some(0) || code == Some(INVALID),
            "{code:?} {}",
            text(&output)
        );
        serde_json::from_slice(&output.stdout).unwrap()
    })
}

fn assert_all_delivered(result: &Value) {
    let delivery = &result["delivery"];
    assert_eq!(result["verdict"]["pass"], true, "{}", result["verdict"]);
    assert!(delivery["expected"].as_u64().unwrap() > 50, "{delivery}");
    assert_eq!(delivery["delivered"], delivery["expected"], "{delivery}");
    for name in ["lost", "duplicated", "misdelivered", "reordered"] {
        assert_eq!(delivery[name], 0, "{delivery}");
    }
}

const SHORT: &str = "--duration 3s --warmup 1s --drain 2s";

#[test]
fn two_runs_of_the_catalogue_at_once_do_not_meet() {
    for scenario in [
        "p2p-1K --scale 0.05 --rate 20 --arrivals poisson",
        "sharedsub-1K-5 --publishers 30 --subscribers 3 --rate 10 --arrivals burst",
        "request-response --scale 0.05",
    ] {
        let results = two_runs("catalogue", &format!("run {scenario} {SHORT}"), None);
        for result in results {
            assert_all_delivered(&result);
            assert_eq!(result["delivery"]["foreign"], 0, "{}", result["delivery"]);
        }
    }
}

#[test]
fn two_runs_on_the_same_topics_ignore_each_others_messages() {
    let scenario = r#"
        stages = ["warmup 1s", "hold 3s", "drain 2s"]
        [groups.subscribers]
        clients = 3
        subscribe = { filter = "fixed/#", qos = 1 }
        [groups.publishers]
        clients = 20
        publish = { topic = "fixed/{i}", rate = "10/s", qos = 1, payload = "64B" }
    "#;
    let results = two_runs("fixed", "run scenario.toml", Some(scenario));
    for result in results {
        assert_all_delivered(&result);
        let foreign = result["delivery"]["foreign"].as_u64().unwrap();
        assert!(foreign > 100, "{}", result["delivery"]);
    }
}

/// The lines of a process until the one that holds a text.
fn line_with(lines: &mut BufReader<ChildStderr>, wanted: &str) -> String {
    let mut read = String::new();
    loop {
        let before = read.len();
        assert!(
            lines.read_line(&mut read).unwrap() > 0,
            "no {wanted}: {read}"
        );
        if read[before..].contains(wanted) {
            return read[before..].to_owned();
        }
    }
}

#[test]
fn agents_without_the_secret_of_the_run_are_refused_and_the_others_do_the_run() {
    let (broker, folder) = (Broker::start(), Folder::new("agents"));
    let line = format!(
        "run p2p-1K --scale 0.01 --rate 20 {SHORT} --target mqtt://127.0.0.1:{} --agents 1 --json --no-tui",
        broker.port
    );
    let mut coordinator = folder.bench(&line).spawn().unwrap();
    let mut lines = BufReader::new(coordinator.stderr.take().unwrap());
    let command = line_with(&mut lines, "start on each machine");
    let secret = command.split("THRUM_AGENT_SECRET=").nth(1).unwrap();
    let secret = secret.split_whitespace().next().unwrap().to_owned();
    let port = command.trim().rsplit(':').next().unwrap().to_owned();
    let agent = format!("agent --control mqtt://127.0.0.1:{port} --threads 1 --once");
    for wrong in [None, Some("wrong-secret"), Some(&secret[1..])] {
        let mut command = folder.bench(&agent);
        command.envs(wrong.map(|wrong| ("THRUM_AGENT_SECRET", wrong)));
        let refused = end(command.spawn().unwrap());
        assert!(!refused.status.success());
        assert!(
            text(&refused).contains("refuses the user name or the secret"),
            "{}",
            text(&refused)
        );
        assert!(!text(&refused).contains(&secret));
    }
    fs::write(folder.0.join("secret"), format!("{secret}\n")).unwrap();
    let agent = folder.bench(&format!("{agent} --secret-file secret"));
    let agent = { agent }.spawn().unwrap();
    let mut rest = String::new();
    lines.read_to_string(&mut rest).ok();
    let output = end(coordinator);
    let code = output.status.code();
    assert!(code == Some(0) || code == Some(INVALID), "{code:?} {rest}");
    let agent = end(agent);
    assert!(agent.status.success(), "{}", text(&agent));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_all_delivered(&result);
    assert!(!result.to_string().contains(&secret));
}

#[test]
fn a_secret_that_is_given_is_not_printed() {
    let folder = Folder::new("given");
    let mut command = folder.bench("run p2p-1K --agents 1 --target mqtt://127.0.0.1:1 --no-tui");
    command.env("THRUM_AGENT_SECRET", "a secret of the user");
    let mut coordinator = command.spawn().unwrap();
    let mut lines = BufReader::new(coordinator.stderr.take().unwrap());
    let line = line_with(&mut lines, "start on each machine");
    assert!(
        !line.contains("secret of the user") && !line.contains("SECRET"),
        "{line}"
    );
    coordinator.kill().unwrap();
    coordinator.wait().unwrap();
    let short = end({
        let mut command = folder.bench("run p2p-1K --agents 1");
        command.env("THRUM_AGENT_SECRET", "short");
        command.spawn().unwrap()
    });
    assert!(text(&short).contains("must have 8 to"), "{}", text(&short));
}

#[test]
fn a_run_that_is_ended_in_its_warm_up_says_that_nothing_was_measured() {
    let shown = ended_after(Duration::from_secs(4));
    assert!(
        shown.contains("INTERRUPTED   ended before the hold: nothing was measured"),
        "{shown}"
    );
}

#[test]
fn a_run_that_is_ended_when_its_load_is_about_to_start_ends_as_well() {
    // 20 clients at 10 connections per second; the load starts half a second later.
    for millis in [1_950, 2_050, 2_200, 2_400] {
        ended_after(Duration::from_millis(millis));
    }
}

/// The summary of a run that is ended before its hold.
fn ended_after(wait: Duration) -> String {
    let (broker, folder) = (
        Broker::start(),
        Folder::new(&format!("ended-{}", wait.as_millis())),
    );
    let line = format!(
        "run p2p-1K --scale 0.01 --warmup 30s --duration 5s --target mqtt://127.0.0.1:{} --no-tui",
        broker.port
    );
    let process = folder.bench(&line).spawn().unwrap();
    sleep(wait);
    kill_process(Pid::from_child(&process), Signal::INT).unwrap();
    let output = end(process);
    assert_eq!(output.status.code(), Some(130), "{}", text(&output));
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(shown.contains("INTERRUPTED"), "{shown}");
    for word in ["VALID", "PASS", "FAIL", "0s hold", "achieved"] {
        assert!(!shown.contains(word), "{word}: {shown}");
    }
    shown
}
