//! The part of the configuration that the workers use, in the form in which they use it.

use std::sync::Arc;
use std::time::Duration;

use thrum_codec::QoS;
use thrum_engine::access::Shared;
use thrum_engine::node::session_counts::SessionLimits;
use thrum_engine::retained::RetainedLimits;
use thrum_engine::settings::{EngineSettings, SubscriptionLimits};
use thrum_protection::{Pace, ProtectionSettings};

use crate::config::{Anonymous, ClientIdPattern, Config, LimitsConfig, Rate, Takeover, Wills};
use crate::telemetry;

/// The settings of every worker; a reload replaces them as a whole.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// The settings of the engine.
    pub(crate) engine: EngineSettings,
    /// The settings of the layers around the engine.
    pub(crate) shell: ShellSettings,
}

/// The settings of admission, of the network edge and of the worker loop.
#[derive(Clone, Debug)]
pub(crate) struct ShellSettings {
    pub(crate) anonymous: Anonymous,
    pub(crate) takeover: Takeover,
    pub(crate) client_id: ClientIdPattern,
    pub(crate) connections_max: u64,
    /// Rate of new connections of the node; `None` means no limit.
    pub(crate) connect_pace: Option<Pace>,
    pub(crate) connect_timeout: Duration,
    pub(crate) handshake_timeout: Duration,
    pub(crate) protection: ProtectionSettings,
    pub(crate) sys_interval: Duration,
    /// Log lines per second about clients that connect and disconnect, of all workers together.
    pub(crate) client_lines: u32,
    /// Time for which a worker polls for events before it sleeps.
    pub(crate) busy_poll: Duration,
}

impl Settings {
    pub(crate) fn new(config: &Config, access: &Arc<Shared>) -> Self {
        Self {
            engine: engine_settings(config, access),
            shell: shell_settings(config),
        }
    }
}

fn engine_settings(config: &Config, access: &Arc<Shared>) -> EngineSettings {
    let limits = &config.limits;
    EngineSettings {
        session: Arc::new(limits.session_limits()),
        queue_hold: limits.client.queue_hold,
        access: Arc::clone(access),
        sessions: SessionLimits {
            node: u64::from(limits.sessions),
            user: limits.user.sessions,
            address: limits.address.sessions,
        },
        subscriptions: SubscriptionLimits {
            shared_max: limits.client.shared_subscriptions as usize,
            bytes_max: limits.client.subscription_bytes,
            packet_filters_max: limits.packet.packet_filters as usize,
            message_identifiers: usize::from(limits.client.message_identifiers.max(1)),
        },
        output_bytes: limits.output_bytes as usize,
        memory_bytes: limits.memory,
        retained: retained_limits(limits),
        keeps_all_wills: config.storage.wills == Wills::All,
        published_qos_min: if limits.client.upgrade_outgoing_qos {
            QoS::ExactlyOnce
        } else {
            QoS::AtMostOnce
        },
        stamp_every: config.node.stamp_messages,
        spans: telemetry::span_rules(&config.telemetry),
        timeline_bytes: config.node.timeline_bytes as usize,
    }
}

fn retained_limits(limits: &LimitsConfig) -> RetainedLimits {
    RetainedLimits {
        message_count: limits.retained.retained_messages as usize,
        bytes: usize::try_from(limits.retained.retained_bytes).unwrap_or(usize::MAX),
        payload_bytes: limits.retained.retained_payload as usize,
    }
}

fn shell_settings(config: &Config) -> ShellSettings {
    let limits = &config.limits;
    ShellSettings {
        anonymous: config.auth.anonymous,
        takeover: config.auth.takeover,
        client_id: config.auth.client_id.clone(),
        connections_max: u64::from(limits.connections),
        connect_pace: Pace::new(&Rate::per_second(limits.connect_rate.into())),
        connect_timeout: limits.connect_timeout,
        handshake_timeout: limits.handshake_timeout,
        protection: config.protection.settings(limits),
        sys_interval: config.sys.interval,
        client_lines: config.log.clients,
        busy_poll: config.node.busy_poll,
    }
}
