//! Failed logins: they are slowed by the address they come from, without locking out who is known there.
//!
//! A user who has logged in from an address before is counted apart from it (as a browser that a site knows by a
//! cookie): strangers who guess from the same address do not lock the user out, and the user's own wrong password locks
//! out nobody else.

use std::hash::BuildHasher as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use thrum_protocol::Time;

use super::idle_map::IdleMap;
use super::window::Window;
use crate::config::{LoginsConfig, Network};
use crate::hashing::HashBuilder;

/// Most addresses with failed logins that are counted at a time.
pub const ADDRESSES_MAX: usize = 1 << 16;
/// Most users known at their addresses.
pub const KNOWN_MAX: usize = 1 << 18;
/// A user that does not come back is known for that long, and twice as long at most.
const KNOWN_FOR: Duration = Duration::from_hours(24);

/// Counts failed logins.
#[derive(Debug)]
pub struct LoginGuard {
    /// Random, so that nobody outside can choose names that are taken for known ones.
    hasher: HashBuilder,
    /// Guards the counts, for some look-ups when a client logs in.
    counts: Mutex<Counts>,
}

#[derive(Debug)]
struct Counts {
    addresses: IdleMap<Network, Failures>,
    /// By the hash of address and user: those who have logged in.
    known: IdleMap<u64, Failures>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Failures {
    window: Window,
    waits_until: Time,
}

impl Failures {
    /// Counts one more; true if the wait begins.
    fn count(&mut self, settings: &LoginsConfig, now: Time) -> bool {
        if self.window.count(now, settings.window) < settings.failures {
            return false;
        }
        self.window.clear();
        self.waits_until = now.plus(settings.wait);
        true
    }
}

impl Default for LoginGuard {
    fn default() -> Self {
        Self {
            hasher: HashBuilder::default(),
            counts: Mutex::new(Counts {
                addresses: IdleMap::new(ADDRESSES_MAX),
                known: IdleMap::new(KNOWN_MAX),
            }),
        }
    }
}

impl LoginGuard {
    /// Whether a login from that address may be tried, before any password is looked at.
    ///
    /// # Errors
    /// How long it has to wait.
    pub fn may_try(
        &self,
        address: Network,
        username: &str,
        settings: &LoginsConfig,
        now: Time,
    ) -> Result<(), Duration> {
        if !is_counted(address, settings) {
            return Ok(());
        }
        let key = self.key(address, username);
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let known = counts.known.peek(&key);
        let failures = known.or_else(|| counts.addresses.peek(&address));
        let wait = failures.map_or(Duration::ZERO, |failures| failures.waits_until.since(now));
        if wait.is_zero() { Ok(()) } else { Err(wait) }
    }

    /// A login failed; true if the address, or the user there, has to wait from now on.
    pub fn failed(
        &self,
        address: Network,
        username: &str,
        settings: &LoginsConfig,
        now: Time,
    ) -> bool {
        if !is_counted(address, settings) {
            return false;
        }
        let key = self.key(address, username);
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let failures = if counts.known.peek(&key).is_some() {
            counts
                .known
                .entry(&key, |_| false, || (key, Failures::default()))
        } else {
            counts
                .addresses
                .entry(&address, |_| false, || (address, Failures::default()))
        };
        failures.count(settings, now)
    }

    /// A login with a password, a token or a key succeeded: the user is known there.
    pub fn succeeded(&self, address: Network, username: &str, settings: &LoginsConfig) {
        if !is_counted(address, settings) {
            return;
        }
        let key = self.key(address, username);
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let failures = counts
            .known
            .entry(&key, |_| false, || (key, Failures::default()));
        *failures = Failures::default();
    }

    /// Forgets what is over; to be called now and then.
    pub fn sweep(&self, settings: &LoginsConfig, now: Time) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let idle = settings.window.max(settings.wait);
        counts.addresses.forget_idle(idle, now, |_| false);
        counts.known.forget_idle(KNOWN_FOR, now, |_| false);
    }

    fn key(&self, address: Network, username: &str) -> u64 {
        self.hasher.hash_one((address, username))
    }
}

/// Clients of this machine are not counted: behind a proxy that does not name its clients all of them come from here,
/// and who is on the machine has better ways than guessing.
fn is_counted(address: Network, settings: &LoginsConfig) -> bool {
    settings.failures > 0 && !address.is_loopback()
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    const SETTINGS: LoginsConfig = LoginsConfig {
        failures: 3,
        window: Duration::from_mins(1),
        wait: Duration::from_mins(2),
    };

    fn address(text: &str) -> Network {
        Network::of_client(text.parse::<IpAddr>().unwrap())
    }

    fn at(seconds: u64) -> Time {
        Time::from_millis(1_000_000 + seconds * 1000)
    }

    /// A guard and one address, with the default settings of the tests.
    #[derive(Default)]
    struct Door(LoginGuard);

    impl Door {
        fn fail(&self, from: &str, username: &str, second: u64) -> bool {
            self.0
                .failed(address(from), username, &SETTINGS, at(second))
        }

        fn succeed(&self, from: &str, username: &str) {
            self.0.succeeded(address(from), username, &SETTINGS);
        }

        fn wait(&self, from: &str, username: &str, second: u64) -> u64 {
            let result = self
                .0
                .may_try(address(from), username, &SETTINGS, at(second));
            result.err().map_or(0, |wait| wait.as_secs())
        }
    }

    const HOST: &str = "192.0.2.7";

    #[test]
    fn an_address_that_guesses_has_to_wait() {
        let door = Door::default();
        assert!(!door.fail(HOST, "a", 0));
        assert!(!door.fail(HOST, "b", 1));
        assert_eq!(door.wait(HOST, "c", 1), 0);
        assert!(door.fail(HOST, "c", 2));
        assert_eq!(door.wait(HOST, "d", 2), 120);
        assert_eq!(door.wait("192.0.2.8", "d", 2), 0);
        assert_eq!(door.wait(HOST, "d", 121), 1);
        assert_eq!(door.wait(HOST, "d", 122), 0);
    }

    #[test]
    fn slow_failures_are_forgotten() {
        let door = Door::default();
        for minute in 0..100 {
            assert!(!door.fail(HOST, "a", minute * 60));
            assert!(!door.fail(HOST, "a", minute * 60 + 30));
        }
    }

    #[test]
    fn who_is_known_at_an_address_does_not_wait_for_those_who_guess_there() {
        let door = Door::default();
        door.succeed(HOST, "jo");
        for second in 0..3 {
            door.fail(HOST, "stranger", second);
        }
        assert_eq!(door.wait(HOST, "jo", 3), 0);
        assert!(door.wait(HOST, "stranger", 3) > 0);
        assert!(door.wait(HOST, "newcomer", 3) > 0);
    }

    #[test]
    fn a_known_user_with_a_wrong_password_waits_alone() {
        let door = Door::default();
        door.succeed(HOST, "jo");
        assert!(!door.fail(HOST, "jo", 0));
        assert!(!door.fail(HOST, "jo", 1));
        assert!(door.fail(HOST, "jo", 2));
        assert!(door.wait(HOST, "jo", 3) > 0);
        assert_eq!(door.wait(HOST, "newcomer", 3), 0);
    }

    #[test]
    fn a_success_forgets_the_failures() {
        let door = Door::default();
        door.succeed(HOST, "jo");
        for second in 0..20 {
            assert!(!door.fail(HOST, "jo", second));
            assert!(!door.fail(HOST, "jo", second));
            door.succeed(HOST, "jo");
        }
    }

    #[test]
    fn a_site_of_ipv6_is_one_address_and_loopback_is_none() {
        let door = Door::default();
        for second in 0..3 {
            door.fail(&format!("2001:db8::{second}"), "a", second);
            door.fail("127.0.0.1", "a", second);
            door.fail("::1", "a", second);
        }
        assert!(door.wait("2001:db8::99", "a", 3) > 0);
        assert_eq!(door.wait("127.0.0.1", "a", 3) + door.wait("::1", "a", 3), 0);
    }

    #[test]
    fn without_a_limit_nothing_is_kept() {
        let guard = LoginGuard::default();
        let off = LoginsConfig {
            failures: 0,
            ..SETTINGS
        };
        for second in 0..100 {
            assert!(!guard.failed(address(HOST), "a", &off, at(second)));
            guard.succeeded(address(HOST), "a", &off);
        }
        let counts = guard.counts.lock().unwrap();
        assert!(counts.addresses.is_empty() && counts.known.is_empty());
    }

    #[test]
    fn an_attack_from_everywhere_stays_within_bounds_and_is_forgotten() {
        let guard = LoginGuard::default();
        for number in 0..200_000_u32 {
            let from = Network::of_client(std::net::Ipv4Addr::from_bits(number << 8 | 7).into());
            guard.failed(from, "a", &SETTINGS, at(0));
            guard.succeeded(from, "b", &SETTINGS);
            guard.succeeded(from, "c", &SETTINGS);
        }
        let sizes = || {
            let counts = guard.counts.lock().unwrap();
            (counts.addresses.len(), counts.known.len())
        };
        assert!(sizes().0 <= ADDRESSES_MAX && sizes().1 <= KNOWN_MAX);
        guard.sweep(&SETTINGS, at(0));
        guard.sweep(&SETTINGS, at(120));
        assert_eq!(sizes().0, 0);
    }
}
