//! One TLS session over the unbuffered interface of rustls.
//!
//! The buffered interface keeps 4 KiB per idle connection to read into; here the bytes of an
//! incomplete record are all that is held.

use std::sync::Arc;

use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::pki_types::ServerName;
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncodeTlsData, EncryptError, InsufficientSizeError, ReadTraffic,
    WriteTraffic,
};
use rustls::{ClientConfig, HandshakeKind, ProtocolVersion};

use crate::error::LayerError;
use crate::tls::TlsSummary;

/// Bytes that may wait for the rest of a record or of a handshake message, the certificates of the
/// server the longest of them.
const INCOMING_BYTES_MAX: usize = 64 * 1024;

/// Payload of one record.
const RECORD_BYTES: usize = 16 * 1024;

/// What a record adds to its payload, rounded up.
const RECORD_OVERHEAD_BYTES: usize = 64;

/// The client's end of one session; not to be used after an error.
pub(crate) struct Session {
    connection: UnbufferedClientConnection,
    /// Bytes of the server that are no whole record yet.
    incoming: Vec<u8>,
    peer_closed: bool,
    closed: bool,
}

/// Takes the payload of one record.
type Sink<'a> = dyn FnMut(&[u8]) -> Result<(), LayerError> + 'a;

/// What a session is asked to do beside its own messages.
enum Task<'a, 'b> {
    Read(&'a mut Sink<'b>),
    Send(&'a [u8]),
    Close,
}

impl Session {
    pub(crate) fn new(
        config: Arc<ClientConfig>,
        server_name: ServerName<'static>,
    ) -> Result<Self, LayerError> {
        let connection =
            UnbufferedClientConnection::new(config, server_name).map_err(LayerError::Tls)?;
        Ok(Self {
            connection,
            incoming: Vec::new(),
            peer_closed: false,
            closed: false,
        })
    }

    /// The handshake is done and no end was sent.
    pub(crate) fn is_open(&self) -> bool {
        !self.closed && !self.connection.is_handshaking()
    }

    /// The server has said that it sends no more.
    pub(crate) const fn is_closed_by_peer(&self) -> bool {
        self.peer_closed
    }

    /// Appends the first message of the handshake.
    pub(crate) fn start(&mut self, wire_out: &mut Vec<u8>) -> Result<(), LayerError> {
        self.receive(&[], wire_out, &mut |_| Ok(()))
    }

    /// Takes bytes of the server; answers of the handshake go to `wire_out`, payload to the sink.
    pub(crate) fn receive(
        &mut self,
        wire_in: &[u8],
        wire_out: &mut Vec<u8>,
        sink: &mut Sink<'_>,
    ) -> Result<(), LayerError> {
        self.incoming.extend_from_slice(wire_in);
        let result = self.advance(wire_out, &mut Task::Read(sink));
        if self.incoming.is_empty() || self.peer_closed {
            // An idle connection holds nothing, and what follows the close alert is ignored.
            self.incoming = Vec::new();
        }
        result?;
        if self.incoming.len() > INCOMING_BYTES_MAX {
            return Err(LayerError::TlsMessageTooLong);
        }
        Ok(())
    }

    /// Encrypts payload.
    pub(crate) fn send(&mut self, plain: &[u8], wire_out: &mut Vec<u8>) -> Result<(), LayerError> {
        self.advance(wire_out, &mut Task::Send(plain))
    }

    /// Appends the close alert, if the session is open and it was not sent before.
    pub(crate) fn close(&mut self, wire_out: &mut Vec<u8>) {
        if !self.closed {
            self.closed = true;
            // A session that cannot write has nothing to close.
            let _unable = self.advance(wire_out, &mut Task::Close);
        }
    }

    /// Reads and answers what has come, then writes what the task wants written.
    ///
    /// Each round makes progress: it consumes input, empties a queue of rustls, or ends the loop.
    fn advance(
        &mut self,
        wire_out: &mut Vec<u8>,
        task: &mut Task<'_, '_>,
    ) -> Result<(), LayerError> {
        // Bytes at the front of `incoming` that are done with.
        let mut done = 0;
        let result = loop {
            // Always the same bytes, for rustls remembers how far it has come in them.
            let unread = self.incoming.get_mut(done..).unwrap_or_default();
            let status = self.connection.process_tls_records(unread);
            done += status.discard;
            let step = match status.state {
                Ok(ConnectionState::EncodeTlsData(message)) => append_message(message, wire_out),
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
                Err(error) => Err(LayerError::from_tls(error)),
            };
            if step.is_err() {
                break step;
            }
        };
        self.incoming.drain(..done.min(self.incoming.len()));
        if result.is_err() {
            self.append_alerts(wire_out);
        }
        result
    }

    /// Appends what tells the server why the session failed.
    ///
    /// rustls must not see the input again that it has refused, so it is asked only while
    /// messages wait: it hands them out before it looks at input.
    fn append_alerts(&mut self, wire_out: &mut Vec<u8>) {
        while self.connection.wants_write() {
            let step = match self.connection.process_tls_records(&mut []).state {
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

    /// What the handshake has agreed on, once it is done.
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
        })
    }
}

impl Task<'_, '_> {
    const fn is_read(&self) -> bool {
        matches!(self, Self::Read(_))
    }
}

fn read_record(
    mut traffic: ReadTraffic<'_, '_, ClientConnectionData>,
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

fn append_payload(
    mut traffic: WriteTraffic<'_, ClientConnectionData>,
    wire_out: &mut Vec<u8>,
    task: &Task<'_, '_>,
) -> Result<(), LayerError> {
    let lack = |error| match error {
        EncryptError::InsufficientSize(size) => Lack::Space(size),
        EncryptError::EncryptExhausted => Lack::Other(LayerError::KeysExhausted),
    };
    match task {
        Task::Read(_) => Ok(()),
        Task::Send(plain) => {
            let records = plain.len() / RECORD_BYTES + 1;
            let bytes = plain.len() + records * RECORD_OVERHEAD_BYTES;
            with_space(bytes, wire_out, |space| {
                traffic.encrypt(plain, space).map_err(lack)
            })
        }
        Task::Close => with_space(RECORD_OVERHEAD_BYTES, wire_out, |space| {
            traffic.queue_close_notify(space).map_err(lack)
        }),
    }
}

/// Why a write into given space failed.
enum Lack {
    Space(InsufficientSizeError),
    Other(LayerError),
}

fn append_message(
    mut message: EncodeTlsData<'_, ClientConnectionData>,
    wire_out: &mut Vec<u8>,
) -> Result<(), LayerError> {
    with_space(0, wire_out, |space| {
        message.encode(space).map_err(|error| match error {
            EncodeError::InsufficientSize(size) => Lack::Space(size),
            EncodeError::AlreadyEncoded => Lack::Other(LayerError::NotOpen),
        })
    })
}

/// Grows the output by `bytes`, or as much as the writer then asks for, and cuts off what it left.
fn with_space(
    bytes: usize,
    wire_out: &mut Vec<u8>,
    mut write: impl FnMut(&mut [u8]) -> Result<usize, Lack>,
) -> Result<(), LayerError> {
    let start = wire_out.len();
    let mut end = start + bytes;
    // The second time the size is the one that was asked for.
    for _attempt in 0..2 {
        wire_out.resize(end, 0);
        match write(wire_out.get_mut(start..).unwrap_or_default()) {
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
