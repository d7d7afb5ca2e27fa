//! Shared subscriptions: one member gets what the group is owed.

use std::collections::{BTreeMap, BTreeSet};

use super::messages::{Message, Messages};
use crate::event::{ClientIndex, MessageNumber};

/// All groups by their whole filter.
#[derive(Clone, Debug, Default)]
pub(super) struct Groups(BTreeMap<String, Group>);

#[derive(Clone, Debug, Default)]
struct Group {
    owed: BTreeSet<MessageNumber>,
    taken: BTreeMap<MessageNumber, Taken>,
    /// Event at which a member left last: messages sent before may have been in flight to it.
    left: u64,
}

#[derive(Clone, Copy, Debug)]
struct Taken {
    member: ClientIndex,
    qos: u8,
}

impl Groups {
    /// A member has to get the message.
    pub(super) fn owe(&mut self, group: &str, message: &Message) {
        let group = self.0.entry(group.to_owned()).or_default();
        if message.first_sent > group.left && !group.taken.contains_key(&message.number) {
            group.owed.insert(message.number);
        }
    }

    /// A member got it.
    ///
    /// # Errors
    /// Another one had it before, and both with `QoS` 2.
    pub(super) fn taken(
        &mut self,
        group: &str,
        message: &Message,
        member: ClientIndex,
        qos: u8,
    ) -> Result<(), String> {
        let group = self.0.entry(group.to_owned()).or_default();
        group.owed.remove(&message.number);
        let before = group.taken.insert(message.number, Taken { member, qos });
        match before {
            Some(before) if before.member != member && before.qos == 2 && qos == 2 => Err(format!(
                "client {} of the same group had it before",
                before.member
            )),
            _ => Ok(()),
        }
    }

    /// A member left for good: messages in flight to it may be lost.
    pub(super) fn member_leaves(&mut self, group: &str, event: u64) {
        let group = self.0.entry(group.to_owned()).or_default();
        group.owed.clear();
        group.left = event;
    }

    pub(super) fn outstanding(&self) -> usize {
        self.0.values().map(|group| group.owed.len()).sum()
    }

    /// Messages that no member got.
    pub(super) fn close_epoch(&mut self) -> Vec<(String, MessageNumber)> {
        let mut lost = Vec::new();
        for (name, group) in &mut self.0 {
            let owed = std::mem::take(&mut group.owed);
            lost.extend(owed.into_iter().map(|number| (name.clone(), number)));
        }
        lost
    }

    /// Messages that cannot arrive any more need not be kept.
    pub(super) fn forget(&mut self, messages: &Messages) {
        for group in self.0.values_mut() {
            group.taken.retain(|number, _| messages.is_open(*number));
        }
    }
}
