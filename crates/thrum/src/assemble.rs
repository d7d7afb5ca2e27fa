//! Where the parts of a broker meet.

use thrum_broker::{Broker, Config, StartError};

/// Starts a broker with all its parts.
///
/// # Errors
/// What the broker could not get from the system.
pub(crate) fn start(config: Config) -> Result<Broker, StartError> {
    Broker::start(config)
}
