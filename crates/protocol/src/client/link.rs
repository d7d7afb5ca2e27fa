//! The connection to the server: how far it is, and what is written to it.

use alloc::vec::Vec;
use core::time::Duration;

use thrum_codec::packet::Packet;
use thrum_codec::{EncodeError, ReasonCode, Version, encode};

use super::server_limits::ServerLimits;
use crate::{Time, Violation};

/// The connection: its phase, what the server allows on it, and when each side has to be heard.
#[derive(Debug)]
pub(super) struct ServerLink {
    limits: ServerLimits,
    last_sent: Time,
    /// Since when a CONNACK or PINGRESP is awaited.
    awaiting: Option<Time>,
    version: Version,
    phase: Phase,
}

/// How far the connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// No connection, or one that must carry nothing more.
    Disconnected,
    /// CONNECT sent.
    Connecting,
    /// Accepted.
    Connected,
}

/// Why a packet was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SendError {
    /// Over the server's maximum packet size.
    TooLarge,
    Encode(EncodeError),
}

impl ServerLink {
    /// There is none yet.
    pub(super) fn new(version: Version, limits: ServerLimits) -> Self {
        Self {
            limits,
            last_sent: Time::default(),
            awaiting: None,
            version,
            phase: Phase::Disconnected,
        }
    }

    /// CONNECT was written.
    pub(super) fn begin(&mut self, now: Time) {
        self.phase = Phase::Connecting;
        self.last_sent = now;
        self.awaiting = Some(now);
    }

    /// The server accepts the connection.
    pub(super) fn accept(&mut self, limits: ServerLimits) {
        self.limits = limits;
        self.phase = Phase::Connected;
    }

    /// The connection must carry nothing more.
    pub(super) fn close(&mut self) {
        self.phase = Phase::Disconnected;
    }

    /// The connection is gone.
    pub(super) fn end(&mut self) {
        self.phase = Phase::Disconnected;
        self.awaiting = None;
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    /// The server has accepted the connection.
    pub(super) fn is_connected(&self) -> bool {
        self.phase == Phase::Connected
    }

    /// What the server allows.
    pub(super) fn limits(&self) -> &ServerLimits {
        &self.limits
    }

    /// DISCONNECT decides whether the session can be resumed.
    pub(super) fn set_resumable(&mut self, is_resumable: bool) {
        self.limits.resumable = is_resumable;
    }

    /// A packet came, behind which the awaited one may stand in line.
    pub(super) fn heard(&mut self, now: Time) {
        self.awaiting = self.awaiting.map(|_| now);
    }

    /// The awaited packet came.
    pub(super) fn answered(&mut self) {
        self.awaiting = None;
    }

    /// A PINGRESP is awaited, if nothing was already.
    pub(super) fn await_pong(&mut self, now: Time) {
        self.awaiting.get_or_insert(now);
    }

    /// Until when the awaited packet has to come.
    pub(super) fn response_deadline(&self, timeout: Duration) -> Option<Time> {
        Some(self.awaiting?.plus(timeout))
    }

    /// Up to a second before the keep alive is over, so that a late wake-up does not overdraw it.
    pub(super) fn ping_deadline(&self) -> Option<Time> {
        let keep_alive = u64::from(self.limits.keep_alive) * 1000;
        let early = (keep_alive / 4).min(1000);
        (keep_alive != 0).then(|| {
            self.last_sent
                .plus(Duration::from_millis(keep_alive - early))
        })
    }

    /// Writes a packet unless it is over the server's maximum packet size.
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

    /// As [`Self::write`], for a packet behind which the connection ends.
    pub(super) fn write_last(
        &self,
        packet: &Packet<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), SendError> {
        let start = out.len();
        encode(packet, self.version, out).map_err(SendError::Encode)?;
        self.check_size(start, out)
    }

    /// Takes back what was written from `start` on if the server does not accept a packet of that
    /// size.
    pub(super) fn check_size(&self, start: usize, out: &mut Vec<u8>) -> Result<(), SendError> {
        // [MQTT-3.2.2-15]
        if self.limits.fits(out.len() - start) {
            return Ok(());
        }
        out.truncate(start);
        Err(SendError::TooLarge)
    }

    /// Writes a packet that the protocol demands now.
    pub(super) fn reply(
        &mut self,
        packet: &Packet<'_>,
        now: Time,
        out: &mut Vec<u8>,
    ) -> Result<(), Violation> {
        self.write(packet, now, out).map_err(|_| {
            Violation::new(
                ReasonCode::PacketTooLarge,
                "maximum packet size leaves no room for an answer",
            )
        })
    }

    /// Something was written.
    pub(super) fn mark_sent(&mut self, now: Time) {
        self.last_sent = now;
    }
}
