//! Messages with `QoS` 1 and 2 that wait for the client or for room in its window.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::held::Held;
use super::{GroupId, Taken};
use crate::{Limits, Time};

/// First in, first out, bounded by count and bytes; no memory while empty.
#[derive(Debug, Default)]
pub(super) struct Queue(Option<Box<Waiting>>);

#[derive(Debug, Default)]
struct Waiting {
    messages: VecDeque<Held>,
    bytes: usize,
}

impl Queue {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(super) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |waiting| waiting.messages.len())
    }

    pub(super) fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |waiting| waiting.bytes)
    }

    /// Whether a message of that size is within both limits.
    pub(super) fn has_room(&self, bytes: usize, limits: &Limits) -> bool {
        let fits = |value: usize, max: u32| u32::try_from(value).is_ok_and(|value| value <= max);
        fits(self.len() + 1, limits.queue_messages_max)
            && fits(self.bytes() + bytes, limits.queue_bytes_max)
    }

    pub(super) fn push(&mut self, held: Held) {
        let waiting = self.0.get_or_insert_default();
        waiting.bytes += held.message.bytes_len();
        waiting.messages.push_back(held);
    }

    pub(super) fn pop(&mut self) -> Option<Held> {
        let waiting = self.0.as_mut()?;
        let held = waiting.messages.pop_front();
        if let Some(held) = &held {
            waiting.bytes -= held.message.bytes_len();
        }
        self.give_back();
        held
    }

    /// Takes out the message at the front if its expiry has passed.
    pub(super) fn pop_expired(&mut self, now: Time) -> Option<Held> {
        let front = self.front()?;
        front.message.is_expired(now).then(|| self.pop()).flatten()
    }

    /// Takes out the messages of one shared group, or of all.
    pub(super) fn take_shared(&mut self, group: Option<GroupId>, taken: &mut Vec<Taken>) {
        let Some(waiting) = &mut self.0 else { return };
        let is_taken = |held: &Held| match group {
            Some(group) => held.group == Some(group),
            None => held.group.is_some(),
        };
        if !waiting.messages.iter().any(is_taken) {
            return;
        }
        for held in core::mem::take(&mut waiting.messages) {
            if is_taken(&held) {
                waiting.bytes -= held.message.bytes_len();
                taken.extend(held.into_taken());
            } else {
                waiting.messages.push_back(held);
            }
        }
        self.give_back();
    }

    fn front(&self) -> Option<&Held> {
        self.0.as_ref()?.messages.front()
    }

    /// Every message, in its order.
    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = &Held> {
        self.0.iter().flat_map(|waiting| &waiting.messages)
    }

    fn give_back(&mut self) {
        if self.front().is_none() {
            self.0 = None;
        }
    }
}
