//! Turns whose changes are not safe yet, and who waits for them.
//!
//! Two workers may ask each other in the same turns. So an answer rests on nothing but the turn in which the question came:
//! what it wrote down, and what it passed on to a third worker. If it waited for the answers to the turn's other
//! questions, or for earlier turns, each would wait for the other.

use std::collections::{BTreeSet, VecDeque};

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
    /// Sessions that can be forgotten then: they held messages that moved to another worker.
    pub(crate) parked: Vec<u64>,
}

/// Answers to questions that came in one turn.
#[derive(Debug)]
pub(crate) struct Answers {
    /// None while the storage thread has no room for the batch.
    pub(crate) ticket: Option<Ticket>,
    /// Questions about what was passed on.
    pub(crate) asked: Vec<(WorkerId, u64)>,
    /// Who asked, and its number of the question.
    pub(crate) to: Vec<(WorkerId, u64)>,
}

/// The turns of one worker, and its questions to the others.
#[derive(Debug)]
pub(crate) struct Turns {
    waiting: VecDeque<Turn>,
    /// Oldest first.
    answers: Vec<Answers>,
    last: u64,
    /// By worker.
    questions: Vec<Questions>,
}

/// Questions to one worker, which it answers in any order.
#[derive(Clone, Debug, Default)]
struct Questions {
    last: u64,
    /// All up to this one are answered.
    answered: u64,
    /// Answered before an earlier one.
    ahead: BTreeSet<u64>,
}

impl Turns {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            waiting: VecDeque::new(),
            answers: Vec::new(),
            last: 0,
            questions: vec![Questions::default(); workers],
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
        let questions = &mut self.questions[worker.index()];
        questions.last += 1;
        questions.last
    }

    /// A worker says that what it was sent before this question, and after the one before, is safe.
    pub(crate) fn answered(&mut self, worker: WorkerId, number: u64) {
        let questions = &mut self.questions[worker.index()];
        questions.ahead.insert(number);
        while questions.ahead.remove(&(questions.answered + 1)) {
            questions.answered += 1;
        }
    }

    /// The turn at hand ends, and something waits for it.
    pub(crate) fn push(&mut self, mut turn: Turn) {
        self.last += 1;
        turn.number = self.last;
        self.waiting.push_back(turn);
    }

    /// Questions came in the turn at hand that cannot be answered yet.
    pub(crate) fn push_answers(&mut self, answers: Answers) {
        self.answers.push(answers);
    }

    /// The storage thread took everything up to now.
    pub(crate) fn submitted(&mut self, ticket: Ticket) {
        let without = self.waiting.iter_mut().rev();
        for turn in without.take_while(|turn| turn.ticket.is_none()) {
            turn.ticket = Some(ticket);
        }
        for answers in &mut self.answers {
            answers.ticket.get_or_insert(ticket);
        }
    }

    /// The next turn that is safe.
    pub(crate) fn pop_safe(&mut self, durable: Ticket) -> Option<Turn> {
        let first = self.waiting.front()?;
        if self.is_safe(first.ticket, &first.asked, durable) {
            return self.waiting.pop_front();
        }
        None
    }

    /// Questions that can be answered by now.
    pub(crate) fn take_answers(&mut self, durable: Ticket) -> Vec<(WorkerId, u64)> {
        let mut to = Vec::new();
        let mut rest = std::mem::take(&mut self.answers);
        rest.retain_mut(|answers| {
            let is_safe = self.is_safe(answers.ticket, &answers.asked, durable);
            if is_safe {
                to.append(&mut answers.to);
            }
            !is_safe
        });
        self.answers = rest;
        to
    }

    fn is_safe(&self, ticket: Option<Ticket>, asked: &[(WorkerId, u64)], durable: Ticket) -> bool {
        let is_answered = |&(worker, number): &(WorkerId, u64)| {
            let questions = &self.questions[worker.index()];
            number <= questions.answered || questions.ahead.contains(&number)
        };
        ticket.is_some_and(|ticket| ticket <= durable) && asked.iter().all(is_answered)
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

    #[test]
    fn an_answer_waits_for_its_own_turn_alone() {
        let [other, third] = [1, 2].map(WorkerId::new);
        let mut turns = Turns::new(3);
        let own = turns.ask(other);
        turns.push(turn(Some(1), vec![(other, own)]));
        let passed_on = turns.ask(third);
        let answers = |ticket, asked, number| Answers {
            ticket,
            asked,
            to: vec![(other, number)],
        };
        turns.push_answers(answers(Some(1), vec![(third, passed_on)], 7));
        turns.push_answers(answers(None, vec![], 8));
        assert_eq!(turns.take_answers(1), []);
        turns.submitted(2);
        assert_eq!(turns.take_answers(2), [(other, 8)], "7 was passed on");
        turns.answered(third, passed_on);
        assert_eq!(turns.take_answers(2), [(other, 7)]);
        assert!(turns.pop_safe(2).is_none(), "the other has not answered");
    }

    #[test]
    fn answers_come_in_any_order() {
        let other = WorkerId::new(1);
        let mut turns = Turns::new(2);
        for number in 1..=3 {
            assert_eq!(turns.ask(other), number);
            turns.push(turn(Some(1), vec![(other, number)]));
        }
        turns.answered(other, 2);
        assert!(turns.pop_safe(1).is_none(), "the first is not answered");
        turns.answered(other, 1);
        assert_eq!(turns.pop_safe(1).unwrap().number, 1);
        assert_eq!(turns.pop_safe(1).unwrap().number, 2);
        assert!(turns.pop_safe(1).is_none());
        turns.answered(other, 3);
        assert_eq!(turns.pop_safe(1).unwrap().number, 3);
    }
}
