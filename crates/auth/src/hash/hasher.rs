//! Threads that verify passwords, because a hash takes milliseconds of a core.

use std::fmt;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, available_parallelism};

use thrum_access::Secret;
use tokio::sync::oneshot;

use super::Verified;
use crate::backend::BackendError;
use crate::clock;
use crate::metrics::Counters;
use crate::panics::{self, Panicked};

/// Most passwords that wait for a thread: about 5 s of work for one, after which a client would have gone.
const QUEUE_MAX: usize = 256;
/// Threads for each core: half, so that messages flow on while everybody logs in.
const CORES_PER_THREAD: usize = 2;

type Job = Box<dyn FnOnce() + Send>;

/// Verifies passwords for one backend; all of them share threads and memory.
#[derive(Clone, Debug)]
pub(crate) struct Hasher {
    pool: Arc<Pool>,
    counters: Arc<Counters>,
}

struct Pool {
    jobs: SyncSender<Job>,
    verified: Verified,
}

impl Hasher {
    /// Starts the threads.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(crate) fn start(verified: Verified) -> std::io::Result<Self> {
        let cores = available_parallelism().map_or(1, NonZeroUsize::get);
        let (jobs, queue) = sync_channel(QUEUE_MAX);
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..(cores / CORES_PER_THREAD).max(1) {
            let queue = Arc::clone(&queue);
            Builder::new()
                .name("auth-hash".to_owned())
                .spawn(move || work(&queue))?;
        }
        Ok(Self {
            pool: Arc::new(Pool { jobs, verified }),
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

    /// Whether the password is the one of the stored hash.
    ///
    /// # Errors
    /// Too many wait already, or the hash cannot be used.
    pub(crate) async fn verify(
        &self,
        stored: &str,
        password: &Secret,
    ) -> Result<bool, BackendError> {
        let verified = &self.pool.verified;
        if verified.contains(stored, password.expose(), clock::uptime()) {
            self.counters.cache_hit();
            return Ok(true);
        }
        self.counters.cache_miss();
        let (hash, secret) = (stored.to_owned(), password.clone());
        let found = self
            .run(move || super::verify(&hash, secret.expose()))
            .await?;
        let is_right = found.map_err(|error| BackendError::BadAnswer(error.to_string()))?;
        if is_right {
            verified.insert(stored, password.expose(), clock::uptime());
        }
        Ok(is_right)
    }

    /// Takes the time of a wrong password. Whether it fits is neither looked up nor remembered: nobody asked.
    ///
    /// # Errors
    /// Too many wait already.
    pub(crate) async fn waste(&self, stored: &str, password: &Secret) -> Result<(), BackendError> {
        let (hash, secret) = (stored.to_owned(), password.clone());
        let found = self
            .run(move || super::verify(&hash, secret.expose()))
            .await?;
        drop(found);
        Ok(())
    }

    /// Runs something that takes long on one of the threads.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, BackendError> {
        let (done, result) = oneshot::channel();
        let job: Job = Box::new(move || {
            // Whoever gave up waiting needs no work done.
            if !done.is_closed() {
                drop(done.send(work()));
            }
        });
        match self.pool.jobs.try_send(job) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                return Err(BackendError::Overloaded);
            }
        }
        result.await.map_err(|_| Panicked.into())
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Pool")
    }
}

/// Ends when the last sender is gone.
fn work(queue: &Mutex<Receiver<Job>>) {
    panics::catch_on_this_thread();
    loop {
        // The lock guards whose turn it is to take the next job; the job itself runs without it.
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match job {
            // A library that panics over a hash which another system gave has dropped what it was to answer with.
            Ok(job) => catch_unwind(AssertUnwindSafe(job)).unwrap_or_default(),
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn hasher() -> Hasher {
        Hasher::start(Verified::new(10, Duration::from_mins(1))).unwrap()
    }

    #[tokio::test]
    async fn a_password_is_hashed_once_and_then_remembered() {
        let hasher = hasher();
        let stored = "$salted-plain$none$$c2VjcmV0";
        let verify = async |password: &str| hasher.verify(stored, &Secret::from(password)).await;
        assert!(!verify("wrong").await.unwrap());
        assert!(verify("secret").await.unwrap());
        assert_eq!(hasher.counters.snapshot().cache_hits, 0);
        assert!(verify("secret").await.unwrap());
        assert!(!verify("wrong").await.unwrap());
        assert_eq!(hasher.counters.snapshot().cache_hits, 1);
    }

    #[tokio::test]
    async fn a_hash_that_cannot_be_used_is_an_error_not_a_wrong_password() {
        let found = hasher()
            .verify("$md5$abc", &Secret::from("secret"))
            .await
            .unwrap_err();
        assert!(matches!(found, BackendError::BadAnswer(_)), "{found}");
    }

    #[tokio::test]
    async fn a_library_that_panics_over_a_hash_costs_one_answer() {
        let hasher = hasher();
        for _ in 0..available_parallelism().unwrap().get() {
            let failed = hasher.run(|| panic!("a library over a hash")).await;
            let failed: Result<(), _> = failed;
            assert!(
                matches!(failed, Err(BackendError::Panicked(_))),
                "{failed:?}"
            );
        }
        assert_eq!(hasher.run(|| 7).await.unwrap(), 7);
    }

    async fn wait(
        hasher: Hasher,
        gate: Arc<Mutex<Receiver<()>>>,
    ) -> Result<Option<()>, BackendError> {
        let opened = move || gate.lock().unwrap().recv().ok();
        hasher.run(opened).await
    }

    #[tokio::test]
    async fn a_full_queue_refuses_more() {
        let hasher = hasher();
        let (open, gate) = sync_channel::<()>(0);
        let gate = Arc::new(Mutex::new(gate));
        let mut blocked = Vec::new();
        // As many as there can be threads, and a queue.
        let cores = available_parallelism().unwrap().get();
        for _ in 0..=QUEUE_MAX + cores {
            let (hasher, gate) = (hasher.clone(), Arc::clone(&gate));
            blocked.push(tokio::spawn(wait(hasher, gate)));
        }
        let mut refused = 0;
        while refused == 0 {
            tokio::task::yield_now().await;
            refused = blocked.iter().filter(|task| task.is_finished()).count();
        }
        drop(open);
        for task in blocked {
            let found = task.await.unwrap();
            assert!(matches!(found, Ok(_) | Err(BackendError::Overloaded)));
        }
    }
}
