//! One question to the workers: its asker, its answers, and the number of questions under way.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::CursorError;
use super::questions::{Progress, Step, Task, Work};
use crate::clock::Clock;
use crate::control::Control;
use crate::mailbox::Mail;
use crate::node::Node;
use crate::traffic::Traffic;
use thrum_engine::node::metrics::Counter;
use thrum_engine::workers::WorkerId;

/// Questions under way on a node. Each may hold a page of [`ROWS_MAX`](super::ROWS_MAX) rows for
/// each worker: about 0.5 MB, so that all together take some 16 MB of a node with one worker. One
/// more is refused and counted ([`Counter::QuestionsRefused`]).
pub(crate) const QUESTIONS_MAX: usize = 32;
/// A question is given up after this time, unless the asker sets another one: a page of a million
/// sessions takes some tenths of a second.
pub(super) const QUESTION_TIME: Duration = Duration::from_secs(10);

/// An asker that waits looks this often whether its question is cancelled.
const CANCEL_INTERVAL: Duration = Duration::from_millis(100);

/// The worker that does the work of one worker.
pub(super) const FIRST_WORKER: WorkerId = WorkerId::new(0);

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// Too many questions are under way.
    #[error(
        "{} questions are under way already; ask again when one of them is answered",
        QUESTIONS_MAX
    )]
    Busy,
    /// Some workers did not answer in time.
    #[error("no answer from {} within {seconds} s: the broker is overloaded; ask again later", .workers.join(", "))]
    TimedOut {
        /// Their names.
        workers: Vec<String>,
        /// The time that they had.
        seconds: u64,
    },
    /// The asker has cancelled the question.
    #[error("the question was cancelled")]
    Cancelled,
    /// The workers have ended, or are about to.
    #[error("the broker is stopping")]
    Stopped,
    /// The cursor is of another listing or order.
    #[error(transparent)]
    Cursor(#[from] CursorError),
    /// The question is refused, for this reason.
    #[error("{0}")]
    Invalid(String),
}

/// Limits the questions under way.
#[derive(Debug, Default)]
pub(crate) struct QuestionLimit {
    under_way: AtomicUsize,
    has_closed: AtomicBool,
}

impl QuestionLimit {
    /// Every question is refused from now on.
    pub(crate) fn close(&self) {
        self.has_closed.store(true, Ordering::SeqCst);
    }

    fn is_closed(&self) -> bool {
        self.has_closed.load(Ordering::SeqCst)
    }

    /// None if too many questions are under way.
    fn admit(self: &Arc<Self>) -> Option<Arc<Permit>> {
        let before = self.under_way.fetch_add(1, Ordering::Relaxed);
        let permit = Arc::new(Permit(Arc::clone(self)));
        (before < QUESTIONS_MAX).then_some(permit)
    }
}

/// One of the questions that may be under way. The asker and all workers hold it until they drop
/// the question, so that questions that were given up count too.
#[derive(Debug)]
struct Permit(Arc<QuestionLimit>);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Cancels the questions of one asker.
#[derive(Clone, Debug, Default)]
pub struct Cancellation(Arc<AtomicBool>);

impl Cancellation {
    /// Cancels every question that waits for answers or is asked from now on.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A question and its answers so far.
#[derive(Debug)]
pub(crate) struct Asking<A> {
    answers: Receiver<(WorkerId, A)>,
    missing: Vec<WorkerId>,
    received: Vec<A>,
    /// The workers give the question up when this is dropped.
    _asker: Arc<()>,
    _permit: Arc<Permit>,
}

impl<A> Asking<A> {
    /// Receives the answers that were sent; true if these are all.
    #[cfg(test)]
    pub(super) fn is_answered(&mut self) -> bool {
        while let Ok((worker, answer)) = self.answers.try_recv() {
            self.take(worker, answer);
        }
        self.missing.is_empty()
    }

    fn take(&mut self, worker: WorkerId, answer: A) {
        self.missing.retain(|missing| *missing != worker);
        self.received.push(answer);
    }

    /// The answers so far, one of each worker.
    #[cfg(test)]
    pub(super) fn take_answers(&mut self) -> Vec<A> {
        std::mem::take(&mut self.received)
    }

    fn wait(mut self, timeout: Duration, cancel: &Cancellation) -> Result<Vec<A>, QueryError> {
        let clock = Clock::start();
        while !self.missing.is_empty() {
            if cancel.is_cancelled() {
                return Err(QueryError::Cancelled);
            }
            let left = timeout.saturating_sub(clock.elapsed());
            match self.answers.recv_timeout(left.min(CANCEL_INTERVAL)) {
                Ok((worker, answer)) => self.take(worker, answer),
                Err(RecvTimeoutError::Disconnected) => return Err(QueryError::Stopped),
                Err(RecvTimeoutError::Timeout) if left > CANCEL_INTERVAL => {}
                Err(RecvTimeoutError::Timeout) => {
                    let names = self.missing.iter();
                    let names = names.map(|worker| format!("worker-{}", worker.index()));
                    return Err(QueryError::TimedOut {
                        workers: names.collect(),
                        seconds: timeout.as_secs(),
                    });
                }
            }
        }
        Ok(self.received)
    }
}

/// The way of one worker's answer to the asker.
struct Reply<A> {
    worker: WorkerId,
    sender: SyncSender<(WorkerId, A)>,
    asker: Weak<()>,
    _permit: Arc<Permit>,
}

/// The work of a worker for a question, and the way of its answer.
struct Asked<W: Work> {
    work: W,
    reply: Reply<W::Answer>,
}

impl<W: Work> fmt::Debug for Asked<W> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.work.fmt(formatter)
    }
}

impl<W: Work> Task for Asked<W> {
    fn is_given_up(&self) -> bool {
        self.reply.asker.strong_count() == 0
    }

    fn step(&mut self, traffic: &mut Traffic) -> Step {
        match self.work.go_on(traffic) {
            Progress::More => Step::More,
            Progress::Waits => Step::Waits,
            Progress::Done(answer) => {
                // The asker may have given up.
                self.reply.sender.try_send((self.reply.worker, answer)).ok();
                Step::Done
            }
        }
    }
}

/// Asks the workers of a node.
#[derive(Clone, Debug)]
pub(super) struct Asker {
    pub(super) control: Arc<Control>,
    /// A question without an answer is given up after this time.
    pub(super) timeout: Duration,
    pub(super) cancel: Cancellation,
}

impl Asker {
    pub(super) fn node(&self) -> &Node {
        self.control.node()
    }

    pub(super) fn workers(&self) -> impl Iterator<Item = WorkerId> {
        WorkerId::all(self.node().workers())
    }

    /// Sends a question to some workers.
    pub(super) fn begin<W: Work + 'static>(
        &self,
        workers: impl Iterator<Item = WorkerId>,
        work: impl Fn() -> W,
    ) -> Result<Asking<W::Answer>, QueryError> {
        if self.cancel.is_cancelled() {
            return Err(QueryError::Cancelled);
        }
        let (limit, node) = (&self.control.question_limit, self.node());
        let Some(permit) = limit.admit() else {
            node.state
                .metrics
                .add_elsewhere(Counter::QuestionsRefused, 1);
            return Err(QueryError::Busy);
        };
        node.state.metrics.add_elsewhere(Counter::QuestionsAsked, 1);
        let missing: Vec<WorkerId> = workers.collect();
        // Room for all, so that no worker waits.
        let (sender, answers) = sync_channel(missing.len());
        let asker = Arc::new(());
        for worker in &missing {
            let reply = Reply {
                worker: *worker,
                sender: sender.clone(),
                asker: Arc::downgrade(&asker),
                _permit: Arc::clone(&permit),
            };
            let work = work();
            let task = Box::new(Asked { work, reply });
            node.mailbox(*worker).push(Mail::Asked(task));
        }
        // If the limit is not closed here, the question is in a mailbox that is emptied when the
        // worker has ended.
        if limit.is_closed() {
            return Err(QueryError::Stopped);
        }
        Ok(Asking {
            answers,
            missing,
            received: Vec::new(),
            _asker: asker,
            _permit: permit,
        })
    }

    /// Asks some workers and waits for the answers.
    fn ask<W: Work + 'static>(
        &self,
        workers: impl Iterator<Item = WorkerId>,
        work: impl Fn() -> W,
    ) -> Result<Vec<W::Answer>, QueryError> {
        self.begin(workers, work)?.wait(self.timeout, &self.cancel)
    }

    /// Asks all workers.
    pub(super) fn ask_all<W: Work + 'static>(
        &self,
        work: impl Fn() -> W,
    ) -> Result<Vec<W::Answer>, QueryError> {
        self.ask(self.workers(), work)
    }

    /// Asks one worker.
    pub(super) fn ask_worker<W: Work + 'static>(
        &self,
        worker: WorkerId,
        work: impl Fn() -> W,
    ) -> Result<W::Answer, QueryError> {
        let answers = self.ask(std::iter::once(worker), work)?;
        answers.into_iter().next().ok_or(QueryError::Stopped)
    }
}
