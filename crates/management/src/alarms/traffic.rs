//! The rules of messages: drops, full queues, sinks and overload.

use std::time::Duration;

use serde_json::{Value, json};
use thrum_broker::config::AlarmsConfig;
use thrum_figures::count;

use super::affected::{Affected, remedy};
use super::name::AlarmName;
use super::rules::{Level, Reading, counted, holds, reading};
use super::seen::{ReasonSeen, SINK_TIME, Seen};

/// Reasons of drops that the text names.
const REASONS_MAX: usize = 3;

/// What the rules of messages say.
pub(super) fn readings(seen: &Seen, thresholds: &AlarmsConfig) -> Vec<Reading> {
    let mut readings = vec![
        Reading {
            level: holds(are_many(&seen.drops, seen.span, thresholds.drops)),
            ..drops_going_on(seen)
        },
        Reading {
            level: holds(are_many(&seen.refusals, seen.span, thresholds.refusals)),
            ..refusals_going_on(seen)
        },
        overload(seen),
    ];
    // Without a threshold nobody counts them, and an alarm from before is over.
    let unwatched = (thresholds.queues == 0).then(Affected::default);
    if let Some(full) = seen.full_queues.as_ref().or(unwatched.as_ref()) {
        let threshold = u64::from(thresholds.queues);
        readings.push(Reading {
            level: holds(threshold > 0 && full.clients >= threshold),
            ..queues_nearly_full(full)
        });
    }
    readings.extend(seen.sinks.iter().map(|sink| {
        Reading {
            of: sink.name.clone(),
            ..reading(
                AlarmName::SinkNotDelivering,
                holds(sink.waiting > 0 && sink.stuck >= SINK_TIME),
                format!(
                    "the sink has written nothing for {} s, {}, {}",
                    sink.stuck.as_secs(),
                    counted(sink.waiting, "message waits", "messages wait"),
                    counted(sink.failures, "write has failed", "writes have failed")
                ),
                "look at its target: the log of the broker has the error of the last write",
            )
            .with([
                ("stuck_secs", json!(sink.stuck.as_secs())),
                ("waiting", json!(sink.waiting)),
                ("failures", json!(sink.failures)),
            ])
        }
    }));
    readings
}

/// Whether so many messages came to that end within a time that it is an alarm.
fn are_many(messages: &[ReasonSeen], span: Duration, threshold: u32) -> bool {
    let messages = sum(messages);
    let millis = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    // Counts of ten seconds are too few to be compared with a number a minute exactly.
    let per_minute = messages.saturating_mul(60_000).checked_div(millis.max(1));
    threshold > 0 && messages > 0 && per_minute >= Some(u64::from(threshold))
}

fn sum(messages: &[ReasonSeen]) -> u64 {
    messages.iter().map(|one| one.count).sum()
}

/// The most frequent reasons: in words, with their numbers if there are several.
fn reasons(messages: &[ReasonSeen], words: fn(&str) -> &str) -> String {
    let first = messages.iter().take(REASONS_MAX);
    let said = first.map(|one| match messages.len() {
        1 => words(&one.reason).to_owned(),
        _ => format!("{} {}", count(one.count), words(&one.reason)),
    });
    said.collect::<Vec<_>>().join(", ")
}

/// The arguments of an alarm about messages.
fn arguments(messages: &[ReasonSeen], span: Duration) -> [(&'static str, Value); 3] {
    let first = messages.iter().take(REASONS_MAX);
    let list = first.map(|one| json!({ "reason": one.reason, "messages": one.count }));
    [
        ("messages", json!(sum(messages))),
        ("seconds", json!(span.as_secs())),
        ("reasons", list.collect()),
    ]
}

/// Messages that are dropped, for whom and why.
fn drops_going_on(seen: &Seen) -> Reading {
    reading(
        AlarmName::DropsGoingOn,
        Level::Over,
        format!(
            "{} dropped within {} s: {}",
            counted(sum(&seen.drops), "message was", "messages were"),
            seen.span.as_secs(),
            reasons(&seen.drops, reason_words)
        ),
        "find the clients that miss them, and the cause: a measurement of ten seconds names both",
    )
    .with(arguments(&seen.drops, seen.span))
    .by([
        "thrum why drops",
        "thrum clients ls --filter problem=dropping",
    ])
    .asking(["POST /api/v1/why", "GET /api/v1/drops"])
}

/// Messages that are refused to their publishers for want of room, and what is full.
fn refusals_going_on(seen: &Seen) -> Reading {
    reading(
        AlarmName::RefusalsGoingOn,
        Level::Over,
        format!(
            "{} refused to publishers within {} s: {}",
            counted(sum(&seen.refusals), "message was", "messages were"),
            seen.span.as_secs(),
            reasons(&seen.refusals, refusal_words)
        ),
        "find the publishers and the cause: what was refused is listed by client and topic",
    )
    .with(arguments(&seen.refusals, seen.span))
    .asking(["GET /api/v1/refused-publishes"])
}

/// A reason of a refusal in words.
fn refusal_words(reason: &str) -> &str {
    match reason {
        "queues_full" => "the queues of all receivers are full",
        "memory_short" => "memory is short",
        "retained_limit" => "a limit of retained messages is reached",
        "disk_full" => "the disk is full",
        "sink_full" => "a sink is full",
        other => other,
    }
}

/// A reason of a drop in words.
fn reason_words(reason: &str) -> &str {
    match reason {
        "queue_full" => "the queue is full",
        "queue_oldest" => "the oldest of a full queue",
        "queue_age" => "too long in the queue",
        "offline" => "QoS 0 while the client is away",
        "slow_consumer" => "QoS 0 while the client does not read",
        "too_large" => "larger than the client takes",
        "expired" => "expired",
        "outside_mount" => "outside of the mount point",
        "not_allowed" => "the rules deny them",
        "memory_short" => "memory is short",
        "no_shared_member" => "no member of the shared group takes them",
        "retained_refused" => "a limit of retained messages is reached",
        other => other,
    }
}

fn overload(seen: &Seen) -> Reading {
    let workers = seen.overloaded.iter().map(ToString::to_string);
    let workers: Vec<String> = workers.collect();
    let who = match &workers[..] {
        [only] => format!(
            "worker {only} leaves new connections in the backlog, or reads publishers less: its"
        ),
        _ => format!(
            "workers {} leave new connections in the backlog, or read publishers less: their",
            workers.join(", ")
        ),
    };
    reading(
        AlarmName::Overload,
        holds(!workers.is_empty()),
        format!("{who} turns take long, or memory is short"),
        "find the cause; limit the rate of publishers, or use more cores",
    )
    .with([("workers", json!(seen.overloaded))])
    .by(["thrum why slow", "thrum status"])
    .asking(["POST /api/v1/why", "GET /api/v1/status"])
}

fn queues_nearly_full(full: &Affected) -> Reading {
    let what = match (full.only(), &full.worst) {
        (Some(only), _) => {
            let away = only.away_secs.map_or("", |_| ", and the client is away");
            format!("the queue of a client is {}{away}", only.fullness())
        }
        (None, Some(worst)) => format!(
            "the queues of {} clients are at least four fifths full; the fullest is {}",
            count(full.clients),
            worst.fullness()
        ),
        (None, None) => format!(
            "{} at least four fifths full",
            counted(
                full.clients,
                "queue of a client is",
                "queues of clients are"
            )
        ),
    };
    let is_full = full
        .worst
        .as_ref()
        .is_some_and(|one| one.queue_percent >= 100);
    let then = if is_full {
        "messages for a full queue are dropped"
    } else {
        "messages are dropped when one is full"
    };
    reading(
        AlarmName::QueuesNearlyFull,
        Level::Over,
        format!("{what}; {then}"),
        remedy(full),
    )
    .about(full, "queue")
    .asking(["GET /api/v1/clients?problem=queue"])
}

#[cfg(test)]
mod tests {
    use super::super::affected::AffectedClient;
    use super::*;

    fn calm() -> Seen {
        Seen {
            span: Duration::from_secs(10),
            full_queues: Some(Affected::default()),
            ..Seen::default()
        }
    }

    /// So many clients, of which `archive` has the fullest queue.
    fn affected(clients: u64, away_secs: Option<u64>, queue_percent: u64) -> Affected {
        Affected {
            clients,
            worst: Some(AffectedClient {
                client_id: "archive".to_owned(),
                away_secs,
                queued: 10 * queue_percent,
                queue_max: 1000,
                queue_percent,
            }),
        }
    }

    /// The reading of that name.
    fn said(seen: &Seen, name: AlarmName) -> Reading {
        let mut all = readings(seen, &AlarmsConfig::default()).into_iter();
        all.find(|one| one.name == name).unwrap()
    }

    #[test]
    fn one_client_with_a_full_queue_is_named_with_its_cure() {
        let said = |full| {
            let seen = Seen {
                full_queues: Some(full),
                ..calm()
            };
            said(&seen, AlarmName::QueuesNearlyFull)
        };
        let away = said(affected(1, Some(480), 100));
        assert_eq!(
            away.what,
            "the queue of a client is full (1 000 of 1 000 messages), and the client is away; \
             messages for a full queue are dropped"
        );
        assert!(
            away.fix.starts_with("bring the client back"),
            "{}",
            away.fix
        );
        assert_eq!(away.arguments["client_id"], "archive");
        assert_eq!(away.arguments["away_secs"], 480);
        let kick = "thrum clients kick --session archive";
        assert_eq!(away.commands, ["thrum clients get archive", kick]);
        let slow = said(affected(1, None, 84));
        assert!(
            slow.what.contains("client is 84 % full (840 of 1 000"),
            "{slow:?}"
        );
        assert!(
            slow.fix.starts_with("let the client read faster"),
            "{}",
            slow.fix
        );
        let three = said(affected(3, None, 100));
        assert!(
            three.what.starts_with("the queues of 3 clients are"),
            "{three:?}"
        );
        assert_eq!(three.commands, ["thrum clients ls --filter problem=queue"]);
    }

    #[test]
    fn drops_are_told_in_words_and_blamed_on_no_client() {
        let mut seen = calm();
        seen.full_queues = Some(affected(1, Some(480), 100));
        seen.drops = vec![ReasonSeen {
            reason: "queue_full".to_owned(),
            count: 4550,
        }];
        let one = said(&seen, AlarmName::DropsGoingOn);
        assert_eq!(
            one.what,
            "4 550 messages were dropped within 10 s: the queue is full"
        );
        assert_eq!(one.arguments["reasons"][0]["reason"], "queue_full");
        assert_eq!(one.arguments["messages"], 4550);
        assert!(!format!("{one:?}").contains("archive"), "{one:?}");
    }

    #[test]
    fn refused_messages_are_told_apart_from_dropped_ones() {
        let mut seen = calm();
        let refused = |reason: &str, count| ReasonSeen {
            reason: reason.to_owned(),
            count,
        };
        assert_eq!(
            said(&seen, AlarmName::RefusalsGoingOn).level,
            Level::Over,
            "nothing was refused"
        );
        seen.refusals = vec![refused("queues_full", 4550), refused("sink_full", 2)];
        let one = said(&seen, AlarmName::RefusalsGoingOn);
        assert_eq!(one.level, Level::Holds);
        assert_eq!(
            one.what,
            "4 552 messages were refused to publishers within 10 s: \
             4 550 the queues of all receivers are full, 2 a sink is full"
        );
        assert_eq!(one.arguments["messages"], 4552);
        assert_eq!(one.arguments["reasons"][1]["reason"], "sink_full");
        assert_eq!(said(&seen, AlarmName::DropsGoingOn).level, Level::Over);
    }
}
