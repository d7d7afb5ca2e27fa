//! Spans of messages as a request `ExportTraceServiceRequest`, with the attributes that the
//! conventions of OpenTelemetry have for messaging.

use thrum_broker::{Span, SpanKind, SpanOutcome};

use super::attributes;
use crate::wire::Message;

/// Kinds of spans: a producer sends a message to somebody else, and a consumer gets one.
const PRODUCER: u64 = 4;
const CONSUMER: u64 = 5;
/// The status of a span that failed.
const FAILED: u64 = 2;

/// Writes a request; `started_at` is the start of the node in nanoseconds of the Unix epoch.
pub(super) fn request(resource: &[u8], spans: &[Span], started_at: u64) -> Vec<u8> {
    attributes::request(resource, |out| {
        attributes::scope(out, None, |out| {
            for one in spans {
                out.message(2, |out| span(one, started_at, out));
            }
        });
    })
}

/// `Span`: trace 1, span 2, state 3, parent 4, name 5, kind 6, start 7, end 8, attributes 9, events
/// 11 (time 1, name 2), status 15 (message 2, code 3).
fn span(span: &Span, started_at: u64, out: &mut Message) {
    let at = |ns: u64| started_at.saturating_add(ns);
    let (kind, operation, operation_type) = match span.kind {
        SpanKind::Received => (CONSUMER, "receive", "receive"),
        SpanKind::Delivered => (PRODUCER, "deliver", "send"),
    };
    out.bytes(1, &span.context.trace_id.to_be_bytes());
    out.bytes(2, &span.context.span_id.to_be_bytes());
    if let Some(state) = &span.state {
        out.text(3, state);
    }
    if let Some(parent) = span.parent_id {
        out.bytes(4, &parent.to_be_bytes());
    }
    // Topics can be too many for a name.
    out.text(5, operation);
    out.number(6, kind);
    out.fixed(7, at(span.begin_ns));
    out.fixed(8, at(span.end_ns));
    attributes::text(out, 9, "messaging.system", "mqtt");
    attributes::text(out, 9, "messaging.operation.name", operation);
    attributes::text(out, 9, "messaging.operation.type", operation_type);
    attributes::text(out, 9, "messaging.destination.name", &span.topic);
    attributes::text(out, 9, "messaging.client.id", &span.client_id);
    let bytes = i64::try_from(span.payload_bytes).unwrap_or(i64::MAX);
    attributes::whole(out, 9, "messaging.message.body.size", bytes);
    attributes::whole(out, 9, "mqtt.qos", span.qos.as_u8().into());
    let (outcome, is_failure) = outcome(span.outcome);
    attributes::text(out, 9, "thrum.outcome", outcome);
    for (ns, event) in [
        (span.routed_ns, "receivers known"),
        (span.written_ns, "written"),
    ] {
        if ns > 0 {
            out.message(11, |out| {
                out.fixed(1, at(ns));
                out.text(2, event);
            });
        }
    }
    if is_failure {
        out.message(15, |out| {
            out.text(2, outcome);
            out.number(3, FAILED);
        });
    }
}

/// The word for an outcome, and whether the message did not get where it should.
const fn outcome(outcome: SpanOutcome) -> (&'static str, bool) {
    match outcome {
        SpanOutcome::Routed => ("routed", false),
        SpanOutcome::Written => ("written", false),
        SpanOutcome::Acknowledged => ("acknowledged", false),
        SpanOutcome::Queued => ("queued", false),
        SpanOutcome::Unfollowed => ("in_output", false),
        SpanOutcome::ConnectionEnded => ("connection_ended", true),
        SpanOutcome::Dropped => ("dropped", true),
    }
}
