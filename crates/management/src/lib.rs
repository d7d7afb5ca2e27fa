//! The management interface of a broker: HTTP on a Unix socket in its data directory, and at a
//! port.
//!
//! ```text
//!   socket (service) | port -> hyper -> api::router -> who asks? (login) -> a handler per route
//!     a handler asks the Queries of the broker; a change is in the log (audit) before it begins
//! ```
//!
//! Invariant: the JSON types of the interface are in `api` and `trace` only; a handler accesses the
//! broker through [`Queries`](thrum_broker::Queries) alone, and the program around it through
//! [`Program`]; every route but the login needs a scope, and every size, time and number that a
//! client can choose has a limit with a name.

mod alarms;
pub mod api;
mod audit;
mod clock;
pub mod config;
mod counts;
mod in_thread;
pub mod login;
mod logs;
pub mod metrics;
pub mod otlp;
mod port;
mod program;
mod rest;
mod security;
mod service;
mod stalled;
mod stopped;
mod thing;
mod timestamp;
pub mod trace;
mod wire;

pub use alarms::{Alarms, Outside};
pub use counts::{Figure, InterfaceFigures};
pub use logs::{LogEvent, LogLevel, Logs};
pub use port::HttpServer;
pub use program::{
    BackupEnded, BenchmarkActivity, BenchmarkChange, BenchmarkOrder, BenchmarkRefusal, Benchmarks,
    ChangeOrder, ConfigurationChanges, ListenerOrder, Managed, OpenBackup, OpenRunFile, PinnedKey,
    Program, ProgramError, RollbackOrder,
};
pub use security::{PreparedSettings, Security, SecurityError};
pub use service::{ControlSocket, SOCKET, StartError};
pub use stopped::{StoppedBroker, StoppedChange, StoppedError};
pub use thing::Thing;
