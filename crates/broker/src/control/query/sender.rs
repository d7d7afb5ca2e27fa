//! Sends a query to the workers and collects their answers; limits the number of pending queries.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::CursorError;
use super::tasks::{QueuedTask, TaskProgress, TaskStatus, WorkerTask};
use crate::clock::{Clock, thread_time};
use crate::control::Control;
use crate::mailbox::Mail;
use crate::node::Node;
use crate::trace::TRACES_MAX;
use crate::traffic::Traffic;
use thrum_engine::node::metrics::Counter;
use thrum_engine::observation::TOPIC_METRICS_MAX;
use thrum_engine::workers::WorkerId;

/// Pending queries on a node. Each may hold a page of [`ROWS_MAX`](super::ROWS_MAX) rows for
/// each worker: about 0.5 MB, so that all together take about 16 MB on a node with one worker. One
/// more is refused and counted ([`Counter::QuestionsRefused`]).
pub(crate) const QUERIES_MAX: usize = 32;
/// A query times out after this time, unless the caller sets another one: a page of a million
/// sessions takes some tenths of a second.
pub(super) const QUERY_TIMEOUT: Duration = Duration::from_secs(10);

/// A waiting caller checks at this interval whether its query was cancelled.
const CANCEL_INTERVAL: Duration = Duration::from_millis(100);

/// The worker that runs the tasks which only one worker has to run.
pub(super) const FIRST_WORKER: WorkerId = WorkerId::new(0);

/// Why a query failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// Too many queries are pending.
    #[error("{} questions are under way already", QUERIES_MAX)]
    Busy,
    /// Some workers did not answer in time.
    #[error("no answer from {} within {seconds} s: the broker is overloaded", .workers.join(", "))]
    TimedOut {
        /// Their names.
        workers: Vec<String>,
        /// The time that they had.
        seconds: u64,
    },
    /// The caller has cancelled the query.
    #[error("the question was cancelled")]
    Cancelled,
    /// The workers have ended, or are about to.
    #[error("the broker is stopping")]
    Stopped,
    /// The cursor belongs to another listing or order.
    #[error(transparent)]
    Cursor(#[from] CursorError),
    /// Too many traces run.
    #[error("{} traces run already", TRACES_MAX)]
    TooManyTraces,
    /// Too many filters are counted.
    #[error("{} filters are counted already", TOPIC_METRICS_MAX)]
    TooManyTopicMetrics,
    /// The change cannot be written down, for this reason, and is not made, or not for long.
    #[error("{0}")]
    NotSaved(String),
    /// A file or another part failed; the text says which, why, and what to do.
    #[error("{0}")]
    Failed(String),
    /// The query is invalid, for this reason.
    #[error("{0}")]
    Invalid(String),
}

/// Limits the pending queries.
#[derive(Debug, Default)]
pub(crate) struct QueryLimit {
    pending: AtomicUsize,
    has_closed: AtomicBool,
}

impl QueryLimit {
    /// Refuses every query from now on.
    pub(crate) fn close(&self) {
        self.has_closed.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.has_closed.load(Ordering::SeqCst)
    }

    /// None if too many queries are pending.
    fn admit(self: &Arc<Self>) -> Option<Arc<Permit>> {
        let before = self.pending.fetch_add(1, Ordering::Relaxed);
        let permit = Arc::new(Permit(Arc::clone(self)));
        (before < QUERIES_MAX).then_some(permit)
    }
}

/// Counts as one pending query. The caller and all workers hold it until they drop the query, so
/// that abandoned queries count too.
#[derive(Debug)]
struct Permit(Arc<QueryLimit>);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.pending.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Cancels the queries of one caller.
#[derive(Clone, Debug, Default)]
pub struct Cancellation(Arc<AtomicBool>);

impl Cancellation {
    /// Cancels every query that waits for answers or is sent from now on.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The time that the workers have worked on the queries of one caller: their time on a core, not
/// what they or the caller waited for.
#[derive(Clone, Debug)]
pub struct WorkerTime {
    nanos: Arc<AtomicU64>,
    workers: u32,
}

impl WorkerTime {
    pub(super) fn of(workers: usize) -> Self {
        Self {
            nanos: Arc::default(),
            workers: u32::try_from(workers).unwrap_or(u32::MAX).max(1),
        }
    }

    /// The time of each worker, on average, since it was taken last.
    #[must_use]
    pub fn take(&self) -> Duration {
        Duration::from_nanos(self.nanos.swap(0, Ordering::Relaxed)) / self.workers
    }

    fn add(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
    }
}

/// A query that was sent, and its answers so far.
#[derive(Debug)]
pub(crate) struct PendingQuery<A> {
    answers: Receiver<(WorkerId, A)>,
    missing: Vec<WorkerId>,
    received: Vec<A>,
    /// Tasks of workers whose turn comes when another one has answered.
    later: VecDeque<(WorkerId, Box<dyn QueuedTask>)>,
    /// A task was sent to a worker that may have ended.
    is_late: bool,
    control: Arc<Control>,
    /// The workers abandon the query when this is dropped.
    _caller: Arc<()>,
    _permit: Arc<Permit>,
}

impl<A> PendingQuery<A> {
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
        self.send_next();
    }

    /// Workers that have their task.
    fn sent(&self) -> usize {
        self.missing.len() - self.later.len()
    }

    /// Sends the task of the next worker.
    fn send_next(&mut self) {
        let Some((worker, task)) = self.later.pop_front() else {
            return;
        };
        self.control.node().mailbox(worker).push(Mail::Query(task));
        // If the limit is not closed here, the task is in a mailbox that is emptied when the
        // worker has ended.
        self.is_late |= self.control.query_limit.is_closed();
    }

    /// The broker stops before all workers have their task.
    fn is_cut_short(&self) -> bool {
        self.is_late || !self.later.is_empty() && self.control.query_limit.is_closed()
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
            if self.is_cut_short() {
                return Err(QueryError::Stopped);
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

/// Sends one worker's answer to the caller.
struct ReplySender<A> {
    worker: WorkerId,
    sender: SyncSender<(WorkerId, A)>,
    caller: Weak<()>,
    _permit: Arc<Permit>,
}

/// The task of one worker for a query, and the sender of its answer.
struct TaskWithReply<W: WorkerTask> {
    task: W,
    reply: ReplySender<W::Answer>,
    /// Where its time is added, if somebody wants to know it.
    worked: Option<WorkerTime>,
}

impl<W: WorkerTask> fmt::Debug for TaskWithReply<W> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.task.fmt(formatter)
    }
}

impl<W: WorkerTask> QueuedTask for TaskWithReply<W> {
    fn is_abandoned(&self) -> bool {
        self.reply.caller.strong_count() == 0
    }

    fn advance(&mut self, traffic: &mut Traffic) -> TaskStatus {
        let began = self.worked.as_ref().map(|_| thread_time());
        let progress = self.task.advance(traffic);
        if let (Some(worked), Some(began)) = (&self.worked, began) {
            // Before the answer, whose receiver asks for it.
            worked.add(thread_time().saturating_sub(began));
        }
        match progress {
            TaskProgress::More => TaskStatus::More,
            TaskProgress::Blocked => TaskStatus::Blocked,
            TaskProgress::Done(answer) => {
                // The caller may have stopped waiting.
                self.reply.sender.try_send((self.reply.worker, answer)).ok();
                TaskStatus::Done
            }
        }
    }
}

/// Sends queries to the workers of a node.
#[derive(Clone, Debug)]
pub(in crate::control) struct QuerySender {
    pub(in crate::control) control: Arc<Control>,
    /// A query without an answer fails after this time.
    pub(super) timeout: Duration,
    pub(super) cancel: Cancellation,
    /// Where the time of the workers is added.
    pub(super) worked: Option<WorkerTime>,
}

impl QuerySender {
    pub(in crate::control) fn node(&self) -> &Node {
        self.control.node()
    }

    /// The same for a change that is made although its caller goes away.
    pub(super) fn uncancelled(&self) -> Self {
        Self {
            cancel: Cancellation::default(),
            ..self.clone()
        }
    }

    pub(super) fn workers(&self) -> impl Iterator<Item = WorkerId> {
        WorkerId::all(self.node().workers())
    }

    /// Sends a query to some workers.
    pub(super) fn send<W: WorkerTask + 'static>(
        &self,
        workers: impl Iterator<Item = WorkerId>,
        task: impl Fn() -> W,
    ) -> Result<PendingQuery<W::Answer>, QueryError> {
        self.send_in_turns(workers, usize::MAX, task)
    }

    /// Sends a query that walks through everything that the workers have: half of them, at least
    /// one, walk at once, so that the others have cores for what clients send.
    pub(super) fn send_walk<W: WorkerTask + 'static>(
        &self,
        task: impl Fn() -> W,
    ) -> Result<PendingQuery<W::Answer>, QueryError> {
        let at_once = (self.node().workers() / 2).max(1);
        self.send_in_turns(self.workers(), at_once, task)
    }

    /// Sends a query to some workers, so many of them at once; the others follow as these answer.
    fn send_in_turns<W: WorkerTask + 'static>(
        &self,
        workers: impl Iterator<Item = WorkerId>,
        at_once: usize,
        task: impl Fn() -> W,
    ) -> Result<PendingQuery<W::Answer>, QueryError> {
        if self.cancel.is_cancelled() {
            return Err(QueryError::Cancelled);
        }
        let (limit, node) = (&self.control.query_limit, self.node());
        let Some(permit) = limit.admit() else {
            node.state
                .metrics
                .add_elsewhere(Counter::QuestionsRefused, 1);
            return Err(QueryError::Busy);
        };
        node.state.metrics.add_elsewhere(Counter::QuestionsAsked, 1);
        let missing: Vec<WorkerId> = workers.collect();
        // The channel has room for all answers, so that no worker waits.
        let (sender, answers) = sync_channel(missing.len());
        let caller = Arc::new(());
        let with_reply = |worker: &WorkerId| {
            let reply = ReplySender {
                worker: *worker,
                sender: sender.clone(),
                caller: Arc::downgrade(&caller),
                _permit: Arc::clone(&permit),
            };
            let task: Box<dyn QueuedTask> = Box::new(TaskWithReply {
                task: task(),
                reply,
                worked: self.worked.clone(),
            });
            (*worker, task)
        };
        let later = missing.iter().map(with_reply).collect();
        let mut pending = PendingQuery {
            answers,
            missing,
            received: Vec::new(),
            later,
            is_late: false,
            control: Arc::clone(&self.control),
            _caller: caller,
            _permit: permit,
        };
        while !pending.later.is_empty() && pending.sent() < at_once {
            pending.send_next();
        }
        if pending.is_cut_short() {
            return Err(QueryError::Stopped);
        }
        Ok(pending)
    }

    /// Sends a query to some workers and waits for the answers.
    fn query<W: WorkerTask + 'static>(
        &self,
        workers: impl Iterator<Item = WorkerId>,
        task: impl Fn() -> W,
    ) -> Result<Vec<W::Answer>, QueryError> {
        self.send(workers, task)?.wait(self.timeout, &self.cancel)
    }

    /// Sends a query to all workers and waits for the answers.
    pub(super) fn query_all<W: WorkerTask + 'static>(
        &self,
        task: impl Fn() -> W,
    ) -> Result<Vec<W::Answer>, QueryError> {
        self.query(self.workers(), task)
    }

    /// Sends a query that walks through everything to all workers, and waits for the answers.
    pub(super) fn walk_all<W: WorkerTask + 'static>(
        &self,
        task: impl Fn() -> W,
    ) -> Result<Vec<W::Answer>, QueryError> {
        self.send_walk(task)?.wait(self.timeout, &self.cancel)
    }

    /// Sends a query to one worker and waits for the answer.
    pub(super) fn query_worker<W: WorkerTask + 'static>(
        &self,
        worker: WorkerId,
        task: impl Fn() -> W,
    ) -> Result<W::Answer, QueryError> {
        let answers = self.query(std::iter::once(worker), task)?;
        answers.into_iter().next().ok_or(QueryError::Stopped)
    }
}
