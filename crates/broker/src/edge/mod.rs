//! Network edge of one worker: its connections with their sockets, which it writes and closes, and
//! the choice of the connections that are read.
//!
//! All output passes one function, [`Edge::write`], which knows the part that may leave.

mod closing;
mod lines;
mod listening;
mod metering;
mod readers;
mod tracing_packets;
mod writing;

use std::net::IpAddr;
use std::sync::Arc;

use mio::{Interest, Poll};
use thrum_access::Identity;
use thrum_engine::Engine;
use thrum_engine::ids::{ConnectionId, ConnectionKey, Slot};
use thrum_engine::node::metrics::Counter;
use thrum_engine::output::ConnectionOutput;
use thrum_engine::peer::Peer;
use thrum_engine::table::Table;
use thrum_engine::timers::Target;
use thrum_protection::{Handshakes, Overload};

pub(crate) use self::closing::{DisconnectNotice, Ending};
pub(crate) use self::lines::{Arrival, ClientLines};
pub(crate) use self::listening::Accepting;
#[cfg(test)]
pub(crate) use self::listening::charge_connect;
pub(crate) use self::metering::Meters;
use self::readers::Congestion;
#[cfg(test)]
pub(crate) use self::readers::PRESSURE_CHECK;
pub(crate) use self::readers::Readers;
pub(crate) use self::tracing_packets::{
    flag_traced, keep_tracing, trace_connect, trace_input, trace_unsplit,
};
use self::writing::Unwritten;
use crate::connection::{Connection, Phase, token_of};
use crate::layered::Layered;
use crate::listener::KnownGates;
use crate::mailbox::Arrived;
use crate::node::Node;
use crate::read_gate::PauseReason;
use crate::settings::ShellSettings;
use crate::trace::Traces;

/// Sockets beyond the limit of connected clients that may be in their handshake.
const HANDSHAKES_SPARE: u64 = 1024;

/// By the keys of their outputs.
pub(crate) type Connections = Table<Connection, ConnectionOutput>;

/// See above.
#[derive(Debug)]
pub(crate) struct Edge {
    pub(crate) connections: Connections,
    pub(crate) gates: KnownGates,
    pub(crate) poll: Poll,
    pub(crate) readers: Readers,
    pub(crate) unwritten: Unwritten,
    /// Buffer for encryption.
    wire_buffer: Vec<u8>,
    /// Connections in their TLS or WebSocket handshake.
    pub(crate) handshakes: Handshakes,
    pub(crate) overload: Overload,
    pub(crate) lines: ClientLines,
    pub(crate) traces: Traces,
    pub(crate) node: Arc<Node>,
    pub(crate) settings: Arc<ShellSettings>,
}

impl Edge {
    pub(crate) fn new(node: Arc<Node>, settings: ShellSettings, poll: Poll) -> Self {
        let mut lines = ClientLines::default();
        lines.share(settings.client_lines, node.workers());
        Self {
            connections: Table::new(),
            gates: KnownGates::new(Arc::clone(&node.gates)),
            poll,
            readers: Readers::default(),
            unwritten: Unwritten::default(),
            wire_buffer: Vec::new(),
            handshakes: Handshakes::default(),
            overload: Overload::default(),
            lines,
            traces: Traces::default(),
            node,
            settings: Arc::new(settings),
        }
    }

    /// Other settings from now on.
    pub(crate) fn set_settings(&mut self, settings: ShellSettings) {
        self.lines.share(settings.client_lines, self.node.workers());
        self.settings = Arc::new(settings);
    }

    /// A connection, if it is still the one that is there.
    #[inline]
    pub(crate) fn connection(&self, engine: &Engine, id: ConnectionId) -> Option<&Connection> {
        let is_it = engine.core.outputs.contains(id);
        self.connections.get(id.key).filter(|_| is_it)
    }

    /// A connection for changes, if it still exists.
    #[inline]
    pub(crate) fn connection_mut(
        &mut self,
        engine: &Engine,
        id: ConnectionId,
    ) -> Option<&mut Connection> {
        let is_it = engine.core.outputs.contains(id);
        self.connections.get_mut(id.key).filter(|_| is_it)
    }

    /// The rates of input of connections.
    pub(crate) const fn meters<'a>(&'a mut self, engine: &'a mut Engine) -> Meters<'a> {
        Meters { edge: self, engine }
    }

    /// Stops reading a connection until the reason ends. Pending input is remembered.
    pub(crate) fn pause(&mut self, key: ConnectionKey, reason: PauseReason) -> bool {
        self.connections[key].reading.close(reason)
    }

    /// Ends a reason; after the last one, pending input is handled in the next turn.
    pub(crate) fn resume(&mut self, key: ConnectionKey, reason: PauseReason) {
        self.readers.resume(&mut self.connections, key, reason);
    }

    /// The connection is read in the next turn, if reading is allowed and it has input.
    pub(crate) fn list_reader(&mut self, key: ConnectionKey) {
        self.readers.list(&mut self.connections, key);
    }

    /// Stops reading a publisher while the receivers of its messages have no room. False if it is
    /// read on.
    #[inline]
    pub(crate) fn pause_publisher(&mut self, engine: &mut Engine, key: ConnectionKey) -> bool {
        let congestion = Congestion {
            full: engine.core.outboxes.take_full(),
            is_slowed: std::mem::take(&mut engine.core.memory.has_queued)
                || self.overload.slows_publishers(),
            is_output_long: self.unwritten.is_long(),
            is_stuck: engine.core.durable.is_stuck(),
        };
        let is_paused = congestion.is_any();
        if is_paused {
            let connections = &mut self.connections;
            self.readers
                .pause_publisher(connections, engine, key, congestion);
        }
        is_paused
    }

    /// Ends the pauses whose reason has ended.
    pub(crate) fn end_pauses(&mut self, engine: &mut Engine) {
        let is_overloaded = self.overload.slows_publishers();
        self.readers
            .end_pauses(&mut self.connections, engine, is_overloaded);
    }

    /// Opens an accepted connection for reading.
    pub(crate) fn open(&mut self, engine: &mut Engine, arrived: Arrived) -> Option<ConnectionKey> {
        let Arrived {
            socket,
            peer,
            gate,
            certificate,
        } = arrived;
        let sockets_max = self
            .settings
            .connections_max
            .saturating_add(HANDSHAKES_SPARE);
        if self.node.open_sockets() >= sockets_max {
            engine.core.row().add(Counter::ConnectionsOverLimit, 1);
            return None;
        }
        if !self.gates.enter(gate) {
            engine.core.row().add(Counter::ConnectionsOverLimit, 1);
            if engine.core.may_log() {
                tracing::warn!(%peer, "connection closed: its listener is full (max_connections)");
            }
            return None;
        }
        let is_proxied = self.gates.get(gate).proxies.is_some();
        // The address of a proxy's client is checked after the header has named it.
        if !is_proxied && !self.may_open(engine, peer.address()) {
            self.gates.leave(gate);
            return None;
        }
        let mut connection = Connection::new(socket, peer, gate);
        connection.phase = Phase::Handshake(certificate);
        if is_proxied {
            if !self.gates.get(gate).is_proxy(peer) {
                self.gates.leave(gate);
                refuse_unproxied(engine, peer);
                return None;
            }
            connection.phase = Phase::Proxy;
        }
        let gate = self.gates.get(gate);
        if !gate.is_quic {
            let layers = gate.layers();
            connection.layered = layers.map(|layers| Box::new(Layered::new(layers)));
        }
        let key = self.register(engine, connection)?;
        engine.core.row().add(Counter::ConnectionsOpened, 1);
        self.begin_handshake(engine, key);
        let reading = &mut self.connections[key].reading;
        reading.note_readable(false);
        if self.traces.are_on() {
            flag_traced(self, engine, key, "");
        }
        Some(key)
    }

    /// Adds the connection to the slab and the poll.
    pub(crate) fn register(
        &mut self,
        engine: &mut Engine,
        connection: Connection,
    ) -> Option<ConnectionKey> {
        let id = engine.core.outputs.open();
        let key = self.connections.insert(connection);
        debug_assert_eq!(key, id.key, "both tables have the same places");
        let token = token_of(id);
        let socket = &mut self.connections[key].socket;
        let readable = Interest::READABLE;
        if let Err(error) = self.poll.registry().register(socket, token, readable) {
            tracing::warn!(%error, "cannot watch a new connection; it is closed");
            let connection = self.take_out(engine, key);
            self.gates.leave(connection.gate);
            return None;
        }
        Some(key)
    }

    /// Begins the steps before CONNECT of a new connection, with their time limit.
    pub(crate) fn begin_handshake(&mut self, engine: &mut Engine, key: ConnectionKey) {
        let connection = &mut self.connections[key];
        if connection.layered.is_none() && !matches!(connection.phase, Phase::Proxy) {
            await_connect(&self.settings, engine, key);
            return;
        }
        connection.in_handshake = true;
        let target = Target::Handshake(engine.core.outputs.id(key));
        self.handshakes.begin();
        let deadline = engine.core.turn.now.plus(self.settings.handshake_timeout);
        engine.core.timers.insert(deadline, target);
    }

    /// The steps before MQTT are complete.
    pub(crate) fn end_handshake(&mut self, engine: &mut Engine, key: ConnectionKey) {
        self.connections[key].in_handshake = false;
        self.handshakes.end();
        await_connect(&self.settings, engine, key);
    }

    /// Closes a connection whose handshake took too long.
    pub(crate) fn handshake_timer(&mut self, engine: &mut Engine, id: ConnectionId) {
        let key = id.key;
        let connection = self.connection(engine, id);
        let is_late = |late: &&Connection| late.in_handshake && !late.is_draining();
        let Some(connection) = connection.filter(is_late) else {
            return;
        };
        let peer = connection.peer;
        engine.core.row().add(Counter::HandshakeTimeouts, 1);
        if engine.core.may_log() {
            tracing::info!(%peer, "connection closed: its handshake took too long (limits.handshake_timeout)");
        }
        self.close(engine, key);
    }

    /// The identity recorded for a session: its user, and while it is connected its address and
    /// listener.
    pub(crate) fn identity_of(&mut self, engine: &mut Engine, slot: Slot) -> Identity {
        let client = &engine.core.sessions[slot];
        let username = client.owner().user().map(Into::into);
        let client_id = client.session.client_id().into();
        let connection = client.connection.map(|key| &self.connections[key]);
        let from = connection.map(|connection| (connection.gate, connection.peer.own_address()));
        let (gate, address) = from.unzip();
        let listener = gate.map(|gate| Arc::clone(&self.gates.get(gate).name));
        Identity {
            client_id,
            username,
            address: address.flatten(),
            listener: listener.unwrap_or_default(),
            ..Identity::default()
        }
    }

    /// Removes a connection from this worker, for another one or for good.
    pub(crate) fn take_out(&mut self, engine: &mut Engine, key: ConnectionKey) -> Connection {
        let connection = self.connections.remove(key);
        engine.core.outputs.close(key);
        if connection.is_traced {
            self.traces.forget(key);
        }
        if connection.in_handshake {
            self.handshakes.end();
        }
        connection
    }

    /// Whether connections from this address are admitted; others are closed without an answer.
    pub(crate) fn may_open(&self, engine: &mut Engine, address: Option<IpAddr>) -> bool {
        let (settings, now) = (&self.settings.protection, engine.core.turn.now);
        let Err(refusal) = self.node.protection.may_open(address, settings, now) else {
            return true;
        };
        engine.core.row().add(refusal.into(), 1);
        if let Some(address) = address
            && engine.core.may_log()
        {
            tracing::info!(%address, reason = refusal.what(), "connection closed");
        }
        false
    }
}

/// Closes the connection when no CONNECT arrives in time.
fn await_connect(settings: &ShellSettings, engine: &mut Engine, key: ConnectionKey) {
    let target = Target::Connection(engine.core.outputs.id(key));
    let deadline = engine.core.turn.now.plus(settings.connect_timeout);
    engine.core.timers.insert(deadline, target);
}

fn refuse_unproxied(engine: &mut Engine, peer: Peer) {
    engine.core.row().add(Counter::ProxyRefused, 1);
    if engine.core.may_log() {
        tracing::info!(%peer, "connection closed: it comes from no proxy of this listener (proxy_from)");
    }
}
