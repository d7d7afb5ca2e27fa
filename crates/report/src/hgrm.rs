//! The percentile distribution of a histogram in the text form that the plotters of `HdrHistogram`
//! read.

use std::fmt::Write as _;

use hdrhistogram::Histogram;

use crate::hdr::HistogramError;
use crate::result::RunResult;
use thrum_figures::fraction;

/// Lines per halving of the distance to 100 %.
const TICKS_PER_HALF_DISTANCE: u32 = 5;

/// The distribution of the latency that the run is about, in milliseconds; a comment in front names
/// the latency.
///
/// # Errors
/// The run has none, or its histogram cannot be read.
pub fn hgrm(run: &RunResult) -> Result<String, HistogramError> {
    let (name, distribution) = run.latency_ns.main().ok_or(HistogramError::Missing)?;
    let text = distribution_text(&distribution.histogram()?);
    Ok(format!("#[Latency = {name}, in milliseconds]\n{text}"))
}

/// The distribution of nanoseconds in milliseconds.
pub fn distribution_text(histogram: &Histogram<u64>) -> String {
    let mut text = String::from("       Value     Percentile TotalCount 1/(1-Percentile)\n\n");
    let mut total = 0;
    for step in histogram.iter_quantiles(TICKS_PER_HALF_DISTANCE) {
        total += step.count_since_last_iteration();
        let value = fraction(step.value_iterated_to()) / 1e6;
        let quantile = step.quantile_iterated_to();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn the_distribution_ends_with_all_values() {
        let text = hgrm(&sample::run()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[..2],
            [
                "#[Latency = e2e, in milliseconds]",
                "       Value     Percentile TotalCount 1/(1-Percentile)",
            ]
        );
        assert_eq!(
            lines[3],
            "    0.800255 0.000000000000          1           1.00"
        );
        let last = lines[lines.len() - 3];
        assert!(last.ends_with("1.000000000000          4"), "{last}");
        assert!(text.ends_with("Total count    =            4]\n"), "{text}");
    }

    #[test]
    fn the_distribution_is_that_of_the_latency_that_the_run_is_about() {
        let mut run = sample::run();
        run.latency_ns.publish_ack = run.latency_ns.e2e.take();
        run.latency_ns.publish_response = None;
        assert!(run.latency_ns.connect.is_some());
        let text = hgrm(&run).unwrap();
        assert!(
            text.starts_with("#[Latency = publish_ack, in milliseconds]\n"),
            "{text}"
        );
        run.latency_ns.publish_ack = None;
        let text = hgrm(&run).unwrap();
        assert!(
            text.starts_with("#[Latency = connect, in milliseconds]\n"),
            "{text}"
        );
    }

    #[test]
    fn a_run_without_latencies_has_no_distribution() {
        assert!(matches!(
            hgrm(&RunResult::default()),
            Err(HistogramError::Missing)
        ));
    }
}
