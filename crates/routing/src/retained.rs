//! The retained messages: one for each topic, found by topic or by filter, all at once or in pages.
//!
//! The topics form a trie whose edges are in one ordered map. A walk visits siblings in the order
//! of a hash of their texts that is the same in every process. A walk can therefore be resumed
//! after insertions and removals, and after a restart.

use alloc::collections::BTreeMap;
use core::cmp::Ordering;

use crate::hashing::{Hashing, stable_hash};
use crate::levels::{LevelId, Levels};
pub use crate::retained_walk::Position;
use crate::retained_walk::Walk;
use crate::slab::Slab;

/// Accounted memory of a topic level without its text: a node, its edge and its entry in the table
/// of levels, with a part of the spare capacity of their containers. Directly after one of these
/// has doubled, up to 60 bytes more are allocated but not yet written.
const LEVEL_BYTES: usize = 144;

/// Filter levels that are looked up at the cost of one visit.
const FILTER_LEVELS_PER_VISIT: usize = 4;

/// Root of topics that do not start with `$`.
const ROOT: u32 = 0;
/// [MQTT-4.7.2-1] [MQTT3-4.7.2-1]: topics that start with `$` have their own root, from which a
/// filter that starts with a wildcard does not start.
const DOLLAR_ROOT: u32 = 1;

pub(crate) fn root_of(text: &str) -> u32 {
    if text.starts_with('$') {
        DOLLAR_ROOT
    } else {
        ROOT
    }
}

/// Remaining budget of a page; a page without any budget takes one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// Number of messages to return.
    pub messages: usize,
    /// Number of branches to visit, each about as costly as a lookup. The lookups of the filter's
    /// levels and of the page's start position take half of them at most.
    pub visits: usize,
}

/// A topic level below a parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    pub(crate) order: u64,
    pub(crate) parent: u32,
    pub(crate) level: LevelId,
}

impl Edge {
    pub(crate) fn new(parent: u32, text: &str, level: LevelId) -> Self {
        Self {
            order: stable_hash(text.as_bytes()),
            parent,
            level,
        }
    }

    /// The same level below another parent.
    pub(crate) const fn below(self, parent: u32) -> Self {
        Self { parent, ..self }
    }

    /// Sorts before every child of the node.
    pub(crate) const fn first(parent: u32) -> Self {
        Self {
            order: 0,
            parent,
            level: LevelId::FIRST,
        }
    }

    /// Sorts after every child of the node.
    pub(crate) const fn last(parent: u32) -> Self {
        Self {
            order: u64::MAX,
            parent,
            level: LevelId::LAST,
        }
    }
}

impl Ord for Edge {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |edge: &Self| (edge.parent, edge.order, edge.level);
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for Edge {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Messages by topic. `M` should be small, such as an `Arc`, because inner levels also have room
/// for one.
#[derive(Debug)]
pub struct Retained<M> {
    pub(crate) levels: Levels,
    pub(crate) nodes: Slab<Node<M>>,
    /// Maps parent and level to the child.
    pub(crate) edges: BTreeMap<Edge, u32>,
    count: usize,
    tree_bytes: usize,
}

#[derive(Debug)]
pub(crate) struct Node<M> {
    parent: u32,
    pub(crate) level: LevelId,
    pub(crate) children: u32,
    pub(crate) message: Option<M>,
}

impl<M> Default for Retained<M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M> Retained<M> {
    /// Creates a store without messages.
    pub fn new() -> Self {
        let mut nodes = Slab::new();
        for root in [ROOT, DOLLAR_ROOT] {
            let level = LevelId::FIRST;
            nodes.insert(Node {
                parent: root,
                level,
                children: 0,
                message: None,
            });
        }
        Self {
            levels: Levels::new(Hashing::random()),
            nodes,
            edges: BTreeMap::new(),
            count: 0,
            tree_bytes: 0,
        }
    }

    /// Number of messages.
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no messages.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Memory in use for the levels of all topics, without the messages: an estimate that is never
    /// too low. The memory of removed topics is reused, and freed with the last message.
    pub const fn tree_bytes(&self) -> usize {
        self.tree_bytes
    }

    /// Growth of [`Self::tree_bytes`] if a message for the topic were added.
    pub fn tree_bytes_of(&self, topic: &str) -> usize {
        let mut node = Some(root_of(topic));
        let new = topic.split('/').filter(|text| {
            node = node.and_then(|parent| self.child(parent, text));
            node.is_none()
        });
        new.map(level_bytes).sum()
    }

    /// Stores the message of a topic and returns the one that it replaces.
    pub fn insert(&mut self, topic: &str, message: M) -> Option<M> {
        let mut node = root_of(topic);
        for text in topic.split('/') {
            node = self.child_or_new(node, text);
        }
        let replaced = self.nodes[node].message.replace(message);
        self.count += usize::from(replaced.is_none());
        replaced
    }

    fn child(&self, parent: u32, text: &str) -> Option<u32> {
        let level = self.levels.find(text.as_bytes())?;
        self.edges.get(&Edge::new(parent, text, level)).copied()
    }

    fn child_or_new(&mut self, parent: u32, text: &str) -> u32 {
        if let Some(node) = self.child(parent, text) {
            return node;
        }
        let level = self.levels.acquire(text);
        let node = self.nodes.insert(Node {
            parent,
            level,
            children: 0,
            message: None,
        });
        self.edges.insert(Edge::new(parent, text, level), node);
        self.nodes[parent].children += 1;
        self.tree_bytes += level_bytes(text);
        node
    }

    /// The message of a topic.
    pub fn get(&self, topic: &str) -> Option<&M> {
        self.nodes[self.find(topic)?].message.as_ref()
    }

    /// The message of a topic, for replacement in place.
    pub fn get_mut(&mut self, topic: &str) -> Option<&mut M> {
        let node = self.find(topic)?;
        self.nodes[node].message.as_mut()
    }

    /// Topics are compared byte for byte [MQTT-4.7.3-4].
    fn find(&self, topic: &str) -> Option<u32> {
        topic
            .split('/')
            .try_fold(root_of(topic), |node, text| self.child(node, text))
    }

    /// Removes the message of a topic, and the levels that no other topic needs.
    pub fn remove(&mut self, topic: &str) -> Option<M> {
        let mut node = self.find(topic)?;
        let removed = self.nodes[node].message.take()?;
        self.count -= 1;
        let root = root_of(topic);
        while node != root && self.is_unused(node) {
            let Some(Node { parent, level, .. }) = self.nodes.remove(node) else {
                break;
            };
            let text = self.levels.text(level);
            self.tree_bytes -= level_bytes(text);
            self.edges.remove(&Edge::new(parent, text, level));
            self.levels.release(level);
            self.nodes[parent].children -= 1;
            node = parent;
        }
        if self.is_empty() {
            *self = Self::new();
        }
        Some(removed)
    }

    fn is_unused(&self, node: u32) -> bool {
        let node = &self.nodes[node];
        node.children == 0 && node.message.is_none()
    }

    /// Calls `each` with the next messages that match a filter, within the allowance, from which it
    /// subtracts their cost, and returns the position to continue from.
    ///
    /// A page may be short or empty although another follows; `None` is the end. Messages may be
    /// inserted and removed between pages: one that stays is returned exactly once. The only
    /// exception is a sibling level with a deliberately equal hash, which can cause a message to be
    /// returned twice or never.
    ///
    /// Only branches that can match are visited. Filters that start with a wildcard do not match a
    /// topic that starts with `$` [MQTT-4.7.2-1].
    pub fn next_page_within(
        &self,
        filter: &str,
        after: Option<&Position>,
        allowance: &mut Allowance,
        each: impl FnMut(&M),
    ) -> Option<Position> {
        let levels = |text: &str| text.split('/').count();
        let place = after.and_then(Position::path).map_or(0, levels);
        let look_ups = place + levels(filter) / FILTER_LEVELS_PER_VISIT;
        // Half of the visits remain, so that a page with few visits progresses even at a position
        // of many levels.
        allowance.visits -= look_ups.min(allowance.visits / 2);
        let mut walk = Walk::new(self, filter)?;
        if let Some(position) = after {
            walk.resume(position);
        }
        Self::page(&mut walk, allowance, each)
    }

    /// Calls `each` with the messages of all topics, including those that start with `$`, in pages
    /// of at most `visits_max` branches.
    pub fn next_page_of_all(
        &self,
        after: Option<&Position>,
        visits_max: usize,
        each: impl FnMut(&M),
    ) -> Option<Position> {
        let mut walk = Walk::of_all(self, after.map_or(ROOT, Position::root));
        if let Some(position) = after {
            walk.resume(position);
        }
        let mut allowance = Allowance {
            messages: visits_max,
            visits: visits_max,
        };
        let end = Self::page(&mut walk, &mut allowance, each);
        let is_last = after.is_some_and(|position| position.root() == DOLLAR_ROOT);
        end.or_else(|| (!is_last).then(|| Position::start_of(DOLLAR_ROOT)))
    }

    fn page(
        walk: &mut Walk<'_, M>,
        allowance: &mut Allowance,
        mut each: impl FnMut(&M),
    ) -> Option<Position> {
        while walk.advance() {
            allowance.visits = allowance.visits.saturating_sub(1);
            if let Some(message) = walk.message() {
                each(message);
                allowance.messages = allowance.messages.saturating_sub(1);
            }
            if allowance.messages == 0 || allowance.visits == 0 {
                return Some(walk.position());
            }
        }
        allowance.visits = allowance.visits.saturating_sub(1);
        None
    }
}

fn level_bytes(text: &str) -> usize {
    LEVEL_BYTES + text.len()
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::vec::Vec;

    use super::Retained;

    #[test]
    fn levels_are_removed_with_the_last_topic_that_needs_them() {
        let mut retained = Retained::new();
        retained.insert("stays", 0);
        let sizes = |retained: &Retained<i32>| {
            (
                retained.nodes.len(),
                retained.edges.len(),
                retained.levels.len(),
            )
        };
        let before = sizes(&retained);
        for number in 0..100 {
            retained.insert(&format!("a/{number}/b"), number);
            retained.insert(&format!("a/{number}"), number);
        }
        assert_ne!(sizes(&retained), before);
        let memory = retained.nodes.memory_bytes();
        for number in 0..100 {
            retained.remove(&format!("a/{number}"));
            assert_eq!(retained.get(&format!("a/{number}/b")), Some(&number));
            retained.remove(&format!("a/{number}/b"));
        }
        assert_eq!(sizes(&retained), before);
        retained.remove("stays");
        assert!(retained.nodes.memory_bytes() < memory / 8);
    }

    #[test]
    fn the_memory_of_topic_levels_is_counted() {
        let deep = |number: u32| {
            let levels: Vec<_> = (0..128).map(|level| format!("{level}-{number}")).collect();
            levels.join("/")
        };
        let flat = |number: u32| format!("devices/{number}/state/of/this/device");
        for topic in [&deep as &dyn Fn(u32) -> _, &flat] {
            let mut retained = Retained::new();
            for number in 0..2000 {
                let (topic, before) = (topic(number), retained.tree_bytes());
                let announced = retained.tree_bytes_of(&topic);
                retained.insert(&topic, number);
                assert_eq!(retained.tree_bytes() - before, announced);
                assert_eq!(retained.tree_bytes_of(&topic), 0);
            }
            let edge_bytes = size_of::<super::Edge>() + size_of::<u32>();
            // Nodes of a B-tree are at least half full.
            let edges = 2 * edge_bytes * retained.edges.len();
            let real = retained.nodes.memory_bytes() + retained.levels.memory_bytes() + edges;
            let counted = retained.tree_bytes();
            assert!(
                (real..3 * real).contains(&counted),
                "{counted} counted, {real} real"
            );
            for number in 0..2000 {
                retained.remove(&topic(number));
            }
            assert_eq!(retained.tree_bytes(), 0);
        }
    }

    #[test]
    fn a_walk_continues_in_another_process_where_it_stopped() {
        let topics: Vec<_> = (0..50).map(|number| format!("a/{number}/b")).collect();
        // Levels get other numbers, and the tables other hashes.
        let mut first = Retained::new();
        let mut second = Retained::new();
        for topic in &topics {
            first.insert(topic, topic.clone());
        }
        for topic in topics.iter().rev() {
            second.insert(topic, topic.clone());
        }
        let mut expected = Vec::new();
        let page = |messages| super::Allowance {
            messages,
            visits: usize::MAX,
        };
        first.next_page_within("a/+/b", None, &mut page(usize::MAX), |topic| {
            expected.push(topic.clone());
        });
        for taken in 1..topics.len() {
            let mut found = Vec::new();
            let stopped = first.next_page_within("a/+/b", None, &mut page(taken), |topic| {
                found.push(topic.clone());
            });
            let stopped = stopped.unwrap();
            let position = super::Position::of("a/+/b", stopped.path().unwrap());
            second.next_page_within("a/+/b", Some(&position), &mut page(1000), |topic| {
                found.push(topic.clone());
            });
            assert_eq!(found, expected, "{taken} taken");
        }
    }
}
