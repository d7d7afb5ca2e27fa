//! One direction of a connection: bytes that are on their way. Time is an argument.

use std::collections::VecDeque;

use thrum_figures::nanos;
use thrum_load::scenario::Network;

use super::bucket::Bucket;
use super::chance::Chance;

/// Most bytes on their way in one direction of a connection; then the sender is not read any more.
/// With a delay of 100 ms this is 2.6 MB/s.
const BYTES_MAX: usize = 256 * 1024;

/// Most portions with different times on their way.
const PORTIONS_MAX: usize = 4096;

/// Room that an idle connection may keep.
const IDLE_BYTES_MAX: usize = 4096;

/// The kind of a direction's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// No more bytes (FIN).
    Finished,
    /// The sender cannot be reached any more (RST).
    Reset,
}

/// One direction of a connection.
#[derive(Debug)]
pub(super) struct Link {
    network: Network,
    bytes: VecDeque<u8>,
    /// Bytes at the front that have arrived and wait for the bucket or the receiver.
    arrived: usize,
    /// The bytes behind those.
    portions: VecDeque<Portion>,
    latest_ns: u64,
    bucket: Option<Bucket>,
    end: Option<(u64, Ending)>,
}

#[derive(Clone, Copy, Debug)]
struct Portion {
    arrives_ns: u64,
    bytes: usize,
}

impl Link {
    pub(super) fn new(network: Network) -> Self {
        Self {
            network,
            bytes: VecDeque::new(),
            arrived: 0,
            portions: VecDeque::new(),
            latest_ns: 0,
            bucket: network.bandwidth.map(Bucket::new),
            end: None,
        }
    }

    /// The network has changed; bytes in flight keep their time.
    pub(super) fn set_network(&mut self, network: Network) {
        let rate = self.bucket.map(|bucket| bucket.bytes_per_second());
        if network.bandwidth.map(|rate| rate.max(1)) != rate {
            self.bucket = network.bandwidth.map(Bucket::new);
        }
        self.network = network;
    }

    /// Bytes that may enter now.
    pub(super) fn room(&self) -> usize {
        if self.end.is_some() || self.portions.len() >= PORTIONS_MAX {
            0
        } else {
            BYTES_MAX.saturating_sub(self.bytes.len())
        }
    }

    /// Bytes are sent, at most as many as there is room for.
    pub(super) fn enter(&mut self, now_ns: u64, bytes: &[u8], chance: &mut Chance) {
        debug_assert!(bytes.len() <= self.room());
        if bytes.is_empty() {
            return;
        }
        let arrives_ns = self.arrival_ns(now_ns, chance);
        self.bytes.extend(bytes);
        match self.portions.back_mut() {
            Some(last) if last.arrives_ns == arrives_ns => last.bytes += bytes.len(),
            _ => self.portions.push_back(Portion {
                arrives_ns,
                bytes: bytes.len(),
            }),
        }
    }

    /// The sender has ended; only the first ending counts.
    pub(super) fn end(&mut self, now_ns: u64, ending: Ending, chance: &mut Chance) {
        if self.end.is_none() {
            self.end = Some((self.arrival_ns(now_ns, chance), ending));
        }
    }

    /// The receiver takes nothing any more: nothing is on its way, nothing may enter, the direction
    /// is over.
    pub(super) fn abandon(&mut self) {
        self.bytes = VecDeque::new();
        self.portions = VecDeque::new();
        self.arrived = 0;
        self.end = Some((0, Ending::Finished));
    }

    /// Bytes that the receiver gets now; there may be more when these are taken.
    pub(super) fn deliverable(&mut self, now_ns: u64) -> &[u8] {
        while let Some(portion) = self
            .portions
            .front()
            .filter(|next| next.arrives_ns <= now_ns)
        {
            self.arrived += portion.bytes;
            self.portions.pop_front();
        }
        let allowed = self
            .bucket
            .map_or(usize::MAX, |bucket| bucket.allowed(now_ns));
        let (front, _) = self.bytes.as_slices();
        let length = self.arrived.min(allowed).min(front.len());
        front.get(..length).unwrap_or_default()
    }

    /// The receiver took this many of the deliverable bytes.
    pub(super) fn take(&mut self, now_ns: u64, bytes: usize) {
        debug_assert!(bytes <= self.arrived);
        self.bytes.drain(..bytes);
        self.arrived -= bytes;
        if let Some(bucket) = &mut self.bucket {
            bucket.pay(now_ns, bytes);
        }
        if self.bytes.is_empty() && self.bytes.capacity() > IDLE_BYTES_MAX {
            self.bytes = VecDeque::new();
            self.portions = VecDeque::new();
        }
    }

    /// The kind of the direction's end, once all bytes were accepted and the end has arrived.
    pub(super) fn ended(&self, now_ns: u64) -> Option<Ending> {
        let (arrives_ns, ending) = self.end?;
        (self.bytes.is_empty() && arrives_ns <= now_ns).then_some(ending)
    }

    /// When new bytes can be delivered; none if nothing is in flight, or the arrived bytes wait
    /// only for the receiver.
    pub(super) fn next_ns(&self, now_ns: u64) -> Option<u64> {
        if self.arrived > 0 {
            let at_ns = self.bucket?.next_ns(self.arrived);
            return (at_ns > now_ns).then_some(at_ns);
        }
        let next = self.portions.front().map(|portion| portion.arrives_ns);
        next.or_else(|| self.end.map(|(arrives_ns, _)| arrives_ns))
            .filter(|at_ns| *at_ns > now_ns)
    }

    /// When what is sent now arrives: never before what was sent earlier.
    fn arrival_ns(&mut self, now_ns: u64, chance: &mut Chance) -> u64 {
        let delay_ns = chance.around(nanos(self.network.delay), nanos(self.network.jitter));
        self.latest_ns = self.latest_ns.max(now_ns.saturating_add(delay_ns));
        self.latest_ns
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use thrum_figures::SECOND_NS;

    use super::*;

    const MS: u64 = 1_000_000;
    const START_NS: u64 = 100 * SECOND_NS;

    fn network(delay_ms: u64, jitter_ms: u64, bandwidth: Option<u64>) -> Network {
        Network {
            delay: Duration::from_millis(delay_ms),
            jitter: Duration::from_millis(jitter_ms),
            bandwidth,
            cut_after: None,
        }
    }

    /// Takes all that can be taken.
    fn take_all(link: &mut Link, now_ns: u64) -> Vec<u8> {
        let mut taken = Vec::new();
        loop {
            let bytes = link.deliverable(now_ns).to_vec();
            if bytes.is_empty() {
                return taken;
            }
            link.take(now_ns, bytes.len());
            taken.extend(bytes);
        }
    }

    #[test]
    fn bytes_arrive_after_the_delay_and_not_before() {
        let (mut link, mut chance) = (Link::new(network(20, 0, None)), Chance::new(1));
        link.enter(START_NS, b"one", &mut chance);
        link.enter(START_NS + 5 * MS, b"two", &mut chance);
        assert_eq!(link.next_ns(START_NS), Some(START_NS + 20 * MS));
        assert_eq!(take_all(&mut link, START_NS + 20 * MS - 1), b"");
        assert_eq!(take_all(&mut link, START_NS + 20 * MS), b"one");
        assert_eq!(link.next_ns(START_NS + 20 * MS), Some(START_NS + 25 * MS));
        assert_eq!(take_all(&mut link, START_NS + 99 * MS), b"two");
        assert_eq!(link.next_ns(START_NS + 99 * MS), None);
    }

    #[test]
    fn without_a_network_bytes_pass_at_once() {
        let (mut link, mut chance) = (Link::new(Network::default()), Chance::new(1));
        link.enter(START_NS, b"now", &mut chance);
        assert_eq!(take_all(&mut link, START_NS), b"now");
    }

    #[test]
    fn jitter_varies_the_delay_and_keeps_the_order() {
        let (mut link, mut chance) = (Link::new(network(20, 10, None)), Chance::new(3));
        let mut gaps = Vec::new();
        let mut received = Vec::new();
        for number in 0..200_u8 {
            link.enter(START_NS + u64::from(number) * MS, &[number], &mut chance);
        }
        let mut now_ns = START_NS;
        while let Some(next_ns) = link.next_ns(now_ns) {
            gaps.push(next_ns - now_ns);
            now_ns = next_ns;
            received.extend(take_all(&mut link, now_ns));
        }
        assert_eq!(received, (0..200).collect::<Vec<u8>>());
        let (last_sent_ns, first_gap_ns) = (START_NS + 199 * MS, gaps[0]);
        assert!((10 * MS..=30 * MS).contains(&first_gap_ns));
        assert!((last_sent_ns + 10 * MS..=last_sent_ns + 30 * MS).contains(&now_ns));
        gaps.sort_unstable();
        gaps.dedup();
        assert!(gaps.len() > 20, "the delay does not vary");
    }

    #[test]
    fn bandwidth_spreads_bytes_over_time() {
        let (mut link, mut chance) = (Link::new(network(10, 0, Some(10_000))), Chance::new(1));
        link.enter(START_NS, &vec![7; 20_000], &mut chance);
        let (mut now_ns, mut taken) = (START_NS, 0);
        while let Some(next_ns) = link.next_ns(now_ns) {
            now_ns = next_ns;
            taken += take_all(&mut link, now_ns).len();
        }
        assert_eq!(taken, 20_000);
        // Two seconds but for the burst of 50 ms, after the delay.
        let took_ns = now_ns - START_NS;
        assert!((1_955 * MS..=1_965 * MS).contains(&took_ns), "{took_ns}");
    }

    #[test]
    fn a_full_link_has_no_room_until_bytes_are_taken() {
        let (mut link, mut chance) = (Link::new(network(10, 0, None)), Chance::new(1));
        let room = link.room();
        link.enter(START_NS, &vec![1; room], &mut chance);
        assert_eq!(link.room(), 0);
        assert_eq!(take_all(&mut link, START_NS + 10 * MS).len(), room);
        assert_eq!(link.room(), room);
        for at_ns in 0..u64::try_from(PORTIONS_MAX).unwrap() {
            link.enter(START_NS + at_ns, &[1], &mut chance);
        }
        assert_eq!(link.room(), 0);
    }

    #[test]
    fn the_end_arrives_after_the_last_byte() {
        let (mut link, mut chance) = (Link::new(network(10, 0, None)), Chance::new(1));
        link.enter(START_NS, b"last", &mut chance);
        link.end(START_NS + 5 * MS, Ending::Finished, &mut chance);
        link.end(START_NS + 5 * MS, Ending::Reset, &mut chance);
        assert_eq!(link.room(), 0);
        assert_eq!(link.ended(START_NS + 20 * MS), None);
        take_all(&mut link, START_NS + 10 * MS);
        assert_eq!(link.ended(START_NS + 14 * MS), None);
        assert_eq!(link.next_ns(START_NS + 14 * MS), Some(START_NS + 15 * MS));
        assert_eq!(link.ended(START_NS + 15 * MS), Some(Ending::Finished));
    }

    #[test]
    fn an_abandoned_link_is_over() {
        let (mut link, mut chance) = (Link::new(network(10, 0, None)), Chance::new(1));
        link.enter(START_NS, b"lost", &mut chance);
        link.abandon();
        assert_eq!(take_all(&mut link, START_NS + SECOND_NS), b"");
        assert_eq!((link.room(), link.next_ns(START_NS)), (0, None));
        assert_eq!(link.ended(START_NS), Some(Ending::Finished));
    }

    #[test]
    fn a_better_network_does_not_let_bytes_overtake() {
        let (mut link, mut chance) = (Link::new(network(50, 0, Some(1))), Chance::new(1));
        link.enter(START_NS, b"slow", &mut chance);
        link.set_network(Network::default());
        link.enter(START_NS + MS, b"fast", &mut chance);
        assert_eq!(take_all(&mut link, START_NS + 49 * MS), b"");
        assert_eq!(take_all(&mut link, START_NS + 50 * MS), b"slowfast");
    }
}
