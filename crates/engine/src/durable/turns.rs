//! Turns whose changes are not safe yet, and who waits for them.

use std::collections::VecDeque;

use crate::ids::ConnectionId;
use thrum_storage::Ticket;

/// A turn that connections wait for.
#[derive(Debug)]
pub struct Turn {
    pub number: u64,
    /// None while the storage thread has no room for the batch.
    ticket: Option<Ticket>,
    /// Connections with held output, by key and serial.
    pub connections: Vec<ConnectionId>,
}

/// The turns of one worker that wait, oldest first.
#[derive(Debug, Default)]
pub struct Turns {
    waiting: VecDeque<Turn>,
    last: u64,
}

impl Turns {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Number of the turn that is at hand.
    pub fn at_hand(&self) -> u64 {
        self.last + 1
    }

    /// The turn at hand ends, and these connections wait for it.
    pub fn push(&mut self, ticket: Option<Ticket>, connections: Vec<ConnectionId>) {
        self.last += 1;
        self.waiting.push_back(Turn {
            number: self.last,
            ticket,
            connections,
        });
    }

    /// The storage thread took everything up to now.
    pub fn submitted(&mut self, ticket: Ticket) {
        let without = self.waiting.iter_mut().rev();
        for turn in without.take_while(|turn| turn.ticket.is_none()) {
            turn.ticket = Some(ticket);
        }
    }

    /// The next turn that is safe.
    pub fn pop_safe(&mut self, durable: Ticket) -> Option<Turn> {
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
        turns.push(Some(1), vec![connection]);
        turns.push(None, vec![]);
        assert!(turns.pop_safe(0).is_none(), "the ticket is not durable");
        assert_eq!(turns.pop_safe(1).unwrap().connections, [connection]);
        assert!(turns.pop_safe(9).is_none(), "there is no ticket yet");
        turns.submitted(2);
        assert_eq!(turns.pop_safe(2).unwrap().number, 2);
        assert!(turns.is_empty());
    }
}
