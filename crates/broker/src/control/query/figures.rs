//! The figures of the node: its counters and gauges, those of its parts, the stages of messages,
//! and the work of the storage.
//!
//! All of them are read where they are counted, without asking a worker and without a lock that a
//! worker takes, so that they are told while the workers are overloaded, too.

use std::sync::Arc;

use thrum_engine::node::metrics::Counter;
use thrum_engine::sinks::SinkCounts;
use thrum_engine::stages::StageFigures;
use thrum_engine::workers::WorkerId;
use thrum_storage::{Health, MetricsSnapshot};

use super::Backlog;
use super::sender::QuerySender;
use super::topic_metrics::{self, TopicMetric};
use crate::listener::Gate;
use crate::process::{ProcessFigures, process_figures};
use crate::sys_topics;
use crate::telemetry::{ExportFate, ExportFigures, Signal};

/// The figures of the node at one moment; counts are since its start.
#[derive(Clone, Debug)]
pub struct Figures {
    /// Every counter and gauge by its name below `$SYS/broker/`.
    pub counters: Vec<(String, u64)>,
    /// Requests to backends of authentication and their answers, by their names below
    /// `$SYS/broker/`.
    pub backends: Vec<(String, u64)>,
    /// The storage; none on a node that keeps everything in memory.
    pub storage: Option<StorageFigures>,
    /// What is true of the whole node.
    pub node: NodeFigures,
    /// The workers, by number.
    pub workers: Vec<WorkerFigures>,
    /// The listeners that accept clients, by name.
    pub listeners: Vec<ListenerFigures>,
    /// The sinks.
    pub sinks: Vec<SinkFigures>,
    /// The stages of stamped messages; none if no message is stamped.
    pub stages: Option<StageFigures>,
    /// The filters whose messages are counted.
    pub topic_metrics: Vec<TopicMetric>,
    /// The process.
    pub process: ProcessFigures,
    /// What was exported by OTLP; empty if nothing ever was.
    pub exports: Vec<ExportFigures>,
}

/// What is true of the whole node.
#[derive(Clone, Copy, Debug)]
pub struct NodeFigures {
    /// Version of the program.
    pub version: &'static str,
    /// When the node started, in milliseconds of the Unix epoch.
    pub started_at: u64,
    /// Retained messages and their memory, without those of the node.
    pub retained: Backlog,
    /// Of these, those that new subscribers do not receive.
    pub retained_withheld: u64,
    /// `limits.memory` in bytes; none if there is none.
    pub memory_limit_bytes: Option<u64>,
    /// How short memory is, from 0 (not at all) to 4 (new clients are refused).
    pub memory_level: u64,
    /// One of this many PUBLISH packets is stamped; 0 is none.
    pub stamp_every: u32,
}

/// One worker.
#[derive(Clone, Copy, Debug, Default)]
pub struct WorkerFigures {
    /// Sessions that it owns.
    pub sessions: u64,
    /// Of these, those with a connection.
    pub clients: u64,
    /// PUBLISH packets received.
    pub messages_received: u64,
    /// PUBLISH packets sent.
    pub messages_sent: u64,
    /// Turns of its loop.
    pub turns: u64,
    /// Mail of other workers that waits.
    pub mailbox: Backlog,
    /// It leaves new connections in the backlog.
    pub defers_connections: bool,
    /// It reads publishers less.
    pub slows_publishers: bool,
}

/// One listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerFigures {
    /// Name in the configuration.
    pub name: Arc<str>,
    /// Connections through it, those in their handshake among them.
    pub connections: u64,
    /// Their limit; none if there is none.
    pub connections_max: Option<u64>,
}

/// One sink.
#[derive(Clone, Debug)]
pub struct SinkFigures {
    /// Name in the configuration.
    pub name: String,
    /// Its counts.
    pub counts: SinkCounts,
}

/// The work of the storage thread.
#[derive(Clone, Debug)]
pub struct StorageFigures {
    /// `healthy`, `full` or `failing`.
    pub health: &'static str,
    /// Its counters, by their names below `$SYS/broker/`.
    pub counters: Vec<(&'static str, u64)>,
    /// Commits by their time, write and sync.
    pub commit_times: Vec<ClassOfTime>,
    /// Sum of the times of all commits in microseconds.
    pub commit_micros: u64,
    /// The files of the log, and their cleaning.
    pub cleaning: CleaningFigures,
}

/// The files of the log, and their cleaning since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CleaningFigures {
    /// Files of the log.
    pub segments: u64,
    /// Files that were reclaimed.
    pub segments_cleaned: u64,
    /// Records that were moved for that.
    pub records_moved: u64,
    /// Reads, renames and removals that failed; they are tried again.
    pub failures: u64,
}

/// One class of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassOfTime {
    /// Upper bound of the class, exclusive; none for the last class.
    pub micros_below: Option<u64>,
    /// Commits of the class.
    pub count: u64,
}

/// See [`Queries::figures`](super::Queries::figures).
pub(super) fn figures(sender: &QuerySender) -> Figures {
    let state = &sender.node().state;
    let mut backends = Vec::new();
    let access = sender.control.access();
    if let Some(gatekeeper) = access.access.gatekeeper.as_deref() {
        gatekeeper.figures(&mut |name, value| backends.push((name.to_owned(), value)));
    }
    let sinks = state.sinks.iter().map(|sink| SinkFigures {
        name: sink.name.to_string(),
        counts: sink.queue.counts(),
    });
    Figures {
        counters: sys_topics::counters(&state.metrics).collect(),
        backends,
        storage: storage(sender).map(|(health, metrics)| storage_figures(health, &metrics)),
        node: node_figures(sender),
        workers: sender
            .workers()
            .map(|id| worker_figures(sender, id))
            .collect(),
        listeners: sender
            .control
            .gates()
            .iter()
            .map(listener_figures)
            .collect(),
        sinks: sinks.collect(),
        stages: state.stages.merged(),
        topic_metrics: topic_metrics::list(sender),
        process: process_figures(),
        exports: exports(sender),
    }
}

/// What was exported; the workers count the spans that found too many waiting, or nobody to take
/// them.
fn exports(sender: &QuerySender) -> Vec<ExportFigures> {
    let (counts, spans) = (&sender.control.exports, &sender.node().state.spans);
    counts.add(Signal::Traces, ExportFate::QueueFull, spans.take_dropped());
    counts.add(Signal::Traces, ExportFate::Stopped, spans.take_untaken());
    counts.figures()
}

/// Health and counters of the storage thread; none if there is no storage.
pub(super) fn storage(sender: &QuerySender) -> Option<(Health, MetricsSnapshot)> {
    let monitor = sender.node().storage.get()?;
    Some((monitor.health(), monitor.metrics()))
}

fn node_figures(sender: &QuerySender) -> NodeFigures {
    let node = sender.node();
    let (messages, bytes) = node.state.retained.size();
    let (limit, stamp_every) = sender
        .control
        .with_config(|config| (config.limits.memory, config.node.stamp_messages));
    NodeFigures {
        version: env!("CARGO_PKG_VERSION"),
        started_at: node.state.wall.millis(node.clock.started()),
        retained: Backlog {
            messages: messages as u64,
            bytes: bytes as u64,
        },
        retained_withheld: node.state.retained.withheld() as u64,
        memory_limit_bytes: (limit > 0).then_some(limit),
        memory_level: node.state.memory.level() as u64,
        stamp_every,
    }
}

fn worker_figures(sender: &QuerySender, worker: WorkerId) -> WorkerFigures {
    let state = &sender.node().state;
    let row = state.metrics.row(worker.index());
    let (messages, bytes) = state.mailbox_level(worker).waiting();
    WorkerFigures {
        sessions: row.count(Counter::Sessions),
        clients: row.count(Counter::ClientsConnected),
        messages_received: row.count(Counter::PublishReceived),
        messages_sent: row.count(Counter::PublishSent),
        turns: row.count(Counter::Turns),
        mailbox: Backlog {
            messages: messages as u64,
            bytes: bytes as u64,
        },
        defers_connections: row.count(Counter::OverloadDeferring) > 0,
        slows_publishers: row.count(Counter::OverloadSlowing) > 0,
    }
}

fn listener_figures(gate: &Arc<Gate>) -> ListenerFigures {
    let (connections, connections_max) = gate.connections();
    ListenerFigures {
        name: Arc::clone(&gate.name),
        connections: connections.into(),
        connections_max: connections_max.map(u64::from),
    }
}

fn storage_figures(health: Health, metrics: &MetricsSnapshot) -> StorageFigures {
    let last = metrics.commit_times.len() - 1;
    let classes = metrics.commit_times.iter().enumerate();
    let classes = classes.map(|(class, count)| ClassOfTime {
        micros_below: (class < last).then(|| 1 << class),
        count: *count,
    });
    StorageFigures {
        health: sys_topics::health_words(health),
        counters: sys_topics::storage_counters(metrics).to_vec(),
        commit_times: classes.collect(),
        commit_micros: metrics.commit_micros,
        cleaning: CleaningFigures {
            segments: metrics.usage.segments as u64,
            segments_cleaned: metrics.usage.reclaimed_segments,
            records_moved: metrics.usage.moved_records,
            failures: metrics.usage.reclaim_failures,
        },
    }
}
