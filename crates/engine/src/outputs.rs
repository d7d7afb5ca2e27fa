//! The output of all connections of one worker, and the list of connections to write.

use std::ops::{Index, IndexMut};

use thrum_protocol::Output;

use super::output::{BufferPool, ConnectionOutput};
use crate::ids::{ConnectionId, ConnectionKey, Slot};
use crate::table::Table;

/// Greatest number of output buffers that one worker keeps for reuse.
const POOL_MAX: usize = 4096;
/// Greatest capacity in bytes of a buffer that is kept for reuse.
const POOLED_BYTES_MAX: usize = 16 * 1024;

/// The output of all connections of one worker.
#[derive(Debug, Default)]
pub struct Outputs {
    table: Table<ConnectionOutput>,
    next_serial: u32,
    /// Buffers that no connection uses.
    pool: BufferPool,
    /// Connections to write at the end of the turn.
    listed: Vec<ConnectionKey>,
    /// Connections whose output of this turn depends on changes of the journal.
    depending: Vec<ConnectionKey>,
    /// Empty buffer for sessions without connection, which write nothing.
    discarded: Output,
}

impl Outputs {
    /// Creates the output of a new connection.
    pub fn open(&mut self) -> ConnectionId {
        let serial = self.next_serial;
        self.next_serial = serial.wrapping_add(1);
        let key = self.table.insert(ConnectionOutput::new(serial));
        ConnectionId { key, serial }
    }

    /// Removes the output of a closed connection.
    pub fn close(&mut self, key: ConnectionKey) {
        if let Some(spare) = self.table.remove(key).into_spare() {
            self.recycle(spare);
        }
    }

    /// The identity of the connection in a place.
    #[inline]
    pub fn id(&self, key: ConnectionKey) -> ConnectionId {
        let serial = self.table[key].serial();
        ConnectionId { key, serial }
    }

    /// Whether a connection still exists.
    #[inline]
    pub fn contains(&self, id: ConnectionId) -> bool {
        let found = self.table.get(id.key);
        found.is_some_and(|found| found.serial() == id.serial)
    }

    /// The session of a connection; none if the connection has ended or has no session.
    #[inline]
    pub fn session(&self, id: ConnectionId) -> Option<Slot> {
        let found = self.table.get(id.key)?;
        found.session().filter(|_| found.serial() == id.serial)
    }

    /// Number of connections.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Returns the buffer of a connection; without a connection, a buffer whose contents are
    /// dropped.
    #[inline]
    pub fn buffer(&mut self, connection: Option<ConnectionKey>) -> &mut Output {
        let Some(key) = connection else {
            self.discarded.clear();
            return &mut self.discarded;
        };
        self.table[key].buffer(&mut self.pool)
    }

    /// Lists a connection that has output, or puts its empty buffer into the pool.
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

    /// Lists a connection to be written at the end of the turn.
    #[inline]
    pub fn list(&mut self, connection: ConnectionKey) {
        let output = &mut self.table[connection];
        if !std::mem::replace(&mut output.is_listed, true) {
            self.listed.push(connection);
        }
    }

    /// Whether no connection is listed.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }

    /// Takes the list of connections to write.
    pub fn take_listed(&mut self) -> Vec<ConnectionKey> {
        std::mem::take(&mut self.listed)
    }

    /// Puts the list back to reuse its memory; connections that were listed since stay listed.
    pub fn give_back(&mut self, mut list: Vec<ConnectionKey>) {
        list.clear();
        list.append(&mut self.listed);
        self.listed = list;
    }

    /// Removes the mark of a listed connection that is written now; false if the connection has
    /// ended, or if its output depends on changes that are not submitted yet: then it is written
    /// after the next turn.
    #[inline]
    pub fn take_turn(&mut self, connection: ConnectionKey) -> bool {
        let output = self.table.get_mut(connection);
        output.is_some_and(|output| std::mem::take(&mut output.is_listed) && !output.depends())
    }

    /// Puts a buffer into the pool.
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

    /// Makes the output of a connection in this turn wait until all changes of this turn are
    /// durable.
    pub fn depend(&mut self, connection: ConnectionKey) {
        if self.table[connection].depend() {
            self.depending.push(connection);
        }
    }

    /// Whether output depends on changes that are not submitted yet.
    #[inline]
    pub const fn are_depending(&self) -> bool {
        !self.depending.is_empty()
    }

    /// Holds the output that depends on the submitted changes until `turn` is durable; none if the
    /// changes are durable already. Returns the connections whose output is held.
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

    /// Releases the output of a connection of all turns up to this one; true if stamped messages of
    /// it are followed.
    pub fn release(&mut self, connection: ConnectionId, turn: u64) -> bool {
        if !self.contains(connection) {
            return false;
        }
        let output = &mut self.table[connection.key];
        output.release(turn);
        let is_followed = output.is_followed;
        self.list(connection.key);
        is_followed
    }

    /// Frees the memory of closed connections; keys stay valid.
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
