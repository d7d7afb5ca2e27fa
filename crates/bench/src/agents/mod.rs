//! Load from several machines: a coordinator and agents that talk over MQTT.
//!
//! ```text
//!   agent: serve --> agent_idle (awaits a run) --> AgentRun: join, clock, prepare, go, report
//!                                                     |  fragments of at most 64 KiB, QoS 1
//!   coordinator: RemoteAgents --> AgentRegistry (one connection) --> RemoteGenerator (per agent)
//! ```
//!
//! Invariant: the loss of an agent or of the coordinator is detected within `SILENCE_NS_MAX`, and
//! the run then fails with its name.

mod agent_idle;
mod agent_run;
mod channel;
mod control_connection;
mod control_socket;
mod fragment;
mod load;
mod message;
mod offset;
mod registry;
mod remote_agents;
mod remote_generator;
mod serve;
mod topic;
mod used;
mod watch;

pub use control_connection::ControlError;
pub(crate) use registry::ORDER_DELAY_NS;
pub(crate) use remote_agents::RemoteAgents;
pub use remote_agents::{AGENTS_MAX, AgentsError, AgentsWanted};
pub use serve::{AgentError, AgentOptions, serve};
pub(crate) use used::Used;
pub use watch::Watch;
pub(crate) use watch::{BrokerWatch, mark};
