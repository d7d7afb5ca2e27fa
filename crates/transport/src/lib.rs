//! The layers between MQTT and a socket, of a client or of a server: TLS and WebSocket, as bytes in
//! and bytes out.
//!
//! ```text
//!   Endpoint::parse --> Connector::new (once per target: certificates, request)
//!                         Connector::layers (once per connection; none over plain TCP)
//!   Acceptor::new (once per listener; Acceptor::renewed on reload)
//!     Acceptor::layers (once per accepted connection; none over plain TCP)
//!
//!   socket --wire_in--> Layers::receive --plain--> MQTT        ServerLayers alike
//!   socket <--wire_out-- Layers::send <--plain-- MQTT
//! ```
//!
//! Invariant: no socket and no thread in here, the caller moves the bytes; the only clock is that
//! of the TLS library, which checks the validity of certificates.
#![forbid(unsafe_code)]

mod acceptor;
mod certificate;
mod client_fault;
mod connector;
mod endpoint;
mod error;
mod layers;
mod peer_protocol;
mod pieces;
pub mod proxy_protocol;
mod server_layers;
mod stack;
mod tls;
mod websocket;

pub use acceptor::{Acceptor, AcceptorError, ServerCertificate};
pub use certificate::{CertificateIdentity, Validity, describe as describe_certificate};
pub use client_fault::ClientFault;
pub use connector::{Connector, ConnectorError};
pub use endpoint::{Endpoint, EndpointError, Scheme};
pub use error::LayerError;
pub use layers::Layers;
pub use peer_protocol::not_mqtt;
pub use server_layers::ServerLayers;
pub use tls::{
    ClientCertificate, KeyPairFiles, ServerTlsOptions, TlsOptions, TlsSummary, TlsVersion,
    validity_of_file,
};
pub use websocket::WebSocketOptions;
