//! `-D PACKET PROPERTY VALUE` and `-D PACKET user-property NAME VALUE`.

use std::num::NonZeroU16;

use thrum_codec::properties::{
    DisconnectProperties, PublishProperties, SubscribeProperties, UserProperties,
};
use thrum_protocol::client::{ClientOptions, WillOptions};

use super::Stop;

/// Names and values of user properties.
pub(crate) type Pairs = Vec<(String, String)>;

/// The properties given on the command line, by the packet they go into.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PropertyValues {
    /// How many there are.
    pub(super) count: usize,
    pub(super) connect: ConnectValues,
    pub(super) will: PublishValues,
    pub(super) disconnect_session_expiry: Option<u32>,
    pub(super) disconnect_user: Pairs,
    /// Of PUBLISH.
    pub(crate) publish: PublishValues,
    /// Subscription identifier of SUBSCRIBE.
    pub(crate) subscription_identifier: Option<u32>,
    /// User properties of SUBSCRIBE.
    pub(crate) subscribe_user: Pairs,
    /// User properties of UNSUBSCRIBE.
    pub(crate) unsubscribe_user: Pairs,
}

/// Properties of CONNECT.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ConnectValues {
    pub(super) session_expiry: Option<u32>,
    pub(super) receive_maximum: Option<u16>,
    pub(super) maximum_packet_size: Option<u32>,
    pub(super) topic_alias_maximum: Option<u16>,
    pub(super) request_problem_information: Option<bool>,
    pub(super) request_response_information: Option<bool>,
    pub(super) authentication_method: Option<String>,
    pub(super) authentication_data: Option<Vec<u8>>,
    pub(super) user: Pairs,
}

/// Properties of PUBLISH and of a will.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PublishValues {
    payload_format_indicator: Option<bool>,
    message_expiry: Option<u32>,
    topic_alias: Option<NonZeroU16>,
    /// Response topic.
    pub(crate) response_topic: Option<String>,
    correlation_data: Option<Vec<u8>>,
    content_type: Option<String>,
    will_delay: Option<u32>,
    user: Pairs,
}

impl PropertyValues {
    /// Reads the values of all `-D`, one after the other.
    pub(super) fn parse(words: &[String]) -> Result<Self, Stop> {
        let mut values = Self::default();
        let mut words = words.iter().map(String::as_str);
        while let Some(packet) = words.next() {
            let mut next = || {
                let form =
                    "the form is -D PACKET PROPERTY VALUE, or -D PACKET user-property NAME VALUE";
                words
                    .next()
                    .ok_or_else(|| Stop::usage(format!("-D {packet}: a value is missing; {form}")))
            };
            let name = next()?;
            let first = next()?;
            let given = Given {
                packet,
                name,
                value: first,
            };
            if name == "user-property" {
                let pair = (first.to_owned(), next()?.to_owned());
                values.user(&given)?.push(pair);
            } else {
                values.set(&given)?;
            }
            values.count += 1;
        }
        Ok(values)
    }

    fn set(&mut self, given: &Given<'_>) -> Result<(), Stop> {
        match given.packet.to_ascii_lowercase().as_str() {
            "connect" => self.connect.set(given),
            "publish" => self.publish.set(given, Carrier::Publish),
            "will" => self.will.set(given, Carrier::Will),
            "subscribe" if given.name == "subscription-identifier" => {
                self.subscription_identifier = Some(given.number(1..=268_435_455)?);
                Ok(())
            }
            "disconnect" if given.name == "session-expiry-interval" => {
                self.disconnect_session_expiry = Some(given.number(0..=u32::MAX)?);
                Ok(())
            }
            "subscribe" | "unsubscribe" | "disconnect" => Err(given.unknown_name()),
            _ => Err(given.unknown_packet()),
        }
    }

    fn user(&mut self, given: &Given<'_>) -> Result<&mut Pairs, Stop> {
        match given.packet.to_ascii_lowercase().as_str() {
            "connect" => Ok(&mut self.connect.user),
            "publish" => Ok(&mut self.publish.user),
            "will" => Ok(&mut self.will.user),
            "subscribe" => Ok(&mut self.subscribe_user),
            "unsubscribe" => Ok(&mut self.unsubscribe_user),
            "disconnect" => Ok(&mut self.disconnect_user),
            _ => Err(given.unknown_packet()),
        }
    }

    /// Lends the properties of SUBSCRIBE.
    pub(crate) fn with_subscribe<R>(&self, send: impl FnOnce(SubscribeProperties<'_>) -> R) -> R {
        let user = borrow(&self.subscribe_user);
        send(SubscribeProperties {
            subscription_identifier: self.subscription_identifier,
            user: UserProperties::Listed(&user),
        })
    }

    /// Lends the user properties of UNSUBSCRIBE.
    pub(crate) fn with_unsubscribe<R>(&self, send: impl FnOnce(UserProperties<'_>) -> R) -> R {
        send(UserProperties::Listed(&borrow(&self.unsubscribe_user)))
    }

    /// Lends the properties of DISCONNECT.
    pub(super) fn with_disconnect<R>(&self, send: impl FnOnce(DisconnectProperties<'_>) -> R) -> R {
        let user = borrow(&self.disconnect_user);
        send(DisconnectProperties {
            session_expiry: self.disconnect_session_expiry,
            user: UserProperties::Listed(&user),
            ..DisconnectProperties::default()
        })
    }
}

impl ConnectValues {
    fn set(&mut self, given: &Given<'_>) -> Result<(), Stop> {
        match given.name {
            "session-expiry-interval" => self.session_expiry = Some(given.number(0..=u32::MAX)?),
            "receive-maximum" => self.receive_maximum = Some(given.short(1)?),
            "maximum-packet-size" => self.maximum_packet_size = Some(given.number(1..=u32::MAX)?),
            "topic-alias-maximum" => self.topic_alias_maximum = Some(given.short(0)?),
            "request-problem-information" => self.request_problem_information = Some(given.flag()?),
            "request-response-information" => {
                self.request_response_information = Some(given.flag()?);
            }
            "authentication-method" => self.authentication_method = Some(given.value.to_owned()),
            "authentication-data" => self.authentication_data = Some(given.value.into()),
            _ => return Err(given.unknown_name()),
        }
        Ok(())
    }

    pub(super) fn apply(self, options: &mut ClientOptions) {
        let Self {
            session_expiry,
            receive_maximum,
            maximum_packet_size,
            topic_alias_maximum,
            ..
        } = self;
        options.session_expiry = session_expiry.unwrap_or(options.session_expiry);
        options.receive_maximum = receive_maximum.unwrap_or(options.receive_maximum);
        options.maximum_packet_size = maximum_packet_size.unwrap_or(options.maximum_packet_size);
        options.topic_alias_maximum = topic_alias_maximum.unwrap_or(options.topic_alias_maximum);
        options.request_problem_information = self.request_problem_information;
        options.request_response_information = self.request_response_information;
        options.authentication_method = self.authentication_method;
        options.authentication_data = self.authentication_data;
        options.user_properties = self.user;
    }
}

/// The packet that carries a message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Carrier {
    Publish,
    Will,
}

impl PublishValues {
    fn set(&mut self, given: &Given<'_>, carrier: Carrier) -> Result<(), Stop> {
        match given.name {
            "payload-format-indicator" => self.payload_format_indicator = Some(given.flag()?),
            "message-expiry-interval" => self.message_expiry = Some(given.number(0..=u32::MAX)?),
            "content-type" => self.content_type = Some(given.value.to_owned()),
            "response-topic" => self.response_topic = Some(given.value.to_owned()),
            "correlation-data" => self.correlation_data = Some(given.value.into()),
            "topic-alias" if carrier == Carrier::Publish => {
                self.topic_alias = NonZeroU16::new(given.short(1)?);
            }
            "will-delay-interval" if carrier == Carrier::Will => {
                self.will_delay = Some(given.number(0..=u32::MAX)?);
            }
            _ => return Err(given.unknown_name()),
        }
        Ok(())
    }

    /// Lends the properties of PUBLISH.
    pub(crate) fn with_publish<R>(&self, send: impl FnOnce(PublishProperties<'_>) -> R) -> R {
        let user = borrow(&self.user);
        send(PublishProperties {
            payload_format_indicator: self.payload_format_indicator,
            message_expiry: self.message_expiry,
            topic_alias: self.topic_alias,
            response_topic: self.response_topic.as_deref(),
            correlation_data: self.correlation_data.as_deref(),
            content_type: self.content_type.as_deref(),
            user: UserProperties::Listed(&user),
            ..PublishProperties::default()
        })
    }

    /// Puts the properties into a will.
    pub(super) fn apply(self, will: &mut WillOptions) {
        will.delay = self.will_delay;
        will.payload_format_indicator = self.payload_format_indicator;
        will.message_expiry = self.message_expiry;
        will.content_type = self.content_type;
        will.response_topic = self.response_topic;
        will.correlation_data = self.correlation_data;
        will.user_properties = self.user;
    }
}

/// One `-D` as given.
struct Given<'a> {
    packet: &'a str,
    name: &'a str,
    value: &'a str,
}

impl Given<'_> {
    fn number(&self, range: std::ops::RangeInclusive<u32>) -> Result<u32, Stop> {
        let number = self
            .value
            .parse()
            .ok()
            .filter(|number| range.contains(number));
        number.ok_or_else(|| {
            self.wrong(&format!(
                "a number from {} to {}",
                range.start(),
                range.end()
            ))
        })
    }

    fn short(&self, min: u16) -> Result<u16, Stop> {
        let number = self.value.parse().ok().filter(|number| *number >= min);
        number.ok_or_else(|| self.wrong(&format!("a number from {min} to {}", u16::MAX)))
    }

    fn flag(&self) -> Result<bool, Stop> {
        match self.value {
            "0" => Ok(false),
            "1" => Ok(true),
            _ => Err(self.wrong("0 or 1")),
        }
    }

    fn wrong(&self, expected: &str) -> Stop {
        let Self {
            packet,
            name,
            value,
        } = self;
        Stop::usage(format!(
            "-D {packet} {name} {value}: the value must be {expected}"
        ))
    }

    fn unknown_packet(&self) -> Stop {
        let known = "connect, publish, subscribe, unsubscribe, disconnect, will";
        Stop::usage(format!(
            "-D {}: not a packet with properties here; known: {known}",
            self.packet
        ))
    }

    fn unknown_name(&self) -> Stop {
        let known = match self.packet.to_ascii_lowercase().as_str() {
            "connect" => {
                "authentication-data, authentication-method, maximum-packet-size, receive-maximum, \
                 request-problem-information, request-response-information, session-expiry-interval, \
                 topic-alias-maximum, user-property"
            }
            "publish" => {
                "content-type, correlation-data, message-expiry-interval, payload-format-indicator, \
                 response-topic, topic-alias, user-property"
            }
            "will" => {
                "content-type, correlation-data, message-expiry-interval, payload-format-indicator, \
                 response-topic, user-property, will-delay-interval"
            }
            "subscribe" => "subscription-identifier, user-property",
            "disconnect" => "session-expiry-interval, user-property",
            _ => "user-property",
        };
        let Self { packet, name, .. } = self;
        Stop::usage(format!(
            "-D {packet} {name}: not a property of that packet; known: {known}"
        ))
    }
}

fn borrow(pairs: &Pairs) -> Vec<(&str, &str)> {
    pairs
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<PropertyValues, Stop> {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        PropertyValues::parse(&words)
    }

    #[test]
    fn properties_are_kept_by_packet() {
        let values = parse(
            "PUBLISH content-type text publish user-property a b connect receive-maximum 5 \
             will will-delay-interval 3 publish user-property a c subscribe subscription-identifier 7 \
             disconnect session-expiry-interval 60 unsubscribe user-property x y",
        )
        .unwrap();
        assert_eq!(values.count, 8);
        values.publish.with_publish(|properties| {
            assert_eq!(properties.content_type, Some("text"));
            assert_eq!(
                properties.user,
                UserProperties::Listed(&[("a", "b"), ("a", "c")])
            );
        });
        let mut options = ClientOptions::default();
        values.connect.apply(&mut options);
        assert_eq!(options.receive_maximum, 5);
        assert_eq!(values.will.will_delay, Some(3));
        assert_eq!(values.subscription_identifier, Some(7));
        assert_eq!(values.disconnect_session_expiry, Some(60));
        assert_eq!(values.unsubscribe_user, [("x".to_owned(), "y".to_owned())]);
    }

    #[test]
    fn a_wrong_property_is_refused_with_the_known_ones() {
        for (text, words) in [
            ("publish", "a value is missing"),
            ("publish user-property a", "a value is missing"),
            ("publish colour red", "content-type"),
            ("puback user-property a b", "known: connect"),
            ("will topic-alias 3", "will-delay-interval"),
            ("publish will-delay-interval 3", "topic-alias"),
            ("publish payload-format-indicator 2", "0 or 1"),
            ("connect receive-maximum 0", "from 1 to 65535"),
            (
                "subscribe subscription-identifier 268435456",
                "from 1 to 268435455",
            ),
        ] {
            let stop = parse(text).unwrap_err();
            assert_eq!(stop.code, 2);
            assert!(stop.message.contains(words), "{}", stop.message);
        }
    }
}
