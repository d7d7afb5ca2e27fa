//! What the workers need of the configuration, in the form they use it.

use std::sync::Arc;
use std::time::Duration;

use thrum_protocol::Limits;

use crate::access::Shared;
use crate::config::{Anonymous, Config};
use crate::protection::ProtectionSettings;
use crate::retained::RetainedLimits;

/// Settings that every worker holds; replaced as a whole by a reload.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) session: Arc<Limits>,
    pub(crate) anonymous: Anonymous,
    pub(crate) access: Arc<Shared>,
    pub(crate) connections_max: u64,
    pub(crate) connect_rate: u32,
    pub(crate) connect_timeout: Duration,
    pub(crate) handshake_timeout: Duration,
    /// Soft limit of one connection's output, in bytes; past it the session queues.
    pub(crate) output_bytes: usize,
    /// Resident memory in bytes past which publishers are read less; 0 is off.
    pub(crate) memory_bytes: u64,
    pub(crate) retained: RetainedLimits,
    pub(crate) protection: ProtectionSettings,
    pub(crate) sys_interval: Duration,
    /// How long a worker looks for events before it sleeps.
    pub(crate) busy_poll: Duration,
}

impl Settings {
    pub(crate) fn new(config: &Config, access: &Arc<Shared>) -> Self {
        let limits = &config.limits;
        Self {
            session: Arc::new(limits.session_limits()),
            anonymous: config.auth.anonymous,
            access: Arc::clone(access),
            connections_max: u64::from(limits.connections),
            connect_rate: limits.connect_rate,
            connect_timeout: limits.connect_timeout,
            handshake_timeout: limits.handshake_timeout,
            output_bytes: limits.output_bytes as usize,
            memory_bytes: limits.memory,
            retained: RetainedLimits {
                message_count: limits.retained_messages as usize,
                bytes: usize::try_from(limits.retained_bytes).unwrap_or(usize::MAX),
                payload_bytes: limits.retained_payload as usize,
            },
            protection: ProtectionSettings::new(config),
            sys_interval: config.sys.interval,
            busy_poll: config.node.busy_poll,
        }
    }

    /// A copy that shares nothing. The session limits are read for each packet, and the count of their
    /// owners beside them is written for each connection: by one worker, if it has its own.
    pub(crate) fn own_copy(&self) -> Arc<Self> {
        Arc::new(Self {
            session: Arc::new(Limits::clone(&self.session)),
            ..self.clone()
        })
    }
}
