//! The end of a turn: every connection that has output is written once.

use std::collections::VecDeque;

use mio::Interest;

use super::budget::TurnLimits;
use super::lifecycle::Ending;
use super::{EVENTS_PER_TURN, Worker};
use crate::connection::{Closing, Connection, Phase};
use crate::ids::{ConnectionKey, Slot};
use crate::metrics::Counter;
use crate::read_gate::PauseReason;

/// Rounds of write and refill in one turn; a queue that a fast reader empties must not starve the
/// others.
const ROUNDS_PER_TURN: usize = 4;

/// Connections with output of earlier turns, which had no room for it.
#[derive(Debug, Default)]
pub(super) struct Unwritten {
    /// The one that waits for the longest time first.
    connections: VecDeque<ConnectionKey>,
    is_long: bool,
}

impl Unwritten {
    /// There was more than the bytes of a turn, and it is not all written yet: nothing more is
    /// produced until it is.
    #[inline]
    pub(super) const fn is_long(&self) -> bool {
        self.is_long
    }
}

/// What a turn may write.
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

    /// No more is left than that.
    const fn is_down_to(self, kept: Self) -> bool {
        self.connections <= kept.connections || self.bytes <= kept.bytes
    }
}

impl Worker {
    /// Writes what the turn produced, then what earlier ones left, which has half of the turn at
    /// least; a session that was held up by its full output goes on with its queue.
    pub(super) fn write_dirty(&mut self) {
        let TurnLimits {
            writes,
            write_bytes,
            ..
        } = self.budget.limits;
        let mut share = Share {
            connections: writes,
            bytes: write_bytes,
        };
        for round in 0..ROUNDS_PER_TURN {
            if !self.has_dirty() {
                break;
            }
            let left = self.unwritten.connections.len();
            let kept = if left > 0 {
                share.half()
            } else {
                Share::NOTHING
            };
            self.write_fresh(&mut share, kept);
            // One of those who were left is written in any case.
            let least = usize::from(round == 0).min(left);
            self.write_left(&mut share, least);
            if share.is_down_to(Share::NOTHING) {
                break;
            }
        }
        let unwritten = &mut self.unwritten;
        unwritten.is_long =
            !unwritten.connections.is_empty() && (unwritten.is_long || share.bytes == 0);
        if !unwritten.is_long {
            self.end_writing_pauses();
        }
        if share.is_down_to(Share::NOTHING) && self.has_dirty() {
            self.local.row().add(Counter::WritesPutOff, 1);
        }
    }

    /// Who has something since the last round; those for whom nothing is left of the share come
    /// behind the others.
    fn write_fresh(&mut self, share: &mut Share, kept: Share) {
        let mut dirty = std::mem::take(&mut self.local.dirty);
        let mut written = 0;
        while written < dirty.len() && !share.is_down_to(kept) {
            share.take(self.write_and_refill(dirty[written]));
            written += 1;
        }
        self.unwritten.connections.extend(dirty.drain(written..));
        // Keeps the memory of the list.
        dirty.clear();
        dirty.append(&mut self.local.dirty);
        self.local.dirty = dirty;
    }

    fn write_left(&mut self, share: &mut Share, least: usize) {
        for number in 0..self.unwritten.connections.len() {
            if number >= least && share.is_down_to(Share::NOTHING) {
                return;
            }
            if let Some(key) = self.unwritten.connections.pop_front() {
                share.take(self.write_and_refill(key));
            }
        }
        self.unwritten.connections.shrink_to(EVENTS_PER_TURN);
    }

    /// The bytes that the socket took.
    fn write_and_refill(&mut self, key: ConnectionKey) -> usize {
        let connection = self.local.connections.get_mut(key);
        // What rests on changes that came after the turn was settled is written after the next one.
        if !connection
            .is_some_and(|connection| std::mem::take(&mut connection.dirty) && !connection.depends)
        {
            return 0;
        }
        let written = self.write(key);
        self.refill(key);
        written
    }

    /// There is output that waits for the next turn.
    pub(super) fn has_dirty(&self) -> bool {
        !self.local.dirty.is_empty() || !self.unwritten.connections.is_empty()
    }

    /// One write of what may leave, and the bytes that left; a connection that fails is lost. All
    /// output of all connections goes through here.
    pub(super) fn write(&mut self, key: ConnectionKey) -> usize {
        let connection = &mut self.local.connections[key];
        if !connection.may_write() {
            return 0;
        }
        let is_draining = connection.is_draining();
        match connection.write(&mut self.wire_buffer) {
            Ok(len) => {
                if let Some(buffer) = connection.take_spare() {
                    self.local.recycle(buffer);
                }
                self.local.row().add(Counter::Writes, 1);
                self.local.row().add(Counter::BytesSent, len as u64);
                self.watch_output(key);
                return len;
            }
            // Nobody is there to read the rest.
            Err(_) if is_draining => self.close(key),
            Err(error) => {
                tracing::debug!(%error, "write failed");
                connection.discard_output();
                self.read_to_the_end(key);
            }
        }
        0
    }

    /// A connection that ends is closed, or shut for output, once everything is sent that was
    /// written for it.
    pub(super) fn close_when_written(&mut self, key: ConnectionKey) {
        let is_ready =
            |connection: &&mut Connection| connection.is_draining() && connection.is_written_out();
        let connection = self.local.connections.get_mut(key);
        let Some(connection) = connection.filter(is_ready) else {
            return;
        };
        connection.finish_layers();
        self.write(key);
        let connection = self.local.connections.get_mut(key);
        let Some(connection) = connection.filter(is_ready) else {
            return;
        };
        match connection.phase {
            Phase::Draining(Closing::Close) => self.close(key),
            Phase::Draining(Closing::Shutdown) => {
                connection.shutdown_output();
                connection.phase = Phase::Draining(Closing::Told);
            }
            _ => {}
        }
    }

    /// The connection is broken, but what the client said last may be in the socket: a DISCONNECT
    /// discards the will. It is read to its end from the next turn on, unless a packet waits for
    /// the gatekeeper, behind which nothing is handled.
    fn read_to_the_end(&mut self, key: ConnectionKey) {
        let connection = &mut self.local.connections[key];
        if connection.reading.has(PauseReason::Decision) || connection.awaits_admission() {
            self.lost(key, Ending::ClosedByPeer);
            return;
        }
        connection.reading.open_wide();
        connection.reading.note_readable(true);
        connection.meter = None;
        self.list_reader(key);
    }

    /// The poll is asked for room in the socket when there was none for the first time.
    fn watch_output(&mut self, key: ConnectionKey) {
        let connection = &mut self.local.connections[key];
        if !connection.blocked || connection.watches_output {
            return;
        }
        connection.watches_output = true;
        let token = connection.id(key).token();
        let socket = &mut connection.socket;
        let both = Interest::READABLE | Interest::WRITABLE;
        if let Err(error) = self.poll.registry().reregister(socket, token, both) {
            tracing::warn!(%error, "cannot watch for room in a socket; the connection is closed");
            self.lost(key, Ending::ClosedByPeer);
        }
    }

    /// Below half of the soft limit a connection is read again and a congested session goes on.
    fn refill(&mut self, key: ConnectionKey) {
        let limit = self.local.settings.output_bytes;
        let Some(connection) = self.local.connections.get_mut(key) else {
            return;
        };
        if connection.waiting() > limit / 2 {
            return;
        }
        if connection.is_draining() {
            self.close_when_written(key);
            return;
        }
        let is_congested = std::mem::take(&mut connection.congested);
        self.resume(key, PauseReason::Output);
        let connection = &self.local.connections[key];
        if is_congested && let Some(slot) = connection.session() {
            self.go_on(key, slot, limit);
        }
    }

    fn go_on(&mut self, key: ConnectionKey, slot: Slot, limit: usize) {
        let now = self.local.now;
        let (client, out) = self.local.client_and_output(slot);
        client.session.set_congested(false);
        let more = client.session.pump(now, limit, out);
        if more {
            client.session.set_congested(true);
            self.local.connections[key].congested = true;
        }
        self.local.collect(slot);
        self.local.wrote(key);
        self.replay(slot);
    }
}
