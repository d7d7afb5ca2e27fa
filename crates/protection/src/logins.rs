//! Failed logins: they are slowed down by address, without locking out users that are known there.
//!
//! A user who has logged in from an address before is counted separately (as a site recognizes a
//! browser by a cookie): attackers who guess from the same address do not lock the user out, and
//! the user's own wrong password locks out no other user. The same applies to each client of the
//! user, by its identifier: attackers who guess the user's own password from the same address
//! (shared by a house, a company or a mobile network) make the user's new clients wait there, but
//! not those that have logged in before. A correct password is never tried while its client waits,
//! as waiting would otherwise not slow down guessing.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use thrum_access::Network;
use thrum_protocol::Time;

use super::idle_map::IdleMap;
use super::known_logins::KnownLogins;
use super::window::Window;

/// Most addresses with failed logins that are counted at a time.
const ADDRESSES_MAX: usize = 1 << 16;
/// Most users known at their addresses, and most of their clients.
pub(crate) const KNOWN_MAX: usize = 1 << 18;
/// A user that does not log in again stays known for this time, and twice as long at most.
const KNOWN_FOR: Duration = Duration::from_hours(24);

/// Limits for failed logins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoginLimits {
    /// Number of failures in the window after which logins have to wait; 0 is no limit.
    pub failures: u32,
    /// Time in which failures are counted.
    pub window: Duration,
    /// Time for which logins are refused then.
    pub wait: Duration,
}

/// Counts failed logins.
#[derive(Debug)]
pub struct LoginGuard {
    /// Random, so that an attacker cannot choose names with the hash of a known one. Stored with
    /// the known logins.
    key: OnceLock<[u64; 2]>,
    /// Number of users and clients that have become known.
    changes: AtomicU64,
    /// Guards the counts, for some look-ups when a client logs in.
    counts: Mutex<Counts>,
}

#[derive(Debug)]
struct Counts {
    addresses: IdleMap<Network, Failures>,
    /// By the hash of address and user: users that have logged in.
    known: IdleMap<u64, Failures>,
    /// By the hash of address, user and client identifier.
    clients: IdleMap<u64, Failures>,
}

/// A login.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoginAttempt<'a> {
    /// Its address.
    pub address: Network,
    /// The user that it claims to be.
    pub username: &'a str,
    /// The client identifier that it has sent; empty if it has sent none.
    pub client_id: &'a str,
}

#[derive(Clone, Copy, Debug, Default)]
struct Failures {
    window: Window,
    waits_until: Time,
}

impl Failures {
    /// Counts one more failure; true if the wait begins.
    fn count(&mut self, settings: &LoginLimits, now: Time) -> bool {
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
            key: OnceLock::new(),
            changes: AtomicU64::new(0),
            counts: Mutex::new(Counts {
                addresses: IdleMap::new(ADDRESSES_MAX),
                known: IdleMap::new(KNOWN_MAX),
                clients: IdleMap::new(KNOWN_MAX),
            }),
        }
    }
}

impl LoginGuard {
    /// Whether a login may be tried, before any password is checked.
    ///
    /// # Errors
    /// The time that it has to wait.
    pub(crate) fn may_try(
        &self,
        attempt: &LoginAttempt<'_>,
        settings: &LoginLimits,
        now: Time,
    ) -> Result<(), Duration> {
        if !is_counted(attempt.address, settings) {
            return Ok(());
        }
        let (user, client) = (self.user(attempt), self.client(attempt));
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let client = counts.clients.peek(&client);
        let known = client.or_else(|| counts.known.peek(&user));
        let failures = known.or_else(|| counts.addresses.peek(&attempt.address));
        let wait = failures.map_or(Duration::ZERO, |failures| failures.waits_until.since(now));
        if wait.is_zero() { Ok(()) } else { Err(wait) }
    }

    /// Counts a failed login; true if the address, the user there, or this client of the user has
    /// to wait from now on.
    pub(crate) fn failed(
        &self,
        attempt: &LoginAttempt<'_>,
        settings: &LoginLimits,
        now: Time,
    ) -> bool {
        let address = attempt.address;
        if !is_counted(address, settings) {
            return false;
        }
        let (user, client) = (self.user(attempt), self.client(attempt));
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let failures = if counts.clients.peek(&client).is_some() {
            entry(&mut counts.clients, client)
        } else if counts.known.peek(&user).is_some() {
            entry(&mut counts.known, user)
        } else {
            counts
                .addresses
                .entry(&address, |_| false, || (address, Failures::default()))
        };
        failures.count(settings, now)
    }

    /// Counts a successful login with a password, a token or a key: the user and the client are
    /// known at the address from now on. Failures of other clients that named the user stay counted
    /// while known clients connect and disconnect.
    pub(crate) fn succeeded(&self, attempt: &LoginAttempt<'_>, settings: &LoginLimits) {
        if !is_counted(attempt.address, settings) {
            return;
        }
        let (user, client) = (self.user(attempt), self.client(attempt));
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new_user = counts.known.peek(&user).is_none();
        let is_new_client = counts.clients.peek(&client).is_none();
        let failures = entry(&mut counts.known, user);
        if is_new_client {
            *failures = Failures::default();
        }
        let has_name = !attempt.client_id.is_empty();
        if has_name {
            *entry(&mut counts.clients, client) = Failures::default();
        }
        drop(counts);
        if is_new_user || (has_name && is_new_client) {
            self.changes.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether the user has logged in from this address before.
    pub(crate) fn is_known(&self, attempt: &LoginAttempt<'_>) -> bool {
        let user = self.user(attempt);
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.known.peek(&user).is_some()
    }

    /// Number of users and clients that have become known so far.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// The known users and clients.
    pub fn known(&self) -> KnownLogins {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        KnownLogins {
            key: self.secret(),
            users: counts.known.keys().copied().collect(),
            clients: counts.clients.keys().copied().collect(),
        }
    }

    /// Restores the known users and clients. The node calls it before the first login: the key
    /// cannot change later.
    pub fn restore(&self, known: &KnownLogins) {
        if self.key.set(known.key).is_err() {
            return;
        }
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        for user in known.users.iter().take(KNOWN_MAX) {
            entry(&mut counts.known, *user);
        }
        for client in known.clients.iter().take(KNOWN_MAX) {
            entry(&mut counts.clients, *client);
        }
    }

    /// Forgets ended counts. The node calls it at an interval.
    pub(crate) fn sweep(&self, settings: &LoginLimits, now: Time) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let idle = settings.window.max(settings.wait);
        counts.addresses.forget_idle(idle, now, |_| false);
        counts.known.forget_idle(KNOWN_FOR, now, |_| false);
        counts.clients.forget_idle(KNOWN_FOR, now, |_| false);
    }

    fn user(&self, attempt: &LoginAttempt<'_>) -> u64 {
        self.hash(&(attempt.address, attempt.username))
    }

    fn client(&self, attempt: &LoginAttempt<'_>) -> u64 {
        self.hash(&(attempt.address, attempt.username, attempt.client_id))
    }

    #[expect(
        deprecated,
        reason = "the same in every version and under a key that can be kept, which its \
                  replacement is not"
    )]
    fn hash(&self, what: &impl std::hash::Hash) -> u64 {
        let [first, second] = self.secret();
        let mut hasher = std::hash::SipHasher::new_with_keys(first, second);
        what.hash(&mut hasher);
        hasher.finish()
    }

    fn secret(&self) -> [u64; 2] {
        let random = || RandomState::new().hash_one(());
        *self.key.get_or_init(|| [random(), random()])
    }
}

fn entry(counts: &mut IdleMap<u64, Failures>, key: u64) -> &mut Failures {
    counts.entry(&key, |_| false, || (key, Failures::default()))
}

/// Clients of this machine are not counted: behind a proxy that names no addresses all clients
/// connect from here, and a local user has better ways than guessing.
fn is_counted(address: Network, settings: &LoginLimits) -> bool {
    settings.failures > 0 && !address.is_loopback()
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    const SETTINGS: LoginLimits = LoginLimits {
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
    struct Guard(LoginGuard);

    impl Guard {
        fn fail(&self, from: &str, username: &str, second: u64) -> bool {
            let attempt = attempt(from, username, "");
            self.0.failed(&attempt, &SETTINGS, at(second))
        }

        fn succeed(&self, from: &str, username: &str) {
            let attempt = attempt(from, username, "");
            self.0.succeeded(&attempt, &SETTINGS);
        }

        fn wait(&self, from: &str, username: &str, second: u64) -> u64 {
            self.wait_as(from, username, "", second)
        }

        fn wait_as(&self, from: &str, username: &str, client_id: &str, second: u64) -> u64 {
            let attempt = attempt(from, username, client_id);
            let result = self.0.may_try(&attempt, &SETTINGS, at(second));
            result.err().map_or(0, |wait| wait.as_secs())
        }
    }

    fn attempt<'a>(from: &str, username: &'a str, client_id: &'a str) -> LoginAttempt<'a> {
        LoginAttempt {
            address: address(from),
            username,
            client_id,
        }
    }

    const HOST: &str = "192.0.2.7";

    #[test]
    fn guessing_from_a_users_address_does_not_lock_its_clients_out() {
        let guard = Guard::default();
        let own = attempt(HOST, "jo", "phone");
        guard.0.succeeded(&own, &SETTINGS);
        for second in 0..3 {
            let guess = attempt(HOST, "jo", "guess");
            guard.0.failed(&guess, &SETTINGS, at(second));
            // The phone connects and disconnects meanwhile, which does not make guessing easier.
            guard.0.succeeded(&own, &SETTINGS);
        }
        assert_eq!(guard.wait_as(HOST, "jo", "phone", 3), 0);
        assert!(guard.wait_as(HOST, "jo", "guess", 3) > 0);
        assert!(guard.wait_as(HOST, "jo", "", 3) > 0);
        assert_eq!(guard.wait(HOST, "jim", 3), 0);
    }

    #[test]
    fn knowing_the_client_identifier_does_not_speed_up_guessing() {
        let guard = Guard::default();
        let own = attempt(HOST, "jo", "phone");
        guard.0.succeeded(&own, &SETTINGS);
        for second in 0..3 {
            guard.0.failed(&own, &SETTINGS, at(second));
        }
        assert!(guard.wait_as(HOST, "jo", "phone", 3) > 0);
        assert_eq!(guard.wait_as(HOST, "jo", "tablet", 3), 0);
    }

    #[test]
    fn an_address_that_guesses_has_to_wait() {
        let guard = Guard::default();
        assert!(!guard.fail(HOST, "a", 0));
        assert!(!guard.fail(HOST, "b", 1));
        assert_eq!(guard.wait(HOST, "c", 1), 0);
        assert!(guard.fail(HOST, "c", 2));
        assert_eq!(guard.wait(HOST, "d", 2), 120);
        assert_eq!(guard.wait("192.0.2.8", "d", 2), 0);
        assert_eq!(guard.wait(HOST, "d", 121), 1);
        assert_eq!(guard.wait(HOST, "d", 122), 0);
    }

    #[test]
    fn slow_failures_are_forgotten() {
        let guard = Guard::default();
        for minute in 0..100 {
            assert!(!guard.fail(HOST, "a", minute * 60));
            assert!(!guard.fail(HOST, "a", minute * 60 + 30));
        }
    }

    #[test]
    fn a_known_user_does_not_wait_for_guesses_from_its_address() {
        let guard = Guard::default();
        guard.succeed(HOST, "jo");
        for second in 0..3 {
            guard.fail(HOST, "other", second);
        }
        assert_eq!(guard.wait(HOST, "jo", 3), 0);
        assert!(guard.wait(HOST, "other", 3) > 0);
        assert!(guard.wait(HOST, "newcomer", 3) > 0);
    }

    #[test]
    fn a_known_user_with_a_wrong_password_waits_alone() {
        let guard = Guard::default();
        guard.succeed(HOST, "jo");
        assert!(!guard.fail(HOST, "jo", 0));
        assert!(!guard.fail(HOST, "jo", 1));
        assert!(guard.fail(HOST, "jo", 2));
        assert!(guard.wait(HOST, "jo", 3) > 0);
        assert_eq!(guard.wait(HOST, "newcomer", 3), 0);
    }

    #[test]
    fn a_success_forgets_the_failures() {
        let guard = Guard::default();
        guard.succeed(HOST, "jo");
        for second in 0..20 {
            assert!(!guard.fail(HOST, "jo", second));
            assert!(!guard.fail(HOST, "jo", second));
            guard.succeed(HOST, "jo");
        }
    }

    #[test]
    fn a_site_of_ipv6_is_one_address_and_loopback_is_none() {
        let guard = Guard::default();
        for second in 0..3 {
            guard.fail(&format!("2001:db8::{second}"), "a", second);
            guard.fail("127.0.0.1", "a", second);
            guard.fail("::1", "a", second);
        }
        assert!(guard.wait("2001:db8::99", "a", 3) > 0);
        assert_eq!(
            guard.wait("127.0.0.1", "a", 3) + guard.wait("::1", "a", 3),
            0
        );
    }

    #[test]
    fn without_a_limit_nothing_is_kept() {
        let guard = LoginGuard::default();
        let off = LoginLimits {
            failures: 0,
            ..SETTINGS
        };
        for second in 0..100 {
            assert!(!guard.failed(&attempt(HOST, "a", "x"), &off, at(second)));
            guard.succeeded(&attempt(HOST, "a", "x"), &off);
        }
        let counts = guard.counts.lock().unwrap();
        assert!(counts.addresses.is_empty() && counts.known.is_empty());
    }

    #[test]
    fn a_kept_hash_of_a_network_is_that_of_its_address_and_its_length() {
        let guard = LoginGuard::default();
        let known = KnownLogins {
            key: [1, 2],
            users: Vec::new(),
            clients: Vec::new(),
        };
        guard.restore(&known);
        for text in ["192.0.2.7", "2001:db8::1"] {
            let address = text.parse::<IpAddr>().unwrap();
            let network = Network::of_client(address);
            let parts = (network.address(), network.prefix());
            assert_eq!(guard.hash(&network), guard.hash(&parts), "{text}");
        }
    }

    #[test]
    fn an_attack_from_everywhere_stays_within_bounds_and_is_forgotten() {
        let guard = LoginGuard::default();
        for number in 0..200_000_u32 {
            let from = Network::of_client(std::net::Ipv4Addr::from_bits(number << 8 | 7).into());
            let attempt = |username| LoginAttempt {
                address: from,
                username,
                client_id: "x",
            };
            guard.failed(&attempt("a"), &SETTINGS, at(0));
            guard.succeeded(&attempt("b"), &SETTINGS);
            guard.succeeded(&attempt("c"), &SETTINGS);
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

    #[test]
    fn a_change_is_counted_for_each_user_and_client_that_becomes_known() {
        let guard = Guard::default();
        let changes = |username, client_id| {
            guard
                .0
                .succeeded(&attempt(HOST, username, client_id), &SETTINGS);
            guard.0.changes()
        };
        assert_eq!(changes("jo", ""), 1, "a user");
        assert_eq!(changes("jo", ""), 1);
        assert_eq!(changes("jo", "phone"), 2, "another client of the user");
        assert_eq!(changes("jo", "phone"), 2);
        assert_eq!(changes("jim", "phone"), 3, "both");
        let known = guard.0.known();
        assert_eq!((known.users.len(), known.clients.len()), (2, 2));
        assert!(guard.0.is_known(&attempt(HOST, "jo", "other")));
        assert!(!guard.0.is_known(&attempt("192.0.2.8", "jo", "phone")));
    }
}
