//! Enhanced authentication of 5.0: steps between CONNECT and CONNACK, and re-authentication.
//!
//! ```text
//!   CONNECT with a method -> Handshake -> the node asks its authenticator
//!       -> challenge -> AUTH -> authentication_step -> …
//!       -> Session::connect, or Handshake::refuse
//!   AUTH 0x19 -> Action::Authenticate
//!       -> authenticate_continue -> AUTH -> Action::Authenticate -> …
//!       -> authenticate_done, or disconnect
//! ```

use alloc::boxed::Box;

use thrum_codec::packet::{Auth, Packet};
use thrum_codec::properties::AuthProperties;
use thrum_codec::{ReasonCode, Version, encode, encoded_len};

use super::packets::protocol_error;
use super::{Action, Handshake, Link};
use crate::{Output, Violation};

/// The method that a client named in CONNECT, and the state of the authentication.
#[derive(Debug)]
pub(super) struct Method {
    pub(super) name: Box<str>,
    turn: Turn,
}

/// The side that takes the next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// None: the client is authenticated.
    Over,
    /// The client has to answer a challenge.
    Client,
    /// The node has to decide about the client's step.
    Node,
}

/// A packet of the client between CONNECT and CONNACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthenticationStep<'p> {
    /// The answer to the challenge: the authentication data, empty if there is none.
    Data(&'p [u8]),
    /// The client disconnected: close the connection; nothing else is required.
    Disconnected,
}

impl Method {
    /// Creates the state after a CONNECT that contains the client's first step.
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            turn: Turn::Node,
        }
    }

    /// The state after a successful authentication.
    pub(super) fn finished(self) -> Self {
        Self {
            turn: Turn::Over,
            ..self
        }
    }

    fn is_that_of(&self, auth: &Auth<'_>) -> bool {
        auth.properties.authentication_method == Some(&*self.name)
    }

    /// An AUTH packet of the server. It has neither reason string nor user properties.
    /// [MQTT-3.15.2-2] [MQTT-3.15.2-3] [MQTT-3.1.2-29]
    fn packet<'a>(&'a self, reason: ReasonCode, data: Option<&'a [u8]>) -> Packet<'a> {
        // [MQTT-3.15.2-1] [MQTT-4.12.0-5]
        Packet::Auth(Auth {
            reason,
            properties: AuthProperties {
                authentication_method: Some(&self.name),
                authentication_data: data,
                ..AuthProperties::default()
            },
        })
    }
}

impl Handshake {
    /// The authentication method that the client requests. A node that does not support it refuses
    /// the client with [`ReasonCode::BadAuthenticationMethod`] and never connects a session with
    /// it. [MQTT-4.12.0-1]
    pub fn authentication_method(&self) -> Option<&str> {
        self.method.as_ref().map(|method| &*method.name)
    }

    /// Asks the client for another step: AUTH with this data. Nothing is written for a client that
    /// named no method.
    ///
    /// # Errors
    /// The packet exceeds the client's maximum packet size: refuse the client.
    // [MQTT-4.12.0-6]
    pub fn challenge(&mut self, data: &[u8], out: &mut Output) -> Result<(), Violation> {
        let Some(method) = &mut self.method else {
            return Ok(());
        };
        // [MQTT-4.12.0-2]
        let packet = method.packet(ReasonCode::ContinueAuthentication, Some(data));
        let len = encoded_len(&packet, Version::V5).ok();
        // [MQTT-3.1.2-24]
        if len.is_none_or(|len| u32::try_from(len).is_ok_and(|len| len > self.packet_bytes_max)) {
            return Err(no_room());
        }
        // Its length was checked, so encoding succeeds.
        encode(&packet, Version::V5, out.own()).ok();
        method.turn = Turn::Client;
        Ok(())
    }

    /// Handles a packet that arrived before CONNACK was sent.
    ///
    /// # Errors
    /// The packet does not answer a challenge: encode the refusal with [`Handshake::refuse`].
    /// [MQTT-3.1.2-30]
    pub fn authentication_step<'p>(
        &mut self,
        packet: &Packet<'p>,
    ) -> Result<AuthenticationStep<'p>, Violation> {
        let auth = match (packet, &mut self.method) {
            (Packet::Disconnect(_), Some(_)) => return Ok(AuthenticationStep::Disconnected),
            (Packet::Auth(auth), Some(method)) => {
                // [MQTT-4.12.0-5]
                if !method.is_that_of(auth) {
                    return Err(Violation::new(
                        ReasonCode::BadAuthenticationMethod,
                        "AUTH with another authentication method than CONNECT",
                    ));
                }
                // [MQTT-4.12.0-3]
                if auth.reason != ReasonCode::ContinueAuthentication || method.turn != Turn::Client
                {
                    return Err(protocol_error("AUTH without a challenge"));
                }
                method.turn = Turn::Node;
                auth
            }
            // [MQTT-4.12.0-7]
            (_, None) => return Err(protocol_error("packet before CONNACK")),
            (_, Some(_)) => return Err(protocol_error("packet other than AUTH before CONNACK")),
        };
        let data = auth.properties.authentication_data;
        Ok(AuthenticationStep::Data(data.unwrap_or_default()))
    }
}

impl Link {
    /// The authentication method of this connection.
    pub fn authentication_method(&self) -> Option<&str> {
        self.method().map(|method| &*method.name)
    }

    /// Answers [`Action::Authenticate`]: the client has to take another step. Nothing is written if
    /// no answer is expected.
    ///
    /// # Errors
    /// The packet exceeds the client's maximum packet size: call [`Session::disconnect`] and close.
    ///
    /// [`Session::disconnect`]: super::Session::disconnect
    pub fn authenticate_continue(
        &mut self,
        data: &[u8],
        out: &mut Output,
    ) -> Result<(), Violation> {
        // [MQTT-4.12.0-2]
        let reason = ReasonCode::ContinueAuthentication;
        self.answer_auth(reason, Some(data), Turn::Client, out)
    }

    /// Answers [`Action::Authenticate`]: the client is re-authenticated. Nothing is written if no
    /// answer is expected.
    ///
    /// If the re-authentication failed, call [`Session::disconnect`] with the reason and close
    /// instead. [MQTT-4.12.1-2]
    ///
    /// # Errors
    /// The packet exceeds the client's maximum packet size: call [`Session::disconnect`] and close.
    ///
    /// [`Session::disconnect`]: super::Session::disconnect
    pub fn authenticate_done(
        &mut self,
        data: Option<&[u8]>,
        out: &mut Output,
    ) -> Result<(), Violation> {
        self.answer_auth(ReasonCode::Success, data, Turn::Over, out)
    }

    /// Handles an AUTH packet of the client, which may send other packets during a
    /// re-authentication.
    pub(super) fn handle_auth<'p>(&mut self, auth: Auth<'p>) -> Result<Action<'p>, Violation> {
        // [MQTT-4.12.0-6] [MQTT-4.12.0-7]
        let Some(method) = self.method_mut() else {
            return Err(protocol_error("AUTH without authentication method"));
        };
        // [MQTT-4.12.0-5] [MQTT-4.12.1-1]
        if !method.is_that_of(&auth) {
            return Err(protocol_error(
                "AUTH with another authentication method than CONNECT",
            ));
        }
        match (auth.reason, method.turn) {
            // [MQTT-4.12.0-3]
            (ReasonCode::ReAuthenticate, Turn::Over)
            | (ReasonCode::ContinueAuthentication, Turn::Client) => method.turn = Turn::Node,
            _ => return Err(protocol_error("AUTH out of turn")),
        }
        Ok(Action::Authenticate(auth))
    }

    fn answer_auth(
        &mut self,
        reason: ReasonCode,
        data: Option<&[u8]>,
        next: Turn,
        out: &mut Output,
    ) -> Result<(), Violation> {
        let is_due = |method: &&Method| method.turn == Turn::Node;
        let Some(method) = self.method().filter(is_due) else {
            return Ok(());
        };
        if !self.is_up() {
            return Ok(());
        }
        if !self.append(&method.packet(reason, data), out) {
            return Err(no_room());
        }
        if let Some(method) = self.method_mut() {
            method.turn = next;
        }
        Ok(())
    }
}

fn no_room() -> Violation {
    Violation::new(
        ReasonCode::PacketTooLarge,
        "the maximum packet size leaves no room for AUTH",
    )
}
