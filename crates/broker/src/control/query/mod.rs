//! Queries and commands of the operator to a running node.
//!
//! A query is a task for the workers, sent by mail. Each worker runs a portion of it per turn, so
//! that a listing of a million sessions delays no client, and the caller merges the answers. A task
//! whose caller no longer waits is dropped. Without pending queries a turn costs one comparison
//! more.

mod bans;
mod best;
mod columns;
mod committing;
mod connections;
mod cursor;
mod detail;
mod explain;
mod export;
mod facets;
mod figures;
mod filter;
mod groups;
mod kick;
mod listeners;
mod login;
mod publish;
mod queue;
mod rank;
mod retained;
mod retained_changes;
mod row;
mod sender;
mod sessions;
mod status;
mod subscriptions;
mod tasks;
#[cfg(test)]
pub(crate) mod test_queries;
mod timeline;
mod topic_metrics;
mod topic_search;
mod topics;
mod trace;
mod undelivered;
mod unsorted;
mod waiting;
mod wildcard;

use std::sync::Arc;
use std::time::Duration;

pub use bans::{AddedBan, BansInForce, NewBan};
pub use columns::SortKey;
pub use connections::ConnectionCounts;
pub use cursor::{Cursor, CursorError};
pub use detail::{ConnectionDetail, Limited, SessionDetail, SessionLimits, WillDetail};
pub use explain::{DropsAnswer, GroupAnswer, PublishAnswer, PublishQuestion, SubscribeQuestion};
pub use export::{Export, SpanTaker};
pub use facets::{Facets, UserCount};
pub use figures::{
    ClassOfTime, CleaningFigures, Figures, ListenerFigures, NodeFigures, SinkFigures,
    StorageFigures, WorkerFigures,
};
pub use filter::{
    ClientProblem, Comparison, Condition, Figure, FilterError, ProblemSet, SessionFilter,
    SessionState,
};
pub use groups::{GroupQuery, GroupRow, MemberRow};
pub use kick::Kicked;
pub use listeners::ListenerState;
pub use login::ClientLogin;
pub use publish::{BATCH_MESSAGES_MAX, OperatorMessage, PublishOutcome, Published};
pub use queue::{DeliveryStage, HeldContent, HeldQuery, HeldRow};
pub use retained::{Publisher, RetainedQuery, RetainedRow};
pub use retained_changes::{RETAINED_BATCH_MAX, RetainedMessage, RetainedRemoved};
pub use row::{Backlog, Presence, SessionRow};
use sender::QUERY_TIMEOUT;
pub(crate) use sender::QueryLimit;
pub(super) use sender::QuerySender;
pub use sender::{Cancellation, QueryError, WorkerTime};
pub use sessions::{SessionPage, SessionQuery};
pub use status::Status;
pub use subscriptions::{SubscriptionQuery, SubscriptionRow};
pub(crate) use tasks::{QueuedTask, TaskQueue};
pub use timeline::{Timeline, TimelineEvent};
pub(super) use topic_metrics::SettingLater;
pub use topic_metrics::TopicMetric;
pub(crate) use topic_metrics::restore_topic_metrics;
pub use topic_search::{ObservedTopics, TOPIC_HITS_MAX, TopicHits};
pub use topics::{
    TOPIC_ROWS_OF_WORKER_MAX, TopicDetail, TopicFigures, TopicLast, TopicOrder, TopicPage,
    TopicQuery, TopicRow,
};
pub(crate) use trace::end_trace;
pub use undelivered::{DropQuery, DropRow, RefusalRow, UndeliveredPage, UndeliveredRow};
pub use waiting::{
    ClientConnection, ClientTraffic, HandshakesNow, PlaceWait, WaitPlace, Waiting, WaitingClient,
    WaitingSubject,
};
pub use wildcard::WildcardText;

use super::Control;
use super::live::Live;
use crate::trace::{LiveTrace, TraceRequest};
use thrum_engine::explain::SubscribeExplained;
use thrum_engine::refusals::Refusal;
use thrum_protection::Subject;

/// Rows of a page at most.
pub const ROWS_MAX: usize = 1000;

/// What became of a live stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamNote {
    /// It was refused: there were too many.
    Refused,
    /// Its reader took nothing for too long.
    Cut,
    /// A state was left out, and a newer one follows.
    Skipped,
}

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
            worked: None,
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

    /// Counts the time that the workers spend on its queries.
    #[must_use]
    pub fn with_worker_time(self) -> (Self, WorkerTime) {
        let worked = WorkerTime::of(self.0.node().workers());
        let counted = Some(worked.clone());
        let sender = QuerySender {
            worked: counted,
            ..self.0
        };
        (Self(sender), worked)
    }

    /// Lists sessions. A session that exists from the first page to the last, and whose sort value
    /// does not change meanwhile, is listed once.
    ///
    /// Each page visits all sessions, so that a whole listing takes time quadratic in their number;
    /// with [`SortKey::Unsorted`] it takes linear time.
    pub fn sessions(&self, query: &SessionQuery) -> Result<SessionPage, QueryError> {
        sessions::sessions(&self.0, query)
    }

    /// Counts the sessions that match a filter by listener, version, state, user and problem, in
    /// one pass.
    pub fn facets(&self, filter: &SessionFilter) -> Result<Facets, QueryError> {
        facets::facets(&self.0, filter)
    }

    /// Lists the messages that a session holds for its client: those in flight, then its queue.
    /// None if no session has that client identifier.
    pub fn held(&self, query: &HeldQuery) -> Result<Option<Page<HeldRow>>, QueryError> {
        queue::held(&self.0, query)
    }

    /// Lists shared groups with the lag of each member.
    pub fn groups(&self, query: &GroupQuery) -> Result<Page<GroupRow>, QueryError> {
        groups::groups(&self.0, query)
    }

    /// Lists dropped messages by reason, client and topic, the most frequent first.
    pub fn drops(&self, query: &DropQuery) -> Result<UndeliveredPage<&'static str>, QueryError> {
        undelivered::list(&self.0, query)
    }

    /// Lists messages that were refused to their publishers by reason, client and topic, the most
    /// frequent first.
    pub fn refusals(&self, query: &DropQuery) -> Result<UndeliveredPage<Refusal>, QueryError> {
        undelivered::list(&self.0, query)
    }

    /// One session in full; none if no session has that client identifier.
    pub fn session(&self, client_id: &str) -> Result<Option<SessionDetail>, QueryError> {
        detail::session(&self.0, client_id)
    }

    /// How a client was admitted; none if no session has that client identifier.
    pub fn client_login(&self, client_id: &str) -> Result<Option<ClientLogin>, QueryError> {
        login::client_login(&self.0, client_id)
    }

    /// The last events of a client, also of one that has gone. After a restart of the broker there
    /// are none.
    pub fn timeline(&self, client_id: &str) -> Result<Timeline, QueryError> {
        timeline::timeline(&self.0, client_id)
    }

    /// What would happen to a PUBLISH of a client; none if no session has that client identifier.
    /// Nothing changes: no counter of clients, no queue, no turn of a shared group.
    pub fn explain_publish(
        &self,
        question: &PublishQuestion,
    ) -> Result<Option<PublishAnswer>, QueryError> {
        explain::publish(&self.0, question)
    }

    /// What would happen to a filter of a client's SUBSCRIBE; none if no session has that client
    /// identifier. Nothing changes.
    pub fn explain_subscribe(
        &self,
        question: &SubscribeQuestion,
    ) -> Result<Option<SubscribeExplained>, QueryError> {
        explain::subscribe(&self.0, question)
    }

    /// Which messages a client did not get, and what would happen to the next one; none if no
    /// session has that client identifier.
    pub fn explain_drops(&self, client_id: &str) -> Result<Option<DropsAnswer>, QueryError> {
        explain::drops(&self.0, client_id)
    }

    /// The topics that messages have.
    pub const fn topics(&self) -> ObservedTopics<'_> {
        ObservedTopics(&self.0)
    }

    /// The filters whose messages are counted, in the order of their texts. No worker is asked.
    pub fn topic_metrics(&self) -> Vec<TopicMetric> {
        topic_metrics::list(&self.0)
    }

    /// Counts the messages that match a filter, from now on and after a restart too; false if they
    /// are counted already.
    pub fn add_topic_metric(&self, filter: &str) -> Result<bool, QueryError> {
        topic_metrics::add(&self.0, filter)
    }

    /// Counts the messages of a filter no longer; false if they are not counted.
    pub fn remove_topic_metric(&self, filter: &str) -> Result<bool, QueryError> {
        topic_metrics::remove(&self.0, filter)
    }

    /// Whether the workers end, or are about to: no query is answered any longer.
    pub fn is_stopping(&self) -> bool {
        self.0.control.is_stopping()
    }

    /// Begins a trace of packets, which ends by itself. The query ends when every worker has begun.
    pub fn trace(&self, request: &TraceRequest) -> Result<LiveTrace, QueryError> {
        trace::trace(&self.0, request)
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

    /// The retained message of a topic; none if there is none.
    pub fn retained_message(&self, topic: &str) -> Result<Option<RetainedRow>, QueryError> {
        retained::retained_message(&self.0, topic)
    }

    /// Removes the retained messages of some topics, at most [`RETAINED_BATCH_MAX`], without a
    /// message to subscribers; returns when that is durable as far as required.
    pub fn remove_retained(&self, topics: Vec<String>) -> Result<RetainedRemoved, QueryError> {
        retained_changes::remove(&self.0, topics)
    }

    /// Stores retained messages, at most [`RETAINED_BATCH_MAX`], without a message to subscribers;
    /// returns their number when they are durable as far as required. Fewer than all means that a
    /// limit is reached: the others are not stored.
    pub fn store_retained(&self, messages: &[RetainedMessage]) -> Result<usize, QueryError> {
        retained_changes::store(&self.0, messages)
    }

    /// Disconnects a client, which may reconnect at once unless it is banned, and ends its session
    /// on demand. None if no session has that client identifier.
    pub fn kick(&self, client_id: &str, ends_session: bool) -> Result<Option<Kicked>, QueryError> {
        kick::kick(&self.0, client_id, ends_session)
    }

    /// Lists the bans in force.
    pub fn bans(&self) -> BansInForce {
        bans::bans(&self.0)
    }

    /// Bans a client, a user or an address, in place of an earlier ban of the same; it is in force
    /// when this returns, and connected clients that it names are disconnected unless it keeps
    /// them. The list is the file that `thrum bans` changes; without a data directory it is in
    /// memory. Waits for the disk.
    pub fn ban(&self, new: NewBan) -> Result<AddedBan, QueryError> {
        bans::ban(&self.0, new)
    }

    /// Lifts a ban of exactly this subject, also a temporary one; false if there is none. Waits for
    /// the disk.
    pub fn lift_ban(&self, subject: &Subject) -> Result<bool, QueryError> {
        bans::lift(&self.0, subject)
    }

    /// Publishes a message. The rules and rate limits of clients do not apply to it, but the
    /// limits of topics and payloads do.
    pub fn publish(&self, message: &OperatorMessage) -> Result<Published, QueryError> {
        publish::publish(&self.0, message)
    }

    /// Publishes several messages in order, at most [`BATCH_MESSAGES_MAX`]; the outcome of each is
    /// that of [`Self::publish`]. None is published if one of them is invalid.
    pub fn publish_all(&self, messages: &[OperatorMessage]) -> Result<Vec<Published>, QueryError> {
        publish::publish_all(&self.0, messages)
    }

    /// All counters and histograms of the node. No worker is asked, so that this answers at once,
    /// also on an overloaded node.
    pub fn figures(&self) -> Figures {
        figures::figures(&self.0)
    }

    /// The listeners of the configuration, by name. No worker is asked.
    pub fn listeners(&self) -> Vec<ListenerState> {
        listeners::listeners(&self.0)
    }

    /// What waits at this moment, by the place where it waits, and the clients for which most of it
    /// waits.
    pub fn waiting(&self, subject: &WaitingSubject) -> Result<Waiting, QueryError> {
        waiting::waiting(&self.0, subject)
    }

    /// Time since the start of the node.
    pub fn uptime(&self) -> Duration {
        self.0.node().clock.elapsed()
    }

    /// What an exporter of metrics, logs and traces needs.
    pub const fn export(&self) -> Export<'_> {
        Export(&self.0)
    }

    /// The figures of the node as they change.
    pub const fn live(&self) -> Live<'_> {
        Live(&self.0)
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
