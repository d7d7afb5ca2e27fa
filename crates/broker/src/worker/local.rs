//! The connections and sessions of one worker, and how a message reaches one of them.

use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};
use slab::Slab;
use std::hash::BuildHasher;
use thrum_protocol::server::{Delivered, DeliveryOptions, DropReason, GroupId, Session};
use thrum_protocol::{Message, Outgoing, Output, Time};
use thrum_routing::FilterId;
use thrum_storage::Owner;

use crate::access::ClientAccess;
use crate::connection::Connection;
use crate::durable::Journal;
use crate::listener::Gate;
use crate::metrics::{Counter, Row};
use crate::node::{Node, WorkerId};
use crate::retained::ReplayCursor;
use crate::settings::Settings;

/// Output buffers kept for reuse by one worker.
const POOL_MAX: usize = 4096;
/// A buffer that grew beyond this is given back to the system instead of the pool.
const POOLED_BYTES_MAX: usize = 16 * 1024;

/// Marks a session without connection.
pub(super) const AWAY: u32 = u32::MAX;

/// A session and what the worker keeps beside it.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) session: Session,
    /// Slot of the connection, [`AWAY`] without one.
    pub(crate) connection: u32,
    /// A full queue was logged; silent until it recovered.
    pub(crate) drops_logged: bool,
    /// The earliest timer that is armed.
    pub(crate) armed: Time,
    pub(crate) subscriptions: Vec<FilterId>,
    /// What it may do; none if that is everything.
    pub(crate) access: Option<Box<ClientAccess>>,
    pub(crate) rare: Option<Box<Rare>>,
}

/// What only some sessions have.
#[derive(Debug, Default)]
pub(crate) struct Rare {
    /// Memberships in shared groups.
    pub(crate) groups: Vec<GroupId>,
    /// Retained messages still to be sent for new subscriptions.
    pub(crate) replays: VecDeque<Replay>,
    /// They go on in the next turn.
    pub(crate) replay_waits: bool,
    /// Of a session that was restored and has had no connection since: whose it is. What it may do is not known yet.
    pub(crate) owner: Owner<Box<str>>,
}

/// A replay of retained messages that goes on as the session takes them.
#[derive(Debug)]
pub(crate) struct Replay {
    pub(crate) filter: Box<str>,
    pub(crate) qos: thrum_codec::QoS,
    pub(crate) identifier: Option<u32>,
    pub(crate) after: Option<ReplayCursor>,
    /// Looked up and not yet delivered, the next one last.
    pub(crate) page: Vec<Arc<Message>>,
}

impl Client {
    pub(crate) fn new(session: Session) -> Self {
        Self {
            session,
            connection: AWAY,
            drops_logged: false,
            armed: Time::from_millis(u64::MAX),
            subscriptions: Vec::new(),
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

    /// Its client is here: what it may do tells whose it is.
    pub(crate) fn forget_owner(&mut self) {
        if let Some(rare) = self.rare.as_deref_mut() {
            rare.owner = Owner::Unknown;
            self.drop_unused();
        }
    }

    /// Gives memory back once all replays are done.
    pub(crate) fn drop_unused(&mut self) {
        let Some(rare) = self.rare.as_deref_mut() else {
            return;
        };
        if rare.replays.is_empty() {
            rare.replays = VecDeque::new();
            if rare.groups.is_empty() && rare.owner == Owner::Unknown {
                self.rare = None;
            }
        }
    }

    /// Whose the session is.
    pub(crate) fn owner(&self) -> Owner<&str> {
        if let Some(access) = self.access.as_deref() {
            return access.owner();
        }
        let rare = self.rare.as_deref();
        rare.map_or(Owner::Unknown, |rare| rare.owner.as_deref())
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
    pub(crate) connections: Slab<Connection>,
    pub(crate) clients: Slab<Client>,
    /// Slots of clients by identifier; the text lives in the session.
    by_id: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// Connections to write at the end of the turn.
    pub(crate) dirty: Vec<u32>,
    /// What must survive a crash, on a node with storage.
    pub(crate) journal: Option<Box<Journal>>,
    /// The message at hand was on its way to that worker, of so many, before a crash: none but its sessions get it.
    pub(crate) only: Option<(usize, usize)>,
    /// Connections whose output of this turn rests on the journal, or on other workers.
    pub(crate) depending: Vec<u32>,
    pool: Vec<Output>,
    /// Takes what a session without connection would write, which is nothing.
    nowhere: Output,
    pub(crate) settings: Arc<Settings>,
    /// The node's gates as far as they were needed here.
    pub(super) gates: Vec<Arc<Gate>>,
    pub(super) node: Arc<Node>,
}

impl Local {
    pub(super) fn new(id: WorkerId, node: Arc<Node>, settings: Arc<Settings>) -> Self {
        Self {
            id,
            now: node.clock.now(),
            connections: Slab::new(),
            clients: Slab::new(),
            by_id: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            dirty: Vec::new(),
            journal: None,
            only: None,
            depending: Vec::new(),
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
        let number = usize::from(number);
        if number >= self.gates.len() {
            self.node.gates.learn(&mut self.gates);
        }
        &self.gates[number]
    }

    /// The slot of a client identifier's session.
    pub(crate) fn find(&self, client_id: &str) -> Option<u32> {
        let hash = self.hasher.hash_one(client_id);
        let same = |slot: &u32| self.clients[*slot as usize].session.client_id() == client_id;
        self.by_id.find(hash, same).copied()
    }

    pub(crate) fn insert(&mut self, client: Client) -> u32 {
        let hash = self.hasher.hash_one(client.session.client_id());
        let slot = u32::try_from(self.clients.insert(client)).expect("fewer than 2^32 sessions");
        let (hasher, clients) = (&self.hasher, &self.clients);
        self.by_id.insert_unique(hash, slot, |slot| {
            hasher.hash_one(clients[*slot as usize].session.client_id())
        });
        slot
    }

    /// The slot that the next session gets.
    pub(crate) fn next_slot(&self) -> u32 {
        u32::try_from(self.clients.vacant_key()).expect("fewer than 2^32 sessions")
    }

    pub(crate) fn remove(&mut self, slot: u32) -> Client {
        let hash = self
            .hasher
            .hash_one(self.clients[slot as usize].session.client_id());
        if let Ok(entry) = self.by_id.find_entry(hash, |other| *other == slot) {
            entry.remove();
        }
        self.clients.remove(slot as usize)
    }

    /// Gives back the room of those that are gone; no slot changes.
    pub(super) fn shrink(&mut self) {
        self.connections.shrink_to_fit();
        self.clients.shrink_to_fit();
        let (hasher, clients) = (&self.hasher, &self.clients);
        self.by_id
            .shrink_to_fit(|slot| hasher.hash_one(clients[*slot as usize].session.client_id()));
        self.dirty.shrink_to_fit();
    }

    /// A client and the buffer that its session writes into.
    #[inline]
    pub(crate) fn client_and_output(&mut self, slot: u32) -> (&mut Client, &mut Output) {
        let client = &mut self.clients[slot as usize];
        if client.connection == AWAY {
            self.nowhere.clear();
            return (client, &mut self.nowhere);
        }
        let connection = &mut self.connections[client.connection as usize];
        if connection.out.capacity() == 0
            && let Some(buffer) = self.pool.pop()
        {
            connection.out = buffer;
        }
        (client, &mut connection.out)
    }

    /// Notes that the connection has something to write, or gives its buffer back.
    #[inline]
    pub(crate) fn wrote(&mut self, connection: u32) {
        let entry = &mut self.connections[connection as usize];
        if entry.out.is_empty() {
            if entry.out.capacity() > 0 && !entry.dirty {
                let buffer = std::mem::take(&mut entry.out);
                self.recycle(buffer);
            }
        } else if !entry.dirty {
            entry.dirty = true;
            self.dirty.push(connection);
        }
    }

    /// The connection is written at the end of the turn, if it has something that may be.
    pub(crate) fn mark_dirty(&mut self, connection: u32) {
        let entry = &mut self.connections[connection as usize];
        if !entry.dirty {
            entry.dirty = true;
            self.dirty.push(connection);
        }
    }

    /// A buffer goes back to the pool.
    pub(crate) fn recycle(&mut self, buffer: Output) {
        debug_assert!(
            buffer.is_empty(),
            "a buffer with output in it must not be reused"
        );
        if self.pool.len() < POOL_MAX && buffer.capacity() <= POOLED_BYTES_MAX {
            self.pool.push(buffer);
        }
    }

    /// One message to one session.
    #[inline]
    pub(crate) fn deliver(
        &mut self,
        slot: u32,
        outgoing: &mut Outgoing<'_>,
        options: DeliveryOptions<'_>,
    ) -> Delivered {
        let now = self.now;
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
                self.wrote(connection);
                if waiting > self.settings.output_bytes {
                    self.congest(connection, slot);
                }
            }
            Delivered::Queued => {
                self.row().add(Counter::Queued, 1);
                self.collect_dropped(slot);
            }
            Delivered::Dropped(reason) => {
                self.dropped(slot, reason, 1);
                self.collect_dropped(slot);
            }
        }
        delivered
    }

    pub(crate) fn congest(&mut self, connection: u32, slot: u32) {
        let connection = &mut self.connections[connection as usize];
        if !connection.congested {
            connection.congested = true;
            self.row().add(Counter::LimitOutput, 1);
            self.clients[slot as usize].session.set_congested(true);
        }
    }

    /// Counts drops by reason and logs the first of a series that loses QoS 1 or 2.
    #[cold]
    pub(crate) fn dropped(&mut self, slot: u32, reason: DropReason, count: u64) {
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
        };
        self.row().add(counter, count);
        let client = &mut self.clients[slot as usize];
        let which = match reason {
            DropReason::QueueFull => "further",
            DropReason::QueueDropped => "the oldest",
            DropReason::QueueAge
            | DropReason::Offline
            | DropReason::SlowConsumer
            | DropReason::TooLarge
            | DropReason::Expired
            | DropReason::OutsideMount
            | DropReason::NotAllowed => return,
        };
        if !client.drops_logged {
            client.drops_logged = true;
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
    pub(crate) fn collect(&mut self, slot: u32) {
        let client = &mut self.clients[slot as usize];
        let sent = client.session.take_sent_later();
        if sent.messages > 0 {
            client.drops_logged = false;
            let row = self.row();
            row.add(Counter::PublishSent, u64::from(sent.messages));
            row.add(Counter::PublishBytesSent, sent.payload_bytes);
        }
        self.collect_dropped(slot);
    }

    /// Counts what a session dropped of what it held.
    #[inline]
    fn collect_dropped(&mut self, slot: u32) {
        for (reason, count) in self.clients[slot as usize].session.take_dropped() {
            self.dropped(slot, reason, u64::from(count));
        }
        self.note(slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_client_stays_small() {
        assert!(
            size_of::<Client>() <= 336,
            "a client takes {} bytes",
            size_of::<Client>()
        );
        assert!(
            size_of::<Connection>() <= 128,
            "a connection takes {} bytes",
            size_of::<Connection>()
        );
    }
}
