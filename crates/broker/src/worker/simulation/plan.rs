//! The settings of a run: numbers, limits, and the frequency of each step.

use std::time::Duration;

use thrum_codec::Version;
use thrum_engine::turn::TurnLimits;
use thrum_protocol::limits::TopicPriority;
use thrum_routing::Strategy;
use thrum_transport::Scheme;

use super::checker::Allowances;
use super::random::Random;
use super::sink::SinkPlan;
use crate::config::{Config, QueuePolicy};

/// Longest expiry of a session that the node grants, in seconds; 3.x clients have no other.
pub(super) const EXPIRY_SECS_MAX: u32 = 600;

/// The possible steps, in the order of [`Plan::weights`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Publish,
    TransferToNode,
    TransferToClient,
    Turn,
    HalfTurn,
    Flow,
    Subscribe,
    Unsubscribe,
    Connect,
    TakeOver,
    Cut,
    Silence,
    Disconnect,
    DisconnectAfterPublish,
    TakeOverSlowClient,
    Tick,
    SkipTime,
    MassReconnect,
    Settle,
    Commit,
    Tidy,
    DiskFaults,
    Crash,
    SetClock,
    Flood,
    Stall,
    Reload,
    WriteToSink,
    ListSessions,
}

/// The weight of each act in a common run.
const ACTS: [(Act, usize); 29] = [
    (Act::Publish, 20),
    (Act::TransferToNode, 18),
    (Act::TransferToClient, 18),
    (Act::Turn, 18),
    (Act::HalfTurn, 6),
    (Act::Flow, 10),
    (Act::Subscribe, 5),
    (Act::Unsubscribe, 1),
    (Act::Connect, 8),
    (Act::TakeOver, 2),
    (Act::Cut, 4),
    (Act::Silence, 1),
    (Act::Disconnect, 1),
    (Act::DisconnectAfterPublish, 2),
    (Act::TakeOverSlowClient, 2),
    (Act::Tick, 5),
    (Act::SkipTime, 1),
    (Act::MassReconnect, 1),
    (Act::Settle, 2),
    (Act::Commit, 12),
    (Act::Tidy, 2),
    (Act::DiskFaults, 2),
    (Act::Crash, 1),
    (Act::SetClock, 1),
    (Act::Flood, 1),
    (Act::Stall, 1),
    (Act::Reload, 3),
    (Act::WriteToSink, 4),
    (Act::ListSessions, 2),
];

#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent settings")]
pub(super) struct Plan {
    pub(super) config: Config,
    pub(super) workers: usize,
    pub(super) versions: Vec<Version>,
    pub(super) steps: usize,
    /// The node's sockets have small buffers.
    pub(super) has_small_sockets: bool,
    /// Most messages are retained, and clients read them slowly.
    pub(super) retains_most: bool,
    pub(super) mailbox_messages: usize,
    /// How much one turn does.
    pub(super) turn_limits: TurnLimits,
    /// The node keeps its state on a disk.
    pub(super) has_disk: bool,
    /// The queue of the storage is short.
    pub(super) has_short_queue: bool,
    /// Clients have certificates and user names, which a gatekeeper checks.
    pub(super) has_users: bool,
    /// There are rules about topics of others, and they change.
    pub(super) has_rules: bool,
    /// The layers between every client and the node: WebSocket, TLS, both or none.
    pub(super) scheme: Scheme,
    /// Clients send more requests than they read answers.
    pub(super) has_floods: bool,
    /// Every session outlives its connection.
    pub(super) all_last: bool,
    pub(super) sink: Option<SinkPlan>,
    pub(super) allowances: Allowances,
    weights: Vec<usize>,
}

impl Plan {
    /// Two clients of version 5.0 without users, with small sockets. All that is sent in a step is
    /// handled in the turns that follow it.
    pub(super) fn of_two_clients(random: &mut Random, workers: usize, has_disk: bool) -> Self {
        let mut plan = Self::new(random);
        plan.workers = workers;
        plan.versions = vec![Version::V5; 2];
        plan.has_disk = has_disk;
        plan.has_short_queue = false;
        plan.has_users = false;
        plan.scheme = Scheme::Mqtt;
        plan.has_small_sockets = true;
        plan.turn_limits = TurnLimits::default();
        plan.mailbox_messages = 1000;
        plan.config.limits.client.inflight = 20;
        plan
    }

    pub(super) fn new(random: &mut Random) -> Self {
        let mut config = Config::default();
        let limits = &mut config.limits;
        limits.session_expiry = Duration::from_secs(u64::from(EXPIRY_SECS_MAX));
        limits.client.inflight = random.pick(&[1, 2, 5, 20, 1024]);
        limits.output_bytes = random.pick(&[2048, 8192, 65_536]);
        limits.client.topic_aliases = random.pick(&[0, 2, 64]);
        let queues_overflow = random.percent(12);
        if queues_overflow {
            limits.client.queue = random.pick(&[1, 3, 10]);
            limits.client.queue_policy = random.pick(&[
                QueuePolicy::RejectNew,
                QueuePolicy::DropOldest,
                QueuePolicy::Hold,
            ]);
            limits.client.queue_hold = Duration::from_millis(random.pick(&[0, 300, 10_000]));
        }
        let drops_oldest = limits.client.queue_policy == QueuePolicy::DropOldest;
        limits.client.queue_qos0 = random.percent(30);
        if random.percent(20) {
            limits.client.queue_priorities = vec![TopicPriority {
                filter: "t/1".into(),
                priority: 7,
            }];
        }
        config.shared.strategy = random.pick(&Strategy::ALL);
        config.sys.interval = Duration::ZERO;
        let has_disk = random.percent(65);
        let disk_refuses = random.percent(40);
        let clients = 2 + random.below(5);
        let has_floods = random.percent(5);
        let weights = random_weights(random);
        let workers = random.pick(&WORKERS);
        let versions: Vec<Version> = (0..clients)
            .map(|_| random.pick(&[Version::V5, Version::V5, Version::V311]))
            .collect();
        let sees_refusal = |client| versions.get(client) == Some(&Version::V5);
        let sees_refusals = std::array::from_fn(sees_refusal);
        let sink = SinkPlan::new(random);
        let mut plan = Self {
            sink,
            config,
            retains_most: false,
            workers,
            versions,
            steps: 200 + random.below(300),
            has_small_sockets: random.percent(40),
            mailbox_messages: random.pick(&[1, 3, 1000]),
            has_disk,
            has_users: random.percent(40),
            has_rules: random.percent(40),
            scheme: scheme(random),
            has_floods,
            turn_limits: turn_limits(random, has_floods),
            all_last: random.percent(50),
            has_short_queue: random.percent(20),
            allowances: Allowances {
                queues_overflow,
                drops_oldest,
                sees_refusals,
                disk_refuses: has_disk && disk_refuses,
                publish_refused: has_disk && disk_refuses
                    || sink.is_some_and(|sink| sink.refuses()),
                sink: sink.map(|sink| sink.promise(has_disk)),
            },
            weights,
        };
        if random.percent(25) {
            plan.retain_most(random);
        }
        plan
    }

    /// Most messages are retained, and a replay stops after some of them.
    fn retain_most(&mut self, random: &mut Random) {
        self.retains_most = true;
        self.has_small_sockets = true;
        self.config.limits.output_bytes = random.pick(&[100, 300, 1000]);
        let subscribe = ACTS.iter().position(|(act, _)| *act == Act::Subscribe);
        self.weights[subscribe.unwrap_or(0)] *= 3;
    }

    pub(super) fn next_act(&self, random: &mut Random) -> Act {
        ACTS[random.weighted(&self.weights)].0
    }
}

fn scheme(random: &mut Random) -> Scheme {
    match random.below(100) {
        0..20 => Scheme::Ws,
        20..30 => Scheme::Mqtts,
        30..36 => Scheme::Wss,
        _ => Scheme::Mqtt,
    }
}

/// Mostly so small that packets of one read, mail and timers are deferred, in which case a flood
/// would take too many turns.
fn turn_limits(random: &mut Random, has_floods: bool) -> TurnLimits {
    let portion_units = if has_floods {
        1024
    } else {
        random.pick(&[1, 5, 20, 100, 4096])
    };
    TurnLimits {
        portion_units,
        reading_units: portion_units * random.pick(&[1, 2, 5]),
        writes: random.pick(&[1, 3, 1000]),
        write_bytes: random.pick(&[1, 1000, 1_000_000]),
    }
}

/// Numbers of workers that a node may have.
pub(super) const WORKERS: [usize; 5] = [1, 2, 2, 3, 4];

/// Random weights of the acts of one run.
fn random_weights(random: &mut Random) -> Vec<usize> {
    let weights = ACTS.iter().map(|(_, weight)| *weight);
    let in_this_run = |weight: usize| match random.below(6) {
        0 => weight * 4,
        1 => weight.div_ceil(3),
        _ => weight,
    };
    weights.map(in_this_run).collect()
}

impl std::fmt::Display for Plan {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let limits = &self.config.limits;
        write!(
            formatter,
            "{} workers, clients {:?}, {}, inflight {}, queue {} {:?} hold {:?}, output {} bytes, mailbox {}, {:?}, \
             small sockets {}, retains most {}, disk {} (short queue {}), users {}, rules {}, {:?}, {:?}, {:?}",
            self.workers,
            self.versions,
            self.config.shared.strategy,
            limits.client.inflight,
            limits.client.queue,
            limits.client.queue_policy,
            limits.client.queue_hold,
            limits.output_bytes,
            self.mailbox_messages,
            self.turn_limits,
            self.has_small_sockets,
            self.retains_most,
            self.has_disk,
            self.has_short_queue,
            self.has_users,
            self.has_rules,
            self.scheme,
            self.sink,
            self.allowances,
        )
    }
}
