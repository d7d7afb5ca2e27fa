//! Keep alive, and answers that do not come in time.

use super::Swarm;
use super::outbox::slot;
use super::peer::{Step, Suffering};
use super::ramp::ANSWER_NS_MAX;

/// A tenth of the clients is looked at for deadlines in each of these, so all within a second.
const SWEEP_NS: u64 = 100_000_000;

/// Where the search for passed deadlines stands.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sweep {
    next_ns: u64,
    position: usize,
}

impl Swarm {
    /// Lets a share of the clients see the time: keep alive, and answers that do not come.
    pub(super) fn sweep_deadlines(&mut self, now_ns: u64) {
        if now_ns < self.sweep.next_ns || self.peers.is_empty() {
            return;
        }
        self.sweep.next_ns = now_ns + SWEEP_NS;
        for _ in 0..=self.peers.len() / 10 {
            self.sweep.position = (self.sweep.position + 1) % self.peers.len();
            if let Ok(peer) = u32::try_from(self.sweep.position) {
                self.handle_deadline(peer, now_ns);
            }
        }
    }

    fn handle_deadline(&mut self, peer: u32, now_ns: u64) {
        let state = &mut self.peers[slot(peer)];
        let late = match state.step {
            Step::Failed | Step::Lost | Step::Away => return,
            Step::Opening => Some("no TCP connection in time"),
            Step::Securing => Some("TLS or WebSocket handshake not done in time"),
            Step::Connecting => Some("no CONNACK in time"),
            Step::Subscribing => Some("no SUBACK in time"),
            Step::Ready => None,
        };
        if let Some(reason) = late
            && now_ns.saturating_sub(state.since_ns) > ANSWER_NS_MAX
        {
            self.lose(peer, reason);
            return;
        }
        let is_late = state
            .client
            .next_deadline()
            .is_some_and(|at| at <= self.time);
        if !is_late || state.suffering() != Suffering::None {
            return;
        }
        let start = self.replies.open();
        let outcome = state
            .client
            .handle_timeout(self.time, &mut self.replies.bytes);
        self.replies.close(peer, start);
        if let Err(violation) = outcome {
            self.lose(peer, violation.what);
        }
    }
}
