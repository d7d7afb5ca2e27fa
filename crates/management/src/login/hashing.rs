//! Argon2 at most so many times at once: each takes 19 MiB and some 20 ms of a core.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread::available_parallelism;

use thrum_access::Secret;
use thrum_auth::hash;
use thrum_auth::users::PasswordHash;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;

use super::refusal::Refusal;

/// Most hashes at once for callers that nobody knows, on any machine: 50 to 200 logins a second.
const STRANGERS_MAX: usize = 4;
/// Cores for each of them, so that messages keep flowing during a flood of logins.
const CORES_PER_HASH: usize = 2;
/// Hashes at once for addresses from which the administrator has logged in before: a flood of
/// strangers does not keep it out.
const KNOWN_MAX: usize = 1;
/// Most at once.
pub(crate) const HASHES_MAX: usize = STRANGERS_MAX + KNOWN_MAX;

/// A hash that no password has, with the parameters of ours: a name that does not exist takes as
/// long as one that does.
const NOBODY: &str = "$argon2id$v=19$m=19456,t=2,p=1$bm8gYWRtaW5pc3RyYXRvcg$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// Permits to hash.
#[derive(Debug)]
pub(super) struct Hashing {
    strangers: Arc<Semaphore>,
    known: Arc<Semaphore>,
}

impl Hashing {
    /// For this machine.
    pub(super) fn new() -> Self {
        let cores = available_parallelism().map_or(1, NonZeroUsize::get);
        let strangers = (cores / CORES_PER_HASH).clamp(1, STRANGERS_MAX);
        Self {
            strangers: Arc::new(Semaphore::new(strangers)),
            known: Arc::new(Semaphore::new(KNOWN_MAX)),
        }
    }

    /// Whether the password is that of the hash; takes the same time, and is false, without one.
    ///
    /// # Errors
    /// All permits are taken: [`Refusal::Busy`].
    pub(super) async fn verify(
        &self,
        hash: Option<&PasswordHash>,
        password: Secret,
        is_known: bool,
    ) -> Result<bool, Refusal> {
        let permit = self.permit(is_known)?;
        let is_somebody = hash.is_some();
        let stored = hash.map_or(NOBODY, PasswordHash::expose).to_owned();
        let verify = move || hash::verify(&stored, password.expose());
        match in_thread(permit, verify).await? {
            Ok(is_right) => Ok(is_right && is_somebody),
            Err(error) => Err(Refusal::Broken(error.to_string())),
        }
    }

    /// Hashes a password.
    ///
    /// # Errors
    /// All permits are taken, or there is no memory.
    pub(super) async fn create(
        &self,
        password: Secret,
        is_known: bool,
    ) -> Result<PasswordHash, Refusal> {
        let permit = self.permit(is_known)?;
        let hash = move || PasswordHash::of(password.expose());
        let hashed = in_thread(permit, hash).await?;
        hashed.map_err(|error| Refusal::Broken(error.to_string()))
    }

    /// A permit for a caller. The known ones have one of their own, and else those of all.
    fn permit(&self, is_known: bool) -> Result<OwnedSemaphorePermit, Refusal> {
        let of = |semaphore: &Arc<Semaphore>| Arc::clone(semaphore).try_acquire_owned().ok();
        let own = is_known.then(|| of(&self.known)).flatten();
        own.or_else(|| of(&self.strangers)).ok_or(Refusal::Busy)
    }
}

/// Hashes beside the threads of sockets.
///
/// # Errors
/// The broker is stopping.
async fn in_thread<T: Send + 'static>(
    permit: OwnedSemaphorePermit,
    hash: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refusal> {
    let begin = move || {
        let hashed = hash();
        drop(permit);
        hashed
    };
    let stopping = |_| Refusal::Broken("the broker is stopping".to_owned());
    spawn_blocking(begin).await.map_err(stopping)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn nobodys_hash_is_verified_like_ours_and_has_no_password() {
        let hash = PasswordHash::parse(NOBODY).unwrap();
        let own = PasswordHash::of(b"secret").unwrap();
        let parameters = |hash: &PasswordHash| {
            let mut parts = hash.expose().split('$').skip(1);
            [parts.next(), parts.next(), parts.next()].map(|part| part.unwrap().to_owned())
        };
        assert_eq!(parameters(&hash), parameters(&own));
        assert_eq!(hash.expose().len(), own.expose().len());
        let hashing = Hashing::new();
        let verify =
            async |hash, password| hashing.verify(hash, Secret::from(password), false).await;
        assert_eq!(verify(Some(&own), "secret").await, Ok(true));
        assert_eq!(verify(Some(&own), "Secret").await, Ok(false));
        assert_eq!(verify(None, "secret").await, Ok(false));
    }

    #[tokio::test]
    async fn a_flood_of_strangers_leaves_a_permit_for_those_that_are_known() {
        let hashing = Hashing::new();
        let taken: Vec<_> = std::iter::from_fn(|| hashing.permit(false).ok()).collect();
        assert!((1..=STRANGERS_MAX).contains(&taken.len()));
        let refused = hashing.verify(None, Secret::from("x"), false).await;
        assert_eq!(refused, Err(Refusal::Busy));
        assert_eq!(
            hashing.verify(None, Secret::from("x"), true).await,
            Ok(false)
        );
        let known = hashing.permit(true).unwrap();
        assert_eq!(hashing.permit(true).err(), Some(Refusal::Busy));
        drop((known, taken));
        assert!(hashing.permit(false).is_ok());
    }
}
