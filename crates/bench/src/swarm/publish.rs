//! In an open loop, messages leave when they are due, independent of earlier ones; in a closed
//! loop, each leaves as soon as the window allows.

use thrum_codec::packet::Publish;
use thrum_codec::properties::{PublishProperties, UserProperties};
use thrum_codec::{PacketId, Version};
use thrum_load::floors::PUNCTUAL_NS;
use thrum_load::mark::Mark;
use thrum_load::pacing::{Ring, Tick};
use thrum_load::scenario::PublishSpec;
use thrum_protocol::client::PublishError;

use super::outbox::slot;
use super::peer::{Awaited, Impairment, PublisherState, SEQUENCES, Step};
use super::times::Sending;
use super::{Swarm, Timeline};
use crate::clock;

/// Bytes that wait for a socket before its publisher is held back: more would only move the queue
/// from the publisher into our memory.
const UNSENT_BYTES_MAX: usize = 64 * 1024;

/// Why a publisher of a closed loop sends no more.
const ALL_SENT: &str =
    "a publisher stopped: it has sent all 4 294 967 295 messages that one can number";

impl Swarm {
    /// Makes the schedule of this thread's publishers.
    pub(super) fn arrange_load(&mut self, timeline: Timeline) {
        let span_ns = timeline.load_ns();
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
            self.rings.push(Ring::new(pace.clone(), members, span_ns));
        }
    }

    /// Sends every message that is due by now.
    pub(super) fn send_due(&mut self, now_ns: u64) {
        let Some(timeline) = self.timeline else {
            return;
        };
        self.tally.turn_the_page(now_ns);
        let mut sent_any = false;
        while let Some((ring, tick)) = next_tick(&self.rings) {
            let due_ns = self.tally.real_ns(timeline, tick.offset_ns);
            if due_ns > now_ns {
                break;
            }
            if now_ns - due_ns > PUNCTUAL_NS {
                // Whether the broker would have taken it in time is not known.
                self.publishers[slot(tick.slot)].late_until = tick.sequence + 1;
            }
            self.rings[ring].advance();
            self.come_due(tick);
            sent_any = true;
        }
        if now_ns >= self.kick_ns {
            // A paused loop resumes with the change that ends the pause.
            self.kick_ns = self.tally.next_change_ns(timeline, now_ns);
            self.kick_closed_loops();
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
        let due = self.timeline.zip(next_tick(&self.rings));
        self.next_due_ns = due.map_or(u64::MAX, |(timeline, (_, tick))| {
            self.tally.real_ns(timeline, tick.offset_ns)
        });
    }

    /// The broker may take messages again: sends what was due meanwhile, or fills the window.
    pub(super) fn go_on_publishing(&mut self, publisher: u32) {
        let Some(state) = self.publishers.get(slot(publisher)) else {
            return;
        };
        match self.window_of(state) {
            Some(window) => self.fill_window(publisher, window),
            None if state.held => self.catch_up(publisher),
            None => {}
        }
    }

    /// Sends what a publisher could not send before.
    fn catch_up(&mut self, publisher: u32) {
        while let Some(state) = self.publishers.get(slot(publisher)) {
            if state.next >= state.due {
                self.publishers[slot(publisher)].held = false;
                return;
            }
            let is_by_broker = state.next >= state.late_until;
            if !self.send_next(publisher, is_by_broker) {
                return;
            }
            self.held_back = self.held_back.saturating_sub(1);
        }
    }

    fn window_of(&self, state: &PublisherState) -> Option<u16> {
        let group = self.peers[slot(state.peer)].group;
        self.groups[slot(group)].window
    }

    fn kick_closed_loops(&mut self) {
        for publisher in 0..self.publishers.len() {
            let window = self.window_of(&self.publishers[publisher]);
            if let (Some(window), Ok(publisher)) = (window, u32::try_from(publisher)) {
                self.fill_window(publisher, window);
            }
        }
    }

    /// Sends as many messages as a closed loop allows now.
    fn fill_window(&mut self, publisher: u32, window: u16) {
        let now_ns = self.now_ns();
        let runs = self.timeline.is_some_and(|timeline| {
            timeline.start_ns <= now_ns
                && now_ns < timeline.hold_end_ns
                && self.tally.runs_at(timeline, now_ns)
        });
        while runs && self.publishers[slot(publisher)].has_room(window) {
            if !self.send_next(publisher, false) {
                return;
            }
            if self.publishers[slot(publisher)].next == SEQUENCES {
                self.tally.slice.note(ALL_SENT, 1);
            }
        }
    }

    fn come_due(&mut self, tick: Tick) {
        let state = &mut self.publishers[slot(tick.slot)];
        state.due = tick.sequence + 1;
        if state.held || !self.send_next(tick.slot, false) {
            self.publishers[slot(tick.slot)].held = true;
            self.held_back += 1;
            self.tally.counts.held_back += 1;
            self.tally.slice.counts.held_back += 1;
        }
    }

    /// Sends a publisher's next message; false if the broker does not take it now.
    fn send_next(&mut self, publisher: u32, was_held_back: bool) -> bool {
        let peer = self.publishers[slot(publisher)].peer;
        // What a client that has reconnected sends again goes out before its next message.
        if self.out.is_full_for(peer) && !self.came_back {
            self.flush_publications();
        }
        let sent_ns = self.now_ns();
        let state = &self.publishers[slot(publisher)];
        let sent = Sending {
            publisher: state.number,
            sequence: state.next,
            sent_ns,
            ready_ns: if was_held_back {
                self.unread_since_ns.min(sent_ns)
            } else {
                sent_ns
            },
            was_held_back,
        };
        if !self.takes_messages(peer) {
            return false;
        }
        let start = self.out.publications.open();
        let written = self.compose(peer, &sent);
        self.out.publications.close(peer, start);
        match written {
            Ok(packet_id) => {
                let state = &mut self.publishers[slot(publisher)];
                state.next += 1;
                if let Some(packet_id) = packet_id {
                    state.awaiting.push_back(Awaited {
                        packet_id,
                        sequence: sent.sequence,
                        sent_ns,
                        was_held_back,
                    });
                    self.awaiting += 1;
                }
                self.out.messages.push(sent);
                true
            }
            Err(PublishError::WindowFull) => false,
            Err(error) => {
                self.lose(peer, &format!("PUBLISH: {error}"));
                false
            }
        }
    }

    /// Whether a client is ready and its socket has room.
    fn takes_messages(&self, peer: u32) -> bool {
        let peer = &self.peers[slot(peer)];
        let unsent = peer
            .stalled
            .as_ref()
            .map_or(0, |stalled| stalled.unsent.len());
        peer.step == Step::Ready
            && unsent <= UNSENT_BYTES_MAX
            && peer.impairment() != Impairment::Frozen
    }

    /// Writes a message to the output of this turn.
    fn compose(&mut self, peer: u32, sent: &Sending) -> Result<Option<PacketId>, PublishError> {
        let planned = self
            .plan
            .publishers()
            .get(slot(sent.publisher))
            .ok_or(PublishError::NotConnected)?;
        let group = self.plan.scenario.groups.get(planned.group);
        let spec = group.and_then(|group| group.publish.as_ref());
        let made = spec.zip(self.plan.payload(planned.group));
        let (spec, template) = made.ok_or(PublishError::NotConnected)?;
        let unix_ms = if template.needs_time() {
            clock::unix_millis()
        } else {
            0
        };
        self.filler.set(planned.number + 1, unix_ms);
        let mark = Mark {
            publisher: sent.publisher,
            sequence: sent.sequence,
            sent_ns: self.plan.stamped(sent.sent_ns),
            was_held_back: sent.was_held_back,
        };
        template.write(mark, &mut self.filler, &mut self.payload);
        let client = &mut self.peers[slot(peer)].client;
        let is_v5 = client.options().version == Version::V5;
        let user: Vec<(&str, &str)> = user_properties(spec).collect();
        let publish = Publish {
            dup: false,
            qos: spec.qos,
            retain: spec.retain,
            topic: &planned.topic,
            packet_id: None,
            properties: PublishProperties {
                message_expiry: spec.expiry,
                response_topic: planned.response.as_deref().filter(|_| is_v5),
                user: UserProperties::Listed(&user),
                ..PublishProperties::default()
            },
            payload: &self.payload,
        };
        client.publish(&publish, self.time, &mut self.out.publications.bytes)
    }
}

/// The message that is due first.
fn next_tick(rings: &[Ring]) -> Option<(usize, Tick)> {
    let ticks = rings.iter().map(Ring::next).enumerate();
    ticks
        .filter_map(|(ring, tick)| Some((ring, tick?)))
        .min_by_key(|(_, tick)| tick.offset_ns)
}

/// The user properties of each message; without any nothing is allocated.
fn user_properties(spec: &PublishSpec) -> impl Iterator<Item = (&str, &str)> {
    spec.user_properties
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
}
