//! The alarms that are raised, and those that were.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use serde_json::Value;

use super::name::{AlarmName, Severity};
use super::rules::{Level, Reading};
use crate::clock::Now;

/// Most alarms that are raised: more than a configuration has listeners, certificates and sinks.
const STANDING_MAX: usize = 256;
/// Most alarms that are remembered after they were cleared.
const PAST_MAX: usize = 1000;
/// Conditions that come and go are over when they have not held for this time.
const CALM_TIME: Duration = Duration::from_mins(1);
/// Full queues are counted each minute, unless the workers do not answer: after this time nobody
/// knows.
const UNCOUNTED_TIME: Duration = Duration::from_mins(5);
/// A step of the clock is over at once, and is shown for this time.
const STEP_TIME: Duration = Duration::from_mins(10);

/// An alarm that is raised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) name: AlarmName,
    /// What it is about; empty for the node.
    pub(crate) of: String,
    pub(crate) what: String,
    pub(crate) fix: String,
    /// The figures and names of the text as data.
    pub(crate) arguments: BTreeMap<&'static str, Value>,
    /// Lines for a shell that show more, or do it.
    pub(crate) commands: Vec<String>,
    /// The same as requests of the API.
    pub(crate) requests: Vec<&'static str>,
    /// Milliseconds of the Unix epoch.
    pub(crate) since: u64,
    /// When the condition held last.
    seen: Duration,
}

impl Standing {
    /// Whether its condition has not held for long enough.
    fn is_over(&self, reading: &Reading, now: Now) -> bool {
        let calm = now.uptime.saturating_sub(self.seen);
        reading.level == Level::Over && calm >= calm_time(self.name)
    }

    /// It stays raised.
    fn go_on(&mut self, reading: Reading, now: Now) {
        if reading.level != Level::Over {
            self.seen = now.uptime;
            (self.what, self.fix) = (reading.what, reading.fix);
            self.arguments = reading.arguments;
            (self.commands, self.requests) = (reading.commands, reading.requests);
        }
    }
}

/// An alarm that was cleared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Past {
    /// Later ones have higher numbers.
    pub(crate) number: u64,
    pub(crate) alarm: Standing,
    /// Milliseconds of the Unix epoch.
    pub(crate) until: u64,
}

/// What one look has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Changed {
    Raised(Standing),
    Cleared(Standing),
}

impl Changed {
    pub(super) fn log(&self) {
        match self {
            Self::Raised(alarm) => {
                let Standing {
                    name,
                    of,
                    what,
                    fix,
                    ..
                } = alarm;
                let alarm = name.name();
                if name.severity() == Severity::Critical {
                    tracing::error!(alarm, of, what, fix, "alarm raised");
                } else {
                    tracing::warn!(alarm, of, what, fix, "alarm raised");
                }
            }
            Self::Cleared(alarm) => {
                tracing::info!(alarm = alarm.name.name(), of = alarm.of, "alarm cleared");
            }
        }
    }
}

/// What an alarm is about.
type Subject = (AlarmName, String);

/// All alarms.
#[derive(Debug, Default)]
pub(crate) struct Board {
    standing: BTreeMap<Subject, Standing>,
    /// The oldest first.
    past: VecDeque<Past>,
    number: u64,
}

impl Board {
    /// Takes over what the rules say.
    pub(super) fn update(&mut self, now: Now, readings: Vec<Reading>) -> Vec<Changed> {
        let mut changes = Vec::new();
        let mut gone: Vec<Subject> = self.standing.keys().cloned().collect();
        for reading in readings {
            let subject = (reading.name, reading.of.clone());
            // Counted from time to time only: without a reading it is not gone.
            gone.retain(|other| *other != subject);
            let is_full = self.standing.len() >= STANDING_MAX;
            match self.standing.get_mut(&subject) {
                Some(alarm) if alarm.is_over(&reading, now) => {
                    changes.extend(self.clear(&subject, now));
                }
                Some(alarm) => alarm.go_on(reading, now),
                None if reading.level == Level::Holds && !is_full => {
                    let alarm = Standing {
                        name: reading.name,
                        of: reading.of,
                        what: reading.what,
                        fix: reading.fix,
                        arguments: reading.arguments,
                        commands: reading.commands,
                        requests: reading.requests,
                        since: now.wall_millis,
                        seen: now.uptime,
                    };
                    self.standing.insert(subject, alarm.clone());
                    changes.push(Changed::Raised(alarm));
                }
                None => {}
            }
        }
        for subject in gone {
            // Its listener or sink is no longer there.
            if !self.is_not_counted_now(&subject, now) {
                changes.extend(self.clear(&subject, now));
            }
        }
        changes
    }

    /// Whether its condition is counted from time to time only, and was not long ago.
    fn is_not_counted_now(&self, subject: &Subject, now: Now) -> bool {
        subject.0 == AlarmName::QueuesNearlyFull
            && self
                .standing
                .get(subject)
                .is_some_and(|alarm| now.uptime.saturating_sub(alarm.seen) < UNCOUNTED_TIME)
    }

    fn clear(&mut self, subject: &Subject, now: Now) -> Option<Changed> {
        let alarm = self.standing.remove(subject)?;
        self.number += 1;
        self.past.push_back(Past {
            number: self.number,
            alarm: alarm.clone(),
            until: now.wall_millis,
        });
        if self.past.len() > PAST_MAX {
            self.past.pop_front();
        }
        Some(Changed::Cleared(alarm))
    }

    /// The most severe first, then the newest.
    pub(crate) fn standing(&self) -> Vec<Standing> {
        let mut all: Vec<Standing> = self.standing.values().cloned().collect();
        all.sort_by_key(|alarm| (alarm.name.severity(), std::cmp::Reverse(alarm.since)));
        all
    }

    pub(crate) fn past(&self, before: Option<u64>, limit: usize) -> Vec<Past> {
        let newest = self.past.iter().rev();
        let older = newest.filter(|past| before.is_none_or(|before| past.number < before));
        older.take(limit).cloned().collect()
    }

    /// Every name with its number.
    pub(crate) fn counts(&self) -> Vec<(&'static str, u64)> {
        let count = |name: AlarmName| {
            let its = self.standing.keys().filter(|(other, _)| *other == name);
            (name.name(), its.count() as u64)
        };
        AlarmName::ALL.map(count).to_vec()
    }
}

/// How long a condition has to be over before its alarm is cleared.
const fn calm_time(name: AlarmName) -> Duration {
    match name {
        AlarmName::ClockStepped => STEP_TIME,
        AlarmName::CpuBusy
        | AlarmName::DropsGoingOn
        | AlarmName::Overload
        | AlarmName::RefusalsGoingOn => CALM_TIME,
        AlarmName::AuditLogFailing
        | AlarmName::CertificateExpired
        | AlarmName::CertificateExpiresSoon
        | AlarmName::ConnectionsNearLimit
        | AlarmName::DiskNearlyFull
        | AlarmName::MemoryNearLimit
        | AlarmName::OpenFilesNearLimit
        | AlarmName::QueuesNearlyFull
        | AlarmName::ReloadFailed
        | AlarmName::SinkNotDelivering
        | AlarmName::StorageFailing
        | AlarmName::StorageFull => Duration::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(name: AlarmName, of: &str, level: Level) -> Reading {
        Reading {
            name,
            of: of.to_owned(),
            level,
            what: format!("{level:?}"),
            fix: "fix".to_owned(),
            arguments: BTreeMap::new(),
            commands: Vec::new(),
            requests: Vec::new(),
        }
    }

    /// Looks at these times, in seconds; returns what changed at each.
    fn run(name: AlarmName, looks: &[(u64, Level)]) -> Vec<&'static str> {
        let mut board = Board::default();
        let mut said = Vec::new();
        for (secs, level) in looks {
            let now = Now::after(secs * 1000);
            let changes = board.update(now, vec![reading(name, "x", *level)]);
            said.push(match changes.as_slice() {
                [] => "",
                [Changed::Raised(_)] => "raised",
                [Changed::Cleared(_)] => "cleared",
                _ => "more",
            });
        }
        said
    }

    #[test]
    fn an_alarm_between_its_thresholds_stays_as_it_is() {
        use Level::{Between, Holds, Over};
        let looks = [
            (0, Between),
            (10, Holds),
            (20, Between),
            (30, Holds),
            (40, Over),
            (50, Between),
        ];
        let said = run(AlarmName::MemoryNearLimit, &looks);
        assert_eq!(said, ["", "raised", "", "", "cleared", ""]);
    }

    #[test]
    fn what_comes_and_goes_is_over_after_a_minute_without_it() {
        use Level::{Holds, Over};
        let looks = [
            (0, Holds),
            (10, Over),
            (50, Holds),
            (60, Over),
            (109, Over),
            (110, Over),
        ];
        let said = run(AlarmName::DropsGoingOn, &looks);
        assert_eq!(said, ["raised", "", "", "", "", "cleared"]);
        let looks = [(0, Holds), (599, Over), (600, Over)];
        assert_eq!(
            run(AlarmName::ClockStepped, &looks),
            ["raised", "", "cleared"]
        );
    }

    #[test]
    fn an_alarm_about_something_that_is_gone_is_cleared() {
        let mut board = Board::default();
        let raised = ["a", "b"].map(|of| reading(AlarmName::SinkNotDelivering, of, Level::Holds));
        assert_eq!(board.update(Now::after(0), raised.to_vec()).len(), 2);
        let changes = board.update(Now::after(1), raised[..1].to_vec());
        assert!(matches!(&changes[..], [Changed::Cleared(alarm)] if alarm.of == "b"));
        let queues = reading(AlarmName::QueuesNearlyFull, "", Level::Holds);
        board.update(Now::after(2), vec![raised[0].clone(), queues]);
        assert!(
            board.update(Now::after(3), raised[..1].to_vec()).is_empty(),
            "not counted now"
        );
        let late = board.update(Now::after(2 + 299_999), raised[..1].to_vec());
        assert!(late.is_empty(), "counted some minutes ago");
        let counts = board.counts();
        assert!(counts.contains(&("queues_nearly_full", 1)) && counts.contains(&("overload", 0)));
        assert_eq!(
            board.standing()[0].name,
            AlarmName::SinkNotDelivering,
            "critical first"
        );
        let later = board.update(Now::after(2 + 300_000), raised[..1].to_vec());
        let cleared = AlarmName::QueuesNearlyFull;
        assert!(matches!(&later[..], [Changed::Cleared(alarm)] if alarm.name == cleared));
    }

    #[test]
    fn the_past_is_bounded_and_read_page_by_page() {
        let mut board = Board::default();
        for round in 0..PAST_MAX as u64 + 5 {
            let one = |level| vec![reading(AlarmName::StorageFull, "", level)];
            board.update(Now::after(round * 2), one(Level::Holds));
            board.update(Now::after(round * 2 + 1), one(Level::Over));
        }
        let first = board.past(None, 2);
        let numbers: Vec<u64> = first.iter().map(|past| past.number).collect();
        assert_eq!(numbers, [1005, 1004]);
        assert_eq!(board.past(Some(1004), PAST_MAX + 1).len(), PAST_MAX - 2);
        assert!(
            board.past(Some(6), 10).is_empty(),
            "the oldest are forgotten"
        );
        let full = (0..300).map(|number| {
            reading(
                AlarmName::SinkNotDelivering,
                &number.to_string(),
                Level::Holds,
            )
        });
        let raised = board.update(Now::after(9999), full.collect());
        assert_eq!(raised.len(), STANDING_MAX);
    }
}
