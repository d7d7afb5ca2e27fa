//! A rate that changes over time, as the number of messages due for one publisher.
//!
//! The count is an integer function of the time that always grows. A message is due at the last
//! nanosecond at which the count is not above its own; so whatever the count is rounded to, offsets
//! ascend and [`Curve::due_within`] is their exact inverse.

use super::ramp::Slope;

/// Fractional bits of a count. A message in a day is then still placed within a nanosecond, and a
/// count of `u32::MAX` messages times the longest period fits into 128 bits.
pub(super) const COUNT_BITS: u32 = 48;

/// Fractional bits of one over the publishers.
const SHARE_BITS: u32 = 80;

/// Number of messages due for one publisher over time, for a changing rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Curve {
    /// At least one, ascending; the last one has no end.
    segments: Vec<Segment>,
    /// One over the publishers.
    share: u128,
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
            share: (1 << SHARE_BITS) / u128::from(publishers.max(1)),
        }
    }

    /// Nanoseconds from the start of the load to a message of one publisher.
    pub(super) fn offset_ns(&self, publisher: u32, sequence: u32) -> u64 {
        let count = (u128::from(sequence) << COUNT_BITS) + self.phase(publisher);
        let segment = self.last(|segment| segment.start_count <= count);
        segment.map_or(u64::MAX, |segment| {
            let offset_ns = segment.speed.last_ns(count - segment.start_count);
            offset_ns.saturating_add(segment.start_ns)
        })
    }

    /// Messages of one publisher that are due within the first `span_ns` nanoseconds.
    pub(super) fn due_within(&self, publisher: u32, span_ns: u64) -> u32 {
        let segment = self.last(|segment| segment.start_ns <= span_ns);
        let count = segment.map_or(0, |segment| {
            segment.start_count + segment.speed.count(span_ns - segment.start_ns)
        });
        let after_first = count.saturating_sub(self.phase(publisher));
        u32::try_from(after_first.div_ceil(1 << COUNT_BITS)).unwrap_or(u32::MAX)
    }

    /// The part of a round that comes before a publisher: below 1.
    fn phase(&self, publisher: u32) -> u128 {
        let phase = (u128::from(publisher) * self.share) >> (SHARE_BITS - COUNT_BITS);
        phase.min((1 << COUNT_BITS) - 1)
    }

    /// The last segment of those that fulfil a condition: the first ones.
    fn last(&self, is_reached: impl Fn(&Segment) -> bool) -> Option<&Segment> {
        let reached = self.segments.partition_point(is_reached);
        self.segments.get(reached.checked_sub(1)?)
    }
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
