//! Publishers that are held back: a PUBLISH with QoS 1 or 2 for a queue that is full waits in its
//! connection, with all that stands behind it. So there is one for each connection, it is not
//! answered, and nothing overtakes it but what cannot wait: acknowledgements of what the client
//! gets, lest two that publish to each other wait for each other, and pings.
//!
//! Those who wait for the same queue go on in the order in which they came, as soon as the owner of
//! the queue says that there is room. Whoever has waited for `limits.client.queue_hold` is let go
//! without: it is refused then, if nobody takes it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use thrum_codec::QoS;
use thrum_codec::packet::{Packet, Publish};
use thrum_protection::MemoryLevel;
use thrum_protocol::{Message, Time};

use super::client::Client;
use super::core::Core;
use super::publishing::is_reserved;
use super::reach::{Clearance, Cleared};
use super::shared::MEMBERS_SEEN_MAX;
use super::timers::Target;
use super::topics::Topics;
use crate::access::Verdict;
use crate::ids::{ConnectionId, ConnectionKey, Slot};
use crate::node::metrics::Counter;
use crate::queue_room::{QueueRoom, Shortage};

/// How often it is looked whether somebody has waited for too long, or for a member that has come
/// since.
const HOLD_CHECK: Duration = Duration::from_millis(100);
/// How often the owner of a queue is told that somebody waits for it: messages expire by the
/// second.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// A publisher that waits.
#[derive(Clone, Copy, Debug)]
struct Held {
    connection: ConnectionId,
    term: Term,
    /// Of its topic, properties and payload.
    bytes: usize,
}

/// When a PUBLISH came, and how long it may wait.
#[derive(Clone, Copy, Debug)]
struct Term {
    since: Time,
    until: Time,
}

/// Those who wait for the same queue, the one whose time is over first in front.
#[derive(Debug, Default)]
struct Line {
    held: VecDeque<Held>,
    /// The session that it is about; none for a group.
    room: Option<Arc<QueueRoom>>,
    /// When the owners of the queues were told last.
    told_at: Option<Time>,
    /// It is looked at at the end of the turn.
    is_listed: bool,
}

/// A publisher that was let go and whose PUBLISH has not been handled since.
#[derive(Clone, Copy, Debug)]
struct LetGo {
    connection: ConnectionId,
    term: Term,
    /// The client has said goodbye: nothing of what it sent before waits.
    is_leaving: bool,
}

/// A client whose packet is at hand.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asker {
    pub(super) connection: ConnectionId,
    pub(super) slot: Slot,
    /// What the rules say of what it publishes.
    pub(super) verdict: Verdict,
}

/// A message that may have to wait.
#[derive(Debug)]
struct Awaited {
    topic: Box<str>,
    bytes: usize,
}

/// What a PUBLISH has to wait for.
#[derive(Debug)]
struct Missing {
    shortage: Shortage,
    /// The session that it is about; none for a group.
    room: Option<Arc<QueueRoom>>,
    bytes: usize,
}

/// All publishers of this worker that wait.
#[derive(Debug, Default)]
pub struct HeldPublishers {
    lines: BTreeMap<Shortage, Line>,
    /// By connection. While there are some, the node counts them in `holding`, so that they are
    /// asked for.
    let_go: BTreeMap<ConnectionKey, LetGo>,
    /// There may be room for these, or somebody has waited for long enough.
    listed: VecDeque<Shortage>,
    is_timed: bool,
    /// The line that is looked at, and the rooms that it waits for.
    at_hand: Option<(Shortage, Vec<Arc<QueueRoom>>)>,
    /// Lines that were listed when the turn's portion of them began and were not looked at since.
    round_left: usize,
}

impl HeldPublishers {
    /// Some go on in the next turn, which should come at once.
    #[inline]
    pub fn are_listed(&self) -> bool {
        !self.listed.is_empty()
    }

    /// Whether a packet may be handled now; none for a PUBLISH that waits from here on.
    #[inline]
    pub(super) fn clearance(
        &mut self,
        core: &mut Core,
        topics: &mut Topics,
        asker: Asker,
        packet: &Packet<'_>,
    ) -> Option<Cleared> {
        match packet {
            Packet::Publish(publish)
                if publish.qos != QoS::AtMostOnce
                    && (core.node.holding.load(Ordering::Relaxed) > 0
                        || core.memory.level >= MemoryLevel::Short) =>
            {
                self.clear(core, topics, asker, publish)
            }
            _ => Some(Cleared::unasked(asker.verdict)),
        }
    }

    #[cold]
    fn clear(
        &mut self,
        core: &mut Core,
        topics: &mut Topics,
        asker: Asker,
        publish: &Publish<'_>,
    ) -> Option<Cleared> {
        let Asker {
            connection,
            slot,
            verdict,
        } = asker;
        let key = connection.key;
        let let_go = self.let_go.get(&key).copied();
        let let_go = let_go.filter(|let_go| let_go.connection == connection);
        let is_leaving = let_go.is_some_and(|let_go| let_go.is_leaving);
        if let_go.is_some() && !is_leaving {
            self.forget_let_go(core, key);
        }
        let term = let_go.map(|let_go| let_go.term);
        let cleared = |clearance| {
            let came_at = term.map(|term| term.since);
            Some(Cleared {
                clearance,
                came_at,
                verdict,
            })
        };
        if is_leaving || core.settings.queue_hold.is_zero() {
            return cleared(Clearance::NotAsked);
        }
        if term.is_some_and(|term| term.until <= core.turn.now) {
            core.row().add(Counter::LimitQueueHold, 1);
            return cleared(Clearance::NotAsked);
        }
        let is_denied = verdict != Verdict::Allowed;
        let message = (!is_denied).then(|| Awaited::of(&core.sessions[slot], publish));
        let missing = message
            .flatten()
            .and_then(|message| self.shortage(core, topics, &message, term.is_some()));
        let Some(missing) = missing else {
            return cleared(Clearance::Given);
        };
        self.hold_publisher(core, connection, missing, term);
        None
    }

    /// What a PUBLISH has to wait for; none if everybody for whom a publisher waits has room.
    fn shortage(
        &self,
        core: &mut Core,
        topics: &mut Topics,
        message: &Awaited,
        is_going_on: bool,
    ) -> Option<Missing> {
        let bytes = message.bytes;
        let hash = topics.routes.hash(&message.topic);
        let entry = topics.recall(core, &message.topic, hash);
        let lines = &self.lines;
        let is_behind = |shortage| !is_going_on && lines.contains_key(&shortage);
        let mut groups = entry.route.groups.iter();
        let group = groups.find(|(group, members)| {
            let mut candidates = members.candidates(0).take(MEMBERS_SEEN_MAX);
            members.online_count() > 0
                && (is_behind(Shortage::Group(*group))
                    || !candidates.any(|member| member.room.has_room(bytes)))
        });
        let found = group.map(|(group, _)| (Shortage::Group(*group), None));
        let found = found.or_else(|| {
            let mut rooms = entry.route.nearly_full.iter();
            let room = rooms.find(|room| {
                let shortage = Shortage::Session(room.session.id);
                room.holds() && (is_behind(shortage) || !room.has_room(bytes))
            })?;
            let shortage = Shortage::Session(room.session.id);
            Some((shortage, Some(Arc::clone(room))))
        });
        topics.routes.put(hash, entry);
        found.map(|(shortage, room)| Missing {
            shortage,
            room,
            bytes,
        })
    }

    /// A PUBLISH waits; one that has waited before, for this or another queue, has the rest of its
    /// time.
    fn hold_publisher(
        &mut self,
        core: &mut Core,
        connection: ConnectionId,
        missing: Missing,
        term: Option<Term>,
    ) {
        let now = core.turn.now;
        let Missing {
            shortage,
            room,
            bytes,
        } = missing;
        let row = core.row();
        row.add(Counter::PublishesHeld, u64::from(term.is_none()));
        row.add(Counter::PublishersHeld, 1);
        row.add(Counter::BytesHeld, bytes as u64);
        let term = term.unwrap_or_else(|| Term {
            since: now,
            until: now.plus(core.settings.queue_hold),
        });
        let held = Held {
            connection,
            term,
            bytes,
        };
        let line = self.lines.entry(shortage).or_default();
        let place = line
            .held
            .partition_point(|other| other.term.until <= term.until);
        line.held.insert(place, held);
        line.room = room;
        if place == 0 {
            let rooms = self.rooms_of(core, shortage);
            if self.watch(core, shortage, &rooms, bytes) {
                self.list_line(shortage);
            }
        }
        self.look_after_held(core);
    }

    /// The owners of the queues tell us when they have room; true if one has some now.
    fn watch(
        &mut self,
        core: &mut Core,
        shortage: Shortage,
        rooms: &[Arc<QueueRoom>],
        bytes: usize,
    ) -> bool {
        let now = core.turn.now;
        let line = self.lines.get_mut(&shortage);
        let is_to_tell = line.is_some_and(|line| {
            let is_due = line
                .told_at
                .is_none_or(|told_at| now.since(told_at) >= TELL_EVERY);
            if is_due {
                line.told_at = Some(now);
            }
            is_due
        });
        for room in rooms {
            room.wait((core.id, shortage));
            if is_to_tell {
                core.tell_of_full(room.session);
            }
        }
        has_room(shortage, rooms, bytes)
    }

    fn rooms_of(&self, core: &Core, shortage: Shortage) -> Vec<Arc<QueueRoom>> {
        match shortage {
            Shortage::Session(_) => {
                let line = self.lines.get(&shortage);
                line.and_then(|line| line.room.clone())
                    .into_iter()
                    .collect()
            }
            Shortage::Group(group) => {
                let Some(members) = core.node.interest.members(group) else {
                    return Vec::new();
                };
                if members.online_count() == 0 {
                    return Vec::new();
                }
                let members = members.candidates(0).take(MEMBERS_SEEN_MAX);
                members.map(|member| Arc::clone(&member.room)).collect()
            }
        }
    }

    /// There is room that publishers of this worker have waited for: they go on at the end of the
    /// turn.
    pub(super) fn note_room(&mut self, core: &mut Core, shortage: Shortage, room: &Arc<QueueRoom>) {
        if self.lines.contains_key(&shortage) {
            self.list_line(shortage);
        } else {
            pass_room_on(core, std::slice::from_ref(room));
        }
    }

    fn list_line(&mut self, shortage: Shortage) {
        let line = self.lines.get_mut(&shortage);
        if line.is_some_and(|line| !std::mem::replace(&mut line.is_listed, true)) {
            self.listed.push_back(shortage);
        }
    }

    /// Publishers go on for whose messages there is room, or whose time is over: as far as their
    /// portion of the turn goes, and one in any case.
    pub fn begin_going_on(&mut self, core: &mut Core) {
        core.turn.begin_going_on();
        self.round_left = self.listed.len();
    }

    /// The next one that goes on: what it waits with is looked at again, now or when nothing else
    /// keeps it from being read.
    pub fn next_to_go_on(&mut self, core: &mut Core) -> Option<ConnectionId> {
        while self.round_left > 0 {
            let shortage = *self.listed.front()?;
            if let Some(held) = self.next_of(core, shortage) {
                self.forget_first(core, shortage, held);
                let let_go = LetGo {
                    connection: held.connection,
                    term: held.term,
                    is_leaving: false,
                };
                self.remember_let_go(core, let_go);
                return Some(held.connection);
            }
            self.end_line(shortage, false);
            if core.turn.is_going_on_over() {
                return None;
            }
        }
        None
    }

    /// Whether more may go on in this turn; the line at hand goes on in the next one.
    pub fn may_go_on(&mut self, core: &Core) -> bool {
        let may = !core.turn.is_going_on_over();
        if !may
            && let Some(shortage) = self.listed.front().copied()
            && self.round_left > 0
        {
            self.end_line(shortage, true);
        }
        may
    }

    /// The line at hand has been looked at.
    fn end_line(&mut self, shortage: Shortage, is_again: bool) {
        self.round_left -= 1;
        self.at_hand = None;
        self.listed.pop_front();
        if let Some(line) = self.lines.get_mut(&shortage) {
            line.is_listed = false;
        }
        if is_again {
            self.list_line(shortage);
        }
    }

    /// The first of a line, if it may go on.
    fn next_of(&mut self, core: &mut Core, shortage: Shortage) -> Option<Held> {
        let at_hand = self.at_hand.take().filter(|(known, _)| *known == shortage);
        let rooms = at_hand.map_or_else(|| self.rooms_of(core, shortage), |(_, rooms)| rooms);
        let Some(held) = self.first_held(core, shortage) else {
            pass_room_on(core, &rooms);
            return None;
        };
        let is_overdue = held.term.until <= core.turn.now;
        let may_go_on = is_overdue
            || has_room(shortage, &rooms, held.bytes)
            || self.watch(core, shortage, &rooms, held.bytes);
        self.at_hand = may_go_on.then_some((shortage, rooms));
        may_go_on.then_some(held)
    }

    /// The first one that is still there.
    fn first_held(&mut self, core: &Core, shortage: Shortage) -> Option<Held> {
        loop {
            let line = self.lines.get(&shortage)?;
            let Some(held) = line.held.front().copied() else {
                self.lines.remove(&shortage);
                return None;
            };
            if self.is_held(core, held.connection) {
                return Some(held);
            }
            self.forget_first(core, shortage, held);
        }
    }

    fn is_held(&self, core: &Core, connection: ConnectionId) -> bool {
        let let_go = self.let_go.get(&connection.key);
        let is_leaving =
            let_go.is_some_and(|let_go| let_go.connection == connection && let_go.is_leaving);
        core.outputs.session(connection).is_some() && !is_leaving
    }

    fn forget_first(&mut self, core: &Core, shortage: Shortage, held: Held) {
        let row = core.row();
        row.subtract(Counter::PublishersHeld, 1);
        row.subtract(Counter::BytesHeld, held.bytes as u64);
        if let Some(line) = self.lines.get_mut(&shortage) {
            line.held.pop_front();
            if line.held.is_empty() {
                self.lines.remove(&shortage);
            }
        }
    }

    /// The client has said goodbye behind its PUBLISH: all of it is handled in its order, and waits
    /// no longer.
    pub fn let_leave(&mut self, core: &mut Core, connection: ConnectionId) {
        let now = core.turn.now;
        let let_go = LetGo {
            connection,
            term: Term {
                since: now,
                until: now,
            },
            is_leaving: true,
        };
        self.remember_let_go(core, let_go);
    }

    fn remember_let_go(&mut self, core: &mut Core, let_go: LetGo) {
        if self.let_go.insert(let_go.connection.key, let_go).is_none() {
            core.node.holding.fetch_add(1, Ordering::Relaxed);
        }
        self.look_after_held(core);
    }

    fn forget_let_go(&mut self, core: &Core, key: ConnectionKey) {
        if self.let_go.remove(&key).is_some() {
            core.node.holding.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Looks after those who wait: for who has waited for long enough, and for queues whose owners
    /// do not know of them.
    pub fn are_due(&mut self, core: &mut Core) {
        self.is_timed = false;
        let shortages: Vec<Shortage> = self.lines.keys().copied().collect();
        for shortage in shortages {
            self.list_line(shortage);
        }
        let let_go = self.let_go.iter();
        let is_gone = |let_go: &LetGo| !core.outputs.contains(let_go.connection);
        let gone = let_go.filter(|(_, let_go)| is_gone(let_go));
        let gone: Vec<ConnectionKey> = gone.map(|(key, _)| *key).collect();
        for key in gone {
            self.forget_let_go(core, key);
        }
        self.look_after_held(core);
    }

    fn look_after_held(&mut self, core: &mut Core) {
        let is_anybody = !self.lines.is_empty() || !self.let_go.is_empty();
        if is_anybody && !self.is_timed {
            self.is_timed = true;
            let at = core.turn.now.plus(HOLD_CHECK);
            core.timers.insert(at, Target::Held);
        }
    }
}

impl Awaited {
    /// None for one that nobody waits for.
    fn of(client: &Client, publish: &Publish<'_>) -> Option<Self> {
        let session = &client.session;
        let seen = session.inbound().topic_of(publish)?;
        if is_reserved(seen) || session.inbound().is_repeated(publish) {
            return None;
        }
        let mut text = String::new();
        let topic = match session.link().mount_point() {
            None => seen,
            Some(mount) => mount.mounted_topic(seen, &mut text)?,
        };
        Some(Self {
            topic: topic.into(),
            bytes: Message::bytes_of(topic, &publish.properties, publish.payload),
        })
    }
}

/// Publishers of this worker do not need all the room: other workers are told.
fn pass_room_on(core: &mut Core, rooms: &[Arc<QueueRoom>]) {
    let told = rooms.iter().filter_map(QueueRoom::next_with_room);
    core.rooms.tell(told);
}

/// Of a group nobody of which is there nothing is waited for.
fn has_room(shortage: Shortage, rooms: &[Arc<QueueRoom>], bytes: usize) -> bool {
    let mut rooms = rooms.iter();
    match shortage {
        Shortage::Group(_) => rooms.len() == 0 || rooms.any(|room| room.has_room(bytes)),
        Shortage::Session(_) => rooms.all(|room| !room.holds() || room.has_room(bytes)),
    }
}
