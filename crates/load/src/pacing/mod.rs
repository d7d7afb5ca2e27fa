//! The send time of each message, fixed before the run starts (open loop).
//!
//! A shape answers one question: how long after the start is message number `sequence` of a
//! publisher due? Sender and receiver compute it alike on any machine, so a message needs to carry
//! only its publisher, its sequence and when it was really sent.
//!
//! Every shape is a rate over time that all publishers of a group share: a count of messages due
//! for each of them, which grows. The process of arrivals places message `s` of publisher `p` of
//! `n` on that count, in the same way however the rate changes:
//!
//! * even: at `s + p / n`. Publishers are spread evenly and keep their order from round to round.
//!   It is the gentlest load that there is for a broker: nothing ever queues behind anything.
//! * burst: at `s`. All publishers' messages of a period are due together.
//! * Poisson: eight messages of a publisher at random places of eight periods, by a hash of group,
//!   publisher and sequence. The same scenario has the same arrivals in every run.

#[cfg(test)]
mod arrival_tests;
mod arrivals;
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
