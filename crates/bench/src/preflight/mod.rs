//! What would stop the run later is found before it starts, and said with its remedy; what would only colour its
//! figures is advice.

mod advice;
mod limits;
mod needs;

pub use advice::{Advice, advice};
pub use limits::{
    PreflightError, check_broker_files, clients_max, raise_open_files, reach, source_addresses,
};
pub use needs::{Needs, TargetNeeds, check};
