//! One line of the log when a client comes, and one when it goes.

use std::time::Duration;

use thrum_codec::Version;
use thrum_protocol::Time;

use super::Worker;
use crate::ids::{ConnectionKey, Slot};
use crate::metrics::Counter;
use crate::peer::Peer;

/// The lines of one worker in this second.
#[derive(Debug, Default)]
pub(super) struct ClientLines {
    second: Time,
    written: u32,
    /// Since the last line that was written.
    left_out: u64,
}

impl ClientLines {
    /// Whether one more may be written.
    fn has_room(&self, now: Time, most: u32) -> bool {
        self.written < most || now.since(self.second) >= Duration::from_secs(1)
    }

    /// Whether one more may be written; then it tells how many were left out before it.
    fn admit(&mut self, now: Time, most: u32) -> Option<u64> {
        if now.since(self.second) >= Duration::from_secs(1) {
            self.second = now;
            self.written = 0;
        }
        if self.written >= most {
            self.left_out += 1;
            return None;
        }
        self.written += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

impl Worker {
    /// Clients that come and go have lines of their own.
    pub(super) fn has_client_lines(&self) -> bool {
        self.local.settings.client_lines > 0
    }

    /// The next client that comes or goes has a line.
    pub(super) fn has_room_for_client_line(&self) -> bool {
        self.has_client_lines()
            && self
                .client_lines
                .has_room(self.local.now, self.client_lines_max())
    }

    /// Lines of this worker in a second.
    fn client_lines_max(&self) -> u32 {
        let workers = u32::try_from(self.node.workers()).unwrap_or(1);
        self.local.settings.client_lines.div_ceil(workers)
    }

    /// Whether a line may be written now. What was left out before it is told first.
    fn may_write_client_line(&mut self) -> bool {
        if !self.has_client_lines() {
            return false;
        }
        let most = self.client_lines_max();
        let Some(left_out) = self.client_lines.admit(self.local.now, most) else {
            self.local.row().add(Counter::ClientLinesLeftOut, 1);
            return false;
        };
        if left_out > 0 {
            tracing::info!(
                left_out,
                "more clients came and went than log.clients has lines for"
            );
        }
        true
    }

    /// A client has come in. `user` is its name, if somebody has verified one.
    pub(super) fn log_arrival(
        &mut self,
        (key, slot): (ConnectionKey, Slot),
        user: Option<&str>,
        session_present: bool,
    ) {
        if !self.may_write_client_line() {
            return;
        }
        let connection = &self.local.connections[key];
        let (peer, gate, version) = (connection.peer, connection.gate, connection.version);
        let listener = self.local.gate(gate).name.clone();
        let client_id = self.local.clients[slot].session.client_id();
        tracing::info!(
            client_id,
            user,
            %peer,
            version = written(version),
            %listener,
            session_present,
            "client connected"
        );
    }

    /// A client goes; `why` in words. To be called while its session is still there.
    pub(super) fn log_departure(&mut self, slot: Slot, peer: Peer, why: &str) {
        if !self.may_write_client_line() {
            return;
        }
        let client = &self.local.clients[slot];
        let traffic = client.session.traffic();
        let access = client.access.as_deref();
        tracing::info!(
            client_id = client.session.client_id(),
            user = access.and_then(|access| access.identity.username.as_deref()),
            %peer,
            reason = why,
            seconds = traffic.seconds(self.local.now),
            received = traffic.received,
            sent = traffic.sent,
            "client disconnected"
        );
    }
}

const fn written(version: Version) -> &'static str {
    match version {
        Version::V31 => "3.1",
        Version::V311 => "3.1.1",
        Version::V5 => "5.0",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_beyond_those_of_a_second_are_left_out_and_told_with_the_next() {
        let mut lines = ClientLines::default();
        let at = |millis: u64| Time::from_millis(10_000 + millis);
        assert_eq!(lines.admit(at(0), 2), Some(0));
        assert!(lines.has_room(at(1), 2));
        assert_eq!(lines.admit(at(1), 2), Some(0));
        assert!(!lines.has_room(at(2), 2) && lines.has_room(at(1000), 2));
        assert_eq!(lines.admit(at(2), 2), None);
        assert_eq!(lines.admit(at(999), 2), None);
        assert_eq!(lines.admit(at(1000), 2), Some(2));
        assert_eq!(lines.admit(at(1001), 2), Some(0));
    }
}
