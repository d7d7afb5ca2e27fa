//! From CONNECT to CONNACK: enhanced authentication, and what the server allows.

use alloc::sync::Arc;
use alloc::vec::Vec;

use thrum_codec::packet::{Auth, ConnAck, Packet};
use thrum_codec::properties::{AuthProperties, ConnAckProperties};
use thrum_codec::{QoS, ReasonCode, Version};

use super::machine::{Phase, protocol_error};
use super::{Client, ClientOptions, Event};
use crate::{Time, Violation};

/// What the server allows on this connection, as CONNACK says.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "one per property of CONNACK, not states"
)]
pub(super) struct ServerLimits {
    pub(super) packet_bytes_max: u32,
    pub(super) receive_maximum: u16,
    pub(super) topic_alias_maximum: u16,
    pub(super) keep_alive: u16,
    pub(super) maximum_qos: QoS,
    pub(super) retain_available: bool,
    pub(super) wildcard_available: bool,
    pub(super) shared_available: bool,
    pub(super) identifiers_available: bool,
    /// The session outlives the connection and the next connect will resume it.
    pub(super) resumable: bool,
}

/// Whose step of an enhanced authentication is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Nobody's: none is under way.
    Over,
    Client,
    Server,
}

impl Client {
    /// Answers [`Event::Authenticate`] with the next step of the method named in the options; false
    /// if the server did not ask for one, or takes none that large, and nothing was written.
    pub fn authenticate(&mut self, step: &[u8], now: Time, out: &mut Vec<u8>) -> bool {
        // [MQTT-4.12.0-3]
        let reason = ReasonCode::ContinueAuthentication;
        self.turn == Turn::Client && self.write_auth(reason, step, now, out)
    }

    /// Begins to authenticate again on an accepted connection, with the method named in the
    /// options; false if there is none, if that is under way already, or if the connection is not
    /// accepted, and nothing was written.
    ///
    /// [`Event::Authenticate`] brings the server's steps, with [`ReasonCode::Success`] the last
    /// one; a server that refuses ends the connection. Everything else goes on meanwhile.
    /// [MQTT-4.12.1-2]
    pub fn reauthenticate(&mut self, step: &[u8], now: Time, out: &mut Vec<u8>) -> bool {
        // [MQTT-4.12.1-1]
        let reason = ReasonCode::ReAuthenticate;
        self.phase == Phase::Connected
            && self.turn == Turn::Over
            && self.write_auth(reason, step, now, out)
    }

    fn write_auth(
        &mut self,
        reason: ReasonCode,
        step: &[u8],
        now: Time,
        out: &mut Vec<u8>,
    ) -> bool {
        let options = Arc::clone(&self.options);
        // [MQTT-4.12.0-7]
        let Some(method) = options.authentication_method.as_deref() else {
            return false;
        };
        if self.phase == Phase::Disconnected {
            return false;
        }
        // [MQTT-4.12.0-5] [MQTT-3.15.2-1] [MQTT-3.15.2-2] [MQTT-3.15.2-3]
        let auth = Auth {
            reason,
            properties: AuthProperties {
                authentication_method: Some(method),
                authentication_data: Some(step),
                ..AuthProperties::default()
            },
        };
        let is_written = self.write(&Packet::Auth(auth), now, out).is_ok();
        if is_written {
            self.turn = Turn::Server;
        }
        is_written
    }

    pub(super) fn handle_handshake<'p>(
        &mut self,
        packet: &Packet<'p>,
        now: Time,
        out: &mut Vec<u8>,
    ) -> Result<Event<'p>, Violation> {
        match *packet {
            Packet::ConnAck(ack) => self.handle_connack(ack, now, out),
            Packet::Auth(auth) => self.handle_auth(auth, now),
            _ => Err(protocol_error("packet before CONNACK")),
        }
    }

    fn handle_connack<'p>(
        &mut self,
        ack: ConnAck<'p>,
        now: Time,
        out: &mut Vec<u8>,
    ) -> Result<Event<'p>, Violation> {
        self.awaiting = None;
        self.turn = Turn::Over;
        if ack.reason != ReasonCode::Success {
            // [MQTT-4.13.2-1]
            self.phase = Phase::Disconnected;
            return Ok(Event::Refused(ack));
        }
        let method = ack.properties.authentication_method;
        // Servers that forget to repeat the method exist; one that names another has authenticated
        // somebody else.
        // [MQTT-4.12.0-5] [MQTT-4.12.0-6]
        if method.is_some() && method != self.options.authentication_method.as_deref() {
            return Err(protocol_error(
                "CONNACK with a method the client did not ask for",
            ));
        }
        let clean = self.options.cleans(&self.id);
        if ack.session_present && clean {
            // [MQTT-3.2.2-4]
            return Err(protocol_error("session present after a clean start"));
        }
        if let Some(assigned) = ack.properties.assigned_client_id {
            self.id = assigned.into();
        }
        // [MQTT-3.1.2-21] [MQTT-3.2.2-21]
        self.server = ServerLimits::new(&ack.properties, &self.options, &self.id);
        self.phase = Phase::Connected;
        // 3.1 servers cannot tell; they keep the session of a client that does not clean it.
        if ack.session_present || (self.options.version == Version::V31 && !clean) {
            self.resume(now, out)?;
        } else {
            // [MQTT-3.2.2-5]
            self.discard_session();
        }
        Ok(Event::Connected(ack))
    }

    pub(super) fn handle_auth<'p>(
        &mut self,
        auth: Auth<'p>,
        now: Time,
    ) -> Result<Event<'p>, Violation> {
        let method = self.options.authentication_method.as_deref();
        if method.is_none() || auth.properties.authentication_method != method {
            return Err(protocol_error(
                "AUTH with a method the client did not ask for",
            ));
        }
        self.turn = match (auth.reason, self.turn, self.phase) {
            // [MQTT-4.12.0-2]
            (ReasonCode::ContinueAuthentication, Turn::Server, _) => Turn::Client,
            (ReasonCode::Success, Turn::Server, Phase::Connected) => Turn::Over,
            _ => return Err(protocol_error("AUTH out of turn")),
        };
        // The method may take many steps: each has its own time.
        self.awaiting = self.awaiting.map(|_| now);
        Ok(Event::Authenticate(auth))
    }
}

impl ServerLimits {
    pub(super) fn new(
        properties: &ConnAckProperties<'_>,
        options: &ClientOptions,
        client_id: &str,
    ) -> Self {
        let expiry = properties.session_expiry.unwrap_or(options.session_expiry);
        let outlives = options.version != Version::V5 || expiry != 0;
        Self {
            packet_bytes_max: properties.maximum_packet_size.unwrap_or(u32::MAX),
            receive_maximum: properties.receive_maximum.map_or(u16::MAX, Into::into),
            // [MQTT-3.2.2-18]
            topic_alias_maximum: properties.topic_alias_maximum.unwrap_or(0),
            keep_alive: properties.server_keep_alive.unwrap_or(options.keep_alive),
            maximum_qos: properties.maximum_qos.unwrap_or(QoS::ExactlyOnce),
            retain_available: properties.retain_available.unwrap_or(true),
            wildcard_available: properties.wildcard_subscription_available.unwrap_or(true),
            shared_available: properties.shared_subscription_available.unwrap_or(true),
            identifiers_available: properties
                .subscription_identifiers_available
                .unwrap_or(true),
            resumable: outlives && !options.cleans(client_id),
        }
    }

    /// A packet of this many bytes is accepted.
    pub(super) fn fits(&self, bytes: usize) -> bool {
        u32::try_from(bytes).is_ok_and(|bytes| bytes <= self.packet_bytes_max)
    }
}
