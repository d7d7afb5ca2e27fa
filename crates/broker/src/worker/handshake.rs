//! From CONNECT to a session: admission, hand-over to the worker that owns it, takeover, CONNACK.

use std::sync::Arc;

use thrum_access::{Admission, Identity};
use thrum_codec::frame::Frame;
use thrum_codec::packet::Connect;
use thrum_codec::{DecodeError, ReasonCode, Version};
use thrum_protocol::server::{Handshake, Session, Welcome, refuse, refuse_connect};
use thrum_protocol::{Limits, Violation};
use thrum_storage::Owner;

use super::admission::Admitted;
use super::input::Next;
use super::judging::is_verified;
use super::lifecycle::Ending;
use super::{Client, Worker};
use crate::access::ClientAccess;
use crate::config::Takeover;
use crate::connection::{Closing, Connection};
use crate::ids::{ConnectionKey, Slot};
use crate::mailbox::{Handover, Mail};
use crate::metrics::Counter;
use crate::session_counts::Holder;

/// Who wants to come in, as far as it has said so.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Applicant<'a> {
    pub(super) client_id: Option<&'a str>,
    /// Verified or not.
    pub(super) user: Option<&'a str>,
}

/// What was said of a client that comes in, and holds on.
#[derive(Debug)]
struct Standing {
    expires_at: Option<u64>,
    refresh_secs: Option<u32>,
    /// Authentication data for CONNACK.
    data: Option<Vec<u8>>,
    /// Of the access that it was judged by.
    generation: u64,
    /// Whom a session is counted for.
    holder: Holder,
}

impl Worker {
    /// A CONNECT; `rest` is what came behind it in the same read.
    pub(super) fn handshake(
        &mut self,
        key: ConnectionKey,
        connect: &Connect<'_>,
        rest: &[u8],
    ) -> Next {
        self.local.connections[key].version = connect.version;
        let gate = self.local.connections[key].gate;
        if !self.local.gate(gate).accepts(connect.version) {
            let what =
                "this listener does not take this version of MQTT (accept_protocol_versions)";
            // [MQTT-3.1.2-2] [MQTT3-3.1.2-2]
            let violation = Violation::new(ReasonCode::UnsupportedProtocolVersion, what);
            self.refuse(key, connect, &violation);
            return Next::Stop;
        }
        // Before anything is spent on the client. A takeover needs no room, which is known for sure
        // when its session is.
        if !self.may_take_over(connect.client_id)
            && let Err(violation) = self.has_room()
        {
            self.refuse(key, connect, &violation);
            return Next::Stop;
        }
        let assigned = if connect.client_id.is_empty() {
            self.new_client_id()
        } else {
            String::new()
        };
        let gate = self.local.connections[key].gate;
        let retain_available = self.local.gate(gate).retain_available;
        let limits = &self.local.settings.session;
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
                if let Err(violation) = self.may_log_in(key, &handshake, connect.username) {
                    self.refuse(key, connect, &violation);
                    return Next::Stop;
                }
                self.admit(key, connect, (handshake, rest))
            }
            Err(violation) => {
                if violation.reason == ReasonCode::ClientIdentifierNotValid {
                    self.local.row().add(Counter::LimitClientId, 1);
                }
                self.refuse(key, connect, &violation);
                Next::Stop
            }
        }
    }

    /// A connection that another worker accepted, whose session is ours.
    pub(super) fn adopt(&mut self, handover: Handover) {
        let owner = self.owner(handover.handshake.client_id());
        if owner != self.local.id {
            // The session moved while the connection was on its way.
            self.send(owner, Mail::Adopt(Box::new(handover)));
            return;
        }
        let serial = self.next_serial;
        self.next_serial = self.next_serial.wrapping_add(1);
        let mut connection = Connection::new(handover.socket, handover.peer, handover.gate, serial);
        connection.version = handover.handshake.version();
        connection.layered = handover.layered;
        if connection
            .layered
            .as_ref()
            .is_some_and(|layered| layered.is_over())
        {
            connection.reading.note_over();
        }
        let Some(key) = self.register(connection) else {
            self.local.row().add(Counter::ConnectionsClosed, 1);
            self.ended.push(handover.handshake.client_id().into());
            return;
        };
        let entering = (handover.handshake, &handover.unread[..]);
        let next = self.attach(key, entering, *handover.admitted);
        self.local.end_unit();
        if next != Next::Frame {
            return;
        }
        if !handover.unread.is_empty() {
            self.input(key, &handover.unread);
        }
        self.list_reader(key);
    }

    pub(super) fn owner(&self, client_id: &str) -> crate::workers::WorkerId {
        if self.node.workers() == 1 {
            return self.local.id;
        }
        self.node.registry.claim(client_id, self.local.id)
    }

    /// Whether messages wait for us that are older than the session which begins now. Some may be
    /// of the client's last session, on another worker, and what the client publishes must not
    /// overtake them: the connection goes through our own mailbox and stands behind them.
    /// [MQTT-4.6.0-6] [MQTT3-4.6.0-6]
    pub(super) fn has_older_mail(&self, client_id: &str) -> bool {
        // What has been opened counts as waiting until the end of its portion.
        self.node.workers() > 1
            && self.local.find(client_id).is_none()
            && self.node.mailbox(self.local.id).waiting().0 > self.mail_opened
    }

    pub(super) fn hand_connection_over(
        &mut self,
        key: ConnectionKey,
        owner: crate::workers::WorkerId,
        (handshake, admitted): (Handshake, Box<Admitted>),
        unread: Vec<u8>,
    ) {
        let mut connection = self.take_out(key);
        if let Err(error) = self.poll.registry().deregister(&mut connection.socket) {
            tracing::warn!(%error, "a connection could not be handed over; it is closed");
            self.local.leave_gate(connection.gate);
            self.local.row().add(Counter::ConnectionsClosed, 1);
            self.ended.push(handshake.client_id().into());
            return;
        }
        if owner != self.local.id {
            self.local.row().add(Counter::Handovers, 1);
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
        };
        self.send(owner, Mail::Adopt(Box::new(handover)));
    }

    fn has_room(&self) -> Result<(), Violation> {
        let connected = self.node.metrics.total(Counter::ClientsConnected);
        if connected >= self.local.settings.connections_max {
            self.local.row().add(Counter::ConnectionsOverLimit, 1);
            let what = "the broker's limit of connections is reached (limits.connections)";
            return Err(Violation::new(ReasonCode::QuotaExceeded, what));
        }
        Ok(())
    }

    /// The client identifier may have a connection already, whose place the new one takes. Sessions
    /// of other workers count as connected.
    fn may_take_over(&self, client_id: &str) -> bool {
        if client_id.is_empty() {
            return false;
        }
        match self.local.find(client_id) {
            Some(slot) => self.has_connection(slot),
            None => self.node.workers() > 1 && self.node.registry.has(client_id),
        }
    }

    fn has_connection(&self, slot: Slot) -> bool {
        self.local.clients[slot].connection.is_some()
    }

    /// [MQTT-3.1.3-6] [MQTT-3.1.3-7]: unique, and not to be guessed by others.
    fn new_client_id(&mut self) -> String {
        format!(
            "thrum-{:016x}{:08x}",
            self.node.identity ^ self.random(),
            self.node.next_session_id(self.local.id)
        )
    }

    /// The session of the identifier goes on, or a new one begins.
    /// [MQTT-3.1.2-5] [MQTT-3.1.2-6] [MQTT-3.1.4-4] [MQTT3-3.1.4-3]
    pub(super) fn attach(
        &mut self,
        key: ConnectionKey,
        (handshake, rest): (Handshake, &[u8]),
        admitted: Admitted,
    ) -> Next {
        let existing = self.local.find(handshake.client_id());
        let admission = &admitted.admission;
        let standing = Standing {
            expires_at: admission.expires_at,
            refresh_secs: admission.refresh_secs,
            data: admission.data.clone(),
            generation: admitted.generation,
            holder: self.holder(key, &admission.identity),
        };
        self.measure(key, &admission.identity);
        self.local.connections[key].is_unverified = admitted.is_unverified;
        let may_begin = self.may_begin(key, &handshake, &admission.identity);
        let may_stay = if is_verified(&admission.identity) {
            may_begin
        } else {
            may_begin.and_then(|()| self.may_stay(key))
        };
        let names = self.has_client_lines();
        let user = admission.identity.username.clone().filter(|_| names);
        let admitted_has_room = admitted.has_room;
        let access = self.access_of(&handshake, admitted);
        let has_room = match existing {
            _ if admitted_has_room => Ok(()),
            Some(slot) if self.has_connection(slot) => Ok(()),
            Some(_) | None => self.has_room(),
        };
        // Nobody gets what waits for another user.
        let own = existing.filter(|slot| !self.is_of_another(*slot, access.as_deref()));
        let may_be = has_room
            .and(may_stay)
            .and_then(|()| self.may_keep(&handshake, existing.is_some()))
            .and_then(|()| self.belongs_to_user(key, existing, access.as_deref()))
            .and_then(|()| self.may_begin_session(&handshake, own, standing.holder))
            .and_then(|()| self.may_leave_will(&handshake, access.as_deref()));
        if let Err(violation) = may_be {
            let user = access
                .as_deref()
                .and_then(|access| access.identity.username.as_deref());
            self.refuse_pending(key, (&handshake, user), &violation);
            if existing.is_none() && self.node.workers() > 1 {
                self.ended.push(handshake.client_id().into());
            }
            return Next::Stop;
        }
        let clean_start = handshake.clean_start() || own != existing;
        let resumed = existing.and_then(|slot| self.take_over(slot, clean_start));
        let slot = resumed.unwrap_or_else(|| {
            let id = self.node.next_session_id(self.local.id);
            let session = Session::new(id, &handshake, &self.local.settings.session);
            self.local.row().add(Counter::Sessions, 1);
            self.local.insert(Client::new(session))
        });
        let before = self.local.clients[slot].take_rights(access);
        if resumed.is_some() && !self.withhold(key, slot, before.as_deref()) {
            let admitted = self.admitted_again(key, slot, standing);
            let access = self.local.clients[slot].access.as_deref_mut();
            if let (Some(access), Some(before)) = (access, before.as_deref()) {
                access.wait_behind(before);
            }
            self.await_review(key, (handshake, admitted), rest);
            return Next::Stop;
        }
        self.establish((key, slot), handshake, resumed.is_some(), &standing);
        self.log_arrival((key, slot), user.as_deref(), resumed.is_some());
        Next::Frame
    }

    /// The session is the client's from here on.
    fn establish(
        &mut self,
        (key, slot): (ConnectionKey, Slot),
        handshake: Handshake,
        is_resumed: bool,
        standing: &Standing,
    ) {
        self.local.row().add(Counter::ClientsConnected, 1);
        self.local.connections[key].establish(slot);
        self.local.clients[slot].connection = Some(key);
        self.welcome((key, slot), handshake, is_resumed, standing);
        self.valid_until(slot, standing.expires_at);
        self.refresh_in(slot, standing.refresh_secs);
        if standing.generation != self.local.settings.access.generation {
            // Users may have changed since it was judged.
            self.ask_again(slot);
        }
        if is_resumed {
            self.set_groups_online(slot, true);
            self.replay(slot);
        }
        self.arm(slot);
    }

    /// What was said of a client that has to wait once more.
    fn admitted_again(&self, key: ConnectionKey, slot: Slot, standing: Standing) -> Admitted {
        let access = self.local.clients[slot].access.as_deref();
        let admission = access.map(ClientAccess::admission).unwrap_or_default();
        Admitted {
            admission: Admission {
                expires_at: standing.expires_at,
                refresh_secs: standing.refresh_secs,
                data: standing.data,
                ..admission
            },
            generation: standing.generation,
            is_unverified: self.local.connections[key].is_unverified,
            is_will_allowed: access.is_some_and(|access| access.is_will_allowed),
            has_room: true,
        }
    }

    /// CONNACK, and what the session has for its client.
    fn welcome(
        &mut self,
        (key, slot): (ConnectionKey, Slot),
        handshake: Handshake,
        session_present: bool,
        standing: &Standing,
    ) {
        let now = self.local.now;
        let limits = Arc::clone(&self.local.settings.session);
        let was_durable = self.begin_durable(slot, &handshake);
        let (client, out) = self.local.client_and_output(slot);
        let was_persistent = client.session.was_persistent_at_connect();
        // A kept session gets the limits of the configuration as it is now.
        client.session.set_limits(&limits);
        // [MQTT-3.2.2-2] [MQTT-3.2.2-3] [MQTT3-3.2.2-1] [MQTT3-3.2.2-2] [MQTT3-3.2.2-3]
        client.session.connect(
            handshake,
            Welcome {
                session_present,
                authentication_data: standing.data.as_deref(),
                ..Welcome::default()
            },
            now,
            out,
        );
        self.local.row().add(Counter::ConnectsAccepted, 1);
        self.local.row().add(Counter::AnswersSent, 1);
        self.count_session(slot, was_persistent, standing.holder);
        self.write_connected(slot, was_durable);
        self.local.collect(slot);
        self.local.wrote(key);
    }

    /// A client identifier that has a session of a user stays with that user.
    fn belongs_to_user(
        &mut self,
        key: ConnectionKey,
        existing: Option<Slot>,
        access: Option<&ClientAccess>,
    ) -> Result<(), Violation> {
        let Some(slot) = existing.filter(|slot| self.is_of_another(*slot, access)) else {
            return Ok(());
        };
        let allows = self.local.settings.takeover == Takeover::AnyUser;
        // What a client without user name began belongs to nobody.
        if allows || self.local.clients[slot].owner().user().is_none() {
            return Ok(());
        }
        self.local.row().add(Counter::ClientIdsOfOthers, 1);
        if self.may_log() {
            let session = &self.local.clients[slot];
            let (client_id, owner) = (session.session.client_id(), session.owner().user());
            let peer = self.local.connections[key].peer;
            let user = access.and_then(|access| access.identity.username.as_deref());
            tracing::warn!(%peer, client_id, user, owner, "refused: this client identifier has a session of another \
                 user; auth.takeover = \"any_user\" lets every user take it over");
        }
        let what = "this client identifier has a session of another user (auth.takeover)";
        Err(Violation::new(ReasonCode::ClientIdentifierNotValid, what))
    }

    /// The client may have this identifier; one that the broker has given cannot be anybody's.
    pub(super) fn may_be_called(
        &mut self,
        handshake: &Handshake,
        identity: &Identity,
    ) -> Result<(), Violation> {
        let username = identity.username.as_deref();
        let pattern = &self.local.settings.client_id;
        if handshake.is_client_id_ours() || pattern.admits(handshake.client_id(), username) {
            return Ok(());
        }
        self.local.row().add(Counter::ClientIdsNotOfUser, 1);
        let what = "the client identifier is not of the form that is allowed here (auth.client_id)";
        Err(Violation::new(ReasonCode::ClientIdentifierNotValid, what))
    }

    /// The session was begun by another user. Of one that an older version has left nobody knows.
    fn is_of_another(&self, slot: Slot, access: Option<&ClientAccess>) -> bool {
        let before = self.local.clients[slot].owner();
        let now = access.map_or(Owner::Anonymous, ClientAccess::owner);
        before != Owner::Unknown && before != now
    }

    /// Ends what the client identifier had before; gives the slot back if its session goes on.
    /// [MQTT-3.1.4-3] [MQTT3-3.1.4-2]
    fn take_over(&mut self, slot: Slot, clean_start: bool) -> Option<Slot> {
        if let Some(returning) = self.returning_to(slot) {
            self.dismiss_returning(returning);
        }
        let client = &self.local.clients[slot];
        let id = client.session.id();
        if let Some(key) = client.connection {
            self.local.row().add(Counter::Takeovers, 1);
            self.disconnect(
                key,
                ReasonCode::SessionTakenOver,
                "another connection uses this client identifier",
                Ending::TakenOver,
            );
        }
        if !self.is_session(slot, id) {
            return None;
        }
        if clean_start {
            // [MQTT-3.1.2-4] [MQTT3-3.1.2-6]
            let will = self.local.clients[slot]
                .session
                .take_will_at(self.local.now);
            let will = will.and_then(|will| self.permitted(slot, will));
            self.local.note(slot);
            self.end_session(slot);
            if let Some(will) = will {
                self.publish_will(will);
            }
            return None;
        }
        Some(slot)
    }

    /// CONNACK with an error, then the end of the connection. [MQTT-3.1.4-2] [MQTT3-3.1.4-5]
    pub(super) fn refuse(
        &mut self,
        key: ConnectionKey,
        connect: &Connect<'_>,
        violation: &Violation,
    ) {
        refuse_connect(connect, violation, self.local.output(key));
        let applicant = Applicant {
            client_id: Some(connect.client_id),
            user: connect.username,
        };
        self.refused(key, applicant, violation);
    }

    /// What came behind the CONNECT is not looked at. [MQTT-3.1.4-6] [MQTT-3.2.2-7] [MQTT3-3.2.2-5]
    pub(super) fn refused(
        &mut self,
        key: ConnectionKey,
        applicant: Applicant<'_>,
        violation: &Violation,
    ) {
        self.local.row().add(Counter::ConnectionsRefused, 1);
        if self.may_log() {
            let peer = self.local.connections[key].peer;
            let Applicant { client_id, user } = applicant;
            tracing::info!(%peer, client_id, user, reason = violation.what, "connection refused");
        }
        self.drain(key, Closing::Shutdown);
    }

    /// Bytes that are no packet. [MQTT-3.1.4-1]
    pub(super) fn refused_to_decode(
        &mut self,
        key: ConnectionKey,
        frame: Frame<'_>,
        error: DecodeError,
    ) {
        let waits_for_connect = self.local.connections[key].awaits_connect();
        let is_connect = frame.first >> 4 == 1;
        let version = answer_version(frame.body);
        match version {
            // [MQTT-3.1.2-2] [MQTT3-3.1.2-2]; a 3.x client gets no CONNACK for a malformed CONNECT.
            Some(version)
                if waits_for_connect
                    && is_connect
                    && (version == Version::V5 || error == DecodeError::UnsupportedVersion) =>
            {
                self.local.row().add(Counter::Violations, 1);
                let violation = error.into();
                refuse(version, &violation, self.local.output(key));
                self.refused(key, Applicant::default(), &violation);
            }
            _ => self.violated(key, error.into()),
        }
    }
}

/// In which version's words a CONNECT that cannot be decoded is answered: by the level it names.
fn answer_version(connect: &[u8]) -> Option<Version> {
    let name_len = usize::from(u16::from_be_bytes([*connect.first()?, *connect.get(1)?]));
    let level = *connect.get(2 + name_len)?;
    // The highest bit is the mark of a bridge, and bridges speak 3.x.
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
