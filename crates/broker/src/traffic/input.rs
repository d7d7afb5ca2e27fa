//! From bytes to packets, and from packets to their handlers.
//!
//! Packets behind a held PUBLISH are examined too: acknowledgements and pings go ahead of it, the
//! others stay behind it.

use thrum_codec::frame::{self, Frame};
use thrum_codec::packet::Packet;
use thrum_codec::{ReasonCode, Version, decode};
use thrum_engine::Engine;
use thrum_engine::access::Verdict;
use thrum_engine::ids::{ConnectionKey, Slot};
use thrum_engine::node::metrics::Counter;
use thrum_engine::packets::Handled;
use thrum_engine::reach::Cleared;
use thrum_engine::stages;
use thrum_protection::{InputUsage, MemoryLevel};
use thrum_protocol::Violation;

use super::{READ_BYTES, Traffic};
use crate::connection::Phase;
use crate::door::{challenged, is_at};
use crate::edge::{Edge, Ending, trace_connect, trace_input, trace_unsplit};
use crate::partial::LeftBytes;
use crate::read_gate::PauseReason;

/// A client with this many times the soft limit of output is not read: the output consists of
/// answers that it does not take.
const OUTPUT_HARD_FACTOR: usize = 2;
/// First byte of a CONNECT.
const CONNECT: u8 = 0x10;
/// Type of a PUBLISH, in the upper half of its first byte.
const PUBLISH: u8 = 3;

/// Whether more frames of a connection may be handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Frame,
    /// This frame has to wait: the connection is not read until its reason ends.
    Wait,
    /// Further frames have to wait: in the same way, or for the next turn.
    Later,
    /// The connection is closed, draining or with another worker, or the gatekeeper has been asked
    /// about it.
    Stop,
}

/// The result of handling some bytes.
#[derive(Clone, Copy, Debug)]
struct Framed {
    /// Bytes of the packets that were handled.
    used: usize,
    /// PUBLISH packets among them.
    messages: u64,
    /// The reason why no more of them were handled.
    next: Next,
}

/// Most bytes behind a held PUBLISH while memory is short: acknowledgements are read on, further
/// messages are not.
const BEHIND_BYTES_LOW: usize = 1024;
/// Kind of a DISCONNECT, in the upper half of its first byte.
const DISCONNECT: u8 = 14;

impl Traffic {
    /// Handles bytes of one connection behind those kept before: whole packets are handled, the
    /// rest is kept. The handled bytes and messages are charged to the connection's meter.
    pub(crate) fn input(&mut self, key: ConnectionKey, bytes: &[u8]) {
        self.engine.core.outboxes.begin_connection();
        self.engine.core.memory.has_queued = false;
        let connection = &mut self.edge.connections[key];
        if connection.is_draining() {
            self.engine.core.stages.end_input();
            return;
        }
        let id = self.engine.core.outputs.id(key);
        let messages = if connection.reading.is_held() {
            self.read_ahead(key, bytes);
            0
        } else {
            self.handle_input(key, bytes)
        };
        self.engine.core.stages.end_input();
        let bytes = bytes.len() as u64;
        self.edge
            .meters(&mut self.engine)
            .charge(id, InputUsage { messages, bytes });
    }

    /// Handles input and returns the number of PUBLISH packets.
    fn handle_input(&mut self, key: ConnectionKey, bytes: &[u8]) -> u64 {
        let connection = &mut self.edge.connections[key];
        connection.reading.take_packets();
        let framed = if connection.partial.is_empty() {
            let framed = self.frames(key, bytes);
            if framed.next != Next::Stop && framed.used < bytes.len() {
                let rest = bytes[framed.used..].to_vec();
                self.keep_rest(key, rest, framed.next);
            }
            framed
        } else {
            let LeftBytes {
                bytes: mut partial,
                read_ns,
                asked_ns,
                ..
            } = connection.partial.take_seen();
            if read_ns > 0 {
                // Whole packets wait, and nothing was read since.
                stages::resume_time_of_left_bytes(&mut self.engine.core, read_ns, asked_ns);
            }
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

    /// Keeps unhandled bytes in the connection.
    fn keep_rest(&mut self, key: ConnectionKey, rest: Vec<u8>, next: Next) {
        let connection = &mut self.edge.connections[key];
        let is_whole = connection.reading.is_held() || next != Next::Frame;
        let is_asked = connection.reading.has(PauseReason::Decision);
        connection.partial.put_seen(LeftBytes {
            bytes: rest,
            seen: 0,
            read_ns: if is_whole {
                stages::time_of_left_bytes(&self.engine.core)
            } else {
                0
            },
            asked_ns: if is_asked {
                stages::time_of_question(&self.engine.core)
            } else {
                0
            },
        });
        if connection.reading.is_held() {
            self.read_ahead(key, &[]);
        } else if next != Next::Frame {
            connection.reading.leave_packets();
        }
    }

    pub(crate) fn after_input(&mut self, key: ConnectionKey) {
        let output_max = OUTPUT_HARD_FACTOR * self.engine.core.settings.output_bytes;
        let Some(connection) = self.edge.connections.get_mut(key) else {
            return;
        };
        if connection.is_draining() {
            return;
        }
        if connection.waiting(&self.engine.core.outputs[key]) > output_max {
            connection.reading.close(PauseReason::Output);
        }
        self.engine.core.outputs.wrote(key);
    }

    fn frames(&mut self, key: ConnectionKey, bytes: &[u8]) -> Framed {
        let mut framed = Framed {
            used: 0,
            messages: 0,
            next: Next::Frame,
        };
        let packet_bytes_max = self.engine.core.settings.session.packet_bytes_max;
        let mut is_traced = self.edge.connections[key].is_traced;
        while framed.next == Next::Frame && framed.used < bytes.len() {
            let rest = &bytes[framed.used..];
            let frame = match frame::split(rest, packet_bytes_max) {
                Ok(Some(frame)) => frame,
                Ok(None) => {
                    framed.next = partial_frame(&mut self.edge, &mut self.engine, key, rest[0]);
                    break;
                }
                Err(error) => {
                    trace_unsplit(&mut self.edge, &self.engine, key, rest, error);
                    self.edge.violated(&mut self.engine, key, error.into());
                    framed.next = Next::Stop;
                    break;
                }
            };
            let len = frame.len;
            let is_publish = frame.first >> 4 == PUBLISH;
            if is_traced {
                trace_input(&mut self.edge, &self.engine, key, frame);
            }
            framed.next = self.frame(key, frame, &rest[len..]);
            self.engine.core.durable.end_unit();
            self.engine.core.turn.work += 1;
            if is_traced && framed.next == Next::Wait {
                self.edge.traces.note_wait(key, frame);
            }
            if framed.next == Next::Wait {
                break;
            }
            if frame.first == CONNECT {
                let connection = self.edge.connections.get(key);
                is_traced = connection.is_some_and(|connection| connection.is_traced);
            }
            framed.used += len;
            framed.messages += u64::from(is_publish);
            if framed.next == Next::Frame && self.engine.core.turn.is_portion_over() {
                self.engine.core.row().add(Counter::PortionsUsedUp, 1);
                framed.next = Next::Later;
            }
        }
        framed
    }

    fn frame(&mut self, key: ConnectionKey, frame: Frame<'_>, rest: &[u8]) -> Next {
        self.engine.core.row().add(Counter::PacketsReceived, 1);
        let connection = &self.edge.connections[key];
        let packet = match decode(frame, connection.version) {
            Ok(packet) => packet,
            Err(error) => {
                self.door().refused_to_decode(key, frame, error);
                return Next::Stop;
            }
        };
        match (&connection.phase, packet) {
            (Phase::Established { session, .. }, packet) => {
                let session = *session;
                match self.clear(key, session, &packet) {
                    Some(cleared) => self.packet(key, session, packet, cleared),
                    None => Next::Wait,
                }
            }
            (Phase::Challenged(_), packet) => challenged(&mut self.door(), key, &packet, rest),
            (Phase::Handshake(_), Packet::Connect(connect)) => {
                if self.edge.traces.are_on() {
                    let client_id = connect.client_id;
                    trace_connect(&mut self.edge, &self.engine, key, client_id, frame);
                }
                self.door().handshake(key, &connect, rest)
            }
            // [MQTT-3.1.0-1] [MQTT3-3.1.0-1]
            (Phase::Handshake(_), _) => {
                let what = "the first packet must be CONNECT";
                self.edge.violated(
                    &mut self.engine,
                    key,
                    Violation::new(ReasonCode::ProtocolError, what),
                );
                Next::Stop
            }
            (Phase::Proxy | Phase::Admission(_) | Phase::Draining(_), _) => Next::Stop,
        }
    }

    /// Whether a packet of a connected client may be handled now; none if it has to wait: for the
    /// gatekeeper, for mail, for answers of other workers, for room in a queue.
    #[inline]
    fn clear(&mut self, key: ConnectionKey, slot: Slot, packet: &Packet<'_>) -> Option<Cleared> {
        let verdict = self.door().authorizing().verdict(key, slot, packet)?;
        if self
            .inbox
            .has_to_wait(&mut self.edge, &self.engine, key, packet)
        {
            return None;
        }
        let connection = self.engine.core.outputs.id(key);
        if self.engine.has_to_inquire(connection, slot, packet) {
            self.edge.connections[key].reading.close(PauseReason::Mail);
            return None;
        }
        let cleared = self.engine.clearance(connection, slot, packet, verdict);
        if cleared.is_none() {
            self.edge.connections[key].reading.hold();
        }
        cleared
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
    pub(crate) fn packet(
        &mut self,
        key: ConnectionKey,
        slot: Slot,
        packet: Packet<'_>,
        cleared: Cleared,
    ) -> Next {
        match self.engine.packet(slot, packet, cleared) {
            Ok(Handled::Nothing) => Next::Frame,
            Ok(Handled::Published) => {
                if self.edge.pause_publisher(&mut self.engine, key) {
                    Next::Later
                } else {
                    Next::Frame
                }
            }
            Ok(Handled::Disconnected) => {
                self.edge.lost(&mut self.engine, key, Ending::Disconnected);
                Next::Stop
            }
            Ok(Handled::Authenticate(auth)) => {
                self.reauthentication().authenticate_again(slot, &auth);
                if is_at(&self.engine, slot, key) {
                    Next::Frame
                } else {
                    Next::Stop
                }
            }
            Err(violation) => {
                self.edge.violated(&mut self.engine, key, violation);
                Next::Stop
            }
        }
    }

    /// Resumes the connections whose preceding mail has been handled.
    pub(crate) fn resume_behind_mail(&mut self) {
        while let Some(connection) = self.inbox.next_to_resume() {
            if self.engine.core.outputs.contains(connection) {
                self.edge.resume(connection.key, PauseReason::Mail);
            }
        }
    }

    /// Input of a client with a held PUBLISH: packets that go ahead of it are handled, the rest is
    /// kept behind it.
    pub(crate) fn read_ahead(&mut self, key: ConnectionKey, bytes: &[u8]) {
        let connection = &mut self.edge.connections[key];
        connection.reading.take_packets();
        let mut waiting = connection.partial.take_seen();
        waiting.bytes.extend_from_slice(bytes);
        if !bytes.is_empty() {
            // The packets behind the held one are younger.
            waiting.read_ns = stages::time_of_left_bytes(&self.engine.core);
        }
        let Some(outlook) = self.look_ahead(key, &mut waiting) else {
            return;
        };
        let packet_bytes_max = self.engine.core.settings.session.packet_bytes_max;
        let held = frame::split(&waiting.bytes, packet_bytes_max);
        let held_bytes = held.ok().flatten().map_or(0, |frame| frame.len);
        let behind_bytes_max = if self.engine.core.memory.level >= MemoryLevel::Low {
            BEHIND_BYTES_LOW
        } else {
            READ_BYTES
        };
        let connection = &mut self.edge.connections[key];
        if waiting.bytes.len() > held_bytes + behind_bytes_max {
            connection.reading.close(PauseReason::Room);
            waiting.bytes.shrink_to_fit();
        }
        if outlook == Outlook::More {
            connection.reading.leave_packets();
        }
        connection.partial.put_seen(waiting);
        self.after_input(key);
        if outlook == Outlook::Leaving {
            // All its packets are handled in order from now on.
            self.edge.connections[key].reading.release_held();
            let connection = self.engine.core.outputs.id(key);
            self.engine
                .held
                .release_leaving(&mut self.engine.core, connection);
            self.input(key, &[]);
        }
    }

    /// Handles and removes packets that go ahead, up to the portion; none if the connection has
    /// ended.
    fn look_ahead(&mut self, key: ConnectionKey, waiting: &mut LeftBytes) -> Option<Outlook> {
        let connection = &self.edge.connections[key];
        let (slot, version) = (connection.session()?, connection.version);
        let is_traced = connection.is_traced;
        let packet_bytes_max = self.engine.core.settings.session.packet_bytes_max;
        let mut at = waiting.seen;
        while let Ok(Some(frame)) = frame::split(&waiting.bytes[at..], packet_bytes_max) {
            let (end, kind) = (at + frame.len, frame.first >> 4);
            self.engine.core.turn.work += 1;
            let ahead = ahead(frame, version);
            if is_traced && ahead.is_some() {
                trace_input(&mut self.edge, &self.engine, key, frame);
            }
            let next = if let Some(packet) = ahead {
                self.engine.core.row().add(Counter::PacketsReceived, 1);
                self.packet(key, slot, packet, Cleared::unasked(Verdict::Allowed))
            } else {
                waiting.keep(at..end);
                Next::Frame
            };
            self.engine.core.durable.end_unit();
            at = end;
            let outlook = match (next, kind) {
                (Next::Stop, _) => return None,
                (_, DISCONNECT) => Outlook::Leaving,
                _ if self.engine.core.turn.is_portion_over() => Outlook::More,
                _ => continue,
            };
            waiting.close_gap(at);
            return Some(outlook);
        }
        waiting.close_gap(at);
        Some(Outlook::Whole)
    }
}

/// The packets behind a held PUBLISH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outlook {
    /// All of them have been examined.
    Whole,
    /// They exceed the portion of the connection.
    More,
    /// The client's DISCONNECT.
    Leaving,
}

/// A packet that goes ahead of a held PUBLISH: it is neither a message nor a request.
fn ahead(frame: Frame<'_>, version: Version) -> Option<Packet<'_>> {
    let goes_ahead = matches!(frame.first >> 4, 4..=7 | 12);
    goes_ahead.then(|| decode(frame, version).ok()).flatten()
}

/// The beginning of a packet: bytes that cannot become a CONNECT are refused at once.
/// [MQTT-3.1.0-1]
fn partial_frame(edge: &mut Edge, engine: &mut Engine, key: ConnectionKey, first: u8) -> Next {
    let waits_for_connect = edge.connections[key].awaits_connect();
    if !waits_for_connect || first == CONNECT {
        return Next::Frame;
    }
    let what = "the first packet must be CONNECT";
    edge.violated(engine, key, Violation::new(ReasonCode::ProtocolError, what));
    Next::Stop
}
