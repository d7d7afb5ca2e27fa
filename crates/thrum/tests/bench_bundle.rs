//! Bundles, the figures of other tools, the progress of a series and its end by ^C, with the real
//! program against a broker on the loopback.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod dev_broker;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use dev_broker::Broker;

/// A folder with a broker, both gone at the end.
struct Bench {
    folder: PathBuf,
    broker: Broker,
}

impl Bench {
    fn new(name: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("thrum-bundles-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self {
            folder,
            broker: Broker::start(),
        }
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_thrum"));
        let line = line.replace(
            "TARGET",
            &format!("--target 127.0.0.1:{}", self.broker.port),
        );
        command.arg("bench").args(line.split_whitespace());
        command.current_dir(&self.folder).env("CI", "1");
        command
    }

    fn bench(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    /// The only run folder.
    fn run_folder(&self) -> PathBuf {
        let runs = fs::read_dir(self.folder.join("runs")).unwrap();
        runs.flatten().next().unwrap().path()
    }

    /// Starts a command and sends it ^C `times` times when a line of its messages has `part`.
    fn interrupted_at(&self, line: &str, part: &str, times: usize) -> (Option<i32>, String) {
        let mut command = self.command(line);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut messages = BufReader::new(child.stderr.take().unwrap());
        let mut shown = String::new();
        while !shown.lines().last().is_some_and(|line| line.contains(part)) {
            assert_ne!(messages.read_line(&mut shown).unwrap(), 0, "{shown}");
        }
        for _ in 0..times {
            kill_process(Pid::from_child(&child), Signal::INT).unwrap();
            // Two signals of one kind that wait are one.
            std::thread::park_timeout(std::time::Duration::from_millis(200));
        }
        messages.read_to_string(&mut shown).unwrap();
        let output = child.wait_with_output().unwrap();
        shown.push_str(&String::from_utf8_lossy(&output.stdout));
        (output.status.code(), shown)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.folder).ok();
    }
}

fn text(output: &Output) -> String {
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    format!("{out}{err}")
}

/// 7: this machine was too busy, which concerns no file.
fn assert_ran(output: &Output) {
    assert!(
        matches!(output.status.code(), Some(0 | 7)),
        "{}",
        text(output)
    );
}

const SMALL: &str = "p2p-1K --scale 0.02 --duration 1s --warmup 0s";

#[test]
fn a_run_becomes_a_bundle_that_is_verified_compared_and_run_again() {
    let bench = Bench::new("bundle");
    assert_ran(&bench.bench(&format!("run {SMALL} --bundle TARGET")));
    let kept = bench.run_folder().join("run.mbench");
    let packed = bench.bench("bundle latest --file a.mbench");
    assert_eq!(packed.status.code(), Some(0), "{}", text(&packed));
    let bundle = bench.folder.join("a.mbench");
    assert_eq!(fs::read(kept).unwrap(), fs::read(&bundle).unwrap());

    let verified = bench.bench("verify a.mbench");
    let shown = text(&verified);
    assert_eq!(verified.status.code(), Some(0), "{shown}");
    for part in [
        "✓ histograms: ",
        "✓ latency.hlog: ",
        "✓ verdict: PASS judged again",
        "✓ validity: ",
        "a.mbench is intact",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }

    // A broker that is named takes the place of the bundle's.
    let target = format!(
        "rerun a.mbench --target mqtt://localhost:{}",
        bench.broker.port
    );
    let again = bench.bench(&target);
    let shown = text(&again);
    assert_ran(&again);
    assert!(shown.contains("A is a.mbench, B is this run"), "{shown}");
    let second = bench.bench("bundle latest --file b.mbench");
    assert_eq!(second.status.code(), Some(0), "{}", text(&second));
    let diff = bench.bench("diff a.mbench b.mbench");
    assert_eq!(diff.status.code(), Some(0), "{}", text(&diff));
    assert!(text(&diff).contains("latency"), "{}", text(&diff));
    refused_when_changed(&bench, &bundle);
}

#[test]
fn a_result_that_its_scenario_denies_makes_no_bundle() {
    let bench = Bench::new("denied");
    assert_ran(&bench.bench(&format!("run {SMALL} TARGET")));
    let path = bench.run_folder().join("result.json");
    let result = fs::read_to_string(&path).unwrap();
    fs::write(&path, result.replace("\"wanted\": 40", "\"wanted\": 4")).unwrap();
    let refused = bench.bench("bundle latest");
    let shown = text(&refused);
    assert_eq!(refused.status.code(), Some(8), "{shown}");
    assert!(
        shown.contains("result.json has clients '4', and scenario.toml gives '40'"),
        "{shown}"
    );
    assert!(!bench.run_folder().join("run.mbench").exists());
}

#[test]
fn clients_that_a_shortcut_left_out_are_not_in_its_bundle() {
    let bench = Bench::new("shortcut");
    let line = "pub --publishers 3 --rate 10/s --duration 1s --warmup 0s --bundle TARGET";
    assert_ran(&bench.bench(line));
    let bundle = bench.run_folder().join("run.mbench");
    let again = bench.bench(&format!("rerun {}", bundle.display()));
    assert_ran(&again);
    assert!(text(&again).contains("pub   3 clients"), "{}", text(&again));
}

fn refused_when_changed(bench: &Bench, bundle: &Path) {
    let mut bytes = fs::read(bundle).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(bundle, bytes).unwrap();
    for line in [
        "verify a.mbench",
        "rerun a.mbench",
        "diff a.mbench b.mbench",
    ] {
        let refused = bench.bench(line);
        assert_eq!(refused.status.code(), Some(8), "{line}: {}", text(&refused));
        assert!(text(&refused).contains("was changed"), "{}", text(&refused));
    }
    let absent = bench.bench("verify no-such.mbench");
    assert_eq!(absent.status.code(), Some(2), "{}", text(&absent));
}

#[test]
fn one_run_has_its_exact_figures_and_those_of_xmeter() {
    let bench = Bench::new("compat");
    let output = bench.bench(&format!("run {SMALL} --compat xmeter TARGET"));
    assert_ran(&output);
    let shown = text(&output);
    for part in [
        "As XMeter shows it",
        "average pub-to-sub latency (ms)",
        "40 B sent by XMeter",
    ] {
        assert!(shown.contains(part), "{shown}");
    }
    let result = fs::read_to_string(bench.run_folder().join("result.json")).unwrap();
    let result: serde_json::Value = serde_json::from_str(&result).unwrap();
    assert_eq!(result["compat"]["xmeter"]["payload_bytes"], 40, "{result}");
    let again = bench.bench("show latest --compat xmeter");
    assert!(
        text(&again).contains("As XMeter shows it"),
        "{}",
        text(&again)
    );
}

#[test]
fn a_suite_shows_its_place_and_one_interrupt_ends_all_of_it() {
    let bench = Bench::new("suite");
    let line = "suite basic --scale 0.02 --duration 60s --warmup 0s --drain 1s TARGET";
    let (code, shown) = bench.interrupted_at(line, "ramp ", 1);
    assert_eq!(code, Some(130), "{shown}");
    assert!(shown.contains("run 1/4 · 0s gone · about "), "{shown}");
    assert!(!shown.contains("run 2/4"), "{shown}");
    assert!(shown.contains("interrupted in run 1 of 4"), "{shown}");
    assert!(shown.contains("report ./runs/"), "{shown}");
}

#[test]
fn a_search_that_is_interrupted_shows_its_trials_and_gives_no_answer() {
    let bench = Bench::new("search");
    let line =
        "search p2p-1K --publishers 5 --p99 30s --from 10 --to 16 --hold 2s --repeat 1 TARGET";
    let (code, shown) = bench.interrupted_at(line, "trial 2", 1);
    assert_eq!(code, Some(130), "{shown}");
    assert!(
        shown.contains("trial 1 of at most 60 · 0s gone · "),
        "{shown}"
    );
    assert!(shown.contains("interrupted after 1 trial,"), "{shown}");
    assert!(shown.contains("search.md"), "{shown}");
}

#[test]
fn one_interrupt_ends_a_comparison_with_its_report() {
    let bench = Bench::new("versus");
    let line = "versus --scenario p2p-1K --scale 0.02 --duration 60s --warmup 0s --rounds 2 --brokers thrum";
    let (code, shown) = bench.interrupted_at(line, "hold ", 1);
    assert_eq!(code, Some(130), "{shown}");
    assert!(shown.contains("run 1/2 · 0s gone · about "), "{shown}");
    assert!(shown.contains("versus.html"), "{shown}");
}

#[test]
fn two_interrupts_end_a_comparison_at_once_with_its_brokers() {
    let bench = Bench::new("at-once");
    let brokers = "[[broker]]\nname = \"slow\"\nprograms = [\"/bin/sh\"]\n\
        launch = [\"{program}\", \"-c\", \"sleep 5417\"]\n";
    fs::write(bench.folder.join("brokers.toml"), brokers).unwrap();
    let line = "versus brokers.toml --scenario p2p-1K --scale 0.02 --rounds 1";
    // It waits for a broker that never listens.
    let (code, shown) = bench.interrupted_at(line, "run 1/1", 2);
    assert_eq!(code, Some(130), "{shown}");
    let is_left = || {
        fs::read_dir("/proc").unwrap().flatten().any(|entry| {
            let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            words.starts_with(b"sleep\x005417")
        })
    };
    // A killed process takes a moment to go.
    for _ in 0..50 {
        if !is_left() {
            return;
        }
        std::thread::park_timeout(std::time::Duration::from_millis(100));
    }
    panic!("the broker is left");
}
