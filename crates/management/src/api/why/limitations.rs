//! What limits an answer, in words and as data.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use thrum_figures::count;

use super::measured::Measured;
use super::{WhyCause, WhyLimitation, WhyQuestion, WhyWhat};

/// Fewer deliveries than these give rough shares.
const DELIVERIES_FEW: u64 = 30;

/// Something that limits an answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Limitation {
    WorkersLate,
    NotStamped,
    FewDeliveries { deliveries: u64, every: f64 },
    AwayNotCounted { messages: u64 },
    OfflineNotCounted,
    TopicInPart,
}

/// What limits the answer, of which these are the causes of latency.
pub(super) fn limitations(
    question: &WhyQuestion,
    measured: &Measured,
    causes: &[WhyCause],
) -> Vec<Limitation> {
    let mut found = Vec::new();
    if measured.unanswered {
        found.push(Limitation::WorkersLate);
    }
    let is_slow_wanted = question.what != Some(WhyWhat::Drops);
    match &measured.times {
        None if is_slow_wanted => found.push(Limitation::NotStamped),
        // Without causes nobody looks at shares.
        Some(times)
            if is_slow_wanted && times.deliveries < DELIVERIES_FEW && !causes.is_empty() =>
        {
            found.push(Limitation::FewDeliveries {
                deliveries: times.deliveries,
                every: times.every,
            });
        }
        _ => {}
    }
    if measured.away > 0 && is_slow_wanted {
        found.push(Limitation::AwayNotCounted {
            messages: measured.away,
        });
    }
    let is_part = question.client.is_some() || question.topic.is_some();
    if is_part && question.what != Some(WhyWhat::Slow) {
        found.push(Limitation::OfflineNotCounted);
    }
    if question.topic.is_some() {
        found.push(Limitation::TopicInPart);
    }
    found
}

impl Limitation {
    /// Its name, which does not change.
    const fn name(self) -> &'static str {
        match self {
            Self::WorkersLate => "workers_late",
            Self::NotStamped => "not_stamped",
            Self::FewDeliveries { .. } => "few_deliveries",
            Self::AwayNotCounted { .. } => "away_not_counted",
            Self::OfflineNotCounted => "offline_not_counted",
            Self::TopicInPart => "topic_in_part",
        }
    }

    pub(super) fn words(&self) -> String {
        match *self {
            Self::WorkersLate => {
                "some workers did not answer in time: they are overloaded, and what waits in \
                 them, and was dropped meanwhile, is not known"
                    .to_owned()
            }
            Self::NotStamped => {
                "no message is stamped (node.stamp_messages = 0): the time of messages that do \
                 not wait is not known"
                    .to_owned()
            }
            Self::FewDeliveries { deliveries, every } => {
                let measured = match deliveries {
                    0 => "no delivery was measured".to_owned(),
                    1 => "1 delivery was measured".to_owned(),
                    more => format!("{more} deliveries were measured"),
                };
                format!(
                    "{measured}, as one of {every} messages is stamped: the shares are rough; a \
                     smaller node.stamp_messages measures more"
                )
            }
            Self::AwayNotCounted { messages } => format!(
                "{} messages wait for clients that are away, which is not counted as latency",
                count(messages)
            ),
            Self::OfflineNotCounted => {
                "messages with QoS 0 that are dropped while a client is disconnected are counted \
                 for all of the broker only: a question without a client and a topic has them \
                 (offline)"
                    .to_owned()
            }
            Self::TopicInPart => {
                "drops that name no topic are not counted, and the times are those of all \
                 messages of the broker, in proportion"
                    .to_owned()
            }
        }
    }

    fn evidence(self) -> BTreeMap<String, Value> {
        let figures = match self {
            Self::FewDeliveries { deliveries, every } => vec![
                ("measured_deliveries", json!(deliveries)),
                ("stamped_every", json!(every)),
            ],
            Self::AwayNotCounted { messages } => vec![("messages", json!(messages))],
            _ => Vec::new(),
        };
        figures
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }
}

impl From<Limitation> for WhyLimitation {
    fn from(limitation: Limitation) -> Self {
        Self {
            name: limitation.name().to_owned(),
            evidence: limitation.evidence(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::measured::MessageTimes;
    use super::*;

    fn said(question: &WhyQuestion, measured: &Measured, causes: &[WhyCause]) -> Vec<String> {
        let found = limitations(question, measured, causes);
        found.iter().map(Limitation::words).collect()
    }

    #[test]
    fn what_limits_the_answer_is_said() {
        let question = WhyQuestion::default();
        let found = said(&question, &Measured::default(), &[]);
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("node.stamp_messages = 0"), "{found:?}");
        let measured = Measured {
            times: Some(MessageTimes {
                every: 1000.0,
                deliveries: 3,
                ..MessageTimes::default()
            }),
            away: 5000,
            unanswered: true,
            ..Measured::default()
        };
        let without = said(&question, &measured, &[]).join("; ");
        assert!(!without.contains("rough"), "nothing has a share: {without}");
        let causes = [WhyCause {
            name: "disk".to_owned(),
            share: 1.0,
            sentence: String::new(),
            evidence: BTreeMap::new(),
            remedy: String::new(),
            commands: Vec::new(),
            requests: Vec::new(),
        }];
        let found = said(&question, &measured, &causes).join("; ");
        for expected in [
            "did not answer",
            "3 deliveries",
            "one of 1000",
            "clients that are away",
        ] {
            assert!(found.contains(expected), "{found}");
        }
        let question = WhyQuestion {
            client: Some("a".to_owned()),
            what: Some(WhyWhat::Drops),
            ..WhyQuestion::default()
        };
        let found = said(&question, &Measured::default(), &[]);
        assert_eq!(found.len(), 1);
        assert!(
            found[0].contains("while a client is disconnected"),
            "{found:?}"
        );
    }

    #[test]
    fn a_limitation_has_its_figures_as_data() {
        let few = Limitation::FewDeliveries {
            deliveries: 3,
            every: 1000.0,
        };
        let data = WhyLimitation::from(few);
        assert_eq!(data.name, "few_deliveries");
        assert_eq!(data.evidence["measured_deliveries"], json!(3));
    }
}
