//! The room in the queue of one session, as the other workers see it.
//!
//! Most sessions have none: it is made for members of shared groups, and for sessions whose queue
//! fills up. While the queue is not nearly full nothing is written here, and a publisher reads one
//! flag. From then on the owner shows how much waits, and whoever has a message for it takes a
//! [`Promise`] of room before its publisher is answered.

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

/// A queue with fewer free places than this is nearly full whatever its limit: what others have
/// under way to it without a promise fits in.
const FREE_MESSAGES_MIN: usize = 256;

/// Memory that a queued message takes beside its topic and payload, with some identifiers.
const ENTRY_BYTES: usize = 256;

/// What a held PUBLISH waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shortage {
    /// Any connected member of the group has room.
    Group(GroupId),
    /// The session of that number has room.
    Session(u64),
}

/// A worker whose publishers wait.
pub type Waiter = (WorkerId, Shortage);

/// A worker whose publishers waited for room that there is now.
#[derive(Clone, Debug)]
pub struct Told {
    pub waiter: Waiter,
    /// Where it is.
    pub room: Arc<QueueRoom>,
}

/// See above.
#[derive(Debug)]
pub struct QueueRoom {
    /// The session that has the queue.
    pub session: SessionRef,
    /// How short memory is.
    level: SharedLevel,
    /// The level up to which it takes messages, as far as it is known.
    takes_until: AtomicU8,
    /// Messages that would be sent at once.
    window: AtomicUsize,
    is_nearly_full: AtomicBool,
    is_connected: AtomicBool,
    /// Its client is connected, and publishers wait for it.
    holds: AtomicBool,
    /// Shared groups that it is a member of.
    groups: AtomicUsize,
    /// It is counted among those that may hold publishers.
    is_counted: AtomicBool,
    messages: AtomicUsize,
    bytes: AtomicUsize,
    promised_messages: AtomicUsize,
    promised_bytes: AtomicUsize,
    messages_max: AtomicUsize,
    bytes_max: AtomicUsize,
    /// Messages refused by other workers that the owner has not counted.
    refused: AtomicUsize,
    /// Whether the list has anybody, for the owner to look at after each change.
    has_waiters: AtomicBool,
    /// Guards the list only: pushed to when a publisher begins to wait, taken when there is room.
    waiters: Mutex<VecDeque<Waiter>>,
}

/// What the owner's message to the others changed.
#[derive(Debug, Default)]
pub struct Shown {
    /// It became nearly full, or is no longer.
    pub is_turned: bool,
    /// Who waited for the room that there is now.
    pub told: Vec<Told>,
}

impl QueueRoom {
    /// The room of an empty queue.
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

    #[inline]
    pub fn is_nearly_full(&self) -> bool {
        self.is_nearly_full.load(Ordering::Relaxed)
    }

    /// Publishers wait for it while it is full.
    pub fn holds(&self) -> bool {
        self.holds.load(Ordering::Relaxed) && self.is_nearly_full()
    }

    /// Whether a message of that size is certain to be taken.
    #[inline]
    pub fn has_room(&self, bytes: usize) -> bool {
        self.has_memory() && (!self.is_nearly_full() || self.has_free_place(bytes))
    }

    /// A message of any size is certain to be taken.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.has_memory() && !self.is_nearly_full()
    }

    /// Memory is not too short for one more message.
    #[inline]
    pub fn has_memory(&self) -> bool {
        let level = self.level.load(Ordering::Relaxed);
        level < MemoryLevel::Short as u8 || level <= self.takes_until.load(Ordering::SeqCst)
    }

    /// Shows the level up to which it takes messages; for the owner. True if that rose.
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
        // What is sent at once may have any size.
        messages < window
            || (messages < window + self.messages_max.load(Ordering::Relaxed)
                && bytes <= self.bytes_max.load(Ordering::Relaxed))
    }

    /// Room for one message, if there is some.
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

    /// Room for one message beyond the limits, if need be.
    pub fn promise(self: &Arc<Self>, bytes: usize) -> Promise {
        let bytes = bytes + ENTRY_BYTES;
        self.promised_messages.fetch_add(1, Ordering::SeqCst);
        self.promised_bytes.fetch_add(bytes, Ordering::SeqCst);
        Promise {
            room: Arc::clone(self),
            bytes,
        }
    }

    /// One more message was refused on behalf of the session; true if its worker has to be told.
    pub fn refuse(&self) -> bool {
        self.refused.fetch_add(1, Ordering::Relaxed) == 0
    }

    /// Messages that others refused since the last call; for the owner.
    pub fn take_refused(&self) -> usize {
        self.refused.swap(0, Ordering::Relaxed)
    }

    /// Publishers of that worker wait.
    pub fn wait(&self, waiter: Waiter) {
        let mut waiters = self.waiters.lock().unwrap_or_else(PoisonError::into_inner);
        if !waiters.contains(&waiter) {
            waiters.push_back(waiter);
        }
        // The owner shows first and looks at this then; the waiter looks at what is shown after
        // this.
        self.has_waiters.store(true, Ordering::SeqCst);
    }

    /// Everybody who waits.
    pub fn take_waiters(self: &Arc<Self>) -> Vec<Told> {
        if !self.has_waiters.load(Ordering::SeqCst) {
            return Vec::new();
        }
        let mut waiters = self.waiters.lock().unwrap_or_else(PoisonError::into_inner);
        self.has_waiters.store(false, Ordering::SeqCst);
        let told = waiters.drain(..).map(|waiter| self.told(waiter));
        told.collect()
    }

    /// Who has waited for longest. There may be room for one only; a worker that does not use all
    /// of it passes it on, and one that needs more stands at the end then.
    fn next_waiter(self: &Arc<Self>) -> Option<Told> {
        if !self.has_waiters.load(Ordering::SeqCst) {
            return None;
        }
        let mut waiters = self.waiters.lock().unwrap_or_else(PoisonError::into_inner);
        let next = waiters.pop_front();
        self.has_waiters
            .store(!waiters.is_empty(), Ordering::SeqCst);
        next.map(|waiter| self.told(waiter))
    }

    fn told(self: &Arc<Self>, waiter: Waiter) -> Told {
        let room = Arc::clone(self);
        Told { waiter, room }
    }

    /// Shows the queue as it is; for the owner. `holding` counts the sessions that may hold
    /// publishers.
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
        // Nobody waits for a client that has gone, if it is not one of several.
        let has_left = self.is_connected.swap(is_connected, Ordering::Relaxed) && !is_connected;
        self.count(holding);
        // Whoever waits has looked at what was shown before.
        let told = if has_left || !is_nearly_full {
            self.take_waiters()
        } else if has_shrunk {
            self.next_with_room().into_iter().collect()
        } else {
            Vec::new()
        };
        Shown {
            is_turned: is_nearly_full != was_nearly_full,
            told,
        }
    }

    /// Who goes on if there is room now.
    pub fn next_with_room(self: &Arc<Self>) -> Option<Told> {
        self.has_room(0).then(|| self.next_waiter()).flatten()
    }

    /// The session ends: nobody waits for it any more.
    pub fn close(self: &Arc<Self>, holding: &AtomicUsize) -> Vec<Told> {
        self.is_nearly_full.store(false, Ordering::SeqCst);
        self.count(holding);
        self.take_waiters()
    }

    /// The session is a member of so many groups; for the owner.
    pub fn set_groups(&self, groups: usize, holding: &AtomicUsize) {
        self.groups.store(groups, Ordering::Relaxed);
        self.count(holding);
    }

    fn count(&self, holding: &AtomicUsize) {
        // For members that are away nobody waits.
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

/// A place in the queue of a session for one message that is on its way; given back when this is
/// dropped.
#[derive(Debug)]
pub struct Promise {
    room: Arc<QueueRoom>,
    bytes: usize,
}

impl Promise {
    /// Number of the session.
    pub fn session(&self) -> u64 {
        self.room.session.id
    }

    /// The message has come, or is not for the session any more; who waited for room that there is
    /// now.
    pub fn end(self) -> Option<Told> {
        let room = Arc::clone(&self.room);
        drop(self);
        room.next_with_room()
    }

    /// The worker of the session.
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

/// Half of the queue is used up, or nearly all of a short one. One that was nearly full is so down
/// to a quarter, so that it does not change back and forth. One that drops its oldest message
/// always has room.
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

/// Whether the queue of a session is so short that it is nearly full while it is empty.
pub fn is_short(limits: &Limits) -> bool {
    limits.queue.policy != QueuePolicy::DropOldest
        && ((limits.queue.messages_max as usize) < FREE_MESSAGES_MIN
            || limits.queue.bytes_max < limits.packet_bytes_max)
}
