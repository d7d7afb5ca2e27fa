//! New connections: accepted in batches, within the connect rate and the limit of connections.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use mio::Interest;
use thrum_access::Certificate;
use thrum_protection::OverloadCause;

use super::{Target, Worker};
use crate::connection::{Connection, Phase};
use crate::ids::ConnectionKey;
use crate::layered::Layered;
use crate::mailbox::Arrived;
use crate::metrics::Counter;
use crate::peer::Peer;
use crate::socket::Socket;

/// Connections accepted from one listener in one turn.
const ACCEPTS_PER_TURN: usize = 256;
/// Connections accepted at each look while turns take long or memory is short: so many cost little,
/// and nobody waits for the end of the overload.
const ACCEPTS_OVERLOADED: usize = 16;
/// Sockets beyond the limit of connected clients that may be in their handshake.
const HANDSHAKES_SPARE: u64 = 1024;
/// Shortest pause after the connect rate was used up, so that connections come in batches.
const RATE_PAUSE_MIN: Duration = Duration::from_millis(10);
/// Longest pause after a connect rate was used up: a reload may change the rate meanwhile.
const RATE_PAUSE_MAX: Duration = Duration::from_secs(1);
/// While there is too much to do, the worker looks this often whether it may accept again.
const OVERLOAD_PAUSE: Duration = Duration::from_millis(100);
/// Pause after the system had no descriptor left.
const OUT_OF_FILES_PAUSE: Duration = Duration::from_millis(100);

impl Worker {
    /// The listener is readable.
    pub(super) fn accept(&mut self, number: usize) {
        let is_overloaded = self.overload.defers_connections();
        if is_overloaded && !self.lets_some_in() {
            return;
        }
        let accepts_max = if is_overloaded {
            ACCEPTS_OVERLOADED
        } else {
            ACCEPTS_PER_TURN
        };
        for _ in 0..accepts_max {
            if self.is_reading_over() {
                break;
            }
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
                    self.charge_connect(gate);
                    self.open_and_read(socket, peer, gate);
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
        self.accept_again |= !is_overloaded;
    }

    /// A connection came out of the backlog; its CONNECT is mostly there already.
    pub(super) fn open_and_read(&mut self, socket: Socket, peer: Peer, gate: u16) {
        if let Some(key) = self.open(socket, peer, gate, None) {
            self.read(key);
        }
    }

    /// There is too much to do: whether some newcomers are let in all the same. The others wait in
    /// the backlog.
    fn lets_some_in(&mut self) -> bool {
        self.local.row().add(Counter::OverloadDeferred, 1);
        self.defer_accept(OVERLOAD_PAUSE);
        let may_enter = self.local.now >= self.let_newcomers_in_from;
        if may_enter {
            self.let_newcomers_in_from = self.local.now.plus(OVERLOAD_PAUSE);
        }
        may_enter && !self.overload.has(OverloadCause::Handshakes)
    }

    /// The pause is over: look at every listener.
    pub(super) fn accept_deferred_now(&mut self) {
        self.accept_at = None;
        self.accept_again = false;
        let count = self.listeners.count();
        // Each listener is the first one at times: under overload the others get nothing.
        self.first_listener = (self.first_listener + 1) % count.max(1);
        for number in 0..count {
            self.accept((self.first_listener + number) % count);
        }
    }

    fn defer_accept(&mut self, pause: Duration) {
        let at = self.local.now.plus(pause);
        if self.accept_at.is_none_or(|known| at < known) {
            self.accept_at = Some(at);
            self.timers.insert(at, Target::Accept);
        }
    }

    /// Whether the listener's own rate has a connection left; else those that wait stay in the
    /// backlog.
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
        self.defer_accept(wait.min(RATE_PAUSE_MAX));
        false
    }

    /// A connection came out of the backlog. Workers that looked at the same moment may take one
    /// too many, which later connections then wait for.
    pub(super) fn charge_connect(&mut self, gate: u16) {
        let now = self.local.now;
        if let Some(pace) = &self.local.settings.connect_pace {
            self.node.connects.charge(pace, now, 1);
        }
        let gate = self.local.gate(gate);
        if let Some(pace) = &gate.paces.connects {
            gate.account.connects.charge(pace, now, 1);
        }
    }

    /// Whether the node's connect rate has one left; when it is used up, the rest waits in the
    /// backlog.
    pub(super) fn may_accept(&mut self) -> bool {
        let Some(pace) = &self.local.settings.connect_pace else {
            return true;
        };
        let wait = self.node.connects.wait(pace, self.local.now);
        if wait.is_zero() {
            return true;
        }
        self.local.row().add(Counter::ConnectRateDeferred, 1);
        self.defer_accept(wait.clamp(RATE_PAUSE_MIN, RATE_PAUSE_MAX));
        false
    }

    /// A connection that came in where no worker listens.
    pub(super) fn take_in_arrived(&mut self, arrived: Arrived) {
        let Arrived {
            socket,
            peer,
            gate,
            certificate,
        } = arrived;
        let opened = self.open(socket, peer, gate, certificate);
        self.local.gate(gate).release();
        if let Some(key) = opened {
            self.list_reader(key);
        }
    }

    /// A connection that came in, to be read.
    pub(super) fn open(
        &mut self,
        socket: Socket,
        peer: Peer,
        gate: u16,
        certificate: Option<Arc<Certificate>>,
    ) -> Option<ConnectionKey> {
        let sockets_max = self
            .local
            .settings
            .connections_max
            .saturating_add(HANDSHAKES_SPARE);
        if self.node.open_sockets() >= sockets_max {
            self.local.row().add(Counter::ConnectionsOverLimit, 1);
            return None;
        }
        if !self.local.enter_gate(gate) {
            self.local.row().add(Counter::ConnectionsOverLimit, 1);
            if self.may_log() {
                tracing::warn!(%peer, "connection closed: its listener is full (max_connections)");
            }
            return None;
        }
        let is_proxied = self.local.gate(gate).proxies.is_some();
        // Of a proxy's client it is asked once the header has said where it comes from.
        if !is_proxied && !self.may_open(peer.address()) {
            self.local.leave_gate(gate);
            return None;
        }
        let serial = self.next_serial;
        self.next_serial = self.next_serial.wrapping_add(1);
        let mut connection = Connection::new(socket, peer, gate, serial);
        connection.phase = Phase::Handshake(certificate);
        if is_proxied {
            if !self.local.gate(gate).is_proxy(peer) {
                self.local.leave_gate(gate);
                self.refuse_unproxied(peer);
                return None;
            }
            connection.phase = Phase::Proxy;
        }
        let gate = self.local.gate(gate);
        if !gate.is_quic {
            let layers = gate.acceptor().layers();
            connection.layered = layers.map(|layers| Box::new(Layered::new(layers)));
        }
        let key = self.register(connection)?;
        self.local.row().add(Counter::ConnectionsOpened, 1);
        self.crowd_grew();
        self.begin_handshake(key);
        let reading = &mut self.local.connections[key].reading;
        reading.note_readable(false);
        Some(key)
    }

    fn refuse_unproxied(&mut self, peer: Peer) {
        self.local.row().add(Counter::ProxyRefused, 1);
        if self.may_log() {
            tracing::info!(%peer, "connection closed: it comes from no proxy of this listener (proxy_from)");
        }
    }

    /// Puts the connection into the slab and the poll.
    pub(super) fn register(&mut self, connection: Connection) -> Option<ConnectionKey> {
        let key = self.local.connections.insert(connection);
        let connection = &mut self.local.connections[key];
        let token = connection.id(key).token();
        let socket = &mut connection.socket;
        let readable = Interest::READABLE;
        if let Err(error) = self.poll.registry().register(socket, token, readable) {
            tracing::warn!(%error, "cannot watch a new connection; it is closed");
            let connection = self.local.connections.remove(key);
            self.local.leave_gate(connection.gate);
            return None;
        }
        Some(key)
    }
}
