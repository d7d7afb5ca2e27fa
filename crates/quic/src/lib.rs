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
#![forbid(unsafe_code)]

mod bridge;
mod client;
mod pipe;
mod seats;
mod server;
mod transport;

pub use client::{DialError, DialOptions, Dialing, QuicDialer};
pub use server::{Admission, Host, Limits, ListenError, Metrics, Peer, QuicListener};

/// The application protocol that clients and servers agree on in the handshake, as EMQX and
/// `NanoMQ` have it.
pub const ALPN: &[u8] = b"mqtt";

/// The UDP port that MQTT over QUIC has by convention.
pub const DEFAULT_PORT: u16 = 14_567;
