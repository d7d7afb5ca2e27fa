//! A message that is traced, while it is routed.

use thrum_codec::properties::UserProperties;
use thrum_codec::{PacketId, QoS};
use thrum_protocol::server::Delivered;

use super::context::{NEW_FLAGS, Parent, TRACEPARENT, TRACESTATE, TraceContext};
use super::open::{Open, Place, follow};
use super::queue::{Span, SpanKind, SpanOutcome};
use crate::core::Core;
use crate::ids::Slot;
use crate::stages::now_ns;

/// Deliveries of one message on one worker that have spans; more are counted.
const DELIVERIES_MAX: u32 = 64;

/// Bytes of a topic or client identifier in a span: those that wait take 7 MB at most.
const TEXT_BYTES_MAX: usize = 1024;

/// A topic or client identifier in a span, without what is too long.
pub(super) fn cut(text: &str) -> Box<str> {
    text[..text.floor_char_boundary(TEXT_BYTES_MAX)].into()
}

/// The span of a message from its publisher.
#[derive(Debug)]
pub(crate) struct Hop {
    pub(super) context: TraceContext,
    pub(super) parent: Option<Parent>,
    pub(super) client_id: Box<str>,
    pub(super) begin_ns: u64,
}

/// A message that is traced, on the worker of its publisher or of receivers.
#[derive(Debug)]
pub(crate) struct Traced {
    context: TraceContext,
    topic: Box<str>,
    payload_bytes: u64,
    /// None on a worker that is not the publisher's.
    hop: Option<(Box<Hop>, QoS)>,
    /// When the receivers were known.
    routed_ns: u64,
    deliveries: u32,
}

impl Hop {
    /// The `traceparent` that goes out.
    pub(crate) fn traceparent(&self) -> String {
        let flags = self.parent.as_ref().map_or(NEW_FLAGS, Parent::flags);
        self.context.text(flags)
    }

    /// Whether the trace begins here, so that the message had no `traceparent` that counts.
    pub(crate) const fn begins_trace(&self) -> bool {
        self.parent.is_none()
    }

    /// The user properties that go out: those that came in, with another `traceparent`. Where the
    /// trace begins here, a state belongs to no trace.
    pub(crate) fn properties<'a>(
        &self,
        received: UserProperties<'a>,
        traceparent: &'a str,
    ) -> Vec<(&'a str, &'a str)> {
        let is_new = self.begins_trace();
        let stays = |name: &str| name != TRACEPARENT && !(is_new && name == TRACESTATE);
        let received = received.iter().filter(|(name, _)| stays(name));
        let mut properties: Vec<_> = received.collect();
        properties.push((TRACEPARENT, traceparent));
        properties
    }

    /// The message of this hop.
    pub(crate) fn traced(self: Box<Self>, topic: &str, payload: &[u8], qos: QoS) -> Traced {
        let context = self.context;
        let mut traced = Traced::from_worker(context, topic, payload);
        traced.hop = Some((self, qos));
        traced
    }
}

impl Traced {
    /// A message that another worker traces.
    pub(crate) fn from_worker(context: TraceContext, topic: &str, payload: &[u8]) -> Self {
        Self {
            context,
            topic: cut(topic),
            payload_bytes: payload.len() as u64,
            hop: None,
            routed_ns: 0,
            deliveries: 0,
        }
    }

    /// Its receivers are known since then.
    pub(crate) const fn set_routed(&mut self, routed_ns: u64) {
        self.routed_ns = routed_ns;
    }

    /// The span of the hop.
    pub(crate) const fn context(&self) -> TraceContext {
        self.context
    }

    /// A session of this worker was offered the message.
    pub(crate) fn delivered(
        &mut self,
        core: &mut Core,
        slot: Slot,
        qos: QoS,
        delivered: Delivered,
    ) {
        self.deliveries += 1;
        if self.deliveries > DELIVERIES_MAX {
            core.node.spans.drop_spans(1);
            return;
        }
        let now_ns = now_ns(core);
        let connection = core.sessions[slot].connection;
        let (outcome, key) = match (delivered, connection) {
            (Delivered::Dropped(_), _) => (SpanOutcome::Dropped, None),
            (Delivered::Sent, Some(key)) => (SpanOutcome::Written, Some(key)),
            _ => (SpanOutcome::Queued, None),
        };
        let span = Span {
            context: TraceContext {
                span_id: core.random() | 1,
                ..self.context
            },
            parent_id: Some(self.context.span_id),
            state: None,
            kind: SpanKind::Delivered,
            begin_ns: if self.routed_ns > 0 {
                self.routed_ns
            } else {
                now_ns
            },
            end_ns: now_ns,
            routed_ns: 0,
            written_ns: 0,
            client_id: cut(core.sessions[slot].session.client_id()),
            topic: self.topic.clone(),
            qos,
            payload_bytes: self.payload_bytes,
            outcome,
        };
        match key {
            None => core.node.spans.pass(span),
            Some(key) => {
                let outbound = core.sessions[slot].session.outbound();
                let open = Open {
                    connection: core.outputs.id(key),
                    place: Place::Output(core.outputs[key].waiting()),
                    packet_id: match qos {
                        QoS::AtMostOnce => None,
                        QoS::AtLeastOnce | QoS::ExactlyOnce => {
                            PacketId::new(outbound.last_packet_id())
                        }
                    },
                    span,
                };
                follow(core, open);
            }
        }
    }

    /// All sessions of this worker were offered the message.
    pub(crate) fn finish(self, core: &Core) {
        let Some((hop, qos)) = self.hop else { return };
        let parent_id = hop.parent.as_ref().map(|parent| parent.context.span_id);
        core.node.spans.pass(Span {
            context: self.context,
            parent_id,
            state: hop.parent.and_then(|parent| parent.state),
            kind: SpanKind::Received,
            begin_ns: hop.begin_ns,
            end_ns: now_ns(core),
            routed_ns: self.routed_ns,
            written_ns: 0,
            client_id: hop.client_id,
            topic: self.topic,
            qos,
            payload_bytes: self.payload_bytes,
            outcome: SpanOutcome::Routed,
        });
    }
}
