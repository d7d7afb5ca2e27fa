//! What a subscription costs the broker in memory, and with a wildcard in work for each message.

use thrum_codec::TopicFilter;
use thrum_codec::topic;

/// A filter in the index and in the list of its session, with its destination.
const FILTER_BYTES: usize = 150;
/// A level of a wildcard on a way of its own: a node of the trie, an edge, and a text. A message
/// visits each such node that fits its topic, so this is also what bounds the work of a match.
const LEVEL_BYTES: usize = 100;
/// A shared group with its first member.
const GROUP_BYTES: usize = 300;

/// Memory that a filter takes at most, in bytes.
pub fn subscription_bytes(filter: TopicFilter<'_>) -> u32 {
    let matched = filter.matched_part();
    let levels = if filter.has_wildcard() {
        topic::level_count(matched)
    } else {
        0
    };
    let group = filter.shared().map_or(0, |_| GROUP_BYTES);
    let bytes = FILTER_BYTES + filter.as_str().len() + levels * LEVEL_BYTES + group;
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use thrum_routing::{Destination, Index};

    use super::*;

    #[derive(Clone, Copy, Debug)]
    struct Somebody(u64);

    impl Destination for Somebody {
        type Key = u64;

        fn key(&self) -> u64 {
            self.0
        }
    }

    /// Bytes that the index takes for some filters, and what they are said to cost.
    fn check(filters: impl Iterator<Item = String>) {
        let mut index = Index::with_seed(1);
        let mut said = 0;
        for filter in filters {
            index.insert(&filter, Somebody(1));
            said += subscription_bytes(TopicFilter::parse(&filter).unwrap()) as usize;
        }
        let taken = index.memory_bytes();
        assert!(taken <= said, "{taken} bytes, said to be {said}");
    }

    /// 126 levels of which the bits of a number say which are wildcards.
    fn either(number: u32) -> String {
        let bits = number.wrapping_mul(0x9E37_79B9);
        let level = |bit: u32| ["a", "+"][usize::from(bits >> (bit % 32) & 1 == 1)];
        (0..126).map(level).collect::<Vec<_>>().join("/")
    }

    #[test]
    fn a_subscription_costs_no_more_than_is_said() {
        check((0..9900).map(either));
        check((0..9900).map(|number| format!("+/device/{number}/state/{number}/value")));
        check((0..9900).map(|number| format!("site/{number}/{}", "x".repeat(100))));
        check((0..9900).map(|number| format!("site/{number}/#")));
    }
}
