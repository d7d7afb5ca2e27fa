//! Commands that a scenario runs during the hold: they kill and restart the broker, or cut a cable.

use std::process::{Child, Command, Stdio};

use thrum_figures::{nanos, percent, span};
use thrum_load::scenario::{Fault, FaultKind, Scenario, Victims};
use thrum_report::result::Mark;

/// Faults of a run and the commands that are under way.
pub(super) struct Hooks {
    /// Future faults, the next one last.
    to_come: Vec<Fault>,
    on_fault: Option<String>,
    running: Vec<(String, Child)>,
}

impl Hooks {
    pub(super) fn new(scenario: &Scenario, on_fault: Option<&str>) -> Self {
        let mut to_come = scenario.faults.clone();
        to_come.sort_by_key(|fault| std::cmp::Reverse(fault.at));
        Self {
            to_come,
            on_fault: on_fault.map(ToOwned::to_owned),
            running: Vec::new(),
        }
    }

    /// Begins the faults due at this time after the start of the hold; returns a description of
    /// each.
    pub(super) fn begin_due(&mut self, in_hold_ns: u64, at_seconds: f64, marks: &mut Vec<Mark>) {
        let mut texts = Vec::new();
        while let Some(fault) = self.to_come.pop_if(|fault| nanos(fault.at) <= in_hold_ns) {
            texts.push(words(&fault));
            if let FaultKind::Hook { command } = &fault.kind {
                texts.extend(self.start(command));
            }
        }
        marks.extend(texts.into_iter().map(|text| Mark {
            at: at_seconds,
            text,
            ..Mark::default()
        }));
    }

    /// Describes how commands ended, which may be after the hold.
    pub(super) fn look_after(&mut self, at_seconds: f64, marks: &mut Vec<Mark>) {
        self.running.retain_mut(|(command, child)| {
            let text = match child.try_wait() {
                Ok(None) => return true,
                Ok(Some(status)) => format!("'{command}' ended: {status}"),
                Err(error) => format!("'{command}' is lost: {error}"),
            };
            marks.push(Mark {
                at: at_seconds,
                text,
                ..Mark::default()
            });
            false
        });
    }

    /// Starts a command; returns the reason if it cannot be started.
    fn start(&mut self, command: &str) -> Option<String> {
        let by_default = self.on_fault.as_deref().unwrap_or_default();
        let command = if command.is_empty() {
            by_default
        } else {
            command
        }
        .to_owned();
        match start(&command) {
            Ok(child) => {
                self.running.push((command, child));
                None
            }
            Err(error) => Some(format!("'{command}' could not be started: {error}")),
        }
    }
}

/// Its output goes to standard error: standard output is for the report.
fn start(command: &str) -> std::io::Result<Child> {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(std::io::stderr());
    shell.spawn()
}

fn words(fault: &Fault) -> String {
    let shown = |victims: &Victims| {
        let share = percent(victims.share);
        match &victims.group {
            Some(group) => format!("{share} of {group}"),
            None => format!("{share} of all clients"),
        }
    };
    match &fault.kind {
        FaultKind::Disconnect { victims, reset } => {
            let how = if *reset { "reset" } else { "closed" };
            format!("connections of {} {how}", shown(victims))
        }
        FaultKind::StopReading { victims } => {
            format!("{} stop reading for {}", shown(victims), span(fault.lasts))
        }
        FaultKind::Freeze { victims } => {
            format!("{} freeze for {}", shown(victims), span(fault.lasts))
        }
        FaultKind::Hook { command } if command.is_empty() => {
            "the --on-fault command runs".to_owned()
        }
        FaultKind::Hook { command } => format!("'{command}' runs"),
    }
}
