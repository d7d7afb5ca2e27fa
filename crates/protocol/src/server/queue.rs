//! Messages that wait for the client or for room in its window.

use alloc::boxed::Box;
use alloc::vec::Vec;

use thrum_codec::QoS;

use super::held::Held;
use super::lane::Lane;
use super::{GroupId, Taken};
use crate::Limits;

/// The highest priority first, first in first out within a priority; bounded by count and bytes. No
/// memory while empty.
#[derive(Debug, Default)]
pub(super) struct Queue(Option<Box<Waiting>>);

#[derive(Debug, Default)]
struct Waiting {
    /// Priority 0, which all messages have if nothing else is said.
    normal: Lane,
    /// Those above 0 that are not empty, ascending.
    above: Vec<(u8, Lane)>,
    len: usize,
    bytes: usize,
    /// How many have `QoS` 0.
    fleeting: usize,
    /// Their bytes.
    fleeting_bytes: usize,
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

    /// Messages and bytes with `QoS` 1 and 2.
    pub(super) fn lasting(&self) -> (usize, usize) {
        self.0.as_ref().map_or((0, 0), |waiting| {
            (
                waiting.len - waiting.fleeting,
                waiting.bytes - waiting.fleeting_bytes,
            )
        })
    }

    /// Messages with `QoS` 0 wait.
    pub(super) fn has_fleeting(&self) -> bool {
        self.0.as_ref().is_some_and(|waiting| waiting.fleeting > 0)
    }

    /// It is the turn of a message with `QoS` 0.
    pub(super) fn next_is_fleeting(&self) -> bool {
        self.0.as_ref().is_some_and(|waiting| {
            let highest = waiting.above.last();
            let lane = highest.map_or(&waiting.normal, |(_, lane)| lane);
            waiting.fleeting > 0 && lane.front_is_fleeting()
        })
    }

    /// Whether a message that takes so much memory is within both limits.
    pub(super) fn has_room(&self, bytes: usize, limits: &Limits) -> bool {
        fits(self.len() + 1, limits.queue.messages_max)
            && fits(self.bytes() + bytes, limits.queue.bytes_max)
    }

    /// Whether a message that takes so much memory is within both limits if no other waits.
    pub(super) fn could_have_room(bytes: usize, limits: &Limits) -> bool {
        fits(1, limits.queue.messages_max) && fits(bytes, limits.queue.bytes_max)
    }

    pub(super) fn push(&mut self, held: Held, priority: u8) {
        let waiting = self.0.get_or_insert_default();
        waiting.len += 1;
        waiting.bytes += held.bytes();
        if held.qos == QoS::AtMostOnce {
            waiting.fleeting += 1;
            waiting.fleeting_bytes += held.bytes();
        }
        waiting.lane(priority).push(held);
    }

    /// Takes out the message whose turn it is.
    pub(super) fn pop(&mut self) -> Option<Held> {
        self.take(|waiting| {
            let highest = waiting.above.last_mut();
            let lane = highest.map_or(&mut waiting.normal, |(_, lane)| lane);
            lane.pop()
        })
    }

    /// Takes out a message at the front of its priority that is wanted.
    pub(super) fn pop_if(&mut self, mut is_wanted: impl FnMut(&Held) -> bool) -> Option<Held> {
        self.take(|waiting| {
            let mut lanes = waiting.lanes_mut();
            lanes.find_map(|(_, lane)| lane.pop_if(&mut is_wanted))
        })
    }

    /// Takes out the oldest message with `QoS` 0 of the lowest priority that has one.
    pub(super) fn pop_fleeting(&mut self) -> Option<Held> {
        self.take(|waiting| {
            let mut lanes = waiting.lanes_mut();
            lanes.find_map(|(_, lane)| lane.pop_fleeting())
        })
    }

    /// Takes out the oldest message with `QoS` 1 or 2 of the lowest priority that has one, up to
    /// the given one.
    pub(super) fn pop_lowest(&mut self, priority_max: u8) -> Option<Held> {
        self.take(|waiting| {
            let lanes = waiting.lanes_mut();
            let mut lanes = lanes.take_while(|(priority, _)| *priority <= priority_max);
            lanes.find_map(|(_, lane)| lane.pop_kept())
        })
    }

    /// Takes out the messages of some shared groups, in the order of their numbers, or of all.
    pub(super) fn take_shared(&mut self, groups: Option<&[GroupId]>, taken: &mut Vec<Taken>) {
        let is_taken = |held: &Held| match (held.group, groups) {
            (Some(group), Some(groups)) => groups.binary_search(&group).is_ok(),
            (group, None) => group.is_some(),
            (None, Some(_)) => false,
        };
        let lanes = self.0.iter().flat_map(|waiting| waiting.lanes());
        if !lanes.flat_map(|(_, lane)| lane.iter()).any(is_taken) {
            return;
        }
        let mut held = Vec::new();
        self.take_if(is_taken, &mut held);
        taken.extend(held.into_iter().filter_map(Held::into_taken));
    }

    /// Takes out what is wanted.
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

    /// Gives every message the priority that it has now.
    pub(super) fn prioritise(&mut self, limits: &Limits) {
        self.rebuild(|held, _, queue| {
            let priority = limits.queue.priority(held.message.topic());
            queue.push(held, priority);
        });
    }

    /// Every message with `QoS` 1 and 2 in the order in which they came, if all have the same
    /// priority.
    pub(super) fn kept(&self) -> impl Iterator<Item = &Held> {
        self.iter().filter(|held| held.qos != QoS::AtMostOnce)
    }

    /// Every message.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Held> {
        let lanes = self.0.iter().flat_map(|waiting| waiting.lanes().rev());
        lanes.flat_map(|(_, lane)| lane.iter())
    }

    fn take(&mut self, which: impl FnOnce(&mut Waiting) -> Option<Held>) -> Option<Held> {
        let waiting = self.0.as_mut()?;
        let held = which(waiting)?;
        if !waiting.above.is_empty() {
            waiting.above.retain(|(_, lane)| !lane.is_empty());
        }
        waiting.len -= 1;
        waiting.bytes -= held.bytes();
        if held.qos == QoS::AtMostOnce {
            waiting.fleeting -= 1;
            waiting.fleeting_bytes -= held.bytes();
        }
        if waiting.len == 0 {
            self.0 = None;
        }
        Some(held)
    }

    /// Takes everything out, and `each` puts back what is to stay.
    fn rebuild(&mut self, mut each: impl FnMut(Held, u8, &mut Self)) {
        let Some(mut waiting) = self.0.take() else {
            return;
        };
        for (priority, lane) in waiting.lanes_mut() {
            while let Some(held) = lane.pop() {
                each(held, priority, self);
            }
        }
    }
}

impl Waiting {
    /// From the lowest priority to the highest.
    fn lanes(&self) -> impl DoubleEndedIterator<Item = (u8, &Lane)> {
        let above = self.above.iter();
        core::iter::once((0, &self.normal)).chain(above.map(|(priority, lane)| (*priority, lane)))
    }

    /// As [`Self::lanes`].
    fn lanes_mut(&mut self) -> impl DoubleEndedIterator<Item = (u8, &mut Lane)> {
        let above = self.above.iter_mut();
        core::iter::once((0, &mut self.normal))
            .chain(above.map(|(priority, lane)| (*priority, lane)))
    }

    fn lane(&mut self, priority: u8) -> &mut Lane {
        if priority == 0 {
            return &mut self.normal;
        }
        let found = self.above.binary_search_by_key(&priority, |(of, _)| *of);
        let place = found.unwrap_or_else(|place| {
            self.above.insert(place, (priority, Lane::default()));
            place
        });
        &mut self.above[place].1
    }
}

fn fits(value: usize, max: u32) -> bool {
    u32::try_from(value).is_ok_and(|value| value <= max)
}
