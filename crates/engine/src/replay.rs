//! Replays of the retained messages of new subscriptions, as far as the session accepts them and
//! the turn has time.
//!
//! A filter may match nothing among a million topics, and many clients may subscribe at once: the
//! visits of all replays in one turn are bounded, and the remaining replays continue in the next
//! turn, in the order of their begin.

use std::collections::VecDeque;
use std::sync::Arc;

use thrum_codec::QoS;
use thrum_protection::MemoryLevel;
use thrum_protocol::server::DeliveryOptions;
use thrum_protocol::{Message, Outgoing};
use thrum_routing::Allowance;

use super::client::{Replay, Written};
use super::core::Core;
use super::subscriber::Subscriber;
use super::topics::Topics;
use crate::ids::Slot;

/// Greatest number of retained messages in one look-up. They are delivered at once: a replay that
/// waits stores a position and never a message, which could be replaced meanwhile and then arrive
/// after its replacement.
const REPLAY_PAGE: usize = 64;
/// Number of queued messages from which on a session receives no more retained messages.
const REPLAY_BACKLOG_MAX: usize = 256;
/// Number of topic branches that all replays of one turn may visit, which takes about half a
/// millisecond.
const VISITS_PER_TURN: usize = 4096;

/// The visits that are left to the replays of the turn, and the sessions that continue in the next
/// turn.
#[derive(Debug, Default)]
pub struct Replays {
    visits_left: usize,
    /// Buffer for messages of one look-up, kept to reuse its memory.
    page: Vec<Arc<Message>>,
    /// Filters of a durable session whose replays the current SUBSCRIBE has begun.
    pub(super) begun: Vec<Box<str>>,
    /// Slots and numbers of sessions that continue in the next turn; each is listed at most once.
    waiting: VecDeque<(Slot, u64)>,
}

impl Replays {
    /// Whether replays continue in the next turn, which should begin at once.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }
}

/// A replay that is continued now.
#[derive(Debug)]
struct UnderWay {
    filter: Box<str>,
    replay: Replay,
}

/// The reason why a page of a replay ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PageEnd {
    /// The replay is complete.
    Replay,
    /// The limit of the page was reached; the replay continues at a position.
    Place,
    /// The session has no room for the next message; the replay continues when the client has
    /// acknowledged messages.
    Room,
}

impl Replays {
    /// Continues, at the start of a turn, the replays that the previous turn has left.
    pub fn replay_waiting(&mut self, core: &mut Core, topics: &Topics) {
        self.visits_left = VISITS_PER_TURN;
        while self.visits_left > 0
            && let Some((slot, id)) = self.waiting.pop_front()
        {
            if core.sessions.is(slot, id) {
                core.sessions[slot].rare_mut().replay_waits = false;
                self.replay(core, topics, slot);
            }
        }
    }

    /// Continues the replays of a session, as far as the session accepts their messages.
    pub fn replay(&mut self, core: &mut Core, topics: &Topics, slot: Slot) {
        while let Some(room) = replay_room(core, slot) {
            let rare = core.sessions[slot].rare_mut();
            if self.visits_left == 0 {
                rare.replay_waits = true;
                let id = core.sessions[slot].session.id();
                self.waiting.push_back((slot, id));
                break;
            }
            let Some((filter, replay)) = rare.replays.pop_first() else {
                break;
            };
            let subscriber = topics.subscriber(slot, &filter);
            let mut under_way = UnderWay { filter, replay };
            let end = subscriber.map_or(PageEnd::Replay, |subscriber| {
                self.replay_page(core, &subscriber, &mut under_way, room)
            });
            let UnderWay { filter, mut replay } = under_way;
            if end != PageEnd::Replay {
                replay.written = replay.written.outdated();
                let rare = core.sessions[slot].rare_mut();
                rare.replays.insert(filter, replay);
            } else if replay.written != Written::Nothing {
                topics.write_owed(core, slot, &filter, None);
            }
            if end == PageEnd::Room {
                break;
            }
        }
        if core.sessions[slot].session.is_durable() {
            write_first_place(core, topics, slot);
        }
        core.sessions[slot].drop_unused();
    }

    /// Records the replays that a SUBSCRIBE has begun and that are not complete, so that they
    /// continue after a crash.
    pub fn write_begun(&mut self, core: &mut Core, topics: &Topics, slot: Slot) {
        let mut begun = std::mem::take(&mut self.begun);
        for filter in begun.drain(..) {
            write_place(core, topics, slot, &filter);
        }
        self.begun = begun;
    }

    /// Sends the next messages of a replay.
    fn replay_page(
        &mut self,
        core: &mut Core,
        subscriber: &Subscriber,
        under_way: &mut UnderWay,
        room: usize,
    ) -> PageEnd {
        let UnderWay { filter, replay } = under_way;
        let mut allowance = Allowance {
            messages: REPLAY_PAGE.min(room),
            visits: self.visits_left,
        };
        let mut page = std::mem::take(&mut self.page);
        let store = &core.node.retained;
        let before = replay.after.take();
        replay.after = store.page(filter, before.clone(), &mut allowance, &mut page);
        self.visits_left = allowance.visits;
        let (mut has_room, mut last) = (true, None);
        let mut messages = page.drain(..);
        while let Some(message) = messages.next() {
            has_room = has_room_for_retained(core, subscriber, &message);
            if !has_room {
                let place = |last: Arc<Message>| core.node.retained.behind(last.topic());
                replay.after = last.map(place).or(before);
                break;
            }
            deliver_retained(core, subscriber, &message);
            // A congested session would drop the remaining messages with QoS 0.
            if !messages.as_slice().is_empty() && is_congested(core, subscriber.slot) {
                replay.after = Some(core.node.retained.behind(message.topic()));
                break;
            }
            last = Some(message);
        }
        drop(messages);
        self.page = page;
        match (has_room, &replay.after) {
            (false, _) => PageEnd::Room,
            (true, Some(_)) => PageEnd::Place,
            (true, None) => PageEnd::Replay,
        }
    }
}

/// Number of retained messages that the session accepts now; none if its queue is long, its output
/// is congested, it is disconnected or it is listed for the next turn.
fn replay_room(core: &Core, slot: Slot) -> Option<usize> {
    let client = &core.sessions[slot];
    let connection = client.connection?;
    let rare = client.rare.as_deref()?;
    let is_congested = core.outputs[connection].is_congested;
    if rare.replays.is_empty() || rare.replay_waits || is_congested {
        return None;
    }
    let (queued, _, _) = client.session.outbound().backlog();
    // A part of the queue stays free for new messages.
    let queue_max = core.settings.session.queue.messages_max as usize;
    let backlog_max = REPLAY_BACKLOG_MAX.min(queue_max.div_ceil(2));
    (queued < backlog_max).then(|| backlog_max - queued)
}

/// Whether the session accepts one more message without dropping it.
fn has_room_for_retained(core: &Core, subscriber: &Subscriber, message: &Message) -> bool {
    let slot = subscriber.slot;
    let qos = core
        .settings
        .delivered_qos(message.qos(), subscriber.options.qos);
    let identifiers = usize::from(subscriber.identifier() != 0);
    let session = &core.sessions[slot].session;
    let lacks_memory =
        || core.memory.level >= MemoryLevel::Short && core.lacks_memory_for(slot, qos);
    session.has_room_for(message, qos, identifiers) && !lacks_memory()
}

fn is_congested(core: &Core, slot: Slot) -> bool {
    let connection = core.sessions[slot].connection;
    connection.is_some_and(|key| core.outputs[key].is_congested)
}

fn deliver_retained(core: &mut Core, subscriber: &Subscriber, message: &Arc<Message>) {
    let (slot, topic) = (subscriber.slot, message.topic());
    let qos = subscriber.options.qos;
    if message.is_expired(core.turn.now) {
        return;
    }
    // The rules may allow only a part of the topics that the filter matches.
    if subscriber.is_checked()
        && !core.sessions[slot].may_receive(topic, qos, subscriber.or_allowed())
    {
        return;
    }
    let mut frames = std::mem::take(&mut core.frames);
    // The storage removes the message when it is replaced, and the changes of the replacing worker
    // may become durable before the changes of this one.
    let qos = core.settings.delivered_qos(message.qos(), qos);
    let is_durable = core.sessions[slot].session.is_durable();
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
    core.deliver(slot, &mut outgoing, options);
    core.frames = frames;
}

/// Records the position of a replay, in one unit with its deliveries.
fn write_place(core: &mut Core, topics: &Topics, slot: Slot, filter: &str) {
    let rare = core.sessions[slot].rare.as_deref_mut();
    let replay = rare.and_then(|rare| rare.replays.get_mut(filter));
    let Some(replay) = replay.filter(|replay| replay.written != Written::Place) else {
        return;
    };
    replay.written = Written::Place;
    let place = core.node.retained.write_place(replay.after.as_ref());
    topics.write_owed(core, slot, filter, Some(&place));
}

/// Records the position of the replay that continues next.
fn write_first_place(core: &mut Core, topics: &Topics, slot: Slot) {
    let rare = core.sessions[slot].rare.as_deref();
    let first = rare.and_then(|rare| rare.replays.first_key_value());
    if let Some(filter) = first.map(|(filter, _)| filter.clone()) {
        write_place(core, topics, slot, &filter);
    }
}
