//! QUIC listeners: they have threads of their own, and give the workers ordinary sockets.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use thrum_engine::node::metrics::Counter;
use thrum_engine::peer::Peer;
use thrum_engine::workers::WorkerId;
use thrum_protection::{Pace, SharedBucket};
use thrum_protocol::Time;
use thrum_quic::{Admission, Host, Limits, QuicListener};
use thrum_transport::{Acceptor, describe_certificate};

use super::{Gate, GateParts, Listening, NamedListener, Numbered, StartError};
use crate::config::{Bind, Config, ListenerConfig, Rate};
use crate::mailbox::{Arrived, Mail};
use crate::node::Node;

/// Time for the clients of a closed address to receive their DISCONNECT with its reason, and to
/// close.
///
/// Over a slow path, with a round trip of 300 ms, a lost packet is sent again after half a second
/// and acknowledged by the end of the first second; clients that then do not close have half a
/// second or more.
const DISCONNECT_TIME: Duration = Duration::from_secs(2);

/// While all workers are overloaded, or a connect rate is used up, new connections are tried again
/// after at most this time.
const DEFERRAL_MAX: Duration = Duration::from_millis(100);

/// An address of a QUIC listener.
pub(crate) struct QuicPlace {
    /// Name of its listener.
    pub(super) name: String,
    /// As configured.
    pub(super) asked: Bind,
    /// Unique to this address.
    pub(super) number: u32,
    listener: QuicListener,
    /// The listener's gate from which the last of these was made.
    listener_gate: Arc<Gate>,
    /// The gates of its connections, the last one for the next connection; no other address uses
    /// them.
    gates: Vec<Arc<Numbered>>,
    /// The last of the gates. Guards the moment between the look-up of the gate and the count of a
    /// connection: an uncounted gate is dropped.
    gate: Arc<Mutex<Arc<Numbered>>>,
    /// The connect rates of the address.
    rates: Arc<Rates>,
}

impl std::fmt::Debug for QuicPlace {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("QuicPlace")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// An address that a listener asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct QuicAddress<'a> {
    /// Of the listener.
    pub(super) name: &'a str,
    pub(super) asked: &'a Bind,
    /// Of the place that it gets.
    pub(super) number: u32,
}

impl QuicPlace {
    /// Opens the address.
    pub(super) fn open(
        node: &Arc<Node>,
        address: QuicAddress<'_>,
        renewal: &Renewal,
    ) -> Result<Self, StartError> {
        let QuicAddress {
            name,
            asked,
            number,
        } = address;
        let refused = |cause: String| StartError::Listener {
            listener: name.to_owned(),
            cause,
        };
        let address = address_of(asked).map_err(refused)?;
        let acceptor = renewal.listener_gate.acceptor();
        let tls = tls_of(&acceptor).map_err(refused)?;
        let gate = Arc::new(Mutex::new(Arc::clone(&renewal.gate)));
        let rates = Arc::new(Rates::new(renewal));
        let host = QuicAcceptor {
            node: Arc::clone(node),
            name: name.to_owned(),
            gate: Arc::clone(&gate),
            rates: Arc::clone(&rates),
            next: AtomicUsize::new(0),
            refusals: AtomicU64::new(0),
        };
        let listener = QuicListener::bind(&[address], tls, renewal.limits, host)
            .map_err(|error| refused(error.to_string()))?;
        Ok(Self {
            name: name.to_owned(),
            asked: asked.clone(),
            number,
            listener,
            listener_gate: Arc::clone(&renewal.listener_gate),
            gates: vec![Arc::clone(&renewal.gate)],
            gate,
            rates,
        })
    }

    /// Other certificates for the next connections.
    pub(super) fn renew_tls(&self, acceptor: &Acceptor) -> Result<(), String> {
        let tls = tls_of(acceptor)?;
        let set = self.listener.set_tls(tls);
        set.map_err(|error| error.to_string())
    }

    /// Puts the name, certificates, limits and gate of a reload in force; existing connections keep
    /// theirs.
    pub(super) fn renew(&mut self, name: String, renewal: &Renewal) -> Result<(), String> {
        self.name = name;
        self.listener.set_limits(renewal.limits);
        self.renew_tls(&renewal.listener_gate.acceptor())?;
        self.listener_gate = Arc::clone(&renewal.listener_gate);
        self.rates.renew(renewal);
        let mut current = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        if current.number != renewal.gate.number {
            *current = Arc::clone(&renewal.gate);
            // From here on no new connection counts in the others.
            self.gates.retain(|numbered| !numbered.gate.is_unused());
            self.gates.push(Arc::clone(&renewal.gate));
        }
        Ok(())
    }

    /// Accepts no more connections, sends the clients a DISCONNECT within a time limit, and then
    /// releases the port. The gates that only this address uses identify its clients to the
    /// workers.
    pub(super) fn close(self) -> (Vec<u16>, Option<JoinHandle<()>>) {
        self.listener.close();
        let listener = self.listener;
        let gates = self.gates.iter().map(|numbered| numbered.number).collect();
        let drain = move || {
            listener.drain(DISCONNECT_TIME);
        };
        let thread = Builder::new().name("quic-give-up".to_owned()).spawn(drain);
        if let Err(error) = &thread {
            tracing::warn!(%error, "no thread to tell the clients of a QUIC listener that it ends");
        }
        (gates, thread.ok())
    }

    /// The addresses that the broker listens on.
    pub(super) fn addresses(&self, config: &ListenerConfig) -> Vec<Listening> {
        let real = self.listener.addresses().iter();
        real.map(|address| Listening::new(&self.name, config, &Bind::Address(*address)))
            .collect()
    }
}

/// Settings of an address from a reload on.
#[derive(Debug)]
pub(super) struct Renewal {
    /// The gate that no other address has.
    gate: Arc<Numbered>,
    /// That of its listener.
    listener_gate: Arc<Gate>,
    /// `limits.connect_rate`.
    connect_rate: Option<Pace>,
    limits: Limits,
}

impl Renewal {
    /// Settings for one address of that listener.
    pub(super) fn new(
        node: &Node,
        config: &Config,
        of: NamedListener<'_>,
        gate: &Arc<Gate>,
        before: Option<&QuicPlace>,
    ) -> Result<Self, StartError> {
        let NamedListener {
            name,
            config: listener,
        } = of;
        let refused = |cause: String| StartError::Listener {
            listener: name.to_owned(),
            cause,
        };
        let acceptor = gate.acceptor();
        tls_of(&acceptor).map_err(refused)?;
        // Only files have changed: the address keeps its gate.
        let same = before.filter(|place| Arc::ptr_eq(&place.listener_gate, gate));
        let own = if let Some(own) = same.and_then(|place| place.gates.last()) {
            Arc::clone(own)
        } else {
            let parts = GateParts {
                config: listener,
                acceptor,
                username: gate.username,
            };
            let own = Gate::new(name, parts, Some(gate));
            super::plan::numbered(&node.gates, name, own)?
        };
        let connections_max = match listener.max_connections {
            0 => Limits::default().connections_max,
            own => usize::try_from(own).unwrap_or(usize::MAX),
        };
        Ok(Self {
            gate: own,
            listener_gate: Arc::clone(gate),
            connect_rate: Pace::new(&Rate::per_second(config.limits.connect_rate.into())),
            limits: Limits {
                connections_max,
                handshake_time: config.limits.connect_timeout,
                ..Limits::default()
            },
        })
    }
}

/// The connect rates of an address: of its listener, and of the node.
#[derive(Debug)]
struct Rates {
    /// Guards the settings that a reload replaces: read for a moment for each new connection.
    in_force: RwLock<(Arc<Gate>, Option<Pace>)>,
}

impl Rates {
    fn new(renewal: &Renewal) -> Self {
        Self {
            in_force: RwLock::new((Arc::clone(&renewal.gate.gate), renewal.connect_rate)),
        }
    }

    fn renew(&self, renewal: &Renewal) {
        let in_force = self.in_force.write();
        *in_force.unwrap_or_else(PoisonError::into_inner) =
            (Arc::clone(&renewal.gate.gate), renewal.connect_rate);
    }

    /// Takes one connection from each rate, or returns the time to wait. A client takes from the
    /// last half only after it has proved its address: an attacker with forged addresses must not
    /// use up the rate for others.
    fn take(&self, node: &Node, is_proven: bool) -> Admission {
        let now = node.clock.now();
        let in_force = self.in_force.read();
        let (gate, of_node) = &*in_force.unwrap_or_else(PoisonError::into_inner);
        let rates = [
            (of_node, &*node.connects, Counter::ConnectRateDeferred),
            (
                &gate.paces.connects,
                &gate.account.connects,
                Counter::LimitListenerConnects,
            ),
        ];
        let mut is_scarce = false;
        for (pace, bucket, counter) in rates {
            let Some(pace) = pace else { continue };
            let wait = bucket.wait(pace, now);
            if !wait.is_zero() {
                node.state.metrics.add_elsewhere(counter, 1);
                return Admission::Later(wait.min(DEFERRAL_MAX));
            }
            is_scarce |= is_half_used(bucket, pace, now);
        }
        if is_scarce && !is_proven {
            return Admission::Proven;
        }
        for (pace, bucket, _) in rates {
            if let Some(pace) = pace {
                bucket.charge(pace, now, 1);
            }
        }
        Admission::Now
    }
}

fn is_half_used(bucket: &SharedBucket, pace: &Pace, now: Time) -> bool {
    let whole = SharedBucket::default().left(pace, now);
    bucket.left(pace, now) <= whole / 2
}

/// Accepts connections: each new one goes to the next worker with capacity.
struct QuicAcceptor {
    node: Arc<Node>,
    name: String,
    /// The gate of the next connections.
    gate: Arc<Mutex<Arc<Numbered>>>,
    rates: Arc<Rates>,
    next: AtomicUsize,
    refusals: AtomicU64,
}

impl Host for QuicAcceptor {
    fn on_connection(&self, socket: UnixStream, peer: thrum_quic::Peer) {
        let certificate = peer.certificates.first().and_then(describe_certificate);
        let arrived = Arrived {
            socket: OwnedFd::from(socket).into(),
            peer: Peer::from(peer.address),
            gate: self.held_gate(),
            certificate: certificate.map(Arc::new),
        };
        let mail = Mail::Arrived(Box::new(arrived));
        self.node.mailbox(self.next_worker()).push(mail);
    }

    fn admission(&self, is_proven: bool) -> Admission {
        if self.node.all_defer_connections() {
            let metrics = &self.node.state.metrics;
            metrics.add_elsewhere(Counter::OverloadDeferred, 1);
            return Admission::Later(DEFERRAL_MAX);
        }
        self.rates.take(&self.node, is_proven)
    }

    fn on_refusal(&self, peer: SocketAddr) {
        let metrics = &self.node.state.metrics;
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

/// Checks the settings that need no sockets: addresses and TLS.
///
/// # Errors
/// The setting that is missing or impossible.
pub(super) fn check(addresses: &[Bind], acceptor: &Acceptor) -> Result<(), String> {
    thrum_quic::require().map_err(|left_out| left_out.to_string())?;
    for asked in addresses {
        address_of(asked)?;
    }
    tls_of(acceptor).map(drop)
}

fn address_of(asked: &Bind) -> Result<SocketAddr, String> {
    match asked {
        Bind::Address(address) => Ok(*address),
        Bind::Unix(_) => Err("QUIC needs an address and a port, not a Unix socket".to_owned()),
    }
}

impl QuicAcceptor {
    /// Gate of a connection that is on its way to a worker from now on.
    fn held_gate(&self) -> u16 {
        let current = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        current.gate.hold();
        current.number
    }

    /// The next worker in turn; overloaded workers are skipped, unless all are.
    fn next_worker(&self) -> WorkerId {
        let workers = self.node.workers();
        let first = self.next.fetch_add(1, Ordering::Relaxed);
        let in_turn = (0..workers).map(|step| {
            let worker = first.wrapping_add(step) % workers;
            WorkerId::new(worker)
        });
        let mut free = in_turn
            .clone()
            .filter(|worker| !self.node.defers_connections(*worker));
        free.next()
            .or_else(|| in_turn.clone().next())
            .unwrap_or(WorkerId::new(0))
    }
}

fn tls_of(acceptor: &Acceptor) -> Result<&rustls::ServerConfig, String> {
    let missing = "QUIC is always encrypted: set tls.cert and tls.key, or tls_from";
    acceptor.tls_config().ok_or_else(|| missing.to_owned())
}
