//! Limits that a server sets for one client: each with its default and the reason for it.

use alloc::boxed::Box;
use alloc::vec::Vec;

use thrum_codec::{QoS, topic};

/// Limits of one session and its connection, set by the node's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent settings of one configuration"
)]
pub struct Limits {
    /// Largest packet accepted, in bytes. Default 1 MiB, as EMQX.
    pub packet_bytes_max: u32,
    /// Largest payload accepted, in bytes; a message with a larger one is delivered to no
    /// subscriber. Default `u32::MAX`, no limit.
    pub payload_bytes_max: u32,
    /// Whether a client without an identifier is assigned one. Default true.
    pub assigns_client_ids: bool,
    /// Longest client identifier, in bytes. Default 256: long enough for URNs, and bounds the
    /// memory.
    pub client_id_bytes_max: u16,
    /// Longest topic name or filter, in bytes. Default 4,096.
    pub topic_bytes_max: u16,
    /// Highest number of levels of a topic name or filter. Default 128.
    pub topic_levels_max: u16,
    /// Highest number of subscriptions of one session. Default 10,000.
    pub subscriptions_max: u32,
    /// Receive maximum that the server announces: number of QoS 1 and 2 messages that a client may
    /// have unacknowledged. Default 1,024.
    pub receive_maximum: u16,
    /// Highest number of unacknowledged QoS 1 and 2 messages towards a client, even if it announced
    /// a larger receive maximum; also applies to 3.x clients. Default 1,024.
    pub inflight_max: u16,
    /// Payload bytes of unacknowledged messages towards a client above which the next message is
    /// queued. Default `u32::MAX`, no limit.
    pub inflight_bytes_max: u32,
    /// Limits of the queue of one session.
    pub queue: QueueLimits,
    /// Highest topic alias accepted from a client. Default 64.
    pub topic_alias_maximum: u16,
    /// Highest topic alias used towards a client, at most the client's maximum. Default 64.
    pub topic_alias_outbound_max: u16,
    /// Longest keep alive in seconds; a longer one or 0 is replaced through the server keep alive
    /// (5.0); 0 means no limit. Default 0.
    pub keep_alive_max: u16,
    /// Longest session expiry in seconds; `u32::MAX` allows sessions that never expire. Default 7
    /// days.
    pub session_expiry_max: u32,
    /// Expiry of a 3.x session with clean session 0, in seconds (at most `session_expiry_max`).
    /// Default 7 days.
    pub session_expiry_v3: u32,
    /// Highest quality of service. Default 2.
    pub maximum_qos: QoS,
    /// Whether clients may publish retained messages. Default true.
    pub retain_available: bool,
    /// Whether wildcards in filters are allowed. Default true.
    pub wildcard_available: bool,
    /// Whether shared subscriptions are allowed. Default true.
    pub shared_available: bool,
}

/// Limits and policy of the queue of one session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueLimits {
    /// Highest number of messages queued for one session while its window is full or its client is
    /// disconnected. Default 10,000.
    pub messages_max: u32,
    /// Memory of the messages queued for one session, in bytes: topic, properties and payload,
    /// lists of subscription identifiers, and about 200 bytes for each. Default 64 MiB.
    pub bytes_max: u32,
    /// Policy of a full queue for a new message. Default: the queue refuses it.
    pub policy: QueuePolicy,
    /// Whether messages with QoS 0 are queued for a disconnected session; they are dropped first to
    /// make room, under every policy, and do not survive a restart of the node. Default false, as
    /// the specification expects of QoS 0.
    pub qos0: bool,
    /// Longest time in the queue, in seconds; a message is dropped within the second after it.
    /// Default no limit: the publisher can set a message expiry that suits its messages.
    pub age_max: Option<u32>,
    /// Priorities of topics in the queue. The first matching filter applies; a topic without a
    /// matching filter has priority 0. Each queued message is compared with each filter. Default
    /// empty.
    pub priorities: Vec<TopicPriority>,
}

/// Policy of a session's queue for a message that exceeds its limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueuePolicy {
    /// The queue drops the new message and keeps the queued ones: an acknowledged message is not
    /// dropped for a later one, and a publisher learns that no subscriber could take its message.
    /// The default for that reason, and Mosquitto's policy.
    #[default]
    RejectNew,
    /// The queue drops the oldest messages of the lowest priority, unless all have a higher
    /// priority than the new one. EMQX's policy.
    DropOldest,
    /// The publisher is held back until there is room while the client is connected; otherwise as
    /// [`QueuePolicy::RejectNew`]. The node holds the publisher back; the session refuses the
    /// message.
    Hold,
}

/// The priority of messages in the queue whose topic matches a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicPriority {
    /// A valid filter without share prefix.
    pub filter: Box<str>,
    /// 255 is sent first, 0 last; within a priority the order is first in, first out.
    pub priority: u8,
}

impl QueueLimits {
    /// The priority of a topic in the queue.
    #[inline]
    pub fn priority(&self, topic: &str) -> u8 {
        let mut rules = self.priorities.iter();
        let rule = rules.find(|rule| topic::matches(&rule.filter, topic));
        rule.map_or(0, |rule| rule.priority)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            packet_bytes_max: 1024 * 1024,
            payload_bytes_max: u32::MAX,
            assigns_client_ids: true,
            client_id_bytes_max: 256,
            topic_bytes_max: 4096,
            topic_levels_max: 128,
            subscriptions_max: 10_000,
            receive_maximum: 1024,
            inflight_max: 1024,
            inflight_bytes_max: u32::MAX,
            queue: QueueLimits::default(),
            topic_alias_maximum: 64,
            topic_alias_outbound_max: 64,
            keep_alive_max: 0,
            session_expiry_max: 7 * 24 * 3600,
            session_expiry_v3: 7 * 24 * 3600,
            maximum_qos: QoS::ExactlyOnce,
            retain_available: true,
            wildcard_available: true,
            shared_available: true,
        }
    }
}

impl Default for QueueLimits {
    fn default() -> Self {
        Self {
            messages_max: 10_000,
            bytes_max: 64 * 1024 * 1024,
            policy: QueuePolicy::RejectNew,
            qos0: false,
            age_max: None,
            priorities: Vec::new(),
        }
    }
}
