//! Bounded queue of a sink: workers add messages at the end of a turn, and the thread of the sink
//! takes them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crossbeam_utils::CachePadded;

use super::Offer;

/// Multiple of its limits at which a queue that makes publishers wait refuses messages: each new
/// connection adds some messages before it waits.
const OVERFULL: usize = 2;

/// Policy for a message to a sink whose queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// The PUBLISH is refused.
    Refuse,
    /// The connection of the publisher is not read until there is room.
    Hold,
    /// The message is dropped for this sink only.
    Drop,
}

/// Limits of the queue of a sink, and the policy for a full queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimits {
    /// Greatest number of messages.
    pub messages: usize,
    /// Greatest length of all messages in bytes.
    pub bytes: usize,
    /// The policy for a full queue.
    pub when_full: WhenFull,
    /// Whether messages with QoS 1 and 2 are stored.
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

/// Remaining capacity of a queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct SinkRoom {
    messages: usize,
    bytes: usize,
}

impl SinkRoom {
    /// Subtracts an offer of that many bytes.
    #[inline]
    pub const fn take(&mut self, bytes: usize) {
        self.messages = self.messages.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Whether there is no capacity for one more offer.
    #[inline]
    pub const fn is_used_up(self) -> bool {
        self.messages == 0 || self.bytes == 0
    }
}

/// Counters of a sink since the start.
#[derive(Debug, Default)]
struct Counts {
    offered: AtomicU64,
    written: AtomicU64,
    /// Messages that were dropped because the queue was full.
    dropped: AtomicU64,
    /// Failed writes, which are repeated.
    failures: AtomicU64,
}

/// Values of the counters of a sink at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SinkCounts {
    /// Messages that were added to the queue since the start.
    pub offered: u64,
    /// Messages that were written since the start.
    pub written: u64,
    /// Messages that were dropped since the start because the queue was full.
    pub dropped: u64,
    /// Failed writes since the start.
    pub failures: u64,
    /// Messages in the queue, including those that are being written.
    pub waiting: u64,
    /// Length in bytes of the messages in the queue.
    pub waiting_bytes: u64,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Offer>,
    /// The thread ends after it has written all messages.
    is_closing: bool,
    /// The thread is to stop waiting, for example because its target has changed.
    is_woken: bool,
}

/// Bounded queue of a sink.
#[derive(Debug)]
pub struct SinkQueue {
    /// Guards the offers; held for an append or a take, never during a write.
    state: Mutex<State>,
    arrived: Condvar,
    /// Number of offers, including those that are being written.
    waiting: AtomicUsize,
    /// Length in bytes of the offers, including those that are being written.
    waiting_bytes: AtomicUsize,
    messages_max: AtomicUsize,
    bytes_max: AtomicUsize,
    holds: AtomicBool,
    refuses: AtomicBool,
    is_durable: AtomicBool,
    /// This sink is counted in `refusing`.
    is_refusing: AtomicBool,
    refusing: Arc<CachePadded<AtomicUsize>>,
    counts: Counts,
}

impl SinkQueue {
    /// Creates an empty queue; `refusing` counts the sinks that refuse publishers.
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

    /// Replaces the limits.
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

    /// Whether messages with QoS 1 and 2 are stored.
    #[inline]
    pub fn is_durable(&self) -> bool {
        self.is_durable.load(Ordering::Relaxed)
    }

    /// Whether publishers are not read while the queue is full.
    #[inline]
    pub fn holds(&self) -> bool {
        self.holds.load(Ordering::Relaxed)
    }

    /// Whether publishers are refused while the queue is full.
    #[inline]
    pub fn refuses(&self) -> bool {
        self.refuses.load(Ordering::Relaxed)
    }

    /// The remaining capacity of the queue.
    pub fn room(&self) -> SinkRoom {
        let (messages, bytes) = self.waiting();
        let left = |max: &AtomicUsize, used| max.load(Ordering::Relaxed).saturating_sub(used);
        SinkRoom {
            messages: left(&self.messages_max, messages),
            bytes: left(&self.bytes_max, bytes),
        }
    }

    /// Whether the queue, together with the messages and bytes of the turn, exceeds a limit so far
    /// that publishers are refused instead of made to wait.
    pub fn is_overfull(&self, more_messages: usize, more_bytes: usize) -> bool {
        let (messages, bytes) = self.waiting();
        let over = |max: &AtomicUsize| max.load(Ordering::Relaxed).saturating_mul(OVERFULL);
        messages + more_messages >= over(&self.messages_max)
            || bytes + more_bytes >= over(&self.bytes_max)
    }

    /// Whether the queue is over half of a limit, so that publishers that wait for it continue to
    /// wait. After a reload with another policy they do not.
    pub fn is_crowded(&self) -> bool {
        if !self.holds() {
            return false;
        }
        let (messages, bytes) = self.waiting();
        messages > self.messages_max.load(Ordering::Relaxed) / 2
            || bytes > self.bytes_max.load(Ordering::Relaxed) / 2
    }

    fn waiting(&self) -> (usize, usize) {
        let messages = self.waiting.load(Ordering::Relaxed);
        (messages, self.waiting_bytes.load(Ordering::Relaxed))
    }

    /// Adds the offers of a turn in their order. The outbox has checked the capacity before; offers
    /// that other workers add meanwhile may exceed the limit by at most a turn of each.
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

    /// Counts a message that was dropped because the queue was full.
    pub fn count_dropped(&self) {
        self.counts.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a failed write.
    pub fn count_failure(&self) {
        self.counts.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes the oldest offers up to both limits, but at least one; waits up to `patience` for the
    /// first one. None once the queue is closing and empty.
    pub fn take(
        &self,
        messages_max: usize,
        bytes_max: usize,
        patience: Duration,
    ) -> Option<Vec<Offer>> {
        let mut state = self.state();
        if state.waiting.is_empty() && !state.is_closing && !state.is_woken {
            let waited = self.arrived.wait_timeout(state, patience);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.is_woken = false;
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

    /// Puts back offers that the target did not accept, in front of the queue.
    pub fn put_back(&self, offers: Vec<Offer>) {
        let mut state = self.state();
        for offer in offers.into_iter().rev() {
            state.waiting.push_front(offer);
        }
    }

    /// Removes offers that were written from the counts.
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

    /// Wakes the thread of the sink, whatever it waits for.
    pub fn wake(&self) {
        self.state().is_woken = true;
        self.arrived.notify_one();
    }

    /// Makes the thread of the sink end after it has written all messages.
    pub fn close(&self) {
        self.state().is_closing = true;
        self.arrived.notify_one();
    }

    /// Whether the thread of the sink ends after it has written all messages.
    pub fn is_closing(&self) -> bool {
        self.state().is_closing
    }

    /// Blocks the thread of the sink until the queue is closed, the thread is woken or `time_max`
    /// has passed.
    pub fn pause(&self, time_max: Duration) {
        let state = self.state();
        let was_closing = state.is_closing;
        let waited = self.arrived.wait_timeout_while(state, time_max, |state| {
            state.is_closing == was_closing && !state.is_woken
        });
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.is_woken = false;
    }

    /// The current values of the counters.
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

    /// Publishes whether publishers are refused; the guard `_state` prevents concurrent calls.
    fn show_refusing(&self, _state: &MutexGuard<'_, State>) {
        let is_refusing = (self.refuses() && self.room().is_used_up())
            || (self.holds() && self.is_overfull(0, 0));
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
