//! The buckets of users and of addresses, found by name when a client connects.

use std::hash::{BuildHasher as _, Hash};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crossbeam_utils::CachePadded;
use hashbrown::{DefaultHashBuilder, Equivalent};
use thrum_protocol::Time;

use super::bucket::{Pace, SharedBucket};
use super::idle_map::IdleMap;
use super::rate::Rate;

/// Accounts of one table: an attacker with many addresses can fill some tens of MiB.
pub(crate) const ACCOUNTS_MAX: usize = 1 << 18;
/// Parts of a table, each with its own lock: workers seldom contend, and clearing a part takes
/// little time.
const SHARDS: usize = 64;
/// Shards that one sweep checks: clearing them takes a millisecond at most, and every shard is
/// swept within 16 sweeps.
const SHARDS_PER_SWEEP: usize = 4;
/// An account without a connection is kept for this time at least, or as long as its buckets take
/// to fill.
const IDLE: Duration = Duration::from_mins(1);

/// The rates of one scope (a client, a user, an address, a listener) in the form that buckets use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paces {
    /// New connections.
    pub connects: Option<Pace>,
    /// PUBLISH packets from clients.
    pub messages: Option<Pace>,
    /// Bytes from clients.
    pub bytes: Option<Pace>,
}

impl Paces {
    /// The paces of these three rates.
    pub fn new(connects: &Rate, messages: &Rate, bytes: &Rate) -> Self {
        Self {
            connects: Pace::new(connects),
            messages: Pace::new(messages),
            bytes: Pace::new(bytes),
        }
    }

    /// Whether no rate limits messages or bytes.
    pub(crate) fn is_input_free(&self) -> bool {
        self.messages.is_none() && self.bytes.is_none()
    }

    /// Whether there is no rate.
    pub(crate) fn is_free(&self) -> bool {
        self.connects.is_none() && self.is_input_free()
    }

    /// Time for which an account without a connection has to be kept.
    fn idle(&self) -> Duration {
        let paces = [self.connects, self.messages, self.bytes];
        let refills = paces.iter().flatten().map(Pace::refill);
        refills.fold(IDLE, Duration::max)
    }
}

/// The buckets of one user, address or listener, shared by all its connections.
#[derive(Debug, Default)]
pub struct Account {
    /// New connections.
    pub connects: SharedBucket,
    /// PUBLISH packets.
    pub messages: SharedBucket,
    /// Bytes.
    pub bytes: SharedBucket,
}

/// Accounts by name, at most [`ACCOUNTS_MAX`]. Beyond this the longest unused accounts are
/// forgotten, those without a connection first; a forgotten name begins with full buckets.
#[derive(Debug)]
pub(crate) struct RateTable<K> {
    hasher: DefaultHashBuilder,
    /// Each lock guards its shard, for one look-up when a client connects. Messages do not take it:
    /// a connection holds its account.
    shards: Box<[CachePadded<Mutex<AccountShard<K>>>]>,
    /// The shard that the next sweep begins with.
    next_swept: AtomicUsize,
}

type AccountShard<K> = IdleMap<K, Arc<Account>>;

impl<K: Hash + Eq> RateTable<K> {
    /// A table for this number of accounts, at least two for each of its 64 shards.
    pub(crate) fn new(accounts_max: usize) -> Self {
        let shard = || CachePadded::new(Mutex::new(IdleMap::new(accounts_max / SHARDS)));
        Self {
            hasher: DefaultHashBuilder::default(),
            shards: (0..SHARDS).map(|_| shard()).collect(),
            next_swept: AtomicUsize::new(0),
        }
    }

    /// The account of a name, a full one if it is new.
    pub(crate) fn account<Q>(&self, name: &Q, owned: impl FnOnce() -> K) -> Arc<Account>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        let hash = self.hasher.hash_one(name);
        // The map within uses the lower bits and the highest seven.
        let shard = &self.shards[usize::try_from((hash >> 32) % SHARDS as u64).unwrap_or(0)];
        let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        let account = shard.entry(name, is_held, || (owned(), Arc::default()));
        Arc::clone(account)
    }

    /// Forgets unused accounts, in some shards with each call. The node calls it at an interval.
    pub(crate) fn sweep(&self, paces: &Paces, now: Time) {
        let idle = paces.idle();
        let first = self
            .next_swept
            .fetch_add(SHARDS_PER_SWEEP, Ordering::Relaxed);
        for number in first..first + SHARDS_PER_SWEEP {
            let shard = &self.shards[number % SHARDS];
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            if paces.is_free() {
                shard.clear();
            } else {
                shard.forget_idle(idle, now, is_held);
            }
        }
    }

    /// Number of accounts that were forgotten for lack of room since the last call.
    pub(crate) fn take_evicted(&self) -> u64 {
        let of = |shard: &Mutex<AccountShard<K>>| {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            shard.take_evicted()
        };
        self.shards.iter().map(|shard| of(shard)).sum()
    }

    /// Number of accounts.
    #[cfg(test)]
    fn len(&self) -> usize {
        let of = |shard: &Mutex<AccountShard<K>>| {
            shard.lock().unwrap_or_else(PoisonError::into_inner).len()
        };
        self.shards.iter().map(|shard| of(shard)).sum()
    }

    /// Whether there is no account.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Whether a connection uses the account.
fn is_held(account: &Arc<Account>) -> bool {
    Arc::strong_count(account) > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paces() -> Paces {
        Paces::new(&Rate::per_second(1), &Rate::NONE, &Rate::NONE)
    }

    fn of(table: &RateTable<Box<str>>, name: &str) -> Arc<Account> {
        table.account(name, || name.into())
    }

    fn sweep_all(table: &RateTable<Box<str>>, paces: &Paces, now: Time) {
        for _ in 0..SHARDS / SHARDS_PER_SWEEP {
            table.sweep(paces, now);
        }
    }

    #[test]
    fn the_connections_of_a_name_share_an_account() {
        let table = RateTable::new(ACCOUNTS_MAX);
        let (one, same, other) = (of(&table, "a"), of(&table, "a"), of(&table, "b"));
        assert!(Arc::ptr_eq(&one, &same));
        assert!(!Arc::ptr_eq(&one, &other));
        assert_eq!(table.len(), 2);
    }

    #[test]
    fn a_table_never_exceeds_its_bound_and_keeps_connected_clients() {
        let table = RateTable::new(SHARDS * 8);
        let held = of(&table, "held");
        for name in 0..100_000 {
            of(&table, &name.to_string());
            assert!(table.len() <= SHARDS * 8);
        }
        assert!(Arc::ptr_eq(&of(&table, "held"), &held));
        assert!(table.take_evicted() > 99_000);
    }

    #[test]
    fn an_unused_account_is_forgotten_once_its_buckets_are_full() {
        let table = RateTable::new(ACCOUNTS_MAX);
        let slow = Rate::new(1, Duration::from_hours(1), 10).unwrap();
        let paces = Paces::new(&slow, &Rate::NONE, &Rate::NONE);
        let at = |hours: u64| Time::from_millis(hours * 3_600_000);
        sweep_all(&table, &paces, at(100));
        let held = of(&table, "held");
        of(&table, "left");
        sweep_all(&table, &paces, at(109));
        assert_eq!(table.len(), 2);
        sweep_all(&table, &paces, at(110));
        sweep_all(&table, &paces, at(120));
        assert_eq!(table.len(), 1);
        assert!(Arc::ptr_eq(&of(&table, "held"), &held));
    }

    #[test]
    fn without_rates_nothing_is_kept() {
        let table = RateTable::new(ACCOUNTS_MAX);
        of(&table, "a");
        sweep_all(&table, &paces(), Time::from_millis(1));
        assert!(!table.is_empty());
        sweep_all(&table, &Paces::default(), Time::from_millis(2));
        assert!(table.is_empty());
    }

    #[test]
    fn an_account_is_kept_for_a_minute_or_as_long_as_its_buckets_take_to_fill() {
        assert_eq!(Paces::default().idle(), Duration::from_mins(1));
        assert_eq!(paces().idle(), Duration::from_mins(1));
        let slow = |burst| Rate::new(1, Duration::from_mins(1), burst).unwrap();
        let all = Paces::new(&slow(2), &slow(9), &slow(3));
        assert_eq!(all.idle(), Duration::from_mins(9));
    }

    #[test]
    fn paces_without_rates_are_free() {
        let (rate, none) = (Rate::per_second(1), Rate::NONE);
        let told = |paces: Paces| (paces.is_free(), paces.is_input_free());
        assert_eq!(told(Paces::new(&none, &none, &none)), (true, true));
        assert_eq!(told(Paces::new(&rate, &none, &none)), (false, true));
        assert_eq!(told(Paces::new(&none, &rate, &none)), (false, false));
        assert_eq!(told(Paces::new(&none, &none, &rate)), (false, false));
    }
}
