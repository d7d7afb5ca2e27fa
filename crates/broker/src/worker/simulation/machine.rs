//! A node from its start to its end: workers and a storage whose steps the test runs, without
//! threads.

use std::sync::Arc;

use mio::Poll;
use thrum_access::{Gatekeeper, Rules};
use thrum_engine::access::{RuleSource, Shared};
use thrum_engine::node::Capacity;
use thrum_engine::node::metrics::Counter;
use thrum_engine::workers::WorkerId;
use thrum_storage::disk::sim::{SimDisk, SimStorage};
use thrum_storage::{Committer, Options, QUEUE_BYTES_MAX, Recovered, Stepper, Store};

use super::gatekeeper::CheckingGatekeeper;
use super::plan::Plan;
use super::sink::SimSink;
use super::stepped_worker::SteppedWorker;
use super::tls;
use crate::clock::Clock;
use crate::config::{CertificateName, ListenerConfig};
use crate::listener::{Gate, GateParts};
use crate::node::{Node, NodePlan};
use crate::settings::Settings;

/// Small, so that a run fills several segments.
const SEGMENT_BYTES: u64 = 16 * 1024;
const SEGMENTS_MAX: u64 = 64;
/// Most bytes that wait for the storage on a node with a short queue.
pub(super) const SHORT_QUEUE_BYTES: usize = 2000;

#[derive(Debug)]
pub(super) struct Machine {
    pub(super) node: Arc<Node>,
    pub(super) workers: Vec<SteppedWorker>,
    pub(super) gatekeeper: Arc<CheckingGatekeeper>,
    /// Number of reloads of the rules.
    generation: u64,
    storage: Option<(Committer, Stepper<SimDisk>)>,
    pub(super) sink: Option<SimSink>,
}

impl Machine {
    /// Starts the node with the state of the disk, if it has one.
    pub(super) fn start(
        plan: &Plan,
        clock: Clock,
        identity: u64,
        disk: Option<&SimStorage>,
    ) -> Self {
        let gatekeeper = Arc::new(CheckingGatekeeper::default());
        let acceptor = tls::acceptor(plan.scheme);
        let settings = Arc::new(settings(plan, &gatekeeper, 0));
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
            sink.start(places);
        }
        let mut parts = parts.into_iter();
        let mut workers: Vec<SteppedWorker> = polls
            .into_iter()
            .map(|(id, poll)| SteppedWorker::new(id, &node, &settings, poll, parts.next()))
            .collect();
        for worker in &mut workers {
            *worker.inner.traffic.engine.core.turn.limits_mut() = plan.turn_limits;
        }
        workers.iter_mut().for_each(SteppedWorker::start_listening);
        Self {
            node,
            workers,
            gatekeeper,
            generation: 0,
            storage,
            sink,
        }
    }

    /// Reloads the rules of one worker.
    pub(super) fn reload(&mut self, worker: usize, plan: &Plan) {
        self.generation += 1;
        let settings = settings(plan, &self.gatekeeper, self.generation);
        let worker = &mut self.workers[worker];
        worker.finish_turn();
        worker.inner.reload(&settings);
    }

    /// Messages that were redispatched to other group members.
    pub(super) fn redispatched(&self) -> usize {
        let count = self.node.state.metrics.total(Counter::SharedRedispatched);
        usize::try_from(count).unwrap()
    }

    /// Runs a step of the storage thread; true if it did some work.
    pub(super) fn commit(&mut self) -> bool {
        let stepper = self.storage.as_mut().map(|(_, stepper)| stepper);
        stepper.is_some_and(|stepper| stepper.step().unwrap_or(false))
    }

    /// Removes the sink: no more messages are offered to it.
    pub(super) fn remove_sink(&mut self) {
        if let Some(sink) = &self.sink {
            sink.remove(&self.node);
        }
    }

    /// Runs a step of the storage thread, or of its idle work; true if it did some work.
    pub(super) fn commit_or_tidy(&mut self) -> bool {
        let Some((_, stepper)) = &mut self.storage else {
            return false;
        };
        let r = stepper.step();
        r.is_ok_and(|did| did || stepper.tidy_step())
    }

    /// Runs a step of the idle work of the storage thread.
    pub(super) fn tidy(&mut self) {
        if let Some((_, stepper)) = &mut self.storage {
            stepper.tidy_step();
        }
    }

    /// Stops the storage, and returns the state that the next start would recover.
    pub(super) fn close(&mut self, disk: &SimStorage) -> Recovered {
        if let Some((committer, stepper)) = self.storage.take() {
            stepper.stop().unwrap();
            drop(committer);
        }
        open(disk).1
    }
}

/// Every generation has other rules, which allow all actions of the clients.
fn settings(plan: &Plan, gatekeeper: &Arc<CheckingGatekeeper>, generation: u64) -> Settings {
    let mut shared = Shared {
        generation,
        ..Shared::default()
    };
    let access = &mut shared.access;
    if plan.has_users {
        access.gatekeeper = Some(Arc::clone(gatekeeper) as Arc<dyn Gatekeeper>);
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
    assert!(is_whole, "the log refers to missing records: {orphans:?}");
    (store, recovered)
}
