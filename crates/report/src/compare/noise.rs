//! How much a figure varies: between the runs of a side, and within one run.

use hdrhistogram::Histogram;

use crate::result::{RunResult, Second, Stage, VALUES_BEYOND_MIN};
use thrum_figures::fraction;

/// Runs on each side from which their spread is meaningful.
pub(super) const RUNS_MIN: usize = 3;

/// Runs of a side from which one that went wrong is told from the others, and by how many times it
/// widens their standard deviation.
const ROBUST_RUNS_MIN: usize = 4;
const GONE_WRONG: f64 = 4.0;

/// Seconds of a hold from which their spread is meaningful.
const SECONDS_MIN: usize = 4;

/// Highest correlation of consecutive seconds that is assumed: with more of it a run has less than
/// one independent second in twenty.
const CORRELATION_MAX: f64 = 0.9;

/// Makes the median absolute deviation of normally distributed values their standard deviation.
const MAD_TO_DEVIATION: f64 = 1.4826;

/// Standard error of a median by that of a mean, of 1 to 6 normally distributed values and of many.
const MEDIAN_BY_MEAN: [f64; 6] = [1.0, 1.0, 1.160, 1.092, 1.197, 1.135];
const MEDIAN_BY_MEAN_MANY: f64 = 1.2533;

/// The factor by which the median absolute deviation of 2 to 9 values is too small (Croux and
/// Rousseeuw 1992).
const SMALL_SAMPLE: [f64; 8] = [1.196, 1.495, 1.363, 1.206, 1.200, 1.140, 1.129, 1.107];

/// Student's t for 95 % on one side, by degrees of freedom from 1 on.
const STUDENT: [f64; 30] = [
    6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812, 1.796, 1.782, 1.771,
    1.761, 1.753, 1.746, 1.740, 1.734, 1.729, 1.725, 1.721, 1.717, 1.714, 1.711, 1.708, 1.706,
    1.703, 1.701, 1.699, 1.697,
];

/// Student's t for more degrees of freedom.
const STUDENT_MANY: f64 = 1.645;

/// Student's t for 99 % on one side, by degrees of freedom from 1 on: five figures that are tested
/// together are wrong 5 times of 100 (Bonferroni).
const STUDENT_ONE_SIDED: [f64; 30] = [
    31.821, 6.965, 4.541, 3.747, 3.365, 3.143, 2.998, 2.896, 2.821, 2.764, 2.719, 2.681, 2.650,
    2.624, 2.602, 2.583, 2.567, 2.552, 2.539, 2.528, 2.518, 2.508, 2.500, 2.492, 2.485, 2.479,
    2.473, 2.467, 2.462, 2.457,
];
const STUDENT_ONE_SIDED_MANY: f64 = 2.326;

/// Degrees of freedom of an error that follows from the number of values.
const MANY: f64 = 1e6;

/// What is known of a figure of one run from within the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Error {
    /// Standard error as a part of the figure.
    pub(super) relative: f64,
    /// Degrees of freedom that it is known with.
    pub(super) freedom: f64,
    /// Whether it comes from the seconds of the run; else from the number of its values.
    pub(super) is_of_seconds: bool,
}

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
/// many runs of the same thing differ by less 95 times of 100 in each direction. None if the
/// baseline is 0.
pub(super) fn of_runs(baseline: &[f64], candidate: &[f64]) -> Option<f64> {
    let middle = median(baseline)?;
    let error = |values: &[f64]| {
        let deviation = deviation(values);
        median_by_mean(values.len()) * deviation / count(values).sqrt()
    };
    let noise = student(baseline.len() + candidate.len()) * error(baseline).hypot(error(candidate));
    (middle != 0.0).then(|| noise / middle.abs())
}

/// Noise of the difference of two figures, as a part of them: 99 % of differences of the same thing
/// are smaller on each side.
pub(super) fn of_errors(baseline: Error, candidate: Error) -> f64 {
    let t = student_one_sided(baseline.freedom + candidate.freedom);
    t * baseline.relative.hypot(candidate.relative)
}

/// The error of a figure of a run: from its seconds, or else from the number of its values.
pub(super) fn error_within(run: &RunResult, metric: &str) -> Option<Error> {
    error_of_seconds(run, metric).or_else(|| {
        let (distribution, figure) = metric.split_once('.')?;
        let histogram = run.latency_ns.find(distribution)?.histogram().ok()?;
        error_of_values(&histogram, figure)
    })
}

/// The error of a percentile from the number of its values. None if there are too few beyond it.
fn error_of_values(histogram: &Histogram<u64>, figure: &str) -> Option<Error> {
    let percentile: f64 = figure.strip_prefix('p')?.parse().ok()?;
    let quantile = percentile / 100.0;
    let middle = fraction(histogram.value_at_quantile(quantile));
    let error = error_of_quantile(histogram, quantile)? / STUDENT_MANY;
    (middle > 0.0).then(|| Error {
        relative: error / middle,
        freedom: MANY,
        is_of_seconds: false,
    })
}

/// Half the width of what a quantile is known to: the number of values below it is binomially
/// distributed.
fn error_of_quantile(histogram: &Histogram<u64>, quantile: f64) -> Option<f64> {
    let values = fraction(histogram.len());
    if values * (1.0 - quantile) < VALUES_BEYOND_MIN - 0.5 {
        return None;
    }
    let error = STUDENT_MANY * (quantile * (1.0 - quantile) / values).sqrt();
    let at = |quantile: f64| fraction(histogram.value_at_quantile(quantile.clamp(0.0, 1.0)));
    Some((at(quantile + error) - at(quantile - error)) / 2.0)
}

/// The standard error of the mean of seconds that depend on the second before: fewer of them are
/// independent. None if the figure is not known per second, or of too few.
fn error_of_seconds(run: &RunResult, metric: &str) -> Option<Error> {
    let hold = run
        .series
        .iter()
        .filter(|second| second.stage == Stage::Hold);
    let values: Vec<f64> = hold
        .filter_map(|second| of_second(second, metric))
        .collect();
    let middle = mean(&values);
    if values.len() < SECONDS_MIN || middle <= 0.0 {
        return None;
    }
    let correlation = correlation(&values);
    let independent = count(&values) * (1.0 - correlation) / (1.0 + correlation);
    Some(Error {
        relative: standard_deviation(&values) / independent.max(1.0).sqrt() / middle,
        freedom: (independent - 1.0).max(0.5),
        is_of_seconds: true,
    })
}

/// Correlation of consecutive values, of 0 to [`CORRELATION_MAX`]. The estimate of few values is
/// too low on average, which is corrected (Kendall 1954).
fn correlation(values: &[f64]) -> f64 {
    let middle = mean(values);
    let squares: f64 = values.iter().map(|value| (value - middle).powi(2)).sum();
    if squares <= 0.0 {
        return 0.0;
    }
    let pairs = values.windows(2);
    let products: f64 = pairs
        .map(|pair| (pair[0] - middle) * (pair[1] - middle))
        .sum();
    let count = count(values);
    let estimate = (products / squares + 1.0 / count) / (1.0 - 3.0 / count);
    estimate.clamp(0.0, CORRELATION_MAX)
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

/// Standard deviation; with a run gone wrong the one out of the median absolute deviation, which
/// such a run does not change.
fn deviation(values: &[f64]) -> f64 {
    let usual = standard_deviation(values);
    match robust_deviation(values) {
        Some(robust) if robust > 0.0 && usual > GONE_WRONG * robust => robust,
        _ => usual,
    }
}

/// None of too few values.
fn robust_deviation(values: &[f64]) -> Option<f64> {
    if values.len() < ROBUST_RUNS_MIN {
        return None;
    }
    let middle = median(values)?;
    let distances: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    let correction = SMALL_SAMPLE.get(values.len() - 2).copied();
    let many = count(values) / (count(values) - 0.8);
    Some(MAD_TO_DEVIATION * median(&distances)? * correction.unwrap_or(many))
}

pub(super) fn standard_deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let middle = mean(values);
    let squares: f64 = values.iter().map(|value| (value - middle).powi(2)).sum();
    (squares / (count(values) - 1.0)).sqrt()
}

pub(super) fn mean(values: &[f64]) -> f64 {
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

fn median_by_mean(values: usize) -> f64 {
    let index = values.saturating_sub(1);
    MEDIAN_BY_MEAN
        .get(index)
        .copied()
        .unwrap_or(MEDIAN_BY_MEAN_MANY)
}

/// Student's t for 99 % on one side; between whole degrees of freedom that of fewer.
fn student_one_sided(freedom: f64) -> f64 {
    let mut known = (1_u8..).map(f64::from).zip(STUDENT_ONE_SIDED);
    let next = known.find(|(of, _)| *of + 1.0 > freedom);
    next.map_or(STUDENT_ONE_SIDED_MANY, |(_, t)| t)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        // Deviation of both sides 1, error of each median 1.160 / sqrt(3) = 0.6697, t(4) = 2.132.
        let noise = of_runs(&[99.0, 100.0, 101.0], &[199.0, 200.0, 201.0]).unwrap();
        assert!(
            close(noise, 2.132 * 0.6697 * 2_f64.sqrt() / 100.0),
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

    fn error(relative: f64, freedom: f64) -> Error {
        Error {
            relative,
            freedom,
            is_of_seconds: true,
        }
    }

    #[test]
    fn noise_of_errors_is_that_of_the_formula() {
        let noise = of_errors(error(0.03, 2.0), error(0.04, 2.0));
        assert!(close(noise, 3.747 * 0.05), "{noise}");
        assert!(close(student_one_sided(0.5), 31.821));
        assert!(close(student_one_sided(4.9), 3.747));
        assert!(close(student_one_sided(1e6), 2.326));
    }

    #[test]
    fn error_of_values_is_that_of_the_binomial_distribution() {
        let mut histogram = Histogram::new(4).unwrap();
        for value in 1..=10_000_u64 {
            histogram.record(value).unwrap();
        }
        // sqrt(0.9 * 0.1 / 10 000) = 0.003: 9 000 is known to 30.
        let error = error_of_values(&histogram, "p90").unwrap().relative;
        let expected = 30.0 / 9_000.0;
        assert!((error - expected).abs() < 0.02 * expected, "{error}");
        assert_eq!(error_of_values(&histogram, "p99.99"), None);
        assert_eq!(error_of_values(&histogram, "max"), None);
    }

    fn run_of_seconds(received: &[u64]) -> RunResult {
        let second = |(number, received): (u32, &u64)| Second {
            span: 1.0,
            stage: if number < 4 { Stage::Ramp } else { Stage::Hold },
            received: *received,
            ..Second::default()
        };
        RunResult {
            series: (0..).zip(received).map(second).collect(),
            ..RunResult::default()
        }
    }

    #[test]
    fn only_seconds_of_the_hold_count() {
        let run = run_of_seconds(&[0, 0, 0, 0, 98, 102, 99, 101, 98, 102]);
        let error = error_within(&run, "rate.received").unwrap();
        assert!(error.is_of_seconds);
        assert!(close(error.relative, 0.018_97 / 6_f64.sqrt()), "{error:?}");
        assert_eq!(error_within(&run, "connect.p99"), None);
        let short = run_of_seconds(&[0, 0, 0, 0, 98, 102, 99]);
        assert_eq!(error_within(&short, "rate.received"), None);
    }

    #[test]
    fn seconds_that_follow_each_other_count_less() {
        let of = |received: [u64; 16]| {
            let run = run_of_seconds(&received);
            error_within(&run, "rate.received").unwrap()
        };
        let by_turns = of([
            0, 0, 0, 0, 90, 110, 90, 110, 90, 110, 90, 110, 90, 110, 90, 110,
        ]);
        let in_a_row = of([
            0, 0, 0, 0, 90, 90, 90, 90, 90, 90, 110, 110, 110, 110, 110, 110,
        ]);
        assert!(in_a_row.relative > 2.5 * by_turns.relative, "{in_a_row:?}");
        assert!(in_a_row.freedom < by_turns.freedom);
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

    /// Times of 1 000 that a shift of the middle shows as one upwards.
    fn times_seen<const RUNS: usize>(shift: f64) -> usize {
        let mut state = 1;
        let is_seen = |_: &u32| {
            let left: [f64; RUNS] = drawn(&mut state, 100.0);
            let right: [f64; RUNS] = drawn(&mut state, 100.0 + shift);
            let (before, after) = (median(&left).unwrap(), median(&right).unwrap());
            (after - before) / before > of_runs(&left, &right).unwrap()
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
