//! One log line when a client connects, and one when it disconnects.

use std::time::Duration;

use thrum_codec::Version;
use thrum_engine::Engine;
use thrum_engine::ids::Slot;
use thrum_engine::node::metrics::Counter;
use thrum_engine::peer::Peer;
use thrum_protocol::Time;

/// The log lines of one worker in this second.
#[derive(Debug, Default)]
pub(crate) struct ClientLines {
    second: Time,
    written: u32,
    /// Lines omitted since the last line that was written.
    left_out: u64,
    /// The limit of lines in one second; 0 turns the lines off.
    most: u32,
}

impl ClientLines {
    /// Sets this worker's share of the node's lines per second.
    pub(crate) fn share(&mut self, of_node: u32, workers: usize) {
        self.most = of_node.div_ceil(u32::try_from(workers).unwrap_or(1));
    }

    /// Whether connections and disconnections of clients are logged.
    pub(crate) const fn are_wanted(&self) -> bool {
        self.most > 0
    }

    /// Whether one more may be written.
    fn may_have(&self, now: Time, most: u32) -> bool {
        self.written < most || now.since(self.second) >= Duration::from_secs(1)
    }

    /// Whether another line may be written; if so, returns the number of lines omitted before it.
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

/// A client that has connected.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival<'a> {
    pub(crate) slot: Slot,
    pub(crate) peer: Peer,
    pub(crate) listener: &'a str,
    pub(crate) version: Version,
    /// Its user name, if it is verified.
    pub(crate) user: Option<&'a str>,
    pub(crate) session_present: bool,
}

impl ClientLines {
    /// The next client that connects or disconnects gets a line.
    pub(crate) fn has_room(&self, engine: &Engine) -> bool {
        self.are_wanted() && self.may_have(engine.core.turn.now, self.most)
    }

    /// Whether a line may be written now. Reports the omitted lines first.
    fn may_write(&mut self, engine: &Engine) -> bool {
        if !self.are_wanted() {
            return false;
        }
        let Some(left_out) = self.admit(engine.core.turn.now, self.most) else {
            engine.core.row().add(Counter::ClientLinesLeftOut, 1);
            return false;
        };
        if left_out > 0 {
            tracing::info!(
                left_out,
                "more clients connected and disconnected than log.clients has lines for"
            );
        }
        true
    }

    /// Logs that a client has connected.
    pub(crate) fn log_arrival(&mut self, engine: &Engine, arrival: Arrival<'_>) {
        if !self.may_write(engine) {
            return;
        }
        let client_id = engine.core.sessions[arrival.slot].session.client_id();
        tracing::info!(
            client_id,
            user = arrival.user,
            peer = %arrival.peer,
            version = arrival.version.name(),
            listener = %arrival.listener,
            session_present = arrival.session_present,
            "client connected"
        );
    }

    /// Logs that a client disconnects; `why` is a text. Call it while the client's session still
    /// exists.
    pub(crate) fn log_departure(&mut self, engine: &Engine, slot: Slot, peer: Peer, why: &str) {
        if !self.may_write(engine) {
            return;
        }
        let client = &engine.core.sessions[slot];
        let traffic = client.session.link().traffic();
        let access = client.access.as_deref();
        tracing::info!(
            client_id = client.session.client_id(),
            user = access.and_then(|access| access.identity.username.as_deref()),
            %peer,
            reason = why,
            seconds = traffic.seconds(engine.core.turn.now),
            received = traffic.received,
            sent = traffic.sent,
            "client disconnected"
        );
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
        assert!(lines.may_have(at(1), 2));
        assert_eq!(lines.admit(at(1), 2), Some(0));
        assert!(!lines.may_have(at(2), 2) && lines.may_have(at(1000), 2));
        assert_eq!(lines.admit(at(2), 2), None);
        assert_eq!(lines.admit(at(999), 2), None);
        assert_eq!(lines.admit(at(1000), 2), Some(2));
        assert_eq!(lines.admit(at(1001), 2), Some(0));
    }
}
