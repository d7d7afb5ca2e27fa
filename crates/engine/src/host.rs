//! What the engine asks of the process that runs it.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use thrum_protocol::Time;

/// The process around an engine. The engine reads neither a clock nor the system: the moment of a
/// turn is an argument, and what it needs in the middle of one it asks for here.
pub trait Host: Debug + Send + Sync {
    /// Time since the start of the node, to bound what one turn does.
    fn elapsed(&self) -> Duration;

    /// Resident memory of the process in bytes; none if the system does not tell.
    fn resident_bytes(&self) -> Option<u64>;
}

/// Where and when an engine begins.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// The process that runs it.
    pub host: Arc<dyn Host>,
    /// The present moment.
    pub now: Time,
}
