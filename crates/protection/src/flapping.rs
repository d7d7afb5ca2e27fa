//! Flapping: clients that connect too often are counted by client identifier together with its
//! user, by user and by address, and are banned for a time.

use std::hash::BuildHasher as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hashbrown::DefaultHashBuilder;
use thrum_protocol::Time;

use super::bans::{BanBook, SubjectRef};
use super::idle_map::IdleMap;
use super::window::Window;

/// Most subjects that are counted at a time; beyond this the longest unused ones are forgotten.
const SUBJECTS_MAX: usize = 1 << 17;

/// Limits for the number of connections in a window, and the length of the ban. 0 connections are
/// no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlappingLimits {
    /// Time in which connections are counted.
    pub window: Duration,
    /// Most connections of one client.
    pub connects: u32,
    /// Most connections of one user.
    pub user_connects: u32,
    /// Most connections from one address.
    pub address_connects: u32,
    /// Length of a ban.
    pub ban: Duration,
}

/// Counts connections.
#[derive(Debug)]
pub(crate) struct Flapping {
    /// Random, so that an attacker cannot choose two names that are counted as one.
    hasher: DefaultHashBuilder,
    /// Guards the counts, for one look-up when a client connects.
    counts: Mutex<IdleMap<u64, Window>>,
}

/// The effect of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flap {
    /// No ban: the count is within the limit.
    Allowed,
    /// The subject is banned from now on.
    Banned,
    /// The subject is not banned, because there are too many temporary bans.
    NotBanned,
}

impl Default for Flapping {
    fn default() -> Self {
        Self {
            hasher: DefaultHashBuilder::default(),
            counts: Mutex::new(IdleMap::new(SUBJECTS_MAX)),
        }
    }
}

impl Flapping {
    /// Counts a connection of this subject, and bans the subject if the count exceeds the limit.
    pub(crate) fn count(
        &self,
        subject: SubjectRef<'_>,
        settings: &FlappingLimits,
        bans: &BanBook,
        now: Time,
    ) -> Flap {
        let connects_max = match subject {
            SubjectRef::ClientId(_)
            | SubjectRef::ClientOfUser { .. }
            | SubjectRef::ClientFrom { .. } => settings.connects,
            SubjectRef::Username(_) => settings.user_connects,
            SubjectRef::Network(_) => settings.address_connects,
        };
        if connects_max == 0 {
            return Flap::Allowed;
        }
        let key = self.hasher.hash_one(subject);
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let window = counts.entry(&key, |_| false, || (key, Window::default()));
        if window.count(now, settings.window) <= connects_max {
            return Flap::Allowed;
        }
        window.clear();
        drop(counts);
        if bans.ban_temporarily(subject, now.plus(settings.ban), now) {
            Flap::Banned
        } else {
            Flap::NotBanned
        }
    }

    /// Forgets counts whose window has ended. The node calls it at an interval.
    pub(crate) fn sweep(&self, settings: &FlappingLimits, now: Time) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.forget_idle(settings.window, now, |_| false);
    }

    /// Number of counted subjects.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.counts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .len()
    }

    /// Whether no subject is counted.
    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: FlappingLimits = FlappingLimits {
        window: Duration::from_mins(1),
        connects: 3,
        user_connects: 0,
        address_connects: 5,
        ban: Duration::from_mins(5),
    };
    const CLIENT: SubjectRef<'_> = SubjectRef::ClientId("a");

    fn at(seconds: u64) -> Time {
        Time::from_millis(seconds * 1000)
    }

    #[test]
    fn one_connection_too_many_in_the_window_is_banned_for_a_time() {
        let (flapping, bans) = (Flapping::default(), BanBook::default());
        let connect = |second| flapping.count(CLIENT, &SETTINGS, &bans, at(second));
        assert_eq!([connect(0), connect(20), connect(40)], [Flap::Allowed; 3]);
        assert_eq!(connect(59), Flap::Banned);
        assert!(bans.is_client_id_banned("a", at(59 + 299)));
        assert!(!bans.is_client_id_banned("a", at(59 + 300)));
        assert!(!bans.is_client_id_banned("b", at(60)));
        // It starts over.
        assert_eq!(connect(400), Flap::Allowed);
    }

    #[test]
    fn a_client_that_reconnects_slowly_is_never_banned() {
        let (flapping, bans) = (Flapping::default(), BanBook::default());
        for minute in 0..100 {
            for second in [0, 20, 40] {
                let flap = flapping.count(CLIENT, &SETTINGS, &bans, at(minute * 60 + second));
                assert_eq!(flap, Flap::Allowed);
            }
        }
    }

    #[test]
    fn unconfigured_limits_are_not_counted() {
        let (flapping, bans) = (Flapping::default(), BanBook::default());
        let off = FlappingLimits {
            connects: 0,
            ..SETTINGS
        };
        for _ in 0..100 {
            let user = SubjectRef::Username("jo");
            assert_eq!(flapping.count(user, &SETTINGS, &bans, at(0)), Flap::Allowed);
            assert_eq!(flapping.count(CLIENT, &off, &bans, at(0)), Flap::Allowed);
        }
        assert!(flapping.is_empty());
    }

    #[test]
    fn counts_are_bounded_and_forgotten() {
        let (flapping, bans) = (Flapping::default(), BanBook::default());
        for number in 0..3 * SUBJECTS_MAX {
            let name = number.to_string();
            flapping.count(SubjectRef::ClientId(&name), &SETTINGS, &bans, at(0));
        }
        assert!(flapping.len() <= SUBJECTS_MAX);
        flapping.sweep(&SETTINGS, at(60));
        flapping.sweep(&SETTINGS, at(120));
        assert!(flapping.is_empty());
    }
}
