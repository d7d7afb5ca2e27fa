//! Values at stable small indices; vacant slots are reused before the slab grows.

use alloc::vec::Vec;
use core::ops;

/// Marks the end of the chain of vacant slots.
const END: u32 = u32::MAX;

/// A vector with vacant slots. Its memory is freed with the last value.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    slots: Vec<Slot<T>>,
    vacant: u32,
    live: usize,
}

#[derive(Debug)]
enum Slot<T> {
    Live(T),
    Vacant(u32),
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Slab<T> {
    pub(crate) const fn new() -> Self {
        Self {
            slots: Vec::new(),
            vacant: END,
            live: 0,
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.live
    }

    pub(crate) fn insert(&mut self, value: T) -> u32 {
        self.live += 1;
        if let Some(slot) = self.slots.get_mut(self.vacant as usize) {
            let index = self.vacant;
            if let Slot::Vacant(next) = *slot {
                self.vacant = next;
            }
            *slot = Slot::Live(value);
            return index;
        }
        let index = u32::try_from(self.slots.len()).unwrap_or(END);
        // Three quarters of the range stay unused, so that an id may contain two more bits.
        assert!(index < END / 4 - 1, "more than 2^30 values in one index");
        self.slots.push(Slot::Live(value));
        index
    }

    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        match self.slots.get(index as usize) {
            Some(Slot::Live(value)) => Some(value),
            Some(Slot::Vacant(_)) | None => None,
        }
    }

    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        match self.slots.get_mut(index as usize) {
            Some(Slot::Live(value)) => Some(value),
            Some(Slot::Vacant(_)) | None => None,
        }
    }

    pub(crate) fn remove(&mut self, index: u32) -> Option<T> {
        let slot = self.slots.get_mut(index as usize)?;
        if matches!(slot, Slot::Vacant(_)) {
            return None;
        }
        let Slot::Live(value) = core::mem::replace(slot, Slot::Vacant(self.vacant)) else {
            return None;
        };
        self.vacant = index;
        self.live -= 1;
        if self.live == 0 {
            *self = Self::new();
        }
        Some(value)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().filter_map(|slot| match slot {
            Slot::Live(value) => Some(value),
            Slot::Vacant(_) => None,
        })
    }

    pub(crate) const fn memory_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot<T>>()
    }
}

impl<T> ops::Index<u32> for Slab<T> {
    type Output = T;

    fn index(&self, index: u32) -> &T {
        self.get(index)
            .expect("an id inside the crate refers to an occupied slot")
    }
}

impl<T> ops::IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, index: u32) -> &mut T {
        self.get_mut(index)
            .expect("an id inside the crate refers to an occupied slot")
    }
}

#[cfg(test)]
mod tests {
    use super::Slab;

    #[test]
    fn vacant_slots_are_reused_and_have_no_value() {
        let mut slab = Slab::new();
        let indices = ["a", "b", "c"].map(|value| slab.insert(value));
        assert_eq!(slab.remove(indices[1]), Some("b"));
        assert_eq!(
            (slab.remove(indices[1]), slab.get(indices[1])),
            (None, None)
        );
        assert_eq!(slab.remove(indices[0]), Some("a"));
        assert_eq!(slab.iter().collect::<alloc::vec::Vec<_>>(), [&"c"]);
        let again = [slab.insert("d"), slab.insert("e")];
        assert_eq!(again, [indices[0], indices[1]]);
        assert_eq!((slab.len(), slab.get(indices[1])), (3, Some(&"e")));
        for index in indices {
            slab.remove(index);
        }
        assert_eq!(slab.memory_bytes(), 0);
    }
}
