//! TLS for QUIC, from a configuration for any use.

use std::sync::Arc;

use quinn::crypto::rustls::QuicServerConfig;
use rustls::quic::{ServerConnection, Version};

use super::ListenError;
use crate::ALPN;

/// The same certificates and checks with MQTT's application protocol.
///
/// Early data (0-RTT) is off whatever the configuration says: an attacker who records the first
/// packets of a connection can send them again, and a repeated CONNECT takes the session over, or
/// repeats the publishes that followed it.
pub(super) fn for_quic(tls: &rustls::ServerConfig) -> Result<QuicServerConfig, ListenError> {
    let mut tls = tls.clone();
    tls.alpn_protocols = vec![ALPN.to_vec()];
    tls.max_early_data_size = 0;
    let tls = Arc::new(tls);
    // The library would detect this in the first handshake, and panic.
    ServerConnection::new(Arc::clone(&tls), Version::V1, Vec::new()).map_err(ListenError::Tls)?;
    QuicServerConfig::try_from(tls).map_err(|_| ListenError::CipherSuite)
}
