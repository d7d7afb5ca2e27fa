//! The end of a thread: its clients disconnect, and it hands over its counts.

use thrum_codec::ReasonCode;
use thrum_figures::{SECOND_NS, nanos};
use thrum_load::scenario::Group;
use thrum_load::thread_report::{Absence, PublisherReport, Role, SubscriberReport, ThreadReport};

use super::outbox::slot;
use super::peer::{Peer, Step};
use super::setup::GroupSettings;
use super::{Swarm, tally};

/// A client that was lost this shortly before the end, its longest wait left out, is still on its
/// way back.
const COME_BACK_NS: u64 = 2 * SECOND_NS;

impl Swarm {
    /// Disconnects, so that no will is published and no session is kept.
    pub(super) fn disconnect_all(&mut self) {
        self.tick();
        for peer in 0..u32::try_from(self.peers.len()).unwrap_or(u32::MAX) {
            let state = &mut self.peers[slot(peer)];
            let start = self.out.replies.open();
            if state.step == Step::Ready {
                state
                    .client
                    .disconnect(ReasonCode::Success, Some(0), &mut self.out.replies.bytes);
            }
            self.out.replies.close(peer, start);
        }
        self.flush_replies();
    }

    pub(super) fn into_report(mut self) -> ThreadReport {
        let now_ns = self.now_ns();
        self.tally.hand_over_rest();
        self.tally.counts.away_at_end = away_for_long(&self.peers, &self.groups, now_ns);
        let mut subscribers = Vec::new();
        let states = std::mem::take(&mut self.tally.subscribers);
        let mut states: Vec<Option<tally::Subscriber>> = states.into_iter().map(Some).collect();
        for peer in &mut self.peers {
            let was_ready =
                matches!(peer.step, Step::Ready | Step::Lost) || peer.away_since_ns() != 0;
            let state = states.get_mut(slot(peer.subscriber)).and_then(Option::take);
            let Some(state) = state.filter(|_| was_ready) else {
                continue;
            };
            let mut absences = peer
                .extra
                .as_mut()
                .map(|extra| std::mem::take(&mut extra.absences))
                .unwrap_or_default();
            if peer.away_since_ns() != 0 && peer.client.options().clean_start {
                absences.push(Absence {
                    heard_ns: state.heard_ns,
                    from_ns: peer.away_since_ns(),
                    to_ns: now_ns,
                });
            }
            let group = self.plan.scenario.groups.get(slot(peer.group));
            subscribers.push(SubscriberReport {
                state: state.state,
                role: group.map_or(Role::Receiver, role_of),
                absences,
            });
        }
        let is_up = |peer: u32| {
            self.peers
                .get(slot(peer))
                .is_some_and(|peer| peer.step == Step::Ready)
        };
        let publishers = self
            .publishers
            .into_iter()
            .map(|publisher| PublisherReport {
                number: publisher.number,
                sent: publisher.next,
                unsent: publisher.due.saturating_sub(publisher.next),
                unacknowledged: if is_up(publisher.peer) {
                    u32::try_from(publisher.awaiting.len()).unwrap_or(u32::MAX)
                } else {
                    0
                },
                given_up: publisher.given_up,
            });
        ThreadReport {
            publishers: publishers.collect(),
            counts: self.tally.counts,
            ready: self.ready,
            failed: self.failed,
            subscribers,
            pairs: self.tally.pairs,
            shared: self.tally.shared,
            slowest_ns: self.tally.slowest_ns,
        }
    }
}

/// Clients that should have reconnected by now.
fn away_for_long(peers: &[Peer], groups: &[GroupSettings], now_ns: u64) -> u64 {
    let away = peers.iter().filter(|peer| {
        let group = groups.get(slot(peer.group));
        let policy = group.and_then(|group| group.reconnect);
        let wait_ns = policy.map_or(0, |policy| nanos(policy.delay_max));
        let since_ns = peer.away_since_ns();
        since_ns != 0 && now_ns.saturating_sub(since_ns) > wait_ns + COME_BACK_NS
    });
    u64::try_from(away.count()).unwrap_or(u64::MAX)
}

fn role_of(group: &Group) -> Role {
    let asks = group
        .publish
        .as_ref()
        .is_some_and(|publish| publish.response.is_some());
    let answers = group
        .subscribe
        .as_ref()
        .is_some_and(|subscribe| subscribe.respond);
    match (asks, answers) {
        (true, _) => Role::Requester,
        (false, true) => Role::Responder,
        (false, false) => Role::Receiver,
    }
}
