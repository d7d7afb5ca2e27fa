//! The end of a turn: every connection that has output is written once.

use std::collections::VecDeque;

use mio::Interest;
use thrum_engine::Engine;
use thrum_engine::ids::ConnectionKey;
use thrum_engine::node::metrics::Counter;
use thrum_engine::stages::{self, MovedBytes};
use thrum_engine::turn::TurnLimits;

use super::Edge;
use super::closing::Ending;
use crate::connection::{Closing, Connection, Phase, token_of};
use crate::read_gate::PauseReason;
use crate::trace::{EVERY_TRACE, Moment};
use crate::worker::EVENTS_PER_TURN;

/// Rounds of write and refill in one turn; the queue of a fast reader must not starve other
/// connections.
const ROUNDS_PER_TURN: usize = 4;

/// Follows stamped messages of a connection whose output was `before` bytes long, and whose socket
/// took `len` bytes.
#[cold]
fn follow_written(
    engine: &mut Engine,
    connection: &Connection,
    key: ConnectionKey,
    before: usize,
    len: usize,
) {
    let moved = MovedBytes {
        from_output: before - engine.core.outputs[key].waiting(),
        into_socket: len,
        in_layers: connection.layers_waiting(),
    };
    stages::written(&mut engine.core, key, moved);
}

/// Connections with output of earlier turns, which those turns had no room for.
#[derive(Debug, Default)]
pub(crate) struct Unwritten {
    /// The longest-waiting connection first.
    connections: VecDeque<ConnectionKey>,
    is_long: bool,
}

impl Unwritten {
    /// The output exceeded the bytes of a turn, and some of it is unwritten: no more output is
    /// produced until it is written.
    #[inline]
    pub(crate) const fn is_long(&self) -> bool {
        self.is_long
    }
}

/// The rest of the output that a turn may write.
#[derive(Clone, Copy, Debug)]
struct Share {
    connections: usize,
    bytes: usize,
}

impl Share {
    const NOTHING: Self = Self {
        connections: 0,
        bytes: 0,
    };

    const fn half(self) -> Self {
        Self {
            connections: self.connections / 2,
            bytes: self.bytes / 2,
        }
    }

    fn take(&mut self, bytes: usize) {
        self.connections = self.connections.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// At most this much is left.
    const fn is_down_to(self, kept: Self) -> bool {
        self.connections <= kept.connections || self.bytes <= kept.bytes
    }
}

impl Edge {
    /// Writes the output of this turn, then that of earlier turns, for which at least half of the
    /// turn is reserved; a session that its full output held up continues with its queue.
    pub(crate) fn write_dirty(&mut self, engine: &mut Engine) {
        let TurnLimits {
            writes,
            write_bytes,
            ..
        } = *engine.core.turn.limits();
        let mut share = Share {
            connections: writes,
            bytes: write_bytes,
        };
        for round in 0..ROUNDS_PER_TURN {
            if !self.has_dirty(engine) {
                break;
            }
            let left = self.unwritten.connections.len();
            let kept = if left > 0 {
                share.half()
            } else {
                Share::NOTHING
            };
            self.write_fresh(engine, &mut share, kept);
            // At least one of the connections from earlier turns is written.
            let least = usize::from(round == 0).min(left);
            self.write_left(engine, &mut share, least);
            if share.is_down_to(Share::NOTHING) {
                break;
            }
        }
        let unwritten = &mut self.unwritten;
        unwritten.is_long =
            !unwritten.connections.is_empty() && (unwritten.is_long || share.bytes == 0);
        if !unwritten.is_long {
            let outputs = &engine.core.outputs;
            self.readers
                .end_writing_pauses(&mut self.connections, outputs);
        }
        if share.is_down_to(Share::NOTHING) && self.has_dirty(engine) {
            engine.core.row().add(Counter::WritesPutOff, 1);
        }
    }

    /// Writes connections with output since the last round; those beyond the share are queued
    /// behind the others.
    fn write_fresh(&mut self, engine: &mut Engine, share: &mut Share, kept: Share) {
        let mut dirty = engine.core.outputs.take_listed();
        let mut written = 0;
        while written < dirty.len() && !share.is_down_to(kept) {
            share.take(self.write_and_refill(engine, dirty[written]));
            written += 1;
        }
        self.unwritten.connections.extend(dirty.drain(written..));
        engine.core.outputs.give_back(dirty);
    }

    fn write_left(&mut self, engine: &mut Engine, share: &mut Share, least: usize) {
        for number in 0..self.unwritten.connections.len() {
            if number >= least && share.is_down_to(Share::NOTHING) {
                return;
            }
            if let Some(key) = self.unwritten.connections.pop_front() {
                share.take(self.write_and_refill(engine, key));
            }
        }
        self.unwritten.connections.shrink_to(EVENTS_PER_TURN);
    }

    /// The bytes that the socket took.
    fn write_and_refill(&mut self, engine: &mut Engine, key: ConnectionKey) -> usize {
        if !engine.core.outputs.take_turn(key) {
            return 0;
        }
        let written = self.write(engine, key);
        self.refill(engine, key);
        written
    }

    /// Some output waits for the next turn.
    pub(crate) fn has_dirty(&self, engine: &Engine) -> bool {
        !engine.core.outputs.is_empty() || !self.unwritten.connections.is_empty()
    }

    /// Writes the output that may leave, once, and returns the number of bytes sent; a failed
    /// connection is lost. All output of all connections goes through here.
    pub(crate) fn write(&mut self, engine: &mut Engine, key: ConnectionKey) -> usize {
        let connection = &mut self.connections[key];
        let outputs = &mut engine.core.outputs;
        if !connection.may_write(&outputs[key]) {
            return 0;
        }
        let is_draining = connection.is_draining();
        let output = &mut outputs[key];
        let is_traced = connection.is_traced;
        if is_traced {
            let moment = Moment {
                worker: engine.core.id.index(),
                elapsed: self.node.clock.elapsed(),
                version: connection.version,
                traces: EVERY_TRACE,
            };
            connection.is_traced = self.traces.take_output(key, output, moment);
        }
        let before = (output.is_followed || is_traced).then(|| output.waiting());
        match connection.write(output, &mut self.wire_buffer) {
            Ok(len) => {
                if let Some(before) = before.filter(|_| is_traced) {
                    let left = engine.core.outputs[key].waiting();
                    self.traces.written(key, before.saturating_sub(left));
                }
                // Output that was dropped meanwhile was not written.
                if let Some(before) = before.filter(|_| engine.core.outputs[key].is_followed) {
                    follow_written(engine, &self.connections[key], key, before, len);
                }
                let outputs = &mut engine.core.outputs;
                if let Some(buffer) = outputs[key].take_spare() {
                    outputs.recycle(buffer);
                }
                engine.core.row().add(Counter::Writes, 1);
                engine.core.row().add(Counter::BytesSent, len as u64);
                self.watch_output(engine, key);
                return len;
            }
            // The peer no longer reads the rest.
            Err(_) if is_draining => self.close(engine, key),
            Err(error) => {
                tracing::debug!(%error, "write failed");
                connection.discard_layers();
                outputs[key].discard();
                if is_traced {
                    self.traces.discarded(key);
                }
                self.read_to_the_end(engine, key);
            }
        }
        0
    }

    /// Closes a connection that ends, or shuts it for output, once all its output is sent.
    pub(crate) fn close_when_written(&mut self, engine: &mut Engine, key: ConnectionKey) {
        let Some(connection) = self.written_out(engine, key) else {
            return;
        };
        connection.finish_layers();
        self.write(engine, key);
        let Some(connection) = self.written_out(engine, key) else {
            return;
        };
        match connection.phase {
            Phase::Draining(Closing::Close) => self.close(engine, key),
            Phase::Draining(Closing::Shutdown) => {
                connection.shutdown_output();
                connection.phase = Phase::Draining(Closing::ShutdownSent);
            }
            _ => {}
        }
    }

    /// The connection, if it ends and has sent all its output.
    fn written_out(&mut self, engine: &mut Engine, key: ConnectionKey) -> Option<&mut Connection> {
        let connection = self.connections.get_mut(key)?;
        let output = &engine.core.outputs[key];
        let is_ready = connection.is_draining() && connection.is_written_out(output);
        is_ready.then_some(connection)
    }

    /// The connection is broken, but the client's last packets may be in the socket: a DISCONNECT
    /// discards the will. The socket is read to its end from the next turn on, unless a packet
    /// waits for the gatekeeper, behind which no packet is handled.
    fn read_to_the_end(&mut self, engine: &mut Engine, key: ConnectionKey) {
        let connection = &mut self.connections[key];
        if connection.reading.has(PauseReason::Decision) || connection.awaits_admission() {
            self.lost(engine, key, Ending::ClosedByPeer);
            return;
        }
        connection.reading.clear_reasons();
        connection.reading.note_readable(true);
        connection.meter = None;
        self.list_reader(key);
    }

    /// Asks the poll to report room in the socket after the first write that found none.
    fn watch_output(&mut self, engine: &mut Engine, key: ConnectionKey) {
        let connection = &mut self.connections[key];
        if !connection.room.begin_watching() {
            return;
        }
        let token = token_of(engine.core.outputs.id(key));
        let socket = &mut connection.socket;
        let both = Interest::READABLE | Interest::WRITABLE;
        if let Err(error) = self.poll.registry().reregister(socket, token, both) {
            tracing::warn!(%error, "cannot watch for room in a socket; the connection is closed");
            self.lost(engine, key, Ending::ClosedByPeer);
        }
    }

    /// Below half of the soft limit a connection is read again and a congested session continues.
    fn refill(&mut self, engine: &mut Engine, key: ConnectionKey) {
        let limit = engine.core.settings.output_bytes;
        let Some(connection) = self.connections.get_mut(key) else {
            return;
        };
        let output = &mut engine.core.outputs[key];
        if connection.waiting(output) > limit / 2 {
            return;
        }
        if connection.is_draining() {
            self.close_when_written(engine, key);
            return;
        }
        let is_congested = std::mem::take(&mut output.is_congested);
        self.resume(key, PauseReason::Output);
        let session = self.connections[key].session();
        if let Some(slot) = session.filter(|_| is_congested) {
            engine.resume_queue(slot, limit);
        }
    }
}
