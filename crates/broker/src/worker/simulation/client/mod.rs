//! A client that keeps the rules and remembers its session for ever, whatever happens to its
//! connections.

mod arrivals;
mod leaving;
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

pub(super) use leaving::{Answered, Leaving};
pub(super) use packets::is_large;
use packets::{write, write_publish};

use super::history::{ClientNumber, Event, Message, MessageNumber, WILLS, WillNote};
use super::link::Link;

/// Messages with QoS 1 and 2 that a client has under way at most.
const INFLIGHT_MAX: usize = 8;

/// The contents of a CONNECT.
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
    /// The user name of its login.
    pub(super) username: Option<String>,
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
            username: None,
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
            username: self.username.as_deref(),
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

    /// A message that has not been answered, on a connection that was accepted.
    pub(super) fn unanswered(&self) -> Option<MessageNumber> {
        let waits = |flight: &&Flight| !flight.is_released;
        let first = self.outgoing.iter().find(waits)?;
        (self.phase == Phase::Connected).then_some(first.message.number)
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
