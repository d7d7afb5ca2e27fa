//! `thrum bench` on a machine that disturbs it: its threads are kept from running, its disk is
//! full.
//!
//! A test stops one thread of the generator as a debugger does, so that no other thread, and not
//! the broker, is delayed.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]
#![expect(
    clippy::disallowed_methods,
    reason = "the test decides when it disturbs another process"
)]

mod dev_broker;

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nix::sys::ptrace;
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use rustix::process::setpriority_process;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use dev_broker::Broker;

/// Exit code of a run whose files cannot be written.
const NOT_STORED: i32 = 6;
/// Exit code of a run that the generator limited.
const INVALID: i32 = 7;
/// Time of connecting and warm-up, after which the hold has surely begun.
const IN_HOLD: Duration = Duration::from_millis(2_500);
/// Share of the hold: 7.5 %, so that the 99th percentile shows it.
const STOP: Duration = Duration::from_millis(300);

fn thrum() -> Command {
    Command::new(env!("CARGO_BIN_EXE_thrum"))
}

/// How a run ended.
struct Ended {
    code: i32,
    text: String,
    result: serde_json::Value,
}

/// A run with 4 s of hold, in a folder of its own.
struct Run {
    folder: PathBuf,
    process: Child,
}

impl Run {
    fn start(name: &str, broker: &Broker, line: &str) -> Self {
        Self::start_at(name, &format!("mqtt://127.0.0.1:{}", broker.port), line)
    }

    fn start_at(name: &str, target: &str, line: &str) -> Self {
        let folder = std::env::temp_dir();
        let folder = folder.join(format!("thrum-disturbed-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut command = thrum();
        command.arg("bench").args(line.split_whitespace());
        command.args(["--target", target]);
        command.current_dir(&folder).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let process = command.spawn().unwrap();
        Self { folder, process }
    }

    /// The thread whose name ends so.
    fn thread(&self, name: &str) -> Pid {
        self.threads(name)[0]
    }

    fn threads(&self, name: &str) -> Vec<Pid> {
        let tasks = format!("/proc/{}/task", self.process.id());
        let tasks = fs::read_dir(tasks).unwrap().flatten();
        let found = tasks.filter(|task| {
            let comm = fs::read_to_string(task.path().join("comm"));
            comm.is_ok_and(|comm| comm.trim_end().ends_with(name))
        });
        let numbers = found.map(|task| task.file_name().to_str().unwrap().parse().unwrap());
        numbers.map(Pid::from_raw).collect()
    }

    /// The thread that coordinates the others: the process's first.
    fn coordinator(&self) -> Pid {
        Pid::from_raw(self.process.id().try_into().unwrap())
    }

    fn end(self) -> Ended {
        let Output {
            status,
            stdout,
            stderr,
        } = self.process.wait_with_output().unwrap();
        let text = [stdout, stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        let runs = fs::read_dir(self.folder.join("runs")).unwrap();
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

/// Stops a thread of another process for a time.
fn stop(thread: Pid, time: Duration) {
    ptrace::seize(thread, ptrace::Options::empty()).unwrap();
    ptrace::interrupt(thread).unwrap();
    waitpid(thread, Some(WaitPidFlag::__WALL)).unwrap();
    sleep(time);
    ptrace::detach(thread, None).unwrap();
}

/// Threads that compete for a core; each keeps it for some milliseconds.
const RIVALS: usize = 12;

/// Leaves threads of another process little of a core: busy ones have priority there.
fn crowd(threads: &[Pid], time: Duration) {
    let mut core = CpuSet::new();
    core.set(0);
    let threads = threads.iter().map(|thread| {
        let thread = rustix::process::Pid::from_raw(thread.as_raw());
        let all = sched_getaffinity(thread).unwrap();
        sched_setaffinity(thread, &core).unwrap();
        setpriority_process(thread, 19).unwrap();
        (thread, all)
    });
    let threads: Vec<_> = threads.collect();
    let began = Instant::now();
    let spin = || {
        sched_setaffinity(None, &core).unwrap();
        while began.elapsed() < time {
            std::hint::spin_loop();
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..RIVALS {
            scope.spawn(spin);
        }
    });
    // More priority is the administrator's to give.
    for (thread, all) in threads {
        sched_setaffinity(thread, &all).unwrap();
    }
}

/// 400 messages a second; publishers and subscribers have a thread each.
const PAIRS: &str = "p2p --pairs 20 --rate 20/s --threads 2 --warmup 1s --duration 4s";

#[test]
fn a_quiet_run_is_valid() {
    let broker = Broker::start();
    // Other work on this machine may disturb a run. Of 800 messages the p95 is the last in use.
    let line = PAIRS.replace("--duration 4s", "--duration 2s");
    let mut reasons = Vec::new();
    let runs = (0..15).map(|_| Run::start("quiet", &broker, &line).end());
    let quiet = runs
        .inspect(|ended| reasons.push(ended.result["validity"]["limits"].to_string()))
        .find(|ended| ended.code != INVALID);
    let Some(quiet) = quiet else {
        panic!("none of fifteen runs is quiet: {reasons:?}");
    };
    assert_eq!(quiet.code, 0, "{}", quiet.text);
    assert!(!quiet.text.contains("INVALID"), "{}", quiet.text);
    let e2e = &quiet.result["latency_ns"]["e2e"];
    let (p95, bound) = (e2e["p95"].as_u64(), e2e["bound"]["p95"].as_u64());
    assert!(bound.unwrap() < p95.unwrap(), "{e2e}");
    assert!(quiet.text.contains("generator  ≤"), "{}", quiet.text);
}

/// One thread of the generator is kept from running: the run is INVALID because of it, and its
/// p99 is withheld.
#[track_caller]
fn check_spoiled(disturbed: &Ended, reason: &str) {
    let Ended { code, text, result } = disturbed;
    assert_eq!(*code, INVALID, "{text}");
    assert!(text.contains(reason), "{reason}: {text}");
    let e2e = &result["latency_ns"]["e2e"];
    assert_eq!(e2e["withheld"]["p99"]["because"], "generator", "{text}");
    assert!(
        e2e["bound"]["p99"].as_u64() > e2e["p99"].as_u64().map(|p99| p99 / 2),
        "{e2e}"
    );
    assert!(text.contains("p99 withheld"), "{text}");
    assert!(result["metrics"].get("e2e.p99").is_none(), "{text}");
}

#[test]
fn a_stopped_receiver_makes_the_run_invalid() {
    let broker = Broker::start();
    let run = Run::start("receiver", &broker, PAIRS);
    sleep(IN_HOLD);
    stop(run.thread("bench-1"), STOP);
    check_spoiled(&run.end(), "bench-1 read its sockets up to ");
}

#[test]
fn a_stopped_publisher_makes_the_run_invalid() {
    let broker = Broker::start();
    let run = Run::start("publisher", &broker, PAIRS);
    sleep(IN_HOLD);
    stop(run.thread("bench-0"), STOP);
    check_spoiled(&run.end(), "bench-0 sent messages up to ");
}

/// Twenty stops of 8 ms in a hold of 4 s: 4 %.
fn stop_often(thread: Pid) {
    for _ in 0..20 {
        stop(thread, Duration::from_millis(8));
        sleep(Duration::from_millis(60));
    }
}

#[test]
fn a_receiver_that_is_stopped_often_and_shortly_makes_the_run_invalid() {
    let broker = Broker::start();
    let run = Run::start("receiver-often", &broker, PAIRS);
    sleep(IN_HOLD);
    stop_often(run.thread("bench-1"));
    check_spoiled(&run.end(), "bench-1 read its sockets up to ");
}

#[test]
fn a_publisher_that_is_stopped_often_and_shortly_makes_the_run_invalid() {
    let broker = Broker::start();
    let reason = "bench-0 sent messages up to ";
    let once = || {
        let run = Run::start("publisher-often", &broker, PAIRS);
        sleep(IN_HOLD);
        stop_often(run.thread("bench-0"));
        run.end()
    };
    // The machine itself may hold up the other thread for longer than these stops, but not always.
    let mut ended: Vec<Ended> = Vec::new();
    while ended.len() < 3 && !ended.last().is_some_and(|last| last.text.contains(reason)) {
        ended.push(once());
    }
    check_spoiled(ended.last().unwrap(), reason);
}

#[test]
fn receivers_that_wait_for_a_core_make_the_run_invalid() {
    let broker = Broker::start();
    let run = Run::start("crowd", &broker, PAIRS);
    sleep(IN_HOLD);
    crowd(&run.threads("bench-1"), Duration::from_millis(1_200));
    check_spoiled(&run.end(), "bench-1 read its sockets up to ");
}

/// A broker that listens for TCP and QUIC on one port.
fn quic_broker(folder: &Path) -> Broker {
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    fs::create_dir_all(folder).unwrap();
    let write = |file: &str, kind: &str, der: &[u8]| {
        let text = STANDARD.encode(der);
        let text = format!("-----BEGIN {kind}-----\n{text}\n-----END {kind}-----\n");
        fs::write(folder.join(file), text).unwrap();
    };
    write("server.pem", "CERTIFICATE", own.cert.der());
    write(
        "server.key",
        "PRIVATE KEY",
        &own.signing_key.serialize_der(),
    );
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let config = format!(
        r#"
[listeners]
mqtt = {{ bind = "127.0.0.1:{port}" }}
quic = {{ bind = "127.0.0.1:{port}", transport = "quic", tls = {{ cert = "server.pem", key = "server.key" }} }}
"#
    );
    fs::write(folder.join("thrum.toml"), config).unwrap();
    let mut command = thrum();
    command.args(["serve", "-c", "thrum.toml", "--workers", "1"]);
    Broker::of(command.current_dir(folder), port)
}

#[test]
fn threads_of_quic_that_wait_for_a_core_make_the_run_invalid() {
    let folder = std::env::temp_dir().join(format!("thrum-quic-broker-{}", std::process::id()));
    let broker = quic_broker(&folder);
    let target = format!("quic://localhost:{}", broker.port);
    let run = Run::start_at("quic", &target, &format!("{PAIRS} --insecure"));
    sleep(IN_HOLD);
    crowd(&run.threads("quic-dial"), Duration::from_millis(1_200));
    let ended = run.end();
    fs::remove_dir_all(&folder).ok();
    check_spoiled(&ended, " of e2e.");
}

#[test]
fn a_stopped_coordinator_makes_the_run_invalid_and_withholds_what_it_reads_each_second() {
    let broker = Broker::start();
    let run = Run::start("coordinator", &broker, PAIRS);
    sleep(IN_HOLD);
    stop(run.coordinator(), STOP);
    let Ended { code, text, result } = run.end();
    assert_eq!(code, INVALID, "{text}");
    assert!(text.contains("the coordinator was up to "), "{text}");
    let withheld = &result["validity"]["withheld"];
    assert!(withheld["broker.cores.max"].is_string(), "{withheld}");
    assert!(
        result["metrics"].get("broker.cores.max").is_none(),
        "{text}"
    );
}

#[test]
fn a_coordinator_that_is_stopped_when_the_hold_begins_withholds_cpu_per_message() {
    let broker = Broker::start();
    let run = Run::start("coordinator-border", &broker, PAIRS);
    // The hold begins about two seconds after the start.
    sleep(Duration::from_millis(1_200));
    stop(run.coordinator(), Duration::from_millis(1_300));
    let Ended { code, text, result } = run.end();
    assert_eq!(code, INVALID, "{text}");
    let withheld = &result["validity"]["withheld"];
    assert!(withheld["broker.cpu_per_message"].is_string(), "{text}");
}

#[test]
fn a_connect_rate_that_the_generator_does_not_reach_is_invalid() {
    let broker = Broker::start();
    let line = "conn --connections 4000 --connect-rate 4000000 --threads 1 --duration 1s";
    let Ended { code, text, result } = Run::start("opens", &broker, line).end();
    assert_eq!(code, INVALID, "{text}");
    assert!(text.contains("bench-0 opened connections up to "), "{text}");
    assert!(text.contains("--connect-rate"), "{text}");
    let connect = &result["latency_ns"]["connect"];
    assert_eq!(connect["withheld"]["p99"]["because"], "generator", "{text}");
}

#[test]
fn a_thread_that_is_stopped_while_clients_connect_makes_the_run_invalid() {
    let broker = Broker::start();
    let line = "conn --connections 3000 --connect-rate 1000 --threads 1 --duration 1s";
    let run = Run::start("ramp", &broker, line);
    sleep(Duration::from_millis(1_500));
    stop(run.thread("bench-0"), STOP);
    let Ended { code, text, result } = run.end();
    assert_eq!(code, INVALID, "{text}");
    assert!(text.contains("bench-0 opened connections up to "), "{text}");
    let connect = &result["latency_ns"]["connect"];
    assert_eq!(connect["withheld"]["p95"]["because"], "generator", "{text}");
}

/// A command whose disk is full: a folder of 16 KB, which only this command sees. The end of the
/// command, and what it printed.
fn on_a_full_disk(name: &str, line: &str, broker: &Broker) -> (Option<i32>, String) {
    let name = format!("thrum-full-{name}-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    fs::create_dir_all(&folder).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=16k tmpfs {0} && cd {0} && exec {1} bench {line} --out . --no-tui --target mqtt://127.0.0.1:{2}",
        folder.display(),
        env!("CARGO_BIN_EXE_thrum"),
        broker.port
    );
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", &script]);
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    fs::remove_dir_all(&folder).ok();
    let text = [stdout, stderr].concat();
    (status.code(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn the_result_of_a_run_is_shown_although_the_disk_is_full() {
    let broker = Broker::start();
    let line = "p2p --pairs 2 --rate 10/s --warmup 0s --duration 1s";
    let (code, text) = on_a_full_disk("run", line, &broker);
    assert_eq!(code, Some(NOT_STORED), "{text}");
    assert!(text.contains("VERDICT") && text.contains("e2e"), "{text}");
    assert!(text.contains("its result is not stored"), "{text}");
    assert!(!text.contains("  report "), "{text}");
}

#[test]
fn a_series_goes_on_although_the_disk_is_full_and_ends_with_its_table() {
    let broker = Broker::start();
    let file = std::env::temp_dir().join(format!("thrum-full-{}.toml", std::process::id()));
    let scenario = "name = \"s\"\nstages = [\"hold 1s\", \"drain 1s\"]\n\
        [groups.a]\nclients = 2\npublish = { topic = \"t\", rate = \"5/s\" }\n\
        [[steps]]\nname = \"one\"\nset = { \"groups.a.clients\" = 2 }\n\
        [[steps]]\nname = \"two\"\nset = { \"groups.a.clients\" = 3 }\n";
    fs::write(&file, scenario).unwrap();
    let (code, text) = on_a_full_disk("series", &format!("run {}", file.display()), &broker);
    fs::remove_file(&file).unwrap();
    assert_eq!(code, Some(NOT_STORED), "{text}");
    assert_eq!(
        text.matches("its result is not stored").count(),
        2,
        "{text}"
    );
    // The summaries, and the table.
    for step in ["s/one", "s/two"] {
        assert!(text.matches(step).count() >= 2, "{step}: {text}");
    }
}

#[test]
fn the_answer_of_a_search_is_shown_although_the_disk_is_full() {
    let broker = Broker::start();
    let line = "search p2p-1K --publishers 2 --p99 30s --from 10 --to 11 --hold 1s --repeat 1";
    let (code, text) = on_a_full_disk("search", line, &broker);
    assert_eq!(code, Some(NOT_STORED), "{text}");
    assert!(text.contains("its result is not stored"), "{text}");
    assert!(text.contains("trial 2"), "{text}");
    assert!(text.contains("messages/s  result"), "{text}");
    assert!(text.contains(" holds at least 11 messages/s"), "{text}");
    assert!(!text.contains("search.md"), "{text}");
}
