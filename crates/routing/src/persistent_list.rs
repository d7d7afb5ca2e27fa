//! A list whose copies share memory: changing one of two copies duplicates only a path through a
//! tree, for any length.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use core::slice;

/// Number of position bits that select a child of a node.
const BITS: u32 = 5;
/// Highest number of elements of a leaf, and of children of a branch.
const WIDTH: usize = 1 << BITS;
const MASK: usize = WIDTH - 1;

/// Elements by position; a short list is stored in one slice.
#[derive(Clone, Debug)]
pub(crate) struct PersistentList<T> {
    root: Node<T>,
    /// Number of position bits below those that select a child of the root.
    shift: u32,
    len: usize,
}

#[derive(Clone, Debug)]
enum Node<T> {
    Leaf(Vec<T>),
    Branch(Vec<Arc<Self>>),
}

impl<T> PersistentList<T> {
    pub(crate) const fn new() -> Self {
        Self {
            root: Node::Leaf(Vec::new()),
            shift: 0,
            len: 0,
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn get(&self, at: usize) -> Option<&T> {
        match &self.root {
            Node::Leaf(elements) => elements.get(at),
            Node::Branch(_) => self.leaf(at).get(at & MASK),
        }
    }

    /// The elements at these positions, in order.
    pub(crate) fn range(&self, range: Range<usize>) -> Elements<'_, T> {
        Elements {
            list: self,
            leaf: [].iter(),
            next: range.start,
            end: range.end.min(self.len),
        }
    }

    /// The leaf of a position; empty beyond the end.
    fn leaf(&self, at: usize) -> &[T] {
        let (mut node, mut shift) = (&self.root, self.shift);
        if at >= self.len {
            return &[];
        }
        loop {
            match node {
                Node::Leaf(elements) => return elements,
                Node::Branch(children) => node = &children[(at >> shift) & MASK],
            }
            shift = shift.saturating_sub(BITS);
        }
    }

    /// Approximate number of allocated bytes, including those shared with other copies.
    pub(crate) const fn heap_bytes(&self) -> usize {
        let nodes = self.len / (WIDTH / 2);
        self.len * size_of::<T>() + nodes * (size_of::<Node<T>>() + 3 * size_of::<usize>())
    }
}

impl<T: Clone> PersistentList<T> {
    pub(crate) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        if at >= self.len {
            return None;
        }
        let (mut node, mut shift) = (&mut self.root, self.shift);
        loop {
            match node {
                Node::Leaf(elements) => return elements.get_mut(at & MASK),
                Node::Branch(children) => {
                    node = Arc::make_mut(children.get_mut((at >> shift) & MASK)?);
                }
            }
            shift = shift.saturating_sub(BITS);
        }
    }

    pub(crate) fn push(&mut self, element: T) {
        if self.len == WIDTH << self.shift {
            let root = core::mem::replace(&mut self.root, Node::Leaf(Vec::new()));
            self.root = Node::Branch(vec![Arc::new(root)]);
            self.shift += BITS;
        }
        self.root.push(element, self.len, self.shift);
        self.len += 1;
    }

    pub(crate) fn pop(&mut self) -> Option<T> {
        let popped = self.root.pop()?;
        self.len -= 1;
        while let Node::Branch(children) = &mut self.root
            && children.len() == 1
            && let Some(only) = children.pop()
        {
            self.root = Arc::unwrap_or_clone(only);
            self.shift -= BITS;
        }
        Some(popped)
    }

    /// Exchanges two elements.
    pub(crate) fn swap(&mut self, first: usize, second: usize) {
        if let Node::Leaf(elements) = &mut self.root {
            elements.swap(first, second);
            return;
        }
        let Some(mut carried) = self.get(first).cloned() else {
            return;
        };
        if let Some(place) = self.get_mut(second) {
            core::mem::swap(place, &mut carried);
        }
        if let Some(place) = self.get_mut(first) {
            *place = carried;
        }
    }
}

impl<T: Clone> Node<T> {
    /// Adds an element at position `at`, the length of the list, which has room below this node.
    fn push(&mut self, element: T, at: usize, shift: u32) {
        match self {
            Self::Leaf(elements) => elements.push(element),
            Self::Branch(children) => match children.get_mut((at >> shift) & MASK) {
                Some(child) => Arc::make_mut(child).push(element, at, shift - BITS),
                None => children.push(Arc::new(Self::with_one(element, shift - BITS))),
            },
        }
    }

    fn with_one(element: T, shift: u32) -> Self {
        if shift == 0 {
            Self::Leaf(vec![element])
        } else {
            Self::Branch(vec![Arc::new(Self::with_one(element, shift - BITS))])
        }
    }

    fn pop(&mut self) -> Option<T> {
        match self {
            Self::Leaf(elements) => {
                let popped = elements.pop();
                if elements.len() < elements.capacity() / 4 {
                    elements.shrink_to(elements.len() * 2);
                }
                popped
            }
            Self::Branch(children) => {
                let last = Arc::make_mut(children.last_mut()?);
                let popped = last.pop();
                if last.is_empty() {
                    children.pop();
                }
                popped
            }
        }
    }

    const fn is_empty(&self) -> bool {
        match self {
            Self::Leaf(elements) => elements.is_empty(),
            Self::Branch(children) => children.is_empty(),
        }
    }
}

/// Iterator over a part of a list.
#[derive(Debug)]
pub(crate) struct Elements<'a, T> {
    list: &'a PersistentList<T>,
    leaf: slice::Iter<'a, T>,
    /// The first position after the leaf.
    next: usize,
    end: usize,
}

impl<'a, T> Iterator for Elements<'a, T> {
    type Item = &'a T;

    #[inline]
    fn next(&mut self) -> Option<&'a T> {
        if let Some(element) = self.leaf.next() {
            return Some(element);
        }
        if self.next >= self.end {
            return None;
        }
        let leaf = self.list.leaf(self.next);
        let (from, first) = (self.next & MASK, self.next & !MASK);
        let to = leaf.len().min(self.end - first);
        self.leaf = leaf.get(from..to)?.iter();
        self.next = first + to;
        self.leaf.next()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::collection::vec;
    use proptest::prelude::{Strategy, prop_assert_eq, prop_oneof, proptest};

    use super::PersistentList;

    #[derive(Clone, Copy, Debug)]
    enum Change {
        Push(usize),
        Pop(usize),
        Swap(usize, usize),
        Set(usize),
        Copy,
    }

    fn change() -> impl Strategy<Value = Change> {
        let any = || 0..5_000_usize;
        prop_oneof![
            (0..600_usize).prop_map(Change::Push),
            (0..600_usize).prop_map(Change::Pop),
            (any(), any()).prop_map(|(first, second)| Change::Swap(first, second)),
            any().prop_map(Change::Set),
            proptest::strategy::Just(Change::Copy),
        ]
    }

    fn apply(list: &mut PersistentList<usize>, plain: &mut Vec<usize>, change: Change) {
        match change {
            Change::Push(count) => {
                for number in plain.len()..plain.len() + count {
                    list.push(number);
                    plain.push(number);
                }
            }
            Change::Pop(count) => {
                for _ in 0..count {
                    assert_eq!(list.pop(), plain.pop());
                }
            }
            Change::Swap(first, second) if !plain.is_empty() => {
                let (first, second) = (first % plain.len(), second % plain.len());
                list.swap(first, second);
                plain.swap(first, second);
            }
            Change::Set(at) if !plain.is_empty() => {
                let at = at % plain.len();
                *list.get_mut(at).unwrap() += 1;
                plain[at] += 1;
            }
            Change::Swap(..) | Change::Set(_) | Change::Copy => {}
        }
    }

    fn check(list: &PersistentList<usize>, plain: &[usize]) {
        assert_eq!(list.len(), plain.len());
        assert_eq!(list.get(plain.len()), None);
        let gotten: Vec<_> = (0..plain.len()).filter_map(|at| list.get(at)).collect();
        assert_eq!(gotten, plain.iter().collect::<Vec<_>>());
        for (start, end) in [(0, plain.len()), (1, 40), (31, 33), (700, 5_000), (9, 2)] {
            let expected = plain.iter().take(end).skip(start).collect::<Vec<_>>();
            assert_eq!(list.range(start..end).collect::<Vec<_>>(), expected);
        }
    }

    proptest! {
        #[test]
        fn a_list_equals_a_vector_and_its_copies_do_not_change(
            changes in vec(change(), 1..40),
        ) {
            let (mut list, mut plain) = (PersistentList::new(), Vec::new());
            let mut copies = Vec::new();
            for change in changes {
                if matches!(change, Change::Copy) {
                    copies.push((list.clone(), plain.clone()));
                }
                apply(&mut list, &mut plain, change);
                check(&list, &plain);
            }
            for (list, plain) in &copies {
                check(list, plain);
            }
            prop_assert_eq!(list.len(), plain.len());
        }
    }

    #[test]
    fn a_leaf_gives_memory_back_when_three_quarters_are_empty() {
        let mut list = PersistentList::new();
        (0..16).for_each(|number| list.push(number));
        let capacity = |list: &PersistentList<i32>| match &list.root {
            super::Node::Leaf(elements) => elements.capacity(),
            super::Node::Branch(_) => 0,
        };
        let full = capacity(&list);
        assert!(full >= 16);
        while list.len() > full / 4 {
            list.pop();
        }
        assert_eq!(capacity(&list), full);
        list.pop();
        assert_eq!(capacity(&list), 2 * list.len());
    }
}
