//! Orders of the coordinator to the threads, and the counts of the threads.
//!
//! A thread takes the lock only after the coordinator changed something; it looks for that without
//! one.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use thrum_load::pacing::Warp;

/// Shared by the coordinator and all threads.
#[derive(Debug)]
pub(crate) struct Control {
    /// When the first connection is opened.
    pub(crate) ramp_start_ns: u64,
    /// Counts the changes of the orders.
    generation: AtomicU64,
    /// Guards the orders alone; held to copy them, a few times in a run.
    orders: Mutex<Orders>,
    stop: AtomicBool,
    gauges: Box<[Gauge]>,
}

/// The load's times on the monotonic clock, once it is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::struct_field_names,
    reason = "a time without its unit is worse"
)]
pub(crate) struct Timeline {
    /// When the first message is due.
    pub(crate) start_ns: u64,
    /// From when on messages and time count.
    pub(crate) hold_start_ns: u64,
    /// Until when they count; no message is due later.
    pub(crate) hold_end_ns: u64,
}

/// When the load runs and how its rate is changed.
#[derive(Clone, Debug, Default)]
struct Orders {
    timeline: Option<Timeline>,
    warp: Arc<Warp>,
}

/// One thread's counts for the coordinator to read while it runs; written once per turn.
#[derive(Debug, Default)]
#[repr(align(128))] // two cache lines: neighbours are fetched in pairs
pub(crate) struct Gauge {
    /// Kernel's number of the thread.
    pub(crate) thread_id: AtomicU64,
    /// Clients connected and subscribed at some time.
    pub(crate) ready: AtomicU64,
    /// Clients connected and subscribed now.
    pub(crate) up: AtomicU64,
    /// Clients that failed before.
    pub(crate) failed: AtomicU64,
    /// Clients lost after they were ready.
    pub(crate) lost: AtomicU64,
    /// Messages sent.
    pub(crate) sent: AtomicU64,
    /// Messages received.
    pub(crate) received: AtomicU64,
    /// Deliveries expected from the sent messages.
    pub(crate) expected: AtomicU64,
    /// Deliveries for the first time.
    pub(crate) distinct: AtomicU64,
    /// Duplicate deliveries.
    pub(crate) duplicated: AtomicU64,
    /// Messages sent with QoS 1 or 2 and not acknowledged, and messages due and held back.
    pub(crate) pending: AtomicU64,
}

/// Sum of all gauges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Clients connected and subscribed at some time.
    pub ready: u64,
    /// Clients connected and subscribed now.
    pub up: u64,
    /// Clients that failed before.
    pub failed: u64,
    /// Clients lost after they were ready.
    pub lost: u64,
    /// Messages sent.
    pub sent: u64,
    /// Messages received.
    pub received: u64,
    /// Deliveries expected from the sent messages.
    pub expected: u64,
    /// Deliveries for the first time.
    pub distinct: u64,
    /// Duplicate deliveries.
    pub duplicated: u64,
    /// Messages not acknowledged or not even sent yet.
    pub pending: u64,
}

impl Progress {
    /// The sum of two.
    pub(crate) const fn plus(mut self, other: &Self) -> Self {
        self.ready += other.ready;
        self.up += other.up;
        self.failed += other.failed;
        self.lost += other.lost;
        self.sent += other.sent;
        self.received += other.received;
        self.expected += other.expected;
        self.distinct += other.distinct;
        self.duplicated += other.duplicated;
        self.pending += other.pending;
        self
    }
}

impl Control {
    pub(crate) fn new(threads: usize, ramp_start_ns: u64) -> Self {
        Self {
            ramp_start_ns,
            generation: AtomicU64::new(0),
            orders: Mutex::default(),
            stop: AtomicBool::new(false),
            gauges: (0..threads).map(|_| Gauge::default()).collect(),
        }
    }

    /// Sets when the load starts and ends, and changes of its rate.
    pub(crate) fn order(&self, timeline: Timeline, warp: Warp) {
        *self.orders.lock().unwrap_or_else(PoisonError::into_inner) = Orders {
            timeline: Some(timeline),
            warp: Arc::new(warp),
        };
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Whether the orders changed since a generation.
    pub(crate) fn has_changed(&self, generation: u64) -> bool {
        self.generation.load(Ordering::Acquire) != generation
    }

    /// The orders and their generation.
    pub(crate) fn timeline(&self) -> (Option<Timeline>, Arc<Warp>, u64) {
        let orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        let generation = self.generation.load(Ordering::Acquire);
        (orders.timeline, Arc::clone(&orders.warp), generation)
    }

    /// Orders the threads to disconnect their clients and end.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    pub(crate) fn gauge(&self, thread: usize) -> &Gauge {
        &self.gauges[thread]
    }

    /// The kernel's numbers of the threads that have started.
    pub(crate) fn thread_ids(&self) -> Vec<u64> {
        let ids = self
            .gauges
            .iter()
            .map(|gauge| gauge.thread_id.load(Ordering::Relaxed));
        ids.filter(|id| *id != 0).collect()
    }

    pub(crate) fn progress(&self) -> Progress {
        let mut sum = Progress::default();
        for gauge in &self.gauges {
            sum.ready += gauge.ready.load(Ordering::Relaxed);
            sum.up += gauge.up.load(Ordering::Relaxed);
            sum.failed += gauge.failed.load(Ordering::Relaxed);
            sum.lost += gauge.lost.load(Ordering::Relaxed);
            sum.sent += gauge.sent.load(Ordering::Relaxed);
            sum.received += gauge.received.load(Ordering::Relaxed);
            sum.expected += gauge.expected.load(Ordering::Relaxed);
            sum.distinct += gauge.distinct.load(Ordering::Relaxed);
            sum.duplicated += gauge.duplicated.load(Ordering::Relaxed);
            sum.pending += gauge.pending.load(Ordering::Relaxed);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_is_a_new_generation() {
        let control = Control::new(1, 0);
        let (timeline, _, generation) = control.timeline();
        assert_eq!((timeline, control.has_changed(generation)), (None, false));
        let timeline = Timeline {
            start_ns: 10,
            hold_start_ns: 20,
            hold_end_ns: 30,
        };
        control.order(timeline, Warp::identity());
        assert!(control.has_changed(generation));
        let (seen, _, generation) = control.timeline();
        assert_eq!(
            (seen, control.has_changed(generation)),
            (Some(timeline), false)
        );
    }

    #[test]
    fn progress_sums_all_threads() {
        let control = Control::new(2, 0);
        control.gauge(0).ready.store(3, Ordering::Relaxed);
        control.gauge(1).ready.store(4, Ordering::Relaxed);
        control.gauge(1).thread_id.store(99, Ordering::Relaxed);
        assert_eq!(control.progress().ready, 7);
        assert_eq!(control.thread_ids(), [99]);
    }
}
