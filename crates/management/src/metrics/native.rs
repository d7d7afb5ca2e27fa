//! Native histograms of Prometheus: buckets whose bounds grow by a factor, of which only those with
//! values are sent.
//!
//! Each power of two has eight of them, a factor of 1.09. The cells of the broker are narrower than
//! a tenth of that, so each goes whole into the bucket of its middle.

/// Three bits of a power of two: eight buckets.
pub(crate) const SCHEMA: i32 = 3;
/// Buckets of a power of two.
const PER_POWER: f64 = 8.0;
/// The middle of a cell of the broker, which is up to 0.8 % wide, below its highest value.
const MIDDLE: f64 = 0.996;
/// The bucket of a value that is no finite number above 0 does not exist; this is far below all.
const LOWEST: i32 = -8 * 64;

/// Buckets one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// Buckets without values in front of it; of the first span, the index of its first bucket.
    pub(crate) offset: i32,
    /// Buckets.
    pub(crate) length: u32,
}

/// The buckets of a histogram: where they are, and the number of values in each as the difference
/// to the bucket before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Buckets {
    pub(crate) spans: Vec<Span>,
    pub(crate) deltas: Vec<i64>,
}

/// The buckets of cells, the lowest first.
pub(crate) fn buckets(cells: &[(f64, u64)]) -> Buckets {
    let mut all: Vec<(i32, i64)> = Vec::new();
    for (highest, count) in cells {
        let (index, count) = (
            index_of(*highest),
            i64::try_from(*count).unwrap_or(i64::MAX),
        );
        match all.last_mut() {
            Some((last, sum)) if *last >= index => *sum = sum.saturating_add(count),
            _ => all.push((index, count)),
        }
    }
    let mut buckets = Buckets::default();
    let (mut next, mut before) = (0, 0);
    for (index, count) in all {
        match buckets.spans.last_mut() {
            Some(span) if index == next => span.length += 1,
            _ => buckets.spans.push(Span {
                offset: index - next,
                length: 1,
            }),
        }
        buckets.deltas.push(count - before);
        (next, before) = (index + 1, count);
    }
    buckets
}

/// The bucket whose upper bound is 2 to the power of an eighth of it.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the logarithm of a finite number is below 1,100"
)]
fn index_of(highest: f64) -> i32 {
    let power = (highest * MIDDLE).log2() * PER_POWER;
    if power.is_finite() {
        power.ceil() as i32
    } else {
        LOWEST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The upper bounds of the buckets, and the values in them.
    fn unfolded(buckets: &Buckets) -> Vec<(f64, i64)> {
        let (mut index, mut count) = (0, 0);
        let mut deltas = buckets.deltas.iter();
        let mut all = Vec::new();
        for span in &buckets.spans {
            index += span.offset;
            for _ in 0..span.length {
                count += deltas.next().expect("one for each bucket");
                all.push(((f64::from(index) / PER_POWER).exp2(), count));
                index += 1;
            }
        }
        assert!(deltas.next().is_none());
        all
    }

    #[test]
    fn each_cell_is_in_the_bucket_whose_bounds_are_around_it() {
        let cells: Vec<_> = (1..3_000)
            .map(|step| f64::from(step * step) * 1e-9)
            .collect();
        let counted: Vec<_> = cells.iter().map(|cell| (*cell, 1)).collect();
        let all = unfolded(&buckets(&counted));
        assert_eq!(all.iter().map(|(_, count)| count).sum::<i64>(), 2_999);
        let factor = (1.0 / PER_POWER).exp2();
        for (bound, count) in all {
            let is_in = |cell: &&f64| **cell > bound / factor * 1.01 && **cell < bound * 0.99;
            let within = cells.iter().filter(is_in).count();
            assert!(
                within <= usize::try_from(count).unwrap(),
                "{bound}: {within} {count}"
            );
        }
    }

    #[test]
    fn gaps_between_buckets_are_not_sent() {
        let found = buckets(&[(1.0, 5), (1.001, 1), (1.09, 2), (1024.0, 9)]);
        assert_eq!(found.deltas, [6, -4, 7]);
        let [first, second] = &found.spans[..] else {
            panic!("{found:?}");
        };
        assert_eq!((first.offset, first.length, second.length), (0, 2, 1));
        assert_eq!(second.offset, 78);
        assert_eq!(buckets(&[]), Buckets::default());
    }
}
