//! What the gatekeeper has said about topics of one client, for a while.

use thrum_codec::QoS;
use thrum_protocol::Time;

/// Even with no room for decisions the one that was just made is used once.
const ROOM_MIN: usize = 1;

/// A question to the gatekeeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked<'a> {
    pub(crate) topic: &'a str,
    /// Action, quality of service and retain flag in one.
    kind: u8,
}

/// What the gatekeeper said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opinion {
    Allow,
    Deny,
    /// It has none.
    Nothing,
}

/// An answer.
#[derive(Debug)]
struct Said {
    topic: Box<str>,
    kind: u8,
    opinion: Opinion,
    until: Time,
}

/// The latest answers; one more takes the place of the one that ends first.
#[derive(Debug, Default)]
pub(super) struct Remembered(Vec<Said>);

impl<'a> Asked<'a> {
    const PUBLISH: u8 = 1 << 2;
    const RETAIN: u8 = 1 << 3;

    pub(crate) const fn publish(topic: &'a str, qos: QoS, retain: bool) -> Self {
        let retain = if retain { Self::RETAIN } else { 0 };
        Self {
            topic,
            kind: qos as u8 | Self::PUBLISH | retain,
        }
    }

    pub(crate) const fn subscribe(topic: &'a str, qos: QoS) -> Self {
        Self {
            topic,
            kind: qos as u8,
        }
    }
}

impl Remembered {
    /// The answer; none if there was none, or it is too old.
    pub(super) fn find(&self, asked: Asked<'_>, now: Time) -> Option<Opinion> {
        let is_it = |said: &&Said| {
            said.kind == asked.kind && *said.topic == *asked.topic && said.until > now
        };
        self.0.iter().find(is_it).map(|said| said.opinion)
    }

    pub(super) fn insert(
        &mut self,
        asked: Asked<'_>,
        allowed: Option<bool>,
        until: Time,
        max: usize,
    ) {
        self.0
            .retain(|said| said.kind != asked.kind || *said.topic != *asked.topic);
        while self.0.len() >= max.max(ROOM_MIN) {
            let ends = |at: &usize| self.0[*at].until;
            let Some(first) = (0..self.0.len()).min_by_key(ends) else {
                break;
            };
            self.0.swap_remove(first);
        }
        self.0.push(Said {
            topic: asked.topic.into(),
            kind: asked.kind,
            opinion: match allowed {
                Some(true) => Opinion::Allow,
                Some(false) => Opinion::Deny,
                None => Opinion::Nothing,
            },
            until,
        });
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
        remembered.insert(asked, Some(true), at(10), 4);
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
    fn the_answer_that_ends_first_makes_room() {
        let mut remembered = Remembered::default();
        for (topic, until) in [("a", 30), ("b", 10), ("c", 20)] {
            let asked = Asked::subscribe(topic, QoS::AtMostOnce);
            remembered.insert(asked, None, at(until), 2);
        }
        let knows = |topic| {
            let asked = Asked::subscribe(topic, QoS::AtMostOnce);
            remembered.find(asked, at(0)).is_some()
        };
        assert_eq!(["a", "b", "c"].map(knows), [true, false, true]);
    }
}
