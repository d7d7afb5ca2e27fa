//! A stream whose peer has to go on: it is cut off if its first request is not there in time, or if
//! it does not take its answer.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// Time for the head of the first request.
const FIRST_TIME: Duration = Duration::from_secs(30);
/// Longest time in which a peer takes nothing of what it asked for.
const STALLED_TIME: Duration = Duration::from_secs(30);

/// How far a connection is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress(Arc<AtomicU8>);

const NO_REQUEST: u8 = 0;
const ASKED: u8 = 1;
const UPGRADED: u8 = 2;

impl Progress {
    /// That of a connection whose heads are read in a limited time by somebody else.
    pub(crate) fn after_head() -> Self {
        let progress = Self::default();
        progress.note_request();
        progress
    }

    /// A request has come.
    pub(crate) fn note_request(&self) {
        self.0.fetch_max(ASKED, Ordering::Relaxed);
    }

    /// It is a WebSocket from now on: the broker has limits of its own for clients that do not
    /// read.
    pub(crate) fn note_upgrade(&self) {
        self.0.fetch_max(UPGRADED, Ordering::Relaxed);
    }

    fn is(&self, stage: u8) -> bool {
        self.0.load(Ordering::Relaxed) == stage
    }
}

/// A stream that fails when its peer does not go on.
pub(crate) struct Stalled<S> {
    stream: S,
    progress: Progress,
    /// Runs until the first request is there.
    first: Option<Pin<Box<Sleep>>>,
    /// Runs while the peer takes nothing.
    timer: Option<Pin<Box<Sleep>>>,
}

impl<S> Stalled<S> {
    pub(crate) fn new(stream: S, progress: Progress) -> Self {
        Self {
            stream,
            progress,
            first: Some(Box::pin(sleep(FIRST_TIME))),
            timer: None,
        }
    }

    /// The result of a write, or an error when nothing was taken for too long.
    fn in_time<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() || self.progress.is(UPGRADED) {
            self.timer = None;
            return written;
        }
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(sleep(STALLED_TIME)));
        ready!(timer.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "the peer does not read its answer",
        )))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Stalled<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.progress.is(NO_REQUEST) {
            self.first = None;
        }
        // However slowly bytes come.
        if let Some(first) = &mut self.first
            && first.as_mut().poll(context).is_ready()
        {
            return Poll::Ready(Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the first request is not there",
            )));
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Stalled<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.in_time(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.in_time(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = Pin::new(&mut self.stream).poll_shutdown(context);
        self.in_time(context, ended)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.in_time(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
    use tokio::time::{Instant, timeout};

    use super::*;

    const LONG: Duration = Duration::from_hours(1);

    /// Takes ten bytes each 20 s, nine times.
    async fn read_slowly(mut far: DuplexStream) -> DuplexStream {
        for _ in 0..9 {
            sleep(Duration::from_secs(20)).await;
            far.read_exact(&mut [0; 10]).await.unwrap();
        }
        far
    }

    /// A byte now and then, for as long as somebody reads.
    async fn trickle(far: &mut DuplexStream) {
        while far.write_all(b"P").await.is_ok() {
            sleep(Duration::from_secs(9)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_does_not_read_is_cut_off_and_one_that_reads_slowly_is_not() {
        let (near, far) = tokio::io::duplex(10);
        let mut near = Stalled::new(near, Progress::default());
        let start = Instant::now();
        let (written, far) = tokio::join!(near.write_all(&[0; 100]), read_slowly(far));
        assert!(written.is_ok() && start.elapsed() > Duration::from_secs(150));
        let error = near.write_all(&[0; 100]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(far);
    }

    #[tokio::test(start_paused = true)]
    async fn a_websocket_whose_peer_does_not_read_is_the_brokers() {
        let (near, _far) = tokio::io::duplex(10);
        let progress = Progress::default();
        let mut near = Stalled::new(near, progress.clone());
        progress.note_upgrade();
        assert!(timeout(LONG, near.write_all(&[0; 100])).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_first_request_that_is_not_there_in_time_ends_the_connection() {
        let (near, mut far) = tokio::io::duplex(10);
        let mut near = Stalled::new(near, Progress::default());
        let read = async { near.read_to_end(&mut Vec::new()).await };
        let error = tokio::select! {
            read = timeout(LONG, read) => read.unwrap().unwrap_err(),
            () = trickle(&mut far) => unreachable!("it is read"),
        };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_request_a_connection_may_rest() {
        let (near, _far) = tokio::io::duplex(10);
        let progress = Progress::default();
        let mut near = Stalled::new(near, progress.clone());
        progress.note_request();
        assert!(timeout(LONG, near.read_u8()).await.is_err());
    }
}
