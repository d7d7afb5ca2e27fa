//! Problems that would stop the run later are reported before it starts, with a remedy; conditions
//! that only affect its figures are advice.

mod advice;
mod limits;
mod needs;
mod sources;

pub use advice::{Advice, advice};
pub(crate) use limits::reach_quic;
pub use limits::{PreflightError, check_broker_files, clients_max, raise_open_files, reach};
pub use needs::{Needs, TargetNeeds, check};
pub(crate) use sources::own_sources;
pub use sources::{SourceError, all_sources, source_addresses};
