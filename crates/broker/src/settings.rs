//! What the workers need of the configuration, in the form they use it.

use std::sync::Arc;
use std::time::Duration;

use thrum_codec::QoS;
use thrum_protection::{Pace, ProtectionSettings};
use thrum_protocol::Limits;

use crate::access::Shared;
use crate::config::{Anonymous, ClientIdPattern, Config, Rate, Takeover, Wills};
use crate::retained::RetainedLimits;
use crate::session_counts::SessionLimits;

/// What the subscriptions of one client may take, beside their number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SubscriptionLimits {
    /// Shared subscriptions.
    pub(crate) shared_max: usize,
    /// Memory of all of them.
    pub(crate) bytes_max: u32,
}

/// Settings that every worker holds; replaced as a whole by a reload.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) session: Arc<Limits>,
    /// How long a publisher waits for a full queue; 0 is not at all.
    pub(crate) queue_hold: Duration,
    pub(crate) anonymous: Anonymous,
    pub(crate) takeover: Takeover,
    pub(crate) client_id: ClientIdPattern,
    pub(crate) access: Arc<Shared>,
    pub(crate) connections_max: u64,
    pub(crate) sessions: SessionLimits,
    /// New connections of the node; none is no limit.
    pub(crate) connect_pace: Option<Pace>,
    /// Most topic filters of one packet.
    pub(crate) packet_filters_max: usize,
    pub(crate) connect_timeout: Duration,
    pub(crate) handshake_timeout: Duration,
    /// Soft limit of one connection's output, in bytes; past it the session queues.
    pub(crate) output_bytes: usize,
    pub(crate) subscriptions: SubscriptionLimits,
    /// Most subscription identifiers of one message.
    pub(crate) message_identifiers: usize,
    /// Resident memory in bytes past which publishers are read less; 0 is off.
    pub(crate) memory_bytes: u64,
    pub(crate) retained: RetainedLimits,
    /// On a node with storage.
    pub(crate) wills: Wills,
    pub(crate) protection: ProtectionSettings,
    pub(crate) sys_interval: Duration,
    /// Messages are delivered as if they were published with this quality of service, if theirs is
    /// lower.
    pub(crate) published_qos_min: QoS,
    /// Lines a second of the log about clients that come and go, of all workers.
    pub(crate) client_lines: u32,
    /// How long a worker looks for events before it sleeps.
    pub(crate) busy_poll: Duration,
}

impl Settings {
    pub(crate) fn new(config: &Config, access: &Arc<Shared>) -> Self {
        let limits = &config.limits;
        Self {
            session: Arc::new(limits.session_limits()),
            queue_hold: limits.client.queue_hold,
            anonymous: config.auth.anonymous,
            takeover: config.auth.takeover,
            client_id: config.auth.client_id.clone(),
            access: Arc::clone(access),
            connections_max: u64::from(limits.connections),
            sessions: SessionLimits {
                node: u64::from(limits.sessions),
                user: limits.user.sessions,
                address: limits.address.sessions,
            },
            connect_pace: Pace::new(&Rate::per_second(limits.connect_rate.into())),
            packet_filters_max: limits.packet_filters as usize,
            connect_timeout: limits.connect_timeout,
            handshake_timeout: limits.handshake_timeout,
            output_bytes: limits.output_bytes as usize,
            subscriptions: SubscriptionLimits {
                shared_max: limits.client.shared_subscriptions as usize,
                bytes_max: limits.client.subscription_bytes,
            },
            message_identifiers: usize::from(limits.client.message_identifiers.max(1)),
            memory_bytes: limits.memory,
            retained: RetainedLimits {
                message_count: limits.retained_messages as usize,
                bytes: usize::try_from(limits.retained_bytes).unwrap_or(usize::MAX),
                payload_bytes: limits.retained_payload as usize,
            },
            wills: config.storage.wills,
            protection: config.protection.settings(limits),
            sys_interval: config.sys.interval,
            published_qos_min: if limits.client.upgrade_outgoing_qos {
                QoS::ExactlyOnce
            } else {
                QoS::AtMostOnce
            },
            client_lines: config.log.clients,
            busy_poll: config.node.busy_poll,
        }
    }

    /// The quality of service that a subscription gets a message with: the lower one of both,
    /// unless `limits.client.upgrade_outgoing_qos` is on. [MQTT-3.8.4-8] [MQTT3-3.8.4-6]
    #[inline]
    pub(crate) fn delivered_qos(&self, published: QoS, asked: QoS) -> QoS {
        published.max(self.published_qos_min).min(asked)
    }

    /// A copy that shares nothing. The session limits are read for each packet, and the count of
    /// their owners beside them is written for each connection: by one worker, if it has its own.
    pub(crate) fn own_copy(&self) -> Arc<Self> {
        Arc::new(Self {
            session: Arc::new(Limits::clone(&self.session)),
            ..self.clone()
        })
    }
}
