//! A node of the trie of filters: 20 bytes, whatever leads to it and lies below it.

use core::num::NonZeroU32;

use crate::index::FilterId;
use crate::levels::LevelId;
use crate::run::Step;
use crate::slab::Slab;

/// Set in numbers of the second of two kinds; a slab stays below 2^30 values, so no number has it
/// of itself.
const SECOND_KIND: u32 = 1 << 31;

/// A node of the trie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeId(NonZeroU32);

impl NodeId {
    const ROOT: Self = Self::from_index(0);
    /// [MQTT-4.7.2-1] [MQTT3-4.7.2-1]: topics and filters that begin with `$` have a root of their
    /// own, so that a filter that begins with a wildcard is never on the way of such a topic.
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
    /// From the parent to here; without meaning at a root.
    pub(crate) way: PackedWay,
    /// Children whose way begins with a text.
    pub(crate) literal: PackedChildren,
    /// The child whose way begins with `+`.
    pub(crate) single_level: Option<NodeId>,
    pub(crate) filters: PackedFilters,
}

impl Node {
    pub(crate) const fn new(parent: NodeId, way: PackedWay) -> Self {
        Self {
            parent,
            way,
            literal: PackedChildren::NONE,
            single_level: None,
            filters: PackedFilters::NONE,
        }
    }

    pub(crate) fn is_unused(&self) -> bool {
        self.literal.is_empty() && self.single_level.is_none() && self.filters.is_empty()
    }

    /// The one child of a node that is there for nothing else.
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
pub(crate) enum Way {
    One(Step),
    /// Which of the runs.
    Run(u32),
}

/// A [`Way`] in four bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PackedWay(u32);

impl PackedWay {
    pub(crate) fn one(step: Step) -> Self {
        Self(step.map_or(0, LevelId::number))
    }

    pub(crate) const fn run(index: u32) -> Self {
        Self(index | SECOND_KIND)
    }

    pub(crate) fn unpack(self) -> Way {
        if self.0 & SECOND_KIND == 0 {
            Way::One(LevelId::from_number(self.0))
        } else {
            Way::Run(self.0 & !SECOND_KIND)
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Children {
    None,
    One(NodeId),
    /// In the table of edges; which of the fans.
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

    pub(crate) const fn several(fan: u32) -> Self {
        Self(fan | SECOND_KIND)
    }

    pub(crate) fn unpack(self) -> Children {
        if self.0 & SECOND_KIND == 0 {
            NonZeroU32::new(self.0).map_or(Children::None, |only| Children::One(NodeId(only)))
        } else {
            Children::Several(self.0 & !SECOND_KIND)
        }
    }
}

/// What is known of several children without a look at the table of edges.
#[derive(Debug)]
pub(crate) struct Fan {
    count: NonZeroU32,
    /// The exclusive or of their numbers: that of the last one when the others have left.
    numbers: u32,
}

impl Fan {
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

    /// Takes a child out that is not the last one; returns the last one if it is alone now.
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
    /// The one that ends there.
    pub(crate) filter: Option<FilterId>,
    /// The one that goes on with `#` and ends.
    pub(crate) multi_level: Option<FilterId>,
}

/// [`Filters`] in four bytes: nothing, one of the two, or where both lie.
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

    /// Needs the slab for those that are two.
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

    /// Frees what [`Self::pack`] took.
    pub(crate) fn free(self, both: &mut Slab<Filters>) {
        if self.0 & Self::KINDS == Self::BOTH {
            both.remove(self.0 >> Self::KIND_BITS);
        }
    }
}

/// Where a filter ends: at a node, or at the `#` below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) node: NodeId,
    pub(crate) is_multi_level: bool,
}

#[cfg(test)]
mod tests {
    use super::{Fan, Node, NodeId, PackedWay};
    use crate::run::Runs;
    use crate::slab::Slab;

    #[test]
    fn sizes_are_those_of_the_costs_documented() {
        let mut nodes = Slab::new();
        nodes.insert(Node::new(NodeId::ROOTS[0], PackedWay::one(None)));
        let mut runs = Runs::default();
        runs.insert(&[None; 3]);
        let mut fans = Slab::new();
        fans.insert(Fan::of_one(NodeId::ROOTS[0]));
        // A slab begins with four slots.
        let bytes = [
            nodes.memory_bytes(),
            runs.memory_bytes(),
            fans.memory_bytes(),
        ];
        assert_eq!(bytes.map(|bytes| bytes / 4), [20, 16, 8]);
    }
}
