//! A summary of the node.

use std::time::Duration;

use super::connections::connections;
use super::figures::storage;
use super::sender::QuerySender;
use super::{Backlog, ConnectionCounts, QueryError};
use crate::listener::Listening;
use crate::{sys_topics, system};
use thrum_engine::node::metrics::Counter;

/// A summary of the node.
#[derive(Clone, Debug)]
pub struct Status {
    /// Version of the program.
    pub version: &'static str,
    /// When the node started, in milliseconds of the Unix epoch.
    pub started_at: u64,
    /// The time since then.
    pub uptime: Duration,
    /// Worker threads.
    pub workers: usize,
    /// Sessions, also those without a connection.
    pub sessions: u64,
    /// Sessions that outlive their connection.
    pub sessions_persistent: u64,
    /// Sessions whose client is connected.
    pub clients_connected: u64,
    /// Connections by state.
    pub connections: ConnectionCounts,
    /// Subscriptions, shared ones included.
    pub subscriptions: u64,
    /// Retained messages and their memory, without those of the node.
    pub retained: Backlog,
    /// Resident memory in bytes; none if the system does not report it.
    pub memory_bytes: Option<u64>,
    /// Its limit (`limits.memory`); none if there is none.
    pub memory_limit_bytes: Option<u64>,
    /// `healthy`, `full` or `failing`; none on a node that keeps everything in memory.
    pub storage: Option<&'static str>,
    /// Addresses that accept clients.
    pub listeners: Vec<Listening>,
}

/// See [`Queries::status`](super::Queries::status).
pub(super) fn status(sender: &QuerySender) -> Result<Status, QueryError> {
    let connections = connections(sender)?;
    let storage = storage(sender);
    let node = sender.node();
    let total = |counter| node.state.metrics.total(counter);
    let (messages, bytes) = node.state.retained.size();
    let limit = sender.control.config().limits.memory;
    Ok(Status {
        version: env!("CARGO_PKG_VERSION"),
        started_at: node.state.wall.millis(node.clock.started()),
        uptime: node.clock.elapsed(),
        workers: node.workers(),
        sessions: total(Counter::Sessions),
        sessions_persistent: total(Counter::SessionsPersistent),
        clients_connected: total(Counter::ClientsConnected),
        connections,
        subscriptions: total(Counter::Subscriptions),
        retained: Backlog {
            messages: messages as u64,
            bytes: bytes as u64,
        },
        memory_bytes: system::resident_bytes(),
        memory_limit_bytes: (limit > 0).then_some(limit),
        storage: storage.map(|(health, _)| sys_topics::health_words(health)),
        listeners: sender.control.listening().clone(),
    })
}
