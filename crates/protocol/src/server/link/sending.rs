//! PUBLISH packets to the client: their form, topic and size.

use thrum_codec::PacketId;

use super::Link;
use crate::message::Form;
use crate::server::delivery_events::Cause;
use crate::server::held::Held;
use crate::server::traffic::Carried;
use crate::server::{DeliveryOptions, DropReason};
use crate::{Outgoing, Output, Time};

/// Header fields of the PUBLISH packet of a message that the session held.
#[derive(Clone, Copy, Debug)]
pub(in crate::server) struct HeldPacket {
    /// `None` with `QoS` 0.
    id: Option<PacketId>,
    is_retransmission: bool,
}

impl HeldPacket {
    pub(in crate::server) const fn first(id: Option<PacketId>) -> Self {
        Self {
            id,
            is_retransmission: false,
        }
    }

    pub(in crate::server) const fn again(id: PacketId) -> Self {
        Self {
            id: Some(id),
            is_retransmission: true,
        }
    }
}

/// As [`Link::send`] when the client does not accept the size: without the user property that the
/// node has added, if it has added one.
#[cold]
#[inline(never)]
fn send_without_added(
    carried: &mut Carried,
    outgoing: &Outgoing<'_>,
    form: &Form<'_>,
    out: &mut Output,
) -> Result<(), DropReason> {
    let sent = outgoing.append_without_added(0, form, out);
    carried.sent(sent.is_ok());
    sent.map_or(Err(DropReason::TooLarge), |_| Ok(()))
}

impl Link {
    /// The form of a message's first transmission.
    #[inline]
    pub(in crate::server) fn first_form<'a>(
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

    /// Appends a PUBLISH if the client accepts its size.
    #[inline]
    pub(in crate::server) fn send(
        &mut self,
        outgoing: &mut Outgoing<'_>,
        form: Form<'_>,
        out: &mut Output,
    ) -> Result<(), DropReason> {
        if !self.sends_plain_topics {
            return self.send_renamed(outgoing, form, out);
        }
        if outgoing.append(&form, out).is_err() {
            return send_without_added(&mut self.carried, outgoing, &form, out);
        }
        self.carried.sent(true);
        Ok(())
    }

    /// As [`Self::send`], with a topic alias or without the mount point.
    #[inline(never)]
    fn send_renamed(
        &mut self,
        outgoing: &mut Outgoing<'_>,
        mut form: Form<'_>,
        out: &mut Output,
    ) -> Result<(), DropReason> {
        let whole = outgoing.publication().topic;
        let topic = self.seen(whole).ok_or(DropReason::OutsideMount)?;
        form.alias = self.aliases.choose(topic);
        let cut = whole.len() - topic.len();
        let sent = if cut == 0 {
            outgoing.append(&form, out)
        } else {
            outgoing.append_behind(cut, &form, out)
        };
        let sent = sent.or_else(|_| outgoing.append_without_added(cut, &form, out));
        self.aliases.sent(topic, form.alias, sent.is_ok());
        self.carried.sent(sent.is_ok());
        sent.map_or(Err(DropReason::TooLarge), |_| Ok(()))
    }

    /// Appends a message that the session held; as [`Self::send`].
    pub(in crate::server) fn send_held(
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
            alias = self.aliases.choose(publication.topic);
        }
        let form = Form {
            version: self.version,
            qos: held.qos,
            retain: held.retain,
            dup: packet.is_retransmission,
            packet_id: packet.id,
            identifiers: held.identifiers.as_slice(),
            alias,
            bytes_max: self.packet_bytes_max,
            now,
        };
        let sent = form.append_owned(&held.message, &publication, out);
        let sent = sent.or_else(|_| form.append_without_added(&held.message, &publication, out));
        self.aliases.sent(publication.topic, alias, sent.is_ok());
        if sent.is_err() {
            return Err(Cause::TooLarge);
        }
        self.carried.sent_later(publication.payload.len());
        Ok(())
    }

    /// The topic as the client sees it.
    fn seen<'t>(&self, topic: &'t str) -> Option<&'t str> {
        match self.mount_point() {
            None => Some(topic),
            Some(mount) => mount.seen_topic(topic),
        }
    }
}
