//! One question on its way: who asks, who has answered, and how many there are.

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
use crate::metrics::Counter;
use crate::node::Node;
use crate::traffic::Traffic;
use crate::workers::WorkerId;

/// Questions under way on a node. Each may hold a page of [`ROWS_MAX`](super::ROWS_MAX) rows for
/// each worker: about 0.5 MB, so that all together take some 16 MB of a node with one worker. Over
/// it a question is refused, and counted ([`Counter::QuestionsRefused`]).
pub(crate) const QUESTIONS_MAX: usize = 32;
/// A question is given up after this, unless whoever asks says otherwise: a listing of a million
/// sessions takes some tenths of a second.
pub(super) const QUESTION_TIME: Duration = Duration::from_secs(10);

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// There are too many questions.
    #[error(
        "{} questions are under way already; ask again when one of them is answered",
        QUESTIONS_MAX
    )]
    Busy,
    /// The workers have too much to do.
    #[error("no answer from {} within {seconds} s: the broker is overloaded; ask again later", .workers.join(", "))]
    TimedOut {
        /// Those that have not answered.
        workers: Vec<String>,
        /// How long they had.
        seconds: u64,
    },
    /// Nobody answers any more.
    #[error("the broker is stopping")]
    Stopped,
    /// The cursor is of another listing.
    #[error(transparent)]
    Cursor(#[from] CursorError),
    /// The question makes no sense, and why.
    #[error("{0}")]
    Invalid(String),
}

/// Counts the questions under way.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    under_way: AtomicUsize,
    has_closed: AtomicBool,
}

impl Desk {
    /// Nobody answers from now on.
    pub(crate) fn close(&self) {
        self.has_closed.store(true, Ordering::SeqCst);
    }

    fn is_closed(&self) -> bool {
        self.has_closed.load(Ordering::SeqCst)
    }

    /// None if there are too many.
    fn admit(self: &Arc<Self>) -> Option<Arc<Permit>> {
        let before = self.under_way.fetch_add(1, Ordering::Relaxed);
        let permit = Arc::new(Permit(Arc::clone(self)));
        (before < QUESTIONS_MAX).then_some(permit)
    }
}

/// One of the questions that may be under way. It lasts until the asker and all workers have let
/// the question go, so that questions that were given up do not pile up.
#[derive(Debug)]
struct Permit(Arc<Desk>);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A question and the answers that have come.
#[derive(Debug)]
pub(crate) struct Asking<A> {
    answers: Receiver<(WorkerId, A)>,
    missing: Vec<WorkerId>,
    come: Vec<A>,
    /// The workers give the question up when it is gone.
    _asker: Arc<()>,
    _permit: Arc<Permit>,
}

impl<A> Asking<A> {
    /// Takes the answers that are there; true if they are all.
    #[cfg(test)]
    pub(super) fn is_answered(&mut self) -> bool {
        while let Ok((worker, answer)) = self.answers.try_recv() {
            self.take(worker, answer);
        }
        self.missing.is_empty()
    }

    fn take(&mut self, worker: WorkerId, answer: A) {
        self.missing.retain(|missing| *missing != worker);
        self.come.push(answer);
    }

    /// The answers that have come, one of each worker that was asked.
    #[cfg(test)]
    pub(super) fn take_answers(&mut self) -> Vec<A> {
        std::mem::take(&mut self.come)
    }

    fn wait(mut self, at_most: Duration) -> Result<Vec<A>, QueryError> {
        let clock = Clock::start();
        while !self.missing.is_empty() {
            let left = at_most.saturating_sub(clock.elapsed());
            match self.answers.recv_timeout(left) {
                Ok((worker, answer)) => self.take(worker, answer),
                Err(RecvTimeoutError::Disconnected) => return Err(QueryError::Stopped),
                Err(RecvTimeoutError::Timeout) => {
                    let names = self.missing.iter();
                    let names = names.map(|worker| format!("worker-{}", worker.index()));
                    return Err(QueryError::TimedOut {
                        workers: names.collect(),
                        seconds: at_most.as_secs(),
                    });
                }
            }
        }
        Ok(self.come)
    }
}

/// Where the answer of one worker goes.
struct Reply<A> {
    worker: WorkerId,
    sender: SyncSender<(WorkerId, A)>,
    asker: Weak<()>,
    _permit: Arc<Permit>,
}

/// What a worker has to do for a question, and where its answer goes.
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
                // Nobody may wait for it any more.
                self.reply.sender.try_send((self.reply.worker, answer)).ok();
                Step::Done
            }
        }
    }
}

/// Whoever asks the workers of a node.
#[derive(Clone, Debug)]
pub(super) struct Asker {
    pub(super) control: Arc<Control>,
    /// How long an answer is waited for.
    pub(super) patience: Duration,
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
        let (desk, node) = (&self.control.desk, self.node());
        let Some(permit) = desk.admit() else {
            node.metrics.add_elsewhere(Counter::QuestionsRefused, 1);
            return Err(QueryError::Busy);
        };
        node.metrics.add_elsewhere(Counter::QuestionsAsked, 1);
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
        // Whoever sees the desk open here has put the question into a mailbox that is emptied when
        // the worker has ended.
        if desk.is_closed() {
            return Err(QueryError::Stopped);
        }
        Ok(Asking {
            answers,
            missing,
            come: Vec::new(),
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
        self.begin(workers, work)?.wait(self.patience)
    }

    /// The same of all workers.
    pub(super) fn ask_all<W: Work + 'static>(
        &self,
        work: impl Fn() -> W,
    ) -> Result<Vec<W::Answer>, QueryError> {
        self.ask(self.workers(), work)
    }

    /// The same of the worker that does what one has to do.
    pub(super) fn ask_one<W: Work + 'static>(
        &self,
        work: impl Fn() -> W,
    ) -> Result<W::Answer, QueryError> {
        let first = std::iter::once(WorkerId::new(0));
        let answers = self.ask(first, work)?;
        answers.into_iter().next().ok_or(QueryError::Stopped)
    }
}
