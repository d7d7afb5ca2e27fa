//! Connections to another system, kept between requests.

use std::fmt;
use std::future::Future;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::BackendError;
use super::gate::Gate;

/// Longest time to connect: a second chance fits into the time limit of a request.
pub(crate) const CONNECT_TIME_MAX: Duration = Duration::from_secs(2);

/// How a connection is made.
pub(crate) trait Connect: Send + Sync {
    /// A connection, ready for requests.
    type Line: Send;

    /// Connects; the pool bounds the time.
    fn connect(&self) -> impl Future<Output = Result<Self::Line, BackendError>> + Send;
}

/// A request over a connection. It may be sent a second time if the first connection turns out to
/// be dead.
pub(crate) trait Request<L>: Sync {
    /// The result.
    type Answer: Send;

    /// Sends it. [`BackendError::Unreachable`] means that the connection is of no more use.
    fn ask(&self, line: &mut L) -> impl Future<Output = Result<Self::Answer, BackendError>> + Send;
}

/// Limits of a pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolLimits {
    /// Connections.
    pub(crate) connections: usize,
    /// Requests at a time, those that wait for a connection included.
    pub(crate) requests: usize,
    /// Time for one request, waiting and connecting included.
    pub(crate) time: Duration,
}

/// Connections that are made on demand and kept afterwards.
pub(crate) struct Pool<C: Connect> {
    connector: C,
    gate: Gate,
    lines: Semaphore,
    /// Guards the idle connections; held for some instructions, never across an `await`.
    idle: Mutex<Vec<C::Line>>,
}

impl<C: Connect> fmt::Debug for Pool<C> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Pool")
            .field("gate", &self.gate)
            .finish_non_exhaustive()
    }
}

impl<C: Connect> Pool<C> {
    /// Opens no connection yet.
    pub(crate) fn new(connector: C, limits: PoolLimits) -> Self {
        Self {
            connector,
            gate: Gate::new(limits.requests, limits.time),
            lines: Semaphore::new(limits.connections),
            idle: Mutex::default(),
        }
    }

    /// Sends the request over an idle connection, or a new one.
    ///
    /// # Errors
    /// Those of the request, of connecting, and of [`Gate::pass`].
    pub(crate) async fn ask<R: Request<C::Line>>(
        &self,
        request: &R,
    ) -> Result<R::Answer, BackendError> {
        let result = self.gate.pass(self.ask_in_turn(request)).await;
        if let Err(BackendError::TimedOut | BackendError::Panicked(_)) = result {
            // The other side may be gone or replaced: all connections are discarded.
            self.forget_idle();
        }
        result
    }

    async fn ask_in_turn<R: Request<C::Line>>(
        &self,
        request: &R,
    ) -> Result<R::Answer, BackendError> {
        let Ok(_turn) = self.lines.acquire().await else {
            return Err(BackendError::Overloaded);
        };
        if let Some(line) = self.take_idle() {
            match self.ask_over(line, request).await {
                Err(BackendError::Unreachable(_)) => self.forget_idle(),
                answer => return answer,
            }
        }
        let line = self.connect().await?;
        self.ask_over(line, request).await
    }

    /// The connection is kept unless it broke. If no caller waits for the answer any more, it is
    /// closed.
    async fn ask_over<R: Request<C::Line>>(
        &self,
        mut line: C::Line,
        request: &R,
    ) -> Result<R::Answer, BackendError> {
        let answer = request.ask(&mut line).await;
        if !matches!(answer, Err(BackendError::Unreachable(_))) {
            self.with_idle(|idle| idle.push(line));
        }
        answer
    }

    async fn connect(&self) -> Result<C::Line, BackendError> {
        timeout(CONNECT_TIME_MAX, self.connector.connect())
            .await
            .unwrap_or_else(|_| {
                let seconds = CONNECT_TIME_MAX.as_secs();
                Err(BackendError::Unreachable(format!(
                    "no connection within {seconds} s"
                )))
            })
    }

    fn take_idle(&self) -> Option<C::Line> {
        self.with_idle(Vec::pop)
    }

    fn forget_idle(&self) {
        let lines = self.with_idle(std::mem::take);
        drop(lines);
    }

    fn with_idle<T>(&self, action: impl FnOnce(&mut Vec<C::Line>) -> T) -> T {
        action(&mut self.idle.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
