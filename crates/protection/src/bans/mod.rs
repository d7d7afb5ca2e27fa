//! Who may not connect: by client identifier, user name, address or network, for good or for a
//! time.
//!
//! [`BanList`] is what the file of `thrum bans` says, [`BanBook`] what is in force on a node: the
//! list and the temporary bans.

mod book;
mod line;
mod list;

pub use book::{BanBook, BanChanges, TemporaryBan};
pub use line::BanLineError;
pub use list::{Ban, BanList, Subject, SubjectRef};
