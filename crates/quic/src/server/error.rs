//! Reasons why a listener cannot start.

use std::io;
use std::net::SocketAddr;

use thrum_settings::LeftOut;

/// The reason why a listener cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// The address is in use, or not of this machine.
    #[error("cannot listen on UDP {address}: {cause}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The error of the kernel.
        cause: io::Error,
    },
    /// TLS without version 1.3, which QUIC requires.
    #[error("TLS cannot be used for QUIC, which needs version 1.3: {0}")]
    Tls(rustls::Error),
    /// TLS without the cipher suite of QUIC's first packets.
    #[error("TLS cannot be used for QUIC: the cipher suite TLS13_AES_128_GCM_SHA256 is missing")]
    CipherSuite,
    /// This program was built without QUIC.
    #[error("QUIC: {0}")]
    LeftOut(LeftOut),
    /// No threads.
    #[error("cannot start the threads of the QUIC listener: {0}")]
    Threads(io::Error),
}
