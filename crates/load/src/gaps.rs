//! Sequences that are missing between those that arrived: exact, in memory in proportion to what
//! was sent.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

/// Gaps that are kept as ranges until the short ones among them become bits: 8 KiB.
const RANGES_MAX: usize = 1_024;

/// A gap of this many messages stays a range, which then takes less than bits.
const LONG_GAP: u32 = 256;

/// Missing sequences.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Gaps {
    /// Ascending: the latest gaps, and the long ones.
    ranges: Vec<Range<u32>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bits: Option<Box<Bits>>,
}

/// Short gaps that were many.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Bits {
    /// So many ranges become bits again.
    ranges_max: usize,
    /// Of 64 sequences each, by number of the word; at most four bits for each message sent.
    words: BTreeMap<u32, u64>,
}

impl Gaps {
    /// Opens a gap behind all others.
    pub(crate) fn open(&mut self, gap: Range<u32>) {
        self.ranges.push(gap);
        self.keep_small();
    }

    /// Takes a sequence out; false if it is not missing.
    pub(crate) fn fill(&mut self, sequence: u32) -> bool {
        let index = self.ranges.partition_point(|gap| gap.end <= sequence);
        let gap = self.ranges.get(index).filter(|gap| gap.start <= sequence);
        let Some(gap) = gap.cloned() else {
            return self.bits.as_mut().is_some_and(|bits| bits.fill(sequence));
        };
        match (gap.start == sequence, gap.end == sequence + 1) {
            (true, true) => {
                self.ranges.remove(index);
            }
            (true, false) => self.ranges[index].start += 1,
            (false, true) => self.ranges[index].end -= 1,
            (false, false) => {
                self.ranges[index].end = sequence;
                self.ranges.insert(index + 1, sequence + 1..gap.end);
                self.keep_small();
            }
        }
        true
    }

    /// Number of missing sequences.
    pub(crate) fn count(&self) -> u64 {
        let words = self.bits.iter().flat_map(|bits| bits.words.values());
        let ranges = self.ranges.iter().map(|gap| u64::from(gap.end - gap.start));
        words.map(|word| u64::from(word.count_ones())).sum::<u64>() + ranges.sum::<u64>()
    }

    /// The missing sequences, those of short gaps first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Range<u32>> {
        let words = self.bits.iter().flat_map(|bits| &bits.words);
        let short = words.flat_map(|(number, word)| {
            let missing = (0..64).filter(move |bit| word & (1 << bit) != 0);
            missing.map(move |bit| number * 64 + bit..number * 64 + bit + 1)
        });
        short.chain(self.ranges.iter().cloned())
    }

    fn keep_small(&mut self) {
        let ranges_max = self
            .bits
            .as_ref()
            .map_or(RANGES_MAX, |bits| bits.ranges_max);
        if self.ranges.len() <= ranges_max {
            return;
        }
        let bits = self.bits.get_or_insert_default();
        self.ranges.retain(|gap| {
            let is_long = gap.end - gap.start >= LONG_GAP;
            if !is_long {
                bits.add(gap.clone());
            }
            is_long
        });
        bits.ranges_max = self.ranges.len() + RANGES_MAX;
    }
}

impl Bits {
    fn add(&mut self, gap: Range<u32>) {
        for sequence in gap {
            *self.words.entry(sequence / 64).or_default() |= 1 << (sequence % 64);
        }
    }

    fn fill(&mut self, sequence: u32) -> bool {
        let (number, bit) = (sequence / 64, 1 << (sequence % 64));
        let Some(word) = self.words.get_mut(&number).filter(|word| **word & bit != 0) else {
            return false;
        };
        *word &= !bit;
        if *word == 0 {
            self.words.remove(&number);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::*;

    #[test]
    fn many_short_gaps_take_bits_and_long_ones_stay_ranges() {
        let mut gaps = Gaps::default();
        for start in (0..20_000).step_by(2) {
            gaps.open(start..start + 1);
        }
        gaps.open(100_000..3_000_000_000);
        for start in (3_000_000_001..3_000_020_000).step_by(2) {
            gaps.open(start..start + 1);
        }
        let words = gaps.bits.as_ref().unwrap().words.len();
        assert!(words <= 2 * (20_000 / 64 + 1), "{words}");
        assert!(gaps.ranges.len() <= RANGES_MAX + 1);
        assert_eq!(gaps.count(), 20_000 + 3_000_000_000 - 100_000);
        assert!(gaps.fill(2_000_000_000) && !gaps.fill(2_000_000_000));
        assert!(gaps.fill(10) && !gaps.fill(10) && !gaps.fill(11));
        assert!(gaps.fill(3_000_000_011));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn gaps_are_what_a_plain_set_says(
            steps in prop::collection::vec((0..3_u32, 0..400_u32, any::<Index>()), 0..4_000),
        ) {
            let (mut gaps, mut set, mut next) = (Gaps::default(), BTreeSet::new(), 0);
            for (kind, length, index) in steps {
                if kind < 2 {
                    let length = if length < 380 { 1 } else { length };
                    gaps.open(next..next + length);
                    set.extend(next..next + length);
                    next += length + 1;
                } else if next > 0 {
                    let index = index.index(usize::try_from(next).unwrap());
                    let sequence = u32::try_from(index).unwrap();
                    prop_assert_eq!(gaps.fill(sequence), set.remove(&sequence));
                }
            }
            prop_assert_eq!(gaps.count(), u64::try_from(set.len()).unwrap());
            let listed: BTreeSet<u32> = gaps.iter().flatten().collect();
            prop_assert_eq!(listed, set);
        }
    }
}
