//! Messages with `QoS` 1 and 2 on their way to the client, in the order they were sent first.

#[cfg(test)]
mod tests;
mod window;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use thrum_codec::{PacketId, QoS};

use self::window::SendWindow;
use super::held::Held;
use super::journal::UNNOTED;
use super::ring::Ring;
use super::{Awaiting, Seq, Taken};
use crate::Limits;
use crate::packet_ids::PacketIds;

/// Entries that stay allocated while nothing is inflight; a burst above it is given back.
const IDLE_CAPACITY_MAX: usize = 64;

/// Finished entries between unfinished ones that are tolerated before they are swept out, so that a
/// sweep costs less than the acknowledgements it follows.
const FINISHED_SLACK: usize = 32;

#[derive(Clone, Copy, Debug)]
struct Entry {
    packet_id: PacketId,
    /// None: answered, it only keeps its place until everything before it is answered too.
    awaiting: Option<Awaiting>,
    /// Sent on an earlier connection and waiting to be sent again on this one.
    unsent: bool,
}

/// What is kept of a message beside its entry.
#[derive(Debug)]
pub(super) enum Kept {
    Nothing,
    Message(Held),
    /// The client has the message; what was written down is still to be removed.
    Released(Seq),
}

impl Kept {
    fn seq(&self) -> Seq {
        match self {
            Self::Nothing => UNNOTED,
            Self::Message(held) => held.seq,
            Self::Released(seq) => *seq,
        }
    }
}

/// The messages, and what is kept of them.
#[derive(Debug, Default)]
struct Lists {
    entries: VecDeque<Entry>,
    /// What is kept of `entries`, place for place, if there is anything.
    kept: Option<Box<Ring<Kept>>>,
}

/// Unacknowledged messages, and the window and the packet identifiers for more of them.
#[derive(Debug, Default)]
pub(super) struct Inflight {
    /// None before the first message, as for clients that are sent `QoS` 0 or nothing: it is one
    /// pointer.
    lists: Option<Box<Lists>>,
    /// At most as many as there are packet identifiers, as all that is counted here.
    unanswered: u32,
    unsent: u32,
    /// No entry before this place is unsent.
    first_unsent: u32,
    window: SendWindow,
    ids: PacketIds,
}

/// Place of an entry; valid until the next [`Inflight::trim`].
pub(super) type Place = usize;

impl Inflight {
    /// Unanswered messages.
    pub(super) fn len(&self) -> usize {
        self.unanswered as usize
    }

    /// Unanswered messages that were sent on this connection: those that count against the receive
    /// maximum.
    fn window_used(&self) -> usize {
        (self.unanswered - self.unsent) as usize
    }

    /// As many messages, or as many bytes of them, are on their way as may be.
    // [MQTT-3.3.4-9] [MQTT-4.9.0-2]
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.window_used() >= self.window.messages_max() || self.window.is_out_of_bytes()
    }

    /// A new message may be sent: nothing older waits to be sent again and the window is open.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.unsent == 0 && !self.is_full()
    }

    /// New messages that may be sent, whatever their size.
    pub(super) fn room(&self) -> usize {
        if !self.is_open() {
            return 0;
        }
        if self.window.counts_bytes() {
            // The next one may use up the bytes.
            return 1;
        }
        self.window.messages_max() - self.window_used()
    }

    /// Bytes of payload on their way are limited. They are counted for as long as their messages
    /// are kept.
    #[inline]
    pub(super) fn counts_bytes(&self) -> bool {
        self.window.counts_bytes()
    }

    /// Messages that wait to be sent again.
    pub(super) fn unsent(&self) -> usize {
        self.unsent as usize
    }

    /// An identifier that no unanswered message has. [MQTT-2.2.1-4] [MQTT-4.3.2-1] [MQTT-4.3.3-1]
    /// [MQTT3-2.3.1-4]
    pub(super) fn next_packet_id(&mut self) -> Option<PacketId> {
        let lists = &self.lists;
        self.ids
            .next(|| lists.iter().flat_map(|lists| lists.packet_ids()))
    }

    /// The last identifier that was given, 0 before the first.
    pub(super) fn last_packet_id(&self) -> u16 {
        self.ids.last()
    }

    /// Without messages; identifiers go on behind that one.
    pub(super) fn behind(last_packet_id: u16) -> Self {
        Self {
            ids: PacketIds::behind(last_packet_id),
            ..Self::default()
        }
    }

    /// Adds a message that was sent, and keeps it to send it again.
    pub(super) fn push(&mut self, packet_id: PacketId, held: Held) {
        let awaiting = Awaiting::first(held.qos);
        self.window.take_bytes(held.message.payload().len());
        self.push_entry(packet_id, awaiting, Kept::Message(held));
    }

    /// Adds a message that was sent and need not be sent again.
    pub(super) fn push_unkept(&mut self, packet_id: PacketId, qos: QoS) {
        self.push_entry(packet_id, Awaiting::first(qos), Kept::Nothing);
    }

    /// Adds a message that the client has: it awaits PUBCOMP.
    pub(super) fn push_released(&mut self, packet_id: PacketId, seq: Seq) {
        self.push_entry(packet_id, Some(Awaiting::PubComp), Kept::Released(seq));
    }

    /// The unanswered message with this identifier.
    pub(super) fn find(&self, packet_id: PacketId) -> Option<Place> {
        let entries = &self.lists.as_ref()?.entries;
        let front = entries.front()?;
        if front.packet_id == packet_id {
            // The front is never an answered entry.
            return Some(0);
        }
        // Identifiers are handed out upwards, so their distance from the front grows along the
        // queue, unless they have gone all the way round behind an entry that stays unanswered.
        let distance = |id: PacketId| id.as_u16().wrapping_sub(front.packet_id.as_u16());
        let wanted = distance(packet_id);
        let guess = entries.partition_point(|entry| distance(entry.packet_id) < wanted);
        let is_it = |entry: &Entry| entry.packet_id == packet_id && entry.awaiting.is_some();
        match entries.get(guess) {
            Some(entry) if is_it(entry) => Some(guess),
            _ => entries.iter().position(is_it),
        }
    }

    /// What the message at that place waits for.
    pub(super) fn awaiting(&self, place: Place) -> Option<Awaiting> {
        self.lists.as_ref()?.entries.get(place)?.awaiting
    }

    /// The client has the message: it is let go, and from now on only PUBREL is sent. Returns its
    /// place in the journal if this is the first time.
    pub(super) fn release(&mut self, place: Place) -> Seq {
        if self.awaiting(place) != Some(Awaiting::PubRec) {
            return UNNOTED;
        }
        let has_waited = self.mark_sent(place);
        let seq = self.let_go(place, has_waited);
        if seq != UNNOTED {
            self.keep(place, Kept::Released(seq));
        }
        if let Some(entry) = self.entry_mut(place) {
            // [MQTT-4.3.3-6] [MQTT3-4.3.3-1]
            entry.awaiting = Some(Awaiting::PubComp);
        }
        seq
    }

    /// The exchange at that place is over; the caller trims afterwards. Returns its place in the
    /// journal.
    pub(super) fn finish(&mut self, place: Place) -> Seq {
        let Some(lists) = self.lists.as_deref_mut() else {
            return UNNOTED;
        };
        let Some(entry) = lists.entries.get_mut(place) else {
            return UNNOTED;
        };
        self.unanswered -= u32::from(entry.awaiting.take().is_some());
        let has_waited = core::mem::take(&mut entry.unsent);
        self.unsent -= u32::from(has_waited);
        if lists.kept.is_none() {
            return UNNOTED;
        }
        self.let_go(place, has_waited)
    }

    /// Drops answered entries from the front, and from between if they are many.
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
            // A burst is given back.
            self.lists
                .take_if(|lists| lists.entries.capacity() > IDLE_CAPACITY_MAX);
        }
    }

    /// A new connection: everything but what awaits PUBCOMP has to be sent again, with at most so
    /// much on its way at once as the client and the limits allow.
    pub(super) fn begin_connection(&mut self, receive_maximum: u16, limits: &Limits) {
        for place in 0..self.places() {
            // Without the message there is nothing to send again: it belonged to a session that was
            // to end.
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

    /// Places of the messages that await PUBCOMP, in the order of their PUBLISH packets.
    pub(super) fn released(&self) -> impl Iterator<Item = PacketId> {
        self.entries()
            .filter(|entry| entry.awaiting == Some(Awaiting::PubComp))
            .map(|entry| entry.packet_id)
    }

    /// Takes out the next message to send again; [`Inflight::put_back`] or [`Inflight::finish`]
    /// follows.
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

    /// The message at that place was sent again.
    pub(super) fn put_back(&mut self, place: Place, message: Held) {
        self.mark_sent(place);
        self.window.take_bytes(message.message.payload().len());
        self.keep(place, Kept::Message(message));
    }

    /// Ends the `QoS` 1 messages of shared groups and hands them out: the session is over.
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

    /// Every unanswered message.
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

    /// So many entries there are.
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

    /// The client has the message, or does not get it. Its bytes are no longer on their way, unless
    /// it has waited to be sent again.
    #[inline(never)]
    fn let_go(&mut self, place: Place, has_waited: bool) -> Seq {
        let lists = self.lists.as_mut();
        let Some(kept) = lists.and_then(|lists| lists.take_kept(place)) else {
            return UNNOTED;
        };
        if let Kept::Message(held) = &kept
            && !has_waited
        {
            self.window.give_back_bytes(held.message.payload().len());
        }
        kept.seq()
    }

    /// Whether the message at that place waited to be sent again until now.
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
    /// Every identifier in use.
    fn packet_ids(&self) -> impl Iterator<Item = PacketId> {
        let unanswered = self.entries.iter().filter(|entry| entry.awaiting.is_some());
        unanswered.map(|entry| entry.packet_id)
    }

    /// None if nothing is kept of any entry.
    #[inline]
    fn take_kept(&mut self, place: Place) -> Option<Kept> {
        let slot = self.kept.as_mut()?.get_mut(place)?;
        Some(core::mem::replace(slot, Kept::Nothing))
    }

    /// What is kept of the entry that follows.
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

    /// Takes answered entries out of the middle.
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
