//! Delivery by a session: new messages, the queue behind the window, and retransmission.

use thrum_codec::QoS;

use super::held::{Held, held_bytes};
use super::link::HeldPacket;
use super::outbound::{NewMessage, Next};
use super::{Delivered, DeliveryOptions, DropReason, Session};
use crate::limits::QueuePolicy;
use crate::{Limits, Message, Outgoing, Output, Time};

/// Bytes of messages after which one packet of the client, or its CONNECT, triggers no more
/// messages.
const BURST_BYTES: usize = 256 * 1024;

impl Session {
    /// Delivers a message to this client: written to `out` if there is a connection, room in the
    /// window and in the output, otherwise queued or dropped.
    pub fn deliver(
        &mut self,
        outgoing: &mut Outgoing<'_>,
        options: DeliveryOptions<'_>,
        now: Time,
        out: &mut Output,
    ) -> Delivered {
        // [MQTT-3.3.2-5]
        if outgoing.publication().is_expired(now) {
            return Delivered::Dropped(DropReason::Expired);
        }
        if options.qos == QoS::AtMostOnce {
            return self.deliver_qos0(outgoing, &options, now, out);
        }
        if self.link.may_send() && self.outbound.is_open() {
            return self.deliver_now(outgoing, &options, now, out);
        }
        if !self.link.is_up() && !self.lifetime.is_persistent() {
            return Delivered::Dropped(DropReason::Offline);
        }
        self.enqueue(outgoing, &options, now)
    }

    /// Whether a message would be queued instead of being sent at once or dropped.
    pub fn would_queue(&self, qos: QoS) -> bool {
        let is_up = self.link.is_up();
        if qos == QoS::AtMostOnce {
            let is_kept = self.limits.queue.qos0 && self.lifetime.is_persistent();
            return if is_up {
                self.link.may_send() && self.outbound.queue.has_qos0()
            } else {
                is_kept
            };
        }
        let is_sent = self.link.may_send() && self.outbound.is_open();
        !is_sent && (is_up || self.lifetime.is_persistent())
    }

    /// Whether a message needs no room in the queue, or finds it.
    pub fn has_room_for(&self, message: &Message, qos: QoS, identifiers: usize) -> bool {
        let bytes = held_bytes(message, identifiers);
        !self.would_queue(qos) || self.outbound.queue.has_room(bytes, &self.limits)
    }

    /// Moves queued messages into `out` while the window is open and `out` is below `bytes_max`;
    /// returns whether more could follow at once.
    pub fn pump(&mut self, now: Time, bytes_max: usize, out: &mut Output) -> bool {
        loop {
            let moved = match self.outbound.next() {
                Next::Nothing => None,
                Next::Redelivery | Next::Queued if !self.link.may_send() => None,
                Next::Redelivery | Next::Queued if out.len() >= bytes_max => return true,
                Next::Redelivery => self.redeliver_next(now, out),
                Next::Queued => self.send_queued(now, out),
            };
            if moved.is_none() {
                return false;
            }
        }
    }

    /// Number of messages with `QoS` 1 and 2 that are certain to be sent at once.
    pub fn free_window(&self) -> usize {
        if self.link.may_send() {
            self.outbound.room()
        } else {
            0
        }
    }

    fn deliver_qos0(
        &mut self,
        outgoing: &mut Outgoing<'_>,
        options: &DeliveryOptions<'_>,
        now: Time,
        out: &mut Output,
    ) -> Delivered {
        if !self.link.is_up() {
            return if self.limits.queue.qos0 && self.lifetime.is_persistent() {
                self.enqueue(outgoing, options, now)
            } else {
                Delivered::Dropped(DropReason::Offline)
            };
        }
        if !self.link.may_send() {
            return Delivered::Dropped(DropReason::SlowConsumer);
        }
        // A new message must not overtake those queued while the client was disconnected.
        // [MQTT-4.6.0-6] [MQTT3-4.6.0-6]
        if self.outbound.queue.has_qos0() {
            return self.enqueue(outgoing, options, now);
        }
        // [MQTT-4.3.1-1] [MQTT3-4.3.1-1]
        let form = self.link.first_form(options, None, now);
        match self.link.send(outgoing, form, out) {
            Ok(()) => Delivered::Sent,
            Err(reason) => Delivered::Dropped(reason),
        }
    }

    #[inline(never)]
    fn deliver_now(
        &mut self,
        outgoing: &mut Outgoing<'_>,
        options: &DeliveryOptions<'_>,
        now: Time,
        out: &mut Output,
    ) -> Delivered {
        let Some(packet_id) = self.outbound.inflight.next_packet_id() else {
            return self.enqueue(outgoing, options, now);
        };
        // [MQTT-3.1.2-24] [MQTT-3.1.2-25]
        let form = self.link.first_form(options, Some(packet_id), now);
        let must_keep = self.must_keep(options.group.is_some());
        if must_keep && outgoing.publication().is_large() {
            // An owned message is sent without a copy.
            outgoing.message();
        }
        if let Err(reason) = self.link.send(outgoing, form, out) {
            return Delivered::Dropped(reason);
        }
        if must_keep {
            let message = outgoing.message();
            let seq = self.journal.record_queued(message, options);
            let held = Held::new(message, options, seq, now);
            self.outbound.begin(packet_id, held, &mut self.journal);
        } else {
            self.outbound.inflight.push_unkept(packet_id, options.qos);
        }
        Delivered::Sent
    }

    /// Whether the message must be kept: a session that can be resumed, or a shared subscription,
    /// may need it again, and a persisted message must be removed from the storage.
    fn must_keep(&self, is_shared: bool) -> bool {
        is_shared
            || self.lifetime.is_persistent()
            || self.journal.is_on()
            // The bytes of a message are counted for as long as it is kept.
            || self.outbound.inflight.counts_bytes()
            // A delivery event contains the message.
            || self.outbound.events.records_each()
    }

    /// Queues a message if there is room, or if other messages can be dropped for it.
    fn enqueue(
        &mut self,
        outgoing: &mut Outgoing<'_>,
        options: &DeliveryOptions<'_>,
        now: Time,
    ) -> Delivered {
        let priority = self.limits.queue.priority(outgoing.publication().topic);
        let message = outgoing.message();
        if self.limits.queue.age_max.is_some() {
            self.drop_stale(now);
        }
        let new = NewMessage {
            bytes: held_bytes(message, options.identifiers.len()),
            priority,
            qos: options.qos,
        };
        let limits = &*self.limits;
        if !self.outbound.queue.has_room(new.bytes, limits)
            && !self.outbound.make_room(new, now, limits, &mut self.journal)
            && !may_exceed_limits(options, limits)
        {
            return Delivered::Dropped(DropReason::QueueFull);
        }
        // [MQTT-4.5.0-1] [MQTT3-4.5.0-1] [MQTT3-3.1.2-5]
        let seq = self.journal.record_queued(message, options);
        let held = Held::new(message, options, seq, now);
        self.outbound.queue.push(held, priority);
        Delivered::Queued
    }

    /// Sends or drops the first queued message; `None` if the queue is empty.
    fn send_queued(&mut self, now: Time, out: &mut Output) -> Option<()> {
        let held = self.outbound.queue.pop()?;
        if let Some(cause) = held.staleness(&self.limits, now) {
            self.outbound.drop_held(&held, cause, &mut self.journal);
            return Some(());
        }
        let packet_id = match held.qos {
            QoS::AtMostOnce => None,
            // The window is open, so some packet identifier is free.
            QoS::AtLeastOnce | QoS::ExactlyOnce => Some(self.outbound.inflight.next_packet_id()?),
        };
        if let Err(cause) = self
            .link
            .send_held(&held, HeldPacket::first(packet_id), now, out)
        {
            self.outbound.drop_held(&held, cause, &mut self.journal);
            return Some(());
        }
        self.outbound.events.sent(&held, packet_id, out.len());
        match packet_id {
            None => {}
            Some(packet_id) if self.must_keep(held.group.is_some()) => {
                self.outbound.begin(packet_id, held, &mut self.journal);
            }
            Some(packet_id) => self.outbound.inflight.push_unkept(packet_id, held.qos),
        }
        Some(())
    }

    /// Retransmits one message, in the order of the first transmission; `None` if there is none.
    // [MQTT-4.6.0-1] [MQTT3-4.6.0-1]
    fn redeliver_next(&mut self, now: Time, out: &mut Output) -> Option<()> {
        // A retransmission ignores the message expiry. [MQTT-4.3.3-7]
        let (place, packet_id, held) = self.outbound.inflight.take_unsent()?;
        // [MQTT-3.3.1-1] [MQTT3-3.3.1-1]
        match self
            .link
            .send_held(&held, HeldPacket::again(packet_id), now, out)
        {
            Ok(()) => {
                self.outbound.events.sent(&held, Some(packet_id), out.len());
                self.outbound.inflight.put_back(place, held);
            }
            // [MQTT-3.1.2-25]
            Err(cause) => {
                let journal = &mut self.journal;
                self.outbound.drop_unsent(place, &held, cause, journal);
            }
        }
        Some(())
    }

    /// Drops the queued messages that may no longer be delivered: `is_allowed` is called with each
    /// topic and quality of service. Messages of shared subscriptions stay; the node decides about
    /// them when it checks the subscription. Returns the number of dropped messages.
    pub fn drop_forbidden(&mut self, is_allowed: impl FnMut(&str, QoS) -> bool) -> usize {
        self.outbound.drop_forbidden(is_allowed, &mut self.journal)
    }

    /// Drops the messages at the front of the queue that must no longer be delivered.
    pub fn drop_stale(&mut self, now: Time) {
        self.outbound
            .drop_stale(now, &self.limits, &mut self.journal);
    }
}

/// Output length up to which one packet of the client, or its CONNECT, may cause messages.
pub(super) fn burst_end(out: &Output) -> usize {
    out.len().saturating_add(BURST_BYTES)
}

/// Whether a message may exceed the limits of the queue: its publisher has an acknowledgement, and
/// the policy does not drop acknowledged messages.
fn may_exceed_limits(options: &DeliveryOptions<'_>, limits: &Limits) -> bool {
    let drops_acknowledged = limits.queue.policy == QueuePolicy::DropOldest;
    options.is_acknowledged && options.qos != QoS::AtMostOnce && !drops_acknowledged
}
