//! Which topics a filter can match, told by one number for the filter and a few for the topic.
//!
//! A filter is anchored at its levels before the first wildcard, of which at most [`LEVELS_MAX`]
//! count, or at its whole text if it has no wildcard. A topic that it matches begins alike, so the
//! filter's anchor is among the topic's. Whoever remembers matches keeps a count for each anchor
//! instead of one for all, and a new filter disturbs the topics of its own corner only.

use core::hash::Hasher;

use crate::hashing::{Hashing, upper_half};

/// Levels that tell anchors apart: `site/5/device/77` is as deep as most fleets go.
const LEVELS_MAX: usize = 4;

/// Names anchors by numbers. Different ones may get the same number, rarely; a copy names alike.
#[derive(Clone, Copy, Debug)]
pub struct Anchors(Hashing);

impl Default for Anchors {
    fn default() -> Self {
        Self::new()
    }
}

impl Anchors {
    /// Numbers that nobody outside can guess.
    pub fn new() -> Self {
        Self(Hashing::random())
    }

    /// Numbers that are the same in every process: for tests whose runs are repeated.
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

    /// Hands over every anchor of a topic, six at most.
    pub fn of_topic(&self, topic: &str, mut each: impl FnMut(u32)) {
        let mut hasher = self.0.hasher();
        each(upper_half(hasher.finish()));
        for part in parts(topic) {
            hasher.write(part.as_bytes());
            each(upper_half(hasher.finish()));
        }
    }
}

/// The levels that count, and what follows them as one.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.splitn(LEVELS_MAX + 1, '/')
}

/// In a checked filter these two bytes are always a whole level.
pub(crate) fn is_wildcard(filter: &str) -> bool {
    filter.bytes().any(|byte| byte == b'+' || byte == b'#')
}
