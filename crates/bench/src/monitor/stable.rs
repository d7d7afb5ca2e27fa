//! The time from which memory was stable.

use thrum_figures::{SECOND_NS, fraction};

/// Memory is stable while it is within this part of its last value.
const TOLERANCE_PART: u64 = 100;

/// It must have been stable for this long to be called so.
const STABLE_NS_MIN: u64 = 5 * SECOND_NS;

/// Most points; of a run with more (18 hours) every other one is dropped, and again.
const POINTS_MAX: usize = 65_536;

/// Resident memory through time.
#[derive(Clone, Debug, Default)]
pub(super) struct MemoryCurve {
    points: Vec<(u64, u64)>,
}

impl MemoryCurve {
    /// Enters a point; times ascend.
    pub(super) fn enter(&mut self, at_ns: u64, rss_bytes: u64) {
        if self.points.len() >= POINTS_MAX {
            let mut index = 0;
            self.points.retain(|_| {
                index += 1;
                index % 2 == 1
            });
        }
        self.points.push((at_ns, rss_bytes));
    }

    /// Seconds from the first point until memory stayed within 1 % of its last value; none if it
    /// still changed.
    pub(super) fn stable_after(&self) -> Option<f64> {
        let (first_ns, _) = *self.points.first()?;
        let (last_ns, last_bytes) = *self.points.last()?;
        let is_near = |bytes: u64| bytes.abs_diff(last_bytes) <= last_bytes / TOLERANCE_PART;
        let stable = self
            .points
            .iter()
            .rev()
            .take_while(|(_, bytes)| is_near(*bytes));
        let (since_ns, _) = *stable.last()?;
        (last_ns.saturating_sub(since_ns) >= STABLE_NS_MIN)
            .then(|| fraction(since_ns.saturating_sub(first_ns)) / 1e9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(points: &[(u64, u64)]) -> MemoryCurve {
        let mut curve = MemoryCurve::default();
        for &(second, bytes) in points {
            curve.enter(second * SECOND_NS, bytes);
        }
        curve
    }

    #[test]
    fn memory_is_stable_from_the_last_time_it_was_elsewhere() {
        let points = [
            (5, 100),
            (6, 1_000),
            (7, 1_200),
            (8, 1_005),
            (10, 995),
            (20, 1_000),
        ];
        assert_eq!(curve(&points).stable_after(), Some(3.0));
        assert_eq!(curve(&[(5, 100), (20, 100)]).stable_after(), Some(0.0));
    }

    #[test]
    fn memory_that_changed_until_the_end_is_not() {
        let points = [(5, 100), (10, 1_000), (15, 1_500), (18, 2_000), (20, 2_000)];
        assert_eq!(curve(&points).stable_after(), None);
        assert_eq!(curve(&[]).stable_after(), None);
    }

    #[test]
    fn a_long_curve_is_thinned() {
        let mut curve = MemoryCurve::default();
        for second in 0..200_000 {
            curve.enter(second * SECOND_NS, if second < 50_000 { 1 } else { 1_000 });
        }
        assert!(curve.points.len() <= POINTS_MAX);
        let stable = curve.stable_after().unwrap();
        assert!((stable - 50_000.0).abs() < 60.0, "{stable}");
    }
}
