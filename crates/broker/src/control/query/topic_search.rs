//! Topics of the trees of all workers that contain a text or match a filter, the first ones by
//! name.

use std::collections::BTreeMap;

use thrum_engine::observation::{TopicNodeId, TopicPattern, TopicTree, observe_topics};
use thrum_protocol::Time;

use super::QueryError;
use super::sender::QuerySender;
use super::tasks::{TaskProgress, WorkerTask};
use super::topics::{self, Found, Moment, TopicDetail, TopicPage, TopicQuery, TopicRow, earliest};
use crate::traffic::Traffic;

/// Topics that a search finds at most: what a page shows.
pub const TOPIC_HITS_MAX: usize = 100;
/// Work of a node that is looked at, beside that of its name.
const NODE_UNITS: u64 = 2;
/// Bytes of a name that take as long as half a node.
const UNIT_BYTES: usize = 64;
/// Work of a topic that is found.
const HIT_UNITS: u64 = 8;

/// The topics that messages have, as a tree. It begins with the first call, and ends by itself a
/// minute after the last one.
#[derive(Clone, Copy, Debug)]
pub struct ObservedTopics<'a>(pub(super) &'a QuerySender);

impl ObservedTopics<'_> {
    /// Lists the children of a node of the tree. In the order of names a whole listing is exact; in
    /// another one each worker tells its first
    /// [`TOPIC_ROWS_OF_WORKER_MAX`](super::TOPIC_ROWS_OF_WORKER_MAX) children.
    ///
    /// # Errors
    /// The query is not valid, or a worker does not answer.
    pub fn list(&self, query: &TopicQuery) -> Result<TopicPage, QueryError> {
        topics::topics(self.0, query)
    }

    /// A topic in full. Its values and publishers are kept from the first call on, for a minute
    /// after the last one.
    ///
    /// # Errors
    /// The topic is not valid, or a worker does not answer.
    pub fn show(&self, topic: &str) -> Result<TopicDetail, QueryError> {
        topics::topic(self.0, topic)
    }

    /// Searches all levels for a text or a filter with wildcards, up to `limit` topics and
    /// [`TOPIC_HITS_MAX`].
    ///
    /// # Errors
    /// The text cannot be searched for, or a worker does not answer.
    pub fn search(&self, text: &str, limit: usize) -> Result<TopicHits, QueryError> {
        search(self.0, text, limit)
    }
}

/// Topics that were found.
#[derive(Clone, Debug)]
pub struct TopicHits {
    /// The first ones by name; the name is the whole topic.
    pub rows: Vec<TopicRow>,
    /// There are more.
    pub is_cut: bool,
    /// Messages whose topics found no room in the tree: a search does not find these.
    pub untold: u64,
    /// Topics and levels that were silent for a minute and forgotten for others: a search finds
    /// these again with their next message.
    pub forgotten: u64,
    /// When the observation began, in milliseconds of the Unix epoch.
    pub observed_since: u64,
}

fn search(sender: &QuerySender, text: &str, limit: usize) -> Result<TopicHits, QueryError> {
    let pattern = TopicPattern::parse(text);
    let pattern = pattern.map_err(|error| QueryError::Invalid(error.what().to_owned()))?;
    let limit = limit.clamp(1, TOPIC_HITS_MAX);
    let task = || SearchTopics {
        pattern: pattern.clone(),
        place: 0,
        found: FoundTopics::new(limit),
    };
    let mut all = FoundTopics::new(limit);
    for found in sender.walk_all(task)? {
        all.join(found);
    }
    let node = sender.node();
    let now = Moment {
        now: node.clock.now(),
        began: all.began.unwrap_or_else(|| node.clock.now()),
    };
    let wall = |at| node.state.wall.millis(at);
    Ok(TopicHits {
        rows: all
            .topics
            .into_iter()
            .map(|(topic, row)| row.show(topic.into(), now, &wall))
            .collect(),
        is_cut: all.is_cut,
        untold: all.untold,
        forgotten: all.forgotten,
        observed_since: wall(now.began),
    })
}

/// The first topics by name that one worker has found, or several. As all have the first ones of
/// the same order, those of all together have the figures of all.
#[derive(Debug)]
struct FoundTopics {
    most: usize,
    topics: BTreeMap<String, Found>,
    is_cut: bool,
    untold: u64,
    forgotten: u64,
    began: Option<Time>,
}

impl FoundTopics {
    const fn new(most: usize) -> Self {
        Self {
            most,
            topics: BTreeMap::new(),
            is_cut: false,
            untold: 0,
            forgotten: 0,
            began: None,
        }
    }

    /// Takes a topic if it is among the first ones.
    fn offer(&mut self, topic: String, row: impl FnOnce() -> Found) {
        let is_full = self.topics.len() >= self.most;
        let is_last = self
            .topics
            .last_key_value()
            .is_some_and(|(last, _)| *last < topic);
        if is_full && is_last {
            self.is_cut = true;
            return;
        }
        match self.topics.get_mut(&topic) {
            Some(same) => same.join(row()),
            None => drop(self.topics.insert(topic, row())),
        }
        if self.topics.len() > self.most {
            self.is_cut = true;
            self.topics.pop_last();
        }
    }

    fn join(&mut self, other: Self) {
        self.is_cut |= other.is_cut;
        self.untold += other.untold;
        self.forgotten += other.forgotten;
        self.began = earliest(self.began, other.began);
        for (topic, row) in other.topics {
            self.offer(topic, || row);
        }
    }
}

/// The search of one worker, place by place: a node that is forgotten meanwhile is not found, and
/// one that takes a place behind is not found either.
#[derive(Debug)]
struct SearchTopics {
    pattern: TopicPattern,
    /// The last place that was looked at; the first one is that of the root.
    place: u32,
    found: FoundTopics,
}

impl SearchTopics {
    /// Takes a node that is searched for; returns the work of it.
    fn look(&mut self, tree: &TopicTree, id: TopicNodeId) -> u64 {
        let node = tree.show(id);
        let work = (node.name.len() / UNIT_BYTES) as u64;
        if !tree.is_match(id, &self.pattern) {
            return work;
        }
        self.found.offer(tree.topic(id), || Found::of(node));
        work + HIT_UNITS
    }
}

impl WorkerTask for SearchTopics {
    type Answer = FoundTopics;

    fn advance(&mut self, traffic: &mut Traffic) -> TaskProgress<FoundTopics> {
        let core = &mut traffic.engine.core;
        if self.place == 0 {
            observe_topics(core);
        }
        let most = self.found.most;
        let done = |found: &mut FoundTopics| {
            TaskProgress::Done(std::mem::replace(found, FoundTopics::new(most)))
        };
        let Some(tree) = core.observation.tree() else {
            return done(&mut self.found);
        };
        if self.found.began != Some(tree.began()) {
            // It is another tree.
            self.place = 0;
            self.found = FoundTopics::new(most);
            self.found.began = Some(tree.began());
        }
        self.found.untold = tree.untold();
        self.found.forgotten = tree.forgotten();
        while (self.place as usize) + 1 < tree.places() {
            self.place += 1;
            core.turn.work += NODE_UNITS;
            if let Some(id) = tree.at_place(self.place) {
                core.turn.work += self.look(tree, id);
            }
            if core.turn.is_portion_over() {
                return TaskProgress::More;
            }
        }
        done(&mut self.found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(most: usize, topics: &[&str]) -> FoundTopics {
        let mut found = FoundTopics::new(most);
        for topic in topics {
            found.offer((*topic).to_owned(), || Found::of_messages(1));
        }
        found
    }

    #[test]
    fn the_first_ones_by_name_stay_and_the_rest_is_said_to_be_there() {
        let all = found(2, &["c", "a", "d", "b"]);
        assert_eq!(all.topics.keys().collect::<Vec<_>>(), ["a", "b"]);
        assert!(all.is_cut);
        assert!(!found(2, &["c", "a"]).is_cut);
    }

    #[test]
    fn a_topic_of_several_workers_is_one_with_the_messages_of_all() {
        let mut all = found(3, &["a", "c"]);
        (all.untold, all.forgotten) = (4, 20);
        let mut other = found(3, &["b", "c"]);
        (other.untold, other.forgotten) = (1, 3);
        all.join(other);
        let counted = all.topics.iter();
        let counted: Vec<(&str, u64)> = counted
            .map(|(topic, row)| (topic.as_str(), row.messages()))
            .collect();
        assert_eq!(counted, [("a", 1), ("b", 1), ("c", 2)]);
        assert!(!all.is_cut);
        assert_eq!((all.untold, all.forgotten), (5, 23));
        all.join(found(3, &["bb"]));
        assert!(all.is_cut);
    }
}
