//! How long a connection may be silent, and how long its session outlives it.

use core::time::Duration;

use thrum_codec::packet::Disconnect;

use super::Handshake;
use super::packets::protocol_error;
use crate::{Limits, Time, Violation};

/// Keep alive and session expiry of the connection, or of the last one.
#[derive(Debug, Default)]
pub struct Lifetime {
    /// While connected the last sign of life, while away the end of the connection.
    seen: Time,
    /// Seconds; 0 ends the session with the connection, `u32::MAX` never.
    session_expiry: u32,
    /// Seconds; 0 turns it off.
    keep_alive: u16,
    /// The last connection began with an expiry above 0, or the session was restored.
    was_persistent_at_connect: bool,
}

impl Lifetime {
    /// Of a session that waits for its first connection.
    pub(super) fn new(session_expiry: u32) -> Self {
        Self {
            session_expiry,
            ..Self::default()
        }
    }

    /// Of a session that was written down.
    pub(super) fn restore(session_expiry: u32, away_since: Time) -> Self {
        Self {
            seen: away_since,
            session_expiry,
            keep_alive: 0,
            was_persistent_at_connect: session_expiry > 0,
        }
    }

    /// How long the session outlives its connection: seconds, `u32::MAX` for ever.
    pub fn session_expiry(&self) -> u32 {
        self.session_expiry
    }

    /// The session can outlive its connection (expiry above 0).
    pub fn is_persistent(&self) -> bool {
        self.session_expiry > 0
    }

    /// The same as it stood when the client connected: DISCONNECT may have taken it back.
    pub fn was_persistent_at_connect(&self) -> bool {
        self.was_persistent_at_connect
    }

    /// Seconds of silence that the client may keep, as they hold for the connection; 0 is no limit.
    pub fn keep_alive(&self) -> u16 {
        self.keep_alive
    }

    /// A connection begins.
    pub(super) fn begin_connection(&mut self, handshake: &Handshake, now: Time) {
        self.seen = now;
        self.session_expiry = handshake.session_expiry;
        self.keep_alive = handshake.keep_alive;
        self.was_persistent_at_connect = handshake.session_expiry > 0;
    }

    /// The client gave a sign of life, or its connection ended.
    #[inline]
    pub(super) fn saw_client(&mut self, now: Time) {
        self.seen = now;
    }

    /// While connected the last sign of life, while away the end of the connection.
    pub fn seen(&self) -> Time {
        self.seen
    }

    /// DISCONNECT may change the session expiry, but not make the session persistent.
    pub(super) fn handle_disconnect(
        &mut self,
        disconnect: &Disconnect<'_>,
        limits: &Limits,
    ) -> Result<(), Violation> {
        let Some(asked) = disconnect.properties.session_expiry else {
            return Ok(());
        };
        if self.session_expiry == 0 && asked > 0 {
            return Err(protocol_error(
                "session expiry at DISCONNECT but none at CONNECT",
            ));
        }
        self.session_expiry = asked.min(limits.session_expiry_max);
        Ok(())
    }

    /// One and a half keep alives after the last packet.
    pub(super) fn keep_alive_deadline(&self) -> Option<Time> {
        let silence_max = Duration::from_millis(u64::from(self.keep_alive) * 1500);
        (self.keep_alive > 0).then(|| self.seen.plus(silence_max))
    }

    /// When the session ends without its client.
    pub(super) fn expiry_deadline(&self) -> Option<Time> {
        (self.session_expiry != u32::MAX).then(|| self.seen.plus_secs(self.session_expiry))
    }
}
