//! Handshakes of TLS and WebSocket, and headers of proxies: they have a time of their own, and
//! CONNECT has its time behind them.

use super::{Target, Worker};
use crate::connection::{Connection, Phase};
use crate::ids::{ConnectionId, ConnectionKey};
use crate::metrics::Counter;

impl Worker {
    /// A connection has come in: what has to be done before its CONNECT, and its time.
    pub(super) fn begin_handshake(&mut self, key: ConnectionKey) {
        let connection = &mut self.local.connections[key];
        if connection.layered.is_none() && !matches!(connection.phase, Phase::Proxy) {
            self.await_connect(key);
            return;
        }
        connection.is_shaking = true;
        let target = Target::Handshake(connection.id(key));
        self.handshakes.begin();
        let deadline = self.local.now.plus(self.local.settings.handshake_timeout);
        self.timers.insert(deadline, target);
    }

    /// All is done that comes before MQTT.
    pub(super) fn end_handshake(&mut self, key: ConnectionKey) {
        self.local.connections[key].is_shaking = false;
        self.handshakes.end();
        self.await_connect(key);
    }

    fn await_connect(&mut self, key: ConnectionKey) {
        let target = Target::Connection(self.local.connections[key].id(key));
        let deadline = self.local.now.plus(self.local.settings.connect_timeout);
        self.timers.insert(deadline, target);
    }

    /// Too slow, unless it is done.
    pub(super) fn handshake_timer(&mut self, id: ConnectionId) {
        let key = id.key;
        let connection = self.local.connection(id);
        let is_late = |late: &&Connection| late.is_shaking && !late.is_draining();
        let Some(connection) = connection.filter(is_late) else {
            return;
        };
        let peer = connection.peer;
        self.local.row().add(Counter::HandshakeTimeouts, 1);
        if self.may_log() {
            tracing::info!(%peer, "connection closed: its handshake took too long (limits.handshake_timeout)");
        }
        self.close(key);
    }
}
