//! A node of the filter trie: 20 bytes in all cases.

use core::num::NonZeroU32;

use crate::index::FilterId;
use crate::levels::LevelId;
use crate::run::Step;
use crate::slab::Slab;

/// Flag for numbers of the second of two kinds; a slab has fewer than 2^30 values, so no plain
/// number has it.
const SECOND_KIND: u32 = 1 << 31;

/// A node of the trie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeId(NonZeroU32);

impl NodeId {
    const ROOT: Self = Self::from_index(0);
    /// [MQTT-4.7.2-1] [MQTT3-4.7.2-1]: topics and filters that start with `$` have their own root,
    /// so that a filter that starts with a wildcard is never on the path of such a topic.
    const DOLLAR_ROOT: Self = Self::from_index(1);

    pub(crate) const ROOTS: [Self; 2] = [Self::ROOT, Self::DOLLAR_ROOT];

    pub(crate) fn root_of(text: &str) -> Self {
        if text.starts_with('$') {
            Self::DOLLAR_ROOT
        } else {
            Self::ROOT
        }
    }

    pub(crate) fn is_root(self) -> bool {
        Self::ROOTS.contains(&self)
    }

    pub(crate) const fn from_index(index: u32) -> Self {
        Self(NonZeroU32::MIN.saturating_add(index))
    }

    pub(crate) const fn index(self) -> u32 {
        self.0.get() - 1
    }
}

#[derive(Debug)]
pub(crate) struct Node {
    /// A root is its own parent.
    pub(crate) parent: NodeId,
    /// The steps from the parent to this node; undefined at a root.
    pub(crate) label: PackedLabel,
    /// Children whose label starts with a text.
    pub(crate) literal: PackedChildren,
    /// The child whose label starts with `+`.
    pub(crate) single_level: Option<NodeId>,
    pub(crate) filters: PackedFilters,
}

impl Node {
    pub(crate) const fn new(parent: NodeId, label: PackedLabel) -> Self {
        Self {
            parent,
            label,
            literal: PackedChildren::NONE,
            single_level: None,
            filters: PackedFilters::NONE,
        }
    }

    pub(crate) fn is_unused(&self) -> bool {
        self.literal.is_empty() && self.single_level.is_none() && self.filters.is_empty()
    }

    /// The child of a node that has exactly one and no filter.
    pub(crate) fn only_use(&self) -> Option<NodeId> {
        match (self.literal.unpack(), self.single_level) {
            _ if !self.filters.is_empty() => None,
            (Children::One(only), None) => Some(only),
            (Children::None, only) => only,
            _ => None,
        }
    }
}

/// The steps from a parent to a node, at least one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Label {
    One(Step),
    /// Number of the run.
    Run(u32),
}

/// A [`Label`] in four bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PackedLabel(u32);

impl PackedLabel {
    pub(crate) fn one(step: Step) -> Self {
        Self(step.map_or(0, LevelId::number))
    }

    pub(crate) const fn run(index: u32) -> Self {
        Self(index | SECOND_KIND)
    }

    pub(crate) fn unpack(self) -> Label {
        if self.0 & SECOND_KIND == 0 {
            Label::One(LevelId::from_number(self.0))
        } else {
            Label::Run(self.0 & !SECOND_KIND)
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Children {
    None,
    One(NodeId),
    /// The children are in the table of edges; the number is that of the child set.
    Several(u32),
}

/// [`Children`] in four bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PackedChildren(u32);

impl PackedChildren {
    pub(crate) const NONE: Self = Self(0);

    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) const fn one(only: NodeId) -> Self {
        Self(only.0.get())
    }

    pub(crate) const fn several(child_set: u32) -> Self {
        Self(child_set | SECOND_KIND)
    }

    pub(crate) fn unpack(self) -> Children {
        if self.0 & SECOND_KIND == 0 {
            NonZeroU32::new(self.0).map_or(Children::None, |only| Children::One(NodeId(only)))
        } else {
            Children::Several(self.0 & !SECOND_KIND)
        }
    }
}

/// The properties of several children that are known without the table of edges.
#[derive(Debug)]
pub(crate) struct ChildSet {
    count: NonZeroU32,
    /// The exclusive or of their numbers, which is the number of the last child after the others
    /// were removed.
    numbers: u32,
}

impl ChildSet {
    pub(crate) const fn of_one(child: NodeId) -> Self {
        Self {
            count: NonZeroU32::MIN,
            numbers: child.0.get(),
        }
    }

    pub(crate) const fn add(&mut self, child: NodeId) {
        self.count = self.count.saturating_add(1);
        self.numbers ^= child.0.get();
    }

    /// Removes a child that is not the last one; returns the last one if it is the only one now.
    pub(crate) fn remove(&mut self, child: NodeId) -> Option<NodeId> {
        self.numbers ^= child.0.get();
        self.count = NonZeroU32::new(self.count.get() - 1)?;
        if self.count == NonZeroU32::MIN {
            NonZeroU32::new(self.numbers).map(NodeId)
        } else {
            None
        }
    }
}

/// The filters of a node.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Filters {
    /// The filter that ends at the node.
    pub(crate) filter: Option<FilterId>,
    /// The filter that continues with `#` and ends.
    pub(crate) multi_level: Option<FilterId>,
}

/// [`Filters`] in four bytes: none, one of the two, or the position of both.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PackedFilters(u32);

impl PackedFilters {
    pub(crate) const NONE: Self = Self(0);

    const FILTER: u32 = 1;
    const MULTI_LEVEL: u32 = 2;
    const BOTH: u32 = 3;
    const KIND_BITS: u32 = 2;
    const KINDS: u32 = (1 << Self::KIND_BITS) - 1;

    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Packs the filters; two of them need the slab.
    pub(crate) fn pack(filters: Filters, both: &mut Slab<Filters>) -> Self {
        let (index, kind) = match (filters.filter, filters.multi_level) {
            (None, None) => return Self::NONE,
            (Some(filter), None) => (filter.wildcard_index(), Self::FILTER),
            (None, Some(filter)) => (filter.wildcard_index(), Self::MULTI_LEVEL),
            (Some(_), Some(_)) => (both.insert(filters), Self::BOTH),
        };
        Self(index << Self::KIND_BITS | kind)
    }

    pub(crate) fn unpack(self, both: &Slab<Filters>) -> Filters {
        let index = self.0 >> Self::KIND_BITS;
        let mut filters = Filters::default();
        match self.0 & Self::KINDS {
            Self::FILTER => filters.filter = Some(FilterId::of_wildcard(index)),
            Self::MULTI_LEVEL => filters.multi_level = Some(FilterId::of_wildcard(index)),
            Self::BOTH => filters = both[index],
            _ => {}
        }
        filters
    }

    /// Frees the slot that [`Self::pack`] used.
    pub(crate) fn free(self, both: &mut Slab<Filters>) {
        if self.0 & Self::KINDS == Self::BOTH {
            both.remove(self.0 >> Self::KIND_BITS);
        }
    }
}

/// The end of a filter: a node, or the `#` below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) node: NodeId,
    pub(crate) is_multi_level: bool,
}

#[cfg(test)]
mod tests {
    use super::{ChildSet, Node, NodeId, PackedLabel};
    use crate::run::Runs;
    use crate::slab::Slab;

    #[test]
    fn sizes_match_the_documented_costs() {
        let mut nodes = Slab::new();
        nodes.insert(Node::new(NodeId::ROOTS[0], PackedLabel::one(None)));
        let mut runs = Runs::default();
        runs.insert(&[None; 3]);
        let mut child_sets = Slab::new();
        child_sets.insert(ChildSet::of_one(NodeId::ROOTS[0]));
        // A slab starts with four slots.
        let bytes = [
            nodes.memory_bytes(),
            runs.memory_bytes(),
            child_sets.memory_bytes(),
        ];
        assert_eq!(bytes.map(|bytes| bytes / 4), [20, 16, 8]);
    }
}
