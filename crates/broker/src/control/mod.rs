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
    BATCH_MESSAGES_MAX, Backlog, Cancellation, ClassOfTime, ClientProblem, Comparison, Condition,
    ConnectionCounts, ConnectionDetail, Cursor, CursorError, DeliveryStage, DropPage, DropQuery,
    DropRow, DropsAnswer, Facets, Figure, Figures, FilterError, GroupAnswer, GroupQuery, GroupRow,
    HeldContent, HeldQuery, HeldRow, Kicked, Limited, ListenerFigures, MemberRow, NodeFigures,
    OperatorMessage, Page, Presence, ProblemSet, PublishAnswer, PublishOutcome, PublishQuestion,
    Published, Publisher, Queries, QueryError, RETAINED_BATCH_MAX, ROWS_MAX, RetainedMessage,
    RetainedQuery, RetainedRemoved, RetainedRow, SessionDetail, SessionFilter, SessionLimits,
    SessionPage, SessionQuery, SessionRow, SessionState, SinkFigures, SortKey, Status,
    StorageFigures, SubscribeQuestion, SubscriptionQuery, SubscriptionRow, Timeline, TimelineEvent,
    UserCount, WildcardText, WillDetail, WorkerFigures,
};
pub(crate) use query::{QueuedTask, TaskQueue, end_trace};
