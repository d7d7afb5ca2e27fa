//! The dialer of a program that was built without QUIC.

use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::{DialError, DialOptions, Dialing};

/// Opens connections of MQTT over QUIC: not supported by this build.
#[derive(Debug)]
pub enum QuicDialer {}

impl QuicDialer {
    /// Refuses.
    ///
    /// # Errors
    /// Always.
    pub fn new(_tls: &rustls::ClientConfig, _options: DialOptions) -> Result<Self, DialError> {
        Err(DialError::LeftOut(crate::LEFT_OUT))
    }

    /// As in a complete program.
    ///
    /// # Errors
    /// It cannot be called.
    pub fn dial(
        &self,
        _addresses: &[SocketAddr],
        _server_name: &str,
    ) -> Result<(UnixStream, Dialing), DialError> {
        match *self {}
    }

    /// As in a complete program.
    ///
    /// # Errors
    /// It cannot be called.
    pub fn probe(
        &self,
        _address: SocketAddr,
        _server_name: &str,
        _within: Duration,
    ) -> Result<(), DialError> {
        match *self {}
    }

    /// As in a complete program.
    pub fn thread_ids(&self) -> Vec<u32> {
        match *self {}
    }
}
