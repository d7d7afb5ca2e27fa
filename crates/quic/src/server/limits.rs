//! Limits of a listener.

use std::time::Duration;

use crate::{PIPE_BYTES, WINDOW_BYTES};

/// Limits of one listener, all addresses together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Threads that encrypt and move bytes; default half of the cores, 1 to 4, because the rest is
    /// the broker's.
    pub threads: usize,
    /// Connections at a time, those in their handshake included; more are refused. Default
    /// 1,000,000: the limit of open files, of which each connection takes two, is reached first.
    pub connections_max: usize,
    /// Handshakes at a time; more are not answered, so that their clients try again after a second.
    /// Default 1,024: about as many as two threads finish in a second.
    pub handshakes_max: usize,
    /// Handshakes at a time above which a client has to prove its address first, by a Retry of one
    /// more round trip: an attacker then cannot make the listener work under forged addresses.
    /// Default 128: it is not reached in ordinary operation.
    pub handshakes_unproven_max: usize,
    /// Time from a client's first packet to its first byte of MQTT; default 10 seconds, the usual
    /// time for CONNECT.
    pub handshake_time: Duration,
    /// Bytes that QUIC holds for a connection in each direction, received and not read or sent and
    /// not acknowledged; default 256 KiB: 20 Mbit/s at a round trip of 100 ms.
    pub window_bytes: u32,
    /// Bytes that the socket pair holds for a connection in each direction; default 128 KiB.
    pub pipe_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            threads: (cores / 2).clamp(1, 4),
            connections_max: 1_000_000,
            handshakes_max: 1_024,
            handshakes_unproven_max: 128,
            handshake_time: Duration::from_secs(10),
            window_bytes: WINDOW_BYTES,
            pipe_bytes: PIPE_BYTES,
        }
    }
}
