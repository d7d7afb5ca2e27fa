//! The terminal views: of a running benchmark, which provides figures that a separate thread
//! draws, and of a running broker.
//!
//! Invariant: the run of a benchmark never waits for the view.
#![forbid(unsafe_code)]

mod draw;
mod history;
#[cfg(test)]
mod sample;
mod snapshot;
mod surroundings;
mod terminal;
mod thread;
pub mod top;
mod view;

pub use surroundings::is_wanted;
/// For code that ends the process without dropping the view.
pub use terminal::give_back as restore_terminal;
pub use thread::BenchView;
