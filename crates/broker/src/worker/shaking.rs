//! Handshakes of TLS and WebSocket, and headers of proxies: they have a time of their own, and CONNECT has its time
//! behind them.

use super::{Target, Worker};
use crate::connection::Phase;
use crate::metrics::Counter;

impl Worker {
    /// A connection has come in: what has to be done before its CONNECT, and its time.
    pub(super) fn begin_handshake(&mut self, key: u32) {
        let connection = &mut self.local.connections[key as usize];
        if connection.layered.is_none() && !matches!(connection.phase, Phase::Proxy) {
            self.await_connect(key);
            return;
        }
        connection.is_shaking = true;
        let serial = connection.serial;
        self.handshakes.begin();
        let deadline = self.local.now.plus(self.local.settings.handshake_timeout);
        self.timers
            .insert(deadline, Target::Handshake { key, serial });
    }

    /// All is done that comes before MQTT.
    pub(super) fn end_handshake(&mut self, key: u32) {
        self.local.connections[key as usize].is_shaking = false;
        self.handshakes.end();
        self.await_connect(key);
    }

    fn await_connect(&mut self, key: u32) {
        let serial = self.local.connections[key as usize].serial;
        let deadline = self.local.now.plus(self.local.settings.connect_timeout);
        self.timers
            .insert(deadline, Target::Connection { key, serial });
    }

    /// Too slow, unless it is done.
    pub(super) fn handshake_timer(&mut self, key: u32, serial: u32) {
        let Some(connection) = self.local.connections.get(key as usize) else {
            return;
        };
        let is_late = connection.is_shaking && !connection.is_draining();
        if connection.serial != serial || !is_late {
            return;
        }
        let peer = connection.peer;
        self.local.row().add(Counter::HandshakeTimeouts, 1);
        if self.may_log() {
            tracing::info!(%peer, "connection closed: its handshake took too long (limits.handshake_timeout)");
        }
        self.close(key);
    }
}
