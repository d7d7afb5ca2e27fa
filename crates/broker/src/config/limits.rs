//! Limits of clients: each with its unit, default and the reason for it.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thrum_codec::QoS;
use thrum_protection::Rate;
use thrum_protocol::Limits;
use thrum_protocol::limits::{self, TopicPriority};

use super::rate::{ByteRateSchema, RateSchema};
use super::{priorities, rate, units};

const KIB: u32 = 1024;
const MIB: u32 = 1024 * KIB;

/// Limits of the node, and of one packet, topic or message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsConfig {
    /// Most clients connected at a time; one more is refused with the reason (0x97). The limit of
    /// open files of the process bounds it too. Default `1_000_000`: what one large machine can
    /// serve.
    #[schemars(range(min = 1))]
    pub connections: u32,
    /// Sessions that outlive their connection, those of connected clients among them; a client that
    /// would begin one more is refused (0x97), and one that has a session gets it. 0 refuses all of
    /// them. Default `1_000_000`, as `connections`: some hundred bytes for each, without its queue.
    pub sessions: u32,
    /// New connections accepted a second; unused ones accumulate for one second, and connections
    /// beyond wait in the backlog of the system. 0 is no limit. Default `10_000`: a mass reconnect
    /// does not starve the clients that are connected.
    pub connect_rate: u32,
    /// Time from accepting a connection to its CONNECT packet. Default `"10s"`: slow radio links
    /// pass, idle sockets of port scanners go.
    #[serde(with = "units::duration")]
    #[schemars(with = "units::DurationSchema", range(min = 1, max = 3600))]
    pub connect_timeout: Duration,
    /// Time from accepting a connection to the end of its TLS and WebSocket handshakes and of the
    /// header of a proxy; the time for CONNECT begins after them. Default `"10s"`, as
    /// `connect_timeout`.
    #[serde(with = "units::duration")]
    #[schemars(with = "units::DurationSchema", range(min = 1, max = 3600))]
    pub handshake_timeout: Duration,
    /// A client over TCP that was silent for this time is probed by the system, four times within
    /// two minutes; one that does not answer is disconnected. This finds clients that vanished
    /// without a keep alive of MQTT. Holds for addresses that are opened from then on; 0 is off.
    /// Default `"10m"`: such clients are gone within a quarter of an hour, and one probe for each
    /// client has no measurable cost.
    #[serde(with = "units::duration")]
    #[schemars(with = "units::DurationSchema", range(min = 0, max = 32767))]
    pub tcp_keepalive: Duration,
    /// Unfinished TLS and WebSocket handshakes of one worker thread at a time; at this number, new
    /// connections wait in the backlog of the system. 0 is no limit. Default `4096`: some seconds
    /// of work for the cryptography, and idle sockets of an attacker do not fill it soon.
    pub handshakes: u32,
    /// Limits of one packet.
    #[serde(flatten)]
    pub packet: PacketLimits,
    /// Longest time a session is kept after its client has disconnected, and the time for clients
    /// of MQTT 3.1 and 3.1.1 with clean session off; `"never"` keeps sessions until they are
    /// resumed. Default `"7d"`: survives a long weekend, forgets abandoned devices.
    #[serde(with = "units::duration")]
    #[schemars(with = "units::DurationSchema", range(max = 4_294_967_295_u64))]
    pub session_expiry: Duration,
    /// Longest keep alive that a client may ask for; a longer one is replaced (clients of MQTT 5.0
    /// are told). 0 is no limit. Default `0`: battery devices know their link.
    #[serde(with = "units::duration")]
    #[schemars(with = "units::DurationSchema", range(max = 65_535))]
    pub keep_alive_max: Duration,
    /// Limits of the retained messages.
    #[serde(flatten)]
    pub retained: RetainedMessageLimits,
    /// Messages waiting for one worker thread; beyond it, connections that publish to this worker
    /// are not read until half of the messages are handled. Default `65_536`: absorbs a burst,
    /// stays in the cache of a large machine.
    #[schemars(range(min = 64))]
    pub mailbox_messages: u32,
    /// Bytes waiting for one worker thread; beyond it, connections that publish to this worker are
    /// not read until half of the bytes are handled. Default `"64MiB"`.
    #[serde(with = "units::byte_size")]
    #[schemars(
        with = "units::ByteSizeSchema",
        range(min = 65_536, max = 4_294_967_295_u64)
    )]
    pub mailbox_bytes: u32,
    /// Bytes that wait for one socket before messages stay in the session's queue (QoS 1 and 2) or
    /// are dropped and counted (QoS 0). Default `"256KiB"`: a second of a slow link, small enough
    /// that slow clients cost little.
    #[serde(with = "units::byte_size")]
    #[schemars(
        with = "units::ByteSizeSchema",
        range(min = 4096, max = 4_294_967_295_u64)
    )]
    pub output_bytes: u32,
    /// Memory limit of the broker's process: from 80 % of it on, publishers whose messages have to
    /// wait for their receivers are read less; from 90 % on, messages for long queues and new
    /// sessions that outlive their connection are refused (0x97); at the limit every message and
    /// session that would have to wait is refused. Messages that pass through, and clients that
    /// resume their session, are served at every level. 0 is off. Default `0`: only the operator
    /// knows the machine. A good value is three quarters of its memory.
    #[serde(with = "units::byte_size")]
    #[schemars(with = "units::ByteSizeSchema")]
    pub memory: u64,
    /// Limits of each client.
    pub client: ClientLimits,
    /// Limits of each user, whatever the number of its clients.
    pub user: UserLimits,
    /// Limits of each address that clients come from, for IPv6 of each network of 64 bits.
    pub address: AddressLimits,
}

/// Limits of one packet, with keys beside those of the node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PacketLimits {
    /// Largest packet accepted, with its header. Default `"1MiB"`: bounds the memory that one
    /// client can occupy before a packet is complete.
    #[serde(with = "units::byte_size")]
    #[schemars(with = "units::ByteSizeSchema", range(min = 128, max = 268_435_460))]
    pub max_packet: u32,
    /// Largest payload of a message. A message with a larger payload is not delivered: its
    /// publisher is told (0x97) if its version can tell, and stays connected; a will with a larger
    /// one is refused with its CONNECT. 0 is no limit of its own. Default `0`: `max_packet` bounds
    /// it, and a client that exceeds it is disconnected.
    #[serde(with = "units::byte_size")]
    #[schemars(with = "units::ByteSizeSchema", range(max = 268_435_455))]
    pub max_payload: u32,
    /// Longest client identifier, in bytes. Default `256`: room for URNs.
    #[schemars(range(min = 23))]
    pub client_id_length: u16,
    /// A client that sends no identifier is assigned one; otherwise it is refused (0x85). Default
    /// `true`: tools send none, and user names identify clients where that matters.
    pub allow_zero_length_clientid: bool,
    /// Longest topic name or filter, in bytes. Default `4096`: far above sane names, far below the
    /// 65,535 of MQTT.
    #[schemars(range(min = 16))]
    pub topic_length: u16,
    /// Most levels of a topic name or filter. Default `128`: bounds the work of one match.
    #[schemars(range(min = 1))]
    pub topic_levels: u16,
    /// Most topic filters of one SUBSCRIBE or UNSUBSCRIBE. A SUBSCRIBE gets 0x97 (0x80 before MQTT
    /// 5.0) for each filter beyond; an UNSUBSCRIBE gets 0x83, and before MQTT 5.0, which has no
    /// reason code for it, its connection is closed. Default `256`: they are added at once, in less
    /// than a millisecond, for which other clients wait.
    #[schemars(range(min = 1))]
    pub packet_filters: u32,
    /// Highest quality of service, 0, 1 or 2. Default `2`.
    #[schemars(range(max = 2))]
    pub max_qos: u8,
}

/// Limits of the retained messages, with keys beside those of the node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RetainedMessageLimits {
    /// Messages that clients publish may be retained. `false` holds for all listeners, with the
    /// effect of a listener's `retain_available`. Default `true`.
    pub retain_available: bool,
    /// Most retained messages that clients may keep on the node; the topics of the node itself
    /// (`$SYS/…`) do not count. A message over a limit of retained messages is refused as a whole
    /// (0x97) where the publisher can be told: QoS 1 and 2 with MQTT 5.0. Otherwise it is
    /// delivered, and its topic no longer has a retained message. 0 is `retain_available = false`.
    /// Default `1_000_000`: one for each device of a large site.
    pub retained_messages: u32,
    /// Memory of all retained messages that clients keep, as `retained_messages`: their topics,
    /// properties and payloads, 96 bytes for each message, and for each level of the tree of topics
    /// its text and 144 bytes. A topic of 128 levels of its own counts with 18 KiB and more;
    /// `topic_levels` bounds it. With `acl.check_retained_source` the stored data of each publisher
    /// counts as well, some 200 bytes. Default `"1GiB"`.
    #[serde(with = "units::byte_size")]
    #[schemars(with = "units::ByteSizeSchema")]
    pub retained_bytes: u64,
    /// Largest payload that is retained, as `retained_messages`. Default `"1MiB"`, as `max_packet`:
    /// every message that can be published can be retained.
    #[serde(with = "units::byte_size")]
    #[schemars(with = "units::ByteSizeSchema", range(max = 4_294_967_295_u64))]
    pub retained_payload: u32,
}

/// Limits of one client and its session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ClientLimits {
    /// Messages queued for a client that is away or slow. Default `10_000`: at
    /// a message a second nearly three hours.
    #[schemars(range(min = 1))]
    pub queue: u32,
    /// Memory of the messages queued for a client that is away or slow: topic, properties, payload
    /// and subscription identifiers of each, and 200 bytes. Default `"64MiB"`: one client cannot
    /// fill the machine.
    #[serde(with = "units::byte_size")]
    #[schemars(
        with = "units::ByteSizeSchema",
        range(min = 1024, max = 4_294_967_295_u64)
    )]
    pub queue_bytes: u32,
    /// Effect of a full queue on one more message: `"reject_new"` drops it, `"drop_oldest"` drops
    /// the oldest of the lowest priority, and `"hold"` makes publishers of QoS 1 and 2 wait for
    /// room while the client is connected (else as `"reject_new"`). Default `"reject_new"`, as
    /// Mosquitto: acknowledged messages stay, a publisher whose message no client takes is told
    /// (0x97), and no client can make others wait; EMQX drops the oldest.
    pub queue_policy: QueuePolicy,
    /// Longest time that a publisher of QoS 1 or 2 waits, not read and without an answer, for room
    /// in the queue of a client with the policy `"hold"`, or, with every policy but
    /// `"drop_oldest"`, in that of any member of a shared group whose members are connected and all
    /// full. Then the message is refused (0x97) if no other client takes it. 0 is no wait. Default
    /// `"10s"`: publishers wait for a consumer that restarts, and clients do not give up on their
    /// acknowledgement before (20 s and more).
    #[serde(with = "units::duration")]
    #[schemars(with = "units::DurationSchema", range(max = 3600))]
    pub queue_hold: Duration,
    /// Messages with QoS 0 are queued for a client that is away. They are the first to be dropped
    /// for others, and are not stored. Default `false`: QoS 0 is for data that the next message
    /// replaces.
    pub queue_qos0: bool,
    /// Longest time that a message waits in a queue, in whole seconds; an older one is dropped. 0
    /// is no limit. Default `0`: publishers know how long a message is of use, and can give it an
    /// expiry.
    #[serde(with = "units::duration")]
    #[schemars(with = "units::DurationSchema", range(max = 4_294_967_295_u64))]
    pub queue_age: Duration,
    /// Topics that leave a queue before others, as `"filter=priority"`: 255 leaves first, 0 last,
    /// and within a priority the oldest. The first filter that matches a topic counts; a topic that
    /// matches none has priority 0. At most 256. Default `[]`: all messages leave in the order of
    /// their arrival.
    #[serde(with = "priorities")]
    #[schemars(with = "priorities::PrioritiesSchema")]
    pub queue_priorities: Vec<TopicPriority>,
    /// Messages of QoS 1 and 2 sent to a client and not yet acknowledged; its own receive maximum
    /// bounds it too. Default `1024`: keeps a link of 100 ms busy at 10,000 messages a second.
    #[schemars(range(min = 1))]
    pub inflight: u16,
    /// Bytes of payload sent to a client with QoS 1 and 2 and not yet acknowledged; past it the
    /// next message waits. 0 is no limit. Default `0`: `inflight` bounds their number, and
    /// `output_bytes` what waits for a slow link.
    #[serde(with = "units::byte_size")]
    #[schemars(with = "units::ByteSizeSchema", range(max = 4_294_967_294_u64))]
    pub inflight_bytes: u32,
    /// A message is delivered with the quality of service of the subscription, also where it was
    /// published with a lower one. Default `false`: MQTT says the lower of the two.
    pub upgrade_outgoing_qos: bool,
    /// Messages of QoS 1 and 2 that a client may send before the first is acknowledged (receive
    /// maximum). Default `1024`, as `inflight`.
    #[schemars(range(min = 1))]
    pub receive_maximum: u16,
    /// Subscriptions of one session. Default `10_000`: gateways fit, a runaway loop does not.
    #[schemars(range(min = 1))]
    pub subscriptions: u32,
    /// Shared subscriptions of one session; they count as subscriptions too. Default `1000`: each
    /// of them may get a copy of every message, and a worker that takes part in more groups than
    /// that is rare.
    pub shared_subscriptions: u32,
    /// Memory of the subscriptions of one session: 150 bytes and the text of each, 100 for each
    /// level of a filter with a wildcard, 300 for a shared group. Default `"8MiB"`: 10,000 filters
    /// of six levels fit, and what one client's wildcards make a message visit stays a matter of
    /// milliseconds.
    #[serde(with = "units::byte_size")]
    #[schemars(
        with = "units::ByteSizeSchema",
        range(min = 1024, max = 4_294_967_295_u64)
    )]
    pub subscription_bytes: u32,
    /// Subscription identifiers in one message. A message that matches more of a client's
    /// overlapping subscriptions is sent several times, each time with other identifiers. Default
    /// `64`: no application needs so many, and 10,000 of them would be 40 KiB with each message.
    #[schemars(range(min = 1))]
    pub message_identifiers: u16,
    /// Topic aliases in each direction (MQTT 5.0). Default `64`: the topics a device repeats, some
    /// KiB of memory.
    pub topic_aliases: u16,
    /// PUBLISH packets that one connection may send. Over a rate it is not read until it may send
    /// again; nothing is dropped. 0 is no limit. Default `0`: only the operator knows the expected
    /// rate.
    #[serde(with = "rate::count")]
    #[schemars(with = "RateSchema")]
    pub messages: Rate,
    /// Bytes that one connection may send. 0 is no limit. Default `0`, as `messages`.
    #[serde(with = "rate::bytes")]
    #[schemars(with = "ByteRateSchema")]
    pub bytes: Rate,
}

/// Limits of one user, whatever the number of its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct UserLimits {
    /// Sessions that outlive their connection; a client that would begin one more is refused
    /// (0x97). A session counts from its client's first connection under a limit, and from the
    /// start of the broker. 0 is no limit. Default `0`: many devices may share a user.
    pub sessions: u32,
    /// Connections, counted after the login; one too many is refused (0x9F). 0 is no limit. Default
    /// `0`: many devices may share a user.
    #[serde(with = "rate::count")]
    #[schemars(with = "RateSchema")]
    pub connects: Rate,
    /// PUBLISH packets of all its clients; over the rate they are not read until the rate allows
    /// more. 0 is no limit. Default `0`.
    #[serde(with = "rate::count")]
    #[schemars(with = "RateSchema")]
    pub messages: Rate,
    /// Bytes of all its clients; over the rate they are not read until the rate allows more. 0 is
    /// no limit. Default `0`.
    #[serde(with = "rate::bytes")]
    #[schemars(with = "ByteRateSchema")]
    pub bytes: Rate,
}

/// Limits of one address, for IPv6 of one network of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AddressLimits {
    /// Sessions that outlive their connection, by the address of the last one; a client that would
    /// begin one more is refused (0x97). After a start of the broker a session counts once its
    /// client has reconnected. 0 is no limit. Default `0`, as `connects`. `10_000` is a good value
    /// for a broker that clients reach directly.
    pub sessions: u32,
    /// Connections; one too many is closed before its TLS handshake. 0 is no limit. Default `0`: a
    /// whole site or a load balancer may share an address. `"100/s"` is a good value for a broker
    /// that clients reach directly.
    #[serde(with = "rate::count")]
    #[schemars(with = "RateSchema")]
    pub connects: Rate,
    /// PUBLISH packets of all its clients; over the rate they are not read until the rate allows
    /// more. 0 is no limit. Default `0`.
    #[serde(with = "rate::count")]
    #[schemars(with = "RateSchema")]
    pub messages: Rate,
    /// Bytes of all its clients; over the rate they are not read until the rate allows more. 0 is
    /// no limit. Default `0`.
    #[serde(with = "rate::bytes")]
    #[schemars(with = "ByteRateSchema")]
    pub bytes: Rate,
}

/// The effect of a full queue on one more message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum QueuePolicy {
    /// Drops it.
    #[default]
    RejectNew,
    /// Drops the oldest.
    DropOldest,
    /// Makes its publisher wait.
    Hold,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        Self {
            connections: 1_000_000,
            sessions: 1_000_000,
            connect_rate: 10_000,
            connect_timeout: Duration::from_secs(10),
            handshake_timeout: Duration::from_secs(10),
            tcp_keepalive: Duration::from_mins(10),
            handshakes: 4096,
            packet: PacketLimits::default(),
            session_expiry: Duration::from_hours(168),
            keep_alive_max: Duration::ZERO,
            retained: RetainedMessageLimits::default(),
            mailbox_messages: 65_536,
            mailbox_bytes: 64 * MIB,
            output_bytes: 256 * KIB,
            memory: 0,
            client: ClientLimits::default(),
            user: UserLimits::default(),
            address: AddressLimits::default(),
        }
    }
}

impl Default for PacketLimits {
    fn default() -> Self {
        Self {
            max_packet: MIB,
            max_payload: 0,
            client_id_length: 256,
            allow_zero_length_clientid: true,
            topic_length: 4096,
            topic_levels: 128,
            packet_filters: 256,
            max_qos: 2,
        }
    }
}

impl Default for RetainedMessageLimits {
    fn default() -> Self {
        Self {
            retain_available: true,
            retained_messages: 1_000_000,
            retained_bytes: 1024 * u64::from(MIB),
            retained_payload: MIB,
        }
    }
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            queue: 10_000,
            queue_bytes: 64 * MIB,
            queue_policy: QueuePolicy::RejectNew,
            queue_hold: Duration::from_secs(10),
            queue_qos0: false,
            queue_age: Duration::ZERO,
            queue_priorities: Vec::new(),
            inflight: 1024,
            inflight_bytes: 0,
            upgrade_outgoing_qos: false,
            receive_maximum: 1024,
            subscriptions: 10_000,
            shared_subscriptions: 1000,
            subscription_bytes: 8 * MIB,
            message_identifiers: 64,
            topic_aliases: 64,
            messages: Rate::NONE,
            bytes: Rate::NONE,
        }
    }
}

impl ClientLimits {
    /// Whole seconds, rounded up; none for no limit and for never.
    fn queue_age_max(&self) -> Option<u32> {
        let seconds = self.queue_age.as_millis().div_ceil(1000);
        let seconds = u32::try_from(seconds).unwrap_or(u32::MAX);
        Some(seconds).filter(|seconds| (1..u32::MAX).contains(seconds))
    }
}

impl LimitsConfig {
    /// The limits of one session, in the form the session machine takes them.
    pub fn session_limits(&self) -> Limits {
        let session_expiry = u32::try_from(self.session_expiry.as_secs()).unwrap_or(u32::MAX);
        Limits {
            packet_bytes_max: self.packet.max_packet,
            payload_bytes_max: limit_or_none(self.packet.max_payload),
            assigns_client_ids: self.packet.allow_zero_length_clientid,
            client_id_bytes_max: self.packet.client_id_length,
            topic_bytes_max: self.packet.topic_length,
            topic_levels_max: self.packet.topic_levels,
            subscriptions_max: self.client.subscriptions,
            receive_maximum: self.client.receive_maximum,
            inflight_max: self.client.inflight,
            inflight_bytes_max: limit_or_none(self.client.inflight_bytes),
            queue: limits::QueueLimits {
                messages_max: self.client.queue,
                bytes_max: self.client.queue_bytes,
                policy: match self.client.queue_policy {
                    QueuePolicy::RejectNew => limits::QueuePolicy::RejectNew,
                    QueuePolicy::DropOldest => limits::QueuePolicy::DropOldest,
                    QueuePolicy::Hold => limits::QueuePolicy::Hold,
                },
                qos0: self.client.queue_qos0,
                age_max: self.client.queue_age_max(),
                priorities: self.client.queue_priorities.clone(),
            },
            topic_alias_maximum: self.client.topic_aliases,
            topic_alias_outbound_max: self.client.topic_aliases,
            keep_alive_max: u16::try_from(self.keep_alive_max.as_secs()).unwrap_or(u16::MAX),
            session_expiry_max: session_expiry,
            session_expiry_v3: session_expiry,
            maximum_qos: match self.packet.max_qos {
                0 => QoS::AtMostOnce,
                1 => QoS::AtLeastOnce,
                _ => QoS::ExactlyOnce,
            },
            retain_available: self.retained.retain_available && self.retained.retained_messages > 0,
            ..Limits::default()
        }
    }
}

/// 0 is no limit.
const fn limit_or_none(bytes: u32) -> u32 {
    if bytes == 0 { u32::MAX } else { bytes }
}
