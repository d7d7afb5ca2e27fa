//! Accepted messages arrive, as often and in the order that their quality of service promises, and
//! at no other client.

use std::collections::BTreeMap;

use thrum_codec::{QoS, ReasonCode, topic};

use super::super::history::{
    CLIENTS_MAX, ClientNumber, Entry, Event, Message, MessageNumber, Millis, SHARED,
};
use super::sessions::Sessions;
use super::subscriptions::{Subscriptions, plain_part};
use super::{Allowances, Complaint};

#[derive(Debug)]
pub(super) struct Deliveries {
    allowances: Allowances,
    subscriptions: Subscriptions,
    messages: BTreeMap<MessageNumber, Published>,
    received: BTreeMap<(ClientNumber, MessageNumber), Copies>,
    /// The newest message that came on each line.
    newest: BTreeMap<Line, MessageNumber>,
    restarts: u32,
}

/// Where messages keep their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Line {
    receiver: ClientNumber,
    epoch: u32,
    publisher: ClientNumber,
    topic: &'static str,
    has_guarantee: bool,
}

#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "what is known of a message, each for itself"
)]
struct Published {
    message: Message,
    publisher: ClientNumber,
    /// Place in the history.
    first_sent: usize,
    copies: u32,
    /// It was sent again to a session that may be another one, which cannot know it.
    is_doubtful: bool,
    is_accepted: bool,
    /// The publisher was told that a subscriber took it.
    is_taken: bool,
    restarts: u32,
    /// Sessions that had a subscription by then, with their epochs.
    owed_to: Vec<(ClientNumber, u32)>,
    /// No other client can have taken it.
    is_for_creditors_alone: bool,
    /// The epochs of all clients by then.
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

/// The messages that a client received.
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

    pub(super) fn see(
        &mut self,
        place: usize,
        entry: &Entry,
        sessions: &Sessions,
    ) -> Result<(), Complaint> {
        self.subscriptions.see(place, &entry.event, sessions);
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
            Event::Settled => return self.all_came(sessions, false),
            Event::Drained => return self.all_came(sessions, true),
            Event::Restarted => self.restarts += 1,
            _ => {}
        }
        Ok(())
    }

    /// Every message that was accepted has come to everyone whom it was owed to and who is there;
    /// those of groups too if nobody is away with one.
    fn all_came(&self, sessions: &Sessions, all_are_there: bool) -> Result<(), Complaint> {
        if self.allowances.queues_overflow {
            return self.somebody_has_each(sessions, all_are_there);
        }
        let accepted = self.messages.values().filter(|one| one.is_accepted);
        for published in accepted {
            let number = published.message.number;
            let is_shared = SHARED.contains(&published.message.topic);
            if is_shared && (!all_are_there || self.is_shared_done(published, sessions)) {
                continue;
            }
            let lost = published.owed_to.iter().find(|(client, epoch)| {
                sessions.epoch(*client) == *epoch
                    && sessions.is_connected(*client)
                    && !self.received.contains_key(&(*client, number))
            });
            if let Some((client, _)) = lost {
                return Err(format!(
                    "message {number} was accepted and is owed to client {client}, but has not come: {published:?}"
                ));
            }
        }
        Ok(())
    }

    /// Queues that overflow refuse, but do not lose what all of them were acknowledged for: a
    /// message that was accepted is with one of those who wanted it.
    fn somebody_has_each(&self, sessions: &Sessions, all_are_there: bool) -> Result<(), Complaint> {
        if self.allowances.drops_oldest {
            return Ok(());
        }
        // The sink may be the one that has it.
        let is_for_sink = |topic| {
            self.allowances
                .sink
                .is_some_and(|sink| sink.includes(topic))
        };
        let told = |one: &&Published| {
            let is_told = one.is_taken && self.allowances.are_told[one.publisher];
            is_told && !is_for_sink(one.message.topic)
        };
        for published in self.messages.values().filter(told) {
            let number = published.message.number;
            let is_lost = if SHARED.contains(&published.message.topic) {
                all_are_there && self.is_group_without(published, sessions)
            } else {
                self.are_all_without(published, sessions)
            };
            if is_lost {
                return Err(format!(
                    "message {number} was accepted, and no client has it: {published:?}"
                ));
            }
        }
        Ok(())
    }

    /// A member that it was for is still there, and nobody of the group has it.
    fn is_group_without(&self, published: &Published, sessions: &Sessions) -> bool {
        let is_there = |(client, epoch): &(ClientNumber, u32)| {
            sessions.epoch(*client) == *epoch && sessions.is_connected(*client)
        };
        published.owed_to.iter().any(is_there) && !self.is_shared_done(published, sessions)
    }

    /// Everybody who may have wanted it surely wanted it, is still there, and does not have it.
    fn are_all_without(&self, published: &Published, sessions: &Sessions) -> bool {
        let number = published.message.number;
        let is_without = |(client, epoch): &(ClientNumber, u32)| {
            sessions.epoch(*client) == *epoch
                && sessions.is_connected(*client)
                && !self.received.contains_key(&(*client, number))
        };
        let is_owed = published.is_for_creditors_alone && !published.owed_to.is_empty();
        is_owed && published.owed_to.iter().all(is_without)
    }

    /// Someone got it, or it may have been on its way to a member whose session ended, where QoS 2
    /// ends as well.
    fn is_shared_done(&self, published: &Published, sessions: &Sessions) -> bool {
        let number = published.message.number;
        // The messages of such a member existed in memory only.
        let is_gone =
            self.restarts > published.restarts && self.subscriptions.has_transient_member();
        let mut members = self.subscriptions.members();
        let somebody = (0..CLIENTS_MAX).any(|any| self.received.contains_key(&(any, number)));
        somebody
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
        let owed_to = if is_owed {
            self.subscriptions.creditors(message.topic, sessions)
        } else {
            Vec::new()
        };
        let is_for_creditors_alone = (0..CLIENTS_MAX).all(|client| {
            let is_creditor = owed_to.iter().any(|(creditor, _)| *creditor == client);
            is_creditor || !self.subscriptions.may_want(client, message.topic, place)
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
                owed_to,
                is_for_creditors_alone,
                epochs: std::array::from_fn(|client| sessions.epoch(client)),
            },
        );
    }

    fn accepted(
        &mut self,
        number: MessageNumber,
        outcome: ReasonCode,
        (at, sessions): (Millis, &Sessions),
    ) -> Result<(), Complaint> {
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
        let creditor = published.owed_to.iter().find(|(client, epoch)| {
            sessions.epoch(*client) == *epoch && sessions.surely_exists(*client, at)
        });
        match creditor {
            Some((client, _)) if outcome == ReasonCode::NoMatchingSubscribers => Err(format!(
                "message {number} found no subscribers, but client {client} is one"
            )),
            _ => Ok(()),
        }
    }

    fn arrived(&mut self, arrival: Arrival, sessions: &Sessions) -> Result<(), Complaint> {
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
            // A session that knows nothing of the last one may be given it again.
            *copies = Copies::default();
        }
        copies.epoch = epoch;
        copies.was_qos1 |= arrival.qos == QoS::AtLeastOnce;
        let is_first = copies.first + copies.again == 0;
        copies.first += u32::from(!arrival.dup);
        copies.again += u32::from(arrival.dup);
        let complaint = self
            .is_foreign(published, &arrival)
            .or_else(|| is_dup_wrong(&arrival, sessions))
            .or_else(|| self.is_repeated(published, &arrival));
        if let Some(what) = complaint {
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
        let everybodys = || {
            let clients = 0..CLIENTS_MAX;
            clients.filter_map(|client| self.received.get(&(client, arrival.number)))
        };
        let is_shared = SHARED.contains(&arrival.topic);
        let is_routed_once = match published.message.qos {
            QoS::AtMostOnce => true,
            QoS::AtLeastOnce => false,
            QoS::ExactlyOnce => !published.is_doubtful,
        };
        // Each start may send as new what was sent before, if nobody had written that down.
        let routed_max = if is_routed_once { 1 } else { published.copies };
        let sent_max = routed_max * (1 + self.restarts);
        let is_exact = arrival.qos == QoS::ExactlyOnce || published.message.qos == QoS::AtMostOnce;
        if is_shared {
            let all: u32 = everybodys().map(|copies| copies.first + copies.again).sum();
            let may_move = everybodys().any(|copies| copies.was_qos1);
            return (is_exact && is_routed_once && !may_move && all > sent_max)
                .then_some("a group got it twice");
        }
        if is_exact && is_routed_once && copies.first + copies.again > 1 {
            return Some("it came twice");
        }
        (copies.first > sent_max).then_some("it came as new more often than it was sent")
    }

    fn in_order(&mut self, arrival: &Arrival, sessions: &Sessions) -> Result<(), Complaint> {
        let published = &self.messages[&arrival.number];
        let line = Line {
            receiver: arrival.client,
            epoch: sessions.epoch(arrival.client),
            publisher: published.publisher,
            topic: arrival.topic,
            has_guarantee: arrival.qos != QoS::AtMostOnce,
        };
        let newest = self.newest.entry(line).or_default();
        let previous = *newest;
        *newest = previous.max(arrival.number);
        if arrival.number > previous {
            return Ok(());
        }
        // Its first copy may have gone by before the client subscribed, or to an earlier session.
        let is_owed = published
            .owed_to
            .contains(&(arrival.client, sessions.epoch(arrival.client)));
        // That a full queue refused it (0x97) may have been lost with the connection.
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
            "{arrival:?} came after the later message {previous} of the same publisher; {published:?}"
        ))
    }

    /// From now on the client's subscription may be there or not: nothing is owed to it for sure.
    fn doubt(&mut self, client: ClientNumber, filter: &'static str) {
        for published in self.messages.values_mut() {
            if topic::matches(plain_part(filter), published.message.topic) {
                let owed_to = &mut published.owed_to;
                let before = owed_to.len();
                owed_to.retain(|(creditor, _)| *creditor != client);
                published.is_for_creditors_alone &=
                    published.is_accepted && owed_to.len() == before;
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
