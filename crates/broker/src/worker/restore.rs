//! The start of a worker on a node with storage: the sessions of the time before.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use thrum_codec::topic::TopicFilter;
use thrum_protocol::server::{Session, Taken};
use thrum_storage::{Owner, RecoveredSubscription};

use super::{Client, Replay, TimedSession, Worker, Written};
use crate::durable::{Journal, Origin, Part, Passed, Restored};
use crate::ids::Slot;
use crate::interest::SessionRef;
use crate::mailbox::PublishDelivery;
use crate::metrics::Counter;
use crate::queue_room::QueueRoom;

/// What was on its way between workers when the node ended.
#[derive(Debug, Default)]
pub(crate) struct Found {
    shared: Vec<Restored>,
    /// Lanes whose messages all workers have taken over.
    lanes: Vec<u64>,
}

impl Found {
    /// There is something to do.
    pub(super) fn is_waiting(&self) -> bool {
        !(self.shared.is_empty() && self.lanes.is_empty())
    }
}

impl Worker {
    /// The node has its sessions: what waited for that is done before clients come in.
    pub(super) fn begin(&mut self) {
        self.end_lanes();
        self.end_what_is_over();
    }

    /// What was due before the start happens before a client can come back: its will is not taken
    /// back by that.
    fn end_what_is_over(&mut self) {
        let now = self.local.now;
        let is_over = |client: &Client| client.session.next_deadline().is_some_and(|at| at <= now);
        let clients = self.local.clients.iter();
        let over: Vec<TimedSession> = clients
            .filter(|(_, client)| is_over(client))
            .map(|(slot, client)| TimedSession::new(slot, &client.session))
            .collect();
        for timed in over {
            self.session_timer(timed);
            self.local.end_unit();
        }
    }

    /// Takes its sessions over. Messages of shared groups that belong to no session are given out
    /// once all workers have theirs, by [`Worker::begin`].
    pub(crate) fn restored(mut self, part: Option<(Journal, Part)>) -> Self {
        let Some((journal, part)) = part else {
            return self;
        };
        let mut journal = Box::new(journal);
        journal.set_now(self.local.now);
        self.local.journal = Some(journal);
        for restored in part.sessions {
            self.restore_session(restored);
        }
        self.durable.found = Found {
            shared: part.shared,
            lanes: part.lanes,
        };
        for session in part.over {
            self.forget_session(session);
            self.local.end_unit();
        }
        for passed in part.passed.iter() {
            self.take_passed(passed);
        }
        self.pass_room_news_on();
        // The end of the lanes is written behind this.
        self.settle();
        self
    }

    fn restore_session(&mut self, restored: Restored) {
        let Restored {
            mut stored,
            shared,
            subscriptions,
            owner,
            was_connected,
        } = restored;
        let slot = self.local.next_slot();
        let session = SessionRef {
            worker: self.local.id,
            slot,
            id: stored.id,
        };
        let room = Arc::new(QueueRoom::new(session, self.node.memory.shared_level()));
        let mut groups = Vec::new();
        for subscription in &subscriptions {
            groups.extend(self.rejoin(&room, subscription));
        }
        for (place, filter) in shared {
            stored.deliveries[place].group = self.group_of(&filter);
        }
        let limits = &self.local.settings.session;
        let client = Client::new(Session::restore(stored, limits));
        let inserted = self.local.insert(client);
        debug_assert_eq!(slot, inserted, "the slot was announced to the groups");
        self.local.row().add(Counter::Sessions, 1);
        // Where its client came from is known again when it comes back.
        let limits = &self.local.settings.sessions;
        let user = owner.as_deref().user();
        let holder = self.node.session_counts.holder(user, None, limits);
        self.count_session(slot, false, holder);
        if !groups.is_empty() || owner != Owner::Anonymous {
            let rare = self.local.clients[slot].rare_mut();
            let is_member = !groups.is_empty();
            rare.groups = groups;
            rare.restored_owner = Some(owner);
            if is_member {
                self.local.room_is(slot, room);
                self.local.groups_changed(slot);
            }
        }
        for subscription in &subscriptions {
            self.resubscribe(slot, subscription);
            if let Ok(filter) = TopicFilter::parse(&subscription.filter)
                && filter.shared().is_some()
            {
                self.local.clients[slot].subscription_came(filter);
            }
        }
        self.local.queue_grew(slot);
        if was_connected {
            // Or it would be away since the next start after the next crash, and never expire.
            self.write_session(slot, Some(self.local.now));
            self.local.end_unit();
        }
        self.arm(slot);
    }

    /// A membership in a shared group comes back; its client is away.
    fn rejoin(&self, room: &Arc<QueueRoom>, subscription: &RecoveredSubscription) -> Option<u32> {
        let session = room.session;
        let filter = TopicFilter::parse(&subscription.filter).ok()?;
        let shared = filter.shared()?;
        let identifier = (subscription.identifier != 0).then_some(subscription.identifier);
        let joined = self.node.interest.join(
            shared,
            crate::interest::Member {
                session,
                options: subscription.options,
                identifier,
                durable: true,
                room: Arc::clone(room),
            },
        );
        self.node
            .interest
            .set_online(joined.group, session.id, false);
        self.local.row().add(Counter::Subscriptions, 1);
        self.local.row().add(Counter::SharedSubscriptions, 1);
        Some(joined.group)
    }

    fn resubscribe(&mut self, slot: Slot, subscription: &RecoveredSubscription) {
        let filter = TopicFilter::parse(&subscription.filter).ok();
        if let Some(filter) = filter.filter(|filter| filter.shared().is_none()) {
            self.insert_filter(slot, filter, subscription.options, subscription.identifier);
            if let Some(owed) = &subscription.owed {
                let replay = Replay {
                    after: self.node.retained.read_place(&subscription.filter, owed),
                    written: Written::Place,
                };
                let rare = self.local.clients[slot].rare_mut();
                rare.replays.insert(subscription.filter.clone(), replay);
            }
        }
    }

    /// Delivers what was on its way to a worker, to those of its sessions that are here now and do
    /// not have it.
    fn take_passed(&mut self, passed: &Passed) {
        self.local.only = Some(passed.to);
        for message in &passed.messages {
            self.publish_from_worker(PublishDelivery {
                message: Arc::clone(message),
                origin: None,
                promises: Vec::new(),
                generation: 0,
                must_be_taken: true,
                heard: None,
            });
            self.local.end_unit();
        }
        self.local.only = None;
    }

    /// Once all workers have written down what was on its way to them, its lanes are empty; and
    /// what was for members of shared groups is given out.
    pub(super) fn end_lanes(&mut self) {
        let is_taken_over = self.node.taken_over.load(Ordering::Acquire) == self.node.workers();
        if !self.durable.found.is_waiting() || !is_taken_over {
            return;
        }
        let Found { shared, lanes } = std::mem::take(&mut self.durable.found);
        for lane in lanes {
            self.forget_session(lane);
        }
        self.local.end_unit();
        for restored in shared {
            let session = restored.stored.id;
            let mut deliveries = restored.stored.deliveries;
            for (place, filter) in restored.shared {
                deliveries[place].group = self.group_of(&filter);
            }
            let mut taken = Vec::new();
            for delivery in deliveries {
                match delivery.group.zip(delivery.message) {
                    Some((group, message)) => taken.push(Taken {
                        group,
                        message,
                        seq: Some(delivery.seq),
                    }),
                    None => self.nobody_is_left_for(session, delivery.seq),
                }
            }
            self.redispatch(taken, session, false);
            self.local.end_unit();
        }
    }

    /// A group lost its last member while a message was on its way to it.
    fn nobody_is_left_for(&mut self, session: u64, seq: u64) {
        self.moved(Some(Origin {
            session,
            seq,
            ends: false,
        }));
        self.local.row().add(Counter::DroppedNoSharedMember, 1);
    }

    fn group_of(&self, filter: &str) -> Option<u32> {
        let shared = TopicFilter::parse(filter).ok()?.shared()?;
        self.node.interest.find_group(shared)
    }
}
