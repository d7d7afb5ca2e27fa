//! Topics as a tree of their levels, with figures for each node, in bounded memory.
//!
//! A message is counted at each level of its topic, so that a node has the sum of everything below
//! it. A topic that finds no room is counted at the levels that are there: what the children of a
//! node do not add up to belongs to such topics.
//!
//! Nothing here takes long at once: nodes are allocated in blocks, the table of names has its size
//! from the beginning, and the search for a node to forget looks at a few of them.

use std::hash::BuildHasher as _;
use std::time::Duration;

use hashbrown::HashTable;
use thrum_codec::QoS;
use thrum_protocol::Time;

use super::flow::TopicFlow;
use crate::hashing::HashBuilder;

/// Nodes of all workers together: a plant with 200,000 topics and levels.
pub const TOPIC_NODES_MAX: usize = 200_000;
/// Their memory, with the beginnings of payloads.
pub const TOPIC_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Bytes of the beginning of a payload that are kept.
pub const PREVIEW_BYTES_MAX: usize = 256;
/// Levels of a topic that are told apart: a deeper topic counts at its first ones.
pub const TOPIC_LEVELS_MAX: usize = 32;
/// A topic that was silent for so long makes room for a new one.
const SILENT_TIME: Duration = Duration::from_mins(1);
/// Nodes that are looked at to find a silent one.
const LOOKED_AT_MAX: usize = 16;
/// Nodes of a block.
pub(super) const BLOCK_NODES: usize = 512;
/// Memory of a node in the table of names.
const TABLE_BYTES: usize = 10;

/// The number of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TopicNodeId(u32);

/// The node of all topics.
const ROOT: TopicNodeId = TopicNodeId(0);
/// No node.
const NONE: TopicNodeId = TopicNodeId(u32::MAX);

/// A message as the tree sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen<'a> {
    pub(super) topic: &'a str,
    pub(super) payload: &'a [u8],
    pub(super) qos: QoS,
    pub(super) retain: bool,
    pub(super) now: Time,
}

/// The last message of a topic, and its count.
#[derive(Clone, Debug)]
pub struct TopicValue {
    /// Messages with exactly this topic.
    pub messages: u64,
    /// When the last one came.
    pub at: Time,
    /// Its quality of service.
    pub qos: QoS,
    /// Its RETAIN flag.
    pub retain: bool,
    /// Bytes of its payload.
    pub payload_bytes: u32,
    /// Their beginning.
    pub preview: Vec<u8>,
}

#[derive(Debug)]
struct Node {
    hash: u64,
    text: Box<str>,
    flow: TopicFlow,
    value: Option<Box<TopicValue>>,
    parent: TopicNodeId,
    first_child: TopicNodeId,
    next: TopicNodeId,
    before: TopicNodeId,
    children: u32,
}

impl Node {
    fn new(text: &str, hash: u64) -> Self {
        Self {
            hash,
            text: text.into(),
            flow: TopicFlow::default(),
            value: None,
            parent: NONE,
            first_child: NONE,
            next: NONE,
            before: NONE,
            children: 0,
        }
    }
}

/// What a node shows.
#[derive(Clone, Copy, Debug)]
pub struct TopicNode<'a> {
    /// Its level.
    pub name: &'a str,
    /// Messages with this topic and all below it.
    pub flow: &'a TopicFlow,
    /// The last message with exactly this topic; none if there was none.
    pub value: Option<&'a TopicValue>,
    /// Nodes right below it.
    pub children: u32,
}

/// See above.
#[derive(Debug)]
pub struct TopicTree {
    blocks: Vec<Vec<Node>>,
    names: HashTable<TopicNodeId>,
    hasher: HashBuilder,
    nodes_max: usize,
    bytes_max: usize,
    /// Memory of nodes, texts and beginnings of payloads.
    bytes: usize,
    /// Places of forgotten nodes that have no new one.
    free: Vec<TopicNodeId>,
    /// The node that is looked at next to find a silent one.
    hand: u32,
    /// When the observation began.
    began: Time,
    /// Messages whose topics found no room.
    untold: u64,
    /// Nodes that were forgotten for others.
    forgotten: u64,
}

impl TopicTree {
    /// The share of one of so many workers.
    pub(super) fn new(workers: usize, began: Time) -> Self {
        let workers = workers.max(1);
        Self::with_limits(TOPIC_NODES_MAX / workers, TOPIC_BYTES_MAX / workers, began)
    }

    fn with_limits(nodes_max: usize, bytes_max: usize, began: Time) -> Self {
        let hasher = HashBuilder::default();
        let mut tree = Self {
            blocks: Vec::new(),
            // Twice as many places as nodes, so that it never has to be built anew.
            names: HashTable::with_capacity(2 * nodes_max),
            hasher,
            nodes_max: nodes_max.max(1),
            bytes_max,
            bytes: TABLE_BYTES * nodes_max,
            free: Vec::new(),
            hand: 0,
            began,
            untold: 0,
            forgotten: 0,
        };
        tree.append("", 0, NONE);
        tree
    }

    /// When the observation began.
    pub const fn began(&self) -> Time {
        self.began
    }

    /// Messages since then whose topics found no room.
    pub const fn untold(&self) -> u64 {
        self.untold
    }

    /// Nodes since then that were forgotten for others, each time that one was.
    pub const fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Nodes, without the root.
    #[cfg(any(test, feature = "testing"))]
    pub fn node_count(&self) -> usize {
        self.names.len()
    }

    /// The blocks of its nodes, to be freed one after the other.
    pub(super) fn into_blocks(self) -> Blocks {
        Blocks(self.blocks)
    }

    /// Counts a message at each level of its topic; false if there is no room for its topic.
    pub(super) fn count(&mut self, seen: &Seen<'_>) -> bool {
        let bytes = seen.payload.len();
        self.node_mut(ROOT).flow.add(bytes, seen.now);
        let mut at = ROOT;
        for (depth, level) in seen.topic.split('/').enumerate() {
            let hash = self.hasher.hash_one((at.0, level));
            let child = match self.find(at, level, hash) {
                Some(child) => Some(child),
                None if depth < TOPIC_LEVELS_MAX => self.make(at, level, hash, seen.now),
                None => None,
            };
            let Some(child) = child else {
                self.untold += 1;
                return false;
            };
            self.node_mut(child).flow.add(bytes, seen.now);
            at = child;
        }
        self.keep_value(at, seen);
        true
    }

    fn keep_value(&mut self, at: TopicNodeId, seen: &Seen<'_>) {
        let room = self.bytes_max.saturating_sub(self.bytes);
        let node = self.node_mut(at);
        if node.value.is_none() && room < size_of::<TopicValue>() {
            return;
        }
        let mut grown = 0;
        let value = node.value.get_or_insert_with(|| {
            grown += size_of::<TopicValue>();
            Box::new(TopicValue {
                messages: 0,
                at: seen.now,
                qos: seen.qos,
                retain: seen.retain,
                payload_bytes: 0,
                preview: Vec::new(),
            })
        });
        value.messages += 1;
        value.at = seen.now;
        value.qos = seen.qos;
        value.retain = seen.retain;
        value.payload_bytes = u32::try_from(seen.payload.len()).unwrap_or(u32::MAX);
        let shown = &seen.payload[..seen.payload.len().min(PREVIEW_BYTES_MAX)];
        let more = shown.len().saturating_sub(value.preview.capacity());
        let shown = if grown + more > room {
            &shown[..value.preview.capacity()]
        } else {
            value.preview.reserve_exact(more);
            grown += more;
            shown
        };
        value.preview.clear();
        value.preview.extend_from_slice(shown);
        self.bytes += grown;
    }

    /// The node of a topic or the beginning of one; the root if there is none.
    pub fn find_topic(&self, topic: Option<&str>) -> Option<TopicNodeId> {
        let mut at = ROOT;
        for level in topic.into_iter().flat_map(|topic| topic.split('/')) {
            let hash = self.hasher.hash_one((at.0, level));
            at = self.find(at, level, hash)?;
        }
        Some(at)
    }

    /// What a node shows.
    pub fn show(&self, id: TopicNodeId) -> TopicNode<'_> {
        let node = self.node(id);
        TopicNode {
            name: &node.text,
            flow: &node.flow,
            value: node.value.as_deref(),
            children: node.children,
        }
    }

    /// The first child of a node.
    pub fn first_child(&self, id: TopicNodeId) -> Option<TopicNodeId> {
        known(self.node(id).first_child)
    }

    /// The child of `parent` behind another one; none also if that one has been forgotten
    /// meanwhile.
    pub fn next_child(&self, parent: TopicNodeId, child: TopicNodeId) -> Option<TopicNodeId> {
        let node = self.node(child);
        known(node.next).filter(|_| node.parent == parent)
    }

    /// The parent of a node; none if it is at the top.
    pub(super) fn parent(&self, id: TopicNodeId) -> Option<TopicNodeId> {
        known(self.node(id).parent).filter(|parent| *parent != ROOT)
    }

    /// The node in a place, which are counted from 1 to [`Self::places`]; none if it is free.
    pub fn at_place(&self, place: u32) -> Option<TopicNodeId> {
        let id = TopicNodeId(place);
        let node = self.node_at(id)?;
        (node.parent != NONE).then_some(id)
    }

    /// Whether a child that was found before is still there: it may have been forgotten meanwhile,
    /// and its place taken by another one.
    pub fn is_still_child(&self, parent: TopicNodeId, child: TopicNodeId, name: &str) -> bool {
        let node = self.node(child);
        node.parent == parent && *node.text == *name
    }

    fn find(&self, parent: TopicNodeId, level: &str, hash: u64) -> Option<TopicNodeId> {
        let is_it = |id: &TopicNodeId| {
            let node = self.node(*id);
            node.hash == hash && node.parent == parent && *node.text == *level
        };
        self.names.find(hash, is_it).copied()
    }

    /// A new child, if there is room.
    #[cold]
    fn make(
        &mut self,
        parent: TopicNodeId,
        level: &str,
        hash: u64,
        now: Time,
    ) -> Option<TopicNodeId> {
        let more = size_of::<Node>() + level.len();
        if self.free.is_empty()
            && self.places() <= self.nodes_max
            && self.bytes + more <= self.bytes_max
        {
            return Some(self.append(level, hash, parent));
        }
        if self.free.is_empty() {
            let forgotten = self.forget_one(parent, now)?;
            self.free.push(forgotten);
        }
        if self.bytes + level.len() > self.bytes_max {
            // The memory of a forgotten node was too small for this one.
            return None;
        }
        let place = self.free.pop()?;
        self.enter(place, level, parent, hash);
        Some(place)
    }

    /// Places of nodes, the root's among them.
    pub fn places(&self) -> usize {
        let last = self.blocks.last().map_or(0, Vec::len);
        self.blocks.len().saturating_sub(1) * BLOCK_NODES + last
    }

    /// Adds a place, and a node in it.
    fn append(&mut self, level: &str, hash: u64, parent: TopicNodeId) -> TopicNodeId {
        if self
            .blocks
            .last()
            .is_none_or(|block| block.len() == BLOCK_NODES)
        {
            self.blocks.push(Vec::with_capacity(BLOCK_NODES));
        }
        let id = TopicNodeId(u32::try_from(self.places()).unwrap_or(u32::MAX));
        if let Some(block) = self.blocks.last_mut() {
            block.push(Node::new("", 0));
        }
        self.bytes += size_of::<Node>();
        self.enter(id, level, parent, hash);
        id
    }

    /// Puts a node into a place that is free.
    fn enter(&mut self, id: TopicNodeId, level: &str, parent: TopicNodeId, hash: u64) {
        let next = match known(parent) {
            Some(parent) => {
                let parent = self.node_mut(parent);
                parent.children += 1;
                std::mem::replace(&mut parent.first_child, id)
            }
            None => NONE,
        };
        if let Some(next) = known(next) {
            self.node_mut(next).before = id;
        }
        *self.node_mut(id) = Node {
            parent,
            next,
            ..Node::new(level, hash)
        };
        self.bytes += level.len();
        if parent != NONE {
            let blocks = &self.blocks;
            self.names
                .insert_unique(hash, id, |id| node_in(blocks, *id).hash);
        }
    }

    /// Takes out a node without children that was silent for long; returns its place. Never the
    /// one that is to be a parent.
    fn forget_one(&mut self, parent: TopicNodeId, now: Time) -> Option<TopicNodeId> {
        let places = u32::try_from(self.places()).unwrap_or(u32::MAX);
        for _ in 0..LOOKED_AT_MAX {
            // The first place is that of the root.
            self.hand = if self.hand + 1 >= places {
                1
            } else {
                self.hand + 1
            };
            let id = TopicNodeId(self.hand);
            let node = self.node_at(id)?;
            let is_silent = now.since(node.flow.last) >= SILENT_TIME;
            if is_silent && node.children == 0 && node.parent != NONE && id != parent {
                self.remove(id);
                self.forgotten += 1;
                return Some(id);
            }
        }
        None
    }

    fn remove(&mut self, id: TopicNodeId) {
        let node = self.node(id);
        let (hash, parent, next, before) = (node.hash, node.parent, node.next, node.before);
        let value = node.value.as_deref();
        let value = value.map_or(0, |value| {
            size_of::<TopicValue>() + value.preview.capacity()
        });
        let freed = node.text.len() + value;
        self.bytes -= freed;
        if let Ok(found) = self.names.find_entry(hash, |other| *other == id) {
            found.remove();
        }
        if let Some(next) = known(next) {
            self.node_mut(next).before = before;
        }
        if let Some(before) = known(before) {
            self.node_mut(before).next = next;
        }
        if let Some(parent) = known(parent) {
            let parent = self.node_mut(parent);
            parent.children -= 1;
            if before == NONE {
                parent.first_child = next;
            }
        }
        // Whoever walks the children of its parent now stops there.
        *self.node_mut(id) = Node::new("", 0);
    }

    fn node(&self, id: TopicNodeId) -> &Node {
        node_in(&self.blocks, id)
    }

    fn node_at(&self, id: TopicNodeId) -> Option<&Node> {
        let place = id.0 as usize;
        self.blocks
            .get(place / BLOCK_NODES)?
            .get(place % BLOCK_NODES)
    }

    fn node_mut(&mut self, id: TopicNodeId) -> &mut Node {
        let place = id.0 as usize;
        &mut self.blocks[place / BLOCK_NODES][place % BLOCK_NODES]
    }
}

fn node_in(blocks: &[Vec<Node>], id: TopicNodeId) -> &Node {
    let place = id.0 as usize;
    &blocks[place / BLOCK_NODES][place % BLOCK_NODES]
}

fn known(id: TopicNodeId) -> Option<TopicNodeId> {
    (id != NONE).then_some(id)
}

/// The nodes of a tree that has ended.
#[derive(Debug)]
pub(super) struct Blocks(Vec<Vec<Node>>);

impl Blocks {
    /// Frees some nodes; false if none is left.
    pub(super) fn free_some(&mut self) -> bool {
        self.0.pop();
        !self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(secs: u64) -> Time {
        Time::from_millis(secs * 1000)
    }

    fn publish(tree: &mut TopicTree, topic: &str, payload: &[u8], secs: u64) -> bool {
        tree.count(&Seen {
            topic,
            payload,
            qos: QoS::AtLeastOnce,
            retain: false,
            now: at(secs),
        })
    }

    fn messages(tree: &TopicTree, topic: Option<&str>) -> Option<u64> {
        let id = tree.find_topic(topic)?;
        Some(tree.show(id).flow.messages)
    }

    fn children(tree: &TopicTree, topic: Option<&str>) -> Vec<String> {
        let parent = tree.find_topic(topic).unwrap();
        let mut names = Vec::new();
        let mut next = tree.first_child(parent);
        while let Some(child) = next {
            names.push(tree.show(child).name.to_owned());
            next = tree.next_child(parent, child);
        }
        names.sort();
        names
    }

    #[test]
    fn a_node_has_the_sum_of_everything_below_it() {
        let mut tree = TopicTree::with_limits(100, 1 << 20, at(0));
        for (topic, times) in [("a/b/c", 3), ("a/b", 2), ("a/d", 1), ("/x", 4)] {
            for _ in 0..times {
                assert!(publish(&mut tree, topic, b"12345", 1));
            }
        }
        assert_eq!(messages(&tree, None), Some(10));
        assert_eq!(messages(&tree, Some("a")), Some(6));
        assert_eq!(messages(&tree, Some("a/b")), Some(5));
        assert_eq!(messages(&tree, Some("")), Some(4));
        assert_eq!(messages(&tree, Some("b")), None);
        assert_eq!(children(&tree, None), ["", "a"]);
        assert_eq!(children(&tree, Some("a")), ["b", "d"]);
        let b = tree.show(tree.find_topic(Some("a/b")).unwrap());
        assert_eq!((b.children, b.flow.payload_bytes), (1, 25));
        assert_eq!(b.value.unwrap().messages, 2, "of its own");
        let root = tree.show(tree.find_topic(None).unwrap());
        assert!(root.value.is_none());
    }

    #[test]
    fn the_last_value_is_kept_up_to_its_limit() {
        let mut tree = TopicTree::with_limits(100, 1 << 20, at(0));
        publish(&mut tree, "a", &[1; 1000], 1);
        publish(&mut tree, "a", &[2; 300], 2);
        let value = |tree: &TopicTree| {
            let id = tree.find_topic(Some("a")).unwrap();
            tree.show(id).value.unwrap().clone()
        };
        let found = value(&tree);
        assert_eq!((found.payload_bytes, found.at), (300, at(2)));
        assert_eq!(found.preview, [2; PREVIEW_BYTES_MAX]);
        publish(&mut tree, "a", b"x", 3);
        assert_eq!(value(&tree).preview, b"x");
    }

    #[test]
    fn topics_without_room_are_in_the_sums_and_silent_ones_make_room() {
        let mut tree = TopicTree::with_limits(4, 1 << 20, at(0));
        for name in ["a", "b", "c"] {
            assert!(publish(&mut tree, &format!("t/{name}"), b"", 1));
        }
        assert!(!publish(&mut tree, "t/d", b"", 30), "nobody is silent yet");
        assert_eq!((tree.untold(), tree.forgotten()), (1, 0));
        assert_eq!(messages(&tree, Some("t")), Some(4));
        assert_eq!(children(&tree, Some("t")), ["a", "b", "c"]);
        publish(&mut tree, "t/a", b"", 70);
        publish(&mut tree, "t/c", b"", 70);
        assert!(publish(&mut tree, "t/d", b"", 70), "b was silent for 69 s");
        assert_eq!(children(&tree, Some("t")), ["a", "c", "d"]);
        assert_eq!((tree.untold(), tree.forgotten()), (1, 1));
        assert_eq!(messages(&tree, Some("t")), Some(7));
        assert_eq!(messages(&tree, Some("t/d")), Some(1));
        assert_eq!(tree.node_count(), 4);
    }

    #[test]
    fn a_child_whose_place_another_one_has_taken_is_no_longer_it() {
        let mut tree = TopicTree::with_limits(2, 1 << 20, at(0));
        publish(&mut tree, "a", b"", 1);
        let (root, a) = (ROOT, tree.find_topic(Some("a")).unwrap());
        assert!(tree.is_still_child(root, a, "a"));
        publish(&mut tree, "b", b"", 1000);
        publish(&mut tree, "c", b"", 1000);
        assert_eq!(tree.find_topic(Some("a")), None);
        assert_eq!(tree.find_topic(Some("c")), Some(a));
        assert!(!tree.is_still_child(root, a, "a"));
        assert!(tree.is_still_child(root, a, "c"));
        publish(&mut tree, "b/d", b"", 2000);
        assert_eq!(tree.find_topic(Some("b/d")), Some(a));
        assert!(!tree.is_still_child(root, a, "d"));
    }

    #[test]
    fn a_deep_topic_counts_at_its_first_levels() {
        let mut tree = TopicTree::with_limits(1000, 1 << 20, at(0));
        let deep = vec!["x"; 100].join("/");
        assert!(!publish(&mut tree, &deep, b"", 1));
        assert_eq!(tree.node_count(), TOPIC_LEVELS_MAX);
        assert_eq!(messages(&tree, None), Some(1));
    }

    #[test]
    fn payloads_and_names_stay_within_the_memory() {
        let most = 64 * 1024;
        let mut tree = TopicTree::with_limits(10_000, most + 10_000 * TABLE_BYTES, at(0));
        for number in 0..2_000 {
            let topic = format!("{number}/{}", "n".repeat(number % 50));
            publish(&mut tree, &topic, &[7; 256], number as u64);
            assert!(tree.bytes <= tree.bytes_max, "{number}");
        }
        assert_eq!(messages(&tree, None), Some(2_000));
        assert!(tree.node_count() > 50);
    }

    #[test]
    fn an_ended_tree_is_freed_in_parts() {
        let mut tree = TopicTree::with_limits(10_000, 1 << 22, at(0));
        for number in 0..3 * BLOCK_NODES {
            publish(&mut tree, &number.to_string(), b"", 1);
        }
        let mut blocks = tree.into_blocks();
        let mut parts = 1;
        while blocks.free_some() {
            parts += 1;
        }
        assert_eq!(parts, 4);
    }

    proptest! {
        #[test]
        fn sums_and_links_hold_whatever_is_forgotten(
            topics in prop::collection::vec(("[ab](/[abc]){0,3}", 0..40_u64), 1..200),
            nodes in 1..12_usize,
        ) {
            let mut tree = TopicTree::with_limits(nodes, 1 << 20, at(0));
            let mut now = 0;
            for (topic, secs) in &topics {
                now += secs;
                publish(&mut tree, topic, b"x", now);
                prop_assert!(tree.node_count() <= nodes);
            }
            let mut seen = 0;
            let mut left = vec![ROOT];
            while let Some(parent) = left.pop() {
                let shown = tree.show(parent);
                let own = shown.value.map_or(0, |value| value.messages);
                let (mut sum, mut count) = (own, 0);
                let mut next = tree.first_child(parent);
                while let Some(child) = next {
                    sum += tree.show(child).flow.messages;
                    count += 1;
                    left.push(child);
                    next = tree.next_child(parent, child);
                }
                prop_assert!(sum <= shown.flow.messages);
                prop_assert_eq!(count, shown.children);
                seen += 1;
            }
            prop_assert_eq!(seen - 1, tree.node_count());
            prop_assert_eq!(messages(&tree, None), Some(topics.len() as u64));
        }
    }
}
