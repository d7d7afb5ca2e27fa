//! Questions to a running node, and orders from whoever runs it.
//!
//! A question goes to the workers by mail. Each answers a piece a turn, so that a listing of a
//! million sessions delays nobody, and the asker puts the answers together. A question that nobody
//! waits for any more is given up. Without questions a turn costs one look more.

mod ask;
mod best;
#[cfg(test)]
pub(crate) mod by_hand;
mod connections;
mod cursor;
mod detail;
mod figures;
mod kick;
mod publish;
mod questions;
mod rank;
mod retained;
mod row;
mod sessions;
mod status;
mod subscriptions;
mod wildcard;

use std::sync::Arc;
use std::time::Duration;

pub(crate) use ask::Desk;
pub use ask::QueryError;
use ask::{Asker, QUESTION_TIME};
pub use connections::ConnectionCounts;
pub use cursor::{Cursor, CursorError};
pub use detail::{ConnectionDetail, Limited, SessionDetail, WillDetail};
pub use figures::{ClassOfTime, Figures, StorageFigures};
pub use kick::Kicked;
pub use publish::{Fate, OperatorMessage, Published};
pub(crate) use questions::{Questions, Task};
pub use retained::{Publisher, RetainedQuery, RetainedRow};
pub use row::{Backlog, Presence, SessionRow};
pub use sessions::{SessionFilter, SessionPage, SessionQuery, SortKey};
pub use status::Status;
pub use subscriptions::{SubscriptionQuery, SubscriptionRow};
pub use wildcard::WildcardText;

use super::Control;

/// Rows of a page at most.
pub const ROWS_MAX: usize = 1000;

/// One page of a listing.
#[derive(Clone, Debug)]
pub struct Page<T> {
    /// In the order that was asked for.
    pub rows: Vec<T>,
    /// Where the next page begins; none if this is the last one.
    pub next: Option<Cursor>,
}

/// Asks a running broker, and tells it to do things, from any thread. Whoever calls waits for the
/// answer; the workers wait for nobody.
///
/// # Errors
/// Every question may have no answer, for the reasons that [`QueryError`] tells.
#[derive(Clone, Debug)]
pub struct Queries(Asker);

#[expect(
    clippy::missing_errors_doc,
    reason = "the same for all of them, and said of the type"
)]
impl Queries {
    pub(crate) const fn new(control: Arc<Control>) -> Self {
        Self(Asker {
            control,
            patience: QUESTION_TIME,
        })
    }

    /// The same, with questions that are given up after that time instead of 10 s.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self(Asker { patience, ..self.0 })
    }

    /// Lists sessions. A session that is there for as long as somebody goes from page to page, and
    /// whose figure does not change meanwhile, is listed once.
    pub fn sessions(&self, query: &SessionQuery) -> Result<SessionPage, QueryError> {
        sessions::sessions(&self.0, query)
    }

    /// One session in full; none if there is no session of that client identifier.
    pub fn session(&self, client_id: &str) -> Result<Option<SessionDetail>, QueryError> {
        detail::session(&self.0, client_id)
    }

    /// Lists subscriptions. One that is there for as long as somebody goes from page to page is
    /// listed once.
    pub fn subscriptions(
        &self,
        query: &SubscriptionQuery,
    ) -> Result<Page<SubscriptionRow>, QueryError> {
        subscriptions::subscriptions(&self.0, query)
    }

    /// Lists retained messages. No worker is asked: a page is read as that of a new subscriber,
    /// a part at a time under the lock of a shard.
    pub fn retained(&self, query: &RetainedQuery) -> Result<Page<RetainedRow>, QueryError> {
        retained::retained(&self.0, query)
    }

    /// Disconnects a client, which may come back at once unless it is banned, and ends its session
    /// if that is wanted. None if there is no session of that client identifier.
    pub fn kick(&self, client_id: &str, ends_session: bool) -> Result<Option<Kicked>, QueryError> {
        kick::kick(&self.0, client_id, ends_session)
    }

    /// Publishes a message. The rules and rates of clients do not hold for it, but the limits of
    /// topics and payloads do.
    pub fn publish(&self, message: &OperatorMessage) -> Result<Published, QueryError> {
        publish::publish(&self.0, message)
    }

    /// All counters and histograms of the node.
    pub fn figures(&self) -> Result<Figures, QueryError> {
        figures::figures(&self.0)
    }

    /// The node in one look.
    pub fn status(&self) -> Result<Status, QueryError> {
        status::status(&self.0)
    }
}

/// Rows that a page is to have, within the limit.
fn page_rows(limit: usize) -> usize {
    limit.clamp(1, ROWS_MAX)
}
