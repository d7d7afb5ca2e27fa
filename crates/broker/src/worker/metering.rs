//! Rates of what clients send: a connection that has used up one of them is not read for a while; nothing is dropped.

use std::sync::Arc;

use thrum_access::Identity;
use thrum_codec::frame;

use super::{Local, Target, Worker};
use crate::metrics::Counter;
use crate::protection::{Meter, Pause, Scopes, Usage, Who};
use crate::read_gate::PauseReason;

/// Type of a PUBLISH in the first byte of its header.
const PUBLISH: u8 = 3;

impl Local {
    /// The meter of a connection, if it has one, with the rates in force for it.
    fn meter_and_scopes(&mut self, key: u32) -> Option<(&mut Meter, Scopes<'_>)> {
        let connection = self.connections.get_mut(key as usize)?;
        let meter = connection.meter.as_deref_mut()?;
        let gate = self.gates.get(usize::from(connection.gate));
        let gate = gate.and_then(Option::as_ref);
        let settings = &self.settings.protection;
        let scopes = Scopes {
            client: &settings.client,
            user: &settings.user,
            address: &settings.address,
            listener: gate.map(|gate| (&gate.paces, &*gate.account)),
        };
        Some((meter, scopes))
    }
}

impl Worker {
    /// Gives a connection its meter; none if nothing is limited.
    pub(super) fn measure(&mut self, key: u32, identity: &Identity) {
        let connection = &self.local.connections[key as usize];
        let (number, address) = (connection.gate, connection.peer.address());
        let gate = Arc::clone(self.local.gate(number));
        let settings = &self.local.settings.protection;
        let who = Who {
            client_id: &identity.client_id,
            username: identity.username.as_deref(),
            address,
        };
        let scopes = Scopes {
            client: &settings.client,
            user: &settings.user,
            address: &settings.address,
            listener: Some((&gate.paces, &gate.account)),
        };
        let meter = self.node.protection.meter(&who, &scopes);
        self.local.connections[key as usize].meter = meter;
    }

    /// Other rates: a session that has a connection gets another meter, or none.
    pub(super) fn measure_again(&mut self, slot: u32) {
        let client = &self.local.clients[slot as usize];
        let key = client
            .connection_slot()
            .and_then(|key| u32::try_from(key).ok());
        let Some(key) = key else { return };
        let identity = match client.access.as_deref() {
            Some(access) => (*access.identity).clone(),
            None => self.identity_of(slot),
        };
        self.measure(key, &identity);
        // What it owes is forgotten with its old buckets: it is read again, unless others owe what it shares.
        let connection = &self.local.connections[key as usize];
        if connection.reading.has(PauseReason::Rate) {
            let serial = connection.serial;
            self.timers
                .insert(self.local.now, Target::Pace { key, serial });
        }
    }

    /// One read of a connection with a meter.
    #[inline(never)]
    pub(super) fn read_metered(&mut self, key: u32, buffer: &mut [u8]) -> Option<usize> {
        let now = self.local.now;
        let (meter, scopes) = self.local.meter_and_scopes(key)?;
        match meter.may_read(&scopes, now) {
            Ok(bytes_max) => {
                let len = bytes_max.min(buffer.len());
                let buffer = &mut buffer[..len];
                let outcome = self.local.connections[key as usize].read(buffer);
                self.metered(key, |worker| worker.take_read(key, buffer, outcome))
            }
            Err(pause) => {
                self.pace(key, pause);
                None
            }
        }
    }

    /// Does something that handles input of a connection, and charges what came in; nothing if it has no meter.
    pub(super) fn metered<R>(&mut self, key: u32, handle: impl FnOnce(&mut Self) -> R) -> R {
        let connection = self.local.connections.get(key as usize);
        let known = connection.map(|connection| (connection.serial, connection.layered.is_some()));
        let Some((serial, is_layered)) = known else {
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
        let connection = self.local.connections.get(key as usize);
        if connection.is_some_and(|connection| connection.serial == serial) {
            self.charge(key, Usage { messages, bytes });
        }
        result
    }

    /// Charges what came in behind a CONNECT, before it is handled.
    pub(super) fn charge_unread(&mut self, key: u32, unread: &[u8]) {
        if self.local.connections[key as usize].meter.is_none() {
            return;
        }
        let (mut messages, mut rest) = (0, unread);
        let packet_bytes_max = self.local.settings.session.packet_bytes_max;
        while let Ok(Some(frame)) = frame::split(rest, packet_bytes_max) {
            messages += u64::from(frame.first >> 4 == PUBLISH);
            rest = &rest[frame.len..];
        }
        let bytes = unread.len() as u64;
        self.charge(key, Usage { messages, bytes });
    }

    /// Charges bytes that came in before the connection had its meter; the messages among them are charged as they are
    /// handled.
    pub(super) fn charge_bytes(&mut self, key: u32, bytes: usize) {
        let (messages, bytes) = (0, bytes as u64);
        self.charge(key, Usage { messages, bytes });
    }

    fn charge(&mut self, key: u32, usage: Usage) {
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
    fn pace(&mut self, key: u32, pause: Pause) {
        let connection = &mut self.local.connections[key as usize];
        if connection.is_draining() || !connection.reading.close(PauseReason::Rate) {
            return;
        }
        self.local.row().add(pause.limit.into(), 1);
        self.read_after(key, pause);
    }

    fn read_after(&mut self, key: u32, pause: Pause) {
        let serial = self.local.connections[key as usize].serial;
        self.timers.insert(
            self.local.now.plus(pause.wait),
            Target::Pace { key, serial },
        );
    }

    /// The pause of a connection is over, unless others have used up meanwhile what it shares with them.
    pub(super) fn pace_over(&mut self, key: u32, serial: u32) {
        let connection = self.local.connections.get(key as usize);
        let is_paced = connection.is_some_and(|connection| {
            connection.serial == serial && connection.reading.has(PauseReason::Rate)
        });
        if !is_paced {
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
