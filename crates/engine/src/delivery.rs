//! One message to one session, and what a session does by itself.

use std::sync::Arc;

use thrum_codec::QoS;
use thrum_protection::MemoryLevel;
use thrum_protocol::server::{Delivered, DeliveryOptions, DropReason};
use thrum_protocol::{Outgoing, Publication, Time};

use super::core::Core;
use super::events::{report_deliveries, watch_deliveries};
use super::memory::lacks_memory;
use super::reach::{Match, Reach, Source};
use super::subscriber::Subscriber;
use super::turn::OUT_UNIT_BYTES;
use crate::durable::PassedTo;
use crate::ids::{ConnectionKey, Slot};
use crate::interest::{EventKind, SessionRef};
use crate::mail::EngineMail;
use crate::node::metrics::Counter;
use crate::retained::RetainedSource;

/// What a queued message takes beside its text.
const QUEUED_BYTES: usize = 200;

impl Core {
    /// One message to one session, if there is memory for it.
    #[inline]
    pub fn offer(
        &mut self,
        slot: Slot,
        outgoing: &mut Outgoing<'_>,
        options: DeliveryOptions<'_>,
    ) -> Delivered {
        if self.memory.level >= MemoryLevel::Short && self.lacks_memory_for(slot, options.qos) {
            self.turn.work += 1;
            self.dropped(slot, DropReason::MemoryShort, 1);
            return Delivered::Dropped(DropReason::MemoryShort);
        }
        self.deliver(slot, outgoing, options)
    }

    /// One message to one session, however short memory is.
    #[inline]
    pub fn deliver(
        &mut self,
        slot: Slot,
        outgoing: &mut Outgoing<'_>,
        options: DeliveryOptions<'_>,
    ) -> Delivered {
        let now = self.turn.now;
        self.turn.work += 1 + (outgoing.publication().payload.len() / OUT_UNIT_BYTES) as u64;
        // What was on its way with QoS 0 may have been delivered or dropped before, and later
        // messages after it.
        if let Some(only) = self.durable.only
            && (options.qos == QoS::AtMostOnce || !self.is_missing(slot, only, outgoing))
        {
            return Delivered::Queued;
        }
        self.lend(slot);
        let client = &mut self.sessions[slot];
        let connection = client.connection;
        let out = self.outputs.buffer(connection);
        let delivered = client.session.deliver(outgoing, options, now, out);
        let waiting = out.len();
        self.note(slot);
        match delivered {
            Delivered::Sent => {
                if let Some(reporter) = self.reporter(EventKind::MessageDelivered) {
                    let publication = outgoing.publication();
                    let qos = options.qos;
                    reporter.delivery(
                        slot,
                        &Publication {
                            qos,
                            ..*publication
                        },
                        None,
                    );
                }
                let payload_bytes = outgoing.publication().payload.len() as u64;
                self.row().add(Counter::PublishSent, 1);
                self.row().add(Counter::PublishBytesSent, payload_bytes);
                self.rooms
                    .show_sent(slot, &self.sessions[slot], self.memory.level);
                if let Some(key) = connection {
                    self.outputs.wrote(key);
                }
                let is_over = waiting > self.settings.output_bytes;
                if let Some(key) = connection.filter(|_| is_over) {
                    self.congest(key, slot);
                }
            }
            Delivered::Queued => {
                self.row().add(Counter::Queued, 1);
                self.has_queued(outgoing, options.identifiers.len());
                self.collect_dropped(slot);
                self.rooms
                    .queue_grew(slot, &mut self.sessions[slot], self.memory.level);
            }
            Delivered::Dropped(reason) => {
                self.dropped(slot, reason, 1);
                if let Some(reporter) = self.reporter(EventKind::DeliveryDropped) {
                    reporter.delivery(slot, outgoing.publication(), Some(reason));
                }
                self.collect_dropped(slot);
                self.show_room(slot);
            }
        }
        delivered
    }

    /// The output of a connection is over its limit: the session queues from now on.
    pub fn congest(&mut self, connection: ConnectionKey, slot: Slot) {
        let output = &mut self.outputs[connection];
        if !std::mem::replace(&mut output.is_congested, true) {
            self.row().add(Counter::LimitOutput, 1);
            self.sessions[slot].session.link_mut().set_congested(true);
        }
    }

    /// Others see the queue of a session as it is.
    #[inline]
    pub fn show_room(&mut self, slot: Slot) {
        self.rooms
            .show(slot, &self.sessions[slot], self.memory.level);
    }

    /// Counts drops by reason and logs the first of a series that loses QoS 1 or 2.
    #[cold]
    pub fn dropped(&mut self, slot: Slot, reason: DropReason, count: u64) {
        let counter = match reason {
            DropReason::QueueFull => Counter::DroppedQueueFull,
            DropReason::QueueDropped => Counter::DroppedQueueOldest,
            DropReason::QueueAge => Counter::DroppedQueueAge,
            DropReason::Offline => Counter::DroppedOffline,
            DropReason::SlowConsumer => Counter::DroppedSlowConsumer,
            DropReason::TooLarge => Counter::DroppedTooLarge,
            DropReason::Expired => Counter::DroppedExpired,
            DropReason::OutsideMount => Counter::DroppedOutsideMount,
            DropReason::NotAllowed => Counter::DroppedNotAllowed,
            DropReason::MemoryShort => Counter::DroppedMemoryShort,
        };
        self.row().add(counter, count);
        let client = &mut self.sessions[slot];
        let which = match reason {
            DropReason::QueueFull => "further",
            DropReason::QueueDropped => "the oldest",
            DropReason::QueueAge
            | DropReason::Offline
            | DropReason::SlowConsumer
            | DropReason::TooLarge
            | DropReason::Expired
            | DropReason::OutsideMount
            | DropReason::NotAllowed
            | DropReason::MemoryShort => return,
        };
        if !std::mem::replace(&mut client.rare_mut().drops_logged, true) {
            let (messages, bytes, inflight) = client.session.outbound().backlog();
            tracing::warn!(
                client_id = client.session.client_id(),
                messages,
                bytes,
                inflight,
                "queue full: {which} messages for this client are dropped until it takes some"
            );
        }
    }

    /// Counts what a session did by itself: messages sent from its queue, or dropped.
    #[inline]
    pub fn collect(&mut self, slot: Slot) {
        let client = &mut self.sessions[slot];
        let sent = client.session.link_mut().take_sent_later();
        if sent.messages > 0 {
            client.log_next_drop();
            let bytes = sent.payload_bytes + u64::from(sent.messages) * QUEUED_BYTES as u64;
            self.memory.shrank(bytes);
            let row = self.row();
            row.add(Counter::PublishSent, u64::from(sent.messages));
            row.add(Counter::PublishBytesSent, sent.payload_bytes);
        }
        self.collect_dropped(slot);
        self.show_room(slot);
    }

    /// Counts what a session dropped of what it held.
    #[inline]
    fn collect_dropped(&mut self, slot: Slot) {
        report_deliveries(self, slot);
        for (reason, count) in self.sessions[slot].session.outbound_mut().take_dropped() {
            self.dropped(slot, reason, u64::from(count));
        }
        self.note(slot);
    }

    /// A session is about to do something. A durable one gets a list for its steps, so that it need
    /// not make one.
    #[inline]
    pub fn lend(&mut self, slot: Slot) {
        watch_deliveries(self, slot);
        let session = &mut self.sessions[slot].session;
        if session.is_durable()
            && !session.journal_mut().has_list()
            && let Some(journal) = &mut self.durable.journal
            && let Some(list) = journal.spare_list()
        {
            session.journal_mut().reuse_list(list);
        }
    }

    /// Writes down what a durable session did since the last call.
    #[inline]
    pub fn note(&mut self, slot: Slot) {
        if self.sessions[slot].session.is_durable() {
            self.note_steps(slot);
        }
    }

    fn note_steps(&mut self, slot: Slot) {
        let client = &mut self.sessions[slot];
        let connection = client.connection;
        if let Some(journal) = &mut self.durable.journal
            && let Some(mut steps) = client.session.journal_mut().take_steps()
        {
            let rests = journal.steps(client.session.id(), &mut steps, &self.node.interest);
            journal.keep_list(steps);
            if let Some(key) = connection.filter(|_| rests) {
                self.outputs.depend(key);
            }
        }
    }

    /// Whether a session is one of those that a message was on its way to, and does not have it
    /// since an earlier start.
    #[cold]
    pub fn is_missing(&self, slot: Slot, to: PassedTo, outgoing: &mut Outgoing<'_>) -> bool {
        let session = &self.sessions[slot].session;
        to.includes(session.id()) && !session.outbound().holds(outgoing.message().stored_id())
    }

    /// A message waits for a session.
    pub fn has_queued(&mut self, outgoing: &Outgoing<'_>, identifiers: usize) {
        let publication = outgoing.publication();
        let text = publication.topic.len() + publication.payload.len();
        let bytes = QUEUED_BYTES + text + identifiers * size_of::<u32>();
        if self.memory.grew(bytes) {
            self.look_at_memory();
        }
        self.memory.has_queued |= self.memory.level >= MemoryLevel::Low;
    }

    /// Whether a message for that session would take memory that there is not.
    #[cold]
    pub fn lacks_memory_for(&self, slot: Slot, qos: QoS) -> bool {
        // What was on its way at the last start was acknowledged then.
        if self.durable.only.is_some() {
            return false;
        }
        let session = &self.sessions[slot].session;
        lacks_memory(session, qos, self.memory.level)
    }

    /// The limit in force is another one.
    pub fn set_memory_limit(&mut self) {
        let limit = self.settings.memory_bytes;
        if limit != self.memory.limit() {
            self.memory.set_limit(limit, self.node.workers());
            self.look_at_memory();
        }
    }

    /// The end of a turn.
    #[inline]
    pub fn look_at_memory_if_due(&mut self, now: Time) {
        if self.memory.is_to_look(&self.node.memory, now) {
            self.look_at_memory();
        }
    }

    /// Looks at the memory of the process now.
    #[cold]
    pub fn look_at_memory(&mut self) {
        self.memory.looks();
        let limit = self.memory.limit();
        let bytes = if limit == 0 {
            0
        } else {
            self.host.resident_bytes().unwrap_or(0)
        };
        let (level, before) = self.node.memory.observe(bytes, limit);
        self.memory.level = level;
        let Some(before) = before else { return };
        if level < before {
            if level == MemoryLevel::Ample {
                tracing::info!(bytes, limit, "{}", level.what());
            }
            return;
        }
        if before == MemoryLevel::Ample {
            self.row().add(Counter::OverloadMemory, 1);
        }
        tracing::warn!(bytes, limit, "{}", level.what());
    }

    /// Whether the publisher of a message that comes to a session was told that this session takes
    /// it.
    pub fn is_acknowledged(&self, slot: Slot, qos: QoS, source: Source<'_>) -> bool {
        let Some(delivery) = source.delivery() else {
            return false;
        };
        // One that is upgraded was not acknowledged.
        if qos == QoS::AtMostOnce || delivery.message.qos() == QoS::AtMostOnce {
            return false;
        }
        let client = &self.sessions[slot];
        let rare = client.rare.as_deref();
        let Some(own) = rare.and_then(|rare| rare.room.as_ref()) else {
            return true;
        };
        let id = client.session.id();
        // A message that was on its way at the last start was acknowledged then.
        self.durable.only.is_some()
            || !own.room.is_nearly_full()
            || !own.is_announced
            || delivery.is_promised_to(id)
            || delivery.generation < own.known_from
    }

    /// Whether a session takes a message however short memory is.
    pub fn is_promised(&self, slot: Slot, source: Source<'_>) -> bool {
        match source {
            Source::Publisher(_) => false,
            Source::LastResort(_) => true,
            Source::Worker(delivery) => {
                let is_of = |slot: Slot| self.sessions[slot].session.id();
                !delivery.promises.is_empty() && delivery.is_promised_to(is_of(slot))
            }
        }
    }

    /// One message, or several with some of the identifiers each if there are more than one message
    /// may have.
    /// [MQTT-3.3.4-3] [MQTT-3.3.4-5]
    pub(super) fn deliver_with(
        &mut self,
        found: Match,
        identifiers: &[u32],
        outgoing: &mut Outgoing<'_>,
        reach: &mut Reach<'_>,
    ) {
        let identifiers_max = self.settings.subscriptions.message_identifiers;
        if identifiers.len() <= identifiers_max {
            reach.add(self.hand_to(found, outgoing, identifiers));
            return;
        }
        self.row().add(Counter::LimitMessageIdentifiers, 1);
        for some in identifiers.chunks(identifiers_max) {
            reach.add(self.hand_to(found, outgoing, some));
        }
    }

    /// A message to a session that matched.
    #[inline]
    pub(super) fn hand_to(
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
    pub(super) fn matched(
        &self,
        subscriber: &Subscriber,
        published: &Publication<'_>,
    ) -> Option<Match> {
        let options = subscriber.options;
        if subscriber.is_checked()
            && !self.sessions[subscriber.slot].may_receive(
                published.topic,
                options.qos,
                subscriber.or_allowed(),
            )
        {
            return None;
        }
        // [MQTT-3.8.3-3]
        if options.no_local && self.sessions[subscriber.slot].session.id() == published.publisher {
            return None;
        }
        Some(Match {
            slot: subscriber.slot,
            qos: self.settings.delivered_qos(published.qos, options.qos),
            // [MQTT-3.3.1-12] [MQTT-3.3.1-13] [MQTT3-3.3.1-9]
            retain: published.retain && options.retain_as_published,
            identifier: subscriber.identifier(),
            is_acknowledged: false,
            is_promised: false,
        })
    }

    /// Somebody found the queue of a session full, and maybe refused messages on its behalf.
    pub fn found_full(&mut self, session: SessionRef) {
        let slot = session.slot;
        if !self.sessions.is(slot, session.id) {
            return;
        }
        let now = self.turn.now;
        self.lend(slot);
        let client = &mut self.sessions[slot];
        client.session.drop_stale(now);
        let refused = client.room().map_or(0, |room| room.take_refused());
        if refused > 0 {
            let reason = DropReason::QueueFull;
            self.dropped(slot, reason, refused as u64);
        }
        self.collect(slot);
    }

    /// What has expired in a queue is found by its owner alone.
    pub fn tell_of_full(&mut self, session: SessionRef) {
        if session.worker == self.id {
            self.found_full(session);
        } else {
            self.outboxes
                .send(session.worker, EngineMail::Full(session));
        }
    }

    /// The session came into a group or left one.
    pub(super) fn groups_changed(&mut self, slot: Slot) {
        let client = &mut self.sessions[slot];
        self.rooms.groups_changed(slot, client, self.memory.level);
    }

    /// Makes a message its topic's retained one, as far as the limits allow; true if it may be
    /// delivered. Where nobody can be told that it is refused, the topic has no retained message
    /// from then on: one that is shown must not be older than what was delivered. [MQTT-3.3.1-5]
    /// [MQTT3-3.3.1-5]
    pub fn retain(
        &mut self,
        outgoing: &mut Outgoing<'_>,
        source: Option<&Arc<RetainedSource>>,
        can_be_told: bool,
    ) -> bool {
        let publication = outgoing.publication();
        let is_more = !publication.payload.is_empty() && !publication.topic.starts_with("$SYS/");
        let is_full = is_more
            && self.memory.level >= MemoryLevel::Full
            && self.node.retained.would_grow(outgoing.message());
        if !is_full
            && self
                .durable
                .retain_message(&self.node.retained, outgoing.message(), source)
        {
            return true;
        }
        self.row().add(Counter::RetainedRefused, 1);
        let topic = outgoing.publication().topic;
        if !can_be_told {
            self.durable.forget_retained(&self.node.retained, topic);
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
}
