//! How far the peer of a connection of HTTP/2 takes its answers. It says with its windows how much
//! it takes, and bytes that it does not take never reach the socket: there nobody would notice.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// Longest time in which a peer takes nothing of one of its answers, whatever it says to pings.
const STALLED_TIME: Duration = Duration::from_secs(30);
/// A connection without a request is closed after this time.
const IDLE_TIME: Duration = Duration::from_secs(30);
/// Bytes of an answer that are passed on at a time: a peer that takes fewer in [`STALLED_TIME`]
/// takes nothing.
const PIECE_BYTES: usize = 4 * 1024;

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
    /// The time since which each waits for the peer to take what it was given; none if it does not.
    under_way: BTreeMap<u64, Option<Instant>>,
    idle_since: Option<Instant>,
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
    /// A request has come.
    pub(super) fn begin(&self) -> UnderWay {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        state.under_way.insert(number, None);
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
        loop {
            let looked = self.lock().look(Instant::now());
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
    /// When to look again.
    fn look(&self, now: Instant) -> Result<Instant, Ending> {
        let waits = self.under_way.values().flatten().min();
        let stalled = waits.map(|since| (*since + STALLED_TIME, Ending::Stalled));
        let idle = self
            .idle_since
            .map(|since| (since + IDLE_TIME, Ending::Idle));
        match stalled.or(idle) {
            Some((due, ending)) if due <= now => Err(ending),
            Some((due, _)) => Ok(due),
            // What begins to wait now is not over before.
            None => Ok(now + STALLED_TIME.min(IDLE_TIME)),
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
        self.answers.lock().under_way.insert(self.number, since);
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut state = self.answers.lock();
        state.under_way.remove(&self.number);
        if state.under_way.is_empty() {
            state.idle_since = Some(Instant::now());
        }
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
