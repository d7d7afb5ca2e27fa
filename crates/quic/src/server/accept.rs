//! From a client's first packet to a socket for the caller.

use std::fmt;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use quinn::crypto::rustls::HandshakeData;
use quinn::{Connection, ConnectionError, Endpoint, Incoming, RecvStream, SendStream, VarInt};
use rustls::pki_types::CertificateDer;
use tokio::time::timeout;

use super::metrics::{Counters, Metrics, count};
use super::{Admission, Host, Limits, Peer};
use crate::bridge::{self, Ending};
use crate::permits::{Permit, Permits};
use crate::pipe;

/// The listener ends the connection before its client does.
pub(super) const CODE_SHUTDOWN: VarInt = VarInt::from_u32(3);

/// The reason that such a client gets.
pub(super) const CLOSED: &[u8] = b"listener closed";

/// The listener has no open files left for the connection.
const CODE_NO_SOCKETS: VarInt = VarInt::from_u32(2);

/// The state that all tasks of a listener share.
pub(super) struct Shared {
    /// The lock is held to copy or to change them.
    pub(super) limits: RwLock<Limits>,
    pub(super) counters: Counters,
    pub(super) host: Box<dyn Host>,
    /// Connections, those in their handshake included.
    pub(super) connections: Arc<Permits>,
    pub(super) handshakes: Arc<Permits>,
    /// New connections are refused.
    pub(super) is_closing: AtomicBool,
}

/// Why a handshake did not become a connection.
enum Failure {
    Lost(ConnectionError),
    Late,
}

impl From<ConnectionError> for Failure {
    fn from(error: ConnectionError) -> Self {
        Self::Lost(error)
    }
}

/// Takes the connections of one address until the endpoint is closed.
pub(super) async fn accept(endpoint: Endpoint, local: SocketAddr, shared: Arc<Shared>) {
    while let Some(incoming) = endpoint.accept().await {
        let is_proven = incoming.remote_address_validated();
        // Later ones wait in the queue of the endpoint, as connections of TCP wait in the backlog.
        let must_prove = loop {
            match shared.host.admission(is_proven) {
                _ if shared.is_closing() => break false,
                Admission::Now => break false,
                Admission::Proven => break !is_proven,
                Admission::Later(wait) => {
                    count(&shared.counters.deferred);
                    tokio::time::sleep(wait).await;
                }
            }
        };
        admit(incoming, must_prove, local, &shared);
    }
}

/// Decides about a first packet, before any resource is spent on it.
fn admit(incoming: Incoming, must_prove: bool, local: SocketAddr, shared: &Arc<Shared>) {
    let (limits, counters) = (shared.limits(), &shared.counters);
    let is_full = shared.connections.taken() >= limits.connections_max;
    if is_full || shared.is_closing() {
        count(&counters.refused);
        shared.host.on_refusal(incoming.remote_address());
        incoming.refuse();
        return;
    }
    let handshakes = shared.handshakes.taken();
    let is_crowded = handshakes >= limits.handshakes_unproven_max;
    if must_prove || is_crowded && !incoming.remote_address_validated() {
        count(&counters.retried);
        // A Retry is always possible for an unproven address.
        incoming.retry().ok();
    } else if handshakes >= limits.handshakes_max {
        count(&counters.ignored);
        incoming.ignore();
    } else {
        // Taken before the next first packet is examined.
        let taken = Taken {
            _connection: shared.connections.take(),
            handshake: shared.handshakes.take(),
        };
        tokio::spawn(serve(incoming, local, limits, taken, Arc::clone(shared)));
    }
}

/// The permits of a new connection.
struct Taken {
    /// Until its end.
    _connection: Permit,
    handshake: Permit,
}

/// One connection from its handshake to its end.
async fn serve(
    incoming: Incoming,
    local: SocketAddr,
    limits: Limits,
    taken: Taken,
    shared: Arc<Shared>,
) {
    let address = incoming.remote_address();
    let opened = open(incoming, limits.handshake_time).await;
    drop(taken.handshake);
    let (connection, (send, receive)) = match opened {
        Ok(opened) => opened,
        Err(Failure::Late) => {
            count(&shared.counters.handshakes_late);
            tracing::debug!(peer = %address, "no byte of MQTT in time over QUIC");
            return;
        }
        Err(Failure::Lost(error)) => {
            count(&shared.counters.handshakes_failed);
            tracing::debug!(peer = %address, %error, "QUIC handshake failed");
            return;
        }
    };
    if shared.is_closing() {
        // Existing clients have been told to disconnect; this one would not be.
        count(&shared.counters.refused);
        connection.close(CODE_SHUTDOWN, CLOSED);
        return;
    }
    let Ok((ours, theirs)) = sockets(limits.pipe_bytes) else {
        let lacking = count(&shared.counters.sockets_lacking);
        if lacking.is_power_of_two() {
            tracing::warn!(
                peer = %address,
                lacking,
                "no socket pair for a QUIC connection: raise the limit of open files"
            );
        }
        connection.close(CODE_NO_SOCKETS, b"no open files left");
        return;
    };
    count(&shared.counters.accepted);
    shared.host.on_connection(theirs, peer(&connection, local));
    let refused = || {
        count(&shared.counters.streams_refused);
    };
    let (ending, _socket) = bridge::run(&connection, send, receive, ours, refused).await;
    if ending == Ending::Lost(ConnectionError::TimedOut) {
        count(&shared.counters.timed_out);
    }
    tracing::debug!(peer = %connection.remote_address(), ?ending, "QUIC connection ended");
}

/// The handshake and the stream of MQTT.
async fn open(
    incoming: Incoming,
    time: Duration,
) -> Result<(Connection, (SendStream, RecvStream)), Failure> {
    let opening = async {
        let connection = incoming.accept()?.await?;
        let stream = connection.accept_bi().await?;
        Ok((connection, stream))
    };
    timeout(time, opening).await.unwrap_or(Err(Failure::Late))
}

fn sockets(bytes: usize) -> std::io::Result<(tokio::net::UnixStream, UnixStream)> {
    let (ours, theirs) = pipe::pair(bytes)?;
    Ok((tokio::net::UnixStream::from_std(ours)?, theirs))
}

fn peer(connection: &Connection, local: SocketAddr) -> Peer {
    let handshake = connection
        .handshake_data()
        .and_then(|any| any.downcast::<HandshakeData>().ok());
    let certificates = connection
        .peer_identity()
        .and_then(|any| any.downcast::<Vec<CertificateDer<'static>>>().ok());
    Peer {
        address: connection.remote_address(),
        local,
        server_name: handshake.and_then(|handshake| handshake.server_name),
        certificates: certificates.map_or_else(Vec::new, |certificates| *certificates),
    }
}

impl Shared {
    fn limits(&self) -> Limits {
        *self.limits.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Relaxed)
    }

    pub(super) fn metrics(&self) -> Metrics {
        self.counters
            .read(self.connections.taken(), self.handshakes.taken())
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("Shared")
            .field(&self.metrics())
            .finish()
    }
}
