//! Somebody who looks on while a run is under way, and may change it.

use std::time::Duration;

use thrum_report::RunResult;

use crate::run::Status;

/// An onlooker. It is called by the coordinator's thread, never by those that make the load.
pub trait Observer {
    /// Where the run is; many times per second, so it must be quick.
    fn look(&mut self, status: &Status) {
        _ = status;
    }

    /// Something worth a line before the first connection: what is to be known of the machine, who
    /// is waited for.
    fn note(&mut self, text: &str) {
        _ = text;
    }

    /// Whether [`Observer::second`] is to be called: the result so far takes a millisecond to make.
    fn wants_seconds(&self) -> bool {
        false
    }

    /// A second has passed: the result so far, latencies, series and thresholds included.
    fn second(&mut self, so_far: &RunResult) {
        _ = so_far;
    }

    /// What to change, asked after each look.
    fn next_command(&mut self) -> Option<Command> {
        None
    }
}

/// A change of a run under way; each is kept in the result as a mark.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Multiply the rate of all publishers from now on.
    Rate(f64),
    /// Send nothing until [`Command::Resume`].
    Pause,
    /// Go on with the rate of before.
    Resume,
    /// Hold for so much longer.
    Extend(Duration),
    /// Write a note into the result.
    Note(String),
    /// End the hold now and report.
    Stop,
}
