//! A connection as its own thread sees it.

use std::sync::Arc;

use thrum_codec::Version;

use super::route::Route;
use super::shared_socket::SharedSocket;

/// Least room for one read.
pub(super) const READ_BYTES: usize = 64 * 1024;

/// One connection. An idle one owns only its socket.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) socket: Arc<SharedSocket>,
    /// Known from CONNECT on.
    pub(super) version: Option<Version>,
    /// Its subscriptions.
    pub(super) routes: Vec<Route>,
    /// The connection ends after the readable bytes.
    pub(super) has_ended: bool,
    /// The start of an incomplete packet.
    partial: Vec<u8>,
}

/// A buffer while a connection is read.
#[derive(Debug)]
pub(super) struct Input {
    pub(super) bytes: Vec<u8>,
    /// It is the connection's, not the thread's.
    is_own: bool,
}

impl Client {
    pub(super) const fn new(socket: Arc<SharedSocket>) -> Self {
        Self {
            socket,
            version: None,
            routes: Vec::new(),
            has_ended: false,
            partial: Vec::new(),
        }
    }

    /// A buffer that begins with what is there of a packet. A short start is copied into the
    /// thread's buffer; a long one stays where it is and is read on there, so that no byte of a
    /// long packet is copied again and again.
    #[inline]
    pub(super) fn begin_input(&mut self, shared: &mut Vec<u8>) -> Input {
        let is_own = self.partial.len() >= READ_BYTES;
        let mut bytes = std::mem::take(if is_own { &mut self.partial } else { shared });
        if !is_own {
            bytes.extend_from_slice(&self.partial);
            self.partial.clear();
        }
        bytes.reserve(READ_BYTES);
        Input { bytes, is_own }
    }

    /// Keeps what was not handled and gives the thread its buffer back.
    #[inline]
    pub(super) fn end_input(&mut self, mut input: Input, handled: usize, shared: &mut Vec<u8>) {
        if !input.is_own {
            self.partial.extend_from_slice(&input.bytes[handled..]);
            input.bytes.clear();
            *shared = input.bytes;
        } else if handled < input.bytes.len() {
            input.bytes.drain(..handled);
            self.partial = input.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    fn client() -> Client {
        let (ours, _) = UnixStream::pair().unwrap();
        Client::new(Arc::new(SharedSocket::new(ours.into())))
    }

    #[test]
    fn a_short_start_of_a_packet_is_kept_apart_from_the_buffer_of_the_thread() {
        let (mut client, mut shared) = (client(), Vec::new());
        let mut input = client.begin_input(&mut shared);
        input.bytes.extend_from_slice(b"packet pac");
        client.end_input(input, 7, &mut shared);
        assert!(shared.is_empty() && shared.capacity() >= READ_BYTES);
        let mut input = client.begin_input(&mut shared);
        assert_eq!(input.bytes, b"pac");
        input.bytes.extend_from_slice(b"ket");
        client.end_input(input, 6, &mut shared);
        let input = client.begin_input(&mut shared);
        assert!(input.bytes.is_empty());
    }

    #[test]
    fn a_long_start_of_a_packet_is_read_on_in_place() {
        let (mut client, mut shared) = (client(), Vec::new());
        let mut input = client.begin_input(&mut shared);
        input.bytes.resize(READ_BYTES, 7);
        client.end_input(input, 0, &mut shared);
        let place = client.partial.as_ptr();
        let mut input = client.begin_input(&mut shared);
        assert_eq!(input.bytes.len(), READ_BYTES);
        assert!(input.is_own && shared.capacity() >= READ_BYTES);
        input.bytes.extend_from_slice(b"ends next");
        let grown = input.bytes.as_ptr();
        client.end_input(input, READ_BYTES + 5, &mut shared);
        assert_eq!(client.partial, b"next");
        assert!(place != client.partial.as_ptr() || place == grown);
        let input = client.begin_input(&mut shared);
        assert_eq!(input.bytes, b"next");
        assert!(!input.is_own);
        client.end_input(input, 4, &mut shared);
        assert!(client.partial.is_empty());
    }
}
