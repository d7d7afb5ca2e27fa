//! Routing of a message to its destinations: sessions of this worker, shared groups, other workers
//! and sinks.

use std::sync::Arc;

use thrum_codec::{QoS, ReasonCode};
use thrum_protection::MemoryLevel;
use thrum_protocol::{Message, Outgoing};
use thrum_routing::FilterId;

use super::core::Core;
use super::inquiries::{InquirySubject, Publishers, RemoteReports};
use super::reach::{Clearance, Match, Reach, Source};
use super::refusals::PublishRefusal;
use super::shared::{GroupMembers, GroupMessage, Groups};
use super::sink_outbox::offer_to_sinks;
use super::topics::Topics;
use crate::interest::Route;
use crate::interest::route_cache::CachedRoute;
use crate::mail::{EngineMail, PublishDelivery};
use crate::node::metrics::Counter;
use crate::observation::{MessageOrigin, Observed};
use crate::queue_room::{Promise, QueueRoom};
use crate::retained::RetainedSource;
use crate::stages::{Stamp, Stamped, Unwatched, Watch};
use crate::workers::WorkerSet;

/// The subscriptions of this worker, and the routes to other workers.
#[derive(Debug)]
pub struct Router {
    /// The subscriptions of this worker.
    pub topics: Topics,
    pub(super) groups: Groups,
    /// Reports of other workers about the messages of each publisher.
    pub publishers: Publishers,
    match_scratch: Vec<Match>,
    identifier_scratch: Vec<u32>,
}

/// What the routing of a message tells: with [`Unwatched`], no more than its reach, at no cost.
#[derive(Debug)]
struct Told<'d, W> {
    reach: Reach<'d>,
    watch: W,
}

/// The commitments of other workers about a message.
#[derive(Debug)]
struct Promised {
    /// Workers on which a session has to accept the message regardless of the memory level.
    must_take: WorkerSet,
    /// Reserved places in queues.
    promises: Vec<Promise>,
    /// The times of a stamped message.
    stamp: Option<Box<Stamp>>,
}

impl Router {
    pub(super) fn new() -> Self {
        Self {
            topics: Topics::new(),
            groups: Groups::default(),
            publishers: Publishers::default(),
            match_scratch: Vec::new(),
            identifier_scratch: Vec::new(),
        }
    }

    /// Routes a message of the node: a will, an event or a `$SYS` message.
    pub fn publish_message(
        &mut self,
        core: &mut Core,
        message: &Arc<Message>,
        source: Option<&Arc<RetainedSource>>,
    ) {
        self.publish_owned(core, message, source, Source::Node);
    }

    /// Routes a message of the operator; none if it cannot be retained, and then it is not
    /// delivered.
    pub(super) fn publish_order(
        &mut self,
        core: &mut Core,
        message: &Arc<Message>,
    ) -> Option<ReasonCode> {
        let operator = Source::Publisher(Clearance::NotAsked);
        self.publish_owned(core, message, None, operator)
    }

    fn publish_owned(
        &mut self,
        core: &mut Core,
        message: &Arc<Message>,
        retained_source: Option<&Arc<RetainedSource>>,
        source: Source<'_>,
    ) -> Option<ReasonCode> {
        let mut frames = std::mem::take(&mut core.frames);
        let mut outgoing = Outgoing::from_message(message, &mut frames);
        // [MQTT3-3.3.1-12]: a message without the RETAIN flag does not change the retained message.
        let has_reason_code = matches!(source, Source::Publisher(_));
        let is_delivered = !message.retain()
            || core
                .retain(&mut outgoing, retained_source, has_reason_code)
                .is_ok();
        let routed = is_delivered.then(|| {
            if core.observation.is_on() {
                let watch = Observed::new(MessageOrigin::Node, None);
                self.route(core, &mut outgoing, source, watch)
            } else {
                self.route(core, &mut outgoing, source, Unwatched)
            }
        });
        core.frames = frames;
        routed.map(|routed| routed.unwrap_or_else(PublishRefusal::code))
    }

    /// Routes a message of a publisher of this worker to all destinations.
    ///
    /// # Errors
    /// No receiver has taken it, for that reason.
    pub(super) fn route<W: Watch>(
        &mut self,
        core: &mut Core,
        outgoing: &mut Outgoing<'_>,
        source: Source<'_>,
        mut watch: W,
    ) -> Result<ReasonCode, PublishRefusal> {
        let topic = outgoing.publication().topic;
        let hash = self.topics.routes.hash(topic);
        let entry = self.topics.recall(core, topic, hash);
        watch.matched(core);
        let reach = Reach::of(source);
        let mut told = Told { reach, watch };
        // [MQTT-3.3.2-3] [MQTT3-3.3.2-3]
        self.deliver_here(core, &entry, outgoing, &mut told);
        for (group, members) in &entry.route.groups {
            let to = GroupMembers {
                group: *group,
                members,
            };
            let passed = GroupMessage {
                to,
                from: None,
                clearance: source.clearance(),
            };
            let delivered = self.deliver_shared(core, passed, outgoing, &mut told.watch);
            told.reach.add(delivered);
        }
        let others = entry.route.workers.without(core.id);
        if !others.is_empty() {
            self.send_to_workers(core, &entry, outgoing, &mut told);
        }
        let sinks = entry.route.sinks;
        if !sinks.is_empty() {
            offer_to_sinks(core, sinks, outgoing, &mut told.reach);
        }
        self.topics.routes.put(hash, entry);
        let Told { reach, watch } = told;
        watch.finish(core, outgoing);
        reach.outcome(core.memory.level)
    }

    /// Delivers a message of another worker to this worker's own subscriptions.
    pub fn publish_from_worker(&mut self, core: &mut Core, mut delivery: PublishDelivery) {
        let stamp = delivery.stamp.take();
        let stamped = stamp.map(|stamp| Stamped::from_worker(core, *stamp, &delivery.message));
        if core.observation.is_on() {
            let watch = Observed::new(MessageOrigin::Elsewhere, stamped);
            return self.route_from_worker(core, delivery, watch);
        }
        match stamped {
            None => self.route_from_worker(core, delivery, Unwatched),
            Some(stamped) => self.route_from_worker(core, delivery, stamped),
        }
    }

    fn route_from_worker<W: Watch>(
        &mut self,
        core: &mut Core,
        delivery: PublishDelivery,
        watch: W,
    ) {
        let message = &delivery.message;
        let hash = self.topics.routes.hash(message.topic());
        let entry = self.topics.recall(core, message.topic(), hash);
        let mut frames = std::mem::take(&mut core.frames);
        let message = &core.own_copy(message);
        let mut outgoing = Outgoing::from_message(message, &mut frames);
        let source =
            if delivery.must_be_taken && !self.topics.has_memory(core, &entry, message.qos()) {
                Source::WorkerInsists(&delivery)
            } else {
                Source::Worker(&delivery)
            };
        core.memory.has_queued = false;
        let reach = Reach::of(source);
        let mut told = Told { reach, watch };
        self.deliver_here(core, &entry, &mut outgoing, &mut told);
        let Told { reach, watch } = told;
        watch.finish(core, &mut outgoing);
        if let Some(reports) = &delivery.reports {
            let is_refused = reach.matched > 0 && !reach.is_taken();
            reports.report(core.id, core.memory.has_queued || is_refused);
        }
        core.durable.moved(delivery.origin);
        core.rooms.end_promises(delivery.promises);
        core.frames = frames;
        self.topics.routes.put(hash, entry);
    }

    /// Whether a PUBLISH has to wait for the answers of other workers about their memory.
    pub(super) fn has_to_inquire(
        &mut self,
        core: &mut Core,
        publisher: u64,
        mut about: InquirySubject<'_>,
    ) -> bool {
        let hash = self.topics.routes.hash(about.topic);
        let entry = self.topics.recall(core, about.topic, hash);
        about.workers = entry.route.workers.without(core.id);
        self.topics.routes.put(hash, entry);
        !about.workers.is_empty() && self.publishers.inquire(core, publisher, about)
    }

    fn deliver_here<W: Watch>(
        &mut self,
        core: &mut Core,
        entry: &CachedRoute,
        outgoing: &mut Outgoing<'_>,
        told: &mut Told<'_, W>,
    ) {
        match entry.local.as_slice() {
            [] => {}
            [filter] => self.deliver_to_all(core, *filter, outgoing, told),
            _ => self.deliver_merged(core, entry, outgoing, told),
        }
    }

    /// Delivers a message to the subscribers of the only filter that matched.
    fn deliver_to_all<W: Watch>(
        &mut self,
        core: &mut Core,
        filter: FilterId,
        outgoing: &mut Outgoing<'_>,
        told: &mut Told<'_, W>,
    ) {
        let Told { reach, watch } = told;
        let published = *outgoing.publication();
        for subscriber in self.topics.subscribers(filter) {
            let Some(mut found) = core.matched(subscriber, &published) else {
                continue;
            };
            found.is_acknowledged = core.is_acknowledged(found.slot, found.qos, reach.source);
            found.is_promised = core.is_promised(found.slot, reach.source);
            let one = [found.identifier];
            let identifiers = if found.identifier == 0 { &[][..] } else { &one };
            let delivered = core.deliver_match(found, outgoing, identifiers);
            reach.add(delivered);
            watch.delivered(core, found.slot, found.qos, delivered);
        }
    }

    /// Delivers a message that several filters matched: a session with more than one of them
    /// receives the message once, with the highest quality of service and all subscription
    /// identifiers. [MQTT-3.3.4-2] [MQTT-3.3.4-4] [MQTT3-3.3.5-1]
    fn deliver_merged<W: Watch>(
        &mut self,
        core: &mut Core,
        entry: &CachedRoute,
        outgoing: &mut Outgoing<'_>,
        told: &mut Told<'_, W>,
    ) {
        let Told { reach, watch } = told;
        let mut matches = std::mem::take(&mut self.match_scratch);
        let mut identifiers = std::mem::take(&mut self.identifier_scratch);
        let published = *outgoing.publication();
        for filter in &entry.local {
            let subscribers = self.topics.subscribers(*filter).iter();
            matches.extend(subscribers.filter_map(|one| core.matched(one, &published)));
        }
        core.turn.work += matches.len() as u64;
        matches.sort_by_key(|found| found.slot);
        for same in matches.chunk_by(|one, next| one.slot == next.slot) {
            let mut merged = same[0];
            identifiers.clear();
            for found in same {
                merged.qos = merged.qos.max(found.qos);
                merged.retain |= found.retain;
                identifiers.extend((found.identifier != 0).then_some(found.identifier));
            }
            identifiers.sort_unstable();
            identifiers.dedup();
            merged.is_acknowledged = core.is_acknowledged(merged.slot, merged.qos, reach.source);
            merged.is_promised = core.is_promised(merged.slot, reach.source);
            let delivered = core.deliver_with(merged, &identifiers, outgoing, reach);
            watch.delivered(core, merged.slot, merged.qos, delivered);
        }
        matches.clear();
        self.match_scratch = matches;
        self.identifier_scratch = identifiers;
    }

    /// Sends a message to the other workers with subscribers, unless none of them is certain to
    /// have room and no other receiver accepts the message.
    fn send_to_workers<W: Watch>(
        &mut self,
        core: &mut Core,
        entry: &CachedRoute,
        outgoing: &mut Outgoing<'_>,
        told: &mut Told<'_, W>,
    ) {
        let Told { reach, watch } = told;
        let route = &entry.route;
        let others = route.workers.without(core.id);
        let published = outgoing.publication().qos;
        let is_taken = reach.is_taken();
        let takers = self.publishers.takers(core, outgoing.publication());
        let have_memory = takers.unwrap_or(WorkerSet::ALL);
        if (others & have_memory).is_empty() && !is_taken {
            reach.refuse(others.len());
            core.row()
                .add(Counter::DroppedMemoryShort, others.len().into());
            return;
        }
        let mut promises = Vec::new();
        if published != QoS::AtMostOnce && !route.nearly_full.is_empty() {
            promises = remote_promises(core, route, outgoing, reach.source, have_memory);
            let rooms = route.nearly_full.iter();
            let uncertain: WorkerSet = rooms.map(|room| room.session.worker).collect();
            // A worker whose subscriptions all have QoS 0 queues nothing.
            let certain =
                (others & have_memory & route.certain) | ((others & have_memory) - uncertain);
            let is_certain = is_taken || !certain.is_empty();
            if !is_certain && promises.is_empty() && refuse_remote(core, route, reach) {
                return;
            }
        }
        // If no worker was asked, the memory level is as of this turn.
        let is_reported = published != QoS::AtMostOnce && !is_taken;
        let must_take = match takers {
            Some(takers) if is_reported => takers,
            None if is_reported && core.memory.level < MemoryLevel::Short => others,
            Some(_) | None => WorkerSet::NONE,
        };
        reach.matched += others.len();
        let promised = Promised {
            must_take,
            promises,
            stamp: watch.stamp(),
        };
        self.send_to_others(core, entry, outgoing, promised);
    }

    fn send_to_others(
        &mut self,
        core: &mut Core,
        entry: &CachedRoute,
        outgoing: &mut Outgoing<'_>,
        promised: Promised,
    ) {
        let Promised {
            must_take,
            mut promises,
            stamp,
        } = promised;
        let route = &entry.route;
        let others = route.workers.without(core.id);
        let published = *outgoing.publication();
        let is_kept = core.is_kept(published.qos);
        let reports = self.publishers.reports_of(core, published.publisher);
        let is_queued = |reports: &Arc<RemoteReports>| reports.is_queued_on(others);
        core.memory.has_queued |= reports.as_ref().is_some_and(is_queued);
        for worker in others {
            let message = Arc::clone(outgoing.message());
            let is_durable = is_kept && route.durable.contains(worker);
            let origin = is_durable
                .then(|| core.durable.place_to(worker, &message))
                .flatten();
            let its_own = |promise: &mut Promise| promise.worker() == worker;
            let delivery = PublishDelivery {
                message,
                origin,
                promises: promises.extract_if(.., its_own).collect(),
                generation: entry.node_version.generation(),
                must_be_taken: must_take.contains(worker),
                reports: reports.clone(),
                stamp: stamp.clone(),
            };
            core.outboxes.send(worker, EngineMail::Publish(delivery));
        }
    }
}

/// Reserves places in nearly full queues of other workers' sessions: in all queues that make
/// publishers wait, or else in one of the others, so that one receiver certainly has room.
fn remote_promises(
    core: &mut Core,
    route: &Route,
    outgoing: &mut Outgoing<'_>,
    source: Source<'_>,
    have_memory: WorkerSet,
) -> Vec<Promise> {
    let mut promises = Vec::new();
    let bytes = outgoing.message().bytes_len();
    let asked = have_memory.without(core.id);
    core.turn.work += route.nearly_full.len() as u64;
    let is_asked = |room: &&Arc<QueueRoom>| asked.contains(room.session.worker);
    let remote = || route.nearly_full.iter().filter(is_asked);
    for room in remote().filter(|room| room.holds()) {
        promises.extend(match source {
            Source::Publisher(Clearance::NotAsked) | Source::Node => room.try_promise(bytes),
            _ => Some(room.promise(bytes)),
        });
    }
    if promises.is_empty() {
        let mut others = remote().filter(|room| !room.holds());
        promises.extend(others.find_map(|room| room.try_promise(bytes)));
    }
    promises
}

/// Refuses a message on behalf of the sessions on other workers, none of which has room, so that no
/// session receives a message that its publisher is told is refused. False if there are no such
/// sessions.
fn refuse_remote(core: &mut Core, route: &Route, reach: &mut Reach<'_>) -> bool {
    let here = core.id;
    let mut are_any = false;
    for room in &route.nearly_full {
        if room.session.worker == here {
            continue;
        }
        are_any = true;
        reach.refuse(1);
        if room.refuse() {
            let session = room.session;
            core.outboxes
                .send(session.worker, EngineMail::Full(session));
        }
    }
    are_any
}
