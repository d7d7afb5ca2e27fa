//! Messages that become the retained ones of their topics, and what they and subscriptions leave on
//! the disk.

use std::sync::Arc;

use thrum_codec::QoS;
use thrum_codec::packet::SubscriptionOptions;
use thrum_codec::topic::TopicFilter;
use thrum_protection::MemoryLevel;
use thrum_protocol::{Message, Outgoing, Publication};
use thrum_routing::FilterId;
use thrum_storage::{Change, Retained, Subscription};

use super::Worker;
use crate::durable::Journal;
use crate::ids::Slot;
use crate::metrics::Counter;
use crate::publish::Publisher;
use crate::retained::RetainedSource;

impl Worker {
    /// A durable session has a subscription, or has it with other options.
    pub(crate) fn write_subscription(
        &mut self,
        slot: Slot,
        filter: TopicFilter<'_>,
        options: SubscriptionOptions,
        identifier: u32,
    ) {
        let session = &self.local.clients[slot].session;
        if session.is_durable()
            && let Some(journal) = &mut self.local.journal
        {
            journal.push(&Change::Subscription(Subscription {
                session: session.id(),
                filter: filter.as_str(),
                options,
                identifier,
                owed: None,
            }));
        }
    }

    /// What a durable session is still owed of the retained messages of a subscription; its output
    /// rests on that, or a message that is sent might be sent again after a crash.
    pub(crate) fn write_owed(&mut self, slot: Slot, filter: &str, owed: Option<&[u8]>) {
        let client = &self.local.clients[slot];
        let (session, connection) = (client.session.id(), client.connection);
        let found = self.index.find(filter);
        let subscriber = found.and_then(|id| self.index.destination(id, slot));
        if let Some(subscriber) = subscriber
            && client.session.is_durable()
            && let Some(journal) = &mut self.local.journal
        {
            journal.push(&Change::Subscription(Subscription {
                session,
                filter,
                options: subscriber.options,
                identifier: subscriber.identifier(),
                owed,
            }));
            if let Some(key) = connection {
                self.local.depend(key);
            }
        }
    }

    /// A durable session gave a subscription up.
    pub(crate) fn write_unsubscribed(&mut self, slot: Slot, filter: TopicFilter<'_>) {
        let session = &self.local.clients[slot].session;
        if session.is_durable()
            && let Some(journal) = &mut self.local.journal
        {
            journal.push(&Change::SubscriptionRemoved {
                session: session.id(),
                filter: filter.as_str(),
            });
        }
    }

    /// One more durable session wants a filter: other workers must know from the first on.
    pub(crate) fn durable_came(&mut self, filter: FilterId, text: &str) {
        let count = self.durable.filters.entry(filter).or_default();
        *count += 1;
        if *count == 1 {
            self.node.interest.add_durable(text, self.local.id);
        }
    }

    /// One durable session less wants a filter.
    pub(crate) fn durable_went(&mut self, filter: FilterId, text: &str) {
        let Some(count) = self.durable.filters.get_mut(&filter) else {
            return;
        };
        *count -= 1;
        if *count == 0 {
            self.durable.filters.remove(&filter);
            self.node.interest.remove_durable(text, self.local.id);
        }
    }

    /// A session that is taken up again is durable from now on, or no longer.
    pub(super) fn subscriptions_become(&mut self, slot: Slot, durable: bool) {
        let filters = self.local.clients[slot].subscriptions.clone();
        let mut text = String::new();
        for filter in filters {
            text.clear();
            self.index.filter_text(filter, &mut text);
            if durable {
                self.durable_came(filter, &text);
            } else {
                self.durable_went(filter, &text);
            }
        }
    }

    /// Whether a publish would add something to the disk.
    pub(crate) fn needs_disk(&mut self, publication: &Publication<'_>) -> bool {
        if publication.retain && !publication.payload.is_empty() {
            return true;
        }
        if self.local.delivered_qos(publication.qos, QoS::ExactlyOnce) == QoS::AtMostOnce {
            return false;
        }
        let hash = self.routes.hash(publication.topic);
        let entry = self.recall(publication.topic, hash);
        let route = &entry.route;
        let here = entry.local.iter();
        let needs = !route.durable.without(self.local.id).is_empty()
            || here
                .into_iter()
                .any(|filter| self.durable.filters.contains_key(filter))
            || route
                .groups
                .iter()
                .any(|(_, members)| members.members().any(|(member, _)| member.durable));
        self.routes.put(hash, entry);
        needs
    }

    pub(crate) fn retain_from(
        &mut self,
        publisher: Publisher,
        outgoing: &mut Outgoing<'_>,
    ) -> bool {
        let source = self.source_of(publisher.slot);
        self.retain(outgoing, source.as_ref(), publisher.can_be_told)
    }

    /// Makes a message its topic's retained one, as far as the limits allow; true if it may be
    /// delivered. Where nobody can be told that it is refused, the topic has no retained message
    /// from then on: one that is shown must not be older than what was delivered. [MQTT-3.3.1-5]
    /// [MQTT3-3.3.1-5]
    pub(crate) fn retain(
        &mut self,
        outgoing: &mut Outgoing<'_>,
        source: Option<&Arc<RetainedSource>>,
        can_be_told: bool,
    ) -> bool {
        let publication = outgoing.publication();
        let is_more = !publication.payload.is_empty() && !publication.topic.starts_with("$SYS/");
        let is_full = is_more
            && self.local.memory.level >= MemoryLevel::Full
            && self.node.retained.would_grow(outgoing.message());
        if !is_full && self.retain_message(outgoing.message(), source) {
            return true;
        }
        self.local.row().add(Counter::RetainedRefused, 1);
        let topic = outgoing.publication().topic;
        if !can_be_told {
            self.forget_retained(topic);
        }
        if self.may_log() {
            let done = if can_be_told {
                "refused"
            } else {
                "delivered, and nothing is retained there any more"
            };
            tracing::warn!(
                topic,
                "a message to be retained is {done}: a limit of retained messages is reached"
            );
        }
        !can_be_told
    }

    /// Makes a message its topic's retained one; false if the limits leave no room.
    fn retain_message(
        &mut self,
        message: &Arc<Message>,
        source: Option<&Arc<RetainedSource>>,
    ) -> bool {
        let stored = self.node.retained.store(message, source.cloned());
        let topic = message.topic();
        if let (Some(journal), Some(change)) = (self.retained_journal(topic), stored.change) {
            if message.payload().is_empty() {
                journal.push(&Change::RetainedRemoved { change, topic });
            } else {
                let message = journal.body(message);
                journal.push(&Change::Retained(Retained {
                    change,
                    topic,
                    message,
                    source: source.map(|source| &**source.bytes()),
                }));
            }
        }
        stored.kept
    }

    /// A topic has no retained message any more.
    fn forget_retained(&mut self, topic: &str) {
        let change = self.node.retained.remove(topic);
        if let (Some(journal), Some(change)) = (self.retained_journal(topic), change) {
            journal.push(&Change::RetainedRemoved { change, topic });
        }
    }

    /// Where changes of what is retained for a topic are written, on a node with storage.
    fn retained_journal(&mut self, topic: &str) -> Option<&mut Journal> {
        // What the node says about itself is said anew after a start.
        let journal = self.local.journal.as_deref_mut();
        journal.filter(|_| !topic.starts_with("$SYS/"))
    }
}
