//! Waiting messages of one priority: first in, first out, those with `QoS` 0 apart so that they can
//! make room.

use alloc::boxed::Box;

use thrum_codec::QoS;

use super::held::Held;
use super::ring::Ring;

/// First in, first out.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// `QoS` 1 and 2.
    kept: Ring<Held>,
    /// How many of `kept` have left.
    left: u64,
    /// `QoS` 0, each behind so many that were ever in `kept`.
    fleeting: Option<Box<Ring<(u64, Held)>>>,
}

impl Lane {
    pub(super) fn is_empty(&self) -> bool {
        self.kept.is_empty() && self.fleeting.is_none()
    }

    /// It is the turn of a message with `QoS` 0.
    pub(super) fn front_is_fleeting(&self) -> bool {
        self.first_fleeting()
            .is_some_and(|(before, _)| *before <= self.left)
    }

    pub(super) fn push(&mut self, held: Held) {
        if held.qos == QoS::AtMostOnce {
            let before = self.left + self.kept.len() as u64;
            let fleeting = self.fleeting.get_or_insert_default();
            fleeting.push_back((before, held));
        } else {
            self.kept.push_back(held);
        }
    }

    /// Takes out the message whose turn it is.
    pub(super) fn pop(&mut self) -> Option<Held> {
        if self.front_is_fleeting() {
            self.pop_fleeting()
        } else {
            self.pop_kept()
        }
    }

    /// Takes out the oldest message with `QoS` 1 or 2.
    pub(super) fn pop_kept(&mut self) -> Option<Held> {
        let held = self.kept.pop_front()?;
        self.left += 1;
        Some(held)
    }

    /// Takes out the oldest message with `QoS` 0.
    pub(super) fn pop_fleeting(&mut self) -> Option<Held> {
        let fleeting = self.fleeting.as_mut()?;
        let (_, held) = fleeting.pop_front()?;
        if fleeting.is_empty() {
            self.fleeting = None;
        }
        Some(held)
    }

    /// Takes out the oldest message of either kind if that is wanted.
    pub(super) fn pop_if(&mut self, mut is_wanted: impl FnMut(&Held) -> bool) -> Option<Held> {
        if self.kept.front().is_some_and(&mut is_wanted) {
            return self.pop_kept();
        }
        let (_, held) = self.first_fleeting()?;
        is_wanted(held).then(|| self.pop_fleeting()).flatten()
    }

    /// Every message, those with `QoS` 0 behind the others.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Held> {
        let fleeting = self.fleeting.iter().flat_map(|list| list.iter());
        self.kept.iter().chain(fleeting.map(|(_, held)| held))
    }

    fn first_fleeting(&self) -> Option<&(u64, Held)> {
        self.fleeting.as_ref()?.front()
    }
}
