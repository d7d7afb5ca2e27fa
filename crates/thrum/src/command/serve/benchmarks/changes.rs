//! Changes of a run under way, on their way to its process.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use thrum_management::api::{BenchmarkMark, BenchmarkRun};
use thrum_management::{BenchmarkChange, BenchmarkRefusal, ProgramError};

use super::refused;
use crate::command::ChangeLine;

/// Changes that wait for the process, which reads at once unless it hangs.
const WAITING_MAX: usize = 16;
/// Changes of a run: the result keeps each of them.
const CHANGES_MAX: usize = 1_000;

/// Passes changes on; without a sender the run is over.
#[derive(Debug)]
pub(super) struct Changes {
    sender: Option<SyncSender<Vec<u8>>>,
    /// Until the process begins.
    receiver: Option<Receiver<Vec<u8>>>,
    count: usize,
    /// Seconds of extensions that the process has not answered yet.
    pending_secs: f64,
}

impl Changes {
    pub(super) fn new() -> Self {
        let (sender, receiver) = sync_channel(WAITING_MAX);
        Self {
            sender: Some(sender),
            receiver: Some(receiver),
            count: 0,
            pending_secs: 0.0,
        }
    }

    /// What the process reads, once.
    pub(super) const fn take_receiver(&mut self) -> Option<Receiver<Vec<u8>>> {
        self.receiver.take()
    }

    /// The process has ended: so does the thread that passes changes on to it.
    pub(super) fn end(&mut self) {
        self.sender = None;
        self.receiver = None;
    }

    /// Passes a change on. What it changes of the plan is known when the process has made it.
    ///
    /// # Errors
    /// The measured part is over, the run would be longer than `longest_secs`, there were too many
    /// changes, or the process does not read them.
    pub(super) fn pass_on(
        &mut self,
        change: &BenchmarkChange,
        run: &BenchmarkRun,
        longest_secs: f64,
    ) -> Result<(), ProgramError> {
        let ended = |why: &str| refused(BenchmarkRefusal::Ended, why.to_owned());
        let Some(sender) = &self.sender else {
            return Err(ended("the run has ended"));
        };
        if run.stage.as_deref() == Some("drain") {
            return Err(ended("the measured part of the run is over"));
        }
        let extend_secs = match change {
            BenchmarkChange::Extend(secs) => *secs,
            _ => 0.0,
        };
        let planned_secs = run.planned_secs + self.pending_secs + extend_secs;
        if extend_secs > 0.0 && planned_secs > longest_secs {
            let why = format!(
                "all stages would last {planned_secs:.0} s; management.benchmarks.duration allows \
                 {longest_secs:.0} s"
            );
            return Err(refused(BenchmarkRefusal::NotChanged, why));
        }
        if self.count >= CHANGES_MAX {
            let why = format!("the run has been changed {CHANGES_MAX} times");
            return Err(refused(BenchmarkRefusal::NotChanged, why));
        }
        let line = serde_json::to_vec(&line(change));
        let mut line = line.map_err(|error| ProgramError::Io(error.to_string()))?;
        line.push(b'\n');
        sender.try_send(line).map_err(|_| {
            let why = format!("{WAITING_MAX} changes before it are not taken yet");
            refused(BenchmarkRefusal::NotChanged, why)
        })?;
        self.count += 1;
        self.pending_secs += extend_secs;
        Ok(())
    }

    /// Takes over what the process says of a change.
    pub(super) fn hear(&mut self, mark: &BenchmarkMark, run: &mut BenchmarkRun) {
        let secs = mark.value.unwrap_or(0.0);
        match mark.kind.as_str() {
            "extended" => {
                run.planned_secs += secs;
                run.duration_secs += secs;
                self.pending_secs = (self.pending_secs - secs).max(0.0);
            }
            "not_changed" => self.pending_secs = (self.pending_secs - secs).max(0.0),
            _ => {}
        }
    }
}

fn line(change: &BenchmarkChange) -> ChangeLine {
    match change {
        BenchmarkChange::Rate(factor) => ChangeLine::Rate(*factor),
        BenchmarkChange::Pause => ChangeLine::Pause,
        BenchmarkChange::Resume => ChangeLine::Resume,
        BenchmarkChange::Extend(secs) => ChangeLine::ExtendSecs(*secs),
        BenchmarkChange::Note(text) => ChangeLine::Note(text.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> BenchmarkRun {
        BenchmarkRun {
            planned_secs: 60.0,
            duration_secs: 50.0,
            stage: Some("hold".to_owned()),
            ..BenchmarkRun::default()
        }
    }

    fn refusal(passed: &Result<(), ProgramError>) -> Option<BenchmarkRefusal> {
        match passed {
            Err(ProgramError::Benchmark { refusal, .. }) => Some(*refusal),
            _ => None,
        }
    }

    fn mark(kind: &str, secs: f64) -> BenchmarkMark {
        BenchmarkMark {
            kind: kind.to_owned(),
            value: Some(secs),
            ..BenchmarkMark::default()
        }
    }

    #[test]
    fn an_extension_counts_when_the_process_has_made_it_and_stays_within_the_longest_run() {
        let (mut changes, mut run) = (Changes::new(), run());
        let lines = changes.take_receiver().unwrap();
        let extend = BenchmarkChange::Extend(30.0);
        changes.pass_on(&extend, &run, 100.0).unwrap();
        // Two that are on their way are both counted.
        let again = changes.pass_on(&extend, &run, 100.0);
        assert_eq!(refusal(&again), Some(BenchmarkRefusal::NotChanged));
        assert!((run.planned_secs - 60.0).abs() < 0.1);
        changes.hear(&mark("extended", 30.0), &mut run);
        assert!((run.planned_secs - 90.0).abs() < 0.1);
        assert!((run.duration_secs - 80.0).abs() < 0.1);
        // One that the process refuses gives its time back.
        let short = BenchmarkChange::Extend(10.0);
        changes.pass_on(&short, &run, 100.0).unwrap();
        assert!(changes.pass_on(&short, &run, 100.0).is_err());
        changes.hear(&mark("not_changed", 10.0), &mut run);
        changes.pass_on(&short, &run, 100.0).unwrap();
        // Another change does not need the time.
        changes.pass_on(&BenchmarkChange::Pause, &run, 1.0).unwrap();
        drop(changes);
        let lines: Vec<_> = lines.iter().collect();
        assert_eq!(lines.len(), 4);
        assert_eq!(lines[0], b"{\"extend_secs\":30.0}\n");
        assert_eq!(lines[3], b"\"pause\"\n");
    }

    #[test]
    fn a_run_that_drains_or_is_over_takes_no_change() {
        let (mut changes, mut run) = (Changes::new(), run());
        run.stage = Some("drain".to_owned());
        let late = changes.pass_on(&BenchmarkChange::Pause, &run, 100.0);
        assert_eq!(refusal(&late), Some(BenchmarkRefusal::Ended));
        run.stage = Some("hold".to_owned());
        changes.end();
        let late = changes.pass_on(&BenchmarkChange::Pause, &run, 100.0);
        assert_eq!(refusal(&late), Some(BenchmarkRefusal::Ended));
    }

    #[test]
    fn a_process_that_does_not_read_gets_no_more_changes_than_can_wait() {
        let (mut changes, run) = (Changes::new(), run());
        for _ in 0..WAITING_MAX {
            changes
                .pass_on(&BenchmarkChange::Rate(1.1), &run, 100.0)
                .unwrap();
        }
        let extend = changes.pass_on(&BenchmarkChange::Extend(1.0), &run, 100.0);
        assert_eq!(refusal(&extend), Some(BenchmarkRefusal::NotChanged));
        assert!(changes.pending_secs.abs() < 0.1);
    }
}
