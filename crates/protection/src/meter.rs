//! The permitted input of one connection: its own buckets and those it shares with others.
//!
//! Input that has arrived is always charged; a connection whose buckets are in debt is then not
//! read until the debt is paid. A low credit shortens the reads, so that the debt stays small.

use std::sync::Arc;
use std::time::Duration;

use thrum_protocol::Time;

use super::bucket::Bucket;
use super::rate_table::{Account, Paces};

/// The shortest read: a packet of most devices.
const READ_MIN: u64 = 1024;
/// Assumed bytes of a PUBLISH when the length of a read is chosen.
const MESSAGE_BYTES: u64 = 64;

/// A limit of client input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateLimit {
    /// `limits.client.messages`.
    ClientMessages,
    /// `limits.client.bytes`.
    ClientBytes,
    /// `limits.user.messages`.
    UserMessages,
    /// `limits.user.bytes`.
    UserBytes,
    /// `limits.address.messages`.
    AddressMessages,
    /// `limits.address.bytes`.
    AddressBytes,
    /// `messages` of the listener.
    ListenerMessages,
    /// `bytes` of the listener.
    ListenerBytes,
}

impl RateLimit {
    /// Its key in the configuration.
    pub const fn key(self) -> &'static str {
        match self {
            Self::ClientMessages => "limits.client.messages",
            Self::ClientBytes => "limits.client.bytes",
            Self::UserMessages => "limits.user.messages",
            Self::UserBytes => "limits.user.bytes",
            Self::AddressMessages => "limits.address.messages",
            Self::AddressBytes => "limits.address.bytes",
            Self::ListenerMessages => "listeners.NAME.messages",
            Self::ListenerBytes => "listeners.NAME.bytes",
        }
    }
}

/// The input of one read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InputUsage {
    /// Number of PUBLISH packets.
    pub messages: u64,
    /// Bytes of the client after TLS and WebSocket are removed.
    pub bytes: u64,
}

/// The rates in force for a connection.
#[derive(Clone, Copy, Debug)]
pub struct Scopes<'a> {
    /// `limits.client`.
    pub client: &'a Paces,
    /// `limits.user`.
    pub user: &'a Paces,
    /// `limits.address`.
    pub address: &'a Paces,
    /// The rates of the listener; `None` if no listener has a limit.
    pub listener: Option<ListenerScope<'a>>,
}

/// The rates of a listener, with the amount that its clients have taken from them.
#[derive(Clone, Copy, Debug)]
pub struct ListenerScope<'a> {
    /// The rates of the listener.
    pub paces: &'a Paces,
    /// The buckets of the listener.
    pub account: &'a Account,
}

impl Scopes<'_> {
    /// Whether no rate limits a client: then no meter is needed.
    pub(crate) fn are_free(&self) -> bool {
        let listener = self.listener;
        let listener = listener.is_none_or(|listener| listener.paces.is_input_free());
        let scopes = [self.client, self.user, self.address];
        listener && scopes.iter().all(|paces| paces.is_input_free())
    }
}

/// The time for which a connection must not be read, with the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// Never zero.
    pub wait: Duration,
    /// The limit with the longest wait.
    pub limit: RateLimit,
}

/// The buckets of one connection.
#[derive(Debug, Default)]
pub struct Meter {
    messages: Bucket,
    bytes: Bucket,
    /// None for a client without a user, or without rates of users.
    user: Option<Arc<Account>>,
    /// None for a client without an address.
    address: Option<Arc<Account>>,
}

impl Meter {
    /// The buckets of a connection of that user and address.
    pub(crate) fn new(user: Option<Arc<Account>>, address: Option<Arc<Account>>) -> Self {
        Self {
            user,
            address,
            ..Self::default()
        }
    }

    /// Charges input, and returns how long the connection must not be read, if it is in debt.
    pub fn charge(&mut self, usage: InputUsage, scopes: &Scopes<'_>, now: Time) -> Option<Pause> {
        if let Some(pace) = &scopes.client.messages {
            self.messages.charge(pace, now, usage.messages);
        }
        if let Some(pace) = &scopes.client.bytes {
            self.bytes.charge(pace, now, usage.bytes);
        }
        for scope in self.shared(scopes).into_iter().flatten() {
            if let Some(pace) = &scope.paces.messages
                && usage.messages > 0
            {
                scope.account.messages.charge(pace, now, usage.messages);
            }
            if let Some(pace) = &scope.paces.bytes {
                scope.account.bytes.charge(pace, now, usage.bytes);
            }
        }
        self.may_read(scopes, now).err()
    }

    /// The number of bytes that a read may have.
    ///
    /// # Errors
    /// The time for which the connection must not be read.
    pub fn may_read(&self, scopes: &Scopes<'_>, now: Time) -> Result<usize, Pause> {
        let mut found = Tightest::new();
        if let Some(pace) = &scopes.client.messages {
            let (wait, left) = (self.messages.wait(pace, now), self.messages.left(pace, now));
            found.add(
                RateLimit::ClientMessages,
                wait,
                left.saturating_mul(MESSAGE_BYTES),
            );
        }
        if let Some(pace) = &scopes.client.bytes {
            let (wait, left) = (self.bytes.wait(pace, now), self.bytes.left(pace, now));
            found.add(RateLimit::ClientBytes, wait, left);
        }
        for scope in self.shared(scopes).into_iter().flatten() {
            if let Some(pace) = &scope.paces.messages {
                let bucket = &scope.account.messages;
                let left = bucket.left(pace, now).saturating_mul(MESSAGE_BYTES);
                found.add(scope.messages, bucket.wait(pace, now), left);
            }
            if let Some(pace) = &scope.paces.bytes {
                let bucket = &scope.account.bytes;
                found.add(scope.bytes, bucket.wait(pace, now), bucket.left(pace, now));
            }
        }
        match found.pause {
            Some(pause) => Err(pause),
            None => Ok(usize::try_from(found.left.max(READ_MIN)).unwrap_or(usize::MAX)),
        }
    }

    /// The accounts that it shares with other connections.
    fn shared<'a>(&'a self, scopes: &Scopes<'a>) -> [Option<SharedScope<'a>>; 3] {
        [
            self.user.as_deref().map(|account| SharedScope {
                paces: scopes.user,
                account,
                messages: RateLimit::UserMessages,
                bytes: RateLimit::UserBytes,
            }),
            self.address.as_deref().map(|account| SharedScope {
                paces: scopes.address,
                account,
                messages: RateLimit::AddressMessages,
                bytes: RateLimit::AddressBytes,
            }),
            scopes.listener.map(|listener| SharedScope {
                paces: listener.paces,
                account: listener.account,
                messages: RateLimit::ListenerMessages,
                bytes: RateLimit::ListenerBytes,
            }),
        ]
    }
}

/// An account that several connections share, its rates, and the names of these.
struct SharedScope<'a> {
    paces: &'a Paces,
    account: &'a Account,
    messages: RateLimit,
    bytes: RateLimit,
}

/// The tightest of several buckets.
struct Tightest {
    pause: Option<Pause>,
    left: u64,
}

impl Tightest {
    const fn new() -> Self {
        Self {
            pause: None,
            left: u64::MAX,
        }
    }

    fn add(&mut self, limit: RateLimit, wait: Duration, left: u64) {
        self.left = self.left.min(left);
        let longest = self.pause.map_or(Duration::ZERO, |pause| pause.wait);
        if wait > longest {
            self.pause = Some(Pause { wait, limit });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::Rate;

    const FREE: Paces = Paces {
        connects: None,
        messages: None,
        bytes: None,
    };

    fn paces(messages: u64, bytes: u64) -> Paces {
        let rate = |amount| Rate::per_second(amount);
        Paces::new(&Rate::NONE, &rate(messages), &rate(bytes))
    }

    fn scopes(client: &Paces) -> Scopes<'_> {
        Scopes {
            client,
            user: &FREE,
            address: &FREE,
            listener: None,
        }
    }

    fn at(millis: u64) -> Time {
        Time::from_millis(1_000_000 + millis)
    }

    fn usage(messages: u64, bytes: u64) -> InputUsage {
        InputUsage { messages, bytes }
    }

    #[test]
    fn without_rates_nothing_waits() {
        let scopes = scopes(&FREE);
        assert!(scopes.are_free());
        let mut meter = Meter::default();
        assert_eq!(
            meter.charge(usage(1_000_000, 1 << 40), &scopes, at(0)),
            None
        );
        assert_eq!(meter.may_read(&scopes, at(0)), Ok(usize::MAX));
    }

    #[test]
    fn the_tightest_limit_is_waited_for_and_named() {
        let client = paces(100, 1000);
        let scopes = scopes(&client);
        let mut meter = Meter::default();
        assert_eq!(meter.charge(usage(10, 999), &scopes, at(0)), None);
        let pause = meter.charge(usage(1, 2001), &scopes, at(0)).unwrap();
        assert_eq!(
            (pause.limit, pause.wait),
            (RateLimit::ClientBytes, Duration::from_millis(2001))
        );
        assert_eq!(meter.may_read(&scopes, at(0)), Err(pause));
        assert_eq!(meter.may_read(&scopes, at(2001)), Ok(1024));
    }

    #[test]
    fn reads_are_as_short_as_the_credit_is_low() {
        let client = paces(1000, 0);
        let scopes = scopes(&client);
        let mut meter = Meter::default();
        assert_eq!(meter.may_read(&scopes, at(0)), Ok(64_000));
        meter.charge(usage(900, 9000), &scopes, at(0));
        assert_eq!(meter.may_read(&scopes, at(0)), Ok(6400));
        meter.charge(usage(95, 950), &scopes, at(0));
        assert_eq!(meter.may_read(&scopes, at(0)), Ok(1024));
    }

    #[test]
    fn connections_of_a_user_share_what_it_may_send() {
        let user = paces(10, 0);
        let scopes = Scopes {
            user: &user,
            ..scopes(&FREE)
        };
        let account = Arc::new(Account::default());
        let meter = || Meter::new(Some(Arc::clone(&account)), None);
        let (mut one, mut two, mut other) = (meter(), meter(), Meter::default());
        assert_eq!(one.charge(usage(9, 90), &scopes, at(0)), None);
        let pause = two.charge(usage(1, 10), &scopes, at(0)).unwrap();
        assert_eq!(pause.limit, RateLimit::UserMessages);
        assert_eq!(one.may_read(&scopes, at(0)), Err(pause));
        assert_eq!(other.charge(usage(1000, 1), &scopes, at(0)), None);
    }

    #[test]
    fn every_scope_has_its_limits() {
        let (tight, account) = (paces(1, 0), Account::default());
        let shared = || Some(Arc::new(Account::default()));
        let one = |scopes: Scopes<'_>| {
            assert!(!scopes.are_free());
            Meter::new(shared(), shared())
                .charge(usage(2, 20), &scopes, at(0))
                .unwrap()
                .limit
        };
        assert_eq!(one(scopes(&tight)), RateLimit::ClientMessages);
        let address = Scopes {
            address: &tight,
            ..scopes(&FREE)
        };
        assert_eq!(one(address), RateLimit::AddressMessages);
        let listener = Scopes {
            listener: Some(ListenerScope {
                paces: &tight,
                account: &account,
            }),
            ..scopes(&FREE)
        };
        assert_eq!(one(listener), RateLimit::ListenerMessages);
    }
}
