//! How many requests about benchmarks are answered at a time. Each kind has permits of its own: one
//! that waits for a process, or a client that reads slowly, never holds up the end of a run.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::api::operating::no_program;
use crate::api::pace::Paced;
use crate::api::shares::Shares;
use crate::api::{ApiState, Problem};
use crate::in_thread::Unfinished;
use crate::login::Caller;
use crate::program::{Benchmarks, ProgramError};

/// Checks and comparisons at a time: each is a process that takes memory and a core.
const QUESTIONS_MAX: usize = 1;
/// Lists of the catalogue at a time: the first one is a process, and all others remember it.
const CATALOGUES_MAX: usize = 1;
/// Starts at a time: there is one run at a time, and its check is a process.
const STARTS_MAX: usize = 1;
/// Changes of runs at a time, which take moments: one may wait for the disk.
const CHANGES_MAX: usize = 2;
/// Requests that read what is known of runs, at a time.
const LOOKS_MAX: usize = 2;
/// Files that are handed out at a time, of which one caller has half at most. Each takes one
/// portion of memory.
const FILES_MAX: u32 = 8;
/// Portions of these that are read at a time, each in a thread.
const PORTIONS_MAX: usize = 2;

/// Threads that wait for benchmarks.
pub(in crate::api) const BENCHMARK_TASKS_MAX: usize =
    QUESTIONS_MAX + CATALOGUES_MAX + STARTS_MAX + CHANGES_MAX + LOOKS_MAX + PORTIONS_MAX;

/// Longest wait for a permit: with the time of a process it is shorter than that of a request, so
/// that a caller never waits in vain for something that is done afterwards.
const WAIT_TIME: Duration = Duration::from_secs(5);
/// Seconds after which to ask again: a process has 8 s for its answer.
const RETRY_SECS: u64 = 5;

/// Kinds of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Starts a process, and waits for its answer.
    Question,
    /// Reads the catalogue.
    Catalogue,
    /// Starts a run.
    Start,
    /// Ends or changes a run.
    Change,
    /// Reads what is known.
    Look,
}

/// The permits of a broker, for all of its entrances.
#[derive(Clone, Debug)]
pub(crate) struct Permits {
    questions: Arc<Semaphore>,
    catalogues: Arc<Semaphore>,
    starts: Arc<Semaphore>,
    changes: Arc<Semaphore>,
    looks: Arc<Semaphore>,
    files: Shares,
    /// For the portions of files.
    pub(super) portions: Arc<Semaphore>,
}

impl Kind {
    /// What others of the kind do.
    const fn words(self) -> &'static str {
        match self {
            Self::Question => "scenarios are being checked and runs compared",
            Self::Catalogue => "the scenarios are being listed",
            Self::Start => "runs are being started",
            Self::Change => "runs are being changed",
            Self::Look => "runs are being read",
        }
    }
}

impl Default for Permits {
    fn default() -> Self {
        let of = |most| Arc::new(Semaphore::new(most));
        Self {
            questions: of(QUESTIONS_MAX),
            catalogues: of(CATALOGUES_MAX),
            starts: of(STARTS_MAX),
            changes: of(CHANGES_MAX),
            looks: of(LOOKS_MAX),
            files: Shares::new(FILES_MAX),
            portions: of(PORTIONS_MAX),
        }
    }
}

impl Permits {
    const fn of(&self, kind: Kind) -> &Arc<Semaphore> {
        match kind {
            Kind::Question => &self.questions,
            Kind::Catalogue => &self.catalogues,
            Kind::Start => &self.starts,
            Kind::Change => &self.changes,
            Kind::Look => &self.looks,
        }
    }

    /// That of a file for a caller, to be held while it is read.
    ///
    /// # Errors
    /// The caller reads its part of them, or all callers together all of them, for too long.
    pub(super) async fn file(&self, caller: &Caller) -> Result<Paced, Problem> {
        let share = self.files.take(caller, WAIT_TIME).await;
        let share = share.ok_or_else(|| {
            let of_caller = FILES_MAX / 2;
            too_many(&format!(
                "{of_caller} files of runs are being read by this caller, or {FILES_MAX} by all"
            ))
        })?;
        Ok(Paced::new(share))
    }
}

/// Asks for benchmarks in another thread.
///
/// # Errors
/// Too many requests of this kind wait, or the program refuses.
pub(super) fn ask<T: Send + 'static, F>(
    api: &ApiState,
    kind: Kind,
    ask: F,
) -> impl Future<Output = Result<T, Problem>> + Send + 'static + use<T, F>
where
    F: FnOnce(&dyn Benchmarks) -> Result<T, ProgramError> + Send + 'static,
{
    let program = api.managed.program.clone();
    let permits = Arc::clone(api.managed.benchmark_permits.of(kind));
    async move {
        let program = program.ok_or_else(no_program)?;
        let permit = within_wait(&permits, kind.words()).await?;
        let task = spawn_blocking(move || {
            let done = ask(program.benchmarks());
            drop(permit);
            done
        });
        Ok(task.await.map_err(Unfinished::from)??)
    }
}

async fn within_wait(
    permits: &Arc<Semaphore>,
    what: &str,
) -> Result<OwnedSemaphorePermit, Problem> {
    match timeout(WAIT_TIME, Arc::clone(permits).acquire_owned()).await {
        Ok(Ok(permit)) => Ok(permit),
        // The semaphore is never closed.
        Ok(Err(_)) | Err(_) => Err(too_many(&format!("{what} for others"))),
    }
}

fn too_many(what: &str) -> Problem {
    let mut problem = Problem::new(
        StatusCode::TOO_MANY_REQUESTS,
        "too many requests",
        format!(
            "{what}, and this request has waited {} s; nothing was done",
            WAIT_TIME.as_secs()
        ),
        "ask again when others are answered",
    );
    problem.retry_after_secs = Some(RETRY_SECS);
    problem
}

#[cfg(test)]
mod tests {
    use crate::api::Entrance;
    use crate::api::stream::tests::broker_and_api;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_request_that_waits_too_long_is_told_when_to_ask_again() {
        let permits = Permits::default();
        let held = Arc::clone(&permits.starts).acquire_owned().await;
        let refused = within_wait(&permits.starts, "runs are being started").await;
        let refused = refused.unwrap_err();
        assert_eq!(
            (refused.status, refused.retry_after_secs),
            (429, Some(RETRY_SECS))
        );
        drop(held);
        assert!(within_wait(&permits.starts, "").await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn both_entrances_of_a_broker_have_the_same_permits() {
        let (broker, local) = broker_and_api();
        let (managed, security) = (local.managed.clone(), local.security.clone());
        let port = ApiState::new(managed, security, Entrance::Port);
        let of = |api: &ApiState| Arc::clone(api.managed.benchmark_permits.of(Kind::Question));
        let held = of(&local).acquire_owned().await;
        assert!(within_wait(&of(&port), "").await.is_err());
        drop(held);
        assert!(within_wait(&of(&port), "").await.is_ok());
        broker.stop();
    }
}
