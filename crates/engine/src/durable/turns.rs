//! Turns whose changes are not durable yet, and the connections that wait for them.

use std::collections::VecDeque;

use crate::ids::ConnectionId;
use thrum_storage::Ticket;

/// A turn whose changes connections wait for.
#[derive(Debug)]
pub(crate) struct Turn {
    /// Number of the turn.
    pub(crate) number: u64,
    /// Ticket of the changes; none while the storage thread has no room for the batch.
    ticket: Option<Ticket>,
    /// Connections with held output of this turn.
    pub(crate) connections: Vec<ConnectionId>,
}

/// The turns of one worker that are not durable, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    waiting: VecDeque<Turn>,
    last: u64,
}

impl Turns {
    /// Whether no turn waits.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Number of the current turn.
    pub(crate) fn current(&self) -> u64 {
        self.last + 1
    }

    /// Ends the current turn, for whose changes these connections wait.
    pub(crate) fn push(&mut self, ticket: Option<Ticket>, connections: Vec<ConnectionId>) {
        self.last += 1;
        self.waiting.push_back(Turn {
            number: self.last,
            ticket,
            connections,
        });
    }

    /// Sets the ticket of all turns whose changes were not accepted so far.
    pub(crate) fn submitted(&mut self, ticket: Ticket) {
        let without = self.waiting.iter_mut().rev();
        for turn in without.take_while(|turn| turn.ticket.is_none()) {
            turn.ticket = Some(ticket);
        }
    }

    /// Removes and returns the oldest turn if its changes are durable.
    pub(crate) fn pop_safe(&mut self, durable: Ticket) -> Option<Turn> {
        let is_safe = |turn: &mut Turn| turn.ticket.is_some_and(|ticket| ticket <= durable);
        self.waiting.pop_front_if(is_safe)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ConnectionKey;

    #[test]
    fn turns_become_safe_in_order_once_they_have_a_durable_ticket() {
        let mut turns = Turns::default();
        let connection = ConnectionId {
            key: ConnectionKey::FIRST,
            serial: 1,
        };
        assert_eq!(turns.current(), 1);
        turns.push(Some(1), vec![connection]);
        assert_eq!(turns.current(), 2, "the next one");
        assert!(!turns.is_empty());
        turns.push(None, vec![]);
        assert!(turns.pop_safe(0).is_none(), "the ticket is not durable");
        assert_eq!(turns.pop_safe(1).unwrap().connections, [connection]);
        assert!(turns.pop_safe(9).is_none(), "there is no ticket yet");
        turns.submitted(2);
        assert_eq!(turns.pop_safe(2).unwrap().number, 2);
        assert!(turns.is_empty());
    }
}
