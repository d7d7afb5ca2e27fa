//! Memory of the receivers on other workers, as their publishers learn it while memory is low.
//!
//! From 80 % of the limit on, the other workers report whether the last message of a publisher was
//! queued there: then the publisher is read less. From 90 % on, they are asked before a PUBLISH is
//! handled, so that there is memory for every message that is acknowledged. The PUBLISH waits in
//! its connection meanwhile.

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

/// Time for which an answer is valid, which is the interval of memory readings.
const KNOWN_FOR: Duration = Duration::from_millis(10);

/// Reports of other workers about the messages of one client.
#[derive(Debug, Default)]
pub struct RemoteReports {
    /// Workers on which the last message was queued.
    queued: SharedWorkerSet,
    /// Workers that have memory for the next message.
    takers: SharedWorkerSet,
    /// Workers that have not answered the last inquiry.
    awaited: SharedWorkerSet,
}

impl RemoteReports {
    /// Reports whether the last message was queued on a worker.
    pub fn report(&self, worker: WorkerId, is_queued: bool) {
        self.queued.put(worker, is_queued, Ordering::AcqRel);
    }
}

/// State of the inquiries about the messages of one client.
#[derive(Debug, Default)]
struct RemoteReceivers {
    reports: Arc<RemoteReports>,
    /// Topic of the last inquiry.
    topic: Box<str>,
    workers: WorkerSet,
    asked: Time,
    /// A PUBLISH was handled since the last inquiry.
    is_used: bool,
}

/// Clients that publish while memory is low, by session number.
#[derive(Debug, Default)]
pub struct Publishers(HashMap<u64, RemoteReceivers>);

/// A question to another worker: has it memory for a message?
#[derive(Debug)]
pub struct Inquiry {
    pub(super) topic: Arc<str>,
    pub(super) qos: QoS,
    pub(super) reports: Arc<RemoteReports>,
    from: WorkerId,
    connection: ConnectionId,
}

/// The PUBLISH that other workers are asked about.
#[derive(Clone, Copy, Debug)]
pub(super) struct InquirySubject<'a> {
    pub(super) connection: ConnectionId,
    pub(super) topic: &'a str,
    pub(super) qos: QoS,
    /// Workers with subscriptions that match the message.
    pub(super) workers: WorkerSet,
}

impl Inquiry {
    /// Answers whether this worker has memory for the message.
    pub(super) fn answer(&self, core: &mut Core, has_memory: bool) {
        let (here, reports) = (core.id, &self.reports);
        reports.takers.put(here, has_memory, Ordering::AcqRel);
        if reports.awaited.take_last(here) {
            core.outboxes
                .send(self.from, EngineMail::InquiryAnswered(self.connection));
        }
    }
}

impl Publishers {
    /// Asks the workers unless their last answers are still valid; true if the PUBLISH has to wait
    /// for answers.
    pub(super) fn inquire(
        &mut self,
        core: &mut Core,
        session: u64,
        about: InquirySubject<'_>,
    ) -> bool {
        let now = core.turn.now;
        let known = self.publisher(core, session);
        let is_fresh = !known.is_used || now.since(known.asked) < KNOWN_FOR;
        let is_answered = known.reports.awaited.load(Ordering::Acquire).is_empty();
        let is_same = known.workers == about.workers && *known.topic == *about.topic;
        if is_fresh && is_answered && is_same {
            return false;
        }
        known.asked = now;
        known.workers = about.workers;
        known.is_used = false;
        known.topic = about.topic.into();
        let reports = Arc::clone(&known.reports);
        reports.awaited.store(about.workers, Ordering::Release);
        let topic: Arc<str> = about.topic.into();
        for worker in about.workers {
            let inquiry = Inquiry {
                topic: Arc::clone(&topic),
                qos: about.qos,
                reports: Arc::clone(&reports),
                from: core.id,
                connection: about.connection,
            };
            core.outboxes.send(worker, EngineMail::Inquiry(inquiry));
        }
        true
    }

    /// Returns the workers that have memory for a message; none if they were not asked.
    pub fn takers(&mut self, core: &Core, publication: &Publication<'_>) -> Option<WorkerSet> {
        if core.memory.level < MemoryLevel::Short || publication.qos == QoS::AtMostOnce {
            return None;
        }
        let known = self.0.get_mut(&publication.publisher)?;
        if *known.topic != *publication.topic {
            return None;
        }
        known.is_used = true;
        Some(known.reports.takers.load(Ordering::Acquire))
    }

    /// Returns the reports about the messages of a client; none while there is enough memory.
    #[inline]
    pub fn reports_of(&mut self, core: &Core, publisher: u64) -> Option<Arc<RemoteReports>> {
        if core.memory.level < MemoryLevel::Low {
            return None;
        }
        Some(Arc::clone(&self.publisher(core, publisher).reports))
    }

    /// Removes a publisher whose connection has ended.
    pub(super) fn forget(&mut self, session: u64) {
        self.0.remove(&session);
    }

    fn publisher(&mut self, core: &Core, publisher: u64) -> &mut RemoteReceivers {
        // The publishers of wills and redelivered messages are not connected to this worker.
        if self.0.len() > 2 * core.outputs.len() {
            self.0.clear();
        }
        self.0.entry(publisher).or_default()
    }

    /// Removes all publishers, as nothing is asked while there is enough memory.
    #[inline]
    pub fn forget_all(&mut self) {
        if !self.0.is_empty() {
            self.0 = HashMap::new();
        }
    }
}

impl RemoteReports {
    /// Whether the last message was queued on one of these workers.
    pub(super) fn is_queued_on(&self, workers: WorkerSet) -> bool {
        !(self.queued.load(Ordering::Relaxed) & workers).is_empty()
    }
}
