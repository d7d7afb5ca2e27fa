//! Checks that memory and turns are bounded, whatever clients and the disk do.

use thrum_engine::client::Client;
use thrum_engine::stages::{self, MessageStage, STAGE_NS_MAX, STAGE_PARTS};
use thrum_engine::turn::HANDSHAKE_UNITS;
use thrum_engine::workers::WorkerId;
use thrum_transport::Scheme;

use super::world::{Failure, World};
use crate::traffic::READ_BYTES;

/// Bytes that a session writes at once, regardless of the limit of the output: on a new connection,
/// and for one packet of the client.
const BURST_BYTES: usize = 256 * 1024;
/// Messages on their way to a session at a start, or when its queue becomes nearly full: they are
/// queued; or the mail of a stalled worker, which does not report that a queue is nearly full.
const UNDER_WAY: usize = 100;
/// A client is not read while its output is this many times the limit.
const OUTPUT_HARD_FACTOR: usize = 2;

/// Mail items of one message to another worker: for its subscribers, and for a member of each
/// group.
const MAIL_PER_MESSAGE: usize = 3;
/// Messages of shared groups that are redispatched meanwhile.
const REDISPATCHED: usize = 32;
/// Units of the costliest single packet, timer or mail item: the end of a session with all its
/// subscriptions.
const ITEM_UNITS_MAX: u64 = 600;
/// Portions beside the share of all connections: the last portion begun, the connection that is
/// always read, mail, timers, queries, and held publishers, with the last portion begun there.
const PORTIONS: u64 = 7;

impl World {
    /// Number of mail items that wait for each worker.
    pub(super) fn mail_waiting(&self) -> Vec<usize> {
        let state = &self.machine.node.state;
        let workers = WorkerId::all(state.workers());
        workers
            .map(|worker| state.mailbox_level(worker).waiting().0)
            .collect()
    }

    /// Checks that publishers filled no mailbox beyond its limit since `before`.
    pub(super) fn check_mailboxes(&mut self, before: &[usize]) -> Result<(), Failure> {
        let others = self.machine.workers.len() - 1;
        let connections = self.machine.workers.iter();
        let connections: usize = connections
            .map(|worker| worker.inner.traffic.edge.connections.len())
            .sum();
        let capacity = self.plan.mailbox_messages * others;
        let growth = capacity + connections * MAIL_PER_MESSAGE + REDISPATCHED;
        let waiting = self.mail_waiting();
        self.most_mail = self
            .most_mail
            .max(waiting.iter().copied().max().unwrap_or(0));
        match waiting
            .iter()
            .zip(before)
            .find(|(now, old)| **now > *old + growth)
        {
            None => Ok(()),
            Some((now, old)) => Err(format!(
                "{now} mail items wait for a worker, {old} before it stalled"
            )),
        }
    }

    /// Checks that no turn exceeded its budget by much.
    fn check_turns(&self) -> Result<(), Failure> {
        let limits = &self.plan.turn_limits;
        // A handshake of a layer is the costliest item.
        let handshake = if self.plan.scheme == Scheme::Mqtt {
            0
        } else {
            HANDSHAKE_UNITS
        };
        let item_units_max = ITEM_UNITS_MAX + handshake;
        let units_max = limits.reading_units + PORTIONS * (limits.portion_units + item_units_max);
        let longest = self
            .machine
            .workers
            .iter()
            .map(|worker| worker.longest_turn)
            .max();
        match longest.filter(|units| *units > units_max) {
            None => Ok(()),
            Some(units) => Err(format!("one turn did {units} units of work")),
        }
    }

    /// Checks that no queue and no output exceeds its limit.
    pub(super) fn check_bounds(&self) -> Result<(), Failure> {
        self.machine.gatekeeper.verdict()?;
        self.check_turns()?;
        self.check_sink()?;
        self.check_stages()?;
        for worker in &self.machine.workers {
            let core = &worker.inner.traffic.engine.core;
            if let Some(found) = stages::contradiction(core) {
                return Err(format!(
                    "a stamped message is not where it should be: {found}"
                ));
            }
            let mut clients = core.sessions.iter();
            clients.try_for_each(|(_, client)| self.check_queue(client))?;
            let mut connections = worker.inner.traffic.edge.connections.iter();
            connections.try_for_each(|(key, connection)| {
                self.check_output(connection.waiting(&core.outputs[key]))
            })?;
        }
        Ok(())
    }

    /// Checks that the stages of stamped messages add up.
    fn check_stages(&self) -> Result<(), Failure> {
        let Some(figures) = self.machine.node.state.stages.merged() else {
            return Ok(());
        };
        let of = |stage| {
            let series = figures.series(stage);
            (series.count(), series.sum_ns)
        };
        let [routed, queued, written, broker, acknowledged] = [
            MessageStage::Routed,
            MessageStage::Queued,
            MessageStage::Written,
            MessageStage::Broker,
            MessageStage::Acknowledged,
        ]
        .map(of);
        let counts = [routed.0, queued.0, written.0];
        let parts = STAGE_PARTS.map(|(_, stage)| of(stage));
        let of_answer = [MessageStage::AnswerSync, MessageStage::Answered].map(of);
        // A duration of 0 counts as one nanosecond, and a longer one than a minute as a minute:
        // then the parts do not add up.
        let longest = figures.series(MessageStage::Broker).longest_ns();
        let sum = routed.1 + queued.1 + written.1;
        let sum_of_parts: u64 = parts.iter().map(|part| part.1).sum();
        let is_sum = sum.abs_diff(broker.1) <= 3 * broker.0
            && sum_of_parts.abs_diff(broker.1) <= 6 * broker.0
            || longest >= STAGE_NS_MAX;
        let are_all = counts == [broker.0; 3] && parts.map(|part| part.0) == [broker.0; 6];
        let is_of_answer = of_answer[0].0 == of_answer[1].0 && of_answer[0].1 <= of_answer[1].1;
        let mail = of(MessageStage::Mail);
        let is_of_queued = mail.0 == queued.0 && mail.1 <= queued.1;
        if are_all && is_sum && is_of_answer && is_of_queued && acknowledged.0 <= written.0 {
            return Ok(());
        }
        Err(format!(
            "the stages {counts:?} of {broker:?} take {sum} ns, their parts {parts:?} {sum_of_parts} ns; answers {of_answer:?}, mail {mail:?} of {queued:?}"
        ))
    }

    fn check_queue(&self, client: &Client) -> Result<(), Failure> {
        let limits = &self.plan.config.limits.client;
        let (messages, bytes, inflight) = client.session.outbound().backlog();
        // A start may recover a message that was about to be redispatched, and the one that
        // followed it.
        let inflight_max = usize::from(if self.plan.has_disk {
            u16::MAX
        } else {
            limits.inflight
        });
        let is_within = messages <= self.messages_max(client)
            && bytes <= limits.queue_bytes as usize
            && inflight <= inflight_max;
        if is_within {
            return Ok(());
        }
        let client_id = client.session.client_id();
        Err(format!(
            "{client_id} has {messages} messages ({bytes} bytes) in its queue and {inflight} inflight"
        ))
    }

    /// Messages that were promised room before the queue filled up, and those on their way, add to
    /// the limit. Messages of a group member that leaves go to the others regardless of their
    /// limits.
    fn messages_max(&self, client: &Client) -> usize {
        let limit = self.plan.config.limits.client.queue as usize;
        // Members of groups are known before messages are on their way to them.
        let under_way = if self.plan.has_disk || !client.subscriptions.is_empty() {
            UNDER_WAY.max(self.most_mail)
        } else {
            0
        };
        let left_behind = if client.groups().is_empty() {
            0
        } else {
            self.redispatched + self.machine.redispatched()
        };
        2 * limit + under_way + left_behind
    }

    fn check_output(&self, waiting: usize) -> Result<(), Failure> {
        let limit = self.plan.config.limits.output_bytes as usize;
        // The answers to one more read are no longer than the read itself.
        let output_max = OUTPUT_HARD_FACTOR * limit + READ_BYTES + BURST_BYTES;
        if waiting <= output_max {
            return Ok(());
        }
        Err(format!("{waiting} bytes of output wait for one client"))
    }
}
