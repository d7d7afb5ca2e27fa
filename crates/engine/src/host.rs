//! Interface to the process that runs the engine.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use thrum_protocol::Time;

/// The process that runs an engine. The engine reads neither a clock nor the system: the time of a
/// turn is an argument, and the engine reads everything else here.
pub trait Host: Debug + Send + Sync {
    /// Time since the start of the node, which bounds the work of a turn.
    fn elapsed(&self) -> Duration;

    /// The present time rounded up, from which a promised delay counts: the time of a turn is that
    /// of its begin, and would end a delay too early.
    fn no_earlier_than_now(&self, turn: Time) -> Time;

    /// Resident memory of the process in bytes; none if the system does not report it.
    fn resident_bytes(&self) -> Option<u64>;
}

/// Process and time of the start of an engine.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// The process that runs the engine.
    pub host: Arc<dyn Host>,
    /// The time at the start.
    pub now: Time,
}
