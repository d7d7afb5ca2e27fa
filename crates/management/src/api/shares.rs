//! Permits that callers share: each of them has a part at most, so that one caller never keeps all
//! others out.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::login::Caller;

/// The permits of all callers.
#[derive(Clone, Debug)]
pub(crate) struct Shares(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    most: u32,
    /// Permits of one caller.
    most_each: usize,
    all: Arc<Semaphore>,
    /// Guards, for moments, those of each caller that has one or waits for one: there are no more
    /// of them than requests.
    each: Mutex<BTreeMap<Who, Weak<Semaphore>>>,
}

/// How a caller proved who it is, and its name: an account or a key, from wherever it asks.
type Who = (&'static str, Arc<str>);

/// A permit, until it is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    _own: OwnedSemaphorePermit,
    _all: OwnedSemaphorePermit,
}

impl Shares {
    /// So many, of which one caller has half at most.
    pub(crate) fn new(most: u32) -> Self {
        let permits = most as usize;
        Self(Arc::new(Inner {
            most,
            most_each: permits.div_ceil(2),
            all: Arc::new(Semaphore::new(permits)),
            each: Mutex::default(),
        }))
    }

    /// How many there are.
    pub(super) fn most(&self) -> u32 {
        self.0.most
    }

    /// How many of them one caller has at most.
    pub(super) fn most_each(&self) -> usize {
        self.0.most_each
    }

    /// A permit for a caller; none if others have them all for longer than `wait`, or the caller
    /// itself has its part.
    pub(crate) async fn take(&self, caller: &Caller, wait: Duration) -> Option<Share> {
        let own = self.own(caller);
        let taken = async {
            // First its own: a caller that has its part does not wait among the others. The
            // semaphores are never closed.
            let own = own.acquire_owned().await.ok()?;
            let all = Arc::clone(&self.0.all).acquire_owned().await.ok()?;
            Some(Share {
                _own: own,
                _all: all,
            })
        };
        timeout(wait, taken).await.ok().flatten()
    }

    /// Waits until all of them are free.
    pub(crate) async fn all_free(&self) {
        // The semaphore is never closed.
        drop(self.0.all.acquire_many(self.0.most).await);
    }

    fn own(&self, caller: &Caller) -> Arc<Semaphore> {
        let who = (caller.means.name(), Arc::clone(&caller.name));
        let each = self.0.each.lock();
        let mut each = each.unwrap_or_else(PoisonError::into_inner);
        each.retain(|_, own| own.strong_count() > 0);
        if let Some(own) = each.get(&who).and_then(Weak::upgrade) {
            return own;
        }
        let own = Arc::new(Semaphore::new(self.0.most_each));
        each.insert(who, Arc::downgrade(&own));
        own
    }
}

#[cfg(test)]
mod tests {
    use crate::login::{Role, ScopeSet};

    use super::*;

    const WAIT: Duration = Duration::from_secs(5);

    #[tokio::test(start_paused = true)]
    async fn a_caller_has_half_of_the_permits_wherever_it_asks_from() {
        let shares = Shares::new(4);
        let address = "192.0.2.1".parse().unwrap();
        let alice = Caller::session("alice", Role::Viewer, None);
        let elsewhere = Caller::session("alice", Role::Viewer, Some(address));
        let first = shares.take(&alice, WAIT).await.unwrap();
        let _second = shares.take(&elsewhere, WAIT).await.unwrap();
        assert!(shares.take(&alice, WAIT).await.is_none());
        // A key with the name of a person is somebody else.
        let key = Caller::key("alice", ScopeSet::NONE, None);
        let bob = Caller::session("bob", Role::Viewer, None);
        let _third = shares.take(&key, WAIT).await.unwrap();
        let fourth = shares.take(&bob, WAIT).await.unwrap();
        assert!(shares.take(&bob, WAIT).await.is_none(), "all are taken");
        drop(fourth);
        assert!(shares.take(&alice, WAIT).await.is_none(), "it has its part");
        drop(first);
        assert!(shares.take(&alice, WAIT).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn callers_that_have_none_are_forgotten_and_all_are_free_in_the_end() {
        let shares = Shares::new(2);
        for number in 0..100 {
            let caller = Caller::session(&format!("a{number}"), Role::Viewer, None);
            assert!(shares.take(&caller, WAIT).await.is_some());
        }
        let taken = shares.take(&Caller::local(), WAIT).await;
        assert_eq!(shares.0.each.lock().unwrap().len(), 1);
        assert!(timeout(WAIT, shares.all_free()).await.is_err());
        drop(taken);
        assert!(timeout(WAIT, shares.all_free()).await.is_ok());
    }
}
