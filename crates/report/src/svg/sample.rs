//! Fewer points for the same picture.

/// Most points of one line: two per pixel of the widest chart.
pub const POINTS_MAX: usize = 1_200;

/// A time and what was measured then; none where nothing was.
pub type Point = (f64, Option<f64>);

/// Reduces a line to at most `points_max` points that keep every minimum and maximum, as runs
/// without gaps.
///
/// Points are divided into equal groups; of each, the lowest and the highest stay, in their order.
/// A gap is shown if a whole group has no value: with few points that is any gap, with many those
/// as long as a group. A value lasts until the next point, so a run ends with its last value at the
/// time at which the gap begins.
pub fn sample(points: &[Point], points_max: usize) -> Vec<Vec<(f64, f64)>> {
    let group = if points.len() <= points_max {
        1
    } else {
        points.len().div_ceil((points_max / 2).max(1))
    };
    let mut runs = Vec::new();
    let mut run = Vec::new();
    for group in points.chunks(group) {
        match extremes(group) {
            Some((first, second)) => {
                run.push(first);
                run.extend(second);
            }
            None => {
                if let (Some(&(_, last)), Some(&(at, _))) = (run.last(), group.first()) {
                    run.push((at, last));
                    runs.push(std::mem::take(&mut run));
                }
            }
        }
    }
    if !run.is_empty() {
        runs.push(run);
    }
    runs
}

type Measured = (f64, f64);

/// The lowest and the highest point of a group in order of time; one if they are the same.
fn extremes(group: &[Point]) -> Option<(Measured, Option<Measured>)> {
    let measured = || {
        group
            .iter()
            .filter_map(|&(at, value)| Some((at, value.filter(|value| value.is_finite())?)))
    };
    let low = measured().min_by(|left, right| left.1.total_cmp(&right.1))?;
    let high = measured().max_by(|left, right| left.1.total_cmp(&right.1))?;
    Some(match low.0.total_cmp(&high.0) {
        std::cmp::Ordering::Less => (low, Some(high)),
        std::cmp::Ordering::Greater => (high, Some(low)),
        std::cmp::Ordering::Equal => (low, None),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(length: u32, value: impl Fn(u32) -> Option<f64>) -> Vec<Point> {
        (0..length).map(|at| (f64::from(at), value(at))).collect()
    }

    #[test]
    fn a_short_line_is_kept_as_it_is() {
        let points = line(100, |at| Some(f64::from(at % 7)));
        let runs = sample(&points, POINTS_MAX);
        assert_eq!(runs.len(), 1);
        assert_eq!(runs[0].len(), 100);
        assert_eq!(runs[0][13], (13.0, 6.0));
    }

    #[test]
    fn a_day_of_seconds_keeps_its_single_spike_and_dip() {
        let points = line(86_400, |at| {
            Some(match at {
                40_000 => 900.0,
                70_001 => -5.0,
                _ => f64::from(at % 10),
            })
        });
        let runs = sample(&points, POINTS_MAX);
        let kept: Vec<_> = runs.concat();
        assert!(kept.len() <= POINTS_MAX, "{} points", kept.len());
        assert!(kept.contains(&(40_000.0, 900.0)));
        assert!(kept.contains(&(70_001.0, -5.0)));
        assert!(kept.is_sorted_by(|left, right| left.0 < right.0));
    }

    #[test]
    fn nothing_measured_is_a_gap_and_never_a_zero() {
        let points = line(10, |at| (!(4..6).contains(&at)).then_some(1.0));
        let runs = sample(&points, POINTS_MAX);
        assert_eq!(runs.iter().map(Vec::len).collect::<Vec<_>>(), [5, 4]);
        assert_eq!(runs[0][4], (4.0, 1.0), "the last value lasts until the gap");
        assert!(sample(&line(10, |_| None), POINTS_MAX).is_empty());
        assert!(sample(&line(3, |_| Some(f64::NAN)), POINTS_MAX).is_empty());
    }

    #[test]
    fn a_line_of_single_points_stays_within_the_limit() {
        let points = line(86_400, |at| (at % 2 == 0).then_some(f64::from(at)));
        let kept: usize = sample(&points, POINTS_MAX).iter().map(Vec::len).sum();
        assert!(kept <= POINTS_MAX && kept > POINTS_MAX / 2);
    }
}
