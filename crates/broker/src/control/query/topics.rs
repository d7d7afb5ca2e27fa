//! The tree of topics of all workers: the children of a node by page, and one topic in full.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use thrum_codec::QoS;
use thrum_engine::interest::Route;
use thrum_engine::observation::{
    PUBLISHERS_MAX, TopicFlow, TopicNode, TopicNodeId, TopicTree, TopicValue, VALUES_MAX,
    WatchedValue, observe_topics, watch_topic,
};
use thrum_engine::router::Router;
use thrum_protocol::Time;

use super::cursor::Listing;
use super::sender::QuerySender;
use super::tasks::{TaskProgress, WorkerTask};
use super::{Cursor, CursorError, QueryError, page_rows};
use crate::traffic::Traffic;

/// Children of a node that one worker answers with: those that come first. A node with more of them
/// is shown in part.
pub const TOPIC_ROWS_OF_WORKER_MAX: usize = 2048;
/// Longest topic that is asked for: that of the protocol.
const TOPIC_BYTES_MAX: usize = 65_535;
/// How often a walk begins again that has lost its place.
const RESTARTS_MAX: u8 = 3;

/// The order of topics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TopicOrder {
    /// By name.
    #[default]
    Name,
    /// By messages since the observation began.
    Messages,
    /// By messages a second.
    Rate,
    /// By bytes a second.
    Bytes,
    /// By the time of the last message.
    Last,
}

impl TopicOrder {
    /// Its name in the interface.
    pub const ALL: [(&'static str, Self); 5] = [
        ("name", Self::Name),
        ("messages", Self::Messages),
        ("rate", Self::Rate),
        ("bytes", Self::Bytes),
        ("last", Self::Last),
    ];
}

/// A request for the children of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TopicQuery {
    /// The topic, or the beginning of one, whose children are listed; none for all topics.
    pub under: Option<String>,
    /// Their order.
    pub order: TopicOrder,
    /// The greatest, newest or last one first.
    pub is_descending: bool,
    /// Rows at most, up to [`ROWS_MAX`](super::ROWS_MAX).
    pub limit: usize,
    /// The `next` of the page before.
    pub cursor: Option<Cursor>,
}

/// Figures of a topic with all topics below it, since the observation began.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TopicFigures {
    /// Messages.
    pub messages: u64,
    /// Bytes of their payloads.
    pub payload_bytes: u64,
    /// Messages in a second, of the last seconds.
    pub messages_per_second: f64,
    /// Bytes of payloads in a second, of the last seconds.
    pub bytes_per_second: f64,
    /// The last one, in milliseconds of the Unix epoch; 0 if there was none.
    pub last_at: u64,
}

/// The last message with exactly a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicLast {
    /// Messages with exactly this topic since the observation began.
    pub messages: u64,
    /// In milliseconds of the Unix epoch.
    pub at: u64,
    /// Its quality of service.
    pub qos: QoS,
    /// Its RETAIN flag.
    pub retain: bool,
    /// Bytes of its payload.
    pub payload_bytes: u32,
    /// Their beginning.
    pub preview: Box<[u8]>,
}

/// A node of the tree.
#[derive(Clone, Debug, PartialEq)]
pub struct TopicRow {
    /// Its level of the topic.
    pub name: Box<str>,
    /// Its figures with all topics below it.
    pub figures: TopicFigures,
    /// Its last message; none if no message had exactly this topic.
    pub last: Option<TopicLast>,
    /// Nodes right below it, as far as one worker has seen them.
    pub children: u32,
}

/// The children of a node.
#[derive(Clone, Debug)]
pub struct TopicPage {
    /// In the order of the query.
    pub rows: Vec<TopicRow>,
    /// Start of the next page; none if this is the last one.
    pub next: Option<Cursor>,
    /// The node itself; none if no message had a topic below it.
    pub node: Option<TopicRow>,
    /// Messages below the node that no child has, because their topics found no room; none if not
    /// all children are here.
    pub others: Option<u64>,
    /// When the observation began, in milliseconds of the Unix epoch.
    pub observed_since: u64,
}

/// A topic in full.
#[derive(Clone, Debug)]
pub struct TopicDetail {
    /// Its figures; none if no message had it, or a topic below it, since the observation began.
    pub row: Option<TopicRow>,
    /// Its last messages since somebody looks at it, the oldest first.
    pub values: Vec<(u64, WatchedValue)>,
    /// Its publishers since then, with their messages; the broker itself has no name.
    pub publishers: Vec<(Box<str>, u64)>,
    /// Sessions that are subscribed to it, by filters without a group.
    pub subscribers: u64,
    /// Shared groups that are subscribed to it.
    pub groups: u64,
    /// It has a retained message.
    pub is_retained: bool,
    /// When the observation began, in milliseconds of the Unix epoch.
    pub observed_since: u64,
}

/// See [`ObservedTopics::list`](super::ObservedTopics::list).
pub(super) fn topics(sender: &QuerySender, query: &TopicQuery) -> Result<TopicPage, QueryError> {
    check(query.under.as_deref())?;
    let after = query.cursor.as_ref().map(|cursor| read(cursor, query));
    let after = after.transpose()?;
    let list = || ListTopics {
        query: query.clone(),
        after: after.clone(),
        next: None,
        parent: None,
        resumes_at: None,
        restarts: 0,
        found: TopicsFound::default(),
    };
    let mut found = TopicsFound::default();
    let mut children: BTreeMap<Box<str>, Found> = BTreeMap::new();
    for mut more in sender.walk_all(list)? {
        for (name, row) in std::mem::take(&mut more.rows) {
            match children.get_mut(&name) {
                Some(same) => same.join(row),
                None => drop(children.insert(name, row)),
            }
        }
        found.join(more);
    }
    let node = sender.node();
    let now = Moment {
        now: node.clock.now(),
        began: found.began.unwrap_or_else(|| node.clock.now()),
    };
    let wall = |at| node.state.wall.millis(at);
    let is_whole = !found.is_cut && after.is_none();
    let below: u64 = children.values().map(|row| row.flow.messages).sum();
    let others = found.node.as_ref().filter(|_| is_whole).map(|node| {
        let own = node.value.as_ref().map_or(0, |value| value.messages);
        node.flow.messages.saturating_sub(below + own)
    });
    let mut rows: Vec<(Place, Found)> = children
        .into_iter()
        .map(|(name, row)| (Place::of(query.order, &name, &row.flow, now), row))
        .filter(|(place, _)| query.is_behind(place, after.as_ref()))
        .collect();
    rows.sort_by(|one, other| query.compare(&one.0, &other.0));
    let limit = page_rows(query.limit);
    let has_more = rows.len() > limit || found.is_cut;
    rows.truncate(limit);
    let last = rows.last().filter(|_| has_more);
    Ok(TopicPage {
        next: last.map(|(place, _)| write(place, query)),
        rows: rows
            .into_iter()
            .map(|(place, row)| row.show(place.name, now, &wall))
            .collect(),
        node: found.node.map(|row| {
            let name = query.under.as_deref().unwrap_or_default();
            row.show(name.into(), now, &wall)
        }),
        others,
        observed_since: wall(now.began),
    })
}

/// See [`ObservedTopics::show`](super::ObservedTopics::show).
pub(super) fn topic(sender: &QuerySender, topic: &str) -> Result<TopicDetail, QueryError> {
    check(Some(topic))?;
    let node = sender.node();
    let mut found = TopicFound::default();
    for more in sender.query_all(|| ShowTopic(topic.into()))? {
        found.join(more);
    }
    let now = Moment {
        now: node.clock.now(),
        began: found.began.unwrap_or_else(|| node.clock.now()),
    };
    let wall = |at| node.state.wall.millis(at);
    found.values.sort_by_key(|value| value.at);
    let newest = found.values.len().saturating_sub(VALUES_MAX);
    let values = found.values.split_off(newest).into_iter();
    let mut publishers: Vec<(Box<str>, u64)> = found.publishers.into_iter().collect();
    publishers.sort_by(|one, other| (other.1, &one.0).cmp(&(one.1, &other.0)));
    publishers.truncate(PUBLISHERS_MAX);
    let retained = super::retained::retained_message(sender, topic)?;
    Ok(TopicDetail {
        row: found.row.map(|row| row.show(topic.into(), now, &wall)),
        values: values.map(|value| (wall(value.at), value)).collect(),
        publishers,
        subscribers: found.subscribers,
        groups: groups_of(sender, topic),
        is_retained: retained.is_some(),
        observed_since: wall(now.began),
    })
}

fn groups_of(sender: &QuerySender, topic: &str) -> u64 {
    let mut route = Route::default();
    let interest = &sender.node().state.interest;
    interest.route(topic, &mut Vec::new(), &mut route);
    route.groups.len() as u64
}

fn check(topic: Option<&str>) -> Result<(), QueryError> {
    let Some(topic) = topic else {
        return Ok(());
    };
    let problem = if topic.len() > TOPIC_BYTES_MAX {
        "a topic has at most 65,535 bytes".to_owned()
    } else if topic.contains(['+', '#', '\0']) {
        format!("{topic:?} is no topic: it has no wildcards; name the levels, as in site/a")
    } else {
        return Ok(());
    };
    Err(QueryError::Invalid(problem))
}

/// When rates are told.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) now: Time,
    pub(super) began: Time,
}

/// The place of a row in an order.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    /// Thousandths for rates; 0 if the order is that of names.
    value: u64,
    name: Box<str>,
}

impl Place {
    fn of(order: TopicOrder, name: &str, flow: &TopicFlow, moment: Moment) -> Self {
        let (rate, bytes) = flow.rates(moment.now, moment.began);
        let value = match order {
            TopicOrder::Name => 0,
            TopicOrder::Messages => flow.messages,
            TopicOrder::Rate => thousandths(rate),
            TopicOrder::Bytes => thousandths(bytes),
            TopicOrder::Last => flow.last.as_millis(),
        };
        Self {
            value,
            name: name.into(),
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rate is not negative, and less than 2^50"
)]
fn thousandths(rate: f64) -> u64 {
    (rate * 1000.0) as u64
}

impl TopicQuery {
    fn compare(&self, one: &Place, other: &Place) -> Ordering {
        let order = (one.value, &one.name).cmp(&(other.value, &other.name));
        if self.is_descending {
            order.reverse()
        } else {
            order
        }
    }

    fn is_behind(&self, place: &Place, after: Option<&Place>) -> bool {
        after.is_none_or(|after| self.compare(place, after) == Ordering::Greater)
    }

    /// The beginning of the cursors of this order.
    fn mark(&self) -> u8 {
        let order = TopicOrder::ALL.iter();
        let number = order.take_while(|(_, order)| *order != self.order).count();
        u8::try_from(number).unwrap_or(u8::MAX) << 1 | u8::from(self.is_descending)
    }
}

fn write(place: &Place, query: &TopicQuery) -> Cursor {
    let mut position = vec![query.mark()];
    position.extend_from_slice(&place.value.to_le_bytes());
    position.extend_from_slice(place.name.as_bytes());
    Cursor::new(Listing::Topics, &position)
}

fn read(cursor: &Cursor, query: &TopicQuery) -> Result<Place, CursorError> {
    let position = cursor.position(Listing::Topics)?;
    let position = position.strip_prefix(&[query.mark()]);
    let (value, name) = position
        .and_then(|position| position.split_first_chunk())
        .ok_or(CursorError)?;
    let name = std::str::from_utf8(name).map_err(|_| CursorError)?;
    Ok(Place {
        value: u64::from_le_bytes(*value),
        name: name.into(),
    })
}

/// A node of one worker, or of several.
#[derive(Clone, Debug)]
pub(super) struct Found {
    flow: TopicFlow,
    value: Option<TopicValue>,
    children: u32,
}

impl Found {
    #[cfg(test)]
    pub(super) fn of_messages(messages: u64) -> Self {
        let mut flow = TopicFlow::default();
        flow.messages = messages;
        Self {
            flow,
            value: None,
            children: 0,
        }
    }

    #[cfg(test)]
    pub(super) const fn messages(&self) -> u64 {
        self.flow.messages
    }

    pub(super) fn of(node: TopicNode<'_>) -> Self {
        Self {
            flow: *node.flow,
            value: node.value.cloned(),
            children: node.children,
        }
    }

    pub(super) fn join(&mut self, other: Self) {
        self.flow = self.flow.plus(other.flow);
        self.children = self.children.max(other.children);
        self.value = match (self.value.take(), other.value) {
            (Some(one), Some(other)) => {
                let messages = one.messages + other.messages;
                let newest = if one.at >= other.at { one } else { other };
                Some(TopicValue { messages, ..newest })
            }
            (one, other) => one.or(other),
        };
    }

    pub(super) fn show(
        self,
        name: Box<str>,
        moment: Moment,
        wall: &impl Fn(Time) -> u64,
    ) -> TopicRow {
        let (messages_per_second, bytes_per_second) = self.flow.rates(moment.now, moment.began);
        TopicRow {
            name,
            figures: TopicFigures {
                messages: self.flow.messages,
                payload_bytes: self.flow.payload_bytes,
                messages_per_second,
                bytes_per_second,
                last_at: match self.flow.messages {
                    0 => 0,
                    _ => wall(self.flow.last),
                },
            },
            last: self.value.map(|value| TopicLast {
                messages: value.messages,
                at: wall(value.at),
                qos: value.qos,
                retain: value.retain,
                payload_bytes: value.payload_bytes,
                preview: value.preview.into(),
            }),
            children: self.children,
        }
    }
}

/// What one worker has found, or several.
#[derive(Debug, Default)]
struct TopicsFound {
    node: Option<Found>,
    rows: Vec<(Box<str>, Found)>,
    /// There are more children, which come later in the order.
    is_cut: bool,
    began: Option<Time>,
}

impl TopicsFound {
    fn join(&mut self, other: Self) {
        self.is_cut |= other.is_cut;
        self.began = earliest(self.began, other.began);
        join(&mut self.node, other.node);
    }
}

pub(super) fn earliest(one: Option<Time>, other: Option<Time>) -> Option<Time> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

fn join(node: &mut Option<Found>, other: Option<Found>) {
    match (node.as_mut(), other) {
        (Some(node), Some(other)) => node.join(other),
        (None, other) => *node = other,
        (Some(_), None) => {}
    }
}

/// The walk of one worker over the children of a node.
#[derive(Debug)]
struct ListTopics {
    query: TopicQuery,
    after: Option<Place>,
    parent: Option<TopicNodeId>,
    next: Option<TopicNodeId>,
    /// The name of the next child, which goes on in the next turn.
    resumes_at: Option<Box<str>>,
    /// How often it has begun again.
    restarts: u8,
    found: TopicsFound,
}

impl ListTopics {
    /// Finds the node; false if it is not there.
    fn begin(&mut self, traffic: &mut Traffic) -> bool {
        let core = &mut traffic.engine.core;
        observe_topics(core);
        let Some(tree) = core.observation.tree() else {
            return false;
        };
        self.found.began = Some(tree.began());
        let Some(parent) = tree.find_topic(self.query.under.as_deref()) else {
            return false;
        };
        self.found.node = Some(Found::of(tree.show(parent)));
        self.parent = Some(parent);
        self.next = tree.first_child(parent);
        true
    }

    /// Whether the children go on where the last portion has ended. Between two portions messages
    /// are counted, which may forget a silent topic and give its place to another one: the walk
    /// would list that one, and its neighbours.
    fn is_found_again(&mut self, tree: Option<&TopicTree>) -> bool {
        let place = (self.parent, self.next, self.resumes_at.take(), tree);
        match place {
            (Some(parent), Some(child), Some(name), Some(tree)) => {
                tree.find_topic(self.query.under.as_deref()) == Some(parent)
                    && tree.is_still_child(parent, child, &name)
            }
            _ => true,
        }
    }

    /// Whether it must begin again: which children were not visited is unknown then, as they have
    /// no order.
    fn is_lost(&mut self, traffic: &Traffic) -> bool {
        let began = self.found.began;
        let tree = traffic.engine.core.observation.tree();
        let tree = tree.filter(|tree| Some(tree.began()) == began);
        !self.is_found_again(tree)
    }

    /// Takes a child, if it comes behind the cursor: a worker alone knows that for names only.
    fn take(&mut self, node: TopicNode<'_>) {
        if self.query.order == TopicOrder::Name {
            let place = Place {
                value: 0,
                name: node.name.into(),
            };
            if !self.query.is_behind(&place, self.after.as_ref()) {
                return;
            }
        }
        self.found.rows.push((node.name.into(), Found::of(node)));
    }

    /// Drops those that come last, once there are twice as many as may stay.
    fn shorten(&mut self, moment: Moment, most: usize) {
        if self.found.rows.len() <= most {
            return;
        }
        self.found.is_cut = true;
        let query = &self.query;
        let rows = std::mem::take(&mut self.found.rows).into_iter();
        let mut placed: Vec<(Place, Found)> = rows
            .map(|(name, row)| (Place::of(query.order, &name, &row.flow, moment), row))
            .collect();
        placed.select_nth_unstable_by(TOPIC_ROWS_OF_WORKER_MAX - 1, |one, other| {
            query.compare(&one.0, &other.0)
        });
        placed.truncate(TOPIC_ROWS_OF_WORKER_MAX);
        let placed = placed.into_iter();
        self.found.rows = placed.map(|(place, row)| (place.name, row)).collect();
    }
}

impl WorkerTask for ListTopics {
    type Answer = TopicsFound;

    fn advance(&mut self, traffic: &mut Traffic) -> TaskProgress<TopicsFound> {
        if self.is_lost(traffic) {
            self.found = TopicsFound::default();
            self.parent = None;
            self.restarts += 1;
        }
        if self.parent.is_none() && (self.restarts > RESTARTS_MAX || !self.begin(traffic)) {
            self.found.is_cut |= self.restarts > RESTARTS_MAX;
            return TaskProgress::Done(std::mem::take(&mut self.found));
        }
        let core = &mut traffic.engine.core;
        let now = core.turn.now;
        let began = self.found.began.unwrap_or(now);
        let moment = Moment { now, began };
        // The observation may have ended meanwhile.
        let tree = core.observation.tree();
        let tree = tree.filter(|tree| tree.began() == began);
        while let (Some(tree), Some(parent), Some(child)) = (tree, self.parent, self.next) {
            self.next = tree.next_child(parent, child);
            let name = |next: TopicNodeId| tree.show(next).name.into();
            self.take(tree.show(child));
            self.shorten(moment, 2 * TOPIC_ROWS_OF_WORKER_MAX);
            core.turn.work += 2;
            if self.next.is_some() && core.turn.is_portion_over() {
                self.resumes_at = self.next.map(name);
                return TaskProgress::More;
            }
        }
        self.shorten(moment, TOPIC_ROWS_OF_WORKER_MAX);
        TaskProgress::Done(std::mem::take(&mut self.found))
    }
}

/// One topic of one worker, or of several.
#[derive(Debug, Default)]
struct TopicFound {
    row: Option<Found>,
    values: Vec<WatchedValue>,
    publishers: BTreeMap<Box<str>, u64>,
    subscribers: u64,
    began: Option<Time>,
}

impl TopicFound {
    fn join(&mut self, other: Self) {
        join(&mut self.row, other.row);
        self.values.extend(other.values);
        for (name, count) in other.publishers {
            *self.publishers.entry(name).or_default() += count;
        }
        self.subscribers += other.subscribers;
        self.began = earliest(self.began, other.began);
    }
}

#[derive(Debug)]
struct ShowTopic(Box<str>);

impl WorkerTask for ShowTopic {
    type Answer = TopicFound;

    fn advance(&mut self, traffic: &mut Traffic) -> TaskProgress<TopicFound> {
        let Self(topic) = self;
        let core = &mut traffic.engine.core;
        watch_topic(core, topic);
        let mut found = TopicFound::default();
        if let Some(tree) = core.observation.tree() {
            found.began = Some(tree.began());
            let node = tree.find_topic(Some(topic));
            found.row = node.map(|node| Found::of(tree.show(node)));
        }
        if let Some(watched) = core.observation.watched(topic) {
            found.values = watched.values().cloned().collect();
            let publishers = watched.publishers();
            found.publishers = publishers.map(|one| (one.key.clone(), one.count)).collect();
        }
        let Router { topics, .. } = &traffic.engine.router;
        let (subscribers, visits) = topics.count_subscribers(topic);
        found.subscribers = subscribers;
        traffic.engine.core.turn.work += visits as u64;
        TaskProgress::Done(found)
    }
}
