//! Sessions of administrators with a browser: found by a random secret in a cookie, of which only
//! the digest is kept. They are in memory and end with the broker.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use aws_lc_rs::digest::{Context, SHA256};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use zeroize::Zeroizing;

use super::cookie::{SECRET_BYTES, secret_of};
use super::digest::{Digest, is_same};
use super::scope::Role;
use crate::clock::Now;
use crate::config::ManagementConfig;

/// When sessions end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SessionTimes {
    /// After this time without a request.
    pub(crate) idle: Duration,
    /// After this time.
    pub(crate) life: Duration,
}

impl Default for SessionTimes {
    fn default() -> Self {
        let ManagementConfig {
            session_idle: idle,
            session_life: life,
            ..
        } = ManagementConfig::default();
        Self { idle, life }
    }
}

/// Sessions of one administrator; the one that is unused for longest makes room.
const SESSIONS_OF_ONE_MAX: usize = 20;
/// Sessions of all, likewise.
const SESSIONS_MAX: usize = 2000;

/// The secret in a cookie.
#[derive(Clone)]
pub(super) struct SessionSecret(Zeroizing<[u8; SECRET_BYTES]>);

impl SessionSecret {
    /// Of random bytes.
    pub(super) const fn new(bytes: Zeroizing<[u8; SECRET_BYTES]>) -> Self {
        Self(bytes)
    }

    /// Reads the value of a cookie.
    pub(super) fn parse(text: &str) -> Option<Self> {
        secret_of(text).map(Self)
    }

    /// The value of the cookie.
    pub(super) fn text(&self) -> Zeroizing<String> {
        Zeroizing::new(URL_SAFE_NO_PAD.encode(*self.0))
    }

    /// The token that a page of the same origin sends in a header with each change. A page of
    /// another origin makes the browser send the cookie, but cannot read it, and cannot set the
    /// header.
    pub(super) fn token(&self) -> String {
        let mut context = Context::new(&SHA256);
        context.update(b"token of a session");
        context.update(&*self.0);
        URL_SAFE_NO_PAD.encode(context.finish())
    }

    /// Whether it is that token.
    pub(super) fn is_token(&self, text: &str) -> bool {
        is_same(&self.token(), text)
    }

    fn digest(&self) -> Digest {
        Digest::of(&*self.0)
    }

    /// The public name of its session.
    pub(super) fn name(&self) -> String {
        self.digest().name()
    }
}

/// Whose session it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    /// Name of the administrator.
    pub(super) administrator: Box<str>,
    /// The role of a person that has logged in elsewhere, for the whole session; that of an
    /// administrator of the broker is looked up with each request.
    pub(super) role: Option<Role>,
}

impl Owner {
    /// An administrator of the broker.
    pub(super) fn of_broker(name: &str) -> Self {
        Self {
            administrator: name.into(),
            role: None,
        }
    }
}

/// A session.
#[derive(Clone, Debug)]
struct Session {
    owner: Owner,
    from: Option<IpAddr>,
    began: Now,
    used: Now,
}

impl SessionTimes {
    fn is_over(&self, session: &Session, now: Now) -> bool {
        now.uptime.saturating_sub(session.used.uptime) >= self.idle
            || now.uptime.saturating_sub(session.began.uptime) >= self.life
    }
}

/// A session as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SessionRow {
    /// Its public name, by which it can be ended.
    pub(crate) id: String,
    /// Whose it is.
    pub(crate) administrator: String,
    /// Address of the login.
    pub(crate) from: Option<IpAddr>,
    /// Milliseconds of the Unix epoch.
    pub(crate) began_at: u64,
    /// Milliseconds of the Unix epoch.
    pub(crate) used_at: u64,
}

/// All sessions.
///
/// They are found by the digests of their secrets. How long a search takes depends on how many
/// leading bits of two digests are equal, which tells nothing about a secret.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    by_digest: BTreeMap<Digest, Session>,
    times: SessionTimes,
    /// Sessions that have made room for others.
    forgotten: u64,
}

impl Sessions {
    /// How many there are, those among them that are over and were not looked at since.
    pub(super) fn len(&self) -> usize {
        self.by_digest.len()
    }

    /// Sessions that have made room for others.
    pub(super) const fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Sessions end after other times from now on, also those that are there.
    pub(super) const fn set_times(&mut self, times: SessionTimes) {
        self.times = times;
    }

    /// Begins a session, always with a new secret: one that somebody planted in the browser before
    /// the login never becomes valid.
    pub(super) fn begin(
        &mut self,
        secret: &SessionSecret,
        owner: Owner,
        from: Option<IpAddr>,
        now: Now,
    ) {
        let times = self.times;
        self.by_digest
            .retain(|_, session| !times.is_over(session, now));
        self.make_room(SESSIONS_OF_ONE_MAX, |session| {
            session.owner.administrator == owner.administrator
        });
        self.make_room(SESSIONS_MAX, |_| true);
        let session = Session {
            owner,
            from,
            began: now,
            used: now,
        };
        self.by_digest.insert(secret.digest(), session);
    }

    /// The owner of a session, which is used by this.
    pub(super) fn find(&mut self, secret: &SessionSecret, now: Now) -> Option<Owner> {
        let digest = secret.digest();
        let session = self.by_digest.get_mut(&digest)?;
        if self.times.is_over(session, now) {
            self.by_digest.remove(&digest);
            return None;
        }
        session.used = now;
        Some(session.owner.clone())
    }

    /// The owner of a session, which is not used by this.
    pub(super) fn owner(&self, secret: &SessionSecret, now: Now) -> Option<&Owner> {
        let session = self.by_digest.get(&secret.digest())?;
        (!self.times.is_over(session, now)).then_some(&session.owner)
    }

    /// Ends the session of a secret.
    pub(super) fn end(&mut self, secret: &SessionSecret) {
        self.by_digest.remove(&secret.digest());
    }

    /// Ends a session by its public name, if `of` is whose it is, or none; returns whose it was.
    pub(super) fn end_by_id(&mut self, id: &str, of: Option<&str>) -> Option<Box<str>> {
        let is_it = |digest: &Digest, session: &Session| {
            digest.name() == id && of.is_none_or(|of| *session.owner.administrator == *of)
        };
        let mut all = self.by_digest.iter();
        let (digest, _) = all.find(|(digest, session)| is_it(digest, session))?;
        let digest = *digest;
        let ended = self.by_digest.remove(&digest)?;
        Some(ended.owner.administrator)
    }

    /// Ends all sessions of an administrator but one.
    pub(super) fn end_all_of(&mut self, administrator: &str, but: Option<&SessionSecret>) {
        let but = but.map(SessionSecret::digest);
        self.by_digest.retain(|digest, session| {
            *session.owner.administrator != *administrator || Some(*digest) == but
        });
    }

    /// The sessions of one, or of all, by administrator.
    pub(super) fn list(&self, of: Option<&str>, now: Now) -> Vec<SessionRow> {
        let live = self.by_digest.iter();
        let live = live.filter(|(_, session)| {
            !self.times.is_over(session, now)
                && of.is_none_or(|of| *session.owner.administrator == *of)
        });
        let mut rows: Vec<SessionRow> = live
            .map(|(digest, session)| SessionRow {
                id: digest.name(),
                administrator: session.owner.administrator.to_string(),
                from: session.from,
                began_at: session.began.wall_millis,
                used_at: session.used.wall_millis,
            })
            .collect();
        rows.sort_by(|one, other| {
            (&one.administrator, one.began_at).cmp(&(&other.administrator, other.began_at))
        });
        rows
    }

    /// Ends the session that is unused for longest while there are `most` of a kind.
    fn make_room(&mut self, most: usize, is_counted: impl Fn(&Session) -> bool) {
        loop {
            let counted = self.by_digest.iter().filter(|(_, one)| is_counted(one));
            if counted.clone().count() < most {
                return;
            }
            let oldest = counted.min_by_key(|(_, session)| session.used.uptime);
            let Some(oldest) = oldest.map(|(digest, _)| *digest) else {
                return;
            };
            self.by_digest.remove(&oldest);
            self.forgotten += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(number: u16) -> SessionSecret {
        let mut bytes = Zeroizing::new([0; SECRET_BYTES]);
        bytes[..2].copy_from_slice(&number.to_be_bytes());
        SessionSecret::new(bytes)
    }

    fn minutes(minutes: u64) -> Now {
        Now::after(minutes * 60_000)
    }

    #[test]
    fn a_session_ends_when_it_is_not_used_or_too_old() {
        let mut sessions = Sessions::default();
        sessions.begin(&secret(1), Owner::of_broker("alice"), None, minutes(0));
        let alice = Some(Owner::of_broker("alice"));
        assert_eq!(sessions.find(&secret(1), minutes(59)), alice);
        assert_eq!(sessions.find(&secret(1), minutes(118)), alice);
        assert_eq!(
            sessions.find(&secret(1), minutes(178)),
            None,
            "60 minutes unused"
        );
        assert_eq!(
            sessions.find(&secret(1), minutes(118)),
            None,
            "it is over for good"
        );
        sessions.begin(&secret(2), Owner::of_broker("alice"), None, minutes(0));
        let mut used = (0..24 * 60).step_by(30);
        assert!(used.all(|at| sessions.find(&secret(2), minutes(at)).is_some()));
        assert_eq!(sessions.find(&secret(2), minutes(24 * 60)), None);
    }

    #[test]
    fn other_times_are_in_force_for_the_sessions_that_are_there() {
        let mut sessions = Sessions::default();
        sessions.begin(&secret(1), Owner::of_broker("alice"), None, minutes(0));
        sessions.set_times(SessionTimes {
            idle: Duration::from_mins(5),
            life: Duration::from_mins(8),
        });
        assert!(sessions.find(&secret(1), minutes(4)).is_some());
        assert!(sessions.find(&secret(1), minutes(8)).is_none());
        sessions.begin(&secret(2), Owner::of_broker("alice"), None, minutes(8));
        assert!(sessions.find(&secret(2), minutes(13)).is_none());
    }

    #[test]
    fn sessions_are_listed_and_ended_by_their_owner_or_an_administrator() {
        let mut sessions = Sessions::default();
        sessions.begin(
            &secret(1),
            Owner::of_broker("alice"),
            "192.0.2.1".parse().ok(),
            minutes(0),
        );
        sessions.begin(&secret(2), Owner::of_broker("alice"), None, minutes(1));
        sessions.begin(&secret(3), Owner::of_broker("bob"), None, minutes(2));
        let all = sessions.list(None, minutes(3));
        let names: Vec<&str> = all.iter().map(|row| &*row.administrator).collect();
        assert_eq!(names, ["alice", "alice", "bob"]);
        assert_eq!(sessions.list(Some("bob"), minutes(3)).len(), 1);
        assert_eq!(all[0].id, secret(1).name());
        assert_eq!(sessions.end_by_id(&all[0].id, Some("bob")), None);
        assert_eq!(
            sessions.end_by_id(&all[0].id, Some("alice")).as_deref(),
            Some("alice")
        );
        assert_eq!(sessions.find(&secret(1), minutes(3)), None);
        assert_eq!(sessions.end_by_id(&all[2].id, None).as_deref(), Some("bob"));
        sessions.begin(&secret(4), Owner::of_broker("alice"), None, minutes(3));
        sessions.end_all_of("alice", Some(&secret(4)));
        assert!(sessions.find(&secret(4), minutes(4)).is_some());
        assert!(sessions.find(&secret(2), minutes(4)).is_none());
        sessions.end(&secret(4));
        assert!(sessions.list(None, minutes(4)).is_empty());
    }

    #[test]
    fn sessions_are_bounded_and_the_unused_one_makes_room() {
        let mut sessions = Sessions::default();
        for number in 0..21 {
            sessions.begin(
                &secret(number),
                Owner::of_broker("alice"),
                None,
                Now::after(number.into()),
            );
            sessions.find(&secret(0), Now::after(u64::from(number) + 1));
        }
        assert_eq!(
            sessions.list(Some("alice"), minutes(1)).len(),
            SESSIONS_OF_ONE_MAX
        );
        assert!(
            sessions.find(&secret(0), minutes(1)).is_some(),
            "it is in use"
        );
        assert!(sessions.find(&secret(1), minutes(1)).is_none());
        for number in 100..2200 {
            let name = format!("name-{number}");
            sessions.begin(&secret(number), Owner::of_broker(&name), None, minutes(2));
        }
        assert_eq!(sessions.by_digest.len(), SESSIONS_MAX);
        assert_eq!(sessions.forgotten(), 1 + 2120 - 2000);
    }

    #[test]
    fn a_cookie_is_read_as_it_is_written_and_has_a_token_of_its_own() {
        let one = secret(1);
        let text = one.text();
        assert_eq!(text.len(), 43);
        assert_eq!(SessionSecret::parse(&text).unwrap().token(), one.token());
        assert!(one.is_token(&one.token()) && !one.is_token(&secret(2).token()));
        assert!(!one.is_token("") && !one.is_token(&text));
        for wrong in ["", "a", &text[1..], &format!("{}AAA", *text), "!"] {
            assert!(SessionSecret::parse(wrong).is_none(), "{wrong}");
        }
    }
}
