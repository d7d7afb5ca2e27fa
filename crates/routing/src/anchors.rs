//! Assigns one number to a filter and a few to a topic, such that a filter can match a topic only
//! if its number is among them.
//!
//! The anchor of a filter is its levels before the first wildcard, at most `LEVELS_MAX`, or its
//! whole text if it has no wildcard. A topic that it matches starts with the same levels, so the
//! filter's anchor is among the topic's. A cache of matches keeps a change count for each anchor
//! instead of one for all filters, so that a new filter invalidates only the topics with its
//! anchor.

use core::hash::Hasher;

use crate::hashing::{Hashing, upper_half};

/// Number of levels that distinguish anchors: `site/5/device/77` is as deep as most fleets are.
const LEVELS_MAX: usize = 4;

/// Numbers of anchors. Different anchors rarely have the same number; copies assign the same
/// numbers.
#[derive(Clone, Copy, Debug)]
pub struct Anchors(Hashing);

impl Default for Anchors {
    fn default() -> Self {
        Self::new()
    }
}

impl Anchors {
    /// Creates numbers that a peer cannot predict.
    pub fn new() -> Self {
        Self(Hashing::random())
    }

    /// Creates numbers that are the same in every process, for tests with repeatable runs.
    #[cfg(feature = "testing")]
    pub const fn repeatable(seed: u64) -> Self {
        Self(Hashing::with_seed(seed))
    }

    /// The anchor of a filter.
    pub fn of_filter(&self, filter: &str) -> u32 {
        let mut hasher = self.0.hasher();
        for part in parts(filter) {
            if is_wildcard(part) {
                break;
            }
            hasher.write(part.as_bytes());
        }
        upper_half(hasher.finish())
    }

    /// Calls `each` with every anchor of a topic, six at most.
    pub fn of_topic(&self, topic: &str, mut each: impl FnMut(u32)) {
        let mut hasher = self.0.hasher();
        each(upper_half(hasher.finish()));
        for part in parts(topic) {
            hasher.write(part.as_bytes());
            each(upper_half(hasher.finish()));
        }
    }
}

/// The first levels, each as one part, and the rest as another part.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.splitn(LEVELS_MAX + 1, '/')
}

/// In a checked filter these two bytes are always a whole level.
pub(crate) fn is_wildcard(filter: &str) -> bool {
    filter.bytes().any(|byte| byte == b'+' || byte == b'#')
}
