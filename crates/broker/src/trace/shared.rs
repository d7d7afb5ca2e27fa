//! The part of a trace that the workers and its reader share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use crossbeam_utils::CachePadded;

use super::{TRACES_MAX, TraceEnd, TraceRequest, TracedPacket};

/// Packets of one worker that wait for the reader, which looks every 20 ms: a worker may offer
/// [`PACKETS_PER_SECOND`](super::taps::PACKETS_PER_SECOND).
const WAITING_MAX: usize = 1024;
/// Bytes of them. A packet has at most 16 KiB.
const WAITING_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// The numbers of the traces of a node.
#[derive(Debug, Default)]
pub(crate) struct TraceSlots(AtomicU8);

impl TraceSlots {
    /// Takes a number that no other trace has; none if there are too many traces.
    fn take(&self) -> Option<usize> {
        let free = |taken: u8| (taken != u8::MAX).then(|| taken | (taken + 1));
        let before = self
            .0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, free)
            .ok()?;
        Some(before.trailing_ones() as usize)
    }

    /// Gives a number back, once no worker has the trace any longer.
    fn give_back(&self, slot: usize) {
        self.0.fetch_and(!(1 << slot), Ordering::AcqRel);
    }
}

const _: () = assert!(TRACES_MAX == u8::BITS as usize, "one bit for each trace");

/// A trace, as workers and reader see it.
#[derive(Debug)]
pub(crate) struct SharedTrace {
    /// Its number among the traces of the node, which is given back when neither a worker nor the
    /// reader has the trace any longer.
    pub(crate) slot: usize,
    slots: Arc<TraceSlots>,
    pub(crate) request: TraceRequest,
    /// It ends then, as time since the start of the node.
    pub(crate) until: Duration,
    /// Packets and bytes that were taken so far, by all workers.
    packets: AtomicU64,
    bytes: AtomicU64,
    /// A [`TraceEnd`], or 0.
    end: AtomicU8,
    queues: Box<[CachePadded<TraceQueue>]>,
}

/// The queue of one worker, which only this worker fills.
#[derive(Debug)]
struct TraceQueue {
    sender: SyncSender<TracedPacket>,
    /// Bytes in the queue.
    bytes: AtomicU64,
    /// Packets that are left out since the reader looked.
    left_out: AtomicU64,
}

impl SharedTrace {
    /// A trace, and the ends of its queues; none if there are too many traces.
    pub(crate) fn new(
        slots: &Arc<TraceSlots>,
        request: TraceRequest,
        until: Duration,
        workers: usize,
    ) -> Option<(Self, Vec<Receiver<TracedPacket>>)> {
        let slot = slots.take()?;
        let mut receivers = Vec::new();
        let queues = (0..workers).map(|_| {
            let (sender, receiver) = sync_channel(WAITING_MAX);
            receivers.push(receiver);
            CachePadded::new(TraceQueue {
                sender,
                bytes: AtomicU64::new(0),
                left_out: AtomicU64::new(0),
            })
        });
        let queues = queues.collect();
        let trace = Self {
            slot,
            slots: Arc::clone(slots),
            request,
            until,
            packets: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            end: AtomicU8::new(0),
            queues,
        };
        Some((trace, receivers))
    }

    /// Why the trace has ended, if it has.
    pub(crate) fn end(&self) -> Option<TraceEnd> {
        match self.end.load(Ordering::Acquire) {
            1 => Some(TraceEnd::Time),
            2 => Some(TraceEnd::Packets),
            3 => Some(TraceEnd::Bytes),
            4 => Some(TraceEnd::Stopped),
            _ => None,
        }
    }

    /// Ends the trace; the first reason counts.
    pub(crate) fn end_with(&self, why: TraceEnd) {
        let number = match why {
            TraceEnd::Time => 1,
            TraceEnd::Packets => 2,
            TraceEnd::Bytes => 3,
            TraceEnd::Stopped => 4,
        };
        let ended = self
            .end
            .compare_exchange(0, number, Ordering::AcqRel, Ordering::Acquire);
        // Another reason may have been first.
        ended.ok();
    }

    /// Whether the trace is over, and ends it if its time is.
    pub(crate) fn is_over(&self, elapsed: Duration) -> bool {
        if elapsed >= self.until {
            self.end_with(TraceEnd::Time);
        }
        self.end().is_some()
    }

    /// Adds a packet of a worker, or counts it as left out. Never waits.
    pub(super) fn offer(&self, worker: usize, packet: TracedPacket) {
        let queue = &self.queues[worker];
        let len = packet.bytes.len() as u64;
        if queue.bytes.load(Ordering::Relaxed) + len > WAITING_BYTES_MAX {
            self.leave_out(worker);
            return;
        }
        queue.bytes.fetch_add(len, Ordering::Relaxed);
        match queue.sender.try_send(packet) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                queue.bytes.fetch_sub(len, Ordering::Relaxed);
                self.leave_out(worker);
                return;
            }
        }
        let packets = self.packets.fetch_add(1, Ordering::Relaxed) + 1;
        let bytes = self.bytes.fetch_add(len, Ordering::Relaxed) + len;
        if packets >= self.request.packets_max {
            self.end_with(TraceEnd::Packets);
        } else if bytes >= self.request.bytes_max {
            self.end_with(TraceEnd::Bytes);
        }
    }

    /// Counts a packet that is not in the trace.
    pub(super) fn leave_out(&self, worker: usize) {
        let left_out = &self.queues[worker].left_out;
        left_out.fetch_add(1, Ordering::Relaxed);
    }

    /// The reader has taken a packet of a worker.
    pub(super) fn taken(&self, worker: usize, packet: &TracedPacket) {
        let bytes = &self.queues[worker].bytes;
        bytes.fetch_sub(packet.bytes.len() as u64, Ordering::Relaxed);
    }

    /// Packets that were left out since the last call.
    pub(super) fn take_left_out(&self) -> u64 {
        let queues = self.queues.iter();
        queues
            .map(|queue| queue.left_out.swap(0, Ordering::Relaxed))
            .sum()
    }
}

impl Drop for SharedTrace {
    fn drop(&mut self) {
        self.slots.give_back(self.slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_trace_has_a_number_of_its_own() {
        let slots = TraceSlots::default();
        let taken: Vec<usize> = std::iter::from_fn(|| slots.take()).collect();
        assert_eq!(taken, [0, 1, 2, 3, 4, 5, 6, 7]);
        slots.give_back(3);
        slots.give_back(5);
        assert_eq!(
            [slots.take(), slots.take(), slots.take()],
            [Some(3), Some(5), None]
        );
    }
}
