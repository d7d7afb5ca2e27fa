//! The order in which connections are read: one portion for each in a turn, and none while a reason
//! against it holds.
//!
//! The gate of a connection holds the reasons why it is not read. The caller that closes it for a
//! reason calls [`Edge::pause`](super::Edge::pause), and [`Readers::resume`] when that reason ends;
//! the next turn then handles the remaining packets and continues to read.

use std::collections::VecDeque;
use std::time::Duration;

use thrum_engine::Engine;
use thrum_engine::ids::{ConnectionId, ConnectionKey};
use thrum_engine::node::metrics::Counter;
use thrum_engine::outbox::FullReceivers;
use thrum_engine::outputs::Outputs;
use thrum_engine::sinks::{SinkId, SinkSet};
use thrum_engine::workers::{WorkerId, WorkerSet};
use thrum_protection::MemoryLevel;
use thrum_protocol::Time;

use super::Connections;
use crate::read_gate::PauseReason;

/// Time for which a publisher is not read after each message while memory is over its limit, or
/// turns take too long.
pub(crate) const PRESSURE_CHECK: Duration = Duration::from_millis(50);

/// A publisher that is not read until none of these mailboxes and queues is more than half full.
#[derive(Clone, Copy, Debug)]
struct MailboxWait {
    connection: ConnectionId,
    full: FullReceivers,
}

/// Connections by the time of their next read.
#[derive(Debug, Default)]
pub(crate) struct Readers {
    /// Read in the next turn. Each once, as its gate records that it is listed.
    listed: VecDeque<ConnectionKey>,
    at_mailboxes: Vec<MailboxWait>,
    at_storage: Vec<ConnectionId>,
    /// Paused until the deferred output is written.
    at_writing: Vec<ConnectionId>,
    /// Each may send one portion at that time.
    overloading: Vec<ConnectionId>,
    overloading_until: Time,
}

/// Reasons why a publisher is not read on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Congestion {
    /// Mailboxes and sinks that its messages have filled.
    pub(super) full: FullReceivers,
    /// Memory is short, or turns take long.
    pub(super) is_slowed: bool,
    /// There is more output than a turn writes.
    pub(super) is_output_long: bool,
    /// The storage thread has no room.
    pub(super) is_stuck: bool,
}

impl Congestion {
    #[inline]
    pub(super) fn is_any(self) -> bool {
        !self.full.is_empty() || self.is_slowed || self.is_output_long || self.is_stuck
    }
}

impl Readers {
    /// A connection is read in the next turn, which should begin at once.
    pub(crate) fn is_listed(&self) -> bool {
        !self.listed.is_empty()
    }

    /// Whether a connection waits for other threads, which do not signal free room.
    pub(crate) fn waits_for_others(&self) -> bool {
        !self.at_mailboxes.is_empty() || !self.at_storage.is_empty()
    }

    /// The time at which paused publishers are read under overload.
    pub(crate) fn overload_pause_end(&self) -> Option<Time> {
        (!self.overloading.is_empty()).then_some(self.overloading_until)
    }

    /// The connection is read in the next turn, if reading is allowed and it has input.
    pub(crate) fn list(&mut self, connections: &mut Connections, key: ConnectionKey) {
        if let Some(connection) = connections.get_mut(key)
            && connection.reading.has_input()
            && !connection.is_unread()
            && connection.reading.enlist()
        {
            self.listed.push_back(key);
        }
    }

    /// Number of listed connections.
    pub(crate) fn count(&self) -> usize {
        self.listed.len()
    }

    /// The next listed connection.
    pub(crate) fn next(&mut self) -> Option<ConnectionKey> {
        self.listed.pop_front()
    }

    /// Ends a reason; after the last one, pending input is handled in the next turn.
    pub(crate) fn resume(
        &mut self,
        connections: &mut Connections,
        key: ConnectionKey,
        reason: PauseReason,
    ) {
        let connection = connections.get_mut(key);
        if connection.is_some_and(|connection| connection.reading.open(reason)) {
            self.list(connections, key);
        }
    }

    fn resume_all(
        &mut self,
        connections: &mut Connections,
        outputs: &Outputs,
        waiting: Vec<ConnectionId>,
        reason: PauseReason,
    ) {
        for connection in waiting {
            if outputs.contains(connection) {
                self.resume(connections, connection.key, reason);
            }
        }
    }

    #[cold]
    pub(super) fn pause_publisher(
        &mut self,
        connections: &mut Connections,
        engine: &Engine,
        key: ConnectionKey,
        congestion: Congestion,
    ) {
        let core = &engine.core;
        let connection = core.outputs.id(key);
        let reading = &mut connections[key].reading;
        if !congestion.full.is_empty() && reading.close(PauseReason::Mailbox) {
            self.at_mailboxes.push(MailboxWait {
                connection,
                full: congestion.full,
            });
        }
        if congestion.is_stuck && reading.close(PauseReason::Storage) {
            self.at_storage.push(connection);
        }
        if congestion.is_output_long && reading.close(PauseReason::Writing) {
            self.at_writing.push(connection);
        }
        if congestion.is_slowed && reading.close(PauseReason::Overload) {
            if self.overloading.is_empty() {
                self.overloading_until = core.turn.now.plus(PRESSURE_CHECK);
            }
            self.overloading.push(connection);
            core.row().add(Counter::OverloadPaused, 1);
        }
        core.row().add(Counter::PublishersPaused, 1);
    }

    /// Ends the pauses whose reason has ended.
    pub(super) fn end_pauses(
        &mut self,
        connections: &mut Connections,
        engine: &mut Engine,
        is_overloaded: bool,
    ) {
        let core = &mut engine.core;
        if core.memory.level < MemoryLevel::Low {
            engine.router.publishers.forget_all();
        }
        if !self.at_mailboxes.is_empty() {
            self.end_mailbox_pauses(connections, engine);
        }
        let core = &engine.core;
        if !self.at_storage.is_empty() && !core.durable.is_stuck() {
            let waiting = std::mem::take(&mut self.at_storage);
            self.resume_all(connections, &core.outputs, waiting, PauseReason::Storage);
        }
        let end = self.overload_pause_end();
        let is_slow = is_overloaded || core.memory.level >= MemoryLevel::Low;
        if end.is_some_and(|end| core.turn.now >= end || !is_slow) {
            let waiting = std::mem::take(&mut self.overloading);
            self.resume_all(connections, &core.outputs, waiting, PauseReason::Overload);
        }
    }

    /// The deferred output is written.
    pub(super) fn end_writing_pauses(&mut self, connections: &mut Connections, outputs: &Outputs) {
        if !self.at_writing.is_empty() {
            let waiting = std::mem::take(&mut self.at_writing);
            self.resume_all(connections, outputs, waiting, PauseReason::Writing);
        }
    }

    /// A mailbox that is at most half full accepts mail again: not at the first free place, as each
    /// pause and resumption has a cost.
    fn end_mailbox_pauses(&mut self, connections: &mut Connections, engine: &Engine) {
        let filled = self.over_half_full(engine);
        let waits_on = |wait: &MailboxWait| {
            let FullReceivers { workers, sinks } = wait.full;
            !(workers & filled.workers).is_empty() || sinks.intersects(filled.sinks)
        };
        let over = self.at_mailboxes.extract_if(.., |wait| !waits_on(wait));
        let waiting = over.map(|wait| wait.connection).collect();
        let outputs = &engine.core.outputs;
        self.resume_all(connections, outputs, waiting, PauseReason::Mailbox);
    }

    /// The receivers that publishers wait for and that are more than half full.
    fn over_half_full(&self, engine: &Engine) -> FullReceivers {
        let node = &engine.core.node;
        let (mut workers, mut sinks) = (WorkerSet::NONE, SinkSet::NONE);
        for wait in &self.at_mailboxes {
            workers |= wait.full.workers;
            sinks = sinks.joined(wait.full.sinks);
        }
        let is_crowded = |worker: &WorkerId| node.mailbox_level(*worker).is_crowded();
        let is_sink_crowded = |sink: &SinkId| {
            let sink = node.sinks.get(*sink);
            sink.is_some_and(|sink| sink.queue.is_crowded())
        };
        FullReceivers {
            workers: workers.into_iter().filter(is_crowded).collect(),
            sinks: sinks.into_iter().filter(is_sink_crowded).collect(),
        }
    }
}
