//! Number of sessions that outlive their connection, by user and by address.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crossbeam_utils::CachePadded;
use hashbrown::HashMap;
use thrum_access::Network;

/// Number of parts of the table, so that workers seldom wait for each other.
const SHARDS: usize = 64;

type Shard = Mutex<HashMap<u64, u32>>;

/// The user and the address that a session counts against, as hashes; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    user: u64,
    address: u64,
}

impl Holder {
    fn keys(self) -> impl Iterator<Item = u64> {
        [self.user, self.address]
            .into_iter()
            .filter(|key| *key != 0)
    }
}

/// The limit that one more session would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// The limit of sessions of one user.
    User,
    /// The limit of sessions of one address.
    Address,
}

/// Limits of the number of sessions that outlive their connection; for a user and an address, 0 is
/// no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionLimits {
    /// Greatest number of sessions of the node.
    pub node: u64,
    /// Greatest number of sessions of one user.
    pub user: u32,
    /// Greatest number of sessions of one address.
    pub address: u32,
}

/// Table of the numbers, used when a client connects and when a session ends, and only if a limit
/// is set.
#[derive(Debug)]
pub struct SessionCounts {
    hasher: RandomState,
    /// Each lock guards its numbers for one read or change.
    shards: Box<[CachePadded<Shard>]>,
}

impl Default for SessionCounts {
    fn default() -> Self {
        Self {
            hasher: RandomState::new(),
            shards: (0..SHARDS).map(|_| CachePadded::default()).collect(),
        }
    }
}

impl SessionCounts {
    /// Returns the user and the address that a session counts against, as far as they have limits.
    pub fn holder(
        &self,
        user: Option<&str>,
        address: Option<IpAddr>,
        limits: &SessionLimits,
    ) -> Holder {
        let user = user.filter(|_| limits.user > 0);
        let address = address.filter(|_| limits.address > 0);
        Holder {
            user: user.map_or(0, |user| self.hasher.hash_one(user).max(1)),
            address: address.map_or(0, |address| {
                self.hasher.hash_one(Network::of_client(address)).max(1)
            }),
        }
    }

    /// Returns the limit that one more session would exceed; none if it exceeds none.
    pub fn full(&self, holder: Holder, limits: &SessionLimits) -> Option<Full> {
        if holder.user != 0 && self.count(holder.user) >= limits.user {
            return Some(Full::User);
        }
        let is_full = holder.address != 0 && self.count(holder.address) >= limits.address;
        is_full.then_some(Full::Address)
    }

    /// Adds a session.
    pub fn join(&self, holder: Holder) {
        for key in holder.keys() {
            *self.shard(key).entry(key).or_insert(0) += 1;
        }
    }

    /// Subtracts a session.
    pub fn leave(&self, holder: Holder) {
        for key in holder.keys() {
            let mut shard = self.shard(key);
            let left = shard.get_mut(&key).map(|count| {
                *count -= 1;
                *count
            });
            if left == Some(0) {
                shard.remove(&key);
            }
        }
    }

    fn count(&self, key: u64) -> u32 {
        self.shard(key).get(&key).copied().unwrap_or(0)
    }

    fn shard(&self, key: u64) -> MutexGuard<'_, HashMap<u64, u32>> {
        let place = usize::try_from(key % SHARDS as u64).unwrap_or(0);
        let shard = self.shards[place].lock();
        shard.unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: SessionLimits = SessionLimits {
        node: 100,
        user: 3,
        address: 2,
    };

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn users_and_addresses_are_counted_apart_until_their_sessions_end() {
        let counts = SessionCounts::default();
        let holder = |user, from| counts.holder(user, Some(address(from)), &LIMITS);
        let first = holder(Some("u"), "192.0.2.1");
        counts.join(first);
        counts.join(holder(Some("u"), "192.0.2.1"));
        assert_eq!(
            counts.full(holder(Some("v"), "192.0.2.1"), &LIMITS),
            Some(Full::Address)
        );
        let elsewhere = holder(Some("u"), "192.0.2.2");
        assert_eq!(counts.full(elsewhere, &LIMITS), None);
        counts.join(elsewhere);
        assert_eq!(
            counts.full(holder(Some("u"), "192.0.2.3"), &LIMITS),
            Some(Full::User)
        );
        counts.leave(first);
        assert_eq!(counts.full(first, &LIMITS), None);
        counts.leave(holder(Some("u"), "192.0.2.1"));
        counts.leave(elsewhere);
        assert!(
            counts
                .shards
                .iter()
                .all(|shard| shard.lock().unwrap().is_empty())
        );
    }

    #[test]
    fn addresses_of_one_network_of_ipv6_are_one() {
        let counts = SessionCounts::default();
        let holder = |from| counts.holder(None, Some(address(from)), &LIMITS);
        assert_eq!(holder("2001:db8::1"), holder("2001:db8::ffff:1"));
        assert_ne!(holder("2001:db8::1"), holder("2001:db8:0:1::1"));
    }

    #[test]
    fn sessions_without_limits_are_not_counted() {
        let limits = SessionLimits {
            user: 0,
            address: 0,
            ..LIMITS
        };
        let counts = SessionCounts::default();
        let holder = counts.holder(Some("u"), Some(address("192.0.2.1")), &limits);
        assert_eq!(holder, Holder::default());
        assert_eq!(counts.full(holder, &limits), None);
    }
}
