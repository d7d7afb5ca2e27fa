//! From the bytes of a socket to those of MQTT: through the layers of the connection, if it has
//! any.

use std::sync::Arc;

use thrum_access::Certificate;
use thrum_transport::LayerError;
use thrum_transport::proxy_protocol::{self, Header, ProxyError};

use super::Worker;
use super::budget::{HANDSHAKE_UNITS, UNIT_BYTES};
use super::lifecycle::Ending;
use crate::connection::{Phase, ReadOutcome};
use crate::ids::ConnectionKey;
use crate::metrics::Counter;
use crate::peer::Peer;

/// A buffer for MQTT out of layers that grew beyond this is given back to the system.
const PLAIN_BYTES_KEPT: usize = 128 * 1024;

impl Worker {
    /// Bytes of one socket.
    #[inline]
    pub(super) fn arrived(&mut self, key: ConnectionKey, bytes: &mut [u8]) {
        self.local.work += bytes.len() as u64 / UNIT_BYTES;
        self.local
            .row()
            .add(Counter::BytesReceived, bytes.len() as u64);
        let connection = &self.local.connections[key];
        match connection.phase {
            Phase::Draining(_) => {}
            Phase::Proxy => self.header_arrived(key, bytes),
            _ if connection.layered.is_some() => self.wire_arrived(key, bytes),
            _ => self.input(key, bytes),
        }
    }

    /// Bytes that come out of the layers are handled like any other.
    fn wire_arrived(&mut self, key: ConnectionKey, wire: &mut [u8]) {
        let connection = &mut self.local.connections[key];
        let id = connection.id(key);
        let Some(layered) = &mut connection.layered else {
            return;
        };
        let mut plain = std::mem::take(&mut self.plain_buffer);
        plain.clear();
        let waiting = layered.waiting();
        let result = layered.receive(wire, &mut plain);
        // MQTT comes out of them only behind their handshakes, also where they ended at once.
        let is_done = connection.is_shaking && (layered.is_open() || !plain.is_empty());
        // A step costs, the bytes of one do not.
        let is_step = is_done || layered.waiting() > waiting || layered.is_over();
        if connection.is_shaking && is_step {
            self.local.work += HANDSHAKE_UNITS;
        }
        if layered.waiting() > 0 {
            self.local.mark_dirty(key);
        }
        if is_done {
            self.end_handshake(key);
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
        let connection = self.local.connection(id);
        if connection.is_some_and(|connection| !connection.is_draining()) {
            if let Err(fault) = result {
                self.layers_failed(key, &fault);
            }
            self.end_with_layers(key);
        }
    }

    /// Layers that are over end the connection behind the packets that came out of them.
    pub(super) fn end_with_layers(&mut self, key: ConnectionKey) {
        let Some(connection) = self.local.connections.get_mut(key) else {
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
            self.lost(key, Ending::EndedByPeer);
        } else {
            // Only the alert or the close frame can still be read.
            connection.drop_held();
            self.lost(key, Ending::ClosedByServer);
        }
    }

    /// Whether a client that waited to come in has gone, and has nothing to say behind its CONNECT:
    /// by now it may have another connection, which is not to be ended for this one. What it did
    /// say before its end is taken in.
    pub(super) fn has_left(&mut self, key: ConnectionKey) -> bool {
        let connection = &self.local.connections[key];
        let mut is_over = connection.reading.is_over();
        if !connection.partial.is_empty() || !(is_over || connection.reading.is_ending()) {
            return false;
        }
        let mut plain = Vec::new();
        // All that it sent is there.
        while !is_over && plain.is_empty() {
            let connection = &mut self.local.connections[key];
            let outcome = connection.read(&mut self.read_buffer);
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
        self.local.row().add(Counter::BytesReceived, bytes);
        let connection = &mut self.local.connections[key];
        if is_over {
            connection.reading.note_over();
        }
        let says_nothing = plain.is_empty();
        connection.partial.put(plain);
        says_nothing
    }

    /// The client is told by an alert, a close frame or a status, which waits in the layers.
    fn layers_failed(&mut self, key: ConnectionKey, fault: &LayerError) {
        let counter = if self.local.connections[key].is_shaking {
            Counter::HandshakesFailed
        } else {
            Counter::LayersFailed
        };
        self.local.row().add(counter, 1);
        if self.may_log() {
            let connection = &self.local.connections[key];
            let (peer, gate) = (connection.peer, connection.gate);
            let listener = &*self.local.gate(gate).name;
            tracing::info!(%peer, listener, reason = %fault, "connection closed");
        }
    }

    /// What a trusted proxy says before its client's bytes.
    fn header_arrived(&mut self, key: ConnectionKey, bytes: &mut [u8]) {
        let connection = &mut self.local.connections[key];
        let mut arrived = connection.partial.take();
        arrived.extend_from_slice(bytes);
        let (header, len) = match proxy_protocol::parse(&arrived) {
            Ok(Some(found)) => found,
            Ok(None) => {
                connection.partial.put(arrived);
                return;
            }
            Err(error) => {
                self.header_refused(key, &error);
                return;
            }
        };
        let mut rest = arrived.split_off(len);
        connection.phase = Phase::Handshake(None);
        // Without an address it is anybody's client, be the proxy on this machine.
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
            if !self.may_open(address) {
                self.lost(key, Ending::ClosedByPeer);
                return;
            }
        }
        if self.local.connections[key].layered.is_none() {
            self.end_handshake(key);
        }
        let connection = &self.local.connections[key];
        if rest.is_empty() {
            return;
        }
        if connection.layered.is_some() {
            self.wire_arrived(key, &mut rest);
        } else {
            self.input(key, &rest);
        }
    }

    fn header_refused(&mut self, key: ConnectionKey, error: &ProxyError) {
        self.local.row().add(Counter::ProxyRefused, 1);
        if self.may_log() {
            let peer = self.local.connections[key].peer;
            tracing::info!(%peer, reason = %error, "connection closed");
        }
        self.lost(key, Ending::ClosedByPeer);
    }
}
