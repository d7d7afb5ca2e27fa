//! An agent: waits for runs and takes part in them.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use thrum_transport::{ConnectorError, Endpoint};

use super::agent_idle::wait_for_run;
use super::agent_run::{AgentRun, AgentRunError};
use super::control_connection::ControlError;
use super::message::Refusal;
use super::registry::VERSION;
use super::watch::Watch;
use crate::clock;
use crate::kernel_text;
use crate::run::THREADS_MAX;

/// Longest name of an agent, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// Pause between two attempts to join a run.
pub(super) const RETRY: Duration = Duration::from_secs(1);

/// The options of an agent.
#[derive(Clone, Debug)]
pub struct AgentOptions {
    /// The broker of coordinator and agents.
    pub control: Endpoint,
    /// Its name, unique in a run; by default that of the machine.
    pub name: Option<String>,
    /// Threads that generate load; by default one per core, and none if the agent watches a
    /// process.
    pub threads: Option<u32>,
    /// Processes of this machine to watch: the brokers.
    pub watches: Vec<Watch>,
    /// End after one run.
    pub once: bool,
    /// Set from outside to end.
    pub interrupt: Arc<AtomicBool>,
}

/// Why an agent ended.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// An unreadable name.
    #[error("'{0}' is not a valid agent name: give 1 to {NAME_BYTES_MAX} bytes of text")]
    Name(String),
    /// Too many, or none and nothing to watch.
    #[error(
        "{0} threads are not possible: give 1 to {THREADS_MAX}, or --watch for an agent without load"
    )]
    Threads(u32),
    /// The control broker cannot be used.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// Another version.
    #[error(
        "the coordinator is thrum {coordinator}, this is {VERSION}: use the same version on all machines"
    )]
    Version {
        /// The coordinator's.
        coordinator: String,
    },
    /// Another agent has its name.
    #[error("another agent of the run is called '{0}' too: give another --name")]
    NameTaken(String),
    /// The one run that it was started for failed.
    #[error("the run failed: {0}")]
    Run(String),
}

/// Takes part in runs until it is interrupted, or in one.
///
/// # Errors
/// It cannot take part in any run, or the one run failed.
pub fn serve(options: &AgentOptions, log: &mut dyn FnMut(&str)) -> Result<(), AgentError> {
    let name = name(options)?;
    let threads = threads(options)?;
    log(&format!(
        "agent '{name}' waits for a run at {}",
        options.control
    ));
    while let Some(session) = wait_for_run(options, log)? {
        let run = AgentRun::begin(options, &name, threads, &session);
        let ended = run.and_then(|mut run| run.attend(log));
        let was_full = matches!(&ended, Err(AgentRunError::Refused(Refusal::Full)));
        match ended {
            Ok(()) => log("the run is over"),
            Err(AgentRunError::Interrupted) => return Ok(()),
            Err(AgentRunError::Refused(Refusal::Full)) => {
                log("a run has all its agents; waiting for another run");
            }
            Err(AgentRunError::Refused(Refusal::Version(coordinator))) => {
                return Err(AgentError::Version { coordinator });
            }
            Err(AgentRunError::Refused(Refusal::Name)) => return Err(AgentError::NameTaken(name)),
            Err(error) if options.once => return Err(AgentError::Run(error.to_string())),
            Err(error) => log(&format!("the run failed: {error}")),
        }
        if options.once && !was_full {
            return Ok(());
        }
        clock::rest(RETRY);
    }
    Ok(())
}

fn name(options: &AgentOptions) -> Result<String, AgentError> {
    let of_machine = || kernel_text::setting("/proc/sys/kernel/hostname");
    let name = options.name.clone().or_else(of_machine);
    let name = name.unwrap_or_else(|| "agent".to_owned());
    let is_readable = !name.is_empty() && name.len() <= NAME_BYTES_MAX;
    if !is_readable || name.chars().any(char::is_control) {
        return Err(AgentError::Name(name));
    }
    Ok(name)
}

fn threads(options: &AgentOptions) -> Result<u32, AgentError> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let cores = u32::try_from(cores).unwrap_or(THREADS_MAX).min(THREADS_MAX);
    let by_default = if options.watches.is_empty() { cores } else { 0 };
    let threads = options.threads.unwrap_or(by_default);
    let is_idle = threads == 0 && options.watches.is_empty();
    if threads > THREADS_MAX || is_idle {
        return Err(AgentError::Threads(threads));
    }
    Ok(threads)
}

/// Whether a retry cannot succeed.
pub(super) const fn is_final(error: &ControlError) -> bool {
    matches!(
        error,
        ControlError::Refused { .. }
            | ControlError::Connector(
                ConnectorError::NoTls(_)
                    | ConnectorError::NoRoots
                    | ConnectorError::ServerName(_)
                    | ConnectorError::Tls(_)
            )
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> AgentOptions {
        AgentOptions {
            control: Endpoint::parse("mqtt://127.0.0.1:1").unwrap(),
            name: None,
            threads: None,
            watches: Vec::new(),
            once: true,
            interrupt: Arc::default(),
        }
    }

    #[test]
    fn a_watching_agent_generates_load_only_if_asked() {
        let watching = AgentOptions {
            watches: vec![Watch::parse("1883").unwrap()],
            ..options()
        };
        assert_eq!(threads(&watching).unwrap(), 0);
        let both = AgentOptions {
            threads: Some(3),
            ..watching
        };
        assert_eq!(threads(&both).unwrap(), 3);
        assert!(threads(&options()).unwrap() >= 1);
    }

    #[test]
    fn an_agent_needs_something_to_do_and_a_readable_name() {
        let idle = AgentOptions {
            threads: Some(0),
            ..options()
        };
        assert!(matches!(threads(&idle), Err(AgentError::Threads(0))));
        let nameless = AgentOptions {
            name: Some(String::new()),
            ..options()
        };
        assert!(matches!(name(&nameless), Err(AgentError::Name(_))));
        assert!(!name(&options()).unwrap().is_empty());
    }
}
