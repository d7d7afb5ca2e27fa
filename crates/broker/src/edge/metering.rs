//! Rates of what clients send: a connection that has used up a rate is not read for a time; no
//! input is dropped.

use std::sync::Arc;

use thrum_access::Identity;
use thrum_engine::Engine;
use thrum_engine::ids::{ConnectionId, ConnectionKey, Slot};
use thrum_engine::timeline::{ClientEvent, tell};
use thrum_engine::timers::Target;
use thrum_protection::{ClientRef, InputUsage, Meter, Pause, Scopes};

use super::Edge;
use crate::read_gate::PauseReason;

/// The rates of a worker's connections.
#[derive(Debug)]
pub(crate) struct Meters<'a> {
    pub(super) edge: &'a mut Edge,
    pub(super) engine: &'a mut Engine,
}

impl Meters<'_> {
    /// The meter of a connection, if it has one, with the rates in force for it.
    pub(crate) fn meter_and_scopes(
        &mut self,
        key: ConnectionKey,
    ) -> Option<(&mut Meter, Scopes<'_>)> {
        let connection = self.edge.connections.get_mut(key)?;
        let meter = connection.meter.as_deref_mut()?;
        let gate = self.edge.gates.find(connection.gate);
        let settings = &self.edge.settings.protection;
        let scopes = Scopes {
            client: &settings.client,
            user: &settings.user,
            address: &settings.address,
            listener: gate.map(|gate| gate.scope()),
        };
        Some((meter, scopes))
    }

    /// Gives a connection its meter; none if it has no limit.
    pub(crate) fn measure(&mut self, key: ConnectionKey, identity: &Identity) {
        let connection = &self.edge.connections[key];
        let (number, address) = (connection.gate, connection.peer.address());
        let gate = Arc::clone(self.edge.gates.get(number));
        let settings = &self.edge.settings.protection;
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
        let meter = self.edge.node.protection.meter(&who, &scopes);
        self.edge.connections[key].meter = meter;
    }

    /// After a change of rates, a connected session gets another meter, or none.
    pub(crate) fn measure_again(&mut self, slot: Slot) {
        let client = &self.engine.core.sessions[slot];
        let Some(key) = client.connection else {
            return;
        };
        let identity = match client.access.as_deref() {
            Some(access) => (*access.identity).clone(),
            None => self.edge.identity_of(self.engine, slot),
        };
        self.measure(key, &identity);
        // Its debt ends with its old buckets: it is read again, unless buckets that it shares are
        // in debt.
        let connection = &self.edge.connections[key];
        if connection.reading.has(PauseReason::Rate) {
            let again = Target::Pace(self.engine.core.outputs.id(key));
            self.engine
                .core
                .timers
                .insert(self.engine.core.turn.now, again);
        }
    }

    /// Charges what a connection has sent, if it has a meter and is still there.
    #[inline]
    pub(crate) fn charge(&mut self, id: ConnectionId, usage: InputUsage) {
        let connection = self.edge.connection(self.engine, id);
        if connection.is_some_and(|connection| connection.meter.is_some()) {
            self.charge_meter(id.key, usage);
        }
    }

    #[inline(never)]
    fn charge_meter(&mut self, key: ConnectionKey, usage: InputUsage) {
        let now = self.engine.core.turn.now;
        let pause = self
            .meter_and_scopes(key)
            .and_then(|(meter, scopes)| meter.charge(usage, &scopes, now));
        if let Some(pause) = pause {
            self.pace(key, pause);
        }
    }

    /// Stops reading a connection; counted once.
    pub(crate) fn pace(&mut self, key: ConnectionKey, pause: Pause) {
        let connection = &mut self.edge.connections[key];
        if connection.is_draining() || !connection.reading.close(PauseReason::Rate) {
            return;
        }
        self.engine.core.row().add(pause.limit.into(), 1);
        if let Some(slot) = self.edge.connections[key].session() {
            let limit = pause.limit.key();
            tell(&mut self.engine.core, slot, || ClientEvent::Slowed {
                limit,
            });
        }
        self.read_after(key, pause);
    }

    fn read_after(&mut self, key: ConnectionKey, pause: Pause) {
        let again = Target::Pace(self.engine.core.outputs.id(key));
        self.engine
            .core
            .timers
            .insert(self.engine.core.turn.now.plus(pause.wait), again);
    }

    /// Ends the pause of a connection, unless other connections have used up the rate they share.
    pub(crate) fn end_pace(&mut self, id: ConnectionId) {
        let key = id.key;
        let connection = self.edge.connection(self.engine, id);
        if !connection.is_some_and(|connection| connection.reading.has(PauseReason::Rate)) {
            return;
        }
        let now = self.engine.core.turn.now;
        let allowed = self
            .meter_and_scopes(key)
            .map_or(Ok(0), |(meter, scopes)| meter.may_read(&scopes, now));
        if let Err(pause) = allowed {
            self.read_after(key, pause);
            return;
        }
        self.edge.resume(key, PauseReason::Rate);
    }
}
