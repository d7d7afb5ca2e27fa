//! The counters of one moment.

use std::time::Duration;

use thrum_engine::node::metrics::Counter;
use thrum_engine::stages::{MessageStage, StageSeries};

use crate::control::query::QuerySender;
use crate::process::process_figures;
use crate::sys_topics::{DROPS, dropped, refused};

/// Counters since the start and gauges, at one moment.
#[derive(Clone, Debug)]
pub struct Pulse {
    /// Milliseconds of the Unix epoch.
    pub at: u64,
    /// Time since the start of the node, which does not jump.
    pub uptime: Duration,
    /// Clients that are connected.
    pub clients: u64,
    /// Sessions, also those without a connection.
    pub sessions: u64,
    /// Subscriptions, shared ones included.
    pub subscriptions: u64,
    /// Retained messages of clients.
    pub retained: u64,
    pub(super) rates: [u64; RATES.len()],
    pub(super) drops: [u64; DROPS.len()],
    pub(super) dropped: u64,
    pub(super) publishes_refused: u64,
    pub(super) cpu_millis: Option<u64>,
    /// Resident memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Deliveries of stamped messages; none if no message is stamped.
    pub(super) deliveries: Option<StageSeries>,
}

/// The counters whose rates are shown.
pub(super) const RATES: [Counter; 7] = [
    Counter::PublishReceived,
    Counter::PublishSent,
    Counter::BytesReceived,
    Counter::BytesSent,
    Counter::ConnectsAccepted,
    Counter::ConnectionsClosed,
    Counter::ConnectionsRefused,
];

pub(super) fn pulse(sender: &QuerySender) -> Pulse {
    let node = sender.node();
    let metrics = &node.state.metrics;
    let process = process_figures();
    Pulse {
        at: node.state.wall.millis(node.clock.now()),
        uptime: node.clock.elapsed(),
        clients: metrics.total(Counter::ClientsConnected),
        sessions: metrics.total(Counter::Sessions),
        subscriptions: metrics.total(Counter::Subscriptions),
        retained: node.state.retained.size().0 as u64,
        rates: RATES.map(|counter| metrics.total(counter)),
        drops: DROPS.map(|(_, counter)| metrics.total(counter)),
        dropped: dropped(metrics),
        publishes_refused: refused(metrics),
        cpu_millis: process.cpu_millis,
        memory_bytes: process.resident_bytes,
        deliveries: node.state.stages.merged_series(MessageStage::Broker),
    }
}
