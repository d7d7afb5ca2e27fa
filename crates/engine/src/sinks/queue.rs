//! Bounded queue of a sink: workers fill it at the end of a turn, the thread of the sink empties
//! it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crossbeam_utils::CachePadded;

use super::Offer;

/// A queue that makes publishers wait refuses them at so many times its limits: each new connection
/// brings some messages before it waits.
const OVERFULL: usize = 2;

/// What happens to a message for a sink whose queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// Its publisher is refused.
    Refuse,
    /// Its publisher is not read.
    Hold,
    /// It passes the sink by.
    Drop,
}

/// What a sink is willing to hold, and what it does beyond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimits {
    pub messages: usize,
    pub bytes: usize,
    pub when_full: WhenFull,
    /// Messages of QoS 1 and 2 have a place on the disk.
    pub is_durable: bool,
}

impl Default for QueueLimits {
    fn default() -> Self {
        Self {
            messages: usize::MAX,
            bytes: usize::MAX,
            when_full: WhenFull::Drop,
            is_durable: false,
        }
    }
}

/// What a queue has left.
#[derive(Clone, Copy, Debug, Default)]
pub struct SinkRoom {
    messages: usize,
    bytes: usize,
}

impl SinkRoom {
    /// An offer goes in.
    #[inline]
    pub const fn take(&mut self, bytes: usize) {
        self.messages = self.messages.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// One more offer is too many.
    #[inline]
    pub const fn is_used_up(self) -> bool {
        self.messages == 0 || self.bytes == 0
    }
}

/// What happened since the start.
#[derive(Debug, Default)]
struct Counts {
    offered: AtomicU64,
    written: AtomicU64,
    /// Messages that passed a full queue by.
    dropped: AtomicU64,
    /// Writes that failed; each is repeated.
    failures: AtomicU64,
}

/// The same, at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SinkCounts {
    pub offered: u64,
    pub written: u64,
    pub dropped: u64,
    pub failures: u64,
    /// Messages in the queue, those that are being written among them.
    pub waiting: u64,
    /// Their bytes.
    pub waiting_bytes: u64,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Offer>,
    /// The thread writes what there is and ends.
    is_closing: bool,
    /// The thread has another target, or another reason to look up.
    is_called: bool,
}

/// See above.
#[derive(Debug)]
pub struct SinkQueue {
    /// Guards the offers; held for an append or a take, never during a write.
    state: Mutex<State>,
    arrived: Condvar,
    /// Offers, those that are being written included, and their bytes.
    waiting: AtomicUsize,
    waiting_bytes: AtomicUsize,
    messages_max: AtomicUsize,
    bytes_max: AtomicUsize,
    holds: AtomicBool,
    refuses: AtomicBool,
    is_durable: AtomicBool,
    /// This sink counts in `refusing`.
    is_refusing: AtomicBool,
    refusing: Arc<CachePadded<AtomicUsize>>,
    counts: Counts,
}

impl SinkQueue {
    pub fn new(limits: QueueLimits, refusing: Arc<CachePadded<AtomicUsize>>) -> Self {
        let queue = Self {
            state: Mutex::default(),
            arrived: Condvar::new(),
            waiting: AtomicUsize::new(0),
            waiting_bytes: AtomicUsize::new(0),
            messages_max: AtomicUsize::new(0),
            bytes_max: AtomicUsize::new(0),
            holds: AtomicBool::new(false),
            refuses: AtomicBool::new(false),
            is_durable: AtomicBool::new(false),
            is_refusing: AtomicBool::new(false),
            refusing,
            counts: Counts::default(),
        };
        queue.set_limits(limits);
        queue
    }

    /// Other limits hold from now on.
    pub fn set_limits(&self, limits: QueueLimits) {
        self.messages_max.store(limits.messages, Ordering::Relaxed);
        self.bytes_max.store(limits.bytes, Ordering::Relaxed);
        let is_hold = limits.when_full == WhenFull::Hold;
        self.holds.store(is_hold, Ordering::Relaxed);
        let is_refuse = limits.when_full == WhenFull::Refuse;
        self.refuses.store(is_refuse, Ordering::Relaxed);
        self.is_durable.store(limits.is_durable, Ordering::Relaxed);
        self.show_refusing(&self.state());
    }

    #[inline]
    pub fn is_durable(&self) -> bool {
        self.is_durable.load(Ordering::Relaxed)
    }

    /// Publishers are not read while the queue is full.
    #[inline]
    pub fn holds(&self) -> bool {
        self.holds.load(Ordering::Relaxed)
    }

    /// Publishers are refused while the queue is full.
    #[inline]
    pub fn refuses(&self) -> bool {
        self.refuses.load(Ordering::Relaxed)
    }

    /// What it has left.
    pub fn room(&self) -> SinkRoom {
        let (messages, bytes) = self.waiting();
        let left = |max: &AtomicUsize, used| max.load(Ordering::Relaxed).saturating_sub(used);
        SinkRoom {
            messages: left(&self.messages_max, messages),
            bytes: left(&self.bytes_max, bytes),
        }
    }

    /// So far over a limit, with these offers of the turn, that publishers are not only made to
    /// wait.
    pub fn is_overfull(&self, offers: usize) -> bool {
        let (messages, bytes) = self.waiting();
        let over = |max: &AtomicUsize| max.load(Ordering::Relaxed).saturating_mul(OVERFULL);
        messages + offers >= over(&self.messages_max) || bytes >= over(&self.bytes_max)
    }

    /// Over half of a limit: publishers that wait for it wait on.
    pub fn is_crowded(&self) -> bool {
        let (messages, bytes) = self.waiting();
        messages > self.messages_max.load(Ordering::Relaxed) / 2
            || bytes > self.bytes_max.load(Ordering::Relaxed) / 2
    }

    fn waiting(&self) -> (usize, usize) {
        let messages = self.waiting.load(Ordering::Relaxed);
        (messages, self.waiting_bytes.load(Ordering::Relaxed))
    }

    /// Takes the offers of a turn, in order. The outbox asked for room; what came from other
    /// workers meanwhile is beyond the limit, at most a turn of each.
    pub fn push_all(&self, offers: &mut Vec<Offer>) {
        let bytes = offers.iter().map(|offer| offer.message.bytes_len()).sum();
        let count = offers.len();
        let mut state = self.state();
        self.waiting.fetch_add(count, Ordering::Relaxed);
        self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        state.waiting.extend(offers.drain(..));
        self.show_refusing(&state);
        drop(state);
        self.counts
            .offered
            .fetch_add(count as u64, Ordering::Relaxed);
        self.arrived.notify_one();
    }

    /// A message passes the full queue by.
    pub fn count_dropped(&self) {
        self.counts.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// A write failed.
    pub fn count_failure(&self) {
        self.counts.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// The oldest offers, at most so many and so many bytes, one at least; waits for one for so
    /// long. None once the queue is closing and empty.
    pub fn take(
        &self,
        messages_max: usize,
        bytes_max: usize,
        patience: Duration,
    ) -> Option<Vec<Offer>> {
        let mut state = self.state();
        if state.waiting.is_empty() && !state.is_closing && !state.is_called {
            let waited = self.arrived.wait_timeout(state, patience);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.is_called = false;
        if state.waiting.is_empty() {
            return (!state.is_closing).then(Vec::new);
        }
        let mut bytes = 0;
        let fitting = state.waiting.iter().take(messages_max).take_while(|offer| {
            let fits = bytes < bytes_max;
            bytes += offer.message.bytes_len();
            fits
        });
        let count = fitting.count();
        let taken = state.waiting.drain(..count).collect();
        if state.waiting.is_empty() {
            state.waiting.shrink_to(messages_max);
        }
        Some(taken)
    }

    /// The target did not take these: they are the oldest again.
    pub fn put_back(&self, offers: Vec<Offer>) {
        let mut state = self.state();
        for offer in offers.into_iter().rev() {
            state.waiting.push_front(offer);
        }
    }

    /// The target has these.
    pub fn written(&self, offers: &[Offer]) {
        let bytes: usize = offers.iter().map(|offer| offer.message.bytes_len()).sum();
        let state = self.state();
        self.waiting.fetch_sub(offers.len(), Ordering::Relaxed);
        self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.show_refusing(&state);
        drop(state);
        let written = &self.counts.written;
        written.fetch_add(offers.len() as u64, Ordering::Relaxed);
    }

    /// The thread looks up, whatever it waits for.
    pub fn call(&self) {
        self.state().is_called = true;
        self.arrived.notify_one();
    }

    /// The thread ends once it has written what there is.
    pub fn close(&self) {
        self.state().is_closing = true;
        self.arrived.notify_one();
    }

    pub fn is_closing(&self) -> bool {
        self.state().is_closing
    }

    /// Waits after a write that failed: until the queue closes or the thread is called, at most so
    /// long.
    pub fn rest(&self, pause: Duration) {
        let state = self.state();
        let was_closing = state.is_closing;
        let rested = self.arrived.wait_timeout_while(state, pause, |state| {
            state.is_closing == was_closing && !state.is_called
        });
        let (mut state, _) = rested.unwrap_or_else(PoisonError::into_inner);
        state.is_called = false;
    }

    pub fn counts(&self) -> SinkCounts {
        let (waiting, waiting_bytes) = self.waiting();
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        SinkCounts {
            offered: count(&self.counts.offered),
            written: count(&self.counts.written),
            dropped: count(&self.counts.dropped),
            failures: count(&self.counts.failures),
            waiting: waiting as u64,
            waiting_bytes: waiting_bytes as u64,
        }
    }

    /// Workers see whether publishers are refused; `_state` keeps two from doing this at once.
    fn show_refusing(&self, _state: &MutexGuard<'_, State>) {
        let is_refusing =
            (self.refuses() && self.room().is_used_up()) || (self.holds() && self.is_overfull(0));
        if self.is_refusing.swap(is_refusing, Ordering::Relaxed) != is_refusing {
            if is_refusing {
                self.refusing.fetch_add(1, Ordering::Relaxed);
            } else {
                self.refusing.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
