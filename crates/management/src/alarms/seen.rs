//! What the rules look at: figures of one moment, and what has changed since the moment before.

use std::collections::BTreeMap;
use std::time::Duration;

use thrum_broker::config::AlarmsConfig;
use thrum_broker::{Figures, ListenerState, PublishRefusal, SinkFigures};

use super::Outside;
use super::affected::Affected;
use crate::clock::Now;

/// Full queues are counted at this interval: every session is visited for it.
const QUEUE_INTERVAL: Duration = Duration::from_mins(1);
/// The clock may go faster or slower than time by this between two looks.
const STEP_MIN: Duration = Duration::from_secs(2);
/// A sink that has written nothing for this time, although something waits, does not deliver.
pub(super) const SINK_TIME: Duration = Duration::from_secs(30);
/// The beginning of the names of counters of dropped messages.
const DROPPED: &str = "publish/messages/dropped/";
/// The beginning of the names of counters of messages that were refused to their publishers.
const REFUSED: &str = "publish/messages/refused/";

/// A part of a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) used: u64,
    pub(super) limit: u64,
}

impl Share {
    /// In per cent; 0 without a limit.
    pub(super) const fn percent(self) -> u64 {
        match self.used.saturating_mul(100).checked_div(self.limit) {
            Some(percent) => percent,
            None => 0,
        }
    }
}

/// Dropped or refused messages of one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReasonSeen {
    pub(super) reason: String,
    pub(super) count: u64,
}

/// A listener that has a limit of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ListenerSeen {
    pub(super) name: String,
    pub(super) connections: Share,
}

/// A certificate of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CertificateSeen {
    pub(super) listener: String,
    pub(super) file: String,
    /// Seconds of the Unix epoch.
    pub(super) since: u64,
    pub(super) until: u64,
    pub(super) until_date: String,
}

/// A sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SinkSeen {
    pub(super) name: String,
    pub(super) waiting: u64,
    /// Time since it wrote something, or had nothing to write.
    pub(super) stuck: Duration,
    pub(super) failures: u64,
}

/// What is read in one look.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) figures: Figures,
    pub(super) listeners: Vec<ListenerState>,
    /// None if they were not counted this time.
    pub(super) full_queues: Option<Affected>,
}

/// What is seen in one look.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// Seconds of the Unix epoch.
    pub(super) wall_secs: u64,
    /// Time since the look before; zero in the first one.
    pub(super) span: Duration,
    /// How far the clock of the machine has jumped since then.
    pub(super) stepped: Option<Duration>,
    pub(super) memory: Share,
    /// CPU time since the look before, of that of all cores.
    pub(super) cpu: Share,
    pub(super) connections: Share,
    pub(super) listeners: Vec<ListenerSeen>,
    pub(super) open_files: Share,
    pub(super) disk: Share,
    pub(super) disk_free: Option<u64>,
    /// `healthy`, `full` or `failing`; none without storage.
    pub(super) health: Option<&'static str>,
    pub(super) overloaded: Vec<usize>,
    pub(super) drops: Vec<ReasonSeen>,
    /// Messages that were refused to their publishers for want of room.
    pub(super) refusals: Vec<ReasonSeen>,
    /// None if they were not counted this time.
    pub(super) full_queues: Option<Affected>,
    pub(super) sinks: Vec<SinkSeen>,
    pub(super) certificates: Vec<CertificateSeen>,
    pub(super) reload_failure: Option<String>,
    pub(super) audit_failure: Option<String>,
}

/// Remembers what the next look is compared with.
#[derive(Debug, Default)]
pub(super) struct Observer {
    before: Option<Before>,
    queues_counted: Option<Duration>,
    sinks: BTreeMap<String, SinkBefore>,
}

#[derive(Debug)]
struct Before {
    now: Now,
    cpu_millis: u64,
    drops: BTreeMap<String, u64>,
    refusals: BTreeMap<String, u64>,
}

#[derive(Debug)]
struct SinkBefore {
    written: u64,
    failures: u64,
    /// When it last wrote something, or had nothing to write.
    moved: Duration,
}

impl Observer {
    /// Whether it is time to count full queues; then it is done for now.
    pub(super) fn counts_queues(&mut self, now: Now, thresholds: &AlarmsConfig) -> bool {
        let is_due = self
            .queues_counted
            .is_none_or(|at| now.uptime.saturating_sub(at) >= QUEUE_INTERVAL);
        let counts = thresholds.queues > 0 && is_due;
        if counts {
            self.queues_counted = Some(now.uptime);
        }
        counts
    }

    pub(super) fn see(&mut self, now: Now, read: &Read, outside: &Outside<'_>) -> Seen {
        let figures = &read.figures;
        let cpu_millis = figures.process.cpu_millis.unwrap_or(0);
        let drops = counts_below(figures, DROPPED);
        let refusals = for_want_of_room(counts_below(figures, REFUSED));
        let mut seen = at_one_moment(figures, &read.listeners, outside);
        seen.wall_secs = now.wall_millis / 1000;
        seen.full_queues.clone_from(&read.full_queues);
        seen.sinks = figures
            .sinks
            .iter()
            .map(|sink| self.see_sink(now, sink))
            .collect();
        let names = figures.sinks.iter().map(|sink| &sink.name);
        let names: Vec<&String> = names.collect();
        self.sinks.retain(|name, _| names.contains(&name));
        if let Some(before) = &self.before {
            seen.span = now.uptime.saturating_sub(before.now.uptime);
            seen.stepped = stepped(before.now, now);
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            let span = u64::try_from(seen.span.as_millis()).unwrap_or(u64::MAX);
            seen.cpu = Share {
                used: cpu_millis.saturating_sub(before.cpu_millis),
                limit: span.saturating_mul(cores as u64),
            };
            seen.drops = more_of(&before.drops, &drops);
            seen.refusals = more_of(&before.refusals, &refusals);
        }
        self.before = Some(Before {
            now,
            cpu_millis,
            drops,
            refusals,
        });
        seen
    }

    fn see_sink(&mut self, now: Now, sink: &SinkFigures) -> SinkSeen {
        let counts = &sink.counts;
        let before = self.sinks.entry(sink.name.clone()).or_insert(SinkBefore {
            written: counts.written,
            failures: counts.failures,
            moved: now.uptime,
        });
        if counts.written > before.written || counts.waiting == 0 {
            before.moved = now.uptime;
            before.failures = counts.failures;
        }
        before.written = counts.written;
        SinkSeen {
            name: sink.name.clone(),
            waiting: counts.waiting,
            stuck: now.uptime.saturating_sub(before.moved),
            failures: counts.failures.saturating_sub(before.failures),
        }
    }
}

fn at_one_moment(figures: &Figures, listeners: &[ListenerState], outside: &Outside<'_>) -> Seen {
    let process = &figures.process;
    let clients = figures.workers.iter().map(|worker| worker.clients);
    let workers = figures.workers.iter().enumerate();
    let is_overloaded =
        |worker: &thrum_broker::WorkerFigures| worker.defers_connections || worker.slows_publishers;
    let storage = figures.storage.as_ref();
    let usage = |name: &str| {
        let counters = storage.into_iter().flat_map(|storage| &storage.counters);
        let mut counters = counters.filter(|(known, _)| *known == name);
        counters.next().map_or(0, |(_, count)| *count)
    };
    Seen {
        memory: Share {
            used: process.resident_bytes.unwrap_or(0),
            limit: figures.node.memory_limit_bytes.unwrap_or(0),
        },
        connections: Share {
            used: clients.sum(),
            limit: outside.connections_max,
        },
        listeners: listeners.iter().filter_map(limited).collect(),
        open_files: Share {
            used: process.open_files.unwrap_or(0),
            limit: process.open_files_max.unwrap_or(0),
        },
        disk: Share {
            used: usage("storage/bytes/needed"),
            limit: usage("storage/bytes/maximum"),
        },
        disk_free: outside.disk_free,
        health: storage.map(|storage| storage.health),
        overloaded: workers
            .filter(|(_, worker)| is_overloaded(worker))
            .map(|(number, _)| number)
            .collect(),
        certificates: listeners.iter().flat_map(certificates).collect(),
        reload_failure: outside.reload_failure.clone(),
        audit_failure: outside.audit_failure.clone(),
        ..Seen::default()
    }
}

fn limited(listener: &ListenerState) -> Option<ListenerSeen> {
    let limit = u64::from(listener.config.max_connections);
    (limit > 0).then(|| ListenerSeen {
        name: listener.name.clone(),
        connections: Share {
            used: listener.connections,
            limit,
        },
    })
}

fn certificates(listener: &ListenerState) -> impl Iterator<Item = CertificateSeen> {
    listener.certificates.iter().map(|one| CertificateSeen {
        listener: listener.name.clone(),
        file: one.file.display().to_string(),
        since: one.validity.since,
        until: one.validity.until,
        until_date: one.validity.until_date.clone(),
    })
}

/// The counters below a name, by the rest of their names.
pub(super) fn counts_below(figures: &Figures, prefix: &str) -> BTreeMap<String, u64> {
    let counters = figures.counters.iter();
    counters
        .filter_map(|(name, count)| Some((name.strip_prefix(prefix)?.to_owned(), *count)))
        .collect()
}

/// Refused messages without those whose cause is their publisher: a device that may not publish and
/// tries again for ever is no trouble of the broker.
fn for_want_of_room(mut refusals: BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    for reason in PublishRefusal::ALL {
        if reason.is_of_publisher() {
            refusals.remove(reason.name());
        }
    }
    refusals
}

/// The most frequent reasons first.
fn more_of(before: &BTreeMap<String, u64>, now: &BTreeMap<String, u64>) -> Vec<ReasonSeen> {
    let more = now.iter().filter_map(|(reason, count)| {
        let count = count.saturating_sub(before.get(reason).copied().unwrap_or(0));
        (count > 0).then(|| ReasonSeen {
            reason: reason.clone(),
            count,
        })
    });
    let mut more: Vec<ReasonSeen> = more.collect();
    more.sort_by_key(|drops| std::cmp::Reverse(drops.count));
    more
}

/// How far the clock has jumped; none if it has gone with time.
fn stepped(before: Now, now: Now) -> Option<Duration> {
    let passed = now.uptime.saturating_sub(before.uptime);
    let expected = u128::from(before.wall_millis) + passed.as_millis();
    let difference = expected.abs_diff(u128::from(now.wall_millis));
    let difference = Duration::from_millis(u64::try_from(difference).unwrap_or(u64::MAX));
    (difference >= STEP_MIN).then_some(difference)
}

#[cfg(test)]
mod tests {
    use thrum_broker::SinkCounts;

    use super::*;

    const fn at(wall_millis: u64, uptime_secs: u64) -> Now {
        Now {
            wall_millis,
            uptime: Duration::from_secs(uptime_secs),
        }
    }

    #[test]
    fn only_a_jump_of_the_clock_is_a_step() {
        let before = at(1_000_000, 10);
        for (wall, expected) in [
            (1_010_000, None),
            (1_011_900, None),
            (1_012_000, Some(2)),
            (1_000_000, Some(10)),
            (900_000, Some(110)),
        ] {
            let found = stepped(before, at(wall, 20));
            assert_eq!(found, expected.map(Duration::from_secs), "{wall}");
        }
    }

    #[test]
    fn drops_are_those_since_the_look_before_by_reason() {
        let counts = |list: &[(&str, u64)]| {
            let list = list.iter();
            list.map(|(reason, count)| ((*reason).to_owned(), *count))
                .collect::<BTreeMap<_, _>>()
        };
        let before = counts(&[("queue_full", 5), ("expired", 7)]);
        let now = counts(&[("queue_full", 6), ("expired", 7), ("too_large", 9)]);
        let more = more_of(&before, &now);
        let more: Vec<_> = more.iter().map(|one| (&*one.reason, one.count)).collect();
        assert_eq!(more, [("too_large", 9), ("queue_full", 1)]);
    }

    #[test]
    fn messages_that_are_refused_by_the_fault_of_their_publishers_are_not_seen() {
        let all = PublishRefusal::ALL.map(|reason| (reason.name().to_owned(), 1));
        let seen = for_want_of_room(BTreeMap::from(all));
        let reasons: Vec<&str> = seen.keys().map(String::as_str).collect();
        let expected = [
            "disk_full",
            "memory_short",
            "queues_full",
            "retained_limit",
            "sink_full",
        ];
        assert_eq!(reasons, expected);
    }

    #[test]
    fn a_sink_is_stuck_while_messages_wait_and_none_is_written() {
        let mut observer = Observer::default();
        let mut look = |secs, written, waiting| {
            let sink = SinkFigures {
                name: "log".to_owned(),
                counts: SinkCounts {
                    written,
                    waiting,
                    ..SinkCounts::default()
                },
            };
            observer.see_sink(at(0, secs), &sink).stuck.as_secs()
        };
        assert_eq!(look(0, 5, 1), 0);
        assert_eq!(look(10, 5, 3), 10);
        assert_eq!(look(20, 6, 3), 0);
        assert_eq!(look(50, 6, 0), 0);
        assert_eq!(look(60, 6, 1), 10);
    }

    #[test]
    fn queues_are_counted_once_a_minute() {
        let mut observer = Observer::default();
        let thresholds = AlarmsConfig::default();
        let mut counts = |secs| observer.counts_queues(at(0, secs), &thresholds);
        assert!(counts(0) && !counts(10) && !counts(59) && counts(60) && !counts(61));
        let off = AlarmsConfig {
            queues: 0,
            ..thresholds
        };
        assert!(!Observer::default().counts_queues(at(0, 0), &off));
    }
}
