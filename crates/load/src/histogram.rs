//! Histograms of latencies, all of one precision.

use hdrhistogram::Histogram;
use thrum_figures::SECOND_NS;

/// Three significant digits: no figure is off by more than 0.1 %.
const SIGNIFICANT_DIGITS: u8 = 3;

/// Highest latency that costs no further memory; higher ones make the histogram grow.
const EXPECTED_NS_MAX: u64 = 60 * SECOND_NS;

/// An empty latency histogram.
pub fn histogram() -> Histogram<u64> {
    let mut histogram = Histogram::new_with_bounds(1, EXPECTED_NS_MAX, SIGNIFICANT_DIGITS)
        .unwrap_or_else(|error| unreachable!("constant bounds are valid: {error}"));
    histogram.auto(true);
    histogram
}

/// Adds a histogram to another of the same precision.
pub fn add(sum: &mut Histogram<u64>, other: &Histogram<u64>) {
    if other.is_empty() {
        return;
    }
    // All are of one precision and grow by themselves, so that adding cannot fail.
    let added = sum.add(other);
    debug_assert!(added.is_ok(), "histograms of one kind");
}

/// Enters a latency; growing the histogram is the only thing that can fail, and then the value is
/// clipped.
pub fn enter(histogram: &mut Histogram<u64>, ns: u64) {
    if histogram.record(ns.max(1)).is_err() {
        histogram.saturating_record(ns.max(1));
    }
}

/// Enters a latency that several messages had.
pub fn enter_many(histogram: &mut Histogram<u64>, ns: u64, messages: u64) {
    if messages > 0 && histogram.record_n(ns.max(1), messages).is_err() {
        histogram.saturating_record_n(ns.max(1), messages);
    }
}
