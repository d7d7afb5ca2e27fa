//! The listener of a program that was built without QUIC.

use std::net::SocketAddr;
use std::time::Duration;

use super::{Host, Limits, ListenError};

/// Listens for MQTT over QUIC: not supported by this build.
#[derive(Debug)]
pub enum QuicListener {}

impl QuicListener {
    /// Refuses.
    ///
    /// # Errors
    /// Always.
    pub fn bind(
        _addresses: &[SocketAddr],
        _tls: &rustls::ServerConfig,
        _limits: Limits,
        _host: impl Host,
    ) -> Result<Self, ListenError> {
        Err(ListenError::LeftOut(crate::LEFT_OUT))
    }

    /// As in a complete program.
    pub fn addresses(&self) -> &[SocketAddr] {
        match *self {}
    }

    /// As in a complete program.
    ///
    /// # Errors
    /// It cannot be called.
    pub fn set_tls(&self, _tls: &rustls::ServerConfig) -> Result<(), ListenError> {
        match *self {}
    }

    /// As in a complete program.
    pub fn set_limits(&self, _limits: Limits) {
        match *self {}
    }

    /// As in a complete program.
    pub fn close(&self) {
        match *self {}
    }

    /// As in a complete program.
    pub fn drain(self, _within: Duration) -> usize {
        match self {}
    }
}
