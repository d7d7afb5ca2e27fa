//! A process of this program that has fewer rights to the machine than the broker.
//!
//! Who calls here does so in a thread made for it: the process takes over the cores and the
//! priority of that thread, and the kernel kills it when that thread ends.

use std::fmt;
use std::io::{self, Read, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use rustix::process::{getpriority_process, setpriority_process};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::command::BENCH_PARENT;

/// This very program, also if its file has been replaced by a newer one.
const OWN_PROGRAM: &str = "/proc/self/exe";
/// The last place in the order of priorities.
const NICENESS_LAST: i32 = 19;
/// The kernel ends a benchmark before the broker when memory runs out.
const OOM_SCORE: &str = "1000";
/// Longest time for an answer, within that of a request.
const ANSWER_TIME: Duration = Duration::from_secs(8);
/// Bytes of an answer: the catalogue has 100 KB, a comparison of four runs 200 KB.
const ANSWER_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Bytes of what it complains of.
pub(super) const COMPLAINT_BYTES_MAX: usize = 8 * 1024;
/// Between two looks at the memory of a process that answers.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// Between two looks whether a process has ended that has closed its output: it mostly has.
const EXIT_INTERVAL: Duration = Duration::from_millis(5);

/// What a process may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Confinement {
    /// Number of cores.
    pub(super) cores: u32,
    /// By how much the threads of the broker come first.
    pub(super) nice: i32,
    /// Resident memory.
    pub(super) memory_bytes: u64,
}

/// What a process is asked.
#[derive(Debug)]
pub(super) struct Question {
    /// Its working directory.
    pub(super) folder: PathBuf,
    /// Behind `thrum bench`.
    pub(super) arguments: Vec<String>,
    /// Its standard input.
    pub(super) input: Option<Vec<u8>>,
    /// What its standard input has later, until nobody sends any longer.
    pub(super) later: Option<Receiver<Vec<u8>>>,
}

/// What a process has answered.
#[derive(Debug)]
pub(super) struct Answered {
    /// Its exit code; none if a signal ended it.
    pub(super) code: Option<i32>,
    /// Its standard output.
    pub(super) output: String,
    /// The beginning of its standard error.
    pub(super) complaint: String,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum AskError {
    /// It took more memory than it may.
    Memory {
        /// What it may take.
        limit: u64,
    },
    /// It took too long.
    Time,
    /// Something else, in words.
    Failed(io::Error),
}

impl From<io::Error> for AskError {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

impl fmt::Display for AskError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory { limit } => write!(
                formatter,
                "this takes more memory than the {} MiB of management.benchmarks.memory",
                limit / (1024 * 1024)
            ),
            Self::Time => write!(
                formatter,
                "this takes longer than the {} s of an answer",
                ANSWER_TIME.as_secs()
            ),
            Self::Failed(error) => error.fmt(formatter),
        }
    }
}

/// Cores that this process may use, and how many of them a benchmark gets.
pub(super) fn cores(wanted: u32) -> (u32, u32) {
    let all = u32::try_from(allowed().len()).unwrap_or(u32::MAX).max(1);
    (part_of(all, wanted), all)
}

/// At most half of the cores, and at least one; 0 wants as many as possible.
fn part_of(all: u32, wanted: u32) -> u32 {
    let half = (all / 2).max(1);
    if wanted == 0 { half } else { wanted.min(half) }
}

/// Numbers of the cores of this process.
fn allowed() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else {
        return Vec::new();
    };
    (0..CpuSet::MAX_CPU)
        .filter(|core| set.is_set(*core))
        .collect()
}

/// Gives this thread the last cores and a later place. A system that does not allow it is one where
/// the benchmark takes what it gets.
fn stand_aside(confinement: Confinement) {
    let cores = allowed();
    let wanted = usize::try_from(confinement.cores).unwrap_or(usize::MAX);
    let mut set = CpuSet::new();
    let last = cores.iter().rev().take(wanted);
    last.for_each(|core| set.set(*core));
    if let Err(error) = sched_setaffinity(None, &set) {
        tracing::debug!(%error, "a benchmark may use every core");
    }
    if let Ok(own) = getpriority_process(None) {
        setpriority_process(None, (own + confinement.nice).min(NICENESS_LAST)).ok();
    }
}

/// Starts a process in a folder. Call it in a thread of its own, and stay until it has ended.
///
/// # Errors
/// It cannot be started.
pub(super) fn start(confinement: Confinement, question: Question) -> io::Result<Child> {
    let Question {
        folder,
        arguments,
        input,
        later,
    } = question;
    let has_input = input.is_some() || later.is_some();
    stand_aside(confinement);
    let mut command = Command::new(OWN_PROGRAM);
    command
        .arg0("thrum")
        .arg("bench")
        .args(arguments)
        .current_dir(folder)
        // Secrets of the broker may be in its environment.
        .env_clear()
        .env(BENCH_PARENT, std::process::id().to_string())
        .stdin(if has_input {
            Stdio::piped()
        } else {
            Stdio::null()
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    let mut child = command.spawn()?;
    // Without this the kernel chooses by the memory that a process has.
    std::fs::write(format!("/proc/{}/oom_score_adj", child.id()), OOM_SCORE).ok();
    if let Some(mut pipe) = child.stdin.take() {
        // A scenario may be longer than the pipe, and the process may not read it.
        let write = move || {
            let mut input = input.unwrap_or_default();
            let mut written = pipe.write_all(&input);
            // It may be a password.
            input.fill(0);
            for line in later.into_iter().flatten() {
                written = written.and_then(|()| pipe.write_all(&line));
            }
            if let Err(error) = written {
                tracing::debug!(%error, "a benchmark has not read all of its input");
            }
        };
        let thread = std::thread::Builder::new().name("benchmark-write".to_owned());
        thread.spawn(write)?;
    }
    Ok(child)
}

/// Runs a process to its end, within limits of time, memory and length of the answer.
///
/// # Errors
/// It cannot be started, or exceeds a limit.
pub(super) fn ask(confinement: Confinement, question: Question) -> Result<Answered, AskError> {
    let thread = std::thread::Builder::new().name("benchmark-ask".to_owned());
    let work = move || {
        let child = start(confinement, question)?;
        answer(child, confinement.memory_bytes)
    };
    let ended = thread.spawn(work)?.join();
    ended.unwrap_or_else(|_| Err(io::Error::other("the thread that asks has ended early").into()))
}

fn answer(mut child: Child, memory_bytes: u64) -> Result<Answered, AskError> {
    let output = in_background(child.stdout.take(), ANSWER_BYTES_MAX);
    let complaint = in_background(child.stderr.take(), COMPLAINT_BYTES_MAX as u64);
    let answered = read_answer(&mut child, &output, memory_bytes);
    let (text, code) = answered.inspect_err(|_| {
        child.kill().ok();
        child.wait().ok();
    })?;
    let complaint = complaint.recv_timeout(LOOK_INTERVAL).unwrap_or_default();
    Ok(Answered {
        code,
        output: text,
        complaint,
    })
}

/// Waits until a process has written its answer and has ended; returns that and its exit code.
fn read_answer(
    child: &mut Child,
    output: &Receiver<String>,
    memory_bytes: u64,
) -> Result<(String, Option<i32>), AskError> {
    let mut left = ANSWER_TIME;
    let mut text = None;
    loop {
        if text.is_none() {
            text = match output.recv_timeout(LOOK_INTERVAL) {
                Ok(text) => Some(text),
                Err(RecvTimeoutError::Disconnected) => Some(String::new()),
                Err(RecvTimeoutError::Timeout) => None,
            };
        } else {
            // It has closed its output, and has not ended yet.
            std::thread::park_timeout(EXIT_INTERVAL);
        }
        if let Some(text) = &mut text {
            if text.len() as u64 >= ANSWER_BYTES_MAX {
                // It has written more than anybody reads, and waits.
                return Err(io::Error::other("the answer is too long").into());
            }
            if let Some(status) = child.try_wait()? {
                return Ok((std::mem::take(text), status.code()));
            }
        }
        if resident_bytes(child.id()) > memory_bytes {
            let limit = memory_bytes;
            return Err(AskError::Memory { limit });
        }
        let spent = if text.is_none() {
            LOOK_INTERVAL
        } else {
            EXIT_INTERVAL
        };
        left = left.saturating_sub(spent);
        if left.is_zero() {
            return Err(AskError::Time);
        }
    }
}

/// Reads a pipe to its end in a thread of its own, at most so many bytes.
fn in_background(pipe: Option<impl Read + Send + 'static>, most: u64) -> Receiver<String> {
    let (sender, receiver) = sync_channel(1);
    let read = move || {
        let mut bytes = Vec::new();
        if let Some(pipe) = pipe {
            pipe.take(most).read_to_end(&mut bytes).ok();
        }
        sender
            .try_send(String::from_utf8_lossy(&bytes).into_owned())
            .ok();
    };
    let thread = std::thread::Builder::new().name("benchmark-read".to_owned());
    // Without a thread nothing is read, and the receiver says so.
    thread.spawn(read).ok();
    receiver
}

/// Resident memory of a process; 0 if it has ended.
pub(super) fn resident_bytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"));
    status.map_or(0, |status| resident_of(&status))
}

fn resident_of(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB"));
    let kib = kib.and_then(|kib| kib.trim().parse::<u64>().ok());
    kib.unwrap_or(0).saturating_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_benchmark_gets_half_of_the_cores_at_most_and_one_at_least() {
        for (all, wanted, part) in [
            (1, 0, 1),
            (2, 0, 1),
            (8, 0, 4),
            (8, 2, 2),
            (8, 7, 4),
            (5, 0, 2),
        ] {
            assert_eq!(part_of(all, wanted), part, "{all} {wanted}");
        }
        let (some, all) = cores(0);
        assert!(some >= 1 && some <= all);
    }

    #[test]
    fn a_thread_that_stands_aside_has_fewer_cores_and_a_later_place_and_others_do_not() {
        let before = allowed();
        let confinement = Confinement {
            cores: 1,
            nice: 3,
            memory_bytes: 0,
        };
        let aside = std::thread::spawn(move || {
            stand_aside(confinement);
            (allowed(), getpriority_process(None).unwrap())
        });
        let (cores, place) = aside.join().unwrap();
        assert_eq!(cores, before[before.len() - 1..]);
        let own = getpriority_process(None).unwrap();
        assert_eq!(place, (own + 3).min(NICENESS_LAST));
        assert_eq!(allowed(), before);
    }

    fn shell(script: &str) -> Child {
        let mut command = Command::new("sh");
        let command = command.args(["-c", script]).stdout(Stdio::piped());
        command.stderr(Stdio::piped()).spawn().unwrap()
    }

    #[test]
    fn a_process_that_takes_too_much_or_too_long_is_ended_and_says_so() {
        let child = shell("exec sleep 60");
        let pid = child.id();
        let error = answer(child, 1).unwrap_err();
        assert!(matches!(error, AskError::Memory { limit: 1 }), "{error}");
        assert_eq!(resident_bytes(pid), 0);
        // One says nothing, and one has closed what it says it with.
        let takes_too_long = |script: &str| {
            let error = answer(shell(script), u64::MAX).unwrap_err();
            let text = "this takes longer than the 8 s of an answer";
            assert_eq!(error.to_string(), text, "{script}");
        };
        std::thread::scope(|scope| {
            scope.spawn(|| takes_too_long("exec sleep 60"));
            scope.spawn(|| takes_too_long("exec sleep 60 >&- 2>&-"));
        });
    }

    #[test]
    fn an_answer_has_its_code_and_is_not_endless() {
        let answered = answer(shell("echo one; echo two >&2; exit 3"), u64::MAX).unwrap();
        assert_eq!(
            (
                answered.code,
                answered.output.as_str(),
                answered.complaint.as_str()
            ),
            (Some(3), "one\n", "two\n")
        );
        let error = answer(shell("exec cat /dev/zero"), u64::MAX).unwrap_err();
        assert_eq!(error.to_string(), "the answer is too long");
    }

    #[test]
    fn resident_memory_is_read_in_bytes() {
        assert_eq!(
            resident_of("Name:\tx\nVmRSS:\t    2048 kB\n"),
            2 * 1024 * 1024
        );
        assert_eq!(resident_of("Name:\tx\n"), 0);
        assert!(resident_bytes(std::process::id()) > 0);
    }
}
