//! From the socket to the stream.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use quinn::{SendStream, StoppedError, VarInt, WriteError};
use tokio::io::{AsyncRead as _, ReadBuf};
use tokio::net::UnixStream;

use super::{Ending, READS_PER_TURN, SCRATCH};

/// Completes when everything is acknowledged, or the peer has stopped the stream.
type Stopped = Pin<Box<dyn Future<Output = Result<Option<VarInt>, StoppedError>> + Send>>;

/// The bytes of the socket's owner.
pub(super) struct Outbound {
    stream: SendStream,
    /// Read from the socket, and not taken by QUIC yet.
    kept: Vec<u8>,
    /// Number of these bytes that QUIC has taken.
    taken: usize,
    /// Bytes that QUIC has taken in all.
    sent: u64,
    state: State,
}

enum State {
    Open,
    /// The socket's owner has closed it while QUIC accepted no more; the rest is still tried.
    Abandoned,
    /// The socket's owner has stopped writing.
    Finishing(Stopped),
    /// The peer has everything.
    Acknowledged,
}

impl Outbound {
    pub(super) const fn new(stream: SendStream) -> Self {
        Self {
            stream,
            kept: Vec::new(),
            taken: 0,
            sent: 0,
            state: State::Open,
        }
    }

    /// The peer has every byte that was ever written, and the end.
    pub(super) const fn is_acknowledged(&self) -> bool {
        matches!(self.state, State::Acknowledged)
    }

    /// No more bytes arrive from the socket's owner.
    pub(super) const fn is_finishing(&self) -> bool {
        matches!(self.state, State::Abandoned | State::Finishing(_))
    }

    /// Bytes that QUIC has taken in all, if it accepts no more now.
    pub(super) fn stalled(&self) -> Option<u64> {
        (!self.kept.is_empty()).then_some(self.sent)
    }

    /// The socket's owner has closed it.
    pub(super) fn abandon(&mut self) {
        if matches!(self.state, State::Open) {
            self.state = State::Abandoned;
        }
    }

    /// Moves the available bytes; ready when the connection cannot continue.
    pub(super) fn poll(
        &mut self,
        context: &mut Context<'_>,
        socket: &mut UnixStream,
    ) -> Poll<Ending> {
        for _ in 0..READS_PER_TURN {
            if let State::Finishing(stopped) = &mut self.state {
                let stopped = ready!(stopped.as_mut().poll(context));
                return self.finished(stopped);
            }
            if self.is_acknowledged() {
                return Poll::Pending;
            }
            if let Err(ending) = ready!(self.poll_kept(context)) {
                return Poll::Ready(ending);
            }
            if let Err(ending) = ready!(self.poll_read(context, socket)) {
                return Poll::Ready(ending);
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Hands over the kept bytes.
    fn poll_kept(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Ending>> {
        while self.taken < self.kept.len() {
            let written = Pin::new(&mut self.stream).poll_write(context, &self.kept[self.taken..]);
            match ready!(written) {
                Ok(written) => {
                    self.taken += written;
                    self.sent += length(written);
                }
                Err(error) => return Poll::Ready(Err(ending(error))),
            }
        }
        if !self.kept.is_empty() {
            // Most connections never need it again.
            self.kept = Vec::new();
            self.taken = 0;
        }
        Poll::Ready(Ok(()))
    }

    /// One read, handed over as far as QUIC accepts it.
    fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        socket: &mut UnixStream,
    ) -> Poll<Result<(), Ending>> {
        SCRATCH.with_borrow_mut(|scratch| {
            let mut buffer = ReadBuf::new(scratch);
            // A socket that fails has ended as well.
            let failed = ready!(Pin::new(socket).poll_read(context, &mut buffer)).is_err();
            let bytes = buffer.filled();
            if failed || bytes.is_empty() {
                // A stream that the peer has stopped is as good as finished.
                self.stream.finish().ok();
                self.state = State::Finishing(Box::pin(self.stream.stopped()));
                return Poll::Ready(Ok(()));
            }
            let mut rest = bytes;
            while !rest.is_empty() {
                match Pin::new(&mut self.stream).poll_write(context, rest) {
                    Poll::Ready(Ok(written)) => rest = &rest[written..],
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(ending(error))),
                    Poll::Pending => break,
                }
            }
            self.kept.extend_from_slice(rest);
            self.sent += length(bytes.len() - rest.len());
            Poll::Ready(Ok(()))
        })
    }

    fn finished(&mut self, stopped: Result<Option<VarInt>, StoppedError>) -> Poll<Ending> {
        match stopped {
            Ok(None) => {
                self.state = State::Acknowledged;
                Poll::Pending
            }
            Ok(Some(code)) => Poll::Ready(Ending::GivenUp(code)),
            Err(StoppedError::ConnectionLost(error)) => Poll::Ready(Ending::Lost(error)),
            Err(StoppedError::ZeroRttRejected) => Poll::Ready(Ending::Done),
        }
    }
}

fn length(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

fn ending(error: WriteError) -> Ending {
    match error {
        WriteError::ConnectionLost(error) => Ending::Lost(error),
        WriteError::Stopped(code) => Ending::GivenUp(code),
        // Nothing is written after the end, and there is no early data.
        WriteError::ClosedStream | WriteError::ZeroRttRejected => Ending::Done,
    }
}
