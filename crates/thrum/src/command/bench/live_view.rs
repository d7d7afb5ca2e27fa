//! The live view as an observer: it hands over a note of the command line before the keys'
//! commands.

use thrum_bench::observe::{Command, Observer};
use thrum_bench::{Stage, Status};
use thrum_report::RunResult;
use thrum_report::live::SecondLatencies;

use super::overall::Overall;
use crate::tui::BenchView;

/// The live view; the terminal is as before when it is dropped.
pub(super) struct View {
    screen: BenchView,
    note: Option<String>,
    overall: Option<Overall>,
    /// Whole seconds of the stage for which the place in the series was told.
    told: Option<(Stage, u64)>,
}

impl View {
    /// Shows where the series is from now on, if the run is part of one; `note` goes into the
    /// result.
    pub(super) fn new(screen: BenchView, note: Option<String>, overall: Option<Overall>) -> Self {
        Self {
            screen,
            note,
            overall,
            told: None,
        }
    }
}

impl Observer for View {
    fn look(&mut self, status: &Status) {
        let now = Some((status.stage, status.elapsed.as_secs()));
        if let Some(overall) = self.overall.as_ref().filter(|_| now != self.told) {
            self.screen.set_series(&overall.short_text(Some(status)));
            self.told = now;
        }
        self.screen.look(status);
    }

    fn wants_seconds(&self) -> bool {
        true
    }

    fn second(&mut self, so_far: &RunResult, latest: &[SecondLatencies]) {
        self.screen.second(so_far, latest);
    }

    fn next_command(&mut self) -> Option<Command> {
        self.note
            .take()
            .map(Command::Note)
            .or_else(|| self.screen.next_command())
    }
}
