//! The causes of dropped messages, ranked by their number.

use std::collections::BTreeMap;

use serde_json::json;
use thrum_figures::{count, figure, percent, ratio};

use super::away::is_full;
use super::measured::{DroppedMessages, Measured};
use super::{DropCauses, DropsState, NotCause, WhyCause};

/// Clients and topics that a sentence names.
const NAMED_MAX: usize = 3;
/// Those that the evidence lists.
const LISTED_MAX: usize = 10;
/// The counter of messages that the rules deny; all others are counted as dropped.
const DENIED: &str = "authorization/publish/denied";

/// A reason that is counted for the whole node only: it is in no table of clients and topics.
const WHOLE_ONLY: &str = "offline";

/// A reason with its counter, in words, and with its cure.
struct Reason {
    name: &'static str,
    words: &'static str,
    remedy: &'static str,
}

/// A full queue of a client that is away: it has other cures than that of one that is slow.
const FULL_AWAY: &str = "queue_full_away";

const REASONS: [Reason; 14] = [
    Reason {
        name: FULL_AWAY,
        words: "the queue of a client that is away was full",
        // Receivers have it, by name.
        remedy: "",
    },
    Reason {
        name: "queue_full",
        words: "the queue of the client was full",
        remedy: "let the client read faster or acknowledge sooner (thrum why slow); raise \
                 limits.client.queue; several members of a shared group have a queue each",
    },
    Reason {
        name: "queue_oldest",
        words: "the queue of the client was full, and the oldest one made room for another",
        remedy: "let the client read faster or acknowledge sooner (thrum why slow); raise \
                 limits.client.queue",
    },
    Reason {
        name: "queue_age",
        words: "they waited in a queue for longer than limits.client.queue_age",
        remedy: "raise limits.client.queue_age, or let the client return sooner",
    },
    Reason {
        name: "offline",
        words: "the client was disconnected, and QoS 0 is not queued for it",
        remedy: "publish and subscribe with QoS 1, or set limits.client.queue_qos0",
    },
    Reason {
        name: "slow_consumer",
        words: "the client did not take its output, and QoS 0 does not wait",
        remedy: "let the client read faster (thrum why slow); publish and subscribe with QoS 1; raise \
                 limits.output_bytes for bursts",
    },
    Reason {
        name: "too_large",
        words: "they exceed the maximum packet size of the client",
        remedy: "raise the maximum packet size that the client asks for, or publish smaller messages",
    },
    Reason {
        name: "expired",
        words: "they expired before they were sent",
        remedy: "raise the message expiry interval of the publisher, or let the client read sooner",
    },
    Reason {
        name: "outside_mount",
        words: "their topic is outside the mount point of the client",
        remedy: "compare the topic with the listener's mount_point",
    },
    Reason {
        name: "not_allowed",
        words: "the rules do not let the client receive them",
        remedy: "thrum acl test CLIENT sub TOPIC shows the rule",
    },
    Reason {
        name: "memory_short",
        words: "memory was short",
        remedy: "raise limits.memory, or bound what waits: limits.client.queue and queue_bytes",
    },
    Reason {
        name: "no_shared_member",
        words: "no member of the shared group took them",
        remedy: "connect a member, or raise its queue: GET /api/v1/groups shows the lag of each",
    },
    Reason {
        name: "retained_refused",
        words: "they were to be retained, and a limit of retained messages is reached",
        remedy: "raise limits.retained_messages or retained_bytes, or remove old ones",
    },
    Reason {
        name: "publish_denied",
        words: "the rules or a backend denied the PUBLISH",
        remedy: "thrum acl test CLIENT pub TOPIC shows the rule; the log names the client",
    },
];

/// Ranks the reasons; those of a part of the node are counted for its clients and topics only.
pub(super) fn causes(measured: &Measured, is_whole: bool) -> DropCauses {
    let mut counted: Vec<(&Reason, u64)> = REASONS
        .iter()
        .map(|reason| (reason, messages(reason, measured, is_whole)))
        .collect();
    counted.sort_by_key(|(_, messages)| std::cmp::Reverse(*messages));
    let dropped: u64 = counted.iter().map(|(_, messages)| messages).sum();
    let mut found = DropCauses {
        state: state(measured, dropped, is_whole),
        verdict: String::new(),
        dropped,
        dropped_per_second: measured.per_second(dropped),
        causes: Vec::new(),
        not_causes: Vec::new(),
        not_measured: Vec::new(),
    };
    for (reason, messages) in counted {
        if messages > 0 {
            found
                .causes
                .push(cause(reason, messages, dropped, measured));
        } else if let Some(why) = unmeasured(reason, found.state, is_whole) {
            found.not_measured.push(reason.is_none(why.to_owned()));
        } else {
            let what = format!("no message: {}", reason.words);
            found.not_causes.push(reason.is_none(what));
        }
    }
    if found.causes.iter().any(|cause| cause.name == FULL_AWAY) {
        // Their names read like that of the cause.
        let is_near = |name: &str| name == WHOLE_ONLY || is_full(name);
        found.not_causes.retain(|one| !is_near(&one.name));
    }
    found.verdict = verdict(&found, measured, is_whole);
    found
}

const fn state(measured: &Measured, dropped: u64, is_whole: bool) -> DropsState {
    if dropped > 0 {
        DropsState::Dropping
    } else if is_whole || measured.has_drop_rows {
        DropsState::NotDropping
    } else {
        DropsState::NotMeasured
    }
}

/// Why nothing is known of a reason that has no message.
fn unmeasured(reason: &Reason, state: DropsState, is_whole: bool) -> Option<&'static str> {
    if state == DropsState::NotMeasured {
        return Some("not measured: the workers did not answer");
    }
    let is_counted = is_whole || reason.name != WHOLE_ONLY;
    (!is_counted).then_some(
        "not measured: messages with QoS 0 for clients that are away are counted for the whole broker only",
    )
}

impl Reason {
    /// Of which no message was dropped.
    fn is_none(&self, sentence: String) -> NotCause {
        NotCause {
            name: self.name.to_owned(),
            share: 0.0,
            sentence,
            evidence: BTreeMap::new(),
        }
    }

    /// Whether it is that of messages in the table.
    fn has(&self, dropped: &DroppedMessages, measured: &Measured) -> bool {
        let is_away = measured.receivers.is_away(&dropped.client_id);
        match self.name {
            FULL_AWAY => is_full(dropped.reason) && is_away,
            name => name == dropped.reason && !(is_full(name) && is_away),
        }
    }
}

fn cause(reason: &Reason, messages: u64, dropped: u64, measured: &Measured) -> WhyCause {
    let share = ratio(messages, dropped);
    let of = measured.drops.iter();
    let of: Vec<&DroppedMessages> = of.filter(|one| reason.has(one, measured)).collect();
    let listed = of.iter().take(LISTED_MAX).map(|dropped| {
        json!({
            "client_id": dropped.client_id,
            "topic": dropped.topic,
            "messages": dropped.messages,
        })
    });
    let mut cause = WhyCause {
        name: reason.name.to_owned(),
        share,
        sentence: sentence(reason, messages, share, &of),
        evidence: BTreeMap::from([
            ("messages".to_owned(), json!(messages)),
            ("of".to_owned(), listed.collect()),
        ]),
        remedy: reason.remedy.to_owned(),
        commands: Vec::new(),
        requests: Vec::new(),
    };
    if reason.name == FULL_AWAY {
        let receivers = &measured.receivers;
        cause.sentence = format!("{}; {}", cause.sentence, receivers.words());
        cause.remedy = receivers.remedy();
        cause.commands = receivers.commands();
        cause.requests = receivers.requests();
        let away = receivers.evidence();
        cause.evidence.insert("away".to_owned(), away);
    }
    cause
}

fn messages(reason: &Reason, measured: &Measured, is_whole: bool) -> u64 {
    let all = |name: &str| all_messages(name, measured, is_whole);
    let away = |name: &str| {
        let receivers = &measured.receivers;
        receivers.away_part(&measured.drops, name, all(name))
    };
    match reason.name {
        FULL_AWAY => {
            let full = REASONS.iter().filter(|reason| is_full(reason.name));
            full.map(|reason| away(reason.name)).sum()
        }
        name if is_full(name) => all(name) - away(name),
        name => all(name),
    }
}

fn all_messages(name: &str, measured: &Measured, is_whole: bool) -> u64 {
    if !is_whole {
        let of = measured
            .drops
            .iter()
            .filter(|dropped| dropped.reason == name);
        return of.map(|dropped| dropped.messages).sum();
    }
    if name == "publish_denied" {
        return measured.count(DENIED);
    }
    measured.count(&format!("publish/messages/dropped/{name}"))
}

fn sentence(reason: &Reason, messages: u64, share: f64, of: &[&DroppedMessages]) -> String {
    let named: Vec<String> = of
        .iter()
        .take(NAMED_MAX)
        .map(|dropped| {
            let topic = dropped.topic.as_deref();
            let topic = topic.map_or_else(String::new, |topic| format!(" of {topic}"));
            let number = count(dropped.messages);
            format!("{number}{topic} for {}", dropped.client_id)
        })
        .collect();
    let named = if named.is_empty() {
        String::new()
    } else {
        format!(": {}", named.join(", "))
    };
    format!(
        "{} of the dropped messages ({}): {}{named}",
        percent(share),
        count(messages),
        reason.words
    )
}

fn verdict(found: &DropCauses, measured: &Measured, is_whole: bool) -> String {
    let Some(first) = found.causes.first() else {
        return match found.state {
            DropsState::NotMeasured => "nothing was measured: the workers did not answer",
            _ if is_whole => "no message was dropped",
            _ => {
                "no message was dropped, apart from those with QoS 0 while a client is \
                 disconnected"
            }
        }
        .to_owned();
    };
    let reason = REASONS.iter().find(|reason| reason.name == first.name);
    let words = reason.map_or("", |reason| reason.words);
    let messages = if found.dropped == 1 {
        "1 message was dropped".to_owned()
    } else {
        format!("{} messages were dropped", count(found.dropped))
    };
    let rate = if measured.millis > 0.0 {
        format!(", {} a second", figure(found.dropped_per_second))
    } else {
        String::new()
    };
    format!(
        "{messages}{rate}; {} of them: {words}",
        percent(first.share)
    )
}

#[cfg(test)]
mod tests {
    use super::super::away::{AwayClient, Receivers};
    use super::*;

    fn counted(counts: &[(&str, u64)]) -> Measured {
        let mut measured = Measured::default();
        for (name, count) in counts {
            measured.counters.insert((*name).to_owned(), *count);
        }
        measured
    }

    #[test]
    fn reasons_are_ranked_and_the_others_have_none() {
        let mut measured = counted(&[
            ("publish/messages/dropped/queue_full", 100),
            ("publish/messages/dropped/expired", 300),
            (DENIED, 0),
        ]);
        measured.drops.push(DroppedMessages {
            reason: "expired",
            client_id: "hist-1".to_owned(),
            topic: Some("a/b".to_owned()),
            messages: 290,
        });
        let found = causes(&measured, true);
        let names: Vec<&str> = found.causes.iter().map(|one| one.name.as_str()).collect();
        assert_eq!((names, found.dropped), (vec!["expired", "queue_full"], 400));
        assert_eq!(
            found.causes[0].sentence,
            "75 % of the dropped messages (300): they expired before they were sent: 290 of a/b for hist-1"
        );
        assert_eq!(found.not_causes.len(), REASONS.len() - 2);
        assert_eq!(
            found.verdict,
            "400 messages were dropped; 75 % of them: they expired before they were sent"
        );
    }

    #[test]
    fn drops_of_one_client_are_not_those_of_the_node() {
        let mut measured = counted(&[("publish/messages/dropped/queue_full", 100)]);
        measured.drops.push(DroppedMessages {
            reason: "offline",
            client_id: "a".to_owned(),
            topic: None,
            messages: 1,
        });
        let found = causes(&measured, false);
        assert_eq!((found.dropped, found.causes.len()), (1, 1));
        assert_eq!(found.causes[0].name, "offline");
        assert!(found.verdict.starts_with("1 message was dropped; 100 %"));
    }

    #[test]
    fn messages_that_a_client_missed_while_it_was_away_are_not_denied() {
        let mut measured = Measured {
            has_drop_rows: true,
            ..Measured::default()
        };
        let found = causes(&measured, false);
        assert!(found.verdict.contains("apart from"), "{}", found.verdict);
        assert_eq!(found.not_causes.len(), REASONS.len() - 1);
        assert!(found.not_causes.iter().all(|one| one.name != WHOLE_ONLY));
        assert_eq!(found.not_measured[0].name, WHOLE_ONLY);
        measured.has_drop_rows = false;
        let found = causes(&measured, false);
        assert_eq!(found.state, DropsState::NotMeasured);
        assert!(found.verdict.contains("did not answer"), "{found:?}");
        assert_eq!(found.not_measured.len(), REASONS.len());
    }

    /// `archive` is away, and `slow` is connected.
    fn full_queues() -> Measured {
        let dropped = |client_id: &str, messages| DroppedMessages {
            reason: "queue_full",
            client_id: client_id.to_owned(),
            topic: Some("a/b".to_owned()),
            messages,
        };
        Measured {
            millis: 10_000.0,
            drops: vec![dropped("archive", 4000), dropped("slow", 1000)],
            receivers: Receivers::of(
                &["slow"],
                vec![AwayClient {
                    client_id: "archive".to_owned(),
                    away_secs: 480,
                    expiry_secs: Some(86_400),
                    queued: 1000,
                    queue_max: 1000,
                }],
            ),
            ..counted(&[("publish/messages/dropped/queue_full", 5000)])
        }
    }

    #[test]
    fn the_full_queue_of_a_client_that_is_away_has_its_own_cure() {
        for is_whole in [true, false] {
            let found = causes(&full_queues(), is_whole);
            let names: Vec<&str> = found.causes.iter().map(|one| one.name.as_str()).collect();
            assert_eq!(names, [FULL_AWAY, "queue_full"]);
            let away = &found.causes[0];
            assert!((away.share - 0.8).abs() < 1e-9, "{away:?}");
            assert!(away.sentence.contains("archive has been away for 8 min"));
            assert!(away.remedy.contains("bring archive back"), "{away:?}");
            assert!(!away.remedy.contains("read faster"), "{away:?}");
            assert_eq!(away.commands, ["thrum clients kick --session archive"]);
            assert_eq!(away.evidence["of"].as_array().unwrap().len(), 1);
            assert_eq!(away.evidence["away"][0]["session_expiry_secs"], 86_400);
            let connected = &found.causes[1];
            assert!(connected.remedy.contains("read faster"), "{connected:?}");
            assert_eq!(connected.evidence["of"][0]["client_id"], "slow");
        }
    }

    #[test]
    fn what_reads_like_the_cause_is_not_listed_as_no_cause() {
        let mut measured = full_queues();
        measured.drops.truncate(1);
        let found = causes(&measured, true);
        assert_eq!(found.causes.len(), 1);
        let others: Vec<&str> = found
            .not_causes
            .iter()
            .map(|one| one.name.as_str())
            .collect();
        for near in ["queue_full", "queue_oldest", "offline"] {
            assert!(!others.contains(&near), "{others:?}");
        }
        assert_eq!(
            found.verdict,
            "5 000 messages were dropped, 500 a second; 100 % of them: the queue of a client that is away was full"
        );
    }

    #[test]
    fn without_drops_that_is_said() {
        let found = causes(&Measured::default(), true);
        assert_eq!(found.verdict, "no message was dropped");
        assert_eq!(found.not_causes.len(), REASONS.len());
    }
}
