//! What goes to the client: new messages, the queue behind the window, and redelivery.

use alloc::sync::Arc;

use thrum_codec::packet::{Ack, Packet};
use thrum_codec::properties::AckProperties;
use thrum_codec::{PacketId, QoS, ReasonCode};

use super::held::Held;
use super::inflight::Place;
use super::session::Link;
use super::waiting::Cause;
use super::{Delivered, DeliveryOptions, DropReason, SentLater, Session};
use crate::message::Form;
use crate::{Message, Outgoing, Output, Time};

/// Bytes of messages after which one packet of the client, or its connect, triggers no further
/// ones.
const BURST_BYTES: usize = 256 * 1024;

/// The PUBLISH packet of a message that the session held.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldPacket {
    /// None with `QoS` 0.
    id: Option<PacketId>,
    is_sent_again: bool,
}

impl HeldPacket {
    pub(super) const fn first(id: Option<PacketId>) -> Self {
        Self {
            id,
            is_sent_again: false,
        }
    }

    const fn again(id: PacketId) -> Self {
        Self {
            id: Some(id),
            is_sent_again: true,
        }
    }
}

/// What can be sent next.
enum Next {
    Nothing,
    Redelivery,
    Queued,
}

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
        // Nothing new overtakes what waits. [MQTT-4.6.0-5] [MQTT-4.6.0-6] [MQTT3-4.6.0-5]
        // [MQTT3-4.6.0-6]
        if self.may_send() && self.queue.is_empty() && self.has_window() {
            return self.deliver_now(outgoing, &options, now, out);
        }
        if self.link != Link::Up && !self.is_persistent() {
            return Delivered::Dropped(DropReason::Offline);
        }
        self.enqueue(outgoing, &options, now)
    }

    /// Whether a message would have to wait in the queue, instead of being sent at once or dropped.
    pub fn would_queue(&self, qos: QoS) -> bool {
        let is_up = self.link == Link::Up;
        if qos == QoS::AtMostOnce {
            let is_kept = self.limits.queue_qos0 && self.is_persistent();
            return if is_up {
                !self.is_congested && self.queue.has_fleeting()
            } else {
                is_kept
            };
        }
        let is_sent = self.may_send() && self.queue.is_empty() && self.has_window();
        !is_sent && (is_up || self.is_persistent())
    }

    /// The connection's output is over its soft limit (or no longer): while set, nothing but
    /// acknowledgements is encoded, `QoS` 0 is dropped and `QoS` 1 and 2 are queued.
    pub fn set_congested(&mut self, congested: bool) {
        self.is_congested = congested;
    }

    /// Moves queued messages into `out` while the window is open and `out` is below `bytes_max`;
    /// true if more could follow at once.
    pub fn pump(&mut self, now: Time, bytes_max: usize, out: &mut Output) -> bool {
        loop {
            let moved = match self.next_to_send() {
                Next::Nothing => None,
                Next::Redelivery | Next::Queued if out.len() >= bytes_max => return true,
                Next::Redelivery => self.redeliver_next(now, out),
                Next::Queued => self.send_queued(now, out),
            };
            if moved.is_none() {
                return false;
            }
        }
    }

    /// Messages sent from the queue or once more since the last call: those that
    /// [`Session::deliver`] did not report as sent.
    pub fn take_sent_later(&mut self) -> SentLater {
        self.carried.take_later()
    }

    /// First packets of a connection behind CONNACK. [MQTT-4.4.0-1] [MQTT3-4.4.0-1]
    pub(super) fn redeliver(&mut self, now: Time, out: &mut Output) {
        let window_bytes_max = self.limits.inflight_bytes_max;
        self.inflight.begin_connection(window_bytes_max);
        // PUBREL is no part of the window: a client may get all of them at once. [MQTT-3.3.4-10]
        for packet_id in self.inflight.released() {
            let ack = Ack {
                packet_id,
                reason: ReasonCode::Success,
                properties: AckProperties::default(),
            };
            self.append(&Packet::PubRel(ack), out);
        }
        self.pump(now, out.len().saturating_add(BURST_BYTES), out);
    }

    /// An exchange is over, so there may be room for another message.
    pub(super) fn window_moved(&mut self, now: Time, out: &mut Output) {
        self.inflight.trim();
        self.pump(now, out.len().saturating_add(BURST_BYTES), out);
    }

    fn may_send(&self) -> bool {
        self.link == Link::Up && !self.is_congested
    }

    /// A new message may be sent: nothing older waits to be sent again and the window is open.
    // [MQTT-3.3.4-9] [MQTT-4.9.0-2]
    fn has_window(&self) -> bool {
        self.inflight.unsent() == 0 && !self.is_window_full()
    }

    /// As many messages, or as many bytes of them, are on their way as may be.
    #[inline]
    fn is_window_full(&self) -> bool {
        self.inflight.window_used() >= usize::from(self.window) || self.inflight.is_out_of_bytes()
    }

    /// Messages with `QoS` 1 and 2 that are certain to be sent at once.
    pub fn free_window(&self) -> usize {
        if !self.may_send() || !self.queue.is_empty() || !self.has_window() {
            return 0;
        }
        if self.inflight.counts_bytes() {
            // The next one may use up the bytes.
            return 1;
        }
        usize::from(self.window) - self.inflight.window_used()
    }

    fn next_to_send(&self) -> Next {
        let waits = self.inflight.unsent() > 0 || !self.queue.is_empty();
        if !waits || !self.may_send() {
            return Next::Nothing;
        }
        let is_full = self.is_window_full();
        if self.inflight.unsent() > 0 {
            return if is_full {
                Next::Nothing
            } else {
                Next::Redelivery
            };
        }
        // QoS 0 needs no place in the window.
        if !is_full || self.queue.next_is_fleeting() {
            Next::Queued
        } else {
            Next::Nothing
        }
    }

    fn deliver_qos0(
        &mut self,
        outgoing: &mut Outgoing<'_>,
        options: &DeliveryOptions<'_>,
        now: Time,
        out: &mut Output,
    ) -> Delivered {
        if self.link != Link::Up {
            return if self.limits.queue_qos0 && self.is_persistent() {
                self.enqueue(outgoing, options, now)
            } else {
                Delivered::Dropped(DropReason::Offline)
            };
        }
        if self.is_congested {
            return Delivered::Dropped(DropReason::SlowConsumer);
        }
        // Nothing new overtakes what has waited since the client was away. [MQTT-4.6.0-6]
        // [MQTT3-4.6.0-6]
        if self.queue.has_fleeting() {
            return self.enqueue(outgoing, options, now);
        }
        // [MQTT-4.3.1-1] [MQTT3-4.3.1-1]
        let form = self.first_form(options, None, now);
        match self.send(outgoing, form, out) {
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
        let Some(packet_id) = self.next_packet_id() else {
            return self.enqueue(outgoing, options, now);
        };
        // [MQTT-3.1.2-24] [MQTT-3.1.2-25]
        let form = self.first_form(options, Some(packet_id), now);
        let must_keep = self.must_keep(options.group.is_some());
        if must_keep && outgoing.publication().is_large() {
            // Once it is owned, it is sent without a copy.
            outgoing.message();
        }
        if let Err(reason) = self.send(outgoing, form, out) {
            return Delivered::Dropped(reason);
        }
        if must_keep {
            let held = self.hold(outgoing.message(), options, now);
            self.begin_exchange(packet_id, held);
        } else {
            self.inflight.push_unkept(packet_id, options.qos);
        }
        Delivered::Sent
    }

    fn first_form<'a>(
        &self,
        options: &DeliveryOptions<'a>,
        packet_id: Option<PacketId>,
        now: Time,
    ) -> Form<'a> {
        Form {
            version: self.version,
            qos: options.qos,
            retain: options.retain,
            // [MQTT-3.3.1-3] [MQTT-4.3.2-2] [MQTT-4.3.3-2] [MQTT3-3.3.1-3] [MQTT3-4.3.2-1]
            // [MQTT3-4.3.3-1]
            dup: false,
            packet_id,
            identifiers: options.identifiers,
            alias: None,
            bytes_max: self.packet_bytes_max,
            now,
        }
    }

    /// Appends a PUBLISH, if the client takes a packet that large.
    fn send(
        &mut self,
        outgoing: &mut Outgoing<'_>,
        form: Form<'_>,
        out: &mut Output,
    ) -> Result<(), DropReason> {
        if !self.sends_plain_topics {
            return self.send_renamed(outgoing, form, out);
        }
        let sent = outgoing.append(&form, out);
        self.carried.sent(sent.is_ok());
        sent.map_or(Err(DropReason::TooLarge), |_| Ok(()))
    }

    /// As [`Self::send`], with an alias for the topic or without the mount point.
    #[inline(never)]
    fn send_renamed(
        &mut self,
        outgoing: &mut Outgoing<'_>,
        mut form: Form<'_>,
        out: &mut Output,
    ) -> Result<(), DropReason> {
        let whole = outgoing.publication().topic;
        let topic = self.seen(whole).ok_or(DropReason::OutsideMount)?;
        form.alias = self.outbound_aliases.choose(topic);
        let cut = whole.len() - topic.len();
        let sent = if cut == 0 {
            outgoing.append(&form, out)
        } else {
            outgoing.append_behind(cut, &form, out)
        };
        self.outbound_aliases.sent(topic, form.alias, sent.is_ok());
        self.carried.sent(sent.is_ok());
        sent.map_or(Err(DropReason::TooLarge), |_| Ok(()))
    }

    /// Appends a message that the session held; as [`Self::send`].
    pub(super) fn send_held(
        &mut self,
        held: &Held,
        packet: HeldPacket,
        now: Time,
        out: &mut Output,
    ) -> Result<(), Cause> {
        let mut publication = held.message.publication();
        let mut alias = None;
        if !self.sends_plain_topics {
            publication.topic = self.seen(publication.topic).ok_or(Cause::OutsideMount)?;
            alias = self.outbound_aliases.choose(publication.topic);
        }
        let form = Form {
            version: self.version,
            qos: held.qos,
            retain: held.retain,
            dup: packet.is_sent_again,
            packet_id: packet.id,
            identifiers: held.identifiers.as_slice(),
            alias,
            bytes_max: self.packet_bytes_max,
            now,
        };
        let sent = form.append_owned(&held.message, &publication, out);
        self.outbound_aliases
            .sent(publication.topic, alias, sent.is_ok());
        if sent.is_err() {
            return Err(Cause::TooLarge);
        }
        self.carried.sent_later(publication.payload.len());
        Ok(())
    }

    /// What the client calls a topic.
    fn seen<'t>(&self, topic: &'t str) -> Option<&'t str> {
        match self.mount_point() {
            None => Some(topic),
            Some(mount) => mount.seen_topic(topic),
        }
    }

    /// An identifier that no unanswered message has. [MQTT-2.2.1-4] [MQTT-4.3.2-1] [MQTT-4.3.3-1]
    /// [MQTT3-2.3.1-4]
    pub(super) fn next_packet_id(&mut self) -> Option<PacketId> {
        let inflight = &self.inflight;
        self.packet_ids.next(|| inflight.packet_ids())
    }

    /// Only a session that can be resumed, or a shared group, may need the message again; and what
    /// was written down must be removed there.
    pub(super) fn must_keep(&self, is_shared: bool) -> bool {
        is_shared
            || self.is_persistent()
            || self.is_durable()
            // Its bytes are counted for as long as it is kept.
            || self.inflight.counts_bytes()
    }

    /// A message that the session keeps from here on.
    pub(super) fn hold(
        &mut self,
        message: &Arc<Message>,
        options: &DeliveryOptions<'_>,
        now: Time,
    ) -> Held {
        let seq = self.note_queued(message, options);
        Held::new(message, options, seq, now)
    }

    /// A message that is kept was sent for the first time.
    pub(super) fn begin_exchange(&mut self, packet_id: PacketId, mut held: Held) {
        self.note_first_sent(&mut held, packet_id);
        self.inflight.push(packet_id, held);
    }

    /// The exchange at that place is over; the caller trims afterwards.
    pub(super) fn finish(&mut self, place: Place) {
        let seq = self.inflight.finish(place);
        self.note_removed(seq);
    }

    /// Sends one message again, in the order they were sent first; none if there is none.
    // [MQTT-4.6.0-1] [MQTT3-4.6.0-1]
    fn redeliver_next(&mut self, now: Time, out: &mut Output) -> Option<()> {
        // Its expiry no longer matters. [MQTT-4.3.3-7]
        let (place, packet_id, held) = self.inflight.take_unsent()?;
        // [MQTT-3.3.1-1] [MQTT3-3.3.1-1]
        match self.send_held(&held, HeldPacket::again(packet_id), now, out) {
            Ok(()) => self.inflight.put_back(place, held),
            // [MQTT-3.1.2-25]
            Err(cause) => {
                self.inflight.finish(place);
                self.inflight.trim();
                self.drop_held(&held, cause);
            }
        }
        Some(())
    }
}
