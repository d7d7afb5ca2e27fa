//! Export of metrics, logs and traces to an OpenTelemetry collector by OTLP 1.
//!
//! ```text
//!   figures, each interval -> metrics --.
//!   lines of the log: LogLayer -> LogTap (bounded) -> logs --> deliver -> Exporter: HTTP | gRPC
//!   spans of messages: the workers -> a bounded queue -> spans --'      again, with growing pauses
//! ```
//!
//! All of it runs in one thread, which exists only while something is exported. Whatever waits has
//! a limit, and what comes beyond it is counted, so that a collector that is away or slow costs the
//! broker nothing but its data.

mod attributes;
mod deliver;
mod exporter;
mod log_layer;
mod logs;
mod metrics;
mod pauses;
mod settings;
mod spans;
mod tap;
mod telemetry;
#[cfg(test)]
mod tests;

pub use log_layer::LogLayer;
pub use settings::{TelemetryError, TelemetrySettings};
pub use tap::LogTap;
pub use telemetry::{Ending, Telemetry};
