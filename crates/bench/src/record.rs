//! The measurements of one thread: histograms and counts, handed over second by second.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use thrum_load::floors::{Delays, Floors};
use thrum_load::histogram::{add, histogram};

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
    /// From the intended send time to PUBACK (QoS 1) or PUBCOMP (QoS 2).
    pub publish_response: Histogram<u64>,
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
    /// What of them is certainly not the generator's.
    pub floors: Floors,
}

impl Latencies {
    /// Empty histograms. Their memory is taken page by page as values arrive.
    pub fn new() -> Self {
        Self {
            response: histogram(),
            service: histogram(),
            publish_ack: histogram(),
            publish_response: histogram(),
            connect: histogram(),
            subscribe: histogram(),
            reconnect: histogram(),
            lag: histogram(),
            receive_lag: histogram(),
            open_lag: histogram(),
            floors: Floors::default(),
        }
    }

    /// Every histogram of the results and logs, with its name there.
    pub const fn named(&self) -> [(&'static str, &Histogram<u64>); 10] {
        [
            ("e2e", &self.response),
            ("service", &self.service),
            ("publish_ack", &self.publish_ack),
            ("publish_response", &self.publish_response),
            ("connect", &self.connect),
            ("subscribe", &self.subscribe),
            ("reconnect", &self.reconnect),
            ("generator_lag", &self.lag),
            ("receive_lag", &self.receive_lag),
            ("open_lag", &self.open_lag),
        ]
    }

    /// Every histogram, those of the floors included.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&'static str, &Histogram<u64>)> {
        self.named().into_iter().chain(self.floors.named())
    }

    /// The same, to be changed.
    pub(crate) fn all_mut(&mut self) -> impl Iterator<Item = (&'static str, &mut Histogram<u64>)> {
        let results = [
            ("e2e", &mut self.response),
            ("service", &mut self.service),
            ("publish_ack", &mut self.publish_ack),
            ("publish_response", &mut self.publish_response),
            ("connect", &mut self.connect),
            ("subscribe", &mut self.subscribe),
            ("reconnect", &mut self.reconnect),
            ("generator_lag", &mut self.lag),
            ("receive_lag", &mut self.receive_lag),
            ("open_lag", &mut self.open_lag),
        ];
        results.into_iter().chain(self.floors.named_mut())
    }

    /// Adds other measurements.
    pub fn merge(&mut self, other: &Self) {
        for ((_, mine), (_, theirs)) in self.all_mut().zip(other.all()) {
            add(mine, theirs);
        }
    }

    /// Empties all histograms.
    pub fn clear(&mut self) {
        for (_, histogram) in self.all_mut() {
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
    /// Number of the thread among all.
    pub thread: u32,
    /// Counts.
    pub counts: SliceCounts,
    /// Latencies.
    pub latencies: Latencies,
    /// The thread's delays.
    pub delays: Delays,
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
        self.delays = Delays::default();
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

#[cfg(test)]
mod tests {
    use thrum_figures::SECOND_NS;
    use thrum_load::histogram::{enter, enter_many};

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
