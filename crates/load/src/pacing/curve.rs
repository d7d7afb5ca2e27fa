//! A rate that changes over time, as the number of messages due for one publisher.
//!
//! The count is an integer function of the time that always grows. A message is due at the last
//! nanosecond at which the count is not above its own; so whatever the count is rounded to, offsets
//! ascend and [`Curve::due_within`] is their exact inverse.

use super::arrivals::Process;
use super::ramp::Slope;

/// Fractional bits of a count. A message in a day is then still placed within a nanosecond, and a
/// count of `u32::MAX` messages times the longest period fits into 128 bits.
pub(super) const COUNT_BITS: u32 = 48;

/// Publishers of a group that [`sampled`] asks at most.
const PUBLISHERS_ASKED_MAX: u32 = 1_000;

/// Number of messages due for one publisher over time, for a changing rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Curve {
    /// At least one, ascending; the last one has no end.
    segments: Vec<Segment>,
    process: Process,
}

/// A part of the load before it is placed in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) length_ns: u64,
    pub(super) speed: Speed,
}

/// The growth rate of the count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speed {
    /// By one each period, 1 ns to a day.
    Even { period_ns: u64 },
    /// Linearly faster or slower.
    Sloped(Slope),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    start_ns: u64,
    start_count: u128,
    speed: Speed,
}

impl Curve {
    /// Parts one after the other; the length of the last one does not matter.
    pub(super) fn new(parts: impl IntoIterator<Item = Part>, publishers: u32) -> Self {
        let (mut start_ns, mut start_count) = (0_u64, 0_u128);
        let placed = parts.into_iter().map(|part| {
            let segment = Segment {
                start_ns,
                start_count,
                speed: part.speed,
            };
            start_ns = start_ns.saturating_add(part.length_ns);
            start_count += part.speed.count(part.length_ns);
            segment
        });
        Self {
            segments: placed.collect(),
            process: Process::even(publishers),
        }
    }

    /// Nanoseconds from the start of the load to a message of one publisher.
    pub(super) fn offset_ns(&self, publisher: u32, sequence: u32) -> u64 {
        let count = self.process.place(publisher, sequence);
        let segment = self.last(|segment| segment.start_count <= count);
        segment.map_or(u64::MAX, |segment| {
            let offset_ns = segment.speed.last_ns(count - segment.start_count);
            offset_ns.saturating_add(segment.start_ns)
        })
    }

    /// Messages of one publisher that are due within the first `span_ns` nanoseconds.
    pub(super) fn due_within(&self, publisher: u32, span_ns: u64) -> u32 {
        self.process.placed_before(publisher, self.count(span_ns))
    }

    /// Messages of the first `publishers` that are due within the first `span_ns` nanoseconds.
    pub(super) fn due_of_all(&self, publishers: u32, span_ns: u64) -> u64 {
        let count = self.count(span_ns);
        let due = |publisher| u64::from(self.process.placed_before(publisher, count));
        match self.process {
            Process::Burst => due(0) * u64::from(publishers),
            Process::Even { .. } => sampled(publishers, due),
            Process::Poisson { .. } => (0..publishers).map(due).sum(),
        }
    }

    /// The same load with messages that arrive by another process.
    pub(super) const fn set_process(&mut self, process: Process) {
        self.process = process;
    }

    /// Whether the publishers' messages are due in the same order in each round.
    pub(super) const fn goes_in_rounds(&self) -> bool {
        !matches!(self.process, Process::Poisson { .. })
    }

    /// Messages due for one publisher after a time.
    fn count(&self, span_ns: u64) -> u128 {
        let segment = self.last(|segment| segment.start_ns <= span_ns);
        segment.map_or(0, |segment| {
            segment.start_count + segment.speed.count(span_ns - segment.start_ns)
        })
    }

    /// The last segment of those that fulfil a condition: the first ones.
    fn last(&self, is_reached: impl Fn(&Segment) -> bool) -> Option<&Segment> {
        let reached = self.segments.partition_point(is_reached);
        self.segments.get(reached.checked_sub(1)?)
    }
}

/// The messages of evenly spread publishers, to a thousandth of the publishers: an equally even
/// sample represents all.
pub(super) fn sampled(publishers: u32, due: impl Fn(u32) -> u64) -> u64 {
    let asked = publishers.min(PUBLISHERS_ASKED_MAX);
    let step = |of: u32| u64::from(of) * u64::from(publishers) / u64::from(asked.max(1));
    let due = (0..asked).map(|of| {
        let number = u32::try_from(step(of)).unwrap_or(u32::MAX);
        due(number) * (step(of + 1) - step(of))
    });
    due.sum()
}

impl Speed {
    /// Messages after this time.
    fn count(self, elapsed_ns: u64) -> u128 {
        match self {
            Self::Even { period_ns } => {
                (u128::from(elapsed_ns) << COUNT_BITS) / u128::from(period_ns)
            }
            Self::Sloped(slope) => slope.count(elapsed_ns),
        }
    }

    /// The last time at which the count is not above this one.
    fn last_ns(self, count: u128) -> u64 {
        match self {
            Self::Even { period_ns } => {
                let elapsed = ((count + 1) * u128::from(period_ns) - 1) >> COUNT_BITS;
                u64::try_from(elapsed).unwrap_or(u64::MAX)
            }
            Self::Sloped(slope) => slope.last_ns(count),
        }
    }
}
