//! A client that keeps the rules and remembers its session for ever, whatever happens to its connections.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::num::NonZeroU16;

use thrum_codec::packet::{
    Ack, ConnAck, Connect, Disconnect, Packet, Publish, SubAck, Subscribe, SubscriptionOptions,
    SubscriptionRequest, SubscriptionRequests, TopicFilters, Unsubscribe, Will,
};
use thrum_codec::properties::{
    AckProperties, ConnectProperties, DisconnectProperties, PublishProperties, SubscribeProperties,
    UserProperties, WillProperties,
};
use thrum_codec::{PacketId, QoS, ReasonCode, TopicFilter, Version, encode};

use super::history::{ClientNumber, Event, Message, WILLS, WillNote, known_topic};
use super::link::Link;

/// Messages with QoS 1 and 2 that a client has under way at most.
const INFLIGHT_MAX: usize = 8;
/// Every so many messages one has a payload that the node shares instead of copying.
const LARGE_EVERY: u32 = 7;
const LARGE_BYTES: usize = 3000;

/// What a CONNECT says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish {
    pub(super) clean_start: bool,
    pub(super) expiry_secs: u32,
    pub(super) keep_alive: u16,
    pub(super) receive_maximum: u16,
    pub(super) topic_alias_maximum: u16,
    pub(super) will: Option<WillNote>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Away,
    Connecting,
    Connected,
}

/// One client: what it remembers, and its connection if it has one.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) number: ClientNumber,
    pub(super) version: Version,
    pub(super) link: Option<Link>,
    pub(super) phase: Phase,
    /// CONNECT packets so far.
    pub(super) connections: u32,
    /// Of the last connect.
    pub(super) wish: Option<Wish>,
    /// The node has said goodbye, or something that ends the connection.
    pub(super) is_dismissed: bool,
    last_packet_id: u16,
    outgoing: VecDeque<Flight>,
    incoming: BTreeSet<PacketId>,
    /// Those that came on this connection.
    unreleased: BTreeSet<PacketId>,
    requests: BTreeMap<PacketId, Request>,
    aliases: BTreeMap<NonZeroU16, &'static str>,
}

#[derive(Clone, Copy, Debug)]
struct Flight {
    packet_id: PacketId,
    message: Message,
    /// PUBREC came.
    is_released: bool,
}

#[derive(Clone, Copy, Debug)]
enum Request {
    Subscribe(&'static str),
    Unsubscribe(&'static str),
}

impl Client {
    pub(super) fn new(number: ClientNumber, version: Version) -> Self {
        Self {
            number,
            version,
            link: None,
            phase: Phase::Away,
            connections: 0,
            wish: None,
            is_dismissed: false,
            last_packet_id: 0,
            outgoing: VecDeque::new(),
            incoming: BTreeSet::new(),
            unreleased: BTreeSet::new(),
            requests: BTreeMap::new(),
            aliases: BTreeMap::new(),
        }
    }

    /// CONNECT on a new connection.
    pub(super) fn connect(&mut self, mut link: Link, wish: Wish) -> Event {
        let is_v5 = self.version == Version::V5;
        let id = format!("c{}", self.number);
        let payload = wish.will.map(|note| note.number.to_be_bytes());
        let will = wish.will.as_ref().zip(payload.as_ref());
        let will = will.map(|(note, payload)| Will {
            topic: WILLS[self.number],
            payload,
            qos: note.qos,
            retain: false,
            properties: WillProperties {
                will_delay: is_v5.then_some(note.delay_secs),
                ..WillProperties::default()
            },
        });
        let properties = ConnectProperties {
            session_expiry: Some(wish.expiry_secs),
            receive_maximum: NonZeroU16::new(wish.receive_maximum),
            topic_alias_maximum: Some(wish.topic_alias_maximum),
            ..ConnectProperties::default()
        };
        let connect = Connect {
            version: self.version,
            is_bridge: false,
            clean_start: wish.clean_start,
            keep_alive: wish.keep_alive,
            client_id: &id,
            will,
            username: None,
            password: None,
            properties: if is_v5 {
                properties
            } else {
                ConnectProperties::default()
            },
        };
        write(&Packet::Connect(connect), self.version, &mut link.output);
        if wish.clean_start {
            self.forget();
        }
        self.phase = Phase::Connecting;
        self.connections += 1;
        self.is_dismissed = false;
        self.aliases.clear();
        self.unreleased.clear();
        self.requests.clear();
        self.link = Some(link);
        self.wish = Some(wish);
        Event::Connecting {
            client: self.number,
            clean_start: wish.clean_start,
            expiry_secs: wish.expiry_secs,
            will: wish.will,
        }
    }

    /// A message, if the window has room.
    pub(super) fn publish(&mut self, message: Message) -> Option<Event> {
        if self.phase != Phase::Connected || self.outgoing.len() >= INFLIGHT_MAX {
            return None;
        }
        let packet_id = (message.qos != QoS::AtMostOnce).then(|| self.next_packet_id());
        if let Some(packet_id) = packet_id {
            self.outgoing.push_back(Flight {
                packet_id,
                message,
                is_released: false,
            });
        }
        self.write_publish(&message, packet_id, false);
        Some(Event::Sent {
            client: self.number,
            message,
        })
    }

    pub(super) fn subscribe(&mut self, filter: &'static str, qos: QoS) -> Option<Event> {
        if self.phase != Phase::Connected {
            return None;
        }
        let packet_id = self.next_packet_id();
        let options = SubscriptionOptions {
            qos,
            ..SubscriptionOptions::default()
        };
        let requests = [SubscriptionRequest {
            filter: TopicFilter::parse(filter).unwrap(),
            options,
        }];
        self.write(&Packet::Subscribe(Subscribe {
            packet_id,
            properties: SubscribeProperties::default(),
            requests: SubscriptionRequests::Listed(&requests),
        }));
        self.requests.insert(packet_id, Request::Subscribe(filter));
        Some(Event::Subscribing {
            client: self.number,
            filter,
            qos,
        })
    }

    pub(super) fn unsubscribe(&mut self, filter: &'static str) -> Option<Event> {
        if self.phase != Phase::Connected {
            return None;
        }
        let packet_id = self.next_packet_id();
        let filters = [TopicFilter::parse(filter).unwrap()];
        self.write(&Packet::Unsubscribe(Unsubscribe {
            packet_id,
            user: UserProperties::default(),
            filters: TopicFilters::Listed(&filters),
        }));
        self.requests
            .insert(packet_id, Request::Unsubscribe(filter));
        Some(Event::Unsubscribing {
            client: self.number,
            filter,
        })
    }

    pub(super) fn ping(&mut self) {
        if self.phase == Phase::Connected {
            self.write(&Packet::PingReq);
        }
    }

    pub(super) fn goodbye(&mut self, with_will: bool, expiry_secs: Option<u32>) {
        let reason = if with_will {
            ReasonCode::DisconnectWithWill
        } else {
            ReasonCode::Success
        };
        self.write(&Packet::Disconnect(Disconnect {
            reason,
            properties: DisconnectProperties {
                session_expiry: expiry_secs,
                ..DisconnectProperties::default()
            },
        }));
    }

    /// The connection is over for the client.
    pub(super) fn connection_over(&mut self) -> Option<Link> {
        let ends = self.wish.is_some_and(|wish| wish.expiry_secs == 0);
        if ends && self.phase == Phase::Connected {
            self.forget();
        }
        self.phase = Phase::Away;
        self.link.take()
    }

    /// Handles what has arrived.
    pub(super) fn handle_arrived(&mut self, events: &mut Vec<Event>) -> Result<(), String> {
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
    ) -> Result<(), String> {
        match (self.phase, packet) {
            (Phase::Connecting, Packet::ConnAck(ack)) => self.connected(ack, out, events),
            (_, Packet::Disconnect(_)) => {
                self.is_dismissed = true;
                Ok(())
            }
            (Phase::Connected, Packet::Publish(publish)) => self.received(publish, out, events),
            (Phase::Connected, Packet::PubAck(ack)) => {
                let at = self.flight(ack.packet_id, QoS::AtLeastOnce)?;
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
            (phase, packet) => Err(format!("a packet out of place ({phase:?}): {packet:?}")),
        }
    }

    fn connected(
        &mut self,
        ack: &ConnAck<'_>,
        out: &mut Vec<u8>,
        events: &mut Vec<Event>,
    ) -> Result<(), String> {
        if ack.reason != ReasonCode::Success {
            self.is_dismissed = true;
            events.push(Event::Refused {
                client: self.number,
                reason: ack.reason,
            });
            return Ok(());
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
        Ok(())
    }

    fn received(
        &mut self,
        publish: &Publish<'_>,
        out: &mut Vec<u8>,
        events: &mut Vec<Event>,
    ) -> Result<(), String> {
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
        let window = self.wish.map_or(0, |wish| wish.receive_maximum);
        if window > 0 && self.unreleased.len() > usize::from(window) {
            return Err(format!(
                "more than the receive maximum {window}: {publish:?}"
            ));
        }
        let Some((number, padding)) = publish.payload.split_first_chunk() else {
            // What removes a retained message has no number.
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
    ) -> Result<(), String> {
        let at = self.flight(ack.packet_id, QoS::ExactlyOnce)?;
        let flight = self.outgoing[at];
        if flight.is_released {
            return Err(format!("a second PUBREC: {ack:?}"));
        }
        events.push(self.accepted(&flight, ack.reason));
        if ack.reason.is_error() {
            self.outgoing.remove(at);
        } else {
            self.outgoing[at].is_released = true;
            write(&Packet::PubRel(success(ack.packet_id)), self.version, out);
        }
        Ok(())
    }

    fn answered(&mut self, ack: &SubAck<'_>, events: &mut Vec<Event>) -> Result<(), String> {
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
            None => Err(format!("an answer to nothing: {ack:?}")),
        }
    }

    fn accepted(&self, flight: &Flight, outcome: ReasonCode) -> Event {
        Event::Accepted {
            client: self.number,
            number: flight.message.number,
            outcome,
        }
    }

    fn flight(&self, packet_id: PacketId, qos: QoS) -> Result<usize, String> {
        let is_it = |flight: &Flight| flight.packet_id == packet_id && flight.message.qos == qos;
        let at = self.outgoing.iter().position(is_it);
        at.ok_or_else(|| format!("an acknowledgement of nothing with {qos:?}: {packet_id:?}"))
    }

    fn resolve(&mut self, publish: &Publish<'_>) -> Result<&'static str, String> {
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

    /// The session is gone, and what was under way with it.
    fn forget(&mut self) {
        self.outgoing.clear();
        self.incoming.clear();
    }

    fn next_packet_id(&mut self) -> PacketId {
        loop {
            self.last_packet_id = self.last_packet_id.wrapping_add(1);
            let is_used = |id: PacketId| {
                self.requests.contains_key(&id)
                    || self.outgoing.iter().any(|flight| flight.packet_id == id)
            };
            if let Some(id) = PacketId::new(self.last_packet_id)
                && !is_used(id)
            {
                return id;
            }
        }
    }

    fn write(&mut self, packet: &Packet<'_>) {
        if let Some(link) = &mut self.link {
            write(packet, self.version, &mut link.output);
        }
    }

    fn write_publish(&mut self, message: &Message, packet_id: Option<PacketId>, dup: bool) {
        if let Some(link) = &mut self.link {
            write_publish(message, packet_id, dup, self.version, &mut link.output);
        }
    }
}

fn write(packet: &Packet<'_>, version: Version, out: &mut Vec<u8>) {
    encode(packet, version, out).unwrap();
}

fn write_publish(
    message: &Message,
    packet_id: Option<PacketId>,
    dup: bool,
    version: Version,
    out: &mut Vec<u8>,
) {
    let payload = if message.is_empty {
        Vec::new()
    } else {
        let filler = message.number.to_be_bytes()[3];
        [
            &message.number.to_be_bytes()[..],
            &vec![filler; padding_bytes(message.number)],
        ]
        .concat()
    };
    let is_v5 = version == Version::V5;
    let publish = Publish {
        dup,
        qos: message.qos,
        retain: message.retain,
        topic: message.topic,
        packet_id,
        properties: PublishProperties {
            message_expiry: message.expiry_secs.filter(|_| is_v5),
            ..PublishProperties::default()
        },
        payload: &payload,
    };
    write(&Packet::Publish(publish), version, out);
}

fn padding_bytes(number: u32) -> usize {
    if number.is_multiple_of(LARGE_EVERY) {
        LARGE_BYTES
    } else {
        0
    }
}

fn is_padding(number: u32, padding: &[u8]) -> bool {
    let filler = number.to_be_bytes()[3];
    padding.len() == padding_bytes(number) && padding.iter().all(|byte| *byte == filler)
}

fn success<'a>(packet_id: PacketId) -> Ack<'a> {
    Ack {
        packet_id,
        reason: ReasonCode::Success,
        properties: AckProperties::default(),
    }
}
