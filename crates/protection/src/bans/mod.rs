//! Bans by client identifier, user name, address or network, permanent or temporary.
//!
//! [`BanList`] holds the bans of the file of `thrum bans`, [`BanBook`] those in force on a node:
//! the list and the temporary bans.

mod book;
mod line;
mod list;

pub use book::{BanBook, BanChanges, TemporaryBan};
pub use line::BanLineError;
pub use list::{Ban, BanList, Subject, SubjectRef};
