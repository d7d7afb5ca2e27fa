//! A cache of correct passwords, so that a mass reconnect does not hash each of them again.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use aws_lc_rs::hmac::{Context, HMAC_SHA256, Key};
use aws_lc_rs::rand;

/// Caches pairs of stored hash and correct password, by their HMAC under a key that only this
/// process has.
///
/// The stored hash is part of a pair: a removed user or one with a new password is never found
/// here, so nothing has to be cleared when a store changes.
pub(crate) struct Verified {
    key: Key,
    ttl: Duration,
    /// Pairs that one generation holds: two of them are remembered.
    half: usize,
    /// Guards both generations; held for one look-up or one insertion.
    generations: Mutex<Generations>,
}

#[derive(Default)]
struct Generations {
    young: HashMap<[u8; 32], Duration>,
    old: HashMap<[u8; 32], Duration>,
}

impl Verified {
    /// Remembers up to `capacity` pairs, each for `ttl`; none if one of them is 0.
    pub(crate) fn new(capacity: usize, ttl: Duration) -> Self {
        let mut secret = [0; 32];
        // Without random numbers nothing may be cached.
        let is_secret = rand::fill(&mut secret).is_ok();
        Self {
            key: Key::new(HMAC_SHA256, &secret),
            ttl,
            half: if is_secret && !ttl.is_zero() {
                capacity.div_ceil(2)
            } else {
                0
            },
            generations: Mutex::default(),
        }
    }

    /// Whether this password was right for this hash, and not too long ago.
    pub(crate) fn contains(&self, stored: &str, password: &[u8], now: Duration) -> bool {
        if self.half == 0 {
            return false;
        }
        let pair = self.pair(stored, password);
        let generations = self
            .generations
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let since = generations
            .young
            .get(&pair)
            .or_else(|| generations.old.get(&pair));
        since.is_some_and(|since| now.saturating_sub(*since) < self.ttl)
    }

    /// This password was right for this hash.
    pub(crate) fn insert(&self, stored: &str, password: &[u8], now: Duration) {
        if self.half == 0 {
            return;
        }
        let pair = self.pair(stored, password);
        let mut generations = self
            .generations
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if generations.young.len() >= self.half {
            generations.old = std::mem::take(&mut generations.young);
        }
        generations.young.insert(pair, now);
    }

    fn pair(&self, stored: &str, password: &[u8]) -> [u8; 32] {
        let mut context = Context::with_key(&self.key);
        // With its length before it, no other pair has the same bytes.
        context.update(&stored.len().to_le_bytes());
        context.update(stored.as_bytes());
        context.update(password);
        let mut pair = [0; 32];
        pair.copy_from_slice(context.sign().as_ref());
        pair
    }
}

impl fmt::Debug for Verified {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Verified")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(1000);
    const TTL: Duration = Duration::from_mins(1);
    const ALMOST: Duration = Duration::from_secs(59);

    #[test]
    fn a_right_password_is_remembered_for_its_time_and_its_hash() {
        let verified = Verified::new(10, TTL);
        verified.insert("hash", b"secret", NOW);
        assert!(verified.contains("hash", b"secret", NOW));
        assert!(verified.contains("hash", b"secret", NOW + ALMOST));
        assert!(!verified.contains("hash", b"secret", NOW + TTL));
        assert!(!verified.contains("hash", b"Secret", NOW));
        assert!(!verified.contains("another", b"secret", NOW));
        assert!(!verified.contains("hashs", b"ecret", NOW));
    }

    #[test]
    fn no_more_is_remembered_than_the_capacity() {
        let verified = Verified::new(10, TTL);
        for number in 0..1000 {
            verified.insert(&format!("hash{number}"), b"secret", NOW);
        }
        let found = (0..1000)
            .filter(|number| verified.contains(&format!("hash{number}"), b"secret", NOW))
            .count();
        assert!((5..=10).contains(&found), "{found}");
        assert!(verified.contains("hash999", b"secret", NOW));
    }

    #[test]
    fn without_capacity_or_time_nothing_is_remembered() {
        for verified in [Verified::new(0, TTL), Verified::new(10, Duration::ZERO)] {
            verified.insert("hash", b"secret", NOW);
            assert!(!verified.contains("hash", b"secret", NOW));
        }
    }
}
