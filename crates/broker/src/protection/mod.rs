//! Protection of a node: its files, the threads that keep them, and its counters.

mod ban_file;
mod ban_keeper;
mod counters;
mod login_keeper;

pub use ban_file::{BanFile, BanFileError};
pub(crate) use ban_keeper::{BanKeeper, KeptBans};
pub(crate) use counters::TOPICS;
pub(crate) use login_keeper::LoginKeeper;
