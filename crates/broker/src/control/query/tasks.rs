//! The pending tasks of one worker: each turn runs a portion of each.

use std::collections::VecDeque;
use std::fmt;

use crate::traffic::Traffic;
use thrum_engine::node::metrics::Counter;

/// Units of all query tasks in a turn: about 0.04 ms, which is the latency that queries add for
/// clients. A page of a million sessions takes about 4000 turns, each of which costs the worker
/// some microseconds more.
pub(crate) const QUERY_UNITS: u64 = 256;

/// The part of a query that one worker runs.
pub(crate) trait WorkerTask: fmt::Debug + Send {
    /// Its result.
    type Answer: Send;

    /// Runs until the portion of the turn is used up.
    fn advance(&mut self, traffic: &mut Traffic) -> TaskProgress<Self::Answer>;
}

/// State of a task after a portion of it.
#[derive(Debug)]
pub(crate) enum TaskProgress<A> {
    Done(A),
    /// It continues in the next turn.
    More,
    /// It continues after an event that wakes the worker.
    Blocked,
}

/// [`TaskProgress`] without the answer, which was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskStatus {
    Done,
    More,
    Blocked,
}

/// A [`WorkerTask`] of any kind, with the sender of its answer.
pub(crate) trait QueuedTask: fmt::Debug + Send {
    /// The caller no longer waits for the answer.
    fn is_abandoned(&self) -> bool;

    /// Runs until the portion of the turn is used up; sends the answer when it is done.
    fn advance(&mut self, traffic: &mut Traffic) -> TaskStatus;
}

/// The pending tasks, the next one in front. [`QueryLimit`](super::QueryLimit) limits their number
/// ([`QUERIES_MAX`](super::sender::QUERIES_MAX)).
#[derive(Debug, Default)]
pub(crate) struct TaskQueue(VecDeque<Box<dyn QueuedTask>>);

impl TaskQueue {
    /// No task is pending.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn push(&mut self, task: Box<dyn QueuedTask>) {
        self.0.push_back(task);
    }

    /// Runs tasks until the portion of the turn is used up; the rest follows in the next turn, for
    /// which the worker is woken.
    #[cold]
    pub(crate) fn advance(&mut self, traffic: &mut Traffic) {
        traffic.engine.core.turn.begin_portion_of(QUERY_UNITS);
        let mut are_left = false;
        for _ in 0..self.0.len() {
            let Some(mut task) = self.0.pop_front() else {
                break;
            };
            if task.is_abandoned() {
                let row = traffic.engine.core.row();
                row.add(Counter::QuestionsGivenUp, 1);
                continue;
            }
            traffic.engine.core.turn.work += 1;
            let status = task.advance(traffic);
            traffic.engine.core.durable.end_unit();
            are_left |= status == TaskStatus::More;
            if status != TaskStatus::Done {
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
