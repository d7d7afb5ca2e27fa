//! One node of the broker: worker threads that own their connections and sessions.
//!
//! ```text
//!   listener -> worker (epoll loop) -> connection reads -> session machine -> publish | subscribe
//!                  ^                                                             |
//!                  |-- mailbox <- other workers                     routing, then |
//!               timer wheel                    sessions' output buffers, one write per turn
//! ```
//!
//! Invariant: a worker's sessions and connections are touched by that worker alone; only `clock.rs`
//! reads the clock, only `connection.rs` and `socket.rs` read or write a client's socket, and no
//! queue is without a limit.

mod check;
mod clock;
pub mod config;
mod connection;
#[cfg(feature = "testing")]
pub mod contention;
mod control;
mod door;
mod edge;
mod layered;
mod listener;
mod machine;
mod mailbox;
mod node;
mod operator;
mod partial;
mod process;
mod protection;
mod read_gate;
mod settings;
mod shell_mail;
mod sinks;
mod socket;
mod stage_topic;
mod storage;
mod sys_topics;
mod system;
mod telemetry;
mod trace;
mod traffic;
mod worker;

pub use check::{Checked, check};
pub use config::Config;
pub use control::{
    AccessHandle, AddedBan, BATCH_MESSAGES_MAX, Backlog, BansInForce, Cancellation, ClassOfTime,
    CleaningFigures, ClientConnection, ClientLogin, ClientProblem, ClientTraffic, Comparison,
    Condition, ConnectionCounts, ConnectionDetail, Cursor, CursorError, DeliveryStage, DropQuery,
    DropRow, DropsAnswer, Export, Facets, Figure, Figures, FilterError, GroupAnswer, GroupQuery,
    GroupRow, HandshakesNow, HeldContent, HeldQuery, HeldRow, Kicked, Limited, ListenerFigures,
    ListenerState, MemberRow, NewBan, NodeFigures, OperatorMessage, Page, PlaceWait, Presence,
    ProblemSet, PublishAnswer, PublishOutcome, PublishQuestion, Published, Publisher, Queries,
    QueryError, RETAINED_BATCH_MAX, ROWS_MAX, RetainedMessage, RetainedQuery, RetainedRemoved,
    RetainedRow, SessionDetail, SessionFilter, SessionLimits, SessionPage, SessionQuery,
    SessionRow, SessionState, Settling, SinkFigures, SortKey, SpanTaker, Status, StorageFigures,
    SubscribeQuestion, SubscriptionQuery, SubscriptionRow, Timeline, TimelineEvent, UserCount,
    WaitPlace, Waiting, WaitingClient, WaitingSubject, WildcardText, WillDetail, WorkerFigures,
    WorkerTime,
};
pub use control::{
    HISTORY_SECONDS, LIVE_FIGURES, Live, LiveFigure, LiveSecond, LiveUnit, ObservedTopics, Pulse,
    RefusalRow, StreamNote, TOPIC_HITS_MAX, TOPIC_ROWS_OF_WORKER_MAX, TopicDetail, TopicFigures,
    TopicHits, TopicLast, TopicMetric, TopicOrder, TopicPage, TopicQuery, TopicRow,
    UndeliveredPage, UndeliveredRow,
};
pub use listener::{HttpPort, Listening, StartError, WebSocketClient};
pub use machine::{CpuTimes, MachineFigures, Segments, ThreadTimes, machine_figures};
pub use node::{Broker, Reload};
pub use process::ProcessFigures;
pub use protection::{BanFile, BanFileError};
pub use sinks::SinkError;
pub use storage::StorageError;
pub use system::TcpCounts;
pub use telemetry::{ExportCounts, ExportFate, ExportFigures, Signal};
pub use thrum_engine::access::{Access, DecidedBy, Policy, RuleSource};
pub use thrum_engine::events::drop_reason_name;
pub use thrum_engine::explain::{
    Foreseen, QueueState, SessionReceiver, Step, StepCheck, StepOutcome, SubscribeExplained,
};
pub use thrum_engine::observation::{TOPIC_METRICS_MAX, TopicMetricFigures, WatchedValue};
pub use thrum_engine::peer::Peer;
pub use thrum_engine::refusals::PublishRefusal;
pub use thrum_engine::sinks::SinkCounts;
pub use thrum_engine::spans::{Span, SpanKind, SpanOutcome, TraceContext};
pub use thrum_engine::stages::{MessageStage, STAGE_PARTS, StageFigures, StageSeries};
pub use thrum_engine::timeline::{ClientEvent, EndCause, NewConnection, RefusalCause, SessionEnd};
pub use thrum_protocol::server::DropReason;
pub use thrum_transport::{CertificateIdentity, ServerCertificate, Validity};
pub use trace::{
    Direction, LiveTrace, TRACE_BYTES_MAX, TRACE_PACKETS_MAX, TRACE_TIME_MAX, TRACES_MAX, TraceEnd,
    TraceItem, TraceRequest, TraceSubject, TracedPacket,
};
