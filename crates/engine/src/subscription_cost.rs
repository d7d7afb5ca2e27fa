//! Cost of a subscription: memory, and for a wildcard also work for each message.

use thrum_codec::TopicFilter;
use thrum_codec::topic;

/// Memory in bytes of a filter in the index and in the list of its session, with its destination.
const FILTER_BYTES: usize = 150;
/// Memory in bytes of a level of a wildcard filter that shares no node of the trie: a node, an
/// edge, and a text. A message visits each such node that matches its topic, so this also bounds
/// the work of a match.
const LEVEL_BYTES: usize = 100;
/// Memory in bytes of a shared group with its first member.
const GROUP_BYTES: usize = 300;

/// Greatest memory of a subscription in bytes.
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
    struct TestDestination(u64);

    impl Destination for TestDestination {
        type Key = u64;

        fn key(&self) -> u64 {
            self.0
        }
    }

    /// Checks that the index takes no more memory for the filters than their calculated cost.
    fn check(filters: impl Iterator<Item = String>) {
        let mut index = Index::with_seed(1);
        let mut calculated = 0;
        for filter in filters {
            index.insert(&filter, TestDestination(1));
            calculated += subscription_bytes(TopicFilter::parse(&filter).unwrap()) as usize;
        }
        let taken = index.memory_bytes();
        assert!(
            taken <= calculated,
            "{taken} bytes, calculated to be {calculated}"
        );
    }

    /// A filter of 126 levels; the bits of a number choose the levels that are wildcards.
    fn either(number: u32) -> String {
        let bits = number.wrapping_mul(0x9E37_79B9);
        let level = |bit: u32| ["a", "+"][usize::from(bits >> (bit % 32) & 1 == 1)];
        (0..126).map(level).collect::<Vec<_>>().join("/")
    }

    #[test]
    fn a_subscription_costs_no_more_memory_than_calculated() {
        check((0..9900).map(either));
        check((0..9900).map(|number| format!("+/device/{number}/state/{number}/value")));
        check((0..9900).map(|number| format!("site/{number}/{}", "x".repeat(100))));
        check((0..9900).map(|number| format!("site/{number}/#")));
    }
}
