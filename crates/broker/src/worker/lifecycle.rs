//! How connections and sessions end: losses, violations, timeouts, wills, the stop of the node.

use std::time::Duration;

use thrum_codec::ReasonCode;
use thrum_protocol::server::Timeout;
use thrum_protocol::{Time, Violation};

use super::budget::CLOSING_UNITS;
use super::{Target, TimedSession, Worker};
use crate::connection::{Closing, Connection, Phase};
use crate::ids::{ConnectionId, ConnectionKey, Slot};
use crate::metrics::Counter;
use crate::partial::Partial;
use crate::read_gate::PauseReason;

/// How long a connection that ends has to take what was written for it and, if we ended it, is
/// read, so that the peer sees our last packet and no reset.
const DRAIN: Duration = Duration::from_secs(2);
/// Longest time until a timer of a session looks whether its session is still there; then it is
/// armed again. So what those leave behind that come and go at a rate stays below 20 MB for a
/// thousand in a second.
pub(super) const TIMER_MAX: Duration = Duration::from_mins(10);
/// A paused client cannot show signs of life; its keep alive is looked at again after this.
const PAUSED_GRACE: Duration = Duration::from_secs(1);
/// A session whose client waits for its review does not end meanwhile; it is looked at again after
/// this.
const RETURN_GRACE: Duration = Duration::from_millis(100);
/// A client that is not read until it takes our answers has this long to take some more.
const MUTED_GRACE: Duration = Duration::from_secs(30);

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    ClosedByPeer,
    /// The client ended the stream inside TLS or WebSocket: it may still read.
    EndedByPeer,
    /// The client sent DISCONNECT.
    Disconnected,
    /// The server closes; its last packet is in the output.
    ClosedByServer,
    /// As before, and the session has a new connection already waiting.
    TakenOver,
}

impl Ending {
    const fn words(self) -> &'static str {
        match self {
            Self::ClosedByPeer | Self::EndedByPeer => "the connection was lost, without DISCONNECT",
            Self::Disconnected => "the client sent DISCONNECT",
            Self::ClosedByServer => "the broker closed the connection",
            Self::TakenOver => "another connection uses this client identifier",
        }
    }
}

impl Worker {
    /// The peer broke the protocol: DISCONNECT with the reason (5.0), then the end. [MQTT-4.13.1-1]
    pub(super) fn violated(&mut self, key: ConnectionKey, violation: Violation) {
        self.local.row().add(Counter::Violations, 1);
        if let Some(limit) = limit_counter(violation.reason) {
            self.local.row().add(limit, 1);
        }
        let connection = &self.local.connections[key];
        let (peer, session) = (connection.peer, connection.session());
        // The line of a client that goes tells the reason, if it is written.
        let is_told = session.is_some() && self.has_room_for_client_line();
        if !is_told && self.may_log() {
            let client = session.map(|slot| &self.local.clients[slot].session);
            let client_id = client.map_or("", |session| session.client_id());
            tracing::info!(%peer, client_id, reason = violation.what, "connection closed: the client broke the protocol");
        }
        self.disconnect(
            key,
            violation.reason,
            violation.what,
            Ending::ClosedByServer,
        );
    }

    /// The server ends a connection. [MQTT-3.14.0-1]
    pub(super) fn disconnect(
        &mut self,
        key: ConnectionKey,
        reason: ReasonCode,
        what: &str,
        ending: Ending,
    ) {
        if let Some(slot) = self.local.connections[key].session() {
            self.farewell(key, slot, reason, what);
        }
        self.lost_because(key, ending, what);
    }

    /// DISCONNECT instead of what may not be written yet: the client sends again what we did not
    /// acknowledge. One whose CONNACK may not be written yet is refused.
    fn farewell(&mut self, key: ConnectionKey, slot: Slot, reason: ReasonCode, what: &str) {
        let was_welcomed = !self.local.connections[key].drop_held();
        let (client, out) = self.local.client_and_output(slot);
        if was_welcomed {
            client.session.disconnect(reason, Some(what), out);
        } else {
            client.session.refuse(reason, what, out);
        }
    }

    /// A connection ends: its session is told, its socket closed.
    pub(super) fn lost(&mut self, key: ConnectionKey, ending: Ending) {
        self.lost_because(key, ending, ending.words());
    }

    /// The same; `why` is for the log.
    fn lost_because(&mut self, key: ConnectionKey, ending: Ending, why: &str) {
        self.local.work += CLOSING_UNITS;
        let connection = &self.local.connections[key];
        let (session, peer) = (connection.session(), connection.peer);
        match ending {
            Ending::ClosedByPeer => self.close(key),
            Ending::Disconnected | Ending::EndedByPeer => self.drain(key, Closing::Close),
            Ending::ClosedByServer | Ending::TakenOver => self.drain(key, Closing::Shutdown),
        }
        if let Some(slot) = session {
            self.log_departure(slot, peer, why);
            self.session_lost(slot);
        }
    }

    fn session_lost(&mut self, slot: Slot) {
        let now = self.local.now;
        self.local.row().subtract(Counter::ClientsConnected, 1);
        let client = &mut self.local.clients[slot];
        client.connection = None;
        client.log_next_drop();
        let farewell = client.session.connection_lost(now);
        self.local.note(slot);
        self.publishers
            .remove(&self.local.clients[slot].session.id());
        let will = farewell.will.and_then(|will| self.permitted(slot, will));
        if farewell.session_ended {
            self.end_session(slot);
        } else {
            self.write_session(slot, Some(now));
            if !self.local.clients[slot].groups().is_empty() {
                self.set_groups_online(slot, false);
                let client = &mut self.local.clients[slot];
                let (id, messages) = (client.session.id(), client.session.take_shared(None));
                self.redispatch(messages, id, false);
            }
            self.local.show_room(slot);
            self.arm(slot);
        }
        if let Some(will) = will {
            self.publish_will(will);
        }
    }

    /// Removes a session and its subscriptions; what is retained stays. [MQTT3-3.1.2-7]
    pub(super) fn end_session(&mut self, slot: Slot) {
        self.close_room(slot);
        let mut client = self.local.remove(slot);
        self.local.row().subtract(Counter::Sessions, 1);
        self.forget_counted(&client);
        let (_, bytes, _) = client.session.backlog();
        let bytes = bytes + client.subscription_bytes as usize;
        self.local.memory.shrank(bytes as u64);
        let is_on_disk = client.session.is_durable() || client.is_kept_for_will();
        let durable = is_on_disk.then(|| client.session.id());
        self.unsubscribe_all(slot, &mut client);
        if let Some(session) = durable {
            self.forget_session(session);
        }
        if self.node.workers() > 1 {
            self.ended.push(client.session.into_client_id());
        }
        self.crowd_shrank();
    }

    /// From here on another worker may begin a session for the clients whose session ended in this
    /// turn. Not earlier: what the old session published must be in the mailboxes before a new one
    /// can publish.
    /// [MQTT-4.6.0-6] [MQTT3-4.6.0-6]
    pub(super) fn release_ended(&mut self) {
        for client_id in std::mem::take(&mut self.ended) {
            // The client may have come back to this worker.
            if self.local.find(&client_id).is_none() {
                self.node.registry.release(&client_id, self.local.id);
            }
        }
    }

    /// What was written for the client goes out: at once, or within [`DRAIN`] if its socket is full
    /// or it waits for the disk. What the client still sends is thrown away.
    pub(super) fn drain(&mut self, key: ConnectionKey, closing: Closing) {
        let connection = &mut self.local.connections[key];
        // From here on a failing write ends nothing a second time.
        connection.phase = Phase::Draining(closing);
        connection.partial = Partial::default();
        connection.reading.drain();
        connection.meter = None;
        let drained = Target::Drain(connection.id(key));
        self.write(key);
        self.close_when_written(key);
        if self.local.connections.contains(key) {
            self.list_reader(key);
            let until = self.local.now.plus(DRAIN);
            self.timers.insert(until, drained);
        }
    }

    /// Drained for long enough.
    pub(super) fn drain_timer(&mut self, id: ConnectionId) {
        if self.local.connection(id).is_some() {
            self.close(id.key);
        }
    }

    pub(super) fn close(&mut self, key: ConnectionKey) {
        let connection = self.take_out(key);
        self.local.leave_gate(connection.gate);
        if let Some(mut out) = connection.out {
            out.clear();
            self.local.recycle(out);
        }
        self.local.row().add(Counter::ConnectionsClosed, 1);
        self.crowd_shrank();
    }

    /// A connection leaves this worker, to another one or for good.
    pub(super) fn take_out(&mut self, key: ConnectionKey) -> Connection {
        let connection = self.local.connections.remove(key);
        if connection.is_shaking {
            self.handshakes.end();
        }
        connection
    }

    /// Too slow with CONNECT.
    pub(super) fn connection_timer(&mut self, id: ConnectionId) {
        let key = id.key;
        let Some(connection) = self.local.connection(id) else {
            return;
        };
        match connection.phase {
            Phase::Established { .. } | Phase::Draining(_) => {}
            Phase::Admission(_) | Phase::Challenged(_) if self.is_in_time(key) => {
                self.wait_for_admission(id);
            }
            Phase::Admission(_) if self.awaits_review(id) => self.refuse_after_wait(id),
            Phase::Proxy | Phase::Handshake(_) | Phase::Admission(_) | Phase::Challenged(_) => {
                self.local.row().add(Counter::ConnectTimeouts, 1);
                if self.may_log() {
                    let peer = self.local.connections[key].peer;
                    tracing::info!(%peer, "connection closed: no CONNECT in time (limits.connect_timeout)");
                }
                self.close(key);
            }
        }
    }

    /// Arms a timer if the session's next deadline is before what is armed.
    pub(super) fn arm(&mut self, slot: Slot) {
        let soon = self.local.now.plus(TIMER_MAX);
        let client = &mut self.local.clients[slot];
        if let Some(deadline) = client.session.next_deadline()
            && deadline.min(soon) < client.armed
        {
            client.armed = deadline.min(soon);
            let timed = TimedSession::new(slot, &client.session);
            self.timers.insert(client.armed, Target::Session(timed));
        }
    }

    pub(super) fn session_timer(&mut self, timed: TimedSession) {
        if let Some(slot) = self.slot_of_timed(timed) {
            self.session_due(slot);
        }
    }

    /// What is due of a session, unless another timer is armed for it.
    pub(super) fn session_due(&mut self, slot: Slot) {
        let now = self.local.now;
        if now < self.local.clients[slot].armed {
            return;
        }
        if self.returning_to(slot).is_some() {
            // It is in time, and it is us who let it wait.
            self.arm_at(slot, now.plus(RETURN_GRACE));
            return;
        }
        let client = &mut self.local.clients[slot];
        let id = client.session.id();
        client.armed = Time::from_millis(u64::MAX);
        let connection = client.connection;
        match client.session.handle_timeout(now) {
            Timeout::Pending => self.arm(slot),
            Timeout::KeepAlive => {
                if let Some(key) = connection {
                    self.keep_alive_due(key, slot);
                }
            }
            Timeout::NotAuthorized => {
                if let Some(key) = connection {
                    self.disconnect(
                        key,
                        ReasonCode::NotAuthorized,
                        "the time for which the client was admitted is over",
                        Ending::ClosedByServer,
                    );
                }
            }
            Timeout::Will(will) => {
                self.local.note(slot);
                if let Some(will) = self.permitted(slot, will) {
                    self.publish_will(will);
                }
                if self.is_session(slot, id) {
                    self.arm(slot);
                }
            }
            Timeout::Expired(will) => {
                self.local.row().add(Counter::SessionsExpired, 1);
                let will = will.and_then(|will| self.permitted(slot, will));
                self.end_session(slot);
                if let Some(will) = will {
                    self.publish_will(will);
                }
            }
        }
    }

    /// The client's time is over, unless it is us who do not listen.
    fn keep_alive_due(&mut self, key: ConnectionKey, slot: Slot) {
        let connection = &mut self.local.connections[key];
        let progressed = std::mem::take(&mut connection.progressed);
        let grace = if connection.reading.keeps_client_waiting() {
            PAUSED_GRACE
        } else if connection.reading.has(PauseReason::Output) && progressed {
            MUTED_GRACE
        } else {
            self.keep_alive_over(key, slot);
            return;
        };
        self.arm_at(slot, self.local.now.plus(grace));
    }

    /// The session is looked at again then.
    fn arm_at(&mut self, slot: Slot, then: Time) {
        let client = &mut self.local.clients[slot];
        client.armed = then;
        let timed = TimedSession::new(slot, &client.session);
        self.timers.insert(then, Target::Session(timed));
    }

    /// [MQTT-3.1.2-22] [MQTT3-3.1.2-24]
    fn keep_alive_over(&mut self, key: ConnectionKey, slot: Slot) {
        self.local.row().add(Counter::KeepAliveTimeouts, 1);
        if !self.has_room_for_client_line() && self.may_log() {
            let client_id = self.local.clients[slot].session.client_id();
            tracing::info!(
                client_id,
                "connection closed: nothing received for one and a half keep alives"
            );
        }
        let what = "nothing received for one and a half times the keep alive";
        self.disconnect(
            key,
            ReasonCode::KeepAliveTimeout,
            what,
            Ending::ClosedByServer,
        );
    }

    /// Second step: everyone is told and disconnected. What came before it in the same turn leaves
    /// first.
    pub(super) fn stop(&mut self) {
        self.listeners.clear();
        self.hand_out();
        let keys: Vec<ConnectionKey> = self.local.connections.keys().collect();
        for key in keys {
            self.dismiss(key);
        }
        self.note_end();
        if self.settle() {
            self.send_mail();
        }
        self.stopping = true;
    }

    /// The last that a client hears when the node stops, and the end of its layers.
    fn dismiss(&mut self, key: ConnectionKey) {
        let Some(connection) = self.local.connections.get_mut(key) else {
            return;
        };
        if let Some(slot) = connection.session() {
            let what = "the broker is shutting down";
            self.farewell(key, slot, ReasonCode::ServerShuttingDown, what);
            self.write_session(slot, Some(self.local.now));
        } else {
            connection.drop_held();
        }
        self.local.connections[key].finish_layers();
        self.write(key);
        if let Some(connection) = self.local.connections.get_mut(key) {
            connection.shutdown_output();
        }
    }
}

/// The limit that a violation ran into, if it was one.
fn limit_counter(reason: ReasonCode) -> Option<Counter> {
    match reason {
        ReasonCode::PacketTooLarge => Some(Counter::LimitPacket),
        ReasonCode::TopicNameInvalid => Some(Counter::LimitTopic),
        ReasonCode::ReceiveMaximumExceeded => Some(Counter::LimitReceiveMaximum),
        ReasonCode::TopicAliasInvalid => Some(Counter::LimitTopicAlias),
        _ => None,
    }
}
