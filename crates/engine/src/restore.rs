//! Restoration of the sessions of a worker at the start of a node with storage.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use thrum_codec::topic::TopicFilter;
use thrum_protocol::server::{GroupId, Session, Taken};
use thrum_storage::{Owner, RecoveredSubscription};

use super::client::{Client, Replay, Written};
use super::core::Core;
use super::router::Router;
use super::subscriber::Terms;
use crate::durable::{Journal, Origin, Part, Passed, Restored};
use crate::ids::Slot;
use crate::interest::{Member, SessionRef};
use crate::mail::PublishDelivery;
use crate::node::metrics::Counter;
use crate::queue_room::QueueRoom;

/// Messages that were in transit between workers when the node ended.
#[derive(Debug, Default)]
pub(super) struct RecoveredTransfers {
    shared: Vec<Restored>,
    /// Numbers of the lanes that are removed once all workers have stored the messages in them.
    lanes: Vec<u64>,
}

impl RecoveredTransfers {
    /// Whether there are messages or lanes left.
    pub(super) fn is_waiting(&self) -> bool {
        !(self.shared.is_empty() && self.lanes.is_empty())
    }
}

/// The parts of the engine that the restoration needs.
#[derive(Debug)]
pub(super) struct Restoring<'a> {
    pub(super) core: &'a mut Core,
    pub(super) router: &'a mut Router,
}

impl Restoring<'_> {
    /// Restores the sessions of the worker. Messages of shared groups that belong to no session are
    /// sent to members by [`Restoring::end_lanes`] once all workers have restored their sessions.
    pub(super) fn restore(&mut self, journal: Journal, part: Part) {
        let mut journal = Box::new(journal);
        journal.set_now(self.core.turn.now);
        self.core.durable.journal = Some(journal);
        for restored in part.sessions {
            self.restore_session(restored);
        }
        self.core.durable.recovered = RecoveredTransfers {
            shared: part.shared,
            lanes: part.lanes,
        };
        for session in part.replaced {
            self.core.durable.forget_session(session);
            self.core.durable.end_unit();
        }
        for passed in part.passed.iter() {
            self.take_passed(passed);
        }
    }

    fn restore_session(&mut self, restored: Restored) {
        let Restored {
            mut stored,
            shared,
            subscriptions,
            owner,
            was_connected,
        } = restored;
        let slot = self.core.sessions.next_slot();
        let session = SessionRef {
            worker: self.core.id,
            slot,
            id: stored.id,
        };
        let room = Arc::new(QueueRoom::new(
            session,
            self.core.node.memory.shared_level(),
        ));
        let mut groups = Vec::new();
        for subscription in &subscriptions {
            groups.extend(rejoin(self.core, &room, subscription));
        }
        for (place, filter) in shared {
            stored.deliveries[place].group = group_of(self.core, &filter);
        }
        let limits = &self.core.settings.session;
        let client = Client::new(Session::restore(stored, limits));
        let inserted = self.core.sessions.insert(client);
        debug_assert_eq!(slot, inserted, "the slot was announced to the groups");
        self.core.row().add(Counter::Sessions, 1);
        // The address of the client is known again when it connects.
        let limits = &self.core.settings.sessions;
        let user = owner.as_deref().user();
        let holder = self.core.node.session_counts.holder(user, None, limits);
        let row = self.core.node.metrics.row(self.core.id.index());
        let counts = &self.core.node.session_counts;
        self.core.sessions[slot].count(false, holder, row, counts);
        if !groups.is_empty() || owner != Owner::Anonymous {
            let rare = self.core.sessions[slot].rare_mut();
            let is_member = !groups.is_empty();
            rare.groups = groups;
            rare.restored_owner = Some(owner);
            if is_member {
                self.core.sessions[slot].set_room(room);
                self.core.groups_changed(slot);
            }
        }
        for subscription in &subscriptions {
            self.resubscribe(slot, subscription);
            if let Ok(filter) = TopicFilter::parse(&subscription.filter)
                && filter.shared().is_some()
            {
                self.core.sessions[slot].add_subscription_bytes(filter);
            }
        }
        let client = &mut self.core.sessions[slot];
        let level = self.core.memory.level;
        self.core.rooms.queue_grew(slot, client, level);
        if was_connected {
            // Without this record the next start after a crash would set a new time of
            // disconnection, and the session would never expire.
            self.core
                .durable
                .write_session(&self.core.sessions[slot], Some(self.core.turn.now));
            self.core.durable.end_unit();
        }
        self.core.arm(slot);
    }

    fn resubscribe(&mut self, slot: Slot, subscription: &RecoveredSubscription) {
        let filter = TopicFilter::parse(&subscription.filter).ok();
        if let Some(filter) = filter.filter(|filter| filter.shared().is_none()) {
            self.router.topics.insert_filter(
                self.core,
                slot,
                filter,
                Terms {
                    options: subscription.options,
                    identifier: subscription.identifier,
                },
            );
            if let Some(owed) = &subscription.owed {
                let replay = Replay {
                    after: self
                        .core
                        .node
                        .retained
                        .read_place(&subscription.filter, owed),
                    written: Written::Place,
                };
                let rare = self.core.sessions[slot].rare_mut();
                rare.replays.insert(subscription.filter.clone(), replay);
            }
        }
    }

    /// Delivers messages that were in transit to a worker to the sessions of this worker that were
    /// their receivers and have not stored them.
    fn take_passed(&mut self, passed: &Passed) {
        self.core.durable.receivers = Some(passed.to);
        for message in &passed.messages {
            self.router.publish_from_worker(
                self.core,
                PublishDelivery {
                    stamp: None,
                    message: Arc::clone(message),
                    origin: None,
                    promises: Vec::new(),
                    generation: 0,
                    must_be_taken: true,
                    reports: None,
                },
            );
            self.core.durable.end_unit();
        }
        self.core.durable.receivers = None;
    }

    /// Once all workers have stored the messages in transit to them, removes the lanes, and sends
    /// the messages of shared groups to members.
    pub(super) fn end_lanes(&mut self) {
        let is_taken_over =
            self.core.node.taken_over.load(Ordering::Acquire) == self.core.node.workers();
        if !self.core.durable.recovered.is_waiting() || !is_taken_over {
            return;
        }
        let RecoveredTransfers { shared, lanes } = std::mem::take(&mut self.core.durable.recovered);
        for lane in lanes {
            self.core.durable.forget_session(lane);
        }
        self.core.durable.end_unit();
        for restored in shared {
            let session = restored.stored.id;
            let mut deliveries = restored.stored.deliveries;
            for (place, filter) in restored.shared {
                deliveries[place].group = group_of(self.core, &filter);
            }
            let mut taken = Vec::new();
            for delivery in deliveries {
                match delivery.group.zip(delivery.message) {
                    Some((group, message)) => taken.push(Taken {
                        group,
                        message,
                        seq: Some(delivery.seq),
                    }),
                    None => drop_without_members(self.core, session, delivery.seq),
                }
            }
            self.router.redispatch(self.core, taken, session, false);
            self.core.durable.end_unit();
        }
    }
}

/// Restores the membership of a disconnected session in a shared group.
fn rejoin(
    core: &Core,
    room: &Arc<QueueRoom>,
    subscription: &RecoveredSubscription,
) -> Option<GroupId> {
    let session = room.session;
    let filter = TopicFilter::parse(&subscription.filter).ok()?;
    let shared = filter.shared()?;
    let identifier = (subscription.identifier != 0).then_some(subscription.identifier);
    let joined = core.node.interest.join(
        shared,
        Member {
            session,
            options: subscription.options,
            identifier,
            durable: true,
            room: Arc::clone(room),
        },
    );
    core.node
        .interest
        .set_online(joined.group, session.id, false);
    core.row().add(Counter::Subscriptions, 1);
    core.row().add(Counter::SharedSubscriptions, 1);
    Some(joined.group)
}

/// Drops a recovered message whose shared group has no member any more.
fn drop_without_members(core: &mut Core, session: u64, seq: u64) {
    core.durable.moved(Some(Origin {
        session,
        seq,
        ends: false,
    }));
    core.row().add(Counter::DroppedNoSharedMember, 1);
}

fn group_of(core: &Core, filter: &str) -> Option<GroupId> {
    let shared = TopicFilter::parse(filter).ok()?.shared()?;
    core.node.interest.find_group(shared)
}
