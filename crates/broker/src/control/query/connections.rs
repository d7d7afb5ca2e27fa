//! Connections by state.

use super::QueryError;
use super::sender::QuerySender;
use super::tasks::{TaskProgress, WorkerTask};
use crate::connection::{Connection, Phase};
use crate::traffic::Traffic;
use thrum_engine::ids::ConnectionKey;

/// Connections by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionCounts {
    /// The PROXY header or the handshake of TLS or WebSocket is not complete.
    pub in_handshake: u64,
    /// The broker waits for CONNECT.
    pub awaiting_connect: u64,
    /// CONNECT was received; the answer of a backend, the client or a worker is pending.
    pub authenticating: u64,
    /// The client has a session.
    pub established: u64,
    /// The broker writes the last output.
    pub closing: u64,
}

impl ConnectionCounts {
    fn count(&mut self, connection: &Connection) {
        let count = match &connection.phase {
            Phase::Draining(_) => &mut self.closing,
            Phase::Established { .. } => &mut self.established,
            Phase::Admission(_) | Phase::Challenged(_) => &mut self.authenticating,
            Phase::Proxy => &mut self.in_handshake,
            Phase::Handshake(_) if connection.in_handshake => &mut self.in_handshake,
            Phase::Handshake(_) => &mut self.awaiting_connect,
        };
        *count += 1;
    }

    pub(super) fn add(&mut self, other: Self) {
        self.in_handshake += other.in_handshake;
        self.awaiting_connect += other.awaiting_connect;
        self.authenticating += other.authenticating;
        self.established += other.established;
        self.closing += other.closing;
    }
}

/// Counts the connections, also those without a session.
pub(super) fn connections(sender: &QuerySender) -> Result<ConnectionCounts, QueryError> {
    let mut all = ConnectionCounts::default();
    for counts in sender.query_all(CountConnections::default)? {
        all.add(counts);
    }
    Ok(all)
}

/// The iteration of one worker over its connections.
#[derive(Debug, Default)]
pub(super) struct CountConnections {
    next: usize,
    end: Option<usize>,
    counts: ConnectionCounts,
}

impl WorkerTask for CountConnections {
    type Answer = ConnectionCounts;

    fn advance(&mut self, traffic: &mut Traffic) -> TaskProgress<ConnectionCounts> {
        let connections = &traffic.edge.connections;
        let end = *self.end.get_or_insert_with(|| connections.capacity());
        while self.next < end {
            let key = ConnectionKey::new(self.next);
            let connection = key.and_then(|key| traffic.edge.connections.get(key));
            if let Some(connection) = connection {
                self.counts.count(connection);
            }
            traffic.engine.core.turn.work += 1;
            self.next += 1;
            if self.next < end && traffic.engine.core.turn.is_portion_over() {
                return TaskProgress::More;
            }
        }
        TaskProgress::Done(self.counts)
    }
}
