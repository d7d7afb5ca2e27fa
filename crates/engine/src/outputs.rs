//! The output of all connections of one worker, and who of them has some.

use std::ops::{Index, IndexMut};

use thrum_protocol::Output;

use super::output::{ConnectionOutput, Pool};
use crate::ids::{ConnectionId, ConnectionKey, Slot};
use crate::table::Table;

/// Output buffers kept for reuse by one worker.
const POOL_MAX: usize = 4096;
/// A buffer that grew beyond this is given back to the system instead of the pool.
const POOLED_BYTES_MAX: usize = 16 * 1024;

/// Output by connection.
#[derive(Debug, Default)]
pub struct Outputs {
    table: Table<ConnectionOutput>,
    next_serial: u32,
    /// Buffers that no connection has.
    pool: Pool,
    /// Connections to write at the end of the turn.
    listed: Vec<ConnectionKey>,
    /// Connections whose output of this turn rests on the journal, or on other workers.
    depending: Vec<ConnectionKey>,
    /// Takes what a session without connection would write, which is nothing.
    nowhere: Output,
}

impl Outputs {
    /// The output of a new connection.
    pub fn open(&mut self) -> ConnectionId {
        let serial = self.next_serial;
        self.next_serial = serial.wrapping_add(1);
        let key = self.table.insert(ConnectionOutput::new(serial));
        ConnectionId { key, serial }
    }

    /// The connection is gone.
    pub fn close(&mut self, key: ConnectionKey) {
        if let Some(spare) = self.table.remove(key).into_spare() {
            self.recycle(spare);
        }
    }

    /// The connection of that place, told apart from earlier ones.
    #[inline]
    pub fn id(&self, key: ConnectionKey) -> ConnectionId {
        let serial = self.table[key].serial();
        ConnectionId { key, serial }
    }

    /// The connection is still the one that is there.
    #[inline]
    pub fn contains(&self, id: ConnectionId) -> bool {
        let found = self.table.get(id.key);
        found.is_some_and(|found| found.serial() == id.serial)
    }

    /// The session of a connection, if that is still there.
    #[inline]
    pub fn session(&self, id: ConnectionId) -> Option<Slot> {
        let found = self.table.get(id.key)?;
        found.session().filter(|_| found.serial() == id.serial)
    }

    /// Connections.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// The buffer of a connection, one that is emptied at the next call if there is none.
    #[inline]
    pub fn buffer(&mut self, connection: Option<ConnectionKey>) -> &mut Output {
        let Some(key) = connection else {
            self.nowhere.clear();
            return &mut self.nowhere;
        };
        self.table[key].buffer(&mut self.pool)
    }

    /// Notes that the connection has something to write, or gives its buffer back.
    #[inline]
    pub fn wrote(&mut self, connection: ConnectionKey) {
        let output = &mut self.table[connection];
        if output.is_listed {
            return;
        }
        if let Some(buffer) = output.take_spare() {
            self.recycle(buffer);
        } else if output.has_buffer() {
            output.is_listed = true;
            self.listed.push(connection);
        }
    }

    /// The connection is written at the end of the turn, if it has something that may be.
    #[inline]
    pub fn list(&mut self, connection: ConnectionKey) {
        let output = &mut self.table[connection];
        if !std::mem::replace(&mut output.is_listed, true) {
            self.listed.push(connection);
        }
    }

    /// Nobody has anything to be written.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }

    /// Takes those out that have something to be written.
    pub fn take_listed(&mut self) -> Vec<ConnectionKey> {
        std::mem::take(&mut self.listed)
    }

    /// Gives the list back, for its memory; who came in since stays in it.
    pub fn give_back(&mut self, mut list: Vec<ConnectionKey>) {
        list.clear();
        list.append(&mut self.listed);
        self.listed = list;
    }

    /// It is its turn; false if it is gone, or what it has rests on changes that came after the
    /// turn was settled: that is written after the next one.
    #[inline]
    pub fn take_turn(&mut self, connection: ConnectionKey) -> bool {
        let output = self.table.get_mut(connection);
        output.is_some_and(|output| std::mem::take(&mut output.is_listed) && !output.depends())
    }

    /// A buffer goes back to the pool.
    #[inline]
    pub fn recycle(&mut self, buffer: Box<Output>) {
        debug_assert!(
            buffer.is_empty(),
            "a buffer with output in it must not be reused"
        );
        if self.pool.len() < POOL_MAX && buffer.capacity() <= POOLED_BYTES_MAX {
            self.pool.push(buffer);
        }
    }

    /// The connection's output of this turn waits until all changes of this turn are safe.
    pub fn depend(&mut self, connection: ConnectionKey) {
        if self.table[connection].depend() {
            self.depending.push(connection);
        }
    }

    /// Somebody's output waits for the end of the turn.
    #[inline]
    pub const fn are_depending(&self) -> bool {
        !self.depending.is_empty()
    }

    /// The changes of this turn are handed in: what rests on them is held until `turn` is safe, if
    /// it is not yet. Those that are held.
    pub fn settle(&mut self, turn: Option<u64>) -> Vec<ConnectionId> {
        let mut held = Vec::new();
        let mut depending = std::mem::take(&mut self.depending);
        for key in depending.drain(..) {
            let Some(output) = self.table.get_mut(key) else {
                continue;
            };
            if !output.take_depends() {
                continue;
            }
            if let Some(turn) = turn {
                output.hold(turn);
                let serial = output.serial();
                held.push(ConnectionId { key, serial });
            }
            self.list(key);
        }
        self.depending = depending;
        held
    }

    /// What a connection's turns up to this one produced may be written.
    pub fn release(&mut self, connection: ConnectionId, turn: u64) {
        if self.contains(connection) {
            self.table[connection.key].release(turn);
            self.list(connection.key);
        }
    }

    /// Gives back the room of those that are gone; no key changes.
    pub fn shrink(&mut self) {
        self.table.shrink_to_fit();
        self.listed.shrink_to_fit();
    }
}

impl Index<ConnectionKey> for Outputs {
    type Output = ConnectionOutput;

    #[inline]
    fn index(&self, key: ConnectionKey) -> &ConnectionOutput {
        &self.table[key]
    }
}

impl IndexMut<ConnectionKey> for Outputs {
    #[inline]
    fn index_mut(&mut self, key: ConnectionKey) -> &mut ConnectionOutput {
        &mut self.table[key]
    }
}
