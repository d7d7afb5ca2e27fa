//! One run from the first connection to the figures: starts the threads, keeps the stages,
//! collects.

mod commands;
mod coordinator;
mod hooks;
mod options;
mod prepare;

use std::io;
use std::time::Duration;

use thrum_load::plan::PlanError;
use thrum_load::scenario::Scenario;
use thrum_quic::DialError;
use thrum_report::result::Stage;
use thrum_transport::{ConnectorError, EndpointError};

use crate::agents::{AgentsError, ControlError};
use crate::observe::Observer;
use crate::outcome::Outcome;
use crate::preflight::PreflightError;
use crate::swarm::Progress;

pub(crate) use prepare::{Wired, connect};

pub use options::{BrokerProcess, RunOptions, THREADS_MAX, Target};

/// State of a run in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Current stage.
    pub stage: Stage,
    /// Since the beginning of the stage.
    pub elapsed: Duration,
    /// Planned duration of the stage.
    pub planned: Duration,
    /// Clients of the scenario.
    pub clients: u32,
    /// The reports of the threads.
    pub progress: Progress,
}

/// Why a run has no figures.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The scenario is invalid.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The target is invalid.
    #[error(transparent)]
    Target(#[from] EndpointError),
    /// TLS or WebSocket cannot be set up.
    #[error(transparent)]
    Connector(#[from] ConnectorError),
    /// QUIC cannot be set up.
    #[error("cannot connect to {target}: {cause}")]
    Quic {
        /// As typed.
        target: String,
        /// The error.
        cause: DialError,
    },
    /// A network that is made worse is made of TCP connections.
    #[error(
        "group '{group}' has a network of its own, which QUIC does not go through: take its network away, or give its \
         target by mqtt://, mqtts://, ws:// or wss://"
    )]
    NetworkOverQuic {
        /// Name of the group.
        group: String,
    },
    /// A broker of the scenario has no address.
    #[error("the scenario needs the address of {}: give --target {name}=mqtt://HOST:PORT", if name.is_empty() { "a broker".to_owned() } else { format!("broker '{name}'") })]
    NoTarget {
        /// Name of the target in the scenario.
        name: String,
    },
    /// This machine or the broker cannot do it.
    #[error(transparent)]
    Preflight(#[from] PreflightError),
    /// No client was accepted.
    #[error("no client was accepted by {target}: {reason}")]
    NobodyAccepted {
        /// As typed.
        target: String,
        /// The most frequent reason.
        reason: String,
    },
    /// The process to measure is not there.
    #[error("no process with pid {0} can be measured")]
    NoProcess(u32),
    /// A fault has no command.
    #[error(
        "the scenario runs a command at {at:?} into the hold, and names none: give one with --on-fault 'COMMAND'"
    )]
    NoHook {
        /// From the start of the hold.
        at: Duration,
    },
    /// The kernel refused something that the generator needs.
    #[error("the generator failed: {0}")]
    Generator(#[from] io::Error),
    /// A thread panicked: a bug.
    #[error("a thread of the generator ended unexpectedly")]
    ThreadDied,
    /// An agent is gone.
    #[error("agent '{name}' {why}: the run ends because its clients are gone")]
    AgentLost {
        /// Its name.
        name: String,
        /// The event.
        why: String,
    },
    /// A run with agents did not begin, or the control broker is gone.
    #[error(transparent)]
    Agents(#[from] AgentsError),
}

impl RunError {
    /// Exit code of the command line.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Target(EndpointError::Unresolved { .. })
            | Self::Preflight(PreflightError::Unreachable { .. })
            | Self::NobodyAccepted { .. }
            | Self::Agents(AgentsError::Control(ControlError::Unreachable { .. })) => 5,
            Self::Agents(AgentsError::Interrupted) => 130,
            Self::Plan(_)
            | Self::NoProcess(_)
            | Self::NoHook { .. }
            | Self::NoTarget { .. }
            | Self::Target(_)
            | Self::Connector(_)
            | Self::Quic { .. }
            | Self::NetworkOverQuic { .. }
            | Self::Preflight(_) => 2,
            Self::Generator(_)
            | Self::ThreadDied
            | Self::AgentLost { .. }
            | Self::Agents(
                AgentsError::Control(_) | AgentsError::Missing { .. } | AgentsError::Late { .. },
            ) => 1,
            Self::Agents(_) => 2,
        }
    }
}

/// Runs a scenario; `observer` is called many times per second with where it is.
///
/// # Errors
/// The run could not start, or no client was accepted.
pub fn run(
    scenario: Scenario,
    options: &RunOptions,
    observer: &mut dyn Observer,
) -> Result<Outcome, RunError> {
    let prepared = prepare::prepare(scenario, options, observer)?;
    coordinator::Coordinator::start(prepared, options, observer)?.conduct()
}
