//! When new work waits so that old work does not suffer: from what a worker measures to what it
//! puts off.
//!
//! | cause | begins | ends | what waits |
//! |---|---|---|---|
//! | [`Cause::Lag`] | `turns` turns in a row of `turn` or longer | no turn of half of it for `calm` | new connections |
//! | [`Cause::LongLag`] | the same with `publish_turn` | the same | publishers |
//! | [`Cause::Handshakes`] | `limits.handshakes` of them are open | three quarters are | new connections |

use std::time::Duration;

use thrum_protocol::Time;

use crate::config::{LimitsConfig, OverloadConfig};

/// Causes there are.
const CAUSES: usize = 3;

/// Why something waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Cause {
    /// Turns of the event loop take long.
    Lag,
    /// They take so long that publishers are read less.
    LongLag,
    /// Too many handshakes are unfinished.
    Handshakes,
}

/// The limits in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverloadLimits {
    /// `protection.overload`.
    pub lag: OverloadConfig,
    /// `limits.handshakes`.
    pub handshakes: u32,
}

impl OverloadLimits {
    /// From the configuration.
    pub fn new(overload: &OverloadConfig, limits: &LimitsConfig) -> Self {
        Self {
            lag: *overload,
            handshakes: limits.handshakes,
        }
    }
}

/// What a worker found at the end of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// How long the turn took, the wait for events not counted.
    pub turn: Duration,
    /// Unfinished handshakes.
    pub handshakes: u32,
}

/// The state of one worker.
#[derive(Clone, Copy, Debug, Default)]
pub struct Overload {
    lag: Lag,
    long_lag: Lag,
    is_on: [bool; CAUSES],
}

impl Overload {
    /// Takes in what a turn found; `changed` is told each cause that begins (true) or ends (false).
    /// To be called after each turn: it costs some comparisons.
    pub fn observe(
        &mut self,
        measured: &Measured,
        limits: &OverloadLimits,
        now: Time,
        mut changed: impl FnMut(Cause, bool),
    ) {
        let OverloadLimits { lag, handshakes } = limits;
        let full = self.has(Cause::Handshakes);
        // Three quarters, so that it does not come and go with each of them.
        let bound = if full {
            (handshakes / 4 * 3).max(1)
        } else {
            *handshakes
        };
        let found = [
            self.lag.observe(lag.turn, lag, measured.turn, now),
            self.long_lag
                .observe(lag.publish_turn, lag, measured.turn, now),
            *handshakes > 0 && measured.handshakes >= bound,
        ];
        if found == self.is_on {
            return;
        }
        let before = std::mem::replace(&mut self.is_on, found);
        for cause in [Cause::Lag, Cause::LongLag, Cause::Handshakes] {
            let place = cause as usize;
            if before[place] != found[place] {
                changed(cause, found[place]);
            }
        }
    }

    /// Whether that is a reason now.
    pub fn has(&self, cause: Cause) -> bool {
        self.is_on[cause as usize]
    }

    /// Whether new connections are to be left in the backlog. Nobody wakes a worker when it is
    /// over: it has to look again after some time.
    pub fn defers_connections(&self) -> bool {
        self.has(Cause::Lag) || self.has(Cause::Handshakes)
    }

    /// Whether publishers are to be read less.
    pub fn slows_publishers(&self) -> bool {
        self.has(Cause::LongLag)
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
    fn observe(
        &mut self,
        limit: Duration,
        lag: &OverloadConfig,
        turn: Duration,
        now: Time,
    ) -> bool {
        if limit.is_zero() {
            *self = Self::default();
            return false;
        }
        if turn >= limit {
            self.in_a_row = self.in_a_row.saturating_add(1);
            self.is_on |= self.in_a_row >= lag.turns.max(1);
        } else {
            self.in_a_row = 0;
        }
        if self.is_on {
            if turn >= limit / 2 {
                self.last_long = now;
            }
            self.is_on = now.since(self.last_long) < lag.calm || turn >= limit;
        }
        self.is_on
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: OverloadLimits = OverloadLimits {
        lag: OverloadConfig {
            turn: Duration::from_millis(200),
            publish_turn: Duration::from_secs(1),
            turns: 3,
            calm: Duration::from_secs(5),
        },
        handshakes: 100,
    };
    const CALM: Measured = Measured {
        turn: Duration::ZERO,
        handshakes: 0,
    };

    /// A worker, its time, and what it was told.
    #[derive(Default)]
    struct Bench {
        overload: Overload,
        now: u64,
        told: Vec<(Cause, bool)>,
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
        assert_eq!(bench.told, [(Cause::Lag, true)]);
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
        assert_eq!(bench.told, [(Cause::Lag, true), (Cause::Lag, false)]);
        assert!(!bench.overload.defers_connections());
    }

    #[test]
    fn publishers_are_slowed_by_longer_turns_than_connections() {
        let mut bench = Bench::default();
        bench.turns(3, 1000);
        assert_eq!(bench.told, [(Cause::Lag, true), (Cause::LongLag, true)]);
        assert!(bench.overload.slows_publishers());
        // Half a second is short for the one and long for the other.
        bench.turns(11, 499);
        assert!(!bench.overload.slows_publishers() && bench.overload.defers_connections());
    }

    #[test]
    fn handshakes_are_taken_again_when_a_quarter_of_them_is_done() {
        let mut bench = Bench::default();
        let open = |handshakes| Measured { handshakes, ..CALM };
        bench.observe(open(99));
        assert!(!bench.overload.defers_connections());
        bench.observe(open(100)).observe(open(75));
        assert!(bench.overload.defers_connections());
        bench.observe(open(74));
        assert_eq!(
            bench.told,
            [(Cause::Handshakes, true), (Cause::Handshakes, false)]
        );
    }

    #[test]
    fn a_limit_of_zero_is_off() {
        let mut overload = Overload::default();
        let off = OverloadLimits {
            lag: OverloadConfig {
                turn: Duration::ZERO,
                publish_turn: Duration::ZERO,
                ..LIMITS.lag
            },
            handshakes: 0,
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
