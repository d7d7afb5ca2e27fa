//! MQTT over QUIC: ends of QUIC connections as ordinary stream sockets, for programs without QUIC
//! and async code.
//!
//! ```text
//!   client's UDP --> QuicListener (own threads) == bridge ==> UnixStream, in the caller's loop
//!   QuicDialer (own threads)                    == bridge ==> UnixStream, in the caller's loop
//! ```
//!
//! The mapping is that of EMQX, `NanoMQ` and their clients: ALPN `mqtt`, one bidirectional stream
//! that the client opens, and the end of the stream is the end of the connection.
//!
//! Invariant: every wait has a limit of its own, and no buffer grows without one: bytes that the
//! socket does not take stay in QUIC's windows, and bytes that QUIC does not take stay in the
//! socket.
//!
//! Without the feature `quinn` there are the same types, but they cannot dial or listen.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(feature = "quinn"),
    allow(
        dead_code,
        reason = "what dialer and listener use is there without them"
    )
)]

#[cfg(feature = "quinn")]
mod bridge;
mod client;
#[cfg(feature = "quinn")]
mod permits;
#[cfg(feature = "quinn")]
mod pipe;
mod server;
#[cfg(feature = "quinn")]
mod transport;

use thrum_settings::LeftOut;

pub use client::{DialError, DialOptions, Dialing, QuicDialer};
pub use server::{Admission, Host, Limits, ListenError, Metrics, Peer, QuicListener};

/// The application protocol that clients and servers negotiate in the handshake, as in EMQX and
/// `NanoMQ`.
pub const ALPN: &[u8] = b"mqtt";

/// The conventional UDP port of MQTT over QUIC.
pub const DEFAULT_PORT: u16 = 14_567;

/// Bytes that QUIC holds for a connection in each direction by default.
const WINDOW_BYTES: u32 = 256 * 1024;

/// Bytes that a socket holds by default before its writer has to wait: one or two writes of a
/// broker, so that a slow client is noticed soon.
const PIPE_BYTES: usize = 128 * 1024;

/// This crate, in a program that was built without it.
const LEFT_OUT: LeftOut = LeftOut("quic");

/// Whether this program can dial and listen at all.
///
/// # Errors
/// It was built without QUIC.
pub const fn require() -> Result<(), LeftOut> {
    if cfg!(feature = "quinn") {
        Ok(())
    } else {
        Err(LEFT_OUT)
    }
}
