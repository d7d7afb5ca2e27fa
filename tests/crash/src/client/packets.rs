//! A client's handling of received packets.

use thrum_conformance::received::Packet;

use super::session::Request;
use super::{Answer, Client, Stage, Surroundings};
use crate::event::{ClientEvent, Delivery, NEVER};
use crate::payload;
use thrum_conformance::packets::{ack, first};

/// Milliseconds before a client asks again for what was refused.
const ASK_PAUSE: u64 = 100;

impl Client {
    pub(super) fn packet(&mut self, packet: &Packet, around: &mut Surroundings<'_>) {
        match (packet.kind(), self.stage) {
            // A client that has sent DISCONNECT neither answers nor learns anything more.
            (_, Stage::Leaving) => {}
            (2, Stage::Opening) => self.connack(packet, around),
            (_, Stage::Opening) => self.nonsense(packet, "before CONNACK", around),
            (3, _) => self.publish(packet, around),
            (4 | 5, _) => self.publish_answered(packet, around),
            (6, _) => {
                let id = packet.ack(self.role.version).packet_id;
                self.note(around, ClientEvent::Released(id));
                self.answer(Answer::Pubcomp(id), around);
            }
            (7, _) => self.pubcomp(packet, around),
            (9 | 11, _) => self.request_answered(packet, around),
            // The end of the connection follows, and is judged then.
            (14, _) if around.journal.checker().is_tolerant() => {}
            _ => self.nonsense(packet, "not expected", around),
        }
    }

    fn connack(&mut self, packet: &Packet, around: &mut Surroundings<'_>) {
        let connack = packet.connack(self.role.version);
        if connack.code != 0 {
            self.note(around, ClientEvent::Rejected(connack.code));
            return self.go(around);
        }
        self.stage = Stage::Up;
        self.taken = None;
        self.note(around, ClientEvent::Connected(connack.session_present));
        let expiry = connack
            .properties
            .number(0x11)
            .unwrap_or(self.role.expiry_secs);
        // 5.0 may shorten it; the longest of the broker is far longer than a run.
        if expiry != self.role.expiry_secs && self.role.expiry_secs != NEVER {
            self.nonsense(packet, "another session expiry", around);
        }
        self.session.must_be_clean = false;
        if !connack.session_present {
            self.session.forget();
        }
        self.take_up(around);
    }

    fn publish(&mut self, packet: &Packet, around: &mut Surroundings<'_>) {
        let publish = packet.publish(self.role.version);
        let number = payload::number_of(&publish.payload);
        if number.is_none() && !publish.payload.is_empty() {
            return self.nonsense(packet, "a payload that was never sent", around);
        }
        let label = publish
            .properties
            .user()
            .into_iter()
            .find(|(key, _)| key == "number");
        if label.is_some_and(|(_, value)| Some(value) != number.map(|number| number.to_string())) {
            return self.nonsense(packet, "the property of another message", around);
        }
        let delivery = Delivery {
            number,
            topic: publish.topic,
            qos: publish.qos,
            retain: publish.retain,
            dup: publish.dup,
            packet_id: publish.packet_id,
        };
        self.note(around, ClientEvent::Received(delivery));
        match publish.qos {
            1 => self.answer(Answer::Puback(publish.packet_id), around),
            2 => self.answer(Answer::Pubrec(publish.packet_id), around),
            _ => {}
        }
    }

    fn publish_answered(&mut self, packet: &Packet, around: &mut Surroundings<'_>) {
        let answer = packet.ack(self.role.version);
        let code = answer.codes.first().copied().unwrap_or(0);
        let qos = packet.kind() - 3;
        let sent = self.session.outgoing.iter().position(|sent| {
            sent.id == answer.packet_id && sent.publish.qos == qos && !sent.is_released
        });
        let Some(index) = sent else {
            return self.nonsense(packet, "an answer to nothing", around);
        };
        let number = self.session.outgoing[index].number;
        if code >= 0x80 {
            self.session.outgoing.remove(index);
            return self.note(around, ClientEvent::Refused(number, code));
        }
        self.note(around, ClientEvent::Accepted(number));
        if qos == 1 {
            self.session.outgoing.remove(index);
        } else {
            self.session.outgoing[index].is_released = true;
            self.send(&ack(first::PUBREL, answer.packet_id));
        }
    }

    fn pubcomp(&mut self, packet: &Packet, around: &mut Surroundings<'_>) {
        let id = packet.ack(self.role.version).packet_id;
        let is_it = |sent: &super::session::Outgoing| sent.id == id && sent.is_released;
        match self.session.outgoing.iter().position(is_it) {
            Some(index) => drop(self.session.outgoing.remove(index)),
            None => self.nonsense(packet, "an answer to nothing", around),
        }
    }

    fn request_answered(&mut self, packet: &Packet, around: &mut Surroundings<'_>) {
        let answer = packet.ack(self.role.version);
        let refused = answer.codes.iter().any(|code| *code >= 0x80);
        let request = self.session.requests.remove(&answer.packet_id);
        let (name, event) = match (packet.kind(), request) {
            (9, Some(Request::Subscribe(name))) if refused => {
                self.next_ask = around.now + ASK_PAUSE;
                let code = answer.codes.first().copied().unwrap_or(0);
                return self.note(around, ClientEvent::NotSubscribed(name, code));
            }
            _ if refused => return self.nonsense(packet, "refused", around),
            (9, Some(Request::Subscribe(name))) => (name.clone(), ClientEvent::Subscribed(name)),
            (11, Some(Request::Unsubscribe(name))) => {
                (name.clone(), ClientEvent::Unsubscribed(name))
            }
            _ => return self.nonsense(packet, "an answer to nothing", around),
        };
        let is_wanted = packet.kind() == 9;
        self.note(around, event);
        if let Some(filter) = self.session.filters.get_mut(&name) {
            filter.is_settled |= filter.is_wanted == is_wanted;
        }
    }

    fn answer(&mut self, answer: Answer, around: &mut Surroundings<'_>) {
        let earliest = around.now + around.random.below(self.role.answer_max + 1);
        // Answers keep their order.
        let at = self
            .held
            .back()
            .map_or(earliest, |(last, _)| earliest.max(*last));
        self.held.push_back((at, answer));
        self.answer_due(around);
    }

    /// Sends the answers that are due.
    pub(super) fn answer_due(&mut self, around: &mut Surroundings<'_>) {
        while let Some((_, answer)) = self.held.pop_front_if(|(at, _)| *at <= around.now) {
            let packet = match answer {
                Answer::Puback(id) => {
                    self.note(around, ClientEvent::Acknowledged(id));
                    ack(first::PUBACK, id)
                }
                Answer::Pubrec(id) => {
                    self.note(around, ClientEvent::Recorded(id));
                    ack(first::PUBREC, id)
                }
                Answer::Pubcomp(id) => ack(first::PUBCOMP, id),
            };
            self.send(&packet);
        }
    }

    fn nonsense(&self, packet: &Packet, why: &str, around: &mut Surroundings<'_>) {
        self.note(around, ClientEvent::Nonsense(format!("{packet:?}: {why}")));
    }
}
