//! Work on every connection or session of a worker, a portion in each turn: bans, removed
//! listeners, and the wills of a stop.

use std::sync::mpsc::SyncSender;

use thrum_codec::ReasonCode;
use thrum_engine::ids::{ConnectionKey, Slot};
use thrum_engine::node::metrics::Counter;
use thrum_engine::workers::WorkerId;

use super::Worker;
use crate::control::settled;
use crate::door::is_banned;
use crate::edge::{Ending, Farewell};

/// The purpose of a round.
#[derive(Debug)]
pub(super) enum Errand {
    /// Disconnects the clients of these gates.
    Part(Vec<u16>),
    /// Disconnects banned clients.
    Bans,
    /// Publishes the wills of connected clients.
    Wills,
}

/// One look at every slot of a slab.
#[derive(Debug)]
struct Round {
    next: usize,
    /// Clients that connect later are judged by the rules in force then.
    end: usize,
    errand: Errand,
}

/// The rounds under way, and the threads that wait for their end.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    under_way: Vec<Round>,
    settling: Vec<SyncSender<WorkerId>>,
    /// Stop after the rounds.
    is_stopping: bool,
}

impl Rounds {
    pub(super) fn are_done(&self) -> bool {
        self.under_way.is_empty()
    }

    /// These gates have no clients any longer, and their numbers are reused.
    pub(super) fn forget_gates(&mut self, numbers: &[u16]) {
        for round in &mut self.under_way {
            if let Errand::Part(gates) = &mut round.errand {
                gates.retain(|number| !numbers.contains(number));
            }
        }
    }
}

impl Worker {
    /// Begins a round; its first portion is done at once.
    pub(super) fn go_round(&mut self, errand: Errand) {
        let end = match errand {
            Errand::Part(_) | Errand::Bans => self.traffic.edge.connections.capacity(),
            Errand::Wills => self.traffic.engine.core.sessions.capacity(),
        };
        let next = 0;
        self.rounds.under_way.push(Round { next, end, errand });
    }

    /// Does the next portion of the rounds, one after the other.
    pub(super) fn go_on_with_rounds(&mut self) {
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
            self.visit(round.next, &round.errand);
            self.traffic.engine.core.durable.end_unit();
            round.next += 1;
        }
        self.rounds.under_way = under_way;
        if self.rounds.are_done() && self.rounds.is_stopping {
            self.stop();
        }
    }

    fn visit(&mut self, place: usize, errand: &Errand) {
        let (Some(key), Some(slot)) = (ConnectionKey::new(place), Slot::new(place)) else {
            return;
        };
        match errand {
            Errand::Part(gates) => self.part_one(key, gates),
            Errand::Bans => self.disconnect_banned(key),
            Errand::Wills => self.publish_will_of(slot),
        }
    }

    /// Tells and disconnects a client of one of these gates.
    fn part_one(&mut self, key: ConnectionKey, gates: &[u16]) {
        let connection = self.traffic.edge.connections.get(key);
        let has_to_go = connection.is_some_and(|connection| {
            !connection.is_draining() && gates.contains(&connection.gate)
        });
        if has_to_go {
            let farewell = Farewell {
                reason: ReasonCode::AdministrativeAction,
                what: "the listener of this connection was removed from the broker's configuration",
            };
            let traffic = &mut self.traffic;
            traffic
                .edge
                .disconnect(&mut traffic.engine, key, farewell, Ending::ClosedByServer);
        }
    }

    pub(super) fn disconnect_banned(&mut self, key: ConnectionKey) {
        let list = self.node.protection.bans().list();
        let now = self.traffic.engine.core.turn.now;
        let seconds = self.node.state.wall.millis(now) / 1000;
        if is_banned(
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
            let farewell = Farewell {
                reason: ReasonCode::AdministrativeAction,
                what: "banned by the administrator of the broker",
            };
            let traffic = &mut self.traffic;
            traffic
                .edge
                .disconnect(&mut traffic.engine, key, farewell, Ending::ClosedByServer);
        }
    }

    /// The will of a connected client, while its subscribers are connected too.
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

    /// A thread waits until the changes before its request are in force.
    pub(super) fn settles_for(&mut self, sender: SyncSender<WorkerId>) {
        self.rounds.settling.push(sender);
    }

    /// The mail of the turn has left: earlier changes are in force, if no round is under way.
    pub(super) fn tell_settled(&mut self) {
        if self.rounds.are_done() {
            for sender in self.rounds.settling.drain(..) {
                settled(self.traffic.engine.core.id, &sender);
            }
        }
    }

    /// Stops after all earlier work.
    pub(super) fn stop_after_rounds(&mut self) {
        if self.rounds.are_done() {
            self.stop();
        } else {
            self.rounds.is_stopping = true;
        }
    }
}
