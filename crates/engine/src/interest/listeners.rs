//! Who listens to what clients do: one look tells that nobody does.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};

use thrum_codec::topic;

/// What clients do, each with a topic of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    ClientConnected,
    ClientDisconnected,
    SessionSubscribed,
    SessionUnsubscribed,
    /// A message was sent to a client.
    MessageDelivered,
    /// A client has acknowledged it.
    MessageAcknowledged,
    /// A message reached nobody.
    MessageDropped,
    /// A message did not reach one of its subscribers.
    DeliveryDropped,
}

/// Topics of events begin with this.
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

    /// Where it is published.
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

/// Kinds of messages that a session held.
const OF_DELIVERIES: u8 = EventKind::MessageDelivered.bit()
    | EventKind::MessageAcknowledged.bit()
    | EventKind::DeliveryDropped.bit();

/// The kinds of events that a filter of the node matches.
#[derive(Debug, Default)]
pub struct Listeners {
    /// A bit for each kind.
    kinds: AtomicU8,
    /// Guards the change of both: filters that match, by kind.
    filters: Mutex<[u32; EventKind::ALL.len()]>,
}

impl Listeners {
    #[inline]
    pub fn want(&self, kind: EventKind) -> bool {
        self.kinds.load(Ordering::Relaxed) & kind.bit() != 0
    }

    /// Somebody wants to know what becomes of each delivery.
    #[inline]
    pub fn want_deliveries(&self) -> bool {
        self.kinds.load(Ordering::Relaxed) & OF_DELIVERIES != 0
    }

    /// Somebody has a filter that nobody of the same destination had before.
    #[inline]
    pub(super) fn filter_came(&self, filter: &str) {
        if filter.starts_with('$') {
            self.count(filter, |count| *count += 1);
        }
    }

    /// The last one of a destination has given it up.
    #[inline]
    pub(super) fn filter_went(&self, filter: &str) {
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

    fn wanted(listeners: &Listeners) -> Vec<EventKind> {
        let all = EventKind::ALL.into_iter();
        all.filter(|kind| listeners.want(*kind)).collect()
    }

    #[test]
    fn kinds_are_wanted_from_the_first_filter_that_matches_to_the_last() {
        let listeners = Listeners::default();
        for filter in ["#", "+/client/connected", "$SYS/#", "$events/x", "events/#"] {
            listeners.filter_came(filter);
            assert_eq!(wanted(&listeners), [], "{filter}");
        }
        listeners.filter_came("$events/client/+");
        listeners.filter_came("$events/client/connected");
        let both = [EventKind::ClientConnected, EventKind::ClientDisconnected];
        assert_eq!(wanted(&listeners), both);
        assert!(!listeners.want_deliveries());
        listeners.filter_went("$events/client/+");
        assert_eq!(wanted(&listeners), both[..1]);
        listeners.filter_came("$events/#");
        assert_eq!(wanted(&listeners), EventKind::ALL);
        assert!(listeners.want_deliveries());
        listeners.filter_went("$events/#");
        listeners.filter_went("$events/client/connected");
        assert_eq!(wanted(&listeners), []);
    }
}
