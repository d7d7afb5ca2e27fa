//! Where the time of messages goes: `thrum serve --stamp-messages` and `thrum bench`, with the real
//! program.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod dev_broker;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use dev_broker::Broker;
use serde_json::Value;

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("thrum-stages-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Runs a scenario; its folder, the terminal's text and the result.
    fn run(&self, broker: &Broker, words: &str) -> (PathBuf, String, Value) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_thrum"));
        command
            .args(["bench", "run"])
            .args(words.split_whitespace());
        command.args(["--duration", "2s", "--warmup", "0s", "--no-tui"]);
        command.args(["--target", &format!("mqtt://127.0.0.1:{}", broker.port)]);
        let output = command.current_dir(&self.0).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let runs = fs::read_dir(self.0.join("runs")).expect(&text);
        let folder = runs.flatten().next().expect(&text).path();
        let json = fs::read_to_string(folder.join("result.json")).unwrap();
        (folder, text, serde_json::from_str(&json).unwrap())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("{value} is no count"))
}

#[test]
fn every_delivery_of_a_run_has_its_stages() {
    let broker = Broker::start_with(&["--workers", "2", "--stamp-messages", "1"]);
    let folder = Folder::new("all");
    let (files, text, result) = folder.run(&broker, "p2p-1K --scale 0.1");
    let (stages, delivered) = (
        &result["latency_ns"]["stages"],
        number(&result["delivery"]["delivered"]),
    );
    assert_eq!(delivered, 200, "{text}");
    assert_eq!(
        (number(&stages["every"]), number(&stages["stamped"])),
        (1, 200),
        "{stages}"
    );
    for missed in ["unreceived", "table_full", "unfinished"] {
        assert_eq!(number(&stages[missed]), 0, "{stages}");
    }
    let of = |name: &str, figure: &str| number(&stages["stages"][name][figure]);
    for name in [
        "routed",
        "queued",
        "written",
        "broker",
        "acknowledged",
        "answered",
    ] {
        assert_eq!(of(name, "count"), 200, "{name} in {stages}");
        assert!(
            of(name, "mean_ns") <= of(name, "max_ns"),
            "{name} in {stages}"
        );
        assert!(
            of(name, "p50_ns") <= of(name, "p99_ns"),
            "{name} in {stages}"
        );
    }
    let parts = ["routed", "queued", "written"].map(|name| of(name, "mean_ns"));
    let sum: u64 = parts.iter().sum();
    assert!(sum.abs_diff(of("broker", "mean_ns")) <= 3, "{stages}");
    // The broker is a part of the way: it cannot take longer than the whole.
    let e2e = &result["latency_ns"]["e2e"];
    assert!(sum <= number(&e2e["mean"]), "{stages} of {e2e}");
    // The mean may be withheld on a busy machine; where it is not, its parts add up to it.
    if let Some(split) = stages["split"].as_object() {
        let network = split["network_ns"].as_i64().unwrap();
        let known = number(&split["generator_ns"]) + sum;
        let whole = i64::try_from(known).unwrap() + network;
        assert_eq!(whole, i64::try_from(number(&split["e2e_mean_ns"])).unwrap());
        assert!(text.contains("e2e mean "), "{text}");
    }
    assert!(text.contains("1 of 1 messages stamped: 200."), "{text}");
    let read = |name: &str| fs::read_to_string(files.join(name)).unwrap();
    assert!(
        read("stages.csv").contains("\nwritten,200,"),
        "{}",
        read("stages.csv")
    );
    for form in ["report.html", "report.md"] {
        assert!(read(form).contains("Where the time goes"), "{form}");
    }
}

#[test]
fn a_fan_out_has_the_stages_of_all_deliveries() {
    let broker = Broker::start_with(&["--workers", "2", "--stamp-messages", "1"]);
    let folder = Folder::new("fan-out");
    let (_, text, result) = folder.run(&broker, "fanout-1-1K-1-1K --scale 0.02");
    let (stages, delivered) = (
        &result["latency_ns"]["stages"],
        number(&result["delivery"]["delivered"]),
    );
    assert!(delivered > 0, "{text}");
    assert_eq!(
        number(&stages["stages"]["written"]["count"]),
        delivered,
        "{stages}"
    );
    let messages = number(&result["delivery"]["sent_messages"]);
    assert_eq!(number(&stages["stamped"]), messages, "{stages}");
    // One for each of the two workers that has a receiver.
    let fanned_out = number(&stages["stages"]["fanned_out"]["count"]);
    assert!((messages..=2 * messages).contains(&fanned_out), "{stages}");
}

#[test]
fn a_broker_that_stamps_nothing_has_no_stages() {
    let broker = Broker::start_with(&["--workers", "1", "--stamp-messages", "0"]);
    let folder = Folder::new("none");
    let (files, text, result) = folder.run(&broker, "p2p-1K --scale 0.1");
    assert_eq!(number(&result["delivery"]["delivered"]), 200, "{text}");
    assert!(result["latency_ns"].get("stages").is_none(), "{result}");
    assert!(!files.join("stages.csv").exists());
    assert!(!text.contains("stamped"), "{text}");
    let html = fs::read_to_string(files.join("report.html")).unwrap();
    assert!(!html.contains("Where the time goes"));
}
