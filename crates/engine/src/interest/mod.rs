//! Level 1 of routing: the workers, shared groups and sinks of this node whose filters match a
//! topic.
//!
//! A worker enters a filter when its first session subscribes to it and removes it after the last
//! one; a node with one worker needs no table for its sessions, only for its groups and sinks.
//! Publishers cache the routes of their topics with a version, so that steady traffic takes no lock
//! and writes nothing that another worker reads.
//!
//! The table is divided into shards, so that workers change it and look topics up at the same time.
//! A look-up reads at most three of them: the filters without wildcards by the hash of the topic,
//! the wildcard filters that begin with the first two levels of the topic, and the wildcard filters
//! with a shorter fixed prefix.

pub mod changes;
mod event_subscribers;
pub mod groups;
pub mod route_cache;
#[cfg(test)]
mod tests;

use std::hash::BuildHasher;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

use crossbeam_utils::CachePadded;
use crossbeam_utils::sync::{ShardedLock, ShardedLockReadGuard, ShardedLockWriteGuard};
use hashbrown::DefaultHashBuilder;
use std::sync::Arc;
use thrum_codec::SharedFilter;
use thrum_codec::packet::SubscriptionOptions;
use thrum_protocol::server::GroupId;
use thrum_routing::shared::{Group, Strategy};
use thrum_routing::{Destination, FilterId, Index};

use crate::ids::Slot;
use crate::interest::changes::{Changes, Version};
use crate::interest::groups::{Groups, Removal, SharedGroup};
use crate::queue_room::QueueRoom;
use crate::sinks::{SinkId, SinkSet};
use crate::workers::{WorkerId, WorkerSet};

use event_subscribers::EventSubscribers;
pub use event_subscribers::{EVENTS, EventKind};

/// Shards for each kind of filter on a node with several workers; a node with one worker has one
/// shard, as its lock is never contended.
const SHARDS: usize = 64;

/// Identity of a session on the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SessionRef {
    /// The worker that owns the session.
    pub worker: WorkerId,
    /// The slot of the session on its worker.
    pub slot: Slot,
    /// The number of the session, which no later session in the slot has.
    pub id: u64,
}

/// A member of a shared group.
#[derive(Clone, Debug)]
pub struct Member {
    /// The session that is the member.
    pub session: SessionRef,
    /// The subscription options of the member.
    pub options: SubscriptionOptions,
    /// The subscription identifier of the member, if any.
    pub identifier: Option<u32>,
    /// Messages to the member with QoS 1 and 2 must survive a crash.
    pub durable: bool,
    /// The capacity of the member's queue.
    pub room: Arc<QueueRoom>,
}

impl Destination for Member {
    type Key = u64;

    fn key(&self) -> u64 {
        self.session.id
    }
}

#[derive(Clone, Debug)]
enum Interested {
    Worker(WorkerId),
    /// A worker with a durable session among the subscribers.
    Durable(WorkerId),
    /// A session whose queue is nearly full.
    NearlyFull(Arc<QueueRoom>),
    /// A worker on which the queues of all subscribers are nearly full.
    AllNearlyFull(WorkerId),
    Group(Arc<SharedGroup>),
    Sink(SinkId),
}

/// Identity of a destination in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum InterestKey {
    Worker(WorkerId),
    Durable(WorkerId),
    NearlyFull(u64),
    AllNearlyFull(WorkerId),
    Group(GroupId),
    Sink(SinkId),
}

impl Destination for Interested {
    type Key = InterestKey;

    fn key(&self) -> InterestKey {
        match self {
            Self::Worker(worker) => InterestKey::Worker(*worker),
            Self::Durable(worker) => InterestKey::Durable(*worker),
            Self::NearlyFull(room) => InterestKey::NearlyFull(room.session.id),
            Self::AllNearlyFull(worker) => InterestKey::AllNearlyFull(*worker),
            Self::Group(group) => InterestKey::Group(group.id),
            Self::Sink(sink) => InterestKey::Sink(*sink),
        }
    }
}

/// The destinations of a topic, as the worker of a publisher caches them.
#[derive(Clone, Debug, Default)]
pub struct Route {
    /// Workers with subscribers; empty on a node with a single worker.
    pub workers: WorkerSet,
    /// Workers with durable subscribers, which have to store the message.
    pub durable: WorkerSet,
    /// Workers with a subscriber whose queue certainly has room.
    pub certain: WorkerSet,
    /// Subscribers whose queues are nearly full; usually empty.
    pub nearly_full: Vec<Arc<QueueRoom>>,
    /// Shared groups with their members at the time of the look-up.
    pub groups: Vec<(GroupId, Arc<Group<Member>>)>,
    /// Sinks whose filter matches the topic.
    pub sinks: SinkSet,
}

/// Result of joining a shared group.
#[derive(Clone, Copy, Debug)]
pub struct Joined {
    /// The group that the session is a member of now.
    pub group: GroupId,
    /// The session was a member of the group before.
    pub existed: bool,
}

/// The node's table of filters and groups.
///
/// A shard is locked before the list of groups, that before a single group, and no two shards or
/// groups at once.
#[derive(Debug)]
pub struct Interest {
    changes: Changes,
    hasher: DefaultHashBuilder,
    /// Shards of filters without wildcards, by their hash; then as many shards of wildcard filters,
    /// by the hash of their first two levels; then one shard of wildcard filters with a shorter
    /// fixed prefix.
    shards: Box<[CachePadded<Shard>]>,
    /// Guards the list of groups: read when a member joins, leaves, connects or disconnects,
    /// written when a group is created or removed. Look-ups of topics find their groups in the
    /// shards.
    groups: ShardedLock<Groups>,
    strategy: Strategy,
    /// The kinds of client events with subscribers, on a cache line that is rarely written.
    pub(crate) event_subscribers: CachePadded<EventSubscribers>,
    /// The node has several workers, so that the filters of workers are entered in the table.
    has_several_workers: bool,
}

/// A part of the filters.
#[derive(Debug)]
struct Shard {
    /// Guards the part: read for the match of a topic that a worker has not cached, written when a
    /// filter is entered or removed. Readers on different cores write different cache lines.
    index: ShardedLock<Index<Interested>>,
    /// Number of filters in the part, so that an empty part is not locked.
    filters: AtomicUsize,
}

impl Interest {
    /// The strategy by which shared groups choose a member.
    pub const fn strategy(&self) -> Strategy {
        self.strategy
    }

    /// Creates an empty table for a node of that many workers.
    pub fn new(strategy: Strategy, workers: usize) -> Self {
        let shards = if workers > 1 { SHARDS } else { 1 };
        Self {
            changes: Changes::new(),
            hasher: DefaultHashBuilder::default(),
            shards: (0..=2 * shards)
                .map(|_| CachePadded::new(Shard::new()))
                .collect(),
            groups: ShardedLock::default(),
            strategy,
            event_subscribers: CachePadded::default(),
            has_several_workers: workers > 1,
        }
    }

    /// Whether a route that was looked up before is still valid.
    #[inline]
    pub fn holds(&self, version: &mut Version, topic: &str) -> bool {
        self.changes.holds(version, topic)
    }

    /// Number of the last change of the table.
    pub fn generation(&self) -> u64 {
        self.changes.generation()
    }

    /// Enters a filter of a worker, at its first subscription.
    pub fn add_worker(&self, filter: &str, worker: WorkerId) {
        self.event_subscribers.add_filter(filter);
        self.add(filter, Interested::Worker(worker));
    }

    /// Removes a filter of a worker, after its last subscription.
    pub fn remove_worker(&self, filter: &str, worker: WorkerId) {
        self.event_subscribers.remove_filter(filter);
        self.remove(filter, InterestKey::Worker(worker));
    }

    /// Enters a filter of a worker, at the first subscription of a durable session.
    pub fn add_durable(&self, filter: &str, worker: WorkerId) {
        self.add(filter, Interested::Durable(worker));
    }

    /// Removes a filter of a worker, after the last subscription of a durable session.
    pub fn remove_durable(&self, filter: &str, worker: WorkerId) {
        self.remove(filter, InterestKey::Durable(worker));
    }

    /// Enters the filter of a sink.
    pub fn add_sink(&self, filter: &str, sink: SinkId) {
        self.event_subscribers.add_filter(filter);
        self.put(filter, Interested::Sink(sink));
    }

    /// Removes the filter of a sink.
    pub fn remove_sink(&self, filter: &str, sink: SinkId) {
        self.event_subscribers.remove_filter(filter);
        self.take(filter, InterestKey::Sink(sink));
    }

    /// Enters a filter of a session whose queue is nearly full. Must be called before the
    /// subscription is entered.
    pub fn add_nearly_full(&self, filter: &str, room: &Arc<QueueRoom>) {
        self.put(filter, Interested::NearlyFull(Arc::clone(room)));
    }

    /// Removes a filter of a session whose queue is no longer nearly full.
    pub fn remove_nearly_full(&self, filter: &str, session: u64) {
        self.take(filter, InterestKey::NearlyFull(session));
    }

    /// Sets whether the queues of all subscribers of a filter on a worker are nearly full.
    pub fn set_all_nearly_full(&self, filter: &str, worker: WorkerId, are_all: bool) {
        if are_all {
            self.add(filter, Interested::AllNearlyFull(worker));
        } else {
            self.remove(filter, InterestKey::AllNearlyFull(worker));
        }
    }

    fn add(&self, filter: &str, interested: Interested) {
        if self.has_several_workers {
            self.put(filter, interested);
        }
    }

    fn remove(&self, filter: &str, key: InterestKey) {
        if self.has_several_workers {
            self.take(filter, key);
        }
    }

    fn put(&self, filter: &str, interested: Interested) {
        let shard = self.shard_of_filter(filter);
        let mut index = shard.write();
        index.insert(filter, interested);
        shard.count(&index);
        drop(index);
        self.changes.note(filter);
    }

    fn take(&self, filter: &str, key: InterestKey) {
        let shard = self.shard_of_filter(filter);
        let mut index = shard.write();
        index.remove(filter, key);
        shard.count(&index);
        drop(index);
        self.changes.note(filter);
    }

    /// Looks up the route of a topic; returns the version of the route and the number of visited
    /// nodes.
    pub fn route(
        &self,
        topic: &str,
        scratch: &mut Vec<FilterId>,
        route: &mut Route,
    ) -> (Version, usize) {
        let version = self.changes.version(topic);
        route.workers = WorkerSet::NONE;
        route.durable = WorkerSet::NONE;
        route.certain = WorkerSet::NONE;
        route.nearly_full.clear();
        route.groups.clear();
        route.sinks = SinkSet::NONE;
        let mut visits = self.exact(topic).collect(topic, scratch, route);
        if let Some(beginning) = beginning(topic) {
            visits += self.deep(beginning).collect(topic, scratch, route);
        }
        visits += self.broad().collect(topic, scratch, route);
        route.nearly_full.sort_by_key(|room| room.session.id);
        route.nearly_full.dedup_by_key(|room| room.session.id);
        (version, visits + route.nearly_full.len())
    }

    /// Makes a session a member of the group of a shared filter; an existing member receives the
    /// new options.
    pub fn join(&self, shared: SharedFilter<'_>, member: Member) -> Joined {
        let known = self.read_groups().find(shared).cloned();
        let joined = join_known(known.as_deref(), member)
            .unwrap_or_else(|member| self.join_or_create(shared, member));
        self.changes.note(shared.filter);
        joined
    }

    /// Joins the group of a shared filter, which is created if there is none.
    fn join_or_create(&self, shared: SharedFilter<'_>, member: Member) -> Joined {
        let shard = self.shard_of_filter(shared.filter);
        let mut index = shard.write();
        let mut groups = self.write_groups();
        // Groups are created and removed under the lock of the list, so a listed group has members.
        let known = groups.find(shared).map(Arc::as_ref);
        join_known(known, member).unwrap_or_else(|member| {
            let group = groups.create(shared, self.strategy, member);
            self.event_subscribers.add_filter(shared.filter);
            index.insert(shared.filter, Interested::Group(Arc::clone(&group)));
            shard.count(&index);
            Joined {
                group: group.id,
                existed: false,
            }
        })
    }

    /// Removes a session from a group; true if it was a member.
    pub fn leave(&self, group: GroupId, session: u64) -> bool {
        let Some(group) = self.group(group) else {
            return false;
        };
        match group.remove(session) {
            Removal::NoMember => return false,
            Removal::Done => {}
            Removal::IsLast => self.leave_with_group(&group, session),
        }
        self.changes.note(group.filter());
        true
    }

    fn leave_with_group(&self, group: &SharedGroup, session: u64) {
        let shard = self.shard_of_filter(group.filter());
        let mut index = shard.write();
        // Others may have joined meanwhile.
        if self.write_groups().remove(group, session) {
            index.remove(group.filter(), InterestKey::Group(group.id));
            self.event_subscribers.remove_filter(group.filter());
            shard.count(&index);
        }
    }

    /// Sets whether a member of a group has a connection.
    pub fn set_online(&self, group: GroupId, session: u64, online: bool) {
        let group = self.group(group);
        let changed = group.filter(|group| group.set_online(session, online));
        if let Some(group) = changed {
            self.changes.note(group.filter());
        }
    }

    /// Finds the group of a shared filter; none if it has no member.
    pub fn find_group(&self, shared: SharedFilter<'_>) -> Option<GroupId> {
        Some(self.read_groups().find(shared)?.id)
    }

    /// Returns the group of a number; none if it has no member.
    pub fn group(&self, group: GroupId) -> Option<Arc<SharedGroup>> {
        self.read_groups().get(group).cloned()
    }

    /// Returns the first groups from a number on, at most so many: the list of groups is locked for
    /// this time.
    pub fn groups_from(&self, first: GroupId, limit: usize) -> Vec<Arc<SharedGroup>> {
        self.read_groups().from(first, limit)
    }

    /// Returns the current members of a group; none if there are none.
    pub fn members(&self, group: GroupId) -> Option<Arc<Group<Member>>> {
        self.group(group)?.members()
    }

    /// Number of filters of workers, groups and sinks.
    #[cfg(any(test, feature = "testing"))]
    pub fn len(&self) -> usize {
        let filters = |shard: &CachePadded<Shard>| shard.filters.load(Ordering::Relaxed);
        self.shards.iter().map(filters).sum()
    }

    /// Whether the table has no filter.
    #[cfg(any(test, feature = "testing"))]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn read_groups(&self) -> ShardedLockReadGuard<'_, Groups> {
        self.groups.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_groups(&self) -> ShardedLockWriteGuard<'_, Groups> {
        self.groups.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn shard_of_filter(&self, filter: &str) -> &Shard {
        if !is_wildcard(filter) {
            self.exact(filter)
        } else if let Some(beginning) = beginning(filter).filter(|text| !is_wildcard(text)) {
            self.deep(beginning)
        } else {
            self.broad()
        }
    }

    fn exact(&self, text: &str) -> &Shard {
        &self.shards[self.slot(text)]
    }

    fn deep(&self, beginning: &str) -> &Shard {
        &self.shards[self.shards.len() / 2 + self.slot(beginning)]
    }

    fn broad(&self) -> &Shard {
        &self.shards[self.shards.len() - 1]
    }

    /// The index of a text's shard among the shards of one kind.
    fn slot(&self, text: &str) -> usize {
        let kind = self.shards.len() as u64 / 2;
        usize::try_from(self.hasher.hash_one(text) % kind).unwrap_or(0)
    }
}

/// The number of a group with its current members; none if the group is removed.
fn numbered(group: &SharedGroup) -> Option<(GroupId, Arc<Group<Member>>)> {
    Some((group.id, group.members()?))
}

/// Joins a known group; the error returns the member if the group is removed.
fn join_known(group: Option<&SharedGroup>, member: Member) -> Result<Joined, Member> {
    let Some(group) = group else {
        return Err(member);
    };
    let existed = group.add(member)?;
    Ok(Joined {
        group: group.id,
        existed,
    })
}

impl Shard {
    fn new() -> Self {
        Self {
            index: ShardedLock::new(Index::new()),
            filters: AtomicUsize::new(0),
        }
    }

    /// Adds the destinations of a topic in this part to a route, and returns the number of visited
    /// nodes.
    fn collect(&self, topic: &str, scratch: &mut Vec<FilterId>, route: &mut Route) -> usize {
        if self.filters.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        scratch.clear();
        let index = self.read();
        let visits = index.matches(topic, scratch);
        for filter in scratch.iter() {
            let (mut workers, mut uncertain) = (WorkerSet::NONE, WorkerSet::NONE);
            for interested in index.destinations(*filter) {
                match interested {
                    Interested::Worker(worker) => workers.insert(*worker),
                    Interested::Durable(worker) => route.durable.insert(*worker),
                    Interested::NearlyFull(room) => route.nearly_full.push(Arc::clone(room)),
                    Interested::AllNearlyFull(worker) => uncertain.insert(*worker),
                    Interested::Group(group) => route.groups.extend(numbered(group)),
                    Interested::Sink(sink) => route.sinks.insert(*sink),
                }
            }
            route.workers |= workers;
            route.certain |= workers - uncertain;
        }
        visits
    }

    /// Updates the number of filters; called before the change is counted, so that a reader that
    /// knows of the change sees the number.
    fn count(&self, index: &Index<Interested>) {
        self.filters.store(index.filter_count(), Ordering::Relaxed);
    }

    fn read(&self) -> ShardedLockReadGuard<'_, Index<Interested>> {
        self.index.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> ShardedLockWriteGuard<'_, Index<Interested>> {
        self.index.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The first two levels of a topic or filter; none if it has one level.
fn beginning(text: &str) -> Option<&str> {
    let mut slashes = text.bytes().enumerate().filter(|(_, byte)| *byte == b'/');
    slashes.next()?;
    let end = slashes.next().map_or(text.len(), |(at, _)| at);
    text.get(..end)
}

fn is_wildcard(filter: &str) -> bool {
    filter.bytes().any(|byte| matches!(byte, b'+' | b'#'))
}
