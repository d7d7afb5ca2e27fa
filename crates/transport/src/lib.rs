//! What lies between MQTT and the socket of a client: TLS and WebSocket, as bytes in and bytes out.
//!
//! ```text
//!   Endpoint::parse --> Connector::new (once per target: certificates, request)
//!                         Connector::layers (once per connection; none over plain TCP)
//!   socket --wire_in--> Layers::receive --plain--> MQTT
//!   socket <--wire_out-- Layers::send <--plain-- MQTT
//! ```
//!
//! Invariant: no socket and no thread in here, the caller moves the bytes; the only clock is the
//! one that the TLS library checks the validity of certificates by.
#![forbid(unsafe_code)]

mod connector;
mod endpoint;
mod error;
mod layers;
mod tls;
mod websocket;

pub use connector::{Connector, ConnectorError};
pub use endpoint::{Endpoint, EndpointError, Scheme};
pub use error::LayerError;
pub use layers::Layers;
pub use tls::{TlsOptions, TlsSummary};
