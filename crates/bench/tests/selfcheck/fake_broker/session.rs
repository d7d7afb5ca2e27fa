//! One connection: packets in, answers out.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::Mutex;

use thrum_codec::packet::{
    Ack, ConnAck, Disconnect, Packet, PacketId, Publish, ReasonCodes, SubAck, Subscribe,
};
use thrum_codec::properties::{AckProperties, ConnAckProperties, DisconnectProperties};
use thrum_codec::{QoS, ReasonCode, Version, decode, frame};

use super::Fate;
use super::router::{Router, bytes_of};

struct Session<'a> {
    connection: u64,
    stream: &'a TcpStream,
    router: &'a Mutex<Router>,
    version: Version,
}

/// Serves a client until either side ends the connection.
pub(super) fn serve(connection: u64, stream: &TcpStream, router: &Mutex<Router>) {
    let mut session = Session {
        connection,
        stream,
        router,
        version: Version::V5,
    };
    // None is the end, by either side.
    session.run();
    router.lock().unwrap().remove(connection);
    drop(stream.shutdown(Shutdown::Both));
}

impl Session<'_> {
    fn run(&mut self) -> Option<()> {
        let (mut bytes, mut buffer, mut stream) = (Vec::new(), [0; 4096], self.stream);
        loop {
            let read = stream.read(&mut buffer).ok().filter(|read| *read > 0)?;
            bytes.extend_from_slice(&buffer[..read]);
            let mut handled = 0;
            while let Some(frame) = frame::split(&bytes[handled..], u32::MAX).unwrap() {
                handled += frame.len;
                super::wait_out_stall(self.router);
                let packet = decode(frame, self.version).unwrap();
                self.handle(&packet)?;
            }
            bytes.drain(..handled);
        }
    }

    fn handle(&mut self, packet: &Packet<'_>) -> Option<()> {
        match packet {
            Packet::Connect(connect) => {
                self.version = connect.version;
                let reason = self.router.lock().unwrap().laws.connack;
                self.send(&Packet::ConnAck(ConnAck {
                    session_present: false,
                    reason,
                    properties: ConnAckProperties::default(),
                }))
            }
            Packet::Subscribe(subscribe) => self.subscribe(subscribe),
            Packet::Publish(publish) => self.publish(publish),
            // A message received with quality of service 2 is released; one that was sent is too.
            Packet::PubRel(ack) => self.send(&Packet::PubComp(success(ack.packet_id))),
            Packet::PubRec(ack) => self.send(&Packet::PubRel(success(ack.packet_id))),
            Packet::PingReq => self.send(&Packet::PingResp),
            Packet::Disconnect(_) => None,
            _ => Some(()),
        }
    }

    fn subscribe(&self, subscribe: &Subscribe<'_>) -> Option<()> {
        let mut codes = Vec::new();
        for request in &subscribe.requests {
            let member = (self.connection, self.stream);
            let mut router = self.router.lock().unwrap();
            router.add(&request, self.version, member);
            codes.push(match request.options.qos.min(router.laws.granted) {
                QoS::AtMostOnce => ReasonCode::Success,
                QoS::AtLeastOnce => ReasonCode::GrantedQoS1,
                QoS::ExactlyOnce => ReasonCode::GrantedQoS2,
            });
        }
        self.send(&Packet::SubAck(SubAck {
            packet_id: subscribe.packet_id,
            properties: AckProperties::default(),
            codes: ReasonCodes::Listed(&codes),
        }))
    }

    fn publish(&self, publish: &Publish<'_>) -> Option<()> {
        let fate = self.router.lock().unwrap().publish(publish);
        if fate == Fate::Disconnect {
            if self.version == Version::V5 {
                self.send(&Packet::Disconnect(Disconnect {
                    reason: ReasonCode::AdministrativeAction,
                    properties: DisconnectProperties::default(),
                }))?;
            }
            return None;
        }
        let Some(packet_id) = publish.packet_id else {
            return Some(());
        };
        let ack = success(packet_id);
        self.send(&match publish.qos {
            QoS::ExactlyOnce => Packet::PubRec(ack),
            _ => Packet::PubAck(ack),
        })
    }

    /// Writes under the lock of the router, so that a message is not cut by an answer.
    fn send(&self, packet: &Packet<'_>) -> Option<()> {
        let mut stream = self.stream;
        let _router = self.router.lock().unwrap();
        stream.write_all(&bytes_of(packet, self.version)).ok()
    }
}

fn success<'a>(packet_id: PacketId) -> Ack<'a> {
    Ack {
        packet_id,
        reason: ReasonCode::Success,
        properties: AckProperties::default(),
    }
}
