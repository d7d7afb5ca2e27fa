//! The pending tasks of one worker: each turn runs a portion of each.

use std::collections::VecDeque;
use std::fmt;

use crate::traffic::Traffic;
use thrum_engine::node::metrics::Counter;

/// Least units of all query tasks in a turn: 20 to 40 µs, which is the latency that queries add for
/// clients. A page of a million sessions takes about 8000 turns, each of which costs the worker a
/// microsecond or two more.
pub(crate) const QUERY_UNITS: u64 = 128;

/// Most units of all query tasks in a turn, about 0.3 ms.
const QUERY_UNITS_MAX: u64 = 2048;

/// The part of the other work of a worker that its queries get on top: the turns of a busy worker
/// are long and few, and the least portion of each would be next to nothing.
const QUERY_SHARE: u64 = 8;

/// Units for queries in the turn that ends after this much other work since the last portion.
fn portion_after(work: u64) -> u64 {
    (work / QUERY_SHARE).clamp(QUERY_UNITS, QUERY_UNITS_MAX)
}

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
pub(crate) struct TaskQueue {
    tasks: VecDeque<Box<dyn QueuedTask>>,
    /// A task continues in the next turn, which begins at once.
    are_due: bool,
    /// All work of the worker at the end of the last portion, while tasks are pending.
    work_before: Option<u64>,
}

impl TaskQueue {
    /// No task is pending.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// A task waits for its next portion, not for an event.
    #[inline]
    pub(crate) fn are_due(&self) -> bool {
        self.are_due
    }

    pub(crate) fn push(&mut self, task: Box<dyn QueuedTask>) {
        self.tasks.push_back(task);
    }

    /// Units for queries in this turn, at this much work of the worker.
    fn portion(&self, work: u64) -> u64 {
        portion_after(work - self.work_before.unwrap_or(work))
    }

    /// Runs tasks until the portion of the turn is used up; the rest follows in the next turn.
    #[cold]
    pub(crate) fn advance(&mut self, traffic: &mut Traffic) {
        let work = traffic.engine.core.turn.work;
        let portion = self.portion(work);
        traffic.engine.core.turn.begin_portion_of(portion);
        let mut are_left = false;
        for _ in 0..self.tasks.len() {
            let Some(mut task) = self.tasks.pop_front() else {
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
                self.tasks.push_back(task);
            }
            if traffic.engine.core.turn.is_portion_over() {
                are_left |= !self.tasks.is_empty();
                break;
            }
        }
        let is_empty = self.tasks.is_empty();
        self.work_before = (!is_empty).then_some(traffic.engine.core.turn.work);
        self.are_due = are_left;
        if !are_left {
            self.tasks.shrink_to_fit();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_have_a_share_of_the_turns_of_a_busy_worker() {
        assert_eq!(portion_after(0), 128);
        assert_eq!(portion_after(8 * 128), 128);
        assert_eq!(portion_after(8 * 1000), 1000);
        assert_eq!(portion_after(1 << 20), 2048);
    }

    #[test]
    fn the_share_is_one_of_the_work_since_the_last_portion() {
        let mut queue = TaskQueue::default();
        assert_eq!(
            queue.portion(8 * 1500),
            QUERY_UNITS,
            "nothing was pending meanwhile"
        );
        queue.work_before = Some(1_000_000);
        assert_eq!(queue.portion(1_000_000 + 8 * 1500), 1500);
    }
}
