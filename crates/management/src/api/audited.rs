//! Changes that are in the audit log.

use std::sync::Arc;

use axum::http::StatusCode;
use serde_json::Value;

use super::{ApiState, Problem};
use crate::audit::{Audit, AuditError, Change, Ended, Look, Watch};
use crate::in_thread::in_thread;
use crate::login::{Caller, Refusal};

/// A change that was made.
pub(super) struct Made<T> {
    pub(super) answer: T,
    /// What was there when it was made.
    pub(super) before: Value,
    /// What is there since.
    pub(super) after: Value,
}

impl ApiState {
    /// Makes a change that is written down before it begins, and with its end afterwards.
    ///
    /// # Errors
    /// It cannot be written down, and is not made; the error of `make`.
    pub(super) async fn audited<T>(
        &self,
        caller: &Caller,
        change: Change,
        make: impl Future<Output = Result<T, Problem>>,
    ) -> Result<T, Problem> {
        let make = async { Ok((make.await?, Ended::done())) };
        self.audited_until(caller, change, make).await
    }

    /// The same of a change of which only its end tells what was there before it and is afterwards:
    /// others may change the same thing at the same time.
    ///
    /// # Errors
    /// As [`ApiState::audited`].
    pub(super) async fn audited_as_made<T>(
        &self,
        caller: &Caller,
        change: Change,
        make: impl Future<Output = Result<Made<T>, Problem>>,
    ) -> Result<T, Problem> {
        let make = async {
            let Made {
                answer,
                before,
                after,
            } = make.await?;
            Ok((answer, Ended::done().states(before, after)))
        };
        self.audited_until(caller, change, make).await
    }

    async fn audited_until<T>(
        &self,
        caller: &Caller,
        change: Change,
        make: impl Future<Output = Result<(T, Ended), Problem>>,
    ) -> Result<T, Problem> {
        let who = caller.clone();
        let pending = self.in_log(move |audit| audit.begin(&who, change)).await?;
        let (made, ended) = match make.await {
            Ok((made, ended)) => (Ok(made), ended),
            Err(problem) => {
                let ended = Ended::failed(&problem.detail);
                (Err(problem), ended)
            }
        };
        let finished = self.in_log(move |audit| {
            audit.finish(&pending, ended);
            Ok(())
        });
        if let Err(error) = finished.await {
            tracing::error!(%error, "the end of a change is not in the audit log");
        }
        made
    }

    /// Counts a login, and writes it down.
    pub(super) async fn logged_in(&self, caller: &Caller, change: Change) {
        self.security.counts.logged_in();
        self.happened(caller, change).await;
    }

    /// Writes down what has happened already, and goes on if that fails: nobody can log in and look
    /// for the cause otherwise.
    pub(super) async fn happened(&self, caller: &Caller, change: Change) {
        let who = caller.clone();
        let written = self.in_log(move |audit| audit.record(&who, change, Ended::done()));
        if let Err(error) = written.await {
            tracing::error!(caller = %caller.name, %error, "a login is not in the audit log");
        }
    }

    /// Writes down that a caller looks at payloads, before it does.
    ///
    /// # Errors
    /// It cannot be written down, or the caller looks at too many things: it must not see them.
    pub(super) async fn looks(&self, caller: &Caller, look: Look) -> Result<(), Problem> {
        let who = caller.clone();
        match self.in_log(move |audit| audit.watch(&who, &look)).await? {
            Watch::New | Watch::Known => Ok(()),
            Watch::TooMany => Err(too_many_looks()),
        }
    }

    /// Writes down a refusal, unless there are too many of them.
    pub(super) async fn refused(&self, caller: &Caller, change: Change, refusal: &Refusal) {
        self.security.counts.refused(refusal);
        let Some(left_out) = self.security.audit.admits_refusal() else {
            return;
        };
        let mut why = refusal.to_string();
        if left_out > 0 {
            why = format!("{why} ({left_out} refusals before it are left out)");
        }
        let who = caller.clone();
        let written = self.in_log(move |audit| audit.record(&who, change, Ended::refused(&why)));
        if let Err(error) = written.await {
            tracing::warn!(%error, "a refusal is not in the audit log");
        }
    }

    /// Uses the log in another thread.
    pub(super) async fn in_log<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Audit) -> Result<T, AuditError> + Send + 'static,
    ) -> Result<T, AuditError> {
        let audit = Arc::clone(&self.security.audit);
        let done = in_thread(&self.log_permits, move || work(&audit)).await;
        done.unwrap_or_else(|| Err(AuditError::stopped()))
    }
}

fn too_many_looks() -> Problem {
    let mut problem = Problem::new(
        StatusCode::TOO_MANY_REQUESTS,
        "too many looks at payloads",
        "each look at payloads of something else is a line of the audit log, and a caller adds 60 \
         at once and then one in 10 s",
        "wait, look at what you have looked at in the last 10 minutes, or ask without payloads",
    );
    problem.retry_after_secs = Some(10);
    problem
}
