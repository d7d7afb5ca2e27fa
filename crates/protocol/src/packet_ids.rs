//! Allocates packet identifiers for the packets that one side starts: the next free one after the
//! last.

use alloc::vec::Vec;
use core::num::NonZeroU16;

use thrum_codec::PacketId;

/// Allocates packet identifiers in ascending order and skips those in use.
///
/// It remembers how many identifiers after the last are known to be free, so it examines the
/// identifiers in use only after the last one of that run: about once per wrap-around in steady
/// traffic.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PacketIds {
    last: u16,
    free: u16,
}

impl PacketIds {
    /// Continues after an identifier; 0 is the beginning.
    pub(crate) fn after(last: u16) -> Self {
        Self { last, free: 0 }
    }

    /// The last allocated identifier; 0 before the first.
    pub(crate) fn last(self) -> u16 {
        self.last
    }

    /// The next free identifier; `None` if all 65,535 are in use. `in_use` lists them in any order.
    pub(crate) fn next<I>(&mut self, in_use: impl FnOnce() -> I) -> Option<PacketId>
    where
        I: Iterator<Item = PacketId>,
    {
        if self.free == 0 {
            self.find_free_run(in_use())?;
        }
        self.free -= 1;
        self.last = successor(self.last, 1);
        NonZeroU16::new(self.last).map(PacketId)
    }

    /// Moves `last` before the first free identifier and counts the free ones after it.
    fn find_free_run(&mut self, in_use: impl Iterator<Item = PacketId>) -> Option<()> {
        let mut distances: Vec<u16> = in_use.map(|id| distance(self.last, id.0.get())).collect();
        distances.sort_unstable();
        distances.dedup();
        let mut taken = 0;
        for steps in distances {
            if steps > taken + 1 {
                self.last = successor(self.last, taken);
                self.free = steps - taken - 1;
                return Some(());
            }
            taken = steps;
        }
        self.last = successor(self.last, taken);
        self.free = u16::MAX - taken;
        (self.free != 0).then_some(())
    }
}

/// Number of steps from `from` (0 before the first) forward to `to`, 1 to 65,535, where 1 follows
/// 65,535.
fn distance(from: u16, to: u16) -> u16 {
    if to > from {
        to - from
    } else {
        to + (u16::MAX - from)
    }
}

/// The identifier `steps` after `from`.
fn successor(from: u16, steps: u16) -> u16 {
    match from.checked_add(steps) {
        Some(next) => next,
        None => steps - (u16::MAX - from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(value: u16) -> PacketId {
        PacketId(NonZeroU16::new(value).unwrap())
    }

    // [MQTT-2.2.1-3] [MQTT-2.2.1-4] [MQTT3-2.3.1-1] [MQTT3-2.3.1-2] [MQTT3-2.3.1-4]
    #[test]
    fn identifiers_in_use_are_skipped_and_zero_never_appears() {
        let mut ids = PacketIds::default();
        let used: Vec<PacketId> = [1, 2, 3, 7, 65_535].map(id).to_vec();
        let mut given = Vec::new();
        for _ in 0..65_530 {
            given.push(ids.next(|| used.iter().copied()).unwrap().0.get());
        }
        assert_eq!(given[..4], [4, 5, 6, 8]);
        assert_eq!(*given.last().unwrap(), 65_534);
        assert_eq!(ids.next(|| used.iter().copied()).unwrap(), id(4));
    }

    #[test]
    fn no_identifier_is_left_when_all_are_in_use() {
        let mut ids = PacketIds { last: 100, free: 0 };
        assert_eq!(ids.next(|| (1..=u16::MAX).map(id)), None);
        assert_eq!(ids.next(|| (1..u16::MAX).map(id)), Some(id(u16::MAX)));
    }

    #[test]
    fn the_first_identifiers_follow_each_other_from_one() {
        let mut ids = PacketIds::default();
        let none = || core::iter::empty();
        assert_eq!((ids.next(none), ids.next(none)), (Some(id(1)), Some(id(2))));
    }
}
