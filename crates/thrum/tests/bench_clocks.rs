//! `thrum bench` on machines whose clocks differ, or are set while it runs.
//!
//! A second machine is an agent in a time namespace, whose clock began at another time. The clock
//! of an agent is set by changing the code with which its process reads it: the kernel maps that
//! into every process.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]
#![expect(
    clippy::disallowed_methods,
    reason = "the test decides when it sets a clock"
)]

mod dev_broker;

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use dev_broker::Broker;

/// Exit code of a run that the generator limited.
const INVALID: i32 = 7;

/// Two publishers and four subscribers on each of two machines, each subscribed to all.
const LINE: &str = "run fanout-4-8-4-800 --warmup 0s --duration 4s --agents 2";

/// What the clock of the other machine is ahead, in seconds.
const AHEAD: i64 = 100_000;

/// An agent that takes part in one run.
struct Agent(Child);

impl Agent {
    fn start(name: &str, control: &Broker, ahead: Option<i64>) -> Self {
        let program = env!("CARGO_BIN_EXE_thrum");
        let mut command = match ahead {
            None => Command::new(program),
            Some(seconds) => {
                let mut command = Command::new("unshare");
                command.args(["--map-root-user", "--fork", "--kill-child", "--time"]);
                command.args(["--monotonic", &seconds.to_string(), program]);
                command
            }
        };
        let url = format!("mqtt://127.0.0.1:{}", control.port);
        command.args(["bench", "agent", "--control", &url, "--name", name]);
        command.args(["--threads", "1", "--once"]);
        command.stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// A run with agents.
struct Run {
    folder: PathBuf,
    process: Child,
}

/// How a run ended.
struct Ended {
    code: i32,
    text: String,
    result: Value,
}

impl Run {
    fn start(name: &str, control: &Broker, target: &Broker) -> Self {
        let folder = std::env::temp_dir();
        let folder = folder.join(format!("thrum-clocks-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_thrum"));
        command.arg("bench").args(LINE.split_whitespace());
        for (flag, broker) in [("--control", control), ("--target", target)] {
            command.args([flag, &format!("mqtt://127.0.0.1:{}", broker.port)]);
        }
        command.current_dir(&folder).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let process = command.spawn().unwrap();
        Self { folder, process }
    }

    fn end(self) -> Ended {
        let Output {
            status,
            stdout,
            stderr,
        } = self.process.wait_with_output().unwrap();
        let text = [stdout, stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        let runs = fs::read_dir(self.folder.join("runs"));
        let runs = runs.unwrap_or_else(|error| panic!("{error}: {text}"));
        let mut results = runs.flatten().map(|run| run.path().join("result.json"));
        let result = results.find(|file| file.is_file()).expect("a result");
        let result = serde_json::from_slice(&fs::read(result).unwrap()).unwrap();
        fs::remove_dir_all(&self.folder).ok();
        Ended {
            code: status.code().unwrap(),
            text,
            result,
        }
    }
}

/// Whatever the clocks say, the broker has delivered each message once.
#[track_caller]
fn assert_delivered(ended: &Ended) {
    let delivery = &ended.result["delivery"];
    let of = |name: &str| delivery[name].as_u64().unwrap();
    assert!(of("expected") > 2_000, "{delivery}");
    assert_eq!(of("delivered"), of("expected"), "{}", ended.text);
    for wrong in ["lost", "foreign", "misdelivered", "duplicated", "reordered"] {
        assert_eq!(of(wrong), 0, "{wrong}: {}", ended.text);
    }
    assert_eq!(ended.result["verdict"]["pass"], true, "{}", ended.text);
}

#[test]
fn an_agent_whose_clock_began_at_another_time_measures_the_same() {
    let (control, target) = (Broker::start(), Broker::start());
    let _agents = [
        Agent::start("here", &control, None),
        Agent::start("ahead", &control, Some(AHEAD)),
    ];
    let ended = Run::start("ahead", &control, &target).end();
    // Other work on this machine may make it INVALID.
    assert!([0, INVALID].contains(&ended.code), "{}", ended.text);
    assert_delivered(&ended);
    let agents = ended.result["agents"].as_array().unwrap();
    for (name, ahead) in [("here", 0), ("ahead", AHEAD)] {
        let agent = agents.iter().find(|agent| agent["name"] == name).unwrap();
        let offset_ns = agent["clock_offset_ns"].as_i64().unwrap();
        let by_ns = offset_ns.abs_diff(ahead * 1_000_000_000);
        assert!(by_ns < 1_000_000_000, "{agent}");
        assert!(
            agent["clock_error_ns"].as_u64().unwrap() < 1_000_000_000,
            "{agent}"
        );
    }
    let e2e = &ended.result["latency_ns"]["e2e"];
    assert!(e2e["max"].as_u64().unwrap() < 5_000_000_000, "{e2e}");
    assert!(e2e["p50"].as_u64().unwrap() < 100_000_000, "{e2e}");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_clock_that_is_set_during_the_load_makes_the_run_invalid() {
    let (control, target) = (Broker::start(), Broker::start());
    let agents = [
        Agent::start("here", &control, None),
        Agent::start("set", &control, None),
    ];
    let run = Run::start("set", &control, &target);
    // Two seconds later the load has begun, and it lasts for two more at least.
    sleep(Duration::from_millis(4_500));
    clock::set_back(agents[1].0.id());
    let ended = run.end();
    assert_eq!(ended.code, INVALID, "{}", ended.text);
    assert_delivered(&ended);
    let reason =
        "may be the generator's: the clocks of the machines differ by an unknown part of it";
    assert!(ended.text.contains(reason), "{}", ended.text);
    let e2e = &ended.result["latency_ns"]["e2e"];
    let metrics = &ended.result["metrics"];
    for figure in ["mean", "p50", "p75", "p90", "p95", "p99"] {
        assert_eq!(
            e2e["withheld"][figure]["because"], "generator",
            "{figure}: {e2e}"
        );
        assert!(metrics.get(format!("e2e.{figure}")).is_none(), "{metrics}");
    }
    let agents = ended.result["agents"].as_array().unwrap();
    let error = |name: &str| {
        let agent = agents.iter().find(|agent| agent["name"] == name);
        agent.unwrap()["clock_error_ns"].as_u64().unwrap()
    };
    assert!(error("set") >= 299_000_000, "{agents:?}");
    assert!(error("here") < 100_000_000, "{agents:?}");
}

#[cfg(target_arch = "x86_64")]
mod clock {
    //! The clock of another process: the code that the kernel maps into it to read its clocks.

    use std::fs::{self, File, OpenOptions};
    use std::os::unix::fs::FileExt as _;

    /// Asks the kernel for the time, and takes 300 ms from the monotonic one.
    const SET_BACK: [u8; 34] = [
        0xb8, 0xe4, 0x00, 0x00, 0x00, // mov eax, 228 (clock_gettime)
        0x0f, 0x05, // syscall
        0x83, 0xff, 0x01, // cmp edi, 1 (CLOCK_MONOTONIC)
        0x75, 0x15, // jne to the end
        0x48, 0x81, 0x6e, 0x08, 0x00, 0xa3, 0xe1, 0x11, // sub qword [rsi+8], 300000000
        0x79, 0x0b, // jns to the end
        0x48, 0x81, 0x46, 0x08, 0x00, 0xca, 0x9a, 0x3b, // add qword [rsi+8], 1000000000
        0x48, 0xff, 0x0e, // dec qword [rsi]
        0xc3, // ret
    ];

    /// Sets the monotonic clock of a process back by 300 ms.
    pub(crate) fn set_back(process: u32) {
        let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap();
        let line = maps.lines().find(|line| line.ends_with("[vdso]")).unwrap();
        let (range, _) = line.split_once(' ').unwrap();
        let (start, end) = range.split_once('-').unwrap();
        let [start, end] = [start, end].map(|at| u64::from_str_radix(at, 16).unwrap());
        let memory = format!("/proc/{process}/mem");
        let memory: File = OpenOptions::new()
            .read(true)
            .write(true)
            .open(memory)
            .unwrap();
        let mut image = vec![0; usize::try_from(end - start).unwrap()];
        memory.read_exact_at(&mut image, start).unwrap();
        let at = start + symbol(&image, "__vdso_clock_gettime");
        memory.write_all_at(&SET_BACK, at).unwrap();
    }

    fn number(image: &[u8], at: usize, bytes: usize) -> usize {
        let mut number = [0; 8];
        number[..bytes].copy_from_slice(&image[at..at + bytes]);
        usize::try_from(u64::from_le_bytes(number)).unwrap()
    }

    /// The place of a symbol in an ELF image.
    fn symbol(image: &[u8], name: &str) -> u64 {
        const DYNSYM: usize = 11;
        let (table, size) = (number(image, 40, 8), number(image, 58, 2));
        let sections = (0..number(image, 60, 2)).map(|section| table + section * size);
        let symbols = sections
            .clone()
            .find(|at| number(image, at + 4, 4) == DYNSYM)
            .unwrap();
        let strings = table + number(image, symbols + 40, 4) * size;
        let strings = number(image, strings + 24, 8);
        let (first, bytes) = (
            number(image, symbols + 24, 8),
            number(image, symbols + 32, 8),
        );
        let mut each = (first..first + bytes).step_by(24);
        let found = each.find(|at| {
            let from = strings + number(image, *at, 4);
            image[from..].starts_with(name.as_bytes()) && image[from + name.len()] == 0
        });
        u64::try_from(number(image, found.unwrap() + 8, 8)).unwrap()
    }
}
