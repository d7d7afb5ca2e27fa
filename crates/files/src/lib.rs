//! Files in a directory that may belong to another user: root changes them for the broker, whose
//! user could create a link there.
//!
//! Invariant: only entries of the opened directory itself, which only its owner (or a user chosen
//! by the owner) can have created there, are opened for writing, replaced, chowned or removed; no
//! link is followed, and every new file is accessible to its owner only.
//!
//! Beside them what else several parts ask of the system: threads that [`stand_back`].

mod errors;
mod folder;
mod named;
mod priority;
mod replace;
mod socket;
mod stamp;
#[cfg(test)]
mod tests;

pub use errors::is_no_room;
pub use folder::{Folder, is_open_to_others};
pub use named::{open_named, read_named, read_named_text};
pub use priority::stand_back;
pub use socket::ListeningSocket;
pub use stamp::Stamp;
