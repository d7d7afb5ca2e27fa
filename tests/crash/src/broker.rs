//! The real binary as a process that is killed and started again.

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use thrum_conformance::broker::thrum_binary;
use thrum_conformance::clock;

/// Longest start: a debug build on a busy machine that replays some 100 MB.
const START_MAX: Duration = Duration::from_mins(1);
const LOG_BYTES_SHOWN: usize = 4_000;

/// Runs the program and kills it when standard input closes: also when the test process is killed.
const KEEPER: &str = r#"
log=$1; shift
env "$@" >"$log" 2>&1 </dev/null & pid=$!
echo $pid
read -r _
kill -9 $pid 2>/dev/null
wait $pid
"#;

/// Its program and arguments.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Folder of its state; none keeps it in memory.
    pub data: Option<PathBuf>,
    /// Worker threads.
    pub workers: u32,
    /// More for its environment.
    pub environment: Vec<(String, String)>,
    /// Its configuration file.
    pub config: Option<PathBuf>,
    /// Destination of its output.
    pub log: PathBuf,
}

/// A running broker.
#[derive(Debug)]
pub struct Broker {
    process: Process,
    log: PathBuf,
    keeper: Child,
}

/// A handle to kill it from another thread.
#[derive(Clone, Copy, Debug)]
pub struct Process(Pid);

impl Process {
    /// Ends it at once; it may have ended already.
    pub fn kill(self) {
        // Its number stays its own until its keeper ends.
        kill_process(self.0, Signal::KILL).unwrap_or_default();
    }

    /// Tells it to end in order.
    pub fn stop(self) {
        kill_process(self.0, Signal::TERM).unwrap_or_default();
    }

    /// Tells it to read its configuration again.
    pub fn reload(self) {
        kill_process(self.0, Signal::HUP).unwrap_or_default();
    }

    /// Whether any thread of it still runs.
    pub fn is_alive(self) -> bool {
        let status = format!("/proc/{}/stat", self.0.as_raw_nonzero());
        fs::read_to_string(status).is_ok_and(|status| {
            let after_name = status.rsplit(')').next().unwrap_or_default();
            !after_name.starts_with(" Z") && !after_name.starts_with(" X")
        })
    }
}

impl Broker {
    /// Starts it; it does not listen yet.
    ///
    /// # Panics
    /// The binary or the shell is missing.
    pub fn spawn(launch: &Launch) -> Self {
        // The lines of an earlier broker must not be taken for those of this one.
        if let Err(error) = fs::remove_file(&launch.log) {
            assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        }
        let mut command = Command::new("sh");
        command.args(["-c", KEEPER, "keeper"]).arg(&launch.log);
        for (name, value) in &launch.environment {
            command.arg(format!("{name}={value}"));
        }
        // Unlimited queues: messages that a client misses for rounds must not be dropped by a
        // limit.
        command.args([
            "THRUM_LIMITS__CLIENT__QUEUE=1000000",
            "THRUM_LIMITS__CLIENT__QUEUE_BYTES=2GiB",
        ]);
        command
            .arg(thrum_binary())
            .args(["serve", "--listen", "127.0.0.1:0", "--workers"]);
        command.arg(launch.workers.to_string());
        if let Some(config) = &launch.config {
            command.arg("--config").arg(config);
        }
        if let Some(data) = &launch.data {
            command.arg("--data-dir").arg(data);
        }
        let mut keeper = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh is there");
        let mut first_line = String::new();
        let stdout = keeper.stdout.take().expect("standard output is piped");
        BufReader::new(stdout)
            .read_line(&mut first_line)
            .expect("the keeper tells the process id");
        let number = first_line.trim().parse().expect("a process id is a number");
        Self {
            process: Process(Pid::from_raw(number).expect("a process id is not zero")),
            log: launch.log.clone(),
            keeper,
        }
    }

    /// The process.
    pub fn process(&self) -> Process {
        self.process
    }

    /// Its listening address, once it listens; none if it was killed before.
    ///
    /// # Panics
    /// It takes more than a minute, or ends unexpectedly.
    pub fn wait_until_ready(&self, may_be_killed: bool) -> Option<SocketAddr> {
        let start = clock::now();
        loop {
            let text = self.log_text();
            if let Some(address) = listening(&text) {
                return Some(address);
            }
            if !self.process.is_alive() {
                assert!(
                    may_be_killed,
                    "the broker ended unexpectedly:\n{}",
                    self.log_tail()
                );
                return None;
            }
            assert!(
                start.elapsed() < START_MAX,
                "the broker does not start within {START_MAX:?}:\n{}",
                self.log_tail()
            );
            clock::sleep(Duration::from_millis(2));
        }
    }

    /// Waits until no thread of a killed broker runs, so that nothing writes to its files.
    ///
    /// # Panics
    /// It survives.
    pub fn wait_until_dead(&self) {
        let start = clock::now();
        while self.process.is_alive() {
            assert!(start.elapsed() < START_MAX, "the broker survives a kill");
            clock::sleep(Duration::from_millis(1));
        }
    }

    /// Everything it wrote.
    pub fn log_text(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// The last lines that it wrote.
    pub fn log_tail(&self) -> String {
        let text = self.log_text();
        let start = text.len().saturating_sub(LOG_BYTES_SHOWN);
        let start = (start..=text.len())
            .find(|at| text.is_char_boundary(*at))
            .unwrap_or(0);
        text.get(start..).unwrap_or_default().to_owned()
    }

    /// Its log.
    pub fn log(&self) -> &Path {
        &self.log
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // The keeper kills the broker when its standard input ends.
        drop(self.keeper.stdin.take());
        if let Err(error) = self.keeper.wait() {
            panic!("the keeper of the broker is gone: {error}");
        }
    }
}

/// The address in the log line of readiness.
fn listening(log: &str) -> Option<SocketAddr> {
    let (_, rest) = log.split_once("mqtt://")?;
    let (address, _) = rest.split_once([' ', '\n'])?;
    address.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_is_read_from_the_first_lines() {
        let log = "thrum 0.1.0 ready in 12 ms\n  Listening  mqtt://127.0.0.1:40123  (mqtt)\n";
        assert_eq!(
            listening(log),
            Some(SocketAddr::from(([127, 0, 0, 1], 40_123)))
        );
        assert_eq!(
            listening("thrum 0.1.0 ready in 12 ms\n  Listening  mqtt://127.0.0.1:40"),
            None
        );
    }
}
