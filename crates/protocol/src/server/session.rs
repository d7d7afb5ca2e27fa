//! The protocol state of one client, and how connections come and go.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use thrum_codec::packet::{Disconnect, Packet};
use thrum_codec::properties::DisconnectProperties;
use thrum_codec::reason::Carrier;
use thrum_codec::{QoS, ReasonCode, Version, encode};

use super::held::held_bytes;
use super::inflight::Inflight;
use super::journal::Journal;
use super::queue::Queue;
use super::rare::Rare;
use super::received::Received;
use super::topic_aliases::{InboundAliases, OutboundAliases};
use super::traffic::{Carried, Traffic};
use super::waiting::Dropped;
use super::will::Will;
use super::{DropReason, Farewell, GroupId, Handshake, Step, Taken, Welcome, WillView, connack};
use crate::packet_ids::PacketIds;
use crate::{Limits, Message, MountPoint, Output, Time};

/// Protocol state of one client; outlives connections. Small when idle: at most 184 bytes without
/// queue.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts about one client; each is one byte"
)]
pub struct Session {
    pub(super) id: u64,
    pub(super) client_id: Box<str>,
    pub(super) limits: Arc<Limits>,
    pub(super) link: Link,
    pub(super) version: Version,
    pub(super) is_congested: bool,
    /// The client is sent every topic as it is: without alias and without mount point.
    pub(super) sends_plain_topics: bool,
    /// The client is another broker's bridge.
    pub(super) is_bridge: bool,
    /// What the client publishes may be retained.
    pub(super) retain_available: bool,
    /// The client wants words with what did not go as it asked (request problem information).
    pub(super) wants_words: bool,
    /// The last connection began with an expiry above 0, or the session was restored.
    pub(super) was_persistent_at_connect: bool,
    /// Seconds; 0 turns it off.
    pub(super) keep_alive: u16,
    /// Seconds; 0 ends the session with the connection, `u32::MAX` never.
    #[expect(clippy::struct_field_names, reason = "the specification's word")]
    pub(super) session_expiry: u32,
    /// While connected the last sign of life, while away the end of the connection.
    pub(super) seen: Time,
    /// The client's maximum packet size.
    pub(super) packet_bytes_max: u32,
    /// Most unacknowledged messages towards the client.
    pub(super) window: u16,
    pub(super) packet_ids: PacketIds,
    pub(super) inflight: Inflight,
    pub(super) queue: Queue,
    pub(super) outbound_aliases: OutboundAliases,
    pub(super) dropped: Option<Box<Dropped>>,
    pub(super) received: Received,
    pub(super) inbound_aliases: InboundAliases,
    /// `QoS` 1 and 2 messages of this connection less the exchanges that ended on it: what the
    /// client counts against the receive maximum.
    pub(super) unacknowledged: i32,
    /// `QoS` 1 messages of this connection whose outcome the node has not told yet.
    pub(super) routing: u16,
    /// The same of earlier connections: their PUBACK must not be sent on this one.
    pub(super) routing_before: u16,
    pub(super) will: Option<Box<Will>>,
    /// What the connection has carried.
    pub(super) carried: Carried,
    /// None in a session that was never durable.
    pub(super) journal: Option<Box<Journal>>,
    /// None without a connection, and in most connections.
    pub(super) rare: Option<Box<Rare>>,
}

/// State of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    /// There was none yet.
    New,
    /// In use.
    Up,
    /// DISCONNECT was sent or received: nothing more is sent, what comes is ignored.
    Closing,
    /// Gone.
    Away,
}

impl Session {
    /// A session for a client that has none (or starts clean). `id` is unique on the node and never
    /// 0.
    pub fn new(id: u64, handshake: &Handshake, limits: &Arc<Limits>) -> Self {
        Self {
            version: handshake.version,
            session_expiry: handshake.session_expiry,
            ..Self::empty(id, handshake.client_id.clone(), limits)
        }
    }

    /// A session that holds nothing.
    pub(super) fn empty(id: u64, client_id: Box<str>, limits: &Arc<Limits>) -> Self {
        Self {
            id,
            client_id,
            limits: Arc::clone(limits),
            link: Link::New,
            version: Version::V5,
            is_congested: false,
            sends_plain_topics: true,
            is_bridge: false,
            retain_available: true,
            wants_words: true,
            was_persistent_at_connect: false,
            keep_alive: 0,
            session_expiry: 0,
            seen: Time::default(),
            packet_bytes_max: u32::MAX,
            window: 1,
            packet_ids: PacketIds::default(),
            inflight: Inflight::default(),
            queue: Queue::default(),
            outbound_aliases: OutboundAliases::default(),
            dropped: None,
            received: Received::default(),
            inbound_aliases: InboundAliases::default(),
            unacknowledged: 0,
            routing: 0,
            routing_before: 0,
            will: None,
            carried: Carried::default(),
            journal: None,
            rare: None,
        }
    }

    /// Other limits, for a session that is about to be resumed: they hold from its next connection
    /// on, so call it before [`Session::connect`].
    pub fn set_limits(&mut self, limits: &Arc<Limits>) {
        if self.limits.queue_priorities != limits.queue_priorities {
            self.queue.prioritise(limits);
        }
        self.limits = Arc::clone(limits);
    }

    /// Number on the node.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Client identifier.
    pub fn client_id(&self) -> &str {
        &self.client_id
    }

    /// Has a connection.
    pub fn is_connected(&self) -> bool {
        matches!(self.link, Link::Up | Link::Closing)
    }

    /// Version of the connection (of the last one when away).
    pub fn version(&self) -> Version {
        self.version
    }

    /// The session can outlive its connection (expiry above 0).
    pub fn is_persistent(&self) -> bool {
        self.session_expiry > 0
    }

    /// The same as it stood when the client connected: DISCONNECT may have taken it back.
    pub fn was_persistent_at_connect(&self) -> bool {
        self.was_persistent_at_connect
    }

    /// What the client of this connection does not see of its topics: to be put before what it
    /// publishes and filters.
    pub fn mount_point(&self) -> Option<&MountPoint> {
        self.rare.as_ref()?.mount.as_ref()
    }

    /// How long the session outlives its connection: seconds, `u32::MAX` for ever.
    pub fn session_expiry(&self) -> u32 {
        self.session_expiry
    }

    /// The will, to be written down.
    pub fn will(&self) -> Option<WillView<'_>> {
        self.will.as_deref().map(Will::view)
    }

    /// The connection is up: CONNACK, then redelivery of what is inflight, then the queue, into
    /// `out`.
    ///
    /// At most about 256 KiB of messages are written at once; the rest follows with the client's
    /// acknowledgements or by [`Session::pump`].
    pub fn connect(
        &mut self,
        handshake: Handshake,
        welcome: Welcome<'_>,
        now: Time,
        out: &mut Output,
    ) {
        if self.is_connected() {
            self.end_connection();
        }
        connack::append_welcome(&handshake, welcome, &self.limits, out);
        self.link = Link::Up;
        self.version = handshake.version;
        self.is_congested = false;
        self.is_bridge = handshake.is_bridge;
        self.retain_available = handshake.retain_available;
        self.wants_words = handshake.wants_words;
        self.keep_alive = handshake.keep_alive;
        self.session_expiry = handshake.session_expiry;
        self.was_persistent_at_connect = handshake.session_expiry > 0;
        self.seen = now;
        self.carried.traffic = Traffic::begins(now);
        self.packet_bytes_max = handshake.packet_bytes_max;
        // [MQTT-4.9.0-1] [MQTT-3.3.4-9]
        self.window = handshake
            .receive_maximum
            .min(self.limits.inflight_max)
            .max(1);
        // [MQTT-3.1.2-26] [MQTT-3.1.2-27] [MQTT-3.3.2-11]
        let alias_maximum = handshake
            .topic_alias_maximum
            .min(self.limits.topic_alias_outbound_max);
        self.outbound_aliases = OutboundAliases::new(alias_maximum);
        self.sends_plain_topics = alias_maximum == 0 && handshake.mount.is_none();
        self.rare = Rare::new(handshake.mount, handshake.method);
        // A pending will of the last connection ends here, and this connection's takes its place.
        // [MQTT-3.1.3-9]
        self.will = handshake.will;
        self.redeliver(now, out);
    }

    /// What its connection has carried, or the last one had.
    pub fn traffic(&self) -> Traffic {
        self.carried.traffic
    }

    /// The server ends the connection: DISCONNECT with the reason (5.0; nothing in 3.x). Then
    /// close, then `connection_lost`.
    pub fn disconnect(&mut self, reason: ReasonCode, what: Option<&str>, out: &mut Output) {
        // [MQTT-3.14.0-1]
        if self.link != Link::Up {
            return;
        }
        // [MQTT-3.14.4-1]
        self.link = Link::Closing;
        // "Do not send the will message" is what 0x00 means from either side.
        if reason == ReasonCode::Success {
            self.withdraw_will();
        }
        if self.version != Version::V5 {
            return;
        }
        // [MQTT-3.14.2-1]
        let reason = if reason.may_be_in(Carrier::Disconnect) {
            reason
        } else {
            ReasonCode::UnspecifiedError
        };
        let packet = |reason_string| {
            Packet::Disconnect(Disconnect {
                reason,
                properties: DisconnectProperties {
                    // [MQTT-3.14.2-2]
                    session_expiry: None,
                    reason_string,
                    ..DisconnectProperties::default()
                },
            })
        };
        // [MQTT-3.14.2-3]
        if !self.append(&packet(what), out) {
            self.append(&packet(None), out);
        }
    }

    /// The server ends a connection whose CONNACK was thrown away before it was sent: another
    /// CONNACK says why.
    /// [MQTT-3.14.0-1]
    pub fn refuse(&mut self, reason: ReasonCode, what: &str, out: &mut Output) {
        if self.link == Link::Up {
            self.link = Link::Closing;
            connack::append_refusal(self.version, reason, what, self.packet_bytes_max, out);
        }
    }

    /// The connection is gone, for whatever cause.
    pub fn connection_lost(&mut self, now: Time) -> Farewell {
        if !self.is_connected() {
            return Farewell::default();
        }
        self.end_connection();
        self.seen = now;
        // [MQTT-3.1.2-23] [MQTT-4.1.0-2] [MQTT3-3.1.2-6]
        let session_ended = !self.is_persistent();
        let is_due = |will: &mut Box<Will>| session_ended || will.delay().is_zero();
        // [MQTT-3.1.2-8] [MQTT-3.1.2-10] [MQTT3-3.1.2-8] [MQTT3-3.1.2-10]
        let will = self.will.take_if(is_due);
        if will.is_some() {
            self.note(Step::WillRemoved);
        }
        Farewell {
            will: will.map(|will| will.into_message(self.id, now)),
            session_ended,
        }
    }

    #[cfg(test)]
    pub(super) fn take_will(&mut self) -> Option<Message> {
        self.take_will_at(self.seen)
    }

    /// What remains of the will, to be published now: another connection with the same client
    /// identifier takes over, or the session is being removed by an administrator.
    pub fn take_will_at(&mut self, now: Time) -> Option<Message> {
        let will = self.will.take()?;
        self.note(Step::WillRemoved);
        Some(will.into_message(self.id, now))
    }

    /// Takes the messages of shared groups, to give them to other members: called when the session
    /// ends (`None`) and for groups that the session leaves, in the order of their numbers.
    ///
    /// Leaving groups takes what is queued only: a delivery that has begun is completed. At the end
    /// of the session `QoS` 1 messages without PUBACK are taken too, `QoS` 2 messages that were
    /// sent are not. What was written down of them is left to the caller, who moves or removes it.
    pub fn take_shared(&mut self, groups: Option<&[GroupId]>) -> Vec<Taken> {
        let mut taken = Vec::new();
        // [MQTT-3.10.4-3] [MQTT3-3.10.4-3]
        if groups.is_none() {
            self.inflight.take_shared(&mut taken);
        }
        self.queue.take_shared(groups, &mut taken);
        taken
    }

    /// Messages that the session held and dropped since the last call, by reason: to make room for
    /// another, too old, expired, or too large when their turn came.
    pub fn take_dropped(&mut self) -> impl Iterator<Item = (DropReason, u32)> + use<> {
        let dropped = self.dropped.take();
        dropped.into_iter().flat_map(|dropped| dropped.by_reason())
    }

    /// Messages queued, bytes of memory that they take, messages inflight.
    pub fn backlog(&self) -> (usize, usize, usize) {
        (self.queue.len(), self.queue.bytes(), self.inflight.len())
    }

    /// Messages and bytes queued that no message with `QoS` 1 or 2 displaces.
    pub fn lasting_backlog(&self) -> (usize, usize) {
        self.queue.lasting()
    }

    /// Whether a message that is sent or queued now finds room.
    pub fn has_room_for(&self, message: &Message, qos: QoS, identifiers: usize) -> bool {
        let bytes = held_bytes(message, identifiers);
        !self.would_queue(qos) || self.queue.has_room(bytes, &self.limits)
    }

    /// The limits that hold for the session.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The client said that it is a bridge: its subscriptions are no local and retain as published.
    pub fn is_bridge(&self) -> bool {
        self.is_bridge
    }

    /// Client identifier, boxed.
    pub fn into_client_id(self) -> Box<str> {
        self.client_id
    }

    /// Appends a packet unless it is over the client's maximum packet size; true if it was
    /// appended.
    pub(super) fn append(&self, packet: &Packet<'_>, out: &mut Output) -> bool {
        let out = out.own();
        let start = out.len();
        let is_encoded = encode(packet, self.version, out).is_ok();
        let len = u32::try_from(out.len() - start).unwrap_or(u32::MAX);
        // [MQTT-3.1.2-24]
        let fits = len <= self.packet_bytes_max;
        if !fits {
            out.truncate(start);
        }
        is_encoded && fits
    }

    pub(super) fn withdraw_will(&mut self) {
        if self.will.take().is_some() {
            self.note(Step::WillRemoved);
        }
    }

    /// Forgets what belonged to the connection.
    fn end_connection(&mut self) {
        self.link = Link::Away;
        self.is_congested = false;
        self.received.end_connection();
        self.routing_before = self.routing_before.saturating_add(self.routing);
        self.routing = 0;
        self.unacknowledged = 0;
        // [MQTT-3.3.2-7]
        self.inbound_aliases.clear();
        self.outbound_aliases = OutboundAliases::default();
        self.rare = None;
    }
}
