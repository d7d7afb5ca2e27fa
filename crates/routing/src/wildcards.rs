//! The filters with wildcards: a trie of topic levels in one arena. A chain of levels without a
//! branch is one node. Only nodes with several children need a table, and all nodes share one.
//!
//! Cost of a match: each node is reached only from its parent, so a topic visits at most as many
//! levels as filters share a prefix with it (two branches per level, and never more than the
//! filters have, so a client can make a match expensive only by paying with subscriptions). Nothing
//! depends on the number of topic levels below the deepest such filter. A level in the middle of a
//! chain costs a comparison of numbers, a node some cache misses. The walk has no stack: it returns
//! by parent links, so a topic of 65,535 levels needs no memory.
//!
//! A new filter splits at most one node and a removed one joins at most one pair, at a cost of up
//! to [`RUN_LEVELS_MAX`] levels each in addition to those of the filter.

use alloc::string::String;
use alloc::vec::Vec;

use crate::hashing::{Hashing, IdTable};
use crate::index::FilterId;
use crate::levels::{LevelId, Levels};
use crate::run::{Runs, Step};
use crate::slab::Slab;
pub(crate) use crate::trie_node::End;
use crate::trie_node::{
    ChildSet, Children, Filters, Label, Node, NodeId, PackedChildren, PackedFilters, PackedLabel,
};
use crate::wildcards_walk::WildcardsWalk;

/// Highest number of levels of one node, so that the length of other filters does not make a change
/// expensive.
const RUN_LEVELS_MAX: usize = 128;

/// Filters with wildcards, each once.
///
/// A node has a filter or several children. Exceptions are the roots and, if filters have or had
/// more levels than one node can have, nodes that could not be joined with their only child because
/// the result would be too long.
#[derive(Debug)]
pub(crate) struct Wildcards {
    hashing: Hashing,
    pub(crate) levels: Levels,
    nodes: Slab<Node>,
    runs: Runs,
    child_sets: Slab<ChildSet>,
    /// The filters of nodes with two.
    filters: Slab<Filters>,
    /// Maps a node with several literal children and the first level of a child to the child.
    edges: IdTable,
}

/// The levels of a filter without a final `#`.
#[derive(Clone)]
struct FilterLevels<'a>(Option<&'a str>);

impl<'a> FilterLevels<'a> {
    /// The levels, and whether there is a `#`.
    fn of(filter: &'a str) -> (Self, bool) {
        if filter == "#" {
            return (Self(None), true);
        }
        let before = filter.strip_suffix("/#");
        (Self(Some(before.unwrap_or(filter))), before.is_some())
    }
}

impl<'a> Iterator for FilterLevels<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let rest = self.0?;
        if let Some(slash) = rest.bytes().position(|byte| byte == b'/') {
            self.0 = Some(&rest[slash + 1..]);
            Some(&rest[..slash])
        } else {
            self.0 = None;
            Some(rest)
        }
    }
}

impl Wildcards {
    pub(crate) fn new(hashing: Hashing) -> Self {
        let mut nodes = Slab::new();
        for root in NodeId::ROOTS {
            nodes.insert(Node::new(root, PackedLabel::one(None)));
        }
        Self {
            hashing,
            levels: Levels::new(hashing),
            nodes,
            runs: Runs::default(),
            child_sets: Slab::new(),
            filters: Slab::new(),
            edges: IdTable::default(),
        }
    }

    pub(crate) fn find(&self, filter: &str) -> Option<FilterId> {
        let mut node = NodeId::root_of(filter);
        let (mut levels, is_multi_level) = FilterLevels::of(filter);
        while let Some(level) = levels.next() {
            node = self.child(node, self.step(level)?)?;
            let steps = self.steps_after_first(self.node(node)).unwrap_or_default();
            if self.shared_levels(steps, &mut levels) < steps.len() {
                return None;
            }
        }
        let filters = self.filters(self.node(node));
        if is_multi_level {
            filters.multi_level
        } else {
            filters.filter
        }
    }

    pub(crate) fn filters(&self, node: &Node) -> Filters {
        node.filters.unpack(&self.filters)
    }

    /// The step for a level; `None` if no filter has the level.
    fn step(&self, level: &str) -> Option<Step> {
        if level == "+" {
            Some(None)
        } else {
            self.levels.find(level.as_bytes()).map(Some)
        }
    }

    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    fn first_step(&self, node: &Node) -> Step {
        match node.label.unpack() {
            Label::One(step) => step,
            Label::Run(run) => self.runs.steps(run)[0],
        }
    }

    /// The steps after the first; `None` if there is only one.
    pub(crate) fn steps_after_first(&self, node: &Node) -> Option<&[Step]> {
        match node.label.unpack() {
            Label::One(_) => None,
            Label::Run(run) => Some(&self.runs.steps(run)[1..]),
        }
    }

    /// The child whose label starts with this step.
    fn child(&self, parent: NodeId, step: Step) -> Option<NodeId> {
        match step {
            None => self.node(parent).single_level,
            Some(level) => self.literal_child(parent, level),
        }
    }

    pub(crate) fn literal_child(&self, parent: NodeId, level: LevelId) -> Option<NodeId> {
        match self.node(parent).literal.unpack() {
            Children::None => None,
            Children::One(only) => {
                Some(only).filter(|only| self.first_step(self.node(*only)) == Some(level))
            }
            Children::Several(_) => {
                let found = self.edges.find(self.edge_hash(parent, level), |index| {
                    let node = &self.nodes[index];
                    node.parent == parent && self.first_step(node) == Some(level)
                })?;
                Some(NodeId::from_index(found))
            }
        }
    }

    fn edge_hash(&self, parent: NodeId, level: LevelId) -> u32 {
        self.hashing.pair(parent.index(), level.number())
    }

    /// Creates the path to a filter that is not in the trie yet.
    pub(crate) fn insert(&mut self, filter: &str) -> End {
        let (mut levels, is_multi_level) = FilterLevels::of(filter);
        let mut node = NodeId::root_of(filter);
        while let Some(level) = levels.next() {
            let step = self.step(level);
            let Some(child) = step.and_then(|step| self.child(node, step)) else {
                node = self.append(node, level, levels);
                break;
            };
            let steps = self.steps_after_first(self.node(child)).unwrap_or_default();
            let shared = self.shared_levels(steps, &mut levels);
            node = if shared < steps.len() {
                self.split(child, 1 + shared)
            } else {
                child
            };
        }
        End {
            node,
            is_multi_level,
        }
    }

    /// Removes the next levels of a filter while they equal the steps, and returns their number.
    fn shared_levels(&self, steps: &[Step], levels: &mut FilterLevels<'_>) -> usize {
        let is_next = |step: &&Step| {
            let mut ahead = levels.clone();
            let is_next = ahead.next().and_then(|level| self.step(level)) == Some(**step);
            if is_next {
                *levels = ahead;
            }
            is_next
        };
        steps.iter().take_while(is_next).count()
    }

    /// Creates nodes for the remaining levels below a node; returns the last one.
    fn append(&mut self, parent: NodeId, first: &str, rest: FilterLevels<'_>) -> NodeId {
        let first = self.acquire(first);
        if rest.0.is_none() {
            return self.add(parent, &[first]);
        }
        let mut steps = Vec::from([first]);
        steps.extend(rest.map(|level| self.acquire(level)));
        steps
            .chunks(RUN_LEVELS_MAX)
            .fold(parent, |node, run| self.add(node, run))
    }

    fn acquire(&mut self, level: &str) -> Step {
        (level != "+").then(|| self.levels.acquire(level))
    }

    fn add(&mut self, parent: NodeId, steps: &[Step]) -> NodeId {
        let label = self.pack(steps);
        let node = NodeId::from_index(self.nodes.insert(Node::new(parent, label)));
        self.link(parent, steps[0], node);
        node
    }

    fn pack(&mut self, steps: &[Step]) -> PackedLabel {
        if let [step] = steps {
            PackedLabel::one(*step)
        } else {
            PackedLabel::run(self.runs.insert(steps))
        }
    }

    /// Appends the steps of a label and frees it.
    fn unpack(&mut self, label: PackedLabel, into: &mut Vec<Step>) {
        match label.unpack() {
            Label::One(step) => into.push(step),
            Label::Run(run) => {
                into.extend(self.runs.steps(run));
                self.runs.remove(run);
            }
        }
    }

    /// Adds a node as a child.
    fn link(&mut self, parent: NodeId, first: Step, child: NodeId) {
        let Some(level) = first else {
            self.nodes[parent.index()].single_level = Some(child);
            return;
        };
        match self.node(parent).literal.unpack() {
            Children::None => {
                self.nodes[parent.index()].literal = PackedChildren::one(child);
                return;
            }
            Children::One(only) => {
                let mut child_set = ChildSet::of_one(only);
                child_set.add(child);
                let child_set = self.child_sets.insert(child_set);
                self.nodes[parent.index()].literal = PackedChildren::several(child_set);
                if let Some(level) = self.first_step(self.node(only)) {
                    self.edges
                        .insert(self.edge_hash(parent, level), only.index());
                }
            }
            Children::Several(child_set) => self.child_sets[child_set].add(child),
        }
        self.edges
            .insert(self.edge_hash(parent, level), child.index());
    }

    /// The inverse of [`Self::link`].
    fn unlink(&mut self, parent: NodeId, first: Step, child: NodeId) {
        let Some(level) = first else {
            self.nodes[parent.index()].single_level = None;
            return;
        };
        let Children::Several(child_set) = self.node(parent).literal.unpack() else {
            self.nodes[parent.index()].literal = PackedChildren::NONE;
            return;
        };
        self.edges
            .remove(self.edge_hash(parent, level), child.index());
        if let Some(last) = self.child_sets[child_set].remove(child) {
            self.child_sets.remove(child_set);
            self.nodes[parent.index()].literal = PackedChildren::one(last);
            if let Some(level) = self.first_step(self.node(last)) {
                self.edges
                    .remove(self.edge_hash(parent, level), last.index());
            }
        }
    }

    /// Inserts a node above another for that many of its first levels; the lower node keeps its id
    /// and everything below it.
    fn split(&mut self, lower: NodeId, levels: usize) -> NodeId {
        let Node { parent, label, .. } = *self.node(lower);
        let mut steps = Vec::new();
        self.unpack(label, &mut steps);
        self.unlink(parent, steps[0], lower);
        let upper = self.add(parent, &steps[..levels]);
        let label = self.pack(&steps[levels..]);
        let node = &mut self.nodes[lower.index()];
        (node.parent, node.label) = (upper, label);
        self.link(upper, steps[levels], lower);
        upper
    }

    /// The inverse of [`Self::split`], if the upper node has no other use than the lower one.
    fn join(&mut self, upper: NodeId) {
        let node = self.node(upper);
        let Some(lower) = node.only_use().filter(|_| !upper.is_root()) else {
            return;
        };
        let levels = [node, self.node(lower)].map(|node| self.level_count(node));
        if levels[0] + levels[1] > RUN_LEVELS_MAX {
            return;
        }
        let Some(Node { parent, label, .. }) = self.nodes.remove(upper.index()) else {
            return;
        };
        let mut steps = Vec::with_capacity(levels[0] + levels[1]);
        self.unpack(label, &mut steps);
        self.unlink(parent, steps[0], upper);
        self.unpack(self.node(lower).label, &mut steps);
        let label = self.pack(&steps);
        let node = &mut self.nodes[lower.index()];
        (node.parent, node.label) = (parent, label);
        self.link(parent, steps[0], lower);
    }

    /// Number of levels from a node's parent to the node.
    pub(crate) fn level_count(&self, node: &Node) -> usize {
        1 + self.steps_after_first(node).map_or(0, <[Step]>::len)
    }

    /// Sets the filter that ends there.
    pub(crate) fn set(&mut self, end: End, filter: FilterId) {
        self.put(end, Some(filter));
    }

    fn put(&mut self, end: End, filter: Option<FilterId>) {
        let node = &mut self.nodes[end.node.index()];
        let mut filters = node.filters.unpack(&self.filters);
        node.filters.free(&mut self.filters);
        if end.is_multi_level {
            filters.multi_level = filter;
        } else {
            filters.filter = filter;
        }
        node.filters = PackedFilters::pack(filters, &mut self.filters);
    }

    /// Removes the filter and every node that no other filter needs.
    pub(crate) fn remove(&mut self, end: End) {
        self.put(end, None);
        let mut node = end.node;
        while !node.is_root() && self.node(node).is_unused() {
            node = self.cut(node);
        }
        self.join(node);
        if self.nodes.len() == NodeId::ROOTS.len() && self.roots_are_unused() {
            *self = Self::new(self.hashing);
        }
    }

    /// Removes a node without children; returns its parent.
    fn cut(&mut self, id: NodeId) -> NodeId {
        let node = self.node(id);
        let (parent, label) = (node.parent, node.label);
        self.unlink(parent, self.first_step(node), id);
        self.nodes.remove(id.index());
        match label.unpack() {
            Label::One(step) => self.levels.release_all(&[step]),
            Label::Run(run) => {
                self.levels.release_all(self.runs.steps(run));
                self.runs.remove(run);
            }
        }
        parent
    }

    /// Whether the roots are unused; the filter `#` needs only a root.
    fn roots_are_unused(&self) -> bool {
        NodeId::ROOTS
            .into_iter()
            .all(|root| self.node(root).is_unused())
    }

    /// Appends the text of the filter that ends there.
    pub(crate) fn text(&self, end: End, into: &mut String) {
        let mut steps = Vec::new();
        let mut id = end.node;
        while !id.is_root() {
            let node = self.node(id);
            let after_first = self.steps_after_first(node).unwrap_or_default();
            steps.extend(after_first.iter().rev());
            steps.push(self.first_step(node));
            id = node.parent;
        }
        let mut separator = "";
        for step in steps.into_iter().rev() {
            into.push_str(separator);
            into.push_str(step.map_or("+", |level| self.levels.text(level)));
            separator = "/";
        }
        if end.is_multi_level {
            into.push_str(separator);
            into.push('#');
        }
    }

    /// Appends every filter that matches. Levels are compared byte for byte [MQTT-4.7.3-4]. Returns
    /// the number of visited filter levels.
    pub(crate) fn matches(&self, topic: &str, into: &mut Vec<FilterId>) -> usize {
        WildcardsWalk::new(self, topic, into).visit_from_root(NodeId::root_of(topic))
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let nodes = self.nodes.memory_bytes() + self.filters.memory_bytes();
        let labels = self.runs.memory_bytes() + self.levels.memory_bytes();
        nodes + labels + self.child_sets.memory_bytes() + self.edges.memory_bytes()
    }
}
#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use alloc::format;
    use alloc::string::String;
    use alloc::vec::Vec;

    use proptest::bool::weighted;
    use proptest::collection::{btree_set, vec};
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::{RUN_LEVELS_MAX, Wildcards};
    use crate::hashing::Hashing;
    use crate::index::FilterId;
    use crate::trie_node::NodeId;

    const ROOTS: usize = NodeId::ROOTS.len();

    /// Inserts filters with unused ids and counts the levels that a topic visits.
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

    /// Inserts filters, then removes all but the first one by one, and counts the nodes after each
    /// step.
    fn node_counts(filters: &[&str]) -> (Vec<usize>, Vec<usize>) {
        let mut wildcards = Wildcards::new(Hashing::with_seed(1));
        let empty = wildcards.memory_bytes();
        let mut ends = Vec::new();
        let mut inserted = Vec::new();
        for (filter, number) in filters.iter().zip(0..) {
            let end = wildcards.insert(filter);
            wildcards.set(end, FilterId::of_wildcard(number));
            ends.push(end);
            inserted.push(wildcards.nodes.len() - ROOTS);
        }
        let removed = ends.drain(1..).map(|end| {
            wildcards.remove(end);
            wildcards.nodes.len() - ROOTS
        });
        let removed = removed.collect();
        let mut text = String::new();
        wildcards.text(ends[0], &mut text);
        assert_eq!(text, filters[0]);
        assert_eq!(wildcards.find(filters[0]), Some(FilterId::of_wildcard(0)));
        wildcards.remove(ends[0]);
        assert_eq!(wildcards.memory_bytes(), empty);
        (inserted, removed)
    }

    #[track_caller]
    fn check_node_counts(filters: &[&str], inserted: &[usize], removed: &[usize]) {
        let found = node_counts(filters);
        assert_eq!((&*found.0, &*found.1), (inserted, removed));
    }

    #[test]
    fn a_chain_is_split_by_a_filter_and_joined_after_its_removal() {
        check_node_counts(&["a/b/c/d/+", "a/b/x/+"], &[1, 3], &[1]);
        check_node_counts(&["a/+/c/+/e/f", "a/+"], &[1, 2], &[1]);
        check_node_counts(&["a/b/c/d/#", "a/b/#"], &[1, 2], &[1]);
        check_node_counts(
            &["a/b/c/d/#", "a/b/c/d/+", "a/b/+/d/#"],
            &[1, 2, 4],
            &[3, 1],
        );
        check_node_counts(&["$a/+/c/+", "$a/b/#"], &[1, 3], &[1]);
    }

    #[test]
    fn the_last_of_several_children_is_joined_for_any_order_of_removal() {
        let filters = ["a/b/+", "a/c/+", "a/d/+", "a/+/e"];
        for first in 0..filters.len() {
            let mut filters = filters;
            filters.swap(0, first);
            check_node_counts(&filters, &[1, 3, 4, 5], &[4, 3, 1]);
        }
    }

    #[test]
    fn node_with_a_filter_is_not_joined() {
        check_node_counts(
            &["a/+", "a/+/b/#", "a/+/c", "a/+/#"],
            &[1, 2, 3, 3],
            &[2, 1, 1],
        );
    }

    #[test]
    fn chains_longer_than_a_node_have_several_nodes() {
        let long = ["+"; 2 * RUN_LEVELS_MAX + 1].join("/");
        let beside = ["+"; RUN_LEVELS_MAX + 7].join("/");
        check_node_counts(&[&*long, &*beside], &[3, 4], &[3]);
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
    fn branches_double_only_as_far_as_the_filters_do() {
        let all = (0..1 << 10).map(|bits| {
            let mut filter = either(bits, 10);
            filter.push("x");
            filter
        });
        let topic = "a/".repeat(10);
        let deep = "a/".repeat(30_000);
        let topics = [&*format!("{topic}x"), &*format!("{topic}y"), &*deep];
        let (visits, nodes) = visits(all, &topics);
        // A full binary tree of ten levels, and the leaves below it, each of which is one node with
        // the level above it.
        assert_eq!((visits, nodes), ((1 << 11) - 1 + (1 << 10), 1 << 11));
    }

    #[test]
    fn deep_filters_of_many_wildcards_are_visited_once_each() {
        let filters = (1..=100_u32).map(|number| either(number.wrapping_mul(0x9E37_79B9), 128));
        let topic = ["a"; 127].join("/");
        let (visits, nodes) = visits(filters, &[&*topic, &*format!("{topic}/a")]);
        assert!(visits > 100 * 100 && visits < 100 * 128);
        assert!(nodes <= ROOTS + 2 * 100);
    }

    /// Checks that all allocated parts belong to a node, and each node is on the path of a filter.
    fn check_for_leaks(trie: &Wildcards, is_short: bool) {
        let ids = (0..).map(NodeId::from_index);
        let live = ids.filter(|id| trie.nodes.get(id.index()).is_some());
        let ids: Vec<_> = live.take(trie.nodes.len()).collect();
        let (mut users, mut children) = (BTreeMap::new(), BTreeMap::new());
        for &id in ids.iter().filter(|id| !id.is_root()) {
            let node = trie.node(id);
            let first = trie.first_step(node);
            assert_eq!(trie.child(node.parent, first), Some(id));
            if first.is_some() {
                *children.entry(node.parent.index()).or_insert(0) += 1;
            }
            let steps = trie.steps_after_first(node).unwrap_or_default();
            for level in steps.iter().chain([&first]).flatten() {
                *users.entry(*level).or_insert(0) += 1;
            }
            assert!(!node.is_unused() && steps.len() < RUN_LEVELS_MAX);
            assert!(!is_short || node.only_use().is_none());
        }
        for (level, count) in &users {
            assert_eq!(trie.levels.users(*level), *count);
        }
        let nodes = ids.iter().map(|id| trie.node(*id));
        let runs = nodes.clone().filter(|node| trie.level_count(node) > 1);
        let child_sets = children.values().filter(|count| **count > 1);
        let filters = nodes.map(|node| trie.filters(node));
        let both = filters.filter(|ends| ends.filter.is_some() && ends.multi_level.is_some());
        assert_eq!(
            (trie.runs.len(), trie.child_sets.len(), trie.edges.len()),
            (runs.count(), child_sets.clone().count(), child_sets.sum()),
        );
        assert_eq!(
            (trie.filters.len(), trie.levels.len()),
            (both.count(), users.len()),
        );
    }

    /// Filters that branch off early, or where nodes end.
    fn filter(most: usize) -> impl Strategy<Value = String> {
        let alike = move || prop_oneof![4 => Just(0), 1 => 0..135.min(most), 1 => 0..most];
        let level = select(&["a", "a", "a", "a", "b", "", "+"][..]);
        let end = select(&["+", "#", "x/+", "+/#"][..]);
        (alike(), vec(level, 1..9), alike(), end).prop_map(|(before, levels, after, end)| {
            let [before, after] = [before, after].map(|alike| "a/".repeat(alike));
            format!("{before}{}/{after}{end}", levels.join("/"))
        })
    }

    proptest! {
        #[test]
        fn parts_of_removed_filters_are_removed(
            filters in prop_oneof![btree_set(filter(60), 1..24), btree_set(filter(300), 1..24)],
            changes in vec((any::<usize>(), weighted(0.6)), 1..80),
        ) {
            let levels = |filter: &String| filter.split('/').count();
            let is_short = filters.iter().all(|filter| levels(filter) <= RUN_LEVELS_MAX);
            let filters: Vec<_> = filters.into_iter().zip(0..).collect();
            let mut wildcards = Wildcards::new(Hashing::with_seed(1));
            let mut ends = BTreeMap::new();
            for (filter, comes) in changes {
                let (filter, number) = &filters[filter % filters.len()];
                if comes && !ends.contains_key(filter) {
                    let end = wildcards.insert(filter);
                    wildcards.set(end, FilterId::of_wildcard(*number));
                    ends.insert(filter, end);
                } else if !comes && let Some(end) = ends.remove(filter) {
                    wildcards.remove(end);
                }
                check_for_leaks(&wildcards, is_short);
                for (filter, end) in &ends {
                    let mut text = String::new();
                    wildcards.text(*end, &mut text);
                    prop_assert_eq!(&text, *filter);
                }
            }
        }
    }
}
