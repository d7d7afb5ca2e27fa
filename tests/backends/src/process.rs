//! Servers as processes: unprivileged, ended with the test, killed by their number.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use thrum_conformance::broker::free_address;
use thrum_conformance::clock;

/// Longest start of a server on a busy machine.
pub const START_MAX: Duration = Duration::from_mins(1);
/// Longest run in seconds of a program that creates or fills a database.
const RUN_SECS_MAX: &str = "180";
/// Longest time until a killed server has ended.
const END_MAX: Duration = Duration::from_secs(10);
const POLL_EVERY: Duration = Duration::from_millis(20);
const CONNECT_MAX: Duration = Duration::from_secs(1);
/// The user for servers that refuse to run as root.
const USER: &str = "nobody";
const LOG_BYTES_SHOWN: usize = 4_000;

/// Runs the program and kills it when standard input closes: also when the test process is killed.
const KEEPER: &str = r#"
log=$1; shift
"$@" >>"$log" 2>&1 </dev/null & pid=$!
echo $pid
read -r _
kill -9 $pid 2>/dev/null
wait $pid
"#;

/// A running server.
#[derive(Debug)]
pub struct Process {
    pid: Pid,
    keeper: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a server, as the user that servers run as; its output goes to the file.
    ///
    /// # Panics
    /// The shell is missing.
    pub fn start<S: AsRef<OsStr>>(program: &[S], log: &Path) -> Self {
        let mut command: Vec<&OsStr> = as_user().iter().map(OsStr::new).collect();
        command.extend(program.iter().map(AsRef::as_ref));
        Self::start_as_myself(&command, log)
    }

    /// Starts a program; its output goes to the file.
    ///
    /// # Panics
    /// The shell is missing.
    pub fn start_as_myself<S: AsRef<OsStr>>(program: &[S], log: &Path) -> Self {
        let mut keeper = Command::new("sh")
            .args(["-c", KEEPER, "keeper"])
            .arg(log)
            .args(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // The shell reports the kill.
            .stderr(Stdio::null())
            .spawn()
            .expect("sh starts");
        let mut line = String::new();
        let output = keeper.stdout.take().expect("a pipe");
        BufReader::new(output)
            .read_line(&mut line)
            .expect("the number of the process");
        let pid = line.trim().parse().ok().and_then(Pid::from_raw);
        Self {
            pid: pid.expect("the number of the process"),
            keeper,
            log: log.to_owned(),
        }
    }

    /// Waits until it takes connections on this port.
    ///
    /// # Panics
    /// It ended, or takes none in time.
    pub fn wait_for_port(&self, port: u16) {
        self.wait_until("takes no connections", || {
            TcpStream::connect_timeout(&loopback(port), CONNECT_MAX).is_ok()
        });
    }

    /// Waits until something holds.
    ///
    /// # Panics
    /// The process ended, or it does not hold in time.
    pub fn wait_until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let deadline = clock::now() + START_MAX;
        while !holds() {
            assert!(self.is_alive(), "the server ended: {}", self.shown_log());
            assert!(
                clock::now() < deadline,
                "the server {what}: {}",
                self.shown_log()
            );
            clock::sleep(POLL_EVERY);
        }
    }

    /// Kills it at once, as a power cut would.
    ///
    /// # Panics
    /// It still runs after some seconds.
    pub fn kill(&self) {
        // Its number stays its own until its keeper ends.
        kill_process(self.pid, Signal::KILL).unwrap_or_default();
        let deadline = clock::now() + END_MAX;
        while self.is_alive() {
            assert!(clock::now() < deadline, "a killed server is still there");
            clock::sleep(POLL_EVERY);
        }
    }

    /// Makes it read its configuration again.
    ///
    /// # Panics
    /// The process is gone.
    pub fn reload(&self) {
        kill_process(self.pid, Signal::HUP).expect("a running server");
    }

    /// Suspends it and its children: connections stay open and get no answer.
    ///
    /// # Panics
    /// The process is gone.
    pub fn freeze(&self) {
        // A suspended process starts no children, so none is missed.
        kill_process(self.pid, Signal::STOP).expect("a running server");
        self.signal_children(Signal::STOP);
    }

    /// Resumes them.
    ///
    /// # Panics
    /// The process is gone.
    pub fn thaw(&self) {
        self.signal_children(Signal::CONT);
        kill_process(self.pid, Signal::CONT).expect("a stopped server");
    }

    fn signal_children(&self, signal: Signal) {
        let processes = fs::read_dir("/proc").into_iter().flatten();
        let numbers = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        for child in numbers.filter_map(Pid::from_raw) {
            if parent_of(child) == Some(self.pid) {
                // It may have ended already.
                kill_process(child, signal).unwrap_or_default();
            }
        }
    }

    /// Resident memory in bytes.
    ///
    /// # Panics
    /// The process is gone.
    pub fn resident_bytes(&self) -> u64 {
        let status = format!("/proc/{}/status", self.pid.as_raw_nonzero());
        let status = fs::read_to_string(status).expect("a running process");
        let mut lines = status.lines();
        let line = lines.find_map(|line| line.strip_prefix("VmRSS:"));
        let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
        1024 * kibibytes.unwrap_or(0_u64)
    }

    /// Whether any thread of it still runs.
    pub fn is_alive(&self) -> bool {
        let status = format!("/proc/{}/stat", self.pid.as_raw_nonzero());
        fs::read_to_string(status).is_ok_and(|status| {
            let after_name = status.rsplit(')').next().unwrap_or_default();
            !after_name.starts_with(" Z") && !after_name.starts_with(" X")
        })
    }

    /// Its output.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// The end of its output.
    pub fn shown_log(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        let from = text.len().saturating_sub(LOG_BYTES_SHOWN);
        String::from_utf8_lossy(&text[from..]).into_owned()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        self.keeper.wait().map(drop).unwrap_or_default();
    }
}

fn parent_of(process: Pid) -> Option<Pid> {
    let status = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).ok()?;
    let mut after_name = status.rsplit(')').next()?.split_whitespace();
    Pid::from_raw(after_name.nth(1)?.parse().ok()?)
}

/// Runs a program to its end, as the user that servers run as.
///
/// # Panics
/// It is not there, or fails.
pub fn run<S: AsRef<OsStr>>(program: &[S]) -> Output {
    let mut command: Vec<&OsStr> = as_user().iter().map(OsStr::new).collect();
    command.extend(program.iter().map(AsRef::as_ref));
    run_as_myself(&command)
}

/// Runs a program to its end.
///
/// # Panics
/// It is not there, or fails.
pub fn run_as_myself<S: AsRef<OsStr> + std::fmt::Debug>(command: &[S]) -> Output {
    let output = Command::new("timeout")
        .arg(RUN_SECS_MAX)
        .args(command)
        .stdin(Stdio::null())
        .current_dir("/")
        .output()
        .unwrap_or_else(|error| {
            panic!("{command:?} does not start: {error}; see scripts/setup-tests.sh")
        });
    assert!(
        output.status.success(),
        "{command:?} failed: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// A port that is free now and outside the range that the system assigns.
pub fn free_port() -> u16 {
    free_address().port()
}

/// A port of this machine alone.
pub fn loopback(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

/// The first of these programs that is there.
///
/// # Panics
/// None is.
pub fn program(candidates: &[&str]) -> String {
    let found = candidates.iter().find(|path| Path::new(path).exists());
    let found = found
        .unwrap_or_else(|| panic!("none of {candidates:?} is there: run scripts/setup-tests.sh"));
    (*found).to_owned()
}

/// Makes this the folder of the user that servers run as.
///
/// # Panics
/// Its owner cannot be changed.
pub fn give_to_user(folder: &Path) {
    if is_root() {
        let status = Command::new("chown")
            .args(["-R", USER])
            .arg(folder)
            .status()
            .expect("chown starts");
        assert!(status.success(), "chown fails");
    }
}

/// The name of the user that servers run as.
pub fn user_name() -> String {
    if is_root() {
        return USER.to_owned();
    }
    let output = Command::new("id").arg("-un").output().expect("id starts");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn is_root() -> bool {
    rustix::process::getuid().is_root()
}

/// Arguments that make a program run as an ordinary user.
fn as_user() -> &'static [&'static str] {
    if is_root() {
        &[
            "setpriv",
            "--reuid=nobody",
            "--regid=nogroup",
            "--clear-groups",
            "--",
        ]
    } else {
        &["env"]
    }
}
