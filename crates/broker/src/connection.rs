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
use thrum_engine::ids::{ConnectionId, ConnectionKey, Slot};
use thrum_engine::output::ConnectionOutput;
use thrum_protection::Meter;
use thrum_protocol::Output;

use crate::door::{Awaited, Pending};
use crate::layered::Layered;
use crate::partial::Partial;
use crate::peer::Peer;
use crate::read_gate::ReadGate;
use crate::socket::Socket;

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

/// What the poll calls a connection: the slot, and in the upper half the serial number, so that no
/// event of an earlier connection is taken for one of this.
#[inline]
pub(crate) const fn token_of(id: ConnectionId) -> Token {
    Token((id.serial as usize & TOKEN_SERIAL) << u32::BITS | id.key.index())
}

/// The place in a token; none in that of no connection.
#[inline]
pub(crate) fn key_of(token: Token) -> Option<ConnectionKey> {
    ConnectionKey::new(token.0 & u32::MAX as usize)
}

/// Whether the socket takes output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SocketRoom {
    /// It always did: the poll was not asked to report it.
    #[default]
    Free,
    /// It took less than was offered, for the first time.
    Full,
    /// It does again; the poll reports it.
    FreeAgain,
    /// It took less than was offered; the poll reports when it takes more.
    FullAgain,
}

impl SocketRoom {
    #[inline]
    pub(crate) const fn is_full(self) -> bool {
        matches!(self, Self::Full | Self::FullAgain)
    }

    /// Output is offered, or the poll has reported room; true if there was none before.
    #[inline]
    pub(crate) const fn may_have_some(&mut self) -> bool {
        let was_full = self.is_full();
        *self = match *self {
            Self::Free | Self::Full => Self::Free,
            Self::FreeAgain | Self::FullAgain => Self::FreeAgain,
        };
        was_full
    }

    /// It took less than was offered.
    #[inline]
    const fn is_used_up(&mut self) {
        *self = match *self {
            Self::Free | Self::Full => Self::Full,
            Self::FreeAgain | Self::FullAgain => Self::FullAgain,
        };
    }

    /// The poll has to be asked to report room; true once.
    #[inline]
    pub(crate) const fn begin_watching(&mut self) -> bool {
        let begins = matches!(self, Self::Full);
        if begins {
            *self = Self::FullAgain;
        }
        begins
    }
}

/// One client's connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) socket: Socket,
    pub(crate) peer: Peer,
    /// TLS and WebSocket; none over a plain stream.
    pub(crate) layered: Option<Box<Layered>>,
    /// The beginning of a packet whose rest has not arrived.
    pub(crate) partial: Partial,
    /// What it may send; none if nothing is limited.
    pub(crate) meter: Option<Box<Meter>>,
    /// The listener that it came through.
    pub(crate) gate: u16,
    pub(crate) phase: Phase,
    pub(crate) version: Version,
    pub(crate) room: SocketRoom,
    /// Why it is not read for now, and what it has for us.
    pub(crate) reading: ReadGate,
    /// Its client showed credentials, and there was nobody to verify them.
    pub(crate) is_unverified: bool,
    /// TLS, WebSocket or the header of a proxy are not done.
    pub(crate) in_handshake: bool,
    /// The socket took something since the keep alive was last looked at.
    pub(crate) progressed: bool,
}

impl Connection {
    pub(crate) fn new(socket: Socket, peer: Peer, gate: u16) -> Self {
        Self {
            socket,
            peer,
            layered: None,
            partial: Partial::default(),
            meter: None,
            gate,
            phase: Phase::Handshake(None),
            version: Version::V311,
            room: SocketRoom::default(),
            reading: ReadGate::default(),
            is_unverified: false,
            in_handshake: false,
            progressed: false,
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

    /// Something waits that may be sent now: none of it rests on changes that are not handed in
    /// yet, and the socket has room. What rests on changes that have been is held, which
    /// [`Connection::write`] leaves alone.
    #[inline]
    pub(crate) fn may_write(&self, output: &ConnectionOutput) -> bool {
        !self.room.is_full() && !output.depends() && self.waiting(output) > 0
    }

    /// Writes until the socket takes no more or nothing waits, which is one system call unless many
    /// large payloads wait; returns the bytes the socket took. `scratch` is memory for layers to
    /// encrypt into.
    pub(crate) fn write(
        &mut self,
        output: &mut ConnectionOutput,
        scratch: &mut Vec<u8>,
    ) -> io::Result<usize> {
        self.room.may_have_some();
        let out = output.sendable();
        let written = if let Some(layered) = &mut self.layered {
            let mut nothing = Output::new();
            let out = out.unwrap_or(&mut nothing);
            let sent = layered.write(&self.socket, out, scratch)?;
            if sent.blocked {
                self.room.is_used_up();
            }
            self.progressed |= sent.bytes > 0;
            sent.bytes
        } else if let Some(out) = out {
            self.write_plain(out)?
        } else {
            0
        };
        output.was_sent();
        Ok(written)
    }

    #[inline]
    fn write_plain(&mut self, out: &mut Output) -> io::Result<usize> {
        let mut written = 0;
        while !out.is_empty() && !self.room.is_full() {
            let sent = match send(&self.socket, out) {
                Ok(sent) => sent,
                Err(Errno::AGAIN) => {
                    self.room.is_used_up();
                    continue;
                }
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            if sent.taken < sent.offered {
                self.room.is_used_up();
            }
            self.progressed = true;
            out.advance(sent.taken);
            written += sent.taken;
        }
        Ok(written)
    }

    /// Bytes that wait, for the socket or for the disk.
    #[inline]
    pub(crate) fn waiting(&self, output: &ConnectionOutput) -> usize {
        let layered = self.layered.as_ref().map_or(0, |layered| layered.waiting());
        output.waiting() + layered
    }

    /// It belongs to a session from now on.
    pub(crate) fn establish(&mut self, session: Slot) {
        self.phase = Phase::Established {
            session,
            exchange: None,
        };
    }

    /// Nobody reads what the layers have for the socket.
    pub(crate) fn discard_layers(&mut self) {
        if let Some(layered) = &mut self.layered {
            layered.discard();
        }
    }

    /// Everything that was written for the client has been sent. The end of the layers may come
    /// behind it.
    pub(crate) fn is_written_out(&self, output: &ConnectionOutput) -> bool {
        !output.depends() && self.waiting(output) == 0
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
