//! The client: connection and session, and which packet goes where.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use thrum_codec::packet::{Disconnect, Packet};
use thrum_codec::properties::{ConnAckProperties, DisconnectProperties, UserProperties};
use thrum_codec::{EncodeError, ReasonCode, Version, encode};

use super::exchanges::Exchanges;
use super::handshake::{ServerLimits, Turn};
use super::{ClientOptions, Event};
use crate::packet_ids::PacketIds;
use crate::{Time, Violation};

/// Protocol state of one client; outlives connections. At most 200 bytes and the identifier while
/// nothing is under way.
#[derive(Debug)]
pub struct Client {
    pub(super) options: Arc<ClientOptions>,
    pub(super) id: Box<str>,
    pub(super) exchanges: Option<Box<Exchanges>>,
    pub(super) server: ServerLimits,
    pub(super) last_sent: Time,
    /// Since when a CONNACK or PINGRESP is awaited.
    pub(super) awaiting: Option<Time>,
    pub(super) packet_ids: PacketIds,
    pub(super) phase: Phase,
    pub(super) turn: Turn,
}

/// How far the connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// No connection, or one that must carry nothing more.
    Disconnected,
    /// CONNECT sent.
    Connecting,
    /// Accepted.
    Connected,
}

/// Why a packet was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SendError {
    /// Over the server's maximum packet size.
    TooLarge,
    Encode(EncodeError),
}

impl Client {
    /// A client that is not connected. An empty identifier lets the server choose one.
    pub fn new(options: Arc<ClientOptions>, client_id: &str) -> Self {
        Self {
            server: ServerLimits::new(&ConnAckProperties::default(), &options, client_id),
            options,
            id: client_id.into(),
            exchanges: None,
            last_sent: Time::default(),
            awaiting: None,
            packet_ids: PacketIds::default(),
            phase: Phase::Disconnected,
            turn: Turn::Over,
        }
    }

    /// A new connection is up: writes CONNECT, the first packet on it.
    ///
    /// # Errors
    /// An option or the client identifier does not fit the wire format; nothing was written.
    pub fn connect(&mut self, now: Time, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let options = Arc::clone(&self.options);
        let first = options.authentication_data.as_deref();
        self.connect_with(first, now, out)
    }

    /// As [`Client::connect`] with this first step of the authentication method in place of that in
    /// the options, for methods whose first step is never the same.
    ///
    /// # Errors
    /// As [`Client::connect`].
    pub fn connect_with(
        &mut self,
        first_step: Option<&[u8]>,
        now: Time,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        self.connection_lost();
        let version = self.options.version;
        // [MQTT-3.1.0-1] [MQTT-3.1.3-2] [MQTT3-3.1.0-1] [MQTT3-3.1.3-2]
        self.options.with_connect(&self.id, |connect| {
            let mut connect = *connect;
            connect.properties.authentication_data = first_step;
            encode(&Packet::Connect(connect), version, out)
        })?;
        if self.options.cleans(&self.id) {
            // [MQTT-3.1.2-4] [MQTT3-3.1.2-6]
            self.discard_session();
        }
        self.phase = Phase::Connecting;
        self.turn = Turn::Server;
        self.last_sent = now;
        self.awaiting = Some(now);
        Ok(())
    }

    /// One packet from the server. Any packet counts as a sign of life.
    ///
    /// # Errors
    /// The server broke the protocol: call [`Client::disconnect`] with the reason and close.
    pub fn handle_packet<'p>(
        &mut self,
        packet: Packet<'p>,
        now: Time,
        out: &mut Vec<u8>,
    ) -> Result<Event<'p>, Violation> {
        match self.phase {
            Phase::Disconnected => return Err(protocol_error("packet after the connection ended")),
            Phase::Connecting => return self.handle_handshake(&packet, now, out),
            Phase::Connected => {}
        }
        if self.awaiting.is_some() {
            // A PINGRESP may stand in line behind the messages that arrive now.
            self.awaiting = Some(now);
        }
        match packet {
            Packet::Publish(publish) => self.handle_publish(publish, now, out),
            Packet::PubAck(ack) => self.handle_puback(&ack, now, out),
            Packet::PubRec(ack) => self.handle_pubrec(&ack, now, out),
            Packet::PubRel(ack) => self.handle_pubrel(&ack, now, out),
            Packet::PubComp(ack) => self.handle_pubcomp(&ack, now, out),
            Packet::SubAck(ack) => self.handle_suback(ack),
            Packet::UnsubAck(ack) => self.handle_unsuback(ack),
            Packet::PingResp => {
                self.awaiting = None;
                Ok(Event::Pong)
            }
            Packet::Disconnect(disconnect) => self.handle_disconnect(disconnect),
            Packet::Auth(auth) => self.handle_auth(auth, now),
            Packet::ConnAck(_) => Err(protocol_error("second CONNACK")),
            Packet::Connect(_) => Err(protocol_error("CONNECT from a server")),
            Packet::Subscribe(_) => Err(protocol_error("SUBSCRIBE from a server")),
            Packet::Unsubscribe(_) => Err(protocol_error("UNSUBSCRIBE from a server")),
            Packet::PingReq => Err(protocol_error("PINGREQ from a server")),
        }
    }

    /// Writes DISCONNECT; then close the connection and call [`Client::connection_lost`].
    ///
    /// `session_expiry` replaces the seconds given in CONNECT (5.0), unless those were 0. A 3.x
    /// server learns of an error, or that the will is wanted, only by the end of the connection, so
    /// nothing is written then.
    pub fn disconnect(
        &mut self,
        reason: ReasonCode,
        session_expiry: Option<u32>,
        out: &mut Vec<u8>,
    ) {
        let properties = DisconnectProperties {
            session_expiry,
            ..DisconnectProperties::default()
        };
        self.disconnect_with(&Disconnect { reason, properties }, out);
    }

    /// As [`Client::disconnect`], with properties of the caller's choice.
    pub fn disconnect_with(&mut self, disconnect: &Disconnect<'_>, out: &mut Vec<u8>) {
        if self.phase == Phase::Disconnected {
            return;
        }
        // [MQTT-3.14.4-1] [MQTT3-3.14.4-2]
        self.phase = Phase::Disconnected;
        if self.options.version != Version::V5 && disconnect.reason != ReasonCode::Success {
            return;
        }
        let wanted_expiry = disconnect.properties.session_expiry;
        let session_expiry = wanted_expiry.filter(|_| self.options.session_expiry != 0);
        let mut packet = Disconnect {
            reason: disconnect_reason(disconnect.reason),
            properties: DisconnectProperties {
                session_expiry,
                ..disconnect.properties
            },
        };
        let mut written = self.write(&Packet::Disconnect(packet), self.last_sent, out);
        if written.is_err() {
            // [MQTT-3.14.2-3] [MQTT-3.14.2-4]
            packet.properties.reason_string = None;
            packet.properties.user = UserProperties::default();
            written = self.write(&Packet::Disconnect(packet), self.last_sent, out);
        }
        if written.is_ok()
            && let Some(expiry) = session_expiry
        {
            self.server.resumable = expiry != 0 && !self.options.cleans(&self.id);
        }
    }

    /// The connection is gone, for whatever cause. Keeps what a later connect can resume.
    pub fn connection_lost(&mut self) {
        self.phase = Phase::Disconnected;
        self.awaiting = None;
        // [MQTT-3.1.2-23] [MQTT-4.1.0-1] [MQTT3-4.1.0-1]
        if !self.server.resumable {
            self.discard_session();
        }
        if let Some(exchanges) = &mut self.exchanges {
            exchanges.end_connection();
        }
        self.release_exchanges();
    }

    /// The server has accepted the connection.
    pub fn is_connected(&self) -> bool {
        self.phase == Phase::Connected
    }

    /// The identifier: as given, or as assigned by the server.
    pub fn client_id(&self) -> &str {
        &self.id
    }

    /// The options this client was made with.
    pub fn options(&self) -> &Arc<ClientOptions> {
        &self.options
    }

    /// Seconds of silence after which the client pings: the server's keep alive if it set one; 0 is
    /// off.
    pub fn keep_alive(&self) -> u16 {
        self.server.keep_alive
    }

    fn handle_disconnect<'p>(
        &mut self,
        disconnect: Disconnect<'p>,
    ) -> Result<Event<'p>, Violation> {
        if self.options.version != Version::V5 {
            return Err(protocol_error("DISCONNECT from a 3.x server"));
        }
        // [MQTT-4.13.2-1]
        self.phase = Phase::Disconnected;
        Ok(Event::Disconnected(disconnect))
    }

    /// Drops the session state.
    pub(super) fn discard_session(&mut self) {
        if let Some(exchanges) = &mut self.exchanges {
            exchanges.publishes.clear();
            exchanges.releases.clear();
            exchanges.received.clear();
            exchanges.unsent = 0;
        }
        self.release_exchanges();
    }

    /// Gives the memory back once nothing is under way.
    pub(super) fn release_exchanges(&mut self) {
        self.exchanges.take_if(|exchanges| exchanges.is_empty());
    }

    /// Writes a packet unless it is over the server's maximum packet size.
    pub(super) fn write(
        &mut self,
        packet: &Packet<'_>,
        now: Time,
        out: &mut Vec<u8>,
    ) -> Result<(), SendError> {
        let start = out.len();
        encode(packet, self.options.version, out).map_err(SendError::Encode)?;
        self.check_size(start, out)?;
        self.last_sent = now;
        Ok(())
    }

    /// Takes back what was written from `start` on if the server does not accept a packet of that
    /// size.
    pub(super) fn check_size(&self, start: usize, out: &mut Vec<u8>) -> Result<(), SendError> {
        // [MQTT-3.2.2-15]
        if self.server.fits(out.len() - start) {
            return Ok(());
        }
        out.truncate(start);
        Err(SendError::TooLarge)
    }

    /// Writes a packet that the protocol demands now.
    pub(super) fn reply(
        &mut self,
        packet: &Packet<'_>,
        now: Time,
        out: &mut Vec<u8>,
    ) -> Result<(), Violation> {
        self.write(packet, now, out).map_err(|_| {
            Violation::new(
                ReasonCode::PacketTooLarge,
                "maximum packet size leaves no room for an answer",
            )
        })
    }

    pub(super) fn mark_sent(&mut self, now: Time) {
        self.last_sent = now;
    }
}

/// A violation of the rule that the words name.
pub(super) const fn protocol_error(what: &'static str) -> Violation {
    Violation::new(ReasonCode::ProtocolError, what)
}

/// The reason itself if a client may send it in DISCONNECT.
fn disconnect_reason(reason: ReasonCode) -> ReasonCode {
    // [MQTT-3.14.2-1]
    match reason {
        ReasonCode::Success
        | ReasonCode::DisconnectWithWill
        | ReasonCode::MalformedPacket
        | ReasonCode::ProtocolError
        | ReasonCode::ImplementationSpecificError
        | ReasonCode::TopicNameInvalid
        | ReasonCode::ReceiveMaximumExceeded
        | ReasonCode::TopicAliasInvalid
        | ReasonCode::PacketTooLarge
        | ReasonCode::MessageRateTooHigh
        | ReasonCode::QuotaExceeded
        | ReasonCode::AdministrativeAction
        | ReasonCode::PayloadFormatInvalid => reason,
        _ => ReasonCode::UnspecifiedError,
    }
}
