//! Connected clients that re-authenticate, and clients whose rules may have changed.

use std::sync::Arc;
use std::time::Duration;

use thrum_access::{Admission, Answer, Denial, Exchange, Login, Method, Secret};
use thrum_codec::ReasonCode;
use thrum_codec::packet::Auth;
use thrum_engine::Engine;
use thrum_engine::access::ClientAccess;
use thrum_engine::ending::TIMER_MAX;
use thrum_engine::ids::{ConnectionId, ConnectionKey, Slot};
use thrum_engine::node::metrics::Counter;
use thrum_engine::timers::{Target, TimedSession};
use thrum_protocol::Violation;

use super::admission::is_of_client;
use super::answers::{AnswerTo, reply};
use super::guard::Guard;
use super::recheck::{Recheck, Rechecking};
use super::sources::request_source_review;
use crate::connection::Phase;
use crate::edge::{DisconnectNotice, Edge};

/// A gatekeeper that could not answer is asked again after this time.
const REFRESH_AGAIN_SECS: u32 = 30;

/// See above.
#[derive(Debug)]
pub(crate) struct Reauthentication<'a> {
    pub(crate) recheck: &'a mut Recheck,
    pub(crate) edge: &'a mut Edge,
    pub(crate) engine: &'a mut Engine,
}

impl Reauthentication<'_> {
    const fn rechecking(&mut self) -> Rechecking<'_> {
        Rechecking {
            recheck: self.recheck,
            edge: self.edge,
            engine: self.engine,
        }
    }

    const fn guard(&mut self) -> Guard<'_> {
        Guard {
            edge: self.edge,
            engine: self.engine,
        }
    }

    /// Disconnects a connected client.
    fn disconnect(&mut self, slot: Slot, reason: ReasonCode, what: &'static str) {
        let notice = DisconnectNotice { reason, what };
        self.edge.disconnect_session(self.engine, slot, notice);
    }

    /// AUTH of a connected client. [MQTT-4.12.1-1]
    pub(crate) fn authenticate_again(&mut self, slot: Slot, auth: &Auth<'_>) {
        let client = &self.engine.core.sessions[slot];
        let to = AnswerTo::Again {
            slot,
            id: client.session.id(),
            connection: connection_of(self.engine, slot),
        };
        let data = auth.properties.authentication_data.unwrap_or_default();
        let gatekeeper = self.engine.core.settings.access.access.gatekeeper.clone();
        let Some((gatekeeper, access)) = gatekeeper.zip(client.access.as_deref()) else {
            self.disconnect(
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
                version: client.session.link().version(),
                method: client
                    .session
                    .link()
                    .authentication_method()
                    .map(|name| Method {
                        name: name.into(),
                        data: Secret::new(data),
                    }),
            };
            gatekeeper.login(login, reply(self.edge, self.engine, to));
            return;
        }
        let Some(exchange) = self.exchange(slot).and_then(Option::take) else {
            self.disconnect(
                slot,
                ReasonCode::ProtocolError,
                "AUTH that answers no challenge",
            );
            return;
        };
        gatekeeper.step(*exchange, data.to_vec(), reply(self.edge, self.engine, to));
    }

    /// The gatekeeper has judged a client that re-authenticates. Its rights stay as they are until
    /// then. The answer is about the connection that asked: a newer connection was judged by its
    /// own credentials.
    pub(crate) fn proved_again(
        &mut self,
        slot: Slot,
        id: u64,
        of: Option<ConnectionId>,
        answer: Answer,
    ) {
        if !self.engine.core.sessions.is_connected(slot, id)
            || connection_of(self.engine, slot) != of
        {
            return;
        }
        match answer {
            Answer::Unchanged => {}
            // [MQTT-4.12.1-2]
            Answer::Deny(denial) => {
                self.note_denial_again(slot, &denial);
                self.disconnect_denied(slot, &denial);
            }
            Answer::Challenge { data, exchange } => {
                if let Some(asked) = self.exchange(slot) {
                    *asked = Some(Box::new(exchange));
                }
                let asked = self.engine.core.with(slot, |session, out| {
                    session.link_mut().authenticate_continue(&data, out)
                });
                self.after_auth(slot, asked);
            }
            Answer::Admit(admission) => {
                let data = admission.data.clone();
                self.take_over_admission(slot, *admission);
                if !self.engine.core.sessions.is_connected(slot, id) {
                    return;
                }
                let done = self.engine.core.with(slot, |session, out| {
                    session.link_mut().authenticate_done(data.as_deref(), out)
                });
                self.after_auth(slot, done);
            }
        }
    }

    /// Failed re-authentications count as failed logins, so that they cannot be used to guess
    /// passwords.
    fn note_denial_again(&mut self, slot: Slot, denial: &Denial) {
        let client = &self.engine.core.sessions[slot];
        if let Some(key) = client.connection.filter(|_| is_of_client(denial)) {
            // Only the gatekeeper knows the owner of the key that was tried.
            self.guard().login_failed(key, "", None);
        }
    }

    fn after_auth(&mut self, slot: Slot, written: Result<(), Violation>) {
        if let Err(violation) = written {
            self.disconnect(slot, violation.reason, violation.what);
        }
    }

    /// The gatekeeper has judged an admitted client again: it is connected, or has left a will.
    pub(crate) fn refreshed(
        &mut self,
        slot: Slot,
        id: u64,
        of: Option<ConnectionId>,
        answer: Answer,
    ) {
        if !self.engine.core.sessions.is(slot, id) {
            return;
        }
        let connection = connection_of(self.engine, slot);
        let is_here_again = connection.is_some() && connection != of;
        if is_here_again || self.rechecking().returning_to(slot).is_some() {
            // The client has reconnected since, and was judged again.
            return;
        }
        match answer {
            Answer::Unchanged | Answer::Challenge { .. } => {
                let again = self.engine.core.sessions[slot]
                    .access
                    .as_ref()
                    .and_then(|access| access.refresh_secs);
                refresh_in(self.engine, slot, again);
            }
            Answer::Admit(admission) => self.take_over_admission(slot, *admission),
            // If the check fails, the present rights hold until it succeeds.
            Answer::Deny(denial)
                if denial.reason == ReasonCode::ServerUnavailable
                    || denial.reason == ReasonCode::ServerBusy =>
            {
                refresh_in(self.engine, slot, Some(REFRESH_AGAIN_SECS));
            }
            Answer::Deny(denial) => {
                self.engine
                    .drop_will(slot, "its client is no longer admitted");
                if self.engine.core.sessions.is_connected(slot, id) {
                    self.engine.core.row().add(Counter::AdmissionsRevoked, 1);
                    self.disconnect_denied(slot, &denial);
                }
            }
        }
    }

    fn take_over_admission(&mut self, slot: Slot, admission: Admission) {
        let refresh_secs = admission.refresh_secs;
        if let Some(end) = admission.expires_at {
            valid_until(self.edge, self.engine, slot, Some(end));
        }
        let shared = Arc::clone(&self.engine.core.settings.access);
        let client = &mut self.engine.core.sessions[slot];
        let is_another = if let Some(access) = client.access.as_deref_mut() {
            access.renew(admission, &shared)
        } else {
            let mount = client.session.link().mount_point().cloned();
            let access = ClientAccess::new(admission, &shared).with_mount(mount, false);
            client.access = Some(Box::new(access));
            true
        };
        refresh_in(self.engine, slot, refresh_secs);
        if is_another {
            request_source_review(self.engine);
            self.rechecking().check_subscriptions(slot);
        }
    }

    /// Asks the gatekeeper again, at the scheduled time.
    pub(crate) fn refresh_due(&mut self, timed: TimedSession) {
        let Some(slot) = self.engine.core.sessions.slot_of(timed) else {
            return;
        };
        let now = self.engine.core.turn.now;
        let client = &mut self.engine.core.sessions[slot];
        if client.connection.is_none() && client.session.will().is_none() {
            return;
        }
        let access = client.access.as_deref_mut();
        let Some(access) = access else { return };
        match access.refresh_at {
            Some(at) if at <= now => {
                access.refresh_at = None;
                ask_again(self.edge, self.engine, slot);
            }
            Some(at) => {
                let soon = now.plus(TIMER_MAX);
                self.engine
                    .core
                    .timers
                    .insert(at.min(soon), Target::Refresh(timed));
            }
            None => {}
        }
    }

    /// The step of re-authentication that was requested from the connected client.
    fn exchange(&mut self, slot: Slot) -> Option<&mut Option<Box<Exchange>>> {
        let key = self.engine.core.sessions[slot].connection?;
        match &mut self.edge.connections[key].phase {
            Phase::Established { exchange, .. } => Some(exchange),
            _ => None,
        }
    }

    fn disconnect_denied(&mut self, slot: Slot, denial: &Denial) {
        if self.engine.core.may_log() {
            let client_id = self.engine.core.sessions[slot].session.client_id();
            tracing::info!(client_id, reason = %denial.detail, "disconnected: no longer admitted");
        }
        let reason = match denial.reason {
            // A reason of CONNACK that DISCONNECT does not have.
            ReasonCode::BadUserNameOrPassword => ReasonCode::NotAuthorized,
            other => other,
        };
        self.disconnect(slot, reason, denial.what);
    }
}

/// Sets the time at which the connection ends: seconds of the Unix epoch, by the wall clock.
pub(crate) fn valid_until(edge: &Edge, engine: &mut Engine, slot: Slot, end: Option<u64>) {
    let end = end.map(|end| edge.node.state.wall.at_seconds(end));
    let client = &mut engine.core.sessions[slot];
    client.session.link_mut().set_valid_until(end);
    engine.core.arm(slot);
}

/// Schedules the next request to the gatekeeper about the client's own rules.
pub(crate) fn refresh_in(engine: &mut Engine, slot: Slot, seconds: Option<u32>) {
    let Some(seconds) = seconds else { return };
    let client = &mut engine.core.sessions[slot];
    let timed = TimedSession::new(slot, &client.session);
    let at = engine
        .core
        .turn
        .now
        .plus(Duration::from_secs(u64::from(seconds.max(1))));
    if let Some(access) = client.access.as_deref_mut() {
        access.refresh_secs = Some(seconds);
        access.refresh_at = Some(at);
        let soon = engine.core.turn.now.plus(TIMER_MAX);
        engine
            .core
            .timers
            .insert(at.min(soon), Target::Refresh(timed));
    }
}

/// Asks the gatekeeper whether its decision about a connected client still holds.
pub(crate) fn ask_again(edge: &Edge, engine: &Engine, slot: Slot) {
    let client = &engine.core.sessions[slot];
    let id = client.session.id();
    let gatekeeper = engine.core.settings.access.access.gatekeeper.clone();
    if let Some((gatekeeper, access)) = gatekeeper.zip(client.access.as_deref()) {
        let identity = Arc::clone(&access.identity);
        let connection = connection_of(engine, slot);
        let to = AnswerTo::Refresh {
            slot,
            id,
            connection,
        };
        gatekeeper.refresh(identity, reply(edge, engine, to));
    }
}

/// The connection of a session, if it has one.
fn connection_of(engine: &Engine, slot: Slot) -> Option<ConnectionId> {
    let key = engine.core.sessions[slot].connection?;
    Some(engine.core.outputs.id(key))
}

/// Whether the session exists and has this connection.
pub(crate) fn is_at(engine: &Engine, slot: Slot, key: ConnectionKey) -> bool {
    let client = engine.core.sessions.get(slot);
    client.is_some_and(|client| client.connection == Some(key))
}
