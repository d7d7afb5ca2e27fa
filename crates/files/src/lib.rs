//! Files in a directory that may belong to somebody else: root changes them for the broker, whose
//! user could lay a link in the way.
//!
//! Invariant: nothing is opened for writing, replaced, given away or removed but what stands in the
//! opened directory itself and that nobody but its owner (or whoever the owner has given it to) can
//! have put there; no link is followed, and whatever is made is its owner's alone.

mod folder;
mod replace;
mod socket;
mod stamp;
#[cfg(test)]
mod tests;

pub use folder::{Folder, is_open_to_others};
pub use socket::ListeningSocket;
pub use stamp::Stamp;
