//! A backend in the chain: counted, and its errors in the log.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use thrum_access::{Identity, Login, Question, Rules};
use tracing::warn;

use crate::backend::{Backend, BackendError, Verdict};
use crate::clock;
use crate::metrics::Counters;

/// Seconds between two warnings about one backend: one that is down fails for every client.
const WARNING_SECS: u64 = 10;

/// A backend and its counters.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) name: Arc<str>,
    pub(super) backend: Arc<dyn Backend>,
    counters: Arc<Counters>,
    /// Second of [`clock::uptime`] from which there may be a warning again.
    quiet_until: AtomicU64,
    /// Errors since the last warning.
    silent: AtomicU64,
}

impl Link {
    pub(super) fn new(backend: Arc<dyn Backend>, counters: Arc<Counters>) -> Self {
        Self {
            name: backend.name().into(),
            backend,
            counters,
            quiet_until: AtomicU64::new(0),
            silent: AtomicU64::new(0),
        }
    }

    pub(super) async fn login(&self, login: &Login) -> Result<Verdict, BackendError> {
        let verdict = self.backend.login(login).await;
        match &verdict {
            Ok(Verdict::Allow(_)) => self.counters.allowed(),
            Ok(Verdict::Deny(_)) => self.counters.denied(),
            Ok(Verdict::Ignore) => self.counters.ignored(),
            Err(error) => self.failed(error),
        }
        verdict
    }

    /// Counts a login that was decided without asking the backend: by SCRAM.
    pub(super) fn decided(&self, is_allowed: bool) {
        if is_allowed {
            self.counters.allowed();
        } else {
            self.counters.denied();
        }
    }

    pub(super) async fn refresh(&self, identity: &Identity) -> Result<Option<Rules>, BackendError> {
        let rules = self.backend.refresh(identity).await;
        rules.inspect_err(|error| self.failed(error))
    }

    pub(super) async fn authorize(
        &self,
        question: &Question,
    ) -> Result<Option<bool>, BackendError> {
        let decision = self.backend.authorize(question).await;
        match &decision {
            Ok(decision) => self.counters.decided(*decision),
            Err(error) => self.failed(error),
        }
        decision
    }

    pub(super) fn counts(&self) -> crate::metrics::BackendCounts {
        self.counters.snapshot()
    }

    /// The chain gave up while this one was asked.
    pub(super) fn timed_out(&self) {
        self.failed(&BackendError::TimedOut);
    }

    fn failed(&self, error: &BackendError) {
        self.counters.error();
        if matches!(error, BackendError::TimedOut) {
            self.counters.timeout();
        }
        let now = clock::uptime().as_secs();
        if !self.may_warn(now) {
            self.silent.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let silent = self.silent.swap(0, Ordering::Relaxed);
        let backend = &*self.name;
        warn!(backend, %error, silent, "a backend has no answer: clients that need it are denied");
    }

    fn may_warn(&self, now: u64) -> bool {
        let next = self.quiet_until.load(Ordering::Relaxed);
        let until = now + WARNING_SECS;
        now >= next
            && self
                .quiet_until
                .compare_exchange(next, until, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::fake::Fake;

    #[test]
    fn a_backend_that_is_down_is_warned_about_now_and_then() {
        let link = Link::new(Arc::new(Fake::ignoring("fake")), Arc::default());
        let warnings = (0..100).filter(|second| link.may_warn(*second)).count();
        assert_eq!(warnings, 10);
        assert!(!link.may_warn(99));
    }
}
