//! The live view as an observer: it hands over a note of the command line before the keys'
//! commands.

use thrum_bench::Status;
use thrum_bench::observe::{Command, Observer};
use thrum_report::RunResult;

use crate::tui::BenchView;

/// The live view; the terminal is as before when it is dropped.
pub(super) struct View {
    view: BenchView,
    note: Option<String>,
}

impl View {
    pub(super) const fn new(view: BenchView, note: Option<String>) -> Self {
        Self { view, note }
    }
}

impl Observer for View {
    fn look(&mut self, status: &Status) {
        self.view.look(status);
    }

    fn wants_seconds(&self) -> bool {
        true
    }

    fn second(&mut self, so_far: &RunResult) {
        self.view.second(so_far);
    }

    fn next_command(&mut self) -> Option<Command> {
        self.note
            .take()
            .map(Command::Note)
            .or_else(|| self.view.next_command())
    }
}
