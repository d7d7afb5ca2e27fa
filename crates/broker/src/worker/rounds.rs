//! What is done with every connection or session of a worker, a portion in each turn: bans,
//! listeners that were removed, and the wills of a stop.

use std::sync::mpsc::SyncSender;

use thrum_codec::ReasonCode;
use thrum_engine::ids::{ConnectionKey, Slot};
use thrum_engine::node::metrics::Counter;
use thrum_engine::workers::WorkerId;

use super::Worker;
use crate::control::settled;
use crate::door::is_banned;
use crate::edge::{Ending, Farewell};

/// What a round is for.
#[derive(Debug)]
pub(super) enum Errand {
    /// Who came through one of these gates has to go.
    Part(Vec<u16>),
    /// Who is banned has to go.
    Bans,
    /// The wills of those who are connected are published.
    Wills,
}

/// One look at every slot of a slab.
#[derive(Debug)]
struct Round {
    next: usize,
    /// Who comes later is judged by what holds then.
    end: usize,
    errand: Errand,
}

/// The rounds under way, and who waits for their end.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    under_way: Vec<Round>,
    settling: Vec<SyncSender<WorkerId>>,
    /// Stop when they are done.
    is_stopping: bool,
}

impl Rounds {
    pub(super) fn are_done(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Nobody is left who came through these gates, and others get their numbers.
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

    /// The next portion of the rounds, one after the other.
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

    /// Who came through one of these gates is told and disconnected.
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
            if let Some(will) = self.traffic.engine.permitted(slot, will) {
                self.traffic.engine.publish_will(will);
            }
        }
    }

    /// Somebody wants to know when what came before is in force.
    pub(super) fn settles_for(&mut self, sender: SyncSender<WorkerId>) {
        self.rounds.settling.push(sender);
    }

    /// The mail of the turn has left: what came before is in force, if no round is under way.
    pub(super) fn tell_settled(&mut self) {
        if self.rounds.are_done() {
            for sender in self.rounds.settling.drain(..) {
                settled(self.traffic.engine.core.id, &sender);
            }
        }
    }

    /// Stops when what came before is done.
    pub(super) fn stop_after_rounds(&mut self) {
        if self.rounds.are_done() {
            self.stop();
        } else {
            self.rounds.is_stopping = true;
        }
    }
}
