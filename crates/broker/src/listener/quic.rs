//! QUIC listeners: they have threads of their own, and hand the workers ordinary sockets.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU64, AtomicUsize, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use thrum_quic::{Host, Limits, QuicListener};
use thrum_transport::{Acceptor, describe_certificate};

use super::{Gate, Listening, StartError};
use crate::config::{Bind, Config, ListenerConfig};
use crate::mailbox::{Arrived, Mail};
use crate::metrics::Counter;
use crate::node::{Node, WorkerId};
use crate::peer::Peer;

/// How long the clients of an address that is given up have to receive their last words, the DISCONNECT with its
/// reason, and to close.
///
/// Over a slow path, of a round trip of 300 ms, a packet that was lost is sent again after half a second and
/// acknowledged by the end of the first second; those who then do not close are waited for half a second or more.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// An address of a QUIC listener.
pub(crate) struct QuicPlace {
    /// Name of its listener.
    pub(super) name: String,
    /// As configured.
    pub(super) asked: Bind,
    /// None has it but this one.
    pub(super) number: u32,
    listener: QuicListener,
    /// Numbers of the gates that its connections came through, the last one for the next; no other address has them.
    gates: Vec<u16>,
    /// The last of the gates.
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
        (name, asked, number): (&str, &Bind, u32),
        renewal: &Renewal,
    ) -> Result<Self, StartError> {
        let refused = |cause: String| StartError::Listener {
            listener: name.to_owned(),
            cause,
        };
        let Bind::Address(address) = asked else {
            let cause = "QUIC needs an address and a port, not a Unix socket";
            return Err(refused(cause.to_owned()));
        };
        let acceptor = renewal.gate.acceptor();
        let tls = tls_of(&acceptor).map_err(refused)?;
        let gate = Arc::new(AtomicU16::new(renewal.number));
        let door = Door {
            node: Arc::clone(node),
            name: name.to_owned(),
            gate: Arc::clone(&gate),
            next: AtomicUsize::new(0),
            refusals: AtomicU64::new(0),
        };
        let listener = QuicListener::bind(&[*address], tls, renewal.limits, door)
            .map_err(|error| refused(error.to_string()))?;
        Ok(Self {
            name: name.to_owned(),
            asked: asked.clone(),
            number,
            listener,
            gates: vec![renewal.number],
            gate,
        })
    }

    /// Other certificates for the next connections.
    pub(super) fn renew_tls(&self, acceptor: &Acceptor) -> Result<(), String> {
        let tls = tls_of(acceptor)?;
        let set = self.listener.set_tls(tls);
        set.map_err(|error| error.to_string())
    }

    /// The name, certificates, limits and gate of a reload; those who are here keep theirs.
    pub(super) fn renew(&mut self, name: String, renewal: &Renewal) -> Result<(), String> {
        self.name = name;
        self.listener.set_limits(renewal.limits);
        self.renew_tls(&renewal.gate.acceptor())?;
        self.gates.push(renewal.number);
        self.gate.store(renewal.number, Ordering::Relaxed);
        Ok(())
    }

    /// Nobody new comes in, those who are here have a moment to be told, and then the port is free. Their own gates
    /// tell the workers who they are.
    pub(super) fn give_up(self) -> (Vec<u16>, Option<JoinHandle<()>>) {
        self.listener.close();
        let (listener, gates) = (self.listener, self.gates);
        let drain = move || {
            listener.drain(LAST_WORDS);
        };
        let thread = Builder::new().name("quic-give-up".to_owned()).spawn(drain);
        if let Err(error) = &thread {
            tracing::warn!(%error, "no thread to tell the clients of a QUIC listener that it ends");
        }
        (gates, thread.ok())
    }

    /// Where clients may come in.
    pub(super) fn addresses(&self, config: &ListenerConfig) -> Vec<Listening> {
        let real = self.listener.addresses().iter();
        real.map(|address| Listening::new(&self.name, config, &Bind::Address(*address)))
            .collect()
    }
}

/// What holds for an address from a reload on.
#[derive(Debug)]
pub(super) struct Renewal {
    /// Number of the gate that no other address has.
    number: u16,
    gate: Arc<Gate>,
    limits: Limits,
}

impl Renewal {
    /// For one address of that listener.
    pub(super) fn new(
        node: &Node,
        config: &Config,
        (name, listener): (&str, &ListenerConfig),
        gate: &Arc<Gate>,
    ) -> Result<Self, StartError> {
        let refused = |cause: String| StartError::Listener {
            listener: name.to_owned(),
            cause,
        };
        tls_of(&gate.acceptor()).map_err(refused)?;
        let connections_max = match listener.max_connections {
            0 => Limits::default().connections_max,
            own => usize::try_from(own).unwrap_or(usize::MAX),
        };
        Ok(Self {
            number: super::plan::number_of(&node.gates, name, gate)?,
            gate: Arc::clone(gate),
            limits: Limits {
                connections_max,
                handshake_time: config.limits.connect_timeout,
                ..Limits::default()
            },
        })
    }
}

/// Lets connections in: each new one goes to the next worker.
struct Door {
    node: Arc<Node>,
    name: String,
    /// Through which gate the next connections come.
    gate: Arc<AtomicU16>,
    next: AtomicUsize,
    refusals: AtomicU64,
}

impl Host for Door {
    fn on_connection(&self, socket: UnixStream, peer: thrum_quic::Peer) {
        let worker = self.next.fetch_add(1, Ordering::Relaxed) % self.node.workers();
        let certificate = peer.certificates.first().and_then(describe_certificate);
        let arrived = Arrived {
            socket: OwnedFd::from(socket).into(),
            peer: Peer::Address(peer.address),
            gate: self.gate.load(Ordering::Relaxed),
            certificate: certificate.map(Arc::new),
        };
        let worker = WorkerId::new(u16::try_from(worker).unwrap_or(0));
        let mail = Mail::Arrived(Box::new(arrived));
        self.node.mailbox(worker).push(mail);
    }

    fn on_refusal(&self, peer: SocketAddr) {
        let metrics = &self.node.metrics;
        metrics.add_elsewhere(Counter::ConnectionsOverLimit, 1);
        let refused = self.refusals.fetch_add(1, Ordering::Relaxed) + 1;
        // A flood of them must not fill the log.
        if refused.is_power_of_two() {
            tracing::warn!(
                %peer,
                listener = self.name,
                refused,
                "connection over QUIC refused: its listener is full (max_connections) or closing"
            );
        }
    }
}

fn tls_of(acceptor: &Acceptor) -> Result<&rustls::ServerConfig, String> {
    let missing = "QUIC is always encrypted: set tls.cert and tls.key, or tls_from";
    acceptor.tls_config().ok_or_else(|| missing.to_owned())
}
