//! Those who make the load: the threads of this process, and agents on other machines.

mod local;

use thrum_report::result::{Agent, Generator};

use crate::monitor::Moment;
use crate::pacing::Warp;
use crate::record::Slice;
use crate::run::RunError;
use crate::swarm::{Progress, ThreadReport, Timeline};

pub(crate) use local::{GeneratorSetup, LocalGenerator};

/// A part of the generator: it has its own clients and does what the coordinator says. All times
/// are of the coordinator's clock.
pub(crate) trait LoadGenerator {
    /// What its threads report.
    fn progress(&self) -> Progress;

    /// Sets the times of the load and the changes of its rate; the last word counts.
    fn order(&mut self, timeline: Timeline, warp: &Warp);

    /// Something begins or ends: CPU times and other accounts are read.
    fn mark(&mut self, moment: Moment);

    /// Hands over the seconds that are complete.
    fn take_slices(&mut self, take: &mut dyn FnMut(&Slice));

    /// Looks whether it is still there.
    ///
    /// # Errors
    /// It is not: its clients are gone, and with them the meaning of the run.
    fn check(&mut self) -> Result<(), RunError>;

    /// Tells it to disconnect its clients and to end.
    fn stop(&mut self);

    /// Waits for its end and hands over the rest.
    ///
    /// # Errors
    /// It failed.
    fn finish(self: Box<Self>, take: &mut dyn FnMut(&Slice)) -> Result<GeneratorReport, RunError>;
}

/// What a generator counted.
#[derive(Debug)]
pub(crate) struct GeneratorReport {
    /// Its threads.
    pub(crate) threads: Vec<ThreadReport>,
    /// What it used.
    pub(crate) generator: Generator,
    /// Who it is, if it was another machine.
    pub(crate) agent: Option<Agent>,
}
