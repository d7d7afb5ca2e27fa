//! Bounded queue of messages from the other workers to one worker: they fill it in batches, and the
//! worker empties it, a portion in each turn.
//!
//! A sender never blocks and never drops a message. When a mailbox is full, its senders stop
//! *reading* from the publishers whose messages go to it, each publisher after its current message,
//! until the mailbox is half empty. A mailbox therefore holds at most its capacity, the messages
//! that the other workers had in progress when it became full (each worker at most the capacity
//! once more, as no worker sees the mail of another's turn), and one message of each connection
//! that publishes to it. Wills, and messages of shared groups that are redirected to another
//! member, have no publisher to pause; they arise when a session ends.

use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, PoisonError};

use crossbeam_utils::CachePadded;
use mio::Waker;
use thrum_access::Certificate;
use thrum_engine::mail::EngineMail;
use thrum_engine::node::MailboxLevel;
use thrum_engine::peer::Peer;
use thrum_engine::workers::WorkerId;
use thrum_protection::BanChanges;
use thrum_protocol::server::Handshake;

use crate::control::QueuedTask;
use crate::door::{Admitted, Answered, Decided};
use crate::layered::Layered;
use crate::listener::Change;
use crate::settings::Settings;
use crate::socket::Socket;

/// A message from one worker, or from another thread, to a worker.
#[derive(Debug)]
pub(crate) enum Mail {
    /// A message from the engine of another worker.
    Engine(EngineMail),
    /// Take over a connection, because the receiver owns its session.
    Adopt(Box<Handover>),
    /// A connection that was accepted by a thread without a worker.
    Arrived(Box<Arrived>),
    /// Carry out these changes of listening sockets.
    Listen(Vec<Change>),
    /// The gatekeeper has judged a client.
    Answered(Box<Answered>),
    /// The gatekeeper has decided about a topic.
    Decided(Box<Decided>),
    /// Use other settings from now on.
    Reload(Arc<Settings>),
    /// Answer once all earlier mail has taken effect.
    Settled(SyncSender<WorkerId>),
    /// The list of bans has changed.
    Banned(BanChanges),
    /// A request of the operator.
    Query(Box<dyn QueuedTask>),
    /// First step of a stop: publish the wills of connected clients.
    StopWills,
    /// Second step: disconnect everyone and end.
    Stop,
}

/// A connection that was accepted by a thread without a worker.
#[derive(Debug)]
pub(crate) struct Arrived {
    pub(crate) socket: Socket,
    pub(crate) peer: Peer,
    /// The gate, held for this connection ([`Gate::hold`](crate::listener::Gate::hold)).
    pub(crate) gate: u16,
    /// The verified certificate of the client.
    pub(crate) certificate: Option<Arc<Certificate>>,
}

/// A connection on its way to the worker that owns the session.
#[derive(Debug)]
pub(crate) struct Handover {
    pub(crate) socket: Socket,
    pub(crate) peer: Peer,
    pub(crate) gate: u16,
    pub(crate) layered: Option<Box<Layered>>,
    pub(crate) handshake: Handshake,
    pub(crate) admitted: Box<Admitted>,
    /// Bytes that arrived after the CONNECT.
    pub(crate) unread: Vec<u8>,
    /// Its number in traces; none if no trace is about it.
    pub(crate) trace_number: Option<u64>,
}

impl Mail {
    /// Bytes of the message in this mail.
    pub(crate) fn bytes_len(&self) -> usize {
        match self {
            Self::Engine(mail) => mail.bytes_len(),
            Self::Adopt(handover) => handover.unread.len(),
            Self::Answered(_)
            | Self::Decided(_)
            | Self::Arrived(_)
            | Self::Listen(_)
            | Self::Reload(_)
            | Self::Settled(_)
            | Self::Banned(_)
            | Self::Query(_)
            | Self::StopWills
            | Self::Stop => 0,
        }
    }
}

/// The shared end of a worker's mailbox.
#[derive(Debug)]
pub(crate) struct Mailbox {
    /// Guards the queue only; held for one `append` or `swap`, never while mail is handled.
    queue: Mutex<Vec<Mail>>,
    level: Arc<CachePadded<MailboxLevel>>,
    waker: Waker,
}

impl Mailbox {
    pub(crate) fn new(waker: Waker, level: Arc<CachePadded<MailboxLevel>>) -> Self {
        Self {
            queue: Mutex::default(),
            level,
            waker,
        }
    }

    /// Adds the batch to the queue and wakes the worker if it may be asleep.
    pub(crate) fn push_all(&self, batch: &mut Vec<Mail>) {
        if batch.is_empty() {
            return;
        }
        let bytes: usize = batch.iter().map(Mail::bytes_len).sum();
        let was_empty = {
            let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            let was_empty = queue.is_empty();
            self.level.rise(batch.len(), bytes);
            queue.append(batch);
            was_empty
        };
        if was_empty {
            self.wake();
        }
    }

    /// Wakes the worker; any thread may call this.
    pub(crate) fn wake(&self) {
        if let Err(error) = self.waker.wake() {
            tracing::error!(%error, "cannot wake a worker; it handles its mail in its next turn");
        }
    }

    /// Adds one piece of mail.
    pub(crate) fn push(&self, mail: Mail) {
        self.push_all(&mut vec![mail]);
    }

    /// Swaps the queue for an empty one. Mail counts as waiting until it is handled. A turn without
    /// mail writes no memory that the senders read; mail that arrives during the swap wakes the
    /// worker again.
    pub(crate) fn take(&self, into: &mut Vec<Mail>) {
        debug_assert!(
            into.is_empty(),
            "mail must be processed before more is taken"
        );
        if self.is_empty() {
            return;
        }
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut *queue, into);
    }

    /// Whether the queue is empty. The waker is called after each addition, so the worker soon sees
    /// new mail.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.level.is_empty()
    }

    /// Records that this number of messages and bytes has been handled.
    pub(crate) fn handled(&self, messages: usize, bytes: usize) {
        self.level.fall(messages, bytes);
    }

    /// Whether the mailbox has reached its limit: the publishers whose messages go to it are not
    /// read.
    pub(crate) fn is_full(&self) -> bool {
        self.level.is_full()
    }
}

#[cfg(test)]
mod tests {
    use mio::{Poll, Token};
    use thrum_engine::node::Capacity;

    use super::*;

    #[test]
    fn mail_is_taken_once_in_order_and_fills_the_mailbox_until_then() {
        let poll = Poll::new().unwrap();
        let waker = Waker::new(poll.registry(), Token(0)).unwrap();
        let capacity = Capacity {
            messages: 2,
            bytes: 1_000,
        };
        let mailbox = Mailbox::new(
            waker,
            Arc::new(CachePadded::new(MailboxLevel::new(capacity))),
        );
        let mut taken = Vec::new();
        for _ in 0..2 {
            mailbox.take(&mut taken);
            assert!(taken.is_empty() && !mailbox.is_full());
            mailbox.push_all(&mut vec![Mail::StopWills, Mail::Stop]);
            assert!(mailbox.is_full());
            mailbox.take(&mut taken);
            assert!(matches!(taken[..], [Mail::StopWills, Mail::Stop]));
            assert!(mailbox.is_full(), "it is not handled yet");
            mailbox.handled(taken.len(), 0);
            assert!(!mailbox.is_full());
            taken.clear();
        }
    }
}
