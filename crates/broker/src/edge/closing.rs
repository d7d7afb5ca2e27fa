//! The end of connections: the peer closes or breaks the protocol, a time limit has passed, or the
//! broker has a reason.

use std::time::Duration;

use thrum_codec::ReasonCode;
use thrum_engine::Engine;
use thrum_engine::ids::{ConnectionId, ConnectionKey, Slot};
use thrum_engine::interest::EventKind;
use thrum_engine::node::metrics::Counter;
use thrum_engine::peer::Peer;
use thrum_engine::timeline::{ClientEvent, EndCause, tell};
use thrum_engine::timers::Target;
use thrum_engine::turn::CLOSING_UNITS;
use thrum_protocol::Violation;

use super::Edge;
use crate::connection::{Closing, Phase};
use crate::partial::Partial;
use crate::read_gate::PauseReason;

/// Time for a connection that ends to take its output; if the broker ended it, its input is read
/// for as long, so that the peer receives the last packet and no reset.
const DRAIN: Duration = Duration::from_secs(2);
/// A paused client cannot send a sign of life; its keep alive is checked again after this time.
const PAUSED_GRACE: Duration = Duration::from_secs(1);
/// Time for a client that is not read, as it does not take its output, to take some of it.
const MUTED_GRACE: Duration = Duration::from_secs(30);

/// Reasons why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The connection was lost.
    ClosedByPeer,
    /// The client ended the stream inside TLS or WebSocket: it may still read.
    EndedByPeer,
    /// The client sent DISCONNECT.
    Disconnected,
    /// The server closes; its last packet is in the output.
    ClosedByServer,
    /// As before, because nothing was received for too long.
    KeepAlive,
    /// As before, and a new connection already waits for the session.
    TakenOver { by: Peer },
}

impl Ending {
    const fn words(self) -> &'static str {
        match self {
            Self::ClosedByPeer | Self::EndedByPeer => "the connection was lost, without DISCONNECT",
            Self::Disconnected => "the client sent DISCONNECT",
            Self::ClosedByServer => "the broker closed the connection",
            Self::KeepAlive => "nothing received for one and a half times the keep alive",
            Self::TakenOver { .. } => "another connection uses this client identifier",
        }
    }
}

/// The last packet for a client before its connection ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DisconnectNotice {
    pub(crate) reason: ReasonCode,
    pub(crate) what: &'static str,
}

impl From<Violation> for DisconnectNotice {
    fn from(violation: Violation) -> Self {
        Self {
            reason: violation.reason,
            what: violation.what,
        }
    }
}

impl Edge {
    /// Handles a protocol error of the peer: DISCONNECT with the reason (5.0), then the end.
    /// [MQTT-4.13.1-1]
    pub(crate) fn violated(
        &mut self,
        engine: &mut Engine,
        key: ConnectionKey,
        violation: Violation,
    ) {
        engine.core.row().add(Counter::Violations, 1);
        if let Some(limit) = limit_counter(violation.reason) {
            engine.core.row().add(limit, 1);
        }
        let connection = &self.connections[key];
        let (peer, session) = (connection.peer, connection.session());
        // The log line of the departure contains the reason, if the line is written.
        let is_logged_later = session.is_some() && self.lines.has_room(engine);
        if !is_logged_later && engine.core.may_log() {
            let client = session.map(|slot| &engine.core.sessions[slot].session);
            let client_id = client.map_or("", |session| session.client_id());
            tracing::info!(%peer, client_id, reason = violation.what, "connection closed: the client broke the protocol");
        }
        self.disconnect(engine, key, violation.into(), Ending::ClosedByServer);
    }

    /// Ends a connection from the server's side. [MQTT-3.14.0-1]
    pub(crate) fn disconnect(
        &mut self,
        engine: &mut Engine,
        key: ConnectionKey,
        notice: DisconnectNotice,
        ending: Ending,
    ) {
        if let Some(slot) = self.connections[key].session() {
            write_disconnect(engine, key, slot, notice);
        }
        self.lost_because(engine, key, ending, notice);
    }

    /// Ends a connection: detaches its session and closes its socket.
    pub(crate) fn lost(&mut self, engine: &mut Engine, key: ConnectionKey, ending: Ending) {
        let notice = DisconnectNotice {
            reason: ReasonCode::UnspecifiedError,
            what: ending.words(),
        };
        self.lost_because(engine, key, ending, notice);
    }

    /// Ends a connection; the notice is for the log.
    fn lost_because(
        &mut self,
        engine: &mut Engine,
        key: ConnectionKey,
        ending: Ending,
        notice: DisconnectNotice,
    ) {
        engine.core.turn.work += CLOSING_UNITS;
        let connection = &self.connections[key];
        let (session, peer) = (connection.session(), connection.peer);
        match ending {
            Ending::ClosedByPeer => self.close(engine, key),
            Ending::Disconnected | Ending::EndedByPeer => self.drain(engine, key, Closing::Close),
            Ending::ClosedByServer | Ending::KeepAlive | Ending::TakenOver { .. } => {
                self.drain(engine, key, Closing::Shutdown);
            }
        }
        if let Some(slot) = session {
            let why = notice.what;
            self.lines.log_departure(engine, slot, peer, why);
            if let Some(reporter) = engine.core.reporter(EventKind::ClientDisconnected) {
                reporter.disconnected(slot, format_args!("{peer}"), why);
            }
            tell_end(engine, slot, ending, notice);
            engine.session_lost(slot);
        }
    }

    /// Sends the remaining output to the client: at once, or within [`DRAIN`] if its socket is full
    /// or the output waits for the disk. Further input is discarded.
    pub(crate) fn drain(&mut self, engine: &mut Engine, key: ConnectionKey, closing: Closing) {
        let connection = &mut self.connections[key];
        // From here on a failing write does not end the connection a second time.
        connection.phase = Phase::Draining(closing);
        connection.partial = Partial::default();
        connection.reading.drain();
        connection.meter = None;
        engine.core.outputs[key].end_session();
        let drained = Target::Drain(engine.core.outputs.id(key));
        self.write(engine, key);
        self.close_when_written(engine, key);
        if self.connections.contains(key) {
            self.list_reader(key);
            let until = engine.core.turn.now.plus(DRAIN);
            engine.core.timers.insert(until, drained);
        }
    }

    /// The time to drain has passed.
    pub(crate) fn drain_timer(&mut self, engine: &mut Engine, id: ConnectionId) {
        if self.connection(engine, id).is_some() {
            self.close(engine, id.key);
        }
    }

    pub(crate) fn close(&mut self, engine: &mut Engine, key: ConnectionKey) {
        let connection = self.take_out(engine, key);
        self.gates.leave(connection.gate);
        engine.core.row().add(Counter::ConnectionsClosed, 1);
    }

    /// The client's keep alive has passed, unless it is the broker that does not read.
    pub(crate) fn keep_alive_due(&mut self, engine: &mut Engine, key: ConnectionKey, slot: Slot) {
        let connection = &mut self.connections[key];
        let progressed = std::mem::take(&mut connection.progressed);
        let grace = if connection.reading.keeps_client_waiting() {
            PAUSED_GRACE
        } else if connection.reading.has(PauseReason::Output) && progressed {
            MUTED_GRACE
        } else {
            self.end_keep_alive(engine, key, slot);
            return;
        };
        engine.core.arm_at(slot, engine.core.turn.now.plus(grace));
    }

    /// [MQTT-3.1.2-22] [MQTT3-3.1.2-24]
    fn end_keep_alive(&mut self, engine: &mut Engine, key: ConnectionKey, slot: Slot) {
        engine.core.row().add(Counter::KeepAliveTimeouts, 1);
        if !self.lines.has_room(engine) && engine.core.may_log() {
            let client_id = engine.core.sessions[slot].session.client_id();
            tracing::info!(
                client_id,
                "connection closed: nothing received for one and a half keep alives"
            );
        }
        let notice = DisconnectNotice {
            reason: ReasonCode::KeepAliveTimeout,
            what: "nothing received for one and a half times the keep alive",
        };
        self.disconnect(engine, key, notice, Ending::KeepAlive);
    }

    /// The last packet for a client when the node stops, and the end of its layers.
    pub(crate) fn disconnect_at_stop(&mut self, engine: &mut Engine, key: ConnectionKey) {
        let Some(connection) = self.connections.get_mut(key) else {
            return;
        };
        if let Some(slot) = connection.session() {
            let notice = DisconnectNotice {
                reason: ReasonCode::ServerShuttingDown,
                what: "the broker is shutting down",
            };
            let peer = connection.peer;
            write_disconnect(engine, key, slot, notice);
            let core = &mut engine.core;
            if let Some(reporter) = core.reporter(EventKind::ClientDisconnected) {
                reporter.disconnected(slot, format_args!("{peer}"), notice.what);
            }
            core.durable
                .write_session(&core.sessions[slot], Some(core.turn.now));
        } else {
            engine.core.outputs[key].drop_held();
        }
        self.connections[key].finish_layers();
        self.write(engine, key);
        if let Some(connection) = self.connections.get_mut(key) {
            connection.shutdown_output();
        }
    }

    /// Disconnects a connected client.
    pub(crate) fn disconnect_session(
        &mut self,
        engine: &mut Engine,
        slot: Slot,
        notice: DisconnectNotice,
    ) {
        if let Some(key) = engine.core.sessions[slot].connection {
            self.disconnect(engine, key, notice, Ending::ClosedByServer);
        }
    }
}

/// Records the end of a connection in the timeline of its client, while the session still exists.
fn tell_end(engine: &mut Engine, slot: Slot, ending: Ending, notice: DisconnectNotice) {
    let now = engine.core.turn.now;
    let session = &engine.core.sessions[slot].session;
    let lifetime = session.lifetime();
    let cause = match ending {
        Ending::ClosedByPeer | Ending::EndedByPeer => EndCause::Lost,
        // A DISCONNECT without the will has removed it.
        Ending::Disconnected => EndCause::ByClient {
            with_will: session.will().is_some(),
        },
        Ending::KeepAlive => EndCause::KeepAlive {
            keep_alive_secs: lifetime.keep_alive(),
            silent_millis: u64::try_from(now.since(lifetime.last_activity()).as_millis())
                .unwrap_or(u64::MAX),
        },
        Ending::TakenOver { by } => EndCause::TakenOver { by },
        Ending::ClosedByServer => EndCause::ByBroker {
            reason: notice.reason,
            what: notice.what,
        },
    };
    let seconds = session.link().traffic().seconds(now);
    let session_ended = !lifetime.is_persistent();
    let event = || ClientEvent::Disconnected {
        cause,
        connected_secs: u32::try_from(seconds).unwrap_or(u32::MAX),
        session_ended,
    };
    tell(&mut engine.core, slot, event);
}

/// Replaces output that may not be written yet by DISCONNECT: the client sends unacknowledged
/// messages again. A client whose CONNACK may not be written yet is refused.
fn write_disconnect(engine: &mut Engine, key: ConnectionKey, slot: Slot, notice: DisconnectNotice) {
    let has_connack = !engine.core.outputs[key].drop_held();
    engine.core.write_last_packet(slot, |session, out| {
        if has_connack {
            session.disconnect(notice.reason, Some(notice.what), out);
        } else {
            session.link_mut().refuse(notice.reason, notice.what, out);
        }
    });
}

/// The counter of the limit that a violation exceeded, if there is one.
fn limit_counter(reason: ReasonCode) -> Option<Counter> {
    match reason {
        ReasonCode::PacketTooLarge => Some(Counter::LimitPacket),
        ReasonCode::TopicNameInvalid => Some(Counter::LimitTopic),
        ReasonCode::ReceiveMaximumExceeded => Some(Counter::LimitReceiveMaximum),
        ReasonCode::TopicAliasInvalid => Some(Counter::LimitTopicAlias),
        _ => None,
    }
}
