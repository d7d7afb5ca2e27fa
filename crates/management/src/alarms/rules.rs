//! From what is seen to the alarms: each rule says whether its condition holds, no longer holds, or
//! is in between, where an alarm stays as it is.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use thrum_broker::config::AlarmsConfig;
use thrum_figures::count;

use super::affected::Affected;
use super::name::AlarmName;
use super::seen::{CertificateSeen, Seen, Share};
use super::traffic;
use crate::api::quoted;

/// An alarm about a percentage ends this far below its threshold, so that it does not come and go.
const PERCENT_BACK: u64 = 5;
/// Free space that ends the alarm about it, in per cent of the threshold.
const FREE_BACK_PERCENT: u64 = 120;
/// A certificate that is valid for a short time is renewed late: the alarm begins after two thirds
/// of its time.
const CERTIFICATE_PART: u64 = 3;

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Holds,
    /// Neither clearly so nor clearly not.
    Between,
    /// It does not hold.
    Over,
}

/// What a rule says about one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) name: AlarmName,
    /// The listener, sink or file that it is about; empty for the node.
    pub(super) of: String,
    pub(super) level: Level,
    /// What is the case, and why.
    pub(super) what: String,
    /// What to do.
    pub(super) fix: String,
    /// The figures and names of the text as data.
    pub(super) arguments: BTreeMap<&'static str, Value>,
    /// Lines for a shell that show more, or do it.
    pub(super) commands: Vec<String>,
    /// The same as requests of the API.
    pub(super) requests: Vec<&'static str>,
}

impl Reading {
    pub(super) fn with<const N: usize>(mut self, arguments: [(&'static str, Value); N]) -> Self {
        self.arguments.extend(arguments);
        self
    }

    pub(super) fn by<const N: usize>(mut self, commands: [&str; N]) -> Self {
        self.commands = commands.map(str::to_owned).into();
        self
    }

    pub(super) fn asking<const N: usize>(mut self, requests: [&'static str; N]) -> Self {
        self.requests = requests.into();
        self
    }

    /// About clients, and how to find them.
    pub(super) fn about(mut self, affected: &Affected, problem: &str) -> Self {
        let ls = format!("thrum clients ls --filter problem={problem}");
        self.commands = vec![ls];
        self.arguments.extend(affected.arguments());
        if let Some(only) = affected.only() {
            let id = quoted(&only.client_id);
            self.commands = vec![format!("thrum clients get {id}")];
            if only.away_secs.is_some() {
                self.commands
                    .push(format!("thrum clients kick --session {id}"));
            }
        }
        self
    }
}

/// What all rules say.
pub(super) fn readings(seen: &Seen, thresholds: &AlarmsConfig) -> Vec<Reading> {
    let mut readings = shares(seen, thresholds);
    readings.extend(storage(seen, thresholds));
    readings.extend(traffic::readings(seen, thresholds));
    readings.extend(failures(seen));
    let certificates = seen.certificates.iter();
    readings.extend(certificates.flat_map(|one| certificate(one, seen, thresholds)));
    readings
}

pub(super) fn reading(name: AlarmName, level: Level, what: String, fix: &str) -> Reading {
    Reading {
        name,
        of: String::new(),
        level,
        what,
        fix: fix.to_owned(),
        arguments: BTreeMap::new(),
        commands: Vec::new(),
        requests: Vec::new(),
    }
}

/// The arguments of a part of a whole.
fn parts(share: Share) -> [(&'static str, Value); 3] {
    [
        ("used", json!(share.used)),
        ("limit", json!(share.limit)),
        ("percent", json!(share.percent())),
    ]
}

/// A number and what is counted.
pub(super) fn counted(number: u64, one: &str, many: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{} {many}", count(number)),
    }
}

/// A percentage against its threshold; 0 is no alarm.
fn percent(share: Share, threshold: u8) -> Level {
    let threshold = u64::from(threshold);
    if threshold == 0 || share.limit == 0 {
        Level::Over
    } else if share.percent() >= threshold {
        Level::Holds
    } else if share.percent() + PERCENT_BACK > threshold {
        Level::Between
    } else {
        Level::Over
    }
}

pub(super) const fn holds(condition: bool) -> Level {
    if condition { Level::Holds } else { Level::Over }
}

fn shares(seen: &Seen, thresholds: &AlarmsConfig) -> Vec<Reading> {
    let words = |share: Share, of: &str| {
        format!(
            "{} % of {of} are in use: {} of {}",
            share.percent(),
            share.used,
            share.limit
        )
    };
    let mut readings = vec![
        reading(
            AlarmName::MemoryNearLimit,
            percent(seen.memory, thresholds.memory),
            format!(
                "the broker takes {} of the {} MiB of limits.memory, and reads publishers less from 80 % on",
                seen.memory.used >> 20,
                seen.memory.limit >> 20
            ),
            "find clients with long queues; raise limits.memory if the machine has more",
        )
        .with(parts(seen.memory))
        .by(["thrum clients ls --sort queued_bytes"]),
        reading(
            AlarmName::CpuBusy,
            percent(seen.cpu, thresholds.cpu),
            format!(
                "the broker keeps {} % of the cores of this machine busy",
                seen.cpu.percent()
            ),
            "find the clients that send most; use more cores, or limits.client.messages",
        )
        .with([("percent", json!(seen.cpu.percent()))])
        .by(["thrum clients ls --sort messages_received"]),
        reading(
            AlarmName::ConnectionsNearLimit,
            percent(seen.connections, thresholds.connections),
            words(seen.connections, "limits.connections"),
            "raise limits.connections and the limit of open files (ulimit -n, LimitNOFILE=)",
        )
        .with(parts(seen.connections)),
        reading(
            AlarmName::OpenFilesNearLimit,
            percent(seen.open_files, thresholds.open_files),
            words(seen.open_files, "the open files of the process"),
            "raise the limit of open files (ulimit -n, LimitNOFILE= of systemd) and restart",
        )
        .with(parts(seen.open_files)),
    ];
    readings.extend(seen.listeners.iter().map(|listener| {
        Reading {
            of: listener.name.clone(),
            ..reading(
                AlarmName::ConnectionsNearLimit,
                percent(listener.connections, thresholds.connections),
                words(listener.connections, "max_connections of the listener"),
                "raise max_connections of the listener",
            )
            .with(parts(listener.connections))
        }
    }));
    readings
}

fn storage(seen: &Seen, thresholds: &AlarmsConfig) -> Vec<Reading> {
    let mut readings = vec![
        Reading {
            of: "max_disk".to_owned(),
            ..reading(
                AlarmName::DiskNearlyFull,
                percent(seen.disk, thresholds.disk),
                format!(
                    "durable state takes {} % of storage.max_disk, and at 75 % new state is refused",
                    seen.disk.percent()
                ),
                "raise storage.max_disk (at a restart), or end old sessions",
            )
            .with(parts(seen.disk))
            .by(["thrum sessions purge"])
        },
        reading(
            AlarmName::StorageFull,
            holds(seen.health == Some("full")),
            "the storage is full: durable sessions, messages for them and retained messages are refused (0x97)"
                .to_owned(),
            "make room on the disk of node.data_dir, or raise storage.max_disk and restart",
        ),
        reading(
            AlarmName::StorageFailing,
            holds(seen.health == Some("failing")),
            "writes to the disk fail: nothing is acknowledged to durable sessions until one succeeds".to_owned(),
            "look at the log of the broker and of the kernel (dmesg) for the error of the disk of node.data_dir",
        ),
    ];
    if let Some(free) = seen.disk_free {
        let threshold = thresholds.disk_free;
        let level = if free < threshold {
            Level::Holds
        } else if free < threshold.saturating_mul(FREE_BACK_PERCENT) / 100 {
            Level::Between
        } else {
            Level::Over
        };
        readings.push(Reading {
            of: "free".to_owned(),
            ..reading(
                AlarmName::DiskNearlyFull,
                level,
                format!("the disk of node.data_dir has only {} MiB left", free >> 20),
                "delete other files there, or move node.data_dir to a larger disk",
            )
            .with([("free_bytes", json!(free))])
        });
    }
    readings
}

fn failures(seen: &Seen) -> Vec<Reading> {
    let step = seen.stepped.unwrap_or_default();
    let why = |failure: &Option<String>| failure.clone().unwrap_or_default();
    vec![
        reading(
            AlarmName::ClockStepped,
            holds(seen.stepped.is_some()),
            format!(
                "the clock of this machine has jumped by {} s",
                step.as_secs()
            ),
            "let chrony or systemd-timesyncd set it slowly; expiries of sessions and messages follow it",
        )
        .with([("seconds", json!(step.as_secs()))]),
        reading(
            AlarmName::ReloadFailed,
            holds(seen.reload_failure.is_some()),
            format!(
                "the configuration was not reloaded, the one before it is in force: {}",
                why(&seen.reload_failure)
            ),
            "correct it and reload",
        )
        .with([("reason", json!(seen.reload_failure))])
        .by(["thrum config check", "thrum config reload"]),
        reading(
            AlarmName::AuditLogFailing,
            holds(seen.audit_failure.is_some()),
            format!(
                "the audit log cannot be written, and no change is made without it: {}",
                why(&seen.audit_failure)
            ),
            "make room on the disk of node.data_dir",
        )
        .with([("reason", json!(seen.audit_failure))]),
    ]
}

/// Two readings, of which at most one holds.
fn certificate(one: &CertificateSeen, seen: &Seen, thresholds: &AlarmsConfig) -> [Reading; 2] {
    let warning = thresholds.certificate.as_secs();
    let lifetime = one.until.saturating_sub(one.since);
    let begins = one
        .until
        .saturating_sub(warning.min(lifetime / CERTIFICATE_PART));
    let is_over = seen.wall_secs >= one.until;
    let is_soon = warning > 0 && !is_over && seen.wall_secs >= begins;
    let days = one.until.saturating_sub(seen.wall_secs) / 86_400;
    let (file, until) = (&one.file, &one.until_date);
    let arguments = || {
        [
            ("listener", json!(one.listener)),
            ("file", json!(file)),
            ("until", json!(until)),
            ("days", json!(days)),
        ]
    };
    let of = format!("{} {file}", one.listener);
    [
        Reading {
            of: of.clone(),
            ..reading(
                AlarmName::CertificateExpiresSoon,
                holds(is_soon),
                format!(
                    "the certificate {file} ends in {}, at {until}",
                    counted(days, "day", "days")
                ),
                "renew it; the new file is read by itself (tls.reload_interval), or at once by a reload",
            )
            .with(arguments())
            .by(["thrum certs reload"])
        },
        Reading {
            of,
            ..reading(
                AlarmName::CertificateExpired,
                holds(is_over),
                format!("the certificate {file} has expired at {until}: clients refuse it"),
                "renew it, and reload it",
            )
            .with(arguments())
            .by(["thrum certs reload"])
        },
    ]
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::seen::{ListenerSeen, ReasonSeen, SINK_TIME, SinkSeen};
    use super::*;

    /// A broker where nothing is wrong.
    fn calm() -> Seen {
        let share = |used| Share { used, limit: 100 };
        Seen {
            wall_secs: 1000 * 86_400,
            span: Duration::from_secs(10),
            memory: share(10),
            cpu: share(10),
            connections: share(10),
            open_files: share(10),
            disk: share(10),
            disk_free: Some(100 << 30),
            health: Some("healthy"),
            full_queues: Some(Affected::default()),
            certificates: vec![CertificateSeen {
                listener: "mqtts".to_owned(),
                file: "cert.pem".to_owned(),
                since: 950 * 86_400,
                until: 1040 * 86_400,
                until_date: "then".to_owned(),
            }],
            listeners: vec![ListenerSeen {
                name: "mqtt".to_owned(),
                connections: share(10),
            }],
            sinks: vec![SinkSeen {
                name: "log".to_owned(),
                waiting: 1,
                stuck: Duration::from_secs(1),
                failures: 0,
            }],
            ..Seen::default()
        }
    }

    /// What holds, by name and subject.
    fn holding(seen: &Seen) -> Vec<(&'static str, String)> {
        let all = readings(seen, &AlarmsConfig::default());
        let holding = all.into_iter().filter(|one| one.level == Level::Holds);
        holding.map(|one| (one.name.name(), one.of)).collect()
    }

    fn check(change: impl FnOnce(&mut Seen), name: &str, of: &str) {
        let mut seen = calm();
        change(&mut seen);
        assert_eq!(
            holding(&seen),
            [(name, of.to_owned())] as [(&str, String); 1]
        );
    }

    #[test]
    fn nothing_holds_on_a_calm_broker() {
        assert_eq!(holding(&calm()), []);
    }

    #[test]
    fn each_condition_raises_its_own_alarm_alone() {
        check(|seen| seen.memory.used = 80, "memory_near_limit", "");
        check(|seen| seen.cpu.used = 90, "cpu_busy", "");
        check(
            |seen| seen.connections.used = 80,
            "connections_near_limit",
            "",
        );
        check(
            |seen| seen.listeners[0].connections.used = 80,
            "connections_near_limit",
            "mqtt",
        );
        check(
            |seen| seen.open_files.used = 80,
            "open_files_near_limit",
            "",
        );
        check(|seen| seen.disk.used = 70, "disk_nearly_full", "max_disk");
        check(
            |seen| seen.disk_free = Some(5 << 20),
            "disk_nearly_full",
            "free",
        );
        check(|seen| seen.health = Some("full"), "storage_full", "");
        check(|seen| seen.health = Some("failing"), "storage_failing", "");
        check(|seen| seen.overloaded = vec![1], "overload", "");
        check(
            |seen| {
                seen.full_queues = Some(Affected {
                    clients: 1,
                    worst: None,
                });
            },
            "queues_nearly_full",
            "",
        );
        check(
            |seen| seen.stepped = Some(Duration::from_secs(9)),
            "clock_stepped",
            "",
        );
        check(
            |seen| seen.reload_failure = Some("x".to_owned()),
            "reload_failed",
            "",
        );
        check(
            |seen| seen.audit_failure = Some("x".to_owned()),
            "audit_log_failing",
            "",
        );
        let sinks = |seen: &mut Seen| seen.sinks[0].stuck = SINK_TIME;
        check(sinks, "sink_not_delivering", "log");
        let drops = |seen: &mut Seen| {
            seen.drops.push(ReasonSeen {
                reason: "queue_full".to_owned(),
                count: 1,
            });
        };
        check(drops, "drops_going_on", "");
        let refusals = |seen: &mut Seen| {
            seen.refusals.push(ReasonSeen {
                reason: "queues_full".to_owned(),
                count: 1,
            });
        };
        check(refusals, "refusals_going_on", "");
    }

    #[test]
    fn a_certificate_is_soon_over_and_then_over() {
        let day = |day: u64| move |seen: &mut Seen| seen.wall_secs = day * 86_400;
        let of = "mqtts cert.pem";
        check(day(1026), "certificate_expires_soon", of);
        check(day(1039), "certificate_expires_soon", of);
        check(day(1040), "certificate_expired", of);
        let mut seen = calm();
        // One that is valid for six days, two of them are left.
        seen.certificates[0].since = 996 * 86_400;
        seen.certificates[0].until = 1002 * 86_400;
        assert_eq!(holding(&seen).len(), 1);
        seen.wall_secs -= 1;
        assert_eq!(holding(&seen), []);
    }

    #[test]
    fn a_percentage_has_a_gap_in_which_nothing_changes() {
        let level = |used| percent(Share { used, limit: 100 }, 80);
        assert_eq!(level(80), Level::Holds);
        assert_eq!((level(79), level(76)), (Level::Between, Level::Between));
        assert_eq!(level(75), Level::Over);
        let off = Share {
            used: 100,
            limit: 100,
        };
        assert_eq!(percent(off, 0), Level::Over);
        assert_eq!(percent(Share { used: 5, limit: 0 }, 80), Level::Over);
    }

    #[test]
    fn every_alarm_says_what_and_how_to_fix_it() {
        for one in readings(&calm(), &AlarmsConfig::default()) {
            assert!(!one.what.is_empty() && !one.fix.is_empty(), "{one:?}");
        }
    }

    #[test]
    fn lines_for_a_shell_and_requests_are_apart_from_the_words() {
        let seen = calm();
        for one in readings(&seen, &AlarmsConfig::default()) {
            for text in [&one.what, &one.fix] {
                assert!(
                    !text.contains("thrum ") && !text.contains("/api/"),
                    "{text}"
                );
            }
        }
    }

    #[test]
    fn full_queues_are_over_when_they_are_no_longer_watched() {
        let uncounted = Seen {
            full_queues: None,
            ..calm()
        };
        let level = |queues| {
            let thresholds = AlarmsConfig {
                queues,
                ..AlarmsConfig::default()
            };
            let mut all = readings(&uncounted, &thresholds).into_iter();
            let found = all.find(|one| one.name == AlarmName::QueuesNearlyFull);
            found.map(|one| one.level)
        };
        assert_eq!(level(1), None, "it stays as it is");
        assert_eq!(level(0), Some(Level::Over));
    }
}
