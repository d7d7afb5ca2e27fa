//! The load of one group: one of the shapes.

use std::sync::Arc;

use super::Constant;
use super::arrivals::Process;
use super::curve::{Curve, sampled};
use super::{ramp, steps};
use crate::scenario::{Arrivals, Rate, Shape};

/// Longest warm-up and longest hold that a changing rate is computed for: 208 days. A longer one
/// counts as this.
pub const LOAD_NS_MAX: u64 = 1 << 54;

/// When the messages of a group's publishers are due. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pace {
    /// The same rate all the time.
    Constant(Constant),
    /// A rate that changes, or publishers that are not spread evenly.
    Changing(Arc<Curve>),
}

impl Pace {
    /// The load of `publishers` clients with a rate and its shape over warm-up and hold. After the
    /// hold the last rate continues.
    ///
    /// Periods are held between 1 ns and [`Rate::PERIOD_NS_MAX`].
    pub fn new(rate: Rate, shape: &Shape, publishers: u32, warm_up_ns: u64, hold_ns: u64) -> Self {
        let (warm_up_ns, hold_ns) = (warm_up_ns.min(LOAD_NS_MAX), hold_ns.min(LOAD_NS_MAX));
        let parts = match shape {
            Shape::Constant => return Constant::new(rate.period_ns, publishers).into(),
            Shape::Steps { rates } => match rates.as_slice() {
                [] => return Constant::new(rate.period_ns, publishers).into(),
                [only] => return Constant::new(only.period_ns, publishers).into(),
                rates => steps::parts(rates, warm_up_ns, hold_ns),
            },
            Shape::Ramp { to } => ramp::parts(rate, *to, warm_up_ns, hold_ns),
        };
        Self::Changing(Arc::new(Curve::new(parts, publishers)))
    }

    /// The same load with messages that arrive by another process; the number of the group makes
    /// random arrivals differ from group to group.
    #[must_use]
    pub fn arriving(self, arrivals: Arrivals, group: u32) -> Self {
        let Some(process) = Process::of(arrivals, group) else {
            return self;
        };
        let mut curve = match self {
            Self::Constant(constant) => constant.as_curve(),
            Self::Changing(curve) => Arc::unwrap_or_clone(curve),
        };
        curve.set_process(process);
        Self::Changing(Arc::new(curve))
    }

    /// Nanoseconds from the start of the load to a message of one publisher, both counted from 0;
    /// saturates.
    pub fn offset_ns(&self, publisher: u32, sequence: u32) -> u64 {
        match self {
            Self::Constant(constant) => constant.offset_ns(publisher, sequence),
            Self::Changing(curve) => curve.offset_ns(publisher, sequence),
        }
    }

    /// Messages of one publisher whose offset is below `span_ns`; at most `u32::MAX`.
    pub fn due_within(&self, publisher: u32, span_ns: u64) -> u32 {
        match self {
            Self::Constant(constant) => constant.due_within(publisher, span_ns),
            Self::Changing(curve) => curve.due_within(publisher, span_ns),
        }
    }

    /// Messages of all publishers, of which there are `publishers`, whose offset is below
    /// `span_ns`: to a thousandth of the publishers if they are spread evenly, else exactly.
    pub fn due_of_all(&self, publishers: u32, span_ns: u64) -> u64 {
        match self {
            Self::Constant(constant) => {
                let due = |publisher| u64::from(constant.due_within(publisher, span_ns));
                sampled(publishers, due)
            }
            Self::Changing(curve) => curve.due_of_all(publishers, span_ns),
        }
    }

    /// Whether the publishers' messages are due in the same order in each round.
    pub(super) fn goes_in_rounds(&self) -> bool {
        match self {
            Self::Constant(_) => true,
            Self::Changing(curve) => curve.goes_in_rounds(),
        }
    }
}

impl From<Constant> for Pace {
    fn from(constant: Constant) -> Self {
        Self::Constant(constant)
    }
}
