//! Counts of a listener.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of a listener since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// Connections now, those in their handshake included.
    pub connections: usize,
    /// Handshakes now.
    pub handshakes: usize,
    /// Connections handed over.
    pub accepted: u64,
    /// Clients that had to prove their address first.
    pub retried: u64,
    /// Times that a new connection had to wait for its host.
    pub deferred: u64,
    /// Connections refused at `connections_max`, or while the listener closes.
    pub refused: u64,
    /// First packets left unanswered at `handshakes_max`.
    pub ignored: u64,
    /// Handshakes that failed: certificates, application protocol, no stream.
    pub handshakes_failed: u64,
    /// Handshakes that took too long.
    pub handshakes_late: u64,
    /// Connections for which the system gave no socket pair.
    pub sockets_lacking: u64,
    /// Streams refused beyond the first of a connection.
    pub streams_refused: u64,
    /// Connections that ended because the peer was silent.
    pub timed_out: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) accepted: AtomicU64,
    pub(super) retried: AtomicU64,
    pub(super) deferred: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) ignored: AtomicU64,
    pub(super) handshakes_failed: AtomicU64,
    pub(super) handshakes_late: AtomicU64,
    pub(super) sockets_lacking: AtomicU64,
    pub(super) streams_refused: AtomicU64,
    pub(super) timed_out: AtomicU64,
}

impl Counters {
    pub(super) fn read(&self, connections: usize, handshakes: usize) -> Metrics {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Metrics {
            connections,
            handshakes,
            accepted: read(&self.accepted),
            retried: read(&self.retried),
            deferred: read(&self.deferred),
            refused: read(&self.refused),
            ignored: read(&self.ignored),
            handshakes_failed: read(&self.handshakes_failed),
            handshakes_late: read(&self.handshakes_late),
            sockets_lacking: read(&self.sockets_lacking),
            streams_refused: read(&self.streams_refused),
            timed_out: read(&self.timed_out),
        }
    }
}

/// Adds one and returns the sum.
pub(super) fn count(counter: &AtomicU64) -> u64 {
    counter.fetch_add(1, Ordering::Relaxed) + 1
}
