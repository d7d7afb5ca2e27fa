//! State that the engines of one node share.

pub mod mailbox_level;
pub mod memory;
pub mod metrics;
pub mod placement;
mod protection;
pub mod registry;
pub mod session_counts;
pub mod wall_clock;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crossbeam_utils::CachePadded;
use thrum_protection::BanBook;
use thrum_protocol::Time;
use thrum_routing::shared::Strategy;
use thrum_storage::{Recovered, Submitter};

pub use self::mailbox_level::{Capacity, MailboxLevel, Room};
use self::memory::NodeMemory;
use self::metrics::Metrics;
use self::placement::Placement;
use self::registry::Registry;
use self::session_counts::SessionCounts;
pub use self::wall_clock::WallClock;
use crate::durable::{Divided, Journal, MessageIds, Part, divide};
use crate::interest::Interest;
use crate::observation::TopicMetrics;
use crate::retained::{RetainedLimits, RetainedStore};
use crate::sinks::{Places, Sinks};
use crate::spans::SpanQueue;
use crate::stages::NodeStages;
use crate::workers::WorkerId;

/// Arguments for the creation of a node.
#[derive(Debug)]
pub struct NodeParts {
    /// The rule that assigns sessions to workers, which contains the number of workers.
    pub placement: Placement,
    /// The strategy by which shared groups choose a member.
    pub strategy: Strategy,
    /// Limits of the retained messages.
    pub retained: RetainedLimits,
    /// Limits of the mailbox of a worker.
    pub mailbox: Capacity,
    /// The bans in force.
    pub bans: Arc<BanBook>,
    /// The wall clock, which the shell updates.
    pub wall: Arc<WallClock>,
    /// Part of every client identifier that the node generates, so that it cannot be guessed.
    pub identity: u64,
}

/// State that the engines of all workers share.
#[derive(Debug)]
pub struct NodeState {
    /// The table of filters with their workers, shared groups and sinks.
    pub interest: Interest,
    /// The owning worker of each client identifier with a session.
    pub registry: Registry,
    /// The retained messages.
    pub retained: RetainedStore,
    /// The sinks of the node.
    pub sinks: Sinks,
    /// The counters of the node.
    pub metrics: Metrics,
    /// The durations of the stages of stamped messages.
    pub stages: NodeStages,
    /// The filters whose messages are counted.
    pub topic_metrics: TopicMetrics,
    /// Spans of traced messages that wait for their export.
    pub spans: SpanQueue,
    /// Number of sessions that outlive their connection, by user and address.
    pub session_counts: SessionCounts,
    /// The bans in force.
    pub bans: Arc<BanBook>,
    /// The wall clock, which the shell updates.
    pub wall: Arc<WallClock>,
    /// The levels of the mailboxes by worker number, each on cache lines of its own.
    mailboxes: Box<[Arc<CachePadded<MailboxLevel>>]>,
    /// The memory level, on cache lines of its own, as it is written while other workers read it.
    pub memory: CachePadded<NodeMemory>,
    /// Number of sessions that may hold publishers, because their queue is nearly full and they are
    /// a member of a shared group or have the policy `hold`. Read for each message with QoS 1 and
    /// 2.
    pub holding: CachePadded<AtomicUsize>,
    /// Number of workers that have submitted their restored state to the storage thread.
    pub taken_over: AtomicUsize,
    /// The next row of session numbers, on cache lines of its own, as it is written for each new
    /// session.
    session_rows: CachePadded<AtomicU64>,
    /// The number of the next event in a timeline, on cache lines of its own, as it is written for
    /// each event.
    timeline_events: CachePadded<AtomicU64>,
    /// The rule that assigns sessions to workers.
    pub placement: Placement,
    /// Part of every client identifier that the node generates.
    pub identity: u64,
}

impl NodeState {
    /// Creates a node without sessions.
    pub fn new(parts: NodeParts) -> Self {
        let NodeParts {
            placement,
            strategy,
            retained,
            mailbox,
            bans,
            wall,
            identity,
        } = parts;
        let workers = placement.workers().count();
        let level = |_| Arc::new(CachePadded::new(MailboxLevel::new(mailbox)));
        Self {
            interest: Interest::new(strategy, workers),
            registry: Registry::new(),
            retained: RetainedStore::new(retained, workers),
            sinks: Sinks::default(),
            metrics: Metrics::new(workers),
            stages: NodeStages::new(workers),
            topic_metrics: TopicMetrics::default(),
            spans: SpanQueue::default(),
            session_counts: SessionCounts::default(),
            bans,
            wall,
            mailboxes: (0..workers).map(level).collect(),
            memory: CachePadded::new(NodeMemory::new()),
            holding: CachePadded::default(),
            taken_over: AtomicUsize::new(0),
            session_rows: CachePadded::new(AtomicU64::new(1)),
            timeline_events: CachePadded::default(),
            placement,
            identity,
        }
    }

    /// Number of workers.
    #[inline]
    pub fn workers(&self) -> usize {
        self.mailboxes.len()
    }

    /// The level of the mailbox of a worker.
    #[inline]
    pub fn mailbox_level(&self, worker: WorkerId) -> &Arc<CachePadded<MailboxLevel>> {
        &self.mailboxes[worker.index()]
    }

    /// Returns a number for a new session of a worker, which is never 0 and never reused on this
    /// node.
    pub fn next_session_id(&self, worker: WorkerId) -> u64 {
        let row = self.session_rows.fetch_add(1, Ordering::Relaxed);
        self.placement.session(row, worker)
    }

    /// Returns a number for an event of a client, which is above those of earlier events: a client
    /// may have ended a session on one worker and begun another one on the next in a millisecond.
    pub(crate) fn next_timeline_event(&self) -> u64 {
        self.timeline_events.fetch_add(1, Ordering::Relaxed)
    }

    /// Restores the recovered state; returns the journal and the part of each worker, and the
    /// storage places of the sinks, which use the last submitter.
    ///
    /// # Panics
    /// There are no submitters.
    pub fn restore(
        &self,
        recovered: Recovered,
        mut submitters: Vec<Submitter>,
        now: Time,
    ) -> (Vec<(Journal, Part)>, Places) {
        let row = self.placement.row_behind(recovered.session_id_max);
        self.session_rows.fetch_max(row, Ordering::Relaxed);
        self.retained
            .count_changes_from(recovered.retained_change_max);
        let message_ids = Arc::new(MessageIds::above(recovered.message_id_max));
        let Divided {
            parts,
            lanes_of_sinks,
        } = divide(recovered, self, now);
        let of_sinks = submitters.pop().expect("one more than there are workers");
        let places = Places::new(of_sinks, lanes_of_sinks);
        let workers = self.placement.workers();
        let journals = workers.zip(submitters).map(|(worker, submitter)| {
            let lane = || self.next_session_id(worker);
            Journal::new(submitter, Arc::clone(&message_ids), self.placement, lane)
        });
        (journals.zip(parts).collect(), places)
    }
}
