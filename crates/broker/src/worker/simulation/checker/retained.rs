//! Each retained topic shows its last message: never one older than what was accepted.

use std::collections::BTreeMap;

use super::super::history::{CLIENTS_MAX, ClientNumber, Event, MessageNumber, RETAINED};
use super::Complaint;

#[derive(Debug, Default)]
pub(super) struct Retained {
    topics: BTreeMap<&'static str, Topic>,
    clients: [Reader; CLIENTS_MAX],
}

#[derive(Debug, Default)]
struct Topic {
    /// In the order of their one publisher, which is that of their numbers.
    writes: Vec<Write>,
    /// The last one that was accepted.
    accepted: Option<usize>,
}

#[derive(Clone, Copy, Debug)]
struct Write {
    number: MessageNumber,
    /// It removes what was there, or removes itself after a while.
    may_vanish: bool,
}

/// What one client can demand and has seen.
#[derive(Debug, Default)]
struct Reader {
    is_connected: bool,
    /// What it asked for may still be on its way.
    waits: bool,
    /// By topic: what was accepted when it began to wait.
    floors: BTreeMap<&'static str, usize>,
    /// By topic: the place of what it was shown since.
    shown: BTreeMap<&'static str, usize>,
}

impl Retained {
    pub(super) fn see(&mut self, event: &Event) -> Result<(), Complaint> {
        match *event {
            Event::Sent { message, .. } if message.retain => {
                let topic = self.topics.entry(message.topic).or_default();
                if topic.place(message.number).is_none() {
                    topic.writes.push(Write {
                        number: message.number,
                        may_vanish: message.is_empty || message.expiry_secs.is_some(),
                    });
                }
            }
            Event::Accepted {
                number, outcome, ..
            } if !outcome.is_error() => {
                for topic in self.topics.values_mut() {
                    topic.accepted = topic.accepted.max(topic.place(number));
                }
            }
            Event::Connected {
                client,
                session_present,
            } => {
                let reader = &mut self.clients[client];
                reader.is_connected = true;
                reader.waits &= session_present;
            }
            Event::Gone { client, .. } => self.clients[client].is_connected = false,
            Event::Settled => self
                .clients
                .iter_mut()
                .filter(|reader| reader.is_connected)
                .for_each(|reader| reader.waits = false),
            Event::Subscribing { client, .. } => {
                let accepted =
                    |(name, topic): (&&'static str, &Topic)| Some((*name, topic.accepted?));
                let reader = &mut self.clients[client];
                reader.shown.clear();
                if !reader.waits {
                    reader.floors = self.topics.iter().filter_map(accepted).collect();
                    reader.waits = true;
                }
            }
            Event::Received {
                client,
                number,
                topic,
                retain: true,
                ..
            } => return self.shown(client, number, topic),
            Event::Inspected { client } => return self.inspected(client),
            _ => {}
        }
        Ok(())
    }

    fn shown(
        &mut self,
        client: ClientNumber,
        number: MessageNumber,
        name: &'static str,
    ) -> Result<(), Complaint> {
        let topic = self.topics.get(name);
        let Some(place) = topic.and_then(|topic| topic.place(number)) else {
            return Err(format!(
                "client {client} got message {number} as retained on {name}, where it was not"
            ));
        };
        let reader = &mut self.clients[client];
        reader.shown.insert(name, place);
        if reader.floors.get(name).is_some_and(|floor| place < *floor) {
            return Err(format!(
                "client {client} got the retained message {number} on {name}, but a later one was accepted before it asked"
            ));
        }
        Ok(())
    }

    fn inspected(&self, client: ClientNumber) -> Result<(), Complaint> {
        let reader = &self.clients[client];
        for name in RETAINED {
            let Some(topic) = self.topics.get(name) else {
                continue;
            };
            let since = topic.accepted;
            let may_be_absent = since.is_none_or(|since| {
                let later = topic.writes.get(since..).unwrap_or_default();
                later.iter().any(|write| write.may_vanish)
            });
            if !reader.shown.contains_key(name) && !may_be_absent {
                return Err(format!(
                    "nothing is retained on {name}, but a message was accepted there"
                ));
            }
        }
        Ok(())
    }
}

impl Topic {
    fn place(&self, number: MessageNumber) -> Option<usize> {
        self.writes.iter().position(|write| write.number == number)
    }
}
