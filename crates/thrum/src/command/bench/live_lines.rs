//! Progress for programs: lines of JSON on standard output.

use std::io::Write as _;
use std::path::Path;
use std::sync::mpsc::Receiver;

use thrum_bench::observe::{Command, Observer};
use thrum_load::scenario::Scenario;
use thrum_report::RunResult;
use thrum_report::live::{LIVE_SCHEMA, LiveBegin, LiveEnd, LiveLine, Sampler, SecondLatencies};

/// Prints a line for each second.
#[derive(Debug, Default)]
pub(super) struct LiveLines<'a> {
    note: Option<String>,
    /// Of another program, which changes the run.
    changes: Option<&'a Receiver<Command>>,
    sampler: Sampler,
}

impl<'a> LiveLines<'a> {
    /// `note` goes into the result.
    pub(super) fn new(note: Option<String>, changes: Option<&'a Receiver<Command>>) -> Self {
        Self {
            note,
            changes,
            sampler: Sampler::default(),
        }
    }
}

impl Observer for LiveLines<'_> {
    fn note(&mut self, text: &str) {
        // Standard error may be closed; the run continues.
        writeln!(std::io::stderr(), "note: {text}").ok();
    }

    fn wants_seconds(&self) -> bool {
        true
    }

    fn second(&mut self, so_far: &RunResult, latest: &[SecondLatencies]) {
        for sample in self.sampler.samples(so_far, latest) {
            print(&LiveLine::Sample(Box::new(sample)));
        }
    }

    fn next_command(&mut self) -> Option<Command> {
        let note = self.note.take().map(Command::Note);
        note.or_else(|| self.changes?.try_recv().ok())
    }
}

/// Tells that a run begins.
pub(super) fn begin(scenario: &Scenario, target: &str) {
    let stages = scenario.stages;
    let planned = scenario.ramp() + stages.warm_up + stages.hold + stages.drain;
    print(&LiveLine::Begin(Box::new(LiveBegin {
        schema: LIVE_SCHEMA,
        scenario: scenario.name.clone(),
        target: target.to_owned(),
        clients: scenario.clients(),
        planned_secs: planned.as_secs_f64(),
    })));
}

/// Tells the end of a run.
pub(super) fn end(run: &RunResult, folder: Option<&Path>) {
    let folder = folder.map(|folder| folder.display().to_string());
    print(&LiveLine::End(Box::new(LiveEnd::new(run, folder))));
}

fn print(line: &LiveLine) {
    let Ok(json) = serde_json::to_string(line) else {
        return;
    };
    let mut out = std::io::stdout().lock();
    // Nobody may read any longer; the run continues, and is kept.
    writeln!(out, "{json}").and_then(|()| out.flush()).ok();
}
