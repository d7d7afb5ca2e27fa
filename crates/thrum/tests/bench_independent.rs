//! `thrum bench` and a generator that shares nothing with it (`tests/independent/generator.c`, with
//! libmosquitto) measure the same broker in turn, and agree within the error that the benchmark
//! prints.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]
#![expect(
    clippy::disallowed_methods,
    reason = "the test waits for a broker to listen"
)]

use std::collections::BTreeMap;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

const PAIRS: u32 = 20;
/// Rounds in which both measure in turn.
const ROUNDS: usize = 3;
/// The most rounds: more follow while the ranges do not meet, because a machine that is a little
/// slower or faster for some seconds moves both.
const ROUNDS_MAX: usize = 9;
/// Seconds of each measurement.
const SECONDS: u32 = 2;
/// Messages of all pairs in a second. A generator with one core sends more than these in groups,
/// and each of the two in groups of another size: a late send that delays later messages is in
/// neither bound, so the broker itself then takes longer for one of them (by 12 µs at 20,000/s).
const RATES: [u32; 3] = [1_000, 5_000, 10_000];
/// The percentiles that are compared: the tail of two seconds is the machine's.
const FIGURES: [&str; 2] = ["p50", "p90"];

/// The lowest and the highest that a latency may have been, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Range {
    low: f64,
    high: f64,
}

impl Range {
    fn join(self, other: Self) -> Self {
        Self {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
        }
    }

    fn meets(self, other: Self) -> bool {
        self.low <= other.high && other.low <= self.high
    }
}

type Figures = BTreeMap<&'static str, Range>;

/// What both measured at one rate.
#[derive(Debug, Default)]
struct Rounds {
    number: usize,
    ours: Figures,
    theirs: Figures,
}

impl Rounds {
    fn add(&mut self, ours: Figures, theirs: Figures) {
        self.number += 1;
        for (all, figures) in [(&mut self.ours, ours), (&mut self.theirs, theirs)] {
            for (name, range) in figures {
                let known = all.entry(name).or_insert(range);
                *known = known.join(range);
            }
        }
    }

    /// The first figure in which they do not agree.
    fn apart(&self) -> Option<&'static str> {
        let mut names = FIGURES.into_iter();
        names.find(|name| !self.ours[name].meets(self.theirs[name]))
    }
}

/// A folder of the test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let folder = std::env::temp_dir();
        let folder = folder.join(format!("thrum-independent-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

struct Mosquitto {
    process: Child,
    port: u16,
}

impl Mosquitto {
    fn start() -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let mut command = on_core(0, "mosquitto");
        command.args(["-p", &port.to_string()]);
        let path = std::env::var("PATH").unwrap_or_default();
        // Debian keeps the daemon outside the path of ordinary users.
        command.env("PATH", format!("{path}:/usr/sbin"));
        let process = command.stdout(Stdio::null()).stderr(Stdio::null());
        let process = process
            .spawn()
            .expect("mosquitto and taskset are installed");
        let broker = Self { process, port };
        for _ in 0..200 {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return broker;
            }
            sleep(Duration::from_millis(50));
        }
        panic!("mosquitto does not listen");
    }
}

impl Drop for Mosquitto {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// A command on a core of its own, so that broker and generator do not move each other.
fn on_core(core: usize, program: &str) -> Command {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if cores < 2 {
        return Command::new(program);
    }
    let mut command = Command::new("taskset");
    command.args(["-c", &core.to_string(), program]);
    command
}

fn output(command: &mut Command) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    let errors = String::from_utf8_lossy(&stderr);
    // 7: the bench may say that its error is large, and prints it.
    assert!(
        matches!(status.code(), Some(0 | 7)),
        "{command:?}: {errors}"
    );
    String::from_utf8_lossy(&stdout).into_owned()
}

fn compile(folder: &Path) -> PathBuf {
    let source = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/independent/generator.c"
    );
    let program = folder.join("generator");
    let mut command = Command::new("cc");
    command.args(["-O2", "-Wall", "-Wextra", "-Werror", "-o"]);
    command.arg(&program).arg(source);
    output(command.args(["-lmosquitto", "-lpthread"]));
    program
}

/// Service times as the other generator measures them, each with its own reading left out and
/// included.
fn independent(generator: &Path, port: u16, rate: u32) -> Figures {
    let mut command = on_core(1, generator.to_str().unwrap());
    command
        .arg(port.to_string())
        .args([PAIRS, rate, SECONDS].map(|number| number.to_string()));
    let text = output(&mut command);
    let figure = |kind: &str, name: &str| -> f64 {
        let wanted = format!("{kind}_{name} ");
        let line = text.lines().find_map(|line| line.strip_prefix(&wanted));
        line.expect(&text).parse().unwrap()
    };
    let range = |name: &str| Range {
        low: figure("arrived", name),
        high: figure("service", name),
    };
    FIGURES.map(|name| (name, range(name))).into()
}

/// Service times of the benchmark, each with what may be its own part left out and included.
fn bench(folder: &Path, port: u16, rate: u32) -> Figures {
    let mut command = on_core(1, env!("CARGO_BIN_EXE_thrum"));
    let line = format!(
        "bench p2p --pairs {PAIRS} --rate {}/s --qos 0 --threads 2 --warmup 1s --duration {SECONDS}s \
         --pid none --target mqtt://127.0.0.1:{port} --out run-{rate}",
        rate / PAIRS
    );
    command.args(line.split_whitespace()).current_dir(folder);
    output(&mut command);
    let kept = folder.join(format!("run-{rate}"));
    let result = fs::read(kept.join("result.json")).unwrap_or_else(|_| {
        let run = fs::read_dir(&kept).unwrap().flatten().next().unwrap();
        fs::read(run.path().join("result.json")).unwrap()
    });
    fs::remove_dir_all(kept).unwrap();
    let result: serde_json::Value = serde_json::from_slice(&result).unwrap();
    let service = &result["latency_ns"]["service"];
    let figure = |name: &str| {
        let high = service[name].as_f64().unwrap();
        let bound = service["bound"][name].as_f64().unwrap();
        Range {
            low: high - bound,
            high,
        }
    };
    FIGURES.map(|name| (name, figure(name))).into()
}

#[test]
fn an_independent_generator_measures_the_same_within_the_printed_error() {
    let folder = Folder::new();
    let generator = compile(&folder.0);
    let broker = Mosquitto::start();
    for rate in RATES {
        let mut rounds = Rounds::default();
        while rounds.number < ROUNDS || rounds.apart().is_some() && rounds.number < ROUNDS_MAX {
            let theirs = independent(&generator, broker.port, rate);
            rounds.add(bench(&folder.0, broker.port, rate), theirs);
        }
        println!("{rate}/s: {rounds:?}");
        assert_eq!(rounds.apart(), None, "{rate}/s: {rounds:?}");
    }
}
