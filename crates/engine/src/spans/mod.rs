//! Traces of messages: spans of single messages in this node, which continue a trace of the
//! publisher and are continued by receivers, as W3C Trace Context has it.
//!
//! A message that is traced has one span for the hop, from its read until every receiver of the
//! worker has it in its output or queue, and one for each delivery, until its last byte is written,
//! or with QoS 1 and 2 until its receiver has acknowledged it.
//! The user property `traceparent` that goes out names the span of the hop. Other messages pass
//! unaltered; where nothing is traced, a message costs a comparison.

mod context;
mod hop;
mod open;
mod queue;

use std::fmt;

use thrum_protocol::Publication;

pub use self::context::TraceContext;
pub(crate) use self::hop::{Hop, Traced};
pub use self::open::{OPEN_MAX, Spans};
pub(crate) use self::open::{acknowledged, sweep, written};
pub use self::queue::{Span, SpanKind, SpanOutcome, SpanQueue, WAITING_MAX};

use self::context::Parent;
use self::hop::cut;
use crate::core::Core;
use crate::ids::Slot;
use crate::stages::now_ns;

/// Which publishers are traced.
pub trait PublisherFilter: fmt::Debug + Send + Sync {
    /// Whether messages of this client are traced.
    fn takes(&self, client_id: &str) -> bool;
}

/// Which messages are traced.
#[derive(Debug)]
pub struct SpanRules {
    /// One of this many messages; 0 is none.
    pub every: u32,
    /// Messages of a trace are traced if their publisher traces them, and only then.
    pub follows_parent: bool,
    /// Filters, one of which has to match the topic; none take every topic.
    pub filters: Vec<Box<str>>,
    /// Publishers; none takes every one.
    pub publishers: Option<Box<dyn PublisherFilter>>,
}

/// Decides whether a message is traced, and begins its trace here.
#[cold]
#[inline(never)]
pub(crate) fn begin(
    core: &mut Core,
    slot: Slot,
    publication: &Publication<'_>,
) -> Option<Box<Hop>> {
    let chance = core.random();
    let rules = core.settings.spans.as_deref()?;
    let parent = Parent::of(&publication.properties.user);
    let is_chosen = match &parent {
        Some(parent) if rules.follows_parent => parent.is_sampled(),
        _ => rules.every > 0 && chance.is_multiple_of(rules.every.into()),
    };
    let client_id = core.sessions[slot].session.client_id();
    if !(is_chosen && rules.take(publication.topic, client_id)) {
        return None;
    }
    let client_id = cut(client_id);
    let begin_ns = match core.stages.read_ns() {
        0 => now_ns(core),
        read_ns => read_ns,
    };
    let trace_id = match &parent {
        Some(parent) => parent.context.trace_id,
        None => (u128::from(core.random() | 1) << 64) | u128::from(core.random()),
    };
    let context = TraceContext {
        trace_id,
        span_id: core.random() | 1,
    };
    Some(Box::new(Hop {
        context,
        parent,
        client_id,
        begin_ns,
    }))
}

impl SpanRules {
    fn take(&self, topic: &str, client_id: &str) -> bool {
        let mut filters = self.filters.iter();
        let is_of_topic = self.filters.is_empty()
            || filters.any(|filter| thrum_codec::topic::matches(filter, topic));
        let publishers = self.publishers.as_ref();
        is_of_topic && publishers.is_none_or(|publishers| publishers.takes(client_id))
    }
}
