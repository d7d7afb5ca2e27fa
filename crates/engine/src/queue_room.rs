//! The capacity ("room") of the queue of one session, as other workers see it.
//!
//! Most sessions have no such record: it is created for members of shared groups, and for sessions
//! whose queue becomes nearly full. While the queue is not nearly full the owner writes nothing
//! here, and a publisher reads one flag. From then on the owner publishes the length of the queue,
//! and a worker with a message for it reserves a place with a [`Promise`] before its publisher is
//! answered.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use thrum_protection::MemoryLevel;
use thrum_protocol::Limits;
use thrum_protocol::limits::QueuePolicy;
use thrum_protocol::server::{GroupId, Session};

use crate::interest::SessionRef;
use crate::node::memory::SharedLevel;
use crate::workers::WorkerId;

/// Number of free places below which a queue is nearly full whatever its limit, so that messages
/// that are in transit without a promise fit.
const FREE_MESSAGES_MIN: usize = 256;

/// Memory in bytes of a queued message beside its topic and payload, with some identifiers.
const ENTRY_BYTES: usize = 256;

/// The shortage of room that a held PUBLISH waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shortage {
    /// No connected member of the group has room.
    Group(GroupId),
    /// The session of that number has no room.
    Session(u64),
}

/// A worker with waiting publishers, and the shortage that they wait for.
pub type Waiter = (WorkerId, Shortage);

/// A notification of a worker that a queue its publishers wait for has room.
#[derive(Clone, Debug)]
pub struct RoomNotice {
    /// The worker, and the shortage that its publishers wait for.
    pub waiter: Waiter,
    /// The queue that has room.
    pub room: Arc<QueueRoom>,
}

/// The capacity of the queue of one session, as other workers see it.
#[derive(Debug)]
pub struct QueueRoom {
    /// The session that has the queue.
    pub session: SessionRef,
    /// The memory level of the node.
    level: SharedLevel,
    /// The memory level up to which the session accepts messages, as its owner last published it.
    takes_until: AtomicU8,
    /// Number of messages that would be sent at once, without queuing.
    window: AtomicUsize,
    is_nearly_full: AtomicBool,
    is_connected: AtomicBool,
    /// The client is connected, and its queue policy makes publishers wait.
    holds: AtomicBool,
    /// Number of shared groups that the session is a member of.
    groups: AtomicUsize,
    /// The session is counted among those that may hold publishers.
    is_counted: AtomicBool,
    messages: AtomicUsize,
    bytes: AtomicUsize,
    promised_messages: AtomicUsize,
    promised_bytes: AtomicUsize,
    messages_max: AtomicUsize,
    bytes_max: AtomicUsize,
    /// Number of messages refused by other workers that the owner has not counted yet.
    refused: AtomicUsize,
    /// The list of waiters is not empty; the owner reads this after each change.
    has_waiters: AtomicBool,
    /// Workers with waiting publishers. The lock guards the list only: workers are pushed when a
    /// publisher begins to wait and removed when there is room.
    waiters: Mutex<VecDeque<Waiter>>,
}

/// Result of publishing the state of a queue.
#[derive(Debug, Default)]
pub struct Shown {
    /// The queue became nearly full or is no longer.
    pub has_changed: bool,
    /// Workers to notify of room that there is now.
    pub notices: Vec<RoomNotice>,
}

impl QueueRoom {
    /// Creates the record of an empty queue.
    pub fn new(session: SessionRef, level: SharedLevel) -> Self {
        Self {
            session,
            level,
            takes_until: AtomicU8::new(MemoryLevel::Short as u8),
            window: AtomicUsize::new(0),
            is_nearly_full: AtomicBool::new(false),
            is_connected: AtomicBool::new(false),
            holds: AtomicBool::new(false),
            groups: AtomicUsize::new(0),
            is_counted: AtomicBool::new(false),
            messages: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            promised_messages: AtomicUsize::new(0),
            promised_bytes: AtomicUsize::new(0),
            messages_max: AtomicUsize::new(0),
            bytes_max: AtomicUsize::new(0),
            refused: AtomicUsize::new(0),
            has_waiters: AtomicBool::new(false),
            waiters: Mutex::default(),
        }
    }

    /// Whether the queue is nearly full, so that messages to it need a promise.
    #[inline]
    pub fn is_nearly_full(&self) -> bool {
        self.is_nearly_full.load(Ordering::Relaxed)
    }

    /// Whether publishers have to wait while the queue is full.
    pub fn holds(&self) -> bool {
        self.holds.load(Ordering::Relaxed) && self.is_nearly_full()
    }

    /// Whether the session certainly accepts a message of that size.
    #[inline]
    pub fn has_room(&self, bytes: usize) -> bool {
        self.has_memory() && (!self.is_nearly_full() || self.has_free_place(bytes))
    }

    /// Whether the session certainly accepts a message of any size.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.has_memory() && !self.is_nearly_full()
    }

    /// Whether memory is not too short for one more message to the session.
    #[inline]
    pub fn has_memory(&self) -> bool {
        let level = self.level.load(Ordering::Relaxed);
        level < MemoryLevel::Short as u8 || level <= self.takes_until.load(Ordering::SeqCst)
    }

    /// Publishes the memory level up to which the session accepts messages; true if the level rose.
    /// Only the owner calls this.
    pub fn show_memory(&self, takes_until: MemoryLevel) -> bool {
        let takes_until = takes_until as u8;
        self.takes_until.load(Ordering::Relaxed) != takes_until
            && self.takes_until.swap(takes_until, Ordering::SeqCst) < takes_until
    }

    fn has_free_place(&self, bytes: usize) -> bool {
        let all = |shown: &AtomicUsize, promised: &AtomicUsize| {
            shown.load(Ordering::SeqCst) + promised.load(Ordering::SeqCst)
        };
        let messages = all(&self.messages, &self.promised_messages);
        let window = self.window.load(Ordering::SeqCst);
        let bytes = all(&self.bytes, &self.promised_bytes) + bytes + ENTRY_BYTES;
        // A message that is sent at once may have any size.
        messages < window
            || (messages < window + self.messages_max.load(Ordering::Relaxed)
                && bytes <= self.bytes_max.load(Ordering::Relaxed))
    }

    /// Reserves a place for one message; none if there is no room.
    pub fn try_promise(self: &Arc<Self>, bytes: usize) -> Option<Promise> {
        let bytes = bytes + ENTRY_BYTES;
        let shown = self.messages.load(Ordering::SeqCst);
        let window = self.window.load(Ordering::SeqCst);
        let max = window + self.messages_max.load(Ordering::Relaxed);
        let is_free = !self.is_nearly_full();
        let one_more = |promised| (is_free || shown + promised < max).then_some(promised + 1);
        let (set, fetch) = (Ordering::SeqCst, Ordering::SeqCst);
        let before = self.promised_messages.fetch_update(set, fetch, one_more);
        let is_sent = shown + before.ok()? < window;
        let promised = self.promised_bytes.fetch_add(bytes, Ordering::SeqCst);
        let promise = Promise {
            room: Arc::clone(self),
            bytes,
        };
        let all = self.bytes.load(Ordering::SeqCst) + promised + bytes;
        (is_free || is_sent || all <= self.bytes_max.load(Ordering::Relaxed)).then_some(promise)
    }

    /// Reserves a place for one message, beyond the limits if necessary.
    pub fn promise(self: &Arc<Self>, bytes: usize) -> Promise {
        let bytes = bytes + ENTRY_BYTES;
        self.promised_messages.fetch_add(1, Ordering::SeqCst);
        self.promised_bytes.fetch_add(bytes, Ordering::SeqCst);
        Promise {
            room: Arc::clone(self),
            bytes,
        }
    }

    /// Counts a message that was refused on behalf of the session; true if the owner has to be
    /// notified.
    pub fn refuse(&self) -> bool {
        self.refused.fetch_add(1, Ordering::Relaxed) == 0
    }

    /// Takes the number of messages that other workers refused since the last call. Only the owner
    /// calls this.
    pub fn take_refused(&self) -> usize {
        self.refused.swap(0, Ordering::Relaxed)
    }

    /// Adds a worker with waiting publishers.
    pub fn wait(&self, waiter: Waiter) {
        let mut waiters = self.waiters.lock().unwrap_or_else(PoisonError::into_inner);
        if !waiters.contains(&waiter) {
            waiters.push_back(waiter);
        }
        // The owner publishes its state before it reads this flag; the waiter reads the published
        // state after it sets this flag.
        self.has_waiters.store(true, Ordering::SeqCst);
    }

    /// Takes all waiting workers.
    pub fn take_waiters(self: &Arc<Self>) -> Vec<RoomNotice> {
        if !self.has_waiters.load(Ordering::SeqCst) {
            return Vec::new();
        }
        let mut waiters = self.waiters.lock().unwrap_or_else(PoisonError::into_inner);
        self.has_waiters.store(false, Ordering::SeqCst);
        let notices = waiters.drain(..).map(|waiter| self.notice(waiter));
        notices.collect()
    }

    /// Takes the worker that has waited longest. There may be room for one message only: a worker
    /// that does not use all of it passes the notification on, and one that needs more is added at
    /// the end again.
    fn next_waiter(self: &Arc<Self>) -> Option<RoomNotice> {
        if !self.has_waiters.load(Ordering::SeqCst) {
            return None;
        }
        let mut waiters = self.waiters.lock().unwrap_or_else(PoisonError::into_inner);
        let next = waiters.pop_front();
        self.has_waiters
            .store(!waiters.is_empty(), Ordering::SeqCst);
        next.map(|waiter| self.notice(waiter))
    }

    fn notice(self: &Arc<Self>, waiter: Waiter) -> RoomNotice {
        let room = Arc::clone(self);
        RoomNotice { waiter, room }
    }

    /// Publishes the current state of the queue. Only the owner calls this. `holding` counts the
    /// sessions that may hold publishers.
    pub fn show(
        self: &Arc<Self>,
        session: &Session,
        is_connected: bool,
        holding: &AtomicUsize,
    ) -> Shown {
        let limits = session.limits();
        let was_nearly_full = self.is_nearly_full();
        let is_nearly_full = is_nearly_full(session, was_nearly_full);
        if !is_nearly_full && !was_nearly_full {
            return Shown::default();
        }
        let (messages, bytes) = session.outbound().qos1_and_2_backlog();
        self.messages_max
            .store(limits.queue.messages_max as usize, Ordering::Relaxed);
        self.bytes_max
            .store(limits.queue.bytes_max as usize, Ordering::Relaxed);
        let has_shrunk = messages < self.messages.swap(messages, Ordering::SeqCst);
        let has_shrunk = bytes < self.bytes.swap(bytes, Ordering::SeqCst) || has_shrunk;
        let window = session.free_window();
        let has_shrunk = window > self.window.swap(window, Ordering::SeqCst) || has_shrunk;
        self.is_nearly_full.store(is_nearly_full, Ordering::SeqCst);
        let holds = is_connected && limits.queue.policy == QueuePolicy::Hold;
        self.holds.store(holds, Ordering::Relaxed);
        // Publishers do not wait for the queue of a disconnected client.
        let has_left = self.is_connected.swap(is_connected, Ordering::Relaxed) && !is_connected;
        self.count(holding);
        // Workers that wait have seen the previous state.
        let notices = if has_left || !is_nearly_full {
            self.take_waiters()
        } else if has_shrunk {
            self.next_with_room().into_iter().collect()
        } else {
            Vec::new()
        };
        Shown {
            has_changed: is_nearly_full != was_nearly_full,
            notices,
        }
    }

    /// Takes the worker that has waited longest if there is room now.
    pub fn next_with_room(self: &Arc<Self>) -> Option<RoomNotice> {
        self.has_room(0).then(|| self.next_waiter()).flatten()
    }

    /// Closes the queue of a session that ends; returns all waiting workers.
    pub fn close(self: &Arc<Self>, holding: &AtomicUsize) -> Vec<RoomNotice> {
        self.is_nearly_full.store(false, Ordering::SeqCst);
        self.count(holding);
        self.take_waiters()
    }

    /// Sets the number of groups that the session is a member of. Only the owner calls this.
    pub fn set_groups(&self, groups: usize, holding: &AtomicUsize) {
        self.groups.store(groups, Ordering::Relaxed);
        self.count(holding);
    }

    fn count(&self, holding: &AtomicUsize) {
        // Publishers do not wait for disconnected members.
        let is_member = self.groups.load(Ordering::Relaxed) > 0;
        let is_there = self.is_connected.load(Ordering::Relaxed);
        let counts = self.holds() || (self.is_nearly_full() && is_member && is_there);
        match (self.is_counted.swap(counts, Ordering::Relaxed), counts) {
            (false, true) => {
                holding.fetch_add(1, Ordering::Relaxed);
            }
            (true, false) => {
                holding.fetch_sub(1, Ordering::Relaxed);
            }
            (true, true) | (false, false) => {}
        }
    }
}

/// A reserved place in the queue of a session for one message in transit; the place is released
/// when this value is dropped.
#[derive(Debug)]
pub struct Promise {
    room: Arc<QueueRoom>,
    bytes: usize,
}

impl Promise {
    /// The number of the session.
    pub fn session(&self) -> u64 {
        self.room.session.id
    }

    /// Releases the place, and returns the worker to notify if there is room now.
    pub fn end(self) -> Option<RoomNotice> {
        let room = Arc::clone(&self.room);
        drop(self);
        room.next_with_room()
    }

    /// The worker that owns the session.
    pub fn worker(&self) -> WorkerId {
        self.room.session.worker
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        self.room.promised_messages.fetch_sub(1, Ordering::SeqCst);
        self.room
            .promised_bytes
            .fetch_sub(self.bytes, Ordering::SeqCst);
    }
}

/// Whether a queue is nearly full: more than half of it is used, or nearly all of a short one. A
/// nearly full queue stays so down to a quarter, so that the state does not oscillate. A queue that
/// drops its oldest message always has room.
pub fn is_nearly_full(session: &Session, was_nearly_full: bool) -> bool {
    let limits = session.limits();
    if limits.queue.policy == QueuePolicy::DropOldest {
        return false;
    }
    let (messages, bytes) = session.outbound().qos1_and_2_backlog();
    let (messages_max, bytes_max) = (
        limits.queue.messages_max as usize,
        limits.queue.bytes_max as usize,
    );
    let part = if was_nearly_full { 4 } else { 2 };
    messages > messages_max / part
        || bytes > bytes_max / part
        || messages_max.saturating_sub(messages) < FREE_MESSAGES_MIN
        || bytes_max.saturating_sub(bytes) < limits.packet_bytes_max as usize
}

/// Whether a queue is so short that it is nearly full while it is empty.
pub fn is_short(limits: &Limits) -> bool {
    limits.queue.policy != QueuePolicy::DropOldest
        && ((limits.queue.messages_max as usize) < FREE_MESSAGES_MIN
            || limits.queue.bytes_max < limits.packet_bytes_max)
}
