//! What a publisher learns of its receivers on other workers while memory is low.
//!
//! From 80 % of the limit on, those workers say whether what it published last waits there: then it
//! is read less. From 90 % on they are asked before a PUBLISH is handled, so that there is memory
//! for what is acknowledged. It waits in its connection meanwhile.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use thrum_codec::packet::{Packet, Publish};
use thrum_codec::{QoS, Version};
use thrum_protection::MemoryLevel;
use thrum_protocol::{Publication, Time};

use super::Worker;
use crate::ids::{ConnectionId, ConnectionKey, Slot};
use crate::mailbox::Mail;
use crate::publish::is_reserved;
use crate::read_gate::PauseReason;
use crate::route_cache::Remembered;
use crate::workers::{SharedWorkerSet, WorkerId, WorkerSet};

/// An answer holds for so long, as the memory is looked at.
const KNOWN_FOR: Duration = Duration::from_millis(10);

/// What other workers say about the messages of one client, as sets.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    /// The last message waits there.
    queued: SharedWorkerSet,
    /// There is memory for the next one.
    takers: SharedWorkerSet,
    /// They have not answered yet.
    awaited: SharedWorkerSet,
}

impl Heard {
    /// What became of a message on a worker.
    pub(crate) fn tell(&self, worker: WorkerId, is_queued: bool) {
        self.queued.put(worker, is_queued, Ordering::AcqRel);
    }
}

/// What is known of the receivers of one client.
#[derive(Debug, Default)]
pub(crate) struct Elsewhere {
    heard: Arc<Heard>,
    /// What was asked about last, and whom.
    topic: Box<str>,
    workers: WorkerSet,
    asked: Time,
    /// A PUBLISH has been handled since.
    is_used: bool,
}

/// Clients that publish while memory is low, by the numbers of their sessions.
pub(super) type Publishers = HashMap<u64, Elsewhere>;

/// Whether a worker has memory for a message.
#[derive(Debug)]
pub(crate) struct Inquiry {
    topic: Arc<str>,
    qos: QoS,
    heard: Arc<Heard>,
    from: (WorkerId, ConnectionId),
}

impl Worker {
    /// Whether other workers have to be asked before a packet is handled: it waits for their
    /// answers.
    #[inline]
    pub(super) fn has_to_inquire(
        &mut self,
        key: ConnectionKey,
        slot: Slot,
        packet: &Packet<'_>,
    ) -> bool {
        self.local.memory.level >= MemoryLevel::Short
            && self.node.workers() > 1
            && matches!(packet, Packet::Publish(publish) if self.inquires(key, slot, publish))
    }

    #[cold]
    fn inquires(&mut self, key: ConnectionKey, slot: Slot, publish: &Publish<'_>) -> bool {
        let session = &self.local.clients[slot].session;
        let can_be_told = publish.qos != QoS::AtMostOnce && session.version() == Version::V5;
        if !can_be_told || session.is_repeated(publish) {
            return false;
        }
        let id = session.id();
        let Some(topic) = self.whole_topic(slot, publish) else {
            return false;
        };
        let hash = self.routes.hash(&topic);
        let entry = self.recall(&topic, hash);
        let workers = entry.route.workers.without(self.local.id);
        self.routes.put(hash, entry);
        if workers.is_empty() {
            return false;
        }
        let now = self.local.now;
        let known = self.publisher(id);
        let is_fresh = !known.is_used || now.since(known.asked) < KNOWN_FOR;
        let is_answered = known.heard.awaited.load(Ordering::Acquire).is_empty();
        if is_fresh && is_answered && known.workers == workers && *known.topic == *topic {
            return false;
        }
        known.asked = now;
        known.workers = workers;
        known.is_used = false;
        known.topic = topic.as_str().into();
        let heard = Arc::clone(&known.heard);
        heard.awaited.store(workers, Ordering::Release);
        self.inquire(key, (topic.into(), publish.qos), workers, &heard);
        true
    }

    fn inquire(
        &mut self,
        key: ConnectionKey,
        what: (Arc<str>, QoS),
        workers: WorkerSet,
        heard: &Arc<Heard>,
    ) {
        let (topic, qos) = what;
        let reading = &mut self.local.connections[key].reading;
        reading.close(PauseReason::Mail);
        let connection = self.local.connections[key].id(key);
        for worker in workers {
            let inquiry = Inquiry {
                topic: Arc::clone(&topic),
                qos,
                heard: Arc::clone(heard),
                from: (self.local.id, connection),
            };
            self.send(worker, Mail::Inquiry(inquiry));
        }
    }

    /// The topic of a PUBLISH as it is routed.
    fn whole_topic(&self, slot: Slot, publish: &Publish<'_>) -> Option<String> {
        let session = &self.local.clients[slot].session;
        let seen = session
            .topic_of(publish)
            .filter(|seen| !is_reserved(seen))?;
        let mut text = String::new();
        match session.mount_point() {
            None => Some(seen.to_owned()),
            Some(mount) => Some(mount.mounted_topic(seen, &mut text)?.to_owned()),
        }
    }

    pub(super) fn answer_inquiry(&mut self, inquiry: &Inquiry) {
        let hash = self.routes.hash(&inquiry.topic);
        let entry = self.recall(&inquiry.topic, hash);
        let has_memory = self.has_memory(&entry, inquiry.qos);
        self.routes.put(hash, entry);
        let (here, heard) = (self.local.id, &inquiry.heard);
        heard.takers.put(here, has_memory, Ordering::AcqRel);
        if heard.awaited.take_last(here, Ordering::AcqRel) {
            let (worker, connection) = inquiry.from;
            self.send(worker, Mail::Heard(connection));
        }
    }

    /// All workers have answered.
    pub(super) fn go_on_informed(&mut self, connection: ConnectionId) {
        if self.local.connection(connection).is_some() {
            self.resume(connection.key, PauseReason::Mail);
        }
    }

    /// Whether one of this worker's subscribers has memory for a message, or none gets it.
    pub(crate) fn has_memory(&mut self, entry: &Remembered, published: QoS) -> bool {
        if self.local.memory.level < MemoryLevel::Short {
            return true;
        }
        let filters = entry.local.iter();
        let mut subscribers = filters.flat_map(|filter| self.index.destinations(*filter));
        let mut seen = 0;
        let has_memory = subscribers.any(|subscriber| {
            seen += 1;
            let qos = self.local.delivered_qos(published, subscriber.options.qos);
            !self.local.lacks_memory_for(subscriber.slot, qos)
        });
        self.local.work += seen;
        has_memory || seen == 0
    }

    /// Other workers that have memory for a message; none if they were not asked.
    pub(crate) fn takers(&mut self, publication: &Publication<'_>) -> Option<WorkerSet> {
        if self.local.memory.level < MemoryLevel::Short || publication.qos == QoS::AtMostOnce {
            return None;
        }
        let known = self.publishers.get_mut(&publication.publisher)?;
        if *known.topic != *publication.topic {
            return None;
        }
        known.is_used = true;
        Some(known.heard.takers.load(Ordering::Acquire))
    }

    /// Where other workers say what becomes of the messages of a client, while memory is low.
    #[inline]
    pub(crate) fn heard_by(&mut self, publisher: u64) -> Option<Arc<Heard>> {
        if self.local.memory.level < MemoryLevel::Low {
            return None;
        }
        Some(Arc::clone(&self.publisher(publisher).heard))
    }

    /// The publisher at hand is read less if its last message waits on one of these workers.
    pub(crate) fn heed(&mut self, heard: Option<&Arc<Heard>>, workers: WorkerSet) {
        let queued = heard.map(|heard| heard.queued.load(Ordering::Relaxed));
        self.local.memory.has_queued |= queued.is_some_and(|queued| !(queued & workers).is_empty());
    }

    fn publisher(&mut self, publisher: u64) -> &mut Elsewhere {
        // Wills and redelivered messages have publishers that are not here.
        if self.publishers.len() > 2 * self.local.connections.len() {
            self.publishers.clear();
        }
        self.publishers.entry(publisher).or_default()
    }

    /// Nothing is asked while there is enough memory.
    #[inline]
    pub(super) fn forget_publishers(&mut self) {
        if self.local.memory.level < MemoryLevel::Low && !self.publishers.is_empty() {
            self.publishers = Publishers::new();
        }
    }
}
