//! The noise in a difference, as a part of the baseline's figure.

use hdrhistogram::Histogram;

use crate::result::{RunResult, Second, Stage};
use crate::units::fraction;

/// Runs on each side from which their spread is meaningful.
pub(super) const RUNS_MIN: usize = 3;

/// Seconds of a block; shorter ones follow each other too closely to count as independent.
const BLOCK_SECONDS_MIN: usize = 2;

/// Blocks of a run, at least and at most.
const BLOCKS_MIN: usize = 3;
const BLOCKS_MAX: usize = 20;

/// Values beyond a percentile from which their number bounds its error.
const VALUES_BEYOND_MIN: f64 = 5.0;

/// Makes the median absolute deviation of normally distributed values their standard deviation.
const MAD_TO_DEVIATION: f64 = 1.4826;

/// Standard error of a median by that of a mean, of normally distributed values.
const MEDIAN_BY_MEAN: f64 = 1.2533;

/// The factor by which the median absolute deviation of 2 to 9 values is too small (Croux and
/// Rousseeuw 1992).
const SMALL_SAMPLE: [f64; 8] = [1.196, 1.495, 1.363, 1.206, 1.200, 1.140, 1.129, 1.107];

/// Student's t for 95 % on both sides together, by degrees of freedom from 1 on.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// Student's t for more degrees of freedom.
const STUDENT_MANY: f64 = 1.96;

/// The value in the middle; the mean of the two in the middle of an even number.
pub(super) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    Some(f64::midpoint(sorted[middle - 1], upper))
}

/// Noise of the difference of two medians, from the spread of the runs of each side: medians of as
/// many runs of the same thing differ by less 95 times of 100. None if the baseline is 0.
pub(super) fn of_runs(baseline: &[f64], candidate: &[f64]) -> Option<f64> {
    let middle = median(baseline)?;
    let error = |values: &[f64]| MEDIAN_BY_MEAN * deviation(values) / count(values).sqrt();
    let noise = student(baseline.len() + candidate.len()) * error(baseline).hypot(error(candidate));
    (middle != 0.0).then(|| noise / middle.abs())
}

/// Noise of the difference of two runs, from the spread of their blocks; none if there are too few.
pub(super) fn of_blocks(baseline: &[f64], candidate: &[f64]) -> Option<f64> {
    if baseline.len() < BLOCKS_MIN || candidate.len() < BLOCKS_MIN {
        return None;
    }
    let (middle, other) = (mean(baseline), mean(candidate));
    if middle == 0.0 || other == 0.0 {
        return None;
    }
    let error = |values: &[f64]| standard_deviation(values) / count(values).sqrt();
    let noise = error(baseline).hypot(error(candidate)) / middle.abs();
    Some(student(baseline.len() + candidate.len()) * noise)
}

/// Noise of the difference of a percentile of two runs, from the number of their values: 95 % of
/// percentiles of as many values are closer. None if there are too few values beyond it.
pub(super) fn of_values(
    baseline: &Histogram<u64>,
    candidate: &Histogram<u64>,
    figure: &str,
) -> Option<f64> {
    let percentile: f64 = figure.strip_prefix('p')?.parse().ok()?;
    let quantile = percentile / 100.0;
    let middle = fraction(baseline.value_at_quantile(quantile));
    let noise =
        error_of_quantile(baseline, quantile)?.hypot(error_of_quantile(candidate, quantile)?);
    (middle > 0.0).then(|| noise / middle)
}

/// Half the width of what a quantile is known to: the number of values below it is binomially
/// distributed.
fn error_of_quantile(histogram: &Histogram<u64>, quantile: f64) -> Option<f64> {
    let values = fraction(histogram.len());
    if values * (1.0 - quantile) < VALUES_BEYOND_MIN {
        return None;
    }
    let error = STUDENT_MANY * (quantile * (1.0 - quantile) / values).sqrt();
    let at = |quantile: f64| fraction(histogram.value_at_quantile(quantile.clamp(0.0, 1.0)));
    Some((at(quantile + error) - at(quantile - error)) / 2.0)
}

/// Means of a figure over blocks of seconds of the hold, all runs together; empty if it is not
/// known per second.
pub(super) fn blocks(runs: &[RunResult], metric: &str) -> Vec<f64> {
    runs.iter().flat_map(|run| blocks_of(run, metric)).collect()
}

fn blocks_of(run: &RunResult, metric: &str) -> Vec<f64> {
    let hold = run
        .series
        .iter()
        .filter(|second| second.stage == Stage::Hold);
    let values: Vec<f64> = hold
        .filter_map(|second| of_second(second, metric))
        .collect();
    let blocks = (values.len() / BLOCK_SECONDS_MIN).min(BLOCKS_MAX);
    if blocks < BLOCKS_MIN {
        return Vec::new();
    }
    // The rest at the end would be a shorter block.
    values
        .chunks_exact(values.len() / blocks)
        .take(blocks)
        .map(mean)
        .collect()
}

fn of_second(second: &Second, metric: &str) -> Option<f64> {
    if second.span <= 0.0 {
        return None;
    }
    let cores = second
        .broker
        .map(|broker| broker.cores_user + broker.cores_system);
    let received = fraction(second.received);
    let quantiles = match metric.split_once('.') {
        Some(("e2e", figure)) => second.e2e.zip(Some(figure)),
        Some(("service", figure)) => second.service.zip(Some(figure)),
        Some(("publish_ack", figure)) => second.publish_ack.zip(Some(figure)),
        _ => None,
    };
    match metric {
        "rate.sent" => Some(fraction(second.sent) / second.span),
        "rate.received" => Some(received / second.span),
        "held_back" => Some(fraction(second.held_back) / second.span),
        "broker.cores" => cores,
        "broker.rss" => second.broker.map(|broker| fraction(broker.rss_bytes)),
        "broker.context_switches" => second.broker.map(|broker| broker.context_switches),
        "broker.cpu_per_message" if received > 0.0 => {
            cores.map(|cores| cores * second.span * 1e6 / received)
        }
        "broker.messages_per_core" => {
            let busy = cores.filter(|cores| *cores > 0.0)?;
            Some((received + fraction(second.sent)) / second.span / busy)
        }
        _ => quantiles
            .and_then(|(quantiles, figure)| quantiles.figure(figure))
            .map(fraction),
    }
}

/// Standard deviation out of the median absolute deviation, which one run gone wrong does not
/// change; where more than half of the values are equal, the usual one.
fn deviation(values: &[f64]) -> f64 {
    let Some(middle) = median(values) else {
        return 0.0;
    };
    let distances: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    let absolute = median(&distances).unwrap_or(0.0);
    if absolute == 0.0 {
        return standard_deviation(values);
    }
    let correction = values
        .len()
        .checked_sub(2)
        .and_then(|index| SMALL_SAMPLE.get(index));
    let many = count(values) / (count(values) - 0.8);
    MAD_TO_DEVIATION * absolute * correction.copied().unwrap_or(many)
}

fn standard_deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let middle = mean(values);
    let squares: f64 = values.iter().map(|value| (value - middle).powi(2)).sum();
    (squares / (count(values) - 1.0)).sqrt()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / count(values)
}

fn count(values: &[f64]) -> f64 {
    fraction(u64::try_from(values.len()).unwrap_or(u64::MAX))
}

/// Student's t for the difference of two sides with this many values together.
fn student(values: usize) -> f64 {
    let index = values.checked_sub(3);
    index
        .and_then(|index| STUDENT.get(index))
        .copied()
        .unwrap_or(STUDENT_MANY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::whole;

    fn close(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-3 * right.abs().max(1e-9)
    }

    #[test]
    fn medians_are_in_the_middle() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn noise_of_runs_is_that_of_the_formula() {
        // Deviation of both sides 1.4826 * 1 * 1.495 = 2.2165, error of each median 1.6038, t(4) =
        // 2.776.
        let noise = of_runs(&[99.0, 100.0, 101.0], &[199.0, 200.0, 201.0]).unwrap();
        assert!(
            close(noise, 2.776 * 1.6038 * 2_f64.sqrt() / 100.0),
            "{noise}"
        );
    }

    #[test]
    fn one_run_gone_wrong_does_not_widen_the_band() {
        let calm = of_runs(
            &[99.0, 100.0, 101.0, 100.5, 99.5],
            &[100.0, 101.0, 99.0, 99.5, 100.5],
        );
        let wild = of_runs(
            &[99.0, 100.0, 900.0, 100.5, 99.5],
            &[100.0, 101.0, 99.0, 99.5, 100.5],
        );
        assert!(wild.unwrap() < 2.0 * calm.unwrap());
    }

    #[test]
    fn runs_that_are_mostly_equal_still_have_a_spread() {
        assert!(of_runs(&[100.0, 100.0, 103.0], &[100.0, 100.0, 100.0]).unwrap() > 0.0);
        assert!(close(of_runs(&[5.0; 3], &[5.0; 3]).unwrap() + 1.0, 1.0));
        assert_eq!(of_runs(&[0.0; 3], &[5.0; 3]), None);
    }

    #[test]
    fn noise_of_blocks_is_that_of_the_formula() {
        // Standard deviation 1, error 0.57735 on both sides.
        let noise = of_blocks(&[9.0, 10.0, 11.0], &[19.0, 20.0, 21.0]).unwrap();
        assert!(
            close(noise, 2.776 * 0.577_35 * 2_f64.sqrt() / 10.0),
            "{noise}"
        );
        assert_eq!(of_blocks(&[1.0, 2.0], &[1.0, 2.0, 3.0]), None);
    }

    #[test]
    fn noise_of_values_is_that_of_the_binomial_distribution() {
        let mut histogram = Histogram::new(4).unwrap();
        for value in 1..=10_000_u64 {
            histogram.record(value).unwrap();
        }
        // 1.96 * sqrt(0.9 * 0.1 / 10 000) = 0.00588: 9 000 is known to 58.8.
        let noise = of_values(&histogram, &histogram, "p90").unwrap();
        let expected = 58.8 * 2_f64.sqrt() / 9_000.0;
        assert!((noise - expected).abs() < 0.02 * expected, "{noise}");
        assert_eq!(of_values(&histogram, &histogram, "p99.99"), None);
        assert_eq!(of_values(&histogram, &histogram, "max"), None);
    }

    #[test]
    fn seconds_of_the_hold_are_put_in_blocks() {
        let second = |number: u32| Second {
            span: 1.0,
            stage: if number < 4 { Stage::Ramp } else { Stage::Hold },
            received: whole(f64::from(number)),
            ..Second::default()
        };
        let run = RunResult {
            series: (0..11).map(second).collect(),
            ..RunResult::default()
        };
        // Seven seconds of hold, 4 to 10: three blocks of two, one left over.
        assert_eq!(
            blocks(std::slice::from_ref(&run), "rate.received"),
            [4.5, 6.5, 8.5]
        );
        assert!(blocks(&[run], "connect.p99").is_empty());
    }

    /// Normally distributed values around a middle with the deviation 1: sums of twelve uniform
    /// ones.
    fn drawn<const RUNS: usize>(state: &mut u64, middle: f64) -> [f64; RUNS] {
        let mut uniform = || {
            *state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            fraction(*state >> 11) / fraction(1 << 53)
        };
        std::array::from_fn(|_| middle - 6.0 + (0..12).map(|_| uniform()).sum::<f64>())
    }

    /// Times of 1 000 that a shift of the middle shows.
    fn times_seen<const RUNS: usize>(shift: f64) -> usize {
        let mut state = 1;
        let is_seen = |_: &u32| {
            let left: [f64; RUNS] = drawn(&mut state, 100.0);
            let right: [f64; RUNS] = drawn(&mut state, 100.0 + shift);
            let (before, after) = (median(&left).unwrap(), median(&right).unwrap());
            ((after - before) / before).abs() > of_runs(&left, &right).unwrap()
        };
        (0..1_000).filter(is_seen).count()
    }

    #[test]
    fn equal_sides_seldom_differ_and_unequal_ones_mostly_do() {
        for false_alarms in [
            times_seen::<3>(0.0),
            times_seen::<5>(0.0),
            times_seen::<10>(0.0),
        ] {
            assert!((20..100).contains(&false_alarms), "{false_alarms}");
        }
        assert!(times_seen::<3>(5.0) > 700);
        assert!(times_seen::<5>(5.0) > 950);
    }
}
