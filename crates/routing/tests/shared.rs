//! Shared subscriptions: the choice of a member, and its stability when members join and leave.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::{Strategy as _, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use thrum_routing::{Choice, Cursor, Destination, Group, Strategy};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Member {
    key: u32,
    worker: u8,
}

impl Destination for Member {
    type Key = u32;

    fn key(&self) -> u32 {
        self.key
    }
}

const ODD_IS_LOCAL: fn(&Member) -> bool = |member| member.key % 2 == 1;

/// A group with the members 0 to `count`, all online.
fn group(strategy: Strategy, count: u32) -> Group<Member> {
    let mut group = Group::new(strategy);
    for key in 0..count {
        group.add(Member { key, worker: 0 }, true);
    }
    group
}

/// Evenly distributed hashes for each message.
fn message(number: u64) -> Choice {
    let hash = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    Choice {
        client_hash: hash,
        topic_hash: hash.rotate_left(17),
        random: hash.rotate_left(31),
    }
}

fn pick(group: &Group<Member>, cursor: &mut Cursor<u32>, number: u64) -> Option<u32> {
    group
        .pick(cursor, message(number), ODD_IS_LOCAL, None)
        .map(Destination::key)
}

/// Number of messages for each member.
fn tally(group: &Group<Member>, messages: u64) -> BTreeMap<u32, u64> {
    let mut cursor = Cursor::default();
    let mut tally = BTreeMap::new();
    for number in 0..messages {
        let key = pick(group, &mut cursor, number).expect("there are members");
        *tally.entry(key).or_default() += 1;
    }
    tally
}

#[test]
fn strategy_names_are_read_and_written() {
    let names = [
        "round_robin",
        "random",
        "sticky",
        "hash_client_id",
        "hash_topic",
        "local",
    ];
    for (strategy, name) in Strategy::ALL.into_iter().zip(names) {
        assert_eq!(strategy.to_string(), name);
        assert_eq!(name.parse(), Ok(strategy));
    }
    assert_eq!(Strategy::default(), Strategy::RoundRobin);
    let error = "roundrobin"
        .parse::<Strategy>()
        .expect_err("there is no such strategy");
    assert_eq!(
        error.to_string(),
        "unknown strategy, expected one of round_robin, random, sticky, hash_client_id, \
         hash_topic, local"
    );
}

#[test]
fn an_empty_group_chooses_no_member() {
    for strategy in Strategy::ALL {
        let group = group(strategy, 0);
        assert!(group.is_empty());
        assert_eq!(pick(&group, &mut Cursor::default(), 1), None);
    }
}

#[test]
fn round_robin_gives_each_member_the_same() {
    let tally = tally(&group(Strategy::RoundRobin, 7), 7 * 11);
    assert_eq!(tally, (0..7).map(|key| (key, 11)).collect());
}

#[test]
fn round_robin_cursors_take_turns_on_their_own() {
    let group = group(Strategy::RoundRobin, 3);
    let mut first = Cursor::default();
    let mut second = Cursor::starting_at(1);
    for _ in 0..5 {
        assert_ne!(pick(&group, &mut first, 0), pick(&group, &mut second, 0));
    }
    // A turn beyond the end starts again at the beginning.
    assert_eq!(
        pick(&group, &mut Cursor::starting_at(u32::MAX), 0),
        pick(&group, &mut Cursor::starting_at(u32::MAX % 3), 0),
    );
}

#[test]
fn random_spreads_over_all_members() {
    for (key, times) in tally(&group(Strategy::Random, 8), 8_000) {
        assert!((800..1_200).contains(&times), "member {key}: {times}");
    }
    let group = group(Strategy::Random, 8);
    for random in [0, u64::MAX] {
        let choice = Choice {
            random,
            ..Choice::default()
        };
        assert!(
            group
                .pick(&mut Cursor::default(), choice, |_| false, None)
                .is_some()
        );
    }
}

#[test]
fn sticky_member_stays_until_it_leaves_or_goes_offline() {
    let mut group = group(Strategy::Sticky, 5);
    let mut cursor = Cursor::default();
    for leave in [true, false] {
        let chosen = pick(&group, &mut cursor, 1).expect("there are members");
        for number in 2..50 {
            assert_eq!(pick(&group, &mut cursor, number), Some(chosen));
        }
        if leave {
            assert!(group.remove(chosen).is_some());
        } else {
            assert!(group.set_online(chosen, false));
        }
        let next = pick(&group, &mut cursor, 50).expect("others are left");
        assert_ne!(next, chosen);
        if !leave {
            // It does not become sticky again.
            group.set_online(chosen, true);
            assert_eq!(pick(&group, &mut cursor, 51), Some(next));
        }
    }
}

#[test]
fn sticky_group_moves_on_when_its_member_is_excluded() {
    let group = group(Strategy::Sticky, 3);
    let mut cursor = Cursor::default();
    let chosen = pick(&group, &mut cursor, 1);
    let other = group
        .pick(&mut cursor, message(1), |_| false, chosen)
        .map(Destination::key);
    assert_ne!(other, chosen);
    assert_eq!(pick(&group, &mut cursor, 2), other);
}

#[test]
fn hash_strategies_look_at_their_own_hash_only() {
    for (strategy, by_client) in [(Strategy::HashClientId, true), (Strategy::HashTopic, false)] {
        let group = group(strategy, 10);
        let mut cursor = Cursor::default();
        let mut chosen = |client_hash, topic_hash| {
            let choice = Choice {
                client_hash,
                topic_hash,
                random: client_hash ^ topic_hash,
            };
            group
                .pick(&mut cursor, choice, |_| false, None)
                .map(Destination::key)
        };
        let by_own: Vec<_> = (0..50)
            .map(|own| {
                if by_client {
                    chosen(own, 1)
                } else {
                    chosen(1, own)
                }
            })
            .collect();
        let repeated: Vec<_> = (0..50)
            .map(|own| {
                if by_client {
                    chosen(own, 2)
                } else {
                    chosen(2, own)
                }
            })
            .collect();
        assert_eq!(by_own, repeated);
        assert!(by_own.iter().any(|&other| other != by_own[0]));
    }
}

#[test]
fn hash_choice_does_not_depend_on_the_order_of_joining() {
    let joined = group(Strategy::HashTopic, 20);
    let mut other = Group::new(Strategy::HashTopic);
    for key in (0..20).rev() {
        other.add(Member { key, worker: 0 }, false);
    }
    for key in 0..20 {
        other.set_online((key * 7) % 20, true);
    }
    for number in 0..200 {
        let first = pick(&joined, &mut Cursor::default(), number);
        assert_eq!(first, pick(&other, &mut Cursor::starting_at(5), number));
    }
}

#[test]
fn only_the_share_of_a_leaving_member_moves_to_others() {
    let mut group = group(Strategy::HashClientId, 10);
    let all = |group: &Group<Member>| -> Vec<_> {
        (0..5_000)
            .map(|number| pick(group, &mut Cursor::default(), number))
            .collect()
    };
    for (key, times) in tally(&group, 5_000) {
        assert!((350..650).contains(&times), "member {key}: {times}");
    }
    let before = all(&group);
    group.remove(3);
    let after = all(&group);
    for (before, after) in before.iter().zip(&after) {
        assert!(before == after || *before == Some(3));
        assert_ne!(*after, Some(3));
    }
    group.add(Member { key: 3, worker: 0 }, true);
    assert_eq!(all(&group), before);
}

#[test]
fn local_members_take_turns_before_all_others() {
    let mut group = group(Strategy::Local, 6);
    assert_eq!(
        tally(&group, 30),
        BTreeMap::from([(1, 10), (3, 10), (5, 10)])
    );
    for key in [1, 3, 5] {
        group.set_online(key, false);
    }
    // An online remote member is preferred to a local one that is offline.
    assert_eq!(
        tally(&group, 30),
        BTreeMap::from([(0, 10), (2, 10), (4, 10)])
    );
}

#[test]
fn offline_members_are_chosen_only_if_none_is_online() {
    for strategy in Strategy::ALL {
        let mut group = group(strategy, 4);
        for key in [0, 1, 3] {
            assert!(group.set_online(key, false));
        }
        assert_eq!(tally(&group, 20), BTreeMap::from([(2, 20)]));
        group.set_online(2, false);
        assert_eq!(group.online_count(), 0);
        assert!(pick(&group, &mut Cursor::default(), 1).is_some());
    }
}

#[test]
fn a_member_that_comes_online_replaces_offline_ones() {
    for strategy in Strategy::ALL {
        let mut group = group(strategy, 4);
        for key in 0..4 {
            group.set_online(key, false);
        }
        // The cursor's state from the time without online members has no effect.
        let mut cursor = Cursor::default();
        let offline = pick(&group, &mut cursor, 1).unwrap();
        let back = (offline + 1) % 4;
        group.set_online(back, true);
        for number in 0..10 {
            assert_eq!(pick(&group, &mut cursor, number), Some(back), "{strategy}");
        }
        // The queue of the online member is full: an offline one is better than none.
        let other = group.pick(&mut cursor, message(1), ODD_IS_LOCAL, Some(back));
        assert!(other.is_some_and(|other| other.key != back), "{strategy}");
    }
}

#[test]
fn an_excluded_member_is_skipped_even_for_an_offline_one() {
    for strategy in Strategy::ALL {
        let mut group = group(strategy, 2);
        let mut cursor = Cursor::default();
        let mut chosen = |group: &Group<Member>, exclude| {
            group
                .pick(&mut cursor, message(9), ODD_IS_LOCAL, exclude)
                .map(Destination::key)
        };
        assert_eq!(chosen(&group, Some(0)), Some(1));
        assert_eq!(chosen(&group, Some(1)), Some(0));
        group.set_online(0, false);
        assert_eq!(chosen(&group, Some(1)), Some(0));
        group.remove(0);
        assert_eq!(chosen(&group, Some(1)), None);
        assert_eq!(chosen(&group, Some(77)), Some(1));
    }
}

#[test]
fn member_is_replaced_by_one_with_the_same_key() {
    let mut group = group(Strategy::RoundRobin, 2);
    let replaced = group.add(Member { key: 1, worker: 9 }, false);
    assert_eq!(replaced, Some(Member { key: 1, worker: 0 }));
    assert_eq!(group.len(), 2);
    assert_eq!(
        group.member(1),
        Some((&Member { key: 1, worker: 9 }, false))
    );
    assert_eq!(group.member(0).map(|(_, online)| online), Some(true));
    assert_eq!(group.member(2), None);
    assert!(!group.set_online(2, true));
    assert_eq!(group.remove(2), None);
}

#[derive(Clone, Copy, Debug)]
enum Change {
    Add(u32, bool),
    Remove(u32),
    SetOnline(u32, bool),
}

fn change() -> impl proptest::strategy::Strategy<Value = Change> {
    let key = || 0..60_u32;
    prop_oneof![
        4 => (key(), any::<bool>()).prop_map(|(key, online)| Change::Add(key, online)),
        2 => key().prop_map(Change::Remove),
        2 => (key(), any::<bool>()).prop_map(|(key, online)| Change::SetOnline(key, online)),
    ]
}

fn apply(group: &mut Group<Member>, plain: &mut BTreeMap<u32, bool>, change: Change) {
    match change {
        Change::Add(key, online) => {
            let replaced = group.add(Member { key, worker: 0 }, online);
            assert_eq!(replaced.is_some(), plain.insert(key, online).is_some());
        }
        Change::Remove(key) => {
            let removed = group.remove(key);
            assert_eq!(
                removed.map(|member| member.key),
                plain.remove(&key).map(|_| key)
            );
        }
        Change::SetOnline(key, online) => {
            assert_eq!(group.set_online(key, online), plain.contains_key(&key));
            plain.entry(key).and_modify(|known| *known = online);
        }
    }
}

proptest! {
    #[test]
    fn the_choice_follows_its_rules_during_all_changes(
        strategy in proptest::sample::select(&Strategy::ALL[..]),
        changes in vec(change(), 1..250),
        exclude in proptest::option::of(0..60_u32),
    ) {
        let mut group = Group::new(strategy);
        let mut plain = BTreeMap::new();
        let mut cursor = Cursor::default();
        for (number, &change) in (0..).zip(&changes) {
            apply(&mut group, &mut plain, change);
            let chosen = group.pick(&mut cursor, message(number), ODD_IS_LOCAL, exclude);
            let candidates: BTreeMap<_, _> =
                plain.iter().filter(|&(&key, _)| Some(key) != exclude).collect();
            prop_assert_eq!(chosen.is_some(), !candidates.is_empty());
            let Some(chosen) = chosen else { continue };
            let any_online = candidates.values().any(|&&online| online);
            prop_assert_eq!(candidates.get(&chosen.key), Some(&&any_online));
        }
        let members: BTreeMap<_, _> =
            group.members().map(|(member, online)| (member.key, online)).collect();
        prop_assert_eq!(group.len(), plain.len());
        prop_assert_eq!(&members, &plain);
        for (&key, &online) in &plain {
            prop_assert_eq!(group.member(key), Some((&Member { key, worker: 0 }, online)));
        }
        let online = plain.values().filter(|&&online| online).count();
        prop_assert_eq!(group.online_count(), online);
        if strategy == Strategy::RoundRobin && !plain.is_empty() {
            let turns = if online == 0 { plain.len() } else { online };
            let shares = tally(&group, 3 * turns as u64);
            prop_assert_eq!(shares.len(), turns);
            prop_assert!(shares.values().all(|&times| times == 3));
        }
    }
}

/// A group as a plain list, with the online members first.
#[derive(Clone, Debug, Default)]
struct PlainGroup {
    keys: Vec<u32>,
    online_count: usize,
}

impl PlainGroup {
    fn apply(&mut self, change: Change) {
        match change {
            Change::Add(key, online) => {
                if !self.keys.contains(&key) {
                    self.keys.push(key);
                }
                self.set_online(key, online);
            }
            Change::Remove(key) => {
                self.set_online(key, false);
                let position = self.keys.iter().position(|known| *known == key);
                position.map(|position| self.keys.swap_remove(position));
            }
            Change::SetOnline(key, online) => self.set_online(key, online),
        }
    }

    fn set_online(&mut self, key: u32, online: bool) {
        let Some(position) = self.keys.iter().position(|known| *known == key) else {
            return;
        };
        let was_online = position < self.online_count;
        if online && !was_online {
            self.keys.swap(position, self.online_count);
            self.online_count += 1;
        } else if !online && was_online {
            self.online_count -= 1;
            self.keys.swap(position, self.online_count);
        }
    }

    fn pick(
        &self,
        strategy: Strategy,
        turn: &mut usize,
        choice: Choice,
        exclude: Option<u32>,
    ) -> Option<u32> {
        let (online, offline) = self.keys.split_at(self.online_count);
        let others = |keys: &[u32]| -> Vec<u32> {
            let others = keys.iter().filter(|key| Some(**key) != exclude);
            others.copied().collect()
        };
        let online = others(online);
        let candidates = if online.is_empty() {
            others(offline)
        } else {
            online
        };
        let count = candidates.len();
        let first = turn.checked_rem(count)?;
        let number = match strategy {
            Strategy::RoundRobin => first,
            Strategy::Local => (first..first + count)
                .map(|number| number % count)
                .find(|number| candidates[*number] % 2 == 1)
                .unwrap_or(first),
            _ => usize::try_from((u128::from(choice.random) * count as u128) >> 64).ok()?,
        };
        *turn = number + 1;
        Some(candidates[number])
    }
}

proptest! {
    #[test]
    fn members_take_turns_as_in_a_plain_list_also_in_copies(
        strategy in proptest::sample::select(
            &[Strategy::RoundRobin, Strategy::Random, Strategy::Local][..],
        ),
        changes in vec((change(), 0..8_u32), 1..400),
        members in 0..4_000_u32,
        exclude in proptest::option::of(0..60_u32),
    ) {
        let mut group = group(strategy, members);
        let mut plain = PlainGroup::default();
        (0..members).for_each(|key| plain.apply(Change::Add(key, true)));
        let mut copies = Vec::new();
        let (mut cursor, mut turn) = (Cursor::default(), 0);
        for (number, (change, block)) in (0..).zip(changes) {
            if number % 100 == 0 {
                copies.push((group.clone(), plain.clone()));
            }
            // Distributed over the whole of a large group.
            let spread = |key| key + 60 * block * members.div_ceil(500);
            let change = match change {
                Change::Add(key, online) => Change::Add(spread(key), online),
                Change::Remove(key) => Change::Remove(spread(key)),
                Change::SetOnline(key, online) => Change::SetOnline(spread(key), online),
            };
            apply(&mut group, &mut known(&plain, change).into_iter().collect(), change);
            plain.apply(change);
            let chosen = group.pick(&mut cursor, message(number), ODD_IS_LOCAL, exclude);
            let expected = plain.pick(strategy, &mut turn, message(number), exclude);
            prop_assert_eq!(chosen.map(Destination::key), expected);
        }
        copies.push((group, plain));
        for (group, plain) in &copies {
            let members = group.members().map(|(member, _)| member.key);
            prop_assert!(members.eq(plain.keys.iter().copied()));
            prop_assert_eq!(group.online_count(), plain.online_count);
        }
    }
}

/// The state of the changed member in the plain list.
fn known(plain: &PlainGroup, change: Change) -> Option<(u32, bool)> {
    let (Change::Add(key, _) | Change::Remove(key) | Change::SetOnline(key, _)) = change;
    let position = plain.keys.iter().position(|known| *known == key)?;
    Some((key, position < plain.online_count))
}
