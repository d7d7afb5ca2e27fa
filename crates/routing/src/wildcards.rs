//! The filters with wildcards: a trie of topic levels in one arena, with one table for all edges.
//!
//! Cost of a match: each node is reached from its parent only, so a topic visits at most as many
//! nodes as filters share a beginning with it (two branches a level, never more than the trie has:
//! what somebody makes a match cost, he has paid for with subscriptions), and nothing depends on the number of levels below the deepest such filter. The walk keeps no
//! stack: it goes back by parent links, so a topic of 65,535 levels costs no memory.

use alloc::string::String;
use alloc::vec::Vec;
use core::num::NonZeroU32;

use crate::hashing::{Hashing, IdTable};
use crate::index::FilterId;
use crate::levels::{LevelId, Levels};
use crate::slab::Slab;
use crate::topic_walk::TopicWalk;

/// A node of the trie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeId(NonZeroU32);

impl NodeId {
    const ROOT: Self = Self::from_index(0);
    /// [MQTT-4.7.2-1] [MQTT3-4.7.2-1]: topics and filters that begin with `$` have a root of their
    /// own, so that a filter that begins with a wildcard is never on the way of such a topic.
    const DOLLAR_ROOT: Self = Self::from_index(1);

    const ROOTS: [Self; 2] = [Self::ROOT, Self::DOLLAR_ROOT];

    fn root_of(text: &str) -> Self {
        if text.starts_with('$') {
            Self::DOLLAR_ROOT
        } else {
            Self::ROOT
        }
    }

    fn is_root(self) -> bool {
        Self::ROOTS.contains(&self)
    }

    const fn from_index(index: u32) -> Self {
        Self(NonZeroU32::MIN.saturating_add(index))
    }

    const fn index(self) -> u32 {
        self.0.get() - 1
    }
}

/// Where a filter ends: at a node, or at the `#` below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End {
    node: NodeId,
    is_multi_level: bool,
}

#[derive(Debug)]
struct Node {
    /// A root is its own parent.
    parent: NodeId,
    /// Nothing at a root and at a `+`.
    level: Option<LevelId>,
    /// Children in the table of edges; the one of `+` is not counted.
    edges: u32,
    single_level: Option<NodeId>,
    /// The filter that ends here.
    filter: Option<FilterId>,
    /// The filter that goes on with `#` and ends.
    multi_level: Option<FilterId>,
}

impl Node {
    const fn new(parent: NodeId, level: Option<LevelId>) -> Self {
        Self {
            parent,
            level,
            edges: 0,
            single_level: None,
            filter: None,
            multi_level: None,
        }
    }

    const fn is_unused(&self) -> bool {
        self.edges == 0
            && self.single_level.is_none()
            && self.filter.is_none()
            && self.multi_level.is_none()
    }
}

/// Filters with wildcards, each once.
#[derive(Debug)]
pub(crate) struct Wildcards {
    hashing: Hashing,
    levels: Levels,
    nodes: Slab<Node>,
    edges: IdTable,
}

impl Wildcards {
    pub(crate) fn new(hashing: Hashing) -> Self {
        let mut nodes = Slab::new();
        for root in NodeId::ROOTS {
            nodes.insert(Node::new(root, None));
        }
        Self {
            hashing,
            levels: Levels::new(hashing),
            nodes,
            edges: IdTable::default(),
        }
    }

    pub(crate) fn find(&self, filter: &str) -> Option<FilterId> {
        let mut node = NodeId::root_of(filter);
        for level in filter.split('/') {
            node = match level {
                "#" => return self.nodes[node.index()].multi_level,
                "+" => self.nodes[node.index()].single_level?,
                text => self.child(node, self.levels.find(text.as_bytes())?)?,
            };
        }
        self.nodes[node.index()].filter
    }

    fn child(&self, parent: NodeId, level: LevelId) -> Option<NodeId> {
        let hash = self.hashing.pair(parent.index(), level.number());
        let found = self.edges.find(hash, |index| {
            let node = &self.nodes[index];
            node.parent == parent && node.level == Some(level)
        })?;
        Some(NodeId::from_index(found))
    }

    /// Makes the way to a filter that is not here yet.
    pub(crate) fn insert(&mut self, filter: &str) -> End {
        let mut node = NodeId::root_of(filter);
        for level in filter.split('/') {
            node = match level {
                "#" => {
                    return End {
                        node,
                        is_multi_level: true,
                    };
                }
                "+" => self.single_level_child(node),
                text => self.literal_child(node, text),
            };
        }
        End {
            node,
            is_multi_level: false,
        }
    }

    fn single_level_child(&mut self, parent: NodeId) -> NodeId {
        if let Some(node) = self.nodes[parent.index()].single_level {
            return node;
        }
        let node = NodeId::from_index(self.nodes.insert(Node::new(parent, None)));
        self.nodes[parent.index()].single_level = Some(node);
        node
    }

    fn literal_child(&mut self, parent: NodeId, text: &str) -> NodeId {
        let known = self.levels.find(text.as_bytes());
        if let Some(node) = known.and_then(|level| self.child(parent, level)) {
            return node;
        }
        let level = self.levels.acquire(text);
        let index = self.nodes.insert(Node::new(parent, Some(level)));
        self.edges
            .insert(self.hashing.pair(parent.index(), level.number()), index);
        self.nodes[parent.index()].edges += 1;
        NodeId::from_index(index)
    }

    /// Names the filter that ends there.
    pub(crate) fn set(&mut self, end: End, filter: FilterId) {
        *self.place(end) = Some(filter);
    }

    fn place(&mut self, end: End) -> &mut Option<FilterId> {
        let node = &mut self.nodes[end.node.index()];
        if end.is_multi_level {
            &mut node.multi_level
        } else {
            &mut node.filter
        }
    }

    /// Forgets the filter and every node that only it needed.
    pub(crate) fn remove(&mut self, end: End) {
        *self.place(end) = None;
        let mut node = end.node;
        while !node.is_root() && self.nodes[node.index()].is_unused() {
            let Some(Node { parent, level, .. }) = self.nodes.remove(node.index()) else {
                return;
            };
            if let Some(level) = level {
                self.edges.remove(
                    self.hashing.pair(parent.index(), level.number()),
                    node.index(),
                );
                self.levels.release(level);
                self.nodes[parent.index()].edges -= 1;
            } else {
                self.nodes[parent.index()].single_level = None;
            }
            node = parent;
        }
        if self.nodes.len() == NodeId::ROOTS.len() && self.roots_are_unused() {
            *self = Self::new(self.hashing);
        }
    }

    /// The filter `#` needs no node but a root.
    fn roots_are_unused(&self) -> bool {
        NodeId::ROOTS
            .into_iter()
            .all(|root| self.nodes[root.index()].is_unused())
    }

    /// Appends the filter that ends there.
    pub(crate) fn text(&self, end: End, into: &mut String) {
        let mut way = Vec::new();
        let mut node = end.node;
        while !node.is_root() {
            way.push(self.nodes[node.index()].level);
            node = self.nodes[node.index()].parent;
        }
        let mut separator = "";
        for level in way.into_iter().rev() {
            into.push_str(separator);
            into.push_str(level.map_or("+", |level| self.levels.text(level)));
            separator = "/";
        }
        if end.is_multi_level {
            into.push_str(separator);
            into.push('#');
        }
    }

    /// Appends every filter that matches. Levels are compared byte for byte [MQTT-4.7.3-4].
    /// Returns how many nodes were visited.
    pub(crate) fn matches(&self, topic: &str, into: &mut Vec<FilterId>) -> usize {
        let mut walk = TopicWalk::new(topic, &self.levels);
        let mut node = NodeId::root_of(topic);
        let mut visits = 0;
        loop {
            visits += 1;
            let here = &self.nodes[node.index()];
            // `#` stands for its parent too, hence at the end as well.
            into.extend(here.multi_level);
            let next = if walk.is_at_end() {
                into.extend(here.filter);
                None
            } else {
                self.literal_below(node, here, &mut walk)
                    .or(here.single_level)
            };
            if let Some(below) = next {
                walk.down();
                node = below;
            } else if let Some(branch) = self.next_branch(node, &mut walk) {
                node = branch;
            } else {
                return visits;
            }
        }
    }

    fn literal_below(&self, id: NodeId, node: &Node, walk: &mut TopicWalk<'_>) -> Option<NodeId> {
        if node.edges == 0 {
            return None;
        }
        self.child(id, walk.level()?)
    }

    /// Goes up until an ancestor reached by its text has a `+` beside it, and steps into that.
    fn next_branch(&self, mut node: NodeId, walk: &mut TopicWalk<'_>) -> Option<NodeId> {
        while !node.is_root() {
            let Node { parent, level, .. } = self.nodes[node.index()];
            walk.up();
            let beside = self.nodes[parent.index()].single_level;
            if let Some(branch) = beside.filter(|_| level.is_some()) {
                walk.down();
                return Some(branch);
            }
            node = parent;
        }
        None
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.levels.memory_bytes() + self.nodes.memory_bytes() + self.edges.memory_bytes()
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::vec::Vec;

    use super::Wildcards;
    use crate::hashing::Hashing;

    /// Inserts filters whose ends lead nowhere and counts what a topic visits.
    fn visits(filters: impl Iterator<Item = Vec<&'static str>>, topics: &[&str]) -> (usize, usize) {
        let mut wildcards = Wildcards::new(Hashing::with_seed(1));
        for filter in filters {
            wildcards.insert(&filter.join("/"));
        }
        let most = topics
            .iter()
            .map(|topic| wildcards.matches(topic, &mut Vec::new()))
            .max();
        (most.unwrap_or_default(), wildcards.nodes.len())
    }

    fn either(bits: u32, levels: u32) -> Vec<&'static str> {
        let level = |level| {
            if bits >> (level % 32) & 1 == 0 {
                "a"
            } else {
                "+"
            }
        };
        (0..levels).map(level).collect()
    }

    #[test]
    fn branches_double_only_as_far_as_filters_were_subscribed() {
        let all = (0..1 << 10).map(|bits| {
            let mut filter = either(bits, 10);
            filter.push("x");
            filter
        });
        let topic = "a/".repeat(10);
        let deep = "a/".repeat(30_000);
        let topics = [&*format!("{topic}x"), &*format!("{topic}y"), &*deep];
        let (visits, nodes) = visits(all, &topics);
        // A full binary tree of ten levels, and the ends below it.
        assert_eq!(
            (visits, nodes),
            ((1 << 11) - 1 + (1 << 10), (1 << 11) + (1 << 10))
        );
    }

    #[test]
    fn deep_filters_of_many_wildcards_are_visited_once_each() {
        let filters = (1..=100_u32).map(|number| either(number.wrapping_mul(0x9E37_79B9), 128));
        let topic = ["a"; 127].join("/");
        let (visits, nodes) = visits(filters, &[&*topic, &*format!("{topic}/a")]);
        assert!(visits < nodes && nodes < 100 * 128);
    }
}
