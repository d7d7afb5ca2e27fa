//! The part of a trace that the workers and its reader share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use crossbeam_utils::CachePadded;

use super::{TRACES_MAX, TraceEnd, TraceRequest, TracedPacket};

/// Packets of one worker that wait for the reader, which looks every 20 ms: a worker may offer
/// [`PACKETS_PER_SECOND`](super::taps::PACKETS_PER_SECOND).
const WAITING_MAX: u16 = 1024;
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
    /// Packets and bytes in the queue.
    packets: AtomicU64,
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
            let (sender, receiver) = sync_channel(WAITING_MAX.into());
            receivers.push(receiver);
            CachePadded::new(TraceQueue {
                sender,
                packets: AtomicU64::new(0),
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
        // Only this worker adds to the queue, so that it has room if it has some now.
        let is_full = queue.packets.load(Ordering::Relaxed) >= WAITING_MAX.into()
            || queue.bytes.load(Ordering::Relaxed) + len > WAITING_BYTES_MAX;
        if is_full {
            self.leave_out(worker);
            return;
        }
        // Several workers may have the last packet at the same time.
        let take = |packets| (packets < self.request.packets_max).then_some(packets + 1);
        let taken = self
            .packets
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        let Ok(before) = taken else {
            return;
        };
        let packets = before + 1;
        queue.packets.fetch_add(1, Ordering::Relaxed);
        queue.bytes.fetch_add(len, Ordering::Relaxed);
        if queue.sender.try_send(packet).is_err() {
            // The reader has gone, and nobody counts.
            return;
        }
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
        let queue = &self.queues[worker];
        queue.packets.fetch_sub(1, Ordering::Relaxed);
        queue
            .bytes
            .fetch_sub(packet.bytes.len() as u64, Ordering::Relaxed);
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

    fn packet() -> TracedPacket {
        TracedPacket {
            at_micros: 0,
            connection: 0,
            direction: super::super::Direction::FromClient,
            peer: std::net::SocketAddr::from(([127, 0, 0, 1], 1)).into(),
            client_id: Arc::default(),
            version: thrum_codec::Version::V5,
            topic: None,
            bytes: (*b"\xc0\0").into(),
            packet_bytes: 2,
            malformed: None,
        }
    }

    fn trace(packets_max: u64, workers: usize) -> (SharedTrace, Vec<Receiver<TracedPacket>>) {
        let request = TraceRequest {
            subject: super::super::TraceSubject::Client("a".into()),
            payloads: false,
            time: Duration::from_secs(5),
            packets_max,
            bytes_max: 1 << 20,
        };
        SharedTrace::new(&Arc::default(), request, Duration::from_secs(5), workers).unwrap()
    }

    #[test]
    fn a_trace_has_no_more_packets_than_it_may_have_however_many_workers_offer_the_last_one() {
        // Each worker has seen that the trace goes on before any of them offers its packet.
        let (trace, queues) = trace(3, 4);
        for worker in 0..4 {
            assert!(worker == 3 || trace.end().is_none());
            trace.offer(worker, packet());
        }
        assert_eq!(trace.end(), Some(TraceEnd::Packets));
        let taken = queues.iter().flat_map(Receiver::try_iter).count();
        assert_eq!((taken, trace.take_left_out()), (3, 0));
    }

    #[test]
    fn a_full_queue_leaves_packets_out_and_they_do_not_count_for_the_end() {
        let (trace, queues) = trace(u64::from(WAITING_MAX) + 1, 1);
        for _ in 0..=WAITING_MAX {
            trace.offer(0, packet());
        }
        assert_eq!((trace.end(), trace.take_left_out()), (None, 1));
        let first = queues[0].try_recv().unwrap();
        trace.taken(0, &first);
        trace.offer(0, packet());
        assert_eq!(trace.end(), Some(TraceEnd::Packets));
        assert_eq!(queues[0].try_iter().count(), usize::from(WAITING_MAX));
    }

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
