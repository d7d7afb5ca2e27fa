//! Mail for the other workers, collected during a turn.

use std::sync::Arc;
use std::vec;

use super::sink_outbox::SinkOutboxes;
use crate::mail::EngineMail;
use crate::node::{MailboxLevel, NodeState, Room};
use crate::sinks::SinkSet;
use crate::workers::{WorkerId, WorkerSet};

/// Mail that is sent to the other workers at the end of the turn.
#[derive(Debug)]
pub struct Outboxes {
    boxes: Vec<Outbox>,
    /// Workers whose mailboxes the messages of the current connection have filled.
    full: WorkerSet,
    pub(super) sinks: SinkOutboxes,
    node: Arc<NodeState>,
}

/// Mail that is sent to one worker.
#[derive(Debug, Default)]
struct Outbox {
    mail: Vec<EngineMail>,
    /// Number of pieces of the shell's mail, which are placed between the pieces of the engine.
    beside: usize,
    /// Capacity that remains in the mailbox after all pieces.
    room: Room,
}

impl Outboxes {
    pub(super) fn new(node: Arc<NodeState>) -> Self {
        let boxes = (0..node.workers()).map(|_| Outbox::default()).collect();
        Self {
            boxes,
            full: WorkerSet::NONE,
            sinks: SinkOutboxes::default(),
            node,
        }
    }

    /// Adds mail for another worker, which is sent at the end of the turn.
    pub fn send(&mut self, worker: WorkerId, mail: EngineMail) {
        let outbox = &mut self.boxes[worker.index()];
        let is_used_up = outbox.use_room(mail.bytes_len(), self.node.mailbox_level(worker));
        outbox.mail.push(mail);
        if is_used_up {
            self.full.insert(worker);
        }
    }

    /// Counts a piece of the shell's mail to another worker; returns the number of pieces of the
    /// engine that precede it.
    pub fn send_beside(&mut self, worker: WorkerId, bytes: usize) -> usize {
        let outbox = &mut self.boxes[worker.index()];
        if outbox.use_room(bytes, self.node.mailbox_level(worker)) {
            self.full.insert(worker);
        }
        outbox.beside += 1;
        outbox.mail.len()
    }

    /// Begins the packets of another connection.
    #[inline]
    pub const fn begin_connection(&mut self) {
        self.full = WorkerSet::NONE;
        self.sinks.begin_connection();
    }

    /// Returns the receivers that the current connection has found full since the last call.
    #[inline]
    pub const fn take_full(&mut self) -> FullReceivers {
        FullReceivers {
            workers: std::mem::replace(&mut self.full, WorkerSet::NONE),
            sinks: self.sinks.take_full(),
        }
    }

    /// Passes the collected messages to the queues of the sinks.
    pub fn empty_into_sinks(&mut self) {
        self.sinks.empty(&self.node.sinks);
    }

    /// Whether there is mail for a worker, of the engine or of the shell.
    #[inline]
    pub fn has_mail(&self, worker: WorkerId) -> bool {
        !self.boxes[worker.index()].is_empty()
    }

    /// Takes the mail of the engine for a worker.
    pub fn take(&mut self, worker: WorkerId) -> vec::Drain<'_, EngineMail> {
        let outbox = &mut self.boxes[worker.index()];
        outbox.beside = 0;
        outbox.mail.drain(..)
    }
}

/// Receivers without capacity, whose publishers have to wait.
#[derive(Clone, Copy, Debug)]
pub struct FullReceivers {
    /// Workers with full mailboxes.
    pub workers: WorkerSet,
    /// Sinks with full queues.
    pub sinks: SinkSet,
}

impl FullReceivers {
    /// Whether no receiver is full.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.workers.is_empty() && self.sinks.is_empty()
    }
}

impl Outbox {
    fn is_empty(&self) -> bool {
        self.mail.is_empty() && self.beside == 0
    }

    /// Subtracts a piece from the capacity of the mailbox; true if the mailbox is full then. The
    /// level of the mailbox is read for the first piece only, as other workers write it.
    fn use_room(&mut self, bytes: usize, mailbox: &MailboxLevel) -> bool {
        if self.is_empty() {
            self.room = mailbox.room();
        }
        self.room.take(bytes);
        self.room.is_used_up()
    }
}
