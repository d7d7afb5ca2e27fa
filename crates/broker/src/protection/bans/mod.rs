//! Who may not connect: by client identifier, user name, address or network, for good or for a
//! time.
//!
//! [`BanList`] is what the file of `thrum bans` says, [`BanBook`] what is in force on a node: the
//! list and the temporary bans.

mod book;
mod file;
mod keeper;
mod list;

pub use book::{BanBook, Changes, TEMPORARY_MAX, TemporaryBan};
pub use file::{BanFile, BanFileError};
pub use keeper::BanKeeper;
pub use list::{Ban, BanList, Subject, SubjectRef};
