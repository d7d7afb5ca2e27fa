//! What one thread measured: histograms, counts, and counts per second.

use hdrhistogram::Histogram;

use crate::units::SECOND_NS;

/// Highest latency that costs no further memory; higher ones make the histogram grow.
const EXPECTED_NS_MAX: u64 = 60 * SECOND_NS;

/// Three significant digits: no figure is off by more than 0.1 %.
const SIGNIFICANT_DIGITS: u8 = 3;

/// Latencies of one thread, in nanoseconds.
#[derive(Clone, Debug)]
pub struct Latencies {
    /// From the intended send time to the arrival: what a user of the system waits.
    pub response: Histogram<u64>,
    /// From the actual send to the arrival.
    pub service: Histogram<u64>,
    /// From PUBLISH to PUBACK (QoS 1) or PUBCOMP (QoS 2).
    pub publish_ack: Histogram<u64>,
    /// From opening the connection to CONNACK.
    pub connect: Histogram<u64>,
    /// From SUBSCRIBE to SUBACK.
    pub subscribe: Histogram<u64>,
    /// From the intended to the actual send, where the broker did not hold the publisher back.
    pub lag: Histogram<u64>,
}

impl Latencies {
    /// Empty histograms.
    pub fn new() -> Self {
        Self {
            response: histogram(),
            service: histogram(),
            publish_ack: histogram(),
            connect: histogram(),
            subscribe: histogram(),
            lag: histogram(),
        }
    }

    /// Adds the measurements of another thread.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in [
            (&mut self.response, &other.response),
            (&mut self.service, &other.service),
            (&mut self.publish_ack, &other.publish_ack),
            (&mut self.connect, &other.connect),
            (&mut self.subscribe, &other.subscribe),
            (&mut self.lag, &other.lag),
        ] {
            // All are of one precision and grow by themselves, so that adding cannot fail.
            let added = mine.add(theirs);
            debug_assert!(added.is_ok(), "histograms of one kind");
        }
    }
}

impl Default for Latencies {
    fn default() -> Self {
        Self::new()
    }
}

/// Counts of one thread; messages of the whole load, warm-up included, unless said otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// PUBLISH packets sent.
    pub sent: u64,
    /// Of these, sent within the hold.
    pub sent_in_hold: u64,
    /// Messages that could not be sent when due, because the broker had not acknowledged enough earlier
    /// ones or did not take more bytes.
    pub held_back: u64,
    /// Messages due before the end of the hold that were still held back then.
    pub held_back_at_end: u64,
    /// Messages received, duplicates included.
    pub received: u64,
    /// Of these, received within the hold.
    pub received_in_hold: u64,
    /// Deliveries that the messages sent ought to cause.
    pub expected: u64,
    /// Deliveries for the first time.
    pub distinct: u64,
    /// PUBACK or PUBCOMP received.
    pub acknowledged: u64,
    /// Acknowledgements that refused the message.
    pub refused: u64,
    /// Messages for a subscriber that did not ask for them.
    pub misdelivered: u64,
    /// Messages that this run did not send.
    pub foreign: u64,
    /// Bytes read from sockets.
    pub bytes_in: u64,
    /// Bytes written to sockets.
    pub bytes_out: u64,
    /// Connections that the broker lost or closed after they were ready.
    pub connections_lost: u64,
    /// Subscriptions with a lower quality of service than asked for.
    pub downgraded: u64,
}

impl Counts {
    /// Adds the counts of another thread.
    pub const fn merge(&mut self, other: &Self) {
        self.sent += other.sent;
        self.sent_in_hold += other.sent_in_hold;
        self.held_back += other.held_back;
        self.held_back_at_end += other.held_back_at_end;
        self.received += other.received;
        self.received_in_hold += other.received_in_hold;
        self.expected += other.expected;
        self.distinct += other.distinct;
        self.acknowledged += other.acknowledged;
        self.refused += other.refused;
        self.misdelivered += other.misdelivered;
        self.foreign += other.foreign;
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
        self.connections_lost += other.connections_lost;
        self.downgraded += other.downgraded;
    }
}

/// Counts of one second since the start of the load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SecondCounts {
    /// PUBLISH packets sent.
    pub sent: u64,
    /// Messages received.
    pub received: u64,
    /// Acknowledgements received.
    pub acknowledged: u64,
}

/// Counts second by second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    seconds: Vec<SecondCounts>,
}

impl Series {
    /// Room for a load of so many seconds.
    pub fn with_seconds(seconds: usize) -> Self {
        Self {
            seconds: vec![SecondCounts::default(); seconds.max(1)],
        }
    }

    /// The counts of a second; the last one takes what comes later.
    pub fn at(&mut self, second: usize) -> &mut SecondCounts {
        let last = self.seconds.len() - 1;
        &mut self.seconds[second.min(last)]
    }

    /// All seconds up to the last one with a count.
    pub fn seconds(&self) -> &[SecondCounts] {
        let used = self
            .seconds
            .iter()
            .rposition(|second| *second != SecondCounts::default());
        &self.seconds[..used.map_or(0, |last| last + 1)]
    }

    /// Adds another thread's counts.
    pub fn merge(&mut self, other: &Self) {
        if self.seconds.len() < other.seconds.len() {
            self.seconds
                .resize(other.seconds.len(), SecondCounts::default());
        }
        for (mine, theirs) in self.seconds.iter_mut().zip(&other.seconds) {
            mine.sent += theirs.sent;
            mine.received += theirs.received;
            mine.acknowledged += theirs.acknowledged;
        }
    }
}

/// An empty latency histogram.
fn histogram() -> Histogram<u64> {
    let mut histogram = Histogram::new_with_bounds(1, EXPECTED_NS_MAX, SIGNIFICANT_DIGITS)
        .unwrap_or_else(|error| unreachable!("constant bounds are valid: {error}"));
    histogram.auto(true);
    histogram
}

/// Enters a latency; growing the histogram is the only thing that can fail, and then the value is clipped.
pub(crate) fn enter(histogram: &mut Histogram<u64>, ns: u64) {
    if histogram.record(ns.max(1)).is_err() {
        histogram.saturating_record(ns.max(1));
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
        left.merge(&right);
        assert_eq!(left.lag.len(), 2);
        assert!(left.lag.max() >= 200 * SECOND_NS);
    }

    #[test]
    fn series_of_threads_add_up_second_by_second() {
        let (mut left, mut right) = (Series::with_seconds(3), Series::with_seconds(5));
        left.at(0).sent = 1;
        right.at(0).sent = 2;
        right.at(1).received = 7;
        right.at(99).acknowledged = 1;
        left.merge(&right);
        assert_eq!(left.seconds().len(), 5);
        assert_eq!(left.seconds()[0].sent, 3);
        assert_eq!(left.seconds()[1].received, 7);
        assert_eq!(left.seconds()[4].acknowledged, 1);
    }

    #[test]
    fn quiet_seconds_at_the_end_are_not_kept() {
        let mut series = Series::with_seconds(60);
        series.at(2).sent = 1;
        assert_eq!(series.seconds().len(), 3);
    }
}
