//! The connection from the session's view: its state, and the packets written to it.

mod sending;

use alloc::boxed::Box;

use thrum_codec::packet::{Ack, Disconnect, Packet, ReasonCodes, SubAck};
use thrum_codec::properties::{AckProperties, DisconnectProperties};
use thrum_codec::reason::Carrier;
use thrum_codec::{PacketId, ReasonCode, Version, encode};

pub(super) use self::sending::HeldPacket;
use super::authentication::Method;
use super::link_extras::LinkExtras;
use super::topic_aliases::OutboundAliases;
use super::traffic::{Carried, Traffic};
use super::{Handshake, SentLater, connack};
use crate::{Limits, MountPoint, Output, Time};

/// The connection of a session: the client's limits, and the packets written to it. Nothing is
/// written between two connections.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts about one client; each is one byte"
)]
pub struct Link {
    /// `None` without a connection, and in most connections.
    extras: Option<Box<LinkExtras>>,
    aliases: OutboundAliases,
    carried: Carried,
    /// The client's maximum packet size.
    packet_bytes_max: u32,
    state: LinkState,
    version: Version,
    is_congested: bool,
    /// Whether topics are sent unchanged: without alias and without mount point.
    sends_plain_topics: bool,
    /// Whether the client is the bridge of another broker.
    is_bridge: bool,
    /// The connection began with a clean start (or a clean session).
    is_clean_start: bool,
    /// Whether the client may publish retained messages.
    retain_available: bool,
    /// Whether the client accepts reason strings in acknowledgements (request problem information).
    wants_problem_information: bool,
}

/// State of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkState {
    /// There was no connection yet.
    New,
    /// The connection is in use.
    Up,
    /// DISCONNECT was sent or received: nothing more is sent, received packets are ignored.
    Closing,
    /// The connection is lost.
    Away,
}

impl Link {
    /// State before the first connection.
    pub(super) fn new(version: Version) -> Self {
        Self {
            extras: None,
            aliases: OutboundAliases::default(),
            carried: Carried::default(),
            packet_bytes_max: u32::MAX,
            state: LinkState::New,
            version,
            is_congested: false,
            sends_plain_topics: true,
            is_bridge: false,
            is_clean_start: false,
            retain_available: true,
            wants_problem_information: true,
        }
    }

    /// State of a restored session.
    pub(super) fn restore(version: Version) -> Self {
        Self {
            state: LinkState::Away,
            ..Self::new(version)
        }
    }

    /// Starts a connection.
    pub(super) fn begin(&mut self, handshake: Handshake, limits: &Limits, now: Time) {
        self.state = LinkState::Up;
        self.version = handshake.version;
        self.is_congested = false;
        self.is_bridge = handshake.is_bridge;
        self.is_clean_start = handshake.clean_start;
        self.retain_available = handshake.retain_available;
        self.wants_problem_information = handshake.wants_problem_information;
        self.carried.begin(now);
        self.packet_bytes_max = handshake.packet_bytes_max;
        // [MQTT-3.1.2-26] [MQTT-3.1.2-27] [MQTT-3.3.2-11]
        let alias_maximum = handshake
            .topic_alias_maximum
            .min(limits.topic_alias_outbound_max);
        self.aliases = OutboundAliases::new(alias_maximum);
        self.sends_plain_topics = alias_maximum == 0 && handshake.mount.is_none();
        self.extras = LinkExtras::new(handshake.mount, handshake.method);
    }

    /// Records that DISCONNECT was sent or received.
    pub(super) fn close(&mut self) {
        self.state = LinkState::Closing;
    }

    /// Discards the state that ends with the connection.
    pub(super) fn end(&mut self) {
        self.state = LinkState::Away;
        self.is_congested = false;
        // [MQTT-3.3.2-7]
        self.aliases = OutboundAliases::default();
        self.extras = None;
    }

    /// State of the connection.
    #[inline]
    pub(super) fn state(&self) -> LinkState {
        self.state
    }

    /// Whether there is a connection in use.
    #[inline]
    pub(super) fn is_up(&self) -> bool {
        self.state == LinkState::Up
    }

    /// Whether there is a connection.
    pub fn is_connected(&self) -> bool {
        matches!(self.state, LinkState::Up | LinkState::Closing)
    }

    /// Whether messages may be written to the connection.
    #[inline]
    pub(super) fn may_send(&self) -> bool {
        self.is_up() && !self.is_congested
    }

    /// Sets whether the connection's output exceeds its soft limit. While set, only
    /// acknowledgements are encoded; `QoS` 0 is dropped and `QoS` 1 and 2 are queued.
    pub fn set_congested(&mut self, congested: bool) {
        self.is_congested = congested;
    }

    /// Version of the connection; of the last one while disconnected.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Whether the client identified itself as a bridge: its subscriptions have no local and retain
    /// as published.
    pub fn is_bridge(&self) -> bool {
        self.is_bridge
    }

    /// The connection (the last one when away) began with a clean start.
    pub fn is_clean_start(&self) -> bool {
        self.is_clean_start
    }

    /// Whether the client may publish retained messages.
    pub fn retain_available(&self) -> bool {
        self.retain_available
    }

    /// The mount point of this connection, to be added to the topics and filters that the client
    /// sends.
    pub fn mount_point(&self) -> Option<&MountPoint> {
        self.extras.as_ref()?.mount.as_ref()
    }

    /// Sets the time at which the connection must end (the expiry of a token); `None` for no limit.
    ///
    /// It applies to the current connection, so call it after [`Session::connect`]: without a
    /// connection it has no effect, and the next connection starts without it.
    /// [`Session::next_deadline`] may become earlier.
    ///
    /// [`Session::connect`]: super::Session::connect
    /// [`Session::next_deadline`]: super::Session::next_deadline
    pub fn set_valid_until(&mut self, at: Option<Time>) {
        if at.is_some() && self.is_connected() {
            self.extras.get_or_insert_default().valid_until = at;
        } else if let Some(extras) = &mut self.extras {
            extras.valid_until = None;
        }
    }

    /// Time at which the connection must end.
    pub(super) fn valid_until(&self) -> Option<Time> {
        self.extras.as_ref()?.valid_until
    }

    /// State of the enhanced authentication.
    pub(super) fn method(&self) -> Option<&Method> {
        self.extras.as_ref()?.method.as_ref()
    }

    /// State of the enhanced authentication.
    pub(super) fn method_mut(&mut self) -> Option<&mut Method> {
        self.extras.as_mut()?.method.as_mut()
    }

    /// Messages counted on the current or last connection.
    pub fn traffic(&self) -> Traffic {
        self.carried.traffic
    }

    /// Removes and returns the count of messages sent from the queue or retransmitted since the
    /// last call: those that [`Session::deliver`](super::Session::deliver) did not report as sent.
    pub fn take_sent_later(&mut self) -> SentLater {
        self.carried.take_later()
    }

    /// Counts a PUBLISH with a new message.
    #[inline]
    pub(super) fn count_received(&mut self) {
        self.carried.received();
    }

    /// Writes SUBACK, with a reason string (5.0) if the client accepts one.
    pub fn suback(
        &mut self,
        packet_id: PacketId,
        codes: &[ReasonCode],
        what: Option<&str>,
        out: &mut Output,
    ) {
        let plain = answer(packet_id, codes);
        // [MQTT-3.1.2-29]
        if let Some(what) = what
            && self.is_up()
            && self.version == Version::V5
            && self.wants_problem_information
        {
            let mut told = plain;
            told.properties.reason_string = Some(what);
            // [MQTT-3.9.2-1]
            if self.append(&Packet::SubAck(told), out) {
                return;
            }
        }
        // [MQTT-3.8.4-1] [MQTT-3.8.4-2] [MQTT-2.2.1-6] [MQTT3-3.8.4-1] [MQTT3-3.8.4-2]
        // [MQTT3-2.3.1-7]
        self.append_answer(&Packet::SubAck(plain), out);
    }

    /// Writes UNSUBACK.
    pub fn unsuback(&mut self, packet_id: PacketId, codes: &[ReasonCode], out: &mut Output) {
        // [MQTT-3.10.4-4] [MQTT-3.10.4-5] [MQTT3-3.10.4-4] [MQTT3-3.10.4-5]
        self.append_answer(&Packet::UnsubAck(answer(packet_id, codes)), out);
    }

    /// Writes PUBACK or PUBREC.
    pub(super) fn answer_publish(
        &self,
        kind: impl FnOnce(Ack<'static>) -> Packet<'static>,
        packet_id: PacketId,
        outcome: ReasonCode,
        out: &mut Output,
    ) {
        // [MQTT-3.4.2-1] [MQTT-3.5.2-1]
        let outcome = if outcome.may_be_in(Carrier::PubAck) {
            outcome
        } else {
            ReasonCode::UnspecifiedError
        };
        self.append_ack(kind, packet_id, outcome, out);
    }

    /// Writes an acknowledgement with the packet identifier of the packet that it acknowledges.
    /// [MQTT-2.2.1-5] [MQTT3-2.3.1-6]
    pub(super) fn append_ack(
        &self,
        kind: impl FnOnce(Ack<'static>) -> Packet<'static>,
        packet_id: PacketId,
        reason: ReasonCode,
        out: &mut Output,
    ) {
        let ack = Ack {
            packet_id,
            reason,
            // [MQTT-3.1.2-29] [MQTT-3.4.2-2] [MQTT-3.4.2-3] [MQTT-3.5.2-2] [MQTT-3.5.2-3]
            // [MQTT-3.6.2-2] [MQTT-3.6.2-3] [MQTT-3.7.2-2] [MQTT-3.7.2-3]
            properties: AckProperties::default(),
        };
        self.append_answer(&kind(ack), out);
    }

    /// Ends the connection: DISCONNECT with the reason (5.0; nothing in 3.x).
    // [MQTT-3.14.4-1]
    pub(super) fn disconnect(&mut self, reason: ReasonCode, what: Option<&str>, out: &mut Output) {
        self.close();
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

    /// Ends a connection whose CONNACK was discarded before it was sent: another CONNACK contains
    /// the reason. [MQTT-3.14.0-1]
    pub fn refuse(&mut self, reason: ReasonCode, what: &str, out: &mut Output) {
        if self.is_up() {
            self.close();
            connack::append_refusal(self.version, reason, what, self.packet_bytes_max, out);
        }
    }

    /// Acknowledgements ignore the window and the congestion. [MQTT-3.3.4-10] [MQTT-4.9.0-3]
    fn append_answer(&self, packet: &Packet<'_>, out: &mut Output) {
        if self.is_up() {
            self.append(packet, out);
        }
    }

    /// Appends a packet unless it exceeds the client's maximum packet size; returns whether it was
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
}

fn answer(packet_id: PacketId, codes: &[ReasonCode]) -> SubAck<'_> {
    SubAck {
        packet_id,
        // [MQTT-3.1.2-29] [MQTT-3.9.2-1] [MQTT-3.9.2-2] [MQTT-3.11.2-1] [MQTT-3.11.2-2]
        properties: AckProperties::default(),
        // [MQTT-3.9.3-1] [MQTT-3.11.3-1] [MQTT3-3.9.3-1]
        codes: ReasonCodes::Listed(codes),
    }
}
