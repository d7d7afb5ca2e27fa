//! Turns whose changes are not safe yet, and who waits for them.

use std::collections::VecDeque;

use thrum_storage::Ticket;

use crate::node::WorkerId;

/// A turn that something waits for.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    pub(crate) number: u64,
    /// None while the storage thread has no room for the batch.
    pub(crate) ticket: Option<Ticket>,
    /// Questions to other workers that must be answered.
    pub(crate) asked: Vec<(WorkerId, u64)>,
    /// Connections with held output, by key and serial.
    pub(crate) connections: Vec<(u32, u32)>,
    /// Questions of other workers that may be answered then.
    pub(crate) answers: Vec<(WorkerId, u64)>,
    /// Sessions that can be forgotten then: they held messages that moved to another worker.
    pub(crate) parked: Vec<u64>,
}

/// The turns of one worker, and its questions to the others.
#[derive(Debug)]
pub(crate) struct Turns {
    waiting: VecDeque<Turn>,
    last: u64,
    /// The last question to each worker, and the last one it has answered.
    questions: Vec<(u64, u64)>,
}

impl Turns {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            waiting: VecDeque::new(),
            last: 0,
            questions: vec![(0, 0); workers],
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Number of the turn that is at hand.
    pub(crate) fn at_hand(&self) -> u64 {
        self.last + 1
    }

    /// Number of a new question to a worker.
    pub(crate) fn ask(&mut self, worker: WorkerId) -> u64 {
        let (asked, _) = &mut self.questions[worker.index()];
        *asked += 1;
        *asked
    }

    /// A worker says that what it was sent before this question is safe.
    pub(crate) fn answered(&mut self, worker: WorkerId, number: u64) {
        let (_, answered) = &mut self.questions[worker.index()];
        *answered = number.max(*answered);
    }

    /// The turn at hand ends, and something waits for it.
    pub(crate) fn push(&mut self, mut turn: Turn) {
        self.last += 1;
        turn.number = self.last;
        self.waiting.push_back(turn);
    }

    /// The storage thread took everything up to now.
    pub(crate) fn submitted(&mut self, ticket: Ticket) {
        let without = self.waiting.iter_mut().rev();
        for turn in without.take_while(|turn| turn.ticket.is_none()) {
            turn.ticket = Some(ticket);
        }
    }

    /// The next turn that is safe.
    pub(crate) fn pop_safe(&mut self, durable: Ticket) -> Option<Turn> {
        let first = self.waiting.front()?;
        let is_stored = first.ticket.is_some_and(|ticket| ticket <= durable);
        let is_answered =
            |&(worker, number): &(WorkerId, u64)| self.questions[worker.index()].1 >= number;
        if is_stored && first.asked.iter().all(is_answered) {
            return self.waiting.pop_front();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(ticket: Option<Ticket>, asked: Vec<(WorkerId, u64)>) -> Turn {
        Turn {
            ticket,
            asked,
            ..Turn::default()
        }
    }

    #[test]
    fn turns_become_safe_in_order_with_their_ticket_and_all_answers() {
        let other = WorkerId::new(1);
        let mut turns = Turns::new(2);
        let question = turns.ask(other);
        turns.push(turn(Some(1), vec![(other, question)]));
        turns.push(turn(None, vec![]));
        assert!(turns.pop_safe(5).is_none(), "the answer is missing");
        turns.answered(other, question);
        assert!(turns.pop_safe(0).is_none(), "the ticket is not durable");
        assert_eq!(turns.pop_safe(1).unwrap().number, 1);
        assert!(turns.pop_safe(9).is_none(), "there is no ticket yet");
        turns.submitted(2);
        assert_eq!(turns.pop_safe(2).unwrap().number, 2);
        assert!(turns.is_empty());
    }
}
