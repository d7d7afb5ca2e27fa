//! Checks for admission: bans, connect rates, flapping and failed logins, at four moments of a
//! connection: when it is accepted, when it logs in, when it is admitted, and when its session
//! begins.

use std::net::IpAddr;
use std::sync::Arc;

use thrum_access::Network;
use thrum_protocol::Time;

use super::bans::{BanBook, SubjectRef};
use super::client::ClientRef;
use super::flapping::{Flap, Flapping};
use super::logins::LoginGuard;
use super::meter::{Meter, Scopes};
use super::rate_table::{ACCOUNTS_MAX, Account, Paces, RateTable};
use super::refusal::Refusal;
use super::settings::ProtectionSettings;

/// The protection state that the workers of a node share.
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

    /// Failed logins, and the known users and clients of each address.
    pub fn logins(&self) -> &Arc<LoginGuard> {
        &self.logins
    }

    /// Checks a connection before its TLS handshake: once it is accepted, or once the header of a
    /// trusted proxy has named its address.
    ///
    /// # Errors
    /// The caller closes the connection and sends nothing.
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

    /// Checks a CONNECT before its password is verified. A banned user is refused after the login
    /// only, so that unauthenticated clients do not learn which users exist.
    ///
    /// # Errors
    /// The caller refuses the client.
    pub fn may_log_in(
        &self,
        client: &ClientRef<'_>,
        settings: &ProtectionSettings,
        now: Time,
    ) -> Result<(), Refusal> {
        if self.bans.is_client_id_banned(client.client_id, now) {
            return Err(Refusal::BannedClientId);
        }
        if let Some(attempt) = client.attempt() {
            let tried = self.logins.may_try(&attempt, &settings.logins, now);
            tried.map_err(|_| Refusal::FailedLogins)?;
        }
        Ok(())
    }

    /// Counts a login that failed because of the client's credentials, not because a backend
    /// failed. Returns whether the address, or the user there, has to wait from now on.
    pub fn login_failed(
        &self,
        client: &ClientRef<'_>,
        settings: &ProtectionSettings,
        now: Time,
    ) -> bool {
        let attempt = client.attempt();
        attempt.is_some_and(|attempt| self.logins.failed(&attempt, &settings.logins, now))
    }

    /// Counts a login with a correct password, token or key.
    pub fn login_succeeded(&self, client: &ClientRef<'_>, settings: &ProtectionSettings) {
        if let Some(attempt) = client.attempt() {
            self.logins.succeeded(&attempt, &settings.logins);
        }
    }

    /// Whether the user has logged in from this address before; clients of this machine count as
    /// known.
    pub fn is_known(&self, client: &ClientRef<'_>) -> bool {
        let attempt = client.attempt();
        attempt
            .is_none_or(|attempt| attempt.address.is_loopback() || self.logins.is_known(&attempt))
    }

    /// Checks a client whose login succeeded, or that needs none, by its verified user name.
    ///
    /// # Errors
    /// The caller refuses the client.
    pub fn may_enter(
        &self,
        client: &ClientRef<'_>,
        settings: &ProtectionSettings,
        now: Time,
    ) -> Result<(), Refusal> {
        if self.bans.is_client_banned(client, now) {
            return Err(Refusal::BannedClientId);
        }
        if let Some(username) = client.username {
            if self.bans.is_username_banned(username, now) {
                return Err(Refusal::BannedUsername);
            }
            if let Some(pace) = &settings.user.connects {
                let taken = self.user(username).connects.take(pace, now, 1);
                taken.map_err(|_| Refusal::UserConnects)?;
            }
            self.flapped(SubjectRef::Username(username), settings, now)?;
        }
        self.flapped(client.subject(), settings, now)
    }

    /// Checks a client whose session begins: it may have been banned during its login, or on its
    /// way to another worker.
    ///
    /// # Errors
    /// The client has been banned.
    pub fn may_begin(&self, client: &ClientRef<'_>, now: Time) -> Result<(), Refusal> {
        let bans = &self.bans;
        if bans.is_client_id_banned(client.client_id, now) || bans.is_client_banned(client, now) {
            return Err(Refusal::BannedClientId);
        }
        let is_banned = |username| self.bans.is_username_banned(username, now);
        if client.username.is_some_and(is_banned) {
            return Err(Refusal::BannedUsername);
        }
        let is_banned = |address| self.bans.is_address_banned(address, now);
        if client.address.is_some_and(is_banned) {
            return Err(Refusal::BannedAddress);
        }
        Ok(())
    }

    /// Returns the meter of a connection that has its session; `None` if no rate limits it. The
    /// caller asks again at the first input after a reload.
    pub fn meter(&self, client: &ClientRef<'_>, scopes: &Scopes<'_>) -> Option<Box<Meter>> {
        if scopes.are_free() {
            return None;
        }
        let limits = |paces: &Paces| !paces.is_input_free();
        let username = client.username.filter(|_| limits(scopes.user));
        let address = client.address.filter(|_| limits(scopes.address));
        let address = address.map(|address| {
            let site = Network::of_client(address);
            self.addresses.account(&site, || site)
        });
        Some(Box::new(Meter::new(
            username.map(|username| self.user(username)),
            address,
        )))
    }

    /// Forgets ended entries, and returns the number of accounts that were forgotten for lack of
    /// room. One worker calls it about once a second.
    pub fn sweep(&self, settings: &ProtectionSettings, now: Time) -> u64 {
        self.flapping.sweep(&settings.flapping, now);
        self.logins.sweep(&settings.logins, now);
        self.addresses.sweep(&settings.address, now);
        self.users.sweep(&settings.user, now);
        self.bans.sweep(now);
        self.addresses.take_evicted() + self.users.take_evicted()
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
            Flap::Allowed => Ok(()),
            Flap::Banned => Err(Refusal::Flapping),
            Flap::NotBanned => Err(Refusal::FlappingForgotten),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use super::super::bans::{Ban, BanList, Subject};
    use super::super::flapping::FlappingLimits;
    use super::super::logins::LoginLimits;
    use super::super::meter::InputUsage;
    use super::super::overload::OverloadLimits;
    use super::super::rate::Rate;
    use super::super::rate_table::ACCOUNTS_MAX;
    use super::*;

    const NOW: Time = Time::from_millis(1_790_000_000_000);
    const JO: ClientRef<'_> = ClientRef {
        client_id: "meter-7",
        username: Some("jo"),
        address: Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7))),
    };

    const FREE: Paces = Paces {
        connects: None,
        messages: None,
        bytes: None,
    };
    /// As by default: only failed logins are limited.
    const DEFAULT: ProtectionSettings = ProtectionSettings {
        client: FREE,
        user: FREE,
        address: FREE,
        flapping: FlappingLimits {
            window: Duration::from_mins(1),
            connects: 0,
            user_connects: 0,
            address_connects: 0,
            ban: Duration::from_mins(5),
        },
        logins: LoginLimits {
            failures: 30,
            window: Duration::from_mins(1),
            wait: Duration::from_mins(1),
        },
        overload: OverloadLimits {
            turn: Duration::from_millis(200),
            publish_turn: Duration::from_secs(1),
            turns: 5,
            calm: Duration::from_secs(5),
            handshakes: 4096,
        },
    };

    fn with_flapping() -> ProtectionSettings {
        let mut settings = DEFAULT;
        settings.flapping.connects = 15;
        settings
    }

    fn banned(subject: Subject) -> Protection {
        let ban = Ban {
            subject,
            reason: "".into(),
            by: "".into(),
            since: 0,
            until: None,
            disconnects: true,
        };
        let protection = Protection::default();
        protection.bans().replace(BanList::from_iter([ban]), NOW);
        protection
    }

    /// The three moments of a connection, with the answer of each.
    fn check_all(
        protection: &Protection,
        client: &ClientRef<'_>,
        settings: &ProtectionSettings,
    ) -> [Result<(), Refusal>; 3] {
        [
            protection.may_open(client.address, settings, NOW),
            protection.may_log_in(client, settings, NOW),
            protection.may_enter(client, settings, NOW),
        ]
    }

    #[test]
    fn by_default_connections_are_unlimited() {
        let (protection, settings) = (Protection::default(), DEFAULT);
        for _ in 0..10_000 {
            assert_eq!(check_all(&protection, &JO, &settings), [Ok(()); 3]);
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
        let settings = DEFAULT;
        let at_once = banned(Subject::Network("192.0.2.0/24".parse().unwrap()));
        assert_eq!(
            check_all(&at_once, &JO, &settings),
            [Err(Refusal::BannedAddress), Ok(()), Ok(())]
        );
        let before_login = banned(Subject::ClientId("meter-7".into()));
        assert_eq!(
            check_all(&before_login, &JO, &settings),
            [Ok(()), Err(Refusal::BannedClientId), Ok(())]
        );
        // A client without the password does not learn whether the user exists.
        let after_login = banned(Subject::Username("jo".into()));
        assert_eq!(
            check_all(&after_login, &JO, &settings),
            [Ok(()), Ok(()), Err(Refusal::BannedUsername)]
        );
    }

    #[test]
    fn a_client_banned_during_its_login_gets_no_session() {
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
        let connects = |amount| Paces::new(&Rate::per_second(amount), &Rate::NONE, &Rate::NONE);
        let settings = ProtectionSettings {
            address: connects(2),
            user: connects(1),
            ..DEFAULT
        };
        let protection = Protection::default();
        assert_eq!(check_all(&protection, &JO, &settings), [Ok(()); 3]);
        assert_eq!(
            check_all(&protection, &JO, &settings),
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
        let (protection, settings) = (Protection::default(), DEFAULT);
        let known = ClientRef {
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
        let settings = with_flapping();
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
        let elsewhere = ClientRef {
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
    fn a_flapping_client_bans_no_other_user_with_the_same_client_identifier() {
        let protection = Protection::default();
        let settings = with_flapping();
        let from = |username, address: &str| ClientRef {
            username,
            address: Some(address.parse().unwrap()),
            ..JO
        };
        let comes_in = |client: &ClientRef<'_>| {
            protection
                .may_log_in(client, &settings, NOW)
                .and_then(|()| protection.may_enter(client, &settings, NOW))
                .and_then(|()| protection.may_begin(client, NOW))
        };
        for flapping in [from(Some("bob"), "192.0.2.7"), from(None, "192.0.2.9")] {
            for _ in 0..20 {
                comes_in(&flapping).ok();
            }
            assert!(comes_in(&flapping).is_err());
        }
        // The owner connects from bob's address.
        assert_eq!(comes_in(&from(Some("alice"), "192.0.2.7")), Ok(()));
        assert_eq!(comes_in(&from(None, "192.0.2.10")), Ok(()));
        // Bob changes his address, and remains the same user.
        assert!(comes_in(&from(Some("bob"), "192.0.2.11")).is_err());
    }

    #[test]
    fn the_connections_of_a_user_have_one_meter() {
        let settings = ProtectionSettings {
            user: Paces::new(&Rate::NONE, &Rate::per_second(10), &Rate::NONE),
            ..DEFAULT
        };
        let scopes = Scopes {
            client: &settings.client,
            user: &settings.user,
            address: &settings.address,
            listener: None,
        };
        let protection = Protection::default();
        let mut one = protection.meter(&JO, &scopes).unwrap();
        let other = protection.meter(&JO, &scopes).unwrap();
        let usage = InputUsage {
            messages: 100,
            bytes: 1000,
        };
        assert!(one.charge(usage, &scopes, NOW).is_some());
        assert!(other.may_read(&scopes, NOW).is_err());
        assert!(protection.addresses.is_empty());
        assert_eq!(protection.sweep(&settings, NOW), 0);
    }

    #[test]
    fn clients_of_this_machine_and_users_that_logged_in_are_known() {
        let (protection, settings) = (Protection::default(), DEFAULT);
        let local = ClientRef {
            address: Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            ..JO
        };
        assert!(protection.is_known(&local));
        assert!(!protection.is_known(&JO));
        protection.login_succeeded(&JO, &settings);
        assert!(protection.is_known(&JO));
        let elsewhere = ClientRef {
            address: Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 8))),
            ..JO
        };
        assert!(!protection.is_known(&elsewhere));
    }

    #[test]
    fn a_sweep_counts_the_users_that_were_forgotten_for_lack_of_room() {
        let protection = Protection::default();
        let count = 2 * ACCOUNTS_MAX as u64;
        for number in 0..count {
            protection.user(&number.to_string());
        }
        let forgotten = protection.sweep(&DEFAULT, NOW);
        assert!((count / 2..count).contains(&forgotten), "{forgotten}");
        assert_eq!(protection.sweep(&DEFAULT, NOW), 0);
    }
}
