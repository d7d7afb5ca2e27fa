//! A client that conforms to MQTT and never loses its session state, whatever happens to its
//! connections.

mod arrivals;
mod old_connection;
mod packets;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::num::NonZeroU16;

use thrum_codec::packet::{
    Connect, Disconnect, Packet, Subscribe, SubscriptionOptions, SubscriptionRequest,
    SubscriptionRequests, TopicFilters, Unsubscribe, Will,
};
use thrum_codec::properties::{
    ConnectProperties, DisconnectProperties, SubscribeProperties, UserProperties, WillProperties,
};
use thrum_codec::{PacketId, QoS, ReasonCode, TopicFilter, Version};

pub(super) use old_connection::{LateAck, OldConnection};
pub(super) use packets::is_large;
use packets::{write, write_publish};

use super::history::{ClientNumber, Event, Message, MessageNumber, SentWill, WILLS};
use super::link::Link;

/// Most inflight messages of a client with QoS 1 and 2.
const INFLIGHT_MAX: usize = 8;

/// The contents of a CONNECT.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectOptions {
    pub(super) clean_start: bool,
    pub(super) expiry_secs: u32,
    pub(super) keep_alive: u16,
    pub(super) receive_maximum: u16,
    pub(super) topic_alias_maximum: u16,
    pub(super) will: Option<SentWill>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Disconnected,
    Connecting,
    Connected,
}

/// One client: its session state, and its connection if it has one.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) number: ClientNumber,
    pub(super) version: Version,
    /// The user name of its login.
    pub(super) username: Option<String>,
    pub(super) link: Option<Link>,
    pub(super) phase: Phase,
    /// CONNECT packets so far.
    pub(super) connections: u32,
    /// Options of the last CONNECT.
    pub(super) options: Option<ConnectOptions>,
    /// The node has sent DISCONNECT or an error in CONNACK.
    pub(super) is_disconnected_by_node: bool,
    last_packet_id: u16,
    outgoing: VecDeque<InflightMessage>,
    incoming: BTreeSet<PacketId>,
    /// Those that arrived on this connection.
    unreleased: BTreeSet<PacketId>,
    requests: BTreeMap<PacketId, Request>,
    aliases: BTreeMap<NonZeroU16, &'static str>,
}

#[derive(Clone, Copy, Debug)]
struct InflightMessage {
    packet_id: PacketId,
    message: Message,
    /// PUBREC has arrived.
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
            username: None,
            link: None,
            phase: Phase::Disconnected,
            connections: 0,
            options: None,
            is_disconnected_by_node: false,
            last_packet_id: 0,
            outgoing: VecDeque::new(),
            incoming: BTreeSet::new(),
            unreleased: BTreeSet::new(),
            requests: BTreeMap::new(),
            aliases: BTreeMap::new(),
        }
    }

    /// CONNECT on a new connection.
    pub(super) fn connect(&mut self, mut link: Link, options: ConnectOptions) -> Event {
        let is_v5 = self.version == Version::V5;
        let id = format!("c{}", self.number);
        let payload = options.will.map(|note| note.number.to_be_bytes());
        let will = options.will.as_ref().zip(payload.as_ref());
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
            session_expiry: Some(options.expiry_secs),
            receive_maximum: NonZeroU16::new(options.receive_maximum),
            topic_alias_maximum: Some(options.topic_alias_maximum),
            ..ConnectProperties::default()
        };
        let connect = Connect {
            version: self.version,
            is_bridge: false,
            clean_start: options.clean_start,
            keep_alive: options.keep_alive,
            client_id: &id,
            will,
            username: self.username.as_deref(),
            password: None,
            properties: if is_v5 {
                properties
            } else {
                ConnectProperties::default()
            },
        };
        write(&Packet::Connect(connect), self.version, &mut link.output);
        if options.clean_start {
            self.forget();
        }
        self.phase = Phase::Connecting;
        self.connections += 1;
        self.is_disconnected_by_node = false;
        self.aliases.clear();
        self.unreleased.clear();
        self.requests.clear();
        self.link = Some(link);
        self.options = Some(options);
        Event::Connecting {
            client: self.number,
            clean_start: options.clean_start,
            expiry_secs: options.expiry_secs,
            will: options.will,
        }
    }

    /// A message, if the window has room.
    pub(super) fn publish(&mut self, message: Message) -> Option<Event> {
        if self.phase != Phase::Connected || self.outgoing.len() >= INFLIGHT_MAX {
            return None;
        }
        let packet_id = (message.qos != QoS::AtMostOnce).then(|| self.next_packet_id());
        if let Some(packet_id) = packet_id {
            self.outgoing.push_back(InflightMessage {
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

    /// A message that has not been answered, on a connection that was accepted.
    pub(super) fn unanswered(&self) -> Option<MessageNumber> {
        let waits = |flight: &&InflightMessage| !flight.is_released;
        let first = self.outgoing.iter().find(waits)?;
        (self.phase == Phase::Connected).then_some(first.message.number)
    }

    pub(super) fn ping(&mut self) {
        if self.phase == Phase::Connected {
            self.write(&Packet::PingReq);
        }
    }

    pub(super) fn disconnect(&mut self, with_will: bool, expiry_secs: Option<u32>) {
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

    /// Ends the connection for the client.
    pub(super) fn connection_over(&mut self) -> Option<Link> {
        let ends = self.options.is_some_and(|options| options.expiry_secs == 0);
        if ends && self.phase == Phase::Connected {
            self.forget();
        }
        self.phase = Phase::Disconnected;
        self.link.take()
    }

    /// Discards the session state.
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
