//! Topics and filters of many levels with common prefixes that end where a walk or a node may end.

use proptest::bool::weighted;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// Depth around which the filters and topics of one case differ: anywhere early, where a walk
/// becomes deep, where a node is full, where the cache of a deep walk ends.
fn center() -> impl Strategy<Value = usize> {
    prop_oneof![3 => 1..41_usize, 2 => 13..19_usize, 2 => 120..136_usize, 2 => 250..261_usize]
}

/// About as many levels as the center has, or any number of them.
#[derive(Clone, Copy, Debug)]
enum Depth {
    Near(usize),
    Any(usize),
}

impl Depth {
    fn below(self, bound: usize, center: usize) -> usize {
        match self {
            Self::Near(more) => (center + more).saturating_sub(2).min(bound - 1),
            Self::Any(number) => number % bound,
        }
    }
}

fn depth() -> impl Strategy<Value = Depth> {
    prop_oneof![
        4 => (0..5_usize).prop_map(Depth::Near),
        1 => any::<usize>().prop_map(Depth::Any),
    ]
}

/// Number of levels, whether they start with `$`, and the levels that differ from the rest.
type Shape = (Depth, bool, Vec<(Depth, &'static str)>);

fn shape(others: &'static [&'static str]) -> impl Strategy<Value = Shape> {
    let others = vec((depth(), select(others)), 0..5);
    (depth(), weighted(0.1), others)
}

fn levels(center: usize, (length, is_dollar, others): Shape) -> Vec<&'static str> {
    // Some have more levels after the others than one node can have.
    let length = 2 + length.below(center + 140, center);
    let mut levels = vec!["a"; length];
    for (position, other) in others {
        levels[position.below(length, center)] = other;
    }
    if is_dollar {
        levels[0] = "$a";
    }
    levels
}

/// Filters and topics of up to hundreds of levels.
pub(crate) fn filters_and_topics() -> impl Strategy<Value = (Vec<String>, Vec<String>)> {
    let pluses = prop_oneof![
        4 => Just(0_u64),
        2 => any::<u64>().prop_map(|bits| bits & bits.rotate_left(7) & bits.rotate_left(23)),
        1 => any::<u64>(),
    ];
    let filter = (shape(&["b", "", "c", "+", "+", "+"]), pluses, any::<bool>());
    let topic = shape(&["b", "", "c", "unknown"]);
    (center(), vec(filter, 1..20), vec(topic, 1..4)).prop_map(|(center, filters, topics)| {
        let filter = |(shape, pluses, is_multi_level): (Shape, u64, bool)| {
            let mut levels = levels(center, shape);
            let is_plus = |position| pluses >> (position % 64) & 1 == 1;
            for position in (0..levels.len()).filter(|position| is_plus(*position)) {
                levels[position] = "+";
            }
            levels.extend(is_multi_level.then_some("#"));
            levels.join("/")
        };
        let topic = |shape| levels(center, shape).join("/");
        (
            filters.into_iter().map(filter).collect(),
            topics.into_iter().map(topic).collect(),
        )
    })
}
