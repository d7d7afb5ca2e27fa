//! From CONNECT to a session: hand-over to the worker that owns it, takeover, CONNACK.

use std::sync::Arc;

use thrum_access::Admission;
use thrum_codec::frame::Frame;
use thrum_codec::packet::Connect;
use thrum_codec::{DecodeError, ReasonCode, Version};
use thrum_engine::access::ClientAccess;
use thrum_engine::events::Connected;
use thrum_engine::ids::{ConnectionKey, Slot};
use thrum_engine::interest::EventKind;
use thrum_engine::node::metrics::Counter;
use thrum_engine::node::session_counts::Holder;
use thrum_engine::timeline::{ClientEvent, NewConnection, SessionEnd, tell, tell_refused};
use thrum_engine::workers::WorkerId;
use thrum_protocol::server::{ConnAckParts, Handshake, refuse, refuse_connect};
use thrum_protocol::{Limits, Violation};

use super::Door;
use super::admission::Admitted;
use super::authorizing::access_of;
use super::checks::Entrant;
use super::judging::is_verified;
use super::reauthentication::{ask_again, refresh_in, valid_until};
use crate::connection::{Closing, Connection};
use crate::edge::{Arrival, DisconnectNotice, Ending, flag_traced};
use crate::mailbox::{Handover, Mail};
use crate::traffic::Next;

/// A client that asks for admission, by the names that it gave.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Applicant<'a> {
    pub(super) client_id: Option<&'a str>,
    /// The user name, verified or not.
    pub(super) user: Option<&'a str>,
}

/// A client on its way to the worker that owns its session.
#[derive(Debug)]
pub(super) struct Entering {
    pub(super) handshake: Handshake,
    pub(super) admitted: Box<Admitted>,
    /// The bytes behind its CONNECT.
    pub(super) unread: Vec<u8>,
}

/// A connection and the session that it now has.
#[derive(Clone, Copy, Debug)]
struct Joined {
    key: ConnectionKey,
    slot: Slot,
    /// The session existed before.
    is_resumed: bool,
}

/// The part of an admission that outlives the handshake.
#[derive(Debug)]
struct SessionAdmission {
    expires_at: Option<u64>,
    refresh_secs: Option<u32>,
    /// Authentication data for CONNACK.
    data: Option<Vec<u8>>,
    /// Generation of the access that judged the client.
    generation: u64,
    /// The account that the session counts for.
    holder: Holder,
}

impl Door<'_> {
    /// Handles a CONNECT; `rest` holds the bytes behind it in the same read.
    pub(crate) fn handshake(
        &mut self,
        key: ConnectionKey,
        connect: &Connect<'_>,
        rest: &[u8],
    ) -> Next {
        self.edge.connections[key].version = connect.version;
        let gate = self.edge.connections[key].gate;
        if !self.edge.gates.get(gate).accepts(connect.version) {
            let what =
                "this listener does not take this version of MQTT (accept_protocol_versions)";
            // [MQTT-3.1.2-2] [MQTT3-3.1.2-2]
            let violation = Violation::new(ReasonCode::UnsupportedProtocolVersion, what);
            self.refuse(key, connect, &violation);
            return Next::Stop;
        }
        // This check comes first, while the client has cost nothing. A takeover needs no room;
        // whether it is one is known once the session is found.
        if !self.checks().may_take_over(connect.client_id)
            && let Err(violation) = self.checks().has_room()
        {
            self.refuse(key, connect, &violation);
            return Next::Stop;
        }
        let assigned = if connect.client_id.is_empty() {
            self.new_client_id()
        } else {
            String::new()
        };
        let gate = self.edge.connections[key].gate;
        let retain_available = self.edge.gates.get(gate).retain_available;
        let limits = &self.engine.core.settings.session;
        let handshake = if retain_available {
            Handshake::new(connect, &assigned, limits)
        } else {
            let limits = Limits {
                retain_available,
                ..Limits::clone(limits)
            };
            Handshake::new(connect, &assigned, &limits)
        };
        match handshake {
            Ok(handshake) => {
                if let Err(violation) = self.guard().may_log_in(key, &handshake, connect.username) {
                    self.refuse(key, connect, &violation);
                    return Next::Stop;
                }
                let outcome = self.admit(key, connect, handshake);
                self.carry_out(key, outcome, rest)
            }
            Err(violation) => {
                if violation.reason == ReasonCode::ClientIdentifierNotValid {
                    self.engine.core.row().add(Counter::LimitClientId, 1);
                }
                self.refuse(key, connect, &violation);
                Next::Stop
            }
        }
    }

    pub(crate) fn owner(&self, client_id: &str) -> WorkerId {
        if self.engine.core.node.workers() == 1 {
            return self.engine.core.id;
        }
        self.engine
            .core
            .node
            .registry
            .claim(client_id, self.engine.core.id)
    }

    /// Whether this worker has unread mail that is older than the session which begins now. Some
    /// may come from the client's last session, on another worker, and the client's new messages
    /// must not overtake it: the connection goes through this worker's own mailbox and queues
    /// behind that mail. [MQTT-4.6.0-6] [MQTT3-4.6.0-6]
    pub(crate) fn has_older_mail(&self, client_id: &str) -> bool {
        // Opened mail counts as unread until the end of its portion.
        self.engine.core.node.workers() > 1
            && self.engine.core.sessions.find(client_id).is_none()
            && self
                .engine
                .core
                .node
                .mailbox_level(self.engine.core.id)
                .waiting()
                .0
                > self.inbox.opened()
    }

    pub(super) fn hand_connection_over(
        &mut self,
        key: ConnectionKey,
        owner: WorkerId,
        entering: Entering,
    ) {
        let Entering {
            handshake,
            admitted,
            unread,
        } = entering;
        let trace_number = self.edge.traces.number_of(key);
        let mut connection = self.edge.take_out(self.engine, key);
        if let Err(error) = self.edge.poll.registry().deregister(&mut connection.socket) {
            tracing::warn!(%error, "a connection could not be handed over; it is closed");
            self.edge.gates.leave(connection.gate);
            self.engine.core.row().add(Counter::ConnectionsClosed, 1);
            self.engine
                .core
                .sessions
                .ended
                .push(handshake.client_id().into());
            return;
        }
        if owner != self.engine.core.id {
            self.engine.core.row().add(Counter::Handovers, 1);
        }
        let Connection {
            socket,
            peer,
            gate,
            layered,
            ..
        } = connection;
        let handover = Handover {
            socket,
            peer,
            gate,
            layered,
            handshake,
            admitted,
            unread,
            trace_number,
        };
        let mail = Mail::Adopt(Box::new(handover));
        self.shell_mail
            .send(&mut self.engine.core.outboxes, owner, mail);
    }

    /// [MQTT-3.1.3-6] [MQTT-3.1.3-7]: unique, and unpredictable for other clients.
    fn new_client_id(&mut self) -> String {
        format!(
            "thrum-{:016x}{:08x}",
            self.engine.core.node.identity ^ self.engine.core.random(),
            self.engine.core.node.next_session_id(self.engine.core.id)
        )
    }

    /// Resumes the session of the identifier, or begins a new one. [MQTT-3.1.2-5] [MQTT-3.1.2-6]
    /// [MQTT-3.1.4-4] [MQTT3-3.1.4-3]
    pub(crate) fn attach(
        &mut self,
        key: ConnectionKey,
        handshake: Handshake,
        admitted: Admitted,
        rest: &[u8],
    ) -> Next {
        let existing = self.engine.core.sessions.find(handshake.client_id());
        let admission = &admitted.admission;
        let standing = SessionAdmission {
            expires_at: admission.expires_at,
            refresh_secs: admission.refresh_secs,
            data: admission.data.clone(),
            generation: admitted.generation,
            holder: self.checks().holder(key, &admission.identity),
        };
        self.edge
            .meters(self.engine)
            .measure(key, &admission.identity);
        self.edge.connections[key].is_unverified = admitted.is_unverified;
        let may_begin = self.guard().may_begin(key, &handshake, &admission.identity);
        let may_stay = if is_verified(&admission.identity) {
            may_begin
        } else {
            may_begin.and_then(|()| self.checks().may_stay(key))
        };
        let names = self.edge.lines.are_wanted();
        let user = admission.identity.username.clone().filter(|_| names);
        let has_room = admitted.has_room;
        let access = access_of(self.engine, &handshake, admitted);
        // No client receives messages that are queued for another user.
        let own = existing.filter(|slot| !self.checks().is_of_another(*slot, access.as_deref()));
        let entrant = Entrant {
            key,
            handshake: &handshake,
            access: access.as_deref(),
            existing,
            own,
            has_room,
            holder: standing.holder,
        };
        let may_be = may_stay.and_then(|()| self.checks().may_attach(&entrant));
        if let Err(violation) = may_be {
            let access = access.as_deref();
            let user = access.and_then(|access| access.identity.username.as_deref());
            self.refuse_pending(key, &handshake, user, &violation);
            if existing.is_none() && self.engine.core.node.workers() > 1 {
                let sessions = &mut self.engine.core.sessions;
                sessions.ended.push(handshake.client_id().into());
            }
            return Next::Stop;
        }
        let clean_start = handshake.clean_start() || own != existing;
        let resumed = existing.and_then(|slot| self.take_over(slot, key, clean_start));
        let slot = resumed.unwrap_or_else(|| self.engine.begin_session(&handshake));
        let before = self.engine.core.sessions[slot].take_rights(access);
        if resumed.is_some() && !self.rechecking().withhold(key, slot, before.as_deref()) {
            let admitted = self.admitted_again(key, slot, standing);
            let access = self.engine.core.sessions[slot].access.as_deref_mut();
            if let (Some(access), Some(before)) = (access, before.as_deref()) {
                access.inherit_until_admitted(before);
            }
            self.await_review(key, handshake, admitted, rest);
            return Next::Stop;
        }
        let joined = Joined {
            key,
            slot,
            is_resumed: resumed.is_some(),
        };
        self.establish(joined, handshake, &standing);
        self.report_connected(joined, user.as_deref());
        Next::Frame
    }

    /// Gives the session to the client.
    fn establish(&mut self, joined: Joined, handshake: Handshake, standing: &SessionAdmission) {
        let Joined {
            key,
            slot,
            is_resumed,
        } = joined;
        self.engine.core.row().add(Counter::ClientsConnected, 1);
        self.edge.connections[key].establish(slot);
        self.engine.core.outputs[key].begin_session(slot);
        self.engine.core.sessions[slot].connection = Some(key);
        self.send_connack(joined, handshake, standing);
        valid_until(self.edge, self.engine, slot, standing.expires_at);
        refresh_in(self.engine, slot, standing.refresh_secs);
        if standing.generation != self.engine.core.settings.access.generation {
            // Users may have changed since the client was judged.
            ask_again(self.edge, self.engine, slot);
        }
        if is_resumed {
            self.engine.subscribing().set_groups_online(slot, true);
            self.engine.replay(slot);
        }
        self.engine.core.arm(slot);
    }

    fn report_connected(&mut self, joined: Joined, user: Option<&str>) {
        let connection = &self.edge.connections[joined.key];
        let listener = Arc::clone(&self.edge.gates.get(connection.gate).name);
        let arrival = Arrival {
            slot: joined.slot,
            peer: connection.peer,
            listener: &listener,
            version: connection.version,
            user,
            session_present: joined.is_resumed,
        };
        self.edge.lines.log_arrival(self.engine, arrival);
        let lifetime = self.engine.core.sessions[joined.slot].session.lifetime();
        let (keep_alive_secs, expiry_secs) = (lifetime.keep_alive(), lifetime.session_expiry());
        let event = || {
            ClientEvent::Connected(NewConnection {
                peer: arrival.peer,
                listener: Arc::clone(&listener),
                version: arrival.version,
                session_present: joined.is_resumed,
                keep_alive_secs,
                expiry_secs,
            })
        };
        tell(&mut self.engine.core, joined.slot, event);
        if self.edge.traces.are_on() {
            let client_id = self.engine.core.sessions[joined.slot].session.client_id();
            flag_traced(self.edge, self.engine, joined.key, client_id);
        }
        if let Some(reporter) = self.engine.core.reporter(EventKind::ClientConnected) {
            reporter.connected(Connected {
                slot: arrival.slot,
                peer: format_args!("{}", arrival.peer),
                listener: &listener,
                version: arrival.version,
                session_present: arrival.session_present,
            });
        }
    }

    /// The admission of a client that has to wait again.
    fn admitted_again(
        &self,
        key: ConnectionKey,
        slot: Slot,
        standing: SessionAdmission,
    ) -> Admitted {
        let access = self.engine.core.sessions[slot].access.as_deref();
        let admission = access.map(ClientAccess::admission).unwrap_or_default();
        Admitted {
            admission: Admission {
                expires_at: standing.expires_at,
                refresh_secs: standing.refresh_secs,
                data: standing.data,
                ..admission
            },
            generation: standing.generation,
            is_unverified: self.edge.connections[key].is_unverified,
            is_will_allowed: access.is_some_and(|access| access.is_will_allowed),
            has_room: true,
        }
    }

    /// Sends CONNACK, and the messages that the session holds for its client.
    fn send_connack(&mut self, joined: Joined, handshake: Handshake, standing: &SessionAdmission) {
        let Joined {
            slot, is_resumed, ..
        } = joined;
        let connack = ConnAckParts {
            session_present: is_resumed,
            authentication_data: standing.data.as_deref(),
            ..ConnAckParts::default()
        };
        self.engine
            .complete_connect(slot, handshake, connack, standing.holder);
    }

    /// Ends the earlier connection of the client identifier; returns the slot if its session
    /// continues. [MQTT-3.1.4-3] [MQTT3-3.1.4-2]
    fn take_over(&mut self, slot: Slot, by: ConnectionKey, clean_start: bool) -> Option<Slot> {
        if let Some(returning) = self.rechecking().returning_to(slot) {
            self.refuse_taken_over(returning);
        }
        let client = &self.engine.core.sessions[slot];
        let id = client.session.id();
        if let Some(key) = client.connection {
            self.engine.core.row().add(Counter::Takeovers, 1);
            let notice = DisconnectNotice {
                reason: ReasonCode::SessionTakenOver,
                what: "another connection uses this client identifier",
            };
            let by = self.edge.connections[by].peer;
            self.edge
                .disconnect(self.engine, key, notice, Ending::TakenOver { by });
        }
        if !self.engine.core.sessions.is(slot, id) {
            return None;
        }
        if clean_start {
            // [MQTT-3.1.2-4] [MQTT3-3.1.2-6]
            self.engine.remove_session(slot, SessionEnd::CleanStart);
            return None;
        }
        Some(slot)
    }

    /// Sends CONNACK with an error, then ends the connection. [MQTT-3.1.4-2] [MQTT3-3.1.4-5]
    pub(crate) fn refuse(
        &mut self,
        key: ConnectionKey,
        connect: &Connect<'_>,
        violation: &Violation,
    ) {
        refuse_connect(
            connect,
            violation,
            self.engine.core.outputs.buffer(Some(key)),
        );
        let applicant = Applicant {
            client_id: Some(connect.client_id),
            user: connect.username,
        };
        self.refused(key, applicant, violation);
    }

    /// Ignores the bytes behind the CONNECT. [MQTT-3.1.4-6] [MQTT-3.2.2-7] [MQTT3-3.2.2-5]
    pub(super) fn refused(
        &mut self,
        key: ConnectionKey,
        applicant: Applicant<'_>,
        violation: &Violation,
    ) {
        self.engine.core.row().add(Counter::ConnectionsRefused, 1);
        let peer = self.edge.connections[key].peer;
        if let Some(client_id) = applicant.client_id.filter(|id| !id.is_empty()) {
            let event = ClientEvent::Refused {
                peer,
                reason: violation.reason,
                what: violation.what,
            };
            tell_refused(&mut self.engine.core, client_id, event);
        }
        if self.engine.core.may_log() {
            let Applicant { client_id, user } = applicant;
            tracing::info!(%peer, client_id, user, reason = violation.what, "connection refused");
        }
        self.edge.drain(self.engine, key, Closing::Shutdown);
    }

    /// Refuses bytes that are no packet. [MQTT-3.1.4-1]
    pub(crate) fn refused_to_decode(
        &mut self,
        key: ConnectionKey,
        frame: Frame<'_>,
        error: DecodeError,
    ) {
        let waits_for_connect = self.edge.connections[key].awaits_connect();
        let is_connect = frame.first >> 4 == 1;
        let version = answer_version(frame.body);
        match version {
            // [MQTT-3.1.2-2] [MQTT3-3.1.2-2]; a 3.x client gets no CONNACK for a malformed CONNECT.
            Some(version)
                if waits_for_connect
                    && is_connect
                    && (version == Version::V5 || error == DecodeError::UnsupportedVersion) =>
            {
                self.engine.core.row().add(Counter::Violations, 1);
                let violation = error.into();
                refuse(
                    version,
                    &violation,
                    self.engine.core.outputs.buffer(Some(key)),
                );
                self.refused(key, Applicant::default(), &violation);
            }
            _ => self.edge.violated(self.engine, key, error.into()),
        }
    }
}

/// The version for the answer to an undecodable CONNECT: by the protocol level that it names.
fn answer_version(connect: &[u8]) -> Option<Version> {
    let name_len = usize::from(u16::from_be_bytes([*connect.first()?, *connect.get(1)?]));
    let level = *connect.get(2 + name_len)?;
    // The highest bit is the mark of a bridge, and bridges use 3.x.
    Some(if (5..0x80).contains(&level) {
        Version::V5
    } else {
        Version::V311
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_level_is_answered_in_the_nearest_version() {
        let connect = |level| [&[0, 4], &b"MQTT"[..], &[level]].concat();
        assert_eq!(answer_version(&connect(6)), Some(Version::V5));
        assert_eq!(answer_version(&connect(2)), Some(Version::V311));
        assert_eq!(answer_version(&connect(0x85)), Some(Version::V311));
        assert_eq!(answer_version(&[0]), None);
        assert_eq!(answer_version(&[0xFF, 0xFF, 1]), None);
    }
}
