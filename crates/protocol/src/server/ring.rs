//! A first-in, first-out list in blocks.
//!
//! Its memory follows its length: a shrinking list frees blocks that another list can use, whereas
//! a contiguous list would keep its capacity or be copied to a smaller one. A thousand queues that
//! grow at the same time use only the memory of their contents.

use alloc::collections::VecDeque;

/// Items of a block; a block of messages has 1.5 KiB.
const BLOCK: usize = 32;

/// Every block except the first and the last is full. No block is empty except a single one, which
/// a list keeps that is filled and emptied repeatedly.
#[derive(Debug)]
pub(super) struct Ring<T> {
    blocks: VecDeque<VecDeque<T>>,
}

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Self {
            blocks: VecDeque::new(),
        }
    }
}

impl<T> Ring<T> {
    pub(super) fn is_empty(&self) -> bool {
        self.front().is_none()
    }

    pub(super) fn len(&self) -> usize {
        match (self.blocks.front(), self.blocks.back()) {
            (Some(front), Some(back)) => match self.blocks.len() - 1 {
                0 => front.len(),
                behind => front.len() + (behind - 1) * BLOCK + back.len(),
            },
            _ => 0,
        }
    }

    pub(super) fn push_back(&mut self, item: T) {
        if let Some(block) = self.blocks.back_mut()
            && block.len() < BLOCK
        {
            block.push_back(item);
        } else {
            self.push_block(item);
        }
    }

    /// The first block grows with its items, because most lists are short.
    #[inline(never)]
    fn push_block(&mut self, item: T) {
        let mut block = VecDeque::new();
        if self.blocks.is_empty() {
            self.blocks.reserve_exact(1);
        } else {
            block.reserve_exact(BLOCK);
        }
        block.push_back(item);
        self.blocks.push_back(block);
    }

    pub(super) fn pop_front(&mut self) -> Option<T> {
        let block = self.blocks.front_mut()?;
        let item = block.pop_front()?;
        if block.is_empty() && self.blocks.len() > 1 {
            self.drop_block();
        }
        Some(item)
    }

    /// The list of blocks shrinks too, so rarely that the cost is negligible.
    #[inline(never)]
    fn drop_block(&mut self) {
        self.blocks.pop_front();
        let len = self.blocks.len();
        if 4 * len < self.blocks.capacity() {
            self.blocks.shrink_to(2 * len);
        }
    }

    pub(super) fn front(&self) -> Option<&T> {
        self.blocks.front()?.front()
    }

    pub(super) fn get(&self, place: usize) -> Option<&T> {
        let (block, place) = self.find(place)?;
        self.blocks.get(block)?.get(place)
    }

    pub(super) fn get_mut(&mut self, place: usize) -> Option<&mut T> {
        let (block, place) = self.find(place)?;
        self.blocks.get_mut(block)?.get_mut(place)
    }

    /// The block of a position, and the index in that block.
    fn find(&self, place: usize) -> Option<(usize, usize)> {
        let first = self.blocks.front()?.len();
        Some(match place.checked_sub(first) {
            None => (0, place),
            Some(behind) => (1 + behind / BLOCK, behind % BLOCK),
        })
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.blocks.iter().flatten()
    }

    /// Keeps the items that `is_wanted` selects, at the cost of a new list.
    pub(super) fn retain(&mut self, mut is_wanted: impl FnMut(&T) -> bool) {
        let before = core::mem::take(self);
        let items = before.blocks.into_iter().flatten();
        *self = items.filter(|item| is_wanted(item)).collect();
    }
}

impl<T> FromIterator<T> for Ring<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut ring = Self::default();
        for item in items {
            ring.push_back(item);
        }
        ring
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    impl<T> Ring<T> {
        /// Number of items with allocated memory.
        fn capacity(&self) -> usize {
            self.blocks.iter().map(VecDeque::capacity).sum()
        }
    }

    proptest! {
        #[test]
        fn a_ring_behaves_like_a_contiguous_list(steps in prop::collection::vec(0..8_u8, 0..600)) {
            let (mut ring, mut list) = (Ring::default(), VecDeque::new());
            for (number, step) in steps.into_iter().enumerate() {
                // On average it grows in the first half and empties in the second.
                match step {
                    0..=2 if number > 300 => prop_assert_eq!(ring.pop_front(), list.pop_front()),
                    0 => prop_assert_eq!(ring.pop_front(), list.pop_front()),
                    1 if number % 50 == 0 => {
                        ring.retain(|item| item % 3 > 0);
                        list.retain(|item| item % 3 > 0);
                    }
                    2 => {
                        let place = number % (list.len() + 2);
                        prop_assert_eq!(ring.get_mut(place), list.get_mut(place));
                        prop_assert_eq!(ring.get(place), list.get(place));
                    }
                    _ => {
                        ring.push_back(number);
                        list.push_back(number);
                    }
                }
                prop_assert_eq!(ring.len(), list.len());
                prop_assert_eq!(ring.is_empty(), list.is_empty());
                prop_assert_eq!(ring.front(), list.front());
            }
            prop_assert!(ring.iter().eq(&list));
            let places: Vec<_> = (0..list.len()).filter_map(|place| ring.get(place)).collect();
            prop_assert!(places.into_iter().eq(&list));
        }
    }

    #[test]
    fn memory_is_proportional_to_the_length() {
        let mut ring = Ring::default();
        let check = |ring: &Ring<u32>| {
            assert!(ring.capacity() <= ring.len() + 2 * BLOCK);
            assert!(ring.blocks.capacity() <= 4 * ring.blocks.len().max(1));
        };
        for number in 0..10_000 {
            ring.push_back(number);
            check(&ring);
        }
        while ring.pop_front().is_some() {
            check(&ring);
        }
    }

    #[test]
    fn a_list_that_is_filled_and_emptied_repeatedly_keeps_its_block() {
        let mut ring = Ring::default();
        ring.push_back(1);
        let capacity = ring.capacity();
        for number in 0..100 {
            assert_eq!(ring.pop_front(), Some(number.max(1)));
            ring.push_back(number + 1);
            assert_eq!(ring.capacity(), capacity);
        }
    }
}
