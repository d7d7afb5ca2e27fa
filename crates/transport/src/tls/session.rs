//! One TLS session over the unbuffered interface of rustls.
//!
//! The buffered interface keeps 4 KiB per idle connection to read into; here only the bytes of an
//! incomplete record are held.

use rustls::unbuffered::{
    ConnectionState, EncodeError, EncodeTlsData, EncryptError, InsufficientSizeError, ReadTraffic,
    WriteTraffic,
};
use rustls::{HandshakeKind, ProtocolVersion};

use crate::error::LayerError;
use crate::pieces::Pieces;
use crate::tls::TlsSummary;
use crate::tls::incoming::{Incoming, whole_records};
use crate::tls::side::Side;

/// Payload of one record.
const RECORD_BYTES: usize = 16 * 1024;

/// Bytes that a record adds to its payload, rounded up.
const RECORD_OVERHEAD_BYTES: usize = 64;

/// One end of a session; not to be used after an error.
pub(crate) struct Session<S> {
    connection: S,
    /// Bytes of the peer that are not yet a whole record.
    incoming: Incoming,
    peer_closed: bool,
    closed: bool,
    /// rustls has rejected input of the peer: it must not be called again, because it would
    /// continue in bytes that are gone.
    refused: bool,
}

/// Takes the payload of one record.
pub(crate) type Sink<'a> = dyn FnMut(&[u8]) -> Result<(), LayerError> + 'a;

/// A task of a session beside its own messages.
enum Task<'a, 'b> {
    Read(&'a mut Sink<'b>),
    Send(&'a [u8]),
    /// Encrypts the end of the output, from here on.
    Seal(usize),
    Close,
}

impl<S: Side> Session<S> {
    pub(crate) fn new(connection: S) -> Self {
        Self {
            connection,
            incoming: Incoming::default(),
            peer_closed: false,
            closed: false,
            refused: false,
        }
    }

    /// The library's end.
    pub(crate) const fn connection(&self) -> &S {
        &self.connection
    }

    /// The handshake is done and no end was sent.
    pub(crate) fn is_open(&self) -> bool {
        !self.closed && !self.connection.is_handshaking()
    }

    /// The peer has announced that it sends no more.
    pub(crate) const fn is_closed_by_peer(&self) -> bool {
        self.peer_closed
    }

    /// Appends the first message of the handshake.
    pub(crate) fn start(&mut self, wire_out: &mut Vec<u8>) -> Result<(), LayerError> {
        self.advance(&mut [], wire_out, &mut Task::Read(&mut |_| Ok(())))
            .1
    }

    /// Takes bytes of the peer; answers of the handshake go to `wire_out`, payload to the sink.
    ///
    /// Whole records are decrypted where they stand.
    pub(crate) fn receive(
        &mut self,
        wire_in: &mut [u8],
        wire_out: &mut Vec<u8>,
        sink: &mut Sink<'_>,
    ) -> Result<(), LayerError> {
        if self.refused {
            return Err(LayerError::NotOpen);
        }
        let mut rest = wire_in;
        while !rest.is_empty() && !self.peer_closed {
            if self.incoming.is_empty() {
                return self.receive_in_place(rest, wire_out, sink);
            }
            rest = self.incoming.take_from(rest);
            self.receive_held(wire_out, sink)?;
        }
        Ok(())
    }

    fn receive_in_place(
        &mut self,
        wire_in: &mut [u8],
        wire_out: &mut Vec<u8>,
        sink: &mut Sink<'_>,
    ) -> Result<(), LayerError> {
        let whole = whole_records(wire_in);
        let (done, result) = self.advance(wire_in, wire_out, &mut Task::Read(sink));
        result?;
        let rest = wire_in.get(done..).unwrap_or_default();
        // The rest after the close alert is ignored.
        if !rest.is_empty() && !self.peer_closed {
            self.incoming.hold(rest, whole.saturating_sub(done));
        }
        self.check_held()
    }

    fn receive_held(
        &mut self,
        wire_out: &mut Vec<u8>,
        sink: &mut Sink<'_>,
    ) -> Result<(), LayerError> {
        let mut incoming = std::mem::take(&mut self.incoming);
        let (done, result) = self.advance(incoming.bytes_mut(), wire_out, &mut Task::Read(sink));
        result?;
        incoming.discard(done);
        if self.peer_closed {
            incoming.clear();
        }
        self.incoming = incoming;
        self.check_held()
    }

    fn check_held(&self) -> Result<(), LayerError> {
        if self.incoming.len() > S::HELD_BYTES_MAX {
            return Err(LayerError::TlsMessageTooLong);
        }
        Ok(())
    }

    /// Encrypts payload, as few records as can be.
    pub(crate) fn send<'p>(
        &mut self,
        pieces: &mut Pieces<'p, impl Iterator<Item = &'p [u8]>>,
        wire_out: &mut Vec<u8>,
    ) -> Result<(), LayerError> {
        loop {
            if let Some(run) = pieces.next_run(RECORD_BYTES) {
                self.send_run(run, wire_out)?;
                continue;
            }
            let start = wire_out.len();
            if pieces.fill(RECORD_BYTES, wire_out) == 0 {
                return Ok(());
            }
            self.seal(start, wire_out)?;
        }
    }

    /// Encrypts payload that stands in one place.
    pub(crate) fn send_run(
        &mut self,
        plain: &[u8],
        wire_out: &mut Vec<u8>,
    ) -> Result<(), LayerError> {
        self.write(wire_out, &mut Task::Send(plain))
    }

    /// Encrypts the end of the output, from `start` on.
    pub(crate) fn seal(&mut self, start: usize, wire_out: &mut Vec<u8>) -> Result<(), LayerError> {
        self.write(wire_out, &mut Task::Seal(start))
    }

    /// Appends the close alert, if the session is open and it was not sent before.
    pub(crate) fn close(&mut self, wire_out: &mut Vec<u8>) {
        if !self.closed {
            self.closed = true;
            // A session that cannot write has nothing to close.
            let _unable = self.write(wire_out, &mut Task::Close);
        }
    }

    /// Lets the session write; the held bytes of the peer stay.
    fn write(&mut self, wire_out: &mut Vec<u8>, task: &mut Task<'_, '_>) -> Result<(), LayerError> {
        let mut incoming = std::mem::take(&mut self.incoming);
        let (done, result) = self.advance(incoming.bytes_mut(), wire_out, task);
        incoming.discard(done);
        self.incoming = incoming;
        result
    }

    /// Reads and answers the received bytes, then writes the output of the task; returns how many
    /// bytes at the front of the input are done with.
    ///
    /// Each round makes progress: it consumes input, empties a queue of rustls, or ends the loop.
    fn advance(
        &mut self,
        input: &mut [u8],
        wire_out: &mut Vec<u8>,
        task: &mut Task<'_, '_>,
    ) -> (usize, Result<(), LayerError>) {
        let mut done = 0;
        let result = loop {
            // Always the same bytes, because rustls remembers its position in them.
            let unread = input.get_mut(done..).unwrap_or_default();
            let status = self.connection.process(unread);
            done += status.discard;
            let step = match status.state {
                Ok(ConnectionState::EncodeTlsData(message)) => {
                    let start = wire_out.len();
                    let appended = append_message(message, wire_out);
                    task.put_behind(start, wire_out);
                    appended
                }
                Ok(ConnectionState::TransmitTlsData(transmit)) => {
                    transmit.done();
                    Ok(())
                }
                Ok(ConnectionState::ReadTraffic(traffic)) => read_record(traffic, task),
                Ok(ConnectionState::PeerClosed) => {
                    self.peer_closed = true;
                    Ok(())
                }
                Ok(ConnectionState::WriteTraffic(traffic)) => {
                    break append_payload(traffic, wire_out, task);
                }
                // Blocked in the handshake, or closed.
                Ok(_) => break task.is_read().then_some(()).ok_or(LayerError::NotOpen),
                Err(error) => {
                    self.refused = true;
                    Err(S::fault(error))
                }
            };
            if step.is_err() {
                break step;
            }
        };
        if result.is_err() {
            task.take_back(wire_out);
            self.append_alerts(wire_out);
        }
        (done, result)
    }

    /// Appends the alert that gives the peer the reason why the session failed.
    ///
    /// rustls must not see rejected input again, so it is called only while messages wait: it hands
    /// them out before it reads input.
    fn append_alerts(&mut self, wire_out: &mut Vec<u8>) {
        while self.connection.wants_write() {
            let step = match self.connection.process(&mut []).state {
                Ok(ConnectionState::EncodeTlsData(message)) => append_message(message, wire_out),
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    // Payload behind the one that was refused.
                    traffic.next_record().map(drop).ok_or(LayerError::NotOpen)
                }
                _ => return,
            };
            if step.is_err() {
                return;
            }
        }
    }

    /// The outcome of the handshake, once it is done.
    pub(crate) fn summary(&self) -> Option<TlsSummary> {
        if self.connection.is_handshaking() {
            return None;
        }
        let version = match self.connection.protocol_version()? {
            ProtocolVersion::TLSv1_2 => "TLSv1.2",
            ProtocolVersion::TLSv1_3 => "TLSv1.3",
            _ => "unknown",
        };
        let suite = self.connection.negotiated_cipher_suite()?.suite();
        let group = self.connection.negotiated_key_exchange_group();
        Some(TlsSummary {
            version,
            cipher_suite: suite.as_str().unwrap_or("unknown"),
            key_exchange: group.map(|group| format!("{:?}", group.name())),
            resumed: self.connection.handshake_kind()? == HandshakeKind::Resumed,
            server_name: None,
        })
    }
}

impl Task<'_, '_> {
    const fn is_read(&self) -> bool {
        matches!(self, Self::Read(_))
    }

    /// Unencrypted bytes must not leave.
    fn take_back(&self, wire_out: &mut Vec<u8>) {
        if let Self::Seal(start) = self {
            wire_out.truncate(*start);
        }
    }

    /// A message of rustls was appended at `message_start`: it goes before the bytes to be
    /// encrypted.
    fn put_behind(&mut self, message_start: usize, wire_out: &mut [u8]) {
        if let Self::Seal(start) = self {
            let message_bytes = wire_out.len() - message_start;
            if let Some(both) = wire_out.get_mut(*start..) {
                both.rotate_right(message_bytes);
            }
            *start += message_bytes;
        }
    }
}

fn read_record<D>(
    mut traffic: ReadTraffic<'_, '_, D>,
    task: &mut Task<'_, '_>,
) -> Result<(), LayerError> {
    let Task::Read(sink) = task else {
        // Every whole record is read as it is received, unless the session has failed there.
        return Err(LayerError::NotOpen);
    };
    match traffic.next_record() {
        Some(Ok(record)) => sink(record.payload),
        Some(Err(error)) => Err(LayerError::Tls(error)),
        None => Ok(()),
    }
}

fn append_payload<D>(
    mut traffic: WriteTraffic<'_, D>,
    wire_out: &mut Vec<u8>,
    task: &Task<'_, '_>,
) -> Result<(), LayerError> {
    let lack = |error| match error {
        EncryptError::InsufficientSize(size) => Lack::Space(size),
        EncryptError::EncryptExhausted => Lack::Other(LayerError::KeysExhausted),
    };
    match task {
        Task::Read(_) => Ok(()),
        Task::Send(plain) => with_space(wire_bytes(plain.len()), wire_out, |_, space| {
            traffic.encrypt(plain, space).map_err(lack)
        }),
        Task::Seal(start) => {
            let end = wire_out.len();
            with_space(wire_bytes(end - start), wire_out, |before, space| {
                let plain = before.get(*start..).unwrap_or_default();
                traffic.encrypt(plain, space).map_err(lack)
            })?;
            wire_out.copy_within(end.., *start);
            wire_out.truncate(wire_out.len() - (end - start));
            Ok(())
        }
        Task::Close => with_space(RECORD_OVERHEAD_BYTES, wire_out, |_, space| {
            traffic.queue_close_notify(space).map_err(lack)
        }),
    }
}

/// Bytes of payload on the wire, rounded up.
const fn wire_bytes(plain_bytes: usize) -> usize {
    plain_bytes + (plain_bytes / RECORD_BYTES + 1) * RECORD_OVERHEAD_BYTES
}

/// Why a write into given space failed.
enum Lack {
    Space(InsufficientSizeError),
    Other(LayerError),
}

fn append_message<D>(
    mut message: EncodeTlsData<'_, D>,
    wire_out: &mut Vec<u8>,
) -> Result<(), LayerError> {
    with_space(0, wire_out, |_, space| {
        message.encode(space).map_err(|error| match error {
            EncodeError::InsufficientSize(size) => Lack::Space(size),
            EncodeError::AlreadyEncoded => Lack::Other(LayerError::NotOpen),
        })
    })
}

/// Grows the output by `bytes`, or as much as the writer then asks for, and cuts off what it left.
///
/// The writer gets the bytes before the space, and the space.
fn with_space(
    bytes: usize,
    wire_out: &mut Vec<u8>,
    mut write: impl FnMut(&[u8], &mut [u8]) -> Result<usize, Lack>,
) -> Result<(), LayerError> {
    let start = wire_out.len();
    let mut end = start + bytes;
    // The second time the size is the requested one.
    for _attempt in 0..2 {
        wire_out.resize(end, 0);
        let (before, space) = wire_out.split_at_mut(start);
        match write(before, space) {
            Ok(written) => {
                wire_out.truncate(start + written);
                return Ok(());
            }
            Err(Lack::Space(size)) => end = start + size.required_size,
            Err(Lack::Other(error)) => {
                wire_out.truncate(start);
                return Err(error);
            }
        }
    }
    wire_out.truncate(start);
    Err(LayerError::NotOpen)
}
