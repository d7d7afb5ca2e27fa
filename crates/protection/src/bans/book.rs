//! The bans in force on a node: those of the list, and the node's own temporary bans.

use std::net::IpAddr;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use hashbrown::HashMap;
use thrum_access::Network;
use thrum_protocol::Time;

use super::list::{Ban, BanList, Subject, SubjectRef};
use crate::client::ClientRef;

/// Limit of temporary bans; beyond it none is added.
const TEMPORARY_MAX: usize = 1 << 16;

/// A ban is shown in whole seconds, and never as ended before it ends.
const ROUND_UP: Duration = Duration::from_millis(999);

/// The bans of a node, shared by its workers.
#[derive(Debug, Default)]
pub struct BanBook {
    /// Guards the list in force: read for a moment when a client connects, written when the file
    /// changed.
    listed: RwLock<Listed>,
    /// Number of the list in force, 0 if no list with a ban was ever in force: avoids the lock
    /// while there is no list.
    generation: AtomicU64,
    /// Guards the temporary bans, for one look-up when a client connects.
    temporary: Mutex<HashMap<Subject, TemporaryBan>>,
    /// Number of temporary bans: while it is 0, the lock is not taken.
    temporary_count: AtomicUsize,
    /// Orders no other memory access.
    wall_ahead: AtomicI64,
}

#[derive(Debug, Default)]
struct Listed {
    list: Arc<BanList>,
    generation: u64,
    /// The bans that are new in the last list.
    added: Arc<[Subject]>,
}

/// A temporary ban of the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemporaryBan {
    /// The banned client, user or address.
    pub subject: Subject,
    /// The beginning of the ban.
    pub since: Time,
    /// The end of the ban.
    pub until: Time,
}

/// The effect of a new list on connected clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BanChanges {
    /// Only these bans are new.
    Added(Arc<[Subject]>),
    /// More than one list was replaced since then: all clients have to be checked.
    Unknown,
}

impl BanBook {
    /// Puts another list in force.
    pub fn replace(&self, list: BanList, now: Time) {
        let mut listed = self.listed.write().unwrap_or_else(PoisonError::into_inner);
        if list.is_empty() && listed.generation == 0 {
            return;
        }
        let added = list.new_subjects(&listed.list, self.seconds(now));
        let before = std::mem::replace(&mut listed.list, Arc::new(list));
        listed.added = added.into();
        listed.generation += 1;
        self.generation.store(listed.generation, Ordering::Release);
        drop(listed);
        // Freeing a long list takes time, so it is freed outside the lock.
        drop(before);
    }

    /// The bans that are new since the list with the number `seen`, which becomes the present
    /// number; `None` if the list is the same. Cheap enough for every turn of a worker. Connected
    /// clients that are newly banned are to be disconnected (0x98); bans that disconnect nobody are
    /// not among them.
    pub fn changes(&self, seen: &mut u64) -> Option<BanChanges> {
        if self.generation.load(Ordering::Acquire) == *seen {
            return None;
        }
        let listed = self.listed.read().unwrap_or_else(PoisonError::into_inner);
        let is_next = listed.generation == *seen + 1;
        *seen = listed.generation;
        Some(if is_next {
            BanChanges::Added(Arc::clone(&listed.added))
        } else {
            BanChanges::Unknown
        })
    }

    /// Sets by how many seconds the wall clock is ahead of the node's clock: the ends of bans are
    /// times of the wall clock. The node calls it at an interval.
    pub fn set_wall_ahead(&self, seconds: i64) {
        self.wall_ahead.store(seconds, Ordering::Relaxed);
    }

    /// A temporary ban in the form of a list, for display.
    pub fn listed(&self, ban: &TemporaryBan) -> Ban {
        Ban {
            subject: ban.subject.clone(),
            reason: "connects too often".into(),
            by: "flapping".into(),
            since: self.seconds(ban.since),
            until: Some(self.seconds(ban.until.plus(ROUND_UP))),
            // Only the list is compared with connected clients.
            disconnects: false,
        }
    }

    /// The wall clock at a time of the node, in seconds of the Unix epoch, as ends of bans are
    /// written.
    pub fn wall_seconds(&self, at: Time) -> u64 {
        self.seconds(at)
    }

    fn seconds(&self, at: Time) -> u64 {
        let ahead = self.wall_ahead.load(Ordering::Relaxed);
        (at.as_millis() / 1000).saturating_add_signed(ahead)
    }

    /// The list in force.
    pub fn list(&self) -> Arc<BanList> {
        let listed = self.listed.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&listed.list)
    }

    /// Whether the client with this identifier is banned.
    pub fn is_client_id_banned(&self, client_id: &str, now: Time) -> bool {
        self.is_banned(SubjectRef::ClientId(client_id), now)
    }

    /// Whether this one client is banned, by its identifier together with its user, or with its
    /// address.
    pub(crate) fn is_client_banned(&self, client: &ClientRef<'_>, now: Time) -> bool {
        self.is_banned(client.subject(), now)
    }

    /// Whether the user is banned.
    pub fn is_username_banned(&self, username: &str, now: Time) -> bool {
        self.is_banned(SubjectRef::Username(username), now)
    }

    /// Whether the list bans the client by any of its names; temporary bans of the node do not
    /// count.
    pub fn is_listed(&self, client: &ClientRef<'_>, now: Time) -> bool {
        if self.generation.load(Ordering::Acquire) == 0 {
            return false;
        }
        let (list, now) = (self.list(), self.seconds(now));
        let has = |subject| list.find(subject, now).is_some();
        has(SubjectRef::ClientId(client.client_id))
            || has(client.subject())
            || client
                .username
                .is_some_and(|name| has(SubjectRef::Username(name)))
            || client
                .address
                .is_some_and(|address| list.find_address(address, now).is_some())
    }

    fn is_banned(&self, subject: SubjectRef<'_>, now: Time) -> bool {
        if self.generation.load(Ordering::Acquire) > 0 {
            let listed = self.listed.read().unwrap_or_else(PoisonError::into_inner);
            if listed.list.find(subject, self.seconds(now)).is_some() {
                return true;
            }
        }
        self.is_banned_for_now(subject, now)
    }

    /// Whether the address, or a network that it is in, is banned.
    pub(crate) fn is_address_banned(&self, address: IpAddr, now: Time) -> bool {
        if self.generation.load(Ordering::Acquire) > 0 {
            let listed = self.listed.read().unwrap_or_else(PoisonError::into_inner);
            if listed
                .list
                .find_address(address, self.seconds(now))
                .is_some()
            {
                return true;
            }
        }
        self.is_banned_for_now(SubjectRef::Network(Network::of_client(address)), now)
    }

    fn is_banned_for_now(&self, subject: SubjectRef<'_>, now: Time) -> bool {
        if self.temporary_count.load(Ordering::Acquire) == 0 {
            return false;
        }
        let temporary = self
            .temporary
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        temporary.get(&subject).is_some_and(|ban| now < ban.until)
    }

    /// Adds a temporary ban; false if there are too many. Addresses are banned as
    /// [`Network::of_client`] cuts them.
    #[must_use]
    pub fn ban_temporarily(&self, subject: SubjectRef<'_>, until: Time, now: Time) -> bool {
        let mut temporary = self
            .temporary
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if temporary.len() >= TEMPORARY_MAX && !temporary.contains_key(&subject) {
            return false;
        }
        let subject = subject.to_owned();
        let ban = TemporaryBan {
            subject: subject.clone(),
            since: now,
            until,
        };
        temporary.insert(subject, ban);
        self.temporary_count
            .store(temporary.len(), Ordering::Release);
        true
    }

    /// Lifts a temporary ban; false if there was none.
    pub fn lift(&self, subject: &Subject) -> bool {
        let mut temporary = self
            .temporary
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let was_there = temporary.remove(subject).is_some();
        self.temporary_count
            .store(temporary.len(), Ordering::Release);
        was_there
    }

    /// The temporary bans in force, ordered by kind and name.
    pub fn temporary(&self, now: Time) -> Vec<TemporaryBan> {
        let temporary = self
            .temporary
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let in_force = temporary.values().filter(|ban| now < ban.until);
        let mut bans: Vec<TemporaryBan> = in_force.cloned().collect();
        drop(temporary);
        bans.sort_unstable_by(|one, other| one.subject.cmp(&other.subject));
        bans
    }

    /// Forgets the temporary bans that have ended. The node calls it at an interval.
    pub fn sweep(&self, now: Time) {
        if self.temporary_count.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut temporary = self
            .temporary
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        temporary.retain(|_, ban| now < ban.until);
        self.temporary_count
            .store(temporary.len(), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(names: &[&str]) -> BanList {
        let mut list = BanList::default();
        for name in names {
            list.insert(Ban {
                subject: client(name),
                reason: "".into(),
                by: "".into(),
                since: 0,
                until: None,
                disconnects: true,
            });
        }
        list
    }

    fn client(name: &str) -> Subject {
        Subject::ClientId(name.into())
    }

    fn at(seconds: u64) -> Time {
        Time::from_millis(seconds * 1000)
    }

    #[test]
    fn each_reader_sees_new_bans_once() {
        let book = BanBook::default();
        let mut seen = 0;
        book.replace(list(&[]), at(1));
        assert_eq!(book.changes(&mut seen), None);
        book.replace(list(&["a"]), at(1));
        assert_eq!(
            book.changes(&mut seen),
            Some(BanChanges::Added([client("a")].into()))
        );
        assert_eq!(book.changes(&mut seen), None);
        book.replace(list(&["a", "b"]), at(1));
        assert_eq!(
            book.changes(&mut seen),
            Some(BanChanges::Added([client("b")].into()))
        );
        book.replace(list(&["b"]), at(1));
        book.replace(list(&[]), at(1));
        assert_eq!(book.changes(&mut seen), Some(BanChanges::Unknown));
        assert!(!book.is_client_id_banned("a", at(1)));
    }

    #[test]
    fn a_temporary_ban_ends() {
        let book = BanBook::default();
        assert!(book.ban_temporarily(SubjectRef::ClientId("a"), at(10), at(5)));
        assert!(book.is_client_id_banned("a", at(9)));
        assert!(!book.is_username_banned("a", at(9)));
        assert!(!book.is_client_id_banned("a", at(10)));
        assert_eq!(book.temporary(at(9)).len(), 1);
        assert_eq!(book.temporary(at(10)), []);
        book.sweep(at(10));
        assert!(!book.is_client_id_banned("a", at(9)));
    }

    #[test]
    fn a_temporary_ban_is_lifted() {
        let book = BanBook::default();
        assert!(book.ban_temporarily(SubjectRef::Username("jo"), at(10), at(5)));
        assert!(book.lift(&Subject::Username("jo".into())));
        assert!(!book.lift(&Subject::Username("jo".into())));
        assert!(!book.is_username_banned("jo", at(6)));
    }

    #[test]
    fn a_temporary_ban_of_an_address_is_of_its_site() {
        let book = BanBook::default();
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let site = Network::of_client(address("2001:db8::1"));
        assert!(book.ban_temporarily(SubjectRef::Network(site), at(10), at(5)));
        assert!(book.is_address_banned(address("2001:db8::2"), at(6)));
        assert!(!book.is_address_banned(address("2001:db8:0:1::2"), at(6)));
    }

    #[test]
    fn a_ban_ends_by_the_wall_clock_also_after_that_was_set() {
        let ban = Ban {
            subject: client("a"),
            reason: "".into(),
            by: "".into(),
            since: 0,
            until: Some(1000),
            disconnects: true,
        };
        let book = BanBook::default();
        book.replace(BanList::from_iter([ban]), at(5));
        assert!(book.is_client_id_banned("a", at(6)));
        book.set_wall_ahead(990);
        assert!(book.is_client_id_banned("a", at(9)));
        assert!(!book.is_client_id_banned("a", at(10)));
        book.set_wall_ahead(-100);
        assert!(book.is_client_id_banned("a", at(1099)));
        assert!(!book.is_client_id_banned("a", at(1100)));
    }

    #[test]
    fn the_list_is_asked_for_every_name_of_a_client() {
        let book = BanBook::default();
        let asked = ClientRef {
            client_id: "a",
            username: Some("jo"),
            address: Some("192.0.2.7".parse().unwrap()),
        };
        assert!(book.ban_temporarily(SubjectRef::ClientId("a"), at(10), at(5)));
        assert!(!book.is_listed(&asked, at(6)));
        let network = Subject::Network("192.0.2.0/24".parse().unwrap());
        for subject in [client("a"), Subject::Username("jo".into()), network] {
            let ban = Ban {
                subject,
                reason: "".into(),
                by: "".into(),
                since: 0,
                until: Some(10),
                disconnects: true,
            };
            book.replace(BanList::from_iter([ban]), at(6));
            assert!(book.is_listed(&asked, at(9)));
            assert!(!book.is_listed(&asked, at(10)));
        }
    }

    #[test]
    fn temporary_bans_are_bounded() {
        let book = BanBook::default();
        for number in 0..TEMPORARY_MAX {
            assert!(book.ban_temporarily(SubjectRef::ClientId(&number.to_string()), at(10), at(5)));
        }
        assert!(!book.ban_temporarily(SubjectRef::ClientId("one more"), at(10), at(5)));
        assert!(book.ban_temporarily(SubjectRef::ClientId("7"), at(20), at(5)));
        book.sweep(at(10));
        assert!(book.ban_temporarily(SubjectRef::ClientId("one more"), at(20), at(15)));
    }
}
