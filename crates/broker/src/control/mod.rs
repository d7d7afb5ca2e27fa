//! What is changed on a running node, and what is asked of it: [`AccessHandle`] and [`Queries`].
//!
//! ```text
//!   any thread: Queries --question by mail--> each worker: Questions, a piece a turn
//!        ^                                         |
//!        '--------- answers, by a channel ---------'
//! ```

mod change;
mod query;

pub use change::{AccessHandle, Settling};
pub(crate) use change::{Control, settled};
#[cfg(test)]
pub(crate) use query::by_hand;
pub use query::{
    Backlog, ClassOfTime, ConnectionCounts, ConnectionDetail, Cursor, CursorError, Fate, Figures,
    Kicked, Limited, OperatorMessage, Page, Presence, Published, Publisher, Queries, QueryError,
    ROWS_MAX, RetainedQuery, RetainedRow, SessionDetail, SessionFilter, SessionPage, SessionQuery,
    SessionRow, SortKey, Status, StorageFigures, SubscriptionQuery, SubscriptionRow, WildcardText,
    WillDetail,
};
pub(crate) use query::{Questions, Task};
