//! Ended connections, and clients that reconnect.

use std::cmp::Reverse;

use thrum_codec::packet::ConnAck;
use thrum_figures::{SECOND_NS, nanos};
use thrum_load::floors::begins_ns;
use thrum_load::histogram::enter;
use thrum_load::thread_report::{Absence, SubscriberState};
use thrum_quic::Dialing;

use super::outbox::slot;
use super::peer::{Impairment, NONE, Step};
use super::ramp::open_offset_ns;
use super::times::Read;
use super::{Swarm, Wake};

/// Doublings of the wait between two reconnect attempts.
const DOUBLINGS_MAX: u32 = 16;

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The broker or the network ended it.
    Lost,
    /// The scenario ended it on purpose.
    Cut,
}

impl Swarm {
    /// The broker or the network ended a connection.
    pub(super) fn lose(&mut self, peer: u32, reason: &str) {
        let extra = self.peers[slot(peer)].extra.as_ref();
        let dialing = extra.and_then(|extra| extra.dialing.as_ref());
        // Of QUIC only the end is seen here; why is known where it is carried.
        let failure = dialing.and_then(Dialing::failure).map(ToString::to_string);
        self.end(peer, End::Lost, failure.as_deref().unwrap_or(reason));
    }

    /// Ends a connection: a failure if the client was not ready yet, otherwise it is disconnected
    /// or lost.
    pub(super) fn end(&mut self, peer: u32, end: End, reason: &str) {
        let now_ns = self.now_ns();
        let state = &mut self.peers[slot(peer)];
        if state.is_over() || state.step == Step::Away {
            return;
        }
        let was_up = state.step == Step::Ready;
        if was_up || state.step == Step::Subscribing {
            self.tally.interrupt(state.subscriber);
        }
        state.client.connection_lost();
        state.stream = None;
        state.stalled = None;
        if let Some(extra) = &mut state.extra {
            extra.layers = None;
            extra.dialing = None;
            extra.answers.clear();
        }
        if was_up {
            self.up -= 1;
            self.tally.slice.counts.lost += 1;
            match end {
                End::Lost => self.tally.counts.connections_lost += 1,
                End::Cut => self.tally.counts.connections_cut += 1,
            }
        }
        if end == End::Lost {
            self.tally.slice.note(reason, 1);
        }
        self.settle_unacknowledged(peer);
        let state = &mut self.peers[slot(peer)];
        let policy = self.groups[slot(state.group)].reconnect;
        let was_ready = was_up || state.away_since_ns() != 0;
        // A network with planned cuts also cuts connections during the handshake: that is not a
        // refusal by the broker.
        let tries_again = was_ready || self.groups[slot(state.group)].breaks;
        match policy {
            Some(policy) if tries_again && !self.control.is_stopped() => {
                let extra = state.extra.get_or_insert_default();
                if was_up {
                    extra.away_since_ns = now_ns;
                    extra.attempts = 0;
                    state.own_us = 0;
                }
                // A frozen client thaws with its new connection.
                extra.impairment = Impairment::None;
                let doubled =
                    nanos(policy.delay).saturating_mul(1 << extra.attempts.min(DOUBLINGS_MAX));
                extra.attempts += 1;
                state.step = Step::Away;
                let due_ns = now_ns + doubled.min(nanos(policy.delay_max));
                self.timers.push(Reverse((due_ns, Wake::Reconnect(peer))));
            }
            _ if was_ready => {
                state.step = Step::Lost;
                if end == End::Cut {
                    self.note_farewell(peer, now_ns);
                }
            }
            _ => {
                state.step = Step::Failed;
                self.failed += 1;
                self.tally.slice.counts.failed += 1;
            }
        }
    }

    /// Excuses deliveries to a client that the scenario removes for good. The other members of its
    /// shared subscription get the rest, once the broker has noticed.
    fn note_farewell(&mut self, peer: u32, now_ns: u64) {
        let state = &mut self.peers[slot(peer)];
        let subscriber = self.tally.subscribers.get(slot(state.subscriber));
        let until_ns = match subscriber.map(|subscriber| &subscriber.state) {
            Some(SubscriberState::Shared(_)) => now_ns + SECOND_NS,
            Some(SubscriberState::Each { .. }) | None => u64::MAX,
        };
        let absence = Absence {
            heard_ns: subscriber.map_or(0, |subscriber| subscriber.heard_ns),
            from_ns: now_ns,
            to_ns: until_ns,
        };
        state.extra().absences.push(absence);
    }

    /// Without a durable session the sent messages are never acknowledged.
    fn settle_unacknowledged(&mut self, peer: u32) {
        let state = &self.peers[slot(peer)];
        if state.publisher != NONE && state.client.inflight() == 0 {
            self.give_up_awaited(state.publisher);
        }
    }

    fn give_up_awaited(&mut self, publisher: u32) {
        let given_up = self.publishers[slot(publisher)].give_up();
        self.awaiting = self
            .awaiting
            .saturating_sub(u64::try_from(given_up).unwrap_or(0));
    }

    /// Tries to reconnect, which was due at a time.
    pub(super) fn reopen(&mut self, peer: u32, due_ns: u64) {
        if self.peers[slot(peer)].step == Step::Away {
            // Bytes left there belong to the old connection.
            self.flush_replies();
            self.flush_publications();
            let now_ns = self.now_ns();
            self.peers[slot(peer)].add_own(now_ns.saturating_sub(due_ns));
            self.open(peer, now_ns);
        }
    }

    /// The broker accepted the client: it subscribes, or it is ready.
    pub(super) fn handle_connected(&mut self, peer: u32, ack: &ConnAck<'_>, read: Read) {
        let now_ns = read.at_ns;
        let state = &mut self.peers[slot(peer)];
        state.add_own(read.waited_ns());
        let is_back = state.away_since_ns() != 0;
        if !is_back {
            let due_ns = self.control.ramp_start_ns + open_offset_ns(&self.plan, state.number);
            let waited_ns = now_ns.saturating_sub(begins_ns(due_ns, state.since_ns));
            state.add_own(self.tally.carriers.waited_since_ns(state.since_ns));
            let latencies = &mut self.tally.slice.latencies;
            enter(&mut latencies.connect, waited_ns);
            enter(&mut latencies.floors.connect, state.floor_ns(waited_ns));
        }
        if !ack.session_present {
            if is_back {
                self.note_absence(peer, now_ns);
            }
            self.settle_unacknowledged(peer);
        }
        let state = &self.peers[slot(peer)];
        if state.subscriber == NONE || (is_back && ack.session_present) {
            self.become_ready(peer, now_ns);
        } else {
            self.subscribe(peer, now_ns);
        }
    }

    /// A client of a clean session receives no message that is published while it is disconnected.
    fn note_absence(&mut self, peer: u32, now_ns: u64) {
        let state = &mut self.peers[slot(peer)];
        let subscriber = self.tally.subscribers.get(slot(state.subscriber));
        let heard_ns = subscriber.map_or(0, |subscriber| subscriber.heard_ns);
        let extra = state.extra();
        extra.absences.push(Absence {
            heard_ns,
            from_ns: extra.away_since_ns,
            to_ns: now_ns,
        });
    }

    /// Connected and subscribed, for the first time or again.
    pub(super) fn become_ready(&mut self, peer: u32, now_ns: u64) {
        let state = &mut self.peers[slot(peer)];
        state.step = Step::Ready;
        self.up += 1;
        let slice = &mut self.tally.slice;
        slice.counts.connected += 1;
        if let Some(extra) = state
            .extra
            .as_mut()
            .filter(|extra| extra.away_since_ns != 0)
        {
            let latency_ns = now_ns.saturating_sub(extra.away_since_ns);
            enter(&mut slice.latencies.reconnect, latency_ns);
            let carried_ns = self.tally.carriers.waited_since_ns(extra.away_since_ns);
            let own_ns = u64::from(state.own_us) * 1_000 + carried_ns;
            let floor_ns = latency_ns.saturating_sub(own_ns);
            enter(&mut slice.latencies.floors.reconnect, floor_ns);
            // Until the subscription is back, too, nothing arrives.
            if let Some(absence) = extra
                .absences
                .last_mut()
                .filter(|last| last.from_ns == extra.away_since_ns)
            {
                absence.to_ns = now_ns;
            }
            extra.away_since_ns = 0;
            self.came_back = true;
            self.tally.counts.reconnected += 1;
        } else {
            self.ready += 1;
        }
        let publisher = state.publisher;
        if publisher != NONE {
            self.go_on_publishing(publisher);
        }
    }
}
