//! From nothing to ready: connections at the connect rate, CONNECT, SUBSCRIBE.

use std::io;

use thrum_codec::packet::{SubAck, SubscriptionOptions, SubscriptionRequest};
use thrum_codec::properties::SubscribeProperties;
use thrum_codec::{QoS, TopicFilter};
use thrum_figures::SECOND_NS;
use thrum_load::delivered::QosRange;
use thrum_load::floors::PUNCTUAL_NS;
use thrum_load::histogram::enter;
use thrum_load::plan::Plan;
use thrum_load::scenario::Group;
use thrum_protocol::client::{Client, FILTERS_PER_PACKET};

use super::Swarm;
use super::outbox::slot;
use super::peer::{NONE, Peer, PublisherState, Step};
use super::times::{Read, Write};

/// Longest wait for a connection, a CONNACK or a SUBACK before the client counts as failed.
pub(crate) const ANSWER_NS_MAX: u64 = 20 * SECOND_NS;

/// Connections opened in one turn: keeps the loop answering while it is behind the connect rate.
const OPENINGS_PER_TURN: u32 = 64;

impl Swarm {
    /// Opens the connections that are due.
    pub(super) fn open_connections(&mut self, now_ns: u64) {
        for _ in 0..OPENINGS_PER_TURN {
            if self.next_open_ns() > now_ns {
                return;
            }
            self.open_next();
        }
    }

    /// When the next connection is due; never if all are open.
    pub(super) fn next_open_ns(&self) -> u64 {
        let Some(client) = self.share.next_client() else {
            return u64::MAX;
        };
        self.control.ramp_start_ns + open_offset_ns(&self.plan, client)
    }

    fn open_next(&mut self) {
        let due_ns = self.next_open_ns();
        let Some(client) = self.share.next_client() else {
            return;
        };
        let Ok(peer) = u32::try_from(self.peers.len()) else {
            return;
        };
        self.share.advance();
        let part = self.plan.part(client);
        let responds = self.groups[part.group].responds;
        let publisher = part
            .publisher
            .map_or(NONE, |number| self.add_publisher(peer, number));
        let subscriber = part.subscriber.map_or(NONE, |subscriber| {
            self.tally.add_subscriber(subscriber, part.group, !responds)
        });
        let options = self.plan.client_options(part.group, part.number);
        self.peers.push(Peer {
            stream: None,
            client: Client::new(options, &self.plan.client_id(client)),
            stalled: None,
            extra: None,
            number: client,
            group: u32::try_from(part.group).unwrap_or(0),
            since_ns: 0,
            own_us: 0,
            subscriber,
            publisher,
            step: Step::Opening,
        });
        // What was done for the client until here is the generator's part of the wait, too.
        let now_ns = self.now_ns();
        let (slice, late_ns) = (&mut self.tally.slice, now_ns.saturating_sub(due_ns));
        enter(&mut slice.latencies.open_lag, late_ns);
        slice.delays.opening.add(late_ns, 1);
        if late_ns > PUNCTUAL_NS {
            self.peers[slot(peer)].add_own(late_ns);
        }
        self.open(peer, now_ns);
    }

    /// Opens the connection of a client.
    pub(super) fn open(&mut self, peer: u32, now_ns: u64) {
        let state = &mut self.peers[slot(peer)];
        state.step = Step::Opening;
        state.since_ns = now_ns;
        let opened = self.open_socket(peer);
        let call = Write {
            called_ns: now_ns,
            returned_ns: self.now_ns(),
        };
        self.peers[slot(peer)].add_own(call.handed_over_ns(now_ns));
        if let Err(reason) = opened {
            self.lose(peer, &format!("connection: {reason}"));
        }
    }

    fn add_publisher(&mut self, peer: u32, number: u32) -> u32 {
        self.publishers.push(PublisherState::new(peer, number));
        u32::try_from(self.publishers.len() - 1).unwrap_or(NONE)
    }

    /// Everything below MQTT is up.
    pub(super) fn send_connect(&mut self, peer: u32) {
        let state = &mut self.peers[slot(peer)];
        state.step = Step::Connecting;
        let start = self.out.replies.open();
        let written = state.client.connect(self.time, &mut self.out.replies.bytes);
        self.out.replies.close(peer, start);
        if let Err(error) = written {
            self.lose(peer, &format!("CONNECT: {error}"));
        }
    }

    /// Subscribes a connected client, for the first time or again. Brokers limit the filters of a
    /// packet, so many filters take several packets.
    pub(super) fn subscribe(&mut self, peer: u32, now_ns: u64) {
        let state = &mut self.peers[slot(peer)];
        state.step = Step::Subscribing;
        state.since_ns = now_ns;
        if state.away_since_ns() == 0 {
            state.own_us = 0;
        }
        let part = self.plan.part(state.number);
        let group = self.plan.scenario.groups.get(part.group);
        let qos = group.map_or(QoS::AtMostOnce, subscription_qos);
        self.tally
            .set_granted(state.subscriber, QosRange::up_to(qos));
        let filters = self.plan.filters(part.group, part.number);
        let options = SubscriptionOptions {
            qos,
            ..SubscriptionOptions::default()
        };
        let requests: Vec<_> = filters
            .iter()
            .filter_map(|filter| TopicFilter::parse(filter).ok())
            .map(|filter| SubscriptionRequest { filter, options })
            .collect();
        let mut packets = requests.chunks(FILTERS_PER_PACKET);
        let further = packets.len().saturating_sub(1);
        if further > 0 || state.extra.is_some() {
            let extra = state.extra();
            extra.subacks_further = u32::try_from(further).unwrap_or(u32::MAX);
            extra.granted = None;
        }
        let written = packets.try_for_each(|requests| {
            let (properties, out) = (SubscribeProperties::default(), &mut self.out.replies.bytes);
            let sent = state.client.subscribe(properties, requests, self.time, out);
            sent.map(drop)
        });
        if let Err(error) = written {
            self.lose(peer, &format!("SUBSCRIBE: {error}"));
        }
    }

    /// The broker answered a SUBSCRIBE; the client is ready with the last answer.
    pub(super) fn handle_subscribed(&mut self, peer: u32, ack: &SubAck<'_>, read: Read) {
        let state = &self.peers[slot(peer)];
        if state.step != Step::Subscribing {
            return;
        }
        if let Some(refused) = ack.codes.iter().find(|code| code.is_error()) {
            self.lose(peer, &format!("subscription refused: {refused:?}"));
            return;
        }
        let group = self.plan.scenario.groups.get(slot(state.group));
        let asked = group.map_or(QoS::AtMostOnce, subscription_qos);
        let granted = QosRange::granted(ack.codes.iter(), asked);
        let state = &mut self.peers[slot(peer)];
        let Some(granted) = (match state.extra.as_deref_mut() {
            Some(extra) => extra.note_suback(granted),
            None => Some(granted),
        }) else {
            return;
        };
        self.tally.set_granted(state.subscriber, granted);
        state.add_own(read.waited_ns());
        if state.away_since_ns() == 0 {
            let latencies = &mut self.tally.slice.latencies;
            let latency_ns = read.at_ns.saturating_sub(state.since_ns);
            state.add_own(self.tally.carriers.waited_since_ns(state.since_ns));
            enter(&mut latencies.subscribe, latency_ns);
            let floor_ns = state.floor_ns(latency_ns);
            enter(&mut latencies.floors.subscribe, floor_ns);
        }
        self.tally.counts.downgraded += u64::from(granted.lowest() < asked);
        self.become_ready(peer, read.at_ns);
    }
}

/// When the connection of a client is to be opened, from the start of the ramp.
pub(super) fn open_offset_ns(plan: &Plan, client: u32) -> u64 {
    let rate = u64::from(plan.scenario.connect_rate.max(1));
    u64::from(client) * SECOND_NS / rate
}

/// Quality of service of a group's subscriptions; requesters subscribe to answers with that of the
/// requests.
fn subscription_qos(group: &Group) -> QoS {
    let requests = group
        .publish
        .as_ref()
        .filter(|publish| publish.response.is_some());
    let qos = group.subscribe.as_ref().map(|subscribe| subscribe.qos);
    qos.or_else(|| requests.map(|publish| publish.qos))
        .unwrap_or(QoS::AtMostOnce)
}

/// The cause of a failed system call, as text without addresses, so that equal causes count
/// together.
pub(super) fn reason_of(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "refused (no listener)".to_owned(),
        io::ErrorKind::ConnectionReset => "reset by the broker".to_owned(),
        io::ErrorKind::BrokenPipe => "closed by the broker".to_owned(),
        io::ErrorKind::AddrNotAvailable => "no free port for this source address".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::Arc;
    use std::sync::mpsc::sync_channel;

    use thrum_load::plan::Machines;
    use thrum_load::scenario::{Overrides, find};
    use thrum_transport::{Connector, Endpoint, TlsOptions};

    use super::super::{Control, SliceSender, TargetSetup, ThreadSetup};
    use super::*;
    use crate::clock;

    /// A thread whose clients connect here.
    fn swarm(listener: &TcpListener) -> Swarm {
        let overrides = Overrides {
            publishers: Some(50),
            ..Overrides::default()
        };
        let scenario = find("p2p-1K").unwrap().with(&overrides).unwrap();
        let plan = Arc::new(crate::plan(scenario, "t").unwrap());
        let address = listener.local_addr().unwrap();
        let endpoint = Endpoint::parse(&format!("mqtt://{address}")).unwrap();
        let target = TargetSetup {
            address,
            connector: Arc::new(Connector::new(&endpoint, &TlsOptions::default()).unwrap()),
            quic: None,
            sources: Arc::default(),
        };
        let setup = ThreadSetup {
            thread: 0,
            gauge: 0,
            machines: Machines::new(&[1]),
            targets: [target].into(),
            target_of_group: vec![0; plan.scenario.groups.len()].into(),
            clock_offset_ns: 0,
        };
        let control = Arc::new(Control::new(1, clock::monotonic_ns()));
        let sender = SliceSender {
            slices: sync_channel(1).0,
            recycled: sync_channel(1).1,
        };
        Swarm::new(plan, control, setup, sender).unwrap()
    }

    #[test]
    fn what_is_late_of_an_opening_is_all_until_the_connection_is_begun() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut swarm = swarm(&listener);
        for _ in 0..50 {
            swarm.open_next();
        }
        let late_ns = swarm.peers.iter().map(|peer| {
            let due_ns = swarm.control.ramp_start_ns + open_offset_ns(&swarm.plan, peer.number);
            peer.since_ns.saturating_sub(due_ns)
        });
        let late_ns: Vec<u64> = late_ns.collect();
        let opening = swarm.tally.slice.delays.opening;
        assert_eq!(opening.sum_ns, late_ns.iter().sum::<u64>());
        assert_eq!(Some(&opening.max_ns), late_ns.iter().max());
    }
}
