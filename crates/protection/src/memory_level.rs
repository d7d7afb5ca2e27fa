//! The shortage of memory: from the resident memory of the process and `limits.memory` to the
//! restrictions.
//!
//! | level | from, in hundredths of the limit | restriction |
//! |---|---|---|
//! | `Low` | 80 | publishers whose messages have to wait are read less |
//! | `Short` | 90 | long queues take no more; no session begins that outlives its connection |
//! | `Full` | 100 | no queue and no large set of filters grows, nor do retained messages |
//! | `Exhausted` | 110 | only clients that have a session can connect |
//!
//! Messages that pass through to connected clients, and clients that fetch their queue, are served
//! at every level.

/// The shortage of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum MemoryLevel {
    /// Memory is sufficient, or there is no limit.
    #[default]
    Ample,
    /// Publishers that fill queues are slowed down.
    Low,
    /// Long queues are full.
    Short,
    /// No more memory is used for queues, filters and retained messages.
    Full,
    /// New clients are refused.
    Exhausted,
}

/// A level ends this number of hundredths below its beginning, so that it does not change with each
/// message.
const CALM: u64 = 5;

impl MemoryLevel {
    /// All levels, in order.
    pub const ALL: [Self; 5] = [
        Self::Ample,
        Self::Low,
        Self::Short,
        Self::Full,
        Self::Exhausted,
    ];

    /// The level that follows this one at this amount of memory in use. A limit of 0 is off.
    #[must_use]
    pub fn next(self, resident_bytes: u64, limit: u64) -> Self {
        if limit == 0 {
            return Self::Ample;
        }
        let hundredths = u128::from(resident_bytes) * 100 / u128::from(limit);
        let hundredths = u64::try_from(hundredths).unwrap_or(u64::MAX);
        let is_reached = |level: &Self| {
            let calm = if *level <= self { CALM } else { 0 };
            hundredths.saturating_add(calm) >= level.begins()
        };
        let mut levels = Self::ALL.into_iter().rev();
        levels.find(is_reached).unwrap_or_default()
    }

    /// The beginning of the level, in hundredths of the limit.
    const fn begins(self) -> u64 {
        match self {
            Self::Ample => 0,
            Self::Low => 80,
            Self::Short => 90,
            Self::Full => 100,
            Self::Exhausted => 110,
        }
    }

    /// The restrictions of the level, for the log.
    pub fn what(self) -> &'static str {
        match self {
            Self::Ample => "memory is below limits.memory again",
            Self::Low => {
                "memory is at 80 % of limits.memory: publishers whose messages have to wait for \
                 their receivers are read less"
            }
            Self::Short => {
                "memory is at 90 % of limits.memory: messages for long queues and new sessions \
                 that outlive their connection are refused"
            }
            Self::Full => {
                "memory is at limits.memory: messages that have to wait are refused, and retained \
                 messages that take more than the ones before"
            }
            Self::Exhausted => {
                "memory is over limits.memory: only clients that have a session can connect"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::MemoryLevel::{Ample, Exhausted, Full, Low, Short};
    use super::*;

    #[test]
    fn a_level_begins_at_its_share_of_the_limit_and_ends_below_it() {
        let mut level = Ample;
        let seen = [
            79, 80, 90, 100, 110, 106, 105, 104, 95, 94, 84, 75, 74, 1000,
        ]
        .map(|bytes| {
            level = level.next(bytes * 10, 1000);
            level
        });
        let expected = [
            Ample, Low, Short, Full, Exhausted, Exhausted, Exhausted, Full, Full, Short, Low, Low,
            Ample, Exhausted,
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn without_a_limit_there_is_always_enough() {
        for level in MemoryLevel::ALL {
            assert_eq!(level.next(u64::MAX, 0), Ample);
        }
    }
}
