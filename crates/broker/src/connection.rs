//! One client's transport and its buffers: the only code that reads or writes a client's socket.
//!
//! An idle connection owns no buffer. The worker's read buffer receives input; only the rest of a
//! partial packet is kept here. Output collects here during a turn and leaves with one write, in
//! which a payload shared with other connections is not copied.

use std::io::{self, IoSlice};
use std::sync::Arc;

use mio::Token;
use rustix::io::Errno;
use thrum_access::{Certificate, Exchange};
use thrum_codec::Version;
use thrum_engine::ids::{ConnectionId, ConnectionKey, Slot};
use thrum_engine::output::ConnectionOutput;
use thrum_engine::peer::Peer;
use thrum_protection::Meter;
use thrum_protocol::Output;

use crate::door::{Awaited, Pending};
use crate::layered::Layered;
use crate::partial::Partial;
use crate::read_gate::ReadGate;
use crate::socket::Socket;

/// Pieces that one system call takes. With the smallest payload that is shared they are 64 KiB, a
/// good portion for a socket; the list takes 1 KiB of the stack.
const PIECES_MAX: usize = 64;

/// Phase of a connection, with the state that ends with the phase.
#[derive(Debug)]
pub(crate) enum Phase {
    /// Waits for the header of a proxy.
    Proxy,
    /// Waits for CONNECT; with a certificate that was verified outside the layers, by a proxy or by
    /// QUIC.
    Handshake(Option<Arc<Certificate>>),
    /// The gatekeeper has been asked; the connection is not read until it answers. Empty while the
    /// answer is handled.
    Admission(Option<Box<Pending>>),
    /// Enhanced authentication: the client has to take a step. Empty while the step is handled.
    Challenged(Option<Box<Pending>>),
    /// Belongs to the session in this slot.
    Established {
        session: Slot,
        /// The step of re-authentication that the client was asked for.
        exchange: Option<Box<Exchange>>,
    },
    /// The session has ended its use of the connection; remaining output is sent within a time
    /// limit.
    Draining(Closing),
}

/// The next step of a connection that ends, after all its output has been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closing {
    /// The client has sent DISCONNECT: the socket is closed.
    Close,
    /// The socket is shut down for output. Further input is read and discarded for a time, so that
    /// a reset does not destroy the last packet.
    Shutdown,
    /// The socket has been shut down for output.
    ShutdownSent,
}

/// Bits of a serial number in the token of its connection: with one more bit the token could equal
/// that of a listener.
const TOKEN_SERIAL: usize = 0x7FFF_FFFF;

/// Token in the poll: the slot, and in the upper half the serial number, so that an event of an
/// earlier connection is not mistaken for an event of this one.
#[inline]
pub(crate) const fn token_of(id: ConnectionId) -> Token {
    Token((id.serial as usize & TOKEN_SERIAL) << u32::BITS | id.key.index())
}

/// The key in a token; `None` for the token of a listener.
#[inline]
pub(crate) fn key_of(token: Token) -> Option<ConnectionKey> {
    ConnectionKey::new(token.0 & u32::MAX as usize)
}

/// Whether the socket takes output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SocketRoom {
    /// It has taken all output so far: the poll was not asked to report room.
    #[default]
    Free,
    /// It took less than was offered, for the first time.
    Full,
    /// The poll has reported room.
    FreeAgain,
    /// It took less than was offered; the poll reports when it takes more.
    FullAgain,
}

impl SocketRoom {
    #[inline]
    pub(crate) const fn is_full(self) -> bool {
        matches!(self, Self::Full | Self::FullAgain)
    }

    /// Records that output is offered or that the poll has reported room; true if there was no room
    /// before.
    #[inline]
    pub(crate) const fn may_have_some(&mut self) -> bool {
        let was_full = self.is_full();
        *self = match *self {
            Self::Free | Self::Full => Self::Free,
            Self::FreeAgain | Self::FullAgain => Self::FreeAgain,
        };
        was_full
    }

    /// Records that the socket took less than was offered.
    #[inline]
    const fn is_used_up(&mut self) {
        *self = match *self {
            Self::Free | Self::Full => Self::Full,
            Self::FreeAgain | Self::FullAgain => Self::FullAgain,
        };
    }

    /// Whether the poll has to be asked to report room; true once.
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
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent states of one connection; each is one byte"
)]
pub(crate) struct Connection {
    pub(crate) socket: Socket,
    pub(crate) peer: Peer,
    /// TLS and WebSocket; none over a plain stream.
    pub(crate) layered: Option<Box<Layered>>,
    /// The beginning of a packet whose rest has not arrived.
    pub(crate) partial: Partial,
    /// The rates of its input; none if it has no limit.
    pub(crate) meter: Option<Box<Meter>>,
    /// The gate of the listener that accepted it.
    pub(crate) gate: u16,
    pub(crate) phase: Phase,
    pub(crate) version: Version,
    pub(crate) room: SocketRoom,
    /// The reasons why it is not read, and its pending input.
    pub(crate) reading: ReadGate,
    /// The client sent credentials, and no backend exists to verify them.
    pub(crate) is_unverified: bool,
    /// The handshake of TLS or WebSocket, or the header of a proxy, is incomplete.
    pub(crate) in_handshake: bool,
    /// The socket took some output since the last check of the keep alive.
    pub(crate) progressed: bool,
    /// A trace may be about its packets.
    pub(crate) is_traced: bool,
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
            is_traced: false,
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

    /// Whether the gatekeeper has been asked about a pending client.
    pub(crate) fn awaits_admission(&self) -> bool {
        matches!(self.phase, Phase::Admission(_))
    }

    /// The pending client.
    pub(crate) fn pending(&self) -> Option<&Pending> {
        match &self.phase {
            Phase::Admission(pending) | Phase::Challenged(pending) => pending.as_deref(),
            _ => None,
        }
    }

    /// Takes the pending client, when the event that it waits for arrives.
    pub(crate) fn take_pending(&mut self) -> Option<Pending> {
        self.take_pending_if(|_| true)
    }

    /// Takes the pending client, if it waits for that event: a late event does not end a later
    /// wait.
    pub(crate) fn take_pending_if(&mut self, is_it: impl Fn(&Awaited) -> bool) -> Option<Pending> {
        match &mut self.phase {
            Phase::Admission(pending) | Phase::Challenged(pending) => pending
                .take_if(|pending| is_it(&pending.awaited))
                .map(|pending| *pending),
            _ => None,
        }
    }

    /// Whether a reason prevents reading.
    #[inline]
    pub(crate) fn is_unread(&self) -> bool {
        !self.reading.is_open() || self.awaits_admission()
    }

    /// Whether output waits and may be sent now: none of it depends on changes that are not
    /// submitted yet, and the socket has room. Output that depends on submitted changes is held,
    /// and [`Connection::write`] skips it.
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
            if sent.dropped {
                output.was_cut();
            }
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

    /// Number of bytes that wait for the socket or for the disk.
    #[inline]
    pub(crate) fn waiting(&self, output: &ConnectionOutput) -> usize {
        output.waiting() + self.layers_waiting()
    }

    /// Number of bytes in the layers that wait for the socket.
    #[inline]
    pub(crate) fn layers_waiting(&self) -> usize {
        self.layered.as_ref().map_or(0, |layered| layered.waiting())
    }

    /// Assigns the connection to a session.
    pub(crate) fn establish(&mut self, session: Slot) {
        self.phase = Phase::Established {
            session,
            exchange: None,
        };
    }

    /// Discards the output of the layers, which the peer no longer reads.
    pub(crate) fn discard_layers(&mut self) {
        if let Some(layered) = &mut self.layered {
            layered.discard();
        }
    }

    /// Whether all output for the client has been sent. The end of the layers may follow it.
    pub(crate) fn is_written_out(&self, output: &ConnectionOutput) -> bool {
        !output.depends() && self.waiting(output) == 0
    }

    /// Ends the layers after the output that waits.
    pub(crate) fn finish_layers(&mut self) {
        if let Some(layered) = &mut self.layered {
            layered.finish();
        }
    }

    /// Shuts the socket down for output: the peer reads the end of the stream.
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
