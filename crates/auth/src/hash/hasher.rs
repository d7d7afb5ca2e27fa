//! Threads that verify passwords, because a hash takes milliseconds of a core.

use std::fmt;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{Builder, available_parallelism};

use thrum_access::Secret;
use thrum_files::stand_back;
use tokio::sync::oneshot;

use super::Verified;
use super::queue::{Job, Queue, Requester};
use crate::backend::BackendError;
use crate::clock;
use crate::metrics::Counters;
use crate::panics::{self, Panicked};

/// Threads for each core: half, so that messages keep flowing during a mass login.
const CORES_PER_THREAD: usize = 2;

/// Verifies passwords for one backend; all of them share threads and memory.
#[derive(Clone, Debug)]
pub(crate) struct Hasher {
    pool: Arc<Pool>,
    counters: Arc<Counters>,
}

struct Pool {
    queue: Arc<Queue>,
    verified: Verified,
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.queue.end();
    }
}

impl Hasher {
    /// Starts the threads.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(crate) fn start(verified: Verified) -> std::io::Result<Self> {
        let cores = available_parallelism().map_or(1, NonZeroUsize::get);
        let queue = Arc::new(Queue::default());
        for _ in 0..(cores / CORES_PER_THREAD).max(1) {
            let queue = Arc::clone(&queue);
            Builder::new().name("auth-hash".to_owned()).spawn(move || {
                // A flood of logins must not make clients wait that are connected.
                stand_back();
                work(&queue);
            })?;
        }
        Ok(Self {
            pool: Arc::new(Pool { queue, verified }),
            counters: Arc::default(),
        })
    }

    /// The same threads, for another backend.
    pub(crate) fn counting(&self, counters: &Arc<Counters>) -> Self {
        Self {
            pool: Arc::clone(&self.pool),
            counters: Arc::clone(counters),
        }
    }

    /// Whether the password is the one of the stored hash, for this login.
    ///
    /// # Errors
    /// Too many wait already, or the hash cannot be used.
    pub(crate) async fn verify(
        &self,
        stored: &str,
        password: &Secret,
        requester: Requester<'_>,
    ) -> Result<bool, BackendError> {
        let verified = &self.pool.verified;
        if verified.contains(stored, password.expose(), clock::uptime()) {
            self.counters.cache_hit();
            return Ok(true);
        }
        self.counters.cache_miss();
        let (hash, secret) = (stored.to_owned(), password.clone());
        let found = self
            .run(requester, move || super::verify(&hash, secret.expose()))
            .await?;
        let is_right = found.map_err(|error| BackendError::BadAnswer(error.to_string()))?;
        if is_right {
            verified.insert(stored, password.expose(), clock::uptime());
        }
        Ok(is_right)
    }

    /// Takes the time of a wrong password. The cache is neither read nor written.
    ///
    /// # Errors
    /// Too many wait already.
    pub(crate) async fn waste(
        &self,
        stored: &str,
        password: &Secret,
        requester: Requester<'_>,
    ) -> Result<(), BackendError> {
        let (hash, secret) = (stored.to_owned(), password.clone());
        let found = self
            .run(requester, move || super::verify(&hash, secret.expose()))
            .await?;
        drop(found);
        Ok(())
    }

    /// Runs a slow function on one of the threads.
    async fn run<T: Send + 'static>(
        &self,
        requester: Requester<'_>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, BackendError> {
        let (done, result) = oneshot::channel();
        let job: Job = Box::new(move || {
            // A caller that gave up waiting needs no work done.
            if !done.is_closed() {
                drop(done.send(work()));
            }
        });
        if !self.pool.queue.push(requester, job) {
            return Err(BackendError::Overloaded);
        }
        result.await.map_err(|_| Panicked.into())
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Pool")
    }
}

/// Ends when the last hasher is gone.
fn work(queue: &Queue) {
    panics::catch_on_this_thread();
    while let Some(job) = queue.pop() {
        // If a library panics over a hash of another system, the answer channel was dropped with
        // it.
        catch_unwind(AssertUnwindSafe(job)).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::{Receiver, sync_channel};
    use std::time::Duration;

    use thrum_access::{Identity, Login};
    use thrum_codec::Version;

    use super::super::queue::LINE_MAX;
    use super::*;

    fn login(username: &str, is_known_there: bool) -> Login {
        Login {
            identity: Identity {
                username: Some(username.into()),
                ..Identity::default()
            },
            is_username_verified: false,
            is_known_there,
            password: None,
            version: Version::V5,
            method: None,
        }
    }

    fn hasher() -> Hasher {
        Hasher::start(Verified::new(10, Duration::from_mins(1))).unwrap()
    }

    #[tokio::test]
    async fn a_password_is_hashed_once_and_then_remembered() {
        let hasher = hasher();
        let stored = "$salted-plain$none$$c2VjcmV0";
        let login = login("jo", false);
        let verify = async |password: &str| {
            let secret = Secret::from(password);
            hasher
                .verify(stored, &secret, Requester::login(&login))
                .await
        };
        assert!(!verify("wrong").await.unwrap());
        assert!(verify("secret").await.unwrap());
        assert_eq!(hasher.counters.snapshot().cache_hits, 0);
        assert!(verify("secret").await.unwrap());
        assert!(!verify("wrong").await.unwrap());
        assert_eq!(hasher.counters.snapshot().cache_hits, 1);
    }

    #[tokio::test]
    async fn a_hash_that_cannot_be_used_is_an_error_not_a_wrong_password() {
        let login = login("jo", false);
        let found = hasher()
            .verify(
                "$md5$abc",
                &Secret::from("secret"),
                Requester::login(&login),
            )
            .await
            .unwrap_err();
        assert!(matches!(found, BackendError::BadAnswer(_)), "{found}");
    }

    #[tokio::test]
    async fn a_library_that_panics_over_a_hash_costs_one_answer() {
        let (hasher, login) = (hasher(), login("jo", false));
        let requester = Requester::login(&login);
        for _ in 0..available_parallelism().unwrap().get() {
            let failed = hasher
                .run(requester, || panic!("a library over a hash"))
                .await;
            let failed: Result<(), _> = failed;
            assert!(
                matches!(failed, Err(BackendError::Panicked(_))),
                "{failed:?}"
            );
        }
        assert_eq!(hasher.run(requester, || 7).await.unwrap(), 7);
    }

    async fn wait(
        hasher: Hasher,
        login: Login,
        gate: Arc<Mutex<Receiver<()>>>,
    ) -> Result<Option<()>, BackendError> {
        let opened = move || gate.lock().unwrap().recv().ok();
        hasher.run(Requester::login(&login), opened).await
    }

    #[tokio::test]
    async fn a_flood_of_unknown_logins_is_refused_and_locks_out_no_known_user() {
        let hasher = hasher();
        let (open, gate) = sync_channel::<()>(0);
        let gate = Arc::new(Mutex::new(gate));
        let mut blocked = Vec::new();
        // As many as there can be threads, and a queue.
        let cores = available_parallelism().unwrap().get();
        for number in 0..=LINE_MAX + cores {
            let (hasher, gate) = (hasher.clone(), Arc::clone(&gate));
            let stranger = login(&format!("stranger-{number}"), false);
            blocked.push(tokio::spawn(wait(hasher, stranger, gate)));
        }
        let mut refused = 0;
        while refused == 0 {
            tokio::task::yield_now().await;
            refused = blocked.iter().filter(|task| task.is_finished()).count();
        }
        let known = tokio::spawn(wait(hasher, login("jo", true), Arc::clone(&gate)));
        drop(open);
        assert!(known.await.unwrap().is_ok());
        for task in blocked {
            let found = task.await.unwrap();
            assert!(matches!(found, Ok(_) | Err(BackendError::Overloaded)));
        }
    }
}
