//! Command lines of other load tools, read and turned into scenario files.

mod emqtt_bench;
mod messages;
mod notes;
mod options;
#[cfg(test)]
mod tests;
mod toml;
mod words;

pub use emqtt_bench::{ImportError, Imported, import};
