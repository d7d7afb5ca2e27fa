//! Handling of a PUBLISH of a client, up to its PUBACK or PUBREC.

use std::rc::Rc;
use std::sync::Arc;

use thrum_codec::packet::Publish;
use thrum_codec::properties::{PublishProperties, UserProperties};
use thrum_codec::{QoS, ReasonCode, Version};
use thrum_protocol::{Message, Outgoing, Publication};

use super::core::Core;
use super::reach::{Clearance, Cleared, Publisher, Source};
use super::refusals::{PublishRefusal, Refusal, count_refused};
use super::rights::publish_denied;
use super::router::Router;
use super::shared::publisher_hash;
use super::sink_outbox::are_any_refusing;
use crate::access::{Verdict, Wanted};
use crate::ids::Slot;
use crate::interest::EventKind;
use crate::node::metrics::Counter;
use crate::observation::{MessageOrigin, Observed};
use crate::spans::{self, Hop};
use crate::stages::{self, Stamped, Unwatched};
use crate::timeline::{ClientEvent, RefusalCause, cut, tell};

/// Why a PUBLISH is refused, in the timeline of its client.
const RESERVED_TOPIC: &str = "the topic is reserved for the broker";
const DISK_FULL: &str = "the broker's disk is full";
const SINK_FULL: &str = "a sink of the broker is full";

/// Result of a PUBLISH of a client. If it was not answered, it is not acknowledged and the
/// connection must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Published {
    /// The PUBLISH was answered if its quality of service requires an answer.
    Answered,
    /// The storage is full, and the client's protocol version has no reason code for that.
    DiskFull,
    /// A sink is full, and the client's protocol version has no reason code for that.
    SinkFull,
    /// The client may not publish the message, and the policy is to disconnect it.
    Denied,
}

impl Published {
    /// The end of a connection whose client cannot be told in another way that room is short; none
    /// for other reasons.
    const fn of_shortage(reason: PublishRefusal) -> Option<Self> {
        match reason {
            PublishRefusal::DiskFull => Some(Self::DiskFull),
            PublishRefusal::SinkFull => Some(Self::SinkFull),
            PublishRefusal::NotAllowed
            | PublishRefusal::ReservedTopic
            | PublishRefusal::TopicTooLong
            | PublishRefusal::PayloadTooLarge
            | PublishRefusal::QueuesFull
            | PublishRefusal::MemoryShort
            | PublishRefusal::RetainedLimit => None,
        }
    }
}

/// The parts of the engine that handle a PUBLISH.
#[derive(Debug)]
pub(super) struct Publishing<'a> {
    pub(super) core: &'a mut Core,
    pub(super) router: &'a mut Router,
}

impl Publishing<'_> {
    /// Handles a PUBLISH of a client, up to its PUBACK or PUBREC.
    pub(super) fn publish_from(
        &mut self,
        slot: Slot,
        publish: &Publish<'_>,
        alias: Option<&Rc<str>>,
        cleared: Cleared,
    ) -> Published {
        let seen = alias.map_or(publish.topic, |topic| topic);
        if cleared.verdict != Verdict::Allowed {
            return self.deny(slot, publish, seen);
        }
        if publish.payload.len() > self.core.settings.session.payload_bytes_max as usize {
            return self.refuse_payload(slot, seen, publish);
        }
        let mount = self.core.sessions[slot].mount_point();
        let mut text = String::new();
        let topic = match &mount {
            None => Some(seen),
            Some(mount) => mount.mounted_topic(seen, &mut text),
        };
        let Some(topic) = topic else {
            return self.refuse_publish(slot, publish, seen, PublishRefusal::TopicTooLong);
        };
        let client = &self.core.sessions[slot];
        let arrived_at = cleared.arrived_at.unwrap_or(self.core.turn.now);
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
                .map(|s| arrived_at.plus_secs(s)),
            publisher: client.session.id(),
            publisher_hash: publisher_hash(self.core, client),
        };
        let row = self.core.row();
        row.add(Counter::PublishReceived, 1);
        row.add(Counter::PublishBytesReceived, publish.payload.len() as u64);
        let publisher = self.publisher(slot, publish);
        let obstacle = self.obstacle(slot, seen, &publication);
        let end = obstacle.and_then(Published::of_shortage);
        if let (Some(reason), Some(end)) = (obstacle, end)
            && publish.qos != QoS::AtMostOnce
            && !publisher.has_reason_code
        {
            let session = &mut self.core.sessions[slot].session;
            session.publish_withdrawn(publish.qos, publish.packet_id);
            self.refuse(slot, seen, &publication, Refusal::told(reason));
            return end;
        }
        let routed = match obstacle {
            None => self.publish(&publication, cleared.clearance, publisher),
            Some(reason) => Err(reason),
        };
        let outcome = match routed {
            Ok(code) => {
                self.report_refusal(slot, &publication, code);
                code
            }
            Err(reason) => {
                let refusal = Refusal::to(publisher, reason);
                self.refuse(slot, seen, &publication, refusal)
            }
        };
        self.answer_publish(slot, publish, outcome);
        Published::Answered
    }

    /// The reason why a message is not routed, which the timeline of the client then contains; none
    /// if it is.
    fn obstacle(
        &mut self,
        slot: Slot,
        topic: &str,
        publication: &Publication<'_>,
    ) -> Option<PublishRefusal> {
        if is_reserved(topic) {
            self.tell_refused(slot, topic, RefusalCause::Other(RESERVED_TOPIC));
            return Some(PublishRefusal::ReservedTopic);
        }
        let (reason, what) = self.shortage(publication)?;
        self.tell_refused(slot, topic, RefusalCause::Other(what));
        Some(reason)
    }

    /// The reason why a message cannot be stored or passed to a sink, and its words; none if it
    /// can.
    fn shortage(
        &mut self,
        publication: &Publication<'_>,
    ) -> Option<(PublishRefusal, &'static str)> {
        let Self { core, router } = self;
        if core.durable.is_disk_full() && router.topics.needs_disk(core, publication) {
            core.row().add(Counter::StorageRefused, 1);
            return Some((PublishRefusal::DiskFull, DISK_FULL));
        }
        let is_refused = are_any_refusing(core)
            && publication.qos != QoS::AtMostOnce
            && router.topics.is_refused_by_sink(core, publication.topic);
        is_refused.then(|| {
            core.row().add(Counter::SinkRefused, 1);
            (PublishRefusal::SinkFull, SINK_FULL)
        })
    }

    /// Counts and reports a message that is refused; returns the reason code of its answer.
    #[cold]
    fn refuse(
        &mut self,
        slot: Slot,
        topic: &str,
        publication: &Publication<'_>,
        refusal: Refusal,
    ) -> ReasonCode {
        let code = refusal.reason.code();
        count_refused(self.core, slot, topic, refusal);
        self.report_refusal(slot, publication, code);
        code
    }

    fn report_refusal(&mut self, slot: Slot, publication: &Publication<'_>, outcome: ReasonCode) {
        if outcome != ReasonCode::Success
            && let Some(reporter) = self.core.reporter(EventKind::MessageDropped)
        {
            reporter.refused(slot, publication, outcome);
        }
    }

    /// Refuses a PUBLISH that the rules deny, and logs that.
    #[cold]
    fn deny(&mut self, slot: Slot, publish: &Publish<'_>, topic: &str) -> Published {
        let wanted = Wanted {
            topic,
            qos: publish.qos,
            retain: publish.retain,
        };
        publish_denied(self.core, slot, wanted);
        self.refuse_publish(slot, publish, topic, PublishRefusal::NotAllowed)
    }

    /// Refuses a PUBLISH that the client may not publish, with reason code 0x87 if the protocol
    /// version has one; the client is disconnected if that is the policy.
    fn refuse_publish(
        &mut self,
        slot: Slot,
        publish: &Publish<'_>,
        topic: &str,
        reason: PublishRefusal,
    ) -> Published {
        self.core.row().add(Counter::PublishReceived, 1);
        let refused = as_sent(publish, topic);
        let disconnects = self.core.settings.access.access.policy.disconnects_denied;
        let refusal = if disconnects {
            Refusal::told(reason)
        } else {
            Refusal::to(self.publisher(slot, publish), reason)
        };
        let code = self.refuse(slot, topic, &refused, refusal);
        if disconnects {
            let session = &mut self.core.sessions[slot].session;
            session.publish_withdrawn(publish.qos, publish.packet_id);
            return Published::Denied;
        }
        self.answer_publish(slot, publish, code);
        Published::Answered
    }

    /// Refuses a payload over `limits.max_payload`, with a reason code if the protocol version has
    /// one: PUBACK and PUBREC have no "packet too large", so the code is "quota exceeded".
    #[cold]
    fn refuse_payload(&mut self, slot: Slot, topic: &str, publish: &Publish<'_>) -> Published {
        let row = self.core.row();
        row.add(Counter::PublishReceived, 1);
        row.add(Counter::LimitPayload, 1);
        if self.core.may_log() {
            tracing::info!(
                client_id = self.core.sessions[slot].session.client_id(),
                topic,
                bytes = publish.payload.len(),
                "message dropped: its payload is larger than limits.max_payload"
            );
        }
        let refused = as_sent(publish, topic);
        let publisher = self.publisher(slot, publish);
        let refusal = Refusal::to(publisher, PublishRefusal::PayloadTooLarge);
        let code = self.refuse(slot, topic, &refused, refusal);
        self.tell_refused(slot, topic, RefusalCause::Limit("limits.max_payload"));
        self.answer_publish(slot, publish, code);
        Published::Answered
    }

    /// The client that has sent a PUBLISH.
    fn publisher(&self, slot: Slot, publish: &Publish<'_>) -> Publisher {
        let version = self.core.sessions[slot].session.link().version();
        Publisher {
            slot,
            has_reason_code: publish.qos != QoS::AtMostOnce && version == Version::V5,
        }
    }

    /// Records in the client's timeline why a PUBLISH was refused.
    fn tell_refused(&mut self, slot: Slot, topic: &str, why: RefusalCause) {
        tell(self.core, slot, || ClientEvent::PublishRefused {
            topic: cut(topic).into(),
            why,
        });
    }

    fn answer_publish(&mut self, slot: Slot, publish: &Publish<'_>, outcome: ReasonCode) {
        if publish.qos != QoS::AtMostOnce {
            self.core.with(slot, |session, out| {
                session.publish_done(publish.qos, publish.packet_id, outcome, out);
            });
            self.core.row().add(Counter::AnswersSent, 1);
            if self.core.stages.is_answer_followed() {
                stages::follow_answer(self.core, slot);
            }
        }
    }

    /// Stores a message as the retained message of its topic, unless it is refused as a whole.
    fn retain(
        &mut self,
        publisher: Publisher,
        outgoing: &mut Outgoing<'_>,
    ) -> Result<(), PublishRefusal> {
        let client = &self.core.sessions[publisher.slot];
        let source = client.source(&self.core.settings.access.access.policy);
        self.core
            .retain(outgoing, source.as_ref(), publisher.has_reason_code)
    }

    /// Routes a message that is borrowed from a read buffer, in a trace if it is traced.
    fn publish(
        &mut self,
        publication: &Publication<'_>,
        clearance: Clearance,
        publisher: Publisher,
    ) -> Result<ReasonCode, PublishRefusal> {
        if self.core.settings.spans.is_some()
            && let Some(hop) = spans::begin(self.core, publisher.slot, publication)
        {
            return self.publish_traced(publication, clearance, publisher, hop);
        }
        self.publish_as_is(publication, clearance, publisher)
    }

    /// Routes a message with the span of this node in its user properties.
    #[cold]
    #[inline(never)]
    fn publish_traced(
        &mut self,
        publication: &Publication<'_>,
        clearance: Clearance,
        publisher: Publisher,
        hop: Box<Hop>,
    ) -> Result<ReasonCode, PublishRefusal> {
        let traceparent = hop.traceparent();
        let properties = hop.properties(publication.properties.user, &traceparent);
        let mut message = Message::new(&Publication {
            properties: PublishProperties {
                user: UserProperties::Listed(&properties),
                ..publication.properties
            },
            ..*publication
        });
        if hop.begins_trace() {
            message = message.with_last_property_added();
        }
        let message = Arc::new(message);
        let mut frames = std::mem::take(&mut self.core.frames);
        let mut outgoing = Outgoing::from_message(&message, &mut frames);
        let outcome = self.publish_outgoing(&mut outgoing, clearance, publisher, Some(hop));
        self.core.frames = frames;
        outcome
    }

    /// Routes a message as it came in.
    #[inline]
    fn publish_as_is(
        &mut self,
        publication: &Publication<'_>,
        clearance: Clearance,
        publisher: Publisher,
    ) -> Result<ReasonCode, PublishRefusal> {
        let mut frames = std::mem::take(&mut self.core.frames);
        let mut outgoing = Outgoing::new(*publication, &mut frames);
        let outcome = self.publish_outgoing(&mut outgoing, clearance, publisher, None);
        self.core.frames = frames;
        outcome
    }

    /// Routes a message. A message that cannot be retained is refused as a whole if its publisher
    /// can be told.
    #[inline]
    fn publish_outgoing(
        &mut self,
        outgoing: &mut Outgoing<'_>,
        clearance: Clearance,
        publisher: Publisher,
        hop: Option<Box<Hop>>,
    ) -> Result<ReasonCode, PublishRefusal> {
        if outgoing.publication().retain {
            self.retain(publisher, outgoing)?;
        }
        let source = Source::Publisher(clearance);
        let is_due = self.core.stages.is_due();
        if is_due || hop.is_some() || self.core.observation.is_on() {
            let stamped = self.stamped(outgoing.publication(), is_due, hop);
            return self.route_watched(outgoing, source, publisher.slot, stamped);
        }
        self.router.route(self.core, outgoing, source, Unwatched)
    }

    /// Stamps a message whose turn it is, and traces one that is traced; none if it is neither.
    #[cold]
    #[inline(never)]
    fn stamped(
        &mut self,
        publication: &Publication<'_>,
        is_due: bool,
        hop: Option<Box<Hop>>,
    ) -> Option<Stamped> {
        let Publication {
            topic,
            payload,
            qos,
            ..
        } = *publication;
        let stamped = is_due.then(|| stages::begin(self.core, qos));
        let Some(hop) = hop else { return stamped };
        let stamped = stamped.unwrap_or_else(|| stages::unstamped(self.core));
        Some(stamped.with_trace(hop.traced(topic, payload, qos)))
    }

    /// Routes a message that is stamped, traced or observed, or several of these.
    #[cold]
    #[inline(never)]
    fn route_watched(
        &mut self,
        outgoing: &mut Outgoing<'_>,
        source: Source<'_>,
        publisher: Slot,
        stamped: Option<Stamped>,
    ) -> Result<ReasonCode, PublishRefusal> {
        match stamped {
            Some(stamped) if !self.core.observation.is_on() => {
                self.router.route(self.core, outgoing, source, stamped)
            }
            stamped => {
                let watch = Observed::new(MessageOrigin::Client(publisher), stamped);
                self.router.route(self.core, outgoing, source, watch)
            }
        }
    }
}

/// Describes a PUBLISH that is refused before it becomes a message of the node.
fn as_sent<'a>(publish: &Publish<'a>, topic: &'a str) -> Publication<'a> {
    Publication {
        topic,
        payload: publish.payload,
        properties: PublishProperties::default(),
        qos: publish.qos,
        retain: publish.retain,
        expires_at: None,
        publisher: 0,
        publisher_hash: 0,
    }
}

/// Whether a topic is reserved for the server; clients may use other topics that begin with `$`.
/// [MQTT3-4.7.2-1]
#[inline]
pub fn is_reserved(topic: &str) -> bool {
    const RESERVED: [&str; 4] = ["$SYS", "$share", "$queue", "$events"];
    if !topic.starts_with('$') {
        return false;
    }
    let first = topic.split('/').next().unwrap_or_default();
    RESERVED.contains(&first)
}
