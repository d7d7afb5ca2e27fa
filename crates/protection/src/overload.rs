//! Deferral of new work so that existing work does not suffer: from the measurements of a worker to
//! the deferred work.
//!
//! | cause | begins | ends | deferred |
//! |---|---|---|---|
//! | `Lag` | `turns` in a row of `turn` or longer | none of half of it for `calm` | connections |
//! | `LongLag` | the same with `publish_turn` | the same | publishers |
//! | `Handshakes` | `handshakes` of them are open | three quarters are | connections |

use std::time::Duration;

use thrum_protocol::Time;

/// The cause of a deferral.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverloadCause {
    /// Turns of the event loop take long.
    Lag,
    /// Turns take so long that publishers are read less.
    LongLag,
    /// Too many handshakes are unfinished.
    Handshakes,
}

impl OverloadCause {
    const ALL: [Self; 3] = [Self::Lag, Self::LongLag, Self::Handshakes];
}

/// The limits in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverloadLimits {
    /// New connections wait after turns of this length. 0 is off.
    pub turn: Duration,
    /// Publishers are read less after turns of this length. 0 is off.
    pub publish_turn: Duration,
    /// Number of such turns in a row with which the overload begins.
    pub turns: u32,
    /// The overload ends after this time without a turn of half the limit or longer.
    pub calm: Duration,
    /// Limit of unfinished handshakes of one worker; 0 means no limit.
    pub handshakes: u32,
}

/// The measurements of a worker at the end of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Duration of the turn without the wait for events.
    pub turn: Duration,
    /// Number of unfinished handshakes.
    pub handshakes: u32,
}

/// The state of one worker.
#[derive(Clone, Copy, Debug, Default)]
pub struct Overload {
    lag: Lag,
    long_lag: Lag,
    /// None if there are few.
    many_handshakes_since: Option<Time>,
}

impl Overload {
    /// Takes the measurements of a turn, and calls `changed` with each cause that begins (true) or
    /// ends (false). A worker calls it after each turn; it costs some comparisons.
    pub fn observe(
        &mut self,
        measured: &Measured,
        limits: &OverloadLimits,
        now: Time,
        mut changed: impl FnMut(OverloadCause, bool),
    ) {
        let before = *self;
        self.lag.observe(limits.turn, limits, measured.turn, now);
        self.long_lag
            .observe(limits.publish_turn, limits, measured.turn, now);
        self.observe_handshakes(measured.handshakes, limits.handshakes, now);
        for cause in OverloadCause::ALL {
            if self.has(cause) != before.has(cause) {
                changed(cause, self.has(cause));
            }
        }
    }

    /// Whether this cause holds now.
    pub fn has(&self, cause: OverloadCause) -> bool {
        match cause {
            OverloadCause::Lag => self.lag.is_on,
            OverloadCause::LongLag => self.long_lag.is_on,
            OverloadCause::Handshakes => self.many_handshakes_since.is_some(),
        }
    }

    /// Whether a worker leaves new connections in the backlog. No event wakes the worker when this
    /// ends: it checks again after a time.
    pub fn defers_connections(&self) -> bool {
        self.has(OverloadCause::Lag) || self.has(OverloadCause::Handshakes)
    }

    /// Whether a worker reads publishers less.
    pub fn slows_publishers(&self) -> bool {
        self.has(OverloadCause::LongLag)
    }

    /// The time from which on too many handshakes are unfinished, without a break until now.
    pub const fn many_handshakes_since(&self) -> Option<Time> {
        self.many_handshakes_since
    }

    fn observe_handshakes(&mut self, open: u32, handshakes_max: u32, now: Time) {
        // At three quarters, so that the state does not change with each handshake.
        let bound = if self.many_handshakes_since.is_some() {
            (handshakes_max / 4 * 3).max(1)
        } else {
            handshakes_max
        };
        let are_many = handshakes_max > 0 && open >= bound;
        self.many_handshakes_since = are_many.then(|| self.many_handshakes_since.unwrap_or(now));
    }
}

/// Late turns.
#[derive(Clone, Copy, Debug, Default)]
struct Lag {
    in_a_row: u32,
    is_on: bool,
    /// The last turn of half the limit or longer.
    last_long: Time,
}

impl Lag {
    fn observe(&mut self, limit: Duration, limits: &OverloadLimits, turn: Duration, now: Time) {
        if limit.is_zero() {
            *self = Self::default();
            return;
        }
        if turn >= limit {
            self.in_a_row = self.in_a_row.saturating_add(1);
            self.is_on |= self.in_a_row >= limits.turns.max(1);
        } else {
            self.in_a_row = 0;
        }
        if self.is_on {
            if turn >= limit / 2 {
                self.last_long = now;
            }
            self.is_on = now.since(self.last_long) < limits.calm || turn >= limit;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: OverloadLimits = OverloadLimits {
        turn: Duration::from_millis(200),
        publish_turn: Duration::from_secs(1),
        turns: 3,
        calm: Duration::from_secs(5),
        handshakes: 100,
    };
    const CALM: Measured = Measured {
        turn: Duration::ZERO,
        handshakes: 0,
    };

    /// A worker, its time, and the changes that it reported.
    #[derive(Default)]
    struct Bench {
        overload: Overload,
        now: u64,
        told: Vec<(OverloadCause, bool)>,
    }

    impl Bench {
        fn observe(&mut self, measured: Measured) -> &mut Self {
            self.now += u64::try_from(measured.turn.as_millis()).unwrap();
            let (told, now) = (&mut self.told, Time::from_millis(self.now));
            let changed = |cause, begins| told.push((cause, begins));
            self.overload.observe(&measured, &LIMITS, now, changed);
            self
        }

        fn turns(&mut self, count: usize, millis: u64) -> &mut Self {
            for _ in 0..count {
                self.observe(Measured {
                    turn: Duration::from_millis(millis),
                    ..CALM
                });
            }
            self
        }

        fn sleep(&mut self, millis: u64) -> &mut Self {
            self.now += millis;
            self
        }
    }

    #[test]
    fn late_turns_in_a_row_defer_connections_but_single_ones_do_not() {
        let mut bench = Bench::default();
        for _ in 0..100 {
            bench.turns(2, 500).turns(1, 10);
        }
        assert_eq!(bench.told, []);
        bench.turns(3, 200);
        assert_eq!(bench.told, [(OverloadCause::Lag, true)]);
        assert!(bench.overload.defers_connections() && !bench.overload.slows_publishers());
    }

    #[test]
    fn lag_ends_when_turns_were_short_for_a_while() {
        let mut bench = Bench::default();
        bench
            .turns(3, 200)
            .sleep(4000)
            .turns(1, 100)
            .sleep(4900)
            .turns(1, 99);
        assert!(bench.overload.defers_connections());
        bench.sleep(1).turns(1, 0);
        assert_eq!(
            bench.told,
            [(OverloadCause::Lag, true), (OverloadCause::Lag, false)]
        );
        assert!(!bench.overload.defers_connections());
    }

    #[test]
    fn publishers_are_slowed_by_longer_turns_than_connections() {
        let mut bench = Bench::default();
        bench.turns(3, 1000);
        assert_eq!(
            bench.told,
            [(OverloadCause::Lag, true), (OverloadCause::LongLag, true)]
        );
        assert!(bench.overload.slows_publishers());
        // Half a second is short for the first and long for the second.
        bench.turns(11, 499);
        assert!(!bench.overload.slows_publishers() && bench.overload.defers_connections());
    }

    #[test]
    fn handshakes_are_taken_again_when_a_quarter_of_them_is_done() {
        let mut bench = Bench::default();
        let open = |handshakes| Measured { handshakes, ..CALM };
        bench.observe(open(99));
        assert!(!bench.overload.defers_connections());
        bench.sleep(7).observe(open(100));
        let since = bench.overload.many_handshakes_since();
        assert_eq!(since, Some(Time::from_millis(bench.now)));
        bench.sleep(50).observe(open(75));
        assert!(bench.overload.defers_connections());
        assert_eq!(bench.overload.many_handshakes_since(), since);
        bench.observe(open(74));
        assert_eq!(bench.overload.many_handshakes_since(), None);
        assert_eq!(
            bench.told,
            [
                (OverloadCause::Handshakes, true),
                (OverloadCause::Handshakes, false)
            ]
        );
    }

    #[test]
    fn a_limit_of_zero_is_off() {
        let mut overload = Overload::default();
        let off = OverloadLimits {
            turn: Duration::ZERO,
            publish_turn: Duration::ZERO,
            handshakes: 0,
            ..LIMITS
        };
        let measured = Measured {
            turn: Duration::from_hours(1),
            handshakes: 1_000_000,
        };
        for _ in 0..10 {
            overload.observe(&measured, &off, Time::default(), |cause, _| {
                panic!("{cause:?}")
            });
        }
    }
}
