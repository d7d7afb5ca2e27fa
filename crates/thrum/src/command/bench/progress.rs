//! Lines of progress on standard error, where no live view is drawn.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use thrum_bench::Status;
use thrum_bench::observe::{Command, Observer};
use thrum_report::progress_line;
use thrum_report::result::Second;

use super::overall::Overall;

/// Between two lines of progress.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

/// Notes that were shown; guards the set alone, and is held for a line.
static NOTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Prints a line when a stage begins and every few seconds.
pub(super) struct Lines {
    prefix: String,
    shown: Option<Status>,
    since: Duration,
    note: Option<String>,
    overall: Option<Overall>,
}

impl Lines {
    /// Lines that begin with `prefix`, and end with where the series is; `note` goes into the
    /// result.
    pub(super) fn new(prefix: &str, note: Option<String>, overall: Option<Overall>) -> Self {
        Self {
            prefix: prefix.to_owned(),
            shown: None,
            since: Duration::ZERO,
            note,
            overall,
        }
    }

    /// The line to print now, if any.
    fn line(&mut self, status: &Status) -> Option<String> {
        let stage_began = self.shown.is_none_or(|shown| shown.stage != status.stage);
        if stage_began {
            self.since = status.elapsed;
        }
        if !stage_began && status.elapsed.saturating_sub(self.since) < PROGRESS_INTERVAL {
            return None;
        }
        let line = progress_line(
            status.elapsed,
            status.planned,
            u64::from(status.clients),
            &self.since_shown(status),
        );
        self.since = status.elapsed;
        self.shown = Some(*status);
        let overall = self.overall.as_ref();
        let overall =
            overall.map_or_else(String::new, |of| format!(" · {}", of.text(Some(status))));
        Some(format!("{}{line}{overall}", self.prefix))
    }
}

impl Lines {
    /// The counts since the last line; no rates if a stage has just begun.
    fn since_shown(&self, status: &Status) -> Second {
        let same_stage = self.shown.filter(|shown| shown.stage == status.stage);
        let before = same_stage.map_or(status.progress, |shown| shown.progress);
        let elapsed = same_stage.map_or(Duration::ZERO, |shown| {
            status.elapsed.saturating_sub(shown.elapsed)
        });
        let now = &status.progress;
        Second {
            stage: status.stage,
            span: elapsed.as_secs_f64(),
            up: now.up,
            connected: now.ready.saturating_sub(before.ready),
            failed: now.failed.saturating_sub(before.failed),
            lost: now.lost.saturating_sub(before.lost),
            sent: now.sent.saturating_sub(before.sent),
            received: now.received.saturating_sub(before.received),
            ..Second::default()
        }
    }
}

impl Observer for Lines {
    fn note(&mut self, text: &str) {
        // The description of the machine holds for all runs of a series.
        let mut noted = NOTED.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.insert(text.to_owned()) {
            // Standard error may be closed; the run continues.
            writeln!(std::io::stderr(), "{}note: {text}", self.prefix).ok();
        }
    }

    fn look(&mut self, status: &Status) {
        if let Some(line) = self.line(status) {
            // Standard error may be closed; the run continues.
            writeln!(std::io::stderr(), "{line}").ok();
        }
    }

    fn next_command(&mut self) -> Option<Command> {
        self.note.take().map(Command::Note)
    }
}

/// An observer that only hands over the note.
pub(super) struct Quiet(pub(super) Option<String>);

impl Observer for Quiet {
    fn next_command(&mut self) -> Option<Command> {
        self.0.take().map(Command::Note)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thrum_bench::{Progress, Stage};

    fn status(stage: Stage, seconds: u64) -> Status {
        Status {
            stage,
            elapsed: Duration::from_secs(seconds),
            planned: Duration::from_mins(1),
            clients: 10,
            progress: Progress::default(),
        }
    }

    #[test]
    fn a_line_comes_when_a_stage_begins_and_every_five_seconds() {
        let mut lines = Lines::new("", None, None);
        let mut printed = |stage, seconds| lines.line(&status(stage, seconds)).is_some();
        assert!(printed(Stage::Ramp, 0));
        assert!(!printed(Stage::Ramp, 4));
        assert!(printed(Stage::Ramp, 5));
        assert!(printed(Stage::Hold, 0));
        assert!(!printed(Stage::Hold, 1));
    }

    #[test]
    fn a_note_is_handed_over_once() {
        let mut lines = Lines::new("", Some("new kernel".to_owned()), None);
        assert_eq!(
            lines.next_command(),
            Some(Command::Note("new kernel".to_owned()))
        );
        assert_eq!(lines.next_command(), None);
    }
}
