//! Shared subscriptions: a group of members of which each message goes to one.

use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::str::FromStr;

use foldhash::fast::FixedState;

use crate::destination::Destination;
use crate::hashing::Hashing;
use crate::keyed_list::KeyedList;

/// How a group chooses the member that gets a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// One after the other.
    #[default]
    RoundRobin,
    /// Any, with the same chance.
    Random,
    /// The same one until it leaves or goes offline.
    Sticky,
    /// The same one for all messages of a publisher.
    HashClientId,
    /// The same one for all messages of a topic.
    HashTopic,
    /// One after the other among the local ones; the others only if none is local.
    Local,
}

impl Strategy {
    /// Every strategy, in the order of the documentation.
    pub const ALL: [Self; 6] = [
        Self::RoundRobin,
        Self::Random,
        Self::Sticky,
        Self::HashClientId,
        Self::HashTopic,
        Self::Local,
    ];

    /// The name used in configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RoundRobin => "round_robin",
            Self::Random => "random",
            Self::Sticky => "sticky",
            Self::HashClientId => "hash_client_id",
            Self::HashTopic => "hash_topic",
            Self::Local => "local",
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// No strategy has the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownStrategy;

impl fmt::Display for UnknownStrategy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("unknown strategy, expected one of")?;
        for (position, strategy) in Strategy::ALL.iter().enumerate() {
            write!(
                formatter,
                "{}{strategy}",
                if position == 0 { " " } else { ", " }
            )?;
        }
        Ok(())
    }
}

impl core::error::Error for UnknownStrategy {}

impl FromStr for Strategy {
    type Err = UnknownStrategy;

    fn from_str(name: &str) -> Result<Self, UnknownStrategy> {
        Self::ALL
            .into_iter()
            .find(|strategy| strategy.name() == name)
            .ok_or(UnknownStrategy)
    }
}

/// Hash of a topic name or a client identifier, for [`Choice`]: it depends on the text alone, so
/// that every worker and every node chooses the same member.
pub fn stable_hash(text: &str) -> u64 {
    FixedState::default().hash_one(text)
}

/// What a choice may depend on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// Hash of the publisher's client id.
    pub client_hash: u64,
    /// Hash of the topic name.
    pub topic_hash: u64,
    /// A fresh random number.
    pub random: u64,
}

/// Where one chooser stands in a group: its turn and the member it sticks to.
///
/// A group chosen from by several threads has one cursor for each of them; each is then fair on its
/// own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor<K> {
    turn: u32,
    sticky: Option<K>,
}

impl<K> Cursor<K> {
    /// Begins at a turn; give each chooser another, lest all begin with the same member.
    pub const fn starting_at(turn: u32) -> Self {
        Self { turn, sticky: None }
    }
}

impl<K> Default for Cursor<K> {
    fn default() -> Self {
        Self::starting_at(0)
    }
}

/// The members of a shared subscription.
///
/// Choosing costs the same however many members there are, but for the hash strategies, which weigh
/// each online member (a few nanoseconds each), and `local`, which passes over members elsewhere.
#[derive(Clone, Debug)]
pub struct Group<M> {
    strategy: Strategy,
    hashing: Hashing,
    /// The online members first.
    members: KeyedList<Entry<M>>,
    online_count: usize,
}

#[derive(Clone, Debug)]
struct Entry<M> {
    member: M,
    /// Hash of the key, the same in every process of one build.
    weight: u64,
}

impl<M: Destination> Destination for Entry<M> {
    type Key = M::Key;

    fn key(&self) -> M::Key {
        self.member.key()
    }
}

impl<M: Destination> Group<M> {
    /// A group without members.
    pub fn new(strategy: Strategy) -> Self {
        Self {
            strategy,
            hashing: Hashing::random(),
            members: KeyedList::new(),
            online_count: 0,
        }
    }

    /// How the group chooses.
    pub const fn strategy(&self) -> Strategy {
        self.strategy
    }

    /// Adds a member; one with the same key is replaced and returned.
    pub fn add(&mut self, member: M, online: bool) -> Option<M> {
        let key = member.key();
        let replaced = if let Some(position) = self.members.position(key, self.hashing) {
            self.members
                .get_mut(position)
                .map(|entry| core::mem::replace(&mut entry.member, member))
        } else {
            // A fixed seed: every worker and node must weigh alike.
            let weight = FixedState::default().hash_one(key);
            self.members.push(Entry { member, weight }, self.hashing);
            None
        };
        self.set_online(key, online);
        replaced
    }

    /// Takes a member out.
    pub fn remove(&mut self, key: M::Key) -> Option<M> {
        self.set_online(key, false);
        let position = self.members.position(key, self.hashing)?;
        let entry = self.members.swap_remove(position, self.hashing)?;
        Some(entry.member)
    }

    /// Notes whether a member can be reached now; false if there is no such member.
    pub fn set_online(&mut self, key: M::Key, online: bool) -> bool {
        let Some(position) = self.members.position(key, self.hashing) else {
            return false;
        };
        let is_online = position < self.online_count;
        if online && !is_online {
            self.members.swap(position, self.online_count, self.hashing);
            self.online_count += 1;
        } else if !online && is_online {
            self.online_count -= 1;
            self.members.swap(position, self.online_count, self.hashing);
        }
        true
    }

    /// There are no members.
    pub const fn is_empty(&self) -> bool {
        self.members.as_slice().is_empty()
    }

    /// Number of members.
    pub const fn len(&self) -> usize {
        self.members.as_slice().len()
    }

    /// Number of members that can be reached now.
    pub const fn online_count(&self) -> usize {
        self.online_count
    }

    /// A member and whether it is online.
    pub fn member(&self, key: M::Key) -> Option<(&M, bool)> {
        let position = self.members.position(key, self.hashing)?;
        let entry = self.members.as_slice().get(position)?;
        Some((&entry.member, position < self.online_count))
    }

    /// Memory held, without the allocator's own.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.members.heap_bytes()
    }

    /// Every member and whether it is online, in no lasting order.
    pub fn members(&self) -> impl Iterator<Item = (&M, bool)> {
        let entries = self.members.as_slice().iter().enumerate();
        entries.map(|(position, entry)| (&entry.member, position < self.online_count))
    }

    /// The members that a message may go to, beginning with any: those that are online, or all if
    /// none is.
    pub fn candidates(&self, random: u64) -> impl Iterator<Item = &M> {
        let (online, offline) = self.members.as_slice().split_at(self.online_count);
        let entries = if online.is_empty() { offline } else { online };
        let scaled = (u128::from(random) * entries.len() as u128) >> 64;
        let (before, behind) = entries.split_at(usize::try_from(scaled).unwrap_or(0));
        behind.iter().chain(before).map(|entry| &entry.member)
    }

    /// Chooses the member for a message: an online one, or an offline one if none is online.
    ///
    /// `exclude` is passed over, as the member that a message comes back from must be.
    pub fn pick(
        &self,
        cursor: &mut Cursor<M::Key>,
        choice: Choice,
        is_local: impl Fn(&M) -> bool,
        exclude: Option<M::Key>,
    ) -> Option<&M> {
        let (online, offline) = self.members.as_slice().split_at(self.online_count);
        let excluded = exclude.and_then(|key| self.members.position(key, self.hashing));
        let online = Candidates::new(online, 0, excluded);
        let offline = Candidates::new(offline, self.online_count, excluded);
        let candidates = if online.count > 0 { online } else { offline };
        let entry = match self.strategy {
            Strategy::RoundRobin => candidates.next(&mut cursor.turn, |_| true),
            Strategy::Random => candidates.any(choice.random),
            Strategy::Sticky => self.stick(&candidates, cursor, choice.random),
            Strategy::HashClientId => candidates.heaviest(choice.client_hash),
            Strategy::HashTopic => candidates.heaviest(choice.topic_hash),
            Strategy::Local => candidates
                .next(&mut cursor.turn, |entry| is_local(&entry.member))
                .or_else(|| candidates.next(&mut cursor.turn, |_| true)),
        }?;
        Some(&entry.member)
    }
}

impl<M: Destination> Group<M> {
    fn stick<'a>(
        &self,
        candidates: &Candidates<'a, Entry<M>>,
        cursor: &mut Cursor<M::Key>,
        random: u64,
    ) -> Option<&'a Entry<M>> {
        let kept = cursor
            .sticky
            .and_then(|key| self.members.position(key, self.hashing));
        if let Some(entry) = kept.and_then(|position| candidates.at_position(position)) {
            return Some(entry);
        }
        let entry = candidates.any(random)?;
        cursor.sticky = Some(entry.key());
        Some(entry)
    }
}

/// A part of a group without the excluded member.
struct Candidates<'a, E> {
    entries: &'a [E],
    /// Position in the group of the first entry.
    offset: usize,
    /// Index in the entries of the excluded one.
    excluded: Option<usize>,
    count: usize,
}

impl<'a, E> Candidates<'a, E> {
    fn new(entries: &'a [E], offset: usize, excluded: Option<usize>) -> Self {
        let excluded = excluded
            .and_then(|at| at.checked_sub(offset))
            .filter(|&at| at < entries.len());
        let count = entries.len() - usize::from(excluded.is_some());
        Self {
            entries,
            offset,
            excluded,
            count,
        }
    }

    /// The entry at a position of the group, if it is a candidate.
    fn at_position(&self, position: usize) -> Option<&'a E> {
        let index = position.checked_sub(self.offset)?;
        if self.excluded == Some(index) {
            None
        } else {
            self.entries.get(index)
        }
    }

    fn nth(&self, number: usize) -> Option<&'a E> {
        let passed = self.excluded.is_some_and(|excluded| number >= excluded);
        self.entries.get(number + usize::from(passed))
    }

    fn any(&self, random: u64) -> Option<&'a E> {
        let scaled = (u128::from(random) * self.count as u128) >> 64;
        self.nth(usize::try_from(scaled).ok()?)
    }

    /// The first wanted one, counted from the turn on.
    fn next(&self, turn: &mut u32, wanted: impl Fn(&E) -> bool) -> Option<&'a E> {
        let first = (*turn as usize).checked_rem(self.count)?;
        let number = (first..self.count)
            .chain(0..first)
            .find(|&number| self.nth(number).is_some_and(&wanted))?;
        *turn = u32::try_from(number + 1).unwrap_or(0);
        self.nth(number)
    }
}

impl<'a, M> Candidates<'a, Entry<M>> {
    /// Rendezvous hashing: a member that leaves gives away only what it had itself.
    fn heaviest(&self, hash: u64) -> Option<&'a Entry<M>> {
        let weight = |entry: &&Entry<M>| mix(entry.weight ^ mix(hash));
        let (before, after) = match self.excluded {
            Some(excluded) => (&self.entries[..excluded], &self.entries[excluded + 1..]),
            None => (self.entries, [].as_slice()),
        };
        before.iter().chain(after).max_by_key(weight)
    }
}

/// Spreads every bit over all others (the finaliser of `SplitMix64`).
const fn mix(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}
