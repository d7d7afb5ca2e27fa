//! Settings of the engine, derived from the configuration.

use std::sync::Arc;
use std::time::Duration;

use thrum_codec::QoS;
use thrum_protocol::Limits;

use crate::access::Shared;
use crate::node::session_counts::SessionLimits;
use crate::retained::RetainedLimits;
use crate::spans::SpanRules;

/// Limits of the subscriptions of one client, beside their number.
#[derive(Clone, Copy, Debug)]
pub struct SubscriptionLimits {
    /// Greatest number of shared subscriptions.
    pub shared_max: usize,
    /// Greatest memory of all subscriptions in bytes.
    pub bytes_max: u32,
    /// Greatest number of topic filters of one packet.
    pub packet_filters_max: usize,
    /// Greatest number of subscription identifiers of one message.
    pub message_identifiers: usize,
}

/// Settings of an engine, which a reload replaces as a whole.
#[derive(Clone, Debug)]
pub struct EngineSettings {
    /// Limits of one session.
    pub session: Arc<Limits>,
    /// Longest time that a publisher waits for a full queue; with 0 it does not wait.
    pub queue_hold: Duration,
    /// The access settings of the node.
    pub access: Arc<Shared>,
    /// Limits of the number of sessions that outlive their connection.
    pub sessions: SessionLimits,
    /// Limits of the subscriptions of one client.
    pub subscriptions: SubscriptionLimits,
    /// Soft limit of the output of one connection in bytes; beyond it the session queues messages.
    pub output_bytes: usize,
    /// Limit of the resident memory in bytes; 0 is no limit.
    pub memory_bytes: u64,
    /// Limits of the retained messages of the node.
    pub retained: RetainedLimits,
    /// Whether a node with storage also stores the wills of sessions that end with their
    /// connection.
    pub keeps_all_wills: bool,
    /// Lowest quality of service of messages: a message with a lower one is delivered as if it were
    /// published with this one.
    pub published_qos_min: QoS,
    /// One of this many PUBLISH packets is stamped ([`crate::stages`]); 0 is none.
    pub stamp_every: u32,
    /// Which messages are traced ([`crate::spans`]); none if none is.
    pub spans: Option<Arc<SpanRules>>,
    /// Memory of the timelines of one worker in bytes; 0 is none ([`crate::timeline`]).
    pub timeline_bytes: usize,
}

impl EngineSettings {
    /// The quality of service of a delivery: the lower one of the message and the subscription,
    /// unless `limits.client.upgrade_outgoing_qos` is on. [MQTT-3.8.4-8] [MQTT3-3.8.4-6]
    #[inline]
    pub fn delivered_qos(&self, published: QoS, asked: QoS) -> QoS {
        published.max(self.published_qos_min).min(asked)
    }

    /// Copies the settings without sharing the session limits. These are read for each packet, and
    /// the reference count beside them is written for each connection, so that each worker has its
    /// own copy.
    #[must_use]
    pub fn own_copy(&self) -> Self {
        Self {
            session: Arc::new(Limits::clone(&self.session)),
            ..self.clone()
        }
    }
}
