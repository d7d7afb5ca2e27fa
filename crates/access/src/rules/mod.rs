//! Ordered rules: who may publish and subscribe to what.

mod rule;

pub use rule::{Actions, QosSet, Rule, Who};

use alloc::vec::Vec;

/// Rules in their order: the first that fits decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    pub(crate) list: Vec<Rule>,
}
