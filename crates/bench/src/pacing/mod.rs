//! When each message is to be sent: fixed before the run starts (open loop).
//!
//! A shape answers one question: how long after the start is message number `sequence` of a
//! publisher due? Sender and receiver compute it alike, so a message needs to carry only its
//! publisher, its sequence and when it was really sent.

mod constant;
mod ring;

pub use constant::Constant;
pub use ring::{Ring, Tick};
