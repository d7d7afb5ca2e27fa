//! Messages with `QoS` 1 and 2 in flight to the client, in the order of their first transmission.

#[cfg(test)]
mod tests;
mod window;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use thrum_codec::{PacketId, QoS};

use self::window::SendWindow;
use super::held::Held;
use super::journal::UNRECORDED;
use super::ring::Ring;
use super::{Awaiting, Seq, Taken};
use crate::Limits;
use crate::packet_ids::PacketIds;

/// Entries that stay allocated while nothing is in flight; the memory of a larger burst is freed.
const IDLE_CAPACITY_MAX: usize = 64;

/// Acknowledged entries between unacknowledged ones that are tolerated before they are removed, so
/// that a removal costs less than the acknowledgements before it.
const FINISHED_SLACK: usize = 32;

#[derive(Clone, Copy, Debug)]
struct Entry {
    packet_id: PacketId,
    /// `None` if the entry is acknowledged; it stays until all entries before it are acknowledged.
    awaiting: Option<Awaiting>,
    /// Whether it was sent on an earlier connection and is to be retransmitted on this one.
    unsent: bool,
}

/// The data kept for a message beside its entry.
#[derive(Debug)]
pub(super) enum Kept {
    Nothing,
    Message(Held),
    /// The client has the message; its persisted delivery is still to be removed.
    Released(Seq),
}

impl Kept {
    fn seq(&self) -> Seq {
        match self {
            Self::Nothing => UNRECORDED,
            Self::Message(held) => held.seq,
            Self::Released(seq) => *seq,
        }
    }
}

/// The messages, and the data kept for them.
#[derive(Debug, Default)]
struct Lists {
    entries: VecDeque<Entry>,
    /// The data kept for `entries`, at the same positions; `None` if there is none.
    kept: Option<Box<Ring<Kept>>>,
}

/// Unacknowledged messages, and the window and the packet identifiers for further ones.
#[derive(Debug, Default)]
pub(super) struct Inflight {
    /// `None` before the first message, as for clients that receive only `QoS` 0 or nothing; it
    /// takes one pointer.
    lists: Option<Box<Lists>>,
    /// At most the number of packet identifiers, like all counts here.
    unanswered: u32,
    unsent: u32,
    /// No entry before this position is unsent.
    first_unsent: u32,
    window: SendWindow,
    ids: PacketIds,
}

/// Position of an entry; valid until the next [`Inflight::trim`].
pub(super) type Place = usize;

impl Inflight {
    /// Number of unacknowledged messages.
    pub(super) fn len(&self) -> usize {
        self.unanswered as usize
    }

    /// Number of unacknowledged messages sent on this connection, which count against the receive
    /// maximum.
    fn window_used(&self) -> usize {
        (self.unanswered - self.unsent) as usize
    }

    /// Whether the number of messages or of payload bytes in flight has reached its limit.
    // [MQTT-3.3.4-9] [MQTT-4.9.0-2]
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.window_used() >= self.window.messages_max() || self.window.is_out_of_bytes()
    }

    /// Whether a new message may be sent: no older one is to be retransmitted, and the window is
    /// open.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.unsent == 0 && !self.is_full()
    }

    /// Number of new messages that may be sent, of any size.
    pub(super) fn room(&self) -> usize {
        if !self.is_open() {
            return 0;
        }
        if self.window.counts_bytes() {
            // The next message may exhaust the bytes.
            return 1;
        }
        self.window.messages_max() - self.window_used()
    }

    /// Whether the payload bytes in flight are limited. They are counted for as long as their
    /// messages are kept.
    #[inline]
    pub(super) fn counts_bytes(&self) -> bool {
        self.window.counts_bytes()
    }

    /// Number of messages that are to be retransmitted.
    pub(super) fn unsent(&self) -> usize {
        self.unsent as usize
    }

    /// A packet identifier that no unacknowledged message has. [MQTT-2.2.1-4] [MQTT-4.3.2-1]
    /// [MQTT-4.3.3-1] [MQTT3-2.3.1-4]
    pub(super) fn next_packet_id(&mut self) -> Option<PacketId> {
        let lists = &self.lists;
        self.ids
            .next(|| lists.iter().flat_map(|lists| lists.packet_ids()))
    }

    /// The last allocated packet identifier; 0 before the first.
    pub(super) fn last_packet_id(&self) -> u16 {
        self.ids.last()
    }

    /// Creates it without messages; packet identifiers continue after the given one.
    pub(super) fn after(last_packet_id: u16) -> Self {
        Self {
            ids: PacketIds::after(last_packet_id),
            ..Self::default()
        }
    }

    /// Adds a message that was sent, and keeps it for retransmission.
    pub(super) fn push(&mut self, packet_id: PacketId, held: Held) {
        let awaiting = Awaiting::first(held.qos);
        self.window.take_bytes(held.message.payload().len());
        self.push_entry(packet_id, awaiting, Kept::Message(held));
    }

    /// Adds a message that was sent and need not be retransmitted.
    pub(super) fn push_unkept(&mut self, packet_id: PacketId, qos: QoS) {
        self.push_entry(packet_id, Awaiting::first(qos), Kept::Nothing);
    }

    /// Adds a message that the client has: a PUBCOMP is expected.
    pub(super) fn push_released(&mut self, packet_id: PacketId, seq: Seq) {
        self.push_entry(packet_id, Some(Awaiting::PubComp), Kept::Released(seq));
    }

    /// Position of the unacknowledged message with this identifier.
    pub(super) fn find(&self, packet_id: PacketId) -> Option<Place> {
        let entries = &self.lists.as_ref()?.entries;
        let front = entries.front()?;
        if front.packet_id == packet_id {
            // The front is never an acknowledged entry.
            return Some(0);
        }
        // Identifiers are allocated in ascending order, so their distance from the front grows
        // along the queue, unless they wrapped around completely after an entry that stays
        // unacknowledged.
        let distance = |id: PacketId| id.as_u16().wrapping_sub(front.packet_id.as_u16());
        let wanted = distance(packet_id);
        let guess = entries.partition_point(|entry| distance(entry.packet_id) < wanted);
        let is_it = |entry: &Entry| entry.packet_id == packet_id && entry.awaiting.is_some();
        match entries.get(guess) {
            Some(entry) if is_it(entry) => Some(guess),
            _ => entries.iter().position(is_it),
        }
    }

    /// The acknowledgement that the message at that position expects.
    pub(super) fn awaiting(&self, place: Place) -> Option<Awaiting> {
        self.lists.as_ref()?.entries.get(place)?.awaiting
    }

    /// Releases a message that the client has; from now on only PUBREL is retransmitted. Returns
    /// its sequence number in the journal if this is the first time.
    pub(super) fn release(&mut self, place: Place) -> Seq {
        if self.awaiting(place) != Some(Awaiting::PubRec) {
            return UNRECORDED;
        }
        let has_waited = self.mark_sent(place);
        let seq = self.release_kept(place, has_waited);
        if seq != UNRECORDED {
            self.keep(place, Kept::Released(seq));
        }
        if let Some(entry) = self.entry_mut(place) {
            // [MQTT-4.3.3-6] [MQTT3-4.3.3-1]
            entry.awaiting = Some(Awaiting::PubComp);
        }
        seq
    }

    /// Completes the exchange at that position; the caller trims afterwards. Returns its sequence
    /// number in the journal.
    pub(super) fn finish(&mut self, place: Place) -> Seq {
        let Some(lists) = self.lists.as_deref_mut() else {
            return UNRECORDED;
        };
        let Some(entry) = lists.entries.get_mut(place) else {
            return UNRECORDED;
        };
        self.unanswered -= u32::from(entry.awaiting.take().is_some());
        let has_waited = core::mem::take(&mut entry.unsent);
        self.unsent -= u32::from(has_waited);
        if lists.kept.is_none() {
            return UNRECORDED;
        }
        self.release_kept(place, has_waited)
    }

    /// Removes acknowledged entries from the front, and from the middle if they are many.
    pub(super) fn trim(&mut self) {
        let unanswered = self.len();
        let Some(lists) = &mut self.lists else { return };
        while let Some(front) = lists.entries.front()
            && front.awaiting.is_none()
        {
            lists.entries.pop_front();
            if let Some(kept) = &mut lists.kept {
                kept.pop_front();
            }
            self.first_unsent = self.first_unsent.saturating_sub(1);
        }
        if lists.entries.len() > 2 * unanswered + FINISHED_SLACK {
            lists.sweep();
            self.first_unsent = 0;
        }
        if lists.entries.is_empty() {
            self.first_unsent = 0;
            // The memory of a burst is freed.
            self.lists
                .take_if(|lists| lists.entries.capacity() > IDLE_CAPACITY_MAX);
        }
    }

    /// Starts a new connection: every message without PUBREC is to be retransmitted, within the
    /// window of the client and the limits.
    pub(super) fn begin_connection(&mut self, receive_maximum: u16, limits: &Limits) {
        for place in 0..self.places() {
            // A message that was not kept cannot be retransmitted: its session was to end with the
            // connection.
            if is_publish(self.awaiting(place)) && self.held(place).is_none() {
                self.finish(place);
            }
        }
        self.trim();
        self.unsent = 0;
        self.first_unsent = 0;
        // [MQTT-4.9.0-1] [MQTT-3.3.4-9]
        let messages_max = receive_maximum.min(limits.inflight_max).max(1);
        self.window = SendWindow::new(messages_max, limits.inflight_bytes_max);
        let lists = self.lists.as_mut();
        for entry in lists.into_iter().flat_map(|lists| &mut lists.entries) {
            entry.unsent = is_publish(entry.awaiting);
            self.unsent += u32::from(entry.unsent);
        }
    }

    /// Packet identifiers of the messages that expect a PUBCOMP, in the order of their PUBLISH
    /// packets.
    pub(super) fn released(&self) -> impl Iterator<Item = PacketId> {
        self.entries()
            .filter(|entry| entry.awaiting == Some(Awaiting::PubComp))
            .map(|entry| entry.packet_id)
    }

    /// Removes the next message to retransmit; [`Inflight::put_back`] or [`Inflight::finish`] must
    /// follow.
    pub(super) fn take_unsent(&mut self) -> Option<(Place, PacketId, Held)> {
        if self.unsent == 0 {
            return None;
        }
        let entries = &self.lists.as_ref()?.entries;
        let place = (self.first_unsent as usize..entries.len())
            .find(|&place| entries.get(place).is_some_and(|entry| entry.unsent))?;
        let packet_id = entries.get(place)?.packet_id;
        self.first_unsent = u32::try_from(place).unwrap_or(u32::MAX);
        Some((place, packet_id, self.take_held(place)?))
    }

    /// Puts back the message at that position after its retransmission.
    pub(super) fn put_back(&mut self, place: Place, message: Held) {
        self.mark_sent(place);
        self.window.take_bytes(message.message.payload().len());
        self.keep(place, Kept::Message(message));
    }

    /// Removes the `QoS` 1 messages of shared subscriptions at the end of the session.
    pub(super) fn take_shared(&mut self, taken: &mut Vec<Taken>) {
        for place in 0..self.places() {
            // [MQTT-4.8.2-5]
            if self.awaiting(place) != Some(Awaiting::PubAck) {
                continue;
            }
            if self.held(place).is_some_and(|held| held.group.is_some()) {
                taken.extend(self.take_held(place).and_then(Held::into_taken));
                self.finish(place);
            }
        }
        self.trim();
    }

    /// Every unacknowledged message.
    pub(super) fn iter(&self) -> impl Iterator<Item = (PacketId, Awaiting, Option<&Kept>)> {
        let places = self.entries().enumerate();
        places.filter_map(|(place, entry)| {
            let kept = self.kept().and_then(|kept| kept.get(place));
            Some((entry.packet_id, entry.awaiting?, kept))
        })
    }

    fn entries(&self) -> impl Iterator<Item = &Entry> + Clone {
        self.lists.iter().flat_map(|lists| &lists.entries)
    }

    /// Number of entries.
    fn places(&self) -> Place {
        self.lists.as_ref().map_or(0, |lists| lists.entries.len())
    }

    fn entry_mut(&mut self, place: Place) -> Option<&mut Entry> {
        self.lists.as_mut()?.entries.get_mut(place)
    }

    fn kept(&self) -> Option<&Ring<Kept>> {
        self.lists.as_ref()?.kept.as_deref()
    }

    fn kept_mut(&mut self) -> Option<&mut Ring<Kept>> {
        self.lists.as_mut()?.kept.as_deref_mut()
    }

    #[inline]
    fn push_entry(&mut self, packet_id: PacketId, awaiting: Option<Awaiting>, kept: Kept) {
        self.unanswered += u32::from(awaiting.is_some());
        let lists = self.lists.get_or_insert_default();
        lists.keep_last(kept);
        lists.entries.push_back(Entry {
            packet_id,
            awaiting,
            unsent: false,
        });
    }

    /// Releases the message, which the client has or will not get. Its bytes are no longer in
    /// flight, unless it was waiting for its retransmission.
    #[inline(never)]
    fn release_kept(&mut self, place: Place, has_waited: bool) -> Seq {
        let lists = self.lists.as_mut();
        let Some(kept) = lists.and_then(|lists| lists.take_kept(place)) else {
            return UNRECORDED;
        };
        if let Kept::Message(held) = &kept
            && !has_waited
        {
            self.window.give_back_bytes(held.message.payload().len());
        }
        kept.seq()
    }

    /// Marks the message at that position as sent; returns whether it was waiting for its
    /// retransmission.
    fn mark_sent(&mut self, place: Place) -> bool {
        let Some(entry) = self.entry_mut(place).filter(|entry| entry.unsent) else {
            return false;
        };
        entry.unsent = false;
        self.unsent -= 1;
        true
    }

    pub(super) fn held(&self, place: Place) -> Option<&Held> {
        match self.kept()?.get(place)? {
            Kept::Message(held) => Some(held),
            Kept::Nothing | Kept::Released(_) => None,
        }
    }

    fn take_held(&mut self, place: Place) -> Option<Held> {
        match self.lists.as_mut()?.take_kept(place)? {
            Kept::Message(held) => Some(held),
            Kept::Nothing | Kept::Released(_) => None,
        }
    }

    fn keep(&mut self, place: Place, what: Kept) {
        if let Some(slot) = self.kept_mut().and_then(|kept| kept.get_mut(place)) {
            *slot = what;
        }
    }
}

impl Lists {
    /// Every packet identifier in use.
    fn packet_ids(&self) -> impl Iterator<Item = PacketId> {
        let unanswered = self.entries.iter().filter(|entry| entry.awaiting.is_some());
        unanswered.map(|entry| entry.packet_id)
    }

    /// Removes the data kept for an entry; `None` if no data is kept for any entry.
    #[inline]
    fn take_kept(&mut self, place: Place) -> Option<Kept> {
        let slot = self.kept.as_mut()?.get_mut(place)?;
        Some(core::mem::replace(slot, Kept::Nothing))
    }

    /// Stores the data for the entry that the caller adds next.
    #[inline]
    fn keep_last(&mut self, what: Kept) {
        if let Some(kept) = &mut self.kept {
            kept.push_back(what);
        } else if !matches!(what, Kept::Nothing) {
            self.begin_to_keep(what);
        }
    }

    #[cold]
    fn begin_to_keep(&mut self, what: Kept) {
        let before = core::iter::repeat_with(|| Kept::Nothing).take(self.entries.len());
        self.kept = Some(Box::new(before.chain([what]).collect()));
    }

    /// Removes acknowledged entries from the middle.
    fn sweep(&mut self) {
        if let Some(kept) = &mut self.kept {
            let mut entries = self.entries.iter();
            kept.retain(|_| entries.next().is_some_and(|entry| entry.awaiting.is_some()));
        }
        self.entries.retain(|entry| entry.awaiting.is_some());
    }
}

fn is_publish(awaiting: Option<Awaiting>) -> bool {
    matches!(awaiting, Some(Awaiting::PubAck | Awaiting::PubRec))
}
