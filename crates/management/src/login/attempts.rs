//! Slows down whoever guesses passwords, and nobody else.
//!
//! Every attempt is charged before its password is verified, so that attempts at the same time
//! count each other, and gets its charge back if it succeeds. Three accounts are charged: the
//! address (of IPv6: its /64, which one customer has), the network around it (/24, /48), and the
//! name. The wait of the first two doubles with each wrong login; that of the name is a steady
//! rate, which a single network cannot use up.
//!
//! An address from which that administrator has logged in before is charged on its own instead:
//! whatever others do, it is not slowed. Names that do not exist are charged as well, else the
//! difference would tell which ones do.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

/// How wrong logins are slowed.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Wrong logins before the first wait: people mistype.
    free: u32,
    /// The longest wait.
    wait_max: Duration,
    /// Entries of the table; the one with the oldest failure makes room.
    entries_max: usize,
}

/// The first wait, which then doubles.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// Wrong logins are forgotten after this time without another one.
const FORGET: Duration = Duration::from_hours(1);

/// An address: 5 guesses at once, then about 12 an hour.
const ADDRESS: Limits = Limits {
    free: 5,
    wait_max: Duration::from_mins(5),
    entries_max: 4096,
};
/// The network around it, which others may use too: a shorter wait.
const NETWORK: Limits = Limits {
    free: 10,
    wait_max: Duration::from_mins(1),
    entries_max: 2048,
};
/// An address from which the administrator has logged in before: somebody there mistypes.
const KNOWN: Limits = Limits {
    free: 5,
    wait_max: Duration::from_secs(30),
    entries_max: 4096,
};
/// Attempts for a name from everywhere together that are taken at once: an address and its network
/// have to wait before they reach this number.
const NAME_BURST: u64 = 20;
/// Time in which one more of them is taken: 8,640 guesses a day from any number of addresses.
const NAME_RATE: Duration = Duration::from_secs(10);
/// Names with attempts.
const NAMES_MAX: usize = 2048;
/// Addresses from which an administrator has logged in: home, office, telephone, and some more.
const KNOWN_ADDRESSES_MAX: usize = 16;

/// An address as far as it identifies one customer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Origin(IpAddr);

impl Origin {
    fn of(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
            address @ IpAddr::V4(_) => address,
        })
    }

    /// The network around it.
    fn network(self) -> Self {
        Self(match self.0 {
            IpAddr::V4(address) => IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() >> 8 << 8)),
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 80 << 80)),
        })
    }
}

/// Wrong logins of one origin, and the wait that they cause.
#[derive(Clone, Copy, Debug, Default)]
struct Backoff {
    failures: u32,
    last: Duration,
    open_at: Duration,
}

impl Backoff {
    fn wait(&self, now: Duration) -> Duration {
        self.open_at.saturating_sub(now)
    }

    fn charge(&mut self, now: Duration, limits: &Limits) {
        if now.saturating_sub(self.last) >= FORGET {
            self.failures = 0;
        }
        self.failures = self.failures.saturating_add(1);
        self.last = now;
        if self.failures > limits.free {
            let doublings = (self.failures - limits.free - 1).min(16);
            self.open_at = now + (FIRST_WAIT * 2_u32.pow(doublings)).min(limits.wait_max);
        }
    }

    /// Takes a charge back.
    fn refund(&mut self, now: Duration, limits: &Limits) {
        self.failures = self.failures.saturating_sub(1);
        if self.failures <= limits.free {
            self.open_at = now;
        }
    }
}

/// A bounded table of them.
#[derive(Debug)]
struct Table<K> {
    limits: Limits,
    entries: BTreeMap<K, Backoff>,
    /// Entries that have made room for others.
    forgotten: u64,
}

impl<K: Ord + Clone> Table<K> {
    const fn new(limits: Limits) -> Self {
        Self {
            limits,
            entries: BTreeMap::new(),
            forgotten: 0,
        }
    }

    fn wait(&self, key: &K, now: Duration) -> Duration {
        let entry = self.entries.get(key);
        entry.map_or(Duration::ZERO, |entry| entry.wait(now))
    }

    fn charge(&mut self, key: K, now: Duration) {
        if self.entries.len() >= self.limits.entries_max && !self.entries.contains_key(&key) {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.last);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                self.entries.remove(&oldest);
                self.forgotten += 1;
            }
        }
        let limits = self.limits;
        self.entries.entry(key).or_default().charge(now, &limits);
    }

    fn refund(&mut self, key: &K, now: Duration) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.refund(now, &self.limits);
        }
    }
}

/// The rate of attempts for a name.
#[derive(Clone, Copy, Debug)]
struct Rate {
    /// When all attempts so far would have been due at [`NAME_RATE`].
    due: Duration,
}

impl Rate {
    /// Attempts may be ahead of the rate by this much.
    const AHEAD: Duration = Duration::from_secs(NAME_RATE.as_secs() * (NAME_BURST - 1));

    fn wait(self, now: Duration) -> Duration {
        self.due.saturating_sub(now).saturating_sub(Self::AHEAD)
    }
}

/// An attempt that is charged.
#[derive(Clone, Debug)]
pub(super) struct Attempt {
    pub(super) name: Box<str>,
    /// None over the control socket, where nothing is charged.
    origin: Option<Origin>,
    /// That administrator has logged in from there before.
    pub(super) is_known: bool,
}

/// All attempts of late.
#[derive(Debug)]
pub(super) struct Attempts {
    addresses: Table<Origin>,
    networks: Table<Origin>,
    known: Table<(Box<str>, Origin)>,
    names: BTreeMap<Box<str>, Rate>,
    /// Where administrators have logged in, the latest last.
    logged_in: BTreeMap<Box<str>, Vec<Origin>>,
    /// Names that have made room for others.
    forgotten_names: u64,
}

impl Default for Attempts {
    fn default() -> Self {
        Self {
            addresses: Table::new(ADDRESS),
            networks: Table::new(NETWORK),
            known: Table::new(KNOWN),
            names: BTreeMap::new(),
            logged_in: BTreeMap::new(),
            forgotten_names: 0,
        }
    }
}

impl Attempts {
    /// Charges an attempt to log in. One whose name nobody knows yet, because the provider tells it
    /// in the end, has an empty one: it is charged to address and network alone, else strangers
    /// could use up what all persons of the provider have together.
    ///
    /// # Errors
    /// The time until the next attempt is possible; this one is not charged.
    pub(super) fn begin(
        &mut self,
        name: &str,
        from: Option<IpAddr>,
        now: Duration,
    ) -> Result<Attempt, Duration> {
        let mut attempt = Attempt {
            name: name.into(),
            origin: from.map(Origin::of),
            is_known: true,
        };
        let Some(origin) = attempt.origin else {
            return Ok(attempt);
        };
        let known = self.logged_in.get(name);
        attempt.is_known = known.is_some_and(|known| known.contains(&origin));
        let wait = if attempt.is_known {
            self.known.wait(&(attempt.name.clone(), origin), now)
        } else {
            let address = self.addresses.wait(&origin, now);
            let network = self.networks.wait(&origin.network(), now);
            // None without a name.
            let rate = self.names.get(name).map(|rate| rate.wait(now));
            address.max(network).max(rate.unwrap_or_default())
        };
        if !wait.is_zero() {
            return Err(wait);
        }
        if attempt.is_known {
            self.known.charge((attempt.name.clone(), origin), now);
        } else {
            self.addresses.charge(origin, now);
            self.networks.charge(origin.network(), now);
            if !name.is_empty() {
                self.charge_name(&attempt.name, now);
            }
        }
        Ok(attempt)
    }

    /// Takes the charge back: the login succeeded, or it was not verified.
    pub(super) fn refund(&mut self, attempt: &Attempt, now: Duration) {
        let Some(origin) = attempt.origin else {
            return;
        };
        if attempt.is_known {
            self.known.refund(&(attempt.name.clone(), origin), now);
            return;
        }
        self.addresses.refund(&origin, now);
        self.networks.refund(&origin.network(), now);
        if let Some(rate) = self.names.get_mut(&attempt.name) {
            rate.due = rate.due.saturating_sub(NAME_RATE);
        }
    }

    /// Takes the charge back, and knows the address of the administrator from now on. The failures
    /// before stay: one with a login of its own would otherwise guess those of others for ever.
    pub(super) fn succeed(&mut self, attempt: &Attempt, now: Duration) {
        self.refund(attempt, now);
        if let Some(origin) = attempt.origin {
            // Its own mistakes of before are explained.
            self.known.entries.remove(&(attempt.name.clone(), origin));
            let known = self.logged_in.entry(attempt.name.clone()).or_default();
            known.retain(|other| *other != origin);
            known.push(origin);
            if known.len() > KNOWN_ADDRESSES_MAX {
                known.remove(0);
            }
        }
    }

    /// Entries of all tables that have made room for others.
    pub(super) const fn forgotten(&self) -> u64 {
        self.addresses.forgotten
            + self.networks.forgotten
            + self.known.forgotten
            + self.forgotten_names
    }

    /// Forgets where administrators that no longer exist have logged in.
    pub(super) fn keep_only(&mut self, names: &BTreeSet<&str>) {
        self.logged_in.retain(|name, _| names.contains(&**name));
    }

    fn charge_name(&mut self, name: &str, now: Duration) {
        if self.names.len() >= NAMES_MAX && !self.names.contains_key(name) {
            // First those that would have to wait for nothing.
            let oldest = self.names.iter().min_by_key(|(_, rate)| rate.due);
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                self.names.remove(&oldest);
                self.forgotten_names += 1;
            }
        }
        let rate = self.names.entry(name.into()).or_insert(Rate { due: now });
        rate.due = rate.due.max(now) + NAME_RATE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    fn ip(text: &str) -> Option<IpAddr> {
        text.parse().ok()
    }

    /// Guesses once a second for a time; returns how many of them were verified.
    fn guesses(attempts: &mut Attempts, name: &str, from: &str, secs: u64) -> usize {
        let guess = |second| attempts.begin(name, ip(from), at(second)).is_ok();
        (0..secs)
            .map(guess)
            .filter(|is_verified| *is_verified)
            .count()
    }

    #[test]
    fn an_address_that_guesses_waits_longer_each_time() {
        let mut attempts = Attempts::default();
        for _ in 0..5 {
            attempts.begin("alice", ip("192.0.2.1"), at(0)).unwrap();
        }
        let mut waits = Vec::new();
        let mut now = at(0);
        for _ in 0..11 {
            attempts.begin("alice", ip("192.0.2.1"), now).unwrap();
            let wait = attempts.begin("bob", ip("192.0.2.1"), now).unwrap_err();
            waits.push(wait.as_secs());
            now += wait;
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        let later = now + FORGET;
        attempts.begin("alice", ip("192.0.2.1"), later).unwrap();
        assert!(attempts.begin("alice", ip("192.0.2.1"), later).is_ok());
        let mut attempts = Attempts::default();
        assert!(guesses(&mut attempts, "alice", "192.0.2.1", 3600) < 30);
    }

    #[test]
    fn attempts_at_the_same_time_count_each_other() {
        let mut attempts = Attempts::default();
        let begun = (0..1000).filter(|_| attempts.begin("a", ip("192.0.2.1"), at(9)).is_ok());
        assert_eq!(begun.count(), 6, "5 are free, and one more begins the wait");
    }

    #[test]
    fn an_administrator_logs_in_from_elsewhere_while_an_address_guesses() {
        let mut attempts = Attempts::default();
        guesses(&mut attempts, "alice", "192.0.2.1", 600);
        guesses(&mut attempts, "alice", "2001:db8::1", 600);
        assert!(attempts.begin("alice", ip("192.0.2.1"), at(600)).is_err());
        for other in ["192.0.2.2", "198.51.100.1", "2001:db8:1::1"] {
            assert!(
                attempts.begin("alice", ip(other), at(700)).is_ok(),
                "{other}"
            );
        }
        assert!(
            attempts.begin("alice", None, at(600)).is_ok(),
            "the control socket"
        );
    }

    #[test]
    fn addresses_of_one_customer_or_network_share_their_failures() {
        let mut attempts = Attempts::default();
        for host in 0..6 {
            let from = ip(&format!("2001:db8::{host}"));
            attempts.begin("alice", from, at(0)).unwrap();
        }
        assert!(
            attempts
                .begin("alice", ip("2001:db8::ffff:1"), at(0))
                .is_err()
        );
        assert!(
            attempts
                .begin("alice", ip("2001:db8:0:1::1"), at(0))
                .is_ok()
        );
        let mut attempts = Attempts::default();
        let each = |host| {
            attempts
                .begin("alice", ip(&format!("192.0.2.{host}")), at(0))
                .is_ok()
        };
        assert_eq!((0..200).map(each).filter(|is_ok| *is_ok).count(), 11);
        assert!(attempts.begin("alice", ip("192.0.3.1"), at(0)).is_ok());
        // IPv4 in the form of IPv6 is the same address.
        let mut attempts = Attempts::default();
        (0..6).for_each(|_| drop(attempts.begin("alice", ip("192.0.2.1"), at(0))));
        assert!(
            attempts
                .begin("alice", ip("::ffff:192.0.2.1"), at(0))
                .is_err()
        );
    }

    #[test]
    fn a_flood_from_everywhere_is_slowed_but_for_addresses_that_have_logged_in() {
        let mut attempts = Attempts::default();
        let home = attempts.begin("alice", ip("203.0.113.9"), at(0)).unwrap();
        assert!(!home.is_known);
        attempts.succeed(&home, at(0));
        let flood = |second: u64| {
            let from = Ipv4Addr::from_bits(u32::try_from(second * 65_536 + 7).unwrap());
            attempts
                .begin("alice", Some(from.into()), at(second))
                .is_ok()
        };
        let verified = (1..=3600)
            .map(flood)
            .filter(|is_verified| *is_verified)
            .count();
        assert!(
            (360..=382).contains(&verified),
            "{verified} guesses in an hour"
        );
        let home = attempts
            .begin("alice", ip("203.0.113.9"), at(3600))
            .unwrap();
        assert!(home.is_known);
        assert!(attempts.begin("bob", ip("203.0.113.10"), at(3600)).is_ok());
    }

    #[test]
    fn a_known_address_is_slowed_by_its_own_failures_alone_and_a_success_ends_that() {
        let mut attempts = Attempts::default();
        let home = ip("203.0.113.9");
        let first = attempts.begin("alice", home, at(0)).unwrap();
        attempts.succeed(&first, at(0));
        let failures: Vec<_> = (0..6)
            .map(|_| attempts.begin("alice", home, at(1)))
            .collect();
        assert!(failures.iter().all(Result::is_ok));
        assert_eq!(attempts.begin("alice", home, at(1)).unwrap_err(), at(1));
        let right = attempts.begin("alice", home, at(2)).unwrap();
        attempts.succeed(&right, at(2));
        assert!((0..6).all(|_| attempts.begin("alice", home, at(2)).is_ok()));
    }

    #[test]
    fn a_login_of_ones_own_does_not_pay_for_guesses() {
        let mut attempts = Attempts::default();
        let mut guessed = 0;
        for second in 0..600 {
            if let Ok(own) = attempts.begin("mallory", ip("192.0.2.1"), at(second)) {
                attempts.succeed(&own, at(second));
            }
            guessed += usize::from(attempts.begin("alice", ip("192.0.2.1"), at(second)).is_ok());
        }
        assert!(guessed < 20, "{guessed}");
    }

    #[test]
    fn logins_without_a_name_do_not_use_up_those_of_others() {
        let mut attempts = Attempts::default();
        for number in 0..200_u32 {
            let from = Ipv4Addr::from_bits(0x0B00_0000 + number * 256);
            attempts.begin("", Some(from.into()), at(1)).unwrap();
        }
        assert!(attempts.begin("", ip("192.0.2.1"), at(1)).is_ok());
        assert_eq!(
            guesses(&mut attempts, "", "192.0.2.1", 60),
            10,
            "but slowed"
        );
    }

    #[test]
    fn the_tables_are_bounded_and_old_entries_make_room() {
        let mut attempts = Attempts::default();
        for _ in 0..6 {
            attempts.begin("alice", ip("10.0.0.1"), at(1)).unwrap();
        }
        for number in 0..5_000_u32 {
            let from = Ipv4Addr::from_bits(0x0B00_0000 + number * 256);
            let name = format!("name-{number}");
            attempts.begin(&name, Some(from.into()), at(2)).unwrap();
        }
        assert_eq!(attempts.addresses.entries.len(), ADDRESS.entries_max);
        assert_eq!(attempts.networks.entries.len(), NETWORK.entries_max);
        assert_eq!(attempts.names.len(), NAMES_MAX);
        // 5,001 addresses, networks and names, less those that are there.
        assert_eq!(attempts.forgotten(), 3 * 5_001 - 4096 - 2 * 2048);
        for host in 0..100_u32 {
            let from = Some(Ipv4Addr::from_bits(0x0C00_0000 + host).into());
            if let Ok(attempt) = attempts.begin("alice", from, at(100 + u64::from(host) * 60)) {
                attempts.succeed(&attempt, at(100 + u64::from(host) * 60));
            }
        }
        assert_eq!(attempts.logged_in["alice"].len(), KNOWN_ADDRESSES_MAX);
        attempts.keep_only(&BTreeSet::new());
        assert!(attempts.logged_in.is_empty());
    }
}
