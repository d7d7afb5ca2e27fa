//! Runs one suite, for a limited time, and ends whatever it leaves behind.

use std::io::{self, PipeReader, Read};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::left;
use super::plan::Suite;

/// Time between two looks at the process of a suite.
const LOOK: Duration = Duration::from_millis(20);

/// Time in which processes that outlive their suite must close its output.
const AFTERWARDS: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 20 });

/// Result of a suite.
pub(super) struct Ended {
    pub(super) name: String,
    pub(super) took: Duration,
    pub(super) output: Vec<u8>,
    pub(super) is_passed: bool,
}

/// Output of a suite, read while it runs.
struct Output {
    bytes: Arc<Mutex<Vec<u8>>>,
    /// Disconnected when no process can write any more.
    open: Receiver<()>,
}

/// Brokers have no HTTP port unless a test names one.
const NO_HTTP: (&str, &str) = ("THRUM_LISTENERS__HTTP__BIND", "[]");

/// How a suite ended.
enum End {
    Exited {
        is_success: bool,
    },
    /// It ran longer than its limit.
    Late,
    /// Its own process ended, but others hold its output.
    Survived,
}

/// Runs a suite until it ends, at most for its limit.
#[expect(clippy::disallowed_methods, reason = "the tool reports its duration")]
pub(super) fn run(suite: &Suite) -> Result<Ended> {
    let began = Instant::now();
    let mark = left::Mark::of(&suite.name);
    let (reader, writer) = io::pipe().context("a pipe")?;
    let mut command = suite.command();
    command.env(left::VARIABLE, mark.value());
    // The brokers of the suites run side by side, and have one default address.
    command.env(NO_HTTP.0, NO_HTTP.1);
    command.stdin(Stdio::null());
    command.stdout(writer.try_clone().context("a pipe")?);
    command.stderr(writer);
    let mut child = command
        .spawn()
        .with_context(|| format!("{} does not start", suite.program.display()))?;
    // Otherwise this end of the pipe keeps it open.
    drop(command);
    let output = Output::collect(reader);
    let end = wait(&mut child, &output, suite.limit).context(suite.name.clone())?;
    let complaint = match end {
        End::Exited { .. } => None,
        End::Late => Some(format!("did not end within {} s", suite.limit.as_secs())),
        End::Survived => Some(format!(
            "left processes that hold its output {} s later",
            AFTERWARDS.as_secs()
        )),
    };
    let mut note = String::new();
    if let Some(complaint) = complaint {
        note = format!("\n{} {complaint}:\n{}\n", suite.name, mark.report());
        mark.kill();
        // It may have ended by itself meanwhile.
        drop(child.kill());
        child.wait().context(suite.name.clone())?;
        // What the killed processes wrote last.
        output.waits_for(LOOK * 10);
    }
    let mut bytes = output.taken();
    bytes.extend_from_slice(note.as_bytes());
    Ok(Ended {
        name: suite.name.clone(),
        took: began.elapsed(),
        output: bytes,
        is_passed: matches!(end, End::Exited { is_success: true }),
    })
}

#[expect(clippy::disallowed_methods, reason = "a suite has a limit")]
fn wait(child: &mut Child, output: &Output, limit: Duration) -> io::Result<End> {
    let began = Instant::now();
    let mut exited = None;
    loop {
        let is_closed = output.waits_for(LOOK);
        if is_closed && exited.is_none() {
            // Nothing is left to read; only the exit code, which comes within the limit or not.
            std::thread::sleep(LOOK);
        }
        if exited.is_none() {
            exited = child.try_wait()?.map(|status| (status, Instant::now()));
        }
        match exited {
            Some((status, _)) if is_closed => {
                let is_success = status.success();
                return Ok(End::Exited { is_success });
            }
            Some((_, at)) if at.elapsed() > AFTERWARDS => return Ok(End::Survived),
            None if began.elapsed() > limit => return Ok(End::Late),
            _ => {}
        }
    }
}

impl Output {
    fn collect(mut reader: PipeReader) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let (sender, open) = mpsc::sync_channel(0);
        let written = Arc::clone(&bytes);
        std::thread::spawn(move || {
            let _held_until_the_end = sender;
            let mut part = vec![0; 64 * 1024];
            while let Ok(length @ 1..) = reader.read(&mut part) {
                let mut written = written.lock().unwrap_or_else(PoisonError::into_inner);
                written.extend_from_slice(&part[..length]);
            }
        });
        Self { bytes, open }
    }

    /// Waits at most this long, and returns whether the output is closed.
    fn waits_for(&self, time: Duration) -> bool {
        self.open.recv_timeout(time) == Err(RecvTimeoutError::Disconnected)
    }

    fn taken(&self) -> Vec<u8> {
        std::mem::take(&mut *self.bytes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Ended {
        run(&Suite::of_shell(script, limit)).unwrap()
    }

    #[test]
    fn the_output_of_a_suite_is_kept() {
        let ended = shell("echo out; echo err >&2", Duration::from_mins(1));
        assert!(ended.is_passed);
        assert_eq!(ended.output, b"out\nerr\n");
    }

    #[test]
    fn a_suite_beyond_its_limit_fails_with_its_output_and_its_processes() {
        let ended = shell("echo begun; sleep 300; true", Duration::from_millis(300));
        assert!(!ended.is_passed && ended.took < Duration::from_mins(1));
        let output = String::from_utf8(ended.output).unwrap();
        assert!(output.starts_with("begun\n"), "{output}");
        assert!(output.contains("did not end within"), "{output}");
        assert!(output.contains("sleep 300"), "{output}");
    }

    #[test]
    fn a_suite_that_only_closed_its_output_is_waited_for() {
        let ended = shell("exec >&- 2>&-; sleep 0.3; exit 3", Duration::from_mins(1));
        assert!(!ended.is_passed && ended.output.is_empty());
        assert!(ended.took >= Duration::from_millis(300));
    }

    #[test]
    fn a_suite_that_leaves_a_process_behind_fails_and_the_process_is_killed() {
        let ended = shell("sleep 301 & echo $!", Duration::from_mins(1));
        assert!(!ended.is_passed && ended.took < Duration::from_mins(1));
        let output = String::from_utf8(ended.output).unwrap();
        assert!(output.contains("left processes"), "{output}");
        let process = output.lines().next().unwrap();
        let line = format!("process {process}: sleep 301");
        assert!(output.contains(&line), "{output}");
        let command = std::fs::read(format!("/proc/{process}/cmdline"));
        assert!(command.unwrap_or_default().is_empty());
    }
}
