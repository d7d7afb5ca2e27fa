//! The actions of a client: connect, resume its session, publish, subscribe, leave.

use thrum_conformance::Version;
use thrum_conformance::packets::{self, DISCONNECT, ack, first, subscribe, unsubscribe};

use super::link::Link;
use super::session::{Filter, Outgoing, Request};
use super::{Client, Stage, Surroundings};
use crate::checker::FENCE;
use crate::event::{ClientEvent, Connect, Disconnect, Millis, Publish, Will};
use crate::payload::{self, payload};

/// Property identifiers.
const SESSION_EXPIRY: u8 = 0x11;
const WILL_DELAY: u8 = 0x18;
const RECEIVE_MAXIMUM: u8 = 0x21;
/// Payloads of most messages are below this, the others have 4 KiB.
const SMALL_MAX: u64 = 300;
const LARGE: usize = 4096;

impl Client {
    /// Connects, over an open connection if there is one.
    pub(super) fn connect(&mut self, clean: bool, around: &mut Surroundings<'_>) {
        let Some(link) = Link::open(around.address) else {
            return;
        };
        // Before 5.0 a clean session ends with its connection.
        let is_lasting = !clean || self.role.version == Version::V5;
        let expiry_secs = if is_lasting { self.role.expiry_secs } else { 0 };
        let will = self.new_will(around);
        let connect = self.connect_packet(clean, expiry_secs, will.as_ref());
        if clean {
            self.session.must_be_clean = true;
            self.session.forget();
        }
        self.session.requests.clear();
        self.held.clear();
        let event = Connect {
            clean,
            expiry_secs,
            will,
        };
        self.note(around, ClientEvent::Connecting(event));
        self.taken = self.link.replace(link);
        self.stage = Stage::Opening;
        self.send(&connect.bytes());
    }

    fn connect_packet(
        &self,
        clean: bool,
        expiry_secs: u32,
        will: Option<&Will>,
    ) -> packets::Connect {
        let mut connect = packets::Connect::new(self.role.version).client_id(&self.role.name);
        connect.clean = clean;
        if self.role.version == Version::V5 {
            connect = connect.properties(&four_bytes(SESSION_EXPIRY, expiry_secs));
            if let Some([high, low]) =
                (self.role.receive_maximum > 0).then(|| self.role.receive_maximum.to_be_bytes())
            {
                connect = connect.properties(&[RECEIVE_MAXIMUM, high, low]);
            }
        }
        let Some(will) = will else {
            return connect;
        };
        let mut packet = packets::Will::new(&will.publish.topic);
        packet.qos = will.publish.qos;
        packet.retain = will.publish.retain;
        packet.payload = payload(will.number, payload::BYTES_MIN);
        if self.role.version == Version::V5 {
            let seconds = u32::try_from(will.delay / 1_000).unwrap_or(u32::MAX);
            packet.properties = four_bytes(WILL_DELAY, seconds);
        }
        connect.will(packet)
    }

    fn new_will(&self, around: &mut Surroundings<'_>) -> Option<Will> {
        let role = self.role.will?;
        Some(Will {
            number: around.journal.next_number(),
            publish: Publish {
                topic: format!("will/{}", self.role.name),
                qos: role.qos,
                retain: role.retain,
                is_empty: false,
            },
            delay: Millis::from(role.delay_secs) * 1_000,
        })
    }

    /// Handles CONNACK: resumes unfinished exchanges.
    pub(super) fn take_up(&mut self, around: &mut Surroundings<'_>) {
        for sent in self.session.outgoing.clone() {
            if sent.is_released {
                self.send(&ack(first::PUBREL, sent.id));
            } else {
                self.send_publish(&sent, true, around);
            }
        }
        self.ask_for_filters(around);
    }

    /// Sends SUBSCRIBE and UNSUBSCRIBE for what the broker does not know yet.
    pub(super) fn ask_for_filters(&mut self, around: &mut Surroundings<'_>) {
        let is_open = |(name, filter): (&String, &Filter)| {
            let asked = |request: &Request| {
                let (Request::Subscribe(asked) | Request::Unsubscribe(asked)) = request;
                asked == name
            };
            let is_asked = self.session.requests.values().any(asked);
            (!filter.is_settled && !is_asked).then(|| (name.clone(), filter.clone()))
        };
        let open: Vec<_> = self.session.filters.iter().filter_map(is_open).collect();
        for (name, filter) in open {
            if filter.is_wanted {
                self.subscribe(&name, filter.qos, around);
            } else {
                self.unsubscribe(&name, around);
            }
        }
    }

    fn subscribe(&mut self, name: &str, qos: u8, around: &mut Surroundings<'_>) {
        let Some(id) = self.free_id() else {
            return;
        };
        self.note(around, ClientEvent::Subscribing(name.to_owned(), qos));
        self.session
            .requests
            .insert(id, Request::Subscribe(name.to_owned()));
        self.send(&subscribe(self.role.version, id, &[(name, qos)]));
    }

    fn unsubscribe(&mut self, name: &str, around: &mut Surroundings<'_>) {
        let Some(id) = self.free_id() else {
            return;
        };
        self.note(around, ClientEvent::Unsubscribing(name.to_owned()));
        self.session
            .requests
            .insert(id, Request::Unsubscribe(name.to_owned()));
        self.send(&unsubscribe(self.role.version, id, &[name]));
    }

    /// Subscribes to an unused topic: its SUBACK makes all earlier actions certain.
    pub(super) fn fence(&mut self, around: &mut Surroundings<'_>) {
        let name = format!("{FENCE}{}", self.role.name);
        let is_asked = self
            .session
            .requests
            .values()
            .any(|request| *request == Request::Subscribe(name.clone()));
        if !is_asked && self.held.is_empty() {
            self.subscribe(&name, 0, around);
        }
    }

    /// Subscribes to its fickle filter, or unsubscribes.
    pub(super) fn change_mind(&mut self, around: &mut Surroundings<'_>) {
        let Some((name, qos)) = self.role.fickle.clone() else {
            return;
        };
        let filter = self.session.filters.entry(name).or_insert(Filter {
            qos,
            is_wanted: false,
            is_settled: true,
        });
        if filter.is_settled {
            filter.is_wanted = !filter.is_wanted;
            filter.is_settled = false;
            self.ask_for_filters(around);
        }
    }

    /// Publishes a message if its window has room.
    pub(super) fn publish_one(&mut self, around: &mut Surroundings<'_>) {
        let Some(publishes) = self.role.publishes.clone() else {
            return;
        };
        if self.session.outgoing.len() >= publishes.window {
            return;
        }
        let Some(id) = self.free_id() else {
            return;
        };
        let topic_count = u64::try_from(publishes.topics.len()).unwrap_or(1);
        let topic = usize::try_from(around.random.below(topic_count)).unwrap_or(0);
        let is_empty = publishes.retain && around.random.permille(100);
        let is_large = around.random.permille(200);
        let small = usize::try_from(around.random.below(SMALL_MAX)).unwrap_or(0);
        let sent = Outgoing {
            id,
            number: around.journal.next_number(),
            publish: Publish {
                topic: publishes.topics[topic].clone(),
                qos: around.random.pick(&publishes.qos),
                retain: publishes.retain,
                is_empty,
            },
            payload_bytes: if is_large { LARGE } else { small },
            is_released: false,
        };
        self.send_publish(&sent, false, around);
        if sent.publish.qos > 0 {
            self.session.outgoing.push(sent);
        }
    }

    fn send_publish(&mut self, sent: &Outgoing, dup: bool, around: &mut Surroundings<'_>) {
        let event = ClientEvent::Publishing(sent.number, sent.publish.clone());
        self.note(around, event);
        let payload = if sent.publish.is_empty {
            Vec::new()
        } else {
            payload(sent.number, sent.payload_bytes)
        };
        let Publish {
            topic, qos, retain, ..
        } = &sent.publish;
        let mut packet =
            packets::Publish::new(self.role.version, topic, *qos, &payload).packet_id(sent.id);
        if self.role.version == Version::V5 && !sent.publish.is_empty {
            let label = thrum_conformance::bytes::user_property("number", &sent.number.to_string());
            packet = packet.properties(&label);
        }
        if *retain {
            packet = packet.retain();
        }
        if dup {
            packet = packet.dup();
        }
        self.send(&packet.bytes());
    }

    /// Sends DISCONNECT and waits for the broker to close.
    pub(super) fn disconnect(&mut self, disconnect: Disconnect, around: &mut Surroundings<'_>) {
        self.note(around, ClientEvent::Disconnecting(disconnect));
        let bytes = self.disconnect_bytes(disconnect);
        self.send(&bytes);
        if let Some(link) = &mut self.link {
            link.finish();
        }
        self.stage = Stage::Leaving;
        if disconnect.ends_session {
            self.session.forget();
            // A broker that forgets the end would take a new message for an old one.
            self.session.must_be_clean = self.role.publishes.is_some();
        }
    }

    fn disconnect_bytes(&self, disconnect: Disconnect) -> Vec<u8> {
        if self.role.version != Version::V5 {
            return DISCONNECT.to_vec();
        }
        let reason = if disconnect.with_will { 0x04 } else { 0x00 };
        let expiry = if disconnect.ends_session {
            four_bytes(SESSION_EXPIRY, 0)
        } else {
            Vec::new()
        };
        let length = u8::try_from(expiry.len()).unwrap_or(0);
        let mut bytes = vec![first::DISCONNECT, length + 2, reason, length];
        bytes.extend(expiry);
        bytes
    }

    /// Closes without DISCONNECT.
    pub(super) fn vanish(&mut self, around: &mut Surroundings<'_>) {
        self.note(around, ClientEvent::Vanished);
        self.go(around);
    }

    /// The connection is over.
    pub(super) fn go(&mut self, around: &mut Surroundings<'_>) {
        self.link = None;
        self.taken = None;
        self.stage = Stage::Away;
        self.held.clear();
        self.returns = around.now + self.role.pause(around.random);
    }

    /// The lowest free identifier, so that they are used again soon.
    fn free_id(&self) -> Option<u16> {
        (1..=u16::MAX).find(|id| self.session.is_id_free(*id))
    }

    /// Whether its session outlives the connection.
    pub(super) fn is_lasting(&self) -> bool {
        self.role.expiry_secs > 0
    }
}

fn four_bytes(identifier: u8, value: u32) -> Vec<u8> {
    let mut bytes = vec![identifier];
    bytes.extend(value.to_be_bytes());
    bytes
}
