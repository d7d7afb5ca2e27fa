//! Which connections are read when: one portion for each and turn, and none while there is a reason
//! against it.
//!
//! A connection that is not read has its reasons in its gate. Whoever closes it for one calls
//! [`Worker::pause`], and [`Worker::resume`] when that reason ends; the next turn then handles the
//! packets that were left and reads on.

use std::collections::VecDeque;
use std::io;

use mio::event::Event;
use thrum_protection::MemoryLevel;
use thrum_protocol::Time;

use super::budget::READ_UNITS;
use super::input::Next;
use super::lifecycle::Ending;
use super::{PRESSURE_CHECK, Worker};
use crate::connection::ReadOutcome;
use crate::ids::{ConnectionId, ConnectionKey};
use crate::metrics::Counter;
use crate::read_gate::PauseReason;
use crate::workers::{WorkerId, WorkerSet};

/// A publisher that is not read until none of these mailboxes is more than half full.
#[derive(Clone, Copy, Debug)]
struct MailboxWait {
    connection: ConnectionId,
    workers: WorkerSet,
}

/// Connections by when they are read.
#[derive(Debug, Default)]
pub(super) struct Readers {
    /// In the next turn. Each once, as its gate says that it is listed.
    listed: VecDeque<ConnectionKey>,
    at_mailboxes: Vec<MailboxWait>,
    at_storage: Vec<ConnectionId>,
    /// Until what was put off is written.
    at_writing: Vec<ConnectionId>,
    /// Each may send one portion then.
    overloading: Vec<ConnectionId>,
    overloading_until: Time,
}

impl Readers {
    /// Somebody is read in the next turn, which should come at once.
    pub(super) fn is_listed(&self) -> bool {
        !self.listed.is_empty()
    }

    /// Somebody waits for other threads, which do not tell when they have room.
    pub(super) fn waits_for_others(&self) -> bool {
        !self.at_mailboxes.is_empty() || !self.at_storage.is_empty()
    }

    /// When those are read who publish under overload.
    pub(super) fn overload_pause_end(&self) -> Option<Time> {
        (!self.overloading.is_empty()).then_some(self.overloading_until)
    }
}

impl Worker {
    /// A connection is not read until that reason ends. It is remembered what it has for us.
    pub(super) fn pause(&mut self, key: ConnectionKey, reason: PauseReason) -> bool {
        self.local.connections[key].reading.close(reason)
    }

    /// A reason is over: if it was the last one, what waits is handled in the next turn.
    pub(super) fn resume(&mut self, key: ConnectionKey, reason: PauseReason) {
        let connection = self.local.connections.get_mut(key);
        if connection.is_some_and(|connection| connection.reading.open(reason)) {
            self.list_reader(key);
        }
    }

    fn resume_all(&mut self, connections: Vec<ConnectionId>, reason: PauseReason) {
        for connection in connections {
            if self.local.connection(connection).is_some() {
                self.resume(connection.key, reason);
            }
        }
    }

    /// The connection is read in the next turn, if it may be and has something.
    pub(super) fn list_reader(&mut self, key: ConnectionKey) {
        if let Some(connection) = self.local.connections.get_mut(key)
            && connection.reading.has_input()
            && !connection.is_unread()
            && connection.reading.enlist()
        {
            self.readers.listed.push_back(key);
        }
    }

    /// A connection has published: it is not read on while there is nowhere to go with what it
    /// publishes.
    #[inline]
    pub(super) fn pause_publisher(&mut self, key: ConnectionKey) -> Next {
        let full = std::mem::take(&mut self.full_targets);
        let fills_memory = std::mem::take(&mut self.local.memory.has_queued);
        let is_slowed = fills_memory || self.overload.slows_publishers();
        if full.is_empty() && !is_slowed && !self.is_stuck() && !self.unwritten.is_long() {
            return Next::Frame;
        }
        self.pause_publisher_for(key, full, is_slowed);
        Next::Later
    }

    #[cold]
    fn pause_publisher_for(&mut self, key: ConnectionKey, full: WorkerSet, is_slowed: bool) {
        let connection = self.local.connections[key].id(key);
        if !full.is_empty() && self.pause(key, PauseReason::Mailbox) {
            self.readers.at_mailboxes.push(MailboxWait {
                connection,
                workers: full,
            });
        }
        if self.is_stuck() && self.pause(key, PauseReason::Storage) {
            self.readers.at_storage.push(connection);
        }
        if self.unwritten.is_long() && self.pause(key, PauseReason::Writing) {
            self.readers.at_writing.push(connection);
        }
        if is_slowed && self.pause(key, PauseReason::Overload) {
            if self.readers.overloading.is_empty() {
                self.readers.overloading_until = self.local.now.plus(PRESSURE_CHECK);
            }
            self.readers.overloading.push(connection);
            self.local.row().add(Counter::OverloadPaused, 1);
        }
        self.local.row().add(Counter::PublishersPaused, 1);
    }

    /// Ends the pauses whose reason is over.
    pub(super) fn end_pauses(&mut self) {
        self.forget_publishers();
        if !self.readers.at_mailboxes.is_empty() {
            self.end_mailbox_pauses();
        }
        if !self.readers.at_storage.is_empty() && !self.is_stuck() {
            let connections = std::mem::take(&mut self.readers.at_storage);
            self.resume_all(connections, PauseReason::Storage);
        }
        let end = self.readers.overload_pause_end();
        let is_slow =
            self.overload.slows_publishers() || self.local.memory.level >= MemoryLevel::Low;
        if end.is_some_and(|end| self.local.now >= end || !is_slow) {
            let connections = std::mem::take(&mut self.readers.overloading);
            self.resume_all(connections, PauseReason::Overload);
        }
    }

    /// What was put off is written.
    pub(super) fn end_writing_pauses(&mut self) {
        if !self.readers.at_writing.is_empty() {
            let connections = std::mem::take(&mut self.readers.at_writing);
            self.resume_all(connections, PauseReason::Writing);
        }
    }

    /// Mailboxes that are at most half full take more again: not at the first free place, as each
    /// pause and resumption costs something.
    fn end_mailbox_pauses(&mut self) {
        let waits = self.readers.at_mailboxes.iter();
        let awaited = waits.fold(WorkerSet::NONE, |all, wait| all | wait.workers);
        let is_crowded = |worker: &WorkerId| self.node.mailbox(*worker).is_crowded();
        let crowded: WorkerSet = awaited.into_iter().filter(is_crowded).collect();
        if crowded == awaited {
            return;
        }
        let waits = self.readers.at_mailboxes.iter();
        let over = waits.filter(|wait| (wait.workers & crowded).is_empty());
        let connections = over.map(|wait| wait.connection).collect();
        let still_waits = |wait: &MailboxWait| !(wait.workers & crowded).is_empty();
        self.readers.at_mailboxes.retain(still_waits);
        self.resume_all(connections, PauseReason::Mailbox);
    }

    /// A socket has something: input, room for output, or its end.
    pub(super) fn socket_ready(&mut self, event: &Event) {
        let token = event.token();
        let Some(key) = ConnectionId::key_of(token) else {
            return;
        };
        let Some(connection) = self.local.connections.get_mut(key) else {
            return;
        };
        if connection.id(key).token() != token {
            // What the poll saw was closed since; another connection has its slot.
            return;
        }
        let is_ending = event.is_read_closed() || event.is_error();
        let has_input = event.is_readable() || is_ending;
        if has_input {
            connection.reading.note_readable(is_ending);
        }
        // One that is listed has its portion in its turn.
        let is_read = has_input && !connection.reading.is_listed();
        if event.is_writable() && std::mem::take(&mut connection.blocked) {
            self.local.mark_dirty(key);
        }
        if is_read && self.is_reading_over() {
            self.list_reader(key);
        } else if is_read {
            self.read(key);
        }
    }

    /// Who has waited long enough is read in this turn; how many are listed for it.
    pub(super) fn begin_reading(&mut self) -> usize {
        self.end_pauses();
        self.readers.listed.len()
    }

    /// Connections that had more than one portion, and those that may be read again, first come
    /// first served. They come after those that have just become ready, which mostly have little,
    /// and one at least has its portion.
    pub(super) fn read_listed(&mut self, count: usize) {
        for number in 0..count {
            if number > 0 && self.is_reading_over() {
                self.local.row().add(Counter::ReadersPutOff, 1);
                return;
            }
            let Some(key) = self.readers.listed.pop_front() else {
                return;
            };
            let connection = self.local.connections.get_mut(key);
            if connection.is_some_and(|connection| connection.reading.unlist()) {
                self.read(key);
            }
        }
    }

    /// A connection's portion of a turn: the packets that were left, then what the socket has, up
    /// to one buffer. Of one whose end is in sight that is the end too, if it is that near.
    pub(super) fn read(&mut self, key: ConnectionKey) {
        let Some(connection) = self.local.connections.get_mut(key) else {
            return;
        };
        if connection.is_unread() {
            return;
        }
        let has_packets = connection.reading.has_packets();
        self.begin_read_portion();
        if has_packets {
            self.input(key, &[]);
        }
        self.read_socket(key);
    }

    /// The second half of a portion.
    pub(super) fn read_socket(&mut self, key: ConnectionKey) {
        debug_assert!(!self.read_buffer.is_empty(), "one read at a time");
        let mut buffer = std::mem::take(&mut self.read_buffer);
        let mut room = buffer.len();
        while let Some(len) = self.read_once(key, &mut buffer[..room]) {
            room -= len.min(room);
            let connection = self.local.connections.get(key);
            let is_ending = connection.is_some_and(|connection| connection.reading.is_ending());
            if self.is_portion_over() || room == 0 || !is_ending {
                break;
            }
        }
        self.read_buffer = buffer;
        self.list_reader(key);
    }

    /// One read of the socket; none if there is nothing to read, or the connection may not be read.
    fn read_once(&mut self, key: ConnectionKey, buffer: &mut [u8]) -> Option<usize> {
        let connection = self.local.connections.get_mut(key)?;
        let reading = connection.reading;
        if !reading.has_input() || reading.has_packets() || connection.is_unread() {
            return None;
        }
        if reading.is_over() {
            self.end_with_layers(key);
            return None;
        }
        if connection.meter.is_some() {
            return self.read_metered(key, buffer);
        }
        let outcome = connection.read(buffer);
        self.take_read(key, buffer, outcome)
    }

    /// The client sends nothing more. One that has said that it goes may still wait for our
    /// answers.
    fn input_ended(&mut self, key: ConnectionKey) {
        let connection = &mut self.local.connections[key];
        if connection.is_draining() {
            connection.reading.forget_input();
            // Only the end may be missing.
            self.close_when_written(key);
            let connection = self.local.connections.get(key);
            if connection.is_none_or(|connection| !connection.is_written_out()) {
                return;
            }
        }
        self.lost(key, Ending::ClosedByPeer);
    }

    /// What one read brought; its length.
    #[inline]
    pub(super) fn take_read(
        &mut self,
        key: ConnectionKey,
        buffer: &mut [u8],
        outcome: io::Result<ReadOutcome>,
    ) -> Option<usize> {
        self.local.row().add(Counter::Reads, 1);
        self.local.work += READ_UNITS;
        match outcome {
            Ok(ReadOutcome::Drained(0)) => {
                let reading = &mut self.local.connections[key].reading;
                reading.note_drained();
                // A connection that failed has nothing more to say.
                if reading.is_ending() {
                    self.lost(key, Ending::ClosedByPeer);
                }
                None
            }
            Ok(ReadOutcome::Drained(len)) => {
                self.local.connections[key].reading.note_drained();
                self.arrived(key, &mut buffer[..len]);
                Some(len)
            }
            Ok(ReadOutcome::Full(len)) => {
                self.arrived(key, &mut buffer[..len]);
                Some(len)
            }
            Ok(ReadOutcome::Closed) => {
                self.input_ended(key);
                None
            }
            Err(error) => {
                tracing::debug!(%error, "connection failed");
                self.lost(key, Ending::ClosedByPeer);
                None
            }
        }
    }
}
