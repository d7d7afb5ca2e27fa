//! The client: start and end of connections, and timeouts.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use thrum_codec::packet::{Disconnect, Packet};
use thrum_codec::properties::{ConnAckProperties, DisconnectProperties, UserProperties};
use thrum_codec::{EncodeError, ReasonCode, Version, encode};

use super::ClientOptions;
use super::exchanges::Exchanges;
use super::link::{Phase, ServerLink};
use super::server_limits::ServerLimits;
use crate::packet_ids::PacketIds;
use crate::{Time, Violation};

/// Protocol state of one client; outlives connections. At most 200 bytes plus the client identifier
/// while no exchange is in progress.
#[derive(Debug)]
pub struct Client {
    pub(super) options: Arc<ClientOptions>,
    pub(super) id: Box<str>,
    pub(super) exchanges: Option<Box<Exchanges>>,
    pub(super) link: ServerLink,
    pub(super) packet_ids: PacketIds,
    pub(super) turn: Turn,
}

/// The side that takes the next step of an enhanced authentication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// No authentication is in progress.
    Over,
    Client,
    Server,
}

impl Client {
    /// Creates a client that is not connected. With an empty identifier the server assigns one.
    pub fn new(options: Arc<ClientOptions>, client_id: &str) -> Self {
        Self {
            link: ServerLink::new(
                options.version,
                ServerLimits::new(&ConnAckProperties::default(), &options, client_id),
            ),
            options,
            id: client_id.into(),
            exchanges: None,
            packet_ids: PacketIds::default(),
            turn: Turn::Over,
        }
    }

    /// Starts the protocol on a new connection: writes CONNECT, its first packet.
    ///
    /// # Errors
    /// An option or the client identifier exceeds the limits of the wire format; nothing was
    /// written.
    pub fn connect(&mut self, now: Time, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let options = Arc::clone(&self.options);
        let first = options.authentication_data.as_deref();
        self.connect_with(first, now, out)
    }

    /// As [`Client::connect`], with this first step of the authentication method instead of the one
    /// in the options, for methods with a different first step each time.
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
        if self.options.starts_clean(&self.id) {
            // [MQTT-3.1.2-4] [MQTT3-3.1.2-6]
            self.discard_session();
        }
        self.link.begin(now);
        self.turn = Turn::Server;
        Ok(())
    }

    /// Writes DISCONNECT; then close the connection and call [`Client::connection_lost`].
    ///
    /// `session_expiry` replaces the seconds given in CONNECT (5.0), unless those were 0. A 3.x
    /// server detects an error, or that the will is wanted, only by the end of the connection, so
    /// nothing is written in these cases.
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

    /// As [`Client::disconnect`], with the caller's properties.
    pub fn disconnect_with(&mut self, disconnect: &Disconnect<'_>, out: &mut Vec<u8>) {
        if self.link.phase() == Phase::Disconnected {
            return;
        }
        // [MQTT-3.14.4-1] [MQTT3-3.14.4-2]
        self.link.close();
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
        let mut written = self.link.write_last(&Packet::Disconnect(packet), out);
        if written.is_err() {
            // [MQTT-3.14.2-3] [MQTT-3.14.2-4]
            packet.properties.reason_string = None;
            packet.properties.user = UserProperties::default();
            written = self.link.write_last(&Packet::Disconnect(packet), out);
        }
        if written.is_ok()
            && let Some(expiry) = session_expiry
        {
            self.link
                .set_resumable(expiry != 0 && !self.options.starts_clean(&self.id));
        }
    }

    /// Records that the connection is lost, for any cause. Keeps the state that a later connect can
    /// resume.
    pub fn connection_lost(&mut self) {
        self.link.end();
        // [MQTT-3.1.2-23] [MQTT-4.1.0-1] [MQTT3-4.1.0-1]
        if !self.link.limits().resumable {
            self.discard_session();
        }
        if let Some(exchanges) = &mut self.exchanges {
            exchanges.end_connection();
        }
        self.release_exchanges();
    }

    /// Whether the server has accepted the connection.
    pub fn is_connected(&self) -> bool {
        self.link.is_connected()
    }

    /// The client identifier, as given or as assigned by the server.
    pub fn client_id(&self) -> &str {
        &self.id
    }

    /// The options that the client was created with.
    pub fn options(&self) -> &Arc<ClientOptions> {
        &self.options
    }

    /// Seconds of silence after which the client sends a PINGREQ: the server keep alive if the
    /// server set one; 0 turns it off.
    pub fn keep_alive(&self) -> u16 {
        self.link.limits().keep_alive
    }

    /// Time of the next call to [`Client::handle_timeout`]; `None` without a deadline.
    pub fn next_deadline(&self) -> Option<Time> {
        let response = self.link.response_deadline(self.options.response_timeout);
        match self.link.phase() {
            Phase::Disconnected => None,
            Phase::Connecting => response,
            Phase::Connected => match (response, self.link.ping_deadline()) {
                (Some(response), Some(ping)) => Some(response.min(ping)),
                (response, ping) => response.or(ping),
            },
        }
    }

    /// Handles the passing of time: writes a PINGREQ if the connection was silent for the keep
    /// alive.
    ///
    /// # Errors
    /// The server did not answer in time: close the connection.
    pub fn handle_timeout(&mut self, now: Time, out: &mut Vec<u8>) -> Result<(), Violation> {
        let overdue = self
            .link
            .response_deadline(self.options.response_timeout)
            .is_some_and(|at| at <= now);
        match self.link.phase() {
            Phase::Disconnected => Ok(()),
            Phase::Connecting if overdue => Err(Violation::new(
                ReasonCode::UnspecifiedError,
                "no CONNACK in time",
            )),
            Phase::Connected if overdue => Err(Violation::new(
                ReasonCode::UnspecifiedError,
                "no PINGRESP in time",
            )),
            Phase::Connecting => Ok(()),
            Phase::Connected => {
                // [MQTT-3.1.2-20] [MQTT3-3.1.2-23]
                if self.link.ping_deadline().is_some_and(|at| at <= now) {
                    self.link.reply(&Packet::PingReq, now, out)?;
                    self.link.await_pong(now);
                }
                Ok(())
            }
        }
    }

    /// Discards the session state.
    pub(super) fn discard_session(&mut self) {
        if let Some(exchanges) = &mut self.exchanges {
            exchanges.discard_session();
        }
        self.release_exchanges();
    }

    /// Frees the memory once no exchange is in progress.
    pub(super) fn release_exchanges(&mut self) {
        self.exchanges.take_if(|exchanges| exchanges.is_empty());
    }
}

/// A protocol error with this description.
pub(super) const fn protocol_error(what: &'static str) -> Violation {
    Violation::new(ReasonCode::ProtocolError, what)
}

/// The reason code itself if a client may send it in DISCONNECT, otherwise `UnspecifiedError`.
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
