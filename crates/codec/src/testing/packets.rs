//! Builds each kind of packet from its material.

use core::num::NonZeroU16;

use super::choices::Choices;
use super::material::{Lists, QOS, possible};
use crate::packet::{
    Ack, Auth, ConnAck, Connect, Disconnect, Packet, PacketId, Publish, QoS, ReasonCodes, SubAck,
    Subscribe, SubscriptionRequests, TopicFilters, Unsubscribe, Version, Will,
};
use crate::properties::{
    AckProperties, AuthProperties, ConnAckProperties, ConnectProperties, DisconnectProperties,
    PublishProperties, SubscribeProperties, SubscriptionIdentifiers, UserProperties,
    WillProperties,
};
use crate::reason::{Carrier, ReasonCode};

pub(super) fn packet<'a>(
    kind: usize,
    version: Version,
    lists: &'a Lists<'a>,
    choices: &mut Choices<'_>,
) -> Packet<'a> {
    let mut draw = Draw {
        version,
        lists,
        choices,
    };
    match kind {
        0 => Packet::Publish(draw.publish()),
        1 => Packet::PubAck(draw.ack(Carrier::PubAck)),
        2 => Packet::PubRec(draw.ack(Carrier::PubRec)),
        3 => Packet::PubRel(draw.ack(Carrier::PubRel)),
        4 => Packet::PubComp(draw.ack(Carrier::PubComp)),
        5 => Packet::Connect(draw.connect()),
        6 => Packet::ConnAck(draw.connack()),
        7 => Packet::Subscribe(draw.subscribe()),
        8 => Packet::SubAck(draw.answer(ReasonCodes::Listed(lists.suback))),
        9 => Packet::Unsubscribe(draw.unsubscribe()),
        10 => Packet::UnsubAck(draw.answer(ReasonCodes::Listed(lists.unsuback))),
        11 => Packet::PingReq,
        12 => Packet::PingResp,
        13 => Packet::Disconnect(draw.disconnect()),
        _ => Packet::Auth(draw.auth()),
    }
}

struct Draw<'a, 'b, 'c> {
    version: Version,
    lists: &'a Lists<'a>,
    choices: &'b mut Choices<'c>,
}

impl<'a> Draw<'a, '_, '_> {
    fn is_v5(&self) -> bool {
        self.version == Version::V5
    }

    fn publish(&mut self) -> Publish<'a> {
        let qos = self.choices.one_of(&QOS);
        let has_id = qos != QoS::AtMostOnce;
        let properties = if self.is_v5() {
            self.publish_properties()
        } else {
            PublishProperties::default()
        };
        let is_nameless = properties.topic_alias.is_some() && self.choices.flag();
        Publish {
            dup: has_id && self.choices.flag(),
            qos,
            retain: self.choices.flag(),
            topic: if is_nameless {
                ""
            } else {
                self.lists.topic(self.choices)
            },
            packet_id: if has_id { Some(self.packet_id()) } else { None },
            properties,
            payload: self.lists.blob(self.choices),
        }
    }

    fn publish_properties(&mut self) -> PublishProperties<'a> {
        PublishProperties {
            payload_format_indicator: self.maybe_flag(),
            message_expiry: self.maybe_u32(),
            topic_alias: self.choices.maybe(positive),
            response_topic: self.maybe_topic(),
            correlation_data: self.maybe_blob(),
            subscription_identifiers: SubscriptionIdentifiers::Listed(self.lists.identifiers),
            content_type: self.maybe_text(),
            user: self.user(),
        }
    }

    fn ack(&mut self, carrier: Carrier) -> Ack<'a> {
        let packet_id = self.packet_id();
        let reason = self.reason(carrier);
        Ack {
            packet_id,
            reason,
            properties: self.ack_properties(),
        }
    }

    fn ack_properties(&mut self) -> AckProperties<'a> {
        if self.is_v5() {
            AckProperties {
                reason_string: self.maybe_text(),
                user: self.user(),
            }
        } else {
            AckProperties::default()
        }
    }

    fn connect(&mut self) -> Connect<'a> {
        let username = self.maybe_text();
        let may_have_password = username.is_some() || self.is_v5();
        Connect {
            version: self.version,
            is_bridge: !self.is_v5() && self.choices.flag(),
            clean_start: self.choices.flag(),
            keep_alive: self.choices.u16(),
            client_id: self.lists.text(self.choices),
            will: if self.choices.flag() {
                Some(self.will())
            } else {
                None
            },
            username,
            password: if may_have_password {
                self.maybe_blob()
            } else {
                None
            },
            properties: if self.is_v5() {
                self.connect_properties()
            } else {
                ConnectProperties::default()
            },
        }
    }

    fn connect_properties(&mut self) -> ConnectProperties<'a> {
        let method = self.maybe_text();
        ConnectProperties {
            session_expiry: self.maybe_u32(),
            receive_maximum: self.choices.maybe(positive),
            maximum_packet_size: self.maybe_packet_size(),
            topic_alias_maximum: self.maybe_u16(),
            request_response_information: self.maybe_flag(),
            request_problem_information: self.maybe_flag(),
            authentication_method: method,
            authentication_data: if method.is_some() {
                self.maybe_blob()
            } else {
                None
            },
            user: self.user(),
        }
    }

    fn will(&mut self) -> Will<'a> {
        let properties = if self.is_v5() {
            WillProperties {
                will_delay: self.maybe_u32(),
                payload_format_indicator: self.maybe_flag(),
                message_expiry: self.maybe_u32(),
                content_type: self.maybe_text(),
                response_topic: self.maybe_topic(),
                correlation_data: self.maybe_blob(),
                user: self.user(),
            }
        } else {
            WillProperties::default()
        };
        Will {
            topic: self.lists.topic(self.choices),
            payload: self.lists.blob(self.choices),
            qos: self.choices.one_of(&QOS),
            retain: self.choices.flag(),
            properties,
        }
    }

    fn connack(&mut self) -> ConnAck<'a> {
        let reason = if self.is_v5() {
            self.reason(Carrier::ConnAck)
        } else {
            ReasonCode::from_return_code(self.choices.byte() % 6).unwrap_or(ReasonCode::Success)
        };
        let may_have_session = reason == ReasonCode::Success && self.version != Version::V31;
        ConnAck {
            session_present: may_have_session && self.choices.flag(),
            reason,
            properties: if self.is_v5() {
                self.connack_properties()
            } else {
                ConnAckProperties::default()
            },
        }
    }

    fn connack_properties(&mut self) -> ConnAckProperties<'a> {
        ConnAckProperties {
            session_expiry: self.maybe_u32(),
            receive_maximum: self.choices.maybe(positive),
            // An absent property means 2.
            maximum_qos: self
                .choices
                .maybe(|choices| choices.one_of(&[QoS::AtMostOnce, QoS::AtLeastOnce])),
            retain_available: self.maybe_flag(),
            maximum_packet_size: self.maybe_packet_size(),
            assigned_client_id: self.maybe_text(),
            topic_alias_maximum: self.maybe_u16(),
            reason_string: self.maybe_text(),
            wildcard_subscription_available: self.maybe_flag(),
            subscription_identifiers_available: self.maybe_flag(),
            shared_subscription_available: self.maybe_flag(),
            server_keep_alive: self.maybe_u16(),
            response_information: self.maybe_text(),
            server_reference: self.maybe_text(),
            authentication_method: self.maybe_text(),
            authentication_data: self.maybe_blob(),
            user: self.user(),
        }
    }

    fn subscribe(&mut self) -> Subscribe<'a> {
        let first = self.lists.identifiers.first().copied();
        let properties = if self.is_v5() {
            SubscribeProperties {
                subscription_identifier: first,
                user: self.user(),
            }
        } else {
            SubscribeProperties::default()
        };
        let requests = SubscriptionRequests::Listed(&self.lists.requests);
        Subscribe {
            packet_id: self.packet_id(),
            properties,
            requests,
        }
    }

    fn unsubscribe(&mut self) -> Unsubscribe<'a> {
        Unsubscribe {
            packet_id: self.packet_id(),
            user: if self.is_v5() {
                self.user()
            } else {
                UserProperties::default()
            },
            filters: TopicFilters::Listed(&self.lists.filters),
        }
    }

    fn answer(&mut self, codes: ReasonCodes<'a>) -> SubAck<'a> {
        SubAck {
            packet_id: self.packet_id(),
            properties: self.ack_properties(),
            codes,
        }
    }

    fn disconnect(&mut self) -> Disconnect<'a> {
        let reason = self.reason(Carrier::Disconnect);
        let properties = if self.is_v5() {
            DisconnectProperties {
                session_expiry: self.maybe_u32(),
                reason_string: self.maybe_text(),
                server_reference: self.maybe_text(),
                user: self.user(),
            }
        } else {
            DisconnectProperties::default()
        };
        Disconnect { reason, properties }
    }

    fn auth(&mut self) -> Auth<'a> {
        let reason = self.reason(Carrier::Auth);
        if reason == ReasonCode::Success && self.choices.flag() {
            return Auth {
                reason,
                properties: AuthProperties::default(),
            };
        }
        let properties = AuthProperties {
            authentication_method: Some(self.lists.text(self.choices)),
            authentication_data: self.maybe_blob(),
            reason_string: self.maybe_text(),
            user: self.user(),
        };
        Auth { reason, properties }
    }

    fn packet_id(&mut self) -> PacketId {
        PacketId(positive(self.choices))
    }

    fn reason(&mut self, carrier: Carrier) -> ReasonCode {
        if self.is_v5() {
            self.choices.one_of(&possible(carrier))
        } else {
            ReasonCode::Success
        }
    }

    fn user(&mut self) -> UserProperties<'a> {
        if self.choices.flag() {
            UserProperties::Listed(&self.lists.pairs)
        } else {
            UserProperties::default()
        }
    }

    fn maybe_text(&mut self) -> Option<&'a str> {
        self.choices.maybe(|choices| self.lists.text(choices))
    }

    fn maybe_topic(&mut self) -> Option<&'a str> {
        self.choices.maybe(|choices| self.lists.topic(choices))
    }

    fn maybe_blob(&mut self) -> Option<&'a [u8]> {
        self.choices.maybe(|choices| self.lists.blob(choices))
    }

    fn maybe_flag(&mut self) -> Option<bool> {
        self.choices.maybe(Choices::flag)
    }

    fn maybe_u16(&mut self) -> Option<u16> {
        self.choices.maybe(Choices::u16)
    }

    fn maybe_u32(&mut self) -> Option<u32> {
        self.choices.maybe(Choices::u32)
    }

    fn maybe_packet_size(&mut self) -> Option<u32> {
        self.choices.maybe(|choices| choices.u32().max(1))
    }
}

fn positive(choices: &mut Choices<'_>) -> NonZeroU16 {
    NonZeroU16::new(choices.u16()).unwrap_or(NonZeroU16::MIN)
}
