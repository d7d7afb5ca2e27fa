//! The retained messages of new subscriptions, sent as the session takes them and as the turn has time.
//!
//! A filter may match nothing among a million topics, and many may subscribe at once: what all of them
//! visit in one turn is bounded, and who is not done goes on in the next turn, first come first served.

use std::collections::VecDeque;
use std::sync::Arc;

use thrum_protocol::server::DeliveryOptions;
use thrum_protocol::{Message, Outgoing};
use thrum_routing::Allowance;

use crate::worker::{Replay, Worker};

/// Retained messages that are looked up at a time.
const REPLAY_PAGE: usize = 64;
/// A session with this many messages queued gets no more retained ones until it took some.
const REPLAY_BACKLOG_MAX: usize = 256;
/// Branches of topics that all replays of one turn may visit: about half a millisecond.
const VISITS_PER_TURN: usize = 4096;

/// What the replays of one turn may still do, and who waits for the next one.
#[derive(Debug, Default)]
pub(crate) struct ReplayTurn {
    visits_left: usize,
    /// Slots and numbers of sessions, each once as its client notes that it waits.
    waiting: VecDeque<(u32, u64)>,
}

impl ReplayTurn {
    /// Somebody goes on in the next turn, which should come at once.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }
}

impl Worker {
    /// A turn begins: who had to wait goes on.
    pub(crate) fn replay_waiting(&mut self) {
        self.replays.visits_left = VISITS_PER_TURN;
        while self.replays.visits_left > 0
            && let Some((slot, id)) = self.replays.waiting.pop_front()
        {
            if self.is_session(slot, id) {
                self.local.clients[slot as usize].rare_mut().replay_waits = false;
                self.replay(slot);
            }
        }
    }

    /// Goes on with the retained messages of new subscriptions, as far as the session takes them.
    pub(crate) fn replay(&mut self, slot: u32) {
        while let Some(mut replay) = self.next_replay(slot) {
            if replay.page.is_empty() && self.replays.visits_left == 0 {
                self.replay_next_turn(slot, replay);
                return;
            }
            if replay.page.is_empty() {
                self.look_up(&mut replay);
            }
            if let Some(message) = replay.page.pop() {
                self.deliver_retained(slot, &replay, &message);
            }
            if replay.after.is_some() || !replay.page.is_empty() {
                let rare = self.local.clients[slot as usize].rare_mut();
                rare.replays.push_front(replay);
            }
        }
        self.local.clients[slot as usize].drop_unused();
    }

    fn replay_next_turn(&mut self, slot: u32, replay: Replay) {
        let client = &mut self.local.clients[slot as usize];
        let id = client.session.id();
        let rare = client.rare_mut();
        rare.replays.push_front(replay);
        rare.replay_waits = true;
        self.replays.waiting.push_back((slot, id));
    }

    fn look_up(&mut self, replay: &mut Replay) {
        let after = replay.after.take();
        let page = &mut replay.page;
        let mut allowance = Allowance {
            messages: REPLAY_PAGE,
            visits: self.replays.visits_left,
        };
        let store = &self.node.retained;
        replay.after = store.page(&replay.filter, after, &mut allowance, page);
        self.replays.visits_left = allowance.visits;
        // Taken from the end.
        page.reverse();
    }

    /// The replay to go on with, unless the session has enough to do or waits for its turn.
    fn next_replay(&mut self, slot: u32) -> Option<Replay> {
        let client = &mut self.local.clients[slot as usize];
        let connection = client.connection_slot();
        let rare = client.rare.as_deref_mut()?;
        if rare.replays.is_empty() || rare.replay_waits {
            return None;
        }
        let (queued, _, _) = client.session.backlog();
        let congested = connection.is_some_and(|key| self.local.connections[key].congested);
        // New messages find room too.
        let queue_max = self.local.settings.session.queue_messages_max as usize;
        let backlog_max = REPLAY_BACKLOG_MAX.min(queue_max.div_ceil(2));
        if queued >= backlog_max || congested {
            return None;
        }
        rare.replays.pop_front()
    }

    fn deliver_retained(&mut self, slot: u32, replay: &Replay, message: &Arc<Message>) {
        if message.is_expired(self.local.now) {
            return;
        }
        // The rules may allow a part of what the filter matches.
        if !self.may_replay(slot, replay, message.topic()) {
            return;
        }
        let mut frames = std::mem::take(&mut self.frames);
        let message = &self.own_copy(message);
        let mut outgoing = Outgoing::from_message(message, &mut frames);
        let one = [replay.identifier.unwrap_or(0)];
        let options = DeliveryOptions {
            qos: outgoing.publication().qos.min(replay.qos),
            // [MQTT-3.3.1-8] [MQTT3-3.3.1-8]
            retain: true,
            identifiers: if one[0] == 0 { &[] } else { &one },
            group: None,
        };
        self.local.deliver(slot, &mut outgoing, options);
        self.frames = frames;
    }

    fn may_replay(&self, slot: u32, replay: &Replay, topic: &str) -> bool {
        let filter = self.index.find(&replay.filter);
        let subscriber = filter.and_then(|filter| self.index.destination(filter, slot));
        subscriber.is_none_or(|subscriber| {
            let qos = subscriber.options.qos;
            !subscriber.is_checked()
                || self
                    .local
                    .may_receive(slot, topic, qos, subscriber.or_allowed())
        })
    }
}
