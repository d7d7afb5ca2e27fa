//! Drives a target for a limited time: generated inputs, and mutations of inputs with new
//! behaviour.

mod mutate;
mod random;
mod run;

pub(crate) use random::Random;
pub(crate) use run::drive;
