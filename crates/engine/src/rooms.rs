//! What this worker tells the others of the queues of its sessions.
//!
//! The session at hand shows its queue whenever that changed; what others have to be told then is
//! collected during the turn and passed on at its end: filters whose subscribers are nearly full,
//! and room that somebody waited for.

use std::sync::Arc;

use thrum_protection::MemoryLevel;
use thrum_protocol::limits::QueuePolicy;

use super::client::Client;
use super::memory::takes_until;
use crate::ids::Slot;
use crate::interest::SessionRef;
use crate::node::NodeState;
use crate::queue_room::{Promise, QueueRoom, Told, is_nearly_full};
use crate::workers::WorkerId;

/// The rooms of the worker's sessions, and what others are told at the end of the turn.
#[derive(Debug)]
pub struct Rooms {
    /// Slots of sessions that became nearly full, or are no longer.
    turned: Vec<Slot>,
    /// Workers that wait for room which there is now.
    told: Vec<Told>,
    here: WorkerId,
    node: Arc<NodeState>,
}

/// The room of a session, and what is known of it elsewhere.
#[derive(Debug)]
pub struct OwnRoom {
    /// What others see of it.
    pub room: Arc<QueueRoom>,
    /// The filters of the session say that it is nearly full.
    pub(super) is_announced: bool,
    /// Who knows of this generation of the table of interest knows so. What others sent is taken
    /// beyond the limits: they were told that there is room.
    pub(super) known_from: u64,
}

impl Client {
    pub fn own_room(&self) -> Option<&OwnRoom> {
        self.rare.as_deref()?.room.as_ref()
    }

    /// What others see of its queue.
    pub fn room(&self) -> Option<&Arc<QueueRoom>> {
        Some(&self.own_room()?.room)
    }

    pub(super) fn is_announced(&self) -> bool {
        self.own_room().is_some_and(|own| own.is_announced)
    }

    /// The room of a session that has none yet.
    pub(super) fn set_room(&mut self, room: Arc<QueueRoom>) {
        self.rare_mut().room = Some(OwnRoom {
            room,
            is_announced: false,
            known_from: 0,
        });
    }

    /// Gives the room back if nobody looks at it any more.
    pub(super) fn drop_unused_room(&mut self) {
        let is_used = self.room().is_none_or(|room| room.is_nearly_full());
        if !is_used && !self.is_announced() && self.groups().is_empty() {
            self.rare_mut().room = None;
            self.drop_unused();
        }
    }
}

impl Rooms {
    pub(super) const fn new(here: WorkerId, node: Arc<NodeState>) -> Self {
        Self {
            turned: Vec::new(),
            told: Vec::new(),
            here,
            node,
        }
    }

    /// Nobody has to be told anything.
    #[inline]
    pub const fn is_quiet(&self) -> bool {
        self.turned.is_empty() && self.told.is_empty()
    }

    /// Takes out the sessions that became nearly full, or are no longer.
    pub(super) fn take_turned(&mut self) -> Vec<Slot> {
        std::mem::take(&mut self.turned)
    }

    /// Takes out whom to tell of room, each once.
    pub(super) fn take_told(&mut self) -> Vec<Told> {
        let mut told = std::mem::take(&mut self.told);
        told.sort_by_key(|told| told.waiter);
        told.dedup_by_key(|told| told.waiter);
        told
    }

    /// These are told of room that there is now.
    pub fn tell(&mut self, told: impl IntoIterator<Item = Told>) {
        self.told.extend(told);
    }

    /// What came with promises has its place.
    pub fn end_promises(&mut self, promises: impl IntoIterator<Item = Promise>) {
        for promise in promises {
            self.told.extend(promise.end());
        }
    }

    /// A message came into the queue of a session, or found it full.
    pub fn queue_grew(&mut self, slot: Slot, client: &mut Client, level: MemoryLevel) {
        if client.room().is_none() {
            if !self.is_needed(client) || !is_nearly_full(&client.session, false) {
                return;
            }
            self.make(slot, client);
        }
        self.show(slot, client, level);
    }

    /// Whether anybody but this worker's publishers asks for the room of a session.
    pub(super) fn is_needed(&self, client: &Client) -> bool {
        let limits = client.session.limits();
        self.node.workers() > 1 || limits.queue.policy == QueuePolicy::Hold
    }

    pub(super) fn make(&self, slot: Slot, client: &mut Client) {
        let session = SessionRef {
            worker: self.here,
            slot,
            id: client.session.id(),
        };
        let level = self.node.memory.shared_level();
        client.set_room(Arc::new(QueueRoom::new(session, level)));
    }

    /// The room of a member of a shared group.
    pub fn of_member(&self, slot: Slot, client: &mut Client) -> Arc<QueueRoom> {
        if client.room().is_none() {
            self.make(slot, client);
        }
        let room = client.room().map(Arc::clone);
        room.expect("it was made if there was none")
    }

    /// The session came into a group or left one.
    pub fn groups_changed(&mut self, slot: Slot, client: &mut Client, level: MemoryLevel) {
        if let Some(room) = client.room() {
            room.set_groups(client.groups().len(), &self.node.holding);
            // Those who wait for the group look at who is left.
            self.told.extend(room.take_waiters());
            self.show(slot, client, level);
            client.drop_unused_room();
        }
    }

    /// Shows the queue of a session as it is, if anybody looks at it.
    #[inline]
    pub fn show(&mut self, slot: Slot, client: &Client, level: MemoryLevel) {
        if client.rare.is_some() {
            self.show_now(slot, client, level);
        }
    }

    /// A message was sent at once, which changes only what others see while something is short.
    #[inline]
    pub fn show_sent(&mut self, slot: Slot, client: &Client, level: MemoryLevel) {
        let is_short = |room: &Arc<QueueRoom>| room.is_nearly_full() || level >= MemoryLevel::Low;
        if client.room().is_some_and(is_short) {
            self.show_now(slot, client, level);
        }
    }

    fn show_now(&mut self, slot: Slot, client: &Client, level: MemoryLevel) {
        let Some(room) = client.room() else { return };
        let takes_until = if level >= MemoryLevel::Low {
            takes_until(&client.session)
        } else {
            MemoryLevel::Short
        };
        if room.show_memory(takes_until) {
            self.told.extend(room.take_waiters());
        }
        let is_connected = client.connection.is_some();
        let shown = room.show(&client.session, is_connected, &self.node.holding);
        self.told.extend(shown.told);
        if shown.is_turned {
            self.turned.push(slot);
        }
    }
}
