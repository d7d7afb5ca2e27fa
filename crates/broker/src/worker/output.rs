//! The end of a turn: every connection that has output is written once.

use mio::{Interest, Token};

use super::Worker;
use super::budget::{WRITE_UNITS, WRITTEN_BYTES_OF_UNIT};
use super::lifecycle::Ending;
use crate::connection::{Closing, Phase};
use crate::metrics::Counter;
use crate::read_gate::PauseReason;

/// Rounds of write and refill in one turn; a queue that a fast reader empties must not starve the others.
const ROUNDS_PER_TURN: usize = 4;

impl Worker {
    /// Writes what the turn produced; a session that was held up by its full output goes on with its queue.
    pub(super) fn write_dirty(&mut self) {
        if self.local.dirty.is_empty() {
            return;
        }
        self.begin_portion();
        let mut left = self.budget.limits.writes;
        for _ in 0..ROUNDS_PER_TURN {
            if self.local.dirty.is_empty() {
                return;
            }
            let mut dirty = std::mem::take(&mut self.local.dirty);
            let mut written = 0;
            for &key in dirty.iter().take(left) {
                self.write_and_refill(key);
                written += 1;
                if self.is_portion_over() {
                    left = written;
                    break;
                }
            }
            left -= written;
            dirty.drain(..written);
            // Who is left comes first in the next turn. Keeps the memory of the list, too.
            dirty.append(&mut self.local.dirty);
            self.local.dirty = dirty;
            if left == 0 {
                self.local.row().add(Counter::WritesPutOff, 1);
                return;
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

    /// One write of what may leave; a connection that fails is lost. All output of all connections goes through here.
    pub(super) fn write(&mut self, key: u32) {
        let connection = &mut self.local.connections[key as usize];
        if !connection.may_write() {
            return;
        }
        let is_draining = connection.is_draining();
        match connection.write(&mut self.wire_buffer) {
            Ok(len) => {
                self.local.work += WRITE_UNITS + (len / WRITTEN_BYTES_OF_UNIT) as u64;
                if connection.out.is_empty() {
                    let buffer = std::mem::take(&mut connection.out);
                    self.local.recycle(buffer);
                }
                self.local.row().add(Counter::Writes, 1);
                self.local.row().add(Counter::BytesSent, len as u64);
                self.watch_output(key);
            }
            // Nobody is there to read the rest.
            Err(_) if is_draining => self.close(key),
            Err(error) => {
                tracing::debug!(%error, "write failed");
                connection.discard_output();
                self.read_to_the_end(key);
            }
        }
    }

    /// A connection that ends is closed, or shut for output, once everything is sent that was written for it.
    pub(super) fn close_when_written(&mut self, key: u32) {
        for _ in 0..2 {
            let Some(connection) = self.local.connections.get_mut(key as usize) else {
                return;
            };
            let Phase::Draining(closing) = connection.phase else {
                return;
            };
            if !connection.is_written_out() {
                // The end of the layers.
                self.write(key);
                continue;
            }
            match closing {
                Closing::Close => self.close(key),
                Closing::Shutdown => {
                    connection.shutdown_output();
                    connection.phase = Phase::Draining(Closing::Told);
                }
                Closing::Told => {}
            }
            return;
        }
    }

    /// The connection is broken, but what the client said last may be in the socket: a DISCONNECT discards the will. It is
    /// read to its end from the next turn on, unless a packet waits for the gatekeeper, behind which nothing is handled.
    fn read_to_the_end(&mut self, key: u32) {
        let connection = &mut self.local.connections[key as usize];
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
        if connection.is_draining() {
            self.close_when_written(key);
            return;
        }
        let is_congested = std::mem::take(&mut connection.congested);
        self.resume(key, PauseReason::Output);
        let connection = &self.local.connections[key as usize];
        if is_congested && let Some(slot) = connection.session() {
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
