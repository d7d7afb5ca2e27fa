//! The retained messages of new subscriptions, sent as the session takes them and as the turn has
//! time.
//!
//! A filter may match nothing among a million topics, and many may subscribe at once: what all of
//! them visit in one turn is bounded, and who is not done goes on in the next turn, first come
//! first served.

use std::collections::VecDeque;
use std::sync::Arc;

use thrum_codec::QoS;
use thrum_protection::MemoryLevel;
use thrum_protocol::server::DeliveryOptions;
use thrum_protocol::{Message, Outgoing};
use thrum_routing::Allowance;

use crate::ids::Slot;
use crate::subscribe::Subscriber;
use crate::worker::{Replay, Worker, Written};

/// Retained messages that are looked up at a time. Each is delivered at once: what waits is a place
/// among the topics and never a message, which might be replaced meanwhile and then come after the
/// one that replaced it.
const REPLAY_PAGE: usize = 64;
/// A session with this many messages queued gets no more retained ones until it took some.
const REPLAY_BACKLOG_MAX: usize = 256;
/// Branches of topics that all replays of one turn may visit: about half a millisecond.
const VISITS_PER_TURN: usize = 4096;

/// What the replays of one turn may still do, and who waits for the next one.
#[derive(Debug, Default)]
pub(crate) struct ReplayTurn {
    visits_left: usize,
    /// Messages that were looked up and are about to be delivered; kept for its room alone.
    page: Vec<Arc<Message>>,
    /// Filters of a durable session whose replays the SUBSCRIBE at hand has begun.
    pub(crate) begun: Vec<Box<str>>,
    /// Slots and numbers of sessions, each once as its client notes that it waits.
    waiting: VecDeque<(Slot, u64)>,
}

impl ReplayTurn {
    /// Somebody goes on in the next turn, which should come at once.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }
}

/// Where a page of a replay ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PageEnd {
    /// At the end of the replay.
    Replay,
    /// At a place where it goes on.
    Place,
    /// At a message for which there is no room: it goes on when the client has taken some.
    Room,
}

impl Worker {
    /// A turn begins: who had to wait goes on.
    pub(crate) fn replay_waiting(&mut self) {
        self.replays.visits_left = VISITS_PER_TURN;
        while self.replays.visits_left > 0
            && let Some((slot, id)) = self.replays.waiting.pop_front()
        {
            if self.is_session(slot, id) {
                self.local.clients[slot].rare_mut().replay_waits = false;
                self.replay(slot);
            }
        }
    }

    /// Goes on with the retained messages of new subscriptions, as far as the session takes them.
    pub(crate) fn replay(&mut self, slot: Slot) {
        while let Some(room) = self.replay_room(slot) {
            let rare = self.local.clients[slot].rare_mut();
            if self.replays.visits_left == 0 {
                rare.replay_waits = true;
                let id = self.local.clients[slot].session.id();
                self.replays.waiting.push_back((slot, id));
                break;
            }
            let Some((filter, mut replay)) = rare.replays.pop_first() else {
                break;
            };
            let end = self.replay_page(slot, &filter, &mut replay, room);
            if end != PageEnd::Replay {
                replay.written = replay.written.outdated();
                let rare = self.local.clients[slot].rare_mut();
                rare.replays.insert(filter, replay);
            } else if replay.written != Written::Nothing {
                self.write_owed(slot, &filter, None);
            }
            if end == PageEnd::Room {
                break;
            }
        }
        if self.local.clients[slot].session.is_durable() {
            self.write_first_place(slot);
        }
        self.local.clients[slot].drop_unused();
    }

    /// The replay that goes on next has stopped for now.
    fn write_first_place(&mut self, slot: Slot) {
        let rare = self.local.clients[slot].rare.as_deref();
        let first = rare.and_then(|rare| rare.replays.first_key_value());
        if let Some(filter) = first.map(|(filter, _)| filter.clone()) {
            self.write_place(slot, &filter);
        }
    }

    /// Replays that a SUBSCRIBE has begun and that are not over are owed from now on, whatever
    /// happens to the node.
    pub(crate) fn write_begun(&mut self, slot: Slot) {
        let mut begun = std::mem::take(&mut self.replays.begun);
        for filter in begun.drain(..) {
            self.write_place(slot, &filter);
        }
        self.replays.begun = begun;
    }

    /// Writes down how far a replay has come, in one unit with what it has delivered.
    fn write_place(&mut self, slot: Slot, filter: &str) {
        let rare = self.local.clients[slot].rare.as_deref_mut();
        let replay = rare.and_then(|rare| rare.replays.get_mut(filter));
        let Some(replay) = replay.filter(|replay| replay.written != Written::Place) else {
            return;
        };
        replay.written = Written::Place;
        let place = self.node.retained.write_place(replay.after.as_ref());
        self.write_owed(slot, filter, Some(&place));
    }

    /// How many retained messages the session takes now; none if it has enough to do, is away or
    /// waits for its turn.
    fn replay_room(&self, slot: Slot) -> Option<usize> {
        let client = &self.local.clients[slot];
        let connection = client.connection?;
        let rare = client.rare.as_deref()?;
        let is_congested = self.local.connections[connection].congested;
        if rare.replays.is_empty() || rare.replay_waits || is_congested {
            return None;
        }
        let (queued, _, _) = client.session.backlog();
        // New messages find room too.
        let queue_max = self.local.settings.session.queue_messages_max as usize;
        let backlog_max = REPLAY_BACKLOG_MAX.min(queue_max.div_ceil(2));
        (queued < backlog_max).then(|| backlog_max - queued)
    }

    /// The next messages.
    fn replay_page(
        &mut self,
        slot: Slot,
        filter: &str,
        replay: &mut Replay,
        room: usize,
    ) -> PageEnd {
        let found = self.index.find(filter);
        let subscriber = found.and_then(|id| self.index.destination(id, slot).copied());
        let Some(subscriber) = subscriber else {
            return PageEnd::Replay;
        };
        let mut allowance = Allowance {
            messages: REPLAY_PAGE.min(room),
            visits: self.replays.visits_left,
        };
        let mut page = std::mem::take(&mut self.replays.page);
        let store = &self.node.retained;
        let before = replay.after.take();
        replay.after = store.page(filter, before.clone(), &mut allowance, &mut page);
        self.replays.visits_left = allowance.visits;
        let (mut has_room, mut last) = (true, None);
        let mut messages = page.drain(..);
        while let Some(message) = messages.next() {
            has_room = self.has_room_for_retained(&subscriber, &message);
            if !has_room {
                let place = |last: Arc<Message>| self.node.retained.behind(last.topic());
                replay.after = last.map(place).or(before);
                break;
            }
            self.deliver_retained(&subscriber, &message);
            // Of QoS 0 the rest would be dropped.
            if !messages.as_slice().is_empty() && self.is_congested(slot) {
                replay.after = Some(self.node.retained.behind(message.topic()));
                break;
            }
            last = Some(message);
        }
        drop(messages);
        self.replays.page = page;
        match (has_room, &replay.after) {
            (false, _) => PageEnd::Room,
            (true, Some(_)) => PageEnd::Place,
            (true, None) => PageEnd::Replay,
        }
    }

    /// Whether the session takes one more, and does not drop it.
    fn has_room_for_retained(&self, subscriber: &Subscriber, message: &Message) -> bool {
        let slot = subscriber.slot;
        let qos = self
            .local
            .delivered_qos(message.qos(), subscriber.options.qos);
        let identifiers = usize::from(subscriber.identifier() != 0);
        let session = &self.local.clients[slot].session;
        let lacks_memory = || {
            self.local.memory.level >= MemoryLevel::Short && self.local.lacks_memory_for(slot, qos)
        };
        session.has_room_for(message, qos, identifiers) && !lacks_memory()
    }

    fn is_congested(&self, slot: Slot) -> bool {
        let connection = self.local.clients[slot].connection;
        connection.is_some_and(|key| self.local.connections[key].congested)
    }

    fn deliver_retained(&mut self, subscriber: &Subscriber, message: &Arc<Message>) {
        let (slot, topic) = (subscriber.slot, message.topic());
        let qos = subscriber.options.qos;
        if message.is_expired(self.local.now) {
            return;
        }
        // The rules may allow a part of what the filter matches.
        if subscriber.is_checked()
            && !self
                .local
                .may_receive(slot, topic, qos, subscriber.or_allowed())
        {
            return;
        }
        let mut frames = std::mem::take(&mut self.frames);
        // The message is let go of when it is replaced, maybe by another worker whose turn is on
        // the disk before this one.
        let qos = self.local.delivered_qos(message.qos(), qos);
        let is_durable = self.local.clients[slot].session.is_durable();
        let is_written = is_durable && qos != QoS::AtMostOnce;
        let copy = is_written.then(|| Arc::new(message.copy_unstored()));
        let mut outgoing = Outgoing::from_message(copy.as_ref().unwrap_or(message), &mut frames);
        let one = [subscriber.identifier()];
        let options = DeliveryOptions {
            qos,
            // [MQTT-3.3.1-8] [MQTT3-3.3.1-8]
            retain: true,
            identifiers: if one[0] == 0 { &[] } else { &one },
            group: None,
            is_acknowledged: false,
        };
        self.local.deliver(slot, &mut outgoing, options);
        self.frames = frames;
    }
}
