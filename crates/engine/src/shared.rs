//! Shared subscriptions: one member of a group gets the message, and another one when that one
//! cannot.

use std::collections::HashMap;
use std::sync::Arc;

use thrum_codec::QoS;
use thrum_protocol::server::{Delivered, DeliveryOptions, DropReason, GroupId, Taken};
use thrum_protocol::{Outgoing, Publication};
use thrum_routing::shared::{Choice, Cursor, Group, Strategy, stable_hash};

use super::client::Client;
use super::core::Core;
use super::elsewhere::Heard;
use super::reach::Clearance;
use super::router::Router;
use crate::durable::Origin;
use crate::interest::Member;
use crate::mail::{EngineMail, SharedDelivery};
use crate::node::metrics::Counter;
use crate::workers::WorkerSet;

/// Members whose queues are looked at for one message, when that of the one whose turn it is has no
/// room.
pub const MEMBERS_SEEN_MAX: usize = 1024;
/// So many of them cost as much as a packet.
const MEMBERS_PER_UNIT: usize = 16;

/// A group to choose from.
#[derive(Clone, Copy, Debug)]
pub struct Pool<'a> {
    pub group: GroupId,
    pub members: &'a Group<Member>,
}

/// The member that a message is for.
#[derive(Clone, Copy, Debug)]
struct Chosen<'a> {
    member: &'a Member,
    has_room: bool,
}

/// A member that gets a message, and what that rests on.
#[derive(Clone, Copy, Debug)]
struct Receiver<'a> {
    group: GroupId,
    chosen: Chosen<'a>,
    from: Option<Origin>,
    clearance: Clearance,
}

/// A message for a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passed<'a> {
    pub(super) to: Pool<'a>,
    /// The place that it leaves.
    pub(super) from: Option<Origin>,
    pub(super) clearance: Clearance,
}

/// Whose turn it is in each group, as this worker sees it.
#[derive(Debug, Default)]
pub(super) struct Groups {
    cursors: HashMap<GroupId, Cursor<u64>>,
    /// Nobody in that group has room, as one of the messages that a member left behind has shown.
    full: Option<GroupId>,
}

impl Groups {
    /// The member whose turn it is, or one of the others that has room.
    fn choose<'a>(
        &mut self,
        core: &mut Core,
        to: Pool<'a>,
        outgoing: &Outgoing<'_>,
        exclude: Option<u64>,
    ) -> Option<Chosen<'a>> {
        let here = core.id;
        let published = outgoing.publication();
        let choice = choice(core, to.members.strategy(), published);
        let first_turn = u32::try_from(here.index()).unwrap_or(0);
        let first = Cursor::starting_at(first_turn);
        let cursor = self.cursors.entry(to.group).or_insert(first);
        let is_local = |member: &Member| member.session.worker == here;
        let member = to.members.pick(cursor, choice, is_local, exclude)?;
        let chosen = Chosen {
            member,
            has_room: true,
        };
        if published.qos == QoS::AtMostOnce || member.room.is_open() {
            return Some(chosen);
        }
        let bytes = published.bytes_len();
        let has_room = |member: &Member| member.room.has_room(bytes);
        if has_room(member) {
            return Some(chosen);
        }
        let mut seen = 0;
        let other = if self.full == Some(to.group) {
            None
        } else {
            let candidates = to.members.candidates(choice.random);
            let mut candidates = candidates.take(MEMBERS_SEEN_MAX).inspect(|_| seen += 1);
            candidates.find(|other| Some(other.session.id) != exclude && has_room(other))
        };
        core.turn.work += (seen / MEMBERS_PER_UNIT) as u64;
        if other.is_none() && !member.room.has_memory() {
            // Maybe nobody has looked since memory is short.
            core.tell_of_full(member.session);
        }
        Some(Chosen {
            member: other.unwrap_or(member),
            has_room: other.is_some(),
        })
    }
}

impl Router {
    /// One member of the group gets the message; if it cannot take it, one other is tried.
    /// [MQTT-4.8.2-4]
    pub(super) fn deliver_shared(
        &mut self,
        core: &mut Core,
        passed: Passed<'_>,
        outgoing: &mut Outgoing<'_>,
    ) -> Delivered {
        let Passed {
            to,
            from,
            clearance,
        } = passed;
        // For members that are away nobody waits: that others had room says nothing of them.
        let may_exceed = match clearance {
            Clearance::NotAsked => false,
            Clearance::Given => to.members.online_count() > 0,
            Clearance::Acknowledged => true,
        };
        let mut exclude = None;
        for _ in 0..2 {
            let Some(chosen) = self.groups.choose(core, to, outgoing, exclude) else {
                break;
            };
            if clearance == Clearance::Acknowledged && !chosen.has_room {
                self.groups.full = Some(to.group);
            }
            if !chosen.has_room && !may_exceed {
                break;
            }
            let receiver = Receiver {
                group: to.group,
                chosen,
                from,
                clearance,
            };
            let delivered = self.deliver_member(core, receiver, outgoing);
            if !matches!(delivered, Delivered::Dropped(_)) {
                return delivered;
            }
            exclude = Some(chosen.member.session.id);
        }
        core.durable.moved(from);
        core.row().add(Counter::DroppedNoSharedMember, 1);
        Delivered::Dropped(DropReason::QueueFull)
    }

    fn deliver_member(
        &mut self,
        core: &mut Core,
        receiver: Receiver<'_>,
        outgoing: &mut Outgoing<'_>,
    ) -> Delivered {
        let Receiver {
            group,
            chosen,
            from,
            ..
        } = receiver;
        let member = chosen.member;
        let is_acknowledged = receiver.clearance == Clearance::Acknowledged;
        let published = *outgoing.publication();
        let is_answered = published.qos != QoS::AtMostOnce;
        // [MQTT-4.8.2-3]
        let qos = core
            .settings
            .delivered_qos(published.qos, member.options.qos);
        let retain = published.retain && member.options.retain_as_published;
        if member.session.worker == core.id {
            let slot = member.session.slot;
            if !core.sessions.is(slot, member.session.id) {
                return Delivered::Dropped(DropReason::Offline);
            }
            let one = [member.identifier.unwrap_or(0)];
            let identifiers = if one[0] == 0 { &[][..] } else { &one };
            let options = DeliveryOptions {
                qos,
                retain,
                identifiers,
                group: Some(group),
                is_acknowledged: is_answered && (is_acknowledged || !chosen.has_room),
            };
            let delivered = if is_acknowledged {
                core.deliver(slot, outgoing, options)
            } else {
                core.offer(slot, outgoing, options)
            };
            if !matches!(delivered, Delivered::Dropped(_)) {
                core.durable.moved(from);
            }
            return delivered;
        }
        let worker = member.session.worker;
        let is_kept = member.durable && qos != QoS::AtMostOnce;
        let origin = if is_kept || from.is_some() {
            let interest = &core.node.interest;
            core.durable.leaving(from, outgoing, group, interest)
        } else {
            None
        };
        let message = Arc::clone(outgoing.message());
        let is_promised = is_answered && member.room.is_nearly_full();
        let promise = is_promised.then(|| member.room.promise(message.bytes_len()));
        let heard = self.publishers.heard_by(core, published.publisher);
        let is_queued = |heard: &Arc<Heard>| heard.is_queued_on(WorkerSet::of(worker));
        core.memory.has_queued |= heard.as_ref().is_some_and(is_queued);
        let delivery = SharedDelivery {
            to: member.session,
            group,
            message,
            qos,
            retain,
            identifier: member.identifier,
            origin,
            promise,
            heard,
        };
        core.outboxes.send(worker, EngineMail::Shared(delivery));
        Delivered::Queued
    }

    /// A message that another worker chose one of our sessions for; if that is gone, the group
    /// chooses again.
    pub(super) fn shared_from_worker(&mut self, core: &mut Core, delivery: SharedDelivery) {
        let mut frames = std::mem::take(&mut core.frames);
        let message = core.own_copy(&delivery.message);
        let mut outgoing = Outgoing::from_message(&message, &mut frames);
        if core.sessions.is(delivery.to.slot, delivery.to.id) {
            let one = [delivery.identifier.unwrap_or(0)];
            let identifiers = if one[0] == 0 { &[][..] } else { &one };
            let options = DeliveryOptions {
                qos: delivery.qos,
                retain: delivery.retain,
                identifiers,
                group: Some(delivery.group),
                is_acknowledged: message.qos() != QoS::AtMostOnce,
            };
            let slot = delivery.to.slot;
            core.memory.has_queued = false;
            if options.is_acknowledged {
                core.deliver(slot, &mut outgoing, options);
            } else {
                core.offer(slot, &mut outgoing, options);
            }
            if let Some(heard) = &delivery.heard {
                heard.tell(core.id, core.memory.has_queued);
            }
            core.durable.moved(delivery.origin);
        } else {
            self.redispatch_one(core, delivery.group, &mut outgoing, delivery.origin);
        }
        // Its place is taken, and shown as that.
        core.rooms.end_promises(delivery.promise);
        core.frames = frames;
    }

    /// Gives messages of shared groups, which a session held that may be ending, to other members.
    /// [MQTT-4.8.2-4]
    pub(super) fn redispatch(
        &mut self,
        core: &mut Core,
        messages: Vec<Taken>,
        session: u64,
        ends: bool,
    ) {
        for taken in messages {
            let mut frames = std::mem::take(&mut core.frames);
            let mut outgoing = Outgoing::from_message(&taken.message, &mut frames);
            let from = taken.seq.map(|seq| Origin { session, seq, ends });
            self.redispatch_one(core, taken.group, &mut outgoing, from);
            core.frames = frames;
        }
        self.groups.full = None;
    }

    fn redispatch_one(
        &mut self,
        core: &mut Core,
        group: GroupId,
        outgoing: &mut Outgoing<'_>,
        from: Option<Origin>,
    ) {
        let Some(members) = core.node.interest.members(group) else {
            core.durable.moved(from);
            core.row().add(Counter::DroppedNoSharedMember, 1);
            return;
        };
        core.row().add(Counter::SharedRedispatched, 1);
        // Its publisher has its answer: if nobody has room, it goes beyond the limits of a queue.
        let to = Pool {
            group,
            members: &members,
        };
        let passed = Passed {
            to,
            from,
            clearance: Clearance::Acknowledged,
        };
        self.deliver_shared(core, passed, outgoing);
    }
}

/// What the choice of a member depends on, the same for every worker.
fn choice(core: &mut Core, strategy: Strategy, publication: &Publication<'_>) -> Choice {
    Choice {
        client_hash: match publication.publisher_hash {
            // Its client is not known any more since a restart.
            0 => publication.publisher,
            hash => u64::from(hash),
        },
        topic_hash: match strategy {
            Strategy::HashTopic => stable_hash(publication.topic),
            _ => 0,
        },
        random: core.random(),
    }
}

/// What a client's messages carry for groups that choose by the publisher; 0 where none does.
#[inline]
pub(super) fn publisher_hash(core: &Core, client: &Client) -> u32 {
    if core.node.interest.strategy() != Strategy::HashClientId {
        return 0;
    }
    let hash = stable_hash(client.session.client_id());
    u32::try_from(hash >> 32).unwrap_or(0).max(1)
}
