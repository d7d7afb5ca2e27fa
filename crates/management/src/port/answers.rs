//! How far the peer of a connection of HTTP/2 takes its answers. It says with its windows how much
//! it takes, and bytes that it does not take never reach the socket: there nobody would notice.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use futures_util::future::{AbortHandle, Abortable};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use hyper::rt::Executor;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// Longest time in which a peer takes nothing of one of its answers, whatever it says to pings.
const STALLED_TIME: Duration = Duration::from_secs(30);
/// A connection without a request is closed after this time.
const IDLE_TIME: Duration = Duration::from_secs(30);
/// Time without a request, once it is said that the connection closes.
const CLOSE_TIME: Duration = Duration::from_secs(10);
/// Bytes of an answer that are passed on at a time: a peer that takes fewer in [`STALLED_TIME`]
/// takes nothing.
const PIECE_BYTES: usize = 4 * 1024;

tokio::task_local! {
    /// What ends the stream that a task answers.
    static STREAM: AbortHandle;
}

/// Runs each stream of HTTP/2 in a task that can be ended alone: a stream that ends before its
/// answer is reset.
#[derive(Clone, Copy, Debug)]
pub(super) struct StreamTasks;

impl<F> Executor<F> for StreamTasks
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        let (end, registration) = AbortHandle::new_pair();
        let stream = STREAM.scope(end, Abortable::new(stream, registration));
        tokio::spawn(async move {
            if stream.await.is_err() {
                tracing::debug!("an answer at the HTTP port ends: its reader does not take it");
            }
        });
    }
}

/// The requests of a connection that are under way, and when it had the last one.
#[derive(Clone, Debug, Default)]
pub(super) struct Answers(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// Guards it against the other tasks of the connection, for a moment.
    state: Mutex<State>,
    /// The first request has come.
    first: Notify,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    under_way: BTreeMap<u64, Stream>,
    idle_since: Option<Instant>,
}

#[derive(Debug)]
struct Stream {
    /// The time since which it waits for the peer to take what it was given; none if it does not.
    waits_since: Option<Instant>,
    /// Ends it without the others; none if they end with it.
    end: Option<AbortHandle>,
}

/// Why a connection is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// Nothing was asked for too long.
    Idle,
    /// Nothing of an answer was taken for too long.
    Stalled,
}

/// A request that is under way until this is dropped.
#[derive(Debug)]
pub(super) struct UnderWay {
    answers: Answers,
    number: u64,
}

impl Answers {
    /// A request has come from the other end, and is answered in the task of its stream. A proxy
    /// sends requests of several people: an answer of which nothing is taken ends alone.
    pub(super) fn begin(&self, end: IpAddr, is_proxy: impl FnOnce(IpAddr) -> bool) -> UnderWay {
        let end = if is_proxy(end) {
            STREAM.try_with(Clone::clone).ok()
        } else {
            None
        };
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        let stream = Stream {
            waits_since: None,
            end,
        };
        state.under_way.insert(number, stream);
        state.idle_since = None;
        self.0.first.notify_one();
        UnderWay {
            answers: self.clone(),
            number,
        }
    }

    /// Waits until the connection has to end; without a request for ever.
    pub(super) async fn until_over(&self) -> Ending {
        self.0.first.notified().await;
        self.until_over_after(IDLE_TIME).await
    }

    /// Waits until nobody waits for more of a connection that says that it closes: a request may
    /// have come at the same time, and is answered.
    pub(super) async fn until_left(&self) -> Ending {
        self.lock().idle_from(Instant::now());
        self.until_over_after(CLOSE_TIME).await
    }

    async fn until_over_after(&self, idle_time: Duration) -> Ending {
        loop {
            let looked = self.lock().look(Instant::now(), idle_time);
            match looked {
                Ok(next) => sleep_until(next).await,
                Err(ending) => return ending,
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn idle_from(&mut self, now: Instant) {
        if self.under_way.is_empty() {
            self.idle_since = Some(now);
        }
    }

    /// When to look again. It ends the streams that are stalled and end alone.
    fn look(&mut self, now: Instant, idle_time: Duration) -> Result<Instant, Ending> {
        for stream in self.under_way.values_mut() {
            stream.end_if_stalled(now);
        }
        let waits = self.under_way.values();
        let waits = waits.filter_map(|stream| stream.waits_since).min();
        let stalled = waits.map(|since| (since + STALLED_TIME, Ending::Stalled));
        let idle = self
            .idle_since
            .map(|since| (since + idle_time, Ending::Idle));
        match stalled.or(idle) {
            Some((due, ending)) if due <= now => Err(ending),
            Some((due, _)) => Ok(due),
            // What begins to wait now is not over before.
            None => Ok(now + STALLED_TIME.min(idle_time)),
        }
    }
}

impl Stream {
    fn end_if_stalled(&mut self, now: Instant) {
        let is_stalled = |since: Instant| since + STALLED_TIME <= now;
        if self.waits_since.is_some_and(is_stalled)
            && let Some(end) = self.end.take()
        {
            end.abort();
            self.waits_since = None;
        }
    }
}

impl UnderWay {
    /// It goes on until its answer was taken.
    pub(super) fn answered(self, response: Response) -> Response {
        response.map(|body| {
            Body::new(Taken {
                body,
                rest: Bytes::new(),
                under_way: self,
            })
        })
    }

    fn waits_since(&self, since: Option<Instant>) {
        if let Some(stream) = self.answers.lock().under_way.get_mut(&self.number) {
            stream.waits_since = since;
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut state = self.answers.lock();
        state.under_way.remove(&self.number);
        state.idle_from(Instant::now());
    }
}

/// The body of an answer. HTTP/2 asks for the next piece when the peer has taken the one before.
struct Taken {
    body: Body,
    /// What is left of its last part.
    rest: Bytes,
    under_way: UnderWay,
}

impl HttpBody for Taken {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        this.under_way.waits_since(None);
        if this.rest.is_empty() {
            let frame = match ready!(Pin::new(&mut this.body).poll_frame(context)) {
                Some(Ok(frame)) => frame,
                end => return Poll::Ready(end),
            };
            match frame.into_data() {
                Ok(data) if data.is_empty() => return Poll::Ready(Some(Ok(Frame::data(data)))),
                Ok(data) => this.rest = data,
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            }
        }
        // The last byte goes alone: it is asked for when the peer has taken all before it.
        let before_last = this.rest.len() - 1;
        let len = before_last.clamp(1, PIECE_BYTES);
        let piece = this.rest.split_to(len);
        this.under_way.waits_since(Some(Instant::now()));
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = self.body.size_hint();
        let rest = self.rest.len() as u64;
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint.set_lower(hint.lower().saturating_add(rest));
        hint
    }
}
