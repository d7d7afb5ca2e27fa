//! Shared subscriptions: each message goes to one member of the group.

use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::ops::Range;
use core::str::FromStr;

use foldhash::fast::FixedState;

use crate::destination::Destination;
use crate::hashing::Hashing;
use crate::members::Members;

/// The method by which a group chooses the member for a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// Members in turn.
    #[default]
    RoundRobin,
    /// A random member, all with equal probability.
    Random,
    /// The same member until it leaves or goes offline.
    Sticky,
    /// The same member for all messages of a publisher.
    HashClientId,
    /// The same member for all messages of a topic.
    HashTopic,
    /// Local members in turn; others only if none is local.
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

    /// Name in the configuration.
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

/// The name of the strategy is unknown.
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

/// Hash of a topic name or a client identifier, for [`Choice`]: it depends only on the text, so
/// that every worker and every node chooses the same member.
pub fn stable_hash(text: &str) -> u64 {
    FixedState::default().hash_one(text)
}

/// The inputs of a choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// Hash of the publisher's client identifier.
    pub client_hash: u64,
    /// Hash of the topic name.
    pub topic_hash: u64,
    /// A new random number.
    pub random: u64,
}

/// State of one chooser in a group: its turn and its sticky member.
///
/// If several threads choose members of a group, each has its own cursor; each distributes its own
/// messages evenly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor<K> {
    turn: u32,
    sticky: Option<StickyMember<K>>,
}

/// The sticky member of a chooser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StickyMember<K> {
    key: K,
    /// Its position at the last choice.
    position: usize,
}

impl<K> Cursor<K> {
    /// Creates a cursor with a turn; give each chooser a different one, otherwise all start with
    /// the same member.
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
/// The cost of a choice is independent of the number of members, except for the hash strategies,
/// which compute a weight for each online member (a few nanoseconds each), and `local`, which skips
/// remote members. A copy shares its members with the original: the first change after it costs
/// some microseconds for any number of members.
#[derive(Clone, Debug)]
pub struct Group<M> {
    strategy: Strategy,
    hashing: Hashing,
    /// Online members come first.
    members: Members<Entry<M>>,
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

impl<M: Destination + Clone> Group<M> {
    /// Adds a member; one with the same key is replaced and returned.
    pub fn add(&mut self, member: M, online: bool) -> Option<M> {
        let key = member.key();
        let replaced = if let Some(position) = self.members.position(key, self.hashing) {
            self.members
                .get_mut(position)
                .map(|entry| core::mem::replace(&mut entry.member, member))
        } else {
            // A fixed seed: every worker and node must compute the same weights.
            let weight = FixedState::default().hash_one(key);
            self.members.push(Entry { member, weight }, self.hashing);
            None
        };
        self.set_online(key, online);
        replaced
    }

    /// Removes a member.
    pub fn remove(&mut self, key: M::Key) -> Option<M> {
        self.set_online(key, false);
        let position = self.members.position(key, self.hashing)?;
        let entry = self.members.swap_remove(position, self.hashing)?;
        Some(entry.member)
    }

    /// Sets whether a member is online; returns `false` if there is no such member.
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
}

impl<M: Destination> Group<M> {
    /// Creates a group without members.
    pub fn new(strategy: Strategy) -> Self {
        Self {
            strategy,
            hashing: Hashing::random(),
            members: Members::new(),
            online_count: 0,
        }
    }

    /// The strategy of the group.
    pub const fn strategy(&self) -> Strategy {
        self.strategy
    }

    /// Whether there are no members.
    pub const fn is_empty(&self) -> bool {
        self.members.len() == 0
    }

    /// Number of members.
    pub const fn len(&self) -> usize {
        self.members.len()
    }

    /// Number of online members.
    pub const fn online_count(&self) -> usize {
        self.online_count
    }

    /// A member and whether it is online.
    pub fn member(&self, key: M::Key) -> Option<(&M, bool)> {
        let position = self.members.position(key, self.hashing)?;
        let entry = self.members.get(position)?;
        Some((&entry.member, position < self.online_count))
    }

    /// Approximate memory without the allocator's overhead; memory shared by copies counts for
    /// each.
    pub const fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.members.heap_bytes()
    }

    /// Every member and whether it is online, in unspecified order.
    pub fn members(&self) -> impl Iterator<Item = (&M, bool)> {
        let entries = self.members.range(0..self.members.len()).enumerate();
        entries.map(|(position, entry)| (&entry.member, position < self.online_count))
    }

    /// The members that a message may go to, starting at a random one: the online members, or all
    /// if none is online.
    pub fn candidates(&self, random: u64) -> impl Iterator<Item = &M> {
        let count = self.candidate_count();
        let first = scaled(random, count);
        let behind = self.members.range(first..count);
        let entries = behind.chain(self.members.range(0..first));
        entries.map(|entry| &entry.member)
    }

    /// Number of candidates, which come first in the list.
    const fn candidate_count(&self) -> usize {
        match self.online_count {
            0 => self.members.len(),
            online => online,
        }
    }

    /// Chooses the member for a message: an online one, or an offline one if none is online.
    ///
    /// `exclude` is skipped; it is the member that returned the message.
    pub fn pick(
        &self,
        cursor: &mut Cursor<M::Key>,
        choice: Choice,
        is_local: impl Fn(&M) -> bool,
        exclude: Option<M::Key>,
    ) -> Option<&M> {
        let count = self.candidate_count();
        let position = match (self.strategy, exclude) {
            (Strategy::RoundRobin, None) => next_number(&mut cursor.turn, count)?,
            (Strategy::Random, None) => scaled(choice.random, count),
            _ => return self.pick_otherwise(cursor, choice, is_local, exclude),
        };
        Some(&self.members.get(position)?.member)
    }

    /// Handles the cases that need more than a position in the group; separate, so that the simple
    /// cases stay fast.
    #[inline(never)]
    fn pick_otherwise(
        &self,
        cursor: &mut Cursor<M::Key>,
        choice: Choice,
        is_local: impl Fn(&M) -> bool,
        exclude: Option<M::Key>,
    ) -> Option<&M> {
        let excluded = exclude.and_then(|key| self.members.position(key, self.hashing));
        let online = Candidates::new(&self.members, 0..self.online_count, excluded);
        let candidates = if online.count > 0 {
            online
        } else {
            let offline = self.online_count..self.members.len();
            Candidates::new(&self.members, offline, excluded)
        };
        let entry = match self.strategy {
            Strategy::RoundRobin => candidates.next(&mut cursor.turn),
            Strategy::Random => candidates.any(choice.random),
            Strategy::Sticky => self.stick(&candidates, cursor, choice.random),
            Strategy::HashClientId => candidates.heaviest(choice.client_hash),
            Strategy::HashTopic => candidates.heaviest(choice.topic_hash),
            Strategy::Local => candidates
                .next_wanted(&mut cursor.turn, |entry| is_local(&entry.member))
                .or_else(|| candidates.next(&mut cursor.turn)),
        }?;
        Some(&entry.member)
    }

    fn stick<'a>(
        &self,
        candidates: &Candidates<'a, Entry<M>>,
        cursor: &mut Cursor<M::Key>,
        random: u64,
    ) -> Option<&'a Entry<M>> {
        if let Some(sticky) = &mut cursor.sticky {
            let is_there = |entry: &Entry<M>| entry.key() == sticky.key;
            if !self.members.get(sticky.position).is_some_and(is_there) {
                let moved = self.members.position(sticky.key, self.hashing);
                sticky.position = moved.unwrap_or(usize::MAX);
            }
            if let Some(entry) = candidates.at_position(sticky.position) {
                return Some(entry);
            }
        }
        let position = candidates.position(scaled(random, candidates.count));
        let entry = candidates.at_position(position)?;
        let key = entry.key();
        cursor.sticky = Some(StickyMember { key, position });
        Some(entry)
    }
}

/// A part of a group without the excluded member.
struct Candidates<'a, E> {
    members: &'a Members<E>,
    /// Their positions in the group.
    positions: Range<usize>,
    /// Position of the excluded member in the group, if it is in this part.
    excluded: Option<usize>,
    count: usize,
}

impl<'a, E> Candidates<'a, E> {
    fn new(members: &'a Members<E>, positions: Range<usize>, excluded: Option<usize>) -> Self {
        let excluded = excluded.filter(|at| positions.contains(at));
        let count = positions.len() - usize::from(excluded.is_some());
        Self {
            members,
            positions,
            excluded,
            count,
        }
    }

    /// The entry at a position of the group, if it is a candidate.
    fn at_position(&self, position: usize) -> Option<&'a E> {
        if self.excluded == Some(position) || !self.positions.contains(&position) {
            None
        } else {
            self.members.get(position)
        }
    }

    /// Position in the group of the candidate with that number.
    fn position(&self, number: usize) -> usize {
        let position = self.positions.start + number;
        let is_behind = self.excluded.is_some_and(|excluded| position >= excluded);
        position + usize::from(is_behind)
    }

    fn any(&self, random: u64) -> Option<&'a E> {
        self.at_position(self.position(scaled(random, self.count)))
    }

    /// The candidate whose turn it is.
    fn next(&self, turn: &mut u32) -> Option<&'a E> {
        let number = next_number(turn, self.count)?;
        self.members.get(self.position(number))
    }

    /// The first candidate from the turn on for which `wanted` returns true.
    fn next_wanted(&self, turn: &mut u32, wanted: impl Fn(&E) -> bool) -> Option<&'a E> {
        let first = self.position((*turn as usize).checked_rem(self.count)?);
        let find = |positions: Range<usize>| {
            let mut entries = positions.clone().zip(self.members.range(positions));
            entries.find(|(at, entry)| wanted(entry) && Some(*at) != self.excluded)
        };
        let found = self.members.get(first).filter(|entry| wanted(entry));
        let Range { start, end } = self.positions;
        let (position, entry) = found
            .map(|entry| (first, entry))
            .or_else(|| find(first + 1..end))
            .or_else(|| find(start..first))?;
        let is_behind = self.excluded.is_some_and(|excluded| position > excluded);
        let number = position - start - usize::from(is_behind);
        *turn = u32::try_from(number + 1).unwrap_or(0);
        Some(entry)
    }
}

impl<'a, M> Candidates<'a, Entry<M>> {
    /// Rendezvous hashing: if a member leaves, only its own share moves to others.
    fn heaviest(&self, hash: u64) -> Option<&'a Entry<M>> {
        let weight = |entry: &&Entry<M>| mix(entry.weight ^ mix(hash));
        let Range { start, end } = self.positions;
        let (before, behind) = match self.excluded {
            Some(excluded) => (start..excluded, excluded + 1..end),
            None => (start..end, end..end),
        };
        let entries = self.members.range(before);
        entries.chain(self.members.range(behind)).max_by_key(weight)
    }
}

/// The number whose turn it is, below `count`; `None` if `count` is 0.
fn next_number(turn: &mut u32, count: usize) -> Option<usize> {
    let number = (*turn as usize).checked_rem(count)?;
    *turn = u32::try_from(number + 1).unwrap_or(0);
    Some(number)
}

/// Scales a random number to one below `count`; 0 if `count` is 0.
fn scaled(random: u64, count: usize) -> usize {
    let scaled = (u128::from(random) * count as u128) >> 64;
    usize::try_from(scaled).unwrap_or(0)
}

/// Spreads every bit over all others (the finaliser of `SplitMix64`).
const fn mix(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use super::{mix, next_number, scaled};

    #[test]
    fn hashes_are_mixed_as_split_mix_64_mixes_its_state() {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        assert_eq!(mix(0), 0);
        assert_eq!(mix(STEP), 0xe220_a839_7b1d_cdaf);
        assert_eq!(mix(STEP.wrapping_mul(2)), 0x6e78_9e6a_a1b9_65f4);
    }

    #[test]
    fn random_numbers_are_scaled_to_the_whole_range() {
        assert_eq!(
            [0, 1 << 63, u64::MAX].map(|random| scaled(random, 10)),
            [0, 5, 9]
        );
        assert_eq!(scaled(u64::MAX, 0), 0);
        assert_eq!(scaled(u64::MAX, 1), 0);
    }

    #[test]
    fn turns_go_round() {
        let mut turn = 0;
        let numbers = [0; 5].map(|_| next_number(&mut turn, 3));
        assert_eq!(numbers, [0, 1, 2, 0, 1].map(Some));
        assert_eq!(next_number(&mut turn, 0), None);
        assert_eq!(next_number(&mut turn, 1), Some(0));
    }
}
