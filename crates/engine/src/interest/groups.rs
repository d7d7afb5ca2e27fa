//! The shared groups of the node, by number and by name.

use std::collections::BTreeMap;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use hashbrown::{DefaultHashBuilder, HashTable};
use thrum_codec::SharedFilter;
use thrum_protocol::server::GroupId;
use thrum_routing::shared::{Group, Strategy};

use crate::interest::Member;

/// Number of texts that a worker caches. A text may take 64 KiB; most take some dozen bytes.
const TEXTS: usize = 16;

/// Every group with at least one member.
#[derive(Debug, Default)]
pub struct Groups {
    /// In the order of their numbers, so that a listing can continue where it was.
    numbered: BTreeMap<GroupId, Arc<SharedGroup>>,
    /// Number of the last group that was created. Numbers are not reused: a message may be in
    /// transit to a group that has been removed.
    last: GroupId,
    /// The groups by name and filter.
    names: HashTable<Arc<SharedGroup>>,
    hasher: DefaultHashBuilder,
}

/// One shared group with a lock of its own, so that a change of one group does not block another
/// one.
#[derive(Debug)]
pub struct SharedGroup {
    /// Number of the group.
    pub id: GroupId,
    text: Box<str>,
    /// Offset of the filter in the text.
    filter_at: usize,
    /// Guards the members: read for the look-up of a topic that the filter matches, and written,
    /// for some microseconds, when a member joins, leaves, connects or disconnects. Publishers
    /// cache the members; the first change after a look-up copies a small part. The list is empty
    /// once the group is removed.
    members: RwLock<Arc<Group<Member>>>,
    /// The last member has left, and the group accepts no new member.
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

    /// The shared filter, with `$share/GROUP/`.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The filter without `$share/GROUP/`.
    pub fn filter(&self) -> &str {
        &self.text[self.filter_at..]
    }

    /// The name of the group.
    pub fn name(&self) -> &str {
        &self.text["$share/".len()..self.filter_at - 1]
    }

    fn is(&self, shared: SharedFilter<'_>) -> bool {
        self.name() == shared.group && self.filter() == shared.filter
    }

    /// Returns the current members; none if the group is removed.
    pub fn members(&self) -> Option<Arc<Group<Member>>> {
        let members = self.members.read().unwrap_or_else(PoisonError::into_inner);
        (!members.is_empty()).then(|| Arc::clone(&members))
    }

    fn change<T>(&self, change: impl FnOnce(&mut Arc<Group<Member>>) -> T) -> T {
        let members = self.members.write();
        change(&mut members.unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds a member, or gives an existing one the new options; true if the session was a member.
    ///
    /// # Errors
    /// The group is removed; the error returns the member.
    pub fn add(&self, member: Member) -> Result<bool, Member> {
        self.change(|members| {
            if members.is_empty() {
                return Err(member);
            }
            Ok(Arc::make_mut(members).add(member, true).is_some())
        })
    }

    /// Removes a member unless it is the only one.
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

    /// Sets whether a member has a connection; true if that changes its state.
    pub fn set_online(&self, session: u64, online: bool) -> bool {
        self.change(|members| {
            let before = members.member(session);
            let is_other = before.is_some_and(|(_, was_online)| was_online != online);
            is_other && Arc::make_mut(members).set_online(session, online)
        })
    }
}

/// Result of the removal of a member from its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// The session is not a member.
    NoMember,
    /// The member was removed, and other members are left.
    Done,
    /// The member was not removed, as it is the last one: the group has to be removed with it.
    IsLast,
}

impl Groups {
    /// Finds the group of a shared filter.
    pub fn find(&self, shared: SharedFilter<'_>) -> Option<&Arc<SharedGroup>> {
        let hash = self.hasher.hash_one((shared.group, shared.filter));
        self.names.find(hash, |group| group.is(shared))
    }

    /// Returns the group of a number.
    pub fn get(&self, group: GroupId) -> Option<&Arc<SharedGroup>> {
        self.numbered.get(&group)
    }

    /// Returns the first groups from a number on.
    pub fn from(&self, first: GroupId, limit: usize) -> Vec<Arc<SharedGroup>> {
        let groups = self.numbered.range(first..).take(limit);
        groups.map(|(_, group)| Arc::clone(group)).collect()
    }

    /// Creates a group with its first member; the group exists until its last member leaves.
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

    /// Returns an unused number: after the numbers wrap around, some are still in use.
    fn free_number(&mut self) -> GroupId {
        loop {
            self.last = self.last.wrapping_add(1);
            if !self.numbered.contains_key(&self.last) {
                return self.last;
            }
        }
    }

    /// Removes a member, and the group if no member is left; true if the group is removed.
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

/// Cache of the shared filters of one worker by group number, which saves a lock for each stored
/// message of a group.
#[derive(Debug, Default)]
pub struct GroupTexts {
    known: [Option<Arc<SharedGroup>>; TEXTS],
}

impl GroupTexts {
    /// Returns the shared filter of a group, which `find` looks up if it is not cached; empty if
    /// the group is removed.
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
    use super::*;
    use crate::interest::tests::member;

    fn shared(filter: &str) -> SharedFilter<'_> {
        SharedFilter { group: "g", filter }
    }

    #[test]
    fn the_number_of_a_removed_group_is_not_reused() {
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
    fn no_session_joins_a_removed_group_and_the_last_member_is_not_removed_alone() {
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
    fn a_text_is_cached_until_its_group_is_removed() {
        let mut groups = Groups::default();
        let mut texts = GroupTexts::default();
        let group = groups.create(shared("a/+"), Strategy::RoundRobin, member(1));
        let find = |groups: &Groups| groups.get(group.id).cloned();
        assert_eq!(texts.of(group.id, || find(&groups)), "$share/g/a/+");
        assert_eq!(texts.of(group.id, || unreachable!()), "$share/g/a/+");
        assert_eq!(texts.of(group.id + 1, || None), "");
        assert_eq!(texts.of(1_000_000, || None), "");
        assert!(groups.remove(&group, 1));
        assert_eq!(texts.of(group.id, || find(&groups)), "");
    }
}
