//! Messages leave when they are due, whatever happened to earlier ones (open loop).

use thrum_codec::packet::Publish;
use thrum_codec::properties::PublishProperties;
use thrum_protocol::client::PublishError;

use super::Swarm;
use super::outbox::slot;
use super::peer::Step;
use crate::clock;
use crate::mark::Mark;
use crate::pacing::{Ring, Tick};

/// Bytes that wait for a socket before its publisher is held back: more would only move the queue
/// from the publisher into our memory.
const UNSENT_BYTES_MAX: usize = 64 * 1024;

impl Swarm {
    /// Makes the schedule of this thread's publishers.
    pub(super) fn arrange_load(&mut self) {
        let span_ns = self.plan.load_ns();
        for group in 0..self.plan.scenario.groups.len() {
            let Some(pace) = self.plan.pace(group) else {
                continue;
            };
            let members = (0..)
                .zip(&self.publishers)
                .filter_map(|(index, publisher)| {
                    let planned = self.plan.publishers().get(slot(publisher.number))?;
                    (planned.group == group).then_some((planned.number, index))
                });
            self.rings.push(Ring::new(pace, members, span_ns));
        }
    }

    /// Sends every message that is due by now.
    pub(super) fn send_due(&mut self, now_ns: u64) {
        let Some(timeline) = self.timeline else {
            return;
        };
        let mut sent_any = false;
        while let Some((ring, tick)) = self.next_tick() {
            let due_ns = timeline.start_ns + tick.offset_ns;
            if due_ns > now_ns {
                break;
            }
            self.rings[ring].advance();
            self.come_due(tick);
            sent_any = true;
        }
        if sent_any {
            self.flush_publications();
            self.find_next_due();
        }
        if now_ns >= timeline.hold_end_ns && !self.is_hold_over {
            self.is_hold_over = true;
            self.tally.counts.held_back_at_end = self.held_back;
        }
    }

    /// Remembers when the next message is due.
    pub(super) fn find_next_due(&mut self) {
        let due_ns = self.timeline.zip(self.next_tick());
        self.next_due_ns = due_ns.map_or(u64::MAX, |(timeline, (_, tick))| {
            timeline.start_ns + tick.offset_ns
        });
    }

    /// Sends what a publisher could not send before; called when the broker may take it.
    pub(super) fn catch_up(&mut self, publisher: u32) {
        while let Some(state) = self.publishers.get(slot(publisher)) {
            if state.next >= state.due {
                self.publishers[slot(publisher)].held = false;
                return;
            }
            if !self.send_next(publisher, false) {
                return;
            }
            self.held_back = self.held_back.saturating_sub(1);
        }
    }

    /// The message of this thread that is due first.
    fn next_tick(&self) -> Option<(usize, Tick)> {
        let ticks = self.rings.iter().map(Ring::next).enumerate();
        ticks
            .filter_map(|(ring, tick)| Some((ring, tick?)))
            .min_by_key(|(_, tick)| tick.offset_ns)
    }

    fn come_due(&mut self, tick: Tick) {
        let state = &mut self.publishers[slot(tick.slot)];
        state.due = tick.sequence + 1;
        if state.held || !self.send_next(tick.slot, true) {
            self.publishers[slot(tick.slot)].held = true;
            self.held_back += 1;
            self.tally.counts.held_back += 1;
        }
    }

    /// Sends a publisher's next message; false if the broker does not take it now.
    fn send_next(&mut self, publisher: u32, punctual: bool) -> bool {
        let state = &mut self.publishers[slot(publisher)];
        let peer = &mut self.peers[slot(state.peer)];
        let unsent = peer
            .stalled
            .as_ref()
            .map_or(0, |stalled| stalled.unsent.len());
        if peer.step != Step::Ready || unsent > UNSENT_BYTES_MAX {
            return false;
        }
        let Some(planned) = self.plan.publishers().get(slot(state.number)) else {
            return false;
        };
        let spec = self
            .plan
            .scenario
            .groups
            .get(planned.group)
            .and_then(|g| g.publish.as_ref());
        let Some(spec) = spec else { return false };
        let sent_ns = clock::monotonic_ns();
        let payload = &mut self.payload[..slot(spec.payload.bytes())];
        Mark {
            publisher: state.number,
            sequence: state.next,
            sent_ns,
        }
        .write(payload);
        let publish = Publish {
            dup: false,
            qos: spec.qos,
            retain: false,
            topic: &planned.topic,
            packet_id: None,
            properties: PublishProperties::default(),
            payload,
        };
        let start = self.publications.open();
        let written = peer
            .client
            .publish(&publish, self.time, &mut self.publications.bytes);
        self.publications.close(state.peer, start);
        match written {
            Ok(packet_id) => {
                let sequence = state.next;
                state.next += 1;
                if let Some(packet_id) = packet_id {
                    state.awaiting.push_back((packet_id, sent_ns));
                    self.awaiting += 1;
                }
                self.tally.send(state.number, sequence, sent_ns, punctual);
                true
            }
            Err(PublishError::WindowFull) => false,
            Err(error) => {
                let peer = state.peer;
                self.lose(peer, format!("PUBLISH: {error}"));
                false
            }
        }
    }
}
