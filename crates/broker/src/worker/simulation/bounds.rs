//! Memory has its limits, whatever clients and the disk do.

use thrum_engine::client::Client;
use thrum_engine::turn::HANDSHAKE_UNITS;
use thrum_engine::workers::WorkerId;
use thrum_transport::Scheme;

use super::world::{Failure, World};
use crate::traffic::READ_BYTES;

/// Messages that a session writes at once, whatever the limit of the output is: on a new
/// connection, and for one packet of the client.
const BURST_BYTES: usize = 256 * 1024;
/// Messages that were on their way to a session at a start, or when its queue became nearly full,
/// and are taken then; or what waited for a worker that took no turns, which tells nobody that a
/// queue is.
const UNDER_WAY: usize = 100;
/// A client is read until so many times the limit of its output waits.
const OUTPUT_HARD_FACTOR: usize = 2;

/// Pieces of mail that one message becomes for another worker: for its subscribers, and a member of
/// each group.
const MAIL_PER_MESSAGE: usize = 3;
/// Messages of shared groups that look for another member meanwhile, whom no publisher sent.
const REDISPATCHED: usize = 32;
/// What the costliest single packet, timer or piece of mail does: a session with all its
/// subscriptions ends.
const ITEM_UNITS_MAX: u64 = 600;
/// What goes beyond the share of all connections: the last portion begun, the connection that is
/// read whatever the others took, mail, timers, questions, and publishers that were held back, with
/// the last portion begun there.
const PORTIONS: u64 = 7;

impl World {
    /// Mail that waits for each worker.
    pub(super) fn mail_waiting(&self) -> Vec<usize> {
        let state = &self.machine.node.state;
        let workers = WorkerId::all(state.workers());
        workers
            .map(|worker| state.mailbox_level(worker).waiting().0)
            .collect()
    }

    /// Publishers filled no mailbox beyond its limit since then.
    pub(super) fn check_mailboxes(&mut self, before: &[usize]) -> Result<(), Failure> {
        let others = self.machine.seats.len() - 1;
        let connections = self.machine.seats.iter();
        let connections: usize = connections
            .map(|seat| seat.worker.traffic.edge.connections.len())
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
                "{now} pieces of mail wait for a worker, {old} before it stopped"
            )),
        }
    }

    /// No turn did much more than its budget.
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
            .seats
            .iter()
            .map(|seat| seat.longest_turn)
            .max();
        match longest.filter(|units| *units > units_max) {
            None => Ok(()),
            Some(units) => Err(format!("one turn did {units} units of work")),
        }
    }

    /// No queue and no output is longer than it may be.
    pub(super) fn check_bounds(&self) -> Result<(), Failure> {
        self.machine.doorkeeper.verdict()?;
        self.check_turns()?;
        self.check_sink()?;
        for seat in &self.machine.seats {
            let core = &seat.worker.traffic.engine.core;
            let mut clients = core.sessions.iter();
            clients.try_for_each(|(_, client)| self.check_queue(client))?;
            let mut connections = seat.worker.traffic.edge.connections.iter();
            connections.try_for_each(|(key, connection)| {
                self.check_output(connection.waiting(&core.outputs[key]))
            })?;
        }
        Ok(())
    }

    fn check_queue(&self, client: &Client) -> Result<(), Failure> {
        let limits = &self.plan.config.limits.client;
        let (messages, bytes, inflight) = client.session.outbound().backlog();
        // A start may find a message that was about to leave for another member of its group, and
        // the one that took its turn.
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

    /// What others were promised while the queue filled up comes on top of the limit, and what was
    /// on its way. What members of a group leave behind goes to the others whatever their limits
    /// are.
    fn messages_max(&self, client: &Client) -> usize {
        let limit = self.plan.config.limits.client.queue as usize;
        // Members of groups are known before something is on its way to them.
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
        // The answers to one more read are no longer than what was read.
        let output_max = OUTPUT_HARD_FACTOR * limit + READ_BYTES + BURST_BYTES;
        if waiting <= output_max {
            return Ok(());
        }
        Err(format!("{waiting} bytes of output wait for one client"))
    }
}
