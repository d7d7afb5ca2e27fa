//! Keep alive, and timeouts of answers.

use thrum_figures::SECOND_NS;

use super::Swarm;
use super::outbox::slot;
use super::peer::{Impairment, Step};
use super::ramp::ANSWER_NS_MAX;

/// Every client is checked for deadlines within this time.
const ROUND_NS: u64 = SECOND_NS;

/// The longest time between two looks at some of them.
const REST_NS_MAX: u64 = ROUND_NS / 10;

/// Clients checked at once, about: 50 µs, in which no message is late.
const CLIENTS_AT_ONCE: u64 = 2_048;

/// Position of the search for passed deadlines.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sweep {
    at_ns: u64,
    position: usize,
}

impl Sweep {
    /// When some of this many clients are checked next; never without clients.
    pub(super) fn next_ns(self, clients: usize) -> u64 {
        if clients == 0 {
            return u64::MAX;
        }
        let parts = number(clients) / CLIENTS_AT_ONCE;
        self.at_ns + (ROUND_NS / parts.max(1)).min(REST_NS_MAX)
    }

    /// Their number: those of the time since the last call.
    fn share(self, clients: usize, now_ns: u64) -> u64 {
        let passed_ns = now_ns.saturating_sub(self.at_ns).min(ROUND_NS);
        (number(clients) * passed_ns / ROUND_NS + 1).min(number(clients))
    }
}

impl Swarm {
    /// Handles the deadlines of a share of the clients: keep alive, and timeouts of answers.
    pub(super) fn sweep_deadlines(&mut self, now_ns: u64) {
        if now_ns < self.sweep.next_ns(self.peers.len()) {
            return;
        }
        let share = self.sweep.share(self.peers.len(), now_ns);
        self.sweep.at_ns = now_ns;
        for _ in 0..share {
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
        if !is_late || state.impairment() != Impairment::None {
            return;
        }
        let start = self.out.replies.open();
        let outcome = state
            .client
            .handle_timeout(self.time, &mut self.out.replies.bytes);
        self.out.replies.close(peer, start);
        if let Err(violation) = outcome {
            self.lose(peer, violation.what);
        }
    }
}

fn number(clients: usize) -> u64 {
    u64::try_from(clients).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks of a second, and the most clients of one of them.
    fn check(clients: usize) -> (u32, u64) {
        let mut sweep = Sweep {
            at_ns: SECOND_NS,
            position: 0,
        };
        let (mut looks, mut seen, mut most) = (0, 0, 0);
        while sweep.next_ns(clients) <= 2 * SECOND_NS {
            let now_ns = sweep.next_ns(clients);
            let share = sweep.share(clients, now_ns);
            sweep.at_ns = now_ns;
            looks += 1;
            seen += share;
            most = most.max(share);
        }
        assert!(seen >= number(clients), "{seen} of {clients}");
        (looks, most)
    }

    #[test]
    fn every_client_is_looked_at_within_a_second_and_few_at_once() {
        assert_eq!(check(1), (10, 1));
        assert_eq!(check(1_000), (10, 101));
        let (looks, most) = check(1_000_000);
        assert!(looks < 500 && most < 2_100, "{looks} looks, {most} at once");
    }

    #[test]
    fn a_look_that_is_late_takes_more_clients_but_none_twice() {
        let sweep = Sweep {
            at_ns: SECOND_NS,
            position: 0,
        };
        let late_ns = SECOND_NS + SECOND_NS / 2;
        assert_eq!(sweep.share(1_000_000, late_ns), 500_001);
        assert_eq!(sweep.share(1_000_000, 9 * SECOND_NS), 1_000_000);
    }
}
