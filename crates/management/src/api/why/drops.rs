//! The causes of dropped messages, ranked by their number.

use std::collections::BTreeMap;

use serde_json::json;
use thrum_figures::{count, percent, ratio};

use super::measured::{DroppedMessages, Measured};
use super::{DropCauses, NotCause, WhyCause};

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

const REASONS: [Reason; 13] = [
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
    let (mut causes, mut not_causes) = (Vec::new(), Vec::new());
    for (reason, messages) in counted {
        let share = ratio(messages, dropped);
        if messages == 0 {
            if !is_whole && reason.name == WHOLE_ONLY {
                continue;
            }
            not_causes.push(NotCause {
                name: reason.name.to_owned(),
                share,
                sentence: format!("no message: {}", reason.words),
            });
            continue;
        }
        let of: Vec<&DroppedMessages> = measured
            .drops
            .iter()
            .filter(|dropped| dropped.reason == reason.name)
            .collect();
        let listed = of.iter().take(LISTED_MAX).map(|dropped| {
            json!({
                "client_id": dropped.client_id,
                "topic": dropped.topic,
                "messages": dropped.messages,
            })
        });
        causes.push(WhyCause {
            name: reason.name.to_owned(),
            share,
            sentence: sentence(reason, messages, share, &of),
            evidence: BTreeMap::from([
                ("messages".to_owned(), json!(messages)),
                ("of".to_owned(), listed.collect()),
            ]),
            remedy: reason.remedy.to_owned(),
        });
    }
    DropCauses {
        verdict: verdict(&causes, dropped, is_whole),
        dropped,
        causes,
        not_causes,
    }
}

fn messages(reason: &Reason, measured: &Measured, is_whole: bool) -> u64 {
    if !is_whole {
        let of = measured.drops.iter();
        let of = of.filter(|dropped| dropped.reason == reason.name);
        return of.map(|dropped| dropped.messages).sum();
    }
    if reason.name == "publish_denied" {
        return measured.count(DENIED);
    }
    measured.count(&format!("publish/messages/dropped/{}", reason.name))
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

fn verdict(causes: &[WhyCause], dropped: u64, is_whole: bool) -> String {
    let Some(first) = causes.first() else {
        if !is_whole {
            return "no message was dropped, apart from those with QoS 0 while a client is \
                    disconnected"
                .to_owned();
        }
        return "no message was dropped".to_owned();
    };
    let reason = REASONS.iter().find(|reason| reason.name == first.name);
    let words = reason.map_or("", |reason| reason.words);
    let messages = if dropped == 1 {
        "1 message was dropped".to_owned()
    } else {
        format!("{} messages were dropped", count(dropped))
    };
    format!("{messages}; {} of them: {words}", percent(first.share))
}

#[cfg(test)]
mod tests {
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
        let found = causes(&Measured::default(), false);
        assert!(found.verdict.contains("apart from"), "{}", found.verdict);
        assert_eq!(found.not_causes.len(), REASONS.len() - 1);
        assert!(found.not_causes.iter().all(|one| one.name != WHOLE_ONLY));
    }

    #[test]
    fn without_drops_that_is_said() {
        let found = causes(&Measured::default(), true);
        assert_eq!(found.verdict, "no message was dropped");
        assert_eq!(found.not_causes.len(), REASONS.len());
    }
}
