//! The end of a turn: every connection that has output is written once.

use mio::{Interest, Token};

use super::Worker;
use super::lifecycle::Ending;
use crate::connection::Phase;
use crate::metrics::Counter;

/// Rounds of write and refill in one turn; a queue that a fast reader empties must not starve the others.
const ROUNDS_PER_TURN: usize = 4;

impl Worker {
    /// Writes what the turn produced; a session that was held up by its full output goes on with its queue.
    pub(super) fn write_dirty(&mut self) {
        for _ in 0..ROUNDS_PER_TURN {
            if self.local.dirty.is_empty() {
                return;
            }
            let mut dirty = std::mem::take(&mut self.local.dirty);
            for key in dirty.drain(..) {
                self.write_and_refill(key);
            }
            if self.local.dirty.is_empty() {
                // Keeps the memory of the list.
                self.local.dirty = dirty;
            }
        }
    }

    fn write_and_refill(&mut self, key: u32) {
        let connection = self.local.connections.get_mut(key as usize);
        // What rests on changes that came after the turn was settled is written after the next one.
        if connection
            .is_some_and(|connection| std::mem::take(&mut connection.dirty) && !connection.depends)
        {
            self.write(key);
            self.refill(key);
        }
    }

    /// There is output that waits for the next turn.
    pub(super) fn has_dirty(&self) -> bool {
        !self.local.dirty.is_empty()
    }

    /// One write; a connection that fails is lost.
    pub(super) fn write(&mut self, key: u32) {
        let connection = &mut self.local.connections[key as usize];
        if connection.blocked || connection.waiting() == 0 {
            return;
        }
        let is_draining = connection.phase == Phase::Draining;
        match connection.write(&mut self.wire_buffer) {
            Ok(len) => {
                if connection.out.is_empty() {
                    let buffer = std::mem::take(&mut connection.out);
                    self.local.recycle(buffer);
                }
                self.local.row().add(Counter::Writes, 1);
                self.local.row().add(Counter::BytesSent, len as u64);
                self.watch_output(key);
            }
            Err(_) if is_draining => {
                connection.out.clear();
            }
            Err(error) => {
                tracing::debug!(%error, "write failed");
                connection.out.clear();
                self.hear_last_words(key);
            }
        }
    }

    /// The connection is broken, but what the client said last may be in the socket: a DISCONNECT discards the will.
    fn hear_last_words(&mut self, key: u32) {
        let connection = &mut self.local.connections[key as usize];
        connection.paused = false;
        connection.muted = false;
        connection.is_paced = false;
        connection.meter = None;
        self.read(key, true);
        let connection = self.local.connections.get(key as usize);
        if connection.is_some_and(|connection| connection.phase != Phase::Draining) {
            self.lost(key, Ending::ClosedByPeer);
        }
    }

    /// The poll is asked for room in the socket when there was none for the first time.
    fn watch_output(&mut self, key: u32) {
        let connection = &mut self.local.connections[key as usize];
        if !connection.blocked || connection.watches_output {
            return;
        }
        connection.watches_output = true;
        let (socket, token) = (&mut connection.socket, Token(key as usize));
        let both = Interest::READABLE | Interest::WRITABLE;
        if let Err(error) = self.poll.registry().reregister(socket, token, both) {
            tracing::warn!(%error, "cannot watch for room in a socket; the connection is closed");
            self.lost(key, Ending::ClosedByPeer);
        }
    }

    /// Below half of the soft limit a connection is read again and a congested session goes on.
    fn refill(&mut self, key: u32) {
        let limit = self.local.settings.output_bytes;
        let Some(connection) = self.local.connections.get_mut(key as usize) else {
            return;
        };
        if connection.waiting() > limit / 2 {
            return;
        }
        if std::mem::take(&mut connection.muted) {
            self.unmuted.push(key);
        }
        if std::mem::take(&mut connection.congested)
            && let Some(slot) = connection.session()
        {
            self.go_on(key, slot, limit);
        }
    }

    fn go_on(&mut self, key: u32, slot: u32, limit: usize) {
        let now = self.local.now;
        let (client, out) = self.local.client_and_output(slot);
        client.session.set_congested(false);
        let more = client.session.pump(now, limit, out);
        if more {
            client.session.set_congested(true);
            self.local.connections[key as usize].congested = true;
        }
        self.local.collect(slot);
        self.local.wrote(key);
        self.replay(slot);
    }
}
