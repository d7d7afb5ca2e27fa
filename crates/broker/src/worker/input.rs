//! From a readable socket to packets, and from packets to what they ask for.

use thrum_codec::frame::{self, Frame};
use thrum_codec::packet::Packet;
use thrum_codec::{QoS, ReasonCode, decode};
use thrum_protocol::Violation;
use thrum_protocol::server::Action;

use super::Worker;
use super::durable::rests_on_changes;
use crate::connection::Phase;
use crate::ids::{ConnectionKey, Slot};
use crate::metrics::Counter;
use crate::publish::{Cleared, Published};
use crate::read_gate::PauseReason;
use crate::worker::lifecycle::Ending;
use crate::workers::WorkerSet;
use thrum_protection::InputUsage;

/// A client with this many times the soft limit of output waiting is not read: what waits are
/// answers that it does not take.
const OUTPUT_HARD_FACTOR: usize = 2;
/// First byte of a CONNECT.
const CONNECT: u8 = 0x10;
/// Type of a PUBLISH, in the upper half of its first byte.
const PUBLISH: u8 = 3;

/// Whether more frames of a connection may be handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Frame,
    /// This frame has to wait: the connection is not read until its reason ends.
    Wait,
    /// What follows has to wait: in the same way, or for the next turn.
    Later,
    /// The connection is closed, draining or with another worker, or the gatekeeper has been asked
    /// about it.
    Stop,
}

/// What became of some bytes.
#[derive(Clone, Copy, Debug)]
struct Framed {
    /// Bytes of the packets that were handled.
    used: usize,
    /// PUBLISH packets among them.
    messages: u64,
    /// Why no more of them were.
    next: Next,
}

impl Worker {
    /// Bytes of one connection behind those that were left: whole packets are handled, the rest is
    /// kept. The bytes and the messages that were handled are charged to the connection's meter.
    pub(super) fn input(&mut self, key: ConnectionKey, bytes: &[u8]) {
        self.full_targets = WorkerSet::NONE;
        self.local.memory.has_queued = false;
        let connection = &mut self.local.connections[key];
        if connection.is_draining() {
            return;
        }
        let id = connection.id(key);
        let messages = if connection.reading.is_held() {
            self.read_ahead(key, bytes);
            0
        } else {
            self.handle_input(key, bytes)
        };
        let bytes = bytes.len() as u64;
        self.charge(id, InputUsage { messages, bytes });
    }

    /// The number of PUBLISH packets that were handled.
    fn handle_input(&mut self, key: ConnectionKey, bytes: &[u8]) -> u64 {
        let connection = &mut self.local.connections[key];
        connection.reading.take_packets();
        let framed = if connection.partial.is_empty() {
            let framed = self.frames(key, bytes);
            if framed.next != Next::Stop && framed.used < bytes.len() {
                let rest = bytes[framed.used..].to_vec();
                self.keep_rest(key, rest, framed.next);
            }
            framed
        } else {
            let mut partial = connection.partial.take();
            partial.extend_from_slice(bytes);
            let framed = self.frames(key, &partial);
            if framed.next != Next::Stop && framed.used < partial.len() {
                partial.drain(..framed.used);
                self.keep_rest(key, partial, framed.next);
            }
            framed
        };
        self.after_input(key);
        framed.messages
    }

    /// Bytes that cannot be handled yet stay in their connection.
    fn keep_rest(&mut self, key: ConnectionKey, rest: Vec<u8>, next: Next) {
        let connection = &mut self.local.connections[key];
        connection.partial.put(rest);
        if connection.reading.is_held() {
            self.read_ahead(key, &[]);
        } else if next != Next::Frame {
            connection.reading.leave_packets();
        }
    }

    pub(super) fn after_input(&mut self, key: ConnectionKey) {
        let output_max = OUTPUT_HARD_FACTOR * self.local.settings.output_bytes;
        let Some(connection) = self.local.connections.get_mut(key) else {
            return;
        };
        if connection.is_draining() {
            return;
        }
        if connection.waiting() > output_max {
            connection.reading.close(PauseReason::Output);
        }
        self.local.wrote(key);
    }

    fn frames(&mut self, key: ConnectionKey, bytes: &[u8]) -> Framed {
        let mut framed = Framed {
            used: 0,
            messages: 0,
            next: Next::Frame,
        };
        let packet_bytes_max = self.local.settings.session.packet_bytes_max;
        while framed.next == Next::Frame && framed.used < bytes.len() {
            let rest = &bytes[framed.used..];
            let frame = match frame::split(rest, packet_bytes_max) {
                Ok(Some(frame)) => frame,
                Ok(None) => {
                    framed.next = self.partial_frame(key, rest[0]);
                    break;
                }
                Err(error) => {
                    self.violated(key, error.into());
                    framed.next = Next::Stop;
                    break;
                }
            };
            let len = frame.len;
            let is_publish = frame.first >> 4 == PUBLISH;
            framed.next = self.frame(key, frame, &rest[len..]);
            self.local.end_unit();
            self.local.work += 1;
            if framed.next == Next::Wait {
                break;
            }
            framed.used += len;
            framed.messages += u64::from(is_publish);
            if framed.next == Next::Frame && self.is_portion_over() {
                self.local.row().add(Counter::PortionsUsedUp, 1);
                framed.next = Next::Later;
            }
        }
        framed
    }

    /// The beginning of a packet: what cannot become a CONNECT need not be waited for.
    /// [MQTT-3.1.0-1]
    fn partial_frame(&mut self, key: ConnectionKey, first: u8) -> Next {
        let waits_for_connect = self.local.connections[key].awaits_connect();
        if !waits_for_connect || first == CONNECT {
            return Next::Frame;
        }
        let what = "the first packet must be CONNECT";
        self.violated(key, Violation::new(ReasonCode::ProtocolError, what));
        Next::Stop
    }

    fn frame(&mut self, key: ConnectionKey, frame: Frame<'_>, rest: &[u8]) -> Next {
        self.local.row().add(Counter::PacketsReceived, 1);
        let connection = &self.local.connections[key];
        let packet = match decode(frame, connection.version) {
            Ok(packet) => packet,
            Err(error) => {
                self.refused_to_decode(key, frame, error);
                return Next::Stop;
            }
        };
        match (&connection.phase, packet) {
            (Phase::Established { session, .. }, packet) => {
                let session = *session;
                if self.has_to_wait(key, session, &packet) {
                    return Next::Wait;
                }
                if self.stands_behind_mail(key, &packet) {
                    return Next::Wait;
                }
                if self.has_to_inquire(key, session, &packet) {
                    return Next::Wait;
                }
                match self.clearance(key, session, &packet) {
                    Some(cleared) => self.packet(key, session, packet, cleared),
                    None => Next::Wait,
                }
            }
            (Phase::Challenged(_), packet) => self.challenged(key, &packet, rest),
            (Phase::Handshake(_), Packet::Connect(connect)) => self.handshake(key, &connect, rest),
            // [MQTT-3.1.0-1] [MQTT3-3.1.0-1]
            (Phase::Handshake(_), _) => {
                let what = "the first packet must be CONNECT";
                self.violated(key, Violation::new(ReasonCode::ProtocolError, what));
                Next::Stop
            }
            (Phase::Proxy | Phase::Admission(_) | Phase::Draining(_), _) => Next::Stop,
        }
    }

    /// An UNSUBSCRIBE waits for the mail that there is: a message in it may have been acknowledged
    /// before the client sent this, and reaches it as it would have on the publisher's worker.
    fn stands_behind_mail(&mut self, key: ConnectionKey, packet: &Packet<'_>) -> bool {
        if !matches!(packet, Packet::Unsubscribe(_)) || self.node.workers() == 1 {
            return false;
        }
        let connection = &mut self.local.connections[key];
        if connection.reading.has_stood_behind_mail() {
            return false;
        }
        let (waiting, _) = self.node.mailbox(self.local.id).waiting();
        if waiting == 0 {
            return false;
        }
        connection.reading.stand_behind_mail();
        let connection = connection.id(key);
        let last = self.mail_handled + waiting as u64;
        self.behind_mail.push_back((last, connection));
        true
    }

    /// Those go on whose mail has been handled.
    pub(super) fn go_on_behind_mail(&mut self) {
        let handled = self.mail_handled;
        while let Some((_, connection)) =
            self.behind_mail.pop_front_if(|(last, _)| *last <= handled)
        {
            if self.local.connection(connection).is_some() {
                self.resume(connection.key, PauseReason::Mail);
            }
        }
    }

    #[expect(
        clippy::large_types_passed_by_value,
        reason = "inlined into its callers"
    )]
    #[expect(
        clippy::inline_always,
        reason = "the packet, of several hundred bytes, would be copied for a call"
    )]
    #[inline(always)]
    pub(super) fn packet(
        &mut self,
        key: ConnectionKey,
        slot: Slot,
        packet: Packet<'_>,
        cleared: Cleared,
    ) -> Next {
        let now = self.local.now;
        let mut next = Next::Frame;
        let is_answered = is_answered_at_once(&packet);
        let before = self.local.mark();
        let is_request = self.local.journal.is_some() && rests_on_changes(&packet);
        self.local.lend(slot);
        let (client, out) = self.local.client_and_output(slot);
        let action = match client.session.handle_packet(packet, now, out) {
            Ok(action) => action,
            Err(violation) => {
                self.violated(key, violation);
                return Next::Stop;
            }
        };
        match action {
            Action::None => {
                self.local
                    .row()
                    .add(Counter::AnswersSent, u64::from(is_answered));
                self.after_acknowledgement(slot);
            }
            Action::Publish { publish, alias } => {
                let published = self.publish_from(slot, &publish, alias.as_ref(), cleared);
                if let Some(violation) = refusal(published) {
                    self.violated(key, violation);
                    return Next::Stop;
                }
                next = self.pause_publisher(key);
            }
            Action::Subscribe(subscribe) => self.subscribe_from(slot, &subscribe),
            Action::Unsubscribe(unsubscribe) => {
                if let Err(violation) = self.unsubscribe_from(slot, &unsubscribe) {
                    self.violated(key, violation);
                    return Next::Stop;
                }
            }
            Action::Disconnected => {
                self.lost(key, Ending::Disconnected);
                return Next::Stop;
            }
            Action::Authenticate(auth) => {
                self.authenticate_again(slot, &auth);
                if !self.is_at(slot, key) {
                    return Next::Stop;
                }
            }
        }
        self.local.note(slot);
        // A durable session's answers also wait for what it did before: a repeated packet is
        // answered no sooner.
        if is_request
            && (self.local.mark() != before || self.local.clients[slot].session.is_durable())
        {
            self.local.depend(key);
        }
        next
    }

    /// An acknowledgement may have made room for queued or retained messages.
    #[inline]
    fn after_acknowledgement(&mut self, slot: Slot) {
        self.local.collect(slot);
        let client = &self.local.clients[slot];
        if client
            .rare
            .as_deref()
            .is_some_and(|rare| !rare.replays.is_empty())
        {
            self.replay(slot);
        }
    }
}

/// Why the connection of a client that published has to end.
fn refusal(published: Published) -> Option<Violation> {
    match published {
        Published::Answered => None,
        // [MQTT3-4.8.0-2]
        Published::DiskFull => Some(Violation::new(
            ReasonCode::QuotaExceeded,
            "the broker's disk is full: the message cannot be kept",
        )),
        Published::Denied => Some(Violation::new(
            ReasonCode::NotAuthorized,
            "not authorized to publish to this topic",
        )),
    }
}

/// Whether the session answers the packet itself, if it asks nothing of the node.
fn is_answered_at_once(packet: &Packet<'_>) -> bool {
    match packet {
        Packet::PingReq | Packet::PubRec(_) | Packet::PubRel(_) => true,
        // Known already: the PUBREC of an earlier time is repeated.
        Packet::Publish(publish) => publish.qos != QoS::AtMostOnce,
        _ => false,
    }
}
