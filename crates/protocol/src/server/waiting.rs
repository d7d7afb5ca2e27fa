//! Messages that wait for the client: which may, which make room for others, and what becomes of
//! them in their turn.

use alloc::boxed::Box;
use alloc::vec::Vec;

use thrum_codec::QoS;

use super::held::{Held, held_bytes};
use super::outbound::HeldPacket;
use super::queue::Queue;
use super::{Delivered, DeliveryOptions, DropReason, Session};
use crate::limits::QueuePolicy;
use crate::{Limits, Outgoing, Output, Time};

/// Messages dropped by the session itself, until they are counted.
#[derive(Debug, Default)]
pub(super) struct Dropped {
    expired: u32,
    too_large: u32,
    made_room: u32,
    too_old: u32,
    outside_mount: u32,
    not_allowed: u32,
}

impl Dropped {
    pub(super) fn by_reason(&self) -> impl Iterator<Item = (DropReason, u32)> + use<> {
        [
            (DropReason::Expired, self.expired),
            (DropReason::TooLarge, self.too_large),
            (DropReason::QueueDropped, self.made_room),
            (DropReason::QueueAge, self.too_old),
            (DropReason::OutsideMount, self.outside_mount),
            (DropReason::NotAllowed, self.not_allowed),
        ]
        .into_iter()
        .filter(|(_, count)| *count > 0)
    }
}

/// Why a message that the session held is dropped.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cause {
    Expired,
    TooLarge,
    MadeRoom,
    TooOld,
    OutsideMount,
    NotAllowed,
}

impl Session {
    /// Puts a message into the queue, if there is room or others make some.
    pub(super) fn enqueue(
        &mut self,
        outgoing: &mut Outgoing<'_>,
        options: &DeliveryOptions<'_>,
        now: Time,
    ) -> Delivered {
        let priority = self.limits.queue_priority(outgoing.publication().topic);
        let message = outgoing.message();
        if self.limits.queue_age_max.is_some() {
            self.drop_stale(now);
        }
        let bytes = held_bytes(message, options.identifiers.len());
        if !self.queue.has_room(bytes, &self.limits)
            && !self.make_room(bytes, priority, options.qos, now)
            && !self.exceeds_limits(options)
        {
            return Delivered::Dropped(DropReason::QueueFull);
        }
        // [MQTT-4.5.0-1] [MQTT3-4.5.0-1] [MQTT3-3.1.2-5]
        let held = self.hold(message, options, now);
        self.queue.push(held, priority);
        Delivered::Queued
    }

    /// What was acknowledged is taken in any case, but by a queue that takes back what it has
    /// acknowledged.
    fn exceeds_limits(&self, options: &DeliveryOptions<'_>) -> bool {
        let takes_back = self.limits.queue_policy == QueuePolicy::DropOldest;
        options.is_acknowledged && options.qos != QoS::AtMostOnce && !takes_back
    }

    /// Sends or drops the message whose turn it is; none if there is none.
    pub(super) fn send_queued(&mut self, now: Time, out: &mut Output) -> Option<()> {
        let held = self.queue.pop()?;
        if let Some(cause) = staleness(&held, &self.limits, now) {
            self.drop_held(&held, cause);
            return Some(());
        }
        let packet_id = match held.qos {
            QoS::AtMostOnce => None,
            // The window is open, so fewer identifiers are in use than there are.
            QoS::AtLeastOnce | QoS::ExactlyOnce => Some(self.next_packet_id()?),
        };
        if let Err(cause) = self.send_held(&held, HeldPacket::first(packet_id), now, out) {
            self.drop_held(&held, cause);
            return Some(());
        }
        match packet_id {
            None => {}
            Some(packet_id) if self.must_keep(held.group.is_some()) => {
                self.begin_exchange(packet_id, held);
            }
            Some(packet_id) => self.inflight.push_unkept(packet_id, held.qos),
        }
        Some(())
    }

    /// What waits, but for messages of shared groups: topic and quality of service of each.
    pub fn waiting(&self) -> impl Iterator<Item = (&str, QoS)> {
        let all = self.queue.iter().filter(|held| held.group.is_none());
        all.map(|held| (held.message.topic(), held.qos))
    }

    /// Drops what waits and may not be delivered any more: `is_allowed` is asked about each topic
    /// and quality of service. Messages of shared groups stay: whether they are given to another
    /// member is decided with their subscription. How many there were.
    pub fn drop_forbidden(&mut self, mut is_allowed: impl FnMut(&str, QoS) -> bool) -> usize {
        let mut forbidden = Vec::new();
        self.queue.take_if(
            |held| held.group.is_none() && !is_allowed(held.message.topic(), held.qos),
            &mut forbidden,
        );
        for held in &forbidden {
            self.drop_held(held, Cause::NotAllowed);
        }
        forbidden.len()
    }

    /// Counts a message that is dropped and forgets what was written down of it.
    pub(super) fn drop_held(&mut self, held: &Held, cause: Cause) {
        self.note_removed(held.seq);
        let dropped = self.dropped.get_or_insert_with(Box::default);
        let count = match cause {
            Cause::Expired => &mut dropped.expired,
            Cause::TooLarge => &mut dropped.too_large,
            Cause::MadeRoom => &mut dropped.made_room,
            Cause::TooOld => &mut dropped.too_old,
            Cause::OutsideMount => &mut dropped.outside_mount,
            Cause::NotAllowed => &mut dropped.not_allowed,
        };
        *count += 1;
    }

    /// Drops what has to make room for a message of that size and priority; true if there is room
    /// then.
    #[cold]
    fn make_room(&mut self, bytes: usize, priority: u8, qos: QoS, now: Time) -> bool {
        if !Queue::could_have_room(bytes, &self.limits) {
            return false;
        }
        self.drop_stale(now);
        while !self.queue.has_room(bytes, &self.limits) {
            let takes_oldest = self.limits.queue_policy == QueuePolicy::DropOldest;
            let held = match qos {
                QoS::AtMostOnce if takes_oldest => self.queue.pop_fleeting(),
                QoS::AtMostOnce => None,
                QoS::AtLeastOnce | QoS::ExactlyOnce => self.queue.pop_fleeting().or_else(|| {
                    takes_oldest
                        .then(|| self.queue.pop_lowest(priority))
                        .flatten()
                }),
            };
            let Some(held) = held else { return false };
            self.drop_held(&held, Cause::MadeRoom);
        }
        true
    }

    /// Drops the messages at the front of the queue that are no longer to be delivered.
    pub fn drop_stale(&mut self, now: Time) {
        let mut cause = None;
        while let Some(held) = self.queue.pop_if(|held| {
            cause = staleness(held, &self.limits, now);
            cause.is_some()
        }) {
            self.drop_held(&held, cause.unwrap_or(Cause::Expired));
        }
    }
}

/// Why a message that waits is no longer to be delivered.
fn staleness(held: &Held, limits: &Limits, now: Time) -> Option<Cause> {
    // [MQTT-3.3.2-5]
    if held.message.is_expired(now) {
        return Some(Cause::Expired);
    }
    let age_max = limits.queue_age_max?;
    (held.age_secs(now) > age_max).then_some(Cause::TooOld)
}
