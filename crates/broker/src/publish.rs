//! A message enters: authorise, retain, match, hand over.

use std::rc::Rc;
use std::sync::Arc;

use thrum_codec::packet::Publish;
use thrum_codec::properties::PublishProperties;
use thrum_codec::{QoS, ReasonCode, Version};
use thrum_protocol::server::{Delivered, DeliveryOptions, DropReason};
use thrum_protocol::{Message, Outgoing, Publication};
use thrum_routing::FilterId;

use crate::durable::Origin;
use crate::mailbox::Mail;
use crate::metrics::Counter;
use crate::node::WorkerId;
use crate::route_cache::Remembered;
use crate::shared::Pool;
use crate::subscribe::Subscriber;
use crate::worker::Worker;

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
        self.refused += u32::from(delivered == Delivered::Dropped(DropReason::QueueFull));
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

/// What came of a PUBLISH of a client. Where it was not answered, nothing is acknowledged and the connection must end.
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

/// One session that several filters matched, while they are merged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Match {
    slot: u32,
    qos: QoS,
    retain: bool,
    identifier: u32,
}

impl Worker {
    /// A PUBLISH of a client, up to its PUBACK or PUBREC.
    pub(crate) fn publish_from(
        &mut self,
        slot: u32,
        publish: &Publish<'_>,
        alias: Option<&Rc<str>>,
    ) -> Published {
        let seen = alias.map_or(publish.topic, |topic| topic);
        if !self.may_publish(slot, seen, publish.qos, publish.retain) {
            return self.refuse_publish(slot, publish);
        }
        let mount = self.local.clients[slot as usize]
            .session
            .mount_point()
            .cloned();
        let mut text = String::new();
        let topic = match &mount {
            None => seen,
            Some(mount) => match mount.mounted_topic(seen, &mut text) {
                Some(topic) => topic,
                None => return self.refuse_publish(slot, publish),
            },
        };
        let client = &self.local.clients[slot as usize];
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
                .map(|s| self.local.now.plus_secs(s)),
            publisher: client.session.id(),
        };
        let row = self.local.row();
        row.add(Counter::PublishReceived, 1);
        row.add(Counter::PublishBytesReceived, publish.payload.len() as u64);
        let outcome = if is_reserved(seen) {
            ReasonCode::NotAuthorized
        } else if self.is_disk_full() && self.needs_disk(&publication) {
            self.local.row().add(Counter::StorageRefused, 1);
            if self.is_v3(slot) && publish.qos != QoS::AtMostOnce {
                let session = &mut self.local.clients[slot as usize].session;
                session.publish_withdrawn(publish.qos, publish.packet_id);
                return Published::DiskFull;
            }
            ReasonCode::QuotaExceeded
        } else {
            self.publish(&publication)
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

    /// The client may not publish it: it is told (0x87) if its version can tell, or disconnected if that is the policy.
    fn refuse_publish(&mut self, slot: u32, publish: &Publish<'_>) -> Published {
        self.local.row().add(Counter::PublishReceived, 1);
        if self.local.settings.access.access.policy.disconnects_denied {
            let session = &mut self.local.clients[slot as usize].session;
            session.publish_withdrawn(publish.qos, publish.packet_id);
            return Published::Denied;
        }
        if publish.qos != QoS::AtMostOnce {
            let outcome = ReasonCode::NotAuthorized;
            let (client, out) = self.local.client_and_output(slot);
            client
                .session
                .publish_done(publish.qos, publish.packet_id, outcome, out);
            self.local.row().add(Counter::AnswersSent, 1);
        }
        Published::Answered
    }

    fn is_v3(&self, slot: u32) -> bool {
        self.local.clients[slot as usize].session.version() != Version::V5
    }

    /// Routes a message that is borrowed from a read buffer.
    fn publish(&mut self, publication: &Publication<'_>) -> ReasonCode {
        let mut frames = std::mem::take(&mut self.frames);
        let mut outgoing = Outgoing::new(*publication, &mut frames);
        let outcome = self.route(&mut outgoing);
        self.frames = frames;
        outcome
    }

    /// Routes a message that is owned already: a will, `$SYS`, a redelivery to a shared group.
    pub(crate) fn publish_message(&mut self, message: &Arc<Message>) -> ReasonCode {
        let mut frames = std::mem::take(&mut self.frames);
        let mut outgoing = Outgoing::from_message(message, &mut frames);
        let outcome = self.route(&mut outgoing);
        self.frames = frames;
        outcome
    }

    fn route(&mut self, outgoing: &mut Outgoing<'_>) -> ReasonCode {
        // [MQTT3-3.3.1-12]: what is not to be retained leaves the retained message alone.
        let kept = !outgoing.publication().retain || self.retain(outgoing);
        let topic = outgoing.publication().topic;
        let hash = self.routes.hash(topic);
        let entry = self.recall(topic, hash);
        let mut reach = Reach::default();
        // [MQTT-3.3.2-3] [MQTT3-3.3.2-3]
        self.deliver_here(&entry, outgoing, &mut reach);
        let others = entry.route.workers & !self.local.id.bit();
        if others != 0 {
            self.hand_over(others, entry.route.durable, outgoing, &mut reach);
        }
        for (group, members) in &entry.route.groups {
            let to = Pool {
                group: *group,
                members,
                topic_hash: hash,
            };
            reach.add(self.deliver_shared(to, outgoing, None));
        }
        self.routes.put(hash, entry);
        if kept {
            reach.outcome()
        } else {
            ReasonCode::QuotaExceeded
        }
    }

    /// A message from another worker: for this worker's own subscriptions only.
    pub(crate) fn publish_from_worker(&mut self, message: &Arc<Message>, origin: Option<Origin>) {
        let hash = self.routes.hash(message.topic());
        let entry = self.recall(message.topic(), hash);
        let mut frames = std::mem::take(&mut self.frames);
        let message = &self.own_copy(message);
        let mut outgoing = Outgoing::from_message(message, &mut frames);
        self.deliver_here(&entry, &mut outgoing, &mut Reach::default());
        self.moved(origin);
        self.frames = frames;
        self.routes.put(hash, entry);
    }

    fn retain(&mut self, outgoing: &mut Outgoing<'_>) -> bool {
        let kept = self.retain_message(outgoing.message());
        if !kept {
            self.local.row().add(Counter::RetainedRefused, 1);
            if self.may_log() {
                let topic = outgoing.publication().topic;
                tracing::warn!(
                    topic,
                    "delivered but not retained: a limit of retained messages is reached"
                );
            }
        }
        kept
    }

    /// The topic's route, looked up again if filters that may match it came or went since it was remembered.
    #[inline]
    #[expect(
        clippy::unnecessary_box_returns,
        reason = "the entry stays where it is; only its pointer moves"
    )]
    pub(crate) fn recall(&mut self, topic: &str, hash: u64) -> Box<Remembered> {
        let mut entry = self.routes.take(topic, hash);
        let interest = &self.node.interest;
        if !interest.holds(&mut entry.node_version, topic) {
            let scratch = &mut self.filter_scratch;
            entry.node_version = interest.route(topic, scratch, &mut entry.route);
        }
        let changes = &self.routes.changes;
        if !changes.holds(&mut entry.local_version, topic) {
            entry.local_version = changes.version(topic);
            entry.local.clear();
            self.index.matches(topic, &mut entry.local);
        }
        entry
    }

    fn deliver_here(&mut self, entry: &Remembered, outgoing: &mut Outgoing<'_>, reach: &mut Reach) {
        match entry.local.as_slice() {
            [] => {}
            [filter] => self.deliver_to_all(*filter, outgoing, reach),
            _ => self.deliver_merged(entry, outgoing, reach),
        }
    }

    /// The subscribers of the one filter that matched.
    fn deliver_to_all(&mut self, filter: FilterId, outgoing: &mut Outgoing<'_>, reach: &mut Reach) {
        let published = *outgoing.publication();
        for subscriber in self.index.destinations(filter) {
            let Some(found) = self.local.matched(subscriber, &published) else {
                continue;
            };
            let one = [found.identifier];
            let identifiers = if found.identifier == 0 { &[][..] } else { &one };
            reach.add(
                self.local
                    .deliver(found.slot, outgoing, found.options(identifiers)),
            );
        }
    }

    /// Several filters matched: a session that is in more than one of them gets the message once,
    /// with the highest quality of service and all identifiers. [MQTT-3.3.4-2] [MQTT-3.3.4-4] [MQTT3-3.3.5-1]
    fn deliver_merged(
        &mut self,
        entry: &Remembered,
        outgoing: &mut Outgoing<'_>,
        reach: &mut Reach,
    ) {
        let mut matches = std::mem::take(&mut self.match_scratch);
        let mut identifiers = std::mem::take(&mut self.identifier_scratch);
        let published = *outgoing.publication();
        for filter in &entry.local {
            let subscribers = self.index.destinations(*filter).iter();
            matches.extend(subscribers.filter_map(|one| self.local.matched(one, &published)));
        }
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
            reach.add(
                self.local
                    .deliver(merged.slot, outgoing, merged.options(&identifiers)),
            );
        }
        matches.clear();
        self.match_scratch = matches;
        self.identifier_scratch = identifiers;
    }

    fn hand_over(
        &mut self,
        workers: u64,
        durable: u64,
        outgoing: &mut Outgoing<'_>,
        reach: &mut Reach,
    ) {
        let is_kept = outgoing.publication().qos != QoS::AtMostOnce;
        let mut rest = workers;
        while rest != 0 {
            let worker = WorkerId::new(u16::try_from(rest.trailing_zeros()).unwrap_or(0));
            rest &= rest - 1;
            let message = Arc::clone(outgoing.message());
            let is_durable = is_kept && worker.bit() & durable != 0;
            let origin = is_durable
                .then(|| self.place_to(worker, &message))
                .flatten();
            self.send(worker.index(), Mail::Publish(message, origin));
            reach.matched += 1;
        }
    }
}

impl crate::worker::Local {
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
        if options.no_local
            && self.clients[subscriber.slot as usize].session.id() == published.publisher
        {
            return None;
        }
        Some(Match {
            slot: subscriber.slot,
            // [MQTT-3.8.4-8] [MQTT3-3.8.4-6]
            qos: published.qos.min(options.qos),
            // [MQTT-3.3.1-12] [MQTT-3.3.1-13] [MQTT3-3.3.1-9]
            retain: published.retain && options.retain_as_published,
            identifier: subscriber.identifier(),
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
        }
    }
}

/// `$` topics belong to the server; clients may use those that no feature of ours owns. [MQTT3-4.7.2-1]
#[inline]
pub(crate) fn is_reserved(topic: &str) -> bool {
    const RESERVED: [&str; 4] = ["$SYS", "$share", "$queue", "$events"];
    if !topic.starts_with('$') {
        return false;
    }
    let first = topic.split('/').next().unwrap_or_default();
    RESERVED.contains(&first)
}
