//! Connected clients that prove themselves again, and those whose rules may have changed.

use std::sync::Arc;
use std::time::Duration;

use thrum_access::{Admission, Answer, Denial, Exchange, Login, Method, Secret};
use thrum_codec::ReasonCode;
use thrum_codec::packet::Auth;

use super::admission::is_of_client;
use super::answers::AnswerTo;
use super::lifecycle::{Ending, TIMER_MAX};
use super::{Target, TimedSession, Worker};
use crate::access::ClientAccess;
use crate::connection::Phase;
use crate::ids::{ConnectionId, ConnectionKey, Slot};
use crate::metrics::Counter;

impl Worker {
    /// AUTH of a connected client. [MQTT-4.12.1-1]
    pub(super) fn authenticate_again(&mut self, slot: Slot, auth: &Auth<'_>) {
        let client = &self.local.clients[slot];
        let to = AnswerTo::Again {
            slot,
            id: client.session.id(),
            connection: self.connection_of(slot),
        };
        let data = auth.properties.authentication_data.unwrap_or_default();
        let gatekeeper = self.local.settings.access.access.gatekeeper.clone();
        let Some((gatekeeper, access)) = gatekeeper.zip(client.access.as_deref()) else {
            self.turn_away(
                slot,
                ReasonCode::NotAuthorized,
                "enhanced authentication is no longer set up",
            );
            return;
        };
        if auth.reason == ReasonCode::ReAuthenticate {
            let login = Login {
                identity: (*access.identity).clone(),
                is_username_verified: false,
                is_known_there: true,
                password: None,
                version: client.session.version(),
                method: client.session.authentication_method().map(|name| Method {
                    name: name.into(),
                    data: Secret::new(data),
                }),
            };
            gatekeeper.login(login, self.reply(to));
            return;
        }
        let Some(exchange) = self.exchange(slot).and_then(Option::take) else {
            self.turn_away(
                slot,
                ReasonCode::ProtocolError,
                "AUTH that answers no challenge",
            );
            return;
        };
        gatekeeper.step(*exchange, data.to_vec(), self.reply(to));
    }

    /// The gatekeeper has judged a client that proves itself again. What it may do stays as it is
    /// until then. The answer is about the connection that asked: one that has come since was
    /// judged by what it showed itself.
    pub(super) fn proved_again(
        &mut self,
        slot: Slot,
        id: u64,
        of: Option<ConnectionId>,
        answer: Answer,
    ) {
        if !self.is_connected(slot, id) || self.connection_of(slot) != of {
            return;
        }
        match answer {
            Answer::Unchanged => {}
            // [MQTT-4.12.1-2]
            Answer::Deny(denial) => {
                self.note_denial_again(slot, &denial);
                self.turn_away_denied(slot, &denial);
            }
            Answer::Challenge { data, exchange } => {
                if let Some(asked) = self.exchange(slot) {
                    *asked = Some(Box::new(exchange));
                }
                let (client, out) = self.local.client_and_output(slot);
                let asked = client.session.authenticate_continue(&data, out);
                self.after_auth(slot, asked);
            }
            Answer::Admit(admission) => {
                let data = admission.data.clone();
                self.take_over_admission(slot, *admission);
                if !self.is_connected(slot, id) {
                    return;
                }
                let (client, out) = self.local.client_and_output(slot);
                let done = client.session.authenticate_done(data.as_deref(), out);
                self.after_auth(slot, done);
            }
        }
    }

    /// Passwords are not to be guessed by way of re-authentication either.
    fn note_denial_again(&mut self, slot: Slot, denial: &Denial) {
        let client = &self.local.clients[slot];
        if let Some(key) = client.connection.filter(|_| is_of_client(denial)) {
            // Whose key was tried is known to the gatekeeper alone.
            self.login_failed(key, "", None);
        }
    }

    fn after_auth(&mut self, slot: Slot, written: Result<(), thrum_protocol::Violation>) {
        match written {
            Ok(()) => {
                if let Some(key) = self.local.clients[slot].connection {
                    self.local.wrote(key);
                }
            }
            Err(violation) => self.turn_away(slot, violation.reason, violation.what),
        }
    }

    /// The gatekeeper has looked at a client again that was in: it is connected, or has left a
    /// will.
    pub(super) fn refreshed(
        &mut self,
        (slot, id): (Slot, u64),
        of: Option<ConnectionId>,
        answer: Answer,
    ) {
        if !self.is_session(slot, id) {
            return;
        }
        let connection = self.connection_of(slot);
        let is_here_again = connection.is_some() && connection != of;
        if is_here_again || self.returning_to(slot).is_some() {
            // It has come back since, and was judged anew.
            return;
        }
        match answer {
            Answer::Unchanged | Answer::Challenge { .. } => {
                let again = self.local.clients[slot]
                    .access
                    .as_ref()
                    .and_then(|access| access.refresh_secs);
                self.refresh_in(slot, again);
            }
            Answer::Admit(admission) => self.take_over_admission(slot, *admission),
            // What cannot be looked up now holds until it can be.
            Answer::Deny(denial)
                if denial.reason == ReasonCode::ServerUnavailable
                    || denial.reason == ReasonCode::ServerBusy =>
            {
                self.refresh_in(slot, Some(REFRESH_AGAIN_SECS));
            }
            Answer::Deny(denial) => {
                self.drop_will(slot, "its client is no longer admitted");
                if self.is_connected(slot, id) {
                    self.local.row().add(Counter::ClientsTurnedAway, 1);
                    self.turn_away_denied(slot, &denial);
                }
            }
        }
    }

    fn take_over_admission(&mut self, slot: Slot, admission: Admission) {
        let refresh_secs = admission.refresh_secs;
        if let Some(end) = admission.expires_at {
            self.valid_until(slot, Some(end));
        }
        let shared = Arc::clone(&self.local.settings.access);
        let client = &mut self.local.clients[slot];
        let is_another = if let Some(access) = client.access.as_deref_mut() {
            access.renew(admission, &shared)
        } else {
            let mount = client.session.mount_point().cloned();
            let access = ClientAccess::new(admission, &shared).entered(mount, false);
            client.access = Some(Box::new(access));
            true
        };
        self.refresh_in(slot, refresh_secs);
        if is_another {
            self.want_look_at_sources();
            self.check_subscriptions(slot);
        }
    }

    /// The connection ends then: seconds of the Unix epoch, as a wall clock shows them.
    pub(super) fn valid_until(&mut self, slot: Slot, end: Option<u64>) {
        let end = end.map(|end| self.node.clock.at_wall_seconds(end));
        let client = &mut self.local.clients[slot];
        client.session.set_valid_until(end);
        self.arm(slot);
    }

    /// The gatekeeper is asked again about the client's own rules.
    pub(super) fn refresh_in(&mut self, slot: Slot, seconds: Option<u32>) {
        let Some(seconds) = seconds else { return };
        let client = &mut self.local.clients[slot];
        let timed = TimedSession::new(slot, &client.session);
        let at = self
            .local
            .now
            .plus(Duration::from_secs(u64::from(seconds.max(1))));
        if let Some(access) = client.access.as_deref_mut() {
            access.refresh_secs = Some(seconds);
            access.refresh_at = Some(at);
            let soon = self.local.now.plus(TIMER_MAX);
            self.timers.insert(at.min(soon), Target::Refresh(timed));
        }
    }

    /// It is time to ask again.
    pub(super) fn refresh_due(&mut self, timed: TimedSession) {
        let Some(slot) = self.slot_of_timed(timed) else {
            return;
        };
        let now = self.local.now;
        let client = &mut self.local.clients[slot];
        if client.connection.is_none() && client.session.will().is_none() {
            return;
        }
        let access = client.access.as_deref_mut();
        let Some(access) = access else { return };
        match access.refresh_at {
            Some(at) if at <= now => {
                access.refresh_at = None;
                self.ask_again(slot);
            }
            Some(at) => {
                let soon = now.plus(TIMER_MAX);
                self.timers.insert(at.min(soon), Target::Refresh(timed));
            }
            None => {}
        }
    }

    /// Asks the gatekeeper whether what it said of a connected client still holds.
    pub(super) fn ask_again(&mut self, slot: Slot) {
        let client = &self.local.clients[slot];
        let id = client.session.id();
        let gatekeeper = self.local.settings.access.access.gatekeeper.clone();
        if let Some((gatekeeper, access)) = gatekeeper.zip(client.access.as_deref()) {
            let identity = Arc::clone(&access.identity);
            let connection = self.connection_of(slot);
            let to = AnswerTo::Refresh {
                slot,
                id,
                connection,
            };
            gatekeeper.refresh(identity, self.reply(to));
        }
    }

    /// The step of re-authentication that the connected client was asked for.
    fn exchange(&mut self, slot: Slot) -> Option<&mut Option<Box<Exchange>>> {
        let key = self.local.clients[slot].connection?;
        match &mut self.local.connections[key].phase {
            Phase::Established { exchange, .. } => Some(exchange),
            _ => None,
        }
    }

    /// The connection of a session, if it has one.
    fn connection_of(&self, slot: Slot) -> Option<ConnectionId> {
        let key = self.local.clients[slot].connection?;
        Some(self.local.connections[key].id(key))
    }

    /// The session is there and has this connection.
    pub(super) fn is_at(&self, slot: Slot, key: ConnectionKey) -> bool {
        let client = self.local.clients.get(slot);
        client.is_some_and(|client| client.connection == Some(key))
    }

    pub(super) fn is_connected(&self, slot: Slot, id: u64) -> bool {
        self.is_session(slot, id) && self.local.clients[slot].connection.is_some()
    }

    fn turn_away_denied(&mut self, slot: Slot, denial: &Denial) {
        if self.may_log() {
            let client_id = self.local.clients[slot].session.client_id();
            tracing::info!(client_id, reason = %denial.detail, "disconnected: no longer admitted");
        }
        let reason = match denial.reason {
            // A reason of CONNACK, which DISCONNECT does not have.
            ReasonCode::BadUserNameOrPassword => ReasonCode::NotAuthorized,
            other => other,
        };
        self.turn_away(slot, reason, denial.what);
    }

    /// A connected client has to go.
    pub(super) fn turn_away(&mut self, slot: Slot, reason: ReasonCode, what: &str) {
        if let Some(key) = self.local.clients[slot].connection {
            self.disconnect(key, reason, what, Ending::ClosedByServer);
        }
    }
}

/// A gatekeeper that could not look is asked again after this.
const REFRESH_AGAIN_SECS: u32 = 30;
