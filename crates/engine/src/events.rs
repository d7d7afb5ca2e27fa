//! What clients do, as messages on `$events/…` for whoever has subscribed to them.
//!
//! An event that nobody listens to costs one look at a set of bits. One that somebody listens to
//! becomes a message of the node, which waits until the packets, mail and timers of the turn have
//! been handled; then it is routed like any other. What happens to such messages is no event.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use thrum_codec::packet::SubscriptionOptions;
use thrum_codec::properties::PublishProperties;
use thrum_codec::{QoS, ReasonCode, Version};
use thrum_protocol::server::{DeliveryEvent, DropReason, MessageEvent};
use thrum_protocol::{Message, Publication};

use super::Engine;
use super::core::Core;
use super::subscriber::Terms;
use crate::ids::Slot;
use crate::interest::{EVENTS, EventKind};
use crate::node::metrics::Counter;

/// Events of one worker that wait, and their bytes. What happens beyond them is counted alone.
const WAITING_MAX: usize = 8192;
const WAITING_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Events that were not published yet.
#[derive(Debug, Default)]
pub struct Events {
    waiting: VecDeque<Arc<Message>>,
    bytes: usize,
}

/// A client that has come in.
#[derive(Clone, Copy, Debug)]
pub struct Connected<'a> {
    /// Its session.
    pub slot: Slot,
    /// Who is at the other end.
    pub peer: fmt::Arguments<'a>,
    /// The listener that it came through.
    pub listener: &'a str,
    /// The version of MQTT that it speaks.
    pub version: Version,
    /// Its session was there before.
    pub session_present: bool,
}

/// What every event tells.
#[derive(Debug, Serialize)]
struct Body<'a, T> {
    clientid: &'a str,
    username: Option<&'a str>,
    #[serde(flatten)]
    more: T,
    /// Milliseconds of the Unix epoch.
    timestamp: u64,
}

#[derive(Debug, Serialize)]
struct Came<'a> {
    #[serde(serialize_with = "as_text")]
    peername: fmt::Arguments<'a>,
    listener: &'a str,
    proto_ver: u8,
    session_present: bool,
    /// Seconds.
    expiry_interval: u32,
}

#[derive(Debug, Serialize)]
struct Went<'a> {
    #[serde(serialize_with = "as_text")]
    peername: fmt::Arguments<'a>,
    reason: &'a str,
    proto_ver: u8,
    connected_seconds: u64,
    received: u32,
    sent: u32,
}

#[derive(Debug, Serialize)]
struct Subscribed<'a> {
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
struct Unsubscribed<'a> {
    topic: &'a str,
}

/// A message and one of its subscribers, or its publisher.
#[derive(Debug, Serialize)]
struct OfMessage<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    topic: &'a str,
    qos: u8,
    retain: bool,
    payload_bytes: usize,
}

impl Events {
    /// Some wait to be published.
    #[inline]
    pub fn are_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// False if there is no room.
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

/// Publishes what has happened, as far as a portion of the turn goes.
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
    /// What reports an event of that kind; none if no subscription asks for it.
    #[inline]
    pub fn reporter(&mut self, kind: EventKind) -> Option<Reporter<'_>> {
        let is_wanted = self.node.interest.listeners.want(kind);
        is_wanted.then_some(Reporter { core: self, kind })
    }
}

/// Reports one event that a subscription asks for.
#[derive(Debug)]
pub struct Reporter<'a> {
    core: &'a mut Core,
    kind: EventKind,
}

impl Reporter<'_> {
    /// A client has connected.
    #[cold]
    pub fn connected(self, connected: Connected<'_>) {
        let session = &self.core.sessions[connected.slot].session;
        let came = Came {
            peername: connected.peer,
            listener: connected.listener,
            proto_ver: level(connected.version),
            session_present: connected.session_present,
            expiry_interval: session.lifetime().session_expiry(),
        };
        self.report(connected.slot, came);
    }

    /// The connection of a client ends; its session is still there.
    #[cold]
    pub fn disconnected(self, slot: Slot, peer: fmt::Arguments<'_>, why: &str) {
        let link = self.core.sessions[slot].session.link();
        let traffic = link.traffic();
        let went = Went {
            peername: peer,
            reason: why,
            proto_ver: level(link.version()),
            connected_seconds: traffic.seconds(self.core.turn.now),
            received: traffic.received,
            sent: traffic.sent,
        };
        self.report(slot, went);
    }

    /// A session has a subscription, or has it with other terms.
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
        let subscribed = Subscribed {
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

    /// A subscription of a session ended, while the session goes on.
    #[cold]
    pub fn unsubscribed(self, slot: Slot, filter: &str) {
        self.report(slot, Unsubscribed { topic: filter });
    }

    /// A PUBLISH of a client reached no receiver.
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

    /// The session did not take a message, or took it, then for no reason.
    #[cold]
    pub fn delivery(self, slot: Slot, publication: &Publication<'_>, reason: Option<DropReason>) {
        // An event about the delivery of an event would lead to the next one.
        if !publication.topic.starts_with(EVENTS) {
            self.message(slot, publication, reason.map(words));
        }
    }

    fn message(self, slot: Slot, publication: &Publication<'_>, reason: Option<&'static str>) {
        let message = OfMessage {
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
        let body = Body {
            clientid: client.session.client_id(),
            username: client.owner().user(),
            more,
            timestamp: core.node.wall.millis(core.turn.now),
        };
        let Ok(payload) = serde_json::to_vec(&body) else {
            debug_assert!(false, "texts and numbers can be written");
            return;
        };
        let message = Message::new(&Publication {
            topic: kind.topic(),
            payload: &payload,
            properties: PublishProperties::default(),
            qos: QoS::AtLeastOnce,
            retain: false,
            expires_at: None,
            publisher: 0,
            publisher_hash: 0,
        });
        if !core.events.push(message) {
            core.row().add(Counter::EventsLeftOut, 1);
        }
    }
}

/// From now on the session tells what becomes of the messages that it holds, if a subscription asks
/// for that.
#[inline]
pub(super) fn watch_deliveries(core: &mut Core, slot: Slot) {
    if core.node.interest.listeners.want_deliveries() {
        let session = &mut core.sessions[slot].session;
        session.outbound_mut().record_events();
    }
}

/// Reports what became of messages that the session held.
#[inline]
pub(super) fn report_deliveries(core: &mut Core, slot: Slot) {
    let outbound = core.sessions[slot].session.outbound_mut();
    if outbound.records_events() {
        let fates = outbound.take_events();
        report_fates(core, slot, fates);
    }
}

#[cold]
fn report_fates(core: &mut Core, slot: Slot, fates: Vec<MessageEvent>) {
    for told in fates {
        let publication = Publication {
            qos: told.qos,
            retain: told.retain,
            ..told.message.publication()
        };
        let (kind, reason) = match told.event {
            DeliveryEvent::Sent => (EventKind::MessageDelivered, None),
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

/// As `$SYS/broker/publish/dropped/…` calls them.
const fn words(reason: DropReason) -> &'static str {
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
