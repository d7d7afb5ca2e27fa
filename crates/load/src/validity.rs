//! Whether the figures are the broker's: a run whose figures the generator may have made is
//! INVALID.

use std::collections::BTreeMap;
use std::fmt;

use thrum_figures::{SECOND_NS, count, fraction, latency, percent, ratio};
pub use thrum_report::result::BOUND_SHARE_IN_USE_MAX as BOUND_SHARE_MAX;
use thrum_report::result::{BOUND_NS_MIN, Distribution, FIGURES_IN_USE, Latencies};

use crate::floors::{Delay, Delays};

/// Largest share of the hold that a thread may be on a core: beyond it there is no room for a
/// burst, and messages wait in its sockets.
pub const BUSY_MAX: f64 = 0.9;

/// Largest share of any second that a thread of a closed loop may be on a core: beyond it the rate
/// of that second is the generator's. In an open loop the bounds of the latencies show the same.
pub const BUSY_SECOND_MAX: f64 = 0.97;

/// Share of the offered messages that must be sent, leaving out those the broker held back.
pub const SENT_MIN: f64 = 0.99;

/// Share of the machine's CPU that its host may keep: what a thread waits for then is in none of
/// the kernel's accounts.
pub const STOLEN_MAX: f64 = 0.02;

/// Longest that the coordinator may fail to look at broker and generator: it does so fifty times a
/// second, and reads the accounts of each second on time.
pub const COORDINATOR_LATE_NS_MAX: u64 = SECOND_NS / 10;

/// Largest part of the hold by which the time of its accounts may differ from it.
const BORDERS_SHARE_MAX: f64 = 0.02;

/// Distributions of the generator's own delays.
const OF_GENERATOR: [&str; 3] = ["generator_lag", "receive_lag", "open_lag"];

/// Figures of single seconds.
const MAXIMA: [&str; 2] = ["broker.cores.max", "broker.cpu.max"];

/// Figures of the whole hold.
const MEANS: [&str; 6] = [
    "broker.cores",
    "broker.cpu",
    "broker.cpu_per_message",
    "broker.messages_per_core",
    "machine.cpu_per_message",
    "generator.cpu_per_message",
];

/// The generator's observations of itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Health {
    /// The figures in use, with what of them may be the generator's.
    pub figures: Vec<Figure>,
    /// The delays of each thread, by its number.
    pub delays: BTreeMap<u32, Delays>,
    /// Messages due within the hold.
    pub offered: u64,
    /// Messages sent within the hold.
    pub sent: u64,
    /// Messages due within the hold that the broker held back to its end.
    pub held_back: u64,
    /// The load of each thread.
    pub threads: Vec<ThreadLoad>,
    /// Messages leave as soon as the broker allows.
    pub has_closed_loop: bool,
    /// Largest error of latencies between two machines; 0 if there are none.
    pub clock_error_ns: u64,
    /// Share of this machine's CPU that its host kept.
    pub stolen: f64,
    /// How late the coordinator was.
    pub coordinator: CoordinatorDelay,
}

/// How late the coordinator was in the hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoordinatorDelay {
    /// At most.
    pub late_ns_max: u64,
    /// When it read the accounts at the beginning and the end of the hold, together.
    pub borders_ns: u64,
}

impl CoordinatorDelay {
    /// It read something this late.
    pub fn note(&mut self, late_ns: u64) {
        self.late_ns_max = self.late_ns_max.max(late_ns);
    }
}

/// A figure in use.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Its name: `e2e.p99`.
    pub name: String,
    /// As it was measured.
    pub seen_ns: u64,
    /// What of it may be the generator's, at most; none if that is not known.
    pub bound_ns: Option<u64>,
}

/// The load of one thread during the hold, as shares of its length.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ThreadLoad {
    /// On a core.
    pub busy: f64,
    /// On a core in its busiest second, as a share of that.
    pub busy_max: f64,
}

/// What made the generator late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A thread sent messages late.
    Sending(Culprit),
    /// A thread read its sockets late.
    Reading(Culprit),
    /// A thread opened connections late.
    Opening(Culprit),
    /// The clocks of machines are not known any better.
    Clock,
    /// Handing messages over to the kernel.
    System,
}

/// The thread that caused a delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Culprit {
    /// Its number among all.
    pub thread: u32,
    /// Its longest delay.
    pub late_ns: u64,
}

/// A limit of the generator that showed in the figures.
#[derive(Clone, Debug, PartialEq)]
pub enum Limit {
    /// Too much of a figure may be the generator's.
    Error {
        /// The figure.
        figure: Figure,
        /// The main reason.
        cause: Cause,
    },
    /// How much of a figure may be the generator's is not known.
    Unbounded {
        /// Its name.
        figure: String,
    },
    /// A thread had no rest.
    Busy {
        /// Share of the hold, or of a second, that the busiest thread was on a core.
        share: f64,
    },
    /// Messages were not sent.
    NotSent {
        /// Messages missing.
        missing: u64,
        /// Messages due.
        offered: u64,
    },
    /// The machine is a guest, and its host kept CPU from it.
    Stolen {
        /// Share of the CPU.
        share: f64,
    },
    /// The accounts of broker and generator were not read in time.
    Coordinator {
        /// How late.
        late_ns: u64,
    },
}

/// The figures that a run is used for: of its main latency those that the summary shows first, and
/// those that a threshold or a search judges.
pub fn figures_in_use(latencies: &Latencies, judged: &[&str]) -> Vec<Figure> {
    let main = latencies.main().into_iter();
    let mut names: Vec<String> = main
        .flat_map(|(main, _)| FIGURES_IN_USE.map(|figure| format!("{main}.{figure}")))
        .collect();
    for name in judged {
        if !names.iter().any(|known| known == name) {
            names.push((*name).to_owned());
        }
    }
    let found = names.into_iter().filter_map(|name| {
        let (distribution, figure) = name.split_once('.')?;
        Figure::of(latencies.find(distribution)?, figure, &name)
    });
    found.collect()
}

impl Figure {
    /// A figure with its bound; none if it is not known, or withheld for another reason.
    fn of(distribution: &Distribution, figure: &str, name: &str) -> Option<Self> {
        let seen_ns = distribution.quantiles.figure(figure)?;
        let is_known = figure != "count" && distribution.has_enough_values(figure);
        is_known.then(|| Self {
            name: name.to_owned(),
            seen_ns,
            bound_ns: distribution.bound_of(figure),
        })
    }

    /// Whether a bound is missing that it ought to have: the generator's own delays have none.
    fn is_unbounded(&self) -> bool {
        let is_of_generator = || {
            let distribution = self.name.split_once('.').map(|(of, _)| of);
            distribution.is_some_and(|of| OF_GENERATOR.contains(&of))
        };
        self.bound_ns.is_none() && !is_of_generator()
    }

    /// The part of it that may be the generator's, at most.
    fn bound_share(&self) -> f64 {
        ratio(self.bound_ns.unwrap_or(0), self.seen_ns)
    }

    fn is_spoiled(&self) -> bool {
        self.bound_ns.is_some_and(|bound_ns| {
            let allowed_ns = BOUND_SHARE_MAX * fraction(self.seen_ns);
            bound_ns > BOUND_NS_MIN && fraction(bound_ns) > allowed_ns
        })
    }

    /// Whether single late events make it, rather than many.
    fn is_tail(&self) -> bool {
        let figure = self.name.split_once('.').map(|(_, figure)| figure);
        figure.is_some_and(|figure| figure == "max" || figure.starts_with("p9"))
    }
}

impl Health {
    /// The limits that the generator hit; none makes the run VALID.
    pub fn limits(&self) -> Vec<Limit> {
        let mut limits = Vec::new();
        let spoiled = self.figures.iter().filter(|figure| figure.is_spoiled());
        // One of a kind is enough: that of which the largest part may be the generator's.
        let worst =
            spoiled.max_by(|left, right| left.bound_share().total_cmp(&right.bound_share()));
        if let Some(worst) = worst {
            limits.push(Limit::Error {
                figure: worst.clone(),
                cause: self.cause_of(worst),
            });
        }
        if let Some(figure) = self.figures.iter().find(|figure| figure.is_unbounded()) {
            let figure = figure.name.clone();
            limits.push(Limit::Unbounded { figure });
        }
        let busy = self.busiest();
        if busy.busy > BUSY_MAX {
            limits.push(Limit::Busy { share: busy.busy });
        } else if self.has_closed_loop && busy.busy_max > BUSY_SECOND_MAX {
            limits.push(Limit::Busy {
                share: busy.busy_max,
            });
        }
        let missing = self.offered.saturating_sub(self.sent + self.held_back);
        if ratio(missing, self.offered) > 1.0 - SENT_MIN {
            limits.push(Limit::NotSent {
                missing,
                offered: self.offered,
            });
        }
        if self.stolen > STOLEN_MAX {
            limits.push(Limit::Stolen { share: self.stolen });
        }
        let late_ns = self.coordinator.late_ns_max;
        if late_ns > COORDINATOR_LATE_NS_MAX {
            limits.push(Limit::Coordinator { late_ns });
        }
        limits
    }

    /// Figures of the processes that belong to another time than the hold, with the reason.
    pub fn withheld(&self, hold_ns: u64) -> BTreeMap<String, String> {
        let mut withheld = BTreeMap::new();
        let delay = self.coordinator;
        if delay.late_ns_max > COORDINATOR_LATE_NS_MAX {
            let why = format!(
                "the coordinator was up to {} late",
                latency(delay.late_ns_max)
            );
            withheld.extend(MAXIMA.map(|name| (name.to_owned(), why.clone())));
        }
        if ratio(delay.borders_ns, hold_ns) > BORDERS_SHARE_MAX {
            let why = format!(
                "the accounts of the hold were read {} late",
                latency(delay.borders_ns)
            );
            withheld.extend(MEANS.map(|name| (name.to_owned(), why.clone())));
        }
        withheld
    }

    /// The thread that was longest on a core, and the busiest second of any.
    pub fn busiest(&self) -> ThreadLoad {
        let most = |of: fn(&ThreadLoad) -> f64| self.threads.iter().map(of).fold(0.0, f64::max);
        ThreadLoad {
            busy: most(|thread| thread.busy),
            busy_max: most(|thread| thread.busy_max),
        }
    }

    fn cause_of(&self, figure: &Figure) -> Cause {
        if self.clock_error_ns > figure.bound_ns.unwrap_or(0) / 2 {
            return Cause::Clock;
        }
        let weight = |delay: &Delay| {
            if figure.is_tail() {
                delay.max_ns
            } else {
                delay.sum_ns
            }
        };
        let connects = ["connect.", "subscribe.", "reconnect."]
            .iter()
            .any(|kind| figure.name.starts_with(kind));
        let causes = self.delays.iter().flat_map(|(&thread, delays)| {
            let culprit = |delay: &Delay| Culprit {
                thread,
                late_ns: delay.max_ns,
            };
            let first = if connects {
                (
                    weight(&delays.opening),
                    Cause::Opening(culprit(&delays.opening)),
                )
            } else {
                (
                    weight(&delays.sending),
                    Cause::Sending(culprit(&delays.sending)),
                )
            };
            let reading = (
                weight(&delays.reading),
                Cause::Reading(culprit(&delays.reading)),
            );
            [first, reading]
        });
        let main = causes.max_by_key(|(weight, _)| *weight);
        main.filter(|(weight, _)| *weight > 0)
            .map_or(Cause::System, |(_, cause)| cause)
    }
}

impl Limit {
    /// The remedy.
    pub const fn advice(&self) -> &'static str {
        match self {
            Self::Error { cause, .. } => cause.advice(),
            Self::Unbounded { .. } => {
                "run it again; if it stays so, report it: the generator has lost times that it measures with each latency"
            }
            Self::Busy { .. } => "use more --threads (and cores), or lower the rate",
            Self::NotSent { .. } => "lower --rate or use more --threads",
            Self::Stolen { .. } => {
                "measure on a machine of its own, or when its host has less to do"
            }
            Self::Coordinator { .. } => {
                "stop other work on this machine, or leave thrum a core that nothing else uses"
            }
        }
    }
}

impl Cause {
    const fn advice(self) -> &'static str {
        match self {
            Self::Reading(_) => {
                "use more --threads (and cores), or lower the rate: messages wait for the generator to read them"
            }
            Self::Sending(_) => {
                "stop other work on this machine, lower --rate, or run the generator on cores of its own"
            }
            Self::Opening(_) => {
                "lower --connect-rate, or use more --threads (and cores) or more machines: the generator does not open \
                 connections as fast"
            }
            Self::Clock => {
                "put the control broker nearer to the agents, or let publishers and subscribers share a machine"
            }
            Self::System => "use more --threads (and cores), or lower the rate",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let late = |culprit: &Culprit, does: &str| {
            let (thread, late) = (culprit.thread, latency(culprit.late_ns));
            format!("its thread bench-{thread} {does} up to {late} late")
        };
        match self {
            Self::Sending(culprit) => formatter.write_str(&late(culprit, "sent messages")),
            Self::Reading(culprit) => formatter.write_str(&late(culprit, "read its sockets")),
            Self::Opening(culprit) => formatter.write_str(&late(culprit, "opened connections")),
            Self::Clock => {
                formatter.write_str("the clocks of the machines differ by an unknown part of it")
            }
            Self::System => formatter.write_str("it takes that long to write and to read"),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error { figure, cause } => {
                let (name, seen) = (&figure.name, latency(figure.seen_ns));
                let part = match latency(figure.bound_ns.unwrap_or(0).min(figure.seen_ns)) {
                    bound if bound == seen => "all".to_owned(),
                    bound => format!("up to {bound}"),
                };
                let text = format!("{part} of {name} {seen} may be the generator's: {cause}");
                formatter.write_str(&text)
            }
            Self::Unbounded { figure } => {
                let text = format!("how much of {figure} may be the generator's is not known");
                formatter.write_str(&text)
            }
            Self::Busy { share } => {
                let share = percent(*share);
                write!(formatter, "a generator thread was busy {share} of the time")
            }
            Self::NotSent { missing, offered } => {
                let (missing, offered) = (count(*missing), count(*offered));
                write!(formatter, "{missing} of {offered} messages were not sent")
            }
            Self::Stolen { share } => write!(
                formatter,
                "the host of this machine kept {} of its CPU",
                percent(*share)
            ),
            Self::Coordinator { late_ns } => write!(
                formatter,
                "the coordinator was up to {} late: CPU and memory of the broker belong to another time",
                latency(*late_ns)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn figure(name: &str, seen_ns: u64, bound_ns: u64) -> Figure {
        Figure {
            name: name.to_owned(),
            seen_ns,
            bound_ns: Some(bound_ns),
        }
    }

    fn delay(max_ns: u64, sum_ns: u64) -> Delay {
        Delay { max_ns, sum_ns }
    }

    /// Threads 0, which sends, and 1, which reads.
    fn health(figures: Vec<Figure>) -> Health {
        let sends = Delays {
            sending: delay(2 * MS, 40 * MS),
            ..Delays::default()
        };
        let reads = Delays {
            reading: delay(300 * MS, 10 * MS),
            ..Delays::default()
        };
        Health {
            figures,
            delays: BTreeMap::from([(0, sends), (1, reads)]),
            offered: 1_000,
            sent: 1_000,
            ..Health::default()
        }
    }

    #[track_caller]
    fn check(health: &Health, expected: &[&str]) {
        let found: Vec<String> = health.limits().iter().map(ToString::to_string).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_generator_that_adds_little_makes_a_valid_run() {
        check(&health(vec![]), &[]);
        check(&health(vec![figure("e2e.p99", 10 * MS, 2 * MS)]), &[]);
        // A short latency may be of the same length as the system calls around it.
        check(&health(vec![figure("e2e.p50", 300_000, 250_000)]), &[]);
        let at_the_edge = Health {
            sent: 990,
            stolen: STOLEN_MAX,
            coordinator: CoordinatorDelay {
                late_ns_max: COORDINATOR_LATE_NS_MAX,
                borders_ns: 0,
            },
            ..health(vec![])
        };
        check(&at_the_edge, &[]);
    }

    #[test]
    fn the_figure_that_is_most_the_generators_is_named_with_the_thread() {
        let tail = health(vec![
            figure("e2e.p50", 9 * MS, 2 * MS),
            figure("e2e.p99", 230 * MS, 221 * MS),
            figure("e2e.p95", 100 * MS, 30 * MS),
        ]);
        let text = "up to 221ms of e2e.p99 230ms may be the generator's: \
                    its thread bench-1 read its sockets up to 300ms late";
        check(&tail, &[text]);
        assert!(tail.limits()[0].advice().contains("--threads"));
        // Many small delays make the middle.
        let middle = health(vec![figure("e2e.p50", 9 * MS, 2 * MS)]);
        let text = "up to 2ms of e2e.p50 9ms may be the generator's: \
                    its thread bench-0 sent messages up to 2ms late";
        check(&middle, &[text]);
    }

    #[test]
    fn a_figure_that_is_the_generators_as_a_whole_is_told_once() {
        let text = "all of e2e.p75 970µs may be the generator's: \
                    its thread bench-0 sent messages up to 2ms late";
        for bound_ns in [1_200_000, 969_900] {
            check(&health(vec![figure("e2e.p75", 970_000, bound_ns)]), &[text]);
        }
    }

    #[test]
    fn a_figure_whose_error_is_not_known_makes_the_run_invalid() {
        let unknown = |name: &str| Figure {
            bound_ns: None,
            ..figure(name, 9 * MS, 0)
        };
        let figures = vec![figure("e2e.p50", 9 * MS, 0), unknown("e2e.p99")];
        let text = "how much of e2e.p99 may be the generator's is not known";
        check(&health(figures), &[text]);
        // The generator's own delays are what bounds are made of.
        check(&health(vec![unknown("open_lag.p99")]), &[]);
    }

    #[test]
    fn connections_that_are_opened_late_are_the_cause_of_connect_latencies_alone() {
        let opens = Delays {
            opening: delay(330 * MS, 900 * MS),
            ..Delays::default()
        };
        let late = Health {
            delays: BTreeMap::from([(3, opens)]),
            ..health(vec![figure("connect.p99", 340 * MS, 331 * MS)])
        };
        let text = "up to 331ms of connect.p99 340ms may be the generator's: \
                    its thread bench-3 opened connections up to 330ms late";
        check(&late, &[text]);
        assert!(late.limits()[0].advice().contains("--connect-rate"));
        let messages = Health {
            figures: vec![figure("e2e.p99", 9 * MS, 3 * MS)],
            ..late
        };
        let text = "up to 3ms of e2e.p99 9ms may be the generator's: \
                    it takes that long to write and to read";
        check(&messages, &[text]);
    }

    #[test]
    fn clocks_that_are_not_known_well_are_the_cause_if_they_are_most_of_it() {
        let apart = Health {
            clock_error_ns: 600_000,
            ..health(vec![figure("e2e.p50", 2 * MS, 700_000)])
        };
        let text = "up to 700µs of e2e.p50 2ms may be the generator's: \
                    the clocks of the machines differ by an unknown part of it";
        check(&apart, &[text]);
    }

    #[test]
    fn one_busy_thread_is_enough_and_one_busy_second_in_a_closed_loop() {
        let load = |busy, busy_max| ThreadLoad { busy, busy_max };
        let busy = Health {
            threads: vec![load(0.2, 0.3), load(0.95, 1.0)],
            ..health(vec![])
        };
        check(&busy, &["a generator thread was busy 95 % of the time"]);
        let second = Health {
            threads: vec![load(0.2, 0.3), load(0.5, 0.98)],
            ..health(vec![])
        };
        check(&second, &[]);
        let closed = Health {
            has_closed_loop: true,
            ..second
        };
        check(&closed, &["a generator thread was busy 98 % of the time"]);
    }

    #[test]
    fn messages_that_the_broker_held_back_are_not_the_generators_fault() {
        let held_back = Health {
            sent: 600,
            held_back: 400,
            ..health(vec![])
        };
        check(&held_back, &[]);
        let missing = Health {
            held_back: 300,
            ..held_back
        };
        check(&missing, &["100 of 1 000 messages were not sent"]);
    }

    #[test]
    fn a_host_that_keeps_cpu_and_a_late_coordinator_are_named() {
        let disturbed = Health {
            stolen: 0.11,
            coordinator: CoordinatorDelay {
                late_ns_max: 300 * MS,
                borders_ns: 0,
            },
            ..health(vec![])
        };
        check(
            &disturbed,
            &[
                "the host of this machine kept 11 % of its CPU",
                "the coordinator was up to 300ms late: CPU and memory of the broker belong to another time",
            ],
        );
    }

    #[test]
    fn figures_of_the_wrong_time_are_withheld() {
        let late = |late_ns_max, borders_ns| {
            let coordinator = CoordinatorDelay {
                late_ns_max,
                borders_ns,
            };
            let health = Health {
                coordinator,
                ..Health::default()
            };
            health.withheld(4_000 * MS).into_keys().collect::<Vec<_>>()
        };
        assert_eq!(late(90 * MS, 80 * MS), Vec::<String>::new());
        assert_eq!(late(101 * MS, 0), ["broker.cores.max", "broker.cpu.max"]);
        let of_the_hold = late(90 * MS, 81 * MS);
        assert!(of_the_hold.contains(&"broker.cpu_per_message".to_owned()));
        assert!(!of_the_hold.contains(&"broker.cpu.max".to_owned()));
    }

    #[test]
    fn figures_in_use_are_those_of_the_main_latency_and_of_the_thresholds() {
        let distribution = |count: u64| {
            let histogram = {
                let mut histogram = crate::histogram::histogram();
                crate::histogram::enter_many(&mut histogram, MS, count);
                histogram
            };
            let bound = thrum_report::result::Quantiles::from_histogram(&histogram);
            Some(Distribution::from_histogram(&histogram).with_bound(Some(bound)))
        };
        let latencies = Latencies {
            e2e: distribution(1_000),
            connect: distribution(20),
            service: distribution(1_000).map(|service| Distribution {
                bound: None,
                ..service
            }),
            ..Latencies::default()
        };
        let judged = [
            "e2e.p99",
            "e2e.p99.9",
            "connect.max",
            "broker.cores",
            "service.p50",
        ];
        let figures = figures_in_use(&latencies, &judged);
        let unbounded = figures.iter().find(|figure| figure.bound_ns.is_none());
        assert_eq!(unbounded.map(|figure| &*figure.name), Some("service.p50"));
        let names: Vec<&str> = figures.iter().map(|figure| &*figure.name).collect();
        // 1,000 values have no p99.9.
        let expected = [
            "e2e.mean",
            "e2e.p50",
            "e2e.p75",
            "e2e.p90",
            "e2e.p95",
            "e2e.p99",
            "connect.max",
            "service.p50",
        ];
        assert_eq!(names, expected);
    }
}
