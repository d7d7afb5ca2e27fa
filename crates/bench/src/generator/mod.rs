//! Load generators: the threads of this process, and agents on other machines.

mod local;

use thrum_load::pacing::Warp;
use thrum_load::thread_report::ThreadReport;
use thrum_report::result::{Agent, Generator};

use crate::monitor::Moment;
use crate::record::Slice;
use crate::run::RunError;
use crate::swarm::{Progress, Timeline};

pub(crate) use local::{GeneratorSetup, LocalGenerator};

/// A part of the generator: it has its own clients and executes the coordinator's orders. All times
/// are of the coordinator's clock.
pub(crate) trait LoadGenerator {
    /// The reports of its threads.
    fn progress(&self) -> Progress;

    /// Sets the times of the load and the changes of its rate; the last order counts.
    fn order(&mut self, timeline: Timeline, warp: &Warp);

    /// Marks the begin or end of a stage: reads CPU times and other accounts.
    fn mark(&mut self, moment: Moment);

    /// Hands over the seconds that are complete.
    fn take_slices(&mut self, take: &mut dyn FnMut(&Slice));

    /// Checks that the generator still runs.
    ///
    /// # Errors
    /// It ended unexpectedly: its clients are gone, and the run has no result.
    fn check(&mut self) -> Result<(), RunError>;

    /// Orders it to disconnect its clients and end.
    fn stop(&mut self);

    /// Waits for its end and hands over the remaining seconds.
    ///
    /// # Errors
    /// The generator failed.
    fn finish(self: Box<Self>, take: &mut dyn FnMut(&Slice)) -> Result<GeneratorReport, RunError>;
}

/// The counts of a generator.
#[derive(Debug)]
pub(crate) struct GeneratorReport {
    /// Its threads.
    pub(crate) threads: Vec<ThreadReport>,
    /// Its resources.
    pub(crate) generator: Generator,
    /// The agent, if it is another machine.
    pub(crate) agent: Option<Agent>,
}
