//! QUIC listeners: they have threads of their own, and hand the workers ordinary sockets.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::time::Duration;

use thrum_quic::{Limits, QuicListener};
use thrum_transport::{Acceptor, describe_certificate};

use super::{Gate, Listening, StartError};
use crate::config::{Bind, Config, ListenerConfig};
use crate::mailbox::{Arrived, Mail};
use crate::node::{Node, WorkerId};
use crate::peer::Peer;

/// How long a stop waits until the last words of all connections have left.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A QUIC listener.
pub(crate) struct QuicPlace {
    pub(super) name: String,
    /// As configured.
    pub(super) asked: Vec<Bind>,
    listener: QuicListener,
    /// Through which gate its next connections come.
    gate: Arc<AtomicU16>,
}

impl std::fmt::Debug for QuicPlace {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("QuicPlace")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl QuicPlace {
    /// Listens from now on.
    pub(super) fn open(
        node: &Arc<Node>,
        config: &Config,
        (name, listener): (&str, &ListenerConfig),
        (number, gate): (u16, &Gate),
    ) -> Result<Self, StartError> {
        let refused = |cause: String| StartError::Listener {
            listener: name.to_owned(),
            cause,
        };
        let addresses: Option<Vec<SocketAddr>> = listener.bind.iter().map(address).collect();
        let addresses = addresses.ok_or_else(|| {
            refused("QUIC needs an address and a port, not a Unix socket".to_owned())
        })?;
        let acceptor = gate.acceptor();
        let tls = tls_of(&acceptor).map_err(refused)?;
        let limits = Limits {
            handshake_time: config.limits.connect_timeout,
            ..Limits::default()
        };
        let number = Arc::new(AtomicU16::new(number));
        let deliver = deliver(node, &number);
        let listener_quic = QuicListener::bind(&addresses, tls, limits, deliver)
            .map_err(|error| refused(error.to_string()))?;
        Ok(Self {
            name: name.to_owned(),
            asked: listener.bind.clone(),
            listener: listener_quic,
            gate: number,
        })
    }

    /// The certificates and the gate of a reload; those who are here keep theirs.
    pub(super) fn renew(&self, number: u16, gate: &Gate) -> Result<(), String> {
        self.renew_tls(&gate.acceptor())?;
        self.gate.store(number, Ordering::Relaxed);
        Ok(())
    }

    /// Other certificates for the next connections.
    pub(super) fn renew_tls(&self, acceptor: &Acceptor) -> Result<(), String> {
        let tls = tls_of(acceptor)?;
        let set = self.listener.set_tls(tls);
        set.map_err(|error| error.to_string())
    }

    /// Nobody new comes in; those who are here stay, and the port stays taken for them.
    pub(super) fn close(&self) {
        self.listener.close();
    }

    /// Ends, once the workers have ended its connections.
    pub(super) fn stop(self) {
        self.listener.drain(LAST_WORDS);
    }

    /// Where clients may come in.
    pub(super) fn addresses(&self, config: &ListenerConfig) -> Vec<Listening> {
        let real = self.listener.addresses().iter();
        real.map(|address| Listening::new(&self.name, config, &Bind::Address(*address)))
            .collect()
    }
}

/// Each new connection goes to the next worker.
fn deliver(
    node: &Arc<Node>,
    gate: &Arc<AtomicU16>,
) -> impl Fn(std::os::unix::net::UnixStream, thrum_quic::Peer) + use<> {
    let (node, gate) = (Arc::clone(node), Arc::clone(gate));
    let next = AtomicUsize::new(0);
    move |stream, peer| {
        let worker = next.fetch_add(1, Ordering::Relaxed) % node.workers();
        let certificate = peer.certificates.first().and_then(describe_certificate);
        let arrived = Arrived {
            socket: OwnedFd::from(stream).into(),
            peer: Peer::Address(peer.address),
            gate: gate.load(Ordering::Relaxed),
            certificate: certificate.map(Arc::new),
        };
        let worker = WorkerId::new(u16::try_from(worker).unwrap_or(0));
        node.mailbox(worker).push(Mail::Arrived(Box::new(arrived)));
    }
}

fn address(bind: &Bind) -> Option<SocketAddr> {
    match bind {
        Bind::Address(address) => Some(*address),
        Bind::Unix(_) => None,
    }
}

fn tls_of(acceptor: &Acceptor) -> Result<&rustls::ServerConfig, String> {
    let missing = "QUIC is always encrypted: set tls.cert and tls.key, or tls_from";
    acceptor.tls_config().ok_or_else(|| missing.to_owned())
}
