//! Positions by hash; copies share memory, like those of a
//! [`PersistentList`](crate::persistent_list::PersistentList).

use alloc::sync::Arc;
use alloc::vec::Vec;

/// Number of hash bits that select a child of a branch.
const BITS: u32 = 4;
const WIDTH: usize = 1 << BITS;
const MASK: u32 = (1 << BITS) - 1;
/// Highest number of entries of a leaf, unless their hashes are equal.
const LEAF_LEN_MAX: usize = 32;
/// A branch with at most this many entries becomes a leaf.
const MERGE_LEN: usize = LEAF_LEN_MAX / 2;

/// A set of positions by hash; the caller knows the elements at them.
#[derive(Clone, Debug)]
pub(crate) struct Positions {
    root: Node,
}

#[derive(Clone, Debug)]
enum Node {
    Leaf(Vec<Entry>),
    Branch {
        children: Vec<Arc<Self>>,
        len: usize,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    hash: u32,
    position: u32,
}

impl Positions {
    pub(crate) const fn new() -> Self {
        Self {
            root: Node::Leaf(Vec::new()),
        }
    }

    /// The position with that hash for which `is_it` returns true.
    pub(crate) fn find(&self, hash: u32, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let (mut node, mut shift) = (&self.root, 0);
        loop {
            match node {
                Node::Leaf(entries) => {
                    let mut alike = entries.iter().filter(|entry| entry.hash == hash);
                    let found = alike.find(|entry| is_it(entry.position))?;
                    return Some(found.position);
                }
                Node::Branch { children, .. } => node = &children[child_of(hash, shift)],
            }
            shift += BITS;
        }
    }

    /// Adds a position; the caller ensures that it is not in the set.
    pub(crate) fn insert(&mut self, hash: u32, position: u32) {
        self.root.insert(Entry { hash, position }, 0);
    }

    /// Replaces a position after its element moved to another.
    pub(crate) fn replace(&mut self, hash: u32, from: u32, to: u32) {
        let (mut node, mut shift) = (&mut self.root, 0);
        loop {
            match node {
                Node::Leaf(entries) => {
                    let old = Entry {
                        hash,
                        position: from,
                    };
                    let mut entries = entries.iter_mut();
                    let known = entries.find(|entry| **entry == old);
                    return known.map_or((), |entry| entry.position = to);
                }
                Node::Branch { children, .. } => {
                    node = Arc::make_mut(&mut children[child_of(hash, shift)]);
                }
            }
            shift += BITS;
        }
    }

    pub(crate) fn remove(&mut self, hash: u32, position: u32) {
        self.root.remove(Entry { hash, position }, 0);
    }

    /// Approximate number of allocated bytes per entry.
    pub(crate) const fn entry_heap_bytes() -> usize {
        2 * size_of::<Entry>()
    }
}

impl Node {
    fn insert(&mut self, entry: Entry, shift: u32) {
        match self {
            Self::Leaf(entries) => {
                entries.push(entry);
                if entries.len() > LEAF_LEN_MAX && shift < u32::BITS {
                    *self = Self::split(entries, shift);
                }
            }
            Self::Branch { children, len } => {
                *len += 1;
                let child = &mut children[child_of(entry.hash, shift)];
                Arc::make_mut(child).insert(entry, shift + BITS);
            }
        }
    }

    fn split(entries: &[Entry], shift: u32) -> Self {
        let child = |number| {
            let is_in = |entry: &&Entry| child_of(entry.hash, shift) == number;
            Arc::new(Self::Leaf(entries.iter().filter(is_in).copied().collect()))
        };
        Self::Branch {
            children: (0..WIDTH).map(child).collect(),
            len: entries.len(),
        }
    }

    fn remove(&mut self, entry: Entry, shift: u32) {
        match self {
            Self::Leaf(entries) => {
                let found = entries.iter().position(|known| *known == entry);
                if let Some(found) = found {
                    entries.swap_remove(found);
                }
            }
            Self::Branch { children, len } => {
                *len -= 1;
                let child = &mut children[child_of(entry.hash, shift)];
                Arc::make_mut(child).remove(entry, shift + BITS);
                if *len <= MERGE_LEN {
                    let mut entries = Vec::with_capacity(LEAF_LEN_MAX);
                    self.collect(&mut entries);
                    *self = Self::Leaf(entries);
                }
            }
        }
    }

    fn collect(&self, into: &mut Vec<Entry>) {
        match self {
            Self::Leaf(entries) => into.extend(entries),
            Self::Branch { children, .. } => children.iter().for_each(|child| child.collect(into)),
        }
    }
}

const fn child_of(hash: u32, shift: u32) -> usize {
    ((hash >> shift) & MASK) as usize
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;

    use proptest::collection::vec;
    use proptest::prelude::{prop_assert_eq, proptest};

    use super::Positions;

    /// Hashes with many duplicates, including equal lower bits.
    fn hash(number: u32) -> u32 {
        match number % 3 {
            0 => number.wrapping_mul(0x9E37_79B9),
            1 => number << 28,
            _ => 7,
        }
    }

    fn check(positions: &Positions, plain: &BTreeSet<u32>) {
        for number in 0..200 {
            let found = positions.find(hash(number), |position| position == number);
            assert_eq!(found, plain.contains(&number).then_some(number));
        }
    }

    proptest! {
        #[test]
        fn positions_equal_a_set_and_their_copies_do_not_change(
            changes in vec((0..200_u32, 0..4_u8), 1..600),
        ) {
            let (mut positions, mut plain) = (Positions::new(), BTreeSet::new());
            let mut copies = Vec::new();
            for (number, kind) in changes {
                if kind == 0 {
                    if copies.len() < 4 {
                        copies.push((positions.clone(), plain.clone()));
                    }
                } else if plain.remove(&number) {
                    positions.remove(hash(number), number);
                } else {
                    plain.insert(number);
                    // A temporary position tests the replacement.
                    positions.insert(hash(number), 1_000);
                    positions.replace(hash(number), 1_000, number);
                }
            }
            check(&positions, &plain);
            for (positions, plain) in &copies {
                check(positions, plain);
            }
            for number in plain {
                positions.remove(hash(number), number);
            }
            let mut left = Vec::new();
            positions.root.collect(&mut left);
            prop_assert_eq!(left.len(), 0);
        }
    }

    #[test]
    fn a_full_leaf_splits_and_a_branch_with_few_entries_becomes_a_leaf() {
        let spread = |number: u32| number.wrapping_mul(0x9E37_79B9);
        let is_leaf = |positions: &Positions| matches!(positions.root, super::Node::Leaf(_));
        let mut positions = Positions::new();
        for number in 0..32 {
            positions.insert(spread(number), number);
        }
        assert!(is_leaf(&positions));
        positions.insert(spread(32), 32);
        assert!(!is_leaf(&positions));
        for number in 0..16 {
            positions.remove(spread(number), number);
        }
        assert!(!is_leaf(&positions), "17 are left");
        positions.remove(spread(16), 16);
        assert!(is_leaf(&positions));
        for number in 0..33 {
            let found = positions.find(spread(number), |position| position == number);
            assert_eq!(found, (number > 16).then_some(number));
        }
    }

    #[test]
    fn entries_of_one_hash_stay_in_one_leaf() {
        let mut positions = Positions::new();
        for number in 0..100 {
            positions.insert(7, number);
        }
        let found = (0..100).filter(|number| positions.find(7, |at| at == *number).is_some());
        assert_eq!(found.count(), 100);
        assert_eq!(positions.find(7 + (1 << 28), |_| true), None);
        (0..100).for_each(|number| positions.remove(7, number));
        assert_eq!(positions.find(7, |_| true), None);
    }

    #[test]
    fn each_level_takes_four_bits_of_the_hash() {
        let children = [0, 4, 28].map(|shift| super::child_of(0x7000_0ABC, shift));
        assert_eq!(children, [0xC, 0xB, 7]);
    }
}
