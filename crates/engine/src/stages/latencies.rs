//! A histogram of durations that one thread writes and any thread reads, without a lock.
//!
//! Its cells are spaced as in an HDR histogram of two significant digits: 128 in each power of two,
//! so that the bounds of a cell differ by less than 1 %. The cells of one power of two are
//! allocated with its first duration: 1 KiB for each, 30 KiB at most.

use std::iter::zip;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Longer durations count as this one: a minute.
pub const STAGE_NS_MAX: u64 = 60_000_000_000;
/// Cells of one block.
const CELLS: usize = 128;
/// The number of a cell within its block has this many bits.
const CELL_BITS: u32 = CELLS.trailing_zeros();
/// Blocks up to that of [`STAGE_NS_MAX`]. The first two have cells of one nanosecond; the cells of
/// each further one are twice as wide.
const BLOCKS: usize = place_of(STAGE_NS_MAX).0 + 1;

/// The block of a duration, and its cell in there.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the place within a block has 7 bits"
)]
const fn place_of(ns: u64) -> (usize, usize) {
    if ns < CELLS as u64 {
        return (0, ns as usize);
    }
    let shift = ns.ilog2() - CELL_BITS;
    (shift as usize + 1, (ns >> shift) as usize - CELLS)
}

/// The longest duration of a cell.
const fn longest_of(block: usize, cell: usize) -> u64 {
    if block == 0 {
        cell as u64
    } else {
        (((CELLS + cell + 1) as u64) << (block - 1)) - 1
    }
}

/// The counts of a block.
type Block<T> = Box<[T; CELLS]>;

/// Durations that one thread enters.
#[derive(Debug)]
pub(super) struct Latencies {
    blocks: [OnceLock<Block<AtomicU64>>; BLOCKS],
    sum_ns: AtomicU64,
}

impl Default for Latencies {
    fn default() -> Self {
        Self {
            blocks: std::array::from_fn(|_| OnceLock::new()),
            sum_ns: AtomicU64::new(0),
        }
    }
}

impl Latencies {
    /// Enters a duration that many times; for the thread that owns the histogram, so that no atomic
    /// read-modify-write is needed.
    pub(super) fn enter(&self, ns: u64, times: u32) {
        let (ns, times) = (ns.clamp(1, STAGE_NS_MAX), u64::from(times));
        let (block, cell) = place_of(ns);
        let new = || Box::new(std::array::from_fn(|_| AtomicU64::new(0)));
        add(&self.blocks[block].get_or_init(new)[cell], times);
        add(&self.sum_ns, ns.saturating_mul(times));
    }

    /// Enters every duration that has a cell of its own, that many times.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn fill(&self, range: std::ops::RangeInclusive<u64>, times: u32) {
        let places = (0..BLOCKS * CELLS).map(|place| (place / CELLS, place % CELLS));
        let all = places.map(|(block, cell)| longest_of(block, cell));
        for ns in all.filter(|ns| range.contains(ns)) {
            self.enter(ns, times);
        }
    }

    /// Adds the durations so far to others.
    pub(super) fn add_to(&self, sum: &mut StageSeries) {
        for (block, more) in zip(&mut sum.blocks, &self.blocks) {
            let Some(more) = more.get() else {
                continue;
            };
            let counts = block.get_or_insert_with(|| Box::new([0; CELLS]));
            for (count, more) in zip(counts.iter_mut(), more.iter()) {
                *count += more.load(Ordering::Relaxed);
            }
        }
        let sum_ns = self.sum_ns.load(Ordering::Relaxed);
        sum.sum_ns = sum.sum_ns.wrapping_add(sum_ns);
    }
}

/// Adds to a number that only this thread writes.
pub(super) fn add(number: &AtomicU64, amount: u64) {
    let sum = number.load(Ordering::Relaxed).wrapping_add(amount);
    number.store(sum, Ordering::Relaxed);
}

/// The durations of one stage, at one moment.
#[derive(Clone, Debug, Default)]
pub struct StageSeries {
    blocks: [Option<Block<u64>>; BLOCKS],
    /// Their exact sum in nanoseconds.
    pub sum_ns: u64,
}

impl StageSeries {
    /// The cells with durations, the shortest ones first: the longest duration of the cell in
    /// nanoseconds, and how many there are.
    pub fn cells(&self) -> impl Iterator<Item = (u64, u64)> {
        let blocks = self.blocks.iter().enumerate();
        blocks.flat_map(|(number, block)| {
            let counts = block.iter().flat_map(|counts| counts.iter().enumerate());
            let counts = counts.filter(|(_, count)| **count > 0);
            counts.map(move |(cell, count)| (longest_of(number, cell), *count))
        })
    }

    /// What was entered since an earlier reading of the same series.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut rest = self.clone();
        rest.sum_ns = self.sum_ns.wrapping_sub(earlier.sum_ns);
        for (block, earlier) in zip(&mut rest.blocks, &earlier.blocks) {
            let (Some(counts), Some(earlier)) = (block, earlier) else {
                continue;
            };
            for (count, earlier) in zip(counts.iter_mut(), earlier.iter()) {
                *count = count.saturating_sub(*earlier);
            }
        }
        rest
    }

    /// Sum of the durations above a limit in nanoseconds, to 1 %.
    pub fn sum_above_ns(&self, limit_ns: u64) -> u64 {
        let above = self.cells().filter(|(ns, _)| *ns > limit_ns);
        above.fold(0, |sum: u64, (ns, count)| {
            sum.saturating_add(ns.saturating_mul(count))
        })
    }

    /// Number of durations.
    pub fn count(&self) -> u64 {
        self.cells().map(|(_, count)| count).sum()
    }

    /// The longest duration in nanoseconds; 0 if there is none.
    #[cfg(any(test, feature = "testing"))]
    pub fn longest_ns(&self) -> u64 {
        self.cells().last().map_or(0, |(ns, _)| ns)
    }

    /// The duration in nanoseconds that `permille` of 1,000 do not exceed; 0 if there is none.
    pub fn quantile_ns(&self, permille: u64) -> u64 {
        let rank = (self.count() * permille).div_ceil(1000).max(1);
        let mut below = 0;
        let mut cells = self.cells();
        let found = cells.find(|(_, count)| {
            below += count;
            below >= rank
        });
        found.map_or(0, |(ns, _)| ns)
    }

    /// Every duration that has a cell of its own, that many times.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn full(count: u32) -> Self {
        let latencies = Latencies::default();
        latencies.fill(1..=STAGE_NS_MAX, count);
        let mut series = Self::default();
        latencies.add_to(&mut series);
        series
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(durations: &[(u64, u32)]) -> StageSeries {
        let latencies = Latencies::default();
        for (ns, times) in durations {
            latencies.enter(*ns, *times);
        }
        let mut series = StageSeries::default();
        latencies.add_to(&mut series);
        series
    }

    #[test]
    fn a_cell_holds_what_differs_by_less_than_one_percent() {
        let mut ns = 1;
        let mut last = 0;
        while ns < STAGE_NS_MAX {
            let (block, cell) = place_of(ns);
            let longest = longest_of(block, cell);
            assert!(last < ns && ns <= longest, "{last} {ns} {longest}");
            assert!(longest - ns <= ns / 100, "{ns} to {longest}");
            assert_eq!(place_of(longest), (block, cell));
            (last, ns) = (longest, longest + 1);
        }
        assert_eq!(place_of(STAGE_NS_MAX).0, BLOCKS - 1);
    }

    #[test]
    fn quantiles_count_every_entry() {
        let series = series(&[(100, 989), (1_000, 10), (1_000_000, 1)]);
        assert_eq!((series.count(), series.sum_ns), (1_000, 1_108_900));
        let quantiles = [500, 989, 990, 999, 1_000].map(|permille| series.quantile_ns(permille));
        let longest = series.longest_ns();
        assert_eq!(quantiles, [100, 100, 1_003, 1_003, longest]);
        assert!((1_000_000..1_010_000).contains(&longest));
        assert_eq!(StageSeries::default().quantile_ns(990), 0);
    }

    #[test]
    fn what_came_later_is_the_difference_of_two_moments() {
        let latencies = Latencies::default();
        let moment = |latencies: &Latencies| {
            let mut series = StageSeries::default();
            latencies.add_to(&mut series);
            series
        };
        latencies.enter(100, 5);
        let before = moment(&latencies);
        latencies.enter(100, 2);
        latencies.enter(1_000_000, 3);
        let later = moment(&latencies).since(&before);
        assert_eq!((later.count(), later.sum_ns), (5, 3_000_200));
        assert_eq!(later.quantile_ns(400), 100);
        assert!(later.quantile_ns(401) >= 1_000_000);
        assert_eq!(before.since(&before).count(), 0);
    }

    #[test]
    fn long_durations_are_summed_alone() {
        let series = series(&[(1_000, 10), (2_000_000, 3)]);
        let above = series.sum_above_ns(1_000_000);
        assert!((6_000_000..6_060_000).contains(&above), "{above}");
        assert_eq!(series.sum_above_ns(STAGE_NS_MAX), 0);
    }

    #[test]
    fn a_longer_duration_than_a_minute_counts_as_a_minute_and_none_as_a_nanosecond() {
        let series = series(&[(10 * STAGE_NS_MAX, 1), (0, 2)]);
        assert_eq!((series.count(), series.sum_ns), (3, STAGE_NS_MAX + 2));
    }
}
