//! Publishers that are held back: a PUBLISH with QoS 1 or 2 for a queue that is full waits in its
//! connection, with all that stands behind it. So there is one for each connection, it is not
//! answered, and nothing overtakes it but what cannot wait: acknowledgements of what the client
//! gets, lest two that publish to each other wait for each other, and pings.
//!
//! Those who wait for the same queue go on in the order in which they came, as soon as the owner of
//! the queue says that there is room. Whoever has waited for `limits.client.queue_hold` is let go
//! without: it is refused then, if nobody takes it.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use thrum_codec::QoS;
use thrum_codec::packet::{Packet, Publish};
use thrum_protection::MemoryLevel;
use thrum_protocol::{Message, Time};

use super::{Target, Worker};
use crate::access::Verdict;
use crate::ids::{ConnectionId, ConnectionKey, Slot};
use crate::interest::SessionRef;
use crate::mailbox::Mail;
use crate::metrics::Counter;
use crate::publish::{Clearance, Cleared, is_reserved};
use crate::queue_room::{QueueRoom, Shortage};
use crate::shared::MEMBERS_SEEN_MAX;

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
pub(super) struct HeldPublishers {
    lines: BTreeMap<Shortage, Line>,
    /// By connection. While there are some, the node counts them in `holding`, so that they are
    /// asked for.
    let_go: BTreeMap<ConnectionKey, LetGo>,
    /// There may be room for these, or somebody has waited for long enough.
    listed: VecDeque<Shortage>,
    is_timed: bool,
}

impl HeldPublishers {
    /// Some go on in the next turn, which should come at once.
    pub(super) fn is_listed(&self) -> bool {
        !self.listed.is_empty()
    }
}

impl Worker {
    /// Whether a packet may be handled now; none for a PUBLISH that waits from here on.
    #[inline]
    pub(super) fn clearance(
        &mut self,
        key: ConnectionKey,
        slot: Slot,
        packet: &Packet<'_>,
    ) -> Option<Cleared> {
        match packet {
            Packet::Publish(publish)
                if publish.qos != QoS::AtMostOnce
                    && (self.node.holding.load(Ordering::Relaxed) > 0
                        || self.local.memory.level >= MemoryLevel::Short) =>
            {
                self.clear(key, slot, publish)
            }
            _ => Some(Cleared::UNASKED),
        }
    }

    #[cold]
    fn clear(&mut self, key: ConnectionKey, slot: Slot, publish: &Publish<'_>) -> Option<Cleared> {
        let connection = self.local.connections[key].id(key);
        let let_go = self.held.let_go.get(&key).copied();
        let let_go = let_go.filter(|let_go| let_go.connection == connection);
        let is_leaving = let_go.is_some_and(|let_go| let_go.is_leaving);
        if let_go.is_some() && !is_leaving {
            self.forget_let_go(key);
        }
        let term = let_go.map(|let_go| let_go.term);
        let cleared = |clearance| {
            let came_at = term.map(|term| term.since);
            Some(Cleared { clearance, came_at })
        };
        if is_leaving || self.local.settings.queue_hold.is_zero() {
            return cleared(Clearance::NotAsked);
        }
        if term.is_some_and(|term| term.until <= self.local.now) {
            self.local.row().add(Counter::LimitQueueHold, 1);
            return cleared(Clearance::NotAsked);
        }
        let Some(missing) = self.shortage(slot, publish, term.is_some()) else {
            return cleared(Clearance::Given);
        };
        self.hold_publisher(connection, missing, term);
        None
    }

    /// What a PUBLISH has to wait for; none if everybody for whom a publisher waits has room.
    fn shortage(
        &mut self,
        slot: Slot,
        publish: &Publish<'_>,
        is_going_on: bool,
    ) -> Option<Missing> {
        let client = &self.local.clients[slot];
        let seen = client.session.topic_of(publish)?;
        if is_reserved(seen) || client.session.is_repeated(publish) {
            return None;
        }
        let kind = (publish.qos, publish.retain);
        let verdict = client
            .access
            .as_deref()
            .filter(|access| !access.is_everything())
            .map(|access| access.publish(seen, kind, self.local.now));
        if verdict.is_some_and(|verdict| verdict != Verdict::Allowed) {
            return None;
        }
        let mut text = String::new();
        let topic = match client.session.mount_point() {
            None if !publish.topic.is_empty() => Cow::Borrowed(publish.topic),
            None => Cow::Owned(seen.to_owned()),
            Some(mount) => Cow::Owned(mount.mounted_topic(seen, &mut text)?.to_owned()),
        };
        let bytes = Message::bytes_of(&topic, &publish.properties, publish.payload);
        let hash = self.routes.hash(&topic);
        let entry = self.recall(&topic, hash);
        let lines = &self.held.lines;
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
        self.routes.put(hash, entry);
        found.map(|(shortage, room)| Missing {
            shortage,
            room,
            bytes,
        })
    }

    /// A PUBLISH waits; one that has waited before, for this or another queue, has the rest of its
    /// time.
    fn hold_publisher(&mut self, connection: ConnectionId, missing: Missing, term: Option<Term>) {
        let now = self.local.now;
        let Missing {
            shortage,
            room,
            bytes,
        } = missing;
        self.local.connections[connection.key].reading.hold();
        let row = self.local.row();
        row.add(Counter::PublishesHeld, u64::from(term.is_none()));
        row.add(Counter::PublishersHeld, 1);
        row.add(Counter::BytesHeld, bytes as u64);
        let term = term.unwrap_or_else(|| Term {
            since: now,
            until: now.plus(self.local.settings.queue_hold),
        });
        let held = Held {
            connection,
            term,
            bytes,
        };
        let line = self.held.lines.entry(shortage).or_default();
        let place = line
            .held
            .partition_point(|other| other.term.until <= term.until);
        line.held.insert(place, held);
        line.room = room;
        if place == 0 {
            let rooms = self.rooms_of(shortage);
            if self.watch(shortage, &rooms, bytes) {
                self.list_line(shortage);
            }
        }
        self.look_after_held();
    }

    /// The owners of the queues tell us when they have room; true if one has some now.
    fn watch(&mut self, shortage: Shortage, rooms: &[Arc<QueueRoom>], bytes: usize) -> bool {
        let now = self.local.now;
        let line = self.held.lines.get_mut(&shortage);
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
            room.wait((self.local.id, shortage));
            if is_to_tell {
                self.tell_of_full(room.session);
            }
        }
        has_room(shortage, rooms, bytes)
    }

    /// What has expired in a queue is found by its owner alone.
    pub(crate) fn tell_of_full(&mut self, session: SessionRef) {
        if session.worker == self.local.id {
            self.found_full(session);
        } else {
            self.send(session.worker, Mail::Full(session));
        }
    }

    fn rooms_of(&self, shortage: Shortage) -> Vec<Arc<QueueRoom>> {
        match shortage {
            Shortage::Session(_) => {
                let line = self.held.lines.get(&shortage);
                line.and_then(|line| line.room.clone())
                    .into_iter()
                    .collect()
            }
            Shortage::Group(group) => {
                let Some(members) = self.node.interest.members(group) else {
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
    pub(super) fn note_room(&mut self, shortage: Shortage, room: &Arc<QueueRoom>) {
        if self.held.lines.contains_key(&shortage) {
            self.list_line(shortage);
        } else {
            self.pass_room_on(std::slice::from_ref(room));
        }
    }

    fn list_line(&mut self, shortage: Shortage) {
        let line = self.held.lines.get_mut(&shortage);
        if line.is_some_and(|line| !std::mem::replace(&mut line.is_listed, true)) {
            self.held.listed.push_back(shortage);
        }
    }

    /// Publishers of this worker do not need all the room: other workers are told.
    fn pass_room_on(&mut self, rooms: &[Arc<QueueRoom>]) {
        let told = rooms.iter().filter_map(QueueRoom::next_with_room);
        self.local.room_news.told.extend(told);
    }

    /// Publishers go on for whose messages there is room, or whose time is over: as far as their
    /// portion of the turn goes, and one in any case.
    pub(super) fn go_on_with_held(&mut self) {
        self.begin_going_on();
        for _ in 0..self.held.listed.len() {
            let Some(shortage) = self.held.listed.pop_front() else {
                return;
            };
            if let Some(line) = self.held.lines.get_mut(&shortage) {
                line.is_listed = false;
            }
            if self.go_on_with(shortage) == Left::Some {
                self.list_line(shortage);
            }
            if self.is_going_on_over() {
                return;
            }
        }
    }

    fn go_on_with(&mut self, shortage: Shortage) -> Left {
        let rooms = self.rooms_of(shortage);
        while let Some(held) = self.first_held(shortage) {
            let is_overdue = held.term.until <= self.local.now;
            if !is_overdue
                && !has_room(shortage, &rooms, held.bytes)
                && !self.watch(shortage, &rooms, held.bytes)
            {
                return Left::Nobody;
            }
            self.let_go(shortage, held);
            if self.is_going_on_over() {
                return Left::Some;
            }
        }
        self.pass_room_on(&rooms);
        Left::Nobody
    }

    /// The first one that is still there.
    fn first_held(&mut self, shortage: Shortage) -> Option<Held> {
        loop {
            let line = self.held.lines.get(&shortage)?;
            let Some(held) = line.held.front().copied() else {
                self.held.lines.remove(&shortage);
                return None;
            };
            if self.is_held(held.connection) {
                return Some(held);
            }
            self.forget_first(shortage, held);
        }
    }

    fn is_held(&self, connection: ConnectionId) -> bool {
        let found = self.local.connection(connection);
        found.is_some_and(|found| found.session().is_some() && found.reading.is_held())
    }

    fn forget_first(&mut self, shortage: Shortage, held: Held) {
        let row = self.local.row();
        row.subtract(Counter::PublishersHeld, 1);
        row.subtract(Counter::BytesHeld, held.bytes as u64);
        if let Some(line) = self.held.lines.get_mut(&shortage) {
            line.held.pop_front();
            if line.held.is_empty() {
                self.held.lines.remove(&shortage);
            }
        }
    }

    /// The first of a line is looked at again: now, or when nothing else keeps it from being read.
    fn let_go(&mut self, shortage: Shortage, held: Held) {
        self.forget_first(shortage, held);
        let key = held.connection.key;
        let Some(connection) = self.local.connections.get_mut(key) else {
            return;
        };
        connection.reading.let_go();
        let let_go = LetGo {
            connection: held.connection,
            term: held.term,
            is_leaving: false,
        };
        self.remember_let_go(key, let_go);
        self.read(key);
    }

    fn remember_let_go(&mut self, key: ConnectionKey, let_go: LetGo) {
        if self.held.let_go.insert(key, let_go).is_none() {
            self.node.holding.fetch_add(1, Ordering::Relaxed);
        }
        self.look_after_held();
    }

    fn forget_let_go(&mut self, key: ConnectionKey) {
        if self.held.let_go.remove(&key).is_some() {
            self.node.holding.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The client has said goodbye behind its PUBLISH: all of it is handled in its order, and waits
    /// no longer.
    pub(super) fn let_leave(&mut self, key: ConnectionKey) {
        let now = self.local.now;
        let connection = &mut self.local.connections[key];
        connection.reading.let_go();
        let let_go = LetGo {
            connection: connection.id(key),
            term: Term {
                since: now,
                until: now,
            },
            is_leaving: true,
        };
        self.remember_let_go(key, let_go);
        self.input(key, &[]);
    }

    /// Looks after those who wait: for who has waited for long enough, and for queues whose owners
    /// do not know of them.
    pub(super) fn held_due(&mut self) {
        self.held.is_timed = false;
        let shortages: Vec<Shortage> = self.held.lines.keys().copied().collect();
        for shortage in shortages {
            self.list_line(shortage);
        }
        let let_go = self.held.let_go.iter();
        let is_gone = |let_go: &LetGo| self.local.connection(let_go.connection).is_none();
        let gone = let_go.filter(|(_, let_go)| is_gone(let_go));
        let gone: Vec<ConnectionKey> = gone.map(|(key, _)| *key).collect();
        for key in gone {
            self.forget_let_go(key);
        }
        self.look_after_held();
    }

    fn look_after_held(&mut self) {
        let is_anybody = !self.held.lines.is_empty() || !self.held.let_go.is_empty();
        if is_anybody && !self.held.is_timed {
            self.held.is_timed = true;
            let at = self.local.now.plus(HOLD_CHECK);
            self.timers.insert(at, Target::Held);
        }
    }
}

/// Whether some of a line have to go on in the next turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    Nobody,
    Some,
}

/// Of a group nobody of which is there nothing is waited for.
fn has_room(shortage: Shortage, rooms: &[Arc<QueueRoom>], bytes: usize) -> bool {
    let mut rooms = rooms.iter();
    match shortage {
        Shortage::Group(_) => rooms.len() == 0 || rooms.any(|room| room.has_room(bytes)),
        Shortage::Session(_) => rooms.all(|room| !room.holds() || room.has_room(bytes)),
    }
}
