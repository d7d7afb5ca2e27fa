//! The figures of the node: its counters, those of the backends, and the work of the storage.

use thrum_storage::{Health, MetricsSnapshot};

use super::QueryError;
use super::sender::{FIRST_WORKER, QuerySender};
use super::tasks::{TaskProgress, WorkerTask};
use crate::sys_topics;
use crate::traffic::Traffic;

/// The counters of the node since its start.
#[derive(Clone, Debug)]
pub struct Figures {
    /// Every counter and gauge by its name below `$SYS/broker/`.
    pub counters: Vec<(String, u64)>,
    /// Requests to backends of authentication and their answers, by their names below
    /// `$SYS/broker/`.
    pub backends: Vec<(String, u64)>,
    /// The storage; none on a node that keeps everything in memory.
    pub storage: Option<StorageFigures>,
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
pub(super) fn figures(sender: &QuerySender) -> Result<Figures, QueryError> {
    let storage = storage(sender)?;
    let counters = sys_topics::counters(&sender.node().state.metrics);
    let mut backends = Vec::new();
    let access = sender.control.access();
    if let Some(gatekeeper) = access.access.gatekeeper.as_deref() {
        gatekeeper.figures(&mut |name, value| backends.push((name.to_owned(), value)));
    }
    Ok(Figures {
        counters: counters.collect(),
        backends,
        storage: storage.map(|(health, metrics)| storage_figures(health, &metrics)),
    })
}

/// Health and counters of the storage thread; none if there is no storage.
pub(super) fn storage(
    sender: &QuerySender,
) -> Result<Option<(Health, MetricsSnapshot)>, QueryError> {
    sender.query_worker(FIRST_WORKER, || ReadStorage)
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
    }
}

#[derive(Debug)]
struct ReadStorage;

impl WorkerTask for ReadStorage {
    type Answer = Option<(Health, MetricsSnapshot)>;

    fn advance(&mut self, traffic: &mut Traffic) -> TaskProgress<Self::Answer> {
        let journal = traffic.engine.core.durable.journal.as_deref();
        TaskProgress::Done(journal.map(|journal| (journal.health(), journal.metrics())))
    }
}
