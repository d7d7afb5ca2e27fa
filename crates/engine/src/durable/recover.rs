//! What the storage gives back at the start, divided among the workers.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use thrum_protocol::server::{Stored, StoredDelivery, StoredWill};
use thrum_protocol::{Message, MessageParts, Time};
use thrum_storage::{
    Awaiting, Owner, Recovered, RecoveredDelivery, RecoveredMessage, RecoveredSession,
    RecoveredSubscription, RecoveredWill,
};

use super::lanes::{PassedTo, Purpose, purpose};
use crate::node::NodeState;
use crate::retained::RetainedSource;
use crate::sinks::{Offer, SinkPlace};

/// A session as it comes back.
#[derive(Debug)]
pub struct Restored {
    pub stored: Stored,
    /// Places of the deliveries that belong to a shared subscription, with its filter.
    pub shared: Vec<(usize, Box<str>)>,
    pub subscriptions: Vec<RecoveredSubscription>,
    pub owner: Owner<Box<str>>,
    /// It had a connection when the broker ended: it is away since now, which must be written down.
    pub was_connected: bool,
}

/// What one worker takes over.
#[derive(Debug, Default)]
pub struct Part {
    pub sessions: Vec<Restored>,
    /// Messages that were on their way to a worker when the node ended: its sessions of then may be
    /// with any worker now.
    pub passed: Arc<Vec<Passed>>,
    /// Messages of shared groups that were on their way to a member.
    pub shared: Vec<Restored>,
    /// Sessions that a later one of the same client has replaced.
    pub over: Vec<u64>,
    /// Lanes that are empty once all workers have taken over what was in them.
    pub lanes: Vec<u64>,
}

/// Messages on their way to a worker, for the sessions that it had.
#[derive(Debug)]
pub struct Passed {
    pub to: PassedTo,
    /// In their order.
    pub messages: Vec<Arc<Message>>,
}

/// Hands the sessions to workers, and the retained messages to the node.
pub fn divide(recovered: Recovered, node: &NodeState, now: Time) -> Divided {
    let messages: Vec<Came> = recovered.messages.into_iter().map(message).collect();
    // Those of one client share theirs.
    let mut sources: HashMap<Arc<[u8]>, Arc<RetainedSource>> = HashMap::new();
    for retained in recovered.retained {
        let source = retained.source.map(|bytes| {
            let stored = || RetainedSource::stored(Arc::clone(&bytes));
            Arc::clone(sources.entry(Arc::clone(&bytes)).or_insert_with(stored))
        });
        if let Some((message, _)) = messages.get(retained.message) {
            node.retained.restore(message, source);
        }
    }
    let mut latest: HashMap<Box<str>, u64> = HashMap::new();
    for session in &recovered.sessions {
        let id = latest.entry(session.client_id.clone()).or_default();
        *id = session.id.max(*id);
    }
    let mut parts: Vec<Part> = (0..node.workers()).map(|_| Part::default()).collect();
    let mut passed = Vec::new();
    let mut backlogs = Backlogs::default();
    for session in recovered.sessions {
        let worker = node.placement.worker_of(session.id);
        match purpose(&session.client_id) {
            Some(Purpose::Sessions(to)) => {
                parts[0].lanes.push(session.id);
                passed.push(passed_to(to, session, &messages));
            }
            Some(Purpose::Sink(sink)) => {
                let lane = session.id;
                if backlogs.add(sink, session, &messages) == 0 {
                    parts[0].lanes.push(lane);
                }
            }
            Some(Purpose::Shared) if session.deliveries.is_empty() => {
                parts[0].lanes.push(session.id);
            }
            Some(Purpose::Shared) => parts[0].shared.push(restored(session, &messages, now)),
            None if latest.get(&session.client_id) != Some(&session.id) => {
                parts[worker.index()].over.push(session.id);
            }
            None => {
                // A worker that is alone never asks whose a session is.
                if node.workers() > 1 {
                    node.registry.claim(&session.client_id, worker);
                }
                let part = &mut parts[worker.index()];
                part.sessions.push(restored(session, &messages, now));
            }
        }
    }
    let passed = Arc::new(passed);
    for part in &mut parts {
        part.passed = Arc::clone(&passed);
    }
    Divided {
        parts,
        lanes_of_sinks: backlogs.hand_over(node),
    }
}

/// Messages that sinks had not written when the node ended, by the name of the sink.
#[derive(Debug, Default)]
struct Backlogs {
    offers: BTreeMap<Box<str>, Vec<Offer>>,
    /// Messages in each lane.
    lanes: HashMap<u64, usize>,
}

impl Backlogs {
    /// What waited in a lane; how many messages.
    fn add(&mut self, sink: Box<str>, lane: RecoveredSession, messages: &[Came]) -> usize {
        let offer = |delivery: RecoveredDelivery| {
            let (message, received_at) = messages.get(delivery.message?)?;
            Some(Offer {
                message: Arc::clone(message),
                received_at: *received_at,
                place: Some(SinkPlace {
                    lane: lane.id,
                    seq: delivery.seq,
                }),
            })
        };
        let offers: Vec<Offer> = lane.deliveries.into_iter().filter_map(offer).collect();
        let count = offers.len();
        if count > 0 {
            self.lanes.insert(lane.id, count);
            self.offers.entry(sink).or_default().extend(offers);
        }
        count
    }

    /// Fills the queues of the sinks; the lanes, with the messages in each. A publisher may have
    /// been with several workers, each of which had a lane: the time puts its messages in order.
    fn hand_over(self, node: &NodeState) -> HashMap<u64, usize> {
        for (name, mut offers) in self.offers {
            offers.sort_by_key(|offer| offer.received_at);
            node.sinks.found(name, offers);
        }
        self.lanes
    }
}

/// What was found, by who takes it over.
#[derive(Debug)]
pub struct Divided {
    /// Each worker's.
    pub parts: Vec<Part>,
    /// Lanes of sinks, with the messages in each.
    pub lanes_of_sinks: HashMap<u64, usize>,
}

fn passed_to(to: PassedTo, lane: RecoveredSession, messages: &[Came]) -> Passed {
    let of_delivery = |delivery: RecoveredDelivery| {
        let (message, _) = messages.get(delivery.message?)?;
        Some(Arc::clone(message))
    };
    Passed {
        to,
        messages: lane
            .deliveries
            .into_iter()
            .filter_map(of_delivery)
            .collect(),
    }
}

/// A message, and when it came.
type Came = (Arc<Message>, Time);

fn message(recovered: RecoveredMessage) -> Came {
    let (bytes, topic_len, properties_len) = recovered.content.into_parts();
    let message = Message::from_parts(MessageParts {
        bytes,
        topic_len,
        properties_len,
        publisher: recovered.publisher,
        expires_at: recovered.expires_at.map(Time::from_millis),
        qos: recovered.qos,
        retain: recovered.retain,
    });
    message.set_stored_id(recovered.id);
    (Arc::new(message), Time::from_millis(recovered.published_at))
}

fn will(recovered: RecoveredWill) -> StoredWill {
    let (bytes, topic_len, properties_len) = recovered.content.into_parts();
    StoredWill {
        message: Message::from_parts(MessageParts {
            bytes,
            topic_len,
            properties_len,
            publisher: 0,
            expires_at: None,
            qos: recovered.qos,
            retain: recovered.retain,
        }),
        delay_secs: recovered.delay_secs,
        message_expiry: recovered.message_expiry_secs,
    }
}

fn restored(session: RecoveredSession, messages: &[Came], now: Time) -> Restored {
    let mut shared = Vec::new();
    let mut deliveries = Vec::with_capacity(session.deliveries.len());
    for recovered in session.deliveries {
        let place = deliveries.len();
        shared.extend(recovered.group.clone().map(|group| (place, group)));
        deliveries.push(delivery(recovered, messages));
    }
    Restored {
        was_connected: session.away_since.is_none(),
        stored: Stored {
            id: session.id,
            client_id: session.client_id,
            version: session.version,
            session_expiry: session.expiry_secs,
            // Who was connected when the broker ended has been away since now.
            away_since: session.away_since.map_or(now, Time::from_millis),
            last_packet_id: session.packet_id_hint,
            seq_max: session.seq_max,
            deliveries,
            received: session.received,
            will: session.will.map(will),
        },
        shared,
        subscriptions: session.subscriptions,
        owner: session.owner,
    }
}

fn delivery(recovered: RecoveredDelivery, messages: &[Came]) -> StoredDelivery {
    let message = recovered.message.and_then(|place| messages.get(place));
    let inflight = recovered.inflight.map(|(packet_id, awaiting)| {
        let awaiting = match awaiting {
            Awaiting::PubAck => thrum_protocol::server::Awaiting::PubAck,
            Awaiting::PubRec => thrum_protocol::server::Awaiting::PubRec,
            Awaiting::PubComp => thrum_protocol::server::Awaiting::PubComp,
        };
        (packet_id, awaiting)
    });
    StoredDelivery {
        seq: recovered.seq,
        message: message.map(|(message, _)| Arc::clone(message)),
        queued_at: message.map_or_else(Time::default, |(_, came)| *came),
        inflight,
        qos: recovered.qos,
        retain: recovered.retain,
        identifiers: recovered.identifiers,
        group: None,
    }
}
