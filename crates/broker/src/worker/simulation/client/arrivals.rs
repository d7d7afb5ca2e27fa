//! Handling of the node's packets by the client, and its answers.

use thrum_codec::packet::{Ack, ConnAck, Packet, Publish, SubAck};
use thrum_codec::{PacketId, QoS, ReasonCode, Version};

use super::packets::{is_padding, success, write, write_publish};
use super::{Client, InflightMessage, Phase, Request};
use crate::worker::simulation::history::{Event, known_topic};
use crate::worker::simulation::world::Failure;

/// The text for a client whose identifier another connection uses.
const TAKEN_OVER: &str = "another connection uses this client identifier";

impl Client {
    /// Handles what has arrived.
    pub(in super::super) fn handle_arrived(
        &mut self,
        events: &mut Vec<Event>,
    ) -> Result<(), Failure> {
        let Some(mut link) = self.link.take() else {
            return Ok(());
        };
        let version = self.version;
        let handled = link.packets(version, |packet, out| self.handle(&packet, out, events));
        self.link = Some(link);
        handled
    }

    fn handle(
        &mut self,
        packet: &Packet<'_>,
        out: &mut Vec<u8>,
        events: &mut Vec<Event>,
    ) -> Result<(), Failure> {
        match (self.phase, packet) {
            (Phase::Connecting, Packet::ConnAck(ack)) => {
                self.connected(ack, out, events);
                Ok(())
            }
            (_, Packet::Disconnect(_)) => {
                self.is_disconnected_by_node = true;
                Ok(())
            }
            (Phase::Connected, Packet::Publish(publish)) => self.received(publish, out, events),
            (Phase::Connected, Packet::PubAck(ack)) => {
                let at = self.flight(ack.packet_id, QoS::AtLeastOnce)?;
                self.check_answer_order(at)?;
                let flight = self.outgoing.remove(at).unwrap();
                events.push(self.accepted(&flight, ack.reason));
                Ok(())
            }
            (Phase::Connected, Packet::PubRec(ack)) => self.recorded(ack, out, events),
            (Phase::Connected, Packet::PubComp(ack)) => {
                let at = self.flight(ack.packet_id, QoS::ExactlyOnce)?;
                if !self.outgoing[at].is_released {
                    return Err(format!("PUBCOMP before PUBREC: {ack:?}"));
                }
                self.outgoing.remove(at);
                Ok(())
            }
            (Phase::Connected, Packet::PubRel(ack)) => {
                self.incoming.remove(&ack.packet_id);
                self.unreleased.remove(&ack.packet_id);
                write(&Packet::PubComp(success(ack.packet_id)), self.version, out);
                Ok(())
            }
            (Phase::Connected, Packet::SubAck(ack) | Packet::UnsubAck(ack)) => {
                self.answered(ack, events)
            }
            (Phase::Connected, Packet::PingResp) => Ok(()),
            (phase, packet) => Err(format!("an unexpected packet ({phase:?}): {packet:?}")),
        }
    }

    fn connected(&mut self, ack: &ConnAck<'_>, out: &mut Vec<u8>, events: &mut Vec<Event>) {
        if ack.reason != ReasonCode::Success {
            self.is_disconnected_by_node = true;
            // An earlier CONNECT of this client may arrive behind this one, and take over.
            if ack.properties.reason_string != Some(TAKEN_OVER) {
                events.push(Event::Refused {
                    client: self.number,
                    reason: ack.reason,
                });
            }
            return;
        }
        self.phase = Phase::Connected;
        events.push(Event::Connected {
            client: self.number,
            session_present: ack.session_present,
        });
        if !ack.session_present {
            self.forget();
        }
        for flight in self.outgoing.clone() {
            if flight.is_released {
                write(
                    &Packet::PubRel(success(flight.packet_id)),
                    self.version,
                    out,
                );
            } else {
                write_publish(
                    &flight.message,
                    Some(flight.packet_id),
                    true,
                    self.version,
                    out,
                );
                events.push(Event::Sent {
                    client: self.number,
                    message: flight.message,
                });
            }
        }
    }

    fn received(
        &mut self,
        publish: &Publish<'_>,
        out: &mut Vec<u8>,
        events: &mut Vec<Event>,
    ) -> Result<(), Failure> {
        let topic = self.resolve(publish)?;
        let is_new = match (publish.qos, publish.packet_id) {
            (QoS::AtMostOnce, _) => true,
            (QoS::AtLeastOnce, Some(packet_id)) => {
                write(&Packet::PubAck(success(packet_id)), self.version, out);
                true
            }
            (QoS::ExactlyOnce, Some(packet_id)) => {
                write(&Packet::PubRec(success(packet_id)), self.version, out);
                self.unreleased.insert(packet_id);
                self.incoming.insert(packet_id)
            }
            (_, None) => return Err(format!("no packet identifier: {publish:?}")),
        };
        // 3.x has no receive maximum.
        let options = self.options.filter(|_| self.version == Version::V5);
        let window = options.map_or(0, |options| options.receive_maximum);
        if window > 0 && self.unreleased.len() > usize::from(window) {
            return Err(format!(
                "more messages than the receive maximum {window}: {publish:?}"
            ));
        }
        let Some((number, padding)) = publish.payload.split_first_chunk() else {
            // A PUBLISH that removes a retained message has no number.
            return Ok(());
        };
        let number = u32::from_be_bytes(*number);
        if !is_padding(number, padding) && !topic.starts_with("w/") {
            return Err(format!("the payload of message {number} is damaged"));
        }
        if is_new {
            events.push(Event::Received {
                client: self.number,
                number,
                topic,
                qos: publish.qos,
                dup: publish.dup,
                retain: publish.retain,
            });
        }
        Ok(())
    }

    fn recorded(
        &mut self,
        ack: &Ack<'_>,
        out: &mut Vec<u8>,
        events: &mut Vec<Event>,
    ) -> Result<(), Failure> {
        let at = self.flight(ack.packet_id, QoS::ExactlyOnce)?;
        let flight = self.outgoing[at];
        if flight.is_released {
            return Err(format!("a second PUBREC: {ack:?}"));
        }
        self.check_answer_order(at)?;
        events.push(self.accepted(&flight, ack.reason));
        if ack.reason.is_error() {
            self.outgoing.remove(at);
        } else {
            self.outgoing[at].is_released = true;
            write(&Packet::PubRel(success(ack.packet_id)), self.version, out);
        }
        Ok(())
    }

    fn answered(&mut self, ack: &SubAck<'_>, events: &mut Vec<Event>) -> Result<(), Failure> {
        let client = self.number;
        match self.requests.remove(&ack.packet_id) {
            Some(Request::Subscribe(filter)) => {
                let code = ack.codes.iter().next();
                let granted = code.and_then(|code| QoS::from_u8(code as u8));
                events.push(Event::Subscribed {
                    client,
                    filter,
                    granted,
                });
                Ok(())
            }
            Some(Request::Unsubscribe(filter)) => {
                events.push(Event::Unsubscribed { client, filter });
                Ok(())
            }
            None => Err(format!("an answer without a request: {ack:?}")),
        }
    }

    fn accepted(&self, flight: &InflightMessage, outcome: ReasonCode) -> Event {
        Event::Accepted {
            client: self.number,
            number: flight.message.number,
            outcome,
        }
    }

    fn flight(&self, packet_id: PacketId, qos: QoS) -> Result<usize, Failure> {
        let is_it =
            |flight: &InflightMessage| flight.packet_id == packet_id && flight.message.qos == qos;
        let at = self.outgoing.iter().position(is_it);
        at.ok_or_else(|| format!("an acknowledgement without a message of {qos:?}: {packet_id:?}"))
    }

    /// Checks that answers arrive in the order of the messages. [MQTT-4.6.0-2] [MQTT-4.6.0-3]
    fn check_answer_order(&self, at: usize) -> Result<(), Failure> {
        let qos = self.outgoing[at].message.qos;
        let waits = |flight: &&InflightMessage| flight.message.qos == qos && !flight.is_released;
        match self.outgoing.iter().take(at).find(waits) {
            None => Ok(()),
            Some(earlier) => Err(format!(
                "{:?} was answered before {earlier:?}",
                self.outgoing[at]
            )),
        }
    }

    fn resolve(&mut self, publish: &Publish<'_>) -> Result<&'static str, Failure> {
        let alias = publish.properties.topic_alias;
        if publish.topic.is_empty() {
            let known = alias.and_then(|alias| self.aliases.get(&alias).copied());
            return known.ok_or_else(|| format!("a topic alias without a topic: {publish:?}"));
        }
        let topic = known_topic(publish.topic);
        let topic = topic.ok_or_else(|| format!("an unknown topic: {publish:?}"))?;
        if let Some(alias) = alias {
            self.aliases.insert(alias, topic);
        }
        Ok(topic)
    }
}
