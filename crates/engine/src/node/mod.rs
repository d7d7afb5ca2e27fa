//! What the engines of one node share.

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
use crate::retained::{RetainedLimits, RetainedStore};
use crate::sinks::{Places, Sinks};
use crate::workers::WorkerId;

/// What a node is made of.
#[derive(Debug)]
pub struct NodeParts {
    /// Which worker has a session; it knows the number of workers.
    pub placement: Placement,
    /// How members of shared groups are chosen.
    pub strategy: Strategy,
    /// Limits of the retained messages.
    pub retained: RetainedLimits,
    /// When the mailbox of a worker is full.
    pub mailbox: Capacity,
    /// Who is banned.
    pub bans: Arc<BanBook>,
    /// The wall clock, as the shell sees it.
    pub wall: Arc<WallClock>,
    /// Part of every client identifier that the node makes up, so that it is not guessed by others.
    pub identity: u64,
}

/// Shared by the engines of all workers.
#[derive(Debug)]
pub struct NodeState {
    /// Who wants what.
    pub interest: Interest,
    /// Which worker owns the session of a client identifier.
    pub registry: Registry,
    /// The retained messages.
    pub retained: RetainedStore,
    /// Destinations outside the broker.
    pub sinks: Sinks,
    /// What is counted.
    pub metrics: Metrics,
    /// Sessions that outlive their connection, by whom they are counted for.
    pub session_counts: SessionCounts,
    /// Who is banned.
    pub bans: Arc<BanBook>,
    /// The wall clock, as the shell sees it.
    pub wall: Arc<WallClock>,
    /// Each on cache lines of its own.
    mailboxes: Box<[Arc<CachePadded<MailboxLevel>>]>,
    /// On cache lines of its own, as it is written while others read.
    pub memory: CachePadded<NodeMemory>,
    /// Sessions that may hold publishers: nearly full, and a member of a shared group or with the
    /// policy for it. Read for each message with QoS 1 and 2.
    pub holding: CachePadded<AtomicUsize>,
    /// Workers whose part of what was found at the start is with the storage thread.
    pub taken_over: AtomicUsize,
    /// Written for each connection: apart from what is read for each message.
    session_rows: CachePadded<AtomicU64>,
    /// Which worker has a session.
    pub placement: Placement,
    /// Part of every client identifier that this node makes up.
    pub identity: u64,
}

impl NodeState {
    /// A node without sessions.
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
            session_counts: SessionCounts::default(),
            bans,
            wall,
            mailboxes: (0..workers).map(level).collect(),
            memory: CachePadded::new(NodeMemory::new()),
            holding: CachePadded::default(),
            taken_over: AtomicUsize::new(0),
            session_rows: CachePadded::new(AtomicU64::new(1)),
            placement,
            identity,
        }
    }

    /// Number of workers.
    #[inline]
    pub fn workers(&self) -> usize {
        self.mailboxes.len()
    }

    /// How full the mailbox of a worker is.
    #[inline]
    pub fn mailbox_level(&self, worker: WorkerId) -> &Arc<CachePadded<MailboxLevel>> {
        &self.mailboxes[worker.index()]
    }

    /// A number for a new session of a worker, never 0 and never used before on this node.
    pub fn next_session_id(&self, worker: WorkerId) -> u64 {
        let row = self.session_rows.fetch_add(1, Ordering::Relaxed);
        self.placement.session(row, worker)
    }

    /// Takes over what the storage gave back; each worker's part of it, and its way to the storage.
    /// The last of the submitters is the way of the sinks.
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
