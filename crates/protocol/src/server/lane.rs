//! Waiting messages of one priority: first in, first out, those with `QoS` 0 apart so that they can make room.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use thrum_codec::QoS;

use super::held::Held;

/// A ring doubles up to so many messages, and then grows by a quarter: where one message comes to a thousand queues that are
/// alike, they all grow at that moment.
const DOUBLES_UP_TO: usize = 32;

/// First in, first out.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// `QoS` 1 and 2.
    kept: VecDeque<Held>,
    /// How many of `kept` have left.
    left: u64,
    /// `QoS` 0, each behind so many that were ever in `kept`.
    #[expect(
        clippy::box_collection,
        reason = "absent in most queues, so it is one pointer"
    )]
    fleeting: Option<Box<VecDeque<(u64, Held)>>>,
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
            push(self.fleeting.get_or_insert_default(), (before, held));
        } else {
            push(&mut self.kept, held);
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
        give_back(&mut self.kept);
        Some(held)
    }

    /// Takes out the oldest message with `QoS` 0.
    pub(super) fn pop_fleeting(&mut self) -> Option<Held> {
        let fleeting = self.fleeting.as_mut()?;
        let (_, held) = fleeting.pop_front()?;
        if fleeting.is_empty() {
            self.fleeting = None;
        } else {
            give_back(fleeting);
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

fn push<T>(ring: &mut VecDeque<T>, item: T) {
    if ring.len() == ring.capacity() && ring.len() >= DOUBLES_UP_TO {
        ring.reserve_exact(ring.len() / 4);
    }
    ring.push_back(item);
}

/// What leaves a ring is on its way to the client, and takes memory there: half of it free is given back.
#[inline]
fn give_back<T>(ring: &mut VecDeque<T>) {
    let len = ring.len();
    if len >= DOUBLES_UP_TO && len < ring.capacity() / 2 {
        ring.shrink_to(len + len / 4);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_ring_grows_by_a_quarter() {
        let mut ring = VecDeque::new();
        for number in 0..10_000 {
            push(&mut ring, number);
            let (len, capacity) = (ring.len(), ring.capacity());
            assert!(
                len < 64 || capacity <= len + len / 4,
                "{capacity} for {len}"
            );
        }
        assert!(ring.iter().eq(&(0..10_000).collect::<VecDeque<_>>()));
    }

    #[test]
    fn a_long_ring_that_empties_gives_memory_back() {
        let mut ring: VecDeque<_> = (0..10_000).collect();
        for left in (DOUBLES_UP_TO..10_000).rev() {
            assert_eq!(ring.pop_front(), Some(9_999 - left));
            give_back(&mut ring);
            assert_eq!(ring.len(), left);
            assert!(
                ring.capacity() <= 2 * left + 1,
                "{} for {left}",
                ring.capacity()
            );
        }
    }
}
