//! New connections: accepted in batches, within the connect rate and the limit of connections.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use mio::{Interest, Token};
use thrum_access::Certificate;

use super::{Target, Worker};
use crate::connection::{Connection, Phase};
use crate::layered::Layered;
use crate::mailbox::Arrived;
use crate::metrics::Counter;
use crate::peer::Peer;
use crate::socket::Socket;

/// Connections accepted from one listener in one turn.
const ACCEPTS_PER_TURN: usize = 256;
/// Sockets beyond the limit of connected clients that may be in their handshake.
const HANDSHAKES_SPARE: u64 = 1024;
/// Pause after the connect rate was used up: so much of it has come together again.
const RATE_PAUSE: Duration = Duration::from_millis(10);
/// The connect rate is counted in thousandths of a connection, as time is in thousandths of a second.
const THOUSANDTHS: u64 = 1000;
/// Longest pause after a listener's rate was used up: it may become another one meanwhile.
const LISTENER_PAUSE_MAX: Duration = Duration::from_secs(1);
/// While there is too much to do, the worker looks this often whether it may accept again.
const OVERLOAD_PAUSE: Duration = Duration::from_millis(100);
/// Pause after the system had no descriptor left.
const OUT_OF_FILES_PAUSE: Duration = Duration::from_millis(100);

impl Worker {
    /// The listener is readable.
    pub(super) fn accept(&mut self, number: usize) {
        if self.overload.defers_connections() {
            self.local.row().add(Counter::OverloadDeferred, 1);
            self.defer_accept(OVERLOAD_PAUSE);
            return;
        }
        for _ in 0..ACCEPTS_PER_TURN {
            if !self.may_accept() {
                return;
            }
            let Some(gate) = self.listeners.at(number).map(|listener| listener.gate) else {
                return;
            };
            if !self.may_accept_from(gate) {
                return;
            }
            let Some(listener) = self.listeners.at(number) else {
                return;
            };
            match listener.accept() {
                Ok((socket, peer)) => {
                    self.connects_saved = self.connects_saved.saturating_sub(THOUSANDTHS);
                    self.charge_connect(gate);
                    self.open(socket, peer, gate, None);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The peer gave up while it waited.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot accept connections; trying again in 100 ms");
                    self.defer_accept(OUT_OF_FILES_PAUSE);
                    return;
                }
            }
        }
        // More may wait, and the edge has been spent.
        self.accept_again = true;
    }

    /// The pause is over: look at every listener.
    pub(super) fn accept_deferred_now(&mut self) {
        self.accept_at = None;
        self.accept_again = false;
        for number in 0..self.listeners.count() {
            self.accept(number);
        }
    }

    fn defer_accept(&mut self, pause: Duration) {
        let at = self.local.now.plus(pause);
        if self.accept_at.is_none_or(|known| at < known) {
            self.accept_at = Some(at);
            self.timers.insert(at, Target::Accept);
        }
    }

    /// Whether the listener's own rate has a connection left; else those that wait stay in the backlog.
    fn may_accept_from(&mut self, gate: u16) -> bool {
        let now = self.local.now;
        let gate = self.local.gate(gate);
        let Some(pace) = &gate.paces.connects else {
            return true;
        };
        let wait = gate.account.connects.wait(pace, now);
        if wait.is_zero() {
            return true;
        }
        self.local.row().add(Counter::LimitListenerConnects, 1);
        self.defer_accept(wait.min(LISTENER_PAUSE_MAX));
        false
    }

    /// A connection came out of the backlog. Workers that looked at the same moment may take one too many, which the
    /// listener then has to wait for.
    fn charge_connect(&mut self, gate: u16) {
        let now = self.local.now;
        let gate = self.local.gate(gate);
        if let Some(pace) = &gate.paces.connects {
            gate.account.connects.charge(pace, now, 1);
        }
    }

    /// Whether the connect rate has one left; when it is used up the rest waits in the backlog. What was not used
    /// is saved up for a second at most.
    fn may_accept(&mut self) -> bool {
        let rate = self.local.settings.connect_rate;
        if rate == 0 {
            return true;
        }
        let workers = u64::try_from(self.node.workers()).unwrap_or(1);
        let saved_max = (u64::from(rate) * THOUSANDTHS)
            .div_ceil(workers)
            .max(THOUSANDTHS);
        let now = self.local.now;
        // A worker that has just started has saved all it may.
        let waited = self
            .connects_since
            .replace(now)
            .map_or(THOUSANDTHS, |since| {
                u64::try_from(now.since(since).as_millis()).unwrap_or(THOUSANDTHS)
            });
        let earned = waited.min(THOUSANDTHS) * saved_max / THOUSANDTHS;
        self.connects_saved = (self.connects_saved + earned).min(saved_max);
        if self.connects_saved < THOUSANDTHS {
            self.local.row().add(Counter::ConnectRateDeferred, 1);
            self.defer_accept(RATE_PAUSE);
            return false;
        }
        true
    }

    /// A connection that came in where no worker listens.
    pub(super) fn take_in_arrived(&mut self, arrived: Arrived) {
        let Arrived {
            socket,
            peer,
            gate,
            certificate,
        } = arrived;
        self.open(socket, peer, gate, certificate);
    }

    /// A connection that came in.
    pub(super) fn open(
        &mut self,
        socket: Socket,
        peer: Peer,
        gate: u16,
        certificate: Option<Arc<Certificate>>,
    ) {
        let sockets_max = self
            .local
            .settings
            .connections_max
            .saturating_add(HANDSHAKES_SPARE);
        if self.node.open_sockets() >= sockets_max {
            self.local.row().add(Counter::ConnectionsOverLimit, 1);
            return;
        }
        if !self.local.gate(gate).enter() {
            self.local.row().add(Counter::ConnectionsOverLimit, 1);
            if self.may_log() {
                tracing::warn!(%peer, "connection closed: its listener is full (max_connections)");
            }
            return;
        }
        let is_proxied = self.local.gate(gate).proxies.is_some();
        // Of a proxy's client it is asked once the header has said where it comes from.
        if !is_proxied && !self.may_open(peer.address()) {
            self.local.gate(gate).leave();
            return;
        }
        let serial = self.next_serial;
        self.next_serial = self.next_serial.wrapping_add(1);
        let mut connection = Connection::new(socket, peer, gate, serial);
        let gate = self.local.gate(gate);
        if is_proxied {
            if !gate.is_proxy(peer) {
                gate.leave();
                self.refuse_unproxied(peer);
                return;
            }
            connection.phase = Phase::Proxy;
        }
        if !gate.is_quic {
            let layers = gate.acceptor().layers();
            connection.layered = layers.map(|layers| Box::new(Layered::new(layers)));
        }
        if let Some(key) = self.register(connection) {
            self.local.row().add(Counter::ConnectionsOpened, 1);
            if let Some(certificate) = certificate {
                self.certificates.insert(key, certificate);
            }
            self.crowd_grew();
            self.begin_handshake(key);
            // Its CONNECT is mostly there already.
            self.read(key, false);
        }
    }

    fn refuse_unproxied(&mut self, peer: Peer) {
        self.local.row().add(Counter::ProxyRefused, 1);
        if self.may_log() {
            tracing::info!(%peer, "connection closed: it comes from no proxy of this listener (proxy_from)");
        }
    }

    /// Puts the connection into the slab and the poll.
    pub(super) fn register(&mut self, connection: Connection) -> Option<u32> {
        let key = self.local.connections.insert(connection);
        let socket = &mut self.local.connections[key].socket;
        let readable = Interest::READABLE;
        if let Err(error) = self.poll.registry().register(socket, Token(key), readable) {
            tracing::warn!(%error, "cannot watch a new connection; it is closed");
            let connection = self.local.connections.remove(key);
            self.local.gate(connection.gate).leave();
            return None;
        }
        u32::try_from(key).ok()
    }
}
