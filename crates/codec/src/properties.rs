//! Properties of MQTT 5.0, one struct per packet; a 3.x packet has the default of each.

use core::num::NonZeroU16;

use crate::packet::QoS;

/// User properties in the order they were sent.
#[derive(Clone, Copy, Debug)]
pub enum UserProperties<'a> {
    /// A checked property block from the wire; other properties in it are skipped.
    Wire(&'a [u8]),
    /// Listed.
    Listed(&'a [(&'a str, &'a str)]),
}

/// Subscription identifiers of a PUBLISH.
#[derive(Clone, Copy, Debug)]
pub enum SubscriptionIdentifiers<'a> {
    /// A checked property block from the wire; other properties in it are skipped.
    Wire(&'a [u8]),
    /// Listed.
    Listed(&'a [u32]),
}

/// Properties of CONNECT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ConnectProperties<'a> {
    /// Seconds; absent means 0.
    pub session_expiry: Option<u32>,
    /// Never 0.
    pub receive_maximum: Option<NonZeroU16>,
    /// Bytes, never 0.
    pub maximum_packet_size: Option<u32>,
    /// Highest alias the sender of this packet accepts.
    pub topic_alias_maximum: Option<u16>,
    /// Asks for response information in the CONNACK.
    pub request_response_information: Option<bool>,
    /// Absent means true.
    pub request_problem_information: Option<bool>,
    /// Name of the authentication method.
    pub authentication_method: Option<&'a str>,
    /// Authentication data of that method.
    pub authentication_data: Option<&'a [u8]>,
    /// User properties.
    pub user: UserProperties<'a>,
}

/// Properties of a will.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct WillProperties<'a> {
    /// Seconds; absent means 0.
    pub will_delay: Option<u32>,
    /// True: the payload is UTF-8.
    pub payload_format_indicator: Option<bool>,
    /// Seconds.
    pub message_expiry: Option<u32>,
    /// Content type.
    pub content_type: Option<&'a str>,
    /// Response topic, no wildcard.
    pub response_topic: Option<&'a str>,
    /// Correlation data.
    pub correlation_data: Option<&'a [u8]>,
    /// User properties.
    pub user: UserProperties<'a>,
}

/// Properties of CONNACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ConnAckProperties<'a> {
    /// Seconds, if the server uses a value other than the client's.
    pub session_expiry: Option<u32>,
    /// Never 0.
    pub receive_maximum: Option<NonZeroU16>,
    /// Absent means 2; never 2 on the wire.
    pub maximum_qos: Option<QoS>,
    /// Absent means true.
    pub retain_available: Option<bool>,
    /// Bytes, never 0.
    pub maximum_packet_size: Option<u32>,
    /// Identifier that the server assigned to a client that sent none.
    pub assigned_client_id: Option<&'a str>,
    /// Absent means 0.
    pub topic_alias_maximum: Option<u16>,
    /// Diagnostics for a person.
    pub reason_string: Option<&'a str>,
    /// Absent means true.
    pub wildcard_subscription_available: Option<bool>,
    /// Absent means true.
    pub subscription_identifiers_available: Option<bool>,
    /// Absent means true.
    pub shared_subscription_available: Option<bool>,
    /// Seconds; overrides the client's keep alive.
    pub server_keep_alive: Option<u16>,
    /// Basis for response topics.
    pub response_information: Option<&'a str>,
    /// Another server to use.
    pub server_reference: Option<&'a str>,
    /// Name of the authentication method.
    pub authentication_method: Option<&'a str>,
    /// Authentication data of that method.
    pub authentication_data: Option<&'a [u8]>,
    /// User properties.
    pub user: UserProperties<'a>,
}

/// Properties of PUBLISH.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PublishProperties<'a> {
    /// True: the payload is UTF-8.
    pub payload_format_indicator: Option<bool>,
    /// Seconds.
    pub message_expiry: Option<u32>,
    /// Topic alias, never 0.
    pub topic_alias: Option<NonZeroU16>,
    /// Response topic, no wildcard.
    pub response_topic: Option<&'a str>,
    /// Correlation data.
    pub correlation_data: Option<&'a [u8]>,
    /// Subscription identifiers; only from a server.
    pub subscription_identifiers: SubscriptionIdentifiers<'a>,
    /// Content type.
    pub content_type: Option<&'a str>,
    /// User properties.
    pub user: UserProperties<'a>,
}

/// Properties of PUBACK, PUBREC, PUBREL, PUBCOMP, SUBACK and UNSUBACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct AckProperties<'a> {
    /// Diagnostics for a person.
    pub reason_string: Option<&'a str>,
    /// User properties.
    pub user: UserProperties<'a>,
}

/// Properties of SUBSCRIBE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SubscribeProperties<'a> {
    /// 1 to 268,435,455.
    pub subscription_identifier: Option<u32>,
    /// User properties.
    pub user: UserProperties<'a>,
}

/// Properties of DISCONNECT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DisconnectProperties<'a> {
    /// Seconds; only from a client.
    pub session_expiry: Option<u32>,
    /// Diagnostics for a person.
    pub reason_string: Option<&'a str>,
    /// Another server to use; only from a server.
    pub server_reference: Option<&'a str>,
    /// User properties.
    pub user: UserProperties<'a>,
}

/// Properties of AUTH.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct AuthProperties<'a> {
    /// Name of the authentication method.
    pub authentication_method: Option<&'a str>,
    /// Authentication data of that method.
    pub authentication_data: Option<&'a [u8]>,
    /// Diagnostics for a person.
    pub reason_string: Option<&'a str>,
    /// User properties.
    pub user: UserProperties<'a>,
}

impl Default for UserProperties<'_> {
    fn default() -> Self {
        Self::Listed(&[])
    }
}

impl Default for SubscriptionIdentifiers<'_> {
    fn default() -> Self {
        Self::Listed(&[])
    }
}

/// Property identifiers of table 2-4; each fits into one byte of a variable byte integer.
pub(crate) mod id {
    use crate::wire::Reader;

    pub(crate) const PAYLOAD_FORMAT_INDICATOR: u8 = 0x01;
    pub(crate) const MESSAGE_EXPIRY: u8 = 0x02;
    pub(crate) const CONTENT_TYPE: u8 = 0x03;
    pub(crate) const RESPONSE_TOPIC: u8 = 0x08;
    pub(crate) const CORRELATION_DATA: u8 = 0x09;
    pub(crate) const SUBSCRIPTION_IDENTIFIER: u8 = 0x0B;
    pub(crate) const SESSION_EXPIRY: u8 = 0x11;
    pub(crate) const ASSIGNED_CLIENT_ID: u8 = 0x12;
    pub(crate) const SERVER_KEEP_ALIVE: u8 = 0x13;
    pub(crate) const AUTHENTICATION_METHOD: u8 = 0x15;
    pub(crate) const AUTHENTICATION_DATA: u8 = 0x16;
    pub(crate) const REQUEST_PROBLEM_INFORMATION: u8 = 0x17;
    pub(crate) const WILL_DELAY: u8 = 0x18;
    pub(crate) const REQUEST_RESPONSE_INFORMATION: u8 = 0x19;
    pub(crate) const RESPONSE_INFORMATION: u8 = 0x1A;
    pub(crate) const SERVER_REFERENCE: u8 = 0x1C;
    pub(crate) const REASON_STRING: u8 = 0x1F;
    pub(crate) const RECEIVE_MAXIMUM: u8 = 0x21;
    pub(crate) const TOPIC_ALIAS_MAXIMUM: u8 = 0x22;
    pub(crate) const TOPIC_ALIAS: u8 = 0x23;
    pub(crate) const MAXIMUM_QOS: u8 = 0x24;
    pub(crate) const RETAIN_AVAILABLE: u8 = 0x25;
    pub(crate) const USER_PROPERTY: u8 = 0x26;
    pub(crate) const MAXIMUM_PACKET_SIZE: u8 = 0x27;
    pub(crate) const WILDCARD_SUBSCRIPTION_AVAILABLE: u8 = 0x28;
    pub(crate) const SUBSCRIPTION_IDENTIFIERS_AVAILABLE: u8 = 0x29;
    pub(crate) const SHARED_SUBSCRIPTION_AVAILABLE: u8 = 0x2A;

    /// Skips the value of a property; `None` for an unknown identifier or a short value.
    pub(crate) fn skip(reader: &mut Reader<'_>, identifier: u8) -> Option<()> {
        match identifier {
            PAYLOAD_FORMAT_INDICATOR
            | REQUEST_PROBLEM_INFORMATION
            | REQUEST_RESPONSE_INFORMATION
            | MAXIMUM_QOS
            | RETAIN_AVAILABLE
            | WILDCARD_SUBSCRIPTION_AVAILABLE
            | SUBSCRIPTION_IDENTIFIERS_AVAILABLE
            | SHARED_SUBSCRIPTION_AVAILABLE => reader.bytes(1).ok()?,
            SERVER_KEEP_ALIVE | RECEIVE_MAXIMUM | TOPIC_ALIAS_MAXIMUM | TOPIC_ALIAS => {
                reader.bytes(2).ok()?
            }
            MESSAGE_EXPIRY | SESSION_EXPIRY | WILL_DELAY | MAXIMUM_PACKET_SIZE => {
                reader.bytes(4).ok()?
            }
            SUBSCRIPTION_IDENTIFIER => {
                reader.variable().ok()?;
                &[]
            }
            USER_PROPERTY => {
                reader.binary().ok()?;
                reader.binary().ok()?
            }
            CONTENT_TYPE
            | RESPONSE_TOPIC
            | CORRELATION_DATA
            | ASSIGNED_CLIENT_ID
            | AUTHENTICATION_METHOD
            | AUTHENTICATION_DATA
            | RESPONSE_INFORMATION
            | SERVER_REFERENCE
            | REASON_STRING => reader.binary().ok()?,
            _ => return None,
        };
        Some(())
    }
}
