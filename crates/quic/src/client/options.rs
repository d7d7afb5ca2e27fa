//! Options of a dialer, and the state of its connections.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::DialError;
use crate::{PIPE_BYTES, WINDOW_BYTES};

/// Options of a dialer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DialOptions {
    /// Threads that encrypt and move bytes; default 1, enough for some ten thousand messages per
    /// second.
    pub threads: usize,
    /// Addresses of this machine to connect from in turn; default none, the kernel chooses.
    pub sources: Vec<IpAddr>,
    /// Handshakes at a time; further ones wait for their turn. Default 256: they keep a processor
    /// busy over a round trip of 100 ms, and the answers to all of them fit into the buffer of a
    /// UDP socket.
    ///
    /// A thousand simultaneous handshakes would each take as long as all of them together, and on a
    /// busy machine none would be done in time.
    pub handshakes_max: usize,
    /// Time for the handshake, from its turn on; default 10 seconds.
    pub handshake_time: Duration,
    /// Bytes that QUIC holds for a connection in each direction; default 256 KiB.
    pub window_bytes: u32,
    /// Bytes that the socket pair holds for a connection in each direction; default 128 KiB.
    pub pipe_bytes: usize,
}

impl Default for DialOptions {
    fn default() -> Self {
        Self {
            threads: 1,
            sources: Vec::new(),
            handshakes_max: 256,
            handshake_time: Duration::from_secs(10),
            window_bytes: WINDOW_BYTES,
            pipe_bytes: PIPE_BYTES,
        }
    }
}

/// The state of a dialled connection.
#[derive(Clone, Debug, Default)]
pub struct Dialing(Arc<OnceLock<DialError>>);

impl Dialing {
    /// Why the socket has ended; none while it is open, and if the server ended MQTT regularly.
    ///
    /// It is set before the end of the socket is visible.
    pub fn failure(&self) -> Option<&DialError> {
        self.0.get()
    }

    /// Notes why it has ended: a connection ends once.
    pub(super) fn fail(&self, error: DialError) {
        self.0.get_or_init(|| error);
    }
}
