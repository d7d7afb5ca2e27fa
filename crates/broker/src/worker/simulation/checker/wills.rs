//! Checks that wills are published when they are due and not before, once, and never after a normal
//! DISCONNECT.

use std::collections::BTreeMap;

use thrum_codec::QoS;

use super::super::history::{CLIENTS_MAX, ClientNumber, Event, MessageNumber, Millis};
use super::will::Will;
use super::{Allowances, Violation};

#[derive(Debug, Default)]
pub(super) struct Wills {
    allowances: Allowances,
    by_number: BTreeMap<MessageNumber, Will>,
    connections: [u32; CLIENTS_MAX],
    /// A CONNECT without CONNACK may reach the node after later ones.
    has_late_connect: [bool; CLIENTS_MAX],
    is_confirmed: [bool; CLIENTS_MAX],
    /// The client has sent a message that a full disk refuses; a 3.x client is disconnected for it,
    /// before its DISCONNECT is read.
    may_be_disconnected_by_node: [bool; CLIENTS_MAX],
    restarts: u32,
}

impl Wills {
    pub(super) fn new(allowances: Allowances) -> Self {
        Self {
            allowances,
            ..Self::default()
        }
    }

    pub(super) fn is_will(&self, number: MessageNumber) -> bool {
        self.by_number.contains_key(&number)
    }

    pub(super) fn observe(&mut self, at: Millis, event: &Event) -> Result<(), Violation> {
        match *event {
            Event::Connecting {
                client,
                clean_start,
                expiry_secs,
                will,
            } => {
                self.of(client)
                    .for_each(|will| will.next_connects(at, clean_start));
                self.connections[client] += 1;
                self.is_confirmed[client] = false;
                if let Some(note) = will {
                    let connection = (client, self.connections[client]);
                    let will = Will::new(connection, note, expiry_secs, at);
                    self.by_number.insert(note.number, will);
                }
            }
            Event::Connected { client, .. } => {
                self.is_confirmed[client] = true;
                self.of(client).for_each(Will::connected);
            }
            Event::Disconnected { client, how } => {
                let is_sure = !self.has_late_connect[client];
                self.of(client)
                    .for_each(|will| will.connection_ends(at, how, is_sure));
                if self.may_be_disconnected_by_node[client] {
                    self.of(client)
                        .for_each(|will| will.may_be_disconnected_by_node(at));
                }
                self.has_late_connect[client] |= !self.is_confirmed[client];
            }
            Event::Sent { client, .. } => {
                self.may_be_disconnected_by_node[client] = self.allowances.publish_refused;
            }
            Event::SilenceDetected { client, connection } => self
                .of(client)
                .filter(|will| will.is_of(client, connection))
                .for_each(|will| will.silence_detected(at)),
            Event::Received {
                number,
                retain: false,
                qos,
                dup,
                ..
            } => {
                // With QoS 1 the watcher may receive it more often than it was published.
                return self.received(at, number, !dup || qos == QoS::ExactlyOnce);
            }
            Event::Settled => return self.settled(at),
            Event::Restarted => {
                self.restarts += 1;
                let disk_refuses = self.allowances.disk_refuses;
                self.by_number
                    .values_mut()
                    .for_each(|will| will.restarted(at, disk_refuses));
            }
            _ => {}
        }
        Ok(())
    }

    fn received(
        &mut self,
        at: Millis,
        number: MessageNumber,
        is_new: bool,
    ) -> Result<(), Violation> {
        let Some(will) = self.by_number.get_mut(&number) else {
            return Ok(());
        };
        // The node may have ended the connection without the knowledge of the client.
        let client = will.client();
        let may_be_over = self.has_late_connect[client] || self.may_be_disconnected_by_node[client];
        let received = will.received(at, is_new, 1 + self.restarts, may_be_over);
        received.map_err(|what| format!("will {number}: {what}"))
    }

    fn settled(&mut self, at: Millis) -> Result<(), Violation> {
        self.has_late_connect = [false; CLIENTS_MAX];
        self.may_be_disconnected_by_node = [false; CLIENTS_MAX];
        for (number, will) in &mut self.by_number {
            let settled = will.settled(at);
            if !self.allowances.queues_overflow {
                settled.map_err(|what| format!("will {number}: {what}"))?;
            }
        }
        Ok(())
    }

    fn of(&mut self, client: ClientNumber) -> impl Iterator<Item = &mut Will> {
        self.by_number
            .values_mut()
            .filter(move |will| will.client() == client)
    }
}
