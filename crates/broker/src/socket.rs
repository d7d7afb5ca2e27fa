//! A stream socket of any family: one descriptor and the system calls for it.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use mio::event::Source;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown};

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadOutcome {
    /// This number of bytes, and the socket has no more for now.
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

    /// Reads once. A short result means that the socket is empty, so no second call checks that.
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

    /// Receives bytes; cheaper than `read(2)`, which first looks up that this is a socket. 0 is the
    /// end of the stream.
    fn recv(&self, buffer: &mut [u8]) -> Result<usize, Errno> {
        rustix::net::recv(&self.0, buffer, RecvFlags::empty()).map(|(len, _)| len)
    }

    /// Sends with one system call; returns the number of bytes that the socket took.
    pub(crate) fn send(&self, bytes: &[u8]) -> Result<usize, Errno> {
        rustix::net::send(&self.0, bytes, SendFlags::NOSIGNAL)
    }

    /// The same for bytes in several places.
    pub(crate) fn send_pieces(&self, pieces: &[IoSlice<'_>]) -> Result<usize, Errno> {
        let mut no_ancillary = SendAncillaryBuffer::default();
        rustix::net::sendmsg(&self.0, pieces, &mut no_ancillary, SendFlags::NOSIGNAL)
    }

    /// Shuts the socket down for output: the peer reads the end of the stream.
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
