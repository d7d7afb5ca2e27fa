//! Mail of one worker's shell to other workers, in order with the mail of the engine.

use std::collections::VecDeque;

use thrum_engine::core::Core;
use thrum_engine::node::metrics::Counter;
use thrum_engine::outbox::Outboxes;
use thrum_engine::workers::WorkerId;

use crate::mailbox::Mail;
use crate::node::Node;

/// Capacity of the batch that a worker keeps, in items: about 500 KiB.
const BATCH_KEPT: usize = 8192;

/// Mail that the shell has sent in this turn.
#[derive(Debug)]
pub(crate) struct ShellMail {
    /// Queued mail by destination worker.
    boxes: Box<[VecDeque<PositionedMail>]>,
    /// Buffer for the mail to one worker; empty between calls.
    batch: Vec<Mail>,
}

/// Mail, and the number of engine items in front of it.
#[derive(Debug)]
struct PositionedMail {
    position: usize,
    mail: Mail,
}

impl ShellMail {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            boxes: (0..workers).map(|_| VecDeque::new()).collect(),
            batch: Vec::new(),
        }
    }

    /// Queues mail for another worker; it is delivered at the end of the turn.
    pub(crate) fn send(&mut self, outboxes: &mut Outboxes, worker: WorkerId, mail: Mail) {
        let position = outboxes.send_beside(worker, mail.bytes_len());
        self.boxes[worker.index()].push_back(PositionedMail { position, mail });
    }

    /// Delivers all mail of the turn, including the engine's and the messages for sinks.
    pub(crate) fn deliver(&mut self, core: &mut Core, node: &Node) {
        core.outboxes.empty_into_sinks();
        for worker in WorkerId::all(node.workers()) {
            if !core.outboxes.has_mail(worker) {
                continue;
            }
            self.fill_batch(&mut core.outboxes, worker);
            let mailbox = node.mailbox(worker);
            mailbox.push_all(&mut self.batch);
            if self.batch.capacity() > BATCH_KEPT {
                self.batch = Vec::new();
            }
            if mailbox.is_full() {
                core.row().add(Counter::MailboxFull, 1);
            }
        }
    }

    /// Collects all mail for one worker in the order in which it was sent.
    fn fill_batch(&mut self, outboxes: &mut Outboxes, worker: WorkerId) {
        let queued = &mut self.boxes[worker.index()];
        let of_engine = outboxes.take(worker);
        self.batch.reserve(of_engine.len() + queued.len());
        for (position, mail) in of_engine.enumerate() {
            while let Some(placed) = queued.pop_front_if(|placed| placed.position <= position) {
                self.batch.push(placed.mail);
            }
            self.batch.push(Mail::Engine(mail));
        }
        self.batch
            .extend(queued.drain(..).map(|placed| placed.mail));
    }
}
