//! From a readable socket to packets, and from packets to what they ask for.

use std::io;

use mio::event::Event;
use thrum_codec::frame::{self, Frame};
use thrum_codec::packet::Packet;
use thrum_codec::{QoS, ReasonCode, decode};
use thrum_protocol::Violation;
use thrum_protocol::server::Action;

use super::Worker;
use super::durable::rests_on_changes;
use crate::connection::{Phase, ReadOutcome};
use crate::metrics::Counter;
use crate::publish::Published;
use crate::worker::lifecycle::Ending;

/// A client with this many times the soft limit of output waiting is not read: what waits are answers that it
/// does not take.
const OUTPUT_HARD_FACTOR: usize = 2;
/// First byte of a CONNECT.
const CONNECT: u8 = 0x10;

/// Whether more frames of a connection may be handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Frame,
    /// This frame has to wait for the gatekeeper.
    Wait,
    /// The connection is closed, draining or with another worker, or the gatekeeper has been asked about it.
    Stop,
}

/// What a read left in the socket. A short read leaves nothing but, at the end of the stream, the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Socket {
    Empty,
    MayHaveMore,
}

impl Worker {
    /// A socket has something: input, room for output, or its end.
    pub(super) fn socket_ready(&mut self, token: usize, event: &Event) {
        let Ok(key) = u32::try_from(token) else {
            return;
        };
        let Some(connection) = self.local.connections.get_mut(token) else {
            return;
        };
        if event.is_writable() && connection.blocked {
            connection.blocked = false;
            if !connection.dirty {
                connection.dirty = true;
                self.local.dirty.push(key);
            }
        }
        if event.is_readable() || event.is_read_closed() || event.is_error() {
            self.read(key, event.is_read_closed() || event.is_error());
        }
    }

    /// Connections that had more than one buffer, and those that may be read again.
    pub(super) fn read_again(&mut self) {
        for key in std::mem::take(&mut self.again) {
            self.read(key, false);
        }
        for key in std::mem::take(&mut self.unmuted) {
            self.read(key, true);
        }
        if self.is_stuck() {
            return;
        }
        for key in std::mem::take(&mut self.paused) {
            if let Some(connection) = self.local.connections.get_mut(key as usize) {
                connection.paused = false;
                // The end of the stream may have been signalled during the pause.
                self.read(key, true);
            }
        }
    }

    pub(super) fn read(&mut self, key: u32, is_last: bool) {
        let mut buffer = std::mem::take(&mut self.read_buffer);
        // At the end of the stream everything is read up to the end; it cannot be told from an edge again.
        while self.read_once(key, &mut buffer) == Socket::MayHaveMore {
            if !is_last {
                break;
            }
        }
        self.read_buffer = buffer;
    }

    fn read_once(&mut self, key: u32, buffer: &mut [u8]) -> Socket {
        let Some(connection) = self.local.connections.get_mut(key as usize) else {
            return Socket::Empty;
        };
        if connection.is_unread() {
            return Socket::Empty;
        }
        if connection.meter.is_some() {
            return self.read_metered(key, buffer);
        }
        let outcome = connection.read(buffer);
        self.take_read(key, buffer, outcome)
    }

    /// What one read brought.
    #[inline]
    pub(super) fn take_read(
        &mut self,
        key: u32,
        buffer: &mut [u8],
        outcome: io::Result<ReadOutcome>,
    ) -> Socket {
        self.local.row().add(Counter::Reads, 1);
        match outcome {
            Ok(ReadOutcome::Drained(0)) => Socket::Empty,
            Ok(ReadOutcome::Drained(len)) => {
                self.arrived(key, &mut buffer[..len]);
                Socket::MayHaveMore
            }
            Ok(ReadOutcome::Full(len)) => {
                self.arrived(key, &mut buffer[..len]);
                self.again.push(key);
                Socket::MayHaveMore
            }
            Ok(ReadOutcome::Closed) => {
                self.lost(key, Ending::ClosedByPeer);
                Socket::Empty
            }
            Err(error) => {
                tracing::debug!(%error, "connection failed");
                self.lost(key, Ending::ClosedByPeer);
                Socket::Empty
            }
        }
    }

    /// Bytes of one connection: whole packets are handled, the rest is kept.
    pub(super) fn input(&mut self, key: u32, bytes: &[u8]) {
        self.hold_back = false;
        let connection = &mut self.local.connections[key as usize];
        if connection.phase == Phase::Draining {
            return;
        }
        if connection.partial.is_empty() {
            let (used, next) = self.frames(key, bytes);
            if next != Next::Stop && used < bytes.len() {
                let rest = bytes[used..].to_vec();
                self.local.connections[key as usize].partial.put(rest);
            }
        } else {
            let mut partial = connection.partial.take();
            partial.extend_from_slice(bytes);
            let (used, next) = self.frames(key, &partial);
            if next != Next::Stop && used < partial.len() {
                partial.drain(..used);
                self.local.connections[key as usize].partial.put(partial);
            }
        }
        self.after_input(key);
    }

    fn after_input(&mut self, key: u32) {
        let held_back = std::mem::take(&mut self.hold_back);
        let Some(connection) = self.local.connections.get_mut(key as usize) else {
            return;
        };
        if held_back && !connection.paused {
            connection.paused = true;
            self.paused.push(key);
            self.local.row().add(Counter::PublishersPaused, 1);
            if self.overload.slows_publishers() {
                self.local.row().add(Counter::OverloadPaused, 1);
            }
        }
        let output_max = OUTPUT_HARD_FACTOR * self.local.settings.output_bytes;
        let connection = &mut self.local.connections[key as usize];
        if connection.waiting() > output_max {
            connection.muted = true;
        }
        if connection.phase != Phase::Draining {
            self.local.wrote(key);
        }
    }

    fn frames(&mut self, key: u32, bytes: &[u8]) -> (usize, Next) {
        let mut used = 0;
        let packet_bytes_max = self.local.settings.session.packet_bytes_max;
        while used < bytes.len() {
            let frame = match frame::split(&bytes[used..], packet_bytes_max) {
                Ok(Some(frame)) => frame,
                Ok(None) => return (used, self.partial_frame(key, bytes[used])),
                Err(error) => {
                    self.violated(key, error.into());
                    return (used, Next::Stop);
                }
            };
            used += frame.len;
            let len = frame.len;
            let next = self.frame(key, frame, &bytes[used..]);
            self.local.end_unit();
            match next {
                Next::Frame => {}
                Next::Wait => return (used - len, Next::Wait),
                Next::Stop => return (used, Next::Stop),
            }
        }
        (used, Next::Frame)
    }

    /// The beginning of a packet: what cannot become a CONNECT need not be waited for. [MQTT-3.1.0-1]
    fn partial_frame(&mut self, key: u32, first: u8) -> Next {
        let waits_for_connect = self.local.connections[key as usize].phase == Phase::Handshake;
        if !waits_for_connect || first == CONNECT {
            return Next::Frame;
        }
        let what = "the first packet must be CONNECT";
        self.violated(key, Violation::new(ReasonCode::ProtocolError, what));
        Next::Stop
    }

    fn frame(&mut self, key: u32, frame: Frame<'_>, rest: &[u8]) -> Next {
        self.local.row().add(Counter::PacketsReceived, 1);
        let connection = &self.local.connections[key as usize];
        let packet = match decode(frame, connection.version) {
            Ok(packet) => packet,
            Err(error) => {
                self.refused_to_decode(key, frame, error);
                return Next::Stop;
            }
        };
        match (connection.phase, packet) {
            (Phase::Established { session }, packet) => {
                if self.has_to_ask(key, session, &packet) {
                    return Next::Wait;
                }
                self.packet(key, session, packet)
            }
            (Phase::Challenged, packet) => self.challenged(key, &packet, rest),
            (Phase::Handshake, Packet::Connect(connect)) => self.handshake(key, &connect, rest),
            // [MQTT-3.1.0-1] [MQTT3-3.1.0-1]
            (Phase::Handshake, _) => {
                let what = "the first packet must be CONNECT";
                self.violated(key, Violation::new(ReasonCode::ProtocolError, what));
                Next::Stop
            }
            (Phase::Proxy | Phase::Admission | Phase::Draining, _) => Next::Stop,
        }
    }

    #[expect(
        clippy::large_types_passed_by_value,
        reason = "inlined into its one caller"
    )]
    #[inline]
    fn packet(&mut self, key: u32, slot: u32, packet: Packet<'_>) -> Next {
        let now = self.local.now;
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
                if let Some(violation) = refusal(self.publish_from(slot, &publish, alias.as_ref()))
                {
                    self.violated(key, violation);
                    return Next::Stop;
                }
                if self.is_stuck() || self.overload.slows_publishers() {
                    self.hold_back = true;
                }
            }
            Action::Subscribe(subscribe) => self.subscribe_from(slot, &subscribe),
            Action::Unsubscribe(unsubscribe) => self.unsubscribe_from(slot, &unsubscribe),
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
        // A durable session's answers also wait for what it did before: a repeated packet is answered no sooner.
        if is_request
            && (self.local.mark() != before
                || self.local.clients[slot as usize].session.is_durable())
        {
            self.local.depend(key);
        }
        Next::Frame
    }

    /// An acknowledgement may have made room for queued or retained messages.
    #[inline]
    fn after_acknowledgement(&mut self, slot: u32) {
        self.local.collect(slot);
        let client = &self.local.clients[slot as usize];
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
