//! From the stream to the socket.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use quinn::{ReadError, RecvStream};
use tokio::io::AsyncWrite as _;
use tokio::net::UnixStream;

use super::{CODE_DONE, Ending, READS_PER_TURN, SCRATCH};

/// The bytes of the peer.
pub(super) struct Inbound {
    stream: RecvStream,
    /// Read from the stream, and not taken by the socket yet.
    kept: Vec<u8>,
    /// Number of these bytes that the socket has taken.
    taken: usize,
    /// The stream had no bytes when it was last polled.
    is_empty: bool,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// The peer has finished, and the socket's output is shut down.
    Ended,
    /// The socket's owner accepts no more.
    Unwanted,
}

impl Inbound {
    pub(super) const fn new(stream: RecvStream) -> Self {
        Self {
            stream,
            kept: Vec::new(),
            taken: 0,
            is_empty: false,
            state: State::Open,
        }
    }

    /// No more bytes arrive, or the socket accepts none.
    pub(super) fn is_ended(&self) -> bool {
        self.state != State::Open
    }

    /// All received bytes have been written.
    pub(super) fn has_nothing(&self) -> bool {
        self.is_ended() || (self.is_empty && self.kept.is_empty())
    }

    /// Moves the available bytes; ready when the connection cannot continue.
    pub(super) fn poll(
        &mut self,
        context: &mut Context<'_>,
        socket: &mut UnixStream,
    ) -> Poll<Ending> {
        if self.state == State::Unwanted {
            return Poll::Pending;
        }
        for _ in 0..READS_PER_TURN {
            if !ready!(self.poll_kept(context, socket)) {
                return Poll::Pending;
            }
            match ready!(self.poll_read(context, socket)) {
                Ok(true) => {}
                Ok(false) => return Poll::Pending,
                Err(ending) => return Poll::Ready(ending),
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Writes the kept bytes; false if the socket accepts no more, ever.
    fn poll_kept(&mut self, context: &mut Context<'_>, socket: &mut UnixStream) -> Poll<bool> {
        while self.taken < self.kept.len() {
            let written = Pin::new(&mut *socket).poll_write(context, &self.kept[self.taken..]);
            match ready!(written) {
                Ok(written) => self.taken += written,
                Err(_) => return Poll::Ready(self.refuse()),
            }
        }
        if !self.kept.is_empty() {
            // Most connections never need it again.
            self.kept = Vec::new();
            self.taken = 0;
        }
        Poll::Ready(true)
    }

    /// One read, written as far as the socket takes it; false at the end.
    fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        socket: &mut UnixStream,
    ) -> Poll<Result<bool, Ending>> {
        if self.state == State::Ended {
            // The stream is not polled again, so the end of the connection is seen elsewhere.
            return Poll::Pending;
        }
        SCRATCH.with_borrow_mut(|scratch| {
            let read = self.stream.poll_read(context, scratch);
            self.is_empty = read.is_pending();
            let read = match ready!(read) {
                Ok(0) => return Poll::Ready(Ok(self.end(context, socket))),
                Ok(read) => read,
                Err(error) => return Poll::Ready(Err(ending(error))),
            };
            let mut rest = &scratch[..read];
            while !rest.is_empty() {
                match Pin::new(&mut *socket).poll_write(context, rest) {
                    Poll::Ready(Ok(written)) => rest = &rest[written..],
                    Poll::Ready(Err(_)) => return Poll::Ready(Ok(self.refuse())),
                    Poll::Pending => break,
                }
            }
            self.kept.extend_from_slice(rest);
            Poll::Ready(Ok(true))
        })
    }

    /// The peer has finished.
    fn end(&mut self, context: &mut Context<'_>, socket: &mut UnixStream) -> bool {
        self.state = State::Ended;
        // It only ever fails for a socket whose owner has closed it, and a shutdown does not block.
        let _gone = Pin::new(socket).poll_shutdown(context);
        false
    }

    /// The socket's owner has closed it.
    fn refuse(&mut self) -> bool {
        self.state = State::Unwanted;
        self.kept = Vec::new();
        self.taken = 0;
        // A stream that is closed already needs no stop.
        self.stream.stop(CODE_DONE).ok();
        false
    }
}

fn ending(error: ReadError) -> Ending {
    match error {
        ReadError::ConnectionLost(error) => Ending::Lost(error),
        ReadError::Reset(code) => Ending::GivenUp(code),
        // Not with reads in order, on a stream of our own that is open, without early data.
        ReadError::ClosedStream | ReadError::IllegalOrderedRead | ReadError::ZeroRttRejected => {
            Ending::Done
        }
    }
}
