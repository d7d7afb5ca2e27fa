//! Properties of MQTT 5.0, one struct per packet; a 3.x packet has the default of each.

use core::num::NonZeroU16;

use crate::packet::QoS;

/// User properties in the order they were sent.
#[derive(Clone, Copy, Debug)]
pub enum UserProperties<'a> {
    /// A checked property block as it stood on the wire; other properties in it are passed over.
    Wire(&'a [u8]),
    /// Listed.
    Listed(&'a [(&'a str, &'a str)]),
}

/// Subscription identifiers of a PUBLISH.
#[derive(Clone, Copy, Debug)]
pub enum SubscriptionIdentifiers<'a> {
    /// A checked property block as it stood on the wire; other properties in it are passed over.
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
    /// Ask for response information in CONNACK.
    pub request_response_information: Option<bool>,
    /// Absent means true.
    pub request_problem_information: Option<bool>,
    /// Name of the method of enhanced authentication.
    pub authentication_method: Option<&'a str>,
    /// Data of that method.
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
    /// Seconds, if the server uses another value than the client asked for.
    pub session_expiry: Option<u32>,
    /// Never 0.
    pub receive_maximum: Option<NonZeroU16>,
    /// Absent means 2; never 2 on the wire.
    pub maximum_qos: Option<QoS>,
    /// Absent means true.
    pub retain_available: Option<bool>,
    /// Bytes, never 0.
    pub maximum_packet_size: Option<u32>,
    /// Identifier the server made up for a client that sent none.
    pub assigned_client_id: Option<&'a str>,
    /// Absent means 0.
    pub topic_alias_maximum: Option<u16>,
    /// For people.
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
    /// Method of enhanced authentication.
    pub authentication_method: Option<&'a str>,
    /// Data of that method.
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
    /// For people.
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
    /// For people.
    pub reason_string: Option<&'a str>,
    /// Another server to use; only from a server.
    pub server_reference: Option<&'a str>,
    /// User properties.
    pub user: UserProperties<'a>,
}

/// Properties of AUTH.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct AuthProperties<'a> {
    /// Method of enhanced authentication.
    pub authentication_method: Option<&'a str>,
    /// Data of that method.
    pub authentication_data: Option<&'a [u8]>,
    /// For people.
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
