//! The start of a worker on a node with storage: the sessions of the time before.

use mio::{Interest, Token};
use thrum_codec::topic::TopicFilter;
use thrum_protocol::server::{Session, StoredDelivery, Taken};
use thrum_storage::{Change, RecoveredSubscription};

use super::{Client, FIRST_LISTENER, Worker};
use crate::durable::{Journal, Part, Restored};
use crate::interest::SessionRef;
use crate::listener::Listener;
use crate::metrics::Counter;

impl Worker {
    /// The node has its sessions, so clients may come in.
    pub(super) fn listen(&mut self, mut listeners: Vec<Listener>) {
        for (number, listener) in listeners.iter_mut().enumerate() {
            let token = Token(FIRST_LISTENER - number);
            let registry = self.poll.registry();
            if let Err(error) = registry.register(&mut listener.socket, token, Interest::READABLE) {
                tracing::error!(%error, "cannot watch a listener; this worker accepts nothing from it");
            }
        }
        self.listeners = listeners;
        self.give_out_parked();
        self.end_what_is_over();
    }

    /// What was due before the start happens before a client can come back: its will is not taken back by that.
    fn end_what_is_over(&mut self) {
        let now = self.local.now;
        let is_over = |client: &Client| client.session.next_deadline().is_some_and(|at| at <= now);
        let clients = self.local.clients.iter();
        let over: Vec<(usize, u64)> = clients
            .filter(|(_, client)| is_over(client))
            .map(|(slot, client)| (slot, client.session.id()))
            .collect();
        for (slot, id) in over {
            self.session_timer(u32::try_from(slot).unwrap_or(u32::MAX), id);
            self.local.end_unit();
        }
    }

    /// Takes its sessions over. Messages that belong to no session are given out by [`Worker::give_out_parked`],
    /// once all workers have theirs.
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
        self.durable.found_parked = part.parked;
        if let Some(journal) = &mut self.local.journal {
            for session in part.replaced {
                journal.push(&Change::SessionRemoved { session });
                journal.end_unit();
            }
        }
        self
    }

    fn restore_session(&mut self, restored: Restored) {
        let Restored {
            mut stored,
            shared,
            subscriptions,
            was_connected,
        } = restored;
        let slot = self.local.next_slot();
        let session = SessionRef {
            worker: self.local.id,
            slot,
            id: stored.id,
        };
        let mut groups = Vec::new();
        for subscription in &subscriptions {
            groups.extend(self.rejoin(session, subscription));
        }
        for (place, filter) in shared {
            stored.deliveries[place].group = self.group_of(&filter);
        }
        let limits = &self.local.settings.session;
        let client = Client::new(Session::restore(stored, limits));
        let inserted = self.local.insert(client);
        debug_assert_eq!(slot, inserted, "the slot was announced to the groups");
        self.local.row().add(Counter::Sessions, 1);
        if !groups.is_empty() {
            self.local.clients[slot as usize].rare_mut().groups = groups;
        }
        for subscription in &subscriptions {
            self.resubscribe(slot, subscription);
        }
        if was_connected {
            // Or it would be away since the next start after the next crash, and never expire.
            self.write_session(slot, Some(self.local.now));
            self.local.end_unit();
        }
        self.arm(slot);
    }

    /// A membership in a shared group comes back; its client is away.
    fn rejoin(&self, session: SessionRef, subscription: &RecoveredSubscription) -> Option<u32> {
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
            },
        );
        self.node
            .interest
            .set_online(joined.group, session.id, false);
        self.local.row().add(Counter::Subscriptions, 1);
        self.local.row().add(Counter::SharedSubscriptions, 1);
        Some(joined.group)
    }

    fn resubscribe(&mut self, slot: u32, subscription: &RecoveredSubscription) {
        let filter = TopicFilter::parse(&subscription.filter).ok();
        if let Some(filter) = filter.filter(|filter| filter.shared().is_none()) {
            self.insert_filter(slot, filter, subscription.options, subscription.identifier);
        }
    }

    /// Publishes wills, and gives messages whose session had ended to members of their groups: a crash stopped both.
    pub(crate) fn give_out_parked(&mut self) {
        for restored in std::mem::take(&mut self.durable.found_parked) {
            let session = restored.stored.id;
            let mut deliveries = restored.stored.deliveries;
            for (place, filter) in restored.shared {
                deliveries[place].group = self.group_of(&filter);
            }
            let is_will = |delivery: &&StoredDelivery| delivery.group.is_none();
            let wills = deliveries.iter().filter(is_will);
            for will in wills.filter_map(|delivery| delivery.message.clone()) {
                self.publish_again(&will);
            }
            let taken = deliveries.into_iter().filter_map(|delivery| {
                Some(Taken {
                    group: delivery.group?,
                    message: delivery.message?,
                    seq: Some(delivery.seq),
                })
            });
            self.redispatch(taken.collect(), session, false);
            self.parked_given_out(session);
            self.local.end_unit();
        }
    }

    fn group_of(&self, filter: &str) -> Option<u32> {
        let shared = TopicFilter::parse(filter).ok()?.shared()?;
        self.node.interest.find_group(shared)
    }
}
