//! Level 1 of routing: which workers and which shared groups of this node want a topic.
//!
//! A worker enters a filter when its first session subscribes to it and takes it out after the
//! last; a node with one worker knows that without a table, and keeps its groups alone. Publishers
//! remember their topics' routes with their version, so steady traffic takes no lock and writes
//! nothing that another worker reads.
//!
//! The table is cut into shards, so that workers change it and look topics up at the same time. A
//! topic concerns three of them at most: the exact filters of its hash, the wildcards that begin
//! with its two first levels, and the wildcards that begin with fewer.

pub mod changes;
pub mod groups;
mod listeners;
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

use listeners::Listeners;
pub use listeners::{EVENTS, EventKind};

/// Shards for each kind of filter on a node with several workers; with one nobody else wants the
/// lock.
const SHARDS: usize = 64;

/// A session anywhere on the node: its worker, its slot there, and its number against reuse of the
/// slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SessionRef {
    pub worker: WorkerId,
    pub slot: Slot,
    pub id: u64,
}

/// A member of a shared group.
#[derive(Clone, Debug)]
pub struct Member {
    pub session: SessionRef,
    pub options: SubscriptionOptions,
    pub identifier: Option<u32>,
    /// What it is given must survive a crash.
    pub durable: bool,
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
    /// A worker with a durable session among those that want it.
    Durable(WorkerId),
    /// A session whose queue is nearly full.
    NearlyFull(Arc<QueueRoom>),
    /// A worker on which the queues of all sessions that want it are nearly full.
    AllNearlyFull(WorkerId),
    Group(Arc<SharedGroup>),
    Sink(SinkId),
}

/// Tells them apart.
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

/// Who wants a topic, as one publisher's worker remembers it.
#[derive(Clone, Debug, Default)]
pub struct Route {
    /// None on a node with a single one.
    pub workers: WorkerSet,
    /// Those of them that have to write it down.
    pub durable: WorkerSet,
    /// Those of them with a session that is certain to have room.
    pub certain: WorkerSet,
    /// The sessions whose queues are nearly full; none as a rule.
    pub nearly_full: Vec<Arc<QueueRoom>>,
    /// Shared groups with their members at the time of the look-up.
    pub groups: Vec<(GroupId, Arc<Group<Member>>)>,
    /// Sinks that want it.
    pub sinks: SinkSet,
}

/// What a join to a shared group did.
#[derive(Clone, Copy, Debug)]
pub struct Joined {
    pub group: GroupId,
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
    /// Filters without wildcards by their hash; as many wildcards by that of their two first
    /// levels; and the wildcards that begin with fewer.
    shards: Box<[CachePadded<Shard>]>,
    /// Guards the list of groups: read when a member comes, goes or changes state, written when a
    /// group comes or goes. Look-ups of topics find their groups in the shards.
    groups: ShardedLock<Groups>,
    strategy: Strategy,
    /// On a cache line that is hardly ever written.
    pub listeners: CachePadded<Listeners>,
    /// Only then others must be told which worker wants a filter.
    has_several_workers: bool,
}

/// A part of the filters.
#[derive(Debug)]
struct Shard {
    /// Guards the part: read for one match of a topic that a worker does not remember, written when
    /// a filter comes or goes. Readers on different cores write different cache lines.
    index: ShardedLock<Index<Interested>>,
    /// Filters in the part, so that nobody locks an empty one.
    filters: AtomicUsize,
}

impl Interest {
    /// How shared groups choose their members.
    pub const fn strategy(&self) -> Strategy {
        self.strategy
    }

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
            listeners: CachePadded::default(),
            has_several_workers: workers > 1,
        }
    }

    /// Whether a route looked up before is as good as one looked up now.
    #[inline]
    pub fn holds(&self, version: &mut Version, topic: &str) -> bool {
        self.changes.holds(version, topic)
    }

    /// Number of the last change of the table.
    pub fn generation(&self) -> u64 {
        self.changes.generation()
    }

    pub fn add_worker(&self, filter: &str, worker: WorkerId) {
        self.listeners.filter_came(filter);
        self.add(filter, Interested::Worker(worker));
    }

    pub fn remove_worker(&self, filter: &str, worker: WorkerId) {
        self.listeners.filter_went(filter);
        self.remove(filter, InterestKey::Worker(worker));
    }

    /// The worker's first durable session subscribes.
    pub fn add_durable(&self, filter: &str, worker: WorkerId) {
        self.add(filter, Interested::Durable(worker));
    }

    pub fn remove_durable(&self, filter: &str, worker: WorkerId) {
        self.remove(filter, InterestKey::Durable(worker));
    }

    /// A sink wants the messages of a filter.
    pub fn add_sink(&self, filter: &str, sink: SinkId) {
        self.listeners.filter_came(filter);
        self.put(filter, Interested::Sink(sink));
    }

    /// It does not want them any more.
    pub fn remove_sink(&self, filter: &str, sink: SinkId) {
        self.listeners.filter_went(filter);
        self.take(filter, InterestKey::Sink(sink));
    }

    /// The queue of a session that subscribes is nearly full. To be called before the session can
    /// be found.
    pub fn add_nearly_full(&self, filter: &str, room: &Arc<QueueRoom>) {
        self.put(filter, Interested::NearlyFull(Arc::clone(room)));
    }

    pub fn remove_nearly_full(&self, filter: &str, session: u64) {
        self.take(filter, InterestKey::NearlyFull(session));
    }

    /// The queues of all the worker's sessions that subscribe are nearly full.
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

    /// Looks a topic up; returns the version that the route belongs to, and how much work it was.
    pub fn route(
        &self,
        topic: &str,
        scratch: &mut Vec<FilterId>,
        route: &mut Route,
    ) -> (Version, usize) {
        let version = self.changes.version(topic);
        let mut visits = 0;
        route.workers = WorkerSet::NONE;
        route.durable = WorkerSet::NONE;
        route.certain = WorkerSet::NONE;
        route.nearly_full.clear();
        route.groups.clear();
        route.sinks = SinkSet::NONE;
        visits += self.exact(topic).collect(topic, scratch, route);
        if let Some(beginning) = beginning(topic) {
            visits += self.deep(beginning).collect(topic, scratch, route);
        }
        visits += self.broad().collect(topic, scratch, route);
        if route.nearly_full.len() > 1 {
            route.nearly_full.sort_by_key(|room| room.session.id);
            route.nearly_full.dedup_by_key(|room| room.session.id);
        }
        (version, visits + route.nearly_full.len())
    }

    /// A session subscribes to a shared filter; an existing membership gets the new options.
    pub fn join(&self, shared: SharedFilter<'_>, member: Member) -> Joined {
        let known = self.read_groups().find(shared).cloned();
        let joined = join_known(known.as_deref(), member)
            .unwrap_or_else(|member| self.join_or_create(shared, member));
        self.changes.note(shared.filter);
        joined
    }

    /// There may be no group, or another one than before.
    fn join_or_create(&self, shared: SharedFilter<'_>, member: Member) -> Joined {
        let shard = self.shard_of_filter(shared.filter);
        let mut index = shard.write();
        let mut groups = self.write_groups();
        // Groups come and go under the lock of the list, so one that is in it has members.
        let known = groups.find(shared).map(Arc::as_ref);
        join_known(known, member).unwrap_or_else(|member| {
            let group = groups.create(shared, self.strategy, member);
            self.listeners.filter_came(shared.filter);
            index.insert(shared.filter, Interested::Group(Arc::clone(&group)));
            shard.count(&index);
            Joined {
                group: group.id,
                existed: false,
            }
        })
    }

    /// A session leaves a group; true if it was a member.
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
            self.listeners.filter_went(group.filter());
            shard.count(&index);
        }
    }

    /// A member's connection came or went.
    pub fn set_online(&self, group: GroupId, session: u64, online: bool) {
        let group = self.group(group);
        let changed = group.filter(|group| group.set_online(session, online));
        if let Some(group) = changed {
            self.changes.note(group.filter());
        }
    }

    /// The group of a shared filter, if any session is in it.
    pub fn find_group(&self, shared: SharedFilter<'_>) -> Option<GroupId> {
        Some(self.read_groups().find(shared)?.id)
    }

    /// The group of a number, if any session is in it.
    pub fn group(&self, group: GroupId) -> Option<Arc<SharedGroup>> {
        self.read_groups().get(group).cloned()
    }

    /// The members of a group at this moment.
    pub fn members(&self, group: GroupId) -> Option<Arc<Group<Member>>> {
        self.group(group)?.members()
    }

    /// Filters of workers and groups.
    #[cfg(any(test, feature = "testing"))]
    pub fn len(&self) -> usize {
        let filters = |shard: &CachePadded<Shard>| shard.filters.load(Ordering::Relaxed);
        self.shards.iter().map(filters).sum()
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

    /// One of the shards of either kind.
    fn slot(&self, text: &str) -> usize {
        let kind = self.shards.len() as u64 / 2;
        usize::try_from(self.hasher.hash_one(text) % kind).unwrap_or(0)
    }
}

/// The members at this moment; none if the group is gone.
fn numbered(group: &SharedGroup) -> Option<(GroupId, Arc<Group<Member>>)> {
    Some((group.id, group.members()?))
}

/// Gives the member back if there is no such group any more.
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

    /// Adds who in the part wants the topic; how much work it was.
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

    /// Called before the change is noted, so that whoever knows of the change sees the count.
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

/// The first two levels, if there are two.
fn beginning(text: &str) -> Option<&str> {
    let mut slashes = text.bytes().enumerate().filter(|(_, byte)| *byte == b'/');
    slashes.next()?;
    let end = slashes.next().map_or(text.len(), |(at, _)| at);
    text.get(..end)
}

fn is_wildcard(filter: &str) -> bool {
    filter.bytes().any(|byte| matches!(byte, b'+' | b'#'))
}
