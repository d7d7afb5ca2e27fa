//! Messages to the client: those in flight, and those queued behind them.

use alloc::sync::Arc;
use alloc::vec::Vec;

use thrum_codec::packet::Ack;
use thrum_codec::{PacketId, QoS, ReasonCode};

use super::delivery_events::{Cause, DeliveryEvents, MessageEvent};
use super::held::Held;
use super::inflight::{Inflight, Kept, Place};
use super::packets::protocol_error;
use super::queue::Queue;
use super::{Awaiting, DropReason, GroupId, SessionJournal, Taken};
use crate::limits::QueuePolicy;
use crate::{Limits, Message, Time, Violation};

/// The messages that a session holds for its client, and the number of those that it dropped.
#[derive(Debug, Default)]
pub struct Outbound {
    pub(super) inflight: Inflight,
    pub(super) queue: Queue,
    pub(super) events: DeliveryEvents,
}

/// Kind of message that can be sent next.
pub(super) enum Next {
    Nothing,
    Redelivery,
    Queued,
}

/// The action that a PUBREC requires.
pub(super) enum AfterPubRec {
    Nothing,
    /// Send PUBREL with this reason code.
    Release(ReasonCode),
    /// The exchange is complete.
    Over,
}

/// A message that needs room in the queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewMessage {
    /// Memory that it occupies.
    pub(super) bytes: usize,
    pub(super) priority: u8,
    pub(super) qos: QoS,
}

impl Outbound {
    /// Number of queued messages, bytes of memory that they occupy, number of messages in flight.
    pub fn backlog(&self) -> (usize, usize, usize) {
        (self.queue.len(), self.queue.bytes(), self.inflight.len())
    }

    /// Number and bytes of queued messages with `QoS` 1 and 2, for which those with `QoS` 0 are
    /// dropped.
    pub fn qos1_and_2_backlog(&self) -> (usize, usize) {
        self.queue.qos1_and_2()
    }

    /// Topic and quality of service of each queued message, except those of shared subscriptions.
    pub fn waiting(&self) -> impl Iterator<Item = (&str, QoS)> {
        let all = self.queue.iter().filter(|held| held.group.is_none());
        all.map(|held| (held.message.topic(), held.qos))
    }

    /// Whether the session holds a persisted message, which could be delivered a second time after
    /// a crash.
    pub fn holds(&self, stored_id: u64) -> bool {
        let is_it = |held: &Held| held.message.stored_id() == stored_id;
        let is_under_way = |kept: Option<&Kept>| match kept {
            Some(Kept::Message(held)) => is_it(held),
            Some(Kept::Nothing | Kept::Released(_)) | None => false,
        };
        let mut inflight = self.inflight.iter();
        inflight.any(|(_, _, kept)| is_under_way(kept)) || self.queue.kept().any(is_it)
    }

    /// The last packet identifier of a delivery, 0 before the first: a hint for
    /// [`Stored::last_packet_id`](super::Stored::last_packet_id).
    pub fn last_packet_id(&self) -> u16 {
        self.inflight.last_packet_id()
    }

    /// Removes the messages of shared subscriptions, to give them to other members: called at the
    /// end of the session (`None`) and for shared subscriptions that the session leaves, in
    /// ascending order.
    ///
    /// On leaving, only queued messages are removed: a delivery that has started is completed. At
    /// the end of the session `QoS` 1 messages without PUBACK are removed too; `QoS` 2 messages
    /// that were sent are not. The caller moves or removes the persisted deliveries.
    pub fn take_shared(&mut self, groups: Option<&[GroupId]>) -> Vec<Taken> {
        let mut taken = Vec::new();
        // [MQTT-3.10.4-3] [MQTT3-3.10.4-3]
        if groups.is_none() {
            self.inflight.take_shared(&mut taken);
        }
        self.queue.take_shared(groups, &mut taken);
        taken
    }

    /// Whether the session may have dropped messages since the last call of
    /// [`Self::take_dropped`].
    #[inline]
    pub fn may_have_dropped(&self) -> bool {
        !self.events.are_empty()
    }

    /// Removes and returns some of the messages that [`Self::take_dropped`] then counts.
    pub fn take_dropped_messages(&mut self) -> Vec<(DropReason, Arc<Message>)> {
        self.events.take_named()
    }

    /// Removes and returns the number of messages that the session held and dropped since the last
    /// call, by reason: to make room for another, too old, expired, or too large.
    pub fn take_dropped(&mut self) -> impl Iterator<Item = (DropReason, u32)> + use<> {
        self.events.take_dropped()
    }

    /// Records each message that is sent later, acknowledged or dropped from now on, until
    /// [`Self::take_events`].
    pub fn record_events(&mut self) {
        self.events.record_each();
    }

    /// Whether the session records each message.
    #[inline]
    pub fn records_events(&self) -> bool {
        self.events.records_each()
    }

    /// Removes and returns the events since [`Self::record_events`].
    pub fn take_events(&mut self) -> Vec<MessageEvent> {
        self.events.take_each()
    }

    /// Creates it without messages; packet identifiers continue after the given one.
    pub(super) fn after(last_packet_id: u16) -> Self {
        Self {
            inflight: Inflight::after(last_packet_id),
            ..Self::default()
        }
    }

    /// Whether a new message may be sent at once: none is queued, and the window is open.
    // A new message must not overtake queued ones. [MQTT-4.6.0-5] [MQTT-4.6.0-6] [MQTT3-4.6.0-5]
    // [MQTT3-4.6.0-6]
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.queue.is_empty() && self.inflight.is_open()
    }

    /// Kind of message to send next to a client that accepts messages.
    #[inline]
    pub(super) fn next(&self) -> Next {
        if self.inflight.unsent() > 0 {
            return if self.inflight.is_full() {
                Next::Nothing
            } else {
                Next::Redelivery
            };
        }
        // QoS 0 needs no room in the window.
        if !self.queue.is_empty() && (!self.inflight.is_full() || self.queue.next_is_qos0()) {
            Next::Queued
        } else {
            Next::Nothing
        }
    }

    /// Number of messages with `QoS` 1 and 2 that are certain to be sent at once.
    pub(super) fn room(&self) -> usize {
        if self.queue.is_empty() {
            self.inflight.room()
        } else {
            0
        }
    }

    /// Records the first transmission of a message that is kept.
    pub(super) fn begin(
        &mut self,
        packet_id: PacketId,
        mut held: Held,
        journal: &mut SessionJournal,
    ) {
        journal.record_first_sent(&mut held, packet_id);
        self.inflight.push(packet_id, held);
    }

    /// Completes the exchange of a PUBACK; returns whether there was one.
    #[inline]
    pub(super) fn puback(
        &mut self,
        packet_id: PacketId,
        journal: &mut SessionJournal,
    ) -> Result<bool, Violation> {
        let Some(place) = self.inflight.find(packet_id) else {
            return Ok(false);
        };
        if self.inflight.awaiting(place) != Some(Awaiting::PubAck) {
            return Err(protocol_error("PUBACK for a message with QoS 2"));
        }
        // [MQTT-4.3.2-3] [MQTT-4.4.0-2] [MQTT-4.8.2-6] [MQTT3-4.3.2-1]
        if self.events.records_each() {
            return Ok(self.finish_recorded(place, journal));
        }
        self.finish(place, journal);
        Ok(true)
    }

    /// Records that the client has the message at that position, and completes the exchange.
    #[cold]
    #[inline(never)]
    fn finish_recorded(&mut self, place: Place, journal: &mut SessionJournal) -> bool {
        self.record_acknowledged(place);
        self.finish(place, journal);
        true
    }

    /// Releases the message of a PUBREC.
    pub(super) fn pubrec(
        &mut self,
        ack: &Ack<'_>,
        journal: &mut SessionJournal,
    ) -> Result<AfterPubRec, Violation> {
        let Some(place) = self.inflight.find(ack.packet_id) else {
            return Ok(if ack.reason.is_error() {
                AfterPubRec::Nothing
            } else {
                AfterPubRec::Release(ReasonCode::PacketIdentifierNotFound)
            });
        };
        if self.inflight.awaiting(place) == Some(Awaiting::PubAck) {
            return Err(protocol_error("PUBREC for a message with QoS 1"));
        }
        // [MQTT-4.4.0-2] [MQTT-4.8.2-6]
        if ack.reason.is_error() {
            self.finish(place, journal);
            return Ok(AfterPubRec::Over);
        }
        // [MQTT-4.3.3-3] [MQTT-4.3.3-4] [MQTT3-4.3.3-1]
        self.record_acknowledged(place);
        let seq = self.inflight.release(place);
        journal.record_sent(seq, ack.packet_id, Awaiting::PubComp);
        Ok(AfterPubRec::Release(ReasonCode::Success))
    }

    /// Completes the exchange of a PUBCOMP; returns whether there was one.
    pub(super) fn pubcomp(
        &mut self,
        packet_id: PacketId,
        journal: &mut SessionJournal,
    ) -> Result<bool, Violation> {
        let Some(place) = self.inflight.find(packet_id) else {
            return Ok(false);
        };
        if self.inflight.awaiting(place) != Some(Awaiting::PubComp) {
            return Err(protocol_error("PUBCOMP before PUBREL"));
        }
        // [MQTT-4.3.3-5] [MQTT3-4.3.3-1]
        self.finish(place, journal);
        Ok(true)
    }

    /// Drops a message that was to be retransmitted.
    pub(super) fn drop_unsent(
        &mut self,
        place: Place,
        held: &Held,
        cause: Cause,
        journal: &mut SessionJournal,
    ) {
        self.inflight.finish(place);
        self.inflight.trim();
        self.drop_held(held, cause, journal);
    }

    /// Counts a dropped message and removes its persisted delivery.
    pub(super) fn drop_held(&mut self, held: &Held, cause: Cause, journal: &mut SessionJournal) {
        journal.record_removed(held.seq);
        self.events.dropped(held, cause);
    }

    /// Drops messages to make room for another; returns whether there is room.
    #[cold]
    pub(super) fn make_room(
        &mut self,
        new: NewMessage,
        now: Time,
        limits: &Limits,
        journal: &mut SessionJournal,
    ) -> bool {
        if !Queue::could_have_room(new.bytes, limits) {
            return false;
        }
        self.drop_stale(now, limits, journal);
        while !self.queue.has_room(new.bytes, limits) {
            let takes_oldest = limits.queue.policy == QueuePolicy::DropOldest;
            let held = match new.qos {
                QoS::AtMostOnce if takes_oldest => self.queue.pop_qos0(),
                QoS::AtMostOnce => None,
                QoS::AtLeastOnce | QoS::ExactlyOnce => self.queue.pop_qos0().or_else(|| {
                    takes_oldest
                        .then(|| self.queue.pop_lowest(new.priority))
                        .flatten()
                }),
            };
            let Some(held) = held else { return false };
            self.drop_held(&held, Cause::MadeRoom, journal);
        }
        true
    }

    /// Drops the messages at the front of the queue that must no longer be delivered.
    pub(super) fn drop_stale(&mut self, now: Time, limits: &Limits, journal: &mut SessionJournal) {
        let mut cause = None;
        while let Some(held) = self.queue.pop_if(|held| {
            cause = held.staleness(limits, now);
            cause.is_some()
        }) {
            self.drop_held(&held, cause.unwrap_or(Cause::Expired), journal);
        }
    }

    /// Drops the queued messages that may no longer be delivered; returns their number.
    pub(super) fn drop_forbidden(
        &mut self,
        mut is_allowed: impl FnMut(&str, QoS) -> bool,
        journal: &mut SessionJournal,
    ) -> usize {
        let mut forbidden = Vec::new();
        self.queue.take_if(
            |held| held.group.is_none() && !is_allowed(held.message.topic(), held.qos),
            &mut forbidden,
        );
        for held in &forbidden {
            self.drop_held(held, Cause::NotAllowed, journal);
        }
        forbidden.len()
    }

    /// Records that the client has the message at that position.
    fn record_acknowledged(&mut self, place: Place) {
        if let Some(held) = self.inflight.held(place) {
            self.events.acknowledged(held);
        }
    }

    /// Completes the exchange at that position.
    #[inline]
    fn finish(&mut self, place: Place, journal: &mut SessionJournal) {
        let seq = self.inflight.finish(place);
        journal.record_removed(seq);
        self.inflight.trim();
    }
}
