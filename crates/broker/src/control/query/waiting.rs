//! What waits in the broker at one moment, by the place where it waits, and the clients for which
//! most of it waits.

use std::sync::Arc;
use std::time::Duration;

use thrum_codec::{TopicFilter, topic};
use thrum_engine::Engine;
use thrum_engine::client::Client;
use thrum_engine::ids::{ConnectionKey, Slot};
use thrum_engine::node::metrics::{Counter, Metrics};
use thrum_routing::stable_hash;

use super::QueryError;
use super::filter::{Figure, check_topic_filter, has_full_window};
use super::sender::QuerySender;
use super::tasks::{TaskProgress, WorkerTask};
use crate::connection::Connection;
use crate::edge::Edge;
use crate::read_gate::PauseReason;
use crate::system::{self, TcpCounts};
use crate::traffic::Traffic;

/// Clients that are named, those for which most waits.
const WORST_MAX: usize = 10;
/// Sockets that one worker asks the system about in one look; clients beyond them are looked at
/// without. All together take about 16 ms, spread over turns.
const SOCKETS_MAX: u32 = 16_384;
/// Clients of a part of the node whose traffic one worker tells in one look: 1.5 MiB. The ratio of
/// their messages to all is known well enough from so many.
const TRAFFIC_MAX: usize = 65_536;
/// Units of a session with a connection.
const CLIENT_UNITS: u64 = 2;
/// Units of a question to the system about a socket.
const SOCKET_UNITS: u64 = 8;
/// Units of a subscription that is compared: its text is composed.
const SUBSCRIPTION_UNITS: u64 = 4;
/// A message takes this many bytes while none has been counted.
const MESSAGE_BYTES: u64 = 100;

/// Whose messages are looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum WaitingSubject {
    /// Those of all clients.
    #[default]
    Node,
    /// Those of one client.
    Client(Box<str>),
    /// Those of clients with a subscription that matches a topic, or a filter.
    Topic(Box<str>),
}

/// A place where messages wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum WaitPlace {
    /// In a queue, until the client acknowledges others.
    Window,
    /// In the queue, the output or the socket of a client that does not take them as fast.
    Socket,
    /// For the disk: output that depends on it, and publishers while the storage has no room.
    Disk,
    /// In the socket of a publisher that has used up a rate.
    Rate,
    /// For the answer of a backend.
    Backend,
    /// For a worker whose mailbox is full.
    Mailbox,
    /// In the socket of a publisher, as memory is short or turns take too long.
    Overload,
    /// In the hands of a publisher that waits for room in a queue.
    Room,
    /// In the socket of a client that does not read the answers to what it sends.
    Answers,
}

impl WaitPlace {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Window,
        Self::Socket,
        Self::Disk,
        Self::Rate,
        Self::Backend,
        Self::Mailbox,
        Self::Overload,
        Self::Room,
        Self::Answers,
    ];

    const fn of(reason: PauseReason) -> Self {
        match reason {
            PauseReason::Mailbox | PauseReason::Mail => Self::Mailbox,
            PauseReason::Overload | PauseReason::Writing => Self::Overload,
            PauseReason::Storage => Self::Disk,
            PauseReason::Output => Self::Answers,
            PauseReason::Decision => Self::Backend,
            PauseReason::Rate => Self::Rate,
            PauseReason::Room => Self::Room,
        }
    }
}

/// What waits at one place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlaceWait {
    /// Clients whose messages wait there.
    pub clients: u64,
    /// The messages. Bytes in sockets and in the output are counted as messages of mean size.
    pub messages: u64,
}

/// A client for which messages wait.
#[derive(Clone, Debug)]
pub struct WaitingClient {
    /// Client identifier.
    pub client_id: Box<str>,
    /// Where most of them wait.
    pub place: WaitPlace,
    /// Messages that wait, at all places.
    pub messages: u64,
    /// Seconds since the oldest message in its queue was queued.
    pub oldest_secs: Option<u64>,
    /// Messages that were sent and not acknowledged.
    pub inflight: u64,
    /// Bytes of output that wait for the socket or the disk.
    pub output_bytes: u64,
    /// Counts of its socket.
    pub tcp: Option<TcpCounts>,
    /// PUBLISH packets from it, on this connection.
    pub received: u64,
    /// PUBLISH packets to it.
    pub sent: u64,
    /// When its connection began, in milliseconds of the Unix epoch.
    pub connected_at: u64,
}

/// The messages of a client on its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientTraffic {
    /// The client and its connection.
    pub connection: ClientConnection,
    /// PUBLISH packets from it.
    pub received: u32,
    /// PUBLISH packets to it.
    pub sent: u32,
}

/// Tells connections of clients apart; it is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientConnection {
    /// Hash of the client identifier.
    pub client: u64,
    /// When it began, in milliseconds of the Unix epoch.
    pub connected_at: u64,
}

/// What waits at one moment.
#[derive(Clone, Debug, Default)]
pub struct Waiting {
    /// Sessions that the question is about, connected or not.
    pub sessions: u64,
    /// Connected clients that were looked at.
    pub clients: u64,
    /// Of these, the sockets that the system was asked about.
    pub sockets: u64,
    /// The messages of each of these clients, if they are a part of the node; of many clients, of
    /// 65,536 on each worker.
    pub traffic: Vec<ClientTraffic>,
    places: [PlaceWait; WaitPlace::ALL.len()],
    /// Messages in the queues of clients that are away.
    pub away: PlaceWait,
    /// Those for which most waits, the first one most.
    pub worst: Vec<WaitingClient>,
    /// Connections before their CONNECT.
    pub handshakes: HandshakesNow,
}

/// The unfinished handshakes of TLS, WebSocket and the PROXY protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HandshakesNow {
    /// Their number on all workers.
    pub open: u64,
    /// Workers that have as many as `limits.handshakes`, and leave all new connections in the
    /// backlog.
    pub full_workers: u64,
    /// The longest time that one of these workers has left them there without a break.
    pub full_for: Duration,
}

impl HandshakesNow {
    fn of(edge: &Edge, engine: &Engine) -> Self {
        let since = edge.overload.many_handshakes_since();
        Self {
            open: edge.handshakes.open().into(),
            full_workers: since.is_some().into(),
            full_for: since.map_or(Duration::ZERO, |since| engine.core.turn.now.since(since)),
        }
    }

    fn join(&mut self, other: Self) {
        self.open += other.open;
        self.full_workers += other.full_workers;
        self.full_for = self.full_for.max(other.full_for);
    }
}

impl Waiting {
    /// What waits at a place.
    pub const fn at(&self, place: WaitPlace) -> PlaceWait {
        self.places[place as usize]
    }

    fn join(&mut self, other: Self) {
        self.sessions += other.sessions;
        self.clients += other.clients;
        self.sockets += other.sockets;
        self.traffic.extend(other.traffic);
        self.away.add(other.away);
        self.handshakes.join(other.handshakes);
        for (place, more) in self.places.iter_mut().zip(other.places) {
            place.add(more);
        }
        for client in other.worst {
            self.offer(client.messages, || client);
        }
    }

    /// Keeps a client if it is one of the worst.
    fn offer(&mut self, messages: u64, client: impl FnOnce() -> WaitingClient) {
        let place = self
            .worst
            .partition_point(|known| known.messages >= messages);
        if place < WORST_MAX {
            self.worst.truncate(WORST_MAX - 1);
            self.worst.insert(place, client());
        }
    }
}

impl PlaceWait {
    const fn add(&mut self, other: Self) {
        self.clients += other.clients;
        self.messages += other.messages;
    }
}

/// See [`Queries::waiting`](super::Queries::waiting).
pub(super) fn waiting(
    sender: &QuerySender,
    subject: &WaitingSubject,
) -> Result<Waiting, QueryError> {
    if let WaitingSubject::Topic(filter) = subject {
        check_topic_filter(filter)?;
    }
    let subject = Arc::new(subject.clone());
    let sizes = MessageBytes::of(&sender.node().state.metrics);
    let mut all = Waiting::default();
    for found in sender.walk_all(|| LookAtClients::new(&subject, sizes))? {
        all.join(found);
    }
    Ok(all)
}

/// Mean bytes of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct MessageBytes {
    received: u64,
    sent: u64,
}

impl MessageBytes {
    pub(super) fn of(metrics: &Metrics) -> Self {
        let mean = |bytes, packets: u64| {
            let bytes: u64 = metrics.total(bytes);
            let mean = bytes.checked_div(packets);
            mean.filter(|mean| *mean > 0).unwrap_or(MESSAGE_BYTES)
        };
        let sent = metrics.total(Counter::PublishSent) + metrics.total(Counter::AnswersSent);
        Self {
            received: mean(
                Counter::BytesReceived,
                metrics.total(Counter::PacketsReceived),
            ),
            sent: mean(Counter::BytesSent, sent),
        }
    }
}

/// The look of one worker at its sessions.
#[derive(Debug)]
pub(super) struct LookAtClients {
    subject: Arc<WaitingSubject>,
    sizes: MessageBytes,
    /// The slot that is visited next.
    next: usize,
    /// The number of slots at the begin.
    end: Option<usize>,
    /// Sockets that the system may still be asked about.
    sockets_left: u32,
    found: Waiting,
}

impl LookAtClients {
    pub(super) fn new(subject: &Arc<WaitingSubject>, sizes: MessageBytes) -> Self {
        Self {
            subject: Arc::clone(subject),
            sizes,
            next: 0,
            end: None,
            sockets_left: SOCKETS_MAX,
            found: Waiting::default(),
        }
    }

    /// Looks at the session in a slot; returns the units of it.
    fn visit(&mut self, edge: &Edge, engine: &Engine, slot: Slot) -> u64 {
        let Some(client) = engine.core.sessions.get(slot) else {
            return 1;
        };
        let mut units = 1;
        if let WaitingSubject::Topic(filter) = &*self.subject {
            units += SUBSCRIPTION_UNITS * client.subscription_count() as u64;
            if !gets(engine, slot, filter) {
                return units;
            }
        }
        self.found.sessions += 1;
        let (queued, _, inflight) = client.session.outbound().backlog();
        let Some(key) = client.connection else {
            self.found.away.add(PlaceWait {
                clients: u64::from(queued > 0),
                messages: queued as u64,
            });
            return units;
        };
        let Some(connection) = edge.connections.get(key) else {
            return units;
        };
        units += CLIENT_UNITS;
        let traffic = client.session.link().traffic();
        self.found.clients += 1;
        let connected_at = engine.core.node.wall.millis(traffic.began());
        self.note_traffic(client, connected_at);
        let tcp = if self.sockets_left > 0 {
            self.sockets_left -= 1;
            self.found.sockets += 1;
            units += SOCKET_UNITS;
            system::tcp_counts(&connection.socket)
        } else {
            None
        };
        let waits = self.waits(engine, client, key, Looked { connection, tcp });
        let messages = waits.iter().sum();
        if messages == 0 {
            return units;
        }
        let largest = WaitPlace::ALL
            .into_iter()
            .max_by_key(|place| waits[*place as usize]);
        for (place, messages) in self.found.places.iter_mut().zip(waits) {
            place.add(PlaceWait {
                clients: u64::from(messages > 0),
                messages,
            });
        }
        let output = &engine.core.outputs[key];
        self.found.offer(messages, || WaitingClient {
            client_id: client.session.client_id().into(),
            place: largest.unwrap_or(WaitPlace::Socket),
            messages,
            oldest_secs: Figure::OldestQueued.of(client, engine.core.turn.now),
            inflight: inflight as u64,
            output_bytes: connection.waiting(output) as u64,
            tcp,
            received: traffic.received.into(),
            sent: traffic.sent.into(),
            connected_at,
        });
        units
    }

    /// Of a part of the clients it is compared what passed between two looks.
    fn note_traffic(&mut self, client: &Client, connected_at: u64) {
        let is_part = !matches!(&*self.subject, WaitingSubject::Node);
        if !is_part || self.found.traffic.len() >= TRAFFIC_MAX {
            return;
        }
        let traffic = client.session.link().traffic();
        self.found.traffic.push(ClientTraffic {
            connection: ClientConnection {
                client: stable_hash(client.session.client_id().as_bytes()),
                connected_at,
            },
            received: traffic.received,
            sent: traffic.sent,
        });
    }

    /// How many messages of a connected client wait at each place.
    fn waits(
        &self,
        engine: &Engine,
        client: &Client,
        key: ConnectionKey,
        socket: Looked<'_>,
    ) -> [u64; WaitPlace::ALL.len()] {
        let mut waits = [0; WaitPlace::ALL.len()];
        let Looked { connection, tcp } = socket;
        let output = &engine.core.outputs[key];
        let (queued, _, _) = client.session.outbound().backlog();
        let place = if has_full_window(client) && !output.is_congested {
            WaitPlace::Window
        } else {
            WaitPlace::Socket
        };
        waits[place as usize] += queued as u64;
        let sent_as = |bytes: u64| bytes.div_ceil(self.sizes.sent);
        let held = output.held() as u64;
        waits[WaitPlace::Disk as usize] += sent_as(held);
        if connection.room.is_full() {
            // The rest of this turn is written at its end.
            let rest = connection.waiting(output) as u64;
            waits[WaitPlace::Socket as usize] += sent_as(rest.saturating_sub(held));
        }
        let unsent = tcp.and_then(|tcp| tcp.unsent_bytes).unwrap_or(0);
        waits[WaitPlace::Socket as usize] += sent_as(unsent.into());
        let pause = connection.reading.first_reason().map(WaitPlace::of);
        if let Some(place) = pause {
            // At least the packet for which it is paused.
            let unread = system::unread_bytes(&connection.socket).unwrap_or(0);
            waits[place as usize] += unread.div_ceil(self.sizes.received).max(1);
        }
        waits
    }
}

/// A connection and what the system says of it.
#[derive(Clone, Copy)]
struct Looked<'a> {
    connection: &'a Connection,
    tcp: Option<TcpCounts>,
}

/// Whether a session has a subscription that matches a topic, that a filter matches, or that is
/// the same filter.
fn gets(engine: &Engine, slot: Slot, wanted: &str) -> bool {
    let wanted = TopicFilter::parse(wanted).map_or(wanted, TopicFilter::matched_part);
    let subscribed = engine.router.topics.list_subscriptions(&engine.core, slot);
    subscribed.iter().any(|one| {
        let own = TopicFilter::parse(&one.filter);
        let own = own.map_or(&*one.filter, TopicFilter::matched_part);
        topic::matches(own, wanted) || topic::matches(wanted, own)
    })
}

impl WorkerTask for LookAtClients {
    type Answer = Waiting;

    fn advance(&mut self, traffic: &mut Traffic) -> TaskProgress<Waiting> {
        let Traffic { edge, engine, .. } = traffic;
        if self.end.is_none() {
            self.found.handshakes = HandshakesNow::of(edge, engine);
        }
        if let WaitingSubject::Client(client_id) = &*self.subject {
            let slot = engine.core.sessions.find(client_id);
            let units = slot.map_or(1, |slot| self.visit(edge, engine, slot));
            engine.core.turn.work += units;
            return TaskProgress::Done(std::mem::take(&mut self.found));
        }
        let sessions = &engine.core.sessions;
        let end = *self.end.get_or_insert_with(|| sessions.capacity());
        while self.next < end {
            let slot = Slot::new(self.next);
            let units = slot.map_or(1, |slot| self.visit(edge, engine, slot));
            engine.core.turn.work += units;
            self.next += 1;
            if self.next < end && engine.core.turn.is_portion_over() {
                return TaskProgress::More;
            }
        }
        TaskProgress::Done(std::mem::take(&mut self.found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(client_id: &str, messages: u64) -> WaitingClient {
        WaitingClient {
            client_id: client_id.into(),
            place: WaitPlace::Socket,
            messages,
            oldest_secs: None,
            inflight: 0,
            output_bytes: 0,
            tcp: None,
            received: 0,
            sent: 0,
            connected_at: 0,
        }
    }

    #[test]
    fn each_place_has_its_own_number() {
        for (number, place) in WaitPlace::ALL.into_iter().enumerate() {
            assert_eq!(place as usize, number);
        }
    }

    #[test]
    fn the_clients_for_which_most_waits_are_named_of_all_workers() {
        let mut all = Waiting::default();
        for worker in 0..3 {
            let mut one = Waiting::default();
            for number in 0..20 {
                let messages = number * 3 + worker;
                one.offer(messages, || client(&format!("c{messages}"), messages));
            }
            one.places[WaitPlace::Disk as usize].add(PlaceWait {
                clients: 1,
                messages: 5,
            });
            all.join(one);
        }
        let worst: Vec<u64> = all.worst.iter().map(|client| client.messages).collect();
        assert_eq!(worst, (50..60).rev().collect::<Vec<u64>>());
        let disk = all.at(WaitPlace::Disk);
        assert_eq!((disk.clients, disk.messages), (3, 15));
    }
}
