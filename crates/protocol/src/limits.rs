//! What a server allows one client: each limit with its default and the reason for it.

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
    /// Largest payload accepted, in bytes; a message with a larger one goes to nobody. Default
    /// `u32::MAX`, none.
    pub payload_bytes_max: u32,
    /// A client without an identifier is given one. Default true.
    pub assigns_client_ids: bool,
    /// Longest client identifier, in bytes. Default 256: room for URNs, no abuse of memory.
    pub client_id_bytes_max: u16,
    /// Longest topic name or filter, in bytes. Default 4,096.
    pub topic_bytes_max: u16,
    /// Most levels of a topic name or filter. Default 128.
    pub topic_levels_max: u16,
    /// Subscriptions of one session. Default 10,000.
    pub subscriptions_max: u32,
    /// Receive maximum that the server announces: QoS 1 and 2 messages a client may have
    /// unacknowledged towards the server. Default 1,024.
    pub receive_maximum: u16,
    /// Most unacknowledged QoS 1 and 2 messages towards a client, whatever larger receive maximum
    /// it announced (and what 3.x clients get). Default 1,024.
    pub inflight_max: u16,
    /// Bytes of payload of unacknowledged messages towards a client, past which the next one waits.
    /// Default `u32::MAX`, none.
    pub inflight_bytes_max: u32,
    /// The queue of one session.
    pub queue: QueueLimits,
    /// Topic aliases accepted from a client. Default 64.
    pub topic_alias_maximum: u16,
    /// Topic aliases used towards a client, at most what it allows. Default 64.
    pub topic_alias_outbound_max: u16,
    /// Longest keep alive in seconds; a longer one or 0 is replaced through server keep alive (5.0)
    /// . 0 = no limit. Default 0.
    pub keep_alive_max: u16,
    /// Longest session expiry in seconds; `u32::MAX` allows sessions that never expire. Default 7
    /// days.
    pub session_expiry_max: u32,
    /// Expiry of a 3.x session with clean session 0, in seconds (bounded by `session_expiry_max`).
    /// Default 7 days.
    pub session_expiry_v3: u32,
    /// Highest quality of service. Default 2.
    pub maximum_qos: QoS,
    /// What clients publish may be retained. Default true.
    pub retain_available: bool,
    /// Wildcards in filters are allowed. Default true.
    pub wildcard_available: bool,
    /// Shared subscriptions are allowed. Default true.
    pub shared_available: bool,
}

/// What may wait for one client, and what does not stay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueLimits {
    /// Messages queued for one session while its window is full or it is away. Default 10,000.
    pub messages_max: u32,
    /// Memory of the messages queued for one session, in bytes: their text, their lists of
    /// subscription identifiers and about 200 bytes for each. Default 64 MiB.
    pub bytes_max: u32,
    /// What a full queue does with one more message. Default: it is refused.
    pub policy: QueuePolicy,
    /// Messages with QoS 0 are queued for a session that is away; they make room first, whatever
    /// the policy, and do not survive the node. Default false, as the specification expects of QoS
    /// 0.
    pub qos0: bool,
    /// Longest time in the queue, in seconds; a message is dropped within the second after it.
    /// Default none: the publisher knows better, and can give its messages an expiry.
    pub age_max: Option<u32>,
    /// Priorities of topics in the queue; the first filter that fits counts, and a topic that fits
    /// none has priority 0. Each message that is queued is compared with each filter. Default
    /// empty.
    pub priorities: Vec<TopicPriority>,
}

/// What a session's queue does with a message for which it has no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueuePolicy {
    /// It is dropped and what waits stays: what was acknowledged is not taken back for what comes
    /// later, and a publisher whose message nobody can take learns so. The default for that reason,
    /// and as Mosquitto does it.
    #[default]
    RejectNew,
    /// The oldest of the lowest priority are dropped, unless all have a higher priority than it; as
    /// EMQX does it.
    DropOldest,
    /// Its publisher waits for room while the client is connected; else as
    /// [`QueuePolicy::RejectNew`]. The node holds the publisher back, the session refuses.
    Hold,
}

/// The priority that messages of some topics have in the queue of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicPriority {
    /// A valid filter without share prefix.
    pub filter: Box<str>,
    /// 255 leaves first, 0 last; within a priority the first in is the first out.
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
