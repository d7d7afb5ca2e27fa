//! The questions that one worker has to answer: a portion of each in a turn.

use std::collections::VecDeque;
use std::fmt;

use crate::traffic::Traffic;
use thrum_engine::node::metrics::Counter;

/// Units of all questions in a turn: about 0.3 ms, which is the latency that questions add for
/// clients. A page of a million sessions takes some 500 turns.
pub(crate) const QUESTION_UNITS: u64 = 2048;

/// The work of one worker for a question.
pub(crate) trait Work: fmt::Debug + Send {
    /// Its result.
    type Answer: Send;

    /// Goes on until the portion of the turn is used up.
    fn go_on(&mut self, traffic: &mut Traffic) -> Progress<Self::Answer>;
}

/// State of a question after a portion of it.
#[derive(Debug)]
pub(crate) enum Progress<A> {
    Done(A),
    /// It goes on in the next turn.
    More,
    /// An event that wakes the worker has to happen first.
    Waits,
}

/// The same without the answer, which was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Done,
    More,
    Waits,
}

/// A question of any kind.
pub(crate) trait Task: fmt::Debug + Send {
    /// The asker does not wait for the answer any more.
    fn is_given_up(&self) -> bool;

    /// Goes on until the portion of the turn is used up; sends the answer.
    fn step(&mut self, traffic: &mut Traffic) -> Step;
}

/// The questions under way, the next one in front. The asker limits their number
/// ([`QUESTIONS_MAX`](super::ask::QUESTIONS_MAX)).
#[derive(Debug, Default)]
pub(crate) struct Questions(VecDeque<Box<dyn Task>>);

impl Questions {
    /// No question is under way.
    #[inline]
    pub(crate) fn are_none(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn push(&mut self, task: Box<dyn Task>) {
        self.0.push_back(task);
    }

    /// Answers until the portion of the turn is used up; the rest follows in the next turn, for
    /// which the worker is woken.
    #[cold]
    pub(crate) fn go_on(&mut self, traffic: &mut Traffic) {
        traffic.engine.core.turn.begin_portion_of(QUESTION_UNITS);
        let mut are_left = false;
        for _ in 0..self.0.len() {
            let Some(mut task) = self.0.pop_front() else {
                break;
            };
            if task.is_given_up() {
                let row = traffic.engine.core.row();
                row.add(Counter::QuestionsGivenUp, 1);
                continue;
            }
            traffic.engine.core.turn.work += 1;
            let step = task.step(traffic);
            traffic.engine.core.durable.end_unit();
            are_left |= step == Step::More;
            if step != Step::Done {
                self.0.push_back(task);
            }
            if traffic.engine.core.turn.is_portion_over() {
                are_left |= !self.0.is_empty();
                break;
            }
        }
        if are_left {
            traffic.edge.node.mailbox(traffic.engine.core.id).wake();
        } else {
            self.0.shrink_to_fit();
        }
    }
}
