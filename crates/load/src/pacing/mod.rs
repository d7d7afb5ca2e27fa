//! The send time of each message, fixed before the run starts (open loop).
//!
//! A shape answers one question: how long after the start is message number `sequence` of a
//! publisher due? Sender and receiver compute it alike on any machine, so a message needs to carry
//! only its publisher, its sequence and when it was really sent.
//!
//! Every shape is a rate over time that all publishers of a group share. Of `n` publishers, number
//! `p` sends its message `s` when `s + p / n` messages are due for each: publishers are spread
//! evenly, and keep their order from round to round however the rate changes.

mod constant;
mod curve;
mod pace;
mod ramp;
mod ring;
mod steps;
#[cfg(test)]
mod tests;
mod warp;

pub use constant::Constant;
pub use curve::Curve;
pub use pace::{LOAD_NS_MAX, Pace};
pub use ring::{Ring, Tick};
pub use steps::STEPS_MAX;
pub use warp::{WARP_CHANGES_MAX, WARP_FACTOR_MAX, Warp, WarpError};
