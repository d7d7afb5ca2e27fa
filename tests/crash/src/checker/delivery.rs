//! PUBLISH and PUBREL that reach a client.

use super::Checker;
use super::client::Place;
use super::copies::Copies;
use super::identifiers::Arrival;
use super::messages::Message;
use crate::event::{ClientIndex, Delivery, MessageNumber};

impl Checker {
    pub(super) fn received(&mut self, client: ClientIndex, delivery: &Delivery) {
        let place = self.clients[client].place(self.clock.run);
        let message = delivery
            .number
            .and_then(|number| self.messages.find(number))
            .cloned();
        let is_its_own = message.as_ref().is_some_and(|message| {
            let session = &self.clients[client].session;
            let permission = session.permission(message, delivery.qos);
            message.sends <= 1 && permission.is_some_and(|by| by.group().is_none())
        });
        let identifiers = &mut self.clients[client].session.identifiers;
        match identifiers.arrives(delivery, place, is_its_own) {
            Err(text) => return self.blame(Some(client), delivery.number, text),
            Ok(Arrival::KnownAlready) => {
                self.counts.resent += 1;
                return;
            }
            Ok(Arrival::Handed) => {}
        }
        let session = &self.clients[client].session;
        if delivery.dup && place.connection == session.first_connection {
            let text = "DUP on the first connection of a session".to_owned();
            return self.blame(Some(client), delivery.number, text);
        }
        let result = match (delivery.number, message) {
            (Some(number), _) if delivery.retain => self.replayed(client, number, delivery),
            (Some(number), None) if self.messages.was_sent(number) => {
                Err("came although everything was delivered before".to_owned())
            }
            (Some(_), None) => Err("was never sent".to_owned()),
            (Some(_), Some(message)) => self.handed(client, &message, delivery, place),
            // An empty message: only its handshake can be checked.
            (None, _) => Ok(()),
        };
        if let Err(text) = result {
            let text = delivery.number.map_or_else(
                || text.clone(),
                |number| format!("{text}: {}", self.messages.describe(number)),
            );
            self.blame(Some(client), delivery.number, text);
        }
    }

    pub(super) fn acknowledged(&mut self, client: ClientIndex, id: u16) {
        let session = &mut self.clients[client].session;
        let Some(number) = session.identifiers.acknowledge(id) else {
            return;
        };
        if let Some(copies) = session.seen.get_mut(&number) {
            copies.acknowledge();
            // An earlier fence does not cover this acknowledgement.
            session.fence.remove(&number);
            session.unsettled.insert(number);
        }
    }

    pub(super) fn recorded(&mut self, client: ClientIndex, id: u16) {
        self.clients[client].session.identifiers.record(id);
    }

    pub(super) fn released(&mut self, client: ClientIndex, id: u16) {
        let place = self.clients[client].place(self.clock.run);
        match self.clients[client].session.identifiers.release(id, place) {
            Ok(again) => self.counts.released_again += u64::from(again),
            Err(text) => self.blame(Some(client), None, text),
        }
    }

    /// A retained message as the answer to SUBSCRIBE.
    fn replayed(
        &mut self,
        client: ClientIndex,
        number: MessageNumber,
        delivery: &Delivery,
    ) -> Result<(), String> {
        let session = &mut self.clients[client].session;
        let allowed = session.replays_of(&delivery.topic);
        let count = session.replays.entry(number).or_default();
        *count += 1;
        if delivery.qos == 2 && *count > allowed {
            return Err(format!(
                "replayed {count} times after {allowed} subscriptions"
            ));
        }
        self.retained.replayed(&delivery.topic, number)
    }

    fn handed(
        &mut self,
        client: ClientIndex,
        message: &Message,
        delivery: &Delivery,
        place: Place,
    ) -> Result<(), String> {
        let number = message.number;
        let topic = &message.publish.topic;
        if *topic != delivery.topic {
            return Err(format!("came with topic {}", delivery.topic));
        }
        let session = &self.clients[client].session;
        let Some(subscription) = session.permission(message, delivery.qos) else {
            return Err(format!(
                "no subscription brings it with QoS {}",
                delivery.qos
            ));
        };
        let group = subscription.group().map(str::to_owned);
        if let Some(reason) = message.forbidden {
            return Err(format!("must not come: {reason}"));
        }
        if self.clock.at < message.not_before {
            return Err(format!(
                "came before it was due at {} ms",
                message.not_before
            ));
        }
        if message.sends == 0 {
            self.retained.accepted(number, &message.publish);
            self.will_seen(message.publisher, number);
        }
        self.counted(client, message, delivery.qos, place)?;
        match group {
            Some(group) => self.groups.taken(&group, message, client, delivery.qos),
            None => self.in_order(client, message, delivery.qos),
        }
    }

    fn counted(
        &mut self,
        client: ClientIndex,
        message: &Message,
        qos: u8,
        place: Place,
    ) -> Result<(), String> {
        let client = &mut self.clients[client];
        self.counts.paid += u64::from(client.session.owed.remove(&message.number));
        // Each PUBLISH of QoS 1 may be a message of its own, also when it carries DUP.
        let sends = if message.publish.qos == 1 {
            message.sends
        } else {
            1
        };
        match client.session.seen.get_mut(&message.number) {
            None => {
                let copies = Copies::first(qos, place);
                client.session.seen.insert(message.number, copies);
                Ok(())
            }
            Some(copies) => {
                self.counts.repeated += 1;
                let end = client.ends.get(&copies.last().connection).copied();
                copies.again(place, sends, message.accepted_in, end)
            }
        }
    }

    /// First deliveries keep the order of their publisher.
    fn in_order(&mut self, client: ClientIndex, message: &Message, qos: u8) -> Result<(), String> {
        let key = (message.publisher, message.publish.topic.clone(), qos);
        let session = &mut self.clients[client].session;
        // Of a message that was sent again after the subscription, the first copy may have passed
        // before it.
        let is_whole = message.sends <= 1 || session.owes(message);
        let is_first = is_whole
            && session
                .seen
                .get(&message.number)
                .is_some_and(Copies::is_first);
        let run = self.clock.run;
        let newest = session.order.entry(key).or_insert((message.number, run));
        let (last, last_run) = *newest;
        // A DISCONNECT has no acknowledgement: if the disk did not take it, the will that it took
        // back comes after the next start, and so after the wills of later connections.
        let was_taken_back = message.sends == 0 && last_run < run;
        if is_first && message.number < last && !was_taken_back {
            return Err(format!(
                "came first after message {last} of the same publisher and topic"
            ));
        }
        *newest = (last.max(message.number), run);
        Ok(())
    }
}
