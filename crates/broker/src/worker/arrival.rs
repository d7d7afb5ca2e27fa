//! From the bytes of a socket to those of MQTT: through the layers of the connection, if it has any.

use std::sync::Arc;

use thrum_access::Certificate;
use thrum_transport::LayerError;
use thrum_transport::proxy_protocol::{self, Header, ProxyError};

use super::Worker;
use super::budget::HANDSHAKE_UNITS;
use super::lifecycle::Ending;
use crate::connection::Phase;
use crate::metrics::Counter;
use crate::peer::Peer;

/// A buffer for MQTT out of layers that grew beyond this is given back to the system.
const PLAIN_BYTES_KEPT: usize = 128 * 1024;

impl Worker {
    /// Bytes of one socket.
    #[inline]
    pub(super) fn arrived(&mut self, key: u32, bytes: &mut [u8]) {
        self.local
            .row()
            .add(Counter::BytesReceived, bytes.len() as u64);
        let connection = &self.local.connections[key as usize];
        match connection.phase {
            Phase::Draining(_) => {}
            Phase::Proxy => self.header_arrived(key, bytes),
            _ if connection.layered.is_some() => self.wire_arrived(key, bytes),
            _ => self.input(key, bytes),
        }
    }

    /// Bytes that come out of the layers are handled like any other.
    fn wire_arrived(&mut self, key: u32, wire: &mut [u8]) {
        let mut plain = std::mem::take(&mut self.plain_buffer);
        plain.clear();
        let connection = &mut self.local.connections[key as usize];
        let serial = connection.serial;
        let Some(layered) = &mut connection.layered else {
            return;
        };
        if connection.is_shaking {
            self.local.work += HANDSHAKE_UNITS;
        }
        let result = layered.receive(wire, &mut plain);
        self.plain_read = plain.len();
        let is_over = layered.is_closed_by_peer();
        let is_done = layered.is_open() && connection.is_shaking;
        if layered.waiting() > 0 {
            self.local.mark_dirty(key);
        }
        if is_done {
            self.end_handshake(key);
        }
        if !plain.is_empty() {
            self.input(key, &plain);
        }
        if plain.capacity() <= PLAIN_BYTES_KEPT {
            self.plain_buffer = plain;
        }
        let connection = self.local.connections.get(key as usize);
        let is_here = connection
            .is_some_and(|connection| connection.serial == serial && !connection.is_draining());
        match result {
            _ if !is_here => {}
            Err(fault) => self.layers_failed(key, &fault),
            Ok(()) if is_over => self.lost(key, Ending::EndedByPeer),
            Ok(()) => {}
        }
    }

    /// The client is told by an alert, a close frame or a status, which waits in the layers.
    fn layers_failed(&mut self, key: u32, fault: &LayerError) {
        let counter = if self.local.connections[key as usize].is_shaking {
            Counter::HandshakesFailed
        } else {
            Counter::LayersFailed
        };
        self.local.row().add(counter, 1);
        if self.may_log() {
            let connection = &self.local.connections[key as usize];
            let (peer, gate) = (connection.peer, connection.gate);
            let listener = &*self.local.gate(gate).name;
            tracing::info!(%peer, listener, reason = %fault, "connection closed");
        }
        // Only the alert or the close frame can still be read.
        self.local.connections[key as usize].drop_held();
        self.lost(key, Ending::ClosedByServer);
    }

    /// What a trusted proxy says before its client's bytes.
    fn header_arrived(&mut self, key: u32, bytes: &mut [u8]) {
        let connection = &mut self.local.connections[key as usize];
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
        if self.local.connections[key as usize].layered.is_none() {
            self.end_handshake(key);
        }
        let connection = &self.local.connections[key as usize];
        if rest.is_empty() {
            return;
        }
        if connection.layered.is_some() {
            self.wire_arrived(key, &mut rest);
        } else {
            self.input(key, &rest);
        }
    }

    fn header_refused(&mut self, key: u32, error: &ProxyError) {
        self.local.row().add(Counter::ProxyRefused, 1);
        if self.may_log() {
            let peer = self.local.connections[key as usize].peer;
            tracing::info!(%peer, reason = %error, "connection closed");
        }
        self.lost(key, Ending::ClosedByPeer);
    }
}
