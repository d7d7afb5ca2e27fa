//! Retained messages: the last acknowledged message of a topic, or one that was sent after it.

use std::collections::BTreeMap;

use crate::event::{MessageNumber, Publish};

/// Retained messages by topic.
#[derive(Clone, Debug, Default)]
pub(super) struct Retained {
    topics: BTreeMap<String, Topic>,
    /// An inspection of all topics is under way: messages that were correct when it began stay
    /// correct.
    is_inspecting: bool,
}

#[derive(Clone, Debug, Default)]
struct Topic {
    /// From the last acknowledged one on, in order.
    possible: Vec<Possible>,
    /// The last acknowledged one.
    accepted: Option<MessageNumber>,
    /// Before the first acknowledgement there may be nothing.
    may_be_absent: bool,
}

#[derive(Clone, Copy, Debug)]
struct Possible {
    number: MessageNumber,
    is_empty: bool,
}

impl Retained {
    pub(super) fn publishing(&mut self, number: MessageNumber, publish: &Publish) {
        if !publish.retain {
            return;
        }
        let is_new = !self.topics.contains_key(&publish.topic);
        let topic = self.topics.entry(publish.topic.clone()).or_default();
        topic.may_be_absent |= is_new;
        if topic
            .possible
            .last()
            .is_none_or(|last| last.number < number)
        {
            let is_empty = publish.is_empty;
            topic.possible.push(Possible { number, is_empty });
        }
    }

    pub(super) fn accepted(&mut self, number: MessageNumber, publish: &Publish) {
        let Some(topic) = self.topics.get_mut(&publish.topic) else {
            return;
        };
        if publish.retain {
            topic.accepted = topic.accepted.max(Some(number));
            if !self.is_inspecting {
                topic.forget_older();
            }
        }
    }

    pub(super) fn inspecting(&mut self) {
        self.is_inspecting = true;
    }

    pub(super) fn not_inspected(&mut self) {
        self.is_inspecting = false;
        self.topics.values_mut().for_each(Topic::forget_older);
    }

    /// Number of topics, and what is wrong with them.
    pub(super) fn inspected(
        &mut self,
        found: &BTreeMap<String, MessageNumber>,
    ) -> (u64, Vec<String>) {
        let wrong = self.wrong(found);
        self.not_inspected();
        (u64::try_from(found.len()).unwrap_or(0), wrong)
    }

    /// The error in an inspection of all topics.
    pub(super) fn wrong(&self, found: &BTreeMap<String, MessageNumber>) -> Vec<String> {
        let mut wrong = Vec::new();
        for (name, topic) in &self.topics {
            let value = found.get(name).copied();
            if !topic.allows(value) {
                wrong.push(format!(
                    "retained on {name}: {value:?}, possible are {topic:?}"
                ));
            }
        }
        for (name, number) in found {
            if !self.topics.contains_key(name) {
                wrong.push(format!("retained on {name}: {number}, but nothing was"));
            }
        }
        wrong
    }

    /// A retained message arrived as an answer to SUBSCRIBE.
    ///
    /// # Errors
    /// It is older than one that was acknowledged before the last inspection, or never was
    /// retained.
    pub(super) fn replayed(&self, topic: &str, number: MessageNumber) -> Result<(), String> {
        let last = self
            .topics
            .get(topic)
            .and_then(|topic| topic.possible.last());
        match last {
            Some(last) if last.number >= number => Ok(()),
            _ => Err("came as retained, but never was".to_owned()),
        }
    }
}

impl Topic {
    fn forget_older(&mut self) {
        if let Some(accepted) = self.accepted {
            self.may_be_absent = false;
            self.possible.retain(|possible| possible.number >= accepted);
        }
    }

    fn allows(&self, value: Option<MessageNumber>) -> bool {
        let is_it = |possible: &Possible| match value {
            Some(number) => possible.number == number && !possible.is_empty,
            None => possible.is_empty,
        };
        (value.is_none() && self.may_be_absent) || self.possible.iter().any(is_it)
    }
}
