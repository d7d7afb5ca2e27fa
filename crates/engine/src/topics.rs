//! Level 2 of routing: the subscriptions of this worker by topic filter.

use std::collections::HashMap;

use thrum_codec::QoS;
use thrum_codec::topic::TopicFilter;
use thrum_protection::MemoryLevel;
use thrum_protocol::Publication;
use thrum_routing::{FilterId, Index};
use thrum_storage as storage;
use thrum_storage::Subscription;

use super::core::Core;
use super::inquiries::Inquiry;
use super::nearly_full::{Change, NearlyFull};
use super::sink_outbox::{is_any_durable, is_refused};
use super::subscriber::{Check, Subscriber, SubscriptionEntry, Terms};
use super::turn::ROUTE_UNITS;
use crate::ids::Slot;
use crate::interest::route_cache::{CachedRoute, RouteCache};
use crate::node::metrics::Counter;

/// The subscriptions of one worker by topic filter, and its cache of routes.
#[derive(Debug)]
pub struct Topics {
    pub(super) index: Index<Subscriber>,
    /// Cache of the routes of topics.
    pub routes: RouteCache,
    filter_scratch: Vec<FilterId>,
    pub(super) text_scratch: String,
    /// Number of durable sessions with a subscription to each filter.
    durable_filters: HashMap<FilterId, u32>,
    /// Filters with subscribers whose queues are nearly full, with their numbers.
    pub(super) nearly_full: HashMap<FilterId, NearlyFull>,
}

impl Topics {
    pub(super) fn new() -> Self {
        Self {
            index: Index::new(),
            routes: RouteCache::new(),
            filter_scratch: Vec::new(),
            text_scratch: String::new(),
            durable_filters: HashMap::new(),
            nearly_full: HashMap::new(),
        }
    }

    /// Number of filters with subscriptions, and number of those with nearly full subscribers.
    #[cfg(any(test, feature = "testing"))]
    pub fn counts(&self) -> [usize; 2] {
        [self.index.filter_count(), self.nearly_full.len()]
    }

    /// Returns the subscriptions to a filter.
    #[inline]
    pub(super) fn subscribers(&self, filter: FilterId) -> &[Subscriber] {
        self.index.destinations(filter)
    }

    /// Returns the subscription of a session to a filter.
    pub(super) fn subscriber(&self, slot: Slot, filter: &str) -> Option<Subscriber> {
        let found = self.index.find(filter)?;
        self.index.destination(found, slot).copied()
    }

    /// Number of sessions' subscriptions that match a topic, and the visits that it took.
    pub fn count_subscribers(&self, topic: &str) -> (u64, usize) {
        let mut filters = Vec::new();
        let visits = self.index.matches(topic, &mut filters);
        let found = filters.iter().map(|filter| self.subscribers(*filter).len());
        (found.sum::<usize>() as u64, visits)
    }

    /// Finds the number of a filter with subscriptions.
    pub fn find(&self, filter: &str) -> Option<FilterId> {
        self.index.find(filter)
    }

    /// Takes the route of a topic from the cache; it is looked up again if a filter that may match
    /// the topic has changed since.
    #[inline]
    pub fn recall(&mut self, core: &mut Core, topic: &str, hash: u64) -> Box<CachedRoute> {
        let mut entry = self.routes.take(topic, hash);
        let interest = &core.node.interest;
        if !interest.holds(&mut entry.node_version, topic) {
            let scratch = &mut self.filter_scratch;
            let (version, visits) = interest.route(topic, scratch, &mut entry.route);
            entry.node_version = version;
            core.turn.work += ROUTE_UNITS + visits as u64;
            self.count_route(core, &mut entry);
        }
        let changes = &self.routes.changes;
        if !changes.holds(&mut entry.local_version, topic) {
            entry.local_version = changes.version(topic);
            entry.local.clear();
            let visits = self.index.matches(topic, &mut entry.local);
            core.turn.work += ROUTE_UNITS + visits as u64;
            self.count_route(core, &mut entry);
        }
        entry
    }

    fn count_route(&mut self, core: &mut Core, entry: &mut CachedRoute) {
        if !self.routes.count(entry) {
            core.row().add(Counter::RoutesForgotten, 1);
        }
    }

    pub(super) fn is_subscribed(&self, core: &Core, slot: Slot, filter: TopicFilter<'_>) -> bool {
        if let Some(shared) = filter.shared() {
            let groups = core.sessions[slot].groups();
            let group = core.node.interest.find_group(shared);
            return group.is_some_and(|group| groups.contains(&group));
        }
        self.subscriber(slot, filter.as_str()).is_some()
    }

    /// Enters a subscription in the index; true if it is new.
    pub fn insert_filter(
        &mut self,
        core: &mut Core,
        slot: Slot,
        filter: TopicFilter<'_>,
        terms: Terms,
    ) -> bool {
        let options = terms.options;
        let subscriber = Subscriber::new(slot, terms);
        self.announce_subscription(core, slot, filter.as_str(), options.qos);
        let inserted = self.index.insert(filter.as_str(), subscriber);
        if inserted.first {
            self.routes.changes.note(filter.as_str());
            core.node.interest.add_worker(filter.as_str(), core.id);
        }
        let change = Change {
            slot,
            before: inserted.replaced.map(|replaced| replaced.options.qos),
            now: Some(options.qos),
        };
        self.subscription_changed(core, inserted.filter, filter.as_str(), change);
        let is_new = inserted.replaced.is_none();
        if is_new {
            let client = &mut core.sessions[slot];
            if client.subscriptions.is_empty() {
                // Most clients have one subscription, and the list would first grow to four.
                client.subscriptions.reserve_exact(1);
            }
            client.subscriptions.push(inserted.filter);
            client.add_subscription_bytes(filter);
            if client.session.is_durable() {
                self.count_durable(core, inserted.filter, filter.as_str());
            }
            core.row().add(Counter::Subscriptions, 1);
        }
        is_new
    }

    /// Sets whether each message of a subscription is checked.
    pub fn set_check(&mut self, slot: Slot, filter: TopicFilter<'_>, check: Check) {
        if let Some(subscriber) = self.subscriber(slot, filter.as_str()) {
            self.index.insert(filter.as_str(), subscriber.with(check));
        }
    }

    /// Whether each message of a subscription is checked.
    pub fn check_of(&self, slot: Slot, filter: TopicFilter<'_>) -> Check {
        let subscriber = self.subscriber(slot, filter.as_str());
        match subscriber.filter(Subscriber::is_checked) {
            None => Check::Never,
            Some(subscriber) => Check::each(subscriber.or_allowed()),
        }
    }

    /// Lists the subscriptions of a session, shared ones included.
    pub fn list_subscriptions(&self, core: &Core, slot: Slot) -> Vec<SubscriptionEntry> {
        let client = &core.sessions[slot];
        let plain = client.subscriptions.iter().filter_map(|id| {
            let mut text = String::new();
            self.index.filter_text(*id, &mut text);
            let subscriber = self.index.destination(*id, slot)?;
            Some(SubscriptionEntry {
                filter: text.into(),
                terms: subscriber.terms(),
            })
        });
        let id = client.session.id();
        let shared = client.groups().iter().filter_map(|group| {
            let group = core.node.interest.group(*group)?;
            let members = group.members()?;
            let (member, _) = members.member(id)?;
            Some(SubscriptionEntry {
                filter: group.text().into(),
                terms: Terms {
                    options: member.options,
                    identifier: member.identifier.unwrap_or(0),
                },
            })
        });
        plain.chain(shared).collect()
    }

    pub(super) fn unindex(&mut self, core: &mut Core, slot: Slot, filter: FilterId, durable: bool) {
        let mut text = std::mem::take(&mut self.text_scratch);
        text.clear();
        self.index.filter_text(filter, &mut text);
        if let Some(removed) = self.index.remove_by_id(filter, slot) {
            let change = Change {
                slot,
                before: Some(removed.destination.options.qos),
                now: None,
            };
            self.subscription_changed(core, filter, &text, change);
            core.row().subtract(Counter::Subscriptions, 1);
            if durable {
                self.uncount_durable(core, filter, &text);
            }
            if removed.last {
                self.routes.changes.note(&text);
                self.filter_removed(core, filter, &text);
                core.node.interest.remove_worker(&text, core.id);
            }
        }
        self.text_scratch = text;
    }

    /// Counts one more durable session with a subscription to a filter; the first one is entered in
    /// the table of interest.
    pub fn count_durable(&mut self, core: &mut Core, filter: FilterId, text: &str) {
        let count = self.durable_filters.entry(filter).or_default();
        *count += 1;
        if *count == 1 {
            core.node.interest.add_durable(text, core.id);
        }
    }

    /// Counts one durable session less with a subscription to a filter; the last one removes the
    /// entry in the table of interest.
    pub fn uncount_durable(&mut self, core: &mut Core, filter: FilterId, text: &str) {
        let Some(count) = self.durable_filters.get_mut(&filter) else {
            return;
        };
        *count -= 1;
        if *count == 0 {
            self.durable_filters.remove(&filter);
            core.node.interest.remove_durable(text, core.id);
        }
    }

    /// Updates the filters of a session that becomes durable or ceases to be durable when it is
    /// resumed.
    pub fn set_subscriptions_durable(&mut self, core: &mut Core, slot: Slot, durable: bool) {
        let filters = core.sessions[slot].subscriptions.clone();
        let mut text = String::new();
        for filter in filters {
            text.clear();
            self.index.filter_text(filter, &mut text);
            if durable {
                self.count_durable(core, filter, &text);
            } else {
                self.uncount_durable(core, filter, &text);
            }
        }
    }

    /// Whether a message would add state to the storage.
    pub fn needs_disk(&mut self, core: &mut Core, publication: &Publication<'_>) -> bool {
        if publication.retain && !publication.payload.is_empty() {
            return true;
        }
        if !core.is_kept(publication.qos) {
            return false;
        }
        let hash = self.routes.hash(publication.topic);
        let entry = self.recall(core, publication.topic, hash);
        let route = &entry.route;
        let here = entry.local.iter();
        let needs = !route.durable.without(core.id).is_empty()
            || here
                .into_iter()
                .any(|filter| self.durable_filters.contains_key(filter))
            || route
                .groups
                .iter()
                .any(|(_, members)| members.members().any(|(member, _)| member.durable))
            || is_any_durable(&core.node, route.sinks);
        self.routes.put(hash, entry);
        needs
    }

    /// Whether a sink in the route of a topic has no room and refuses its publisher.
    #[cold]
    pub(super) fn is_refused_by_sink(&mut self, core: &mut Core, topic: &str) -> bool {
        let hash = self.routes.hash(topic);
        let entry = self.recall(core, topic, hash);
        let is_refused = is_refused(core, entry.route.sinks);
        self.routes.put(hash, entry);
        is_refused
    }

    /// Records the position of the replay of a durable session, none if the replay is complete. The
    /// output depends on that, so that no message is sent again after a crash.
    pub(super) fn write_owed(
        &self,
        core: &mut Core,
        slot: Slot,
        filter: &str,
        owed: Option<&[u8]>,
    ) {
        let client = &core.sessions[slot];
        let (session, connection) = (client.session.id(), client.connection);
        let subscriber = self.subscriber(slot, filter);
        if let Some(subscriber) = subscriber
            && client.session.is_durable()
            && let Some(journal) = &mut core.durable.journal
        {
            journal.push(&storage::Change::Subscription(Subscription {
                session,
                filter,
                options: subscriber.options,
                identifier: subscriber.identifier(),
                owed,
            }));
            if let Some(key) = connection {
                core.outputs.depend(key);
            }
        }
    }

    /// Whether one of this worker's subscribers has memory for a message, or there is no
    /// subscriber.
    pub fn has_memory(&mut self, core: &mut Core, entry: &CachedRoute, published: QoS) -> bool {
        if core.memory.level < MemoryLevel::Short {
            return true;
        }
        let filters = entry.local.iter();
        let mut subscribers = filters.flat_map(|filter| self.index.destinations(*filter));
        let mut seen = 0;
        let has_memory = subscribers.any(|subscriber| {
            seen += 1;
            let qos = core
                .settings
                .delivered_qos(published, subscriber.options.qos);
            !core.lacks_memory_for(subscriber.slot, qos)
        });
        core.turn.work += seen;
        has_memory || seen == 0
    }

    /// Answers the question of another worker whether this worker has memory for a message.
    pub(super) fn answer_inquiry(&mut self, core: &mut Core, inquiry: &Inquiry) {
        let hash = self.routes.hash(&inquiry.topic);
        let entry = self.recall(core, &inquiry.topic, hash);
        let has_memory = self.has_memory(core, &entry, inquiry.qos);
        self.routes.put(hash, entry);
        inquiry.answer(core, has_memory);
    }
}
