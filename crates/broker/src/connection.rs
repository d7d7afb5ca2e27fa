//! One client's transport and its buffers: the only code that reads or writes a client's socket.
//!
//! An idle connection owns no buffer. Input lands in the worker's read buffer; only the rest of a
//! partial packet is kept here. Output collects here during a turn and leaves with one write, in
//! which a payload that others get too stands where it is.

use std::io::{self, IoSlice};
use std::net::{Shutdown, SocketAddr};

use mio::net::TcpStream;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags};
use thrum_codec::Version;
use thrum_protocol::Output;

use crate::durable::HeldOutput;

/// Pieces that one system call takes. With the smallest payload that is shared they are 64 KiB, a good portion for
/// a socket; the list takes 1 KiB of the stack.
const PIECES_MAX: usize = 64;

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Waits for CONNECT.
    Handshake,
    /// Belongs to the session in this slot.
    Established { session: u32 },
    /// Everything is said; what the peer still sends is read and thrown away for a moment, so that
    /// its last words from us are not lost to a reset.
    Draining,
}

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

/// One client's connection.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent states of one socket; each is one byte"
)]
pub(crate) struct Connection {
    pub(crate) stream: TcpStream,
    pub(crate) peer: SocketAddr,
    /// Output of this turn, and what the socket would not take of earlier ones.
    pub(crate) out: Output,
    /// Output of earlier turns that waits for the disk; `out` stands behind it.
    pub(crate) held: Option<Box<HeldOutput>>,
    /// The beginning of a packet whose rest has not arrived.
    pub(crate) partial: Vec<u8>,
    /// Told apart from an earlier connection in the same slot.
    pub(crate) serial: u32,
    /// The listener that it came through.
    pub(crate) gate: u16,
    pub(crate) phase: Phase,
    pub(crate) version: Version,
    /// Is in the list of connections to be written at the end of the turn.
    pub(crate) dirty: bool,
    /// Its output of this turn rests on changes of this turn.
    pub(crate) depends: bool,
    /// The poll reports when the socket has room; only needed once it had none.
    pub(crate) watches_output: bool,
    /// The socket took less than was offered; wait for it to become writable.
    pub(crate) blocked: bool,
    /// Over the soft limit of output; the session queues meanwhile.
    pub(crate) congested: bool,
    /// Not read for now, because what it publishes has nowhere to go.
    pub(crate) paused: bool,
    /// Not read for now, because it does not read our answers.
    pub(crate) muted: bool,
    /// The socket took something since the keep alive was last looked at.
    pub(crate) progressed: bool,
}

impl Connection {
    pub(crate) fn new(stream: TcpStream, peer: SocketAddr, gate: u16, serial: u32) -> Self {
        Self {
            stream,
            peer,
            out: Output::new(),
            held: None,
            partial: Vec::new(),
            serial,
            gate,
            phase: Phase::Handshake,
            version: Version::V311,
            dirty: false,
            depends: false,
            watches_output: false,
            blocked: false,
            congested: false,
            paused: false,
            muted: false,
            progressed: false,
        }
    }

    /// The session of an established connection.
    pub(crate) fn session(&self) -> Option<u32> {
        match self.phase {
            Phase::Established { session } => Some(session),
            Phase::Handshake | Phase::Draining => None,
        }
    }

    /// One read. A short one means that the socket is empty, so no second call is made to learn that.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<ReadOutcome> {
        loop {
            // Cheaper than `read`, which finds out first that this is a socket.
            match rustix::net::recv(&self.stream, &mut *buffer, RecvFlags::empty()) {
                Ok((0, _)) => return Ok(ReadOutcome::Closed),
                Ok((len, _)) if len == buffer.len() => return Ok(ReadOutcome::Full(len)),
                Ok((len, _)) => return Ok(ReadOutcome::Drained(len)),
                Err(Errno::AGAIN) => return Ok(ReadOutcome::Drained(0)),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Writes until the socket takes no more or nothing waits, which is one system call unless many large payloads
    /// wait; returns the bytes the socket took.
    pub(crate) fn write(&mut self) -> io::Result<usize> {
        let mut written = 0;
        self.blocked = false;
        self.join_held();
        let out = match &mut self.held {
            None => &mut self.out,
            Some(held) => &mut held.ready,
        };
        while !out.is_empty() && !self.blocked {
            match send(&self.stream, out) {
                Ok(sent) => {
                    self.blocked = sent.taken < sent.offered;
                    self.progressed = true;
                    out.advance(sent.taken);
                    written += sent.taken;
                }
                Err(Errno::AGAIN) => self.blocked = true,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(written)
    }

    /// The output of this turn stands behind what waits; if nothing does, it is written with what was released.
    fn join_held(&mut self) {
        let Some(held) = &mut self.held else { return };
        held.queue_behind(std::mem::take(&mut self.out));
        if held.is_free() {
            self.out = std::mem::take(&mut held.ready);
            self.held = None;
        }
    }

    /// Bytes that wait, for the socket or for the disk.
    #[inline]
    pub(crate) fn waiting(&self) -> usize {
        self.out.len() + self.held.as_ref().map_or(0, |held| held.len())
    }

    /// Holds back the output of a turn.
    pub(crate) fn hold(&mut self, turn: u64) {
        let out = std::mem::take(&mut self.out);
        self.held.get_or_insert_default().hold(turn, out);
    }

    /// What turns up to this one produced may be written.
    pub(crate) fn release(&mut self, turn: u64) {
        if let Some(held) = &mut self.held {
            held.release(turn);
        }
    }

    /// Throws away what may not be written yet, since the connection ends; what is left is whole packets behind what the
    /// socket took. False if not even that can be said: then nothing may be written any more.
    pub(crate) fn drop_held(&mut self) -> bool {
        let depends = std::mem::take(&mut self.depends);
        if let Some(held) = self.held.take() {
            self.out = held.ready;
            return true;
        }
        if depends {
            self.out.clear();
        }
        !(depends && self.blocked)
    }

    /// Tells the peer that nothing more will come.
    pub(crate) fn shutdown_output(&mut self) {
        if let Err(error) = self.stream.shutdown(Shutdown::Write) {
            tracing::trace!(peer = %self.peer, %error, "the peer was gone before the shutdown");
        }
    }
}

/// Bytes of one system call.
struct Sent {
    offered: usize,
    taken: usize,
}

/// One system call. The standard library's do the same with more steps around them.
fn send(stream: &TcpStream, out: &Output) -> Result<Sent, Errno> {
    if let Some(bytes) = out.as_contiguous() {
        let taken = rustix::net::send(stream, bytes, SendFlags::NOSIGNAL)?;
        let offered = bytes.len();
        return Ok(Sent { offered, taken });
    }
    let mut list = [IoSlice::new(&[]); PIECES_MAX];
    let (mut count, mut offered) = (0, 0);
    for (place, piece) in list.iter_mut().zip(out.pieces()) {
        *place = IoSlice::new(piece);
        count += 1;
        offered += piece.len();
    }
    let mut no_ancillary = SendAncillaryBuffer::default();
    let flags = SendFlags::NOSIGNAL;
    let taken = rustix::net::sendmsg(stream, &list[..count], &mut no_ancillary, flags)?;
    Ok(Sent { offered, taken })
}
