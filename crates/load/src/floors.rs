//! What of a latency is certainly not the generator's.
//!
//! Every latency is measured twice: as a user would see it, and without all the time that the
//! generator may have added: it sent late, it left the answer unread, it waited for a core. The
//! second is the floor. What the broker and the network took is between the two, message by
//! message, so each quantile of it is between the same quantiles of both.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use thrum_figures::{fraction, whole};
use thrum_report::result::Quantiles;

use crate::histogram::{add, histogram};

/// The floors of all latencies.
#[derive(Clone, Debug)]
pub struct Floors {
    /// Of messages that the broker did not hold back: response and service time have one floor.
    pub delivery: Histogram<u64>,
    /// Of the response times of messages that the broker held back.
    pub held_response: Histogram<u64>,
    /// Of the service times of messages that the broker held back.
    pub held_service: Histogram<u64>,
    /// Of the time to PUBACK or PUBCOMP.
    pub publish_ack: Histogram<u64>,
    /// Of the time from the intended send to PUBACK or PUBCOMP.
    pub publish_response: Histogram<u64>,
    /// Of connecting.
    pub connect: Histogram<u64>,
    /// Of subscribing.
    pub subscribe: Histogram<u64>,
    /// Of reconnecting.
    pub reconnect: Histogram<u64>,
    /// From the send time that a message carries until it was given to the kernel, once for each
    /// receiver: floors may be too high by this much.
    pub handing_over: Histogram<u64>,
    /// How long responders had a request before the kernel took the answer.
    pub answering: Histogram<u64>,
    /// How long publishers had a PUBREC before the kernel took the PUBREL.
    pub releasing: Histogram<u64>,
    /// How long a socket that had been full may have had room before the kernel was given the rest
    /// of a message, once for each receiver.
    pub finishing: Histogram<u64>,
}

impl Default for Floors {
    fn default() -> Self {
        Self {
            delivery: histogram(),
            held_response: histogram(),
            held_service: histogram(),
            publish_ack: histogram(),
            publish_response: histogram(),
            connect: histogram(),
            subscribe: histogram(),
            reconnect: histogram(),
            handing_over: histogram(),
            answering: histogram(),
            releasing: histogram(),
            finishing: histogram(),
        }
    }
}

impl Floors {
    /// All histograms with the names that machines use among each other.
    pub const fn named(&self) -> [(&'static str, &Histogram<u64>); 12] {
        [
            ("floor.delivery", &self.delivery),
            ("floor.held_response", &self.held_response),
            ("floor.held_service", &self.held_service),
            ("floor.publish_ack", &self.publish_ack),
            ("floor.publish_response", &self.publish_response),
            ("floor.connect", &self.connect),
            ("floor.subscribe", &self.subscribe),
            ("floor.reconnect", &self.reconnect),
            ("floor.handing_over", &self.handing_over),
            ("floor.answering", &self.answering),
            ("floor.releasing", &self.releasing),
            ("floor.finishing", &self.finishing),
        ]
    }

    /// The same, to be changed.
    pub const fn named_mut(&mut self) -> [(&'static str, &mut Histogram<u64>); 12] {
        [
            ("floor.delivery", &mut self.delivery),
            ("floor.held_response", &mut self.held_response),
            ("floor.held_service", &mut self.held_service),
            ("floor.publish_ack", &mut self.publish_ack),
            ("floor.publish_response", &mut self.publish_response),
            ("floor.connect", &mut self.connect),
            ("floor.subscribe", &mut self.subscribe),
            ("floor.reconnect", &mut self.reconnect),
            ("floor.handing_over", &mut self.handing_over),
            ("floor.answering", &mut self.answering),
            ("floor.releasing", &mut self.releasing),
            ("floor.finishing", &mut self.finishing),
        ]
    }
}

impl Floors {
    /// Of all response times.
    pub fn of_response(&self) -> Histogram<u64> {
        sum(&self.delivery, &self.held_response)
    }

    /// How much of each figure of a latency may be the generator's, given the name that it has in
    /// results, the values that are known, and how many are not; none if the floors of these are
    /// not known. `clock_error_ns` is that of a message between two machines.
    pub fn bound_of(
        &self,
        name: &str,
        seen: &Histogram<u64>,
        missing: u64,
        clock_error_ns: u64,
    ) -> Option<Quantiles> {
        let message = [&self.handing_over, &self.answering, &self.finishing].map(Some);
        let exchange = [&self.handing_over, &self.releasing, &self.finishing].map(Some);
        let none = [None, None, None];
        let (floor, excess, clock_error_ns) = match name {
            "e2e" => (self.of_response(), message, clock_error_ns),
            "service" => {
                let floor = sum(&self.delivery, &self.held_service);
                (floor, message, clock_error_ns)
            }
            "publish_ack" => (self.publish_ack.clone(), exchange, 0),
            "publish_response" => (self.publish_response.clone(), exchange, 0),
            "connect" => (self.connect.clone(), none, 0),
            "subscribe" => (self.subscribe.clone(), none, 0),
            "reconnect" => (self.reconnect.clone(), none, 0),
            _ => return None,
        };
        let measured = Measured {
            seen,
            floor: &floor,
            excess,
            clock_error_ns,
            missing,
        };
        measured.bound()
    }
}

fn sum(left: &Histogram<u64>, right: &Histogram<u64>) -> Histogram<u64> {
    let mut sum = left.clone();
    add(&mut sum, right);
    sum
}

/// A timer that goes off up to this late is punctual: a core that slept takes a part of it to wake,
/// on a virtual machine most of it.
pub const PUNCTUAL_NS: u64 = 1_000_000;

/// When the latency of something begins that was due and was done later without the broker's fault:
/// with what was done, if that was punctual, so that the timers of the generator are in no figure;
/// otherwise when it was due, so that a late generator never flatters a broker.
pub const fn begins_ns(due_ns: u64, done_ns: u64) -> u64 {
    let late_ns = done_ns.saturating_sub(due_ns);
    if late_ns <= PUNCTUAL_NS {
        due_ns + late_ns
    } else {
        due_ns
    }
}

/// The delays that one thread caused, in nanoseconds: they tell which thread spoiled a figure, and
/// how. With what it sent, which tells what is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delays {
    /// Messages sent after they were due, though the broker did not hold them back.
    pub sending: Delay,
    /// Input that was read after it may have arrived.
    pub reading: Delay,
    /// Connections opened after they were due.
    pub opening: Delay,
    /// Deliveries with a latency that the messages sent ought to cause.
    pub expected: u64,
}

/// A delay of many events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delay {
    /// The longest.
    pub max_ns: u64,
    /// Of all together.
    pub sum_ns: u64,
}

impl Delay {
    /// Adds events that were delayed this long.
    pub const fn add(&mut self, ns: u64, events: u64) {
        if ns > self.max_ns {
            self.max_ns = ns;
        }
        self.sum_ns = self.sum_ns.saturating_add(ns.saturating_mul(events));
    }

    /// Adds another second or thread.
    pub fn merge(&mut self, other: &Self) {
        self.max_ns = self.max_ns.max(other.max_ns);
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
    }
}

impl Delays {
    /// Adds another second.
    pub fn merge(&mut self, other: &Self) {
        self.sending.merge(&other.sending);
        self.reading.merge(&other.reading);
        self.opening.merge(&other.opening);
        self.expected += other.expected;
    }
}

/// A latency, its floor, and what makes the floor itself too high.
#[derive(Clone, Copy, Debug)]
pub struct Measured<'a> {
    /// As a user would see it.
    pub seen: &'a Histogram<u64>,
    /// Without all that may be the generator's.
    pub floor: &'a Histogram<u64>,
    /// Times of the generator within the floor, by message.
    pub excess: [Option<&'a Histogram<u64>>; 3],
    /// Largest error of a difference between two machines' clocks.
    pub clock_error_ns: u64,
    /// Further values, longer than all of these.
    pub missing: u64,
}

/// Shares of the messages that may be left out as hopeless while the rest is held to a smaller
/// excess.
const HOPELESS: [f64; 6] = [0.0, 0.000_1, 0.001, 0.01, 0.03, 0.1];

impl Measured<'_> {
    /// How much of each figure may be the generator's, at most; none if the floors are not known.
    ///
    /// A share of the messages, those with the largest excess, may count as wholly the generator's;
    /// then the floors of the others are too high by less. The better of the two ways counts.
    pub fn bound(&self) -> Option<Quantiles> {
        if self.seen.is_empty() || self.seen.len() != self.floor.len() {
            return None;
        }
        let seen = Quantiles::from_histogram(self.seen);
        let mean_floor = self.floor.mean() - self.excess_of(Histogram::mean);
        let at = |quantile| self.bound_at(self.among_these(quantile));
        Some(Quantiles {
            count: 0,
            min: self.bound_at(0.0),
            mean: seen
                .mean
                .saturating_sub(whole(mean_floor.max(0.0)))
                .saturating_add(self.clock_error_ns),
            p50: at(0.5),
            p75: at(0.75),
            p90: at(0.9),
            p95: at(0.95),
            p99: at(0.99),
            p99_9: at(0.999),
            p99_99: at(0.999_9),
            max: self.bound_at(1.0),
        })
    }

    /// The quantile among the values that are known, of one among all.
    fn among_these(&self, quantile: f64) -> f64 {
        let known = self.seen.len();
        let rank = (quantile * fraction(known + self.missing)).ceil();
        (rank / fraction(known)).min(1.0)
    }

    fn excess_of(&self, of: fn(&Histogram<u64>) -> f64) -> f64 {
        let known = self.excess.iter().flatten();
        known
            .filter(|excess| !excess.is_empty())
            .map(|excess| of(excess))
            .sum()
    }

    /// The bound of the value at a quantile.
    fn bound_at(&self, quantile: f64) -> u64 {
        let seen_ns = if quantile <= 0.0 {
            self.seen.min()
        } else {
            self.seen.value_at_quantile(quantile)
        };
        let floors = HOPELESS.iter().map(|hopeless| {
            let sources = self.excess.iter().flatten();
            let sources = sources.filter(|excess| !excess.is_empty());
            let (mut left_out, mut excess_ns) = (0.0, 0);
            for excess in sources {
                // Of messages that did not arrive there is an excess, but no value.
                let for_each = (fraction(excess.len()) / fraction(self.seen.len())).max(1.0);
                left_out += hopeless * for_each;
                excess_ns += excess.value_at_quantile(1.0 - hopeless);
            }
            // Those left out may all be among the lower ones.
            let rank = quantile - left_out;
            if rank < 0.0 {
                return 0;
            }
            value_below(self.floor, rank).saturating_sub(excess_ns)
        });
        let floor_ns = floors.max().unwrap_or(0);
        seen_ns
            .saturating_sub(floor_ns)
            .saturating_add(self.clock_error_ns)
    }
}

/// The value at a quantile, or the lowest for 0.
fn value_below(histogram: &Histogram<u64>, quantile: f64) -> u64 {
    if quantile <= 0.0 {
        // A recorded 0 counts as 1.
        return histogram.min().saturating_sub(1);
    }
    // The lower end of its bucket, since a floor must not be too high.
    let value = histogram.value_at_quantile(quantile);
    let wide = (fraction(value) * BUCKET_SHARE).ceil();
    value.saturating_sub(whole(wide).max(1))
}

/// Width of a histogram's bucket as a part of its values.
const BUCKET_SHARE: f64 = 0.001;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::histogram::{enter, enter_many};

    const MS: u64 = 1_000_000;

    fn of(values: impl IntoIterator<Item = u64>) -> Histogram<u64> {
        let mut all = histogram();
        values.into_iter().for_each(|ns| enter(&mut all, ns));
        all
    }

    fn bound(seen: &Histogram<u64>, floor: &Histogram<u64>, excess: &Histogram<u64>) -> Quantiles {
        let measured = Measured {
            seen,
            floor,
            excess: [Some(excess), None, None],
            clock_error_ns: 0,
            missing: 0,
        };
        measured.bound().unwrap()
    }

    #[test]
    fn a_late_reader_of_one_message_in_twenty_spoils_the_tail_alone() {
        let seen = of((0..10_000).map(|n| if n % 20 == 0 { 230 * MS } else { 8 * MS }));
        let floor = of((0..10_000).map(|_| 8 * MS));
        let bound = bound(&seen, &floor, &of([]));
        assert!(bound.p50 < 20_000, "{}", bound.p50);
        assert!(bound.p99.abs_diff(222 * MS) < MS, "{}", bound.p99);
        assert!(bound.mean.abs_diff(11_100_000) < MS, "{}", bound.mean);
    }

    #[test]
    fn an_excess_of_few_messages_does_not_spoil_all() {
        let seen = of((0..10_000).map(|_| 8 * MS));
        let mut excess = histogram();
        enter_many(&mut excess, 10_000, 9_999);
        enter_many(&mut excess, 5 * MS, 1);
        let bound = bound(&seen, &seen, &excess);
        assert!(bound.p99 < 40_000, "{}", bound.p99);
        // Which message it was is not known: perhaps the longest.
        assert!(bound.max > 4 * MS || bound.p99_99 < 40_000);
    }

    #[test]
    fn a_latency_begins_with_a_punctual_send_and_else_when_it_was_due() {
        assert_eq!(begins_ns(5_000, 5_000), 5_000);
        assert_eq!(begins_ns(5_000, 5_000 + PUNCTUAL_NS), 5_000 + PUNCTUAL_NS);
        assert_eq!(begins_ns(5_000, 5_001 + PUNCTUAL_NS), 5_000);
        // Between two machines a message may seem to leave before it was due.
        assert_eq!(begins_ns(5_000, 4_000), 5_000);
    }

    #[test]
    fn an_error_between_clocks_adds_to_every_figure() {
        let seen = of((0..1_000).map(|_| 8 * MS));
        let measured = Measured {
            seen: &seen,
            floor: &seen,
            excess: [None, None, None],
            clock_error_ns: 2 * MS,
            missing: 0,
        };
        let bound = measured.bound().unwrap();
        assert!(bound.p50.abs_diff(2 * MS) < 20_000 && bound.mean.abs_diff(2 * MS) < 20_000);
    }

    #[test]
    fn with_values_missing_the_bound_is_that_of_the_figure_that_is_shown() {
        // 57 of 100 arrived: the p50 of all is the 50th of them, which the generator spoiled.
        let seen = of((1..=57).map(|n| if n >= 50 { 16 * MS } else { 8 * MS }));
        let floor = of((1..=57).map(|_| 8 * MS));
        let measured = Measured {
            seen: &seen,
            floor: &floor,
            excess: [None, None, None],
            clock_error_ns: 0,
            missing: 43,
        };
        assert!(measured.bound().unwrap().p50.abs_diff(8 * MS) < MS);
    }

    #[test]
    fn floors_that_are_not_of_all_messages_bound_nothing() {
        let (seen, floor) = (of([MS, MS]), of([MS]));
        let measured = Measured {
            seen: &seen,
            floor: &floor,
            excess: [None, None, None],
            clock_error_ns: 0,
            missing: 0,
        };
        assert_eq!(measured.bound(), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// Truth is a quantile of what the broker took, message by message.
        #[test]
        fn the_truth_is_within_the_bound(
            messages in prop::collection::vec(
                (1_000_u64..100 * MS, 0_u64..30 * MS, 0_u64..30 * MS, 0_u64..MS, any::<bool>()),
                1..400,
            ),
        ) {
            let (mut seen, mut floor, mut excess) = (histogram(), histogram(), histogram());
            let mut truth = Vec::new();
            for (broker, sent_late, read_late, handed_over, is_late) in messages {
                let late = if is_late { sent_late + read_late } else { 0 };
                enter(&mut seen, broker + late);
                // The floor misses up to the late read of the broker's own time, and has the
                // handing over, which is the generator's.
                let missed = if is_late { read_late.min(broker) } else { 0 };
                enter(&mut floor, broker - missed + handed_over);
                enter(&mut excess, handed_over);
                truth.push(broker);
            }
            truth.sort_unstable();
            let figures = Quantiles::from_histogram(&seen);
            let bound = bound(&seen, &floor, &excess);
            for (name, quantile) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)] {
                let rank = (quantile * fraction(u64::try_from(truth.len()).unwrap())).ceil();
                let true_ns = truth[usize::try_from(whole(rank)).unwrap().max(1) - 1];
                let seen_ns = figures.figure(name).unwrap();
                let bound_ns = bound.figure(name).unwrap();
                prop_assert!(seen_ns + 1 >= true_ns, "{name}: {seen_ns} {true_ns}");
                prop_assert!(
                    seen_ns.saturating_sub(bound_ns) <= true_ns,
                    "{name}: {seen_ns} - {bound_ns} is more than {true_ns}"
                );
            }
        }
    }
}
