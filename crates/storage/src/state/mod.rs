//! The durable state: in the form that the log needs, and in the form that the node gets at the
//! start.

mod bodies;
mod collected;
mod deliveries;
mod index;
#[cfg(test)]
mod index_tests;
mod print;
mod recovered;
mod replay;
#[cfg(test)]
mod replay_tests;

pub(crate) use index::Index;
pub use recovered::{
    Content, Orphans, Recovered, RecoveredDelivery, RecoveredMessage, RecoveredRetained,
    RecoveredSession, RecoveredSubscription, RecoveredWill,
};
pub(crate) use replay::Replay;
