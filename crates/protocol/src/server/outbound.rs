//! What goes to the client: messages that are under way, and those that wait behind them.

use alloc::vec::Vec;

use thrum_codec::packet::Ack;
use thrum_codec::{PacketId, QoS, ReasonCode};

use super::fates::{Cause, Fates, MessageFate};
use super::held::Held;
use super::inflight::{Inflight, Kept, Place};
use super::packets::protocol_error;
use super::queue::Queue;
use super::{Awaiting, DropReason, GroupId, SessionJournal, Taken};
use crate::limits::QueuePolicy;
use crate::{Limits, Time, Violation};

/// The messages that a session holds for its client, and a count of those that it dropped.
#[derive(Debug, Default)]
pub struct Outbound {
    pub(super) inflight: Inflight,
    pub(super) queue: Queue,
    pub(super) fates: Fates,
}

/// What can be sent next.
pub(super) enum Next {
    Nothing,
    Redelivery,
    Queued,
}

/// What a PUBREC leads to.
pub(super) enum AfterPubRec {
    Nothing,
    /// PUBREL with this reason.
    Release(ReasonCode),
    /// The exchange is over.
    Over,
}

/// A message for which room is wanted in the queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Newcomer {
    /// Memory that it takes.
    pub(super) bytes: usize,
    pub(super) priority: u8,
    pub(super) qos: QoS,
}

impl Outbound {
    /// Messages queued, bytes of memory that they take, messages inflight.
    pub fn backlog(&self) -> (usize, usize, usize) {
        (self.queue.len(), self.queue.bytes(), self.inflight.len())
    }

    /// Messages and bytes queued that no message with `QoS` 1 or 2 displaces.
    pub fn lasting_backlog(&self) -> (usize, usize) {
        self.queue.lasting()
    }

    /// What waits, but for messages of shared groups: topic and quality of service of each.
    pub fn waiting(&self) -> impl Iterator<Item = (&str, QoS)> {
        let all = self.queue.iter().filter(|held| held.group.is_none());
        all.map(|held| (held.message.topic(), held.qos))
    }

    /// Whether a stored message waits here or is under way: one that may come a second time after a
    /// crash.
    pub fn holds(&self, stored_id: u64) -> bool {
        let is_it = |held: &Held| held.message.stored_id() == stored_id;
        let is_under_way = |kept: Option<&Kept>| match kept {
            Some(Kept::Message(held)) => is_it(held),
            Some(Kept::Nothing | Kept::Released(_)) | None => false,
        };
        let mut inflight = self.inflight.iter();
        inflight.any(|(_, _, kept)| is_under_way(kept)) || self.queue.kept().any(is_it)
    }

    /// The last packet identifier that was given to a delivery, 0 before the first: a hint for
    /// [`Stored::last_packet_id`](super::Stored::last_packet_id).
    pub fn last_packet_id(&self) -> u16 {
        self.inflight.last_packet_id()
    }

    /// Takes the messages of shared groups, to give them to other members: called when the session
    /// ends (`None`) and for groups that the session leaves, in the order of their numbers.
    ///
    /// Leaving groups takes what is queued only: a delivery that has begun is completed. At the end
    /// of the session `QoS` 1 messages without PUBACK are taken too, `QoS` 2 messages that were
    /// sent are not. What was written down of them is left to the caller, who moves or removes it.
    pub fn take_shared(&mut self, groups: Option<&[GroupId]>) -> Vec<Taken> {
        let mut taken = Vec::new();
        // [MQTT-3.10.4-3] [MQTT3-3.10.4-3]
        if groups.is_none() {
            self.inflight.take_shared(&mut taken);
        }
        self.queue.take_shared(groups, &mut taken);
        taken
    }

    /// Messages that the session held and dropped since the last call, by reason: to make room for
    /// another, too old, expired, or too large when their turn came.
    pub fn take_dropped(&mut self) -> impl Iterator<Item = (DropReason, u32)> + use<> {
        self.fates.take_dropped()
    }

    /// Of each message that is sent later, acknowledged or dropped the session tells from now on,
    /// until [`Self::take_fates`].
    pub fn tell_fates(&mut self) {
        self.fates.tell_each();
    }

    /// The session tells of each message.
    #[inline]
    pub fn tells_fates(&self) -> bool {
        self.fates.tells_each()
    }

    /// What became of single messages since [`Self::tell_fates`].
    pub fn take_fates(&mut self) -> Vec<MessageFate> {
        self.fates.take_each()
    }

    /// Without messages; packet identifiers go on behind that one.
    pub(super) fn behind(last_packet_id: u16) -> Self {
        Self {
            inflight: Inflight::behind(last_packet_id),
            ..Self::default()
        }
    }

    /// A new message may be sent at once: none waits, and the window is open.
    // Nothing new overtakes what waits. [MQTT-4.6.0-5] [MQTT-4.6.0-6] [MQTT3-4.6.0-5]
    // [MQTT3-4.6.0-6]
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.queue.is_empty() && self.inflight.is_open()
    }

    /// What is to be sent next to a client that can be sent something.
    #[inline]
    pub(super) fn next(&self) -> Next {
        if self.inflight.unsent() > 0 {
            return if self.inflight.is_full() {
                Next::Nothing
            } else {
                Next::Redelivery
            };
        }
        // QoS 0 needs no place in the window.
        if !self.queue.is_empty() && (!self.inflight.is_full() || self.queue.next_is_fleeting()) {
            Next::Queued
        } else {
            Next::Nothing
        }
    }

    /// Messages with `QoS` 1 and 2 that are certain to be sent at once.
    pub(super) fn room(&self) -> usize {
        if self.queue.is_empty() {
            self.inflight.room()
        } else {
            0
        }
    }

    /// A message that is kept was sent for the first time.
    pub(super) fn begin(
        &mut self,
        packet_id: PacketId,
        mut held: Held,
        journal: &mut SessionJournal,
    ) {
        journal.note_first_sent(&mut held, packet_id);
        self.inflight.push(packet_id, held);
    }

    /// Ends the exchange of a PUBACK; true if there was one.
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
        self.acknowledged(place);
        self.finish(place, journal);
        Ok(true)
    }

    /// Lets go of the message of a PUBREC.
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
        self.acknowledged(place);
        let seq = self.inflight.release(place);
        journal.note_sent(seq, ack.packet_id, Awaiting::PubComp);
        Ok(AfterPubRec::Release(ReasonCode::Success))
    }

    /// Ends the exchange of a PUBCOMP; true if there was one.
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

    /// Drops a message that was to be sent again.
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

    /// Counts a message that is dropped and forgets what was written down of it.
    pub(super) fn drop_held(&mut self, held: &Held, cause: Cause, journal: &mut SessionJournal) {
        journal.note_removed(held.seq);
        self.fates.dropped(held, cause);
    }

    /// Drops what has to make room for a message; true if there is room then.
    #[cold]
    pub(super) fn make_room(
        &mut self,
        newcomer: Newcomer,
        now: Time,
        limits: &Limits,
        journal: &mut SessionJournal,
    ) -> bool {
        if !Queue::could_have_room(newcomer.bytes, limits) {
            return false;
        }
        self.drop_stale(now, limits, journal);
        while !self.queue.has_room(newcomer.bytes, limits) {
            let takes_oldest = limits.queue.policy == QueuePolicy::DropOldest;
            let held = match newcomer.qos {
                QoS::AtMostOnce if takes_oldest => self.queue.pop_fleeting(),
                QoS::AtMostOnce => None,
                QoS::AtLeastOnce | QoS::ExactlyOnce => self.queue.pop_fleeting().or_else(|| {
                    takes_oldest
                        .then(|| self.queue.pop_lowest(newcomer.priority))
                        .flatten()
                }),
            };
            let Some(held) = held else { return false };
            self.drop_held(&held, Cause::MadeRoom, journal);
        }
        true
    }

    /// Drops the messages at the front of the queue that are no longer to be delivered.
    pub(super) fn drop_stale(&mut self, now: Time, limits: &Limits, journal: &mut SessionJournal) {
        let mut cause = None;
        while let Some(held) = self.queue.pop_if(|held| {
            cause = held.staleness(limits, now);
            cause.is_some()
        }) {
            self.drop_held(&held, cause.unwrap_or(Cause::Expired), journal);
        }
    }

    /// Drops what waits and may not be delivered any more. How many there were.
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

    /// The client has the message at that place.
    #[inline]
    fn acknowledged(&mut self, place: Place) {
        if self.fates.tells_each()
            && let Some(held) = self.inflight.held(place)
        {
            self.fates.acknowledged(held);
        }
    }

    /// The exchange at that place is over.
    #[inline]
    fn finish(&mut self, place: Place, journal: &mut SessionJournal) {
        let seq = self.inflight.finish(place);
        journal.note_removed(seq);
        self.inflight.trim();
    }
}
