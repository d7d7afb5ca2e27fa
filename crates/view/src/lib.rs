//! The terminal view of a running benchmark: the run provides figures, a separate thread draws
//! them.
//!
//! Invariant: the run never waits for the view.
#![forbid(unsafe_code)]

mod draw;
mod history;
#[cfg(test)]
mod sample;
mod snapshot;
mod surroundings;
mod terminal;
mod thread;
mod view;

pub use surroundings::is_wanted;
/// For code that ends the process without dropping the view.
pub use terminal::give_back as restore_terminal;
pub use thread::BenchView;
