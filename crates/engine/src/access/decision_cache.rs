//! Cache of the gatekeeper's decisions about topics of one client, and the state of the current
//! packet.
//!
//! All decisions about the current packet are kept until it is handled, whatever the number of its
//! filters and the delay of the answers: otherwise the first decision could expire before the last
//! one arrives, and the questions would be repeated without end.

use thrum_codec::QoS;
use thrum_protocol::Time;

use super::Grant;

/// Greatest number of questions about one packet: further filters of a SUBSCRIBE that need one are
/// refused.
const QUESTIONS_MAX: usize = 256;

/// A question to the gatekeeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopicQuestion<'a> {
    /// The topic of the PUBLISH, or the filter of the subscription.
    pub topic: &'a str,
    /// The action, the quality of service and the RETAIN flag as bits.
    kind: u8,
}

/// A decision of the gatekeeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opinion {
    Allow,
    Deny,
    /// The gatekeeper leaves the decision to the rules after it.
    Undecided,
}

/// A decision and the question that it answers.
#[derive(Debug)]
struct KnownDecision {
    topic: Box<str>,
    kind: u8,
    opinion: Opinion,
    until: Time,
    /// The question is about the current packet.
    is_needed: bool,
}

/// The latest decisions; if there are too many, the ones that expire first are dropped.
#[derive(Debug, Default)]
pub(super) struct DecisionCache {
    decisions: Vec<KnownDecision>,
    /// Number of decisions about the current packet.
    needed: usize,
    /// The decisions about the first filters of the current SUBSCRIBE.
    grants: Vec<Grant>,
}

impl<'a> TopicQuestion<'a> {
    const PUBLISH: u8 = 1 << 2;
    const RETAIN: u8 = 1 << 3;

    /// Creates a question about a PUBLISH.
    pub const fn publish(topic: &'a str, qos: QoS, retain: bool) -> Self {
        let retain = if retain { Self::RETAIN } else { 0 };
        Self {
            topic,
            kind: qos as u8 | Self::PUBLISH | retain,
        }
    }

    /// Creates a question about a subscription.
    pub const fn subscribe(topic: &'a str, qos: QoS) -> Self {
        Self {
            topic,
            kind: qos as u8,
        }
    }
}

impl DecisionCache {
    /// Finds the decision about a question; none if it is not stored or has expired.
    pub(super) fn find(&self, asked: TopicQuestion<'_>, now: Time) -> Option<Opinion> {
        let is_it = |decision: &&KnownDecision| {
            decision.kind == asked.kind
                && *decision.topic == *asked.topic
                && (decision.is_needed || decision.until > now)
        };
        self.decisions
            .iter()
            .find(is_it)
            .map(|decision| decision.opinion)
    }

    /// Stores a decision about the current packet.
    pub(super) fn insert(&mut self, asked: TopicQuestion<'_>, allowed: Option<bool>, until: Time) {
        self.decisions
            .retain(|decision| decision.kind != asked.kind || *decision.topic != *asked.topic);
        self.decisions.push(KnownDecision {
            topic: asked.topic.into(),
            kind: asked.kind,
            opinion: match allowed {
                Some(true) => Opinion::Allow,
                Some(false) => Opinion::Deny,
                None => Opinion::Undecided,
            },
            until,
            is_needed: true,
        });
        self.needed += 1;
    }

    /// Whether the limit of questions about the current packet leaves room for one more.
    pub(super) fn may_ask(&self) -> bool {
        self.needed < QUESTIONS_MAX
    }

    /// The decisions about the filters of the current SUBSCRIBE, in their order, up to the limit of
    /// filters.
    pub(super) fn grants(&mut self) -> &mut Vec<Grant> {
        &mut self.grants
    }

    /// Whether there are decisions about the current packet.
    pub(super) const fn has_needed(&self) -> bool {
        self.needed > 0
    }

    /// Ends the current packet and keeps at most `max` decisions.
    #[inline]
    pub(super) fn end_packet(&mut self, max: usize) {
        if self.needed > 0 {
            self.forget(max);
        }
    }

    #[cold]
    fn forget(&mut self, max: usize) {
        self.needed = 0;
        for decision in &mut self.decisions {
            decision.is_needed = false;
        }
        let too_many = self.decisions.len().saturating_sub(max);
        if too_many > 0 {
            self.decisions.sort_by_key(|decision| decision.until);
            self.decisions.drain(..too_many);
            self.decisions.shrink_to_fit();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    #[test]
    fn answers_hold_for_their_question_and_their_time() {
        let mut remembered = DecisionCache::default();
        let asked = TopicQuestion::publish("a", QoS::AtLeastOnce, false);
        remembered.insert(asked, Some(true), at(10));
        remembered.end_packet(4);
        assert_eq!(remembered.find(asked, at(9)), Some(Opinion::Allow));
        assert_eq!(remembered.find(asked, at(10)), None);
        for other in [
            TopicQuestion::publish("b", QoS::AtLeastOnce, false),
            TopicQuestion::publish("a", QoS::AtMostOnce, false),
            TopicQuestion::publish("a", QoS::AtLeastOnce, true),
            TopicQuestion::subscribe("a", QoS::AtLeastOnce),
        ] {
            assert_eq!(remembered.find(other, at(0)), None, "{other:?}");
        }
    }

    #[test]
    fn answers_that_expire_first_are_dropped() {
        let mut remembered = DecisionCache::default();
        for (topic, until) in [("a", 30), ("b", 10), ("c", 20)] {
            let asked = TopicQuestion::subscribe(topic, QoS::AtMostOnce);
            remembered.insert(asked, None, at(until));
            remembered.end_packet(2);
        }
        let knows = |topic| {
            let asked = TopicQuestion::subscribe(topic, QoS::AtMostOnce);
            remembered.find(asked, at(0)).is_some()
        };
        assert_eq!(["a", "b", "c"].map(knows), [true, false, true]);
    }

    #[test]
    fn decisions_about_one_packet_are_valid_until_it_is_handled() {
        let mut remembered = DecisionCache::default();
        let topics: Vec<String> = (0..100).map(|number| format!("t/{number}")).collect();
        let asked = |topic| TopicQuestion::subscribe(topic, QoS::AtMostOnce);
        for topic in &topics {
            remembered.insert(asked(topic), Some(true), at(10));
        }
        // The last answer arrives after the time for which answers are valid.
        let knows = |remembered: &DecisionCache, now| {
            let known = topics
                .iter()
                .filter(|topic| remembered.find(asked(topic), at(now)).is_some());
            known.count()
        };
        assert_eq!(knows(&remembered, 1_000), 100);
        remembered.end_packet(3);
        assert_eq!((knows(&remembered, 9), knows(&remembered, 10)), (3, 0));
        remembered.end_packet(0);
        assert_eq!(knows(&remembered, 9), 3, "there was no other packet");
    }

    #[test]
    fn without_capacity_an_answer_is_used_once() {
        let mut remembered = DecisionCache::default();
        let asked = TopicQuestion::publish("a", QoS::AtMostOnce, false);
        remembered.insert(asked, Some(true), at(0));
        assert_eq!(remembered.find(asked, at(0)), Some(Opinion::Allow));
        remembered.end_packet(0);
        assert_eq!(remembered.find(asked, at(0)), None);
    }
}
