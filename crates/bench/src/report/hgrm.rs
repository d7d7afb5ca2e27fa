//! The percentile distribution of a histogram in the text form that the plotters of `HdrHistogram` read.

use std::fmt::Write as _;

use hdrhistogram::Histogram;

use crate::units::fraction;

/// Lines per halving of the distance to 100 %.
const TICKS_PER_HALF_DISTANCE: u32 = 5;

/// The distribution in milliseconds.
pub(super) fn distribution(histogram: &Histogram<u64>) -> String {
    let mut text = String::from("       Value     Percentile TotalCount 1/(1-Percentile)\n\n");
    let mut total = 0;
    for step in histogram.iter_quantiles(TICKS_PER_HALF_DISTANCE) {
        total += step.count_since_last_iteration();
        let (value, quantile) = (
            fraction(step.value_iterated_to()) / 1e6,
            step.quantile_iterated_to(),
        );
        write!(text, "{value:12.6} {quantile:14.12} {total:10}").ok();
        if quantile < 1.0 {
            write!(text, " {:14.2}", 1.0 / (1.0 - quantile)).ok();
        }
        text.push('\n');
    }
    let (mean, deviation) = (histogram.mean() / 1e6, histogram.stdev() / 1e6);
    let (max, total) = (fraction(histogram.max()) / 1e6, histogram.len());
    writeln!(
        text,
        "#[Mean    = {mean:12.6}, StdDeviation   = {deviation:12.6}]"
    )
    .ok();
    writeln!(text, "#[Max     = {max:12.6}, Total count    = {total:12}]").ok();
    text
}
