//! Drives a target for a while: made-up inputs, and mutations of those that showed something new.

mod mutate;
mod random;
mod run;

pub(crate) use random::Random;
pub(crate) use run::drive;
