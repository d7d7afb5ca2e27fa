//! Work on every connection or session of a worker, a portion in each turn: bans, removed
//! listeners, and the wills of a stop.

use std::sync::mpsc::SyncSender;

use thrum_codec::ReasonCode;
use thrum_engine::ids::{ConnectionKey, Slot};
use thrum_engine::node::metrics::Counter;
use thrum_engine::workers::WorkerId;

use super::Worker;
use crate::control::settled;
use crate::door::is_disconnected_by_ban;
use crate::edge::{DisconnectNotice, Ending};

/// The task of a round.
#[derive(Debug)]
pub(super) enum RoundTask {
    /// Disconnects the clients of these removed gates.
    RemovedGates(Vec<u16>),
    /// Disconnects banned clients.
    Bans,
    /// Publishes the wills of connected clients.
    Wills,
}

/// One visit of every slot of a slab.
#[derive(Debug)]
struct Round {
    next: usize,
    /// Clients that connect later are checked against the rules in force then.
    end: usize,
    task: RoundTask,
}

/// The current rounds, and the threads that wait for their end.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    under_way: Vec<Round>,
    settling: Vec<SyncSender<WorkerId>>,
    /// The worker stops after the rounds.
    is_stopping: bool,
}

impl Rounds {
    pub(super) fn are_done(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Removes gates without clients, as their numbers are reused.
    pub(super) fn forget_gates(&mut self, numbers: &[u16]) {
        for round in &mut self.under_way {
            if let RoundTask::RemovedGates(gates) = &mut round.task {
                gates.retain(|number| !numbers.contains(number));
            }
        }
    }
}

impl Worker {
    /// Begins a round, which the turns of the worker carry out in portions.
    pub(super) fn begin_round(&mut self, task: RoundTask) {
        let end = match task {
            RoundTask::RemovedGates(_) | RoundTask::Bans => {
                self.traffic.edge.connections.capacity()
            }
            RoundTask::Wills => self.traffic.engine.core.sessions.capacity(),
        };
        let next = 0;
        self.rounds.under_way.push(Round { next, end, task });
    }

    /// Does the next portion of the rounds, one after the other.
    pub(super) fn continue_rounds(&mut self) {
        if self.rounds.are_done() {
            return;
        }
        self.traffic.engine.core.turn.begin_portion();
        let mut under_way = std::mem::take(&mut self.rounds.under_way);
        while let Some(round) = under_way.first_mut() {
            if round.next >= round.end {
                under_way.remove(0);
                continue;
            }
            if self.traffic.engine.core.turn.is_portion_over() {
                break;
            }
            self.traffic.engine.core.turn.work += 1;
            self.visit(round.next, &round.task);
            self.traffic.engine.core.durable.end_unit();
            round.next += 1;
        }
        self.rounds.under_way = under_way;
        if self.rounds.are_done() && self.rounds.is_stopping {
            self.stop();
        }
    }

    fn visit(&mut self, place: usize, task: &RoundTask) {
        let (Some(key), Some(slot)) = (ConnectionKey::new(place), Slot::new(place)) else {
            return;
        };
        match task {
            RoundTask::RemovedGates(gates) => self.disconnect_of_removed_gate(key, gates),
            RoundTask::Bans => self.disconnect_banned(key),
            RoundTask::Wills => self.publish_will_of(slot),
        }
    }

    /// Sends DISCONNECT to a client of one of these gates and closes its connection.
    fn disconnect_of_removed_gate(&mut self, key: ConnectionKey, gates: &[u16]) {
        let connection = self.traffic.edge.connections.get(key);
        let has_to_go = connection.is_some_and(|connection| {
            !connection.is_draining() && gates.contains(&connection.gate)
        });
        if has_to_go {
            let notice = DisconnectNotice {
                reason: ReasonCode::AdministrativeAction,
                what: "the operator has closed the listener of this connection",
            };
            let traffic = &mut self.traffic;
            traffic
                .edge
                .disconnect(&mut traffic.engine, key, notice, Ending::ClosedByServer);
        }
    }

    pub(super) fn disconnect_banned(&mut self, key: ConnectionKey) {
        let list = self.node.protection.bans().list();
        let now = self.traffic.engine.core.turn.now;
        let seconds = self.node.state.wall.millis(now) / 1000;
        if is_disconnected_by_ban(
            &self.traffic.edge,
            &self.traffic.engine,
            key,
            &list,
            seconds,
        ) {
            self.traffic
                .engine
                .core
                .row()
                .add(Counter::BannedDisconnected, 1);
            let notice = DisconnectNotice {
                reason: ReasonCode::AdministrativeAction,
                what: "banned by an operator of the broker",
            };
            let traffic = &mut self.traffic;
            traffic
                .edge
                .disconnect(&mut traffic.engine, key, notice, Ending::ClosedByServer);
        }
    }

    /// Publishes the will of a connected client, while its subscribers are still connected.
    fn publish_will_of(&mut self, slot: Slot) {
        let now = self.traffic.engine.core.turn.now;
        let Some(client) = self.traffic.engine.core.sessions.get_mut(slot) else {
            return;
        };
        if client.connection.is_none() {
            return;
        }
        if let Some(will) = client.session.take_will_at(now) {
            self.traffic.engine.core.will_taken(slot);
            if let Some(will) = self.traffic.engine.authorize_will(slot, will) {
                self.traffic.engine.publish_will(will);
            }
        }
    }

    /// Records a thread that waits until the changes before its request are in force.
    pub(super) fn settles_for(&mut self, sender: SyncSender<WorkerId>) {
        self.rounds.settling.push(sender);
    }

    /// Notifies the waiting threads that earlier changes are in force, if no round continues: the
    /// mail of the turn has been sent.
    pub(super) fn notify_settled(&mut self) {
        if self.rounds.are_done() {
            for sender in self.rounds.settling.drain(..) {
                settled(self.traffic.engine.core.id, &sender);
            }
        }
    }

    /// Stops after the current rounds.
    pub(super) fn stop_after_rounds(&mut self) {
        if self.rounds.are_done() {
            self.stop();
        } else {
            self.rounds.is_stopping = true;
        }
    }
}
