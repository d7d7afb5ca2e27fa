//! Bounded queue into a worker: filled in batches by the other workers, emptied by the worker, a
//! portion in each turn.
//!
//! A sender never blocks and never drops: past the limit it stops *reading* from the publishers
//! that feed the full mailbox, each after the one message at hand, until the mailbox is half empty.
//! So it holds its capacity, what the other workers had under way when it became full (each at most
//! the capacity once more, as none sees the mail of another's turn), and one message of each
//! connection that feeds it. Wills and messages of shared groups that look for another member have
//! no publisher to stop; they come with the end of a session.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, PoisonError};

use mio::Waker;
use thrum_access::Certificate;
use thrum_protection::BanChanges;
use thrum_protocol::Message;
use thrum_protocol::server::{GroupId, Handshake};

use crate::control::Task;
use crate::door::{Admitted, Answered, Decided};
use crate::durable::Origin;
use crate::engine::elsewhere::{Heard, Inquiry};
use crate::ids::ConnectionId;
use crate::interest::SessionRef;
use crate::layered::Layered;
use crate::listener::Change;
use crate::peer::Peer;
use crate::queue_room::{Promise, QueueRoom, Shortage};
use crate::settings::Settings;
use crate::socket::Socket;
use crate::workers::WorkerId;

/// What one worker asks of another.
#[derive(Debug)]
pub(crate) enum Mail {
    /// Deliver to every matching subscription of the worker.
    Publish(PublishDelivery),
    /// Deliver to the session that was picked from a shared group.
    Shared(SharedDelivery),
    /// There is room that publishers of the receiver wait for.
    Room(Shortage, Arc<QueueRoom>),
    /// Somebody found the queue of this session full.
    Full(SessionRef),
    /// Say whether there is memory for a message.
    Inquiry(Inquiry),
    /// All have answered what this connection wants to publish.
    Heard(ConnectionId),
    /// Take over a connection, because the session lives with the receiver.
    Adopt(Box<Handover>),
    /// A connection that came in where no worker listens.
    Arrived(Box<Arrived>),
    /// Let clients in there from now on.
    Listen(Vec<Change>),
    /// The gatekeeper has judged a client.
    Answered(Box<Answered>),
    /// The gatekeeper has decided about a topic.
    Decided(Box<Decided>),
    /// Use other settings from now on.
    Reload(Arc<Settings>),
    /// Say that what came before this is in force.
    Settled(SyncSender<WorkerId>),
    /// The list of bans has changed.
    Banned(BanChanges),
    /// Somebody asks something.
    Asked(Box<dyn Task>),
    /// First step of a stop: publish the wills of connected clients.
    StopWills,
    /// Second step: disconnect everyone and end.
    Stop,
}

/// A message for the subscriptions of one worker.
#[derive(Debug)]
pub(crate) struct PublishDelivery {
    pub(crate) message: Arc<Message>,
    /// The place on the disk that it leaves when its sessions have the message.
    pub(crate) origin: Option<Origin>,
    /// Room in the queues of sessions that are nearly full.
    pub(crate) promises: Vec<Promise>,
    /// What its sender knew of the queues here ([`crate::changes::Version::generation`]).
    pub(crate) generation: u64,
    /// Its publisher is told that somebody here takes it.
    pub(crate) must_be_taken: bool,
    /// Where its publisher learns what became of it, while memory is low.
    pub(crate) heard: Option<Arc<Heard>>,
}

impl PublishDelivery {
    /// There is room for it in the queue of that session.
    pub(crate) fn is_promised_to(&self, session: u64) -> bool {
        let mut promises = self.promises.iter();
        promises.any(|promise| promise.session() == session)
    }
}

/// A message for one member of a shared group, whose publisher was told that it is taken.
#[derive(Debug)]
pub(crate) struct SharedDelivery {
    pub(crate) to: SessionRef,
    pub(crate) group: GroupId,
    pub(crate) message: Arc<Message>,
    pub(crate) qos: thrum_codec::QoS,
    pub(crate) retain: bool,
    pub(crate) identifier: Option<u32>,
    /// The place on the disk that it leaves.
    pub(crate) origin: Option<Origin>,
    /// Room in the member's queue, if that is nearly full.
    pub(crate) promise: Option<Promise>,
    /// Where its publisher learns what became of it, while memory is low.
    pub(crate) heard: Option<Arc<Heard>>,
}

/// A connection that came in where no worker listens.
#[derive(Debug)]
pub(crate) struct Arrived {
    pub(crate) socket: Socket,
    pub(crate) peer: Peer,
    /// Held for it ([`Gate::hold`](crate::listener::Gate::hold)).
    pub(crate) gate: u16,
    /// The client's, verified.
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
}

impl Mail {
    /// Bytes of the message that it holds.
    pub(crate) fn bytes_len(&self) -> usize {
        match self {
            Self::Publish(delivery) => delivery.message.bytes_len(),
            Self::Shared(delivery) => delivery.message.bytes_len(),
            Self::Adopt(handover) => handover.unread.len(),
            Self::Room(..)
            | Self::Full(_)
            | Self::Inquiry(_)
            | Self::Heard(_)
            | Self::Answered(_)
            | Self::Decided(_)
            | Self::Arrived(_)
            | Self::Listen(_)
            | Self::Reload(_)
            | Self::Settled(_)
            | Self::Banned(_)
            | Self::Asked(_)
            | Self::StopWills
            | Self::Stop => 0,
        }
    }
}

/// What a mailbox has left.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Room {
    messages: usize,
    bytes: usize,
}

impl Room {
    /// A piece of mail goes in.
    #[inline]
    pub(crate) fn take(&mut self, mail: &Mail) {
        self.messages = self.messages.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(mail.bytes_len());
    }

    /// One more piece is too many.
    #[inline]
    pub(crate) fn is_used_up(self) -> bool {
        self.messages == 0 || self.bytes == 0
    }
}

/// When a mailbox is full.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Capacity {
    pub(crate) messages: usize,
    pub(crate) bytes: usize,
}

/// The shared end of a worker's mailbox.
#[derive(Debug)]
pub(crate) struct Mailbox {
    /// Guards the queue only; held for one `append` or `swap`, never while anything is processed.
    queue: Mutex<Vec<Mail>>,
    waiting: AtomicUsize,
    waiting_bytes: AtomicUsize,
    capacity: Capacity,
    waker: Waker,
}

impl Mailbox {
    pub(crate) fn new(waker: Waker, capacity: Capacity) -> Self {
        Self {
            queue: Mutex::default(),
            waiting: AtomicUsize::new(0),
            waiting_bytes: AtomicUsize::new(0),
            capacity,
            waker,
        }
    }

    /// Moves the batch in and wakes the worker if it may be asleep.
    pub(crate) fn push_all(&self, batch: &mut Vec<Mail>) {
        if batch.is_empty() {
            return;
        }
        let bytes: usize = batch.iter().map(Mail::bytes_len).sum();
        let was_empty = {
            let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            let was_empty = queue.is_empty();
            self.waiting.fetch_add(batch.len(), Ordering::Release);
            queue.append(batch);
            self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
            was_empty
        };
        if was_empty {
            self.wake();
        }
    }

    /// Wakes the worker, from whatever thread.
    pub(crate) fn wake(&self) {
        if let Err(error) = self.waker.wake() {
            tracing::error!(%error, "cannot wake a worker; what it waits for is seen in its next turn");
        }
    }

    /// One piece of mail.
    pub(crate) fn push(&self, mail: Mail) {
        self.push_all(&mut vec![mail]);
    }

    /// Swaps the queue for an empty one. What was taken counts as waiting until it is handled. A
    /// turn without mail writes nothing that the senders read; mail that comes at this moment wakes
    /// the worker again.
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

    /// There is nothing to take. The waker follows what is put in, so nothing is missed for long.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.load(Ordering::Acquire) == 0
    }

    /// So much of what was taken has been handled.
    pub(crate) fn handled(&self, messages: usize, bytes: usize) {
        self.waiting.fetch_sub(messages, Ordering::Relaxed);
        self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// What it has left.
    pub(crate) fn room(&self) -> Room {
        let (messages, bytes) = self.waiting();
        Room {
            messages: self.capacity.messages.saturating_sub(messages),
            bytes: self.capacity.bytes.saturating_sub(bytes),
        }
    }

    /// At or over its limit: the publishers that feed it are not read.
    pub(crate) fn is_full(&self) -> bool {
        self.room().is_used_up()
    }

    /// Over half of its limit: publishers that wait for it wait on.
    pub(crate) fn is_crowded(&self) -> bool {
        let (messages, bytes) = self.waiting();
        messages > self.capacity.messages / 2 || bytes > self.capacity.bytes / 2
    }

    /// Messages and bytes that wait, or are being handled. Certain for what was pushed before a
    /// lock was given back that the asker has taken since.
    pub(crate) fn waiting(&self) -> (usize, usize) {
        let messages = self.waiting.load(Ordering::Relaxed);
        (messages, self.waiting_bytes.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use mio::{Poll, Token};

    use super::*;

    #[test]
    fn mail_is_taken_once_in_order_and_fills_the_mailbox_until_then() {
        let poll = Poll::new().unwrap();
        let waker = Waker::new(poll.registry(), Token(0)).unwrap();
        let capacity = Capacity {
            messages: 2,
            bytes: 1_000,
        };
        let mailbox = Mailbox::new(waker, capacity);
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

    #[test]
    fn a_mailbox_is_crowded_above_half_of_either_limit() {
        let poll = Poll::new().unwrap();
        let waker = Waker::new(poll.registry(), Token(0)).unwrap();
        let capacity = Capacity {
            messages: 4,
            bytes: 1_000,
        };
        let mailbox = Mailbox::new(waker, capacity);
        let found = [false; 4].map(|_| {
            mailbox.push(Mail::Stop);
            (mailbox.is_crowded(), mailbox.is_full())
        });
        assert_eq!(
            found,
            [(false, false), (false, false), (true, false), (true, true)]
        );
    }
}
