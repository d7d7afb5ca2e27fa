//! Checks that a retained topic shows its last message: never one older than the last accepted one
//! or than one that the client has received, and to every client whose subscription was
//! acknowledged.

use std::collections::BTreeMap;

use thrum_codec::{QoS, topic};

use super::super::history::{CLIENTS_MAX, ClientNumber, Event, MessageNumber, RETAINED};
use super::sessions::Sessions;
use super::{Allowances, Violation};

#[derive(Debug)]
pub(super) struct Retained {
    allowances: Allowances,
    topics: BTreeMap<&'static str, Topic>,
    clients: [Reader; CLIENTS_MAX],
    owed: Vec<Owed>,
    /// SUBSCRIBE packets so far.
    requests: u32,
}

/// A retained message that is due to a subscription.
#[derive(Debug)]
struct Owed {
    client: ClientNumber,
    epoch: u32,
    request: u32,
    filter: &'static str,
    qos: QoS,
    topic: &'static str,
    /// The position of the message that was retained; this one or a later one must arrive.
    floor: usize,
    /// The subscription was acknowledged.
    is_certain: bool,
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
    /// It removes the retained message, or expires.
    may_vanish: bool,
    /// It was sent again, and may have replaced later ones.
    is_repeated: bool,
}

/// The expectations and observations of one client.
#[derive(Debug, Default)]
struct Reader {
    is_connected: bool,
    /// Requested messages may still be on their way.
    waits: bool,
    /// By topic: the accepted message when it began to wait.
    floors: BTreeMap<&'static str, usize>,
    /// By topic: the position of the retained message that it has received since.
    shown: BTreeMap<&'static str, usize>,
    /// By topic and quality of service: the position of the newest message that it has received,
    /// retained or not.
    newest: BTreeMap<(&'static str, QoS), usize>,
}

impl Retained {
    pub(super) fn new(allowances: Allowances) -> Self {
        Self {
            allowances,
            topics: BTreeMap::new(),
            clients: Default::default(),
            owed: Vec::new(),
            requests: 0,
        }
    }

    pub(super) fn observe(&mut self, event: &Event, sessions: &Sessions) -> Result<(), Violation> {
        self.track_owed(event, sessions)?;
        match *event {
            Event::Sent { message, .. } if message.retain => {
                let topic = self.topics.entry(message.topic).or_default();
                match topic.place(message.number) {
                    Some(place) => topic.writes[place].is_repeated = true,
                    None => topic.writes.push(Write {
                        number: message.number,
                        may_vanish: message.is_empty || message.expiry_secs.is_some(),
                        is_repeated: false,
                    }),
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
            Event::Disconnected { client, .. } => self.clients[client].is_connected = false,
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
                qos,
                dup,
                retain,
            } => {
                if !dup {
                    self.in_order(client, number, (topic, qos), retain)?;
                }
                if retain {
                    return self.shown(client, number, topic);
                }
            }
            // A message without acknowledgement may be lost, so that the one before it is retained
            // again.
            Event::Restarted => {
                for reader in &mut self.clients {
                    reader.newest.clear();
                }
            }
            Event::Inspected { client } => return self.inspected(client),
            _ => {}
        }
        Ok(())
    }

    /// Records which retained messages are due to which subscriptions, and which have arrived.
    fn track_owed(&mut self, event: &Event, sessions: &Sessions) -> Result<(), Violation> {
        match *event {
            Event::Subscribing {
                client,
                filter,
                qos,
            } => self.subscribing(client, filter, qos, sessions),
            Event::Subscribed {
                client,
                filter,
                granted,
            } => {
                // Another SUBSCRIBE with the same filter may be on its way.
                let is_it = |owed: &Owed| {
                    (owed.client, owed.filter) == (client, filter) && granted == Some(owed.qos)
                };
                let open = |owed: &&Owed| is_it(owed) && !owed.is_certain;
                let request = self.owed.iter().find(open).map(|owed| owed.request);
                for owed in self.owed.iter_mut().filter(|owed| is_it(owed)) {
                    owed.is_certain |= Some(owed.request) == request;
                }
            }
            // A subscription unacknowledged by then stays unacknowledged.
            Event::Disconnected { client, .. } => {
                self.owed
                    .retain(|owed| owed.client != client || owed.is_certain);
            }
            Event::Unsubscribing { client, filter } => {
                self.owed
                    .retain(|owed| owed.client != client || owed.filter != filter);
            }
            Event::Received {
                client,
                number,
                topic,
                ..
            } => {
                let place = self.topics.get(topic).and_then(|topic| topic.place(number));
                self.owed.retain(|owed| {
                    let is_it = owed.client == client && owed.topic == topic;
                    !is_it || place.is_none_or(|place| place < owed.floor)
                });
            }
            Event::Settled => return self.check_arrivals(sessions),
            _ => {}
        }
        Ok(())
    }

    fn subscribing(
        &mut self,
        client: ClientNumber,
        filter: &'static str,
        qos: QoS,
        sessions: &Sessions,
    ) {
        if qos == QoS::AtMostOnce {
            // Messages may be lost with the connection.
            self.owed
                .retain(|owed| owed.client != client || owed.filter != filter);
            return;
        }
        self.requests += 1;
        let request = self.requests;
        let epoch = sessions.epoch(client);
        let topics = self.topics.iter();
        let matched = topics.filter(|(name, _)| topic::matches(filter, name));
        self.owed.extend(matched.filter_map(|(name, topic)| {
            Some(Owed {
                client,
                epoch,
                request,
                filter,
                qos,
                topic: name,
                floor: topic.accepted?,
                is_certain: false,
            })
        }));
    }

    /// Checks that connected clients have the messages that are due to their subscriptions, unless
    /// removed meanwhile.
    fn check_arrivals(&mut self, sessions: &Sessions) -> Result<(), Violation> {
        self.owed
            .retain(|owed| sessions.epoch(owed.client) == owed.epoch);
        if self.allowances.queues_overflow {
            return Ok(());
        }
        let stands = |owed: &&Owed| {
            let writes = self.topics.get(owed.topic).map(|topic| &topic.writes);
            let since = writes.and_then(|writes| writes.get(owed.floor..));
            owed.is_certain
                && sessions.is_connected(owed.client)
                && since.is_some_and(|since| since.iter().all(|write| !write.may_vanish))
        };
        match self.owed.iter().find(stands) {
            Some(owed) => Err(format!(
                "a retained message is due since an acknowledged subscription, but has not arrived: {owed:?}"
            )),
            None => Ok(()),
        }
    }

    /// Checks that no retained message arrives after a newer one with the same quality of service.
    fn in_order(
        &mut self,
        client: ClientNumber,
        number: MessageNumber,
        (name, qos): (&'static str, QoS),
        is_retained: bool,
    ) -> Result<(), Violation> {
        let Some(topic) = self.topics.get(name) else {
            return Ok(());
        };
        let Some(place) = topic.place(number) else {
            return Ok(());
        };
        let newest = self.clients[client].newest.entry((name, qos)).or_default();
        if is_retained && place < *newest && !topic.writes[place].is_repeated {
            return Err(format!(
                "client {client} received the retained message {number} on {name} after the newer one {}",
                topic.writes[*newest].number
            ));
        }
        *newest = place.max(*newest);
        Ok(())
    }

    fn shown(
        &mut self,
        client: ClientNumber,
        number: MessageNumber,
        name: &'static str,
    ) -> Result<(), Violation> {
        let topic = self.topics.get(name);
        let Some(place) = topic.and_then(|topic| topic.place(number)) else {
            return Err(format!(
                "client {client} received message {number} as retained on {name}, where it was not published"
            ));
        };
        let reader = &mut self.clients[client];
        reader.shown.insert(name, place);
        // A refused message may be accepted when it is repeated, after later ones.
        let is_late = topic.is_some_and(|topic| topic.writes[place].is_repeated)
            && (self.allowances.queues_overflow || self.allowances.publish_refused);
        if is_late {
            return Ok(());
        }
        if reader.floors.get(name).is_some_and(|floor| place < *floor) {
            return Err(format!(
                "client {client} received the retained message {number} on {name}, but a later one was accepted before it subscribed"
            ));
        }
        Ok(())
    }

    fn inspected(&self, client: ClientNumber) -> Result<(), Violation> {
        let reader = &self.clients[client];
        for name in RETAINED.as_flattened() {
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
