//! Changes of a running node and queries to it: [`AccessHandle`] and [`Queries`].
//!
//! ```text
//!   any thread: Queries --task by mail--> each worker: TaskQueue, a portion per turn
//!        ^                                         |
//!        '--------- answers, by a channel ---------'
//! ```

mod change;
mod query;

pub use change::{AccessHandle, Settling};
pub(crate) use change::{Control, settled};
#[cfg(test)]
pub(crate) use query::test_queries;
pub use query::{
    Backlog, Cancellation, ClassOfTime, ConnectionCounts, ConnectionDetail, Cursor, CursorError,
    Figures, Kicked, Limited, OperatorMessage, Page, Presence, PublishOutcome, Published,
    Publisher, Queries, QueryError, ROWS_MAX, RetainedQuery, RetainedRow, SessionDetail,
    SessionFilter, SessionPage, SessionQuery, SessionRow, SortKey, Status, StorageFigures,
    SubscriptionQuery, SubscriptionRow, WildcardText, WillDetail,
};
pub(crate) use query::{QueuedTask, TaskQueue};
