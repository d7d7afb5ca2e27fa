//! The sessions of one worker, by slot and by client identifier.

use std::hash::BuildHasher;
use std::ops::{Index, IndexMut};

use hashbrown::{DefaultHashBuilder, HashTable};

use super::client::Client;
use super::timers::TimedSession;
use crate::ids::Slot;
use crate::table::Table;

/// The sessions of one worker in their slots.
#[derive(Debug, Default)]
pub struct Sessions {
    clients: Table<Client>,
    /// Slots by client identifier; the session contains the text.
    by_id: HashTable<Slot>,
    hasher: DefaultHashBuilder,
    /// Client identifiers of sessions that ended in this turn.
    pub ended: Vec<Box<str>>,
}

impl Sessions {
    /// Returns the session in a slot.
    #[inline]
    pub fn get(&self, slot: Slot) -> Option<&Client> {
        self.clients.get(slot)
    }

    /// Returns the session in a slot for changes.
    #[inline]
    pub fn get_mut(&mut self, slot: Slot) -> Option<&mut Client> {
        self.clients.get_mut(slot)
    }

    /// Finds the slot of the session of a client identifier.
    pub fn find(&self, client_id: &str) -> Option<Slot> {
        let hash = self.hasher.hash_one(client_id);
        let same = |slot: &Slot| self.clients[*slot].session.client_id() == client_id;
        self.by_id.find(hash, same).copied()
    }

    /// Adds a session and returns its slot.
    pub fn insert(&mut self, client: Client) -> Slot {
        let hash = self.hasher.hash_one(client.session.client_id());
        let slot = self.clients.insert(client);
        let (hasher, clients) = (&self.hasher, &self.clients);
        self.by_id.insert_unique(hash, slot, |slot| {
            hasher.hash_one(clients[*slot].session.client_id())
        });
        slot
    }

    /// The slot of the next session that is added.
    pub fn next_slot(&self) -> Slot {
        self.clients.next_key()
    }

    /// Removes a session.
    pub fn remove(&mut self, slot: Slot) -> Client {
        let hash = self.hasher.hash_one(self.clients[slot].session.client_id());
        if let Ok(entry) = self.by_id.find_entry(hash, |other| *other == slot) {
            entry.remove();
        }
        self.clients.remove(slot)
    }

    /// Whether a slot still contains the session of that number.
    #[inline]
    pub fn is(&self, slot: Slot, id: u64) -> bool {
        let client = self.clients.get(slot);
        client.is_some_and(|client| client.session.id() == id)
    }

    /// Whether a slot still contains the session of that number and its client is connected.
    #[inline]
    pub fn is_connected(&self, slot: Slot, id: u64) -> bool {
        self.is(slot, id) && self.clients[slot].connection.is_some()
    }

    /// The slot of the session of a timer; none if the session has ended.
    pub fn slot_of(&self, timed: TimedSession) -> Option<Slot> {
        let client = self.clients.get(timed.slot)?;
        (TimedSession::new(timed.slot, &client.session) == timed).then_some(timed.slot)
    }

    /// Iterates over all sessions with their slots.
    pub fn iter(&self) -> impl Iterator<Item = (Slot, &Client)> {
        self.clients.iter()
    }

    /// Number of sessions.
    #[inline]
    pub fn len(&self) -> usize {
        self.clients.len()
    }

    /// Whether there is no session.
    pub fn is_empty(&self) -> bool {
        self.clients.is_empty()
    }

    /// Number of slots with allocated memory.
    pub fn capacity(&self) -> usize {
        self.clients.capacity()
    }

    /// Frees the memory of removed sessions; slots stay valid.
    pub fn shrink(&mut self) {
        self.clients.shrink_to_fit();
        let (hasher, clients) = (&self.hasher, &self.clients);
        self.by_id
            .shrink_to_fit(|slot| hasher.hash_one(clients[*slot].session.client_id()));
    }
}

impl Index<Slot> for Sessions {
    type Output = Client;

    #[inline]
    fn index(&self, slot: Slot) -> &Client {
        &self.clients[slot]
    }
}

impl IndexMut<Slot> for Sessions {
    #[inline]
    fn index_mut(&mut self, slot: Slot) -> &mut Client {
        &mut self.clients[slot]
    }
}
