//! A run: rounds of load that end with a kill, quiet moments in between, and a report when something is wrong.

mod faults;
mod plan;
mod report;
mod rounds;
mod stage;

pub use faults::run_with_faults;
pub use plan::Plan;
pub use rounds::{run, run_without_kills};

use crate::checker::Counts;
use crate::disk::Lost;
use crate::event::Observed;

/// What came of a run.
#[derive(Debug)]
pub struct Outcome {
    /// How often what was checked.
    pub counts: Counts,
    /// What losses of power took back.
    pub lost: Lost,
    /// The end of what clients did and saw.
    pub history: Vec<Observed>,
}
