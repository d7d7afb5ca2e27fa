//! Queries and commands of the operator to a running node.
//!
//! A query is a task for the workers, sent by mail. Each worker runs a portion of it per turn, so
//! that a listing of a million sessions delays no client, and the caller merges the answers. A task
//! whose caller no longer waits is dropped. Without pending queries a turn costs one comparison
//! more.

mod best;
mod connections;
mod cursor;
mod detail;
mod figures;
mod kick;
mod publish;
mod rank;
mod retained;
mod row;
mod sender;
mod sessions;
mod status;
mod subscriptions;
mod tasks;
#[cfg(test)]
pub(crate) mod test_queries;
mod unsorted;
mod wildcard;

use std::sync::Arc;
use std::time::Duration;

pub use connections::ConnectionCounts;
pub use cursor::{Cursor, CursorError};
pub use detail::{ConnectionDetail, Limited, SessionDetail, WillDetail};
pub use figures::{ClassOfTime, Figures, StorageFigures};
pub use kick::Kicked;
pub use publish::{OperatorMessage, PublishOutcome, Published};
pub use retained::{Publisher, RetainedQuery, RetainedRow};
pub use row::{Backlog, Presence, SessionRow};
pub(crate) use sender::QueryLimit;
pub use sender::{Cancellation, QueryError};
use sender::{QUERY_TIMEOUT, QuerySender};
pub use sessions::{SessionFilter, SessionPage, SessionQuery, SortKey};
pub use status::Status;
pub use subscriptions::{SubscriptionQuery, SubscriptionRow};
pub(crate) use tasks::{QueuedTask, TaskQueue};
pub use wildcard::WildcardText;

use super::Control;

/// Rows of a page at most.
pub const ROWS_MAX: usize = 1000;

/// One page of a listing.
#[derive(Clone, Debug)]
pub struct Page<T> {
    /// In the order of the query.
    pub rows: Vec<T>,
    /// Start of the next page; none if this is the last one.
    pub next: Option<Cursor>,
}

/// Queries and commands to a running broker, from any thread. A call waits for the answers of the
/// workers; the workers never wait.
///
/// # Errors
/// Every call may fail, for the reasons in [`QueryError`].
#[derive(Clone, Debug)]
pub struct Queries(QuerySender);

#[expect(
    clippy::missing_errors_doc,
    reason = "the type documents the errors of all of them"
)]
impl Queries {
    pub(crate) fn new(control: Arc<Control>) -> Self {
        Self(QuerySender {
            control,
            timeout: QUERY_TIMEOUT,
            cancel: Cancellation::default(),
        })
    }

    /// Fails after that time instead of 10 s.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self(QuerySender { timeout, ..self.0 })
    }

    /// Fails when the cancellation is triggered.
    #[must_use]
    pub fn with_cancellation(self, cancel: Cancellation) -> Self {
        Self(QuerySender { cancel, ..self.0 })
    }

    /// Lists sessions. A session that exists from the first page to the last, and whose sort value
    /// does not change meanwhile, is listed once.
    ///
    /// Each page visits all sessions, so that a whole listing takes time quadratic in their number;
    /// with [`SortKey::Unsorted`] it takes linear time.
    pub fn sessions(&self, query: &SessionQuery) -> Result<SessionPage, QueryError> {
        sessions::sessions(&self.0, query)
    }

    /// One session in full; none if no session has that client identifier.
    pub fn session(&self, client_id: &str) -> Result<Option<SessionDetail>, QueryError> {
        detail::session(&self.0, client_id)
    }

    /// Lists subscriptions. One that exists from the first page to the last is listed once. Each
    /// page visits all sessions.
    pub fn subscriptions(
        &self,
        query: &SubscriptionQuery,
    ) -> Result<Page<SubscriptionRow>, QueryError> {
        subscriptions::subscriptions(&self.0, query)
    }

    /// Lists retained messages without the workers: a page is read as for a new subscriber, in
    /// parts, each under the lock of one shard.
    pub fn retained(&self, query: &RetainedQuery) -> Result<Page<RetainedRow>, QueryError> {
        retained::retained(&self.0, query)
    }

    /// Disconnects a client, which may reconnect at once unless it is banned, and ends its session
    /// on demand. None if no session has that client identifier.
    pub fn kick(&self, client_id: &str, ends_session: bool) -> Result<Option<Kicked>, QueryError> {
        kick::kick(&self.0, client_id, ends_session)
    }

    /// Publishes a message. The rules and rate limits of clients do not apply to it, but the
    /// limits of topics and payloads do.
    pub fn publish(&self, message: &OperatorMessage) -> Result<Published, QueryError> {
        publish::publish(&self.0, message)
    }

    /// All counters and histograms of the node.
    pub fn figures(&self) -> Result<Figures, QueryError> {
        figures::figures(&self.0)
    }

    /// A summary of the node.
    pub fn status(&self) -> Result<Status, QueryError> {
        status::status(&self.0)
    }
}

/// Rows of a page, within the limit.
fn page_rows(limit: usize) -> usize {
    limit.clamp(1, ROWS_MAX)
}
