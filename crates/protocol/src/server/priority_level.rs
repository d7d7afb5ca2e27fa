//! Queued messages of one priority: first in, first out, with `QoS` 0 in a separate list so that
//! these can be dropped first.

use alloc::boxed::Box;

use thrum_codec::QoS;

use super::held::Held;
use super::ring::Ring;

/// Queued messages of one priority, first in, first out.
#[derive(Debug, Default)]
pub(super) struct PriorityLevel {
    /// Messages with `QoS` 1 and 2.
    kept: Ring<Held>,
    /// Number of messages that have been removed from `kept`.
    left: u64,
    /// Messages with `QoS` 0, each with the number of messages ever added to `kept` before it.
    qos0: Option<Box<Ring<(u64, Held)>>>,
}

impl PriorityLevel {
    pub(super) fn is_empty(&self) -> bool {
        self.kept.is_empty() && self.qos0.is_none()
    }

    /// Whether the next message has `QoS` 0.
    pub(super) fn front_is_qos0(&self) -> bool {
        self.first_qos0()
            .is_some_and(|(before, _)| *before <= self.left)
    }

    pub(super) fn push(&mut self, held: Held) {
        if held.qos == QoS::AtMostOnce {
            let before = self.left + self.kept.len() as u64;
            let qos0 = self.qos0.get_or_insert_default();
            qos0.push_back((before, held));
        } else {
            self.kept.push_back(held);
        }
    }

    /// Removes the next message.
    pub(super) fn pop(&mut self) -> Option<Held> {
        if self.front_is_qos0() {
            self.pop_qos0()
        } else {
            self.pop_kept()
        }
    }

    /// Removes the oldest message with `QoS` 1 or 2.
    pub(super) fn pop_kept(&mut self) -> Option<Held> {
        let held = self.kept.pop_front()?;
        self.left += 1;
        Some(held)
    }

    /// Removes the oldest message with `QoS` 0.
    pub(super) fn pop_qos0(&mut self) -> Option<Held> {
        let qos0 = self.qos0.as_mut()?;
        let (_, held) = qos0.pop_front()?;
        if qos0.is_empty() {
            self.qos0 = None;
        }
        Some(held)
    }

    /// Removes the oldest message of either kind if `is_wanted` selects it.
    pub(super) fn pop_if(&mut self, mut is_wanted: impl FnMut(&Held) -> bool) -> Option<Held> {
        if self.kept.front().is_some_and(&mut is_wanted) {
            return self.pop_kept();
        }
        let (_, held) = self.first_qos0()?;
        is_wanted(held).then(|| self.pop_qos0()).flatten()
    }

    /// The oldest message of either kind.
    pub(super) fn oldest(&self) -> impl Iterator<Item = &Held> {
        let qos0 = self.first_qos0().map(|(_, held)| held);
        self.kept.front().into_iter().chain(qos0)
    }

    /// Every message, those with `QoS` 0 last.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Held> {
        let qos0 = self.qos0.iter().flat_map(|list| list.iter());
        self.kept.iter().chain(qos0.map(|(_, held)| held))
    }

    fn first_qos0(&self) -> Option<&(u64, Held)> {
        self.qos0.as_ref()?.front()
    }
}
