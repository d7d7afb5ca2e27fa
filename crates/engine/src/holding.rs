//! Publishers that are held: a PUBLISH with QoS 1 or 2 for a full queue waits in its connection,
//! with all packets behind it. So each connection holds at most one PUBLISH, which is not
//! acknowledged meanwhile. Only acknowledgements of messages to the client and PINGREQ packets
//! overtake it, so that two clients that publish to each other do not block each other.
//!
//! Publishers that wait for the same queue continue in the order of their arrival, as soon as the
//! owner of the queue reports capacity. A publisher that has waited for `limits.client.queue_hold`
//! is released without capacity: its PUBLISH is refused if no receiver accepts it.

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

/// Interval of the check for publishers that have waited too long, and for new members of groups.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Interval in which the owner of a full queue is asked to remove expired messages, whose expiry
/// has a resolution of a second.
const NOTIFY_INTERVAL: Duration = Duration::from_secs(1);

/// A publisher that waits with a PUBLISH.
#[derive(Clone, Copy, Debug)]
struct Held {
    connection: ConnectionId,
    term: Term,
    /// Length in bytes of the topic, the properties and the payload of the PUBLISH.
    bytes: usize,
}

/// The time of arrival of a PUBLISH, and the time until which it may wait.
#[derive(Clone, Copy, Debug)]
struct Term {
    since: Time,
    until: Time,
}

/// Publishers that wait for the same shortage to end, the one with the earliest deadline first.
#[derive(Debug, Default)]
struct WaitingList {
    held: VecDeque<Held>,
    /// The capacity of the full queue; none for a group.
    room: Option<Arc<QueueRoom>>,
    /// Time of the last notification of the owners of the queues.
    notified_at: Option<Time>,
    /// The list is checked at the end of the turn.
    is_listed: bool,
}

/// A publisher that was released and whose PUBLISH has not been handled since.
#[derive(Clone, Copy, Debug)]
struct Released {
    connection: ConnectionId,
    term: Term,
    /// The client has sent DISCONNECT: none of its earlier packets waits.
    is_leaving: bool,
}

/// A client whose packet is handled now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Requester {
    pub(super) connection: ConnectionId,
    pub(super) slot: Slot,
    /// The decision of the rules about the PUBLISH.
    pub(super) verdict: Verdict,
}

/// The properties of a PUBLISH that decide whether it waits.
#[derive(Debug)]
struct PendingPublish {
    topic: Box<str>,
    bytes: usize,
}

/// The shortage that a PUBLISH has to wait for.
#[derive(Debug)]
struct Missing {
    shortage: Shortage,
    /// The capacity of the full queue; none for a group.
    room: Option<Arc<QueueRoom>>,
    bytes: usize,
}

/// All publishers of this worker that wait or were released.
#[derive(Debug, Default)]
pub struct HeldPublishers {
    waiting_lists: BTreeMap<Shortage, WaitingList>,
    /// Released publishers by connection. The node counts them in `holding`, so that the check for
    /// full queues is active while there are any.
    released: BTreeMap<ConnectionKey, Released>,
    /// Shortages that may have ended, or with a publisher that has waited long enough.
    listed: VecDeque<Shortage>,
    is_timed: bool,
    /// The shortage that is checked now, and the queues that it is about.
    current: Option<(Shortage, Vec<Arc<QueueRoom>>)>,
    /// Number of listed shortages that are still to be checked in this turn.
    round_left: usize,
}

impl HeldPublishers {
    /// Whether publishers continue in the next turn, which should begin at once.
    #[inline]
    pub fn are_listed(&self) -> bool {
        !self.listed.is_empty()
    }

    /// Checks whether a packet may be handled now; none for a PUBLISH that has to wait.
    #[inline]
    pub(super) fn clearance(
        &mut self,
        core: &mut Core,
        topics: &mut Topics,
        requester: Requester,
        packet: &Packet<'_>,
    ) -> Option<Cleared> {
        match packet {
            Packet::Publish(publish)
                if publish.qos != QoS::AtMostOnce
                    && (core.node.holding.load(Ordering::Relaxed) > 0
                        || core.memory.level >= MemoryLevel::Short) =>
            {
                self.clear(core, topics, requester, publish)
            }
            _ => Some(Cleared::unasked(requester.verdict)),
        }
    }

    #[cold]
    fn clear(
        &mut self,
        core: &mut Core,
        topics: &mut Topics,
        requester: Requester,
        publish: &Publish<'_>,
    ) -> Option<Cleared> {
        let Requester {
            connection,
            slot,
            verdict,
        } = requester;
        let key = connection.key;
        let released = self.released.get(&key).copied();
        let released = released.filter(|released| released.connection == connection);
        let is_leaving = released.is_some_and(|released| released.is_leaving);
        if released.is_some() && !is_leaving {
            self.forget_released(core, key);
        }
        let term = released.map(|released| released.term);
        let cleared = |clearance| {
            let arrived_at = term.map(|term| term.since);
            Some(Cleared {
                clearance,
                arrived_at,
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
        let message = (!is_denied).then(|| PendingPublish::of(&core.sessions[slot], publish));
        let missing = message
            .flatten()
            .and_then(|message| self.shortage(core, topics, &message, term.is_some()));
        let Some(missing) = missing else {
            return cleared(Clearance::Given);
        };
        self.hold_publisher(core, connection, missing, term);
        None
    }

    /// Returns the shortage that a PUBLISH has to wait for; none if every queue that holds
    /// publishers has room.
    fn shortage(
        &self,
        core: &mut Core,
        topics: &mut Topics,
        message: &PendingPublish,
        is_resumed: bool,
    ) -> Option<Missing> {
        let bytes = message.bytes;
        let hash = topics.routes.hash(&message.topic);
        let entry = topics.recall(core, &message.topic, hash);
        let waiting_lists = &self.waiting_lists;
        let is_behind = |shortage| !is_resumed && waiting_lists.contains_key(&shortage);
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

    /// Adds a PUBLISH that has to wait; one that has waited before keeps its deadline.
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
        let list = self.waiting_lists.entry(shortage).or_default();
        let place = list
            .held
            .partition_point(|other| other.term.until <= term.until);
        list.held.insert(place, held);
        list.room = room;
        if place == 0 {
            let rooms = self.rooms_of(core, shortage);
            if self.watch(core, shortage, &rooms, bytes) {
                self.list_shortage(shortage);
            }
        }
        self.arm_check(core);
    }

    /// Registers this worker with the owners of the queues; true if there is room now.
    fn watch(
        &mut self,
        core: &mut Core,
        shortage: Shortage,
        rooms: &[Arc<QueueRoom>],
        bytes: usize,
    ) -> bool {
        let now = core.turn.now;
        let list = self.waiting_lists.get_mut(&shortage);
        let must_notify = list.is_some_and(|list| {
            let is_due = list
                .notified_at
                .is_none_or(|notified_at| now.since(notified_at) >= NOTIFY_INTERVAL);
            if is_due {
                list.notified_at = Some(now);
            }
            is_due
        });
        for room in rooms {
            room.wait((core.id, shortage));
            if must_notify {
                core.report_full(room.session);
            }
        }
        has_room(shortage, rooms, bytes)
    }

    fn rooms_of(&self, core: &Core, shortage: Shortage) -> Vec<Arc<QueueRoom>> {
        match shortage {
            Shortage::Session(_) => {
                let list = self.waiting_lists.get(&shortage);
                list.and_then(|list| list.room.clone())
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

    /// Lists a shortage that may have ended: its publishers continue at the end of the turn.
    pub(super) fn note_room(&mut self, core: &mut Core, shortage: Shortage, room: &Arc<QueueRoom>) {
        if self.waiting_lists.contains_key(&shortage) {
            self.list_shortage(shortage);
        } else {
            notify_next_waiters(core, std::slice::from_ref(room));
        }
    }

    fn list_shortage(&mut self, shortage: Shortage) {
        let list = self.waiting_lists.get_mut(&shortage);
        if list.is_some_and(|list| !std::mem::replace(&mut list.is_listed, true)) {
            self.listed.push_back(shortage);
        }
    }

    /// Begins the portion of the turn in which publishers continue that have room or whose deadline
    /// has passed. At least one continues.
    pub fn begin_resuming(&mut self, core: &mut Core) {
        core.turn.begin_resuming();
        self.round_left = self.listed.len();
    }

    /// Returns the next publisher that continues: its PUBLISH is checked again, now or when no
    /// other reason stops its connection from being read.
    pub fn next_resumed(&mut self, core: &mut Core) -> Option<ConnectionId> {
        while self.round_left > 0 {
            let shortage = *self.listed.front()?;
            if let Some(held) = self.next_of(core, shortage) {
                self.forget_first(core, shortage, held);
                let released = Released {
                    connection: held.connection,
                    term: held.term,
                    is_leaving: false,
                };
                self.remember_released(core, released);
                return Some(held.connection);
            }
            self.end_check(shortage, false);
            if core.turn.is_resuming_over() {
                return None;
            }
        }
        None
    }

    /// Whether more publishers may continue in this turn; if not, the current shortage is checked
    /// again in the next turn.
    pub fn may_resume(&mut self, core: &Core) -> bool {
        let may = !core.turn.is_resuming_over();
        if !may
            && let Some(shortage) = self.listed.front().copied()
            && self.round_left > 0
        {
            self.end_check(shortage, true);
        }
        may
    }

    /// Ends the check of the current shortage.
    fn end_check(&mut self, shortage: Shortage, is_again: bool) {
        self.round_left -= 1;
        self.current = None;
        self.listed.pop_front();
        if let Some(list) = self.waiting_lists.get_mut(&shortage) {
            list.is_listed = false;
        }
        if is_again {
            self.list_shortage(shortage);
        }
    }

    /// Returns the first publisher that waits for a shortage to end, if it may continue.
    fn next_of(&mut self, core: &mut Core, shortage: Shortage) -> Option<Held> {
        let current = self.current.take().filter(|(known, _)| *known == shortage);
        let rooms = current.map_or_else(|| self.rooms_of(core, shortage), |(_, rooms)| rooms);
        let Some(held) = self.first_held(core, shortage) else {
            notify_next_waiters(core, &rooms);
            return None;
        };
        let is_overdue = held.term.until <= core.turn.now;
        let may_resume = is_overdue
            || has_room(shortage, &rooms, held.bytes)
            || self.watch(core, shortage, &rooms, held.bytes);
        self.current = may_resume.then_some((shortage, rooms));
        may_resume.then_some(held)
    }

    /// Returns the first publisher whose connection is still open.
    fn first_held(&mut self, core: &Core, shortage: Shortage) -> Option<Held> {
        loop {
            let list = self.waiting_lists.get(&shortage)?;
            let Some(held) = list.held.front().copied() else {
                self.waiting_lists.remove(&shortage);
                return None;
            };
            if self.is_held(core, held.connection) {
                return Some(held);
            }
            self.forget_first(core, shortage, held);
        }
    }

    fn is_held(&self, core: &Core, connection: ConnectionId) -> bool {
        let released = self.released.get(&connection.key);
        let is_leaving = released
            .is_some_and(|released| released.connection == connection && released.is_leaving);
        core.outputs.session(connection).is_some() && !is_leaving
    }

    fn forget_first(&mut self, core: &Core, shortage: Shortage, held: Held) {
        let row = core.row();
        row.subtract(Counter::PublishersHeld, 1);
        row.subtract(Counter::BytesHeld, held.bytes as u64);
        if let Some(list) = self.waiting_lists.get_mut(&shortage) {
            list.held.pop_front();
            if list.held.is_empty() {
                self.waiting_lists.remove(&shortage);
            }
        }
    }

    /// Releases a client that has sent DISCONNECT behind its PUBLISH: its packets are handled in
    /// their order without waiting.
    pub fn release_leaving(&mut self, core: &mut Core, connection: ConnectionId) {
        let now = core.turn.now;
        let released = Released {
            connection,
            term: Term {
                since: now,
                until: now,
            },
            is_leaving: true,
        };
        self.remember_released(core, released);
    }

    fn remember_released(&mut self, core: &mut Core, released: Released) {
        if self
            .released
            .insert(released.connection.key, released)
            .is_none()
        {
            core.node.holding.fetch_add(1, Ordering::Relaxed);
        }
        self.arm_check(core);
    }

    fn forget_released(&mut self, core: &Core, key: ConnectionKey) {
        if self.released.remove(&key).is_some() {
            core.node.holding.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Lists all shortages for a check, because publishers may have waited long enough, or owners
    /// of queues may not know of them.
    pub fn are_due(&mut self, core: &mut Core) {
        self.is_timed = false;
        let shortages: Vec<Shortage> = self.waiting_lists.keys().copied().collect();
        for shortage in shortages {
            self.list_shortage(shortage);
        }
        let released = self.released.iter();
        let is_gone = |released: &Released| !core.outputs.contains(released.connection);
        let gone = released.filter(|(_, released)| is_gone(released));
        let gone: Vec<ConnectionKey> = gone.map(|(key, _)| *key).collect();
        for key in gone {
            self.forget_released(core, key);
        }
        self.arm_check(core);
    }

    fn arm_check(&mut self, core: &mut Core) {
        let are_any = !self.waiting_lists.is_empty() || !self.released.is_empty();
        if are_any && !self.is_timed {
            self.is_timed = true;
            let at = core.turn.now.plus(CHECK_INTERVAL);
            core.timers.insert(at, Target::Held);
        }
    }
}

impl PendingPublish {
    /// Describes a PUBLISH; none if it never waits, as its topic is invalid or reserved or the
    /// packet is repeated.
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

/// Notifies other workers of room that the publishers of this worker do not need.
fn notify_next_waiters(core: &mut Core, rooms: &[Arc<QueueRoom>]) {
    let notices = rooms.iter().filter_map(QueueRoom::next_with_room);
    core.rooms.notify(notices);
}

/// Whether a shortage has ended. No publisher waits for a group without connected members.
fn has_room(shortage: Shortage, rooms: &[Arc<QueueRoom>], bytes: usize) -> bool {
    let mut rooms = rooms.iter();
    match shortage {
        Shortage::Group(_) => rooms.len() == 0 || rooms.any(|room| room.has_room(bytes)),
        Shortage::Session(_) => rooms.all(|room| !room.holds() || room.has_room(bytes)),
    }
}
