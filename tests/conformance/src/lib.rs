//! Bytes for a running broker, and the required answers: the tools of the tests in this crate.
//!
//! ```text
//!   corpus (every packet, every way to spoil it) --Case--> case::check --bytes--> broker
//!                                                              |--after each case--> probe
//! ```
//!
//! Invariant: nothing here uses the broker's own codec, so an error in it cannot hide itself; the
//! bytes are built by hand from the specification.

pub mod broker;
pub mod bytes;
pub mod case;
pub mod clock;
pub mod corpus;
pub mod folder;
pub mod noise;
pub mod packets;
pub mod probe;
pub mod received;
pub mod wire;

pub use broker::Broker;
pub use case::{Case, Expect};
pub use packets::Version;
pub use probe::Probe;
pub use wire::{Event, Wire};
