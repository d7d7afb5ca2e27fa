//! The shared groups of the node, by number and by name.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use hashbrown::{DefaultHashBuilder, HashTable};
use thrum_codec::SharedFilter;
use thrum_protocol::server::GroupId;
use thrum_routing::shared::{Group, Strategy};

use crate::interest::Member;

/// Texts that a worker remembers. One may take 64 KiB, most take some dozen bytes.
const TEXTS: usize = 16;

/// Every group with at least one member.
#[derive(Debug, Default)]
pub struct Groups {
    numbered: HashMap<GroupId, Arc<SharedGroup>>,
    /// The number of the last one that came. Numbers are not used again: a message may be on its
    /// way to a group that is gone.
    last: GroupId,
    /// The groups by name and filter.
    names: HashTable<Arc<SharedGroup>>,
    hasher: DefaultHashBuilder,
}

/// A group, on its own: who comes to one or goes takes no lock that another one needs.
#[derive(Debug)]
pub struct SharedGroup {
    pub id: GroupId,
    text: Box<str>,
    /// Where the filter begins in it.
    filter_at: usize,
    /// Guards the members: read for a look-up of a topic that the group wants, and written, for
    /// some microseconds, when a member comes, goes or changes state. Publishers remember what is
    /// in it; the first change after one looked it up copies a small part. None are left once the
    /// group is gone.
    members: RwLock<Arc<Group<Member>>>,
    /// Its last member has left; then there are no others any more.
    is_gone: AtomicBool,
}

impl SharedGroup {
    fn new(id: GroupId, shared: SharedFilter<'_>, members: Group<Member>) -> Self {
        let text = format!("$share/{}/{}", shared.group, shared.filter);
        Self {
            id,
            filter_at: text.len() - shared.filter.len(),
            text: text.into(),
            members: RwLock::new(Arc::new(members)),
            is_gone: AtomicBool::new(false),
        }
    }

    /// The shared filter, as a client writes it.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn filter(&self) -> &str {
        &self.text[self.filter_at..]
    }

    fn name(&self) -> &str {
        &self.text["$share/".len()..self.filter_at - 1]
    }

    fn is(&self, shared: SharedFilter<'_>) -> bool {
        self.name() == shared.group && self.filter() == shared.filter
    }

    /// The members at this moment; none if the group is gone.
    pub fn members(&self) -> Option<Arc<Group<Member>>> {
        let members = self.members.read().unwrap_or_else(PoisonError::into_inner);
        (!members.is_empty()).then(|| Arc::clone(&members))
    }

    fn change<T>(&self, change: impl FnOnce(&mut Arc<Group<Member>>) -> T) -> T {
        let members = self.members.write();
        change(&mut members.unwrap_or_else(PoisonError::into_inner))
    }

    /// True if the session was a member already; it gets the new options. Gives the member back if
    /// the group is gone.
    pub fn add(&self, member: Member) -> Result<bool, Member> {
        self.change(|members| {
            if members.is_empty() {
                return Err(member);
            }
            Ok(Arc::make_mut(members).add(member, true).is_some())
        })
    }

    /// Takes a member out, unless it is the only one.
    pub fn remove(&self, session: u64) -> Removal {
        self.change(|members| {
            if members.member(session).is_none() {
                return Removal::NoMember;
            }
            if members.len() == 1 {
                return Removal::IsLast;
            }
            Arc::make_mut(members).remove(session);
            Removal::Done
        })
    }

    /// True if that is another state of the member than before.
    pub fn set_online(&self, session: u64, online: bool) -> bool {
        self.change(|members| {
            let before = members.member(session);
            let is_other = before.is_some_and(|(_, was_online)| was_online != online);
            is_other && Arc::make_mut(members).set_online(session, online)
        })
    }
}

/// What became of a member that was to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// There is no such member.
    NoMember,
    /// It has left, and others are there.
    Done,
    /// It is still there: the group has to go with it.
    IsLast,
}

impl Groups {
    pub fn find(&self, shared: SharedFilter<'_>) -> Option<&Arc<SharedGroup>> {
        let hash = self.hasher.hash_one((shared.group, shared.filter));
        self.names.find(hash, |group| group.is(shared))
    }

    pub fn get(&self, group: GroupId) -> Option<&Arc<SharedGroup>> {
        self.numbered.get(&group)
    }

    /// A group that is not here yet, with its first member; it lasts until its last one leaves.
    pub fn create(
        &mut self,
        shared: SharedFilter<'_>,
        strategy: Strategy,
        first: Member,
    ) -> Arc<SharedGroup> {
        let mut members = Group::new(strategy);
        members.add(first, true);
        let group = Arc::new(SharedGroup::new(self.free_number(), shared, members));
        self.numbered.insert(group.id, Arc::clone(&group));
        let hasher = &self.hasher;
        let hash = hasher.hash_one((shared.group, shared.filter));
        let known = Arc::clone(&group);
        self.names.insert_unique(hash, known, |group| {
            hasher.hash_one((group.name(), group.filter()))
        });
        group
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

    /// Takes a member out, and the group with its last one; true if that is so.
    pub fn remove(&mut self, group: &SharedGroup, session: u64) -> bool {
        let is_empty = group.change(|members| {
            let members = Arc::make_mut(members);
            members.remove(session);
            members.is_empty()
        });
        if is_empty && self.numbered.remove(&group.id).is_some() {
            group.is_gone.store(true, Ordering::Relaxed);
            let hash = self.hasher.hash_one((group.name(), group.filter()));
            if let Ok(entry) = self.names.find_entry(hash, |known| known.id == group.id) {
                entry.remove();
            }
        }
        is_empty
    }
}

/// Shared filters as clients write them, by the number of their group: what one worker remembers,
/// so that a message to a group asks no other thread for it.
#[derive(Debug, Default)]
pub struct GroupTexts {
    known: [Option<Arc<SharedGroup>>; TEXTS],
}

impl GroupTexts {
    /// That of a group, which `find` finds if it is not remembered; nothing once it is gone.
    pub fn of(&mut self, group: GroupId, find: impl FnOnce() -> Option<Arc<SharedGroup>>) -> &str {
        let place = &mut self.known[group as usize % TEXTS];
        let is_known =
            |known: &Arc<SharedGroup>| known.id == group && !known.is_gone.load(Ordering::Relaxed);
        if !place.as_ref().is_some_and(is_known) {
            *place = find();
        }
        place.as_deref().map_or("", SharedGroup::text)
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

    fn shared(filter: &str) -> SharedFilter<'_> {
        SharedFilter { group: "g", filter }
    }

    fn member(id: u64) -> Member {
        let session = SessionRef {
            worker: WorkerId::new(0),
            slot: Slot::FIRST,
            id,
        };
        Member {
            session,
            options: SubscriptionOptions::default(),
            identifier: None,
            durable: false,
            room: Arc::new(QueueRoom::new(session, Arc::default())),
        }
    }

    #[test]
    fn the_number_of_a_group_that_is_gone_is_not_given_to_another() {
        let mut groups = Groups::default();
        let numbers = ["a", "b", "c"].map(|filter| {
            let group = groups.create(shared(filter), Strategy::RoundRobin, member(1));
            assert!(groups.remove(&group, 1));
            assert!(groups.get(group.id).is_none() && groups.find(shared(filter)).is_none());
            assert!(group.members().is_none());
            group.id
        });
        assert_eq!(numbers, [1, 2, 3]);
    }

    #[test]
    fn nobody_joins_a_group_that_is_gone_and_its_last_member_does_not_leave_alone() {
        let mut groups = Groups::default();
        let group = groups.create(shared("a"), Strategy::RoundRobin, member(1));
        assert!(group.add(member(1)).unwrap() && !group.add(member(2)).unwrap());
        assert_eq!(group.remove(3), Removal::NoMember);
        assert_eq!(group.remove(1), Removal::Done);
        assert_eq!(group.remove(2), Removal::IsLast);
        assert_eq!(group.members().unwrap().len(), 1);
        assert!(groups.remove(&group, 2));
        assert_eq!(group.add(member(1)).unwrap_err().session.id, 1);
        assert_eq!(group.remove(2), Removal::NoMember);
    }

    #[test]
    fn a_text_is_remembered_until_its_group_is_gone() {
        let mut groups = Groups::default();
        let mut texts = GroupTexts::default();
        let group = groups.create(shared("a/+"), Strategy::RoundRobin, member(1));
        let find = |groups: &Groups| groups.get(group.id).cloned();
        assert_eq!(texts.of(group.id, || find(&groups)), "$share/g/a/+");
        assert_eq!(texts.of(group.id, || unreachable!()), "$share/g/a/+");
        assert_eq!(texts.of(group.id + 1, || None), "");
        assert!(groups.remove(&group, 1));
        assert_eq!(texts.of(group.id, || find(&groups)), "");
    }
}
