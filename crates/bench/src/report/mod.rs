//! What a person or a program reads of a run: one file per form.

mod folder;
mod hgrm;
mod json;
mod progress;
mod summary;
mod table;
#[cfg(test)]
mod tests;

pub use folder::{RunFolder, WriteError};
pub use json::{RunResult, SCHEMA};
pub use progress::progress_line;
pub use summary::summary;
pub use table::table;

use thrum_codec::{QoS, Version};

/// Quality of service as a number.
pub const fn qos_number(qos: QoS) -> u8 {
    qos as u8
}

/// Version as people write it.
pub const fn version_text(version: Version) -> &'static str {
    match version {
        Version::V31 => "3.1",
        Version::V311 => "3.1.1",
        Version::V5 => "5.0",
    }
}
