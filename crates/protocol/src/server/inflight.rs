//! Messages with `QoS` 1 and 2 on their way to the client, in the order they were sent first.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use thrum_codec::{PacketId, QoS};

use super::GroupId;
use super::held::Held;
use crate::Message;

/// Entries that stay allocated while nothing is inflight; a burst above it is given back.
const IDLE_CAPACITY_MAX: usize = 64;

/// Finished entries between unfinished ones that are tolerated before they are swept out, so that a sweep
/// costs less than the acknowledgements it follows.
const FINISHED_SLACK: usize = 32;

/// What the client has to answer next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Awaiting {
    PubAck,
    PubRec,
    PubComp,
    /// Answered: it only keeps its place until everything before it is answered too.
    Nothing,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    packet_id: PacketId,
    awaiting: Awaiting,
    /// Sent on an earlier connection and waiting to be sent again on this one.
    unsent: bool,
}

/// The window of unacknowledged messages.
#[derive(Debug, Default)]
pub(super) struct Inflight {
    entries: VecDeque<Entry>,
    /// The messages of `entries`, place for place, if any of them must be kept for redelivery.
    #[expect(
        clippy::box_collection,
        reason = "absent for most clients, so it is one pointer"
    )]
    held: Option<Box<VecDeque<Option<Held>>>>,
    unanswered: usize,
    unsent: usize,
    /// No entry before this place is unsent.
    first_unsent: usize,
}

/// Place of an entry; valid until the next [`Inflight::trim`].
pub(super) type Place = usize;

impl Inflight {
    /// Unanswered messages.
    pub(super) fn len(&self) -> usize {
        self.unanswered
    }

    /// Unanswered messages that were sent on this connection: those that count against the receive maximum.
    pub(super) fn window_used(&self) -> usize {
        self.unanswered - self.unsent
    }

    /// Messages that wait to be sent again.
    pub(super) fn unsent(&self) -> usize {
        self.unsent
    }

    /// Every identifier in use.
    pub(super) fn packet_ids(&self) -> impl Iterator<Item = PacketId> + Clone {
        self.entries
            .iter()
            .filter(|entry| entry.awaiting != Awaiting::Nothing)
            .map(|entry| entry.packet_id)
    }

    /// Adds a message that was just sent, with what is needed to send it again.
    pub(super) fn push(&mut self, packet_id: PacketId, qos: QoS, held: Option<Held>) {
        let awaiting = match qos {
            QoS::AtMostOnce => return,
            QoS::AtLeastOnce => Awaiting::PubAck,
            QoS::ExactlyOnce => Awaiting::PubRec,
        };
        if held.is_some() && self.held.is_none() {
            let none = core::iter::repeat_with(|| None);
            self.held = Some(Box::new(none.take(self.entries.len()).collect()));
        }
        if let Some(list) = &mut self.held {
            list.push_back(held);
        }
        self.entries.push_back(Entry {
            packet_id,
            awaiting,
            unsent: false,
        });
        self.unanswered += 1;
    }

    /// The unanswered message with this identifier.
    pub(super) fn find(&self, packet_id: PacketId) -> Option<Place> {
        let front = self.entries.front()?;
        if front.packet_id == packet_id {
            // The front is never an answered entry.
            return Some(0);
        }
        // Identifiers are handed out upwards, so their distance from the front grows along the queue, unless
        // they have gone all the way round behind an entry that stays unanswered.
        let distance = |id: PacketId| id.as_u16().wrapping_sub(front.packet_id.as_u16());
        let wanted = distance(packet_id);
        let guess = self
            .entries
            .partition_point(|entry| distance(entry.packet_id) < wanted);
        let is_it =
            |entry: &Entry| entry.packet_id == packet_id && entry.awaiting != Awaiting::Nothing;
        match self.entries.get(guess) {
            Some(entry) if is_it(entry) => Some(guess),
            _ => self.entries.iter().position(is_it),
        }
    }

    /// What the message at that place waits for.
    pub(super) fn awaiting(&self, place: Place) -> Awaiting {
        self.entries
            .get(place)
            .map_or(Awaiting::Nothing, |entry| entry.awaiting)
    }

    /// The client has the message: it is let go, and from now on only PUBREL is sent.
    pub(super) fn release(&mut self, place: Place) {
        self.mark_sent(place);
        self.let_go(place);
        if let Some(entry) = self.entries.get_mut(place) {
            // [MQTT-4.3.3-6] [MQTT3-4.3.3-1]
            entry.awaiting = Awaiting::PubComp;
        }
    }

    /// The exchange at that place is over; the caller trims afterwards.
    pub(super) fn finish(&mut self, place: Place) {
        self.mark_sent(place);
        self.let_go(place);
        if let Some(entry) = self.entries.get_mut(place)
            && entry.awaiting != Awaiting::Nothing
        {
            entry.awaiting = Awaiting::Nothing;
            self.unanswered -= 1;
        }
    }

    /// Drops answered entries from the front, and from between if they are many.
    pub(super) fn trim(&mut self) {
        while let Some(front) = self.entries.front()
            && front.awaiting == Awaiting::Nothing
        {
            self.entries.pop_front();
            if let Some(held) = &mut self.held {
                held.pop_front();
            }
            self.first_unsent = self.first_unsent.saturating_sub(1);
        }
        if self.entries.len() > 2 * self.unanswered + FINISHED_SLACK {
            self.sweep();
        }
        if self.entries.is_empty() {
            self.first_unsent = 0;
            self.give_back();
        }
    }

    /// A new connection: everything but what awaits PUBCOMP has to be sent again.
    pub(super) fn begin_connection(&mut self) {
        for place in 0..self.entries.len() {
            // Without the message there is nothing to send again: it belonged to a session that was to end.
            if self.is_publish(place) && self.held(place).is_none() {
                self.finish(place);
            }
        }
        self.trim();
        self.unsent = 0;
        self.first_unsent = 0;
        for entry in &mut self.entries {
            entry.unsent = matches!(entry.awaiting, Awaiting::PubAck | Awaiting::PubRec);
            self.unsent += usize::from(entry.unsent);
        }
    }

    /// Places of the messages that await PUBCOMP, in the order of their PUBLISH packets.
    pub(super) fn released(&self) -> impl Iterator<Item = PacketId> {
        self.entries
            .iter()
            .filter(|entry| entry.awaiting == Awaiting::PubComp)
            .map(|entry| entry.packet_id)
    }

    /// Takes out the next message to send again; [`Inflight::put_back`] or [`Inflight::finish`] follows.
    pub(super) fn take_unsent(&mut self) -> Option<(Place, PacketId, Held)> {
        if self.unsent == 0 {
            return None;
        }
        let place = (self.first_unsent..self.entries.len())
            .find(|&place| self.entries.get(place).is_some_and(|entry| entry.unsent))?;
        self.first_unsent = place;
        let packet_id = self.entries.get(place)?.packet_id;
        Some((place, packet_id, self.let_go(place)?))
    }

    /// The message at that place was sent again.
    pub(super) fn put_back(&mut self, place: Place, message: Held) {
        self.mark_sent(place);
        if let Some(slot) = self.held.as_mut().and_then(|held| held.get_mut(place)) {
            *slot = Some(message);
        }
    }

    /// Ends the `QoS` 1 messages of shared groups and hands them out: the session is over.
    pub(super) fn take_shared(&mut self, taken: &mut Vec<(GroupId, Arc<Message>)>) {
        for place in 0..self.entries.len() {
            // [MQTT-4.8.2-5]
            if self.awaiting(place) != Awaiting::PubAck {
                continue;
            }
            if self.held(place).is_some_and(|held| held.group.is_some()) {
                taken.extend(self.let_go(place).and_then(Held::into_shared));
                self.finish(place);
            }
        }
        self.trim();
    }

    fn mark_sent(&mut self, place: Place) {
        if let Some(entry) = self.entries.get_mut(place)
            && entry.unsent
        {
            entry.unsent = false;
            self.unsent -= 1;
        }
    }

    fn is_publish(&self, place: Place) -> bool {
        matches!(self.awaiting(place), Awaiting::PubAck | Awaiting::PubRec)
    }

    fn held(&self, place: Place) -> Option<&Held> {
        self.held.as_ref()?.get(place)?.as_ref()
    }

    fn let_go(&mut self, place: Place) -> Option<Held> {
        self.held.as_mut()?.get_mut(place)?.take()
    }

    /// Takes answered entries out of the middle.
    fn sweep(&mut self) {
        if let Some(held) = &mut self.held {
            let mut entries = self.entries.iter();
            held.retain(|_| {
                entries
                    .next()
                    .is_some_and(|entry| entry.awaiting != Awaiting::Nothing)
            });
        }
        self.entries
            .retain(|entry| entry.awaiting != Awaiting::Nothing);
        self.first_unsent = 0;
    }

    fn give_back(&mut self) {
        if self.entries.capacity() > IDLE_CAPACITY_MAX {
            self.entries = VecDeque::new();
            self.held = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(value: u16) -> PacketId {
        PacketId::new(value).unwrap()
    }

    fn acknowledge(inflight: &mut Inflight, value: u16) {
        let place = inflight.find(id(value)).unwrap();
        inflight.finish(place);
        inflight.trim();
    }

    #[test]
    fn an_entry_of_a_clean_session_is_four_bytes() {
        assert_eq!(size_of::<Entry>(), 4);
    }

    #[test]
    fn acknowledgements_in_any_order_find_their_message() {
        let mut inflight = Inflight::default();
        let ids: Vec<u16> = (65_000..=65_535).chain(1..500).collect();
        for &value in &ids {
            inflight.push(id(value), QoS::AtLeastOnce, None);
        }
        // Every third from the back, then the rest from the middle outwards.
        let (third, rest): (Vec<u16>, Vec<u16>) = ids.iter().partition(|&&value| value % 3 == 0);
        for &value in third.iter().rev() {
            acknowledge(&mut inflight, value);
            assert_eq!(inflight.find(id(value)), None);
        }
        let (front, back) = rest.split_at(rest.len() / 2);
        for &value in back.iter().chain(front.iter().rev()) {
            acknowledge(&mut inflight, value);
        }
        assert_eq!((inflight.len(), inflight.entries.len()), (0, 0));
    }

    #[test]
    fn a_message_that_stays_unanswered_costs_no_growing_memory() {
        let mut inflight = Inflight::default();
        inflight.push(id(5), QoS::AtLeastOnce, None);
        for round in 0..200_000_u32 {
            let value = 6 + u16::try_from(round % 60_000).unwrap();
            inflight.push(id(value), QoS::AtLeastOnce, None);
            acknowledge(&mut inflight, value);
        }
        assert!(inflight.entries.capacity() < 256);
        assert_eq!(inflight.len(), 1);
        acknowledge(&mut inflight, 5);
        assert_eq!(inflight.len(), 0);
    }

    #[test]
    fn identifiers_that_went_round_behind_an_old_one_are_found() {
        let mut inflight = Inflight::default();
        for value in [10, 65_534, 65_535, 1, 9, 11, 12] {
            inflight.push(id(value), QoS::AtLeastOnce, None);
        }
        for value in [12, 65_535, 11, 1, 9, 65_534, 10] {
            acknowledge(&mut inflight, value);
        }
        assert_eq!(inflight.len(), 0);
    }

    #[test]
    fn memory_of_a_burst_is_given_back() {
        let mut inflight = Inflight::default();
        for value in 1..=1000 {
            inflight.push(id(value), QoS::AtLeastOnce, None);
        }
        for value in 1..=1000 {
            acknowledge(&mut inflight, value);
        }
        assert_eq!(inflight.entries.capacity(), 0);
        for value in 1..=10 {
            inflight.push(id(value), QoS::AtLeastOnce, None);
        }
        for value in 1..=10 {
            acknowledge(&mut inflight, value);
        }
        assert_ne!(
            inflight.entries.capacity(),
            0,
            "steady traffic keeps its memory"
        );
    }
}
