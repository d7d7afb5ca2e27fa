//! Mail for the other workers, collected during a turn.

use std::sync::Arc;
use std::vec;

use super::sink_outbox::SinkOutboxes;
use crate::mail::EngineMail;
use crate::node::{MailboxLevel, NodeState, Room};
use crate::sinks::SinkSet;
use crate::workers::{WorkerId, WorkerSet};

/// What leaves for the other workers at the end of the turn.
#[derive(Debug)]
pub struct Outboxes {
    boxes: Vec<Outbox>,
    /// Workers whose mailboxes are full with what the connection at hand published.
    full: WorkerSet,
    pub(super) sinks: SinkOutboxes,
    node: Arc<NodeState>,
}

/// What leaves for one worker.
#[derive(Debug, Default)]
struct Outbox {
    mail: Vec<EngineMail>,
    /// Pieces of the shell's own that stand between these.
    beside: usize,
    /// What the mailbox has left beside all of them.
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

    /// Mail for another worker; it leaves at the end of the turn.
    pub fn send(&mut self, worker: WorkerId, mail: EngineMail) {
        let outbox = &mut self.boxes[worker.index()];
        let is_used_up = outbox.use_room(mail.bytes_len(), self.node.mailbox_level(worker));
        outbox.mail.push(mail);
        if is_used_up {
            self.full.insert(worker);
        }
    }

    /// The shell sends a piece of its own, with so many bytes, to another worker: it takes its
    /// place behind so many pieces of the engine.
    pub fn send_beside(&mut self, worker: WorkerId, bytes: usize) -> usize {
        let outbox = &mut self.boxes[worker.index()];
        if outbox.use_room(bytes, self.node.mailbox_level(worker)) {
            self.full.insert(worker);
        }
        outbox.beside += 1;
        outbox.mail.len()
    }

    /// Another connection is at hand.
    #[inline]
    pub const fn begin_connection(&mut self) {
        self.full = WorkerSet::NONE;
        self.sinks.begin_connection();
    }

    /// What the connection at hand has found full since the last call.
    #[inline]
    pub const fn take_full(&mut self) -> FullReceivers {
        FullReceivers {
            workers: std::mem::replace(&mut self.full, WorkerSet::NONE),
            sinks: self.sinks.take_full(),
        }
    }

    /// Hands over what is for sinks.
    pub fn empty_into_sinks(&mut self) {
        self.sinks.empty(&self.node.sinks);
    }

    /// There is mail for a worker, of the engine or beside that.
    #[inline]
    pub fn has_mail(&self, worker: WorkerId) -> bool {
        !self.boxes[worker.index()].is_empty()
    }

    /// Takes out all that is for a worker.
    pub fn take(&mut self, worker: WorkerId) -> vec::Drain<'_, EngineMail> {
        let outbox = &mut self.boxes[worker.index()];
        outbox.beside = 0;
        outbox.mail.drain(..)
    }
}

/// Receivers that have no room and make their publishers wait.
#[derive(Clone, Copy, Debug)]
pub struct FullReceivers {
    /// Workers, by their mailboxes.
    pub workers: WorkerSet,
    /// Sinks, by their queues.
    pub sinks: SinkSet,
}

impl FullReceivers {
    /// All have room.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.workers.is_empty() && self.sinks.is_empty()
    }
}

impl Outbox {
    fn is_empty(&self) -> bool {
        self.mail.is_empty() && self.beside == 0
    }

    /// A piece goes in; true if it fills the mailbox, or that was full. The mailbox is looked at
    /// for the first piece alone: others write to what its room is read from.
    fn use_room(&mut self, bytes: usize, mailbox: &MailboxLevel) -> bool {
        if self.is_empty() {
            self.room = mailbox.room();
        }
        self.room.take(bytes);
        self.room.is_used_up()
    }
}
