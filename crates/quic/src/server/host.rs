//! The interface to the owner of a listener.

use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustls::pki_types::CertificateDer;

/// The client of a connection.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Its address at the end of the handshake; QUIC's connections survive a change of it.
    pub address: SocketAddr,
    /// The address that it connected to, as it was bound.
    pub local: SocketAddr,
    /// The requested server name.
    pub server_name: Option<String>,
    /// Its certificate and intermediate certificates, checked as the TLS configuration requires;
    /// empty if it has none.
    pub certificates: Vec<CertificateDer<'static>>,
}

/// Receives the connections, in a thread of the listener: no method may block.
pub trait Host: Send + Sync + 'static {
    /// A connection and the non-blocking stream socket that carries its plain bytes of MQTT. The
    /// end of the socket is the end of the connection.
    fn on_connection(&self, socket: UnixStream, peer: Peer);

    /// Asked about each new connection before any resource is spent on it; `is_proven` tells
    /// whether its client has shown that it receives at its address. An admitted connection counts,
    /// whether or not its handshake succeeds.
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
    /// Admitted if its client proves its address; otherwise the client is asked to.
    Proven,
    /// It waits in the listener's queue and is asked about again after this time.
    Later(Duration),
}

impl<F: Fn(UnixStream, Peer) + Send + Sync + 'static> Host for F {
    fn on_connection(&self, socket: UnixStream, peer: Peer) {
        self(socket, peer);
    }
}
