//! Rates of what clients send: a connection that has used up one of them is not read for a while;
//! nothing is dropped.

use std::sync::Arc;

use thrum_access::Identity;
use thrum_codec::frame;
use thrum_protection::{ClientRef, InputUsage, Meter, Pause, Scopes};

use super::{Local, Target, Worker};
use crate::ids::{ConnectionId, ConnectionKey, Slot};
use crate::metrics::Counter;
use crate::read_gate::PauseReason;

/// Type of a PUBLISH in the first byte of its header.
const PUBLISH: u8 = 3;

impl Local {
    /// The meter of a connection, if it has one, with the rates in force for it.
    fn meter_and_scopes(&mut self, key: ConnectionKey) -> Option<(&mut Meter, Scopes<'_>)> {
        let connection = self.connections.get_mut(key)?;
        let meter = connection.meter.as_deref_mut()?;
        let gate = self.gates.get(usize::from(connection.gate));
        let gate = gate.and_then(Option::as_ref);
        let settings = &self.settings.protection;
        let scopes = Scopes {
            client: &settings.client,
            user: &settings.user,
            address: &settings.address,
            listener: gate.map(|gate| gate.scope()),
        };
        Some((meter, scopes))
    }
}

impl Worker {
    /// Gives a connection its meter; none if nothing is limited.
    pub(super) fn measure(&mut self, key: ConnectionKey, identity: &Identity) {
        let connection = &self.local.connections[key];
        let (number, address) = (connection.gate, connection.peer.address());
        let gate = Arc::clone(self.local.gate(number));
        let settings = &self.local.settings.protection;
        let who = ClientRef {
            client_id: &identity.client_id,
            username: identity.username.as_deref(),
            address,
        };
        let scopes = Scopes {
            client: &settings.client,
            user: &settings.user,
            address: &settings.address,
            listener: Some(gate.scope()),
        };
        let meter = self.node.protection.meter(&who, &scopes);
        self.local.connections[key].meter = meter;
    }

    /// Other rates: a session that has a connection gets another meter, or none.
    pub(super) fn measure_again(&mut self, slot: Slot) {
        let client = &self.local.clients[slot];
        let Some(key) = client.connection else {
            return;
        };
        let identity = match client.access.as_deref() {
            Some(access) => (*access.identity).clone(),
            None => self.identity_of(slot),
        };
        self.measure(key, &identity);
        // What it owes is forgotten with its old buckets: it is read again, unless others owe what
        // it shares.
        let connection = &self.local.connections[key];
        if connection.reading.has(PauseReason::Rate) {
            let again = Target::Pace(connection.id(key));
            self.timers.insert(self.local.now, again);
        }
    }

    /// One read of a connection with a meter.
    #[inline(never)]
    pub(super) fn read_metered(&mut self, key: ConnectionKey, buffer: &mut [u8]) -> Option<usize> {
        let now = self.local.now;
        let (meter, scopes) = self.local.meter_and_scopes(key)?;
        match meter.may_read(&scopes, now) {
            Ok(bytes_max) => {
                let len = bytes_max.min(buffer.len());
                let buffer = &mut buffer[..len];
                let outcome = self.local.connections[key].read(buffer);
                self.metered(key, |worker| worker.take_read(key, buffer, outcome))
            }
            Err(pause) => {
                self.pace(key, pause);
                None
            }
        }
    }

    /// Does something that handles input of a connection, and charges what came in; nothing if it
    /// has no meter.
    pub(super) fn metered<R>(
        &mut self,
        key: ConnectionKey,
        handle: impl FnOnce(&mut Self) -> R,
    ) -> R {
        let connection = self.local.connections.get(key);
        let known = connection.map(|connection| (connection.id(key), connection.layered.is_some()));
        let Some((id, is_layered)) = known else {
            return handle(self);
        };
        self.plain_read = 0;
        let row = self.local.row();
        let messages = row.count(Counter::PublishReceived);
        let bytes = row.count(Counter::BytesReceived);
        let result = handle(self);
        let row = self.local.row();
        let messages = row.count(Counter::PublishReceived).wrapping_sub(messages);
        let bytes = if is_layered {
            self.plain_read as u64
        } else {
            row.count(Counter::BytesReceived).wrapping_sub(bytes)
        };
        if self.local.connection(id).is_some() {
            self.charge(key, InputUsage { messages, bytes });
        }
        result
    }

    /// Charges what came in behind a CONNECT, before it is handled.
    pub(super) fn charge_unread(&mut self, key: ConnectionKey, unread: &[u8]) {
        if self.local.connections[key].meter.is_none() {
            return;
        }
        let (mut messages, mut rest) = (0, unread);
        let packet_bytes_max = self.local.settings.session.packet_bytes_max;
        while let Ok(Some(frame)) = frame::split(rest, packet_bytes_max) {
            messages += u64::from(frame.first >> 4 == PUBLISH);
            rest = &rest[frame.len..];
        }
        let bytes = unread.len() as u64;
        self.charge(key, InputUsage { messages, bytes });
    }

    /// Charges bytes that came in before the connection had its meter; the messages among them are
    /// charged as they are handled.
    pub(super) fn charge_bytes(&mut self, key: ConnectionKey, bytes: usize) {
        let (messages, bytes) = (0, bytes as u64);
        self.charge(key, InputUsage { messages, bytes });
    }

    fn charge(&mut self, key: ConnectionKey, usage: InputUsage) {
        let now = self.local.now;
        let pause = self
            .local
            .meter_and_scopes(key)
            .and_then(|(meter, scopes)| meter.charge(usage, &scopes, now));
        if let Some(pause) = pause {
            self.pace(key, pause);
        }
    }

    /// Stops to read a connection; counted once.
    fn pace(&mut self, key: ConnectionKey, pause: Pause) {
        let connection = &mut self.local.connections[key];
        if connection.is_draining() || !connection.reading.close(PauseReason::Rate) {
            return;
        }
        self.local.row().add(pause.limit.into(), 1);
        self.read_after(key, pause);
    }

    fn read_after(&mut self, key: ConnectionKey, pause: Pause) {
        let again = Target::Pace(self.local.connections[key].id(key));
        self.timers.insert(self.local.now.plus(pause.wait), again);
    }

    /// The pause of a connection is over, unless others have used up meanwhile what it shares with
    /// them.
    pub(super) fn pace_over(&mut self, id: ConnectionId) {
        let key = id.key;
        let connection = self.local.connection(id);
        if !connection.is_some_and(|connection| connection.reading.has(PauseReason::Rate)) {
            return;
        }
        let now = self.local.now;
        let allowed = self
            .local
            .meter_and_scopes(key)
            .map_or(Ok(0), |(meter, scopes)| meter.may_read(&scopes, now));
        if let Err(pause) = allowed {
            self.read_after(key, pause);
            return;
        }
        self.resume(key, PauseReason::Rate);
    }
}
