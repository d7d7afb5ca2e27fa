//! Level 1 of routing: which workers and which shared groups of this node want a topic.
//!
//! A worker enters a filter when its first session subscribes to it and takes it out after the last.
//! Publishers remember their topics' routes with the generation, so steady traffic takes no lock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use hashbrown::HashMap;
use slab::Slab;
use thrum_codec::SharedFilter;
use thrum_codec::packet::SubscriptionOptions;
use thrum_protocol::server::GroupId;
use thrum_routing::shared::{Group, Strategy};
use thrum_routing::{Destination, FilterId, Index};

use crate::node::WorkerId;

/// A session anywhere on the node: its worker, its slot there, and its number against reuse of the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SessionRef {
    pub(crate) worker: WorkerId,
    pub(crate) slot: u32,
    pub(crate) id: u64,
}

/// A member of a shared group.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) session: SessionRef,
    pub(crate) options: SubscriptionOptions,
    pub(crate) identifier: Option<u32>,
}

impl Destination for Member {
    type Key = u64;

    fn key(&self) -> u64 {
        self.session.id
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Interested {
    Worker(WorkerId),
    Group(GroupId),
}

impl Destination for Interested {
    type Key = Self;

    fn key(&self) -> Self {
        *self
    }
}

/// Who wants a topic, as one publisher's worker remembers it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Route {
    /// One bit per worker.
    pub(crate) workers: u64,
    /// Shared groups with their members at the time of the look-up.
    pub(crate) groups: Vec<(GroupId, Arc<Group<Member>>)>,
}

/// What a join to a shared group did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Joined {
    pub(crate) group: GroupId,
    pub(crate) existed: bool,
}

/// The node's table of filters and groups.
#[derive(Debug)]
pub(crate) struct Interest {
    /// Guards the table: read for one match of a topic that a worker does not remember, written when
    /// a filter or a group member comes, goes or changes state.
    table: RwLock<Table>,
    generation: AtomicU64,
    strategy: Strategy,
}

#[derive(Debug, Default)]
struct Table {
    index: Index<Interested>,
    groups: Slab<SharedGroup>,
    names: HashMap<(Box<str>, Box<str>), GroupId>,
}

#[derive(Debug)]
struct SharedGroup {
    name: Box<str>,
    filter: Box<str>,
    members: Arc<Group<Member>>,
}

impl Interest {
    pub(crate) fn new(strategy: Strategy) -> Self {
        Self {
            table: RwLock::default(),
            generation: AtomicU64::new(1),
            strategy,
        }
    }

    /// Changes with every change of the table; a remembered route is valid for its generation.
    #[inline]
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    pub(crate) fn add_worker(&self, filter: &str, worker: WorkerId) {
        self.write()
            .index
            .insert(filter, Interested::Worker(worker));
        self.changed();
    }

    pub(crate) fn remove_worker(&self, filter: &str, worker: WorkerId) {
        self.write()
            .index
            .remove(filter, Interested::Worker(worker));
        self.changed();
    }

    /// Looks a topic up; returns the generation that the route belongs to.
    pub(crate) fn route(&self, topic: &str, scratch: &mut Vec<FilterId>, route: &mut Route) -> u64 {
        scratch.clear();
        route.workers = 0;
        route.groups.clear();
        let table = self.read();
        let generation = self.generation();
        table.index.matches(topic, scratch);
        let interested = scratch
            .iter()
            .flat_map(|filter| table.index.destinations(*filter));
        for interested in interested {
            match interested {
                Interested::Worker(worker) => route.workers |= worker.bit(),
                Interested::Group(group) => route.groups.push((*group, table.members(*group))),
            }
        }
        generation
    }

    /// A session subscribes to a shared filter; an existing membership gets the new options.
    pub(crate) fn join(&self, shared: SharedFilter<'_>, member: Member) -> Joined {
        let mut table = self.write();
        let name = (Box::from(shared.group), Box::from(shared.filter));
        let group = match table.names.get(&name) {
            Some(group) => *group,
            None => table.new_group(name, self.strategy),
        };
        let members = Arc::make_mut(&mut table.groups[group as usize].members);
        let existed = members.add(member, true).is_some();
        drop(table);
        self.changed();
        Joined { group, existed }
    }

    /// A session leaves a group; true if it was a member.
    pub(crate) fn leave(&self, group: GroupId, session: u64) -> bool {
        let mut table = self.write();
        let Some(shared) = table.groups.get_mut(group as usize) else {
            return false;
        };
        let members = Arc::make_mut(&mut shared.members);
        let was_member = members.remove(session).is_some();
        if members.is_empty() {
            table.remove_group(group);
        }
        drop(table);
        self.changed();
        was_member
    }

    /// A member's connection came or went.
    pub(crate) fn set_online(&self, group: GroupId, session: u64, online: bool) {
        let mut table = self.write();
        if let Some(shared) = table.groups.get_mut(group as usize) {
            Arc::make_mut(&mut shared.members).set_online(session, online);
        }
        drop(table);
        self.changed();
    }

    /// The group of a shared filter, if any session is in it.
    pub(crate) fn find_group(&self, shared: SharedFilter<'_>) -> Option<GroupId> {
        let name = (Box::from(shared.group), Box::from(shared.filter));
        self.read().names.get(&name).copied()
    }

    /// The members of a group at this moment.
    pub(crate) fn members(&self, group: GroupId) -> Option<Arc<Group<Member>>> {
        self.read()
            .groups
            .get(group as usize)
            .map(|shared| Arc::clone(&shared.members))
    }

    fn changed(&self) {
        self.generation.fetch_add(1, Ordering::Release);
    }

    fn read(&self) -> RwLockReadGuard<'_, Table> {
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Table> {
        self.table.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn members(&self, group: GroupId) -> Arc<Group<Member>> {
        Arc::clone(&self.groups[group as usize].members)
    }

    fn new_group(&mut self, name: (Box<str>, Box<str>), strategy: Strategy) -> GroupId {
        let group = SharedGroup {
            name: name.0.clone(),
            filter: name.1.clone(),
            members: Arc::new(Group::new(strategy)),
        };
        let id = u32::try_from(self.groups.insert(group)).expect("fewer groups than subscriptions");
        self.index.insert(&name.1, Interested::Group(id));
        self.names.insert(name, id);
        id
    }

    fn remove_group(&mut self, id: GroupId) {
        let group = self.groups.remove(id as usize);
        self.index.remove(&group.filter, Interested::Group(id));
        self.names.remove(&(group.name, group.filter));
    }
}
