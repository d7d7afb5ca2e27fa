//! Division of the recovered state among the workers at the start.

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

/// A session that the storage has recovered.
#[derive(Debug)]
pub struct Restored {
    /// The protocol state of the session.
    pub stored: Stored,
    /// Indexes of the deliveries that belong to a shared subscription, each with its filter.
    pub shared: Vec<(usize, Box<str>)>,
    /// The subscriptions of the session.
    pub subscriptions: Vec<RecoveredSubscription>,
    /// The owner of the session.
    pub owner: Owner<Box<str>>,
    /// The session had a connection when the node ended: it is disconnected since the start, which
    /// must be recorded.
    pub was_connected: bool,
}

/// The recovered state of one worker.
#[derive(Debug, Default)]
pub struct Part {
    /// The sessions that the worker owns from now on.
    pub sessions: Vec<Restored>,
    /// Messages that were in transit to a worker when the node ended, shared by all workers: each
    /// worker may own some of their receivers now.
    pub passed: Arc<Vec<Passed>>,
    /// Messages of shared groups that were in transit to a member.
    pub shared: Vec<Restored>,
    /// Numbers of sessions that a later session of the same client has replaced.
    pub replaced: Vec<u64>,
    /// Numbers of lanes that are removed once all workers have stored the messages in them.
    pub lanes: Vec<u64>,
}

/// Messages in transit to a worker, for the sessions that it owned.
#[derive(Debug)]
pub struct Passed {
    /// The receivers of the messages.
    pub to: PassedTo,
    /// The messages in the order in which they were sent.
    pub messages: Vec<Arc<Message>>,
}

/// Assigns the recovered sessions to workers, and restores the retained messages of the node.
pub fn divide(recovered: Recovered, node: &NodeState, now: Time) -> Divided {
    let messages: Vec<ReceivedMessage> = recovered.messages.into_iter().map(message).collect();
    // Retained messages of one client share their source.
    let mut sources: HashMap<Arc<[u8]>, Arc<RetainedSource>> = HashMap::new();
    for retained in recovered.retained {
        let source = retained.source.map(|bytes| {
            let stored = || RetainedSource::stored(Arc::clone(&bytes));
            Arc::clone(sources.entry(Arc::clone(&bytes)).or_insert_with(stored))
        });
        if let Some((message, at)) = messages.get(retained.message) {
            node.retained.restore(message, source, *at);
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
                parts[worker.index()].replaced.push(session.id);
            }
            None => {
                // A node with one worker does not use the registry.
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
        lanes_of_sinks: backlogs.enqueue(node),
    }
}

/// Messages that sinks had not written when the node ended.
#[derive(Debug, Default)]
struct Backlogs {
    /// Messages by the name of their sink.
    offers: BTreeMap<Box<str>, Vec<Offer>>,
    /// Number of messages in each lane.
    lanes: HashMap<u64, usize>,
}

impl Backlogs {
    /// Adds the messages in a lane, and returns their number.
    fn add(
        &mut self,
        sink: Box<str>,
        lane: RecoveredSession,
        messages: &[ReceivedMessage],
    ) -> usize {
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

    /// Fills the queues of the sinks, and returns the number of messages in each lane. A publisher
    /// may have used several workers, each with its own lane: the time of receipt orders its
    /// messages.
    fn enqueue(self, node: &NodeState) -> HashMap<u64, usize> {
        for (name, mut offers) in self.offers {
            offers.sort_by_key(|offer| offer.received_at);
            node.sinks.add_recovered(name, offers);
        }
        self.lanes
    }
}

/// The recovered state, divided among the workers.
#[derive(Debug)]
pub struct Divided {
    /// The part of each worker, by worker number.
    pub parts: Vec<Part>,
    /// Number of messages in each lane of a sink.
    pub lanes_of_sinks: HashMap<u64, usize>,
}

fn passed_to(to: PassedTo, lane: RecoveredSession, messages: &[ReceivedMessage]) -> Passed {
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

/// A message and the time of its receipt.
type ReceivedMessage = (Arc<Message>, Time);

fn message(recovered: RecoveredMessage) -> ReceivedMessage {
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

fn restored(session: RecoveredSession, messages: &[ReceivedMessage], now: Time) -> Restored {
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
            // A client that was connected when the node ended is disconnected since the start.
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

fn delivery(recovered: RecoveredDelivery, messages: &[ReceivedMessage]) -> StoredDelivery {
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
        queued_at: message.map_or_else(Time::default, |(_, received_at)| *received_at),
        inflight,
        qos: recovered.qos,
        retain: recovered.retain,
        identifiers: recovered.identifiers,
        group: None,
    }
}

#[cfg(test)]
mod tests {
    use thrum_codec::QoS;
    use thrum_protocol::Publication;

    use super::*;
    use crate::sinks::QueueLimits;
    use crate::sinks::tests::node;

    #[test]
    fn messages_of_several_lanes_reach_their_sink_in_the_order_in_which_they_came() {
        let node = node();
        let sink = node.sinks.open("all", QueueLimits::default());
        let offer = |millis| Offer {
            message: Arc::new(Message::new(&Publication::new("a", b"", QoS::AtLeastOnce))),
            received_at: Time::from_millis(millis),
            place: None,
        };
        // The publisher went from one worker to another and back.
        let lanes = [[1, 4], [2, 3]].as_flattened();
        let backlogs = Backlogs {
            offers: [("all".into(), lanes.iter().copied().map(offer).collect())].into(),
            lanes: HashMap::new(),
        };
        backlogs.enqueue(&node);
        let queue = &sink.expect("the first one").queue;
        let waiting = queue.take(usize::MAX, usize::MAX, std::time::Duration::ZERO);
        let times = waiting.iter().flatten().map(|offer| offer.received_at);
        assert_eq!(
            times.collect::<Vec<_>>(),
            [1, 2, 3, 4].map(Time::from_millis)
        );
    }
}
