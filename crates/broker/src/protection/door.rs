//! Who may come in: bans, connect rates, flapping and failed logins, asked at three moments of a
//! connection: when it is accepted, when it wants to log in, and when it may enter.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use thrum_access::Network;
use thrum_codec::ReasonCode;
use thrum_protocol::{Time, Violation};

use super::bans::{BanBook, SubjectRef};
use super::flapping::{Flap, Flapping};
use super::logins::{Attempt, LoginGuard};
use super::meter::{Meter, Scopes};
use super::rate_table::{ACCOUNTS_MAX, Account, Paces, RateTable};
use super::settings::ProtectionSettings;

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Who<'a> {
    /// Client identifier.
    pub client_id: &'a str,
    /// User name: for a login the one that the client claims, from [`Protection::may_enter`] on the
    /// one that was verified.
    pub username: Option<&'a str>,
    /// Where the client comes from, as a trusted proxy says if there is one; none over a Unix
    /// socket.
    pub address: Option<IpAddr>,
}

impl<'a> Who<'a> {
    /// This one client: other users may have clients with the same identifier, and so may clients
    /// without user name that come from elsewhere.
    pub fn client(&self) -> SubjectRef<'a> {
        let client_id = self.client_id;
        if let Some(username) = self.username {
            return SubjectRef::ClientOfUser {
                client_id,
                username,
            };
        }
        // A Unix socket is on this machine.
        let address = self.address.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
        SubjectRef::ClientFrom {
            client_id,
            network: Network::of_client(address),
        }
    }
}

impl<'a> Who<'a> {
    /// Its login, as it is counted; none over a Unix socket.
    fn attempt(&self) -> Option<Attempt<'a>> {
        Some(Attempt {
            address: Network::of_client(self.address?),
            username: self.username.unwrap_or_default(),
            client_id: self.client_id,
        })
    }
}

/// Why somebody may not come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The client identifier is banned.
    BannedClientId,
    /// The user is banned.
    BannedUsername,
    /// The address is banned.
    BannedAddress,
    /// It comes back all the time: from now on it is banned.
    Flapping,
    /// It comes back all the time, but there are too many temporary bans to remember one more.
    FlappingForgotten,
    /// Too many logins from the address failed.
    FailedLogins,
    /// `limits.address.connects`.
    AddressConnects,
    /// `limits.user.connects`.
    UserConnects,
}

impl Refusal {
    /// For CONNACK; in 3.x banned is 5 (not authorized) and a rate is 3 (server unavailable).
    pub const fn reason(self) -> ReasonCode {
        match self {
            Self::BannedClientId
            | Self::BannedUsername
            | Self::BannedAddress
            | Self::Flapping
            | Self::FlappingForgotten => ReasonCode::Banned,
            Self::FailedLogins | Self::AddressConnects | Self::UserConnects => {
                ReasonCode::ConnectionRateExceeded
            }
        }
    }

    /// For the client and the log.
    pub const fn what(self) -> &'static str {
        match self {
            Self::BannedClientId => "this client identifier is banned",
            Self::BannedUsername => "this user is banned",
            Self::BannedAddress => "this address is banned",
            Self::Flapping | Self::FlappingForgotten => "connects too often (protection.flapping)",
            Self::FailedLogins => {
                "too many failed logins from this address, try again later (protection.logins)"
            }
            Self::AddressConnects => {
                "too many connections from this address (limits.address.connects)"
            }
            Self::UserConnects => "too many connections of this user (limits.user.connects)",
        }
    }
}

impl From<Refusal> for Violation {
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.reason(), refusal.what())
    }
}

/// What the workers of a node share for protection.
#[derive(Debug)]
pub struct Protection {
    bans: Arc<BanBook>,
    flapping: Flapping,
    logins: Arc<LoginGuard>,
    addresses: RateTable<Network>,
    users: RateTable<Box<str>>,
}

impl Default for Protection {
    fn default() -> Self {
        Self {
            bans: Arc::default(),
            flapping: Flapping::default(),
            logins: Arc::default(),
            addresses: RateTable::new(ACCOUNTS_MAX),
            users: RateTable::new(ACCOUNTS_MAX),
        }
    }
}

impl Protection {
    /// The bans in force.
    pub fn bans(&self) -> &Arc<BanBook> {
        &self.bans
    }

    /// Failed logins, and who is known where.
    pub fn logins(&self) -> &Arc<LoginGuard> {
        &self.logins
    }

    /// A connection was accepted, or the header of a trusted proxy has said where it comes from:
    /// before its TLS handshake.
    ///
    /// # Errors
    /// The connection is to be closed without a word.
    pub fn may_open(
        &self,
        address: Option<IpAddr>,
        settings: &ProtectionSettings,
        now: Time,
    ) -> Result<(), Refusal> {
        let Some(address) = address else {
            return Ok(());
        };
        if self.bans.is_address_banned(address, now) {
            return Err(Refusal::BannedAddress);
        }
        let site = Network::of_client(address);
        if let Some(pace) = &settings.address.connects {
            let account = self.addresses.account(&site, || site);
            let taken = account.connects.take(pace, now, 1);
            taken.map_err(|_| Refusal::AddressConnects)?;
        }
        self.flapped(SubjectRef::Network(site), settings, now)
    }

    /// A CONNECT came in: before anybody looks at its password. What is banned by user name is
    /// refused after the login only, so that strangers do not learn which users there are.
    ///
    /// # Errors
    /// It is to be refused.
    pub fn may_log_in(
        &self,
        who: &Who<'_>,
        settings: &ProtectionSettings,
        now: Time,
    ) -> Result<(), Refusal> {
        if self.bans.is_client_id_banned(who.client_id, now) {
            return Err(Refusal::BannedClientId);
        }
        if let Some(attempt) = who.attempt() {
            let tried = self.logins.may_try(&attempt, &settings.logins, now);
            tried.map_err(|_| Refusal::FailedLogins)?;
        }
        Ok(())
    }

    /// A login failed because of what the client showed (not because a backend could not be asked).
    /// True if the address, or the user there, has to wait from now on.
    pub fn login_failed(&self, who: &Who<'_>, settings: &ProtectionSettings, now: Time) -> bool {
        let attempt = who.attempt();
        attempt.is_some_and(|attempt| self.logins.failed(&attempt, &settings.logins, now))
    }

    /// The client has shown a password, a token or a key that is right.
    pub fn login_succeeded(&self, who: &Who<'_>, settings: &ProtectionSettings) {
        if let Some(attempt) = who.attempt() {
            self.logins.succeeded(&attempt, &settings.logins);
        }
    }

    /// The user has logged in from there before; clients of this machine count as such.
    pub fn is_known(&self, who: &Who<'_>) -> bool {
        let attempt = who.attempt();
        attempt
            .is_none_or(|attempt| attempt.address.is_loopback() || self.logins.is_known(&attempt))
    }

    /// A client may come in by its login, or needs none: before its session begins, with the
    /// verified user name.
    ///
    /// # Errors
    /// It is to be refused all the same.
    pub fn may_enter(
        &self,
        who: &Who<'_>,
        settings: &ProtectionSettings,
        now: Time,
    ) -> Result<(), Refusal> {
        if self.bans.is_client_banned(who, now) {
            return Err(Refusal::BannedClientId);
        }
        if let Some(username) = who.username {
            if self.bans.is_username_banned(username, now) {
                return Err(Refusal::BannedUsername);
            }
            if let Some(pace) = &settings.user.connects {
                let taken = self.user(username).connects.take(pace, now, 1);
                taken.map_err(|_| Refusal::UserConnects)?;
            }
            self.flapped(SubjectRef::Username(username), settings, now)?;
        }
        self.flapped(who.client(), settings, now)
    }

    /// A client that may enter begins its session: bans are asked again, as it may have waited for
    /// its login meanwhile, or on its way to another worker.
    ///
    /// # Errors
    /// It is banned by now.
    pub fn may_begin(&self, who: &Who<'_>, now: Time) -> Result<(), Refusal> {
        let bans = &self.bans;
        if bans.is_client_id_banned(who.client_id, now) || bans.is_client_banned(who, now) {
            return Err(Refusal::BannedClientId);
        }
        let is_banned = |username| self.bans.is_username_banned(username, now);
        if who.username.is_some_and(is_banned) {
            return Err(Refusal::BannedUsername);
        }
        let is_banned = |address| self.bans.is_address_banned(address, now);
        if who.address.is_some_and(is_banned) {
            return Err(Refusal::BannedAddress);
        }
        Ok(())
    }

    /// What the client may send; none if nothing is limited. To be asked when a connection has its
    /// session, and again at its next input after a reload.
    pub fn meter(&self, who: &Who<'_>, scopes: &Scopes<'_>) -> Option<Box<Meter>> {
        if scopes.are_free() {
            return None;
        }
        let limits = |paces: &Paces| !paces.is_input_free();
        let username = who.username.filter(|_| limits(scopes.user));
        let address = who.address.filter(|_| limits(scopes.address));
        let address = address.map(|address| {
            let site = Network::of_client(address);
            self.addresses.account(&site, || site)
        });
        Some(Box::new(Meter::new(
            username.map(|username| self.user(username)),
            address,
        )))
    }

    /// Forgets what is over; to be called about once a second, by one worker. Accounts that were
    /// forgotten for want of room.
    pub fn sweep(&self, settings: &ProtectionSettings, now: Time) -> u64 {
        self.flapping.sweep(&settings.flapping, now);
        self.logins.sweep(&settings.logins, now);
        self.addresses.sweep(&settings.address, now);
        self.users.sweep(&settings.user, now);
        self.bans.sweep(now);
        self.addresses.take_crowded_out() + self.users.take_crowded_out()
    }

    fn user(&self, username: &str) -> Arc<Account> {
        self.users.account(username, || username.into())
    }

    fn flapped(
        &self,
        subject: SubjectRef<'_>,
        settings: &ProtectionSettings,
        now: Time,
    ) -> Result<(), Refusal> {
        match self
            .flapping
            .count(subject, &settings.flapping, &self.bans, now)
        {
            Flap::Calm => Ok(()),
            Flap::Banned => Err(Refusal::Flapping),
            Flap::NotBanned => Err(Refusal::FlappingForgotten),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::bans::{Ban, BanList, Subject};
    use super::super::meter::Usage;
    use super::*;
    use crate::config::{Config, Rate};

    const NOW: Time = Time::from_millis(1_790_000_000_000);
    const JO: Who<'_> = Who {
        client_id: "meter-7",
        username: Some("jo"),
        address: Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7))),
    };

    fn settings(change: impl FnOnce(&mut Config)) -> ProtectionSettings {
        let mut config = Config::default();
        change(&mut config);
        ProtectionSettings::new(&config)
    }

    fn banned(subject: Subject) -> Protection {
        let ban = Ban {
            subject,
            reason: "".into(),
            by: "".into(),
            since: 0,
            until: None,
        };
        let protection = Protection::default();
        protection.bans().replace(BanList::from_iter([ban]), NOW);
        protection
    }

    /// The three moments of a connection, each with what it says.
    fn come_in(
        protection: &Protection,
        who: &Who<'_>,
        settings: &ProtectionSettings,
    ) -> [Result<(), Refusal>; 3] {
        [
            protection.may_open(who.address, settings, NOW),
            protection.may_log_in(who, settings, NOW),
            protection.may_enter(who, settings, NOW),
        ]
    }

    #[test]
    fn by_default_everybody_comes_in_as_often_as_they_like() {
        let (protection, settings) = (Protection::default(), settings(|_| {}));
        for _ in 0..10_000 {
            assert_eq!(come_in(&protection, &JO, &settings), [Ok(()); 3]);
        }
        let free = Scopes {
            client: &settings.client,
            user: &settings.user,
            address: &settings.address,
            listener: None,
        };
        assert!(protection.meter(&JO, &free).is_none());
        assert!(protection.users.is_empty() && protection.addresses.is_empty());
    }

    #[test]
    fn each_ban_is_found_at_its_moment() {
        let settings = settings(|_| {});
        let at_once = banned(Subject::Network("192.0.2.0/24".parse().unwrap()));
        assert_eq!(
            come_in(&at_once, &JO, &settings),
            [Err(Refusal::BannedAddress), Ok(()), Ok(())]
        );
        let before_login = banned(Subject::ClientId("meter-7".into()));
        assert_eq!(
            come_in(&before_login, &JO, &settings),
            [Ok(()), Err(Refusal::BannedClientId), Ok(())]
        );
        // Whether there is such a user is told to nobody who has not its password.
        let after_login = banned(Subject::Username("jo".into()));
        assert_eq!(
            come_in(&after_login, &JO, &settings),
            [Ok(()), Ok(()), Err(Refusal::BannedUsername)]
        );
    }

    #[test]
    fn who_was_banned_during_its_login_does_not_begin() {
        let network = Subject::Network("192.0.2.0/24".parse().unwrap());
        for (subject, refusal) in [
            (Subject::ClientId("meter-7".into()), Refusal::BannedClientId),
            (Subject::Username("jo".into()), Refusal::BannedUsername),
            (network, Refusal::BannedAddress),
        ] {
            assert_eq!(banned(subject).may_begin(&JO, NOW), Err(refusal));
        }
        let other = banned(Subject::Username("jim".into()));
        assert_eq!(other.may_begin(&JO, NOW), Ok(()));
    }

    #[test]
    fn connect_rates_are_kept_by_address_and_by_user() {
        let rate = |amount| Rate::new(amount, Duration::from_secs(1), 0).unwrap();
        let settings = settings(|config| {
            config.limits.address.connects = rate(2);
            config.limits.user.connects = rate(1);
        });
        let protection = Protection::default();
        assert_eq!(come_in(&protection, &JO, &settings), [Ok(()); 3]);
        assert_eq!(
            come_in(&protection, &JO, &settings),
            [Ok(()), Ok(()), Err(Refusal::UserConnects)]
        );
        assert_eq!(
            protection.may_open(JO.address, &settings, NOW),
            Err(Refusal::AddressConnects)
        );
        let elsewhere = Some("192.0.2.8".parse().unwrap());
        assert_eq!(protection.may_open(elsewhere, &settings, NOW), Ok(()));
        assert_eq!(
            protection.may_open(JO.address, &settings, NOW.plus_secs(1)),
            Ok(())
        );
        // A Unix socket has no address.
        assert_eq!(protection.may_open(None, &settings, NOW), Ok(()));
    }

    #[test]
    fn failed_logins_make_the_address_wait() {
        let (protection, settings) = (Protection::default(), settings(|_| {}));
        let known = Who {
            username: Some("known"),
            ..JO
        };
        protection.login_succeeded(&known, &settings);
        let failures = (0..30).filter(|_| protection.login_failed(&JO, &settings, NOW));
        assert_eq!(failures.count(), 1);
        assert_eq!(
            protection.may_log_in(&JO, &settings, NOW),
            Err(Refusal::FailedLogins)
        );
        assert_eq!(protection.may_log_in(&known, &settings, NOW), Ok(()));
        assert_eq!(
            protection.may_log_in(&JO, &settings, NOW.plus_secs(60)),
            Ok(())
        );
    }

    #[test]
    fn failed_logins_ban_no_client_identifier() {
        let protection = Protection::default();
        let settings = settings(|config| config.protection.flapping.enabled = true);
        for _ in 0..100 {
            assert_eq!(protection.may_open(JO.address, &settings, NOW), Ok(()));
            protection.login_failed(&JO, &settings, NOW);
        }
        assert!(!protection.bans().is_client_id_banned("meter-7", NOW));
        for _ in 0..15 {
            assert_eq!(protection.may_enter(&JO, &settings, NOW), Ok(()));
        }
        assert_eq!(
            protection.may_enter(&JO, &settings, NOW),
            Err(Refusal::Flapping)
        );
        let elsewhere = Who {
            address: None,
            ..JO
        };
        assert_eq!(
            protection.may_enter(&elsewhere, &settings, NOW),
            Err(Refusal::BannedClientId)
        );
        assert_eq!(
            protection.may_begin(&elsewhere, NOW),
            Err(Refusal::BannedClientId)
        );
    }

    #[test]
    fn who_connects_too_often_bans_no_other_user_with_the_same_client_identifier() {
        let protection = Protection::default();
        let settings = settings(|config| config.protection.flapping.enabled = true);
        let from = |username, address: &str| Who {
            username,
            address: Some(address.parse().unwrap()),
            ..JO
        };
        let comes_in = |who: &Who<'_>| {
            protection
                .may_log_in(who, &settings, NOW)
                .and_then(|()| protection.may_enter(who, &settings, NOW))
                .and_then(|()| protection.may_begin(who, NOW))
        };
        for flapping in [from(Some("bob"), "192.0.2.7"), from(None, "192.0.2.9")] {
            for _ in 0..20 {
                comes_in(&flapping).ok();
            }
            assert!(comes_in(&flapping).is_err());
        }
        // The owner comes from where bob does.
        assert_eq!(comes_in(&from(Some("alice"), "192.0.2.7")), Ok(()));
        assert_eq!(comes_in(&from(None, "192.0.2.10")), Ok(()));
        // Bob changes his address, and is who he was.
        assert!(comes_in(&from(Some("bob"), "192.0.2.11")).is_err());
    }

    #[test]
    fn the_connections_of_a_user_have_one_meter() {
        let settings = settings(|config| config.limits.user.messages = Rate::per_second(10));
        let scopes = Scopes {
            client: &settings.client,
            user: &settings.user,
            address: &settings.address,
            listener: None,
        };
        let protection = Protection::default();
        let mut one = protection.meter(&JO, &scopes).unwrap();
        let other = protection.meter(&JO, &scopes).unwrap();
        let usage = Usage {
            messages: 100,
            bytes: 1000,
        };
        assert!(one.charge(usage, &scopes, NOW).is_some());
        assert!(other.may_read(&scopes, NOW).is_err());
        assert!(protection.addresses.is_empty());
        assert_eq!(protection.sweep(&settings, NOW), 0);
    }
}
