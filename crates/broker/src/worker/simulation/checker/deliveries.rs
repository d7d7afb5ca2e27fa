//! Checks that accepted messages arrive as often and in the order that their quality of service
//! promises, and at no other client.

use std::collections::BTreeMap;

use thrum_codec::{QoS, ReasonCode, topic};

use super::super::history::{
    CLIENTS_MAX, ClientNumber, Entry, Event, Message, MessageNumber, Millis, SHARED,
};
use super::sessions::Sessions;
use super::subscriptions::{Subscriptions, plain_part};
use super::{Allowances, Violation};

#[derive(Debug)]
pub(super) struct Deliveries {
    allowances: Allowances,
    subscriptions: Subscriptions,
    messages: BTreeMap<MessageNumber, Published>,
    received: BTreeMap<(ClientNumber, MessageNumber), Copies>,
    /// The newest message of each ordered sequence.
    newest: BTreeMap<OrderKey, MessageNumber>,
    restarts: u32,
}

/// A sequence of messages that must arrive in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct OrderKey {
    receiver: ClientNumber,
    epoch: u32,
    publisher: ClientNumber,
    topic: &'static str,
    has_guarantee: bool,
}

#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts about a message"
)]
struct Published {
    message: Message,
    publisher: ClientNumber,
    /// Place in the history.
    first_sent: usize,
    copies: u32,
    /// It was sent again to a session that may be a new one, which cannot detect the duplicate.
    is_doubtful: bool,
    is_accepted: bool,
    /// The acknowledgement reported a matching subscriber.
    is_taken: bool,
    restarts: u32,
    /// Sessions that had a subscription when it was sent, with their epochs.
    expected_by: Vec<(ClientNumber, u32)>,
    /// No other client can have received it.
    has_no_other_receivers: bool,
    /// The epochs of all clients when it was sent.
    epochs: [u32; CLIENTS_MAX],
}

#[derive(Clone, Copy, Debug, Default)]
struct Copies {
    /// Without DUP.
    first: u32,
    again: u32,
    was_qos1: bool,
    /// Of the session that got the last one.
    epoch: u32,
}

/// A message that a client received.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    client: ClientNumber,
    number: MessageNumber,
    topic: &'static str,
    qos: QoS,
    dup: bool,
}

impl Deliveries {
    pub(super) fn new(allowances: Allowances) -> Self {
        Self {
            allowances,
            subscriptions: Subscriptions::default(),
            messages: BTreeMap::new(),
            received: BTreeMap::new(),
            newest: BTreeMap::new(),
            restarts: 0,
        }
    }

    pub(super) fn is_known(&self, number: MessageNumber) -> bool {
        self.messages.contains_key(&number)
    }

    pub(super) fn observe(
        &mut self,
        place: usize,
        entry: &Entry,
        sessions: &Sessions,
    ) -> Result<(), Violation> {
        self.subscriptions.observe(place, &entry.event, sessions);
        match entry.event {
            Event::Subscribing { client, filter, .. } | Event::Unsubscribing { client, filter } => {
                self.doubt(client, filter);
            }
            Event::Sent { client, message } => self.sent(place, client, message, sessions),
            Event::Accepted {
                number, outcome, ..
            } => return self.accepted(number, outcome, (entry.at, sessions)),
            Event::Received {
                client,
                number,
                topic,
                qos,
                dup,
                retain: false,
            } => {
                let arrival = Arrival {
                    client,
                    number,
                    topic,
                    qos,
                    dup,
                };
                return self.arrived(arrival, sessions);
            }
            Event::Settled => return self.check_arrivals(sessions, false),
            Event::Drained => return self.check_arrivals(sessions, true),
            Event::Restarted => self.restarts += 1,
            _ => {}
        }
        Ok(())
    }

    /// Checks that every accepted message has arrived at all its expected, connected receivers; for
    /// groups only when all clients are connected.
    fn check_arrivals(&self, sessions: &Sessions, all_are_there: bool) -> Result<(), Violation> {
        if self.allowances.queues_overflow {
            return self.check_any_receiver(sessions, all_are_there);
        }
        let accepted = self.messages.values().filter(|one| one.is_accepted);
        for published in accepted {
            let number = published.message.number;
            let is_shared = SHARED.contains(&published.message.topic);
            if is_shared && (!all_are_there || self.is_shared_done(published, sessions)) {
                continue;
            }
            let lost = published.expected_by.iter().find(|(client, epoch)| {
                sessions.epoch(*client) == *epoch
                    && sessions.is_connected(*client)
                    && !self.received.contains_key(&(*client, number))
            });
            if let Some((client, _)) = lost {
                return Err(format!(
                    "message {number} was accepted and is due to client {client}, but has not arrived: {published:?}"
                ));
            }
        }
        Ok(())
    }

    /// With overflowing queues a message may be refused, but not lost after its acknowledgement: at
    /// least one receiver must have it.
    fn check_any_receiver(
        &self,
        sessions: &Sessions,
        all_are_there: bool,
    ) -> Result<(), Violation> {
        if self.allowances.drops_oldest {
            return Ok(());
        }
        // The sink may be the receiver that has it.
        let is_for_sink = |topic| {
            self.allowances
                .sink
                .is_some_and(|sink| sink.includes(topic))
        };
        let is_required = |one: &&Published| {
            let sees_refusal = one.is_taken && self.allowances.sees_refusals[one.publisher];
            sees_refusal && !is_for_sink(one.message.topic)
        };
        for published in self.messages.values().filter(is_required) {
            let number = published.message.number;
            let is_lost = if SHARED.contains(&published.message.topic) {
                all_are_there && self.group_lacks_message(published, sessions)
            } else {
                self.all_lack_message(published, sessions)
            };
            if is_lost {
                return Err(format!(
                    "message {number} was accepted, and no client has it: {published:?}"
                ));
            }
        }
        Ok(())
    }

    /// Whether an expected member is still connected, and no member has the message.
    fn group_lacks_message(&self, published: &Published, sessions: &Sessions) -> bool {
        let is_connected = |(client, epoch): &(ClientNumber, u32)| {
            sessions.epoch(*client) == *epoch && sessions.is_connected(*client)
        };
        published.expected_by.iter().any(is_connected) && !self.is_shared_done(published, sessions)
    }

    /// Whether all possible receivers were certain ones, are still connected, and do not have it.
    fn all_lack_message(&self, published: &Published, sessions: &Sessions) -> bool {
        let number = published.message.number;
        let is_without = |(client, epoch): &(ClientNumber, u32)| {
            sessions.epoch(*client) == *epoch
                && sessions.is_connected(*client)
                && !self.received.contains_key(&(*client, number))
        };
        let is_owed = published.has_no_other_receivers && !published.expected_by.is_empty();
        is_owed && published.expected_by.iter().all(is_without)
    }

    /// Whether a member received it, or it may have been on its way to a member whose session
    /// ended, with which a QoS 2 delivery ends.
    fn is_shared_done(&self, published: &Published, sessions: &Sessions) -> bool {
        let number = published.message.number;
        // The messages of such a member existed in memory only.
        let is_gone =
            self.restarts > published.restarts && self.subscriptions.has_transient_member();
        let mut members = self.subscriptions.members();
        let is_received = (0..CLIENTS_MAX).any(|any| self.received.contains_key(&(any, number)));
        is_received
            || is_gone
            || (published.message.qos == QoS::ExactlyOnce
                && members.any(|member| sessions.epoch(member) != published.epochs[member]))
    }

    fn sent(&mut self, place: usize, client: ClientNumber, message: Message, sessions: &Sessions) {
        if let Some(published) = self.messages.get_mut(&message.number) {
            published.copies += 1;
            published.is_doubtful |= sessions.is_doubtful(client);
            return;
        }
        let is_owed =
            message.qos != QoS::AtMostOnce && !message.is_empty && message.expiry_secs.is_none();
        let expected_by = if is_owed {
            self.subscriptions
                .expected_receivers(message.topic, sessions)
        } else {
            Vec::new()
        };
        let has_no_other_receivers = (0..CLIENTS_MAX).all(|client| {
            let is_expected = expected_by.iter().any(|(receiver, _)| *receiver == client);
            is_expected || !self.subscriptions.may_want(client, message.topic, place)
        });
        self.messages.insert(
            message.number,
            Published {
                message,
                publisher: client,
                first_sent: place,
                copies: 1,
                is_doubtful: false,
                restarts: self.restarts,
                is_accepted: false,
                is_taken: false,
                expected_by,
                has_no_other_receivers,
                epochs: std::array::from_fn(|client| sessions.epoch(client)),
            },
        );
    }

    fn accepted(
        &mut self,
        number: MessageNumber,
        outcome: ReasonCode,
        (at, sessions): (Millis, &Sessions),
    ) -> Result<(), Violation> {
        let Some(published) = self.messages.get_mut(&number) else {
            return Err(format!("message {number} was accepted and never sent"));
        };
        if outcome.is_error() {
            return if self.allowances.queues_overflow || self.allowances.publish_refused {
                Ok(())
            } else {
                Err(format!("message {number} was refused: {outcome:?}"))
            };
        }
        published.is_accepted = true;
        published.is_taken |= outcome == ReasonCode::Success;
        let receiver = published.expected_by.iter().find(|(client, epoch)| {
            sessions.epoch(*client) == *epoch && sessions.certainly_exists(*client, at)
        });
        match receiver {
            Some((client, _)) if outcome == ReasonCode::NoMatchingSubscribers => Err(format!(
                "message {number} found no subscribers, but client {client} is one"
            )),
            _ => Ok(()),
        }
    }

    fn arrived(&mut self, arrival: Arrival, sessions: &Sessions) -> Result<(), Violation> {
        let Some(published) = self.messages.get(&arrival.number) else {
            // A will.
            return Ok(());
        };
        let copies = self
            .received
            .entry((arrival.client, arrival.number))
            .or_default();
        let epoch = sessions.epoch(arrival.client);
        if (self.restarts > 0 || sessions.is_doubtful(arrival.client)) && copies.epoch != epoch {
            // A new session may receive it again.
            *copies = Copies::default();
        }
        copies.epoch = epoch;
        copies.was_qos1 |= arrival.qos == QoS::AtLeastOnce;
        let is_first = copies.first + copies.again == 0;
        copies.first += u32::from(!arrival.dup);
        copies.again += u32::from(arrival.dup);
        let violation = self
            .is_foreign(published, &arrival)
            .or_else(|| is_dup_wrong(&arrival, sessions))
            .or_else(|| self.is_repeated(published, &arrival));
        if let Some(what) = violation {
            return Err(format!("{arrival:?}: {what}; {published:?}"));
        }
        if is_first && !SHARED.contains(&arrival.topic) {
            return self.in_order(&arrival, sessions);
        }
        Ok(())
    }

    fn is_foreign(&self, published: &Published, arrival: &Arrival) -> Option<&'static str> {
        if published.message.topic != arrival.topic {
            return Some("it was sent on another topic");
        }
        if arrival.qos > published.message.qos {
            return Some("it was sent with a lower quality of service");
        }
        let wanted =
            self.subscriptions
                .may_want(arrival.client, arrival.topic, published.first_sent);
        (!wanted).then_some("the client has no subscription for it")
    }

    fn is_repeated(&self, published: &Published, arrival: &Arrival) -> Option<&'static str> {
        let copies = self.received[&(arrival.client, arrival.number)];
        let of_all_clients = || {
            let clients = 0..CLIENTS_MAX;
            clients.filter_map(|client| self.received.get(&(client, arrival.number)))
        };
        let is_shared = SHARED.contains(&arrival.topic);
        let is_routed_once = match published.message.qos {
            QoS::AtMostOnce => true,
            QoS::AtLeastOnce => false,
            QoS::ExactlyOnce => !published.is_doubtful,
        };
        // Each restart may repeat without DUP what was sent before and not recorded on the disk.
        let routed_max = if is_routed_once { 1 } else { published.copies };
        let sent_max = routed_max * (1 + self.restarts);
        let is_exact = arrival.qos == QoS::ExactlyOnce || published.message.qos == QoS::AtMostOnce;
        if is_shared {
            let all: u32 = of_all_clients()
                .map(|copies| copies.first + copies.again)
                .sum();
            let may_move = of_all_clients().any(|copies| copies.was_qos1);
            return (is_exact && is_routed_once && !may_move && all > sent_max)
                .then_some("a group received it twice");
        }
        if is_exact && is_routed_once && copies.first + copies.again > 1 {
            return Some("it arrived twice");
        }
        (copies.first > sent_max).then_some("it arrived without DUP more often than it was sent")
    }

    fn in_order(&mut self, arrival: &Arrival, sessions: &Sessions) -> Result<(), Violation> {
        let published = &self.messages[&arrival.number];
        let key = OrderKey {
            receiver: arrival.client,
            epoch: sessions.epoch(arrival.client),
            publisher: published.publisher,
            topic: arrival.topic,
            has_guarantee: arrival.qos != QoS::AtMostOnce,
        };
        let newest = self.newest.entry(key).or_default();
        let previous = *newest;
        *newest = previous.max(arrival.number);
        if arrival.number > previous {
            return Ok(());
        }
        // Its first copy may have been routed before the client subscribed, or to an earlier
        // session.
        let is_owed = published
            .expected_by
            .contains(&(arrival.client, sessions.epoch(arrival.client)));
        // The refusal of a full queue (0x97) may have been lost with the connection.
        let may_be_refused = self.allowances.queues_overflow || self.allowances.publish_refused;
        let may_be_routed_again = published.message.qos == QoS::AtLeastOnce
            || published.is_doubtful
            || self.restarts > 0
            || may_be_refused;
        let was_repeated = may_be_routed_again && published.copies > 1;
        if was_repeated && (!is_owed || may_be_refused) {
            return Ok(());
        }
        Err(format!(
            "{arrival:?} arrived after the later message {previous} of the same publisher; {published:?}"
        ))
    }

    /// Removes the client from the expected receivers: its subscription is uncertain from now on.
    fn doubt(&mut self, client: ClientNumber, filter: &'static str) {
        for published in self.messages.values_mut() {
            if topic::matches(plain_part(filter), published.message.topic) {
                let expected_by = &mut published.expected_by;
                let before = expected_by.len();
                expected_by.retain(|(receiver, _)| *receiver != client);
                published.has_no_other_receivers &=
                    published.is_accepted && expected_by.len() == before;
            }
        }
    }
}

/// On the first connection of a session nothing was sent before.
fn is_dup_wrong(arrival: &Arrival, sessions: &Sessions) -> Option<&'static str> {
    let is_wrong =
        arrival.dup && (arrival.qos == QoS::AtMostOnce || !sessions.may_be_resumed(arrival.client));
    is_wrong.then_some("it has the DUP flag, but there was no earlier connection")
}
