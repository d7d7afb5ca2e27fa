//! Shared subscriptions: one member of a group receives a message, or another one if the first
//! cannot accept it.

use std::collections::HashMap;
use std::sync::Arc;

use thrum_codec::QoS;
use thrum_protocol::server::{Delivered, DeliveryOptions, DropReason, GroupId, Taken};
use thrum_protocol::{Outgoing, Publication};
use thrum_routing::shared::{Choice, Cursor, Group, Strategy, stable_hash};

use super::client::Client;
use super::core::Core;
use super::inquiries::RemoteReports;
use super::reach::Clearance;
use super::router::Router;
use crate::durable::Origin;
use crate::interest::Member;
use crate::interest::groups::SharedGroup;
use crate::mail::{EngineMail, SharedDelivery};
use crate::node::metrics::Counter;
use crate::observation::{MessageOrigin, Observed};
use crate::stages::{Stamped, Unwatched, Watch};
use crate::undelivered::CountedMessage;
use crate::workers::WorkerSet;

/// Greatest number of members whose queues are checked for one message if the chosen member has no
/// room.
pub const MEMBERS_SEEN_MAX: usize = 1024;
/// Number of checked members that count as one unit of work.
const MEMBERS_PER_UNIT: usize = 16;

/// A shared group and its members.
#[derive(Clone, Copy, Debug)]
pub struct GroupMembers<'a> {
    /// The number of the group.
    pub group: GroupId,
    /// The members at the time of the look-up.
    pub members: &'a Group<Member>,
}

/// The member that was chosen for a message.
#[derive(Clone, Copy, Debug)]
struct Chosen<'a> {
    member: &'a Member,
    has_room: bool,
}

/// The receiver of a message, with the place and the clearance of the message.
#[derive(Clone, Copy, Debug)]
struct Receiver<'a> {
    group: GroupId,
    chosen: Chosen<'a>,
    from: Option<Origin>,
    clearance: Clearance,
}

/// The destination group of a message, with the place and the clearance of the message.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupMessage<'a> {
    pub(super) to: GroupMembers<'a>,
    /// The place of the message in the storage, which is removed after the delivery; none if it is
    /// not stored.
    pub(super) from: Option<Origin>,
    pub(super) clearance: Clearance,
}

/// A group whose message needs another member, and the place of the message in the storage.
#[derive(Clone, Copy, Debug)]
struct OfGroup {
    group: GroupId,
    from: Option<Origin>,
}

/// The positions of this worker in the members of shared groups.
#[derive(Debug, Default)]
pub(super) struct Groups {
    cursors: HashMap<GroupId, Cursor<u64>>,
    /// A group in which no member has room, as an earlier message of the same redispatch has found.
    full: Option<GroupId>,
}

impl Groups {
    /// The position of this worker in a group, if it has one.
    pub(super) fn cursor(&self, group: GroupId) -> Option<Cursor<u64>> {
        self.cursors.get(&group).copied()
    }

    /// Chooses the next member of a group, or another one with room if that member has none.
    fn choose<'a>(
        &mut self,
        core: &mut Core,
        to: GroupMembers<'a>,
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
            // The owner may not have updated the capacity since memory became short.
            core.report_full(member.session);
        }
        Some(Chosen {
            member: other.unwrap_or(member),
            has_room: other.is_some(),
        })
    }
}

impl Router {
    /// Delivers a message to one member of a group; if the member cannot accept it, one other
    /// member is tried. [MQTT-4.8.2-4]
    pub(super) fn deliver_shared<W: Watch>(
        &mut self,
        core: &mut Core,
        passed: GroupMessage<'_>,
        outgoing: &mut Outgoing<'_>,
        watch: &mut W,
    ) -> Delivered {
        let GroupMessage {
            to,
            from,
            clearance,
        } = passed;
        // Publishers do not wait for disconnected members, so that the clearance does not cover
        // them.
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
            let delivered = self.deliver_member(core, receiver, outgoing, watch);
            if !matches!(delivered, Delivered::Dropped(_)) {
                return delivered;
            }
            exclude = Some(chosen.member.session.id);
        }
        core.durable.moved(from);
        no_member_took(core, to.group, outgoing.publication().topic);
        Delivered::Dropped(DropReason::QueueFull)
    }

    fn deliver_member<W: Watch>(
        &mut self,
        core: &mut Core,
        receiver: Receiver<'_>,
        outgoing: &mut Outgoing<'_>,
        watch: &mut W,
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
            watch.delivered(core, slot, qos, delivered);
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
        let reports = self.publishers.reports_of(core, published.publisher);
        let is_queued = |reports: &Arc<RemoteReports>| reports.is_queued_on(WorkerSet::of(worker));
        core.memory.has_queued |= reports.as_ref().is_some_and(is_queued);
        let delivery = SharedDelivery {
            to: member.session,
            group,
            message,
            qos,
            retain,
            identifier: member.identifier,
            origin,
            promise,
            reports,
            stamp: watch.stamp(),
        };
        core.outboxes.send(worker, EngineMail::Shared(delivery));
        Delivered::Queued
    }

    /// Delivers a message for which another worker chose a session of this worker; if the session
    /// has ended, another member is chosen.
    pub(super) fn shared_from_worker(&mut self, core: &mut Core, mut delivery: SharedDelivery) {
        let stamp = delivery.stamp.take();
        let stamped = stamp.map(|stamp| Stamped::from_worker(core, *stamp, &delivery.message));
        if core.observation.is_on() {
            let watch = Observed::new(MessageOrigin::Elsewhere, stamped);
            return self.take_shared_mail(core, delivery, watch);
        }
        match stamped {
            None => self.take_shared_mail(core, delivery, Unwatched),
            Some(stamped) => self.take_shared_mail(core, delivery, stamped),
        }
    }

    fn take_shared_mail<W: Watch>(
        &mut self,
        core: &mut Core,
        delivery: SharedDelivery,
        mut watch: W,
    ) {
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
            let delivered = if options.is_acknowledged {
                core.deliver(slot, &mut outgoing, options)
            } else {
                core.offer(slot, &mut outgoing, options)
            };
            watch.delivered(core, slot, delivery.qos, delivered);
            if let Some(reports) = &delivery.reports {
                reports.report(core.id, core.memory.has_queued);
            }
            core.durable.moved(delivery.origin);
        } else {
            let of_group = OfGroup {
                group: delivery.group,
                from: delivery.origin,
            };
            self.redispatch_one(core, of_group, &mut outgoing, &mut watch);
        }
        watch.finish(core, &mut outgoing);
        // The message is queued, and the published capacity includes it.
        core.rooms.end_promises(delivery.promise);
        core.frames = frames;
    }

    /// Sends the messages of shared groups that a session held to other members; `ends` tells
    /// whether the session is ending. [MQTT-4.8.2-4]
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
            let of_group = OfGroup {
                group: taken.group,
                from,
            };
            self.redispatch_one(core, of_group, &mut outgoing, &mut Unwatched);
            core.frames = frames;
        }
        self.groups.full = None;
    }

    fn redispatch_one<W: Watch>(
        &mut self,
        core: &mut Core,
        of_group: OfGroup,
        outgoing: &mut Outgoing<'_>,
        watch: &mut W,
    ) {
        let OfGroup { group, from } = of_group;
        let Some(members) = core.node.interest.members(group) else {
            core.durable.moved(from);
            no_member_took(core, group, outgoing.publication().topic);
            return;
        };
        core.row().add(Counter::SharedRedispatched, 1);
        // The publisher has its answer: if no member has room, the message exceeds the limits of a
        // queue.
        let to = GroupMembers {
            group,
            members: &members,
        };
        let passed = GroupMessage {
            to,
            from,
            clearance: Clearance::Acknowledged,
        };
        self.deliver_shared(core, passed, outgoing, watch);
    }
}

/// Counts a message that no member of its group took.
#[cold]
#[inline(never)]
fn no_member_took(core: &mut Core, group: GroupId, topic: &str) {
    core.row().add(Counter::DroppedNoSharedMember, 1);
    let group = core.node.interest.group(group);
    let dropped = CountedMessage {
        reason: "no_shared_member",
        client: group.as_deref().map_or("", SharedGroup::text),
        topic: Some(topic),
        count: 1,
    };
    core.undelivered.dropped.record(dropped, core.turn.now);
    if core.observation.is_on() {
        core.observation.dropped(core.id, topic, 1);
    }
}

/// The inputs of the choice of a member; the hashes are the same on every worker.
fn choice(core: &mut Core, strategy: Strategy, publication: &Publication<'_>) -> Choice {
    Choice {
        client_hash: match publication.publisher_hash {
            // The client identifier of the publisher is not known after a restart.
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

/// The hash of a client identifier for groups that choose members by publisher; 0 for other
/// strategies.
#[inline]
pub(super) fn publisher_hash(core: &Core, client: &Client) -> u32 {
    if core.node.interest.strategy() != Strategy::HashClientId {
        return 0;
    }
    let hash = stable_hash(client.session.client_id());
    u32::try_from(hash >> 32).unwrap_or(0).max(1)
}
