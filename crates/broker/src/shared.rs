//! Shared subscriptions: one member of a group gets the message, and another one when that one cannot.

use std::sync::Arc;

use thrum_codec::QoS;
use thrum_protocol::Outgoing;
use thrum_protocol::server::{Delivered, DeliveryOptions, DropReason, GroupId, Taken};
use thrum_routing::shared::{Choice, Cursor, Group};

use crate::durable::Origin;
use crate::interest::Member;
use crate::mailbox::{Mail, SharedDelivery};
use crate::metrics::Counter;
use crate::worker::Worker;

/// A group to choose from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pool<'a> {
    pub(crate) group: GroupId,
    pub(crate) members: &'a Group<Member>,
    pub(crate) topic_hash: u64,
}

impl Worker {
    /// One member of the group gets the message; if its queue is full, one other is tried. [MQTT-4.8.2-4]
    pub(crate) fn deliver_shared(
        &mut self,
        to: Pool<'_>,
        outgoing: &mut Outgoing<'_>,
        from: Option<Origin>,
    ) -> Delivered {
        let Pool {
            group,
            members,
            topic_hash,
        } = to;
        let here = self.local.id;
        let client_hash = outgoing.publication().publisher;
        let choice = Choice {
            client_hash,
            topic_hash,
            random: self.random(),
        };
        let mut exclude = None;
        for _ in 0..2 {
            let first_turn = u32::try_from(here.index()).unwrap_or(0);
            let first = Cursor::starting_at(first_turn);
            let cursor = self.cursors.entry(group).or_insert(first);
            let is_local = |member: &Member| member.session.worker == here;
            let Some(member) = members.pick(cursor, choice, is_local, exclude) else {
                break;
            };
            let delivered = self.deliver_member(group, member, outgoing, from);
            if !matches!(delivered, Delivered::Dropped(_)) {
                return delivered;
            }
            exclude = Some(member.session.id);
        }
        self.moved(from);
        self.local.row().add(Counter::DroppedNoSharedMember, 1);
        Delivered::Dropped(DropReason::QueueFull)
    }

    fn deliver_member(
        &mut self,
        group: GroupId,
        member: &Member,
        outgoing: &mut Outgoing<'_>,
        from: Option<Origin>,
    ) -> Delivered {
        let published = outgoing.publication();
        // [MQTT-4.8.2-3]
        let qos = published.qos.min(member.options.qos);
        let retain = published.retain && member.options.retain_as_published;
        if member.session.worker == self.local.id {
            let slot = member.session.slot;
            if !self.is_session(slot, member.session.id) {
                return Delivered::Dropped(DropReason::Offline);
            }
            let one = [member.identifier.unwrap_or(0)];
            let identifiers = if one[0] == 0 { &[][..] } else { &one };
            let options = DeliveryOptions {
                qos,
                retain,
                identifiers,
                group: Some(group),
            };
            let delivered = self.local.deliver(slot, outgoing, options);
            if !matches!(delivered, Delivered::Dropped(_)) {
                self.moved(from);
            }
            return delivered;
        }
        let worker = member.session.worker;
        let is_kept = member.durable && qos != QoS::AtMostOnce;
        let origin = self.leaving(from, is_kept, outgoing, group);
        let delivery = SharedDelivery {
            to: member.session,
            group,
            message: Arc::clone(outgoing.message()),
            qos,
            retain,
            identifier: member.identifier,
            origin,
        };
        self.send(worker.index(), Mail::Shared(delivery));
        Delivered::Queued
    }

    /// A message that another worker chose one of our sessions for; if that is gone, the group chooses again.
    pub(crate) fn shared_from_worker(&mut self, delivery: &SharedDelivery) {
        let mut frames = std::mem::take(&mut self.frames);
        let message = self.own_copy(&delivery.message);
        let mut outgoing = Outgoing::from_message(&message, &mut frames);
        if self.is_session(delivery.to.slot, delivery.to.id) {
            let one = [delivery.identifier.unwrap_or(0)];
            let identifiers = if one[0] == 0 { &[][..] } else { &one };
            let options = DeliveryOptions {
                qos: delivery.qos,
                retain: delivery.retain,
                identifiers,
                group: Some(delivery.group),
            };
            self.local.deliver(delivery.to.slot, &mut outgoing, options);
            self.moved(delivery.origin);
        } else {
            self.redispatch_one(delivery.group, &mut outgoing, delivery.origin);
        }
        self.frames = frames;
    }

    /// Gives messages of shared groups, which a session held that may be ending, to other members. [MQTT-4.8.2-4]
    pub(crate) fn redispatch(&mut self, messages: Vec<Taken>, session: u64, ends: bool) {
        for taken in messages {
            let mut frames = std::mem::take(&mut self.frames);
            let mut outgoing = Outgoing::from_message(&taken.message, &mut frames);
            let from = taken.seq.map(|seq| Origin { session, seq, ends });
            self.redispatch_one(taken.group, &mut outgoing, from);
            self.frames = frames;
        }
    }

    fn redispatch_one(
        &mut self,
        group: GroupId,
        outgoing: &mut Outgoing<'_>,
        from: Option<Origin>,
    ) {
        let Some(members) = self.node.interest.members(group) else {
            self.moved(from);
            self.local.row().add(Counter::DroppedNoSharedMember, 1);
            return;
        };
        self.local.row().add(Counter::SharedRedispatched, 1);
        let topic_hash = self.routes.hash(outgoing.publication().topic);
        let to = Pool {
            group,
            members: &members,
            topic_hash,
        };
        self.deliver_shared(to, outgoing, from);
    }
}
