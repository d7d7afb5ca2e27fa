//! Client events, published to `$events/…` for the subscribers of those topics.
//!
//! An event without a subscriber costs one look at a set of bits. Any other event becomes a message
//! of the node, which is queued until the packets, mail and timers of the turn are handled; then it
//! is routed like any other message. The delivery of an event causes no event.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use thrum_codec::packet::SubscriptionOptions;
use thrum_codec::{QoS, ReasonCode, Version};
use thrum_protocol::server::{DeliveryEvent, DropReason, MessageEvent};
use thrum_protocol::{Message, Publication};

use super::Engine;
use super::core::Core;
use super::subscriber::Terms;
use crate::ids::Slot;
use crate::interest::{EVENTS, EventKind};
use crate::node::metrics::Counter;
use crate::stages::left_queue;

/// Greatest number of queued events of one worker. Further events are only counted.
const WAITING_MAX: usize = 8192;
/// Greatest length in bytes of the queued events of one worker.
const WAITING_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Events that are not published yet.
#[derive(Debug, Default)]
pub struct Events {
    waiting: VecDeque<Arc<Message>>,
    bytes: usize,
}

/// A client that has connected.
#[derive(Clone, Copy, Debug)]
pub struct Connected<'a> {
    /// The session of the client.
    pub slot: Slot,
    /// The address of the client, as the log shows it.
    pub peer: fmt::Arguments<'a>,
    /// The name of the listener that accepted the connection.
    pub listener: &'a str,
    /// The protocol version of the client.
    pub version: Version,
    /// The connection resumes an existing session.
    pub session_present: bool,
}

/// Payload of an event.
#[derive(Debug, Serialize)]
struct EventBody<'a, T> {
    clientid: &'a str,
    username: Option<&'a str>,
    #[serde(flatten)]
    more: T,
    /// Milliseconds of the Unix epoch.
    timestamp: u64,
}

#[derive(Debug, Serialize)]
struct ConnectedBody<'a> {
    #[serde(serialize_with = "as_text")]
    peername: fmt::Arguments<'a>,
    listener: &'a str,
    proto_ver: u8,
    session_present: bool,
    /// Seconds.
    expiry_interval: u32,
}

#[derive(Debug, Serialize)]
struct DisconnectedBody<'a> {
    #[serde(serialize_with = "as_text")]
    peername: fmt::Arguments<'a>,
    reason: &'a str,
    proto_ver: u8,
    connected_seconds: u64,
    received: u32,
    sent: u32,
}

#[derive(Debug, Serialize)]
struct SubscribedBody<'a> {
    topic: &'a str,
    qos: u8,
    sub_props: SubscriptionTerms,
}

#[derive(Debug, Serialize)]
struct SubscriptionTerms {
    no_local: bool,
    retain_as_published: bool,
    retain_handling: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    subscription_identifier: Option<u32>,
}

#[derive(Debug, Serialize)]
struct UnsubscribedBody<'a> {
    topic: &'a str,
}

/// Part of the payload of an event about a message.
#[derive(Debug, Serialize)]
struct MessageBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    topic: &'a str,
    qos: u8,
    retain: bool,
    payload_bytes: usize,
}

impl Events {
    /// Whether events are queued.
    #[inline]
    pub fn are_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Queues an event; false if a limit is reached.
    fn push(&mut self, message: Message) -> bool {
        let bytes = self.bytes + message.bytes_len();
        if self.waiting.len() >= WAITING_MAX || bytes > WAITING_BYTES_MAX {
            return false;
        }
        self.bytes = bytes;
        self.waiting.push_back(Arc::new(message));
        true
    }

    fn pop(&mut self) -> Option<Arc<Message>> {
        let message = self.waiting.pop_front()?;
        self.bytes -= message.bytes_len();
        if self.waiting.is_empty() {
            self.waiting = VecDeque::new();
        }
        Some(message)
    }
}

/// Publishes the queued events, within a portion of the turn.
pub fn publish_events(engine: &mut Engine) {
    if !engine.core.events.are_waiting() {
        return;
    }
    engine.core.turn.begin_portion();
    while let Some(message) = engine.core.events.pop() {
        engine.core.turn.work += 1;
        engine.publish_message(&message, None);
        engine.core.durable.end_unit();
        if engine.core.turn.is_portion_over() {
            break;
        }
    }
}

impl Core {
    /// Returns the reporter of an event of that kind; none if the event has no subscriber.
    #[inline]
    pub fn reporter(&mut self, kind: EventKind) -> Option<Reporter<'_>> {
        let is_wanted = self.node.interest.event_subscribers.want(kind);
        is_wanted.then_some(Reporter { core: self, kind })
    }
}

/// Reports one event that has a subscriber.
#[derive(Debug)]
pub struct Reporter<'a> {
    core: &'a mut Core,
    kind: EventKind,
}

impl Reporter<'_> {
    /// Reports that a client has connected.
    #[cold]
    pub fn connected(self, connected: Connected<'_>) {
        let session = &self.core.sessions[connected.slot].session;
        let body = ConnectedBody {
            peername: connected.peer,
            listener: connected.listener,
            proto_ver: level(connected.version),
            session_present: connected.session_present,
            expiry_interval: session.lifetime().session_expiry(),
        };
        self.report(connected.slot, body);
    }

    /// Reports that the connection of a client ends; the session must still exist.
    #[cold]
    pub fn disconnected(self, slot: Slot, peer: fmt::Arguments<'_>, why: &str) {
        let link = self.core.sessions[slot].session.link();
        let traffic = link.traffic();
        let body = DisconnectedBody {
            peername: peer,
            reason: why,
            proto_ver: level(link.version()),
            connected_seconds: traffic.seconds(self.core.turn.now),
            received: traffic.received,
            sent: traffic.sent,
        };
        self.report(slot, body);
    }

    /// Reports a new or changed subscription of a session.
    #[cold]
    pub fn subscribed(self, slot: Slot, filter: &str, terms: Terms) {
        let Terms {
            options:
                SubscriptionOptions {
                    qos,
                    no_local,
                    retain_as_published,
                    retain_handling,
                },
            identifier,
        } = terms;
        let subscribed = SubscribedBody {
            topic: filter,
            qos: qos as u8,
            sub_props: SubscriptionTerms {
                no_local,
                retain_as_published,
                retain_handling: retain_handling as u8,
                subscription_identifier: (identifier != 0).then_some(identifier),
            },
        };
        self.report(slot, subscribed);
    }

    /// Reports the end of a subscription whose session continues.
    #[cold]
    pub fn unsubscribed(self, slot: Slot, filter: &str) {
        self.report(slot, UnsubscribedBody { topic: filter });
    }

    /// Reports that a PUBLISH of a client reached no receiver.
    #[cold]
    pub fn refused(self, slot: Slot, publication: &Publication<'_>, outcome: ReasonCode) {
        let reason = match outcome {
            ReasonCode::NoMatchingSubscribers => "no_subscribers",
            ReasonCode::NotAuthorized => "not_authorized",
            ReasonCode::QuotaExceeded => "quota_exceeded",
            _ => "refused",
        };
        self.message(slot, publication, Some(reason));
    }

    /// Reports the delivery of a message to a session, or the reason why the message was dropped.
    #[cold]
    pub fn delivery(self, slot: Slot, publication: &Publication<'_>, reason: Option<DropReason>) {
        // An event about the delivery of an event would cause the next one.
        if !publication.topic.starts_with(EVENTS) {
            self.message(slot, publication, reason.map(drop_reason_name));
        }
    }

    fn message(self, slot: Slot, publication: &Publication<'_>, reason: Option<&'static str>) {
        let message = MessageBody {
            reason,
            topic: publication.topic,
            qos: publication.qos as u8,
            retain: publication.retain,
            payload_bytes: publication.payload.len(),
        };
        self.report(slot, message);
    }

    fn report(self, slot: Slot, more: impl Serialize) {
        let Self { core, kind } = self;
        let client = &core.sessions[slot];
        let body = EventBody {
            clientid: client.session.client_id(),
            username: client.owner().user(),
            more,
            timestamp: core.node.wall.millis(core.turn.now),
        };
        let Ok(payload) = serde_json::to_vec(&body) else {
            debug_assert!(false, "texts and numbers can be written");
            return;
        };
        let message = Message::new(&Publication::new(kind.topic(), &payload, QoS::AtLeastOnce));
        if !core.events.push(message) {
            core.row().add(Counter::EventsLeftOut, 1);
        }
    }
}

/// Makes a session record what becomes of its messages, if delivery events have a subscriber.
#[inline]
pub(super) fn watch_deliveries(core: &mut Core, slot: Slot) {
    if core.node.interest.event_subscribers.want_deliveries() {
        let session = &mut core.sessions[slot].session;
        session.outbound_mut().record_events();
    }
}

/// Reports what became of the messages of a session.
#[inline]
pub(super) fn report_deliveries(core: &mut Core, slot: Slot) {
    let outbound = core.sessions[slot].session.outbound_mut();
    if outbound.records_events() {
        let recorded = outbound.take_events();
        if core.stages.are_followed() {
            left_queue(core, slot, &recorded);
        }
        report_recorded(core, slot, recorded);
    }
}

#[cold]
fn report_recorded(core: &mut Core, slot: Slot, recorded: Vec<MessageEvent>) {
    for event in recorded {
        let publication = Publication {
            qos: event.qos,
            retain: event.retain,
            ..event.message.publication()
        };
        let (kind, reason) = match event.event {
            DeliveryEvent::Sent { .. } => (EventKind::MessageDelivered, None),
            DeliveryEvent::Acknowledged => (EventKind::MessageAcknowledged, None),
            DeliveryEvent::Dropped(reason) => (EventKind::DeliveryDropped, Some(reason)),
        };
        if let Some(reporter) = core.reporter(kind) {
            reporter.delivery(slot, &publication, reason);
        }
    }
}

const fn level(version: Version) -> u8 {
    match version {
        Version::V31 => 3,
        Version::V311 => 4,
        Version::V5 => 5,
    }
}

/// The name of a drop reason, as in the topics `$SYS/broker/publish/dropped/…`.
pub const fn drop_reason_name(reason: DropReason) -> &'static str {
    match reason {
        DropReason::QueueFull => "queue_full",
        DropReason::QueueDropped => "queue_oldest",
        DropReason::QueueAge => "queue_age",
        DropReason::Offline => "offline",
        DropReason::SlowConsumer => "slow_consumer",
        DropReason::TooLarge => "too_large",
        DropReason::Expired => "expired",
        DropReason::OutsideMount => "outside_mount",
        DropReason::NotAllowed => "not_allowed",
        DropReason::MemoryShort => "memory_short",
    }
}

fn as_text<S: Serializer>(text: &impl fmt::Display, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(text)
}
