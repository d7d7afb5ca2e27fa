//! The current records, which must move when their segment is reclaimed.
//!
//! A record is never looked up by its position. Records that are written once (messages,
//! deliveries) are current as long as their number is known; records that are written repeatedly
//! (sessions, subscriptions, wills) are identified by a fingerprint of their bytes.

use std::hash::BuildHasher;

use foldhash::quality::RandomState;
use hashbrown::HashMap;

use super::deliveries::{Deliveries, Delivery};
use super::print::{Print, record_len, swap};
use super::recovered::RecoveredMessage;
use crate::record::{Change, Inflight, MessageId, Queued, Retained, Seq, SessionId};

/// Estimated bytes of the log per delivery: its record and frame, without identifiers and shared
/// subscription.
const DELIVERY_BYTES: u64 = 46;
/// A session.
#[derive(Debug, Default)]
pub(super) struct Entry {
    pub(super) own: Print,
    pub(super) will: Print,
    /// Subscriptions by the hash of the filter, in ascending order.
    pub(super) subscriptions: Vec<(u64, Print)>,
    pub(super) deliveries: Deliveries,
    /// Packet identifiers, in ascending order.
    pub(super) received: Vec<u16>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Body {
    /// 0 while only references are known.
    len: u32,
    references: u32,
}

#[derive(Clone, Copy, Debug)]
struct Topic {
    change: u64,
    /// `None` if it was removed: the entry prevents older changes from taking effect until its own
    /// record has been reclaimed.
    message: Option<MessageId>,
    len: u64,
}

/// The current records.
#[derive(Debug, Default)]
pub(crate) struct Index {
    hasher: RandomState,
    sessions: HashMap<SessionId, Entry>,
    messages: HashMap<MessageId, Body>,
    topics: HashMap<u64, Topic>,
    clock: Print,
    reclaimed: Print,
    live_bytes: u64,
}

impl Index {
    /// Bytes of the log that are current, with frames: exact for messages, estimated for
    /// deliveries.
    pub(crate) fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    /// Number of sessions and of messages.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.sessions.len(), self.messages.len())
    }

    /// Records a change; returns `false` if it changes nothing and need not be written.
    pub(crate) fn apply(&mut self, change: &Change<'_>, payload: &[u8]) -> bool {
        match *change {
            Change::Session(session) => {
                let print = self.print(payload);
                let own = &mut self.sessions.entry(session.id).or_default().own;
                swap(own, print, &mut self.live_bytes)
            }
            Change::SessionRemoved { session } => self.remove_session(session),
            Change::Subscription(subscription) => {
                let (filter, print) = (self.hash(subscription.filter), self.print(payload));
                self.subscribe(subscription.session, filter, print)
            }
            Change::SubscriptionRemoved { session, filter } => self.unsubscribe(session, filter),
            Change::Message(message) => self.add_body(message.id, record_len(payload)),
            Change::Queued(queued) => self.queue(&queued),
            Change::Inflight(inflight) => self.step(inflight),
            Change::DeliveryRemoved { session, seq } => self.remove_delivery(session, seq),
            Change::Received { session, packet_id } => {
                let received = &mut self.sessions.entry(session).or_default().received;
                let place = received.binary_search(&packet_id.as_u16());
                place
                    .map_err(|place| received.insert(place, packet_id.as_u16()))
                    .is_err()
            }
            Change::ReceivedRemoved { session, packet_id } => {
                let Some(entry) = self.sessions.get_mut(&session) else {
                    return false;
                };
                let place = entry.received.binary_search(&packet_id.as_u16());
                place.map(|place| entry.received.remove(place)).is_ok()
            }
            Change::Will(will) => {
                let print = self.print(payload);
                let kept = &mut self.sessions.entry(will.session).or_default().will;
                swap(kept, print, &mut self.live_bytes)
            }
            Change::WillRemoved { session } => {
                let entry = self.sessions.get_mut(&session);
                entry.is_some_and(|entry| {
                    swap(&mut entry.will, Print::default(), &mut self.live_bytes)
                })
            }
            Change::Retained(Retained {
                change,
                topic,
                message,
                source: _,
            }) => self.retain(change, topic, Some(message), record_len(payload)),
            Change::RetainedRemoved { change, topic } => {
                self.retain(change, topic, None, record_len(payload))
            }
            Change::Clock(_) => {
                let print = self.print(payload);
                swap(&mut self.clock, print, &mut self.live_bytes)
            }
            Change::Reclaimed { .. } => {
                let print = self.print(payload);
                swap(&mut self.reclaimed, print, &mut self.live_bytes)
            }
        }
    }

    /// Whether a record of the oldest segment has to move. Entries that existed only until their
    /// record is reclaimed are removed.
    pub(crate) fn is_current(&mut self, change: &Change<'_>, payload: &[u8]) -> bool {
        let entry = |session| self.sessions.get(&session);
        match *change {
            Change::Session(session) => {
                entry(session.id).is_some_and(|entry| entry.own == self.print(payload))
            }
            Change::Subscription(subscription) => {
                let filter = self.hash(subscription.filter);
                entry(subscription.session).is_some_and(|entry| {
                    entry
                        .subscriptions
                        .binary_search(&(filter, self.print(payload)))
                        .is_ok()
                })
            }
            Change::Will(will) => {
                entry(will.session).is_some_and(|entry| entry.will == self.print(payload))
            }
            Change::Message(message) => self.is_referenced(message.id),
            Change::Queued(queued) => entry(queued.session)
                .and_then(|entry| entry.deliveries.get(queued.seq))
                .is_some_and(|delivery| delivery.message().is_some()),
            Change::Inflight(inflight) => entry(inflight.session)
                .is_some_and(|entry| entry.deliveries.is_at(inflight.seq, inflight.awaiting)),
            Change::Received { session, packet_id } => entry(session)
                .is_some_and(|entry| entry.received.binary_search(&packet_id.as_u16()).is_ok()),
            Change::Retained(retained) => {
                let topic = self.topics.get(&self.hash(retained.topic));
                topic
                    .is_some_and(|topic| topic.change == retained.change && topic.message.is_some())
            }
            Change::RetainedRemoved { change, topic } => {
                self.forget_removed(change, self.hash(topic));
                false
            }
            Change::Clock(_) => self.clock == self.print(payload),
            Change::Reclaimed { .. } => self.reclaimed == self.print(payload),
            // No older record exists that a removal applies to.
            Change::SessionRemoved { .. }
            | Change::SubscriptionRemoved { .. }
            | Change::DeliveryRemoved { .. }
            | Change::ReceivedRemoved { .. }
            | Change::WillRemoved { .. } => false,
        }
    }

    /// Restores a replayed session; its messages follow.
    pub(super) fn restore_session(&mut self, id: SessionId, entry: Entry) {
        let subscriptions: u64 = entry.subscriptions.iter().map(|(_, print)| print.len).sum();
        self.live_bytes += entry.own.len + entry.will.len + subscriptions;
        self.live_bytes += entry.deliveries.len() as u64 * DELIVERY_BYTES;
        self.sessions.insert(id, entry);
    }

    /// Restores the last note of the clock.
    pub(super) fn restore_clock(&mut self, print: Print) {
        self.live_bytes += print.len;
        self.clock = print;
    }

    /// Restores the last segment that was removed.
    pub(super) fn restore_reclaimed(&mut self, print: Print) {
        self.live_bytes += print.len;
        self.reclaimed = print;
    }

    /// Reserves room for that many messages.
    pub(super) fn expect_messages(&mut self, count: usize) {
        self.messages.reserve(count);
    }

    /// Restores a message with its references.
    pub(super) fn restore_message(&mut self, message: &RecoveredMessage, references: u32) {
        let len = message.record_len;
        self.live_bytes += u64::from(len);
        self.messages.insert(message.id, Body { len, references });
    }

    /// Restores a topic; the reference to its message is already counted.
    pub(super) fn restore_topic(
        &mut self,
        topic: &str,
        change: u64,
        message: Option<MessageId>,
        len: u64,
    ) {
        self.live_bytes += len;
        let topic = self.hash(topic);
        self.topics.insert(
            topic,
            Topic {
                change,
                message,
                len,
            },
        );
    }

    /// Fingerprint of a record.
    pub(super) fn print(&self, payload: &[u8]) -> Print {
        Print::new(self.hasher.hash_one(payload), payload)
    }

    /// Hash of a filter or topic.
    pub(super) fn hash(&self, text: &str) -> u64 {
        self.hasher.hash_one(text)
    }

    fn remove_session(&mut self, session: SessionId) -> bool {
        let Some(entry) = self.sessions.remove(&session) else {
            return false;
        };
        let subscriptions: u64 = entry.subscriptions.iter().map(|(_, print)| print.len).sum();
        self.free(entry.own.len + entry.will.len + subscriptions);
        self.free(entry.deliveries.len() as u64 * DELIVERY_BYTES);
        for delivery in entry.deliveries.iter() {
            self.release(delivery);
        }
        true
    }

    fn subscribe(&mut self, session: SessionId, filter: u64, print: Print) -> bool {
        let list = &mut self.sessions.entry(session).or_default().subscriptions;
        let at = list.partition_point(|(other, _)| *other < filter);
        match list.get_mut(at) {
            Some((same, kept)) if *same == filter => swap(kept, print, &mut self.live_bytes),
            _ => {
                // Most sessions have one subscription: growth by default would allocate four.
                list.reserve_exact(usize::from(list.is_empty()));
                list.insert(at, (filter, print));
                self.live_bytes += print.len;
                true
            }
        }
    }

    fn unsubscribe(&mut self, session: SessionId, filter: &str) -> bool {
        let filter = self.hash(filter);
        let Some(entry) = self.sessions.get_mut(&session) else {
            return false;
        };
        let list = &mut entry.subscriptions;
        let Ok(at) = list.binary_search_by_key(&filter, |(other, _)| *other) else {
            return false;
        };
        let (_, print) = list.remove(at);
        self.free(print.len);
        true
    }

    fn add_body(&mut self, id: MessageId, len: u64) -> bool {
        let body = self.messages.entry(id).or_default();
        if body.len > 0 {
            return false;
        }
        body.len = u32::try_from(len).unwrap_or(u32::MAX);
        if body.references > 0 {
            self.live_bytes += u64::from(body.len);
        }
        true
    }

    fn queue(&mut self, queued: &Queued<'_>) -> bool {
        let deliveries = &mut self.sessions.entry(queued.session).or_default().deliveries;
        let is_new = deliveries.insert(queued.seq, Delivery::queued(queued.message));
        if is_new {
            self.live_bytes += DELIVERY_BYTES;
            self.refer(queued.message);
        }
        is_new
    }

    fn step(&mut self, inflight: Inflight) -> bool {
        let Some(entry) = self.sessions.get_mut(&inflight.session) else {
            return false;
        };
        let Some(before) = entry.deliveries.step(inflight.seq, inflight.awaiting) else {
            return false;
        };
        if before.after(inflight.awaiting).message().is_none() {
            self.release(before);
        }
        true
    }

    fn remove_delivery(&mut self, session: SessionId, seq: Seq) -> bool {
        let Some(entry) = self.sessions.get_mut(&session) else {
            return false;
        };
        let Some(delivery) = entry.deliveries.remove(seq) else {
            return false;
        };
        self.free(DELIVERY_BYTES);
        self.release(delivery);
        true
    }

    fn retain(&mut self, change: u64, topic: &str, message: Option<MessageId>, len: u64) -> bool {
        let key = self.hash(topic);
        let after = Topic {
            change,
            message,
            len,
        };
        let before = match self.topics.get_mut(&key) {
            Some(topic) if topic.change >= change => return false,
            Some(topic) => Some(std::mem::replace(topic, after)),
            None => {
                self.topics.insert(key, after);
                None
            }
        };
        self.live_bytes += len;
        if let Some(message) = message {
            self.refer(message);
        }
        if let Some(before) = before {
            self.free(before.len);
            if let Some(message) = before.message {
                self.unrefer(message);
            }
        }
        true
    }

    fn forget_removed(&mut self, change: u64, topic: u64) {
        let is_it = |topic: &Topic| topic.change == change && topic.message.is_none();
        if self.topics.get(&topic).is_some_and(is_it) {
            let gone = self.topics.remove(&topic);
            self.free(gone.map_or(0, |topic| topic.len));
        }
    }

    fn is_referenced(&mut self, id: MessageId) -> bool {
        match self.messages.get(&id) {
            Some(body) if body.references > 0 => true,
            Some(_) => {
                self.messages.remove(&id);
                false
            }
            None => false,
        }
    }

    fn refer(&mut self, id: MessageId) {
        let body = self.messages.entry(id).or_default();
        body.references += 1;
        if body.references == 1 {
            self.live_bytes += u64::from(body.len);
        }
    }

    fn release(&mut self, delivery: Delivery) {
        if let Some(message) = delivery.message() {
            self.unrefer(message);
        }
    }

    fn unrefer(&mut self, id: MessageId) {
        let Some(body) = self.messages.get_mut(&id) else {
            return;
        };
        body.references = body.references.saturating_sub(1);
        if body.references == 0 {
            let len = u64::from(body.len);
            self.messages.remove(&id);
            self.free(len);
        }
    }

    fn free(&mut self, bytes: u64) {
        self.live_bytes = self.live_bytes.saturating_sub(bytes);
    }
}
