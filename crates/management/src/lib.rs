//! The management interface of a broker: HTTP on a Unix socket in its data directory.
//!
//! ```text
//!   socket (service) -> hyper -> api::router -> a handler per route -> Queries of the broker
//! ```
//!
//! Invariant: the JSON types of the interface are in `api` only; a handler accesses the broker
//! through [`Queries`](thrum_broker::Queries) alone, and every size, time and number that a client
//! can choose has a limit with a name.

pub mod api;
mod service;
mod timestamp;

pub use service::{ControlSocket, SOCKET, StartError};
