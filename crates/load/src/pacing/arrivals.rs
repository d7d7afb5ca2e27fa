//! The place of each message in the load, counted in messages of its publisher: the process by
//! which the messages of a group arrive.

use super::curve::COUNT_BITS;
use crate::scenario::Arrivals;

/// Messages of one publisher that are placed at random together.
///
/// A Poisson process of which it is known that it has exactly this many messages in each such span:
/// the mean rate is exact, and the variance of the count in a window of `w` periods is that of a
/// Poisson process times about 1 − `w` / 8 (windows within a span).
pub(super) const BLOCK: usize = 8;

/// [`BLOCK`] as a number of messages.
const BLOCK_LENGTH: u64 = 8;

/// Fractional bits of one over the publishers.
const SHARE_BITS: u32 = 80;

/// The first place that no message has: behind `u32::MAX` messages.
const PLACES: u128 = 1 << (32 + COUNT_BITS);

/// The step of SplitMix64: an odd number without a pattern, so no number comes twice.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// How the messages of all publishers of a group are placed; a place has [`COUNT_BITS`] fractional
/// bits, and places of one publisher ascend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Process {
    /// Publisher `p` of `n` is `p / n` of a period behind the first one.
    Even {
        /// One over the publishers.
        share: u128,
    },
    /// All publishers at the start of each period.
    Burst,
    /// At random, by a hash.
    Poisson {
        /// Differs from group to group.
        seed: u32,
    },
}

impl Process {
    pub(super) fn even(publishers: u32) -> Self {
        Self::Even {
            share: (1 << SHARE_BITS) / u128::from(publishers.max(1)),
        }
    }

    /// The process of a group with this number; none if its publishers are spread evenly.
    pub(super) const fn of(arrivals: Arrivals, group: u32) -> Option<Self> {
        match arrivals {
            Arrivals::Even => None,
            Arrivals::Poisson => Some(Self::Poisson { seed: group }),
            Arrivals::Burst => Some(Self::Burst),
        }
    }

    /// The place of a message.
    pub(super) fn place(self, publisher: u32, sequence: u32) -> u128 {
        match self {
            Self::Even { share } => (u128::from(sequence) << COUNT_BITS) + phase(share, publisher),
            Self::Burst => u128::from(sequence) << COUNT_BITS,
            Self::Poisson { seed } => random_place(seed, publisher, sequence),
        }
    }

    /// Messages of one publisher whose place is before `count`; at most `u32::MAX`.
    pub(super) fn placed_before(self, publisher: u32, count: u128) -> u32 {
        let regular = |phase: u128| count.saturating_sub(phase).div_ceil(1 << COUNT_BITS);
        let before = match self {
            Self::Even { share } => regular(phase(share, publisher)),
            Self::Burst => regular(0),
            Self::Poisson { seed } => random_before(seed, publisher, count).into(),
        };
        u32::try_from(before).unwrap_or(u32::MAX)
    }
}

/// The part of a round that comes before a publisher: below 1.
fn phase(share: u128, publisher: u32) -> u128 {
    let phase = (u128::from(publisher) * share) >> (SHARE_BITS - COUNT_BITS);
    phase.min((1 << COUNT_BITS) - 1)
}

/// Messages of one publisher that are placed together.
struct Block {
    /// Sequence of its first message, and the whole periods before it.
    first: u64,
    length: usize,
    /// Of all that is in the block, ascending, the places within it in 64 fractional bits.
    parts: [u64; BLOCK],
}

impl Block {
    /// The first block of a publisher is shorter by `missing` messages, which differs from
    /// publisher to publisher: so the blocks of a group do not end together.
    fn new(seed: u32, publisher: u32, index: u64, missing: usize) -> Self {
        let (skipped, first) = match index {
            0 => (missing, 0),
            _ => (0, index * BLOCK_LENGTH - length(missing)),
        };
        let stream = (u64::from(seed) << 32) | u64::from(publisher);
        let start = mixed(stream.wrapping_add(STEP));
        let mut parts = [u64::MAX; BLOCK];
        for (number, part) in (index * BLOCK_LENGTH..).zip(&mut parts).skip(skipped) {
            *part = mixed(start.wrapping_add(number.wrapping_mul(STEP)));
        }
        // Left out at the front, so behind all others once sorted: as big as the biggest.
        parts.sort_unstable();
        Self {
            first,
            length: BLOCK - skipped,
            parts,
        }
    }

    /// Places of its messages, ascending.
    fn places(&self) -> impl Iterator<Item = u128> {
        let parts = self.parts.iter().take(self.length);
        parts.map(|part| {
            let within =
                u128::from(part >> (u64::BITS - COUNT_BITS)) * u128::from(length(self.length));
            (u128::from(self.first) << COUNT_BITS) + within
        })
    }
}

fn random_place(seed: u32, publisher: u32, sequence: u32) -> u128 {
    let missing = missing(publisher);
    let number = u64::from(sequence) + length(missing);
    let block = Block::new(seed, publisher, number / BLOCK_LENGTH, missing);
    let position = u64::from(sequence) - block.first;
    let place = block.places().zip(0..).find(|(_, at)| *at == position);
    place.map_or(PLACES, |(place, _)| place).min(PLACES - 1)
}

fn random_before(seed: u32, publisher: u32, count: u128) -> u64 {
    let missing = missing(publisher);
    let periods = u64::try_from(count >> COUNT_BITS)
        .unwrap_or(u64::MAX)
        .min(1 << 33);
    let block = Block::new(
        seed,
        publisher,
        (periods + length(missing)) / BLOCK_LENGTH,
        missing,
    );
    let before = block.places().take_while(|place| *place < count);
    block.first + length(before.count())
}

/// Messages by which the first block of a publisher is shorter.
fn missing(publisher: u32) -> usize {
    usize::try_from(publisher).unwrap_or(usize::MAX) % BLOCK
}

/// A length within a block as a number of messages.
fn length(messages: usize) -> u64 {
    u64::try_from(messages).unwrap_or(BLOCK_LENGTH)
}

/// The output of SplitMix64 for one state: 64 bits, each of which depends on all bits of the state.
const fn mixed(state: u64) -> u64 {
    let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_place(process: Process, publisher: u32, sequence: u32) {
        let place = process.place(publisher, sequence);
        assert_eq!(process.placed_before(publisher, place), sequence);
        assert_eq!(process.placed_before(publisher, place + 1), sequence + 1);
    }

    #[test]
    fn a_message_is_not_before_its_own_place() {
        for process in [
            Process::even(3),
            Process::Burst,
            Process::Poisson { seed: 5 },
        ] {
            for publisher in 0..3 {
                (0..1_000).for_each(|sequence| check_place(process, publisher, sequence));
            }
        }
    }
}
