//! Options of a client; one value serves many clients.

use alloc::string::String;
use alloc::vec::Vec;
use core::num::NonZeroU16;
use core::time::Duration;

use thrum_codec::packet::{Connect, Will};
use thrum_codec::properties::{ConnectProperties, UserProperties, WillProperties};
use thrum_codec::{QoS, Version};

/// All options of a client except its identifier, shared by all clients that use the same ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientOptions {
    /// Protocol version. Default 5.0.
    pub version: Version,
    /// Clean start (5.0) or clean session (3.x), at every connect. Default true.
    pub clean_start: bool,
    /// Keep alive in seconds; 0 turns it off. Default 60.
    pub keep_alive: u16,
    /// Seconds that the session outlives the connection (5.0). Default 0.
    pub session_expiry: u32,
    /// QoS 1 and 2 messages that the server may have unacknowledged towards this client (5.0); 0
    /// means the protocol's 65,535. Default 1,024, like the server's limit.
    pub receive_maximum: u16,
    /// Highest number of unacknowledged QoS 1 and 2 messages of this client, even if the server
    /// announces a larger receive maximum (3.x servers announce none). Default 1,024, like the
    /// server's limit.
    pub inflight_max: u16,
    /// Largest packet accepted, in bytes; 0 means the protocol's 256 MiB. Default 0.
    pub maximum_packet_size: u32,
    /// Highest topic alias the server may use (5.0). Default 0: the table costs memory per client.
    pub topic_alias_maximum: u16,
    /// Time limit for CONNACK and PINGRESP. Default 20 s, which exceeds the longest pause of a
    /// loaded broker.
    pub response_timeout: Duration,
    /// User name.
    pub username: Option<String>,
    /// Password, binary.
    pub password: Option<Vec<u8>>,
    /// Will message.
    pub will: Option<WillOptions>,
    /// Asks for response information in CONNACK (5.0).
    pub request_response_information: Option<bool>,
    /// False asks the server to omit reason strings and user properties where it may (5.0).
    pub request_problem_information: Option<bool>,
    /// Authentication method (5.0).
    pub authentication_method: Option<String>,
    /// Authentication data in CONNECT.
    pub authentication_data: Option<Vec<u8>>,
    /// User properties of CONNECT (5.0).
    pub user_properties: Vec<(String, String)>,
}

/// The message that the server publishes if the connection ends without a normal DISCONNECT.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct WillOptions {
    /// Topic name.
    pub topic: String,
    /// Payload.
    pub payload: Vec<u8>,
    /// Quality of service.
    pub qos: QoS,
    /// Publish as retained.
    pub retain: bool,
    /// Will delay interval: seconds after the end of the connection.
    pub delay: Option<u32>,
    /// True: the payload is UTF-8.
    pub payload_format_indicator: Option<bool>,
    /// Seconds.
    pub message_expiry: Option<u32>,
    /// Content type.
    pub content_type: Option<String>,
    /// Response topic.
    pub response_topic: Option<String>,
    /// Correlation data.
    pub correlation_data: Option<Vec<u8>>,
    /// User properties.
    pub user_properties: Vec<(String, String)>,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            version: Version::V5,
            clean_start: true,
            keep_alive: 60,
            session_expiry: 0,
            receive_maximum: 1024,
            inflight_max: 1024,
            maximum_packet_size: 0,
            topic_alias_maximum: 0,
            response_timeout: Duration::from_secs(20),
            username: None,
            password: None,
            will: None,
            request_response_information: None,
            request_problem_information: None,
            authentication_method: None,
            authentication_data: None,
            user_properties: Vec::new(),
        }
    }
}

impl ClientOptions {
    /// Largest packet accepted in bytes, to be used as the limit for splitting frames.
    pub fn packet_bytes_max(&self) -> u32 {
        // A fixed header of five bytes and the largest remaining length.
        const PROTOCOL_MAX: u32 = 5 + 268_435_455;
        match self.maximum_packet_size {
            0 => PROTOCOL_MAX,
            limit => limit.min(PROTOCOL_MAX),
        }
    }

    /// Builds the CONNECT and passes it to `send`; the lists of its properties exist only during
    /// the call.
    pub(super) fn with_connect<R>(
        &self,
        client_id: &str,
        send: impl FnOnce(&Connect<'_>) -> R,
    ) -> R {
        let user = pairs(&self.user_properties);
        let will_user = pairs(self.will.as_ref().map_or(&[], |will| &will.user_properties));
        let nonzero = |value: u32| (value != 0).then_some(value);
        // [MQTT3-3.1.2-22]
        let username = match self.version {
            Version::V31 | Version::V311 if self.password.is_some() => {
                Some(self.username.as_deref().unwrap_or_default())
            }
            Version::V31 | Version::V311 | Version::V5 => self.username.as_deref(),
        };
        send(&Connect {
            version: self.version,
            is_bridge: false,
            clean_start: self.starts_clean(client_id),
            keep_alive: self.keep_alive,
            client_id,
            will: self.will.as_ref().map(|will| will.as_packet(&will_user)),
            username,
            password: self.password.as_deref(),
            properties: ConnectProperties {
                session_expiry: nonzero(self.session_expiry),
                receive_maximum: NonZeroU16::new(self.receive_maximum),
                maximum_packet_size: nonzero(self.maximum_packet_size),
                topic_alias_maximum: (self.topic_alias_maximum != 0)
                    .then_some(self.topic_alias_maximum),
                request_response_information: self.request_response_information,
                request_problem_information: self.request_problem_information,
                authentication_method: self.authentication_method.as_deref(),
                authentication_data: self.authentication_data.as_deref(),
                user: UserProperties::Listed(&user),
            },
        })
    }

    /// QoS 1 and 2 messages that the server may have unacknowledged.
    pub(super) const fn window_announced(&self) -> u16 {
        match (self.version, self.receive_maximum) {
            (Version::V31 | Version::V311, _) | (Version::V5, 0) => u16::MAX,
            (Version::V5, window) => window,
        }
    }

    /// Whether a connect with this identifier starts a new session.
    pub(super) fn starts_clean(&self, client_id: &str) -> bool {
        // A 3.x server cannot return an assigned identifier. [MQTT3-3.1.3-7]
        self.clean_start || (client_id.is_empty() && self.version != Version::V5)
    }
}

impl WillOptions {
    fn as_packet<'a>(&'a self, user: &'a [(&'a str, &'a str)]) -> Will<'a> {
        Will {
            topic: &self.topic,
            payload: &self.payload,
            qos: self.qos,
            retain: self.retain,
            properties: WillProperties {
                will_delay: self.delay,
                payload_format_indicator: self.payload_format_indicator,
                message_expiry: self.message_expiry,
                content_type: self.content_type.as_deref(),
                response_topic: self.response_topic.as_deref(),
                correlation_data: self.correlation_data.as_deref(),
                user: UserProperties::Listed(user),
            },
        }
    }
}

/// Borrows each name and value.
fn pairs(list: &[(String, String)]) -> Vec<(&str, &str)> {
    list.iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect()
}
