//! Input of clients, from the socket through the layers to packets, and from there to admission or
//! the engine; and the continuation of clients that waited.

mod inbox;
mod input;
mod reading;

use std::time::Duration;

use thrum_access::Answer;
use thrum_codec::ReasonCode;
use thrum_engine::Engine;
use thrum_engine::ids::{ConnectionId, ConnectionKey, Slot};
use thrum_engine::node::metrics::Counter;
use thrum_engine::stages;
use thrum_engine::timers::TimedSession;
use thrum_protocol::Time;
use thrum_protocol::server::Timeout;

pub(crate) use self::inbox::Inbox;
pub(crate) use self::input::Next;
use crate::connection::{Connection, Phase};
use crate::door::{
    AnswerTo, Answered, Awaited, Challenge, Decided, Door, Outcome, Pending, Reauthentication,
    Recheck, Rechecking, SourceReviews, awaits_review, challenge, will_decided,
};
use crate::edge::{DisconnectNotice, Edge, Ending, keep_tracing};
use crate::mailbox::{Arrived, Handover, Mail};
use crate::partial::LeftBytes;
use crate::shell_mail::ShellMail;

/// Most bytes of one read; a busy connection is read again in the next turn.
pub(crate) const READ_BYTES: usize = 64 * 1024;
/// A session is kept while its client waits for its review; it is checked again after this time.
const RETURN_GRACE: Duration = Duration::from_millis(100);

/// See above.
#[derive(Debug)]
pub(crate) struct Traffic {
    pub(crate) edge: Edge,
    pub(crate) engine: Engine,
    /// The review of sessions after a change of rules.
    pub(crate) recheck: Recheck,
    pub(crate) reviews: SourceReviews,
    pub(crate) inbox: Inbox,
    /// To other workers.
    pub(crate) shell_mail: ShellMail,
    read_buffer: Vec<u8>,
    /// MQTT from the layers of the current connection.
    plain_buffer: Vec<u8>,
}

impl Traffic {
    pub(crate) fn new(edge: Edge, engine: Engine) -> Self {
        Self {
            recheck: Recheck::default(),
            reviews: SourceReviews::default(),
            inbox: Inbox::default(),
            shell_mail: ShellMail::new(edge.node.workers()),
            read_buffer: vec![0; READ_BYTES],
            plain_buffer: Vec::new(),
            edge,
            engine,
        }
    }

    pub(crate) const fn door(&mut self) -> Door<'_> {
        Door {
            edge: &mut self.edge,
            engine: &mut self.engine,
            recheck: &mut self.recheck,
            inbox: &self.inbox,
            shell_mail: &mut self.shell_mail,
        }
    }

    pub(crate) const fn rechecking(&mut self) -> Rechecking<'_> {
        Rechecking {
            recheck: &mut self.recheck,
            edge: &mut self.edge,
            engine: &mut self.engine,
        }
    }

    pub(crate) const fn reauthentication(&mut self) -> Reauthentication<'_> {
        Reauthentication {
            recheck: &mut self.recheck,
            edge: &mut self.edge,
            engine: &mut self.engine,
        }
    }

    /// Opens a connection from the backlog; its CONNECT has usually arrived.
    pub(crate) fn open_and_read(&mut self, arrived: Arrived) {
        if let Some(key) = self.edge.open(&mut self.engine, arrived) {
            self.read(key);
        }
    }

    /// Reviews the next sessions, up to the portion. Clients that have returned to them are
    /// admitted.
    pub(crate) fn recheck_some(&mut self) {
        self.rechecking().recheck_some();
        for connection in self.recheck.take_ready() {
            self.admit_after_review(connection);
        }
    }

    /// The gatekeeper has answered about a pending connection.
    pub(crate) fn answered(&mut self, id: ConnectionId, answer: Answer) {
        let key = id.key;
        let Some(Pending {
            handshake,
            awaited: Awaited::Answer(claim),
            ..
        }) = self
            .door()
            .take_waiting(id, |awaited| matches!(awaited, Awaited::Answer(_)))
        else {
            return;
        };
        match answer {
            Answer::Admit(admission) => {
                self.door().note_proof(key, &handshake, &claim, &admission);
                self.after_wait(key, |door| door.proved(key, handshake, &claim, *admission));
            }
            Answer::Deny(denial) => self.door().deny(key, &handshake, &claim, &denial),
            Answer::Challenge { data, exchange } => {
                let step = Challenge { data, exchange };
                let partial = challenge(&mut self.door(), key, handshake, claim, step);
                if let Some(partial) = partial {
                    self.resume_reading(key, &partial);
                }
            }
            Answer::Unchanged => {}
        }
    }

    /// The session has been reviewed. Its client is checked from the beginning: much may have
    /// changed.
    pub(crate) fn admit_after_review(&mut self, id: ConnectionId) {
        let Some(Pending {
            handshake,
            awaited: Awaited::Review(admitted),
            ..
        }) = self
            .door()
            .take_waiting(id, |awaited| matches!(awaited, Awaited::Review(_)))
        else {
            return;
        };
        self.after_wait(id.key, |door| door.direct_to_session(handshake, *admitted));
    }

    /// Admits a client that had to wait and is still connected, and then handles the bytes behind
    /// its CONNECT.
    pub(crate) fn after_wait(
        &mut self,
        key: ConnectionKey,
        enter: impl FnOnce(&mut Door<'_>) -> Outcome,
    ) {
        if self.has_left(key) {
            self.edge.lost(&mut self.engine, key, Ending::ClosedByPeer);
            return;
        }
        let partial = self.edge.connections[key].partial.take();
        let mut door = self.door();
        let outcome = enter(&mut door);
        let next = door.carry_out(key, outcome, &partial);
        self.engine.core.durable.end_unit();
        if next == Next::Frame {
            self.resume_reading(key, &partial);
        }
    }

    /// Handles the packets that waited, or arrived, while the client was not read.
    pub(crate) fn resume_reading(&mut self, key: ConnectionKey, partial: &[u8]) {
        if !self.edge.connections.contains(key) {
            return;
        }
        let id = self.engine.core.outputs.id(key);
        if !partial.is_empty() {
            self.input(key, partial);
        }
        if self.edge.connection(&self.engine, id).is_some() {
            self.read_socket(key);
        }
    }

    /// The gatekeeper has decided: the waiting packet is handled again, or the CONNECT with a will
    /// continues.
    pub(crate) fn take_decision(&mut self, decided: &Decided) {
        let key = decided.connection.key;
        let connection = self.edge.connection(&self.engine, decided.connection);
        if connection.is_some_and(Connection::awaits_admission) {
            self.take_decision_about_will(key, decided);
            return;
        }
        if self.door().authorizing().decided(decided).is_none() {
            return;
        }
        let connection = &mut self.edge.connections[key];
        connection.reading.take_packets();
        let LeftBytes {
            bytes: partial,
            read_ns,
            asked_ns,
            ..
        } = connection.partial.take_seen();
        stages::resume_time_of_left_bytes(&mut self.engine.core, read_ns, asked_ns);
        self.resume_reading(key, &partial);
    }

    fn take_decision_about_will(&mut self, key: ConnectionKey, decided: &Decided) {
        let pending = will_decided(&mut self.door(), key, &decided.question, decided.allowed);
        if let Some(Pending {
            handshake,
            awaited: Awaited::Will(admitted),
            ..
        }) = pending
        {
            self.after_wait(key, |door| door.direct_to_session(handshake, *admitted));
        }
    }

    /// A connection that another worker accepted, with a session of this worker.
    pub(crate) fn adopt(&mut self, handover: Handover) {
        let owner = self.door().owner(handover.handshake.client_id());
        if owner != self.engine.core.id {
            // The session moved while the connection was on its way.
            let mail = Mail::Adopt(Box::new(handover));
            self.shell_mail
                .send(&mut self.engine.core.outboxes, owner, mail);
            return;
        }
        let mut connection = Connection::new(handover.socket, handover.peer, handover.gate);
        connection.version = handover.handshake.version();
        connection.layered = handover.layered;
        if connection
            .layered
            .as_ref()
            .is_some_and(|layered| layered.is_over())
        {
            connection.reading.note_over();
        }
        let Some(key) = self.edge.register(&mut self.engine, connection) else {
            self.engine.core.row().add(Counter::ConnectionsClosed, 1);
            self.engine
                .core
                .sessions
                .ended
                .push(handover.handshake.client_id().into());
            return;
        };
        let Handover {
            handshake,
            admitted,
            unread,
            trace_number,
            ..
        } = handover;
        if let Some(number) = trace_number {
            let client_id = handshake.client_id();
            keep_tracing(&mut self.edge, &self.engine, key, client_id, number);
        }
        let next = self.door().attach(key, handshake, *admitted, &unread);
        self.engine.core.durable.end_unit();
        if next != Next::Frame {
            return;
        }
        if !unread.is_empty() {
            self.input(key, &unread);
        }
        self.edge.list_reader(key);
    }

    /// The gatekeeper has answered.
    pub(crate) fn take_answer(&mut self, Answered { to, answer }: Answered) {
        match to {
            AnswerTo::Connection(id) => self.answered(id, answer),
            AnswerTo::Again {
                slot,
                id,
                connection,
            } => self
                .reauthentication()
                .proved_again(slot, id, connection, answer),
            AnswerTo::Refresh {
                slot,
                id,
                connection,
            } => self
                .reauthentication()
                .refreshed(slot, id, connection, answer),
            AnswerTo::Source { review, question } => {
                self.reviews
                    .answered(&self.engine, review, question, answer);
            }
        }
    }

    /// The client has sent no CONNECT in time.
    pub(crate) fn connection_timer(&mut self, id: ConnectionId) {
        let key = id.key;
        let now = self.engine.core.turn.now;
        let Some(connection) = self.edge.connection(&self.engine, id) else {
            return;
        };
        let is_in_time = |pending: &Pending| pending.deadline > now;
        match connection.phase {
            Phase::Established { .. } | Phase::Draining(_) => {}
            Phase::Admission(_) | Phase::Challenged(_)
                if connection.pending().is_some_and(is_in_time) =>
            {
                self.door().wait_for_admission(id);
            }
            Phase::Admission(_) if awaits_review(&self.edge, &self.engine, id) => {
                self.door().refuse_after_wait(id);
            }
            Phase::Proxy | Phase::Handshake(_) | Phase::Admission(_) | Phase::Challenged(_) => {
                self.engine.core.row().add(Counter::ConnectTimeouts, 1);
                if self.engine.core.may_log() {
                    let peer = self.edge.connections[key].peer;
                    tracing::info!(%peer, "connection closed: no CONNECT in time (limits.connect_timeout)");
                }
                self.edge.close(&mut self.engine, key);
            }
        }
    }

    pub(crate) fn session_timer(&mut self, timed: TimedSession) {
        if let Some(slot) = self.engine.core.sessions.slot_of(timed) {
            self.session_due(slot);
        }
    }

    /// Handles the deadlines of a session, unless another timer is armed for it.
    pub(crate) fn session_due(&mut self, slot: Slot) {
        let now = self.engine.core.turn.now;
        if now < self.engine.core.sessions[slot].armed {
            return;
        }
        if self.rechecking().returning_to(slot).is_some() {
            // It is in time: the broker makes it wait.
            self.engine.core.arm_at(slot, now.plus(RETURN_GRACE));
            return;
        }
        let client = &mut self.engine.core.sessions[slot];
        let id = client.session.id();
        client.armed = Time::from_millis(u64::MAX);
        let connection = client.connection;
        match client.session.handle_timeout(now) {
            Timeout::Pending => self.engine.core.arm(slot),
            Timeout::KeepAlive => {
                if let Some(key) = connection {
                    self.edge.keep_alive_due(&mut self.engine, key, slot);
                }
            }
            Timeout::NotAuthorized => {
                if let Some(key) = connection {
                    let notice = DisconnectNotice {
                        reason: ReasonCode::NotAuthorized,
                        what: "the time for which the client was admitted is over",
                    };
                    let ending = Ending::ClosedByServer;
                    self.edge.disconnect(&mut self.engine, key, notice, ending);
                }
            }
            Timeout::Will(will) => {
                self.engine.core.record_steps(slot);
                if let Some(will) = self.engine.authorize_will(slot, will) {
                    self.engine.publish_will(will);
                }
                if self.engine.core.sessions.is(slot, id) {
                    self.engine.core.arm(slot);
                }
            }
            Timeout::Expired(will) => {
                self.engine.core.row().add(Counter::SessionsExpired, 1);
                self.engine.session_expired(slot);
                let will = will.and_then(|will| self.engine.authorize_will(slot, will));
                self.engine.end_session(slot);
                if let Some(will) = will {
                    self.engine.publish_will(will);
                }
            }
        }
    }
}
