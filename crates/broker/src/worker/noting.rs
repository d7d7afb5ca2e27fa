//! What durable sessions did is written down, and the output that rests on it marked.

use thrum_protocol::Outgoing;

use super::local::Local;
use crate::ids::{ConnectionId, ConnectionKey, Slot};
use crate::workers::WorkerId;

impl Local {
    /// A durable session gets a list for its steps, so that it need not make one.
    #[inline]
    pub(crate) fn lend(&mut self, slot: Slot) {
        let session = &mut self.clients[slot].session;
        if session.is_durable()
            && let Some(journal) = &mut self.journal
            && let Some(list) = journal.spare_list()
        {
            session.lend_steps(list);
        }
    }

    /// Writes down what a durable session did since the last call.
    #[inline]
    pub(crate) fn note(&mut self, slot: Slot) {
        if self.clients[slot].session.is_durable() {
            self.note_steps(slot);
        }
    }

    fn note_steps(&mut self, slot: Slot) {
        let client = &mut self.clients[slot];
        let connection = client.connection;
        if let Some(journal) = &mut self.journal
            && let Some(mut steps) = client.session.take_steps()
        {
            let rests = journal.steps(client.session.id(), &mut steps, &self.node.interest);
            journal.keep_list(steps);
            if let Some(key) = connection.filter(|_| rests) {
                self.depend(key);
            }
        }
    }

    /// Changes written so far, to tell whether something that follows writes one.
    #[inline]
    pub(crate) fn mark(&self) -> u64 {
        self.journal.as_ref().map_or(0, |journal| journal.mark())
    }

    /// What happened up to now belongs together.
    #[inline]
    pub(crate) fn end_unit(&mut self) {
        if let Some(journal) = &mut self.journal {
            journal.end_unit();
        }
    }

    /// The connection's output of this turn waits until all changes of this turn are safe.
    pub(crate) fn depend(&mut self, connection: ConnectionKey) {
        let entry = &mut self.connections[connection];
        if !entry.depends {
            entry.depends = true;
            self.depending.push(connection);
        }
    }

    /// Whether a session is one of those that a message was on its way to, and does not have it
    /// since an earlier start.
    #[cold]
    pub(crate) fn is_missing(
        &self,
        slot: Slot,
        (to, of): (usize, usize),
        outgoing: &mut Outgoing<'_>,
    ) -> bool {
        let session = &self.clients[slot].session;
        let worker = WorkerId::of_session(session.id(), of);
        worker.index() == to && !session.holds(outgoing.message().stored_id())
    }

    /// What a connection's turns up to this one produced may be written.
    pub(crate) fn release(&mut self, connection: ConnectionId, turn: u64) {
        if let Some(entry) = self.connection_mut(connection) {
            entry.release(turn);
            self.mark_dirty(connection.key);
        }
    }
}
