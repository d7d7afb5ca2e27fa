//! The connections and sessions of one worker, and how a message reaches one of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::BuildHasher;
use thin_vec::ThinVec;
use thrum_protection::MemoryLevel;
use thrum_protocol::server::{Delivered, DeliveryOptions, DropReason, GroupId, Session};
use thrum_protocol::{Outgoing, Output, Time};
use thrum_routing::FilterId;
use thrum_storage::Owner;

use super::budget::OUT_UNIT_BYTES;
use super::rooms::{OwnRoom, RoomNews};
use crate::access::ClientAccess;
use crate::connection::Connection;
use crate::durable::Journal;
use crate::ids::{ConnectionId, ConnectionKey, Slot};
use crate::listener::Gate;
use crate::memory::WorkerMemory;
use crate::metrics::{Counter, Row};
use crate::node::Node;
use crate::retained::ReplayCursor;
use crate::session_counts::Holder;
use crate::settings::Settings;
use crate::table::Table;
use crate::workers::WorkerId;

/// Output buffers kept for reuse by one worker.
const POOL_MAX: usize = 4096;
/// A buffer that grew beyond this is given back to the system instead of the pool.
const POOLED_BYTES_MAX: usize = 16 * 1024;

/// Buffers that no connection has.
type Pool = Vec<Box<Output>>;

/// What a queued message takes beside its text.
pub(super) const QUEUED_BYTES: usize = 200;

/// A session and what the worker keeps beside it.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) session: Session,
    /// None while the client is away.
    pub(crate) connection: Option<ConnectionKey>,
    /// Memory of its subscriptions, in bytes.
    pub(crate) subscription_bytes: u32,
    /// The earliest timer that is armed.
    pub(crate) armed: Time,
    pub(crate) subscriptions: ThinVec<FilterId>,
    /// What it may do; none if that is everything.
    pub(crate) access: Option<Box<ClientAccess>>,
    pub(crate) rare: Option<Box<Rare>>,
}

/// What only some sessions have.
#[derive(Debug, Default)]
pub(crate) struct Rare {
    /// Memberships in shared groups.
    pub(crate) groups: Vec<GroupId>,
    /// What others see of the queue: of members of shared groups, and while it is nearly full.
    pub(crate) room: Option<OwnRoom>,
    /// Of subscriptions by their filters: retained messages still to be sent.
    pub(crate) replays: BTreeMap<Box<str>, Replay>,
    /// They go on in the next turn.
    pub(crate) replay_waits: bool,
    /// A full queue was logged; silent until it recovered.
    pub(crate) drops_logged: bool,
    /// The session ends with its connection, and is on the disk for the sake of its will.
    pub(crate) is_kept_for_will: bool,
    /// Whom the session is counted for.
    pub(crate) holder: Holder,
    /// Of a session that was restored and has had no connection since: whose it is. What it may do
    /// is not known yet.
    pub(crate) restored_owner: Option<Owner<Box<str>>>,
}

/// A replay of retained messages that goes on as the session takes them.
#[derive(Debug, Default)]
pub(crate) struct Replay {
    /// None before the first message.
    pub(crate) after: Option<ReplayCursor>,
    pub(crate) written: Written,
}

/// What the disk has of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Written {
    #[default]
    Nothing,
    /// That it is owed from an earlier place on.
    Earlier,
    /// Its place.
    Place,
}

impl Written {
    /// After the replay has gone on.
    pub(crate) fn outdated(self) -> Self {
        match self {
            Self::Nothing => Self::Nothing,
            Self::Earlier | Self::Place => Self::Earlier,
        }
    }
}

impl Client {
    pub(crate) fn new(session: Session) -> Self {
        Self {
            session,
            connection: None,
            subscription_bytes: 0,
            armed: Time::from_millis(u64::MAX),
            subscriptions: ThinVec::new(),
            access: None,
            rare: None,
        }
    }

    /// Subscriptions, shared ones included.
    pub(crate) fn subscription_count(&self) -> usize {
        self.subscriptions.len() + self.groups().len()
    }

    pub(crate) fn groups(&self) -> &[GroupId] {
        self.rare.as_deref().map_or(&[], |rare| &rare.groups)
    }

    /// The session is on the disk for the sake of its will.
    pub(crate) fn is_kept_for_will(&self) -> bool {
        let rare = self.rare.as_deref();
        rare.is_some_and(|rare| rare.is_kept_for_will)
    }

    /// What its client may do that is here again; what it might when its session was last looked
    /// at.
    pub(super) fn take_rights(
        &mut self,
        access: Option<Box<ClientAccess>>,
    ) -> Option<Box<ClientAccess>> {
        let before = std::mem::replace(&mut self.access, access);
        self.forget_owner();
        before
    }

    /// What its client may do tells whose it is.
    fn forget_owner(&mut self) {
        if let Some(rare) = self.rare.as_deref_mut() {
            rare.restored_owner = None;
            self.drop_unused();
        }
    }

    /// Gives memory back once all replays are done.
    pub(crate) fn drop_unused(&mut self) {
        let Some(rare) = self.rare.as_deref_mut() else {
            return;
        };
        let is_counted = rare.holder != Holder::default();
        let is_marked = rare.drops_logged || rare.is_kept_for_will;
        let is_used = is_counted || is_marked || rare.restored_owner.is_some();
        let is_member = rare.room.is_some() || !rare.groups.is_empty();
        if rare.replays.is_empty() && !is_member && !is_used {
            self.rare = None;
        }
    }

    /// Whose the session is: a client of an open node has no user that anybody verified.
    pub(crate) fn owner(&self) -> Owner<&str> {
        if let Some(access) = self.access.as_deref() {
            return access.owner();
        }
        let rare = self.rare.as_deref();
        let restored = rare.and_then(|rare| rare.restored_owner.as_ref());
        restored.map_or(Owner::Anonymous, Owner::as_deref)
    }

    /// Whom the session is counted for.
    pub(crate) fn holder(&self) -> Holder {
        let rare = self.rare.as_deref();
        rare.map_or_else(Holder::default, |rare| rare.holder)
    }

    /// Whom it is counted for from now on; whom it was before.
    pub(crate) fn set_holder(&mut self, holder: Holder) -> Holder {
        let before = self.holder();
        if before != holder {
            self.rare_mut().holder = holder;
            self.drop_unused();
        }
        before
    }

    /// Its queue has recovered, or begins anew: the next full one is logged.
    pub(crate) fn log_next_drop(&mut self) {
        if let Some(rare) = self.rare.as_deref_mut()
            && rare.drops_logged
        {
            rare.drops_logged = false;
            self.drop_unused();
        }
    }

    pub(crate) fn rare_mut(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }
}

/// Everything of a worker that a delivery touches.
#[derive(Debug)]
pub(crate) struct Local {
    pub(crate) id: WorkerId,
    pub(crate) now: Time,
    /// Units of work done so far, for the budgets of the turns.
    pub(crate) work: u64,
    pub(crate) connections: Table<Connection>,
    pub(crate) clients: Table<Client>,
    /// Slots of clients by identifier; the text lives in the session.
    by_id: HashTable<Slot>,
    hasher: DefaultHashBuilder,
    /// Connections to write at the end of the turn.
    pub(crate) dirty: Vec<ConnectionKey>,
    /// What must survive a crash, on a node with storage.
    pub(crate) journal: Option<Box<Journal>>,
    /// The message at hand was on its way to that worker, of so many, before a crash: none but its
    /// sessions get it.
    pub(crate) only: Option<(usize, usize)>,
    /// Connections whose output of this turn rests on the journal, or on other workers.
    pub(crate) depending: Vec<ConnectionKey>,
    /// What other workers are to be told of the queues of sessions.
    pub(crate) room_news: RoomNews,
    pub(crate) memory: WorkerMemory,
    pool: Pool,
    /// Takes what a session without connection would write, which is nothing.
    nowhere: Output,
    pub(crate) settings: Arc<Settings>,
    /// The node's gates as far as they were needed here.
    pub(super) gates: Vec<Option<Arc<Gate>>>,
    pub(super) node: Arc<Node>,
}

impl Local {
    pub(super) fn new(id: WorkerId, node: Arc<Node>, settings: Arc<Settings>) -> Self {
        let mut memory = WorkerMemory::default();
        memory.set_limit(settings.memory_bytes, node.workers());
        Self {
            id,
            memory,
            now: node.clock.now(),
            work: 0,
            connections: Table::new(),
            clients: Table::new(),
            by_id: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            dirty: Vec::new(),
            journal: None,
            only: None,
            depending: Vec::new(),
            room_news: RoomNews::default(),
            pool: Vec::new(),
            nowhere: Output::new(),
            settings,
            gates: Vec::new(),
            node,
        }
    }

    /// This worker's counters.
    #[inline]
    pub(crate) fn row(&self) -> &Row {
        self.node.metrics.row(self.id.index())
    }

    /// The gate of that number.
    pub(crate) fn gate(&mut self, number: u16) -> &Arc<Gate> {
        let place = usize::from(number);
        if place >= self.gates.len() {
            self.gates.resize(place + 1, None);
        }
        let known = &mut self.gates[place];
        known.get_or_insert_with(|| {
            let gate = self.node.gates.get(number);
            gate.expect("a gate is there for as long as a connection names it")
        })
    }

    /// Nobody means these gates by their numbers any more.
    pub(super) fn forget_gates(&mut self, numbers: &[u16]) {
        for number in numbers {
            if let Some(known) = self.gates.get_mut(usize::from(*number)) {
                *known = None;
            }
        }
    }

    /// Counts a new connection in; false if its listener is full.
    #[must_use]
    pub(super) fn enter_gate(&mut self, number: u16) -> bool {
        let node = Arc::clone(&self.node);
        node.gates.enter(self.gate(number))
    }

    /// Counts a connection out.
    pub(super) fn leave_gate(&mut self, number: u16) {
        let node = Arc::clone(&self.node);
        node.gates.leave(self.gate(number));
    }

    /// A connection, if it is still the one that is there.
    #[inline]
    pub(crate) fn connection(&self, id: ConnectionId) -> Option<&Connection> {
        let found = self.connections.get(id.key);
        found.filter(|found| found.serial == id.serial)
    }

    /// The same, to be changed.
    #[inline]
    pub(crate) fn connection_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        let found = self.connections.get_mut(id.key);
        found.filter(|found| found.serial == id.serial)
    }

    /// The slot of a client identifier's session.
    pub(crate) fn find(&self, client_id: &str) -> Option<Slot> {
        let hash = self.hasher.hash_one(client_id);
        let same = |slot: &Slot| self.clients[*slot].session.client_id() == client_id;
        self.by_id.find(hash, same).copied()
    }

    pub(crate) fn insert(&mut self, client: Client) -> Slot {
        let hash = self.hasher.hash_one(client.session.client_id());
        let slot = self.clients.insert(client);
        let (hasher, clients) = (&self.hasher, &self.clients);
        self.by_id.insert_unique(hash, slot, |slot| {
            hasher.hash_one(clients[*slot].session.client_id())
        });
        slot
    }

    /// The slot that the next session gets.
    pub(crate) fn next_slot(&self) -> Slot {
        self.clients.next_key()
    }

    pub(crate) fn remove(&mut self, slot: Slot) -> Client {
        let hash = self.hasher.hash_one(self.clients[slot].session.client_id());
        if let Ok(entry) = self.by_id.find_entry(hash, |other| *other == slot) {
            entry.remove();
        }
        self.clients.remove(slot)
    }

    /// Gives back the room of those that are gone; no slot changes.
    pub(super) fn shrink(&mut self) {
        self.connections.shrink_to_fit();
        self.clients.shrink_to_fit();
        let (hasher, clients) = (&self.hasher, &self.clients);
        self.by_id
            .shrink_to_fit(|slot| hasher.hash_one(clients[*slot].session.client_id()));
        self.dirty.shrink_to_fit();
    }

    /// A client and the buffer that its session writes into.
    #[inline]
    pub(crate) fn client_and_output(&mut self, slot: Slot) -> (&mut Client, &mut Output) {
        let client = &mut self.clients[slot];
        let Some(key) = client.connection else {
            self.nowhere.clear();
            return (client, &mut self.nowhere);
        };
        let connection = &mut self.connections[key];
        (client, lend_buffer(connection, &mut self.pool))
    }

    /// The buffer that is sent to the other end of a connection.
    pub(super) fn output(&mut self, connection: ConnectionKey) -> &mut Output {
        let connection = &mut self.connections[connection];
        lend_buffer(connection, &mut self.pool)
    }

    /// Notes that the connection has something to write, or gives its buffer back.
    #[inline]
    pub(crate) fn wrote(&mut self, connection: ConnectionKey) {
        let entry = &mut self.connections[connection];
        if entry.dirty {
            return;
        }
        if let Some(buffer) = entry.take_spare() {
            self.recycle(buffer);
        } else if entry.out.is_some() {
            entry.dirty = true;
            self.dirty.push(connection);
        }
    }

    /// The connection is written at the end of the turn, if it has something that may be.
    pub(crate) fn mark_dirty(&mut self, connection: ConnectionKey) {
        let entry = &mut self.connections[connection];
        if !entry.dirty {
            entry.dirty = true;
            self.dirty.push(connection);
        }
    }

    /// A buffer goes back to the pool.
    pub(crate) fn recycle(&mut self, buffer: Box<Output>) {
        debug_assert!(
            buffer.is_empty(),
            "a buffer with output in it must not be reused"
        );
        if self.pool.len() < POOL_MAX && buffer.capacity() <= POOLED_BYTES_MAX {
            self.pool.push(buffer);
        }
    }

    /// One message to one session, if there is memory for it.
    #[inline]
    pub(crate) fn offer(
        &mut self,
        slot: Slot,
        outgoing: &mut Outgoing<'_>,
        options: DeliveryOptions<'_>,
    ) -> Delivered {
        if self.memory.level >= MemoryLevel::Short && self.lacks_memory_for(slot, options.qos) {
            self.work += 1;
            self.dropped(slot, DropReason::MemoryShort, 1);
            return Delivered::Dropped(DropReason::MemoryShort);
        }
        self.deliver(slot, outgoing, options)
    }

    /// One message to one session, however short memory is.
    #[inline]
    pub(crate) fn deliver(
        &mut self,
        slot: Slot,
        outgoing: &mut Outgoing<'_>,
        options: DeliveryOptions<'_>,
    ) -> Delivered {
        let now = self.now;
        self.work += 1 + (outgoing.publication().payload.len() / OUT_UNIT_BYTES) as u64;
        if let Some(only) = self.only
            && !self.is_missing(slot, only, outgoing)
        {
            return Delivered::Queued;
        }
        self.lend(slot);
        let (client, out) = self.client_and_output(slot);
        let connection = client.connection;
        let delivered = client.session.deliver(outgoing, options, now, out);
        let waiting = out.len();
        self.note(slot);
        match delivered {
            Delivered::Sent => {
                let payload_bytes = outgoing.publication().payload.len() as u64;
                self.row().add(Counter::PublishSent, 1);
                self.row().add(Counter::PublishBytesSent, payload_bytes);
                self.show_sent(slot);
                if let Some(key) = connection {
                    self.wrote(key);
                }
                let is_over = waiting > self.settings.output_bytes;
                if let Some(key) = connection.filter(|_| is_over) {
                    self.congest(key, slot);
                }
            }
            Delivered::Queued => {
                self.row().add(Counter::Queued, 1);
                self.has_queued(outgoing, options.identifiers.len());
                self.collect_dropped(slot);
                self.queue_grew(slot);
            }
            Delivered::Dropped(reason) => {
                self.dropped(slot, reason, 1);
                self.collect_dropped(slot);
                self.show_room(slot);
            }
        }
        delivered
    }

    pub(crate) fn congest(&mut self, connection: ConnectionKey, slot: Slot) {
        let connection = &mut self.connections[connection];
        if !connection.congested {
            connection.congested = true;
            self.row().add(Counter::LimitOutput, 1);
            self.clients[slot].session.set_congested(true);
        }
    }

    /// Counts drops by reason and logs the first of a series that loses QoS 1 or 2.
    #[cold]
    pub(crate) fn dropped(&mut self, slot: Slot, reason: DropReason, count: u64) {
        let counter = match reason {
            DropReason::QueueFull => Counter::DroppedQueueFull,
            DropReason::QueueDropped => Counter::DroppedQueueOldest,
            DropReason::QueueAge => Counter::DroppedQueueAge,
            DropReason::Offline => Counter::DroppedOffline,
            DropReason::SlowConsumer => Counter::DroppedSlowConsumer,
            DropReason::TooLarge => Counter::DroppedTooLarge,
            DropReason::Expired => Counter::DroppedExpired,
            DropReason::OutsideMount => Counter::DroppedOutsideMount,
            DropReason::NotAllowed => Counter::DroppedNotAllowed,
            DropReason::MemoryShort => Counter::DroppedMemoryShort,
        };
        self.row().add(counter, count);
        let client = &mut self.clients[slot];
        let which = match reason {
            DropReason::QueueFull => "further",
            DropReason::QueueDropped => "the oldest",
            DropReason::QueueAge
            | DropReason::Offline
            | DropReason::SlowConsumer
            | DropReason::TooLarge
            | DropReason::Expired
            | DropReason::OutsideMount
            | DropReason::NotAllowed
            | DropReason::MemoryShort => return,
        };
        if !std::mem::replace(&mut client.rare_mut().drops_logged, true) {
            let (messages, bytes, inflight) = client.session.backlog();
            tracing::warn!(
                client_id = client.session.client_id(),
                messages,
                bytes,
                inflight,
                "queue full: {which} messages for this client are dropped until it takes some"
            );
        }
    }

    /// Counts what a session did by itself: messages sent from its queue, or dropped.
    #[inline]
    pub(crate) fn collect(&mut self, slot: Slot) {
        let client = &mut self.clients[slot];
        let sent = client.session.take_sent_later();
        if sent.messages > 0 {
            client.log_next_drop();
            let bytes = sent.payload_bytes + u64::from(sent.messages) * QUEUED_BYTES as u64;
            self.memory.shrank(bytes);
            let row = self.row();
            row.add(Counter::PublishSent, u64::from(sent.messages));
            row.add(Counter::PublishBytesSent, sent.payload_bytes);
        }
        self.collect_dropped(slot);
        self.show_room(slot);
    }

    /// Counts what a session dropped of what it held.
    #[inline]
    fn collect_dropped(&mut self, slot: Slot) {
        for (reason, count) in self.clients[slot].session.take_dropped() {
            self.dropped(slot, reason, u64::from(count));
        }
        self.note(slot);
    }
}

/// The buffer of a connection, one of the pool if it has none.
#[inline]
fn lend_buffer<'a>(connection: &'a mut Connection, pool: &mut Pool) -> &'a mut Output {
    let out = &mut connection.out;
    out.get_or_insert_with(|| pool.pop().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_client_stays_small() {
        assert!(
            size_of::<Client>() <= 224,
            "a client takes {} bytes",
            size_of::<Client>()
        );
        assert!(
            size_of::<Connection>() <= 104,
            "a connection takes {} bytes",
            size_of::<Connection>()
        );
    }
}
