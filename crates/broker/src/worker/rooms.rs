//! What this worker tells the others of the queues of its sessions.
//!
//! The session at hand shows its queue whenever that changed; what others have to be told then is
//! collected during the turn and passed on at its end: filters whose subscribers are nearly full,
//! and room that somebody waited for.

use std::collections::HashMap;
use std::sync::Arc;

use thrum_codec::QoS;
use thrum_protection::MemoryLevel;
use thrum_protocol::limits::QueuePolicy;
use thrum_protocol::server::DropReason;
use thrum_routing::FilterId;

use super::Worker;
use super::local::{Client, Local};
use super::memory::takes_until;
use crate::ids::Slot;
use crate::interest::SessionRef;
use crate::mailbox::Mail;
use crate::publish::Source;
use crate::queue_room::{Promise, QueueRoom, Told, is_nearly_full, is_short};

/// What others are told at the end of the turn.
#[derive(Debug, Default)]
pub(crate) struct RoomNews {
    /// Slots of sessions that became nearly full, or are no longer.
    turned: Vec<Slot>,
    /// Workers that wait for room which there is now.
    pub(super) told: Vec<Told>,
}

impl RoomNews {
    pub(super) fn is_empty(&self) -> bool {
        self.turned.is_empty() && self.told.is_empty()
    }
}

/// The room of a session, and what is known of it elsewhere.
#[derive(Debug)]
pub(crate) struct OwnRoom {
    pub(crate) room: Arc<QueueRoom>,
    /// The filters of the session say that it is nearly full.
    is_announced: bool,
    /// Who knows of this generation of the table of interest knows so. What others sent is taken
    /// beyond the limits: they were told that there is room.
    known_from: u64,
}

/// The quality of service of a subscription before and after a change; none where there was or is
/// no subscription.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SubscriptionChange {
    pub(crate) before: Option<QoS>,
    pub(crate) now: Option<QoS>,
}

/// Subscribers of one filter that are nearly full.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NearlyFull {
    sessions: usize,
    /// The others know that all of them are.
    are_all: bool,
}

impl Client {
    pub(crate) fn room(&self) -> Option<&Arc<QueueRoom>> {
        let own = self.rare.as_deref()?.room.as_ref()?;
        Some(&own.room)
    }

    fn is_announced(&self) -> bool {
        let rare = self.rare.as_deref();
        let own = rare.and_then(|rare| rare.room.as_ref());
        own.is_some_and(|own| own.is_announced)
    }
}

impl Local {
    /// A message came into the queue of a session, or found it full.
    pub(crate) fn queue_grew(&mut self, slot: Slot) {
        let client = &self.clients[slot];
        if client.room().is_none() {
            if !self.needs_room(client) || !is_nearly_full(&client.session, false) {
                return;
            }
            self.make_room(slot);
        }
        self.show_room(slot);
    }

    /// Whether anybody but this worker's publishers asks for the room of a session.
    fn needs_room(&self, client: &Client) -> bool {
        let limits = client.session.limits();
        self.node.workers() > 1 || limits.queue_policy == QueuePolicy::Hold
    }

    fn make_room(&mut self, slot: Slot) {
        let session = SessionRef {
            worker: self.id,
            slot,
            id: self.clients[slot].session.id(),
        };
        self.room_is(
            slot,
            Arc::new(QueueRoom::new(session, self.node.memory.shared_level())),
        );
    }

    /// The room of a session that has none yet.
    pub(super) fn room_is(&mut self, slot: Slot, room: Arc<QueueRoom>) {
        self.clients[slot].rare_mut().room = Some(OwnRoom {
            room,
            is_announced: false,
            known_from: 0,
        });
    }

    /// The room of a member of a shared group.
    pub(crate) fn room_of_member(&mut self, slot: Slot) -> Arc<QueueRoom> {
        if self.clients[slot].room().is_none() {
            self.make_room(slot);
        }
        let room = self.clients[slot].room().map(Arc::clone);
        room.expect("it was made if there was none")
    }

    /// The session came into a group or left one.
    pub(crate) fn groups_changed(&mut self, slot: Slot) {
        let client = &self.clients[slot];
        if let Some(room) = client.room() {
            room.set_groups(client.groups().len(), &self.node.holding);
            // Those who wait for the group look at who is left.
            self.room_news.told.extend(room.take_waiters());
            self.show_room(slot);
            self.drop_unused_room(slot);
        }
    }

    /// Gives the room back if nobody looks at it any more.
    fn drop_unused_room(&mut self, slot: Slot) {
        let client = &mut self.clients[slot];
        let is_used = client.room().is_none_or(|room| room.is_nearly_full());
        if !is_used && !client.is_announced() && client.groups().is_empty() {
            client.rare_mut().room = None;
            client.drop_unused();
        }
    }

    /// Shows the queue of a session as it is, if anybody looks at it.
    #[inline]
    pub(crate) fn show_room(&mut self, slot: Slot) {
        if self.clients[slot].rare.is_some() {
            self.show_room_now(slot);
        }
    }

    /// A message was sent at once, which changes only what others see while something is short.
    #[inline]
    pub(crate) fn show_sent(&mut self, slot: Slot) {
        let room = self.clients[slot].room();
        let is_short =
            |room: &Arc<QueueRoom>| room.is_nearly_full() || self.memory.level >= MemoryLevel::Low;
        if room.is_some_and(is_short) {
            self.show_room_now(slot);
        }
    }

    fn show_room_now(&mut self, slot: Slot) {
        let client = &self.clients[slot];
        let Some(room) = client.room() else { return };
        let takes_until = if self.memory.level >= MemoryLevel::Low {
            takes_until(&client.session)
        } else {
            MemoryLevel::Short
        };
        if room.show_memory(takes_until) {
            self.room_news.told.extend(room.take_waiters());
        }
        let is_connected = client.connection.is_some();
        let shown = room.show(&client.session, is_connected, &self.node.holding);
        self.room_news.told.extend(shown.told);
        if shown.is_turned {
            self.room_news.turned.push(slot);
        }
    }

    /// Whether the publisher of a message that comes to a session was told that this session takes
    /// it.
    pub(crate) fn is_acknowledged(&self, slot: Slot, qos: QoS, source: Source<'_>) -> bool {
        let Some(delivery) = source.delivery() else {
            return false;
        };
        // One that is upgraded was not acknowledged.
        if qos == QoS::AtMostOnce || delivery.message.qos() == QoS::AtMostOnce {
            return false;
        }
        let client = &self.clients[slot];
        let rare = client.rare.as_deref();
        let Some(own) = rare.and_then(|rare| rare.room.as_ref()) else {
            return true;
        };
        let id = client.session.id();
        // A message that was on its way at the last start was acknowledged then.
        self.only.is_some()
            || !own.room.is_nearly_full()
            || !own.is_announced
            || delivery.is_promised_to(id)
            || delivery.generation < own.known_from
    }

    /// Whether a session takes a message however short memory is.
    pub(crate) fn is_promised(&self, slot: Slot, source: Source<'_>) -> bool {
        match source {
            Source::Publisher => false,
            Source::LastResort(_) => true,
            Source::Worker(delivery) => {
                let is_of = |slot: Slot| self.clients[slot].session.id();
                !delivery.promises.is_empty() && delivery.is_promised_to(is_of(slot))
            }
        }
    }
}

impl Worker {
    /// A session is about to have a subscription: whether others count it as nearly full there.
    /// They learn of it before they can find the subscription.
    pub(crate) fn announce_subscription(&mut self, slot: Slot, filter: &str, qos: QoS) {
        let client = &self.local.clients[slot];
        if qos == QoS::AtMostOnce {
            return;
        }
        let is_short = is_short(client.session.limits()) && self.local.needs_room(client);
        if is_short && !client.is_announced() {
            if client.room().is_none() {
                self.local.make_room(slot);
            }
            self.local.show_room(slot);
            self.announce(slot);
            if let Some(own) = &mut self.local.clients[slot].rare_mut().room {
                // Nothing is under way to it.
                own.known_from = 0;
            }
        }
        let client = &self.local.clients[slot];
        if client.is_announced()
            && let Some(room) = client.room()
        {
            self.node.interest.add_nearly_full(filter, room);
        }
    }

    /// A session has a subscription, had it with another `QoS`, or has it no longer.
    pub(crate) fn subscription_changed(
        &mut self,
        slot: Slot,
        filter: FilterId,
        text: &str,
        change: SubscriptionChange,
    ) {
        let client = self.local.clients.get(slot);
        let announced = client.filter(|client| client.is_announced());
        if let Some(client) = announced {
            let SubscriptionChange { before, now } = change;
            if is_kept(before) && !is_kept(now) {
                let id = client.session.id();
                self.node.interest.remove_nearly_full(text, id);
            }
            match (before, now) {
                (None, Some(_)) => self.count_nearly_full(filter, |sessions| sessions + 1),
                (Some(_), None) => {
                    self.count_nearly_full(filter, |sessions| sessions.saturating_sub(1));
                }
                (None, None) | (Some(_), Some(_)) => {}
            }
        }
        if !self.nearly_full.is_empty() {
            self.review_nearly_full(filter, text);
        }
    }

    /// The last subscription of a filter went.
    pub(crate) fn filter_went(&mut self, filter: FilterId, text: &str) {
        if let Some(found) = self.nearly_full.remove(&filter)
            && found.are_all
        {
            let interest = &self.node.interest;
            interest.set_all_nearly_full(text, self.local.id, false);
        }
    }

    /// The session ends: nobody looks at its room or waits for it any more.
    pub(crate) fn close_room(&mut self, slot: Slot) {
        let Some(room) = self.local.clients[slot].room().map(Arc::clone) else {
            return;
        };
        if self.local.clients[slot].is_announced() {
            self.retract(slot);
        }
        let told = room.close(&self.node.holding);
        self.local.room_news.told.extend(told);
    }

    /// Somebody found the queue of a session full, and maybe refused messages on its behalf.
    pub(super) fn found_full(&mut self, session: SessionRef) {
        let slot = session.slot;
        if !self.is_session(slot, session.id) {
            return;
        }
        let now = self.local.now;
        self.local.lend(slot);
        let client = &mut self.local.clients[slot];
        client.session.drop_stale(now);
        let refused = client.room().map_or(0, |room| room.take_refused());
        if refused > 0 {
            let reason = DropReason::QueueFull;
            self.local.dropped(slot, reason, refused as u64);
        }
        self.local.collect(slot);
    }

    /// What came with promises has its place.
    pub(crate) fn end_promises(&mut self, promises: impl IntoIterator<Item = Promise>) {
        for promise in promises {
            self.local.room_news.told.extend(promise.end());
        }
    }

    /// Tells the others what has changed in this turn.
    pub(super) fn pass_room_news_on(&mut self) {
        if self.local.room_news.is_empty() {
            return;
        }
        for slot in std::mem::take(&mut self.local.room_news.turned) {
            self.turned(slot);
        }
        let mut told = std::mem::take(&mut self.local.room_news.told);
        told.sort_by_key(|told| told.waiter);
        told.dedup_by_key(|told| told.waiter);
        for Told { waiter, room } in told {
            let (worker, shortage) = waiter;
            if worker == self.local.id {
                self.note_room(shortage, &room);
            } else {
                self.send(worker, Mail::Room(shortage, room));
            }
        }
    }

    /// A session became nearly full, or is no longer: those who look up its topics learn so.
    fn turned(&mut self, slot: Slot) {
        let Some(client) = self.local.clients.get(slot) else {
            return;
        };
        let Some(room) = client.room() else { return };
        match (client.is_announced(), room.is_nearly_full()) {
            (false, true) => self.announce(slot),
            (true, false) => {
                self.retract(slot);
                self.local.drop_unused_room(slot);
            }
            (true, true) | (false, false) => {}
        }
    }

    fn announce(&mut self, slot: Slot) {
        let client = &mut self.local.clients[slot];
        if let Some(own) = &mut client.rare_mut().room {
            own.is_announced = true;
        }
        self.for_each_filter(slot, |worker, (filter, qos), text| {
            let client = &worker.local.clients[slot];
            if let Some(room) = client.room().filter(|_| is_kept(Some(qos))) {
                worker.node.interest.add_nearly_full(text, room);
            }
            worker.count_nearly_full(filter, |sessions| sessions + 1);
            worker.review_nearly_full(filter, text);
        });
        let generation = self.node.interest.generation();
        if let Some(own) = &mut self.local.clients[slot].rare_mut().room {
            own.known_from = generation;
        }
    }

    fn retract(&mut self, slot: Slot) {
        let client = &mut self.local.clients[slot];
        if let Some(own) = &mut client.rare_mut().room {
            own.is_announced = false;
        }
        let id = client.session.id();
        self.for_each_filter(slot, |worker, (filter, qos), text| {
            if is_kept(Some(qos)) {
                worker.node.interest.remove_nearly_full(text, id);
            }
            worker.count_nearly_full(filter, |sessions| sessions.saturating_sub(1));
            worker.review_nearly_full(filter, text);
        });
    }

    /// Each filter of a session with its quality of service and its text.
    fn for_each_filter(
        &mut self,
        slot: Slot,
        mut each: impl FnMut(&mut Self, (FilterId, QoS), &str),
    ) {
        let filters = std::mem::take(&mut self.local.clients[slot].subscriptions);
        let mut text = std::mem::take(&mut self.text_scratch);
        for filter in &filters {
            let subscriber = self.index.destination(*filter, slot);
            if let Some(qos) = subscriber.map(|subscriber| subscriber.options.qos) {
                text.clear();
                self.index.filter_text(*filter, &mut text);
                each(self, (*filter, qos), &text);
            }
        }
        self.text_scratch = text;
        self.local.clients[slot].subscriptions = filters;
    }

    fn count_nearly_full(&mut self, filter: FilterId, change: impl FnOnce(usize) -> usize) {
        let found = self.nearly_full.entry(filter).or_default();
        found.sessions = change(found.sessions);
    }

    /// Whether all subscribers of a filter are nearly full, so that it is not certain that one has
    /// room.
    fn review_nearly_full(&mut self, filter: FilterId, text: &str) {
        let Some(found) = self.nearly_full.get_mut(&filter) else {
            return;
        };
        let all = self.index.destinations(filter).len();
        let are_all = found.sessions > 0 && found.sessions == all;
        if are_all != found.are_all {
            found.are_all = are_all;
            let interest = &self.node.interest;
            interest.set_all_nearly_full(text, self.local.id, are_all);
        }
        if found.sessions == 0 {
            self.nearly_full.remove(&filter);
        }
    }
}

/// The session queues what comes by a subscription with that quality of service. One with 0 does
/// not say that there is room: another one of the session may match the same topic.
fn is_kept(qos: Option<QoS>) -> bool {
    qos.is_some_and(|qos| qos != QoS::AtMostOnce)
}

/// By filter.
pub(crate) type NearlyFullFilters = HashMap<FilterId, NearlyFull>;
