//! Connections that their clients no longer use, but read to their end: the rest must be whole
//! packets, and an acknowledgement counts until the client reconnects.

use thrum_codec::packet::Packet;
use thrum_codec::{PacketId, QoS, ReasonCode, Version, decode, frame};

use super::packets::{begins_padding, is_padding};
use super::{Client, Phase};
use crate::worker::simulation::history::{ClientNumber, Event};
use crate::worker::simulation::link::{Link, Transferred};
use crate::worker::simulation::world::Failure;

/// A connection that is only read.
#[derive(Debug)]
pub(in super::super) struct OldConnection {
    pub(in super::super) client: ClientNumber,
    /// The connection number of the client.
    pub(in super::super) connection: u32,
    pub(in super::super) has_ended: bool,
    version: Version,
    link: Link,
}

/// PUBACK or PUBREC on such a connection.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct LateAck {
    pub(in super::super) client: ClientNumber,
    pub(in super::super) connection: u32,
    pub(in super::super) packet_id: PacketId,
    pub(in super::super) outcome: ReasonCode,
}

impl Client {
    /// Returns the connection as one that the client no longer uses.
    pub(in super::super) fn old_connection(&self, link: Link) -> OldConnection {
        OldConnection {
            client: self.number,
            connection: self.connections,
            has_ended: false,
            version: self.version,
            link,
        }
    }

    /// Handles an acknowledgement after DISCONNECT: its message is not sent again.
    pub(in super::super) fn acknowledged_late(
        &mut self,
        connection: u32,
        packet_id: PacketId,
        outcome: ReasonCode,
    ) -> Option<Event> {
        if self.phase != Phase::Disconnected || self.connections != connection {
            return None;
        }
        let mut flights = self.outgoing.iter();
        let at = flights.position(|flight| flight.packet_id == packet_id && !flight.is_released)?;
        let message = self.outgoing[at].message;
        if message.qos == QoS::ExactlyOnce && !outcome.is_error() {
            self.outgoing[at].is_released = true;
        } else {
            self.outgoing.remove(at);
        }
        Some(Event::Accepted {
            client: self.number,
            number: message.number,
            outcome,
        })
    }
}

impl OldConnection {
    /// Transfers at most `bytes_max` bytes to the client, and checks the packets that have arrived.
    pub(in super::super) fn transfer_to_client(
        &mut self,
        bytes_max: usize,
        answers: &mut Vec<LateAck>,
    ) -> Result<Transferred, Failure> {
        let transferred = self.link.transfer_to_client(bytes_max);
        self.has_ended |= transferred == Transferred::End;
        let (client, connection) = (self.client, self.connection);
        let handled = self.link.packets(self.version, |packet, _| match packet {
            Packet::PubAck(ack) | Packet::PubRec(ack) => {
                answers.push(LateAck {
                    client,
                    connection,
                    packet_id: ack.packet_id,
                    outcome: ack.reason,
                });
                Ok(())
            }
            Packet::Publish(publish) => is_undamaged(publish.topic, publish.payload),
            _ => Ok(()),
        });
        handled
            .and_then(|()| self.check_partial_packet())
            .map_err(|what| format!("client {client}, on an old connection: {what}"))?;
        Ok(transferred)
    }

    /// Checks an incomplete last packet: the node may end the connection of a slow client within a
    /// packet, but must not mix packets.
    fn check_partial_packet(&self) -> Result<(), Failure> {
        let rest = self.link.rest();
        let Some(len) = frame::announced_len(rest).filter(|_| self.has_ended) else {
            return Ok(());
        };
        let mut filled = rest.to_vec();
        filled.resize(len, 0);
        let frame = frame::split(&filled, u32::MAX);
        let packet = frame
            .ok()
            .flatten()
            .and_then(|frame| decode(frame, self.version).ok());
        let Some(Packet::Publish(publish)) = packet else {
            return Ok(());
        };
        let arrived = (rest.len() + publish.payload.len()).saturating_sub(len);
        is_undamaged_so_far(publish.topic, &publish.payload[..arrived])
    }
}

fn is_undamaged_so_far(topic: &str, payload: &[u8]) -> Result<(), Failure> {
    let Some((number, padding)) = payload.split_first_chunk() else {
        return Ok(());
    };
    let number = u32::from_be_bytes(*number);
    if begins_padding(number, padding) || topic.starts_with("w/") {
        return Ok(());
    }
    Err(format!("the beginning of message {number} is damaged"))
}

fn is_undamaged(topic: &str, payload: &[u8]) -> Result<(), Failure> {
    let Some((number, padding)) = payload.split_first_chunk() else {
        return Ok(());
    };
    let number = u32::from_be_bytes(*number);
    // Wills have no padding, and behind a topic alias the topic is not known.
    if is_padding(number, padding) || padding.is_empty() || topic.starts_with("w/") {
        return Ok(());
    }
    Err(format!("the payload of message {number} is damaged"))
}
