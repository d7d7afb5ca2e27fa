//! Publication of the queue capacity of this worker's sessions to other workers.
//!
//! A session publishes its queue whenever that changes; notifications of other workers are
//! collected during the turn and sent at its end: filters whose subscribers became nearly full, and
//! room that publishers wait for.

use std::sync::Arc;

use thrum_protection::MemoryLevel;
use thrum_protocol::limits::QueuePolicy;

use super::client::Client;
use super::memory::takes_until;
use crate::ids::Slot;
use crate::interest::SessionRef;
use crate::node::NodeState;
use crate::queue_room::{Promise, QueueRoom, RoomNotice, is_nearly_full};
use crate::workers::WorkerId;

/// Notifications about the queues of the worker's sessions, which are sent at the end of the turn.
#[derive(Debug)]
pub struct Rooms {
    /// Slots of sessions whose queues became nearly full or are no longer.
    changed: Vec<Slot>,
    /// Workers to notify of room that their publishers wait for.
    notices: Vec<RoomNotice>,
    here: WorkerId,
    node: Arc<NodeState>,
}

/// The published capacity of a session's queue, and its announcement to other workers.
#[derive(Debug)]
pub struct OwnRoom {
    /// The capacity as other workers see it.
    pub room: Arc<QueueRoom>,
    /// The table of interest marks the filters of the session as nearly full.
    pub(super) is_announced: bool,
    /// Generation of the table of interest that contains the announcement. Messages of workers with
    /// an earlier generation are accepted beyond the limits, as those workers assumed that there is
    /// room.
    pub(super) known_from: u64,
}

impl Client {
    /// The published capacity of the queue; none if it is not published.
    pub fn own_room(&self) -> Option<&OwnRoom> {
        self.rare.as_deref()?.room.as_ref()
    }

    /// The capacity of the queue as other workers see it; none if it is not published.
    pub fn room(&self) -> Option<&Arc<QueueRoom>> {
        Some(&self.own_room()?.room)
    }

    pub(super) fn is_announced(&self) -> bool {
        self.own_room().is_some_and(|own| own.is_announced)
    }

    /// Sets the published capacity of a session that has none yet.
    pub(super) fn set_room(&mut self, room: Arc<QueueRoom>) {
        self.rare_mut().room = Some(OwnRoom {
            room,
            is_announced: false,
            known_from: 0,
        });
    }

    /// Removes the published capacity if no other worker needs it.
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
            changed: Vec::new(),
            notices: Vec::new(),
            here,
            node,
        }
    }

    /// Whether there is no notification to send.
    #[inline]
    pub const fn is_quiet(&self) -> bool {
        self.changed.is_empty() && self.notices.is_empty()
    }

    /// Takes the sessions whose queues became nearly full or are no longer.
    pub(super) fn take_changed(&mut self) -> Vec<Slot> {
        std::mem::take(&mut self.changed)
    }

    /// Takes the notifications of room, each worker and shortage once.
    pub(super) fn take_notices(&mut self) -> Vec<RoomNotice> {
        let mut notices = std::mem::take(&mut self.notices);
        notices.sort_by_key(|notice| notice.waiter);
        notices.dedup_by_key(|notice| notice.waiter);
        notices
    }

    /// Adds notifications of room.
    pub fn notify(&mut self, notices: impl IntoIterator<Item = RoomNotice>) {
        self.notices.extend(notices);
    }

    /// Releases promises whose messages are queued.
    pub fn end_promises(&mut self, promises: impl IntoIterator<Item = Promise>) {
        for promise in promises {
            self.notices.extend(promise.end());
        }
    }

    /// Publishes the capacity of a queue that a message was added to.
    pub fn queue_grew(&mut self, slot: Slot, client: &mut Client, level: MemoryLevel) {
        if client.room().is_none() {
            if !self.is_needed(client) || !is_nearly_full(&client.session, false) {
                return;
            }
            self.make(slot, client);
        }
        self.show(slot, client, level);
    }

    /// Whether publishers need the published capacity of a session: on other workers, or because
    /// they have to wait for a full queue.
    pub(super) fn is_needed(&self, client: &Client) -> bool {
        let limits = client.session.limits();
        self.node.workers() > 1 || limits.queue.policy == QueuePolicy::Hold
    }

    /// Creates the published capacity of a session.
    pub(super) fn make(&self, slot: Slot, client: &mut Client) {
        let session = SessionRef {
            worker: self.here,
            slot,
            id: client.session.id(),
        };
        let level = self.node.memory.shared_level();
        client.set_room(Arc::new(QueueRoom::new(session, level)));
    }

    /// Returns the published capacity of a member of a shared group, which is created if there is
    /// none.
    pub fn of_member(&self, slot: Slot, client: &mut Client) -> Arc<QueueRoom> {
        if client.room().is_none() {
            self.make(slot, client);
        }
        let room = client.room().map(Arc::clone);
        room.expect("it was made if there was none")
    }

    /// Publishes that the session joined or left a group.
    pub fn groups_changed(&mut self, slot: Slot, client: &mut Client, level: MemoryLevel) {
        if let Some(room) = client.room() {
            room.set_groups(client.groups().len(), &self.node.holding);
            // Publishers that wait for the group check the remaining members.
            self.notices.extend(room.take_waiters());
            self.show(slot, client, level);
            client.drop_unused_room();
        }
    }

    /// Publishes the current capacity of a session, if it is published at all.
    #[inline]
    pub fn show(&mut self, slot: Slot, client: &Client, level: MemoryLevel) {
        if client.rare.is_some() {
            self.show_now(slot, client, level);
        }
    }

    /// Publishes the capacity of a session after a message was sent without queuing, which matters
    /// only while the queue is nearly full or memory is low.
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
            self.notices.extend(room.take_waiters());
        }
        let is_connected = client.connection.is_some();
        let shown = room.show(&client.session, is_connected, &self.node.holding);
        self.notices.extend(shown.notices);
        if shown.has_changed {
            self.changed.push(slot);
        }
    }
}
