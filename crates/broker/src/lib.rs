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
mod mailbox;
mod node;
mod partial;
mod peer;
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
mod traffic;
mod worker;

pub use check::{Checked, check};
pub use config::Config;
pub use control::{
    AccessHandle, Backlog, Cancellation, ClassOfTime, ConnectionCounts, ConnectionDetail, Cursor,
    CursorError, Figures, Kicked, Limited, OperatorMessage, Page, Presence, PublishOutcome,
    Published, Publisher, Queries, QueryError, ROWS_MAX, RetainedQuery, RetainedRow, SessionDetail,
    SessionFilter, SessionPage, SessionQuery, SessionRow, Settling, SortKey, Status,
    StorageFigures, SubscriptionQuery, SubscriptionRow, WildcardText, WillDetail,
};
pub use listener::{Listening, StartError};
pub use node::{Broker, Reload};
pub use protection::{BanFile, BanFileError};
pub use sinks::SinkError;
pub use storage::StorageError;
pub use thrum_engine::access::{Access, Policy, RuleSource};
