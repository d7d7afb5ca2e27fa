//! Keep alive of a connection and expiry of its session.

use core::time::Duration;

use thrum_codec::packet::Disconnect;

use super::Handshake;
use super::packets::protocol_error;
use crate::{Limits, Time, Violation};

/// Keep alive and session expiry of the current or last connection.
#[derive(Debug, Default)]
pub struct Lifetime {
    /// Time of the last packet while connected, of the end of the connection while disconnected.
    last_activity: Time,
    /// Seconds; with 0 the session ends with the connection, with `u32::MAX` it never expires.
    session_expiry: u32,
    /// Seconds; 0 turns it off.
    keep_alive: u16,
    /// Whether the last connection started with an expiry above 0, or the session was restored.
    was_persistent_at_connect: bool,
}

impl Lifetime {
    /// Lifetime of a session before its first connection.
    pub(super) fn new(session_expiry: u32) -> Self {
        Self {
            session_expiry,
            ..Self::default()
        }
    }

    /// Lifetime of a restored session.
    pub(super) fn restore(session_expiry: u32, away_since: Time) -> Self {
        Self {
            last_activity: away_since,
            session_expiry,
            keep_alive: 0,
            was_persistent_at_connect: session_expiry > 0,
        }
    }

    /// Seconds that the session outlives its connection; `u32::MAX` for ever.
    pub fn session_expiry(&self) -> u32 {
        self.session_expiry
    }

    /// Whether the session can outlive its connection (expiry above 0).
    pub fn is_persistent(&self) -> bool {
        self.session_expiry > 0
    }

    /// The same at the time of CONNECT: DISCONNECT may have reduced the expiry to 0.
    pub fn was_persistent_at_connect(&self) -> bool {
        self.was_persistent_at_connect
    }

    /// Seconds of silence that the client may keep, as they hold for the connection; 0 is no limit.
    pub fn keep_alive(&self) -> u16 {
        self.keep_alive
    }

    /// Records the start of a connection.
    pub(super) fn begin_connection(&mut self, handshake: &Handshake, now: Time) {
        self.last_activity = now;
        self.session_expiry = handshake.session_expiry;
        self.keep_alive = handshake.keep_alive;
        self.was_persistent_at_connect = handshake.session_expiry > 0;
    }

    /// Records a packet of the client, or the end of its connection.
    #[inline]
    pub(super) fn record_activity(&mut self, now: Time) {
        self.last_activity = now;
    }

    /// Time of the last packet, or of the end of the connection.
    pub fn last_activity(&self) -> Time {
        self.last_activity
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
                "session expiry in DISCONNECT but none in CONNECT",
            ));
        }
        self.session_expiry = asked.min(limits.session_expiry_max);
        Ok(())
    }

    /// One and a half times the keep alive after the last packet.
    pub(super) fn keep_alive_deadline(&self) -> Option<Time> {
        let silence_max = Duration::from_millis(u64::from(self.keep_alive) * 1500);
        (self.keep_alive > 0).then(|| self.last_activity.plus(silence_max))
    }

    /// Time at which the session expires without a connection.
    pub(super) fn expiry_deadline(&self) -> Option<Time> {
        (self.session_expiry != u32::MAX).then(|| self.last_activity.plus_secs(self.session_expiry))
    }
}
