//! Filters with subscribers whose queues are nearly full: publishers on other workers check those
//! queues first.

use std::sync::Arc;

use thrum_codec::QoS;
use thrum_routing::FilterId;

use super::core::Core;
use super::topics::Topics;
use crate::ids::Slot;
use crate::queue_room::is_short;

/// A change of a subscription, with its quality of service before and after; none where there was
/// or is no subscription.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    pub(super) slot: Slot,
    pub(super) before: Option<QoS>,
    pub(super) now: Option<QoS>,
}

/// The subscribers of one filter whose queues are nearly full.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NearlyFull {
    sessions: usize,
    /// Other workers are told that the queues of all subscribers are nearly full.
    are_all: bool,
}

impl Topics {
    /// Announces to other workers that the queue of a session is nearly full, before they can find
    /// its new subscription.
    pub(super) fn announce_subscription(
        &mut self,
        core: &mut Core,
        slot: Slot,
        filter: &str,
        qos: QoS,
    ) {
        let client = &core.sessions[slot];
        if qos == QoS::AtMostOnce {
            return;
        }
        let is_short = is_short(client.session.limits()) && core.rooms.is_needed(client);
        if is_short && !client.is_announced() {
            if client.room().is_none() {
                core.rooms.make(slot, &mut core.sessions[slot]);
            }
            core.show_room(slot);
            self.announce(core, slot);
            if let Some(own) = &mut core.sessions[slot].rare_mut().room {
                // No message is in transit to the session.
                own.known_from = 0;
            }
        }
        let client = &core.sessions[slot];
        if client.is_announced()
            && let Some(room) = client.room()
        {
            core.node.interest.add_nearly_full(filter, room);
        }
    }

    /// Updates the nearly full subscribers of a filter after a change of a subscription.
    pub(super) fn subscription_changed(
        &mut self,
        core: &Core,
        filter: FilterId,
        text: &str,
        change: Change,
    ) {
        let client = core.sessions.get(change.slot);
        let announced = client.filter(|client| client.is_announced());
        if let Some(client) = announced {
            let Change { before, now, .. } = change;
            if is_kept(before) && !is_kept(now) {
                let id = client.session.id();
                core.node.interest.remove_nearly_full(text, id);
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
            self.review_nearly_full(core, filter, text);
        }
    }

    /// Removes a filter that has no subscription left.
    pub(super) fn filter_removed(&mut self, core: &Core, filter: FilterId, text: &str) {
        if let Some(found) = self.nearly_full.remove(&filter)
            && found.are_all
        {
            let interest = &core.node.interest;
            interest.set_all_nearly_full(text, core.id, false);
        }
    }

    /// Withdraws the capacity of a session that ends, and notifies the publishers that wait for it.
    pub(super) fn close_room(&mut self, core: &mut Core, slot: Slot) {
        let Some(room) = core.sessions[slot].room().map(Arc::clone) else {
            return;
        };
        if core.sessions[slot].is_announced() {
            self.retract(core, slot);
        }
        let notices = room.close(&core.node.holding);
        core.rooms.notify(notices);
    }

    /// Announces to other workers that the queue of a session became nearly full or is no longer.
    pub(super) fn update_announcement(&mut self, core: &mut Core, slot: Slot) {
        let Some(client) = core.sessions.get(slot) else {
            return;
        };
        let Some(room) = client.room() else { return };
        match (client.is_announced(), room.is_nearly_full()) {
            (false, true) => self.announce(core, slot),
            (true, false) => {
                self.retract(core, slot);
                core.sessions[slot].drop_unused_room();
            }
            (true, true) | (false, false) => {}
        }
    }

    fn announce(&mut self, core: &mut Core, slot: Slot) {
        let client = &mut core.sessions[slot];
        if let Some(own) = &mut client.rare_mut().room {
            own.is_announced = true;
        }
        self.for_each_filter(core, slot, |topics, core, (filter, qos), text| {
            let client = &core.sessions[slot];
            if let Some(room) = client.room().filter(|_| is_kept(Some(qos))) {
                core.node.interest.add_nearly_full(text, room);
            }
            topics.count_nearly_full(filter, |sessions| sessions + 1);
            topics.review_nearly_full(core, filter, text);
        });
        let generation = core.node.interest.generation();
        if let Some(own) = &mut core.sessions[slot].rare_mut().room {
            own.known_from = generation;
        }
    }

    fn retract(&mut self, core: &mut Core, slot: Slot) {
        let client = &mut core.sessions[slot];
        if let Some(own) = &mut client.rare_mut().room {
            own.is_announced = false;
        }
        let id = client.session.id();
        self.for_each_filter(core, slot, |topics, core, (filter, qos), text| {
            if is_kept(Some(qos)) {
                core.node.interest.remove_nearly_full(text, id);
            }
            topics.count_nearly_full(filter, |sessions| sessions.saturating_sub(1));
            topics.review_nearly_full(core, filter, text);
        });
    }

    /// Calls a function for each filter of a session, with its quality of service and its text.
    fn for_each_filter(
        &mut self,
        core: &mut Core,
        slot: Slot,
        mut each: impl FnMut(&mut Self, &Core, (FilterId, QoS), &str),
    ) {
        let filters = std::mem::take(&mut core.sessions[slot].subscriptions);
        let mut text = std::mem::take(&mut self.text_scratch);
        for filter in &filters {
            let subscriber = self.index.destination(*filter, slot);
            if let Some(qos) = subscriber.map(|subscriber| subscriber.options.qos) {
                text.clear();
                self.index.filter_text(*filter, &mut text);
                each(self, core, (*filter, qos), &text);
            }
        }
        self.text_scratch = text;
        core.sessions[slot].subscriptions = filters;
    }

    fn count_nearly_full(&mut self, filter: FilterId, change: impl FnOnce(usize) -> usize) {
        let found = self.nearly_full.entry(filter).or_default();
        found.sessions = change(found.sessions);
    }

    /// Updates whether all subscribers of a filter are nearly full, so that none of them is certain
    /// to have room.
    fn review_nearly_full(&mut self, core: &Core, filter: FilterId, text: &str) {
        let Some(found) = self.nearly_full.get_mut(&filter) else {
            return;
        };
        let all = self.index.destinations(filter).len();
        let are_all = found.sessions > 0 && found.sessions == all;
        if are_all != found.are_all {
            found.are_all = are_all;
            let interest = &core.node.interest;
            interest.set_all_nearly_full(text, core.id, are_all);
        }
        if found.sessions == 0 {
            self.nearly_full.remove(&filter);
        }
    }
}

/// Whether a session queues messages of a subscription with that quality of service. A subscription
/// with QoS 0 does not prove that there is room: another subscription of the session may match the
/// same topic.
fn is_kept(qos: Option<QoS>) -> bool {
    qos.is_some_and(|qos| qos != QoS::AtMostOnce)
}
