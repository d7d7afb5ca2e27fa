//! One client's transport and its buffers: the only code that reads or writes a client's socket.
//!
//! An idle connection owns no buffer. Input lands in the worker's read buffer; only the rest of a
//! partial packet is kept here. Output collects here during a turn and leaves with one write, in
//! which a payload that others get too stands where it is.

use std::io::{self, IoSlice};

use rustix::io::Errno;
use thrum_codec::Version;
use thrum_protocol::Output;

use crate::durable::HeldOutput;
use crate::layered::Layered;
use crate::partial::Partial;
use crate::peer::Peer;
use crate::protection::Meter;
use crate::socket::Socket;

/// Pieces that one system call takes. With the smallest payload that is shared they are 64 KiB, a good portion for
/// a socket; the list takes 1 KiB of the stack.
const PIECES_MAX: usize = 64;

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Waits for the header of a proxy.
    Proxy,
    /// Waits for CONNECT.
    Handshake,
    /// The gatekeeper has been asked; nothing is read until it answers.
    Admission,
    /// Enhanced authentication: the client has to take a step.
    Challenged,
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
    pub(crate) socket: Socket,
    pub(crate) peer: Peer,
    /// TLS and WebSocket; none over a plain stream.
    pub(crate) layered: Option<Box<Layered>>,
    /// Output of this turn, and what the socket would not take of earlier ones.
    pub(crate) out: Output,
    /// Output of earlier turns that waits for the disk; `out` stands behind it.
    pub(crate) held: Option<Box<HeldOutput>>,
    /// The beginning of a packet whose rest has not arrived.
    pub(crate) partial: Partial,
    /// What it may send; none if nothing is limited.
    pub(crate) meter: Option<Box<Meter>>,
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
    /// Not read for now, because the gatekeeper has to decide about its next packet.
    pub(crate) is_deciding: bool,
    /// Not read for now, because it has sent all that a rate lets it.
    pub(crate) is_paced: bool,
    /// Its client showed credentials, and there was nobody to verify them.
    pub(crate) is_unverified: bool,
    /// TLS, WebSocket or the header of a proxy are not done.
    pub(crate) is_shaking: bool,
    /// The socket took something since the keep alive was last looked at.
    pub(crate) progressed: bool,
}

impl Connection {
    pub(crate) fn new(socket: Socket, peer: Peer, gate: u16, serial: u32) -> Self {
        Self {
            socket,
            peer,
            layered: None,
            out: Output::new(),
            held: None,
            partial: Partial::default(),
            meter: None,
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
            is_deciding: false,
            is_paced: false,
            is_unverified: false,
            is_shaking: false,
            progressed: false,
        }
    }

    /// The session of an established connection.
    pub(crate) fn session(&self) -> Option<u32> {
        match self.phase {
            Phase::Established { session } => Some(session),
            Phase::Proxy
            | Phase::Handshake
            | Phase::Admission
            | Phase::Challenged
            | Phase::Draining => None,
        }
    }

    /// It is not read for now.
    #[inline]
    pub(crate) fn is_unread(&self) -> bool {
        self.paused
            || self.muted
            || self.is_deciding
            || self.is_paced
            || self.phase == Phase::Admission
    }

    /// One read. A short one means that the socket is empty, so no second call is made to learn that.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<ReadOutcome> {
        loop {
            match self.socket.recv(buffer) {
                Ok(0) => return Ok(ReadOutcome::Closed),
                Ok(len) if len == buffer.len() => return Ok(ReadOutcome::Full(len)),
                Ok(len) => return Ok(ReadOutcome::Drained(len)),
                Err(Errno::AGAIN) => return Ok(ReadOutcome::Drained(0)),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Writes until the socket takes no more or nothing waits, which is one system call unless many large payloads
    /// wait; returns the bytes the socket took. `scratch` is memory for layers to encrypt into.
    pub(crate) fn write(&mut self, scratch: &mut Vec<u8>) -> io::Result<usize> {
        let mut written = 0;
        self.blocked = false;
        self.join_held();
        let out = match &mut self.held {
            None => &mut self.out,
            Some(held) => &mut held.ready,
        };
        if let Some(layered) = &mut self.layered {
            let sent = layered.write(&self.socket, out, scratch)?;
            self.blocked = sent.blocked;
            self.progressed |= sent.bytes > 0;
            return Ok(sent.bytes);
        }
        while !out.is_empty() && !self.blocked {
            match send(&self.socket, out) {
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
        let layered = self.layered.as_ref().map_or(0, |layered| layered.waiting());
        self.out.len() + self.held.as_ref().map_or(0, |held| held.len()) + layered
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

    /// What waits is the last that the layers take.
    pub(crate) fn finish_layers(&mut self) {
        if let Some(layered) = &mut self.layered {
            layered.finish();
        }
    }

    /// Tells the peer that nothing more will come.
    pub(crate) fn shutdown_output(&mut self) {
        if let Err(error) = self.socket.shutdown_output() {
            tracing::trace!(peer = %self.peer, %error, "the peer was gone before the shutdown");
        }
    }
}

/// Bytes of one system call.
struct Sent {
    offered: usize,
    taken: usize,
}

/// One system call.
fn send(socket: &Socket, out: &Output) -> Result<Sent, Errno> {
    if let Some(bytes) = out.as_contiguous() {
        let taken = socket.send(bytes)?;
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
    let taken = socket.send_pieces(&list[..count])?;
    Ok(Sent { offered, taken })
}
