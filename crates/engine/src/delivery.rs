//! Delivery of one message to one session, and the accounting of messages that a session sends or
//! drops later.

use std::sync::Arc;

use thrum_codec::QoS;
use thrum_protection::MemoryLevel;
use thrum_protocol::server::{Delivered, DeliveryOptions, DropReason};
use thrum_protocol::{Outgoing, Publication, Time};

use super::core::Core;
use super::events::{drop_reason_name, report_deliveries, watch_deliveries};
use super::memory::lacks_memory;
use super::reach::{Match, Reach, Source};
use super::refusals::PublishRefusal;
use super::subscriber::Subscriber;
use super::turn::OUT_UNIT_BYTES;
use super::undelivered::CountedMessage;
use crate::durable::PassedTo;
use crate::ids::{ConnectionKey, Slot};
use crate::interest::{EventKind, SessionRef};
use crate::mail::EngineMail;
use crate::node::metrics::Counter;
use crate::retained::RetainedSource;
use crate::timeline::tell_drops_over;

/// Memory in bytes of a queued message beside its topic and payload.
const QUEUED_BYTES: usize = 200;

impl Core {
    /// Delivers a message to a session unless memory is too short for it.
    #[inline]
    pub fn offer(
        &mut self,
        slot: Slot,
        outgoing: &mut Outgoing<'_>,
        options: DeliveryOptions<'_>,
    ) -> Delivered {
        if self.memory.level >= MemoryLevel::Short && self.lacks_memory_for(slot, options.qos) {
            self.turn.work += 1;
            let topic = outgoing.publication().topic;
            self.dropped(slot, DropReason::MemoryShort, Some(topic), 1);
            return Delivered::Dropped(DropReason::MemoryShort);
        }
        self.deliver(slot, outgoing, options)
    }

    /// Delivers a message to a session regardless of the memory level.
    #[inline]
    pub fn deliver(
        &mut self,
        slot: Slot,
        outgoing: &mut Outgoing<'_>,
        options: DeliveryOptions<'_>,
    ) -> Delivered {
        let now = self.turn.now;
        self.turn.work += 1 + (outgoing.publication().payload.len() / OUT_UNIT_BYTES) as u64;
        // A recovered message with QoS 0 may have been delivered or dropped before the crash, and
        // later messages delivered after it.
        if let Some(receivers) = self.durable.receivers
            && (options.qos == QoS::AtMostOnce || !self.is_missing(slot, receivers, outgoing))
        {
            return Delivered::Queued;
        }
        self.prepare_call(slot);
        let client = &mut self.sessions[slot];
        let connection = client.connection;
        let out = self.outputs.buffer(connection);
        let delivered = client.session.deliver(outgoing, options, now, out);
        let waiting = out.len();
        self.record_steps(slot);
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
                self.dropped(slot, reason, Some(outgoing.publication().topic), 1);
                if let Some(reporter) = self.reporter(EventKind::DeliveryDropped) {
                    reporter.delivery(slot, outgoing.publication(), Some(reason));
                }
                self.collect_dropped(slot);
                self.show_room(slot);
            }
        }
        delivered
    }

    /// Marks the output of a connection as congested: the session queues messages from now on.
    pub fn congest(&mut self, connection: ConnectionKey, slot: Slot) {
        let output = &mut self.outputs[connection];
        if !std::mem::replace(&mut output.is_congested, true) {
            self.row().add(Counter::LimitOutput, 1);
            self.sessions[slot].session.link_mut().set_congested(true);
        }
    }

    /// Publishes the current capacity of the queue of a session to other workers.
    #[inline]
    pub fn show_room(&mut self, slot: Slot) {
        self.rooms
            .show(slot, &self.sessions[slot], self.memory.level);
    }

    /// Counts drops by reason, client and topic, if it is known, and logs the first drop since the
    /// queue was last usable.
    #[cold]
    pub fn dropped(&mut self, slot: Slot, reason: DropReason, topic: Option<&str>, count: u64) {
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
        let now = self.turn.now;
        let client = &mut self.sessions[slot];
        let episode = client.count_dropped(reason, count, now);
        if reason != DropReason::Offline {
            let dropped = CountedMessage {
                reason: drop_reason_name(reason),
                client: client.session.client_id(),
                topic,
                count,
            };
            self.undelivered.dropped.record(dropped, now);
        }
        if let Some(topic) = topic.filter(|_| self.observation.is_on()) {
            self.observation.dropped(self.id, topic, count);
        }
        if let Some(episode) = episode {
            tell_drops_over(self, slot, episode);
        }
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
        let client = &mut self.sessions[slot];
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

    /// Counts the messages that a session has sent from its queue or dropped.
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

    /// Counts the messages that a session has dropped from its queue.
    #[inline]
    fn collect_dropped(&mut self, slot: Slot) {
        report_deliveries(self, slot);
        if self.sessions[slot].session.outbound().may_have_dropped() {
            count_dropped(self, slot);
        }
        self.record_steps(slot);
    }

    /// Prepares a call of a session: a durable session receives an empty list for its steps, so
    /// that it allocates none.
    #[inline]
    pub fn prepare_call(&mut self, slot: Slot) {
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

    /// Records the steps of a durable session since the last call.
    #[inline]
    pub fn record_steps(&mut self, slot: Slot) {
        if self.sessions[slot].session.is_durable() {
            self.write_steps(slot);
        }
    }

    fn write_steps(&mut self, slot: Slot) {
        let client = &mut self.sessions[slot];
        let connection = client.connection;
        if let Some(journal) = &mut self.durable.journal
            && let Some(mut steps) = client.session.journal_mut().take_steps()
        {
            let depends = journal.steps(client.session.id(), &mut steps, &self.node.interest);
            journal.keep_list(steps);
            if let Some(key) = connection.filter(|_| depends) {
                self.outputs.depend(key);
            }
        }
    }

    /// Whether a session is one of the receivers of a recovered message and did not store the
    /// message before the crash.
    #[cold]
    pub fn is_missing(&self, slot: Slot, to: PassedTo, outgoing: &mut Outgoing<'_>) -> bool {
        let session = &self.sessions[slot].session;
        to.includes(session.id()) && !session.outbound().holds(outgoing.message().stored_id())
    }

    /// Accounts for the memory of a queued message.
    pub fn has_queued(&mut self, outgoing: &Outgoing<'_>, identifiers: usize) {
        let publication = outgoing.publication();
        let text = publication.topic.len() + publication.payload.len();
        let bytes = QUEUED_BYTES + text + identifiers * size_of::<u32>();
        if self.memory.grew(bytes) {
            self.read_memory();
        }
        self.memory.has_queued |= self.memory.level >= MemoryLevel::Low;
    }

    /// Whether memory is too short to deliver a message to that session.
    #[cold]
    pub fn lacks_memory_for(&self, slot: Slot, qos: QoS) -> bool {
        // Recovered messages were acknowledged before the crash.
        if self.durable.receivers.is_some() {
            return false;
        }
        let session = &self.sessions[slot].session;
        lacks_memory(session, qos, self.memory.level)
    }

    /// Applies the memory limit of the settings.
    pub fn set_memory_limit(&mut self) {
        let limit = self.settings.memory_bytes;
        if limit != self.memory.limit() {
            self.memory.set_limit(limit, self.node.workers());
            self.read_memory();
        }
    }

    /// Reads the memory usage of the process at the end of a turn, if the last reading is too old.
    #[inline]
    pub fn read_memory_if_due(&mut self, now: Time) {
        if self.memory.must_read(&self.node.memory, now) {
            self.read_memory();
        }
    }

    /// Reads the memory usage of the process now.
    #[cold]
    pub fn read_memory(&mut self) {
        self.memory.reset_growth();
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

    /// Whether the publisher of a message was told that this session accepts it.
    pub fn is_acknowledged(&self, slot: Slot, qos: QoS, source: Source<'_>) -> bool {
        let Some(delivery) = source.delivery() else {
            return false;
        };
        // A message whose quality of service is upgraded was not acknowledged.
        if qos == QoS::AtMostOnce || delivery.message.qos() == QoS::AtMostOnce {
            return false;
        }
        let client = &self.sessions[slot];
        let rare = client.rare.as_deref();
        let Some(own) = rare.and_then(|rare| rare.room.as_ref()) else {
            return true;
        };
        let id = client.session.id();
        // Recovered messages were acknowledged before the crash.
        self.durable.receivers.is_some()
            || !own.room.is_nearly_full()
            || !own.is_announced
            || delivery.is_promised_to(id)
            || delivery.generation < own.known_from
    }

    /// Whether a session accepts a message regardless of the memory level.
    pub fn is_promised(&self, slot: Slot, source: Source<'_>) -> bool {
        match source {
            Source::Publisher(_) | Source::Node => false,
            Source::WorkerInsists(_) => true,
            Source::Worker(delivery) => {
                let is_of = |slot: Slot| self.sessions[slot].session.id();
                !delivery.promises.is_empty() && delivery.is_promised_to(is_of(slot))
            }
        }
    }

    /// Delivers a message, or several copies with a part of the subscription identifiers each if
    /// there are more identifiers than one message may have; returns what became of the last one.
    /// [MQTT-3.3.4-3] [MQTT-3.3.4-5]
    pub(super) fn deliver_with(
        &mut self,
        found: Match,
        identifiers: &[u32],
        outgoing: &mut Outgoing<'_>,
        reach: &mut Reach<'_>,
    ) -> Delivered {
        let identifiers_max = self.settings.subscriptions.message_identifiers;
        if identifiers.len() <= identifiers_max {
            let delivered = self.deliver_match(found, outgoing, identifiers);
            reach.add(delivered);
            return delivered;
        }
        self.row().add(Counter::LimitMessageIdentifiers, 1);
        let mut last = Delivered::Dropped(DropReason::QueueFull);
        for some in identifiers.chunks(identifiers_max) {
            last = self.deliver_match(found, outgoing, some);
            reach.add(last);
        }
        last
    }

    /// Delivers a message to a session that matched.
    #[inline]
    pub(super) fn deliver_match(
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

    /// The options with which a subscription receives this message; none if the rules deny it, or
    /// if the client published it and the subscription has the No Local option.
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

    /// Removes expired messages from a queue that a publisher found full, and counts the messages
    /// that other workers refused on behalf of the session.
    pub fn handle_full(&mut self, session: SessionRef) {
        let slot = session.slot;
        if !self.sessions.is(slot, session.id) {
            return;
        }
        let now = self.turn.now;
        self.prepare_call(slot);
        let client = &mut self.sessions[slot];
        client.session.drop_stale(now);
        let refused = client.room().map_or(0, |room| room.take_refused());
        if refused > 0 {
            let reason = DropReason::QueueFull;
            self.dropped(slot, reason, None, refused as u64);
        }
        self.collect(slot);
    }

    /// Notifies the worker of a session that the queue is full: only the owner finds expired
    /// messages.
    pub fn report_full(&mut self, session: SessionRef) {
        if session.worker == self.id {
            self.handle_full(session);
        } else {
            self.outboxes
                .send(session.worker, EngineMail::Full(session));
        }
    }

    /// Updates the capacity of a session after it joined or left a group.
    pub(super) fn groups_changed(&mut self, slot: Slot) {
        let client = &mut self.sessions[slot];
        self.rooms.groups_changed(slot, client, self.memory.level);
    }

    /// Stores a message as the retained message of its topic if the limits allow it. If the
    /// publisher cannot be told of a refusal, the retained message of the topic is removed: a
    /// retained message must not be older than a delivered one. [MQTT-3.3.1-5] [MQTT3-3.3.1-5]
    ///
    /// # Errors
    /// The message is refused as a whole for that reason, and must not be delivered.
    pub fn retain(
        &mut self,
        outgoing: &mut Outgoing<'_>,
        source: Option<&Arc<RetainedSource>>,
        has_reason_code: bool,
    ) -> Result<(), PublishRefusal> {
        let publication = outgoing.publication();
        let is_more = !publication.payload.is_empty() && !publication.topic.starts_with("$SYS/");
        let is_full = is_more
            && self.memory.level >= MemoryLevel::Full
            && self.node.retained.would_grow(outgoing.message());
        let (store, now) = (&self.node.retained, self.turn.now);
        let durable = &mut self.durable;
        if !is_full && durable.retain_message(store, outgoing.message(), source, now) {
            return Ok(());
        }
        let (reason, why) = if is_full {
            (PublishRefusal::MemoryShort, "memory is full")
        } else {
            let why = "a limit of retained messages is reached";
            (PublishRefusal::RetainedLimit, why)
        };
        self.row().add(Counter::RetainedRefused, 1);
        let topic = outgoing.publication().topic;
        if !has_reason_code {
            self.row().add(Counter::RetainedLost, 1);
            self.durable.forget_retained(&self.node.retained, topic);
        }
        if self.may_log() {
            let done = if has_reason_code {
                "refused"
            } else {
                "delivered, and nothing is retained there any more"
            };
            tracing::warn!(topic, "a message to be retained is {done}: {why}");
        }
        if has_reason_code { Err(reason) } else { Ok(()) }
    }
}

/// Counts the messages that a session has dropped, some of them with their topics.
#[cold]
#[inline(never)]
fn count_dropped(core: &mut Core, slot: Slot) {
    let outbound = core.sessions[slot].session.outbound_mut();
    let named = outbound.take_dropped_messages();
    for (reason, count) in outbound.take_dropped() {
        let mut unnamed = u64::from(count);
        for (_, message) in named.iter().filter(|(of, _)| *of == reason) {
            core.dropped(slot, reason, Some(message.topic()), 1);
            unnamed = unnamed.saturating_sub(1);
        }
        if unnamed > 0 {
            core.dropped(slot, reason, None, unnamed);
        }
    }
}
