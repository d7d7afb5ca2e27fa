//! The shared groups of the node, by number and by name.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};
use thrum_codec::SharedFilter;
use thrum_protocol::server::GroupId;
use thrum_routing::shared::{Group, Strategy};

use crate::interest::Member;

/// Every group with at least one member.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    numbered: HashMap<GroupId, SharedGroup>,
    /// The number of the last one that came. Numbers are not used again: a message may be on its
    /// way to a group that is gone.
    last: GroupId,
    /// Numbers of the groups by name and filter.
    names: HashTable<GroupId>,
    hasher: DefaultHashBuilder,
}

#[derive(Debug)]
struct SharedGroup {
    name: Box<str>,
    filter: Arc<str>,
    /// Publishers remember it; copied by the first change after one looked it up.
    members: Arc<Group<Member>>,
}

impl SharedGroup {
    fn is(&self, shared: SharedFilter<'_>) -> bool {
        *self.name == *shared.group && *self.filter == *shared.filter
    }
}

impl Groups {
    pub(crate) fn find(&self, shared: SharedFilter<'_>) -> Option<GroupId> {
        let hash = self.hasher.hash_one((shared.group, shared.filter));
        let is_it = |group: &GroupId| self.numbered[group].is(shared);
        self.names.find(hash, is_it).copied()
    }

    /// A group that is not here yet; it lasts until its last member leaves.
    pub(crate) fn create(&mut self, shared: SharedFilter<'_>, strategy: Strategy) -> GroupId {
        let group = SharedGroup {
            name: shared.group.into(),
            filter: shared.filter.into(),
            members: Arc::new(Group::new(strategy)),
        };
        let id = self.free_number();
        self.numbered.insert(id, group);
        let (hasher, numbered) = (&self.hasher, &self.numbered);
        let hash = hasher.hash_one((shared.group, shared.filter));
        self.names.insert_unique(hash, id, |id| {
            let group = &numbered[id];
            hasher.hash_one((&*group.name, &*group.filter))
        });
        id
    }

    /// Some are still in use when all numbers have been given once.
    fn free_number(&mut self) -> GroupId {
        loop {
            self.last = self.last.wrapping_add(1);
            if !self.numbered.contains_key(&self.last) {
                return self.last;
            }
        }
    }

    /// True if the session was a member already; it gets the new options.
    pub(crate) fn add(&mut self, group: GroupId, member: Member) -> bool {
        let found = self.numbered.get_mut(&group);
        found.is_some_and(|group| {
            Arc::make_mut(&mut group.members)
                .add(member, true)
                .is_some()
        })
    }

    /// The filter of a group that the session is a member of.
    pub(crate) fn filter_of_member(&self, group: GroupId, session: u64) -> Option<Arc<str>> {
        let shared = self.numbered.get(&group)?;
        shared.members.member(session)?;
        Some(Arc::clone(&shared.filter))
    }

    /// Takes a member out; true if it was the last and the group is gone.
    pub(crate) fn remove(&mut self, group: GroupId, session: u64) -> bool {
        let Some(shared) = self.numbered.get_mut(&group) else {
            return false;
        };
        let members = Arc::make_mut(&mut shared.members);
        members.remove(session);
        if !members.is_empty() {
            return false;
        }
        let hash = self.hasher.hash_one((&*shared.name, &*shared.filter));
        if let Ok(entry) = self.names.find_entry(hash, |id| *id == group) {
            entry.remove();
        }
        self.numbered.remove(&group);
        true
    }

    /// Returns the filter if the group exists.
    pub(crate) fn set_online(
        &mut self,
        group: GroupId,
        session: u64,
        online: bool,
    ) -> Option<Arc<str>> {
        let shared = self.numbered.get_mut(&group)?;
        Arc::make_mut(&mut shared.members).set_online(session, online);
        Some(Arc::clone(&shared.filter))
    }

    /// The shared filter of a group, as a client writes it.
    pub(crate) fn text(&self, group: GroupId) -> Option<String> {
        let shared = self.numbered.get(&group)?;
        Some(format!("$share/{}/{}", shared.name, shared.filter))
    }

    /// The members of a group at this moment.
    pub(crate) fn members(&self, group: GroupId) -> Option<Arc<Group<Member>>> {
        let shared = self.numbered.get(&group)?;
        Some(Arc::clone(&shared.members))
    }
}

#[cfg(test)]
mod tests {
    use crate::workers::WorkerId;
    use thrum_codec::packet::SubscriptionOptions;

    use super::*;
    use crate::ids::Slot;
    use crate::interest::SessionRef;
    use crate::queue_room::QueueRoom;

    #[test]
    fn the_number_of_a_group_that_is_gone_is_not_given_to_another() {
        let mut groups = Groups::default();
        let session = SessionRef {
            worker: WorkerId::new(0),
            slot: Slot::FIRST,
            id: 1,
        };
        let numbers = ["a", "b", "c"].map(|filter| {
            let group = SharedFilter { group: "g", filter };
            let number = groups.create(group, Strategy::RoundRobin);
            groups.add(
                number,
                Member {
                    session,
                    options: SubscriptionOptions::default(),
                    identifier: None,
                    durable: false,
                    room: Arc::new(QueueRoom::new(session, Arc::default())),
                },
            );
            assert!(groups.remove(number, session.id));
            number
        });
        assert_eq!(numbers, [1, 2, 3]);
        assert!(
            numbers
                .iter()
                .all(|number| groups.members(*number).is_none())
        );
    }
}
