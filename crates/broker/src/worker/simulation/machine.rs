//! A node from its start to its end: workers without threads, and a storage that works when it is
//! told to.

use std::sync::Arc;

use mio::Poll;
use thrum_access::{Gatekeeper, Rules};
use thrum_engine::access::{RuleSource, Shared};
use thrum_engine::node::Capacity;
use thrum_engine::node::metrics::Counter;
use thrum_engine::workers::WorkerId;
use thrum_storage::disk::sim::{SimDisk, SimStorage};
use thrum_storage::{Committer, Options, QUEUE_BYTES_MAX, Recovered, Stepper, Store};

use super::gatekeeper::Doorkeeper;
use super::plan::Plan;
use super::seat::Seat;
use super::sink::SimSink;
use super::tls;
use crate::clock::Clock;
use crate::config::{CertificateName, ListenerConfig};
use crate::listener::{Gate, GateParts};
use crate::node::{Node, NodePlan};
use crate::settings::Settings;

/// Small, so that a run fills several segments.
const SEGMENT_BYTES: u64 = 16 * 1024;
const SEGMENTS_MAX: u64 = 64;
/// Bytes that wait for the storage at most on a node with a short queue.
pub(super) const SHORT_QUEUE_BYTES: usize = 2000;

#[derive(Debug)]
pub(super) struct Machine {
    pub(super) node: Arc<Node>,
    pub(super) seats: Vec<Seat>,
    pub(super) doorkeeper: Arc<Doorkeeper>,
    /// How often there were other rules.
    generation: u64,
    storage: Option<(Committer, Stepper<SimDisk>)>,
    pub(super) sink: Option<SimSink>,
}

impl Machine {
    /// Starts the node; its state is that of the disk, if it has one.
    pub(super) fn start(
        plan: &Plan,
        clock: Clock,
        identity: u64,
        disk: Option<&SimStorage>,
    ) -> Self {
        let doorkeeper = Arc::new(Doorkeeper::default());
        let acceptor = tls::acceptor(plan.scheme);
        let settings = Arc::new(settings(plan, &doorkeeper, 0));
        let workers = plan.workers;
        let opened = disk.map(open);
        let recovered = opened.as_ref().map(|(_, recovered)| recovered);
        let node_plan = NodePlan {
            workers,
            strategy: plan.config.shared.strategy,
            mailbox: Capacity {
                messages: plan.mailbox_messages,
                bytes: 1 << 20,
            },
            clock,
            identity,
        };
        let node = Node::new(node_plan, &settings.engine, recovered);
        let parts = GateParts {
            config: &ListenerConfig::default(),
            acceptor,
            username: CertificateName::Cn,
        };
        let gate = Gate::new("mqtt", parts, None);
        node.gates.add(Arc::new(gate)).expect("it is the first one");
        let node = Arc::new(node);
        let mut sink = SimSink::open(plan, &node);
        let ids = (0..plan.workers).map(WorkerId::new);
        let polls = ids.map(|id| {
            let poll = Poll::new().unwrap();
            node.open_mailbox(id, &poll).unwrap();
            (id, poll)
        });
        let polls: Vec<(WorkerId, Poll)> = polls.collect();
        let mut parts = Vec::new();
        let mut places = None;
        let storage = opened.map(|(store, recovered)| {
            let queue_bytes = if plan.has_short_queue {
                SHORT_QUEUE_BYTES
            } else {
                QUEUE_BYTES_MAX
            };
            let (committer, stepper, submitters) =
                Committer::stepped(store, node.wakes(), queue_bytes);
            let (all, of_sinks) = node.restore(recovered, submitters);
            parts = all;
            places = Some(of_sinks);
            (committer, stepper)
        });
        if let Some(sink) = &mut sink {
            sink.begins(places);
        }
        let mut parts = parts.into_iter();
        let mut seats: Vec<Seat> = polls
            .into_iter()
            .map(|(id, poll)| Seat::new(id, &node, &settings, poll, parts.next()))
            .collect();
        for seat in &mut seats {
            *seat.worker.traffic.engine.core.turn.limits_mut() = plan.turn_limits;
        }
        seats.iter_mut().for_each(Seat::opens);
        Self {
            node,
            seats,
            doorkeeper,
            generation: 0,
            storage,
            sink,
        }
    }

    /// A worker has other rules from now on.
    pub(super) fn reload(&mut self, seat: usize, plan: &Plan) {
        self.generation += 1;
        let settings = settings(plan, &self.doorkeeper, self.generation);
        let seat = &mut self.seats[seat];
        seat.ends_turn();
        seat.worker.reload(&settings);
    }

    /// Messages that members of groups left to others.
    pub(super) fn redispatched(&self) -> usize {
        let count = self.node.state.metrics.total(Counter::SharedRedispatched);
        usize::try_from(count).unwrap()
    }

    /// Does what the storage thread would do now; true if it had something to do and could.
    pub(super) fn commit(&mut self) -> bool {
        let stepper = self.storage.as_mut().map(|(_, stepper)| stepper);
        stepper.is_some_and(|stepper| stepper.step().unwrap_or(false))
    }

    /// Nothing more is offered to the sink.
    pub(super) fn remove_sink(&mut self) {
        if let Some(sink) = &self.sink {
            sink.remove(&self.node);
        }
    }

    /// The storage thread without failures.
    pub(super) fn commit_or_tidy(&mut self) -> bool {
        let Some((_, stepper)) = &mut self.storage else {
            return false;
        };
        let r = stepper.step();
        r.is_ok_and(|did| did || stepper.tidy_step())
    }

    /// The work of an idle storage thread.
    pub(super) fn tidy(&mut self) {
        if let Some((_, stepper)) = &mut self.storage {
            stepper.tidy_step();
        }
    }

    /// The storage ends in order; what the next start would find.
    pub(super) fn close(&mut self, disk: &SimStorage) -> Recovered {
        if let Some((committer, stepper)) = self.storage.take() {
            stepper.stop().unwrap();
            drop(committer);
        }
        open(disk).1
    }
}

/// Every generation has other rules, which deny nothing that a client of the simulation does.
fn settings(plan: &Plan, doorkeeper: &Arc<Doorkeeper>, generation: u64) -> Settings {
    let mut shared = Shared {
        generation,
        ..Shared::default()
    };
    let access = &mut shared.access;
    if plan.has_users {
        access.gatekeeper = Some(Arc::clone(doorkeeper) as Arc<dyn Gatekeeper>);
    }
    if plan.has_rules {
        let rules = format!("deny all pubsub others/{generation}\nallow all pubsub #");
        access.policy.rules = Arc::new(Rules::parse(&rules, "simulation").unwrap());
        access.policy.order = vec![RuleSource::AllClients];
    }
    Settings::new(&plan.config, &Arc::new(shared))
}

fn open(disk: &SimStorage) -> (Store<SimDisk>, Recovered) {
    let options = Options {
        segment_bytes: SEGMENT_BYTES,
        disk_bytes_max: SEGMENT_BYTES * SEGMENTS_MAX,
        ..Options::default()
    };
    let (store, recovered, report) = Store::open(disk.open().unwrap(), options).unwrap();
    assert!(!report.is_damaged(), "{report:?}");
    let orphans = &recovered.orphans;
    let is_whole = orphans.sessions + orphans.deliveries + orphans.retained == 0;
    assert!(is_whole, "the log refers to what is not in it: {orphans:?}");
    (store, recovered)
}
