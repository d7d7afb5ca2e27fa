//! MQTT over QUIC: ends of QUIC connections as ordinary stream sockets, for programs that know no
//! QUIC and no async.
//!
//! ```text
//!   client's UDP --> QuicListener (own threads) == bridge ==> UnixStream, in the caller's loop
//!   QuicDialer (own threads)                    == bridge ==> UnixStream, in the caller's loop
//! ```
//!
//! MQTT travels as it does at EMQX, `NanoMQ` and their clients: ALPN `mqtt`, one bidirectional
//! stream that the client opens, and the end of the stream is the end of the connection.
//!
//! Invariant: nothing in here waits without a limit of its own, and no buffer grows without one:
//! what the socket does not take stays in QUIC's windows, and what QUIC does not take stays in the
//! socket.
//!
//! Without the feature `quinn` there are the same types, and nothing can be dialled or listened
//! for.
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
mod pipe;
#[cfg(feature = "quinn")]
mod seats;
mod server;
#[cfg(feature = "quinn")]
mod transport;

use thrum_settings::LeftOut;

pub use client::{DialError, DialOptions, Dialing, QuicDialer};
pub use server::{Admission, Host, Limits, ListenError, Metrics, Peer, QuicListener};

/// The application protocol that clients and servers agree on in the handshake, as EMQX and
/// `NanoMQ` have it.
pub const ALPN: &[u8] = b"mqtt";

/// The UDP port that MQTT over QUIC has by convention.
pub const DEFAULT_PORT: u16 = 14_567;

/// What QUIC holds for a connection in each direction by default.
const WINDOW_BYTES: u32 = 256 * 1024;

/// What a socket holds by default before its writer has to wait: one write of a broker or two, so
/// that a slow client shows soon.
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
