//! The protocol of one client, driven by packets and time: the state machines of the server and
//! client sides.
//!
//! ```text
//!   bytes -> codec -> Packet -> Session::handle_packet -> at most one Action for the node
//!                                      |-> replies are encoded into the caller's output buffer
//!   message for this client -> Session::deliver -> encoded into the same buffer, or queued
//!   clock -> Session::handle_timeout
//! ```
//!
//! Invariant: no socket, no clock, no thread. Time is an argument, output goes into a buffer that
//! the caller owns and reuses, and a peer's packet can cause an error value but never a panic.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod client;
pub mod limits;
pub mod message;
pub mod mount;
pub mod output;
mod packet_ids;
pub mod server;
pub mod time;
pub mod violation;

pub use limits::Limits;
pub use message::{Message, MessageParts, Outgoing, Publication};
pub use mount::{MountPoint, MountPointError};
pub use output::Output;
pub use time::Time;
pub use violation::Violation;
