//! What the engine needs of the configuration, in the form it uses it.

use std::sync::Arc;
use std::time::Duration;

use thrum_codec::QoS;
use thrum_protocol::Limits;

use crate::access::Shared;
use crate::node::session_counts::SessionLimits;
use crate::retained::RetainedLimits;

/// What the subscriptions of one client may take, beside their number.
#[derive(Clone, Copy, Debug)]
pub struct SubscriptionLimits {
    /// Shared subscriptions.
    pub shared_max: usize,
    /// Memory of all of them, in bytes.
    pub bytes_max: u32,
    /// Most topic filters of one packet.
    pub packet_filters_max: usize,
    /// Most subscription identifiers of one message.
    pub message_identifiers: usize,
}

/// Settings that every engine holds; replaced as a whole by a reload.
#[derive(Clone, Debug)]
pub struct EngineSettings {
    /// Limits of one session.
    pub session: Arc<Limits>,
    /// How long a publisher waits for a full queue; 0 is not at all.
    pub queue_hold: Duration,
    /// Who decides about clients.
    pub access: Arc<Shared>,
    /// Sessions that outlive their connection.
    pub sessions: SessionLimits,
    /// What the subscriptions of one client may take.
    pub subscriptions: SubscriptionLimits,
    /// Soft limit of one connection's output, in bytes; past it the session queues.
    pub output_bytes: usize,
    /// Resident memory in bytes past which publishers are read less; 0 is off.
    pub memory_bytes: u64,
    /// Limits of the retained messages of the node.
    pub retained: RetainedLimits,
    /// On a node with storage the wills of sessions that end with their connection are stored too.
    pub keeps_all_wills: bool,
    /// Messages are delivered as if they were published with this quality of service, if theirs is
    /// lower.
    pub published_qos_min: QoS,
}

impl EngineSettings {
    /// The quality of service that a subscription gets a message with: the lower one of both,
    /// unless `limits.client.upgrade_outgoing_qos` is on. [MQTT-3.8.4-8] [MQTT3-3.8.4-6]
    #[inline]
    pub fn delivered_qos(&self, published: QoS, asked: QoS) -> QoS {
        published.max(self.published_qos_min).min(asked)
    }

    /// A copy that shares nothing. The session limits are read for each packet, and the count of
    /// their owners beside them is written for each connection: by one worker, if it has its own.
    #[must_use]
    pub fn own_copy(&self) -> Self {
        Self {
            session: Arc::new(Limits::clone(&self.session)),
            ..self.clone()
        }
    }
}
