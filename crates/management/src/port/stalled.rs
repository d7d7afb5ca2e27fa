//! A stream whose peer must read: one that does not take a byte for a while is cut off.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// Longest time in which a peer takes nothing of what it asked for.
const STALLED_TIME: Duration = Duration::from_secs(30);

/// A stream that fails when its peer does not read.
pub(super) struct Stalled<S> {
    stream: S,
    /// Runs while the peer takes nothing.
    timer: Option<Pin<Box<Sleep>>>,
}

impl<S> Stalled<S> {
    pub(super) const fn new(stream: S) -> Self {
        Self {
            stream,
            timer: None,
        }
    }

    /// The result of a write, or an error when nothing was taken for too long.
    fn in_time<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
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
    use tokio::time::Instant;

    use super::*;

    /// Takes ten bytes each 20 s, nine times.
    async fn read_slowly(mut far: DuplexStream) -> DuplexStream {
        for _ in 0..9 {
            sleep(Duration::from_secs(20)).await;
            far.read_exact(&mut [0; 10]).await.unwrap();
        }
        far
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_does_not_read_is_cut_off_and_one_that_reads_slowly_is_not() {
        let (near, far) = tokio::io::duplex(10);
        let mut near = Stalled::new(near);
        let start = Instant::now();
        let (written, far) = tokio::join!(near.write_all(&[0; 100]), read_slowly(far));
        assert!(written.is_ok() && start.elapsed() > Duration::from_secs(150));
        let error = near.write_all(&[0; 100]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(far);
    }
}
