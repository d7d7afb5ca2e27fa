//! Messages from the server: topic aliases, acknowledgement, and QoS 2 without duplicates.

use alloc::rc::Rc;
use alloc::vec::Vec;

use thrum_codec::packet::{Ack, Packet, Publish};
use thrum_codec::properties::AckProperties;
use thrum_codec::{PacketId, QoS, ReasonCode};

use super::machine::protocol_error;
use super::{Client, Event};
use crate::{Time, Violation};

impl Client {
    pub(super) fn handle_publish<'p>(
        &mut self,
        publish: Publish<'p>,
        now: Time,
        out: &mut Vec<u8>,
    ) -> Result<Event<'p>, Violation> {
        let alias = self.resolve_alias(&publish)?;
        // [MQTT-3.3.4-1] [MQTT-4.5.0-2] [MQTT3-3.3.4-1] [MQTT3-4.5.0-2]
        match (publish.qos, publish.packet_id) {
            (QoS::AtMostOnce, _) => {}
            (QoS::AtLeastOnce, Some(packet_id)) => {
                // Packets are answered as they come, which keeps their order. [MQTT-4.6.0-2]
                // [MQTT3-4.6.0-2]
                // [MQTT-4.3.2-4] [MQTT-4.3.2-5] [MQTT3-4.3.2-2]
                self.reply(&Packet::PubAck(success(packet_id)), now, out)?;
            }
            (QoS::ExactlyOnce, Some(packet_id)) => {
                let new = self.note_received(packet_id)?;
                // [MQTT-4.3.3-8] [MQTT-4.6.0-3] [MQTT3-4.3.3-2] [MQTT3-4.6.0-3]
                self.reply(&Packet::PubRec(success(packet_id)), now, out)?;
                // [MQTT-4.3.3-10]
                if !new {
                    return Ok(Event::None);
                }
            }
            (QoS::AtLeastOnce | QoS::ExactlyOnce, None) => {
                return Err(protocol_error(
                    "PUBLISH above QoS 0 without packet identifier",
                ));
            }
        }
        Ok(Event::Message { publish, alias })
    }

    pub(super) fn handle_pubrel<'p>(
        &mut self,
        ack: &Ack<'p>,
        now: Time,
        out: &mut Vec<u8>,
    ) -> Result<Event<'p>, Violation> {
        let received = self
            .exchanges
            .as_mut()
            .map(|exchanges| &mut exchanges.received);
        let known = received.is_some_and(|received| {
            let found = received.binary_search(&ack.packet_id);
            // [MQTT-4.3.3-12]
            found.is_ok_and(|at| received.remove(at).is_some())
        });
        // After a lost PUBCOMP the server repeats PUBREL for an exchange that is over here.
        // [MQTT-3.7.2-1]
        let reason = if known {
            ReasonCode::Success
        } else {
            ReasonCode::PacketIdentifierNotFound
        };
        // [MQTT-4.3.3-11]
        let completed = Ack {
            reason,
            ..success(ack.packet_id)
        };
        self.reply(&Packet::PubComp(completed), now, out)?;
        Ok(Event::None)
    }

    /// False if the message came before and its PUBREL has not.
    fn note_received(&mut self, packet_id: PacketId) -> Result<bool, Violation> {
        let window = usize::from(self.options.window_announced());
        let received = &mut self.exchanges.get_or_insert_default().received;
        match received.binary_search(&packet_id) {
            Ok(_) => Ok(false),
            Err(_) if received.len() >= window => Err(Violation::new(
                ReasonCode::ReceiveMaximumExceeded,
                "more unacknowledged messages than the receive maximum",
            )),
            Err(at) => {
                received.insert(at, packet_id);
                Ok(true)
            }
        }
    }

    /// Looks up or learns a topic alias; the topic if the packet has only the alias.
    fn resolve_alias(&mut self, publish: &Publish<'_>) -> Result<Option<Rc<str>>, Violation> {
        let Some(alias) = publish.properties.topic_alias else {
            return if publish.topic.is_empty() {
                Err(protocol_error("PUBLISH without topic and topic alias"))
            } else {
                Ok(None)
            };
        };
        // [MQTT-3.3.2-10]
        if alias.get() > self.options.topic_alias_maximum {
            return Err(Violation::new(
                ReasonCode::TopicAliasInvalid,
                "topic alias over the topic alias maximum",
            ));
        }
        let aliases = &mut self.exchanges.get_or_insert_default().inbound_aliases;
        if publish.topic.is_empty() {
            let topic = aliases.topic(alias).cloned();
            return topic
                .map(Some)
                .ok_or(protocol_error("topic alias without a topic"));
        }
        aliases.set(alias, publish.topic);
        Ok(None)
    }
}

/// An acknowledgement without anything to add.
// [MQTT-2.2.1-5] [MQTT3-2.3.1-6]
pub(super) fn success<'a>(packet_id: PacketId) -> Ack<'a> {
    Ack {
        packet_id,
        reason: ReasonCode::Success,
        properties: AckProperties::default(),
    }
}
