//! How a session delivers: new messages, the queue behind the window, and redelivery.

use thrum_codec::QoS;

use super::held::{Held, held_bytes};
use super::link::HeldPacket;
use super::outbound::{Newcomer, Next};
use super::{Delivered, DeliveryOptions, DropReason, Session};
use crate::limits::QueuePolicy;
use crate::{Limits, Message, Outgoing, Output, Time};

/// Bytes of messages after which one packet of the client, or its connect, triggers no further
/// ones.
const BURST_BYTES: usize = 256 * 1024;

impl Session {
    /// A message for this client: into `out` if there is a connection, a window and room, else
    /// queued or dropped.
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

    /// Whether a message would have to wait in the queue, instead of being sent at once or dropped.
    pub fn would_queue(&self, qos: QoS) -> bool {
        let is_up = self.link.is_up();
        if qos == QoS::AtMostOnce {
            let is_kept = self.limits.queue.qos0 && self.lifetime.is_persistent();
            return if is_up {
                self.link.may_send() && self.outbound.queue.has_fleeting()
            } else {
                is_kept
            };
        }
        let is_sent = self.link.may_send() && self.outbound.is_open();
        !is_sent && (is_up || self.lifetime.is_persistent())
    }

    /// Whether a message that is sent or queued now finds room.
    pub fn has_room_for(&self, message: &Message, qos: QoS, identifiers: usize) -> bool {
        let bytes = held_bytes(message, identifiers);
        !self.would_queue(qos) || self.outbound.queue.has_room(bytes, &self.limits)
    }

    /// Moves queued messages into `out` while the window is open and `out` is below `bytes_max`;
    /// true if more could follow at once.
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

    /// Messages with `QoS` 1 and 2 that are certain to be sent at once.
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
        // Nothing new overtakes what has waited since the client was away. [MQTT-4.6.0-6]
        // [MQTT3-4.6.0-6]
        if self.outbound.queue.has_fleeting() {
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
            // Once it is owned, it is sent without a copy.
            outgoing.message();
        }
        if let Err(reason) = self.link.send(outgoing, form, out) {
            return Delivered::Dropped(reason);
        }
        if must_keep {
            let message = outgoing.message();
            let seq = self.journal.note_queued(message, options);
            let held = Held::new(message, options, seq, now);
            self.outbound.begin(packet_id, held, &mut self.journal);
        } else {
            self.outbound.inflight.push_unkept(packet_id, options.qos);
        }
        Delivered::Sent
    }

    /// Only a session that can be resumed, or a shared group, may need the message again; and what
    /// was written down must be removed there.
    fn must_keep(&self, is_shared: bool) -> bool {
        is_shared
            || self.lifetime.is_persistent()
            || self.journal.is_on()
            // Its bytes are counted for as long as it is kept.
            || self.outbound.inflight.counts_bytes()
            // Or nobody knows at its end what it was.
            || self.outbound.fates.tells_each()
    }

    /// Puts a message into the queue, if there is room or others make some.
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
        let newcomer = Newcomer {
            bytes: held_bytes(message, options.identifiers.len()),
            priority,
            qos: options.qos,
        };
        let limits = &*self.limits;
        if !self.outbound.queue.has_room(newcomer.bytes, limits)
            && !self
                .outbound
                .make_room(newcomer, now, limits, &mut self.journal)
            && !may_exceed_limits(options, limits)
        {
            return Delivered::Dropped(DropReason::QueueFull);
        }
        // [MQTT-4.5.0-1] [MQTT3-4.5.0-1] [MQTT3-3.1.2-5]
        let seq = self.journal.note_queued(message, options);
        let held = Held::new(message, options, seq, now);
        self.outbound.queue.push(held, priority);
        Delivered::Queued
    }

    /// Sends or drops the message whose turn it is; none if there is none.
    fn send_queued(&mut self, now: Time, out: &mut Output) -> Option<()> {
        let held = self.outbound.queue.pop()?;
        if let Some(cause) = held.staleness(&self.limits, now) {
            self.outbound.drop_held(&held, cause, &mut self.journal);
            return Some(());
        }
        let packet_id = match held.qos {
            QoS::AtMostOnce => None,
            // The window is open, so fewer identifiers are in use than there are.
            QoS::AtLeastOnce | QoS::ExactlyOnce => Some(self.outbound.inflight.next_packet_id()?),
        };
        if let Err(cause) = self
            .link
            .send_held(&held, HeldPacket::first(packet_id), now, out)
        {
            self.outbound.drop_held(&held, cause, &mut self.journal);
            return Some(());
        }
        self.outbound.fates.sent(&held);
        match packet_id {
            None => {}
            Some(packet_id) if self.must_keep(held.group.is_some()) => {
                self.outbound.begin(packet_id, held, &mut self.journal);
            }
            Some(packet_id) => self.outbound.inflight.push_unkept(packet_id, held.qos),
        }
        Some(())
    }

    /// Sends one message again, in the order they were sent first; none if there is none.
    // [MQTT-4.6.0-1] [MQTT3-4.6.0-1]
    fn redeliver_next(&mut self, now: Time, out: &mut Output) -> Option<()> {
        // Its expiry no longer matters. [MQTT-4.3.3-7]
        let (place, packet_id, held) = self.outbound.inflight.take_unsent()?;
        // [MQTT-3.3.1-1] [MQTT3-3.3.1-1]
        match self
            .link
            .send_held(&held, HeldPacket::again(packet_id), now, out)
        {
            Ok(()) => {
                self.outbound.fates.sent(&held);
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

    /// Drops what waits and may not be delivered any more: `is_allowed` is asked about each topic
    /// and quality of service. Messages of shared groups stay: whether they are given to another
    /// member is decided with their subscription. How many there were.
    pub fn drop_forbidden(&mut self, is_allowed: impl FnMut(&str, QoS) -> bool) -> usize {
        self.outbound.drop_forbidden(is_allowed, &mut self.journal)
    }

    /// Drops the messages at the front of the queue that are no longer to be delivered.
    pub fn drop_stale(&mut self, now: Time) {
        self.outbound
            .drop_stale(now, &self.limits, &mut self.journal);
    }
}

/// How far one packet of the client, or its connect, may fill the output with messages.
pub(super) fn burst_end(out: &Output) -> usize {
    out.len().saturating_add(BURST_BYTES)
}

/// What was acknowledged is taken in any case, but by a queue that takes back what it has
/// acknowledged.
fn may_exceed_limits(options: &DeliveryOptions<'_>, limits: &Limits) -> bool {
    let takes_back = limits.queue.policy == QueuePolicy::DropOldest;
    options.is_acknowledged && options.qos != QoS::AtMostOnce && !takes_back
}
