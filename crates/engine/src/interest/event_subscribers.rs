//! The kinds of client events that have subscribers, as a set of bits.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};

use thrum_codec::topic;

/// Kinds of client events, each with its own topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A client has connected.
    ClientConnected,
    /// The connection of a client has ended.
    ClientDisconnected,
    /// A session has a new or changed subscription.
    SessionSubscribed,
    /// A subscription of a session has ended.
    SessionUnsubscribed,
    /// A message was sent to a client.
    MessageDelivered,
    /// A client has acknowledged a message.
    MessageAcknowledged,
    /// A message reached no receiver.
    MessageDropped,
    /// A message did not reach one of its subscribers.
    DeliveryDropped,
}

/// Prefix of the topics of events.
pub const EVENTS: &str = "$events/";

impl EventKind {
    const ALL: [Self; 8] = [
        Self::ClientConnected,
        Self::ClientDisconnected,
        Self::SessionSubscribed,
        Self::SessionUnsubscribed,
        Self::MessageDelivered,
        Self::MessageAcknowledged,
        Self::MessageDropped,
        Self::DeliveryDropped,
    ];

    /// The topic of the event.
    pub const fn topic(self) -> &'static str {
        match self {
            Self::ClientConnected => "$events/client/connected",
            Self::ClientDisconnected => "$events/client/disconnected",
            Self::SessionSubscribed => "$events/session/subscribed",
            Self::SessionUnsubscribed => "$events/session/unsubscribed",
            Self::MessageDelivered => "$events/message/delivered",
            Self::MessageAcknowledged => "$events/message/acked",
            Self::MessageDropped => "$events/message/dropped",
            Self::DeliveryDropped => "$events/message/delivery_dropped",
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// Kinds of events about the delivery of messages.
const OF_DELIVERIES: u8 = EventKind::MessageDelivered.bit()
    | EventKind::MessageAcknowledged.bit()
    | EventKind::DeliveryDropped.bit();

/// The kinds of events that a subscribed filter of the node matches.
#[derive(Debug, Default)]
pub(crate) struct EventSubscribers {
    /// A bit for each kind with a matching filter.
    kinds: AtomicU8,
    /// Number of matching filters by kind; the lock guards changes of both fields.
    filters: Mutex<[u32; EventKind::ALL.len()]>,
}

impl EventSubscribers {
    /// Whether a filter matches events of a kind.
    #[inline]
    pub(crate) fn want(&self, kind: EventKind) -> bool {
        self.kinds.load(Ordering::Relaxed) & kind.bit() != 0
    }

    /// Whether a filter matches events about the delivery of messages.
    #[inline]
    pub(crate) fn want_deliveries(&self) -> bool {
        self.kinds.load(Ordering::Relaxed) & OF_DELIVERIES != 0
    }

    /// Counts a filter that a destination enters in the table.
    #[inline]
    pub(super) fn add_filter(&self, filter: &str) {
        if filter.starts_with('$') {
            self.count(filter, |count| *count += 1);
        }
    }

    /// Subtracts a filter that a destination removes from the table.
    #[inline]
    pub(super) fn remove_filter(&self, filter: &str) {
        if filter.starts_with('$') {
            self.count(filter, |count| *count = count.saturating_sub(1));
        }
    }

    #[cold]
    fn count(&self, filter: &str, change: impl Fn(&mut u32)) {
        let mut filters = self.filters.lock().unwrap_or_else(PoisonError::into_inner);
        let mut kinds = 0;
        for (kind, count) in EventKind::ALL.into_iter().zip(filters.iter_mut()) {
            if topic::matches(filter, kind.topic()) {
                change(count);
            }
            if *count > 0 {
                kinds |= kind.bit();
            }
        }
        self.kinds.store(kinds, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(subscribers: &EventSubscribers) -> Vec<EventKind> {
        let all = EventKind::ALL.into_iter();
        all.filter(|kind| subscribers.want(*kind)).collect()
    }

    #[test]
    fn kinds_are_wanted_from_the_first_filter_that_matches_to_the_last() {
        let subscribers = EventSubscribers::default();
        for filter in ["#", "+/client/connected", "$SYS/#", "$events/x", "events/#"] {
            subscribers.add_filter(filter);
            assert_eq!(wanted(&subscribers), [], "{filter}");
        }
        for (topic, is_delivery) in EventKind::ALL.map(|kind| {
            let topic = kind.topic();
            let name = topic.rsplit('/').next().unwrap_or_default();
            (
                topic,
                ["delivered", "acked", "delivery_dropped"].contains(&name),
            )
        }) {
            subscribers.add_filter(topic);
            assert_eq!(subscribers.want_deliveries(), is_delivery, "{topic}");
            subscribers.remove_filter(topic);
        }
        subscribers.add_filter("$events/client/+");
        subscribers.add_filter("$events/client/connected");
        let both = [EventKind::ClientConnected, EventKind::ClientDisconnected];
        assert_eq!(wanted(&subscribers), both);
        assert!(!subscribers.want_deliveries());
        subscribers.remove_filter("$events/client/+");
        assert_eq!(wanted(&subscribers), both[..1]);
        subscribers.add_filter("$events/#");
        assert_eq!(wanted(&subscribers), EventKind::ALL);
        assert!(subscribers.want_deliveries());
        subscribers.remove_filter("$events/#");
        subscribers.remove_filter("$events/client/connected");
        assert_eq!(wanted(&subscribers), []);
    }
}
