//! A topic's walk through the filters with wildcards.

use alloc::vec::Vec;

use crate::index::FilterId;
use crate::run::Step;
use crate::topic_walk::TopicWalk;
use crate::trie_node::{Node, NodeId};
use crate::wildcards::Wildcards;

/// Number of cached levels for every topic.
const SHALLOW: usize = 16;
/// Number of cached levels after a filter with more levels was found: twice the broker's default
/// limit.
const DEEP: usize = 256;

/// Visits the nodes that match a prefix of a topic.
pub(crate) struct WildcardsWalk<'a, const LEVELS: usize> {
    trie: &'a Wildcards,
    topic: TopicWalk<'a, LEVELS>,
    found: &'a mut Vec<FilterId>,
    visits: usize,
}

impl<'a> WildcardsWalk<'a, SHALLOW> {
    pub(crate) fn new(trie: &'a Wildcards, topic: &'a str, found: &'a mut Vec<FilterId>) -> Self {
        Self {
            trie,
            topic: TopicWalk::new(topic, &trie.levels),
            found,
            visits: 0,
        }
    }

    /// Collects the filters; returns the number of visited filter levels.
    pub(crate) fn visit_from_root(mut self, root: NodeId) -> usize {
        match self.visit_from(root) {
            None => self.visits,
            Some(node) => self.visit_deep(node),
        }
    }

    #[inline(never)]
    fn visit_deep(self, node: NodeId) -> usize {
        let mut deep = WildcardsWalk::<DEEP> {
            trie: self.trie,
            topic: self.topic.with_more_memory(),
            found: self.found,
            visits: self.visits,
        };
        deep.visit_from(node);
        deep.visits
    }
}

impl<'a, const LEVELS: usize> WildcardsWalk<'a, LEVELS> {
    /// Visits a node and all nodes after it. Stops before a node whose levels exceed the cache of a
    /// shallow walk, and returns it.
    fn visit_from(&mut self, mut node: NodeId) -> Option<NodeId> {
        loop {
            let here = self.trie.node(node);
            let steps = self.trie.steps_after_first(here);
            if LEVELS < DEEP && self.topic.depth() + steps.map_or(0, <[Step]>::len) >= LEVELS {
                return Some(node);
            }
            self.visits += 1;
            let mut levels = 1;
            let is_passed = steps.is_none_or(|steps| {
                let passed = self.topic.follow(steps);
                self.visits += passed;
                levels += passed;
                passed == steps.len()
            });
            let below = if is_passed {
                self.take(node, here)
            } else {
                None
            };
            node = match below {
                Some(below) => below,
                None => self.next_branch(node, here, levels)?,
            };
            self.topic.down();
        }
    }

    /// Collects the filters that end at a node; returns the first matching child.
    fn take(&mut self, id: NodeId, node: &Node) -> Option<NodeId> {
        if !node.filters.is_empty() {
            let filters = self.trie.filters(node);
            // `#` also matches the parent level, so it is collected at the end of the topic too.
            self.found.extend(filters.multi_level);
            if self.topic.is_at_end() {
                self.found.extend(filters.filter);
            }
        }
        if self.topic.is_at_end() {
            return None;
        }
        self.literal_below(id, node).or(node.single_level)
    }

    fn literal_below(&mut self, id: NodeId, node: &Node) -> Option<NodeId> {
        if node.literal.is_empty() {
            return None;
        }
        self.trie.literal_child(id, self.topic.level()?)
    }

    /// Moves up, first by `levels` to the parent, until there is an unvisited `+` beside the path,
    /// and returns it.
    fn next_branch(
        &mut self,
        mut id: NodeId,
        mut node: &'a Node,
        mut levels: usize,
    ) -> Option<NodeId> {
        while !id.is_root() {
            self.topic.up(levels);
            let parent = self.trie.node(node.parent);
            let beside = parent.single_level.filter(|beside| *beside != id);
            if beside.is_some() {
                return beside;
            }
            (id, node) = (node.parent, parent);
            levels = self.trie.level_count(node);
        }
        None
    }
}
