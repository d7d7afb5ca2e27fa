//! The reader of a trace.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use super::{SharedTrace, TraceEnd, TraceItem, TracedPacket};
use crate::control::{Control, end_trace};

/// The reader looks for packets at this interval: it is not woken, as that would cost the worker a
/// system call for each packet.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Packets of one worker that are taken at a time, to be put into the order of their times with
/// those of other workers.
const BATCH_MAX: usize = 1024;

/// A trace that runs. It ends by itself, and when it is dropped.
#[derive(Debug)]
pub struct LiveTrace {
    control: Arc<Control>,
    trace: Arc<SharedTrace>,
    queues: Vec<Receiver<TracedPacket>>,
    ready: VecDeque<TracedPacket>,
    has_ended: bool,
}

impl LiveTrace {
    pub(crate) const fn new(
        control: Arc<Control>,
        trace: Arc<SharedTrace>,
        queues: Vec<Receiver<TracedPacket>>,
    ) -> Self {
        Self {
            control,
            trace,
            queues,
            ready: VecDeque::new(),
            has_ended: false,
        }
    }

    /// What the trace tells next; none if there is nothing new, or if it has told its end. Never
    /// waits.
    pub fn poll(&mut self) -> Option<TraceItem> {
        if self.has_ended {
            return None;
        }
        if let Some(packet) = self.ready.pop_front() {
            return Some(TraceItem::Packet(packet));
        }
        // What a worker has offered before the end was seen is in its queue by then.
        self.trace.is_over(self.control.node().clock.elapsed());
        if self.control.is_stopping() {
            self.trace.end_with(TraceEnd::Stopped);
        }
        let end = self.trace.end();
        self.take();
        if let Some(packet) = self.ready.pop_front() {
            return Some(TraceItem::Packet(packet));
        }
        match self.trace.take_left_out() {
            0 => {}
            left_out => return Some(TraceItem::LeftOut(left_out)),
        }
        let end = end?;
        self.has_ended = true;
        Some(TraceItem::Ended(end))
    }

    /// Whether it has told its end.
    pub const fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Takes the packets that wait, in the order of their times.
    fn take(&mut self) {
        let node = self.control.node();
        // The time of the start of the node, by the wall clock as it is set now.
        let started = node.state.wall.millis(node.clock.at(Duration::ZERO));
        for (worker, queue) in self.queues.iter().enumerate() {
            for mut packet in queue.try_iter().take(BATCH_MAX) {
                self.trace.taken(worker, &packet);
                packet.at_micros = packet
                    .at_micros
                    .saturating_add(started.saturating_mul(1000));
                self.ready.push_back(packet);
            }
        }
        let ready = self.ready.make_contiguous();
        ready.sort_by_key(|packet| packet.at_micros);
    }
}

/// Waits for what the trace tells, up to its end.
impl Iterator for LiveTrace {
    type Item = TraceItem;

    fn next(&mut self) -> Option<TraceItem> {
        while !self.has_ended {
            if let Some(item) = self.poll() {
                return Some(item);
            }
            std::thread::park_timeout(POLL_INTERVAL);
        }
        None
    }
}

impl Drop for LiveTrace {
    fn drop(&mut self) {
        end_trace(&self.control, &self.trace);
    }
}
