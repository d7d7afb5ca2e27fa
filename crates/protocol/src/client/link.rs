//! The connection to the server: its phase, and the packets written to it.

use alloc::vec::Vec;
use core::time::Duration;

use thrum_codec::packet::Packet;
use thrum_codec::{EncodeError, ReasonCode, Version, encode};

use super::server_limits::ServerLimits;
use crate::{Time, Violation};

/// The connection: its phase, the server's limits, and the deadlines of both sides.
#[derive(Debug)]
pub(super) struct ServerLink {
    limits: ServerLimits,
    last_sent: Time,
    /// Time since when a CONNACK or PINGRESP has been expected.
    awaiting: Option<Time>,
    version: Version,
    phase: Phase,
}

/// Phase of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// There is no connection, or nothing more may be written to it.
    Disconnected,
    /// CONNECT was sent.
    Connecting,
    /// The server accepted the connection.
    Connected,
}

/// Reason why a packet was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SendError {
    /// The packet exceeds the server's maximum packet size.
    TooLarge,
    Encode(EncodeError),
}

impl ServerLink {
    /// Creates a link without connection.
    pub(super) fn new(version: Version, limits: ServerLimits) -> Self {
        Self {
            limits,
            last_sent: Time::default(),
            awaiting: None,
            version,
            phase: Phase::Disconnected,
        }
    }

    /// Records that CONNECT was written.
    pub(super) fn begin(&mut self, now: Time) {
        self.phase = Phase::Connecting;
        self.last_sent = now;
        self.awaiting = Some(now);
    }

    /// Records that the server accepted the connection.
    pub(super) fn accept(&mut self, limits: ServerLimits) {
        self.limits = limits;
        self.phase = Phase::Connected;
    }

    /// Stops writing to the connection.
    pub(super) fn close(&mut self) {
        self.phase = Phase::Disconnected;
    }

    /// Records that the connection is lost.
    pub(super) fn end(&mut self) {
        self.phase = Phase::Disconnected;
        self.awaiting = None;
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    /// Whether the server has accepted the connection.
    pub(super) fn is_connected(&self) -> bool {
        self.phase == Phase::Connected
    }

    /// The server's limits.
    pub(super) fn limits(&self) -> &ServerLimits {
        &self.limits
    }

    /// Sets whether the session can be resumed, which the DISCONNECT decides.
    pub(super) fn set_resumable(&mut self, is_resumable: bool) {
        self.limits.resumable = is_resumable;
    }

    /// Restarts the response timeout: a packet arrived, and the expected one may be queued behind
    /// it.
    pub(super) fn record_activity(&mut self, now: Time) {
        self.awaiting = self.awaiting.map(|_| now);
    }

    /// Records that the expected packet arrived.
    pub(super) fn answered(&mut self) {
        self.awaiting = None;
    }

    /// Expects a PINGRESP, unless a packet is already expected.
    pub(super) fn await_pong(&mut self, now: Time) {
        self.awaiting.get_or_insert(now);
    }

    /// Deadline for the expected packet.
    pub(super) fn response_deadline(&self, timeout: Duration) -> Option<Time> {
        Some(self.awaiting?.plus(timeout))
    }

    /// Up to a second before the keep alive ends, so that a late wake-up does not exceed it.
    pub(super) fn ping_deadline(&self) -> Option<Time> {
        let keep_alive = u64::from(self.limits.keep_alive) * 1000;
        let early = (keep_alive / 4).min(1000);
        (keep_alive != 0).then(|| {
            self.last_sent
                .plus(Duration::from_millis(keep_alive - early))
        })
    }

    /// Writes a packet unless it exceeds the server's maximum packet size.
    pub(super) fn write(
        &mut self,
        packet: &Packet<'_>,
        now: Time,
        out: &mut Vec<u8>,
    ) -> Result<(), SendError> {
        self.write_last(packet, out)?;
        self.last_sent = now;
        Ok(())
    }

    /// As [`Self::write`], for the last packet of the connection.
    pub(super) fn write_last(
        &self,
        packet: &Packet<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), SendError> {
        let start = out.len();
        encode(packet, self.version, out).map_err(SendError::Encode)?;
        self.check_size(start, out)
    }

    /// Removes the bytes from `start` on if the server does not accept a packet of that size.
    pub(super) fn check_size(&self, start: usize, out: &mut Vec<u8>) -> Result<(), SendError> {
        // [MQTT-3.2.2-15]
        if self.limits.fits(out.len() - start) {
            return Ok(());
        }
        out.truncate(start);
        Err(SendError::TooLarge)
    }

    /// Writes a packet that the protocol requires now.
    pub(super) fn reply(
        &mut self,
        packet: &Packet<'_>,
        now: Time,
        out: &mut Vec<u8>,
    ) -> Result<(), Violation> {
        self.write(packet, now, out).map_err(|_| {
            Violation::new(
                ReasonCode::PacketTooLarge,
                "maximum packet size leaves no room for a reply",
            )
        })
    }

    /// Records the time of the last write.
    pub(super) fn mark_sent(&mut self, now: Time) {
        self.last_sent = now;
    }
}
