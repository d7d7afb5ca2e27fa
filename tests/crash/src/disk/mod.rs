//! The disk of a broker under test, which forgets what was not synced when the power fails.
//!
//! ```text
//!   broker + library (preload/lossy_disk.c) --notes--> side folder
//!          --after the kill--> loss::lose_power --> data folder
//! ```

mod compile;
mod library;
mod loss;
mod notes;

pub(crate) use compile::compile;
pub use library::{Control, KillWhen, LossyDisk, Seen};
pub use loss::{Lost, Memory};
