//! The gatekeeper's decisions about topics of one client, kept for a while, and the state of the
//! current packet.
//!
//! All decisions about the current packet are kept until it is handled, however many filters it has
//! and however long the answers took: otherwise the first would be requested again after the last,
//! without end.

use thrum_codec::QoS;
use thrum_protocol::Time;

use super::Grant;

/// Most questions about one packet: further filters of a SUBSCRIBE that need one are refused.
const QUESTIONS_MAX: usize = 256;

/// A question to the gatekeeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked<'a> {
    /// The topic, or the filter.
    pub topic: &'a str,
    /// Action, quality of service and retain flag in one.
    kind: u8,
}

/// A decision of the gatekeeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opinion {
    Allow,
    Deny,
    /// The gatekeeper has no opinion.
    Nothing,
}

/// An answer.
#[derive(Debug)]
struct Said {
    topic: Box<str>,
    kind: u8,
    opinion: Opinion,
    until: Time,
    /// It is about the current packet.
    is_needed: bool,
}

/// The latest answers; if there are too many, those that expire first are dropped.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    said: Vec<Said>,
    /// Answers about the current packet.
    needed: usize,
    /// The grants of the first filters of the current packet.
    grants: Vec<Grant>,
}

impl<'a> Asked<'a> {
    const PUBLISH: u8 = 1 << 2;
    const RETAIN: u8 = 1 << 3;

    /// A question about a PUBLISH.
    pub const fn publish(topic: &'a str, qos: QoS, retain: bool) -> Self {
        let retain = if retain { Self::RETAIN } else { 0 };
        Self {
            topic,
            kind: qos as u8 | Self::PUBLISH | retain,
        }
    }

    /// A question about a filter.
    pub const fn subscribe(topic: &'a str, qos: QoS) -> Self {
        Self {
            topic,
            kind: qos as u8,
        }
    }
}

impl Remembered {
    /// The answer; none if there was none, or it has expired.
    pub(super) fn find(&self, asked: Asked<'_>, now: Time) -> Option<Opinion> {
        let is_it = |said: &&Said| {
            said.kind == asked.kind
                && *said.topic == *asked.topic
                && (said.is_needed || said.until > now)
        };
        self.said.iter().find(is_it).map(|said| said.opinion)
    }

    /// An answer about the current packet.
    pub(super) fn insert(&mut self, asked: Asked<'_>, allowed: Option<bool>, until: Time) {
        self.said
            .retain(|said| said.kind != asked.kind || *said.topic != *asked.topic);
        self.said.push(Said {
            topic: asked.topic.into(),
            kind: asked.kind,
            opinion: match allowed {
                Some(true) => Opinion::Allow,
                Some(false) => Opinion::Deny,
                None => Opinion::Nothing,
            },
            until,
            is_needed: true,
        });
        self.needed += 1;
    }

    /// Whether the current packet may have another question.
    pub(super) fn may_ask(&self) -> bool {
        self.needed < QUESTIONS_MAX
    }

    /// How the first filters of the packet at hand are granted; in the end of all that are within
    /// the limit.
    pub(super) fn grants(&mut self) -> &mut Vec<Grant> {
        &mut self.grants
    }

    /// There are answers about the current packet.
    pub(super) const fn has_needed(&self) -> bool {
        self.needed > 0
    }

    /// The answers about the packet at hand have been used: at most so many are kept.
    #[inline]
    pub(super) fn end_packet(&mut self, max: usize) {
        if self.needed > 0 {
            self.forget(max);
        }
    }

    #[cold]
    fn forget(&mut self, max: usize) {
        self.needed = 0;
        for said in &mut self.said {
            said.is_needed = false;
        }
        let too_many = self.said.len().saturating_sub(max);
        if too_many > 0 {
            self.said.sort_by_key(|said| said.until);
            self.said.drain(..too_many);
            self.said.shrink_to_fit();
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
        let mut remembered = Remembered::default();
        let asked = Asked::publish("a", QoS::AtLeastOnce, false);
        remembered.insert(asked, Some(true), at(10));
        remembered.end_packet(4);
        assert_eq!(remembered.find(asked, at(9)), Some(Opinion::Allow));
        assert_eq!(remembered.find(asked, at(10)), None);
        for other in [
            Asked::publish("b", QoS::AtLeastOnce, false),
            Asked::publish("a", QoS::AtMostOnce, false),
            Asked::publish("a", QoS::AtLeastOnce, true),
            Asked::subscribe("a", QoS::AtLeastOnce),
        ] {
            assert_eq!(remembered.find(other, at(0)), None, "{other:?}");
        }
    }

    #[test]
    fn answers_that_end_first_make_room() {
        let mut remembered = Remembered::default();
        for (topic, until) in [("a", 30), ("b", 10), ("c", 20)] {
            let asked = Asked::subscribe(topic, QoS::AtMostOnce);
            remembered.insert(asked, None, at(until));
            remembered.end_packet(2);
        }
        let knows = |topic| {
            let asked = Asked::subscribe(topic, QoS::AtMostOnce);
            remembered.find(asked, at(0)).is_some()
        };
        assert_eq!(["a", "b", "c"].map(knows), [true, false, true]);
    }

    #[test]
    fn all_that_is_said_about_one_packet_holds_until_it_is_handled() {
        let mut remembered = Remembered::default();
        let topics: Vec<String> = (0..100).map(|number| format!("t/{number}")).collect();
        let asked = |topic| Asked::subscribe(topic, QoS::AtMostOnce);
        for topic in &topics {
            remembered.insert(asked(topic), Some(true), at(10));
        }
        // It took longer than answers stay valid.
        let knows = |remembered: &Remembered, now| {
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
    fn without_room_an_answer_is_used_once() {
        let mut remembered = Remembered::default();
        let asked = Asked::publish("a", QoS::AtMostOnce, false);
        remembered.insert(asked, Some(true), at(0));
        assert_eq!(remembered.find(asked, at(0)), Some(Opinion::Allow));
        remembered.end_packet(0);
        assert_eq!(remembered.find(asked, at(0)), None);
    }
}
