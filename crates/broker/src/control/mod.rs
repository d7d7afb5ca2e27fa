//! Changes of a running node and queries to it: [`AccessHandle`] and [`Queries`].
//!
//! ```text
//!   any thread: Queries --task by mail--> each worker: TaskQueue, a portion per turn
//!        ^                                         |
//!        '--------- answers, by a channel ---------'
//! ```

mod change;
mod live;
mod query;

pub use change::{AccessHandle, Settling};
pub(crate) use change::{Control, settled};
pub use live::{HISTORY_SECONDS, LIVE_FIGURES, Live, LiveFigure, LiveSecond, LiveUnit, Pulse};
#[cfg(test)]
pub(crate) use query::test_queries;
pub use query::{
    AddedBan, BATCH_MESSAGES_MAX, Backlog, BansInForce, Cancellation, ClassOfTime, CleaningFigures,
    ClientConnection, ClientLogin, ClientProblem, ClientTraffic, Comparison, Condition,
    ConnectionCounts, ConnectionDetail, Cursor, CursorError, DeliveryStage, DropQuery, DropRow,
    DropsAnswer, Export, Facets, Figure, Figures, FilterError, GroupAnswer, GroupQuery, GroupRow,
    HandshakesNow, HeldContent, HeldQuery, HeldRow, Kicked, Limited, ListenerFigures,
    ListenerState, MemberRow, NewBan, NodeFigures, OperatorMessage, Page, PlaceWait, Presence,
    ProblemSet, PublishAnswer, PublishOutcome, PublishQuestion, Published, Publisher, Queries,
    QueryError, RETAINED_BATCH_MAX, ROWS_MAX, RetainedMessage, RetainedQuery, RetainedRemoved,
    RetainedRow, SessionDetail, SessionFilter, SessionLimits, SessionPage, SessionQuery,
    SessionRow, SessionState, SinkFigures, SortKey, SpanTaker, Status, StorageFigures,
    SubscribeQuestion, SubscriptionQuery, SubscriptionRow, Timeline, TimelineEvent, UserCount,
    WaitPlace, Waiting, WaitingClient, WaitingSubject, WildcardText, WillDetail, WorkerFigures,
    WorkerTime,
};
pub use query::{
    ObservedTopics, RefusalRow, StreamNote, TOPIC_HITS_MAX, TOPIC_ROWS_OF_WORKER_MAX, TopicDetail,
    TopicFigures, TopicHits, TopicLast, TopicMetric, TopicOrder, TopicPage, TopicQuery, TopicRow,
    UndeliveredPage, UndeliveredRow,
};
pub(crate) use query::{QueuedTask, TaskQueue, end_trace, restore_topic_metrics};
