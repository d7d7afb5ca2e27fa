//! Who is told of clients, and what it is told.

use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustls::pki_types::CertificateDer;

/// Who is at the other end of a connection.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Its address at the end of the handshake; QUIC's connections survive a change of it.
    pub address: SocketAddr,
    /// The address that it connected to, as it was bound.
    pub local: SocketAddr,
    /// The server name that it asked for.
    pub server_name: Option<String>,
    /// Its certificate and those that sign it, checked as the TLS configuration asks; empty if it
    /// has none.
    pub certificates: Vec<CertificateDer<'static>>,
}

/// Who is told of clients, in a thread of the listener: nothing in here may block.
pub trait Host: Send + Sync + 'static {
    /// A connection and the non-blocking stream socket that carries its plain bytes of MQTT. The
    /// end of the socket is the end of the connection.
    fn on_connection(&self, socket: UnixStream, peer: Peer);

    /// Asked about each new connection before anything is spent on it; `is_proven` tells whether
    /// its client has shown that it receives at its address. What is admitted counts as a
    /// connection, whether or not its handshake succeeds.
    fn admission(&self, _is_proven: bool) -> Admission {
        Admission::Now
    }

    /// A client at this address was refused: there are `connections_max` of them, or the listener
    /// closes.
    fn on_refusal(&self, _address: SocketAddr) {}
}

/// Whether a new connection may begin its handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It may.
    Now,
    /// It may if its client proves its address; else it is told to.
    Proven,
    /// It waits in the listener's queue and is asked about again after so long.
    Later(Duration),
}

impl<F: Fn(UnixStream, Peer) + Send + Sync + 'static> Host for F {
    fn on_connection(&self, socket: UnixStream, peer: Peer) {
        self(socket, peer);
    }
}
