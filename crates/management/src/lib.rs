//! The management interface of a broker: HTTP on a Unix socket in its data directory, and at a
//! port.
//!
//! ```text
//!   socket (service) | port -> hyper -> api::router -> who asks? (login) -> a handler per route
//!     a handler asks the Queries of the broker; a change is in the log (audit) before it begins
//! ```
//!
//! Invariant: the JSON types of the interface are in `api` and `trace` only; a handler accesses the
//! broker through [`Queries`](thrum_broker::Queries) alone, every route but the login needs a
//! scope, and every size, time and number that a client can choose has a limit with a name.

pub mod api;
mod audit;
mod clock;
pub mod login;
pub mod metrics;
mod port;
mod security;
mod service;
mod timestamp;
pub mod trace;

pub use port::HttpServer;
pub use security::{Security, SecurityError};
pub use service::{ControlSocket, SOCKET, StartError};
