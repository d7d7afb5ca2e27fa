//! From bytes to packets to what the relay does about them.

use std::sync::Arc;

use thrum_codec::frame::{self, Frame};
use thrum_codec::packet::{Packet, Subscribe, Unsubscribe};
use thrum_codec::{QoS, Version, decode};

use super::answer::{self, PINGRESP, PUBACK, PUBCOMP, PUBREC, PUBREL};
use super::message::Message;
use super::route::{Route, Target};
use super::worker::{End, Worker};

/// Longest packet: as much as may wait for a receiver.
const PACKET_BYTES_MAX: u32 = 8 * 1024 * 1024;

impl Worker {
    /// Handles all whole packets; returns how many bytes they are.
    pub(super) fn handle(&mut self, key: usize, bytes: &[u8]) -> Result<usize, End> {
        self.see_changes();
        let client = self.number_of(key);
        let mut at = 0;
        while let Some(frame) =
            frame::split(&bytes[at..], PACKET_BYTES_MAX).map_err(|_| End::Malformed)?
        {
            let Some(version) = self.clients[key].version else {
                let version = answer::accept(frame, self.outputs.answers(client));
                self.clients[key].version = Some(version.ok_or(End::Malformed)?);
                at += frame.len;
                continue;
            };
            if frame.first >> 4 == 3 {
                let message = Message::parse(frame, &bytes[at..at + frame.len], version);
                self.publish(client, &message.ok_or(End::Malformed)?);
            } else {
                self.handle_other(key, frame, version)?;
            }
            at += frame.len;
        }
        Ok(at)
    }

    /// Acknowledges a message and gives it to its receivers.
    #[inline]
    fn publish(&mut self, client: u32, message: &Message<'_>) {
        let first = match message.qos {
            QoS::AtMostOnce => None,
            QoS::AtLeastOnce => Some(PUBACK),
            QoS::ExactlyOnce => Some(PUBREC),
        };
        if let Some(first) = first {
            let ack = answer::ack(first, message.packet_id());
            self.outputs.answers(client).extend_from_slice(&ack);
        }
        let Self {
            routes,
            outputs,
            forms,
            totals,
            ..
        } = self;
        totals.messages_in += 1;
        forms.clear();
        routes.visit(message.number, |target| {
            let is_taken = forms
                .of(message, target)
                .is_some_and(|form| outputs.relay(target.client, form, totals));
            if is_taken {
                totals.messages_out += 1;
            } else {
                totals.dropped += 1;
            }
        });
    }

    /// Any packet but PUBLISH.
    #[inline]
    fn handle_other(&mut self, key: usize, frame: Frame<'_>, version: Version) -> Result<(), End> {
        let client = self.number_of(key);
        match frame.first >> 4 {
            4 | 7 => self.totals.acknowledged += 1,
            5 => {
                self.totals.acknowledged += 1;
                self.acknowledge(client, PUBREL, frame)?;
            }
            6 => self.acknowledge(client, PUBCOMP, frame)?,
            12 => self.outputs.answers(client).extend_from_slice(&PINGRESP),
            _ => match decode(frame, version).map_err(|_| End::Malformed)? {
                Packet::Subscribe(subscribe) => self.grant(key, &subscribe, version),
                Packet::Unsubscribe(unsubscribe) => self.release(key, &unsubscribe, version),
                Packet::Disconnect(_) => return Err(End::Left),
                _ => return Err(End::Malformed),
            },
        }
        Ok(())
    }

    #[inline]
    fn acknowledge(&mut self, client: u32, first: u8, frame: Frame<'_>) -> Result<(), End> {
        let packet_id = answer::packet_id(frame).ok_or(End::Malformed)?;
        let ack = answer::ack(first, packet_id);
        self.outputs.answers(client).extend_from_slice(&ack);
        Ok(())
    }

    fn grant(&mut self, key: usize, subscribe: &Subscribe<'_>, version: Version) {
        let number = self.number_of(key);
        for request in subscribe.requests {
            let Some(route) = Route::of(request.filter) else {
                continue;
            };
            let client = &mut self.clients[key];
            if !client.routes.contains(&route) {
                client.routes.push(route);
            }
            let target = Target {
                client: number,
                qos: request.options.qos,
                version,
            };
            let socket = Arc::clone(&client.socket);
            self.subscribe(route, target, socket);
        }
        answer::grant(subscribe, version, self.outputs.answers(number));
    }

    fn release(&mut self, key: usize, unsubscribe: &Unsubscribe<'_>, version: Version) {
        let number = self.number_of(key);
        for route in unsubscribe.filters.iter().filter_map(Route::of) {
            self.clients[key].routes.retain(|known| *known != route);
            self.unsubscribe(number, route);
        }
        answer::release(unsubscribe, version, self.outputs.answers(number));
    }
}
