//! A run under way: its process, its samples, and its end.

use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use thrum_access::Secret;
use thrum_bench::clock::monotonic_ns;
use thrum_management::api::{BenchmarkRunInFull, BenchmarkSample, BenchmarkStage, KeptSamples};

use super::confinement::{self, COMPLAINT_BYTES_MAX, Confinement, Question, resident_bytes};
use super::ending::{Ended, Killed, conclude};
use super::lines::{EndLine, ProgressLine};
use super::store::{LINE_BYTES_MAX, SampleFile, Store};
use crate::command::shown::{now, time};

/// Between two looks at memory, time and wishes.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);
/// A run says something each second. Connecting to a host that does not answer, and writing the
/// report of a long run, may take longer.
const SILENCE_MAX: Duration = Duration::from_mins(1);
/// From the request to end to the end: the drain of a scenario and its report.
const STOP_TIME: Duration = Duration::from_secs(30);
/// What a run may take beyond its stages: to begin, to wait for late messages, to report.
const EXTRA_TIME: Duration = Duration::from_mins(3);
/// Lines that wait to be looked at; the process waits when there are more.
const LINES_MAX: usize = 16;

/// A run under way, or the last one.
#[derive(Debug)]
pub(super) struct Current {
    /// Held for moments, by its thread and by requests.
    state: Mutex<State>,
    stops: AtomicBool,
}

#[derive(Debug)]
struct State {
    run: BenchmarkRunInFull,
    samples: KeptSamples,
    is_over: bool,
}

/// What is started.
#[derive(Debug)]
pub(super) struct Start {
    pub(super) store: Arc<Store>,
    pub(super) folder: PathBuf,
    pub(super) confinement: Confinement,
    pub(super) arguments: Vec<String>,
    /// Goes to standard input.
    pub(super) password: Option<Secret>,
}

impl Current {
    /// A run that has a folder and no process yet.
    pub(super) fn new(run: BenchmarkRunInFull) -> Self {
        Self {
            state: Mutex::new(State {
                run,
                samples: KeptSamples::default(),
                is_over: false,
            }),
            stops: AtomicBool::new(false),
        }
    }

    /// Its identifier.
    pub(super) fn id(&self) -> String {
        self.state().run.run.id.clone()
    }

    /// It has ended.
    pub(super) fn is_over(&self) -> bool {
        self.state().is_over
    }

    /// What is known of it.
    pub(super) fn run(&self) -> BenchmarkRunInFull {
        self.state().run.clone()
    }

    /// Samples with a higher number, at most so many, and its state.
    pub(super) fn samples(&self, after: u64, most: usize) -> (Vec<BenchmarkSample>, String) {
        let state = self.state();
        let samples = state.samples.after(after, most).to_vec();
        (samples, state.run.run.state.clone())
    }

    /// Asks it to end; whether it was under way.
    pub(super) fn stop(&self) -> bool {
        self.stops.store(true, Ordering::Relaxed);
        !self.is_over()
    }

    /// Changes what is known of it while it runs; whether it does.
    pub(super) fn change(&self, change: impl FnOnce(&mut BenchmarkRunInFull)) -> bool {
        let mut state = self.state();
        if state.is_over {
            return false;
        }
        change(&mut state.run);
        true
    }

    /// Runs the process to its end.
    pub(super) fn conduct(&self, start: Start) {
        let Start {
            store,
            folder,
            confinement,
            arguments,
            password,
        } = start;
        let question = Question {
            folder: folder.clone(),
            arguments,
            input: password.map(|secret| secret.expose().to_vec()),
        };
        let ended = match confinement::start(confinement, question) {
            Ok(child) => self.watch(child, &folder, confinement.memory_bytes),
            Err(error) => Ended {
                code: None,
                end: None,
                complaint: format!("error: the process cannot be started: {error}"),
                killed: None,
                was_stopped: false,
            },
        };
        let mut state = self.state();
        conclude(&mut state.run, ended);
        state.run.run.ended_at = Some(time(now()));
        if let Err(error) = store.write(&state.run) {
            tracing::warn!(%error, run = state.run.run.id, "the end of a benchmark is not written down");
        }
        let run = &state.run.run;
        tracing::info!(
            run = run.id,
            state = run.state,
            error = run.error,
            "a benchmark has ended"
        );
        state.is_over = true;
    }

    fn watch(&self, mut child: Child, folder: &Path, memory_bytes: u64) -> Ended {
        let (sender, lines) = sync_channel(LINES_MAX);
        let output = child.stdout.take().map(|pipe| (pipe, sender));
        if let Some((pipe, sender)) = output {
            in_thread(move || read_lines(pipe, &sender));
        }
        let complaint = Arc::new(Mutex::new(Vec::new()));
        if let Some(pipe) = child.stderr.take() {
            let complaint = Arc::clone(&complaint);
            in_thread(move || read_end(pipe, &complaint));
        }
        let planned = Duration::from_secs_f64(self.state().run.run.planned_secs.clamp(0.0, 1e7));
        let mut watched = Watched {
            current: self,
            samples: SampleFile::create(folder),
            memory_bytes,
            child,
            began_ns: monotonic_ns(),
            said_ns: monotonic_ns(),
            stopped_ns: None,
            longest: planned + EXTRA_TIME,
            end: None,
        };
        let (status, killed) = watched.run_to_end(&lines);
        let complaint = lock(&complaint);
        Ended {
            code: status.and_then(|status| status.code()),
            end: watched.end,
            complaint: String::from_utf8_lossy(&complaint).into_owned(),
            killed,
            was_stopped: watched.stopped_ns.is_some(),
        }
    }

    fn add(&self, sample: BenchmarkSample) {
        let mut state = self.state();
        let to_secs = sample.at_secs + 1.0;
        "running".clone_into(&mut state.run.run.state);
        state.run.run.stage = Some(sample.stage.clone());
        let stages = &mut state.run.stages;
        match stages.last_mut().filter(|last| last.name == sample.stage) {
            Some(last) => last.to_secs = to_secs,
            None => stages.push(BenchmarkStage {
                name: sample.stage.clone(),
                from_secs: sample.at_secs,
                to_secs,
            }),
        }
        if !sample.thresholds.is_empty() {
            state.run.thresholds.clone_from(&sample.thresholds);
        }
        state.samples.push(sample);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// The process of a run.
struct Watched<'a> {
    current: &'a Current,
    samples: SampleFile,
    memory_bytes: u64,
    child: Child,
    began_ns: u64,
    /// When it said something last.
    said_ns: u64,
    /// When it was asked to end.
    stopped_ns: Option<u64>,
    longest: Duration,
    end: Option<EndLine>,
}

impl Watched<'_> {
    /// Reads what it says until it ends, or is ended.
    fn run_to_end(&mut self, lines: &Receiver<Vec<u8>>) -> (Option<ExitStatus>, Option<Killed>) {
        loop {
            let is_closed = match lines.recv_timeout(LOOK_INTERVAL) {
                Ok(line) => {
                    self.hear(&line);
                    false
                }
                Err(RecvTimeoutError::Timeout) => false,
                Err(RecvTimeoutError::Disconnected) => true,
            };
            if is_closed && let Ok(Some(status)) = self.child.try_wait() {
                return (Some(status), None);
            }
            self.stop_if_asked();
            if let Some(killed) = self.excess() {
                return (self.kill(lines), Some(killed));
            }
            if is_closed {
                // It closed its output before it ended: nothing else would wait here.
                std::thread::park_timeout(LOOK_INTERVAL);
            }
        }
    }

    fn kill(&mut self, lines: &Receiver<Vec<u8>>) -> Option<ExitStatus> {
        self.child.kill().ok();
        let status = self.child.wait().ok();
        // What it said before is still there.
        for line in lines.try_iter() {
            self.hear(&line);
        }
        status
    }

    fn hear(&mut self, line: &[u8]) {
        self.said_ns = monotonic_ns();
        match serde_json::from_slice(line) {
            Ok(ProgressLine::Sample(sample)) => {
                self.samples.add(line);
                self.current.add(*sample);
            }
            Ok(ProgressLine::End(end)) => self.end = Some(*end),
            Ok(ProgressLine::Other) => {}
            Err(error) => tracing::debug!(%error, "a line of a benchmark cannot be read"),
        }
    }

    fn stop_if_asked(&mut self) {
        let is_asked = self.current.stops.load(Ordering::Relaxed);
        if !is_asked || self.stopped_ns.is_some() {
            return;
        }
        self.stopped_ns = Some(monotonic_ns());
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // It may just have ended.
            kill_process(pid, Signal::TERM).ok();
        }
    }

    /// What it takes beyond what it may.
    fn excess(&self) -> Option<Killed> {
        let since = |ns: u64| Duration::from_nanos(monotonic_ns().saturating_sub(ns));
        let bytes = resident_bytes(self.child.id());
        if bytes > self.memory_bytes {
            return Some(Killed::Memory {
                bytes,
                limit: self.memory_bytes,
            });
        }
        if self.stopped_ns.is_some_and(|ns| since(ns) > STOP_TIME) {
            return Some(Killed::DidNotStop);
        }
        if since(self.said_ns) > SILENCE_MAX {
            return Some(Killed::Silent {
                seconds: SILENCE_MAX.as_secs(),
            });
        }
        (since(self.began_ns) > self.longest).then_some(Killed::TooLong)
    }
}

/// Passes lines on, each with its end. A line that is too long is cut, and then cannot be read.
fn read_lines(pipe: impl Read, lines: &SyncSender<Vec<u8>>) {
    let mut reader = BufReader::new(pipe);
    loop {
        let mut line = Vec::new();
        let read = (&mut reader)
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut line);
        if !matches!(read, Ok(1..)) || lines.send(line).is_err() {
            return;
        }
    }
}

/// Keeps the last bytes.
fn read_end(mut pipe: impl Read, kept: &Mutex<Vec<u8>>) {
    let mut bytes = [0; 1024];
    while let Ok(len @ 1..) = pipe.read(&mut bytes) {
        let mut kept = lock(kept);
        kept.extend_from_slice(&bytes[..len]);
        let surplus = kept.len().saturating_sub(COMPLAINT_BYTES_MAX);
        kept.drain(..surplus);
    }
}

fn in_thread(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().name("benchmark-read".to_owned());
    if let Err(error) = thread.spawn(work) {
        tracing::warn!(%error, "the output of a benchmark is not read");
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_arrive_with_their_ends_and_the_last_bytes_of_complaints_are_kept() {
        let (sender, lines) = sync_channel(4);
        read_lines(&b"one\ntwo\nthree"[..], &sender);
        drop(sender);
        let read: Vec<Vec<u8>> = lines.iter().collect();
        assert_eq!(
            read,
            [b"one\n".to_vec(), b"two\n".to_vec(), b"three".to_vec()]
        );
        let kept = Mutex::default();
        let text = [b"x".repeat(COMPLAINT_BYTES_MAX), b"the end".to_vec()].concat();
        read_end(&text[..], &kept);
        let kept = lock(&kept);
        assert_eq!(kept.len(), COMPLAINT_BYTES_MAX);
        assert!(kept.ends_with(b"the end"));
    }

    #[test]
    fn stages_follow_from_samples() {
        let current = Current::new(BenchmarkRunInFull::default());
        for (n, stage) in [(1, "ramp"), (2, "hold"), (3, "hold")] {
            current.add(BenchmarkSample {
                n,
                at_secs: [0.0, 1.0, 2.0][usize::try_from(n).unwrap() - 1],
                stage: stage.to_owned(),
                ..BenchmarkSample::default()
            });
        }
        let run = current.run();
        let stages: Vec<_> = run
            .stages
            .iter()
            .map(|of| (of.name.as_str(), of.to_secs))
            .collect();
        assert_eq!(stages, [("ramp", 1.0), ("hold", 3.0)]);
        assert_eq!(
            (run.run.state.as_str(), run.run.stage.as_deref()),
            ("running", Some("hold"))
        );
        assert_eq!(current.samples(1, 10).0.len(), 2);
        assert!(current.stop() && !current.is_over());
    }
}
