//! A message enters: authorise, retain, match, hand over.

use std::rc::Rc;
use std::sync::Arc;

use thrum_codec::packet::Publish;
use thrum_codec::properties::PublishProperties;
use thrum_codec::{QoS, ReasonCode, Version};
use thrum_protection::MemoryLevel;
use thrum_protocol::server::{Delivered, DeliveryOptions, DropReason};
use thrum_protocol::{Message, Outgoing, Publication, Time};
use thrum_routing::FilterId;

use crate::ids::Slot;
use crate::interest::Route;
use crate::mailbox::{Mail, PublishDelivery};
use crate::metrics::Counter;
use crate::queue_room::{Promise, QueueRoom};
use crate::retained::RetainedSource;
use crate::route_cache::Remembered;
use crate::shared::Pool;
use crate::subscribe::Subscriber;
use crate::worker::{ROUTE_UNITS, Worker};
use crate::workers::WorkerSet;

/// What became of a message on this worker.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reach {
    /// Sessions, groups and workers it was for.
    matched: u32,
    /// Of those, how many could not take it because their queue is full.
    refused: u32,
}

impl Reach {
    fn add(&mut self, delivered: Delivered) {
        self.matched += 1;
        self.refused += u32::from(matches!(
            delivered,
            Delivered::Dropped(DropReason::QueueFull | DropReason::MemoryShort)
        ));
    }

    /// Somebody took it.
    fn is_taken(self) -> bool {
        self.refused < self.matched
    }

    /// The reason code for the publisher.
    fn outcome(self) -> ReasonCode {
        if self.matched == 0 {
            ReasonCode::NoMatchingSubscribers
        } else if self.refused == self.matched {
            ReasonCode::QuotaExceeded
        } else {
            ReasonCode::Success
        }
    }
}

/// What came of a PUBLISH of a client. Where it was not answered, nothing is acknowledged and the
/// connection must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Published {
    /// As far as it wants an answer.
    Answered,
    /// It cannot be kept, and the client's version has no way to be told.
    DiskFull,
    /// The client may not publish it, and the policy is to disconnect.
    Denied,
}

/// Whether a message may be refused because queues are full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clearance {
    /// By all that are: nobody was asked, or the publisher has waited for as long as it may.
    NotAsked,
    /// Not by those who hold its publisher back: they had room just now.
    Given,
    /// By none: it was acknowledged before.
    Acknowledged,
}

/// What is known of a PUBLISH that is handled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cleared {
    pub(crate) clearance: Clearance,
    /// When it came, if it has waited since.
    pub(crate) came_at: Option<Time>,
}

impl Cleared {
    /// Nobody was asked.
    pub(crate) const UNASKED: Self = Self {
        clearance: Clearance::NotAsked,
        came_at: None,
    };
}

/// A client that publishes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Publisher {
    pub(crate) slot: Slot,
    /// Its version and the quality of service have a way to say that a message is refused.
    pub(crate) can_be_told: bool,
}

/// Where a message comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source<'a> {
    /// A publisher of this worker, who is told what becomes of it.
    Publisher,
    /// Another worker.
    Worker(&'a PublishDelivery),
    /// The same, and nobody here has memory for what its publisher was told is taken.
    LastResort(&'a PublishDelivery),
}

impl<'a> Source<'a> {
    pub(crate) fn delivery(self) -> Option<&'a PublishDelivery> {
        match self {
            Self::Publisher => None,
            Self::Worker(delivery) | Self::LastResort(delivery) => Some(delivery),
        }
    }
}

/// One session that several filters matched, while they are merged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Match {
    slot: Slot,
    qos: QoS,
    retain: bool,
    identifier: u32,
    /// Its publisher was told that this session takes it.
    is_acknowledged: bool,
    /// It is taken however short memory is.
    is_promised: bool,
}

impl Worker {
    /// A PUBLISH of a client, up to its PUBACK or PUBREC.
    pub(crate) fn publish_from(
        &mut self,
        slot: Slot,
        publish: &Publish<'_>,
        alias: Option<&Rc<str>>,
        cleared: Cleared,
    ) -> Published {
        let seen = alias.map_or(publish.topic, |topic| topic);
        if !self.may_publish(slot, seen, publish.qos, publish.retain) {
            return self.refuse_publish(slot, publish);
        }
        if publish.payload.len() > self.local.settings.session.payload_bytes_max as usize {
            return self.refuse_payload(slot, seen, publish);
        }
        let mount = self.local.clients[slot].session.mount_point().cloned();
        let mut text = String::new();
        let topic = match &mount {
            None => seen,
            Some(mount) => match mount.mounted_topic(seen, &mut text) {
                Some(topic) => topic,
                None => return self.refuse_publish(slot, publish),
            },
        };
        let client = &self.local.clients[slot];
        let came_at = cleared.came_at.unwrap_or(self.local.now);
        let publication = Publication {
            topic,
            payload: publish.payload,
            properties: PublishProperties {
                topic_alias: None,
                message_expiry: None,
                ..publish.properties
            },
            qos: publish.qos,
            retain: publish.retain,
            expires_at: publish
                .properties
                .message_expiry
                .map(|s| came_at.plus_secs(s)),
            publisher: client.session.id(),
            publisher_hash: self.publisher_hash(client),
        };
        let row = self.local.row();
        row.add(Counter::PublishReceived, 1);
        row.add(Counter::PublishBytesReceived, publish.payload.len() as u64);
        let outcome = if is_reserved(seen) {
            ReasonCode::NotAuthorized
        } else if self.is_disk_full() && self.needs_disk(&publication) {
            self.local.row().add(Counter::StorageRefused, 1);
            if self.is_v3(slot) && publish.qos != QoS::AtMostOnce {
                let session = &mut self.local.clients[slot].session;
                session.publish_withdrawn(publish.qos, publish.packet_id);
                return Published::DiskFull;
            }
            ReasonCode::QuotaExceeded
        } else {
            let publisher = Publisher {
                slot,
                can_be_told: publish.qos != QoS::AtMostOnce && !self.is_v3(slot),
            };
            self.publish(&publication, cleared.clearance, publisher)
        };
        if publish.qos != QoS::AtMostOnce {
            let (client, out) = self.local.client_and_output(slot);
            client
                .session
                .publish_done(publish.qos, publish.packet_id, outcome, out);
            self.local.row().add(Counter::AnswersSent, 1);
        }
        Published::Answered
    }

    /// The client may not publish it: it is told (0x87) if its version can tell, or disconnected if
    /// that is the policy.
    fn refuse_publish(&mut self, slot: Slot, publish: &Publish<'_>) -> Published {
        self.local.row().add(Counter::PublishReceived, 1);
        if self.local.settings.access.access.policy.disconnects_denied {
            let session = &mut self.local.clients[slot].session;
            session.publish_withdrawn(publish.qos, publish.packet_id);
            return Published::Denied;
        }
        self.answer_publish(slot, publish, ReasonCode::NotAuthorized);
        Published::Answered
    }

    /// A payload over `limits.max_payload`: the publisher is told if its version can tell. PUBACK
    /// and PUBREC know no "packet too large", and the limit is one that the owner of the broker has
    /// set.
    #[cold]
    fn refuse_payload(&mut self, slot: Slot, topic: &str, publish: &Publish<'_>) -> Published {
        let row = self.local.row();
        row.add(Counter::PublishReceived, 1);
        row.add(Counter::LimitPayload, 1);
        if self.may_log() {
            tracing::info!(
                client_id = self.local.clients[slot].session.client_id(),
                topic,
                bytes = publish.payload.len(),
                "message dropped: its payload is larger than limits.max_payload"
            );
        }
        self.answer_publish(slot, publish, ReasonCode::QuotaExceeded);
        Published::Answered
    }

    fn answer_publish(&mut self, slot: Slot, publish: &Publish<'_>, outcome: ReasonCode) {
        if publish.qos != QoS::AtMostOnce {
            let (client, out) = self.local.client_and_output(slot);
            client
                .session
                .publish_done(publish.qos, publish.packet_id, outcome, out);
            self.local.row().add(Counter::AnswersSent, 1);
        }
    }

    pub(crate) fn is_v3(&self, slot: Slot) -> bool {
        self.local.clients[slot].session.version() != Version::V5
    }

    /// Routes a message that is borrowed from a read buffer. One that is to be retained and cannot
    /// be is refused as a whole if its publisher can be told.
    fn publish(
        &mut self,
        publication: &Publication<'_>,
        clearance: Clearance,
        publisher: Publisher,
    ) -> ReasonCode {
        let mut frames = std::mem::take(&mut self.frames);
        let mut outgoing = Outgoing::new(*publication, &mut frames);
        let outcome = if !publication.retain || self.retain_from(publisher, &mut outgoing) {
            self.route(&mut outgoing, clearance)
        } else {
            ReasonCode::QuotaExceeded
        };
        self.frames = frames;
        outcome
    }

    /// Routes a message that is owned already: a will, `$SYS`.
    pub(crate) fn publish_message(
        &mut self,
        message: &Arc<Message>,
        source: Option<&Arc<RetainedSource>>,
    ) -> ReasonCode {
        let mut frames = std::mem::take(&mut self.frames);
        let mut outgoing = Outgoing::from_message(message, &mut frames);
        // [MQTT3-3.3.1-12]: what is not to be retained leaves the retained message alone.
        if message.retain() {
            self.retain(&mut outgoing, source, false);
        }
        let outcome = self.route(&mut outgoing, Clearance::NotAsked);
        self.frames = frames;
        outcome
    }

    fn route(&mut self, outgoing: &mut Outgoing<'_>, clearance: Clearance) -> ReasonCode {
        let topic = outgoing.publication().topic;
        let hash = self.routes.hash(topic);
        let entry = self.recall(topic, hash);
        let mut reach = Reach::default();
        // [MQTT-3.3.2-3] [MQTT3-3.3.2-3]
        self.deliver_here(&entry, outgoing, Source::Publisher, &mut reach);
        for (group, members) in &entry.route.groups {
            let to = Pool {
                group: *group,
                members,
            };
            reach.add(self.deliver_shared(to, outgoing, None, clearance));
        }
        let others = entry.route.workers.without(self.local.id);
        if !others.is_empty() {
            self.hand_over(&entry, outgoing, clearance, &mut reach);
        }
        self.routes.put(hash, entry);
        reach.outcome()
    }

    /// A message from another worker: for this worker's own subscriptions only.
    pub(crate) fn publish_from_worker(&mut self, delivery: PublishDelivery) {
        let message = &delivery.message;
        let hash = self.routes.hash(message.topic());
        let entry = self.recall(message.topic(), hash);
        let mut frames = std::mem::take(&mut self.frames);
        let message = &self.own_copy(message);
        let mut outgoing = Outgoing::from_message(message, &mut frames);
        let source = if delivery.must_be_taken && !self.has_memory(&entry, message.qos()) {
            Source::LastResort(&delivery)
        } else {
            Source::Worker(&delivery)
        };
        let mut reach = Reach::default();
        self.local.memory.has_queued = false;
        self.deliver_here(&entry, &mut outgoing, source, &mut reach);
        if let Some(heard) = &delivery.heard {
            let is_refused = reach.matched > 0 && !reach.is_taken();
            heard.tell(self.local.id, self.local.memory.has_queued || is_refused);
        }
        self.moved(delivery.origin);
        self.end_promises(delivery.promises);
        self.frames = frames;
        self.routes.put(hash, entry);
    }

    /// The topic's route, looked up again if filters that may match it came or went since it was
    /// remembered.
    #[inline]
    pub(crate) fn recall(&mut self, topic: &str, hash: u64) -> Box<Remembered> {
        let mut entry = self.routes.take(topic, hash);
        let interest = &self.node.interest;
        if !interest.holds(&mut entry.node_version, topic) {
            let scratch = &mut self.filter_scratch;
            let (version, visits) = interest.route(topic, scratch, &mut entry.route);
            entry.node_version = version;
            self.local.work += ROUTE_UNITS + visits as u64;
            self.count_route(&mut entry);
        }
        let changes = &self.routes.changes;
        if !changes.holds(&mut entry.local_version, topic) {
            entry.local_version = changes.version(topic);
            entry.local.clear();
            let visits = self.index.matches(topic, &mut entry.local);
            self.local.work += ROUTE_UNITS + visits as u64;
            self.count_route(&mut entry);
        }
        entry
    }

    fn count_route(&mut self, entry: &mut Remembered) {
        if !self.routes.count(entry) {
            self.local.row().add(Counter::RoutesForgotten, 1);
        }
    }

    fn deliver_here(
        &mut self,
        entry: &Remembered,
        outgoing: &mut Outgoing<'_>,
        source: Source<'_>,
        reach: &mut Reach,
    ) {
        match entry.local.as_slice() {
            [] => {}
            [filter] => self.deliver_to_all(*filter, outgoing, source, reach),
            _ => self.deliver_merged(entry, outgoing, source, reach),
        }
    }

    /// The subscribers of the one filter that matched.
    fn deliver_to_all(
        &mut self,
        filter: FilterId,
        outgoing: &mut Outgoing<'_>,
        source: Source<'_>,
        reach: &mut Reach,
    ) {
        let published = *outgoing.publication();
        for subscriber in self.index.destinations(filter) {
            let Some(mut found) = self.local.matched(subscriber, &published) else {
                continue;
            };
            found.is_acknowledged = self.local.is_acknowledged(found.slot, found.qos, source);
            found.is_promised = self.local.is_promised(found.slot, source);
            let one = [found.identifier];
            let identifiers = if found.identifier == 0 { &[][..] } else { &one };
            reach.add(self.local.hand_to(found, outgoing, identifiers));
        }
    }

    /// Several filters matched: a session that is in more than one of them gets the message once,
    /// with the highest quality of service and all identifiers. [MQTT-3.3.4-2] [MQTT-3.3.4-4]
    /// [MQTT3-3.3.5-1]
    fn deliver_merged(
        &mut self,
        entry: &Remembered,
        outgoing: &mut Outgoing<'_>,
        source: Source<'_>,
        reach: &mut Reach,
    ) {
        let mut matches = std::mem::take(&mut self.match_scratch);
        let mut identifiers = std::mem::take(&mut self.identifier_scratch);
        let published = *outgoing.publication();
        for filter in &entry.local {
            let subscribers = self.index.destinations(*filter).iter();
            matches.extend(subscribers.filter_map(|one| self.local.matched(one, &published)));
        }
        self.local.work += matches.len() as u64;
        matches.sort_by_key(|found| found.slot);
        for same in matches.chunk_by(|one, next| one.slot == next.slot) {
            let mut merged = same[0];
            identifiers.clear();
            for found in same {
                merged.qos = merged.qos.max(found.qos);
                merged.retain |= found.retain;
                identifiers.extend((found.identifier != 0).then_some(found.identifier));
            }
            identifiers.sort_unstable();
            identifiers.dedup();
            merged.is_acknowledged = self.local.is_acknowledged(merged.slot, merged.qos, source);
            merged.is_promised = self.local.is_promised(merged.slot, source);
            self.deliver_with(merged, &identifiers, outgoing, reach);
        }
        matches.clear();
        self.match_scratch = matches;
        self.identifier_scratch = identifiers;
    }

    /// One message, or several with some of the identifiers each if there are more than one message
    /// may have.
    /// [MQTT-3.3.4-3] [MQTT-3.3.4-5]
    fn deliver_with(
        &mut self,
        found: Match,
        identifiers: &[u32],
        outgoing: &mut Outgoing<'_>,
        reach: &mut Reach,
    ) {
        let identifiers_max = self.local.settings.message_identifiers;
        if identifiers.len() <= identifiers_max {
            reach.add(self.local.hand_to(found, outgoing, identifiers));
            return;
        }
        self.local.row().add(Counter::LimitMessageIdentifiers, 1);
        for some in identifiers.chunks(identifiers_max) {
            reach.add(self.local.hand_to(found, outgoing, some));
        }
    }

    /// The other workers that want a message get it, unless none of them is certain to have room
    /// and nobody else takes it.
    fn hand_over(
        &mut self,
        entry: &Remembered,
        outgoing: &mut Outgoing<'_>,
        clearance: Clearance,
        reach: &mut Reach,
    ) {
        let route = &entry.route;
        let others = route.workers.without(self.local.id);
        let published = outgoing.publication().qos;
        let is_taken = reach.is_taken();
        let takers = self.takers(outgoing.publication());
        let have_memory = takers.unwrap_or(WorkerSet::ALL);
        if (others & have_memory).is_empty() && !is_taken {
            self.refuse_for_memory(others, reach);
            return;
        }
        let mut promises = Vec::new();
        if published != QoS::AtMostOnce && !route.nearly_full.is_empty() {
            self.take_promises(route, outgoing, (clearance, have_memory), &mut promises);
            let rooms = route.nearly_full.iter();
            let uncertain: WorkerSet = rooms.map(|room| room.session.worker).collect();
            // Who only has subscriptions with QoS 0 queues nothing.
            let certain =
                (others & have_memory & route.certain) | ((others & have_memory) - uncertain);
            let is_certain = is_taken || !certain.is_empty();
            if !is_certain && promises.is_empty() && self.refuse_for(route, reach) {
                return;
            }
        }
        // Where nobody was asked, level and answer are of this turn.
        let is_told = published != QoS::AtMostOnce && !is_taken;
        let must_take = match takers {
            Some(takers) if is_told => takers,
            None if is_told && self.local.memory.level < MemoryLevel::Short => others,
            Some(_) | None => WorkerSet::NONE,
        };
        reach.matched += others.len();
        self.send_to_others(entry, outgoing, must_take, promises);
    }

    fn send_to_others(
        &mut self,
        entry: &Remembered,
        outgoing: &mut Outgoing<'_>,
        must_take: WorkerSet,
        mut promises: Vec<Promise>,
    ) {
        let route = &entry.route;
        let others = route.workers.without(self.local.id);
        let published = *outgoing.publication();
        let is_kept = self.local.delivered_qos(published.qos, QoS::ExactlyOnce) != QoS::AtMostOnce;
        let heard = self.heard_by(published.publisher);
        self.heed(heard.as_ref(), others);
        for worker in others {
            let message = Arc::clone(outgoing.message());
            let is_durable = is_kept && route.durable.contains(worker);
            let origin = is_durable
                .then(|| self.place_to(worker, &message))
                .flatten();
            let its_own = |promise: &mut Promise| promise.worker() == worker;
            let delivery = PublishDelivery {
                message,
                origin,
                promises: promises.extract_if(.., its_own).collect(),
                generation: entry.node_version.generation(),
                must_be_taken: must_take.contains(worker),
                heard: heard.clone(),
            };
            self.send(worker, Mail::Publish(delivery));
        }
    }

    /// Nobody on these workers has memory for a message, and nobody else takes it.
    #[cold]
    fn refuse_for_memory(&mut self, others: WorkerSet, reach: &mut Reach) {
        let count = others.len();
        reach.matched += count;
        reach.refused += count;
        self.local
            .row()
            .add(Counter::DroppedMemoryShort, count.into());
    }

    /// Room in the queues of other workers' sessions that are nearly full: of all that hold
    /// publishers back, and of one of the others, so that one has room for certain.
    fn take_promises(
        &mut self,
        route: &Route,
        outgoing: &mut Outgoing<'_>,
        (clearance, have_memory): (Clearance, WorkerSet),
        promises: &mut Vec<Promise>,
    ) {
        let bytes = outgoing.message().bytes_len();
        let asked = have_memory.without(self.local.id);
        self.local.work += route.nearly_full.len() as u64;
        let is_asked = |room: &&Arc<QueueRoom>| asked.contains(room.session.worker);
        let elsewhere = || route.nearly_full.iter().filter(is_asked);
        for room in elsewhere().filter(|room| room.holds()) {
            promises.extend(match clearance {
                Clearance::Given | Clearance::Acknowledged => Some(room.promise(bytes)),
                Clearance::NotAsked => room.try_promise(bytes),
            });
        }
        if promises.is_empty() {
            let mut others = elsewhere().filter(|room| !room.holds());
            promises.extend(others.find_map(|room| room.try_promise(bytes)));
        }
    }

    /// Nobody on another worker has room: their sessions are not given the message, so that nobody
    /// has it of whom the publisher is told otherwise. False if there are none.
    fn refuse_for(&mut self, route: &Route, reach: &mut Reach) -> bool {
        let here = self.local.id;
        let mut are_any = false;
        for room in &route.nearly_full {
            if room.session.worker == here {
                continue;
            }
            are_any = true;
            reach.matched += 1;
            reach.refused += 1;
            if room.refuse() {
                let session = room.session;
                self.send(session.worker, Mail::Full(session));
            }
        }
        are_any
    }
}

impl crate::worker::Local {
    /// The quality of service that a subscription gets a message with: the lower one of both,
    /// unless `limits.client.upgrade_outgoing_qos` is on. [MQTT-3.8.4-8] [MQTT3-3.8.4-6]
    #[inline]
    pub(crate) fn delivered_qos(&self, published: QoS, asked: QoS) -> QoS {
        published.max(self.settings.published_qos_min).min(asked)
    }

    /// A message to a session that matched.
    #[inline]
    fn hand_to(
        &mut self,
        found: Match,
        outgoing: &mut Outgoing<'_>,
        identifiers: &[u32],
    ) -> Delivered {
        let options = found.options(identifiers);
        if found.is_promised {
            self.deliver(found.slot, outgoing, options)
        } else {
            self.offer(found.slot, outgoing, options)
        }
    }

    /// How a subscription wants this message; none if it is the client's own and it wants no such.
    #[inline]
    fn matched(&self, subscriber: &Subscriber, published: &Publication<'_>) -> Option<Match> {
        let options = subscriber.options;
        if subscriber.is_checked()
            && !self.may_receive(
                subscriber.slot,
                published.topic,
                options.qos,
                subscriber.or_allowed(),
            )
        {
            return None;
        }
        // [MQTT-3.8.3-3]
        if options.no_local && self.clients[subscriber.slot].session.id() == published.publisher {
            return None;
        }
        Some(Match {
            slot: subscriber.slot,
            qos: self.delivered_qos(published.qos, options.qos),
            // [MQTT-3.3.1-12] [MQTT-3.3.1-13] [MQTT3-3.3.1-9]
            retain: published.retain && options.retain_as_published,
            identifier: subscriber.identifier(),
            is_acknowledged: false,
            is_promised: false,
        })
    }
}

impl Match {
    fn options(self, identifiers: &[u32]) -> DeliveryOptions<'_> {
        DeliveryOptions {
            qos: self.qos,
            retain: self.retain,
            identifiers,
            group: None,
            is_acknowledged: self.is_acknowledged,
        }
    }
}

/// `$` topics belong to the server; clients may use those that no feature of ours owns.
/// [MQTT3-4.7.2-1]
#[inline]
pub(crate) fn is_reserved(topic: &str) -> bool {
    const RESERVED: [&str; 4] = ["$SYS", "$share", "$queue", "$events"];
    if !topic.starts_with('$') {
        return false;
    }
    let first = topic.split('/').next().unwrap_or_default();
    RESERVED.contains(&first)
}
