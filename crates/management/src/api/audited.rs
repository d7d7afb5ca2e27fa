//! Changes that are in the audit log.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use serde_json::Value;

use super::entrance::Sender;
use super::shares::Shares;
use super::{ApiState, Problem};
use crate::audit::{Audit, AuditError, Change, Ended, Look, Watch};
use crate::in_thread::{Unfinished, in_thread};
use crate::login::{Caller, Refusal};

/// Changes at a time at an entrance, of which one caller has half at most; more wait. A change goes
/// on when its caller has left, and keeps its permit: whoever asks and leaves has no more changes
/// under way than whoever waits. Most wait for the disk or for the threads of the interface, which
/// are far fewer.
pub(super) const CHANGES_MAX: u32 = 64;
/// Longest wait for a permit: shorter than that of a request, so that the answer says what it
/// waited for.
const WAIT_TIME: Duration = Duration::from_secs(10);
/// Seconds after which to ask again.
const RETRY_SECS: u64 = 5;
/// Imports at a time, likewise: each waits for its client, so that they have permits of their own.
pub(super) const IMPORTS_MAX: u32 = 8;

/// A change that was made.
pub(super) struct Made<T> {
    pub(super) answer: T,
    /// What was there when it was made.
    pub(super) before: Value,
    /// What is there since.
    pub(super) after: Value,
}

impl ApiState {
    /// Makes a change that is written down before it begins, and with its end afterwards. Once it
    /// has begun it goes on to its end, whatever becomes of the request.
    ///
    /// # Errors
    /// It cannot be written down, or too many changes are under way, and it is not made; the error
    /// of `make`.
    pub(super) async fn audited<T: Send + 'static>(
        &self,
        sender: &Sender,
        change: Change,
        make: impl Future<Output = Result<T, Problem>> + Send + 'static,
    ) -> Result<T, Problem> {
        self.audited_among(&self.changes, sender, change, make)
            .await
    }

    /// The same with a permit of another kind.
    ///
    /// # Errors
    /// As [`ApiState::audited`].
    pub(super) async fn audited_among<T: Send + 'static>(
        &self,
        permits: &Shares,
        sender: &Sender,
        change: Change,
        make: impl Future<Output = Result<T, Problem>> + Send + 'static,
    ) -> Result<T, Problem> {
        let make = async { Ok((make.await?, Ended::done())) };
        self.audited_until(permits, sender, change, make).await
    }

    /// The same of a change of which only its end tells what was there before it and is afterwards:
    /// others may change the same thing at the same time.
    ///
    /// # Errors
    /// As [`ApiState::audited`].
    pub(super) async fn audited_as_made<T: Send + 'static>(
        &self,
        sender: &Sender,
        change: Change,
        make: impl Future<Output = Result<Made<T>, Problem>> + Send + 'static,
    ) -> Result<T, Problem> {
        let make = async {
            let Made {
                answer,
                before,
                after,
            } = make.await?;
            Ok((answer, Ended::done().states(before, after)))
        };
        self.audited_until(&self.changes, sender, change, make)
            .await
    }

    /// In a task of its own. The end of the broker waits for it as for a request: what is not made
    /// then is `unknown` in the log.
    async fn audited_until<T: Send + 'static>(
        &self,
        permits: &Shares,
        sender: &Sender,
        change: Change,
        make: impl Future<Output = Result<(T, Ended), Problem>> + Send + 'static,
    ) -> Result<T, Problem> {
        let scopes = || {
            let login = &self.security.login;
            login.scopes_now(&sender.caller, sender.session.as_ref())
        };
        let allowed = scopes();
        let share = permits.take(&sender.caller, WAIT_TIME).await;
        let share = share.ok_or_else(|| too_many_changes(permits))?;
        if scopes() != allowed {
            return Err(no_longer_allowed());
        }
        let (api, who) = (self.clone(), sender.caller.clone());
        let task = tokio::spawn(async move {
            let made = api.make(who, change, make).await;
            drop(share);
            made
        });
        task.await.map_err(Unfinished::from)?
    }

    async fn make<T>(
        &self,
        caller: Caller,
        change: Change,
        make: impl Future<Output = Result<(T, Ended), Problem>> + Send,
    ) -> Result<T, Problem> {
        let begun = self.in_log(move |audit| audit.begin(&caller, change));
        let pending = begun.await?;
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
        done.unwrap_or_else(|unfinished| Err(AuditError::unfinished(unfinished)))
    }
}

fn no_longer_allowed() -> Problem {
    Problem::new(
        StatusCode::UNAUTHORIZED,
        "login ended",
        "the session or the key of this request has ended, or has other scopes, since it waits for \
         other changes; nothing was done",
        "log in again, or show another key, and repeat the request",
    )
}

fn too_many_changes(permits: &Shares) -> Problem {
    let (all, each) = (permits.most(), permits.most_each());
    let mut problem = Problem::new(
        StatusCode::TOO_MANY_REQUESTS,
        "too many changes",
        format!(
            "{each} changes like this one of this caller, or {all} of all callers, are under way, and \
             it has waited {} s; it was not made",
            WAIT_TIME.as_secs()
        ),
        "ask again when others are made",
    );
    problem.retry_after_secs = Some(RETRY_SECS);
    problem
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

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use futures_util::future::{pending, ready};
    use tokio::sync::oneshot;
    use tokio::time::timeout;

    use super::super::stream::tests::broker_and_api;
    use super::*;
    use crate::audit::AuditQuery;
    use crate::login::{NewKey, ScopeSet};

    /// Much longer than a change of these tests takes.
    const LONG: Duration = Duration::from_secs(20);

    fn change() -> Change {
        Change::new("test.change", "it")
    }

    async fn begin_and_wait(begins: oneshot::Sender<()>, ends: oneshot::Receiver<()>) {
        begins.send(()).unwrap();
        ends.await.unwrap();
    }

    /// Outcome and detail of the last change in the log.
    fn last(api: &ApiState) -> String {
        let query = AuditQuery {
            limit: 1,
            ..AuditQuery::default()
        };
        let entry = api.security.audit.page(&query).unwrap().entries.remove(0);
        format!("{:?} {}", entry.outcome, entry.detail.unwrap_or_default())
    }

    #[tokio::test]
    async fn a_change_whose_caller_has_left_keeps_its_permit_to_its_end() {
        let (broker, api) = broker_and_api();
        let (begins, begun) = oneshot::channel();
        let (end, ends) = oneshot::channel::<()>();
        let asked = api.clone();
        let make = begin_and_wait(begins, ends).map(Ok);
        let request =
            tokio::spawn(
                async move { asked.audited(&Caller::local().into(), change(), make).await },
            );
        begun.await.unwrap();
        request.abort();
        assert!(request.await.unwrap_err().is_cancelled());
        let all_free = timeout(Duration::from_millis(50), api.changes.all_free());
        assert!(all_free.await.is_err(), "the change is under way");
        assert_eq!(last(&api), "Unknown ");
        end.send(()).unwrap();
        timeout(LONG, api.changes.all_free()).await.unwrap();
        assert_eq!(last(&api), "Done ");
        broker.stop();
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_with_too_many_changes_is_told_so_and_others_make_theirs() {
        let (broker, api) = broker_and_api();
        let busy = Sender::from(Caller::anonymous(None));
        for _ in 0..CHANGES_MAX / 2 {
            let make = api.audited(&busy, change(), pending::<Result<(), Problem>>());
            assert!(timeout(Duration::from_secs(1), make).await.is_err());
        }
        let one_more = api.audited(&busy, change(), async { Ok(()) });
        let refused = one_more.await.unwrap_err();
        assert_eq!(
            (refused.status, refused.retry_after_secs),
            (429, Some(RETRY_SECS))
        );
        let other = Sender::from(Caller::local());
        let other = api.audited(&other, change(), async { Ok(()) }).await;
        assert!(other.is_ok());
        broker.stop();
    }

    #[tokio::test]
    async fn a_change_that_waited_is_not_made_for_a_key_that_is_gone_meanwhile() {
        let (broker, api) = broker_and_api();
        let login = &api.security.login;
        let scopes = ScopeSet::ALL;
        let new = NewKey {
            label: "it".to_owned(),
            scopes,
            expires_at: None,
            created_by: "a test".to_owned(),
        };
        let key = login.add_key(new).await.unwrap();
        let sender = Sender::from(Caller::key(&key.id, scopes, None));
        let mut held = Vec::new();
        for _ in 0..CHANGES_MAX / 2 {
            held.extend(api.changes.take(&sender.caller, WAIT_TIME).await);
        }
        let (asked, by) = (api.clone(), sender.clone());
        let waits = tokio::spawn(async move {
            let make = ready(Ok(()));
            asked.audited(&by, change(), make).await
        });
        tokio::task::yield_now().await;
        login.remove_key(key.id).await.unwrap();
        // An import has permits of its own.
        let local = Sender::from(Caller::local());
        let import = api.audited_among(&api.imports, &local, change(), ready(Ok(())));
        assert!(import.await.is_ok());
        drop(held);
        assert_eq!(waits.await.unwrap().unwrap_err().status, 401);
        broker.stop();
    }
}
