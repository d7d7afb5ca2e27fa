//! What the coordinator tells the threads and the threads tell the coordinator, without a lock.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Shared by the coordinator and all threads.
#[derive(Debug)]
pub(crate) struct Control {
    /// When the first connection is opened.
    pub(crate) ramp_start_ns: u64,
    start_ns: AtomicU64,
    hold_start_ns: AtomicU64,
    hold_end_ns: AtomicU64,
    stop: AtomicBool,
    gauges: Box<[Gauge]>,
}

/// The load's times on the monotonic clock, once it is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

/// One thread's counts for the coordinator to read while it runs; written once per turn.
#[derive(Debug, Default)]
#[repr(align(128))] // two cache lines: neighbours are fetched in pairs
pub(crate) struct Gauge {
    /// Kernel's number of the thread.
    pub(crate) thread_id: AtomicU64,
    /// Clients connected and subscribed at some time.
    pub(crate) ready: AtomicU64,
    /// Clients that did not get that far.
    pub(crate) failed: AtomicU64,
    /// Clients lost after they were ready.
    pub(crate) lost: AtomicU64,
    /// Messages sent.
    pub(crate) sent: AtomicU64,
    /// Messages received.
    pub(crate) received: AtomicU64,
    /// Deliveries that the messages sent ought to cause.
    pub(crate) expected: AtomicU64,
    /// Deliveries for the first time.
    pub(crate) distinct: AtomicU64,
    /// Messages sent with QoS 1 or 2 and not acknowledged, and messages due and held back.
    pub(crate) pending: AtomicU64,
}

/// Sum of all gauges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Clients connected and subscribed at some time.
    pub ready: u64,
    /// Clients that did not get that far.
    pub failed: u64,
    /// Clients lost after they were ready.
    pub lost: u64,
    /// Messages sent.
    pub sent: u64,
    /// Messages received.
    pub received: u64,
    /// Deliveries that the messages sent ought to cause.
    pub expected: u64,
    /// Deliveries for the first time.
    pub distinct: u64,
    /// Messages not acknowledged or not even sent yet.
    pub pending: u64,
}

impl Control {
    pub(crate) fn new(threads: usize, ramp_start_ns: u64) -> Self {
        Self {
            ramp_start_ns,
            start_ns: AtomicU64::new(0),
            hold_start_ns: AtomicU64::new(u64::MAX),
            hold_end_ns: AtomicU64::new(u64::MAX),
            stop: AtomicBool::new(false),
            gauges: (0..threads).map(|_| Gauge::default()).collect(),
        }
    }

    /// Sets when the load starts and ends; only the first call counts.
    pub(crate) fn start(&self, timeline: Timeline) {
        self.hold_start_ns
            .store(timeline.hold_start_ns, Ordering::Relaxed);
        self.hold_end_ns
            .store(timeline.hold_end_ns, Ordering::Relaxed);
        // Release: a thread that sees the start sees the two above.
        self.start_ns.store(timeline.start_ns, Ordering::Release);
    }

    /// Ends the hold earlier than planned.
    pub(crate) fn end_hold(&self, at_ns: u64) {
        self.hold_end_ns.fetch_min(at_ns, Ordering::Relaxed);
    }

    pub(crate) fn timeline(&self) -> Option<Timeline> {
        let start_ns = self.start_ns.load(Ordering::Acquire);
        (start_ns != 0).then(|| Timeline {
            start_ns,
            hold_start_ns: self.hold_start_ns.load(Ordering::Relaxed),
            hold_end_ns: self.hold_end_ns.load(Ordering::Relaxed),
        })
    }

    /// Tells the threads to disconnect their clients and end.
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
            sum.failed += gauge.failed.load(Ordering::Relaxed);
            sum.lost += gauge.lost.load(Ordering::Relaxed);
            sum.sent += gauge.sent.load(Ordering::Relaxed);
            sum.received += gauge.received.load(Ordering::Relaxed);
            sum.expected += gauge.expected.load(Ordering::Relaxed);
            sum.distinct += gauge.distinct.load(Ordering::Relaxed);
            sum.pending += gauge.pending.load(Ordering::Relaxed);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hold_can_only_get_shorter() {
        let control = Control::new(1, 0);
        assert_eq!(control.timeline(), None);
        control.start(Timeline {
            start_ns: 10,
            hold_start_ns: 20,
            hold_end_ns: 30,
        });
        control.end_hold(25);
        control.end_hold(40);
        let timeline = control.timeline().unwrap();
        assert_eq!((timeline.start_ns, timeline.hold_end_ns), (10, 25));
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
