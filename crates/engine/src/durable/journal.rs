//! The changes of the current turn of a worker.

use std::ops::Range;
use std::sync::Arc;

use thrum_codec::Version;
use thrum_protocol::server::{self, GroupId, Session, Step};
use thrum_protocol::{Message, Time};
use thrum_storage::{Awaiting, Batch, Change, Health, Identifiers, Inflight, Owner, Queued};
use thrum_storage::{MetricsSnapshot, Submitter, Ticket};

use super::lanes::{self, Lane};
use super::{MessageIds, Origin};
use crate::interest::Interest;
use crate::interest::groups::GroupTexts;
use crate::node::placement::Placement;
use crate::sinks::{Sink, SinkPlace};
use crate::workers::WorkerId;

/// Greatest number of empty step lists that are kept for reuse.
const SPARE_LISTS_MAX: usize = 8;

/// Collects the changes of a worker, and submits them to the storage thread once a turn.
#[derive(Debug)]
pub struct Journal {
    batch: Batch,
    submitter: Submitter,
    message_ids: Arc<MessageIds>,
    /// Message numbers that this worker has reserved and not used yet.
    free_ids: Range<u64>,
    now: Time,
    /// Number of changes since the start.
    changes: u64,
    #[expect(clippy::vec_box, reason = "sessions hold them by one pointer")]
    spare: Vec<Box<Vec<Step>>>,
    /// The storage thread had no room for the last batch.
    stuck: bool,
    /// Lanes for messages to other workers, by worker number.
    lanes: Vec<Lane>,
    placement: Placement,
    shared: Lane,
    /// Lanes for messages to sinks, by sink number; none for a sink without a message so far.
    for_sinks: Vec<Option<Lane>>,
    group_texts: GroupTexts,
}

impl Journal {
    /// Creates an empty journal; `lane` returns unused session numbers.
    pub fn new(
        submitter: Submitter,
        message_ids: Arc<MessageIds>,
        placement: Placement,
        lane: impl Fn() -> u64,
    ) -> Self {
        Self {
            lanes: placement.workers().map(|_| Lane::new(lane())).collect(),
            placement,
            shared: Lane::new(lane()),
            for_sinks: Vec::new(),
            group_texts: GroupTexts::default(),
            batch: Batch::default(),
            submitter,
            message_ids,
            free_ids: 0..0,
            now: Time::default(),
            changes: 0,
            spare: Vec::new(),
            stuck: false,
        }
    }

    /// Sets the time of the current turn.
    pub fn set_now(&mut self, now: Time) {
        self.now = now;
    }

    /// Number of changes since the start.
    #[inline]
    pub fn mark(&self) -> u64 {
        self.changes
    }

    /// Whether there are changes that are not submitted.
    #[inline]
    pub fn has_changes(&self) -> bool {
        !self.batch.is_empty()
    }

    /// Ends a unit: the storage restores all changes since the previous unit or none.
    #[inline]
    pub fn end_unit(&mut self) {
        self.batch.end_unit();
    }

    /// Adds a change to the batch of the turn.
    pub fn push(&mut self, change: &Change<'_>) {
        self.changes += 1;
        self.batch.push(change);
    }

    /// Submits the batch; returns the ticket of it and all earlier batches, or none if the storage
    /// thread has no room.
    pub fn submit(&mut self) -> Option<Ticket> {
        let ticket = self.submitter.submit(&mut self.batch);
        self.stuck = ticket.is_none();
        ticket
    }

    /// The ticket of the last batch that was submitted.
    pub fn submitted(&self) -> Ticket {
        self.submitter.last()
    }

    /// The last ticket that is durable.
    pub fn durable(&self) -> Ticket {
        self.submitter.durable()
    }

    /// Whether the storage thread had no room for the last batch, so that publishers have to wait.
    #[inline]
    pub fn is_stuck(&self) -> bool {
        self.stuck
    }

    /// The health of the storage.
    pub fn health(&self) -> Health {
        self.submitter.health()
    }

    /// Has the storage thread check whether its directory was moved or removed.
    pub fn check_directory(&self) {
        self.submitter.look();
    }

    /// The counters of the storage thread.
    pub fn metrics(&self) -> MetricsSnapshot {
        self.submitter.metrics()
    }

    /// The error of the storage thread; none if it can write.
    pub fn failure(&self) -> Option<String> {
        self.submitter.failure()
    }

    /// Returns an empty step list for reuse; none if there is none.
    pub fn spare_list(&mut self) -> Option<Box<Vec<Step>>> {
        self.spare.pop()
    }

    /// Stores an empty step list for reuse.
    pub fn keep_list(&mut self, list: Box<Vec<Step>>) {
        debug_assert!(
            list.is_empty(),
            "steps must be written before their list is reused"
        );
        if self.spare.len() < SPARE_LISTS_MAX {
            self.spare.push(list);
        }
    }

    /// Records the steps of a session; true if its output depends on them.
    pub fn steps(&mut self, session: u64, steps: &mut Vec<Step>, interest: &Interest) -> bool {
        let mut depends = false;
        for step in steps.drain(..) {
            depends |= must_precede_output(&step);
            self.step(session, &step, interest);
        }
        depends
    }

    fn step(&mut self, session: u64, step: &Step, interest: &Interest) {
        match step {
            Step::Queued {
                seq,
                message,
                qos,
                retain,
                identifiers,
                group,
            } => {
                let message = self.body(message);
                let texts = &mut self.group_texts;
                let group = group.map(|group| texts.of(group, || interest.group(group)));
                self.changes += 1;
                self.batch.push(&Change::Queued(Queued {
                    session,
                    seq: *seq,
                    message,
                    qos: *qos,
                    retain: *retain,
                    identifiers: Identifiers::Listed(identifiers),
                    group: group.unwrap_or_default(),
                }));
            }
            Step::Sent {
                seq,
                packet_id,
                awaiting,
            } => self.push(&Change::Inflight(Inflight {
                session,
                seq: *seq,
                packet_id: *packet_id,
                awaiting: stored(*awaiting),
            })),
            Step::Removed { seq } => self.push(&Change::DeliveryRemoved { session, seq: *seq }),
            Step::Received { packet_id } => self.push(&Change::Received {
                session,
                packet_id: *packet_id,
            }),
            Step::ReceivedRemoved { packet_id } => self.push(&Change::ReceivedRemoved {
                session,
                packet_id: *packet_id,
            }),
            Step::WillRemoved => self.push(&Change::WillRemoved { session }),
        }
    }

    /// Returns the number of a message, and records the message first if it has none.
    pub fn body(&mut self, message: &Message) -> u64 {
        let known = message.stored_id();
        if known != 0 {
            return known;
        }
        let id = self.next_message_id();
        message.set_stored_id(id);
        let publication = message.publication();
        let published_at = self.now.as_millis();
        self.push(&Change::Message(thrum_storage::Message {
            id,
            publisher: publication.publisher,
            published_at,
            expires_at: publication.expires_at.map(Time::as_millis),
            qos: publication.qos,
            retain: publication.retain,
            topic: publication.topic,
            properties: message.properties_block(),
            payload: publication.payload,
        }));
        id
    }

    /// Records that a session exists; `away_since` is none while it has a connection.
    pub fn session(&mut self, session: &Session, owner: Owner<&str>, away_since: Option<Time>) {
        self.push(&Change::Session(thrum_storage::Session {
            id: session.id(),
            client_id: session.client_id(),
            version: session.link().version(),
            expiry_secs: session.lifetime().session_expiry(),
            away_since: away_since.map(Time::as_millis),
            packet_id_hint: session.outbound().last_packet_id(),
            owner,
        }));
    }

    /// Records the current will of a session, or that it has none.
    pub fn will(&mut self, session: &Session) {
        let id = session.id();
        let Some(will) = session.will() else {
            self.push(&Change::WillRemoved { session: id });
            return;
        };
        let publication = will.message.publication();
        self.push(&Change::Will(thrum_storage::Will {
            session: id,
            delay_secs: will.delay_secs,
            message_expiry_secs: will.message_expiry,
            qos: publication.qos,
            retain: publication.retain,
            topic: publication.topic,
            properties: will.message.properties_block(),
            payload: publication.payload,
        }));
    }

    /// Removes a message from its place.
    pub fn moved(&mut self, from: Origin) {
        if !from.ends {
            self.push(&Change::DeliveryRemoved {
                session: from.session,
                seq: from.seq,
            });
        }
    }

    /// Stores a message that is sent to another worker for its durable sessions, and returns its
    /// place.
    pub fn place_to(&mut self, worker: WorkerId, message: &Message) -> Origin {
        let lane = &mut self.lanes[worker.index()];
        lane.last += 1;
        let lane = *lane;
        if lane.last == 1 {
            self.open_lane(lane.session, &lanes::name_to(worker, self.placement));
        }
        self.place(lane, message, "")
    }

    /// Stores a message of a shared group that is sent to a member on another worker, and returns
    /// its place.
    pub fn place_shared(
        &mut self,
        message: &Message,
        group: GroupId,
        interest: &Interest,
    ) -> Origin {
        self.shared.last += 1;
        let lane = self.shared;
        if lane.last == 1 {
            self.open_lane(lane.session, &lanes::name_shared());
        }
        let mut texts = std::mem::take(&mut self.group_texts);
        let group = texts.of(group, || interest.group(group));
        let origin = self.place(lane, message, group);
        self.group_texts = texts;
        origin
    }

    /// Stores a message for a sink, and returns its place; `new_lane` returns an unused session
    /// number.
    pub fn place_for_sink(
        &mut self,
        sink: &Sink,
        message: &Message,
        new_lane: impl Fn() -> u64,
    ) -> SinkPlace {
        let number = sink.id.index();
        if self.for_sinks.len() <= number {
            self.for_sinks.resize(number + 1, None);
        }
        let lane = self.for_sinks[number].get_or_insert_with(|| Lane::new(new_lane()));
        lane.last += 1;
        let lane = *lane;
        if lane.last == 1 {
            self.open_lane(lane.session, &lanes::name_for_sink(&sink.name));
        }
        let Origin { session, seq, .. } = self.place(lane, message, "");
        SinkPlace { lane: session, seq }
    }

    fn open_lane(&mut self, session: u64, name: &str) {
        self.push(&Change::Session(thrum_storage::Session {
            id: session,
            client_id: name,
            version: Version::V5,
            expiry_secs: u32::MAX,
            away_since: None,
            packet_id_hint: 0,
            owner: Owner::Unknown,
        }));
    }

    fn place(&mut self, lane: Lane, message: &Message, group: &str) -> Origin {
        let body = self.body(message);
        self.push(&Change::Queued(Queued {
            session: lane.session,
            seq: lane.last,
            message: body,
            qos: message.publication().qos,
            retain: false,
            identifiers: Identifiers::NONE,
            group,
        }));
        Origin {
            session: lane.session,
            seq: lane.last,
            ends: false,
        }
    }

    fn next_message_id(&mut self) -> u64 {
        loop {
            if let Some(id) = self.free_ids.next() {
                return id;
            }
            self.free_ids = self.message_ids.block();
        }
    }
}

/// Whether a step has to be durable before the output of the session is sent: the client relies on
/// the session state that a PUBLISH with QoS 2, a PUBREL, a PUBREC and a PUBCOMP imply.
fn must_precede_output(step: &Step) -> bool {
    match step {
        Step::Sent { awaiting, .. } => *awaiting != server::Awaiting::PubAck,
        Step::Received { .. } | Step::ReceivedRemoved { .. } => true,
        Step::Queued { .. } | Step::Removed { .. } | Step::WillRemoved => false,
    }
}

fn stored(awaiting: server::Awaiting) -> Awaiting {
    match awaiting {
        server::Awaiting::PubAck => Awaiting::PubAck,
        server::Awaiting::PubRec => Awaiting::PubRec,
        server::Awaiting::PubComp => Awaiting::PubComp,
    }
}
