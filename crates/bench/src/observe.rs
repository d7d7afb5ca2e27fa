//! The observer of a run, which may change it.

use std::time::Duration;

use thrum_report::RunResult;
use thrum_report::live::SecondLatencies;

use crate::run::Status;

/// An observer. The coordinator's thread calls it, never a load thread.
pub trait Observer {
    /// The state of the run; called many times per second, so it must be quick.
    fn look(&mut self, status: &Status) {
        _ = status;
    }

    /// A note before the first connection: about the machine, or an awaited agent.
    fn note(&mut self, text: &str) {
        _ = text;
    }

    /// Whether to call [`Observer::second`]: the result so far takes a millisecond to make.
    fn wants_seconds(&self) -> bool {
        false
    }

    /// A second has passed, or several: the result so far, latencies, series and thresholds
    /// included, and the latencies of each of these seconds, which are the last ones of the series.
    fn second(&mut self, so_far: &RunResult, latest: &[SecondLatencies]) {
        _ = (so_far, latest);
    }

    /// Changes to the run, requested after each frame.
    fn next_command(&mut self) -> Option<Command> {
        None
    }
}

/// A change during a run; the result keeps each as a mark.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Multiply the rate of all publishers from now on.
    Rate(f64),
    /// Send nothing until [`Command::Resume`].
    Pause,
    /// Resume the previous rate.
    Resume,
    /// Extend the hold by this time.
    Extend(Duration),
    /// Write a note into the result.
    Note(String),
    /// End the hold now and report.
    Stop,
}
