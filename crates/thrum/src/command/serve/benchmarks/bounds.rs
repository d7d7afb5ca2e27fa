//! What a run may take of memory and time.

use std::time::Duration;

use super::ending::Killed;

/// A run says something each second. Connecting to a host that does not answer, and writing the
/// report of a long run, may take longer.
const SILENCE_MAX: Duration = Duration::from_mins(1);
/// From the request to end to the end, beyond the drain of the scenario: its report.
const STOP_TIME: Duration = Duration::from_secs(30);
/// What a run may take beyond its stages: to begin, to wait for late messages, to report.
const EXTRA_TIME: Duration = Duration::from_mins(3);
/// Longest time of all stages: the limit of the configuration is a week.
const PLANNED_SECS_MAX: f64 = 1e7;

/// What a run may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    memory_bytes: u64,
    /// From the request to end to the end.
    stop_time: Duration,
}

/// What a run has taken.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Taken {
    pub(super) memory_bytes: u64,
    /// All stages, which changes of the run extend.
    pub(super) planned_secs: f64,
    pub(super) since_begun: Duration,
    pub(super) since_said: Duration,
    pub(super) since_stopped: Option<Duration>,
}

impl Bounds {
    /// Those of a run with such a drain.
    pub(super) fn new(memory_bytes: u64, drain: Duration) -> Self {
        Self {
            memory_bytes,
            stop_time: STOP_TIME + drain,
        }
    }

    /// What a run takes beyond what it may.
    pub(super) fn excess(&self, taken: Taken) -> Option<Killed> {
        let (bytes, limit) = (taken.memory_bytes, self.memory_bytes);
        if bytes > limit {
            return Some(Killed::Memory { bytes, limit });
        }
        if taken
            .since_stopped
            .is_some_and(|time| time > self.stop_time)
        {
            return Some(Killed::DidNotStop);
        }
        if taken.since_said > SILENCE_MAX {
            return Some(Killed::Silent {
                seconds: SILENCE_MAX.as_secs(),
            });
        }
        let planned = Duration::from_secs_f64(taken.planned_secs.clamp(0.0, PLANNED_SECS_MAX));
        (taken.since_begun > planned + EXTRA_TIME).then_some(Killed::TooLong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_is_to_end_has_the_time_of_its_drain_and_of_its_report() {
        let drain = Duration::from_secs(90);
        let bounds = Bounds::new(1_000, drain);
        let stopped = |seconds| {
            bounds.excess(Taken {
                since_stopped: Some(Duration::from_secs(seconds)),
                ..Taken::default()
            })
        };
        assert_eq!(stopped(119), None);
        assert_eq!(stopped(121), Some(Killed::DidNotStop));
        let excess = |taken| bounds.excess(taken);
        assert_eq!(excess(Taken::default()), None);
        let large = Taken {
            memory_bytes: 1_001,
            ..Taken::default()
        };
        assert!(matches!(excess(large), Some(Killed::Memory { .. })));
        let silent = Taken {
            since_said: Duration::from_secs(61),
            ..Taken::default()
        };
        assert_eq!(excess(silent), Some(Killed::Silent { seconds: 60 }));
        let long = |seconds| Taken {
            planned_secs: 200.0,
            since_begun: Duration::from_secs(seconds),
            ..Taken::default()
        };
        assert_eq!(excess(long(380)), None);
        assert_eq!(excess(long(381)), Some(Killed::TooLong));
    }
}
