//! A backend in the chain: counted, and its errors in the log.

use std::sync::Arc;

use thrum_access::{Identity, Login, Question, Rules};
use tracing::warn;

use crate::backend::{Backend, BackendError, Verdict};
use crate::clock;
use crate::metrics::Counters;
use crate::panics;
use crate::warning_limit::WarningLimit;

/// A backend and its counters.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) name: Arc<str>,
    pub(super) backend: Arc<dyn Backend>,
    counters: Arc<Counters>,
    warnings: WarningLimit,
}

impl Link {
    pub(super) fn new(backend: Arc<dyn Backend>, counters: Arc<Counters>) -> Self {
        Self {
            name: backend.name().into(),
            backend,
            counters,
            warnings: WarningLimit::new(),
        }
    }

    pub(super) async fn login(&self, login: &Login) -> Result<Verdict, BackendError> {
        let verdict = panics::caught(self.backend.login(login)).await;
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
        let rules = panics::caught(self.backend.refresh(identity)).await;
        rules.inspect_err(|error| self.failed(error))
    }

    pub(super) async fn authorize(
        &self,
        question: &Question,
    ) -> Result<Option<bool>, BackendError> {
        let decision = panics::caught(self.backend.authorize(question)).await;
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
        let Some(silent) = self.warnings.now(clock::uptime().as_secs()) else {
            return;
        };
        let backend = &*self.name;
        warn!(backend, %error, silent, "a backend has no answer: clients that need it are denied");
    }
}
