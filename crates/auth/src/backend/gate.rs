//! Access to another system: bounded, timed, and closed for a moment while the system is down.

use std::future::Future;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use super::BackendError;
use crate::panics;

/// Wait before the first new attempt to reach a system that is down.
const PAUSE_MIN: Duration = Duration::from_millis(100);
/// Longest wait between attempts: the time in which the return of a system is noticed.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// Lets a bounded number of requests through, each for a bounded time. While the other system is
/// down, requests fail at once and one at a time tests whether it is back: clients do not wait for
/// an answer that cannot come.
#[derive(Debug)]
pub(crate) struct Gate {
    places: Semaphore,
    time_max: Duration,
    /// Guards a few fields; held for some instructions, never across an `await`.
    breaker: Mutex<Breaker>,
}

/// Whether the other system is down, and when to try again.
#[derive(Debug, Default)]
struct Breaker {
    down: Option<Down>,
    /// Failures counted. Requests that set out in the same round count as one.
    round: u64,
}

#[derive(Debug)]
struct Down {
    retry_at: Instant,
    pause: Duration,
    reason: String,
}

impl Gate {
    /// For a number of simultaneous requests, each with this time limit.
    pub(crate) fn new(requests_max: usize, time_max: Duration) -> Self {
        Self {
            places: Semaphore::new(requests_max.min(Semaphore::MAX_PERMITS)),
            time_max,
            breaker: Mutex::default(),
        }
    }

    /// Runs the request if there is room for it and the system is not known to be down.
    ///
    /// # Errors
    /// Those of the request; panicked; overloaded; timed out; unreachable without having tried.
    pub(crate) async fn pass<T>(
        &self,
        request: impl Future<Output = Result<T, BackendError>>,
    ) -> Result<T, BackendError> {
        let Ok(_place) = self.places.try_acquire() else {
            return Err(BackendError::Overloaded);
        };
        let round = self.breaker(|breaker| breaker.admit(Instant::now()))?;
        let result = timeout(self.time_max, panics::caught(request))
            .await
            .unwrap_or(Err(BackendError::TimedOut));
        self.breaker(|breaker| match &result {
            Err(BackendError::Unreachable(reason)) => breaker.failed(round, Instant::now(), reason),
            // A system whose answers make the library fail is treated like one that does not
            // answer.
            Err(error @ BackendError::Panicked(_)) => {
                breaker.failed(round, Instant::now(), &error.to_string());
            }
            Err(BackendError::TimedOut | BackendError::Overloaded) => {}
            Ok(_) | Err(BackendError::BadAnswer(_)) => breaker.reached(),
        });
        result
    }

    fn breaker<R>(&self, action: impl FnOnce(&mut Breaker) -> R) -> R {
        action(&mut self.breaker.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Breaker {
    /// Admits a request, and returns its round. While the system is down, one in each pause is
    /// admitted.
    fn admit(&mut self, now: Instant) -> Result<u64, BackendError> {
        if let Some(down) = &mut self.down {
            if now < down.retry_at {
                return Err(BackendError::Unreachable(down.reason.clone()));
            }
            down.retry_at = now + down.pause;
        }
        Ok(self.round)
    }

    fn failed(&mut self, round: u64, now: Instant, reason: &str) {
        if round != self.round {
            return;
        }
        self.round += 1;
        let pause = match &self.down {
            Some(down) => (down.pause * 2).min(PAUSE_MAX),
            None => PAUSE_MIN,
        };
        self.down = Some(Down {
            retry_at: now + pause,
            pause,
            reason: reason.to_owned(),
        });
    }

    fn reached(&mut self) {
        self.down = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn down() -> Result<(), BackendError> {
        Err(BackendError::Unreachable("refused".to_owned()))
    }

    /// A request that would be seen if it ran.
    async fn asked(gate: &Gate) -> bool {
        let mut ran = false;
        let result = gate
            .pass(async {
                ran = true;
                down()
            })
            .await;
        assert!(matches!(result, Err(BackendError::Unreachable(_))));
        ran
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_takes_too_long_is_given_up() {
        let gate = Gate::new(1, Duration::from_secs(5));
        let begun = Instant::now();
        let result = gate.pass(std::future::pending::<Result<(), _>>()).await;
        assert!(matches!(result, Err(BackendError::TimedOut)));
        assert_eq!(begun.elapsed(), Duration::from_secs(5));
        assert!(gate.pass(async { Ok(()) }).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn one_request_too_many_is_refused_at_once() {
        let gate = Gate::new(2, Duration::from_secs(5));
        let (first, second, third) = tokio::join!(
            gate.pass(std::future::pending::<Result<(), _>>()),
            gate.pass(std::future::pending::<Result<(), _>>()),
            gate.pass(async { Ok(()) }),
        );
        assert!(matches!(first, Err(BackendError::TimedOut)));
        assert!(matches!(second, Err(BackendError::TimedOut)));
        assert!(matches!(third, Err(BackendError::Overloaded)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_system_that_is_down_is_asked_once_in_a_while() {
        let gate = Gate::new(8, Duration::from_secs(5));
        assert!(asked(&gate).await);
        let mut asked_at = Vec::new();
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(20) {
            asked_at.extend(asked(&gate).await.then(|| begun.elapsed()));
            tokio::time::advance(Duration::from_millis(10)).await;
        }
        assert!((8..=16).contains(&asked_at.len()), "{asked_at:?}");
        let gaps = asked_at
            .windows(2)
            .map(|pair| pair[1].saturating_sub(pair[0]));
        assert!(gaps.max() <= Some(PAUSE_MAX + Duration::from_millis(10)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_backend_that_makes_its_library_panic_is_asked_rarely() {
        let gate = Gate::new(8, Duration::from_secs(5));
        let panics =
            async || -> Result<(), BackendError> { panic!("a library that read nonsense") };
        let first = gate.pass(panics()).await;
        assert!(matches!(first, Err(BackendError::Panicked(_))));
        assert!(!asked(&gate).await);
        tokio::time::advance(PAUSE_MIN).await;
        assert!(asked(&gate).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_system_that_is_back_is_asked_by_all() {
        let gate = Gate::new(8, Duration::from_secs(5));
        assert!(asked(&gate).await);
        assert!(!asked(&gate).await);
        tokio::time::advance(PAUSE_MIN).await;
        assert!(gate.pass(async { Ok(()) }).await.is_ok());
        assert!(asked(&gate).await);
    }

    #[tokio::test(start_paused = true)]
    async fn requests_that_fail_together_count_once() {
        let gate = Gate::new(8, Duration::from_secs(5));
        let fail = || async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            down()
        };
        let (one, two) = tokio::join!(gate.pass(fail()), gate.pass(fail()));
        assert!(one.is_err() && two.is_err());
        tokio::time::advance(PAUSE_MIN).await;
        assert!(asked(&gate).await);
    }
}
