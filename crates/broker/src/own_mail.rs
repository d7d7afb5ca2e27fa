//! Mail of one worker's shell to other workers, each piece in its place among the mail of the
//! engine.

use std::collections::VecDeque;

use thrum_engine::core::Core;
use thrum_engine::node::metrics::Counter;
use thrum_engine::outbox::Outboxes;
use thrum_engine::workers::WorkerId;

use crate::mailbox::Mail;
use crate::node::Node;

/// Capacity of the batch that a worker keeps, in pieces: some 500 KiB.
const BATCH_KEPT: usize = 8192;

/// Mail that the shell has sent in this turn.
#[derive(Debug)]
pub(crate) struct OwnMail {
    /// For each worker.
    boxes: Box<[VecDeque<Placed>]>,
    /// Lent to the mail for one worker.
    batch: Vec<Mail>,
}

/// A piece of mail behind so many pieces of the engine.
#[derive(Debug)]
struct Placed {
    place: usize,
    mail: Mail,
}

impl OwnMail {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            boxes: (0..workers).map(|_| VecDeque::new()).collect(),
            batch: Vec::new(),
        }
    }

    /// Mail for another worker; it leaves at the end of the turn.
    pub(crate) fn send(&mut self, outboxes: &mut Outboxes, worker: WorkerId, mail: Mail) {
        let place = outboxes.send_beside(worker, mail.bytes_len());
        self.boxes[worker.index()].push_back(Placed { place, mail });
    }

    /// Hands all mail of the turn over, the engine's too, and what is for sinks.
    pub(crate) fn hand_over(&mut self, core: &mut Core, node: &Node) {
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

    /// All mail for one worker, in the order in which it was sent.
    fn fill_batch(&mut self, outboxes: &mut Outboxes, worker: WorkerId) {
        let own = &mut self.boxes[worker.index()];
        let of_engine = outboxes.take(worker);
        self.batch.reserve(of_engine.len() + own.len());
        for (place, mail) in of_engine.enumerate() {
            while let Some(placed) = own.pop_front_if(|placed| placed.place <= place) {
                self.batch.push(placed.mail);
            }
            self.batch.push(Mail::Engine(mail));
        }
        self.batch.extend(own.drain(..).map(|placed| placed.mail));
    }
}
