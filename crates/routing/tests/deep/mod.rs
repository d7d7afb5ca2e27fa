//! Topics and filters of many levels, alike but for few.

use proptest::bool::weighted;
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;

/// Around the levels that a walk remembers, that one node holds, and beyond.
fn length() -> impl Strategy<Value = usize> {
    prop_oneof![3 => 1..24_usize, 2 => 120..140_usize, 1 => 250..265_usize]
}

/// Levels that begin alike, but for one.
fn levels(others: &'static [&'static str]) -> impl Strategy<Value = Vec<&'static str>> {
    let other = (0..30_usize, select(others));
    (weighted(0.2), length(), of(other)).prop_map(|(is_dollar, length, other)| {
        let mut levels = vec!["a"; length];
        if let Some((position, other)) = other {
            levels[position * 5 % length] = other;
        }
        if is_dollar {
            levels[0] = "$a";
        }
        levels
    })
}

/// A topic name of up to hundreds of levels.
pub(crate) fn topic() -> impl Strategy<Value = String> {
    levels(&["b", "", "unknown"]).prop_map(|levels| levels.join("/"))
}

/// A filter of up to hundreds of levels, of which many share a beginning, some with `+` here and there.
pub(crate) fn filter() -> impl Strategy<Value = String> {
    let pluses = select(&[0_u32, 0, 0x0010_0400, 0x9E37_79B8][..]);
    (levels(&["b", "", "+"]), pluses, any::<bool>()).prop_map(
        |(mut levels, pluses, multi_level)| {
            for (position, level) in levels.iter_mut().enumerate() {
                if pluses >> (position % 32) & 1 == 1 && position > 0 {
                    *level = "+";
                }
            }
            if multi_level {
                levels.push("#");
            }
            levels.join("/")
        },
    )
}
