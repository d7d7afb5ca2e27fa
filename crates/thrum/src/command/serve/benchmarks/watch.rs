//! A run under way: its process, its samples, and its end.

use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use thrum_access::Secret;
use thrum_bench::clock::monotonic_ns;
use thrum_management::api::{BenchmarkRunInFull, BenchmarkSample, BenchmarkStage, KeptSamples};
use thrum_management::{BenchmarkChange, BenchmarkRefusal, ProgramError};

use super::activity::Activity;
use super::bounds::{Bounds, Taken};
use super::changes::Changes;
use super::confinement::{self, COMPLAINT_BYTES_MAX, Confinement, Question, resident_bytes};
use super::ending::{Ended, Killed, conclude};
use super::lines::{EndLine, ProgressLine};
use super::refused;
use super::store::{LINE_BYTES_MAX, SampleFile, Store};
use crate::command::shown::{now, time};

/// Between two looks at memory, time and wishes.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);
/// Between two attempts to write down the end of a run.
const WRITE_INTERVAL: Duration = Duration::from_secs(10);
/// What helps if the end of a run is not written down.
const UNWRITTEN_REMEDY: &str =
    "make room in the data directory, or correct its owner and mode: it is tried again every 10 s";
/// Between two looks whether a run has ended with the broker, and how many there are: 2 s in all.
const ABANDON_INTERVAL: Duration = Duration::from_millis(20);
const ABANDON_LOOKS_MAX: usize = 100;
/// Lines that wait to be looked at; the process waits when there are more.
const LINES_MAX: usize = 16;

/// A run under way, or the last one.
#[derive(Debug)]
pub(super) struct Current {
    /// Held for moments, by its thread and by requests: never while something waits for the disk.
    state: Mutex<State>,
    /// Held while what is known of it is written down, one after the other.
    writing: Mutex<()>,
    stops: AtomicBool,
    /// Locked before the state.
    changes: Mutex<Changes>,
    /// The broker stops, and the run with it.
    is_abandoned: AtomicBool,
}

#[derive(Debug)]
struct State {
    run: BenchmarkRunInFull,
    samples: KeptSamples,
    is_over: bool,
    end: WrittenEnd,
}

/// Whether the end of a run is in its file.
#[derive(Debug, PartialEq, Eq)]
enum WrittenEnd {
    /// It is, or there is none yet.
    Written,
    /// It is about to be.
    Pending,
    /// It is not, and why.
    Failed(String),
}

/// What is started.
#[derive(Debug)]
pub(super) struct Start {
    /// Goes with the broker, for which this run does not wait.
    pub(super) store: Weak<Store>,
    pub(super) folder: PathBuf,
    pub(super) confinement: Confinement,
    pub(super) arguments: Vec<String>,
    /// Goes to standard input.
    pub(super) password: Option<Secret>,
    /// The longest drain of the scenario.
    pub(super) drain: Duration,
    pub(super) activity: Arc<Activity>,
}

impl Current {
    /// A run that has a folder and no process yet.
    pub(super) fn new(run: BenchmarkRunInFull) -> Self {
        Self {
            changes: Mutex::new(Changes::new()),
            state: Mutex::new(State {
                run,
                samples: KeptSamples::default(),
                is_over: false,
                end: WrittenEnd::Written,
            }),
            writing: Mutex::default(),
            stops: AtomicBool::new(false),
            is_abandoned: AtomicBool::new(false),
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
        let state = self.state();
        let mut run = state.run.clone();
        if let WrittenEnd::Failed(why) = &state.end {
            let why = format!(
                "the end of the run is not written down, and is lost if the broker ends: {why}"
            );
            run.run.error = Some(match run.run.error.take() {
                Some(error) => format!("{error}; {why}"),
                None => why,
            });
            run.run.remedy = Some(UNWRITTEN_REMEDY.to_owned());
        }
        run
    }

    /// Samples with a higher number, at most so many, and its state.
    pub(super) fn samples(&self, after: u64, most: usize) -> (Vec<BenchmarkSample>, String) {
        let state = self.state();
        let samples = state.samples.after(after, most);
        (samples, state.run.run.state.clone())
    }

    /// The length of all stages.
    fn planned_secs(&self) -> f64 {
        self.state().run.run.planned_secs
    }

    /// Asks it to end; whether it was under way.
    pub(super) fn stop(&self) -> bool {
        self.stops.store(true, Ordering::Relaxed);
        !self.is_over()
    }

    /// Passes a change on to its process. All stages together stay within so many seconds.
    ///
    /// # Errors
    /// The run is over or drains, would be too long, or has had too many changes.
    pub(super) fn pass_on(
        &self,
        change: &BenchmarkChange,
        longest_secs: f64,
    ) -> Result<(), ProgramError> {
        let mut changes = lock(&self.changes);
        let state = self.state();
        let run = &state.run.run;
        if self.stops.load(Ordering::Relaxed) {
            let why = format!("the run {} is being stopped", run.id);
            return Err(refused(BenchmarkRefusal::Ended, why));
        }
        changes.pass_on(change, run, longest_secs)
    }

    /// Ends it at once, without a report, and waits for a moment until that is written down.
    pub(super) fn abandon(&self) {
        self.is_abandoned.store(true, Ordering::Relaxed);
        for _ in 0..ABANDON_LOOKS_MAX {
            let state = self.state();
            if state.is_over && state.end != WrittenEnd::Pending {
                return;
            }
            drop(state);
            std::thread::park_timeout(ABANDON_INTERVAL);
        }
    }

    /// Changes what is known of it, and writes it down.
    ///
    /// # Errors
    /// It cannot be written down, and is not changed.
    pub(super) fn change(
        &self,
        store: &Store,
        change: impl Fn(&mut BenchmarkRunInFull),
    ) -> Result<(), ProgramError> {
        let _held = lock(&self.writing);
        let (mut changed, is_over) = {
            let state = self.state();
            (state.run.clone(), state.is_over)
        };
        change(&mut changed);
        store.write(&changed)?;
        // It may have gone on meanwhile.
        let mut state = self.state();
        change(&mut state.run);
        if is_over {
            state.end = WrittenEnd::Written;
        }
        Ok(())
    }

    /// Writes its end down, unless that is done already.
    ///
    /// # Errors
    /// It cannot be written down.
    pub(super) fn write_end(&self, store: &Store) -> Result<(), ProgramError> {
        let _held = lock(&self.writing);
        let ended = {
            let state = self.state();
            if state.end == WrittenEnd::Written {
                return Ok(());
            }
            state.run.clone()
        };
        // Its end changes no more, and what else is changed waits.
        let (end, written) = match store.write(&ended) {
            // It is removed.
            Ok(()) | Err(ProgramError::Missing { .. }) => (WrittenEnd::Written, Ok(())),
            Err(error) => (WrittenEnd::Failed(error.to_string()), Err(error)),
        };
        self.state().end = end;
        written
    }

    /// Runs the process to its end.
    pub(super) fn conduct(&self, start: Start) {
        let Start {
            store,
            folder,
            confinement,
            arguments,
            password,
            drain,
            activity,
        } = start;
        activity.begin();
        let later = lock(&self.changes).take_receiver();
        let line = |secret: Secret| [secret.expose(), b"\n"].concat();
        let question = Question {
            folder: folder.clone(),
            arguments,
            input: password.map(line),
            later,
        };
        let ended = match confinement::start(confinement, question) {
            Ok(child) => {
                let bounds = Bounds::new(confinement.memory_bytes, drain);
                self.watch(child, &folder, bounds, &activity)
            }
            Err(error) => Ended {
                code: None,
                end: None,
                complaint: format!("error: the process cannot be started: {error}"),
                killed: None,
                was_stopped: false,
            },
        };
        self.conclude(ended, &activity);
        self.write_end_at_last(&store);
    }

    /// Notes its end.
    fn conclude(&self, ended: Ended, activity: &Activity) {
        // The thread that passes changes on ends with their sender.
        lock(&self.changes).end();
        let mut state = self.state();
        conclude(&mut state.run, ended);
        state.run.run.ended_at = Some(time(now()));
        let run = &state.run.run;
        tracing::info!(
            run = run.id,
            state = run.state,
            error = run.error,
            "a benchmark has ended"
        );
        state.samples.finish();
        state.end = WrittenEnd::Pending;
        activity.end(&state.run.run.state);
        state.is_over = true;
    }

    /// Tries until the end is written down.
    fn write_end_at_last(&self, store: &Weak<Store>) {
        let mut is_told = false;
        let write = || {
            store
                .upgrade()
                .map_or(Ok(()), |store| self.write_end(&store))
        };
        while let Err(error) = write() {
            if !is_told {
                tracing::warn!(%error, run = self.id(), "the end of a benchmark is not written down, and is tried again");
                is_told = true;
            }
            // The run is over, and nothing waits for this thread.
            std::thread::park_timeout(WRITE_INTERVAL);
        }
        if is_told {
            tracing::info!(run = self.id(), "the end of a benchmark is written down");
        }
    }

    fn watch(&self, mut child: Child, folder: &Path, bounds: Bounds, activity: &Activity) -> Ended {
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
        let mut watched = Watched {
            current: self,
            activity,
            samples: SampleFile::create(folder),
            bounds,
            child,
            began_ns: monotonic_ns(),
            said_ns: monotonic_ns(),
            stopped_ns: None,
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
        let mut changes = lock(&self.changes);
        let mut state = self.state();
        for mark in &sample.marks {
            changes.hear(mark, &mut state.run.run);
        }
        drop(changes);
        let to_secs = sample.at_secs + 1.0;
        "running".clone_into(&mut state.run.run.state);
        state.run.run.stage = Some(sample.stage.clone());
        let stages = &mut state.run.stages;
        if let Some(last) = stages.last_mut().filter(|last| last.name == sample.stage) {
            last.to_secs = to_secs;
        } else {
            // The second in which a stage ended is shorter.
            if let Some(before) = stages.last_mut() {
                before.to_secs = sample.at_secs;
            }
            stages.push(BenchmarkStage {
                name: sample.stage.clone(),
                from_secs: sample.at_secs,
                to_secs,
            });
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
    activity: &'a Activity,
    samples: SampleFile,
    bounds: Bounds,
    child: Child,
    began_ns: u64,
    /// When it said something last.
    said_ns: u64,
    /// When it was asked to end.
    stopped_ns: Option<u64>,
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

    fn excess(&self) -> Option<Killed> {
        let since = |ns: u64| Duration::from_nanos(monotonic_ns().saturating_sub(ns));
        if self.current.is_abandoned.load(Ordering::Relaxed) {
            return Some(Killed::BrokerStops);
        }
        let memory_bytes = resident_bytes(self.child.id());
        self.activity.take_memory(memory_bytes);
        self.bounds.excess(Taken {
            memory_bytes,
            planned_secs: self.current.planned_secs(),
            since_begun: since(self.began_ns),
            since_said: since(self.said_ns),
            since_stopped: self.stopped_ns.map(since),
        })
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

    /// A run in a store, with the place where its next file would be written.
    fn kept(store: &Store) -> (Current, PathBuf) {
        let mut run = BenchmarkRunInFull::default();
        run.run.state = "running".to_owned();
        let folder = store.create(&mut run).unwrap();
        let part = folder.path().join("run.json.part");
        folder.keep();
        (Current::new(run), part)
    }

    #[test]
    fn a_change_of_a_run_under_way_is_written_down_or_not_made() {
        let store = Store::open(Path::new(""));
        let (current, part) = kept(&store);
        let id = current.id();
        let change = |clients| current.change(&store, |run| run.run.clients = clients);
        change(7).unwrap();
        assert_eq!(store.read(&id).unwrap().run.clients, 7);
        std::fs::create_dir(&part).unwrap();
        assert!(change(8).is_err());
        assert_eq!(current.run().run.clients, 7);
    }

    #[test]
    fn an_end_that_cannot_be_written_down_is_shown_and_written_down_later() {
        let store = Store::open(Path::new(""));
        let (current, part) = kept(&store);
        let id = current.id();
        std::fs::create_dir(&part).unwrap();
        let ended = Ended {
            code: None,
            end: None,
            complaint: "error: the cause".to_owned(),
            killed: None,
            was_stopped: false,
        };
        current.conclude(ended, &Activity::default());
        assert!(current.write_end(&store).is_err());
        assert_eq!(store.read(&id).unwrap().run.state, "running");
        let run = current.run().run;
        let error = run.error.unwrap();
        assert_eq!(run.state, "failed");
        assert!(
            error.starts_with("the cause; ") && error.contains("not written down"),
            "{error}"
        );
        std::fs::remove_dir(&part).unwrap();
        current.write_end(&store).unwrap();
        let run = store.read(&id).unwrap().run;
        assert_eq!(
            (run.state.as_str(), run.error.as_deref()),
            ("failed", Some("the cause"))
        );
        assert_eq!(current.run().run.error, run.error);
        // One that is removed meanwhile is not waited for.
        let stopped = Ended {
            code: None,
            end: None,
            complaint: String::new(),
            killed: None,
            was_stopped: true,
        };
        current.conclude(stopped, &Activity::default());
        store.remove(&id).unwrap();
        current.write_end(&store).unwrap();
    }

    #[test]
    fn stages_follow_from_samples() {
        let current = Current::new(BenchmarkRunInFull::default());
        for (n, stage) in [(1, "ramp"), (2, "hold"), (3, "hold")] {
            current.add(BenchmarkSample {
                n,
                at_secs: [0.0, 0.8, 1.8][usize::try_from(n).unwrap() - 1],
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
        assert_eq!(stages, [("ramp", 0.8), ("hold", 2.8)]);
        assert_eq!(
            (run.run.state.as_str(), run.run.stage.as_deref()),
            ("running", Some("hold"))
        );
        assert_eq!(current.samples(1, 10).0.len(), 2);
        assert!(current.stop() && !current.is_over());
    }
}
