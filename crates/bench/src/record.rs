//! The measurements of one thread: histograms and counts, handed over second by second.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use thrum_figures::SECOND_NS;

/// Highest latency that costs no further memory; higher ones make the histogram grow.
const EXPECTED_NS_MAX: u64 = 60 * SECOND_NS;

/// Three significant digits: no figure is off by more than 0.1 %.
const SIGNIFICANT_DIGITS: u8 = 3;

/// Different reasons of failures kept in a slice; more are counted under one name.
const REASONS_MAX: usize = 20;

/// The name of the reasons beyond [`REASONS_MAX`].
const OTHER_REASONS: &str = "other";

/// Latencies in nanoseconds.
#[derive(Clone, Debug)]
pub struct Latencies {
    /// From the intended send time to the arrival: the waiting time of a user.
    pub response: Histogram<u64>,
    /// From the actual send to the arrival.
    pub service: Histogram<u64>,
    /// From PUBLISH to PUBACK (QoS 1) or PUBCOMP (QoS 2).
    pub publish_ack: Histogram<u64>,
    /// From the time at which the connection was to be opened to CONNACK.
    pub connect: Histogram<u64>,
    /// From SUBSCRIBE to SUBACK.
    pub subscribe: Histogram<u64>,
    /// From the loss of a connection to being ready again.
    pub reconnect: Histogram<u64>,
    /// From the intended to the actual send, where the broker did not hold the publisher back.
    pub lag: Histogram<u64>,
    /// How long a message may have been in its socket before it was read: an upper bound.
    pub receive_lag: Histogram<u64>,
    /// From the scheduled to the actual opening of a connection.
    pub open_lag: Histogram<u64>,
}

impl Latencies {
    /// Empty histograms. Their memory is taken page by page as values arrive.
    pub fn new() -> Self {
        Self {
            response: histogram(),
            service: histogram(),
            publish_ack: histogram(),
            connect: histogram(),
            subscribe: histogram(),
            reconnect: histogram(),
            lag: histogram(),
            receive_lag: histogram(),
            open_lag: histogram(),
        }
    }

    /// Every histogram with its name in results and logs.
    pub const fn named(&self) -> [(&'static str, &Histogram<u64>); 9] {
        [
            ("e2e", &self.response),
            ("service", &self.service),
            ("publish_ack", &self.publish_ack),
            ("connect", &self.connect),
            ("subscribe", &self.subscribe),
            ("reconnect", &self.reconnect),
            ("generator_lag", &self.lag),
            ("receive_lag", &self.receive_lag),
            ("open_lag", &self.open_lag),
        ]
    }

    /// The same, to be changed.
    pub const fn named_mut(&mut self) -> [(&'static str, &mut Histogram<u64>); 9] {
        [
            ("e2e", &mut self.response),
            ("service", &mut self.service),
            ("publish_ack", &mut self.publish_ack),
            ("connect", &mut self.connect),
            ("subscribe", &mut self.subscribe),
            ("reconnect", &mut self.reconnect),
            ("generator_lag", &mut self.lag),
            ("receive_lag", &mut self.receive_lag),
            ("open_lag", &mut self.open_lag),
        ]
    }

    /// Adds other measurements.
    pub fn merge(&mut self, other: &Self) {
        for ((_, mine), (_, theirs)) in self.named_mut().into_iter().zip(other.named()) {
            add(mine, theirs);
        }
    }

    /// Empties all histograms.
    pub fn clear(&mut self) {
        for (_, histogram) in self.named_mut() {
            if !histogram.is_empty() {
                histogram.reset();
            }
        }
    }
}

impl Default for Latencies {
    fn default() -> Self {
        Self::new()
    }
}

/// Counts of about a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SliceCounts {
    /// PUBLISH packets sent.
    pub sent: u64,
    /// Messages received.
    pub received: u64,
    /// Acknowledgements received.
    pub acknowledged: u64,
    /// Messages due that the broker did not take.
    pub held_back: u64,
    /// Clients that got ready.
    pub connected: u64,
    /// Clients that gave up.
    pub failed: u64,
    /// Connections lost or cut.
    pub lost: u64,
    /// Bytes read from sockets.
    pub bytes_in: u64,
    /// Bytes written to sockets.
    pub bytes_out: u64,
}

impl SliceCounts {
    /// Adds the counts of another thread.
    pub const fn merge(&mut self, other: &Self) {
        self.sent += other.sent;
        self.received += other.received;
        self.acknowledged += other.acknowledged;
        self.held_back += other.held_back;
        self.connected += other.connected;
        self.failed += other.failed;
        self.lost += other.lost;
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
    }
}

/// The measurements of about a second, of one thread or of all.
///
/// Latencies of messages count in the slice they arrive in, but only those due in the hold, or due
/// and arrived before it: so the slices from the start of the hold on add up to the hold.
#[derive(Clone, Debug, Default)]
pub struct Slice {
    /// When it began, on the coordinator's clock.
    pub start_ns: u64,
    /// Counts.
    pub counts: SliceCounts,
    /// Latencies.
    pub latencies: Latencies,
    /// Failures by reason.
    pub reasons: BTreeMap<String, u64>,
}

impl Slice {
    /// Adds another thread's slice.
    pub fn merge(&mut self, other: &Self) {
        self.counts.merge(&other.counts);
        self.latencies.merge(&other.latencies);
        for (reason, times) in &other.reasons {
            self.note(reason, *times);
        }
    }

    /// Empties it for another second.
    pub fn restart(&mut self, start_ns: u64) {
        self.start_ns = start_ns;
        self.counts = SliceCounts::default();
        self.latencies.clear();
        self.reasons.clear();
    }

    /// Counts failures; all of a kind under one text.
    pub fn note(&mut self, reason: &str, times: u64) {
        if let Some(known) = self.reasons.get_mut(reason) {
            *known += times;
            return;
        }
        let reason = if self.reasons.len() < REASONS_MAX {
            reason
        } else {
            OTHER_REASONS
        };
        *self.reasons.entry(reason.to_owned()).or_default() += times;
    }
}

/// An empty latency histogram.
pub fn histogram() -> Histogram<u64> {
    let mut histogram = Histogram::new_with_bounds(1, EXPECTED_NS_MAX, SIGNIFICANT_DIGITS)
        .unwrap_or_else(|error| unreachable!("constant bounds are valid: {error}"));
    histogram.auto(true);
    histogram
}

/// Adds a histogram to another of the same precision.
pub(crate) fn add(sum: &mut Histogram<u64>, other: &Histogram<u64>) {
    if other.is_empty() {
        return;
    }
    // All are of one precision and grow by themselves, so that adding cannot fail.
    let added = sum.add(other);
    debug_assert!(added.is_ok(), "histograms of one kind");
}

/// Enters a latency; growing the histogram is the only thing that can fail, and then the value is
/// clipped.
pub(crate) fn enter(histogram: &mut Histogram<u64>, ns: u64) {
    if histogram.record(ns.max(1)).is_err() {
        histogram.saturating_record(ns.max(1));
    }
}

/// Enters a latency that several messages had.
pub(crate) fn enter_many(histogram: &mut Histogram<u64>, ns: u64, messages: u64) {
    if messages > 0 && histogram.record_n(ns.max(1), messages).is_err() {
        histogram.saturating_record_n(ns.max(1), messages);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_keep_three_digits_from_a_microsecond_to_minutes() {
        for ns in [
            1_234,
            56_700,
            1_234_567,
            98_765_432,
            12_345_678_901,
            300_000_000_000,
        ] {
            let mut latencies = Latencies::new();
            enter(&mut latencies.response, ns);
            let read = latencies.response.value_at_quantile(0.5);
            assert!(read.abs_diff(ns) <= ns / 1000, "{ns} was read as {read}");
        }
    }

    #[test]
    fn merged_histograms_have_all_values() {
        let (mut left, mut right) = (Latencies::new(), Latencies::new());
        enter(&mut left.lag, 10_000);
        enter(&mut right.lag, 200 * SECOND_NS);
        enter_many(&mut right.receive_lag, 77, 5);
        left.merge(&right);
        assert_eq!((left.lag.len(), left.receive_lag.len()), (2, 5));
        assert!(left.lag.max() >= 200 * SECOND_NS);
    }

    #[test]
    fn a_restarted_slice_is_empty() {
        let mut slice = Slice::default();
        enter(&mut slice.latencies.connect, 5);
        slice.counts.sent = 3;
        slice.note("reset", 1);
        slice.restart(9);
        assert_eq!((slice.start_ns, slice.counts), (9, SliceCounts::default()));
        assert!(slice.latencies.connect.is_empty() && slice.reasons.is_empty());
    }

    #[test]
    fn reasons_are_counted_under_few_names() {
        let mut slice = Slice::default();
        for reason in 0..100 {
            slice.note(&format!("reason {reason}"), 1);
        }
        slice.note("reason 3", 1);
        assert_eq!(slice.reasons.len(), REASONS_MAX + 1);
        assert_eq!(
            (slice.reasons["reason 3"], slice.reasons[OTHER_REASONS]),
            (2, 80)
        );
    }
}
