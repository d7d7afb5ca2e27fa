//! A broker of a hundred lines that breaks its promises by a known law.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroU16;
use std::sync::{Arc, Mutex};

use thrum_bench::mark::Mark;
use thrum_codec::packet::{Ack, ConnAck, Packet, PacketId, Publish, ReasonCodes, SubAck};
use thrum_codec::properties::{AckProperties, ConnAckProperties};
use thrum_codec::{QoS, ReasonCode, TopicFilter, Version, decode, encode, frame};

/// What the broker does with a message, by its sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Deliver,
    Lose,
    /// Deliver it twice; to two members of a shared group.
    Double,
    /// Deliver it after the next one of the same publisher.
    Delay,
}

/// The law: the fate of a message.
pub(crate) type Law = fn(Mark) -> Fate;

/// A running broker. Its threads end with the test's process.
pub(crate) struct FakeBroker {
    pub(crate) address: SocketAddr,
}

#[derive(Default)]
struct State {
    /// By filter without share prefix: the members, and whether each of them gets every message.
    subscriptions: HashMap<String, (Vec<TcpStream>, bool)>,
    /// By publisher: the message that waits for the next one.
    delayed: HashMap<u32, Vec<u8>>,
    next_member: usize,
}

impl FakeBroker {
    /// Listens on a free port of the loopback; refuses every client if `connack` is an error.
    pub(crate) fn start(connack: ReasonCode, law: Law) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State::default()));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&state);
                std::thread::spawn(move || serve(stream, connack, law, &state));
            }
        });
        Self { address }
    }
}

fn serve(mut stream: TcpStream, connack: ReasonCode, law: Law, state: &Mutex<State>) -> Option<()> {
    let (mut bytes, mut buffer, mut version) = (Vec::new(), [0; 4096], Version::V5);
    loop {
        let read = stream.read(&mut buffer).ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&buffer[..read]);
        let mut handled = 0;
        while let Some(frame) = frame::split(&bytes[handled..], u32::MAX).unwrap() {
            handled += frame.len;
            let packet = decode(frame, version).unwrap();
            if let Packet::Connect(connect) = packet {
                version = connect.version;
            }
            if let Some(answer) = handle(&packet, version, connack, law, (state, &stream)) {
                stream.write_all(&answer).ok()?;
            }
        }
        bytes.drain(..handled);
    }
}

fn handle(
    packet: &Packet<'_>,
    version: Version,
    connack: ReasonCode,
    law: Law,
    (state, stream): (&Mutex<State>, &TcpStream),
) -> Option<Vec<u8>> {
    let answer = match packet {
        Packet::Connect(_) => Packet::ConnAck(ConnAck {
            session_present: false,
            reason: connack,
            properties: ConnAckProperties::default(),
        }),
        Packet::Subscribe(subscribe) => {
            let mut codes = Vec::new();
            for request in &subscribe.requests {
                add(&mut state.lock().unwrap(), request.filter, stream);
                codes.push(ReasonCode::GrantedQoS1);
            }
            let codes = ReasonCodes::Listed(&codes);
            let properties = AckProperties::default();
            let ack = SubAck {
                packet_id: subscribe.packet_id,
                properties,
                codes,
            };
            return Some(bytes_of(&Packet::SubAck(ack), version));
        }
        Packet::Publish(publish) => {
            route(&mut state.lock().unwrap(), publish, law, version);
            Packet::PubAck(Ack {
                packet_id: publish.packet_id?,
                reason: ReasonCode::Success,
                properties: AckProperties::default(),
            })
        }
        Packet::PingReq => Packet::PingResp,
        _ => return None,
    };
    Some(bytes_of(&answer, version))
}

fn add(state: &mut State, filter: TopicFilter<'_>, stream: &TcpStream) {
    let is_shared = filter.shared().is_some();
    let entry = state.subscriptions.entry(filter.matched_part().to_owned());
    let (members, each) = entry.or_default();
    *each = !is_shared;
    members.push(stream.try_clone().unwrap());
}

fn route(state: &mut State, publish: &Publish<'_>, law: Law, version: Version) {
    let mark = Mark::read(publish.payload).unwrap();
    let packet_id =
        PacketId(NonZeroU16::new(1 + u16::try_from(mark.sequence % 60_000).unwrap()).unwrap());
    let forwarded = Publish {
        packet_id: Some(packet_id),
        qos: QoS::AtLeastOnce,
        ..*publish
    };
    let message = bytes_of(&Packet::Publish(forwarded), version);
    let fate = law(mark);
    if fate == Fate::Delay {
        state.delayed.insert(mark.publisher, message);
        return;
    }
    let State {
        subscriptions,
        delayed,
        next_member,
    } = state;
    let fitting = subscriptions
        .iter_mut()
        .find(|(filter, _)| thrum_codec::topic::matches(filter, publish.topic));
    let Some((_, (members, each))) = fitting else {
        return;
    };
    let mut send = |message: &[u8]| {
        *next_member += 1;
        let count = members.len();
        let chosen = if *each {
            0..count
        } else {
            *next_member % count..*next_member % count + 1
        };
        for member in &mut members[chosen] {
            member.write_all(message).unwrap();
        }
    };
    match fate {
        Fate::Deliver => send(&message),
        Fate::Double => {
            send(&message);
            send(&message);
        }
        Fate::Lose | Fate::Delay => {}
    }
    if let Some(late) = delayed.remove(&mark.publisher) {
        send(&late);
    }
}

fn bytes_of(packet: &Packet<'_>, version: Version) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(packet, version, &mut bytes).unwrap();
    bytes
}
