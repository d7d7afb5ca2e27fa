//! A run: rounds of load that end with a kill, quiet moments in between, and a report when
//! something is wrong.

mod faults;
mod plan;
mod report;
mod rounds;
mod stage;
mod storm;

pub use faults::run_with_faults;
pub use plan::Plan;
pub use rounds::{run, run_without_kills};
pub use storm::{Storm, run_in_storm};

use crate::checker::Counts;
use crate::disk::Lost;
use crate::event::Observed;

/// The result of a run.
#[derive(Debug)]
pub struct Outcome {
    /// The numbers of checks.
    pub counts: Counts,
    /// The changes that losses of power undid.
    pub lost: Lost,
    /// The end of what clients did and saw.
    pub history: Vec<Observed>,
}

impl Outcome {
    /// Fails if so little happened that the run proves nothing.
    ///
    /// # Panics
    /// Says what hardly happened.
    pub fn assert_telling(&self) {
        let Counts {
            kills,
            accepted,
            paid,
            resumed,
            resent,
            wills,
            retained,
            ..
        } = self.counts;
        let enough = [
            (accepted, 10),
            (paid, 20),
            (resumed, 5),
            (resent, 1),
            (wills, 1),
            (retained, 1),
        ];
        let is_telling = enough
            .iter()
            .all(|(count, per_kill)| *count >= kills * per_kill);
        assert!(
            is_telling,
            "too little happened to prove anything: {:?}",
            self.counts
        );
    }
}
