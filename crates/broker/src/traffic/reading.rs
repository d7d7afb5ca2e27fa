//! From readable sockets to the bytes of MQTT: each connection has its portion of a turn, and its
//! bytes pass through its layers, if it has any.

use std::io;
use std::sync::Arc;

use mio::event::Event;
use thrum_access::Certificate;
use thrum_engine::Engine;
use thrum_engine::ids::ConnectionKey;
use thrum_engine::node::metrics::Counter;
use thrum_engine::peer::Peer;
use thrum_engine::turn::{HANDSHAKE_UNITS, READ_UNITS, UNIT_BYTES};
use thrum_transport::LayerError;
use thrum_transport::proxy_protocol::{self, Header, ProxyError};

use super::Traffic;
use crate::connection::{Phase, key_of, token_of};
use crate::edge::{Edge, Ending};
use crate::socket::ReadOutcome;

/// A buffer for MQTT from layers that grew beyond this size is freed.
const PLAIN_BYTES_KEPT: usize = 128 * 1024;

impl Traffic {
    /// A socket has an event: input, room for output, or its end.
    pub(crate) fn socket_ready(&mut self, event: &Event) {
        let token = event.token();
        let Some(key) = key_of(token) else {
            return;
        };
        let Some(connection) = self.edge.connections.get_mut(key) else {
            return;
        };
        if token_of(self.engine.core.outputs.id(key)) != token {
            // The socket of this event was closed since; another connection has its slot.
            return;
        }
        let is_ending = event.is_read_closed() || event.is_error();
        let has_input = event.is_readable() || is_ending;
        if has_input {
            connection.reading.note_readable(is_ending);
        }
        // A listed connection has its portion at its place in the list.
        let is_read = has_input && !connection.reading.is_listed();
        if event.is_writable() && connection.room.may_have_some() {
            self.engine.core.outputs.list(key);
        }
        if is_read && self.engine.core.turn.is_reading_over() {
            self.edge.list_reader(key);
        } else if is_read {
            self.read(key);
        }
    }

    /// Lists connections that have waited long enough for this turn; returns the number listed.
    pub(crate) fn begin_reading(&mut self) -> usize {
        self.edge.end_pauses(&mut self.engine);
        self.edge.readers.count()
    }

    /// Reads connections that had more than one portion, and those that may be read again, in order
    /// of arrival. They follow those that have just become ready, which usually have little, and at
    /// least one has its portion.
    pub(crate) fn read_listed(&mut self, count: usize) {
        for number in 0..count {
            if number > 0 && self.engine.core.turn.is_reading_over() {
                self.engine.core.row().add(Counter::ReadersPutOff, 1);
                return;
            }
            let Some(key) = self.edge.readers.next() else {
                return;
            };
            let connection = self.edge.connections.get_mut(key);
            if connection.is_some_and(|connection| connection.reading.unlist()) {
                self.read(key);
            }
        }
    }

    /// Reads a connection's portion of a turn: the packets that were left, then up to one buffer
    /// from the socket. A connection whose end was signalled is read to its end, if that is near
    /// enough.
    pub(crate) fn read(&mut self, key: ConnectionKey) {
        let Some(connection) = self.edge.connections.get_mut(key) else {
            return;
        };
        if connection.is_unread() {
            return;
        }
        let has_packets = connection.reading.has_packets();
        self.engine.core.turn.begin_read_portion();
        if has_packets {
            self.input(key, &[]);
        }
        self.read_socket(key);
    }

    /// The second half of a portion.
    pub(crate) fn read_socket(&mut self, key: ConnectionKey) {
        debug_assert!(!self.read_buffer.is_empty(), "one read at a time");
        let mut buffer = std::mem::take(&mut self.read_buffer);
        let mut room = buffer.len();
        while let Some(len) = self.read_once(key, &mut buffer[..room]) {
            room -= len.min(room);
            let connection = self.edge.connections.get(key);
            let is_ending = connection.is_some_and(|connection| connection.reading.is_ending());
            if self.engine.core.turn.is_portion_over() || room == 0 || !is_ending {
                break;
            }
        }
        self.read_buffer = buffer;
        self.edge.list_reader(key);
    }

    /// One read of the socket; none if there is nothing to read, or the connection may not be read.
    fn read_once(&mut self, key: ConnectionKey, buffer: &mut [u8]) -> Option<usize> {
        let connection = self.edge.connections.get_mut(key)?;
        let reading = connection.reading;
        if !reading.has_input() || reading.has_packets() || connection.is_unread() {
            return None;
        }
        if reading.is_over() {
            end_with_layers(&mut self.edge, &mut self.engine, key);
            return None;
        }
        if connection.meter.is_some() {
            return self.read_metered(key, buffer);
        }
        let outcome = connection.socket.read(buffer);
        self.take_read(key, buffer, outcome)
    }

    /// Handles the result of one read; returns its length.
    #[inline]
    pub(crate) fn take_read(
        &mut self,
        key: ConnectionKey,
        buffer: &mut [u8],
        outcome: io::Result<ReadOutcome>,
    ) -> Option<usize> {
        self.engine.core.row().add(Counter::Reads, 1);
        self.engine.core.turn.work += READ_UNITS;
        match outcome {
            Ok(ReadOutcome::Drained(0)) => {
                let reading = &mut self.edge.connections[key].reading;
                reading.note_drained();
                // A failed connection has no more input.
                if reading.is_ending() {
                    self.edge.lost(&mut self.engine, key, Ending::ClosedByPeer);
                }
                None
            }
            Ok(ReadOutcome::Drained(len)) => {
                self.edge.connections[key].reading.note_drained();
                self.arrived(key, &mut buffer[..len]);
                Some(len)
            }
            Ok(ReadOutcome::Full(len)) => {
                self.arrived(key, &mut buffer[..len]);
                Some(len)
            }
            Ok(ReadOutcome::Closed) => {
                input_ended(&mut self.edge, &mut self.engine, key);
                None
            }
            Err(error) => {
                tracing::debug!(%error, "connection failed");
                self.edge.lost(&mut self.engine, key, Ending::ClosedByPeer);
                None
            }
        }
    }

    /// One read of a connection with a meter.
    #[inline(never)]
    pub(crate) fn read_metered(&mut self, key: ConnectionKey, buffer: &mut [u8]) -> Option<usize> {
        let now = self.engine.core.turn.now;
        let mut meters = self.edge.meters(&mut self.engine);
        let (meter, scopes) = meters.meter_and_scopes(key)?;
        match meter.may_read(&scopes, now) {
            Ok(bytes_max) => {
                let len = bytes_max.min(buffer.len());
                let buffer = &mut buffer[..len];
                let outcome = self.edge.connections[key].socket.read(buffer);
                self.take_read(key, buffer, outcome)
            }
            Err(pause) => {
                self.edge.meters(&mut self.engine).pace(key, pause);
                None
            }
        }
    }

    /// Bytes of one socket.
    #[inline]
    pub(crate) fn arrived(&mut self, key: ConnectionKey, bytes: &mut [u8]) {
        self.engine.core.turn.work += bytes.len() as u64 / UNIT_BYTES;
        self.engine
            .core
            .row()
            .add(Counter::BytesReceived, bytes.len() as u64);
        let connection = &self.edge.connections[key];
        let stages = &mut self.engine.core.stages;
        // One byte may end a record that contains thousands of packets.
        let may_be_stamped = if connection.layered.is_some() {
            stages.is_on()
        } else {
            stages.are_near(bytes.len())
        };
        if may_be_stamped {
            stages.note_read(self.edge.node.clock.elapsed());
        }
        match connection.phase {
            Phase::Draining(_) => {}
            Phase::Proxy => self.header_arrived(key, bytes),
            _ if connection.layered.is_some() => self.wire_arrived(key, bytes),
            _ => self.input(key, bytes),
        }
        // Not all bytes become input.
        self.engine.core.stages.end_input();
    }

    /// Bytes that come out of the layers are handled like any other.
    fn wire_arrived(&mut self, key: ConnectionKey, wire: &mut [u8]) {
        let connection = &mut self.edge.connections[key];
        let id = self.engine.core.outputs.id(key);
        let Some(layered) = &mut connection.layered else {
            return;
        };
        let mut plain = std::mem::take(&mut self.plain_buffer);
        plain.clear();
        let waiting = layered.waiting();
        let result = layered.receive(wire, &mut plain);
        // MQTT comes from them only after their handshakes, also where they end at once.
        let is_done = connection.in_handshake && (layered.is_open() || !plain.is_empty());
        // The step has a cost, its bytes do not.
        let is_step = is_done || layered.waiting() > waiting || layered.is_over();
        if connection.in_handshake && is_step {
            self.engine.core.turn.work += HANDSHAKE_UNITS;
        }
        if layered.waiting() > 0 {
            self.engine.core.outputs.list(key);
        }
        if is_done {
            self.edge.end_handshake(&mut self.engine, key);
        }
        if plain.is_empty() {
            // Answers of the layers count like those of MQTT.
            self.after_input(key);
        } else {
            self.input(key, &plain);
        }
        if plain.capacity() <= PLAIN_BYTES_KEPT {
            self.plain_buffer = plain;
        }
        let connection = self.edge.connection(&self.engine, id);
        if connection.is_some_and(|connection| !connection.is_draining()) {
            if let Err(fault) = result {
                layers_failed(&mut self.edge, &mut self.engine, key, &fault);
            }
            end_with_layers(&mut self.edge, &mut self.engine, key);
        }
    }

    /// Whether a pending client has disconnected without input behind its CONNECT: it may have
    /// another connection by now, which this one must not end. Input before its end is handled.
    pub(crate) fn has_left(&mut self, key: ConnectionKey) -> bool {
        let connection = &self.edge.connections[key];
        let mut is_over = connection.reading.is_over();
        if !connection.partial.is_empty() || !(is_over || connection.reading.is_ending()) {
            return false;
        }
        let mut plain = Vec::new();
        // All input of the connection has arrived.
        while !is_over && plain.is_empty() {
            let connection = &mut self.edge.connections[key];
            let outcome = connection.socket.read(&mut self.read_buffer);
            let Ok(ReadOutcome::Drained(len @ 1..) | ReadOutcome::Full(len)) = outcome else {
                return true;
            };
            let wire = &mut self.read_buffer[..len];
            let Some(layered) = &mut connection.layered else {
                plain.extend_from_slice(wire);
                break;
            };
            is_over = layered.receive(wire, &mut plain).is_err() || layered.is_over();
        }
        let bytes = plain.len() as u64;
        self.engine.core.row().add(Counter::BytesReceived, bytes);
        let connection = &mut self.edge.connections[key];
        if is_over {
            connection.reading.note_over();
        }
        let says_nothing = plain.is_empty();
        connection.partial.put(plain);
        says_nothing
    }

    /// The header of a trusted proxy before its client's bytes.
    fn header_arrived(&mut self, key: ConnectionKey, bytes: &mut [u8]) {
        let connection = &mut self.edge.connections[key];
        let mut arrived = connection.partial.take();
        arrived.extend_from_slice(bytes);
        let (header, len) = match proxy_protocol::parse(&arrived) {
            Ok(Some(found)) => found,
            Ok(None) => {
                connection.partial.put(arrived);
                return;
            }
            Err(error) => {
                header_refused(&mut self.edge, &mut self.engine, key, &error);
                return;
            }
        };
        let mut rest = arrived.split_off(len);
        connection.phase = Phase::Handshake(None);
        // Without an address the proxy's client is unknown, even if the proxy is on this machine.
        connection.peer = connection.peer.unnamed_client();
        if let Header::Proxied(proxied) = header {
            connection.peer = proxied.source.map_or(connection.peer, Peer::from);
            if let Some(name) = proxied.tls.and_then(|tls| tls.common_name) {
                let certificate = Certificate {
                    common_name: Some(name),
                    ..Certificate::default()
                };
                connection.phase = Phase::Handshake(Some(Arc::new(certificate)));
            }
            let address = proxied.source.map(Peer::from).and_then(Peer::address);
            if !self.edge.may_open(&mut self.engine, address) {
                self.edge.lost(&mut self.engine, key, Ending::ClosedByPeer);
                return;
            }
        }
        if self.edge.connections[key].layered.is_none() {
            self.edge.end_handshake(&mut self.engine, key);
        }
        let connection = &self.edge.connections[key];
        if rest.is_empty() {
            return;
        }
        if connection.layered.is_some() {
            self.wire_arrived(key, &mut rest);
        } else {
            self.input(key, &rest);
        }
    }
}

/// Closes a connection whose layers failed. Its client is informed by an alert, a close frame or a
/// status, which waits in the layers.
fn layers_failed(edge: &mut Edge, engine: &mut Engine, key: ConnectionKey, fault: &LayerError) {
    let counter = if edge.connections[key].in_handshake {
        Counter::HandshakesFailed
    } else {
        Counter::LayersFailed
    };
    engine.core.row().add(counter, 1);
    if engine.core.may_log() {
        let connection = &edge.connections[key];
        let (peer, gate) = (connection.peer, connection.gate);
        let listener = &*edge.gates.get(gate).name;
        tracing::info!(%peer, listener, reason = %fault, "connection closed");
    }
}

fn header_refused(edge: &mut Edge, engine: &mut Engine, key: ConnectionKey, error: &ProxyError) {
    engine.core.row().add(Counter::ProxyRefused, 1);
    if engine.core.may_log() {
        let peer = edge.connections[key].peer;
        tracing::info!(%peer, reason = %error, "connection closed");
    }
    edge.lost(engine, key, Ending::ClosedByPeer);
}

/// Layers that have ended end the connection after the packets that came from them.
fn end_with_layers(edge: &mut Edge, engine: &mut Engine, key: ConnectionKey) {
    let Some(connection) = edge.connections.get_mut(key) else {
        return;
    };
    let Some(layered) = &connection.layered else {
        return;
    };
    if connection.is_draining() || !layered.is_over() {
        return;
    }
    if connection.reading.has_packets() || connection.is_unread() {
        connection.reading.note_over();
    } else if layered.is_closed_by_peer() {
        edge.lost(engine, key, Ending::EndedByPeer);
    } else {
        // Only the alert or the close frame can still be read.
        engine.core.outputs[key].drop_held();
        edge.lost(engine, key, Ending::ClosedByServer);
    }
}

/// The client sends no more input. A client that has sent DISCONNECT may still wait for answers.
fn input_ended(edge: &mut Edge, engine: &mut Engine, key: ConnectionKey) {
    let connection = &mut edge.connections[key];
    if connection.is_draining() {
        connection.reading.forget_input();
        // Only the end may be missing.
        edge.close_when_written(engine, key);
        let connection = edge.connections.get(key);
        let outputs = &engine.core.outputs;
        if connection.is_none_or(|connection| !connection.is_written_out(&outputs[key])) {
            return;
        }
    }
    edge.lost(engine, key, Ending::ClosedByPeer);
}
