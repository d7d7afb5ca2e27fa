//! Spans that have ended, on their way to whoever exports them.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, OnceLock, PoisonError};

use thrum_codec::QoS;

use super::context::TraceContext;

/// Spans that wait, of all workers: two for a message with one receiver, so 500 messages a second
/// for an exporter that looks each second, and twice as many for a collector that takes a second.
pub const WAITING_MAX: usize = 2048;

/// What a span is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// A message from its publisher to its receivers.
    Received,
    /// A message to one receiver.
    Delivered,
}

/// How a span ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanOutcome {
    /// All receivers have been offered the message.
    Routed,
    /// Its last byte is written. With QoS 1 and 2, its acknowledgement is not known.
    Written,
    /// Its receiver has acknowledged it.
    Acknowledged,
    /// It stands in the queue of its session.
    Queued,
    /// It stands in the output of its receiver; too many are followed to see it written.
    Unfollowed,
    /// The connection ended before it was written.
    ConnectionEnded,
    /// The receiver does not get it.
    Dropped,
}

/// A span that has ended.
#[derive(Clone, Debug)]
pub struct Span {
    /// Its trace, and itself.
    pub context: TraceContext,
    /// The span above it in the trace.
    pub parent_id: Option<u64>,
    /// The state of other systems.
    pub state: Option<Box<str>>,
    /// What it is about.
    pub kind: SpanKind,
    /// When it began, in nanoseconds since the start of the node.
    pub begin_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// When its receivers were known; 0 if that is not part of it.
    pub routed_ns: u64,
    /// When its last byte was written, if it ended later; 0 if it did not, or that is not known.
    pub written_ns: u64,
    /// The publisher, or the receiver.
    pub client_id: Box<str>,
    /// The topic.
    pub topic: Box<str>,
    /// Quality of service of the PUBLISH.
    pub qos: QoS,
    /// Bytes of the payload.
    pub payload_bytes: u64,
    /// How it ended.
    pub outcome: SpanOutcome,
}

/// Spans that wait. Workers never wait for it.
#[derive(Debug, Default)]
pub struct SpanQueue {
    /// Made with the first span. The lock is for whoever takes spans, and no worker takes it.
    channel: OnceLock<(SyncSender<Span>, Mutex<Receiver<Span>>)>,
    /// How many take spans: one, and for a moment two when an export follows another one.
    takers: AtomicUsize,
    dropped: AtomicU64,
    untaken: AtomicU64,
}

impl SpanQueue {
    /// Somebody takes spans from now on. Those of before are not among them.
    pub fn begin_taking(&self) {
        if self.takers.fetch_add(1, Ordering::AcqRel) == 0 {
            self.drop_waiting();
        }
    }

    /// Somebody takes no more spans. If nobody does, those that wait are dropped and counted: they
    /// would come out with the next export, hours later.
    pub fn end_taking(&self) {
        if self.takers.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.drop_waiting();
        }
    }

    fn drop_waiting(&self) {
        let waiting = self.take(WAITING_MAX).len();
        self.untaken.fetch_add(waiting as u64, Ordering::Relaxed);
    }

    /// Adds a span; one that finds too many waiting, or that nobody takes, is dropped and counted.
    pub(super) fn pass(&self, span: Span) {
        if self.takers.load(Ordering::Relaxed) == 0 {
            self.untaken.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let (sender, _) = self.channel.get_or_init(|| {
            let (sender, receiver) = sync_channel(WAITING_MAX);
            (sender, Mutex::new(receiver))
        });
        if sender.try_send(span).is_err() {
            self.drop_spans(1);
        }
    }

    /// Counts spans that were left out.
    pub(super) fn drop_spans(&self, spans: u64) {
        self.dropped.fetch_add(spans, Ordering::Relaxed);
    }

    /// Takes the oldest spans, so many at most.
    pub fn take(&self, max: usize) -> Vec<Span> {
        let Some((_, receiver)) = self.channel.get() else {
            return Vec::new();
        };
        let receiver = receiver.lock().unwrap_or_else(PoisonError::into_inner);
        receiver.try_iter().take(max).collect()
    }

    /// How many were dropped since the last call because too many waited.
    pub fn take_dropped(&self) -> u64 {
        self.dropped.swap(0, Ordering::Relaxed)
    }

    /// How many were dropped since the last call because nobody takes spans.
    pub fn take_untaken(&self) -> u64 {
        self.untaken.swap(0, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(span_id: u64) -> Span {
        Span {
            context: TraceContext {
                trace_id: 1,
                span_id,
            },
            parent_id: None,
            state: None,
            kind: SpanKind::Received,
            begin_ns: 0,
            end_ns: 0,
            routed_ns: 0,
            written_ns: 0,
            client_id: "".into(),
            topic: "".into(),
            qos: QoS::AtMostOnce,
            payload_bytes: 0,
            outcome: SpanOutcome::Routed,
        }
    }

    #[test]
    fn a_full_queue_drops_the_newest_spans_and_counts_them() {
        let queue = SpanQueue::default();
        queue.begin_taking();
        assert!(queue.take(9).is_empty());
        let all = WAITING_MAX as u64 + 3;
        (0..all).for_each(|id| queue.pass(span(id)));
        assert_eq!((queue.take_dropped(), queue.take_dropped()), (3, 0));
        let ids = |spans: Vec<Span>| -> Vec<u64> {
            spans.iter().map(|span| span.context.span_id).collect()
        };
        assert_eq!(ids(queue.take(2)), [0, 1]);
        assert_eq!(queue.take(usize::MAX).len(), WAITING_MAX - 2);
    }

    #[test]
    fn spans_that_nobody_takes_are_counted_and_do_not_wait_for_whoever_takes_the_next_ones() {
        let queue = SpanQueue::default();
        queue.pass(span(1));
        queue.begin_taking();
        queue.pass(span(2));
        // An export follows another one: what waits is for the next one.
        queue.begin_taking();
        queue.end_taking();
        assert_eq!(queue.take_untaken(), 1);
        queue.end_taking();
        queue.pass(span(3));
        assert_eq!((queue.take_untaken(), queue.take_dropped()), (2, 0));
        queue.begin_taking();
        assert!(queue.take(9).is_empty());
    }
}
