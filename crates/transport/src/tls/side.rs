//! The two ends of a session: the differences between the library's client and its server.

use std::ops::DerefMut;

use rustls::Error;
use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{UnbufferedConnectionCommon, UnbufferedStatus};

use crate::client_fault::ClientFault;
use crate::error::LayerError;
use crate::tls::notes;

/// A connection of the library.
pub(crate) trait Side: DerefMut<Target = UnbufferedConnectionCommon<Self::Data>> {
    type Data;

    /// Bytes that may wait for the rest of a record or of a handshake message, the certificates of
    /// the peer the longest of them.
    const HELD_BYTES_MAX: usize;

    fn process<'c, 'i>(&'c mut self, records: &'i mut [u8])
    -> UnbufferedStatus<'c, 'i, Self::Data>;

    /// A text for the reader of errors about this end.
    fn fault(error: Error) -> LayerError;
}

impl Side for UnbufferedClientConnection {
    type Data = ClientConnectionData;

    const HELD_BYTES_MAX: usize = 64 * 1024;

    fn process<'c, 'i>(
        &'c mut self,
        records: &'i mut [u8],
    ) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(records)
    }

    fn fault(error: Error) -> LayerError {
        LayerError::from_tls(error)
    }
}

impl Side for UnbufferedServerConnection {
    type Data = ServerConnectionData;

    // An unauthenticated peer gets less: one record and a chain of some ten certificates.
    const HELD_BYTES_MAX: usize = 32 * 1024;

    fn process<'c, 'i>(
        &'c mut self,
        records: &'i mut [u8],
    ) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(records)
    }

    fn fault(error: Error) -> LayerError {
        ClientFault::from_tls(error, notes::take_refused()).into()
    }
}
