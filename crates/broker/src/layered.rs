//! TLS and WebSocket between a client's socket and MQTT, and their output for the socket.
//!
//! Output is encrypted only when it is written: limits count MQTT, and output that is held for the
//! disk or dropped with a connection is MQTT.

use std::sync::Arc;

use rustix::io::Errno;
use thrum_access::Certificate;
use thrum_protocol::Output;
use thrum_transport::{LayerError, ServerLayers};

use crate::socket::Socket;

/// Most MQTT that passes through the layers at once; one system call takes the result.
const CHUNK_BYTES: usize = 64 * 1024;

/// The layers of one connection.
#[derive(Debug)]
pub(crate) struct Layered {
    layers: ServerLayers,
    /// Handshakes, pongs, close frames and alerts, and records that the socket took in part.
    wire: Vec<u8>,
    /// Bytes at the beginning of `wire` that the socket took.
    taken: usize,
    end: End,
}

/// Progress of the end of the layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    NotYet,
    /// The close frame and the alert follow the waiting output.
    Wanted,
    Written,
}

/// The result of a write.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Written {
    /// Bytes the socket took.
    pub(crate) bytes: usize,
    /// It took less than was offered.
    pub(crate) blocked: bool,
    /// The peer can no longer read the output, and it was dropped.
    pub(crate) dropped: bool,
}

impl Layered {
    pub(crate) const fn new(layers: ServerLayers) -> Self {
        Self {
            layers,
            wire: Vec::new(),
            taken: 0,
            end: End::NotYet,
        }
    }

    /// Number of bytes that wait for the socket; at least 1 while the end has to be written.
    pub(crate) fn waiting(&self) -> usize {
        self.wire.len() - self.taken + usize::from(self.end == End::Wanted)
    }

    /// Whether MQTT can pass.
    pub(crate) fn is_open(&self) -> bool {
        self.layers.is_open()
    }

    /// Whether the client has ended the stream inside the layers.
    pub(crate) fn is_closed_by_peer(&self) -> bool {
        self.layers.is_closed_by_peer()
    }

    /// Whether the layers deliver no more MQTT: the client has ended the stream in them, or
    /// violated their protocol.
    pub(crate) fn is_over(&self) -> bool {
        self.layers.has_failed() || self.layers.is_closed_by_peer()
    }

    /// The certificate that the client has presented.
    pub(crate) fn certificate(&self) -> Option<Arc<Certificate>> {
        self.layers.certificate()
    }

    /// Ends the layers after the waiting output.
    pub(crate) fn finish(&mut self) {
        if self.end == End::NotYet {
            self.end = End::Wanted;
        }
    }

    /// Takes bytes of the socket: MQTT goes to `plain`, answers of the layers wait for the next
    /// write.
    pub(crate) fn receive(
        &mut self,
        wire_in: &mut [u8],
        plain: &mut Vec<u8>,
    ) -> Result<(), LayerError> {
        self.layers.receive(wire_in, plain, &mut self.wire)
    }

    /// Writes the waiting bytes, then the output, until the socket takes no more. `scratch` is
    /// memory to encrypt into.
    pub(crate) fn write(
        &mut self,
        socket: &Socket,
        out: &mut Output,
        scratch: &mut Vec<u8>,
    ) -> Result<Written, Errno> {
        let mut written = Written::default();
        self.write_wire(socket, &mut written)?;
        while !written.blocked && !out.is_empty() {
            scratch.clear();
            let chunk = out.len().min(CHUNK_BYTES);
            if self.layers.send(front(out), scratch).is_err() {
                out.clear();
                written.dropped = true;
                break;
            }
            out.advance(chunk);
            let taken = send(socket, scratch, &mut written)?;
            if taken < scratch.len() {
                self.wire = scratch[taken..].to_vec();
            }
        }
        if out.is_empty() && self.end == End::Wanted {
            self.end = End::Written;
            self.layers.close(&mut self.wire);
            self.write_wire(socket, &mut written)?;
        }
        Ok(written)
    }

    /// Discards the bytes that the socket has not taken.
    pub(crate) fn discard(&mut self) {
        self.wire = Vec::new();
        self.taken = 0;
    }

    fn write_wire(&mut self, socket: &Socket, written: &mut Written) -> Result<(), Errno> {
        if written.blocked || self.taken == self.wire.len() {
            return Ok(());
        }
        self.taken += send(socket, &self.wire[self.taken..], written)?;
        if self.taken == self.wire.len() {
            // An idle connection holds no memory.
            self.wire = Vec::new();
            self.taken = 0;
        } else if self.taken > self.wire.len() / 2 {
            // Answers are added behind the taken bytes continually.
            self.wire.drain(..self.taken);
            self.taken = 0;
        }
        Ok(())
    }
}

/// The next output for the layers.
fn front(out: &Output) -> impl Iterator<Item = &[u8]> {
    out.pieces().scan(CHUNK_BYTES, |left, piece| {
        let len = piece.len().min(*left);
        *left -= len;
        (len > 0).then(|| &piece[..len])
    })
}

/// Sends bytes; returns the number that the socket took.
fn send(socket: &Socket, bytes: &[u8], written: &mut Written) -> Result<usize, Errno> {
    loop {
        let taken = match socket.send(bytes) {
            Ok(taken) => taken,
            Err(Errno::AGAIN) => 0,
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error),
        };
        written.blocked = taken < bytes.len();
        written.bytes += taken;
        return Ok(taken);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    use thrum_transport::{Acceptor, WebSocketOptions};

    use super::*;
    use crate::worker::simulation::websocket::{PING, WebSocket};

    #[test]
    fn what_the_socket_took_of_answers_that_never_end_is_not_kept() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let socket = Socket::from(OwnedFd::from(ours));
        let acceptor = Acceptor::new(None, Some(&WebSocketOptions::default())).unwrap();
        let mut layered = Layered::new(acceptor.layers().unwrap());
        let (mut plain, mut out, mut scratch) = (Vec::new(), Output::new(), Vec::new());
        layered
            .receive(&mut WebSocket::request(), &mut plain)
            .unwrap();
        let mut pings = Vec::new();
        for _ in 0..600 {
            WebSocket::frame(PING, &[7; 100], &mut pings);
        }
        let mut taken = 0;
        for _ in 0..200 {
            layered.receive(&mut pings.clone(), &mut plain).unwrap();
            taken += layered
                .write(&socket, &mut out, &mut scratch)
                .unwrap()
                .bytes;
            let waiting = layered.waiting();
            assert!(layered.wire.len() <= 2 * waiting, "{waiting} wait");
            if waiting > 0 {
                // Never all of it.
                theirs.read_exact(&mut vec![0; 60_000]).unwrap();
            }
        }
        assert!(taken > 10 * layered.wire.len(), "{taken}");
    }
}
