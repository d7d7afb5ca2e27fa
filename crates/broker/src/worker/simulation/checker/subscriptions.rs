//! The possible and the certain receivers of a message.

use std::collections::BTreeSet;

use thrum_codec::{QoS, topic};

use super::super::history::{CLIENTS_MAX, ClientNumber, Event};
use super::sessions::Sessions;

#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    clients: [Vec<Subscription>; CLIENTS_MAX],
    /// Every client that was ever in a group.
    members: BTreeSet<ClientNumber>,
    /// Every client with a session that ended with its connection.
    transient: BTreeSet<ClientNumber>,
}

#[derive(Clone, Copy, Debug)]
struct Subscription {
    filter: &'static str,
    /// Granted in that epoch of the session, and neither renewed nor cancelled since.
    granted: Option<(QoS, u32)>,
    /// SUBACK has not arrived.
    is_asked: bool,
    /// UNSUBSCRIBE was sent since.
    is_leaving: bool,
    /// UNSUBACK arrived at this position of the history.
    removed: Option<usize>,
}

impl Subscriptions {
    pub(super) fn observe(&mut self, place: usize, event: &Event, sessions: &Sessions) {
        match *event {
            Event::Connecting {
                client,
                expiry_secs: 0,
                ..
            } => {
                self.transient.insert(client);
            }
            Event::Connected {
                client,
                session_present: false,
            } => self.clients[client].clear(),
            Event::Disconnected { client, .. } => {
                for subscription in &mut self.clients[client] {
                    subscription.is_asked = false;
                }
            }
            Event::Subscribing { client, filter, .. } => self.asked(client, filter),
            Event::Subscribed {
                client,
                filter,
                granted,
            } => {
                let granted = granted.map(|qos| (qos, sessions.epoch(client)));
                self.answered(client, filter, granted);
            }
            Event::Unsubscribing { client, filter } => {
                for subscription in self.with_filter(client, filter) {
                    subscription.granted = None;
                    subscription.is_leaving = true;
                }
            }
            Event::Unsubscribed { client, filter } => {
                let leaving = self.with_filter(client, filter);
                for subscription in leaving.filter(|subscription| subscription.is_leaving) {
                    subscription.removed.get_or_insert(place);
                }
            }
            _ => {}
        }
    }

    /// Returns the clients with a certain subscription above QoS 0 to the topic, with the epochs of
    /// their sessions.
    pub(super) fn expected_receivers(
        &self,
        topic: &'static str,
        sessions: &Sessions,
    ) -> Vec<(ClientNumber, u32)> {
        let clients = self.clients.iter().enumerate();
        let epochs = clients.map(|(client, all)| (client, sessions.epoch(client), all));
        epochs
            .filter(|(_, epoch, all)| all.iter().any(|one| one.certainly_wants(topic, *epoch)))
            .map(|(client, epoch, _)| (client, epoch))
            .collect()
    }

    /// Whether the client may receive a message on the topic that was first sent at that position
    /// of the history.
    pub(super) fn may_want(&self, client: ClientNumber, topic: &str, sent: usize) -> bool {
        self.clients[client].iter().any(|subscription| {
            let was_there = subscription.removed.is_none_or(|place| place > sent);
            subscription.matches(topic) && was_there
        })
    }

    pub(super) fn members(&self) -> impl Iterator<Item = ClientNumber> {
        self.members.iter().copied()
    }

    /// The messages of such a member exist in memory only.
    pub(super) fn has_transient_member(&self) -> bool {
        !self.members.is_disjoint(&self.transient)
    }

    fn asked(&mut self, client: ClientNumber, filter: &'static str) {
        if filter.starts_with("$share/") {
            self.members.insert(client);
        }
        for subscription in self.with_filter(client, filter) {
            subscription.granted = None;
        }
        self.clients[client].push(Subscription {
            filter,
            granted: None,
            is_asked: true,
            is_leaving: false,
            removed: None,
        });
    }

    fn answered(
        &mut self,
        client: ClientNumber,
        filter: &'static str,
        granted: Option<(QoS, u32)>,
    ) {
        let mut asked = self.with_filter(client, filter);
        let Some(answered) = asked.find(|subscription| subscription.is_asked) else {
            return;
        };
        answered.is_asked = false;
        if asked.next().is_none() && !answered.is_leaving {
            answered.granted = granted;
        }
    }

    fn with_filter(
        &mut self,
        client: ClientNumber,
        filter: &'static str,
    ) -> impl Iterator<Item = &mut Subscription> {
        self.clients[client]
            .iter_mut()
            .filter(move |subscription| subscription.filter == filter)
    }
}

impl Subscription {
    fn matches(&self, name: &str) -> bool {
        topic::matches(plain_part(self.filter), name)
    }

    fn certainly_wants(&self, name: &str, epoch: u32) -> bool {
        let has_guarantee = |(qos, granted_in)| qos > QoS::AtMostOnce && granted_in == epoch;
        self.removed.is_none() && self.granted.is_some_and(has_guarantee) && self.matches(name)
    }
}

/// The filter without `$share/group/`.
pub(super) fn plain_part(filter: &str) -> &str {
    match filter.strip_prefix("$share/") {
        Some(rest) => rest.split_once('/').map_or(rest, |(_, filter)| filter),
        None => filter,
    }
}
