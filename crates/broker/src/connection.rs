//! One client's transport and its buffers: the only code that reads or writes a client's socket.
//!
//! An idle connection owns no buffer. Input lands in the worker's read buffer; only the rest of a
//! partial packet is kept here. Output collects here during a turn and leaves with one write, in
//! which a payload that others get too stands where it is.

use std::io::{self, IoSlice};
use std::sync::Arc;

use mio::Token;
use rustix::io::Errno;
use thrum_access::{Certificate, Exchange};
use thrum_codec::Version;
use thrum_protection::Meter;
use thrum_protocol::Output;

use crate::durable::HeldOutput;
use crate::ids::{ConnectionId, ConnectionKey, Slot};
use crate::layered::Layered;
use crate::partial::Partial;
use crate::peer::Peer;
use crate::read_gate::ReadGate;
use crate::socket::Socket;
use crate::worker::{Awaited, Pending};

/// Pieces that one system call takes. With the smallest payload that is shared they are 64 KiB, a
/// good portion for a socket; the list takes 1 KiB of the stack.
const PIECES_MAX: usize = 64;

/// How far a connection is, with what belongs to that phase alone and ends with it.
#[derive(Debug)]
pub(crate) enum Phase {
    /// Waits for the header of a proxy.
    Proxy,
    /// Waits for CONNECT; with a certificate that was verified outside the layers, by a proxy or by
    /// QUIC.
    Handshake(Option<Arc<Certificate>>),
    /// The gatekeeper has been asked; nothing is read until it answers. Nothing is kept while its
    /// answer is handled.
    Admission(Option<Box<Pending>>),
    /// Enhanced authentication: the client has to take a step. Nothing is kept while that is
    /// handled.
    Challenged(Option<Box<Pending>>),
    /// Belongs to the session in this slot.
    Established {
        session: Slot,
        /// Its client was asked for a step of re-authentication.
        exchange: Option<Box<Exchange>>,
    },
    /// Its session is told; what was written for the client is still sent, for a moment.
    Draining(Closing),
}

/// What becomes of a connection that ends, once everything that was written for it has been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closing {
    /// The client has said that it goes: the socket is closed.
    Close,
    /// The client is told that nothing follows. What it still sends is read and thrown away for a
    /// moment, so that our last packet is not lost to a reset.
    Shutdown,
    /// It has been told.
    Told,
}

/// Bits of a serial number in the token of its connection: with all of them it could be that of a
/// listener.
const TOKEN_SERIAL: usize = 0x7FFF_FFFF;

impl ConnectionId {
    /// What the poll calls it: the slot, and in the upper half the serial number, so that no event
    /// of an earlier connection is taken for one of this.
    #[inline]
    pub(crate) const fn token(self) -> Token {
        Token((self.serial as usize & TOKEN_SERIAL) << u32::BITS | self.key.index())
    }

    /// The place in a token; none in that of no connection.
    #[inline]
    pub(crate) fn key_of(token: Token) -> Option<ConnectionKey> {
        ConnectionKey::new(token.0 & u32::MAX as usize)
    }
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
    /// What the socket would not take of earlier turns, and behind it the output of this turn. None
    /// while there is nothing, as in most connections.
    pub(crate) out: Option<Box<Output>>,
    /// Bytes at the front of `out` that earlier turns left: they rest on nothing, and end with a
    /// packet. 32 bits keep the connection small; the limits of the output are far below.
    left: u32,
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
    /// The CONNACK of its session has been given free: it is written, or will be.
    is_welcomed: bool,
    /// The poll reports when the socket has room; only needed once it had none.
    pub(crate) watches_output: bool,
    /// The socket took less than was offered; wait for it to become writable.
    pub(crate) blocked: bool,
    /// Over the soft limit of output; the session queues meanwhile.
    pub(crate) congested: bool,
    /// Why it is not read for now, and what it has for us.
    pub(crate) reading: ReadGate,
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
            out: None,
            left: 0,
            held: None,
            partial: Partial::default(),
            meter: None,
            serial,
            gate,
            phase: Phase::Handshake(None),
            version: Version::V311,
            dirty: false,
            depends: false,
            is_welcomed: false,
            watches_output: false,
            blocked: false,
            congested: false,
            reading: ReadGate::default(),
            is_unverified: false,
            is_shaking: false,
            progressed: false,
        }
    }

    /// Its identity in the place of this key.
    #[inline]
    pub(crate) const fn id(&self, key: ConnectionKey) -> ConnectionId {
        ConnectionId {
            key,
            serial: self.serial,
        }
    }

    /// The session of an established connection.
    pub(crate) fn session(&self) -> Option<Slot> {
        match self.phase {
            Phase::Established { session, .. } => Some(session),
            Phase::Proxy
            | Phase::Handshake(_)
            | Phase::Admission(_)
            | Phase::Challenged(_)
            | Phase::Draining(_) => None,
        }
    }

    pub(crate) fn is_draining(&self) -> bool {
        matches!(self.phase, Phase::Draining(_))
    }

    pub(crate) fn awaits_connect(&self) -> bool {
        matches!(self.phase, Phase::Handshake(_))
    }

    /// The gatekeeper has been asked about a client that has no session yet.
    pub(crate) fn awaits_admission(&self) -> bool {
        matches!(self.phase, Phase::Admission(_))
    }

    /// The client that has no session yet.
    pub(crate) fn pending(&self) -> Option<&Pending> {
        match &self.phase {
            Phase::Admission(pending) | Phase::Challenged(pending) => pending.as_deref(),
            _ => None,
        }
    }

    /// Takes out the client that has no session yet, since what it waited for is there.
    pub(crate) fn take_pending(&mut self) -> Option<Pending> {
        self.take_pending_if(|_| true)
    }

    /// The same if it waits for that: what comes late does not take it from what it waits for now.
    pub(crate) fn take_pending_if(&mut self, is_it: impl Fn(&Awaited) -> bool) -> Option<Pending> {
        match &mut self.phase {
            Phase::Admission(pending) | Phase::Challenged(pending) => pending
                .take_if(|pending| is_it(&pending.awaited))
                .map(|pending| *pending),
            _ => None,
        }
    }

    /// It is not read for now.
    #[inline]
    pub(crate) fn is_unread(&self) -> bool {
        !self.reading.is_open() || self.awaits_admission()
    }

    /// One read. A short one means that the socket is empty, so no second call is made to learn
    /// that.
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

    /// Something waits that may be sent now: none of it rests on changes that are not handed in
    /// yet, and the socket has room. What rests on changes that have been is held, which
    /// [`Connection::write`] leaves alone.
    #[inline]
    pub(crate) fn may_write(&self) -> bool {
        !self.blocked && !self.depends && self.waiting() > 0
    }

    /// Writes until the socket takes no more or nothing waits, which is one system call unless many
    /// large payloads wait; returns the bytes the socket took. `scratch` is memory for layers to
    /// encrypt into.
    pub(crate) fn write(&mut self, scratch: &mut Vec<u8>) -> io::Result<usize> {
        let mut written = 0;
        self.blocked = false;
        self.join_held();
        self.is_welcomed |= self.held.is_none();
        let out = match &mut self.held {
            Some(held) => Some(&mut held.ready),
            None => self.out.as_deref_mut(),
        };
        if let Some(layered) = &mut self.layered {
            let mut nothing = Output::new();
            let out = out.unwrap_or(&mut nothing);
            let sent = layered.write(&self.socket, out, scratch)?;
            self.blocked = sent.blocked;
            self.progressed |= sent.bytes > 0;
            self.note_left();
            return Ok(sent.bytes);
        }
        let Some(out) = out else {
            self.left = 0;
            return Ok(0);
        };
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
        self.note_left();
        Ok(written)
    }

    /// Remembers where the output of the next turn begins.
    #[inline]
    fn note_left(&mut self) {
        self.left = u32::try_from(self.fresh()).unwrap_or(u32::MAX);
    }

    /// The output of this turn stands behind what waits; if nothing does, it is written with what
    /// was released.
    fn join_held(&mut self) {
        let Some(held) = &mut self.held else { return };
        if let Some(out) = self.out.take() {
            held.queue_behind(*out);
        }
        if held.is_free() {
            self.out = Some(Box::new(std::mem::take(&mut held.ready)));
            self.held = None;
        }
    }

    /// Bytes in `out`.
    #[inline]
    fn fresh(&self) -> usize {
        self.out.as_ref().map_or(0, |out| out.len())
    }

    /// Takes out the buffer of the output if nothing is in it.
    #[inline]
    pub(crate) fn take_spare(&mut self) -> Option<Box<Output>> {
        self.out.take_if(|out| out.is_empty())
    }

    /// Bytes that wait, for the socket or for the disk.
    #[inline]
    pub(crate) fn waiting(&self) -> usize {
        let layered = self.layered.as_ref().map_or(0, |layered| layered.waiting());
        self.fresh() + self.held.as_ref().map_or(0, |held| held.len()) + layered
    }

    /// Holds back the output of a turn. What earlier turns left may still be sent, and a packet of
    /// it may be half sent.
    pub(crate) fn hold(&mut self, turn: u64) {
        let out = self.take_new();
        let left = self.out.take();
        self.left = 0;
        let held = self.held.get_or_insert_default();
        if let Some(left) = left {
            held.ready.append(*left);
        }
        held.hold(turn, out);
    }

    /// Takes out what is of this turn.
    fn take_new(&mut self) -> Output {
        match (self.left, &mut self.out) {
            (_, None) => Output::new(),
            (0, out) => out.take().map_or_else(Output::new, |out| *out),
            (left, Some(out)) => out.split_off(left as usize),
        }
    }

    /// What turns up to this one produced may be written.
    pub(crate) fn release(&mut self, turn: u64) {
        if let Some(held) = &mut self.held {
            self.is_welcomed |= held.release(turn);
        }
    }

    /// It belongs to a session from now on, whose CONNACK is in the output of this turn.
    pub(crate) fn establish(&mut self, session: Slot) {
        self.phase = Phase::Established {
            session,
            exchange: None,
        };
        self.is_welcomed = false;
    }

    /// Throws away what may not be written yet, since the connection ends; true if the CONNACK was
    /// among it. What is left ends with a whole packet, of which the socket may have taken a part.
    pub(crate) fn drop_held(&mut self) -> bool {
        let is_any = self.depends || self.held.is_some();
        let depends = std::mem::take(&mut self.depends);
        if let Some(held) = self.held.take() {
            self.out = Some(Box::new(held.ready));
            self.note_left();
        } else if depends {
            drop(self.take_new());
        }
        is_any && !self.is_welcomed
    }

    /// Nobody reads what waits for the socket, or for the disk.
    pub(crate) fn discard_output(&mut self) {
        self.out = None;
        self.left = 0;
        self.held = None;
        if let Some(layered) = &mut self.layered {
            layered.discard();
        }
    }

    /// Everything that was written for the client has been sent. The end of the layers may come
    /// behind it.
    pub(crate) fn is_written_out(&self) -> bool {
        !self.depends && self.waiting() == 0
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
