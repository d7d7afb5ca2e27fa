//! A connection that never waits.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

use thrum_conformance::received::Packet;

/// A connection.
#[derive(Debug)]
pub(crate) struct Link {
    stream: TcpStream,
    input: Vec<u8>,
    /// Bytes of `input` that were taken.
    taken: usize,
    output: Vec<u8>,
}

impl Link {
    /// Connects; none if the broker does not listen.
    pub(crate) fn open(address: SocketAddr) -> Option<Self> {
        let stream = TcpStream::connect(address).ok()?;
        stream.set_nodelay(true).ok()?;
        stream.set_nonblocking(true).ok()?;
        Some(Self {
            stream,
            input: Vec::new(),
            taken: 0,
            output: Vec::new(),
        })
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.output.extend(bytes);
    }

    pub(crate) fn has_output(&self) -> bool {
        !self.output.is_empty()
    }

    /// Writes what the socket takes; a socket that takes nothing any more is noticed by reading.
    pub(crate) fn flush(&mut self) {
        while !self.output.is_empty() {
            match self.stream.write(&self.output) {
                Ok(count) => drop(self.output.drain(..count)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => self.output.clear(),
            }
        }
    }

    /// Reads all that is there; false if the connection is at its end.
    pub(crate) fn read(&mut self) -> bool {
        let mut chunk = [0; 16_384];
        loop {
            match self.stream.read(&mut chunk) {
                Ok(0) => return false,
                Ok(count) => self.input.extend(chunk.iter().take(count)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
    }

    /// The next whole packet.
    ///
    /// # Panics
    /// The broker sends a remaining length of more than four bytes.
    pub(crate) fn next_packet(&mut self) -> Option<Packet> {
        let found = split(self.input.get(self.taken..)?);
        let Some((packet, length)) = found else {
            self.input.drain(..self.taken);
            self.taken = 0;
            return None;
        };
        self.taken += length;
        Some(packet)
    }

    /// Nothing more will be sent.
    pub(crate) fn finish(&mut self) {
        self.flush();
        // The broker may have closed first.
        drop(self.stream.shutdown(Shutdown::Write));
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

fn split(bytes: &[u8]) -> Option<(Packet, usize)> {
    let first = *bytes.first()?;
    let mut length = 0_usize;
    for (index, shift) in (1..=4).zip([0, 7, 14, 21]) {
        let byte = *bytes.get(index)?;
        length |= usize::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            let end = index + 1 + length;
            let body = bytes.get(index + 1..end)?.to_vec();
            return Some((Packet { first, body }, end));
        }
    }
    panic!("the broker sent a remaining length of more than four bytes");
}
