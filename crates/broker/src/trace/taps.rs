//! The traces of one worker, and the connections that they are about.

use std::sync::Arc;
use std::time::Duration;

use hashbrown::HashMap;
use thrum_codec::frame::{self, Frame};
use thrum_codec::packet::Publish;
use thrum_codec::{DecodeError, Packet, Version, decode, topic};
use thrum_engine::ids::ConnectionKey;
use thrum_engine::output::ConnectionOutput;
use thrum_engine::peer::Peer;
use thrum_engine::workers::WORKERS_MAX;
use thrum_protocol::Output;

use super::excerpt::{SeenPacket, header};
use super::{Direction, SharedTrace, TRACES_MAX, TraceSubject, TracedPacket};

/// Packets of traced connections that one worker looks at in a second: about 1 µs each, so that
/// traces take at most some 2 % of its time. Further ones are left out.
pub(super) const PACKETS_PER_SECOND: u32 = 20_000;
/// Bytes of their output that it copies in a second, which take about as long.
const BYTES_PER_SECOND: usize = 32 * 1024 * 1024;
/// Bytes of the longest fixed header.
pub(crate) const HEADER_BYTES_MAX: usize = 5;
/// Topics of one connection that are known by the alias with which the broker sends them.
const ALIASES_MAX: usize = 1024;

/// The traces of one worker.
#[derive(Debug, Default)]
pub(crate) struct Traces {
    on: [Option<Arc<SharedTrace>>; TRACES_MAX],
    /// Number of traces.
    count: usize,
    taps: HashMap<ConnectionKey, Tap>,
    budget: Budget,
    /// Buffer for output.
    output: Vec<u8>,
    /// Connections that were traced so far.
    connections: u64,
}

/// What may be spent on traces.
#[derive(Debug, Default)]
struct Budget {
    /// The second of the node's time that the figures are of.
    second: u64,
    packets: u32,
    bytes: usize,
}

impl Budget {
    /// Whether one more packet may be looked at now.
    fn take(&mut self, elapsed: Duration, bytes: usize) -> bool {
        if self.second != elapsed.as_secs() {
            *self = Self {
                second: elapsed.as_secs(),
                ..Self::default()
            };
        }
        if self.packets >= PACKETS_PER_SECOND || self.bytes >= BYTES_PER_SECOND {
            return false;
        }
        self.packets += 1;
        self.bytes += bytes;
        true
    }
}

/// A connection that a trace is about.
#[derive(Debug)]
struct Tap {
    peer: Peer,
    client_id: Arc<str>,
    /// Its number.
    connection: u64,
    /// Bit N: trace N is about all packets of this connection.
    all: u8,
    /// Bit N: trace N is about some topics.
    of_topics: u8,
    /// Bytes at the front of the output that have been looked at, and that the socket has not
    /// taken. The output behind them consists of whole packets.
    seen: usize,
    /// Output waited when the trace began, perhaps behind a part of a packet.
    is_behind: bool,
    /// First byte and length of a packet that waits, and is handled again later.
    waits: Option<(u8, usize)>,
    /// Topics by the alias with which the broker sends them.
    aliases: HashMap<u16, Box<str>>,
}

/// A connection to be looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flagged<'a> {
    pub(crate) key: ConnectionKey,
    pub(crate) peer: Peer,
    /// Empty before CONNECT.
    pub(crate) client_id: &'a str,
    /// Its output may begin with a part of a packet, the rest of one that the socket has taken.
    pub(crate) has_part: bool,
    /// Its number on the worker that it comes from; none if it comes from no other.
    pub(crate) number: Option<u64>,
}

/// Bytes of a client that are no packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Malformed<'a> {
    /// Its fixed header.
    pub(crate) header: &'a [u8],
    /// Its length, or what has arrived of it if that is not known.
    pub(crate) len: usize,
    pub(crate) why: DecodeError,
}

/// A packet and its circumstances.
#[derive(Clone, Copy, Debug)]
struct Passing<'a> {
    seen: SeenPacket<'a>,
    direction: Direction,
    /// The topic of a PUBLISH, if it is known.
    topic: Option<&'a str>,
    moment: Moment,
}

/// When and where packets pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) worker: usize,
    /// Time since the start of the node.
    pub(crate) elapsed: Duration,
    pub(crate) version: Version,
    /// Bit N: trace N may have the packet.
    pub(crate) traces: u8,
}

impl Traces {
    /// Whether there is a trace.
    pub(crate) const fn are_on(&self) -> bool {
        self.count > 0
    }

    /// Begins a trace.
    pub(crate) fn begin(&mut self, trace: &Arc<SharedTrace>) {
        self.on[trace.slot] = Some(Arc::clone(trace));
        self.count = self.on.iter().flatten().count();
    }

    /// Ends a trace, unless another one has its number already.
    pub(crate) fn end(&mut self, trace: &Arc<SharedTrace>) {
        let on = &mut self.on[trace.slot];
        if on.as_ref().is_some_and(|on| Arc::ptr_eq(on, trace)) {
            self.remove(trace.slot);
        }
    }

    fn remove(&mut self, slot: usize) {
        self.on[slot] = None;
        self.count = self.on.iter().flatten().count();
        let bit = !(1 << slot);
        self.taps.retain(|_, tap| {
            tap.all &= bit;
            tap.of_topics &= bit;
            tap.all | tap.of_topics != 0
        });
        if self.count == 0 {
            self.taps = HashMap::new();
            self.output = Vec::new();
        }
    }

    /// Removes the traces whose time is over.
    fn end_old(&mut self, elapsed: Duration) {
        for slot in 0..TRACES_MAX {
            if self.on[slot].as_ref().is_some_and(|on| on.is_over(elapsed)) {
                self.remove(slot);
            }
        }
    }

    /// Looks at a connection from now on, if a trace is about it; true if one is.
    pub(crate) fn flag(&mut self, flagged: Flagged<'_>, worker: usize) -> bool {
        let (mut all, mut of_topics) = (0, 0);
        for (slot, trace) in self.on.iter().enumerate() {
            let Some(trace) = trace else { continue };
            match &trace.request.subject {
                TraceSubject::Client(name) => {
                    all |= u8::from(**name == *flagged.client_id) << slot;
                }
                TraceSubject::Address(network) => {
                    let address = flagged.peer.address();
                    all |= u8::from(address.is_some_and(|ip| network.contains(ip))) << slot;
                }
                TraceSubject::Topic(_) => of_topics |= 1 << slot,
            }
        }
        if all | of_topics == 0 {
            // The next connection with this key must not find it.
            self.taps.remove(&flagged.key);
            return false;
        }
        let connections = &mut self.connections;
        let tap = self.taps.entry(flagged.key).or_insert_with(|| {
            let number = flagged.number.unwrap_or_else(|| {
                *connections += 1;
                *connections * WORKERS_MAX as u64 + worker as u64
            });
            Tap {
                peer: flagged.peer,
                client_id: Arc::default(),
                connection: number,
                all,
                of_topics,
                seen: 0,
                is_behind: flagged.has_part,
                waits: None,
                aliases: HashMap::new(),
            }
        });
        (tap.all, tap.of_topics) = (all, of_topics);
        // The header of a proxy names another one.
        tap.peer = flagged.peer;
        if *tap.client_id != *flagged.client_id {
            tap.client_id = flagged.client_id.into();
        }
        true
    }

    /// The traces that are about all packets of a connection, as bits.
    pub(crate) fn of_connection(&self, key: ConnectionKey) -> u8 {
        self.taps.get(&key).map_or(0, |tap| tap.all)
    }

    /// The number of a connection; none if no trace is about it.
    pub(crate) fn number_of(&self, key: ConnectionKey) -> Option<u64> {
        self.taps.get(&key).map(|tap| tap.connection)
    }

    /// Forgets a connection that ends or moves to another worker.
    pub(crate) fn forget(&mut self, key: ConnectionKey) {
        self.taps.remove(&key);
    }

    /// The last packet of a connection waits, and will be handled again.
    pub(crate) fn note_wait(&mut self, key: ConnectionKey, frame: Frame<'_>) {
        if let Some(tap) = self.taps.get_mut(&key) {
            tap.waits = Some((frame.first, frame.len));
        }
    }

    /// Takes a packet from a client; false if no trace is about the connection any longer.
    pub(crate) fn take_input(
        &mut self,
        key: ConnectionKey,
        frame: Frame<'_>,
        topic: Option<&str>,
        moment: Moment,
    ) -> bool {
        self.end_old(moment.elapsed);
        let Some(tap) = self.taps.get_mut(&key) else {
            return false;
        };
        if tap
            .waits
            .take_if(|waits| *waits == (frame.first, frame.len))
            .is_some()
        {
            return true;
        }
        if !self.budget.take(moment.elapsed, frame.len) {
            leave_out(&self.on, tap, moment.worker);
            return true;
        }
        let packet = match decode(frame, moment.version) {
            Ok(packet) => packet,
            Err(why) => {
                let header = header(frame);
                let malformed = Malformed {
                    header: &header,
                    len: header.len() + frame.body.len(),
                    why,
                };
                offer_malformed(&self.on, tap, malformed, moment);
                return true;
            }
        };
        let passing = Passing {
            seen: SeenPacket {
                frame,
                packet: &packet,
            },
            direction: Direction::FromClient,
            topic,
            moment,
        };
        offer(&self.on, tap, passing);
        true
    }

    /// Takes bytes from a client that are no packet; false if no trace is about the connection any
    /// longer.
    pub(crate) fn take_malformed(
        &mut self,
        key: ConnectionKey,
        malformed: Malformed<'_>,
        moment: Moment,
    ) -> bool {
        self.end_old(moment.elapsed);
        let Some(tap) = self.taps.get(&key) else {
            return false;
        };
        if self.budget.take(moment.elapsed, malformed.header.len()) {
            offer_malformed(&self.on, tap, malformed, moment);
        } else {
            leave_out(&self.on, tap, moment.worker);
        }
        true
    }

    /// Takes the packets at the end of the output of a connection that it has not seen yet; false
    /// if no trace is about the connection any longer.
    pub(crate) fn take_output(
        &mut self,
        key: ConnectionKey,
        output: &mut ConnectionOutput,
        moment: Moment,
    ) -> bool {
        self.end_old(moment.elapsed);
        let Some(tap) = self.taps.get_mut(&key) else {
            return false;
        };
        let Some(out) = output.sendable() else {
            tap.seen = 0;
            return true;
        };
        let len = out.len();
        let seen = std::mem::replace(&mut tap.seen, len).min(len);
        if std::mem::take(&mut tap.is_behind) || seen == len {
            return true;
        }
        let bytes = &mut self.output;
        bytes.clear();
        copy_behind(out, seen, bytes);
        let mut rest = &bytes[..];
        while let Ok(Some(frame)) = frame::split(rest, u32::MAX) {
            rest = &rest[frame.len..];
            if self.budget.take(moment.elapsed, frame.len) {
                sent(&self.on, tap, frame, moment);
            } else {
                leave_out(&self.on, tap, moment.worker);
            }
        }
        true
    }

    /// The output of a connection was discarded.
    pub(crate) fn discarded(&mut self, key: ConnectionKey) {
        if let Some(tap) = self.taps.get_mut(&key) {
            tap.seen = 0;
        }
    }

    /// The socket, or the layers above it, have taken bytes of the output.
    pub(crate) fn written(&mut self, key: ConnectionKey, bytes: usize) {
        if let Some(tap) = self.taps.get_mut(&key) {
            tap.seen = tap.seen.saturating_sub(bytes);
        }
    }
}

/// Counts a packet that was not looked at, and that the traces of its connection may be about.
fn leave_out(on: &[Option<Arc<SharedTrace>>; TRACES_MAX], tap: &Tap, worker: usize) {
    let bits = tap.all | tap.of_topics;
    for trace in on.iter().flatten().filter(|on| bits & (1 << on.slot) != 0) {
        trace.leave_out(worker);
    }
}

/// Offers a packet to the client.
fn sent(
    on: &[Option<Arc<SharedTrace>>; TRACES_MAX],
    tap: &mut Tap,
    frame: Frame<'_>,
    moment: Moment,
) {
    // A CONNECT that cannot be read is answered in the version that it names.
    let read = decode(frame, moment.version).or_else(|_| decode(frame, Version::V5));
    let Ok(packet) = read else {
        leave_out(on, tap, moment.worker);
        return;
    };
    let topic = match &packet {
        Packet::Publish(publish) => topic_sent(&mut tap.aliases, publish),
        _ => None,
    };
    let passing = Passing {
        seen: SeenPacket {
            frame,
            packet: &packet,
        },
        direction: Direction::ToClient,
        topic: topic.as_deref(),
        moment,
    };
    offer(on, tap, passing);
}

/// The topic of a PUBLISH to a client, whose alias is remembered.
fn topic_sent(aliases: &mut HashMap<u16, Box<str>>, publish: &Publish<'_>) -> Option<Box<str>> {
    let Some(alias) = publish.properties.topic_alias else {
        return Some(publish.topic.into());
    };
    if publish.topic.is_empty() {
        return aliases.get(&alias.get()).cloned();
    }
    if aliases.len() < ALIASES_MAX || aliases.contains_key(&alias.get()) {
        aliases.insert(alias.get(), publish.topic.into());
    }
    Some(publish.topic.into())
}

/// Offers a packet to the traces that are about it.
fn offer(on: &[Option<Arc<SharedTrace>>; TRACES_MAX], tap: &Tap, passing: Passing<'_>) {
    let is_publish = matches!(passing.seen.packet, Packet::Publish(_));
    for (slot, trace) in on.iter().enumerate() {
        let Some(trace) = trace else { continue };
        let bit = 1 << slot;
        let is_wanted = match &trace.request.subject {
            TraceSubject::Topic(filter) => {
                let is_match = |name: &str| topic::matches(filter, name);
                tap.of_topics & bit != 0 && is_publish && passing.topic.is_some_and(is_match)
            }
            TraceSubject::Client(_) | TraceSubject::Address(_) => {
                tap.all & passing.moment.traces & bit != 0
            }
        };
        if is_wanted && trace.end().is_none() {
            trace.offer(
                passing.moment.worker,
                traced(tap, passing, trace.request.payloads),
            );
        }
    }
}

/// Offers bytes that are no packet to the traces that are about all packets of the connection. Of
/// which topic they are is not known.
fn offer_malformed(
    on: &[Option<Arc<SharedTrace>>; TRACES_MAX],
    tap: &Tap,
    malformed: Malformed<'_>,
    moment: Moment,
) {
    for trace in on.iter().flatten() {
        let bit = 1 << trace.slot;
        if tap.of_topics & bit != 0 {
            trace.leave_out(moment.worker);
        }
        if tap.all & moment.traces & bit != 0 && trace.end().is_none() {
            trace.offer(
                moment.worker,
                TracedPacket {
                    at_micros: micros(moment.elapsed),
                    connection: tap.connection,
                    direction: Direction::FromClient,
                    peer: tap.peer,
                    client_id: Arc::clone(&tap.client_id),
                    version: moment.version,
                    topic: None,
                    bytes: malformed.header.into(),
                    packet_bytes: u32::try_from(malformed.len).unwrap_or(u32::MAX),
                    malformed: Some(malformed.why.to_string().into()),
                },
            );
        }
    }
}

fn micros(elapsed: Duration) -> u64 {
    u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX)
}

fn traced(tap: &Tap, passing: Passing<'_>, payloads: bool) -> TracedPacket {
    let seen = passing.seen;
    let has_alias = match seen.packet {
        Packet::Publish(publish) => publish.topic.is_empty(),
        _ => false,
    };
    TracedPacket {
        at_micros: micros(passing.moment.elapsed),
        connection: tap.connection,
        direction: passing.direction,
        peer: tap.peer,
        client_id: Arc::clone(&tap.client_id),
        version: passing.moment.version,
        topic: passing.topic.filter(|_| has_alias).map(Into::into),
        bytes: seen.excerpt(payloads),
        packet_bytes: u32::try_from(seen.len()).unwrap_or(u32::MAX),
        malformed: None,
    }
}

/// Copies the output behind that many bytes.
fn copy_behind(out: &Output, skip: usize, to: &mut Vec<u8>) {
    let mut skip = skip;
    for piece in out.pieces() {
        let skipped = skip.min(piece.len());
        skip -= skipped;
        to.extend_from_slice(&piece[skipped..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TraceRequest;

    const KEY: usize = 7;

    fn flagged(peer: &str) -> Flagged<'static> {
        Flagged {
            key: ConnectionKey::new(KEY).unwrap(),
            peer: Peer::from(peer.parse::<std::net::SocketAddr>().unwrap()),
            client_id: "",
            has_part: false,
            number: None,
        }
    }

    /// A trace of one address.
    fn traces(of: &str) -> (Traces, Arc<SharedTrace>) {
        let request = TraceRequest {
            subject: TraceSubject::Address(of.parse().unwrap()),
            payloads: false,
            time: Duration::from_secs(5),
            packets_max: 10,
            bytes_max: 1 << 20,
        };
        let slots = Arc::default();
        let (trace, _) = SharedTrace::new(&slots, request, Duration::from_secs(5), 1).unwrap();
        let trace = Arc::new(trace);
        let mut traces = Traces::default();
        traces.begin(&trace);
        (traces, trace)
    }

    #[test]
    fn a_connection_that_is_no_longer_traced_leaves_nothing_to_the_next_one_with_its_key() {
        let (mut traces, _trace) = traces("127.0.0.1");
        assert!(traces.flag(flagged("127.0.0.1:1"), 0));
        let first = traces.taps.values().next().map(|tap| tap.connection);
        // The header of a proxy names a client elsewhere.
        assert!(!traces.flag(flagged("203.0.113.7:5000"), 0));
        assert!(traces.taps.is_empty());
        assert!(traces.flag(flagged("127.0.0.1:2"), 0));
        let next = traces.taps.values().next().map(|tap| tap.connection);
        assert_ne!(first, next);
    }

    #[test]
    fn the_client_behind_a_proxy_is_the_peer_of_its_packets() {
        let (mut traces, _trace) = traces("127.0.0.0/8");
        assert!(traces.flag(flagged("127.0.0.1:1"), 0));
        assert!(traces.flag(flagged("127.0.0.9:7001"), 0));
        let peer = traces.taps.values().next().map(|tap| tap.peer.to_string());
        assert_eq!(peer.as_deref(), Some("127.0.0.9:7001"));
    }
}
