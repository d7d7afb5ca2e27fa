//! A stream socket, whatever its family: one descriptor and the system calls for it.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use mio::event::Source;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown};

/// What a read brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadOutcome {
    /// So many bytes, and the socket has no more for now.
    Drained(usize),
    /// The buffer is full: there may be more.
    Full(usize),
    /// The peer closed its side.
    Closed,
}

/// A connected socket that does not block.
#[derive(Debug)]
pub(crate) struct Socket(OwnedFd);

impl Socket {
    pub(crate) const fn new(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }

    /// One read. A short one means that the socket is empty, so no second call is made to learn
    /// that.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<ReadOutcome> {
        loop {
            match self.recv(buffer) {
                Ok(0) => return Ok(ReadOutcome::Closed),
                Ok(len) if len == buffer.len() => return Ok(ReadOutcome::Full(len)),
                Ok(len) => return Ok(ReadOutcome::Drained(len)),
                Err(Errno::AGAIN) => return Ok(ReadOutcome::Drained(0)),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Cheaper than `read(2)`, which finds out first that this is a socket. 0 is the end of the
    /// stream.
    fn recv(&self, buffer: &mut [u8]) -> Result<usize, Errno> {
        rustix::net::recv(&self.0, buffer, RecvFlags::empty()).map(|(len, _)| len)
    }

    /// One system call; the bytes it took.
    pub(crate) fn send(&self, bytes: &[u8]) -> Result<usize, Errno> {
        rustix::net::send(&self.0, bytes, SendFlags::NOSIGNAL)
    }

    /// The same for bytes that stand in several places.
    pub(crate) fn send_pieces(&self, pieces: &[IoSlice<'_>]) -> Result<usize, Errno> {
        let mut no_ancillary = SendAncillaryBuffer::default();
        rustix::net::sendmsg(&self.0, pieces, &mut no_ancillary, SendFlags::NOSIGNAL)
    }

    /// Tells the peer that nothing more will come.
    pub(crate) fn shutdown_output(&self) -> Result<(), Errno> {
        rustix::net::shutdown(&self.0, Shutdown::Write)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl From<OwnedFd> for Socket {
    fn from(descriptor: OwnedFd) -> Self {
        Self::new(descriptor)
    }
}

impl Source for Socket {
    fn register(
        &mut self,
        registry: &Registry,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        SourceFd(&self.0.as_raw_fd()).register(registry, token, interest)
    }

    fn reregister(
        &mut self,
        registry: &Registry,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        SourceFd(&self.0.as_raw_fd()).reregister(registry, token, interest)
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        SourceFd(&self.0.as_raw_fd()).deregister(registry)
    }
}
