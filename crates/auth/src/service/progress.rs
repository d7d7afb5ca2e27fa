//! How far a login has come in its chain, and what each backend said if somebody wants to know.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::backend::{BackendError, Verdict};
use crate::clock;

/// What a backend did with a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepVerdict {
    /// The credentials are right: no other backend is asked.
    Accepted,
    /// They are not: no other backend is asked.
    Refused,
    /// It does not know the user: the next one is asked.
    NotResponsible,
    /// It has no answer, which denies the login.
    Failed,
    /// It was not asked.
    NotAsked,
}

/// The answer of a backend to a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginStep {
    /// Its name in the configuration.
    pub backend: Arc<str>,
    /// Its answer.
    pub verdict: StepVerdict,
    /// The reason, for the operator; without a secret, and empty if there is nothing to add.
    pub text: String,
    /// How long it took.
    pub took: Duration,
}

/// How far a login has come.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// The backend that was asked last, in case time runs out.
    pub(super) asked: AtomicUsize,
    /// None if nobody wants to know.
    told: Option<Mutex<Told>>,
}

/// The steps so far. Its lock is held for a push.
#[derive(Debug, Default)]
struct Told {
    steps: Vec<LoginStep>,
    /// When the last one began.
    began: Duration,
}

impl Progress {
    /// Keeps the steps.
    pub(super) fn told() -> Self {
        Self {
            told: Some(Mutex::default()),
            ..Self::default()
        }
    }

    /// A backend is asked.
    pub(super) fn begin(&self, index: usize) {
        self.asked.store(index, Ordering::Relaxed);
        if let Some(told) = &self.told {
            told.lock().unwrap_or_else(PoisonError::into_inner).began = clock::uptime();
        }
    }

    /// It has answered.
    pub(super) fn answered(&self, backend: &Arc<str>, verdict: &Result<Verdict, BackendError>) {
        if self.told.is_none() {
            return;
        }
        match verdict {
            Ok(Verdict::Allow(_)) => self.tell(backend, StepVerdict::Accepted, ""),
            Ok(Verdict::Deny(why)) => self.tell(backend, StepVerdict::Refused, why),
            Ok(Verdict::Ignore) => self.tell(backend, StepVerdict::NotResponsible, ""),
            Err(error) => self.tell(backend, StepVerdict::Failed, &error.to_string()),
        }
    }

    /// Keeps a step.
    pub(super) fn tell(&self, backend: &Arc<str>, verdict: StepVerdict, text: &str) {
        let Some(told) = &self.told else {
            return;
        };
        let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
        let took = match verdict {
            StepVerdict::NotAsked => Duration::ZERO,
            _ => clock::uptime().saturating_sub(told.began),
        };
        told.steps.push(LoginStep {
            backend: Arc::clone(backend),
            verdict,
            text: text.to_owned(),
            took,
        });
    }

    /// The steps.
    pub(super) fn into_steps(self) -> Vec<LoginStep> {
        let told = self.told.map(Mutex::into_inner);
        let told = told.map(|told| told.unwrap_or_else(PoisonError::into_inner));
        told.map_or_else(Vec::new, |told| told.steps)
    }
}
