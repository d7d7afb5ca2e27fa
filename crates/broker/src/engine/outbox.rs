//! Mail for the other workers, collected during a turn.

use std::sync::Arc;

use super::sink_outbox::SinkOutboxes;
use crate::mailbox::{Mail, Mailbox, Room};
use crate::metrics::Counter;
use crate::node::Node;
use crate::sinks::SinkSet;
use crate::workers::{WorkerId, WorkerSet};

/// What leaves for the other workers at the end of the turn.
#[derive(Debug)]
pub(crate) struct Outboxes {
    here: WorkerId,
    boxes: Vec<Outbox>,
    /// Workers whose mailboxes are full with what the connection at hand published.
    full: WorkerSet,
    pub(super) sinks: SinkOutboxes,
    node: Arc<Node>,
}

/// Receivers that have no room and make their publishers wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FullReceivers {
    /// Workers, by their mailboxes.
    pub(crate) workers: WorkerSet,
    pub(crate) sinks: SinkSet,
}

impl FullReceivers {
    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.workers.is_empty() && self.sinks.is_empty()
    }
}

/// What leaves for one worker.
#[derive(Debug, Default)]
struct Outbox {
    mail: Vec<Mail>,
    /// What the mailbox has left beside this.
    room: Room,
}

impl Outboxes {
    pub(super) fn new(here: WorkerId, node: Arc<Node>) -> Self {
        let boxes = (0..node.workers()).map(|_| Outbox::default()).collect();
        Self {
            here,
            boxes,
            full: WorkerSet::NONE,
            sinks: SinkOutboxes::default(),
            node,
        }
    }

    /// Mail for another worker; it leaves at the end of the turn.
    pub(crate) fn send(&mut self, worker: WorkerId, mail: Mail) {
        if self.boxes[worker.index()].push(mail, self.node.mailbox(worker)) {
            self.full.insert(worker);
        }
    }

    /// Another connection is at hand.
    #[inline]
    pub(crate) const fn begin_connection(&mut self) {
        self.full = WorkerSet::NONE;
        self.sinks.begin_connection();
    }

    /// What the connection at hand has found full since the last call.
    #[inline]
    pub(crate) const fn take_full(&mut self) -> FullReceivers {
        FullReceivers {
            workers: std::mem::replace(&mut self.full, WorkerSet::NONE),
            sinks: self.sinks.take_full(),
        }
    }

    /// Hands everything over.
    pub(crate) fn empty(&mut self) {
        self.sinks.empty(&self.node);
        for (number, outbox) in self.boxes.iter_mut().enumerate() {
            if outbox.empty_into(self.node.mailbox(WorkerId::new(number))) {
                let row = self.node.metrics.row(self.here.index());
                row.add(Counter::MailboxFull, 1);
            }
        }
    }
}

impl Outbox {
    /// Puts a piece in; true if it fills the mailbox, or that was full. The mailbox is looked at
    /// for the first piece alone: others write to what its room is read from.
    fn push(&mut self, mail: Mail, mailbox: &Mailbox) -> bool {
        if self.mail.is_empty() {
            self.room = mailbox.room();
        }
        self.room.take(&mail);
        self.mail.push(mail);
        self.room.is_used_up()
    }

    /// Hands everything over; true if the mailbox is full now.
    fn empty_into(&mut self, mailbox: &Mailbox) -> bool {
        if self.mail.is_empty() {
            return false;
        }
        mailbox.push_all(&mut self.mail);
        mailbox.is_full()
    }
}
