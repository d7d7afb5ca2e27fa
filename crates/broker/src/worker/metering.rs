//! Rates of what clients send: a connection that has used up one of them is not read for a while;
//! nothing is dropped.

use std::sync::Arc;

use thrum_access::Identity;
use thrum_protection::{ClientRef, InputUsage, Meter, Pause, Scopes};

use super::{Local, Target, Worker};
use crate::ids::{ConnectionId, ConnectionKey, Slot};
use crate::read_gate::PauseReason;

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
                self.take_read(key, buffer, outcome)
            }
            Err(pause) => {
                self.pace(key, pause);
                None
            }
        }
    }

    /// Charges what a connection has sent, if it has a meter and is still there.
    #[inline]
    pub(super) fn charge(&mut self, id: ConnectionId, usage: InputUsage) {
        let connection = self.local.connection(id);
        if connection.is_some_and(|connection| connection.meter.is_some()) {
            self.charge_meter(id.key, usage);
        }
    }

    #[inline(never)]
    fn charge_meter(&mut self, key: ConnectionKey, usage: InputUsage) {
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
