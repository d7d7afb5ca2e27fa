//! Publishers that are held back: a PUBLISH with QoS 1 or 2 for a queue that is full waits in its connection, with all that
//! stands behind it. So there is one for each connection, it is not answered, and nothing overtakes it but what cannot
//! wait: acknowledgements of what the client gets, lest two that publish to each other wait for each other, and pings.
//!
//! Those who wait for the same queue go on in the order in which they came, as soon as the owner of the queue says that
//! there is room. Whoever has waited for `limits.client.queue_hold` is let go without: it is refused then, if nobody takes it.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use thrum_codec::packet::{Packet, Publish};
use thrum_codec::{QoS, decode, frame};
use thrum_protocol::Time;

use super::input::Next;
use super::{READ_BYTES, Target, Worker};
use crate::access::Verdict;
use crate::connection::ConnectionRef;
use crate::interest::SessionRef;
use crate::mailbox::Mail;
use crate::metrics::Counter;
use crate::protection::MemoryLevel;
use crate::publish::{Clearance, is_reserved};
use crate::queue_room::{QueueRoom, Shortage};
use crate::read_gate::PauseReason;
use crate::shared::MEMBERS_SEEN_MAX;

/// How often it is looked whether somebody has waited for too long, or for a member that has come since.
const HOLD_CHECK: Duration = Duration::from_millis(100);
/// Held publishers that go on at once in one turn, for each queue; the others follow in the next one.
const RESUMED_MAX: usize = 1024;
/// Kind of a DISCONNECT, in the upper half of its first byte.
const DISCONNECT: u8 = 14;

/// A publisher that waits.
#[derive(Clone, Copy, Debug)]
struct Held {
    connection: ConnectionRef,
    until: Time,
    /// Of its topic and payload.
    bytes: usize,
}

/// Those who wait for the same queue, the oldest first.
#[derive(Debug, Default)]
struct Line {
    held: VecDeque<Held>,
    /// The session that it is about; none for a group.
    room: Option<Arc<QueueRoom>>,
}

/// The publisher that goes on now.
#[derive(Clone, Copy, Debug)]
struct GoingOn {
    connection: ConnectionRef,
    how: Way,
}

/// How a publisher goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// There is room for its PUBLISH.
    Room,
    /// Its PUBLISH has waited for as long as it may.
    Overdue,
    /// The client has said goodbye: nothing of what it sent before waits.
    Leaving,
}

/// All publishers of this worker that wait.
#[derive(Debug, Default)]
pub(super) struct HeldPublishers {
    lines: BTreeMap<Shortage, Line>,
    /// It is not sent behind those that came after it; until its PUBLISH has been looked at.
    going_on: Option<GoingOn>,
    is_timed: bool,
}

impl Worker {
    /// Whether a packet may be handled now; none for a PUBLISH that waits from here on.
    #[inline]
    pub(super) fn clearance(
        &mut self,
        key: u32,
        slot: u32,
        packet: &Packet<'_>,
    ) -> Option<Clearance> {
        match packet {
            Packet::Publish(publish)
                if publish.qos != QoS::AtMostOnce
                    && (self.node.holding.load(Ordering::Relaxed) > 0
                        || self.local.memory.level >= MemoryLevel::Short) =>
            {
                self.clear(key, slot, publish)
            }
            _ => Some(Clearance::NotAsked),
        }
    }

    #[cold]
    fn clear(&mut self, key: u32, slot: u32, publish: &Publish<'_>) -> Option<Clearance> {
        let serial = self.local.connections[key as usize].serial;
        let connection = ConnectionRef { key, serial };
        let going_on = self.held.going_on;
        let going_on = going_on.filter(|going_on| going_on.connection == connection);
        let way = going_on.map(|going_on| going_on.how);
        if way != Some(Way::Leaving) {
            self.held.going_on = None;
        }
        if matches!(way, Some(Way::Overdue | Way::Leaving))
            || self.local.settings.queue_hold.is_zero()
        {
            return Some(Clearance::NotAsked);
        }
        let Some((shortage, room)) = self.shortage(slot, publish, way.is_some()) else {
            return Some(Clearance::Given);
        };
        let held = Held {
            connection,
            until: self.local.now.plus(self.local.settings.queue_hold),
            bytes: publish.topic.len() + publish.payload.len(),
        };
        self.hold_publisher(shortage, room, held);
        None
    }

    /// What a PUBLISH has to wait for; none if everybody for whom a publisher waits has room.
    fn shortage(
        &mut self,
        slot: u32,
        publish: &Publish<'_>,
        is_going_on: bool,
    ) -> Option<(Shortage, Option<Arc<QueueRoom>>)> {
        let client = &self.local.clients[slot as usize];
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
        let bytes = topic.len() + publish.payload.len();
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
        found
    }

    fn hold_publisher(&mut self, shortage: Shortage, room: Option<Arc<QueueRoom>>, held: Held) {
        let key = held.connection.key;
        self.local.connections[key as usize].reading.hold();
        let row = self.local.row();
        row.add(Counter::PublishesHeld, 1);
        row.add(Counter::PublishersHeld, 1);
        row.add(Counter::BytesHeld, held.bytes as u64);
        let line = self.held.lines.entry(shortage).or_default();
        line.held.push_back(held);
        line.room = room;
        let is_first = line.held.len() == 1;
        if is_first && self.watch(shortage, held.bytes) {
            let waiter = (self.local.id, shortage);
            self.local.room_news.waiters.push(waiter);
        }
        if !self.held.is_timed {
            self.held.is_timed = true;
            let at = self.local.now.plus(HOLD_CHECK);
            self.timers.insert(at, Target::Held);
        }
    }

    /// The owners of the queues tell us when they have room; true if one has some now.
    fn watch(&mut self, shortage: Shortage, bytes: usize) -> bool {
        let rooms = self.rooms_of(shortage);
        for room in &rooms {
            if room.wait((self.local.id, shortage)) {
                self.tell_of_full(room.session);
            }
        }
        has_room(shortage, &rooms, bytes)
    }

    /// What has expired in a queue is found by its owner alone.
    fn tell_of_full(&mut self, session: SessionRef) {
        if session.worker == self.local.id {
            self.found_full(session);
        } else {
            self.send(session.worker.index(), Mail::Full(session));
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

    /// There may be room that publishers of this worker wait for.
    pub(super) fn go_on_with_held(&mut self, shortage: Shortage) {
        for _ in 0..RESUMED_MAX {
            let Some(held) = self.first_held(shortage) else {
                return;
            };
            let bytes = held.bytes;
            if !has_room(shortage, &self.rooms_of(shortage), bytes) && !self.watch(shortage, bytes)
            {
                return;
            }
            self.let_go(shortage, held, Way::Room);
        }
        let waiter = (self.local.id, shortage);
        self.local.room_news.waiters.push(waiter);
    }

    /// The oldest one that is still there.
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

    fn is_held(&self, connection: ConnectionRef) -> bool {
        let found = self.local.connections.get(connection.key as usize);
        found.is_some_and(|found| {
            let is_same = found.serial == connection.serial && found.session().is_some();
            is_same && found.reading.is_held()
        })
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

    /// The first of a line is looked at again.
    fn let_go(&mut self, shortage: Shortage, held: Held, how: Way) {
        self.forget_first(shortage, held);
        if how == Way::Overdue {
            self.local.row().add(Counter::LimitQueueHold, 1);
        }
        let connection = held.connection;
        self.held.going_on = Some(GoingOn { connection, how });
        if let Some(found) = self.local.connections.get_mut(connection.key as usize) {
            found.reading.let_go();
            self.read(connection.key);
        }
        self.held.going_on = None;
    }

    /// Input of a client whose PUBLISH is held back: what goes ahead of it is handled, the rest is kept behind it.
    pub(super) fn read_ahead(&mut self, key: u32, bytes: &[u8]) {
        let connection = &mut self.local.connections[key as usize];
        let Some(slot) = connection.session() else {
            return;
        };
        let version = connection.version;
        let mut waiting = connection.partial.take();
        waiting.extend_from_slice(bytes);
        let packet_bytes_max = self.local.settings.session.packet_bytes_max;
        let mut left = Vec::with_capacity(waiting.len());
        let (mut at, mut held_bytes, mut is_leaving) = (0, 0, false);
        while let Ok(Some(frame)) = frame::split(&waiting[at..], packet_bytes_max) {
            let whole = &waiting[at..at + frame.len];
            at += frame.len;
            held_bytes = if left.is_empty() {
                frame.len
            } else {
                held_bytes
            };
            is_leaving |= frame.first >> 4 == DISCONNECT;
            let packet = decode(frame, version).ok().filter(goes_ahead);
            let Some(packet) = packet else {
                left.extend_from_slice(whole);
                continue;
            };
            self.local.row().add(Counter::PacketsReceived, 1);
            let next = self.packet(key, slot, packet, Clearance::NotAsked);
            self.local.end_unit();
            if next == Next::Stop {
                return;
            }
        }
        left.extend_from_slice(&waiting[at..]);
        let connection = &mut self.local.connections[key as usize];
        if left.len() > held_bytes + READ_BYTES {
            connection.reading.close(PauseReason::Room);
        }
        connection.partial.put(left);
        self.after_input(key);
        if is_leaving {
            self.let_leave(key);
        }
    }

    /// The client has said goodbye behind its PUBLISH: all of it is handled in its order, and waits no longer.
    fn let_leave(&mut self, key: u32) {
        let connection = &mut self.local.connections[key as usize];
        connection.reading.let_go();
        let serial = connection.serial;
        self.held.going_on = Some(GoingOn {
            connection: ConnectionRef { key, serial },
            how: Way::Leaving,
        });
        self.input(key, &[]);
        self.held.going_on = None;
    }

    /// Looks after those who wait: who has waited for long enough is let go, and a queue is looked at whose owner does
    /// not know of them.
    pub(super) fn held_due(&mut self) {
        self.held.is_timed = false;
        let shortages: Vec<Shortage> = self.held.lines.keys().copied().collect();
        for shortage in shortages {
            while let Some(held) = self.first_held(shortage)
                && held.until <= self.local.now
            {
                self.let_go(shortage, held, Way::Overdue);
            }
            self.go_on_with_held(shortage);
        }
        if !self.held.lines.is_empty() && !self.held.is_timed {
            self.held.is_timed = true;
            let at = self.local.now.plus(HOLD_CHECK);
            self.timers.insert(at, Target::Held);
        }
    }
}

/// It is neither a message nor a request.
fn goes_ahead(packet: &Packet<'_>) -> bool {
    matches!(
        packet,
        Packet::PubAck(_)
            | Packet::PubRec(_)
            | Packet::PubRel(_)
            | Packet::PubComp(_)
            | Packet::PingReq
    )
}

/// Of a group nobody of which is there nothing is waited for.
fn has_room(shortage: Shortage, rooms: &[Arc<QueueRoom>], bytes: usize) -> bool {
    let mut rooms = rooms.iter();
    match shortage {
        Shortage::Group(_) => rooms.len() == 0 || rooms.any(|room| room.has_room(bytes)),
        Shortage::Session(_) => rooms.all(|room| !room.holds() || room.has_room(bytes)),
    }
}
