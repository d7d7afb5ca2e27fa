//! The questions that one worker is about to answer: a piece of each in a turn.

use std::collections::VecDeque;
use std::fmt;

use crate::metrics::Counter;
use crate::traffic::Traffic;

/// Units of all questions in a turn: about 0.3 ms, so that whoever asks adds less to the latency of
/// clients than they notice. A listing of a million sessions takes some 500 turns.
pub(crate) const QUESTION_UNITS: u64 = 2048;

/// What a worker does for one question.
pub(crate) trait Work: fmt::Debug + Send {
    /// What comes of it.
    type Answer: Send;

    /// Goes on until the portion of the turn is used up.
    fn go_on(&mut self, traffic: &mut Traffic) -> Progress<Self::Answer>;
}

/// How far a question is.
#[derive(Debug)]
pub(crate) enum Progress<A> {
    Done(A),
    /// It goes on in the next turn.
    More,
    /// It waits for something that wakes the worker.
    Waits,
}

/// The same once the answer has been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Done,
    More,
    Waits,
}

/// A question of any kind, with the way of its answer.
pub(crate) trait Task: fmt::Debug + Send {
    /// Nobody waits for the answer any more.
    fn is_given_up(&self) -> bool;

    /// Goes on until the portion of the turn is used up; sends the answer.
    fn step(&mut self, traffic: &mut Traffic) -> Step;
}

/// The questions under way, the next one in front. Their number is limited where they are asked
/// ([`QUESTIONS_MAX`](super::ask::QUESTIONS_MAX)).
#[derive(Debug, Default)]
pub(crate) struct Questions(VecDeque<Box<dyn Task>>);

impl Questions {
    /// Nobody asks.
    #[inline]
    pub(crate) fn are_none(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn push(&mut self, task: Box<dyn Task>) {
        self.0.push_back(task);
    }

    /// Answers as far as the portion of the turn goes; what is left begins the next turn, and the
    /// worker is woken for it.
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
            let core = &traffic.engine.core;
            core.node.mailbox(core.id).wake();
        } else {
            self.0.shrink_to_fit();
        }
    }
}
