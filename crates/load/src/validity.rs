//! Whether the figures are the broker's: a run that the generator limited is INVALID.

use std::fmt;

use thrum_figures::{SECOND_NS, count, latency, percent, ratio};

/// Lag at p99 beyond which latencies are no longer the broker's: on a machine shared with the
/// broker the scheduler alone costs 2 to 7 ms at p99, so 10 ms means that the generator itself is
/// late.
pub const LAG_P99_NS_MAX: u64 = 10 * SECOND_NS / 1_000;

/// Time that messages may wait in the generator's sockets at p99, unless it is less than half of
/// their latency: beyond it the latencies show the generator.
pub const RECEIVE_LAG_P99_NS_MAX: u64 = 10 * SECOND_NS / 1_000;

/// Lag of the opened connections at p99, unless it is less than half of their latency: beyond it
/// the connect rate and its latencies are the generator's.
pub const OPEN_LAG_P99_NS_MAX: u64 = 10 * SECOND_NS / 1_000;

/// Connections whose lag has a 99th percentile: of fewer, one late opening would decide.
pub const OPENS_MIN: u64 = 100;

/// Largest share of the hold that a thread may be on a core: beyond it there is no room for a
/// burst, and messages wait in its sockets.
pub const BUSY_MAX: f64 = 0.9;

/// Share of the offered messages that must be sent, leaving out those the broker held back.
pub const SENT_MIN: f64 = 0.99;

/// The generator's observations of itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Health {
    /// From the intended to the actual send, 99th percentile.
    pub lag_p99_ns: u64,
    /// Upper bound of the time that messages waited in the generator's sockets, 99th percentile.
    pub receive_lag_p99_ns: u64,
    /// Response time, 99th percentile.
    pub response_p99_ns: u64,
    /// From the scheduled to the actual opening of connections, 99th percentile; 0 for fewer than
    /// [`OPENS_MIN`].
    pub open_lag_p99_ns: u64,
    /// From the scheduled opening of connections to CONNACK, 99th percentile.
    pub connect_p99_ns: u64,
    /// Messages due within the hold.
    pub offered: u64,
    /// Messages sent within the hold.
    pub sent: u64,
    /// Messages due within the hold that the broker held back to its end.
    pub held_back: u64,
    /// The load of each thread.
    pub threads: Vec<ThreadLoad>,
    /// Largest error of latencies between two machines; 0 if there are none.
    pub clock_error_ns: u64,
    /// Response time, median.
    pub response_p50_ns: u64,
}

/// The load of one thread during the hold, as shares of its length.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ThreadLoad {
    /// On a core.
    pub busy: f64,
    /// Ready to run, waiting for a core.
    pub waited: f64,
}

/// A limit of the generator that showed in the figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// Messages left too late.
    Lag {
        /// 99th percentile.
        p99_ns: u64,
    },
    /// Messages were read too late.
    ReceiveLag {
        /// 99th percentile.
        p99_ns: u64,
    },
    /// Connections were opened too late.
    OpenLag {
        /// 99th percentile.
        p99_ns: u64,
    },
    /// A thread had no rest.
    Busy {
        /// Share of the hold that the busiest thread was on a core.
        share: f64,
    },
    /// Messages were not sent.
    NotSent {
        /// Messages missing.
        missing: u64,
        /// Messages due.
        offered: u64,
    },
    /// Clocks of machines are too far apart for latencies between them.
    Clock {
        /// The largest error of a latency.
        error_ns: u64,
        /// Median of the response time.
        p50_ns: u64,
    },
}

impl Health {
    /// The limits that the generator hit; none makes the run VALID.
    pub fn limits(&self) -> Vec<Limit> {
        let mut limits = Vec::new();
        if self.lag_p99_ns > LAG_P99_NS_MAX {
            limits.push(Limit::Lag {
                p99_ns: self.lag_p99_ns,
            });
        }
        let p99_ns = self.receive_lag_p99_ns;
        if p99_ns > RECEIVE_LAG_P99_NS_MAX && p99_ns > self.response_p99_ns / 2 {
            limits.push(Limit::ReceiveLag { p99_ns });
        }
        let p99_ns = self.open_lag_p99_ns;
        if p99_ns > OPEN_LAG_P99_NS_MAX && p99_ns > self.connect_p99_ns / 2 {
            limits.push(Limit::OpenLag { p99_ns });
        }
        let share = self.busiest().busy;
        if share > BUSY_MAX {
            limits.push(Limit::Busy { share });
        }
        let missing = self.offered.saturating_sub(self.sent + self.held_back);
        if ratio(missing, self.offered) > 1.0 - SENT_MIN {
            limits.push(Limit::NotSent {
                missing,
                offered: self.offered,
            });
        }
        let (error_ns, p50_ns) = (self.clock_error_ns, self.response_p50_ns);
        if p50_ns > 0 && error_ns > p50_ns / 2 {
            limits.push(Limit::Clock { error_ns, p50_ns });
        }
        limits
    }

    /// The thread that was longest on a core.
    pub fn busiest(&self) -> ThreadLoad {
        let busier = |left: &ThreadLoad, right: &ThreadLoad| left.busy.total_cmp(&right.busy);
        self.threads
            .iter()
            .copied()
            .max_by(busier)
            .unwrap_or_default()
    }

    /// The longest wait of a thread for a core, as a share of the hold.
    pub fn waited_max(&self) -> f64 {
        self.threads
            .iter()
            .map(|thread| thread.waited)
            .fold(0.0, f64::max)
    }
}

impl Limit {
    /// The remedy.
    pub const fn advice(self) -> &'static str {
        match self {
            Self::ReceiveLag { .. } => {
                "use more --threads (and cores), or lower the rate: messages wait for the generator to read them"
            }
            Self::Lag { .. } => {
                "stop other work on this machine, lower --rate, or run the generator on cores of its own"
            }
            Self::OpenLag { .. } => {
                "lower --connect-rate, or use more --threads (and cores) or more machines: the generator does not open \
                 connections as fast"
            }
            Self::Busy { .. } => "use more --threads (and cores), or lower the rate",
            Self::NotSent { .. } => "lower --rate or use more --threads",
            Self::Clock { .. } => {
                "put the control broker nearer to the agents, or let publishers and subscribers share a machine"
            }
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Lag { p99_ns } => write!(
                formatter,
                "generator lag p99 {}, more than {}",
                latency(p99_ns),
                latency(LAG_P99_NS_MAX)
            ),
            Self::ReceiveLag { p99_ns } => write!(
                formatter,
                "generator receive lag p99 {}, more than {}",
                latency(p99_ns),
                latency(RECEIVE_LAG_P99_NS_MAX)
            ),
            Self::OpenLag { p99_ns } => write!(
                formatter,
                "the generator opened connections late: p99 {}, more than {}",
                latency(p99_ns),
                latency(OPEN_LAG_P99_NS_MAX)
            ),
            Self::Busy { share } => {
                write!(
                    formatter,
                    "a generator thread was busy {} of the time",
                    percent(share)
                )
            }
            Self::NotSent { missing, offered } => {
                write!(
                    formatter,
                    "{} of {} messages were not sent",
                    count(missing),
                    count(offered)
                )
            }
            Self::Clock { error_ns, p50_ns } => write!(
                formatter,
                "the clocks of the machines are known to {} only, more than half of the median latency {}",
                latency(error_ns),
                latency(p50_ns)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEALTHY: Health = Health {
        lag_p99_ns: 200_000,
        receive_lag_p99_ns: 0,
        response_p99_ns: 0,
        open_lag_p99_ns: 0,
        connect_p99_ns: 0,
        offered: 1_000,
        sent: 1_000,
        held_back: 0,
        threads: Vec::new(),
        clock_error_ns: 0,
        response_p50_ns: 0,
    };

    #[test]
    fn a_punctual_generator_makes_a_valid_run() {
        assert_eq!(HEALTHY.limits(), []);
        let at_the_edge = Health {
            lag_p99_ns: LAG_P99_NS_MAX,
            sent: 990,
            ..HEALTHY
        };
        assert_eq!(at_the_edge.limits(), []);
    }

    #[test]
    fn lag_beyond_the_limit_is_named() {
        let late = Health {
            lag_p99_ns: 12_000_000,
            ..HEALTHY
        };
        assert_eq!(late.limits(), [Limit::Lag { p99_ns: 12_000_000 }]);
        assert_eq!(
            late.limits()[0].to_string(),
            "generator lag p99 12ms, more than 10ms"
        );
    }

    #[test]
    fn reading_late_counts_where_it_is_much_of_the_latency() {
        let slow = |receive_lag_p99_ns, response_p99_ns| Health {
            receive_lag_p99_ns,
            response_p99_ns,
            ..HEALTHY
        };
        assert_eq!(slow(9_000_000, 10_000_000).limits(), []);
        assert_eq!(slow(15_000_000, 40_000_000).limits(), []);
        assert_eq!(
            slow(15_000_000, 20_000_000).limits(),
            [Limit::ReceiveLag { p99_ns: 15_000_000 }]
        );
    }

    #[test]
    fn opening_late_counts_where_it_is_much_of_the_connect_latency() {
        let slow = |open_lag_p99_ns, connect_p99_ns| Health {
            open_lag_p99_ns,
            connect_p99_ns,
            ..HEALTHY
        };
        assert_eq!(slow(9_000_000, 10_000_000).limits(), []);
        assert_eq!(slow(15_000_000, 40_000_000).limits(), []);
        let limits = slow(330_000_000, 340_000_000).limits();
        assert_eq!(
            limits,
            [Limit::OpenLag {
                p99_ns: 330_000_000
            }]
        );
        assert!(limits[0].advice().contains("--connect-rate"));
    }

    #[test]
    fn clocks_may_be_wrong_by_half_of_the_median_latency() {
        let apart = |clock_error_ns, response_p50_ns| Health {
            clock_error_ns,
            response_p50_ns,
            ..HEALTHY
        };
        assert_eq!(apart(0, 1_000).limits(), []);
        assert_eq!(apart(500_000, 1_000_000).limits(), []);
        let limits = apart(600_000, 1_000_000).limits();
        assert_eq!(
            limits,
            [Limit::Clock {
                error_ns: 600_000,
                p50_ns: 1_000_000
            }]
        );
        assert!(
            limits[0].to_string().contains("known to 600µs only"),
            "{}",
            limits[0]
        );
    }

    #[test]
    fn one_busy_thread_is_enough() {
        let load = |busy| ThreadLoad {
            busy,
            waited: busy / 10.0,
        };
        let busy = Health {
            threads: vec![load(0.2), load(0.95)],
            ..HEALTHY
        };
        assert_eq!(busy.limits(), [Limit::Busy { share: 0.95 }]);
        assert!((busy.waited_max() - 0.095).abs() < 1e-9);
    }

    #[test]
    fn messages_that_the_broker_held_back_are_not_the_generators_fault() {
        let held_back = Health {
            sent: 600,
            held_back: 400,
            ..HEALTHY
        };
        assert_eq!(held_back.limits(), []);
        let missing = Health {
            sent: 600,
            held_back: 300,
            ..HEALTHY
        };
        assert_eq!(
            missing.limits(),
            [Limit::NotSent {
                missing: 100,
                offered: 1_000
            }]
        );
    }
}
