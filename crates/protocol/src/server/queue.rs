//! Messages that are queued until the client connects or its window has room.

use alloc::boxed::Box;
use alloc::vec::Vec;

use thrum_codec::QoS;

use super::held::Held;
use super::priority_level::PriorityLevel;
use super::{GroupId, Taken};
use crate::{Limits, Time};

/// Queue with priorities: the highest first, first in, first out within a priority; limited by
/// messages and bytes. It allocates no memory while empty.
#[derive(Debug, Default)]
pub(super) struct Queue(Option<Box<Waiting>>);

#[derive(Debug, Default)]
struct Waiting {
    /// Priority 0, the default of all messages.
    normal: PriorityLevel,
    /// Priorities above 0 that are not empty, in ascending order.
    above: Vec<(u8, PriorityLevel)>,
    len: usize,
    bytes: usize,
    /// Number of messages with `QoS` 0.
    qos0: usize,
    /// Bytes of messages with `QoS` 0.
    qos0_bytes: usize,
}

impl Queue {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(super) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |waiting| waiting.len)
    }

    pub(super) fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |waiting| waiting.bytes)
    }

    /// Number and bytes of messages with `QoS` 1 and 2.
    pub(super) fn qos1_and_2(&self) -> (usize, usize) {
        self.0.as_ref().map_or((0, 0), |waiting| {
            (
                waiting.len - waiting.qos0,
                waiting.bytes - waiting.qos0_bytes,
            )
        })
    }

    /// Whether any message has `QoS` 0.
    pub(super) fn has_qos0(&self) -> bool {
        self.0.as_ref().is_some_and(|waiting| waiting.qos0 > 0)
    }

    /// Whether the next message has `QoS` 0.
    pub(super) fn next_is_qos0(&self) -> bool {
        self.0.as_ref().is_some_and(|waiting| {
            let highest = waiting.above.last();
            let level = highest.map_or(&waiting.normal, |(_, level)| level);
            waiting.qos0 > 0 && level.front_is_qos0()
        })
    }

    /// Whether another message that occupies so much memory stays within both limits.
    pub(super) fn has_room(&self, bytes: usize, limits: &Limits) -> bool {
        fits(self.len() + 1, limits.queue.messages_max)
            && fits(self.bytes() + bytes, limits.queue.bytes_max)
    }

    /// Whether a message that occupies so much memory stays within both limits in an empty queue.
    pub(super) fn could_have_room(bytes: usize, limits: &Limits) -> bool {
        fits(1, limits.queue.messages_max) && fits(bytes, limits.queue.bytes_max)
    }

    pub(super) fn push(&mut self, held: Held, priority: u8) {
        let waiting = self.0.get_or_insert_default();
        waiting.len += 1;
        waiting.bytes += held.bytes();
        if held.qos == QoS::AtMostOnce {
            waiting.qos0 += 1;
            waiting.qos0_bytes += held.bytes();
        }
        waiting.level(priority).push(held);
    }

    /// Removes the next message.
    pub(super) fn pop(&mut self) -> Option<Held> {
        self.take(|waiting| {
            let highest = waiting.above.last_mut();
            let level = highest.map_or(&mut waiting.normal, |(_, level)| level);
            level.pop()
        })
    }

    /// Removes a message at the front of its priority that `is_wanted` selects.
    pub(super) fn pop_if(&mut self, mut is_wanted: impl FnMut(&Held) -> bool) -> Option<Held> {
        self.take(|waiting| {
            let mut levels = waiting.levels_mut();
            levels.find_map(|(_, level)| level.pop_if(&mut is_wanted))
        })
    }

    /// Removes the oldest message with `QoS` 0 of the lowest priority that has one.
    pub(super) fn pop_qos0(&mut self) -> Option<Held> {
        self.take(|waiting| {
            let mut levels = waiting.levels_mut();
            levels.find_map(|(_, level)| level.pop_qos0())
        })
    }

    /// Removes the oldest message with `QoS` 1 or 2 of the lowest priority that has one, up to the
    /// given priority.
    pub(super) fn pop_lowest(&mut self, priority_max: u8) -> Option<Held> {
        self.take(|waiting| {
            let levels = waiting.levels_mut();
            let mut levels = levels.take_while(|(priority, _)| *priority <= priority_max);
            levels.find_map(|(_, level)| level.pop_kept())
        })
    }

    /// Removes the messages of all shared subscriptions, or of some in ascending order.
    pub(super) fn take_shared(&mut self, groups: Option<&[GroupId]>, taken: &mut Vec<Taken>) {
        let is_taken = |held: &Held| match (held.group, groups) {
            (Some(group), Some(groups)) => groups.binary_search(&group).is_ok(),
            (group, None) => group.is_some(),
            (None, Some(_)) => false,
        };
        let levels = self.0.iter().flat_map(|waiting| waiting.levels());
        if !levels.flat_map(|(_, level)| level.iter()).any(is_taken) {
            return;
        }
        let mut held = Vec::new();
        self.take_if(is_taken, &mut held);
        taken.extend(held.into_iter().filter_map(Held::into_taken));
    }

    /// Removes the messages that `is_wanted` selects.
    pub(super) fn take_if(
        &mut self,
        mut is_wanted: impl FnMut(&Held) -> bool,
        taken: &mut Vec<Held>,
    ) {
        self.rebuild(|held, priority, queue| {
            if is_wanted(&held) {
                taken.push(held);
            } else {
                queue.push(held, priority);
            }
        });
    }

    /// Sorts every message by its current priority.
    pub(super) fn prioritise(&mut self, limits: &Limits) {
        self.rebuild(|held, _, queue| {
            let priority = limits.queue.priority(held.message.topic());
            queue.push(held, priority);
        });
    }

    /// Every message with `QoS` 1 and 2 in order of arrival, if all have the same priority.
    pub(super) fn kept(&self) -> impl Iterator<Item = &Held> {
        self.iter().filter(|held| held.qos != QoS::AtMostOnce)
    }

    /// When the oldest message was queued.
    pub(super) fn oldest_since(&self) -> Option<Time> {
        let levels = self.0.iter().flat_map(|waiting| waiting.levels());
        let oldest = levels.flat_map(|(_, level)| level.oldest());
        oldest.map(Held::since).min()
    }

    /// Every message.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Held> {
        let levels = self.0.iter().flat_map(|waiting| waiting.levels().rev());
        levels.flat_map(|(_, level)| level.iter())
    }

    fn take(&mut self, which: impl FnOnce(&mut Waiting) -> Option<Held>) -> Option<Held> {
        let waiting = self.0.as_mut()?;
        let held = which(waiting)?;
        if !waiting.above.is_empty() {
            waiting.above.retain(|(_, level)| !level.is_empty());
        }
        waiting.len -= 1;
        waiting.bytes -= held.bytes();
        if held.qos == QoS::AtMostOnce {
            waiting.qos0 -= 1;
            waiting.qos0_bytes -= held.bytes();
        }
        if waiting.len == 0 {
            self.0 = None;
        }
        Some(held)
    }

    /// Removes all messages; `each` puts back those that stay.
    fn rebuild(&mut self, mut each: impl FnMut(Held, u8, &mut Self)) {
        let Some(mut waiting) = self.0.take() else {
            return;
        };
        for (priority, level) in waiting.levels_mut() {
            while let Some(held) = level.pop() {
                each(held, priority, self);
            }
        }
    }
}

impl Waiting {
    /// From the lowest priority to the highest.
    fn levels(&self) -> impl DoubleEndedIterator<Item = (u8, &PriorityLevel)> {
        let above = self.above.iter();
        core::iter::once((0, &self.normal)).chain(above.map(|(priority, level)| (*priority, level)))
    }

    /// As [`Self::levels`].
    fn levels_mut(&mut self) -> impl DoubleEndedIterator<Item = (u8, &mut PriorityLevel)> {
        let above = self.above.iter_mut();
        core::iter::once((0, &mut self.normal))
            .chain(above.map(|(priority, level)| (*priority, level)))
    }

    fn level(&mut self, priority: u8) -> &mut PriorityLevel {
        if priority == 0 {
            return &mut self.normal;
        }
        let found = self.above.binary_search_by_key(&priority, |(of, _)| *of);
        let place = found.unwrap_or_else(|place| {
            self.above
                .insert(place, (priority, PriorityLevel::default()));
            place
        });
        &mut self.above[place].1
    }
}

fn fits(value: usize, max: u32) -> bool {
    u32::try_from(value).is_ok_and(|value| value <= max)
}
