//! What a publisher learns of its receivers on other workers while memory is low.
//!
//! From 80 % of the limit on, those workers say whether what it published last waits there: then it
//! is read less. From 90 % on they are asked before a PUBLISH is handled, so that there is memory
//! for what is acknowledged. It waits in its connection meanwhile.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use thrum_codec::QoS;
use thrum_protection::MemoryLevel;
use thrum_protocol::{Publication, Time};

use super::core::Core;
use crate::ids::ConnectionId;
use crate::mail::EngineMail;
use crate::workers::{SharedWorkerSet, WorkerId, WorkerSet};

/// An answer holds for so long, as the memory is looked at.
const KNOWN_FOR: Duration = Duration::from_millis(10);

/// What other workers say about the messages of one client, as sets.
#[derive(Debug, Default)]
pub struct Heard {
    /// The last message waits there.
    queued: SharedWorkerSet,
    /// There is memory for the next one.
    takers: SharedWorkerSet,
    /// They have not answered yet.
    awaited: SharedWorkerSet,
}

impl Heard {
    /// What became of a message on a worker.
    pub fn tell(&self, worker: WorkerId, is_queued: bool) {
        self.queued.put(worker, is_queued, Ordering::AcqRel);
    }
}

/// What is known of the receivers of one client.
#[derive(Debug, Default)]
struct Elsewhere {
    heard: Arc<Heard>,
    /// What was asked about last, and whom.
    topic: Box<str>,
    workers: WorkerSet,
    asked: Time,
    /// A PUBLISH has been handled since.
    is_used: bool,
}

/// Clients that publish while memory is low, by the numbers of their sessions.
#[derive(Debug, Default)]
pub struct Publishers(HashMap<u64, Elsewhere>);

/// Whether a worker has memory for a message.
#[derive(Debug)]
pub struct Inquiry {
    pub(super) topic: Arc<str>,
    pub(super) qos: QoS,
    pub(super) heard: Arc<Heard>,
    from: WorkerId,
    connection: ConnectionId,
}

/// What other workers may be asked about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inquired<'a> {
    pub(super) connection: ConnectionId,
    pub(super) topic: &'a str,
    pub(super) qos: QoS,
    /// Those that want the message.
    pub(super) workers: WorkerSet,
}

impl Inquiry {
    /// Says whether there is memory here.
    pub(super) fn answer(&self, core: &mut Core, has_memory: bool) {
        let (here, heard) = (core.id, &self.heard);
        heard.takers.put(here, has_memory, Ordering::AcqRel);
        if heard.awaited.take_last(here) {
            core.outboxes
                .send(self.from, EngineMail::Heard(self.connection));
        }
    }
}

impl Publishers {
    /// Asks the workers, unless they have answered just now; true if their answers are awaited.
    pub(super) fn inquire(&mut self, core: &mut Core, session: u64, about: Inquired<'_>) -> bool {
        let now = core.turn.now;
        let known = self.publisher(core, session);
        let is_fresh = !known.is_used || now.since(known.asked) < KNOWN_FOR;
        let is_answered = known.heard.awaited.load(Ordering::Acquire).is_empty();
        let is_same = known.workers == about.workers && *known.topic == *about.topic;
        if is_fresh && is_answered && is_same {
            return false;
        }
        known.asked = now;
        known.workers = about.workers;
        known.is_used = false;
        known.topic = about.topic.into();
        let heard = Arc::clone(&known.heard);
        heard.awaited.store(about.workers, Ordering::Release);
        let topic: Arc<str> = about.topic.into();
        for worker in about.workers {
            let inquiry = Inquiry {
                topic: Arc::clone(&topic),
                qos: about.qos,
                heard: Arc::clone(&heard),
                from: core.id,
                connection: about.connection,
            };
            core.outboxes.send(worker, EngineMail::Inquiry(inquiry));
        }
        true
    }

    /// Other workers that have memory for a message; none if they were not asked.
    pub fn takers(&mut self, core: &Core, publication: &Publication<'_>) -> Option<WorkerSet> {
        if core.memory.level < MemoryLevel::Short || publication.qos == QoS::AtMostOnce {
            return None;
        }
        let known = self.0.get_mut(&publication.publisher)?;
        if *known.topic != *publication.topic {
            return None;
        }
        known.is_used = true;
        Some(known.heard.takers.load(Ordering::Acquire))
    }

    /// Where other workers say what becomes of the messages of a client, while memory is low.
    #[inline]
    pub fn heard_by(&mut self, core: &Core, publisher: u64) -> Option<Arc<Heard>> {
        if core.memory.level < MemoryLevel::Low {
            return None;
        }
        Some(Arc::clone(&self.publisher(core, publisher).heard))
    }

    /// The publisher's connection is gone.
    pub(super) fn forget(&mut self, session: u64) {
        self.0.remove(&session);
    }

    fn publisher(&mut self, core: &Core, publisher: u64) -> &mut Elsewhere {
        // Wills and redelivered messages have publishers that are not here.
        if self.0.len() > 2 * core.outputs.len() {
            self.0.clear();
        }
        self.0.entry(publisher).or_default()
    }

    /// Nothing is asked while there is enough memory.
    #[inline]
    pub fn forget_all(&mut self) {
        if !self.0.is_empty() {
            self.0 = HashMap::new();
        }
    }
}

impl Heard {
    /// The last message waits on one of these workers.
    pub(super) fn is_queued_on(&self, workers: WorkerSet) -> bool {
        !(self.queued.load(Ordering::Relaxed) & workers).is_empty()
    }
}
