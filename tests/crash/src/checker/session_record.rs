//! One session as its client knows it, from its start to its end.

use std::collections::{BTreeMap, BTreeSet};

use super::copies::Copies;
use super::filter::{matches, split_shared};
use super::identifiers::Identifiers;
use super::messages::Message;
use crate::event::{ClientIndex, MessageNumber};

/// Filters with this prefix serve as fences: everything that the client did before one is certain
/// once it is acknowledged, because committed changes are a prefix of all changes.
pub const FENCE: &str = "fence/";

/// One session.
#[derive(Clone, Debug, Default)]
pub(super) struct SessionRecord {
    /// Number of the client's connection that began it.
    pub(super) first_connection: u32,
    /// In the order of their creation, including those that ended.
    pub(super) subscriptions: Vec<Subscription>,
    /// Deliveries since the last quiet moment.
    pub(super) seen: BTreeMap<MessageNumber, Copies>,
    /// Required deliveries.
    pub(super) owed: BTreeSet<MessageNumber>,
    /// Packet identifiers of deliveries.
    pub(super) identifiers: Identifiers,
    /// Last first delivery by publisher, topic and `QoS`, and the start of the broker in which it
    /// came.
    pub(super) order: BTreeMap<(ClientIndex, String, u8), (MessageNumber, u32)>,
    /// Messages whose PUBACK may have been lost.
    pub(super) unsettled: BTreeSet<MessageNumber>,
    /// Those that are certain when the fence is acknowledged.
    pub(super) fence: BTreeSet<MessageNumber>,
    /// Retained messages of `QoS` 2 that arrived as an answer to SUBSCRIBE.
    pub(super) replays: BTreeMap<MessageNumber, u32>,
}

/// One subscription from SUBSCRIBE to UNSUBACK.
#[derive(Clone, Debug)]
pub(super) struct Subscription {
    filter: String,
    group: Option<String>,
    pub(super) qos: u8,
    /// Number of SUBSCRIBE packets sent.
    pub(super) requests: u32,
    /// Event a moment before the first SUBSCRIBE: messages accepted after it may still be in flight
    /// within the broker.
    asked: u64,
    /// Event of the first SUBACK.
    acknowledged: Option<u64>,
    /// UNSUBSCRIBE was sent.
    is_leaving: bool,
    /// Event of UNSUBACK.
    ended: Option<u64>,
}

impl Subscription {
    /// `QoS` of the delivery.
    pub(super) fn qos_of(&self, message: &Message) -> u8 {
        self.qos.min(message.publish.qos)
    }

    pub(super) fn group(&self) -> Option<&str> {
        self.group.as_deref()
    }

    pub(super) fn matches(&self, topic: &str) -> bool {
        matches(&self.filter, topic)
    }

    /// Whether the message must arrive.
    fn owes(&self, message: &Message) -> bool {
        let in_time = self
            .acknowledged
            .is_some_and(|event| event < message.first_sent);
        in_time
            && !self.is_leaving
            && !message.publish.is_empty
            && self.matches(&message.publish.topic)
    }

    /// Whether the message may arrive.
    fn permits(&self, message: &Message) -> bool {
        let not_after = self.ended.is_none_or(|event| message.first_sent < event);
        // A group delivers messages that were published before a member joined, and a will is
        // published some time after it was accepted.
        let is_late = self.group.is_some() || message.sends == 0;
        let not_before = is_late || message.accepted.is_none_or(|event| event > self.asked);
        not_after && not_before && self.matches(&message.publish.topic)
    }
}

impl SessionRecord {
    pub(super) fn new(first_connection: u32) -> Self {
        Self {
            first_connection,
            ..Self::default()
        }
    }

    pub(super) fn subscribing(&mut self, filter: &str, qos: u8, event: u64) {
        if filter.starts_with(FENCE) {
            self.fence.append(&mut self.unsettled);
        }
        if let Some(current) = self.current(filter) {
            current.requests += 1;
            current.qos = qos;
            if current.is_leaving {
                current.is_leaving = false;
                current.acknowledged = None;
            }
            return;
        }
        let shared = split_shared(filter);
        self.subscriptions.push(Subscription {
            filter: shared.map_or(filter, |(_, filter)| filter).to_owned(),
            group: shared.map(|_| filter.to_owned()),
            qos,
            requests: 1,
            asked: event,
            acknowledged: None,
            is_leaving: false,
            ended: None,
        });
    }

    /// Returns how many acknowledgements became certain.
    pub(super) fn subscribed(&mut self, filter: &str, event: u64) -> u64 {
        if let Some(current) = self.current(filter) {
            current.acknowledged.get_or_insert(event);
        }
        if !filter.starts_with(FENCE) {
            return 0;
        }
        let mut count = 0;
        for number in std::mem::take(&mut self.fence) {
            if let Some(copies) = self.seen.get_mut(&number) {
                count += 1;
                copies.settle();
            }
        }
        count
    }

    /// Returns the group that loses a member.
    pub(super) fn unsubscribing(&mut self, filter: &str) -> Option<String> {
        let current = self.current(filter)?;
        current.is_leaving = true;
        current.group.clone()
    }

    pub(super) fn unsubscribed(&mut self, filter: &str, event: u64) {
        if let Some(current) = self.current(filter) {
            current.ended = Some(event);
        }
    }

    /// Whether the message has to be delivered to this session.
    pub(super) fn owes(&self, message: &Message) -> bool {
        let owes = |subscription: &Subscription| {
            subscription.group.is_none()
                && subscription.qos_of(message) > 0
                && subscription.owes(message)
        };
        self.subscriptions.iter().any(owes)
    }

    /// Groups of this session that have to deliver the message.
    pub(super) fn groups_for<'a>(&'a self, message: &'a Message) -> impl Iterator<Item = &'a str> {
        let owing = self
            .subscriptions
            .iter()
            .filter(|subscription| subscription.owes(message));
        owing.filter_map(Subscription::group)
    }

    /// The subscription by which a message may arrive with this `QoS`.
    pub(super) fn permission(&self, message: &Message, qos: u8) -> Option<&Subscription> {
        let permits = |subscription: &&Subscription| {
            subscription.permits(message) && subscription.qos_of(message) == qos
        };
        self.subscriptions.iter().find(permits)
    }

    /// How often retained messages of a topic may arrive as an answer to SUBSCRIBE.
    pub(super) fn replays_of(&self, topic: &str) -> u32 {
        let of_topic = self
            .subscriptions
            .iter()
            .filter(|subscription| subscription.matches(topic));
        of_topic.map(|subscription| subscription.requests).sum()
    }

    /// The connection is gone: messages acknowledged on it without a fence may be repeated at any
    /// time.
    pub(super) fn connection_ended(&mut self) {
        self.unsettled.clear();
        self.fence.clear();
    }

    /// It is unknown whether the session still exists: nothing is owed, and no subscription is
    /// certain. Returns its groups.
    pub(super) fn disown(&mut self) -> Vec<String> {
        self.owed.clear();
        self.identifiers.doubt();
        for subscription in &mut self.subscriptions {
            subscription.acknowledged = None;
        }
        self.subscriptions
            .iter()
            .filter_map(|subscription| subscription.group.clone())
            .collect()
    }

    fn current(&mut self, filter: &str) -> Option<&mut Subscription> {
        let name = |subscription: &Subscription| match &subscription.group {
            Some(group) => group == filter,
            None => subscription.filter == filter,
        };
        self.subscriptions
            .iter_mut()
            .find(|subscription| subscription.ended.is_none() && name(subscription))
    }
}
