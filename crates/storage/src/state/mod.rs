//! The durable state: as the log needs it while it runs, and as the node gets it at start.

mod bodies;
mod collected;
mod deliveries;
mod index;
mod print;
mod recovered;
mod replay;

pub(crate) use index::Index;
pub use recovered::{
    Content, Orphans, Recovered, RecoveredDelivery, RecoveredMessage, RecoveredRetained,
    RecoveredSession, RecoveredSubscription, RecoveredWill,
};
pub(crate) use replay::Replay;
