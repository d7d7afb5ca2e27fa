//! Load from several machines: a coordinator and agents that talk over MQTT.
//!
//! ```text
//!   agent: serve --> lobby (waits for an announcement) --> shift: join, clock, prepare, go, report
//!                                                             |  letters of at most 64 KiB, QoS 1
//!   coordinator: Company::gather --> Hub (one link, a seat per agent) --> RemoteCrew (one per agent)
//! ```
//!
//! Invariant: an agent or a coordinator that is gone is noticed within `SILENCE_NS_MAX`,
//! and the run then fails with its name.

mod channel;
mod company;
mod hub;
mod line;
mod link;
mod load;
mod lobby;
mod message;
mod offset;
mod parcel;
mod remote;
mod serve;
mod shift;
mod topic;
mod used;
mod watch;

pub(crate) use company::Company;
pub use company::{AGENTS_MAX, AgentsError, AgentsWanted};
pub(crate) use hub::ORDER_DELAY_NS;
pub use link::LinkError;
pub use serve::{AgentError, AgentOptions, serve};
pub(crate) use used::Used;
pub use watch::Watch;
pub(crate) use watch::{BrokerWatch, mark};
