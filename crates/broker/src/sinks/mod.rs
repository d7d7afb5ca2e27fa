//! The sinks of a configuration: their threads and what they write to.
//!
//! ```text
//!   thrum_engine::sinks: route -> outbox of the turn -> queue --> writer.rs -> log_file.rs
//!                                      stored messages <--clear--'
//! ```

mod keeper;
mod log_file;
mod writer;

pub use keeper::SinkError;
pub(crate) use keeper::{PreparedSinks, SinkKeeper, check};
